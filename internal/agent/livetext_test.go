package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

// reader puts together what a subscriber of runText gets, as a client does: by offset.
type reader struct {
	t      *testing.T
	next   func() (agent.TextDelta, error, bool)
	stop   func()
	round  int
	text   []uint16
	pieces int
	texts  []string // that were replaced by another
}

func (h *house) reads(a *agent.Agent, id uuid.UUID) *reader {
	r := &reader{t: h.t}
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second) // what never comes ends the test
	r.next, r.stop = iter.Pull2(a.FollowText(ctx, h.admin, id))
	h.t.Cleanup(func() { cancel(); r.stop() })
	return r
}

// one takes the next delta, false at the end.
func (r *reader) one() bool {
	r.t.Helper()
	d, err, more := r.next()
	if err != nil {
		r.t.Fatal(err)
	}
	if !more {
		return false
	}
	r.pieces++
	if d.Offset == 0 && len(r.text) > 0 {
		r.texts = append(r.texts, string(utf16.Decode(r.text)))
		r.text = nil
	}
	if d.Offset != len(r.text) {
		r.t.Errorf("M1 %q is at %d, after %d units", d.Text, d.Offset, len(r.text))
	}
	r.round, r.text = d.Round, append(r.text, utf16.Encode([]rune(d.Text))...)
	return true
}

// until reads until the present text is what it waits for.
func (r *reader) until(want string) {
	r.t.Helper()
	for string(utf16.Decode(r.text)) != want {
		if !r.one() {
			r.t.Fatalf("M1 it ended with %q, not %q", string(utf16.Decode(r.text)), want)
		}
	}
}

// ends reads to the end, which is what it waits for.
func (r *reader) ends(want string) {
	r.t.Helper()
	for r.one() {
		continue
	}
	if got := string(utf16.Decode(r.text)); got != want {
		r.t.Errorf("M1 it ended with %q, not %q", got, want)
	}
}

// typist is a turn that writes when the test says so.
type typist struct {
	keys chan string
	ends chan agent.Turn
}

func (h *house) typist() *typist {
	k := &typist{keys: make(chan string), ends: make(chan agent.Turn)}
	h.model.does(func(ctx context.Context) (agent.Turn, error) {
		for {
			select {
			case delta := <-k.keys:
				write(ctx, delta)
			case turn := <-k.ends:
				return turn, nil
			case <-ctx.Done():
				return agent.Turn{}, ctx.Err()
			}
		}
	})
	return k
}

func (h *house) begins() agent.Run {
	h.t.Helper()
	r, err := h.agent.Start(context.Background(), h.admin, h.plain())
	h.ok(err)
	return r
}

// kept is the row that replicas read the text from.
func (h *house) kept(id uuid.UUID) agent.LiveText {
	h.t.Helper()
	now, err := h.store.LiveText(context.Background(), id)
	h.ok(err)
	return now
}

