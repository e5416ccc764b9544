package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// open opens a database and closes it when the test ends.
func open(t *testing.T, at string, options store.Options) (*store.Store, error) {
	t.Helper()
	s, err := store.Open(t.Context(), at, options)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// refused opens a database that must not open, for a reason.
func refused(t *testing.T, at string, options store.Options, reason string) {
	t.Helper()
	s, err := store.Open(t.Context(), at, options)
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	if !strings.Contains(err.Error(), reason) {
		t.Fatalf("got %v, want a word of %q", err, reason)
	}
}

func TestAddress(t *testing.T) {
	for at, reason := range map[string]string{
		"mysql://root:hush@localhost":            "sqlite: or postgres://",
		"sqlite:":                                "names no file",
		"countersign.db":                         "sqlite: or postgres://",
		"postgres://user:hush@localhost:port/db": "read the database URL",
	} {
		t.Run(at, func(t *testing.T) {
			_, err := store.Open(t.Context(), at, store.Options{Keys: []store.Key{storetest.Key}})
			if err == nil || !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "hush") {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("what is kept in files is its owner's alone", func(t *testing.T) {
		folder := t.TempDir()
		if _, err := open(t, "sqlite:"+filepath.Join(folder, "countersign.db"), store.Options{Serve: true}); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(folder)
		if err != nil || len(files) < 4 { // database, journal, key, lock
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %v, %v", file.Name(), info.Mode(), err)
			}
		}
	})
	t.Run("a file name may hold what a URL may not", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a b?c#d%.db")
		if _, err := open(t, "sqlite:"+path, store.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a PostgreSQL that is not there is UNAVAILABLE", func(t *testing.T) {
		_, err := store.Open(t.Context(), "postgres://nobody@127.0.0.1:1/none?sslmode=disable", store.Options{Keys: []store.Key{storetest.Key}})
		if !fault.Is(err, fault.Unavailable) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a schema that is not there is said", func(t *testing.T) {
		refused(t, strings.Replace(pgtest.Schema(t), "search_path=", "search_path=no_", 1), store.Options{Keys: []store.Key{storetest.Key}}, "names no schema")
	})
	t.Run("PostgreSQL without a key is refused with how to get one", func(t *testing.T) {
		refused(t, pgtest.Schema(t), store.Options{}, "COUNTERSIGN_ENCRYPTION_KEY")
	})
}

func TestKeys(t *testing.T) {
	other := store.Key{ID: "other", Secret: [32]byte{1}}
	for _, database := range storetest.URLs {
		t.Run("R16 "+database.Name+" does not open with another key", func(t *testing.T) {
			at := database.URL(t)
			storetest.OpenAt(t, at, store.Options{})
			refused(t, at, store.Options{Keys: []store.Key{other}}, "the encryption key is not the one")
			sameID := store.Key{ID: storetest.Key.ID, Secret: other.Secret}
			refused(t, at, store.Options{Keys: []store.Key{sameID}}, "the encryption key is not the one")
			if _, err := open(t, at, store.Options{Keys: []store.Key{other, storetest.Key}}); err != nil {
				t.Fatalf("with a new key before the old one: %v", err)
			}
		})
	}
	t.Run("R16 an embedded database makes its key file once, for its owner alone", func(t *testing.T) {
		at := "sqlite:" + filepath.Join(t.TempDir(), "countersign.db")
		s, err := open(t, at, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id := storetest.NewRows(t, s).Run(storetest.Sealed("answer", "the answer"))
		path := strings.TrimSuffix(strings.TrimPrefix(at, "sqlite:"), ".db") + ".key"
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v %v", info, err)
		}
		again, err := open(t, at, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := again.Run(t.Context(), id); err != nil || r.Answer != "the answer" {
			t.Fatalf("%q %v", r.Answer, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		refused(t, at, store.Options{}, "is missing")
		if _, err := os.Stat(path); err == nil {
			t.Fatal("a new key was made for an old database")
		}
	})
	t.Run("R16 what is sealed is not readable in the database", func(t *testing.T) {
		storetest.Each(t, func(t *testing.T, s *store.Store) {
			r := storetest.NewRows(t, s)
			id := r.Run(storetest.Sealed("request", "a very private request"), storetest.Sealed("state", ""))
			var request, state string
			if err := s.Writer().QueryRow("SELECT request, state FROM runs WHERE id = '"+id.String()+"'").Scan(&request, &state); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(request, storetest.Key.ID+":") || strings.Contains(request, "private") || state != "" {
				t.Fatalf("stored %q and %q", request, state)
			}
		})
	})
}

func TestServers(t *testing.T) {
	at := "sqlite:" + filepath.Join(t.TempDir(), "countersign.db")
	server, err := open(t, at, store.Options{Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	r := storetest.NewRows(t, server)
	t.Run("a second server on one file is refused", func(t *testing.T) {
		refused(t, at, store.Options{Serve: true}, "another server uses")
	})
	t.Run("a command is not, and both write", func(t *testing.T) {
		command, err := open(t, at, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, s := range []*store.Store{server, command} {
			all.Go(func() {
				for range 20 {
					_, row := r.Row("settings", v("value", "x"))
					row.Row = append(row.Row, v("name", row.Row[0].Arg.(interface{ String() string }).String()))
					if out, err := change.One(t.Context(), s, change.Change{Inserts: []change.Insert{row}}); err != nil || !out.Applied {
						t.Errorf("%+v %v", out, err)
					}
				}
			})
		}
		all.Wait()
		if settings, err := server.Settings(t.Context()); err != nil || len(settings) != 40 {
			t.Fatalf("%d settings, %v", len(settings), err)
		}
	})
	t.Run("what another process commits is seen by watching", func(t *testing.T) {
		command, err := open(t, at, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		version, closeIt, err := server.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer closeIt()
		before, err := version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := version(t.Context()); again != before {
			t.Fatal("it changes by itself")
		}
		r.On(command).Insert("settings", v("name", "watched"), v("value", ""))
		if after, err := version(t.Context()); err != nil || after == before {
			t.Fatalf("%d and %d, %v", before, after, err)
		}
	})
	t.Run("a server that stopped makes room", func(t *testing.T) {
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, at, store.Options{Serve: true}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMigrations(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name+": many that start on an empty database at once all succeed", func(t *testing.T) {
			at := database.URL(t)
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					if s, err := store.Open(t.Context(), at, store.Options{Keys: []store.Key{storetest.Key}}); err != nil {
						t.Error(err)
					} else {
						s.Close()
					}
				})
			}
			all.Wait()
		})
		t.Run(database.Name+": a server that may not migrate waits for somebody who does", func(t *testing.T) {
			at := database.URL(t)
			s := storetest.OpenAt(t, at, store.Options{KeepSchema: true})
			if pending, err := s.Pending(t.Context()); err != nil || pending < 2 {
				t.Fatalf("%d pending, %v", pending, err)
			}
			if err := s.Ready(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Fatalf("got %v", err)
			}
			c := change.Change{Updates: []change.Update{{Table: "sources", Set: []change.Value{storetest.Sealed("access_token", "x")}}}}
			if _, err := s.Apply(t.Context(), c); !fault.Is(err, fault.Unavailable) {
				t.Fatalf("got %v", err)
			}
			storetest.OpenAt(t, at, store.Options{})
			if err := s.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if pending, err := s.Pending(t.Context()); err != nil || pending != 0 {
				t.Fatalf("%d pending, %v", pending, err)
			}
		})
	}
	t.Run("a migration waits for its lock no longer than its context", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "countersign.db")
		release, err := store.LockFile(path + ".migrate")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		ctx, cancel := contextWithin(t, 30*time.Millisecond)
		defer cancel()
		if _, err := store.Open(ctx, "sqlite:"+path, store.Options{}); err == nil {
			t.Fatal("it did not wait")
		}
	})
}
