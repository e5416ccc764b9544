package once_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/once"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

const settings change.Table = "settings"

var (
	settingID    = change.ID(settings, "id")
	settingName  = change.Text[string](settings, "name")
	settingValue = change.Text[string](settings, "value")
)

// clock is a time that only a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(c.at.Load(), 0) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d / time.Second)) }
func (c *clock) World() world.World   { return world.New(c.now, rand.Reader) }
func (c *clock) keys(s once.Store) *once.Keys {
	return &once.Keys{Store: s, World: c.World(), Log: slog.New(slog.DiscardHandler)}
}

// replicas are two processes' keys over one database. SQLite has one server.
func replicas(t *testing.T, test func(t *testing.T, s [2]*store.Store, c *clock)) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			url := database.URL(t)
			first := storetest.OpenAt(t, url, store.Options{})
			second := storetest.OpenAt(t, url, store.Options{})
			c := &clock{}
			c.at.Store(1_700_000_000)
			test(t, [2]*store.Store{first, second}, c)
		})
	}
}

func request(key string) once.Request {
	return once.Request{
		Actor: uuid.MustParse("00000000-0000-7000-8000-000000000001"), Mutation: "m", Key: key, Input: "i",
		Pack: func(r *fault.Refused) json.RawMessage { return json.RawMessage(`"` + string(r.Code) + `"`) },
	}
}

// write is an effect: a new row.
func write(ctx context.Context, s *store.Store, name string) error {
	_, err := change.One(ctx, s, change.Change{Inserts: []change.Insert{{Table: settings, Row: []change.Value{
		settingID.To(uuid.New()), settingName.To(name), settingValue.To("v"),
	}}}})
	return err
}

func answered(text string) json.RawMessage { return json.RawMessage(`"` + text + `"`) }