func TestRunText(t *testing.T) {
	t.Run("M1 readers at two replicas get the text as it arrives, each part once, and a late one gets what there is", func(t *testing.T) {
		twice(t, func(h *house, replicas [2]*agent.Agent) {
			k := h.typist()
			r := h.begins()
			early := []*reader{h.reads(replicas[0], r.ID), h.reads(replicas[1], r.ID)}
			k.keys <- "Grüße 👋🏽 from "
			for _, e := range early {
				e.until("Grüße 👋🏽 from ")
			}
			k.keys <- "\xf0\x9f" // the first half of a character
			k.keys <- "\x8e\x89 here"
			late := h.reads(replicas[1], r.ID)
			late.until("Grüße 👋🏽 from 🎉 here")
			if late.pieces > 2 {
				h.t.Errorf("a late reader got what there was in %d pieces", late.pieces)
			}
			k.ends <- agent.Turn{Text: "Grüße 👋🏽 from 🎉 here, and the end"}
			for _, reader := range append(early, late) {
				reader.ends("Grüße 👋🏽 from 🎉 here, and the end")
				if len(reader.texts) > 0 || reader.round != 1 {
					h.t.Errorf("M1 round %d, replaced: %q", reader.round, reader.texts)
				}
			}
			h.reads(replicas[0], r.ID).ends("Grüße 👋🏽 from 🎉 here, and the end")
			if got := h.kept(r.ID); got != (agent.LiveText{}) {
				h.t.Errorf("R16 the text of a run that ended is still there: %+v", got)
			}
		})
	})
	t.Run("M1 another round begins another text", func(t *testing.T) {
		each(t, func(h *house) {
			first, second := h.typist(), h.typist()
			r := h.begins()
			reader := h.reads(h.agent, r.ID)
			first.keys <- "I look "
			reader.until("I look ")
			first.keys <- "it up."
			first.ends <- agent.Turn{Text: "I look it up.", Calls: calls("get_page", `{"id":"home"}`)}
			reader.until("I look it up.") // what was written last in a round is not lost
			second.keys <- "I look at it."
			reader.until("I look at it.")
			if reader.round != 2 {
				h.t.Errorf("round %d", reader.round)
			}
			second.ends <- agent.Turn{Text: "I look at it. Done."}
			reader.ends("I look at it. Done.")
			if fmt.Sprint(reader.texts) != "[I look it up.]" {
				h.t.Errorf("%q", reader.texts)
			}
		})
	})
	t.Run("M1 R16 what was written beside a proposal stays while it waits, encrypted, and goes with the run", func(t *testing.T) {
		each(t, func(h *house) {
			k := h.typist()
			r := h.begins()
			k.keys <- "I propose this."
			k.ends <- agent.Turn{Text: "I propose this.", Calls: calls("update_element", fix)}
			r = h.settled(r.ID)
			h.reads(h.agent, r.ID).until("I propose this.")
			h.decide(h.admin, r, true, "")
			if got := h.kept(r.ID); got != (agent.LiveText{}) {
				h.t.Errorf("it is still there: %+v", got)
			}
		})
	})
	t.Run("R10 a cancelled run's text is gone at once, and its readers' subscription ends", func(t *testing.T) {
		each(t, func(h *house) {
			k := h.typist()
			r := h.begins()
			reader := h.reads(h.agent, r.ID)
			k.keys <- "Once upon"
			reader.until("Once upon")
			_, err := h.agent.Cancel(context.Background(), h.admin, r.ID)
			h.ok(err)
			if got := h.kept(r.ID); got != (agent.LiveText{}) {
				h.t.Errorf("%+v", got)
			}
			reader.ends("Once upon")
		})
	})
	t.Run("I2 whoever may not see the run sees nothing of it", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.start(h.admin, h.plain())
			for _, err := range h.agent.FollowText(t.Context(), h.person("nosy"), r.ID) {
				if !fault.Is(err, fault.NotFound) {
					h.t.Errorf("got %v", err)
				}
			}
		})
	})
}

// forgetful is a store in which texts cannot be written while it fails.
type forgetful struct {
	*store.Store
	fails  atomic.Bool
	missed atomic.Int32
}

func (f *forgetful) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	for _, c := range changes {
		if f.fails.Load() && len(c.Ring) == 1 && strings.HasPrefix(string(c.Ring[0]), "text:") {
			f.missed.Add(1)
			return nil, fault.New(fault.Unavailable, "no")
		}
	}
	return f.Store.Apply(ctx, changes...)
}

func TestRunTextThatCannotBeKept(t *testing.T) {
	var f *forgetful
	with := func(s *store.Store) agent.Store {
		f = &forgetful{Store: s}
		f.fails.Store(true)
		return f
	}
	t.Run("R17 a text that cannot be stored changes nothing about the run, and is shown once it can", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			k := h.typist()
			r := h.begins()
			k.keys <- "Hello"
			eventually(h, func() bool { return f.missed.Load() > 0 })
			reader := h.reads(h.agent, r.ID)
			f.fails.Store(false)
			k.keys <- " world"
			reader.until("Hello world")
			f.fails.Store(true)
			k.ends <- agent.Turn{Text: "Hello world, again"}
			reader.ends("Hello world, again")
			if r := h.settled(r.ID); r.Status != run.Completed || r.Answer != "Hello world, again" {
				h.t.Errorf("%s %q", r.Status, r.Answer)
			}
		})
	})
}

func TestRunTextOfALostWorker(t *testing.T) {
	t.Run("R8 the text of a worker that died goes with it, and it writes no more", func(t *testing.T) {
		each(t, func(h *house) {
			k := h.typist()
			r := h.begins()
			reader := h.reads(h.agent, r.ID)
			k.keys <- "Once upon"
			reader.until("Once upon")
			next := h.later(1) // its lease is over by then
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); next.Work(ctx) }()
			eventually(h, func() bool {
				now, err := h.store.Run(context.Background(), r.ID)
				h.ok(err)
				return now.Attempts == 1
			})
			stop()
			<-done
			k.keys <- " a time"
			k.ends <- agent.Turn{Text: "Once upon a time"}
			h.drain()
			if got := h.kept(r.ID); got != (agent.LiveText{}) {
				h.t.Errorf("%+v", got)
			}
		})
	})
}

// eventually waits for something that another goroutine brings about.
func eventually(h *house, so func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			h.t.Fatal(errors.New("it never came"))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
