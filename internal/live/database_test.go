package live_test

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/pgtest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestListenPostgres(t *testing.T) {
	at := pgtest.Schema(t)
	db, err := sql.Open("postgres", at)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	notify := func(payload string) {
		if _, err := db.Exec("SELECT pg_notify('somewhere', $1)", payload); err != nil {
			t.Fatal(err)
		}
	}
	var hub live.Hub
	one, cancelOne := hub.Listen("one")
	two, cancelTwo := hub.Listen("two")
	defer cancelOne()
	defer cancelTwo()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- live.ListenPostgres(ctx, at, "somewhere", &hub, quiet) }()
	both := func(t *testing.T) {
		t.Helper()
		<-one
		<-two
	}
	t.Run("whoever listened before the connection was there looks again", both)
	t.Run("a payload rings its topics", func(t *testing.T) {
		notify("three\ntwo")
		<-two
		if rung(one) {
			t.Fatal("a topic rang that was not named")
		}
	})
	t.Run("an empty payload rings everybody", func(t *testing.T) {
		notify("")
		both(t)
	})
	t.Run("a connection that was lost is made again and rings everybody", func(t *testing.T) {
		if _, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'`); err != nil {
			t.Fatal(err)
		}
		both(t)
		notify("one")
		<-one
	})
	t.Run("it ends with the context", func(t *testing.T) {
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPoll(t *testing.T) {
	t.Run("a version that changes rings everybody, and nobody looks while nobody waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var hub live.Hub
			var version, looks atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go live.Poll(ctx, live.Glance, func(context.Context) (int64, error) {
				looks.Add(1)
				return version.Load(), nil
			}, &hub, quiet)
			time.Sleep(time.Second)
			if looks.Load() != 0 {
				t.Fatal("it looked for nobody")
			}
			wake, cancel := hub.Listen(change.AuditTopic)
			defer cancel()
			<-wake // the first look cannot know what came before
			time.Sleep(time.Second)
			if rung(wake) {
				t.Fatal("it rang for nothing")
			}
			version.Store(1)
			<-wake
		})
	})
}