func TestOneKeyOneEffect(t *testing.T) {
	replicas(t, func(t *testing.T, s [2]*store.Store, c *clock) {
		t.Run("R18 of requests at once on two replicas one acts and the others wait for its answer", func(t *testing.T) {
			var acted, repeated atomic.Int32
			var all sync.WaitGroup
			for n := range 16 {
				all.Go(func() {
					at := s[n%2]
					before, again, err := c.keys(at).Do(t.Context(), request("race"), func(ctx context.Context) (json.RawMessage, error) {
						acted.Add(1)
						return answered("first"), write(ctx, at, "race")
					})
					if err != nil {
						t.Error(err)
					}
					if again {
						repeated.Add(1)
						if string(before.Answer) != `"first"` {
							t.Errorf("a repetition was answered %s", before.Answer)
						}
					}
				})
			}
			all.Wait()
			if acted.Load() != 1 || repeated.Load() != 15 {
				t.Errorf("%d acted, %d were repeated", acted.Load(), repeated.Load())
			}
		})
		t.Run("R18 an error stores nothing, a conflict is another input", func(t *testing.T) {
			failure := errors.New("no")
			if _, _, err := c.keys(s[0]).Do(t.Context(), request("error"), func(context.Context) (json.RawMessage, error) { return nil, failure }); !errors.Is(err, failure) {
				t.Fatal(err)
			}
			other := request("error")
			other.Input = "j"
			if _, again, err := c.keys(s[1]).Do(t.Context(), other, func(context.Context) (json.RawMessage, error) { return answered("x"), nil }); again || err != nil {
				t.Fatalf("%v, repeated %v", err, again)
			}
			if _, _, err := c.keys(s[0]).Do(t.Context(), request("error"), nil); !fault.Is(err, fault.Conflict) {
				t.Errorf("%v", err)
			}
		})
		t.Run("R18 an error after the effect keeps the key, and a repetition learns the effect", func(t *testing.T) {
			failure := errors.New("reading back failed")
			_, _, err := c.keys(s[0]).Do(t.Context(), request("after"), func(ctx context.Context) (json.RawMessage, error) {
				return nil, errors.Join(write(ctx, s[0], "after"), failure)
			})
			if !errors.Is(err, failure) {
				t.Fatal(err)
			}
			before, again, err := c.keys(s[1]).Do(t.Context(), request("after"), nil)
			if err != nil || !again || before.Answer != nil || len(before.Effect.Rows) != 1 || before.Effect.Rows[0].How != change.Inserted {
				t.Errorf("%+v, %v, %v", before, again, err)
			}
		})
		t.Run("R18 a refusal is stored with its audit, and what is done aside is no effect", func(t *testing.T) {
			refused := fault.Refuse(fault.Busy, "not now")
			_, _, err := c.keys(s[0]).Do(t.Context(), request("refused"), func(ctx context.Context) (json.RawMessage, error) {
				if err := write(change.Aside(ctx), s[0], "aside"); err != nil {
					return nil, err
				}
				_, err := change.One(ctx, s[0], change.Change{Refused: refused})
				return nil, errors.Join(err, errors.New("the server died"))
			})
			if err == nil {
				t.Fatal("no error")
			}
			before, again, err := c.keys(s[1]).Do(t.Context(), request("refused"), nil)
			if err != nil || !again || string(before.Effect.Refusal) != `"BUSY"` || len(before.Effect.Rows) != 0 {
				t.Errorf("%+v, %v, %v", before, again, err)
			}
		})
		t.Run("R18 a holder that died before its effect is taken over, and does nothing if it was only slow", func(t *testing.T) {
			slow, resumed := make(chan struct{}), make(chan struct{})
			ended := make(chan error, 1)
			var acted atomic.Int32
			go func() {
				_, again, err := c.keys(s[0]).Do(t.Context(), request("slow"), func(ctx context.Context) (json.RawMessage, error) {
					close(slow)
					<-resumed
					err := write(ctx, s[0], "slow one")
					if err == nil {
						acted.Add(1)
					}
					return answered("slow"), err
				})
				if !again && err == nil {
					err = errors.New("the slow one acted")
				}
				ended <- err
			}()
			<-slow
			c.pass(time.Minute)
			_, again, err := c.keys(s[1]).Do(t.Context(), request("slow"), func(ctx context.Context) (json.RawMessage, error) {
				acted.Add(1)
				return answered("second"), write(ctx, s[1], "second one")
			})
			if again || err != nil {
				t.Errorf("%v, repeated %v", err, again)
			}
			close(resumed)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if acted.Load() != 1 {
				t.Errorf("%d effects", acted.Load())
			}
		})
		t.Run("R18 a key is free after a day, and its row goes", func(t *testing.T) {
			do := func(context.Context) (json.RawMessage, error) { return answered("a day"), nil }
			for _, step := range []struct {
				pass     time.Duration
				repeated bool
			}{{0, false}, {24*time.Hour - time.Second, true}, {time.Second, false}} {
				c.pass(step.pass)
				if _, again, err := c.keys(s[0]).Do(t.Context(), request("day"), do); err != nil || again != step.repeated {
					t.Errorf("after %s more: %v, repeated %v", step.pass, err, again)
				}
			}
			if _, err := c.keys(s[1]).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, again, err := c.keys(s[0]).Do(t.Context(), request("day"), do); err != nil || !again {
				t.Errorf("a key went before its time: %v", err)
			}
			c.pass(25 * time.Hour)
			gone, err := c.keys(s[1]).Sweep(t.Context())
			left, failed := s[0].ExpiredKeys(t.Context(), c.now(), 10)
			if err != nil || failed != nil || gone == 0 || len(left) > 0 {
				t.Errorf("%d went, %d are left: %v, %v", gone, len(left), err, failed)
			}
		})
	})
}

func TestAPanicFreesTheKey(t *testing.T) {
	c := &clock{}
	s := storetest.Open(t)
	func() {
		defer func() { recover() }()
		c.keys(s).Do(t.Context(), request("panic"), func(context.Context) (json.RawMessage, error) { panic("oh") })
		t.Error("R18 the panic was swallowed")
	}()
	_, again, err := c.keys(s).Do(t.Context(), request("panic"), func(context.Context) (json.RawMessage, error) { return answered("x"), nil })
	if again || err != nil {
		t.Errorf("R18 %v, repeated %v", err, again)
	}
}
