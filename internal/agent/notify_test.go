package agent_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/world"
)

// post is a sender that writes down what it is given.
type post struct {
	mu      sync.Mutex
	sent    []notify.Message
	answers []notify.Answer // in turn, then 204
	fails   func() error
}

func (p *post) Check(url string) error {
	if !strings.HasPrefix(url, "https://") {
		return fault.New(fault.BadInput, "No.")
	}
	return nil
}

func (p *post) Post(_ context.Context, m notify.Message) (notify.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	if p.fails != nil {
		return notify.Answer{}, p.fails()
	}
	if len(p.answers) == 0 {
		return notify.Answer{StatusCode: 204}, nil
	}
	next := p.answers[0]
	p.answers = p.answers[1:]
	return next, nil
}

// deadRoom is a store that nothing is written to any more once its process is dead.
type deadRoom struct {
	notify.Store
	dead bool
}

func (m *deadRoom) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	if m.dead {
		return nil, fault.New(fault.Unavailable, "dead")
	}
	return m.Store.Apply(ctx, changes...)
}

// meter counts outcomes.
type meter struct {
	mu    sync.Mutex
	tries map[notify.Outcome]int
}

func (m *meter) Tried(outcome notify.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tries == nil {
		m.tries = map[notify.Outcome]int{}
	}
	m.tries[outcome]++
}

// town is a house with somebody to tell.
type town struct {
	*house
	post  *post
	meter *meter
	at    time.Time
	room  *notify.Room
	told  notify.Endpoint
}

func (h *house) town(events ...notify.Event) *town {
	h.t.Helper()
	t := &town{house: h, post: &post{}, meter: &meter{}, at: time.Now()}
	t.room = t.replica(h.store)
	if len(events) == 0 {
		events = notify.Events
	}
	made, secret, err := t.room.Create(context.Background(), h.admin, notify.Endpoint{URL: "https://hooks.example.org", Events: slices.Clone(events), Enabled: true})
	h.ok(err)
	if !strings.HasPrefix(secret, "whsec_") {
		h.t.Errorf("the secret is %q", secret)
	}
	t.told = made
	return t
}

func (t *town) replica(s *store.Store) *notify.Room {
	name := func(prefix string) func(uuid.UUID) string {
		return func(id uuid.UUID) string { return prefix + id.String() }
	}
	return &notify.Room{
		Store: s, Sender: t.post, World: world.New(func() time.Time { return t.at }, rand.Reader), Bell: &live.Hub{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Names:    notify.Names{Run: name("run_"), User: name("usr_"), Configuration: name("cfg_"), Conversation: name("cnv_"), Delivery: name("ndl_")},
		Settings: t.access, Meter: t.meter,
	}
}

func (t *town) look() {
	t.t.Helper()
	t.ok(t.room.Look(context.Background()))
}

// types are the events that were posted, sorted.
func (t *town) types() (out []string) {
	for _, m := range t.post.sent {
		var said struct{ Type string }
		t.ok(json.Unmarshal([]byte(m.Body), &said))
		out = append(out, said.Type)
	}
	return slices.Sorted(slices.Values(out)) // they may overtake each other
}

func (t *town) log() []notify.Delivery {
	t.t.Helper()
	log, err := t.room.Deliveries(context.Background(), t.admin, t.told.ID, nil, notify.Page{Limit: 100})
	t.ok(err)
	return log
}

func TestNotifications(t *testing.T) {
	t.Run("R4 a run that waits, is decided and fails is told once each, with ids and codes and nothing that was said", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town()
			r := h.waiting()
			town.look()
			h.model.does(func(context.Context) (agent.Turn, error) { return agent.Turn{}, &agent.ProviderError{Message: "SAID"} })
			failed := h.decide(h.admin, r, true, "")
			town.look()
			town.look()
			if got := town.types(); failed.Status != run.Failed || !slices.Equal(got, []string{"run.decided", "run.failed", "run.waiting"}) {
				h.t.Fatalf("%s and %v", failed.Status, got)
			}
			all := ""
			for _, m := range town.post.sent {
				all += m.Body
			}
			for _, part := range []string{
				`"runId":"run_` + r.ID.String(), `"initiatorId":"usr_` + h.admin.ID.String(), `"configurationId":"cfg_` + h.config.ID.String(), `"approved":true`,
				`"decidedById":"usr_` + h.admin.ID.String(), `"turnDigest":"` + r.TurnDigest, `"reason":"provider_failed"`, `"subject":{"table":"page","id":"home"}`, `"status":"waiting_for_approval"`,
			} {
				if !strings.Contains(all, part) {
					h.t.Errorf("no %s in %s", part, all)
				}
			}
			for _, e := range h.events(r.ID) {
				word := map[run.EventKind]string{run.EventSuspended: "run.waiting", run.EventDecision: "run.decided", run.EventSettled: "run.failed"}[e.Kind]
				told := slices.ContainsFunc(town.post.sent, func(m notify.Message) bool {
					return strings.Contains(m.Body, `"`+word+`"`) && strings.Contains(m.Body, fmt.Sprintf(`"sequence":%d,`, e.Sequence))
				})
				if word != "" && !told {
					h.t.Errorf("R5 nobody was told of %s as event %d: %s", word, e.Sequence, all)
				}
			}
			if want := map[notify.Outcome]int{notify.Taken: 3}; !maps.Equal(town.meter.tries, want) {
				h.t.Errorf("counted %v", town.meter.tries)
			}
			for _, word := range []string{"Hello", "Helo", "Go.", "SAID"} {
				if strings.Contains(all, word) {
					h.t.Errorf("Y1 %q was told: %s", word, all)
				}
			}
			for _, d := range town.log() {
				if d.Status != notify.Delivered || len(d.Log) != 1 || d.Log[0].StatusCode != 204 || d.DeliveredAt == nil || d.NextAt != nil {
					h.t.Errorf("%+v", d)
				}
			}
		})
	})
	t.Run("R4 an answered question, an edited card and an expiry are told", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town()
			h.editable()
			h.expiring(24)
			h.model.says(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`), calls("update_element", fix))
			r := h.start(h.admin, h.plain())
			_, err := h.agent.SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"a"}`)})
			h.ok(err)
			r = h.reword(h.admin, h.settled(r.ID), "Edited")
			h.worked(r, 1, 2)
			town.look()
			if got := town.types(); !slices.Equal(got, []string{"run.decided", "run.expired", "run.waiting", "run.waiting", "run.waiting"}) {
				h.t.Errorf("%v", got)
			}
		})
	})
	t.Run("R4 an endpoint is told what it asked for, and nobody is told what nobody asked for", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town(notify.RunDecided)
			r := h.waiting()
			no := false
			_, err := town.room.Update(context.Background(), h.admin, notify.EndpointUpdate{ID: town.told.ID, Enabled: &no})
			h.ok(err)
			town.look()
			h.decide(h.admin, r, true, "")
			town.look()
			left, err := h.store.Announcements(context.Background(), 10)
			if len(town.post.sent) != 0 || len(left) != 0 || err != nil {
				h.t.Errorf("%v, and %v is left (%v)", town.types(), left, err)
			}
		})
	})
	t.Run("R4 two replicas tell each thing once", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town()
			for range 5 {
				h.ordinary(h.admin)
			}
			var both sync.WaitGroup
			for range 4 {
				room := town.replica(h.store)
				both.Go(func() { _ = errors.Join(room.Look(context.Background()), room.Look(context.Background())) })
			}
			both.Wait()
			town.look()
			ids := map[string]bool{}
			for _, m := range town.post.sent {
				ids[m.ID] = true
			}
			if len(town.post.sent) != 5 || len(ids) != 5 {
				h.t.Errorf("%d were sent, of %d deliveries", len(town.post.sent), len(ids))
			}
		})
	})
}

func TestRedelivery(t *testing.T) {
	t.Run("R4 what is not taken comes again with the same id, later each time, and is given up in the end", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town(notify.RunWaiting)
			town.post.fails = func() error { return errors.New("the server did not answer in time") }
			h.waiting()
			var waits []time.Duration
			for range 12 {
				town.look()
				town.look() // it is not due
				d := town.log()[0]
				if d.NextAt == nil {
					break
				}
				waits = append(waits, d.NextAt.Sub(town.at))
				town.at = *d.NextAt
			}
			d := town.log()[0]
			if len(waits) != 8 || !slices.IsSorted(waits) || waits[0] < 5*time.Second || waits[7] < 12*time.Hour || waits[7] > 15*time.Hour {
				h.t.Errorf("the pauses were %v", waits)
			}
			if d.Status != notify.GivenUp || len(d.Log) != 9 || d.Log[8].Error == "" || len(town.post.sent) != 9 {
				h.t.Errorf("%+v", d)
			}
			for _, m := range town.post.sent {
				if m.ID != town.post.sent[0].ID || m.Body != town.post.sent[0].Body {
					h.t.Errorf("%+v", m)
				}
			}
			town.post.fails = nil
			_, err := town.room.Redeliver(context.Background(), h.admin, d.ID)
			h.ok(err)
			town.look()
			if again := town.log()[0]; again.Status != notify.Delivered || len(again.Log) != 10 || again.ID != d.ID {
				h.t.Errorf("%+v", again)
			}
		})
	})
	t.Run("R4 a pause that the server asks for is kept, within a day, and one that is gone is told nothing more", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town(notify.RunWaiting)
			town.post.answers = []notify.Answer{{StatusCode: 429, RetryAfter: time.Hour}, {StatusCode: 503, RetryAfter: 1000 * time.Hour}, {StatusCode: 410}}
			h.waiting()
			for _, want := range []time.Duration{time.Hour, 24 * time.Hour} {
				town.look()
				d := town.log()[0]
				if got := d.NextAt.Sub(town.at).Round(time.Second); got != want {
					h.t.Errorf("%s instead of %s", got, want)
				}
				town.at = *d.NextAt
			}
			town.look()
			gone, err := town.room.Find(context.Background(), h.admin, town.told.ID)
			h.ok(err)
			if d := town.log()[0]; d.Status != notify.GivenUp || gone.Enabled || gone.DisabledReason == "" {
				h.t.Errorf("%+v %+v", d, gone)
			}
			if want := (map[notify.Outcome]int{notify.Failed: 2, notify.Dropped: 1}); !maps.Equal(town.meter.tries, want) {
				h.t.Errorf("counted %v", town.meter.tries)
			}
			entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.NotificationsChanged}}, audit.Page{Limit: 1})
			if err != nil || len(entries) != 1 || entries[0].Actor != uuid.Nil || entries[0].Detail["enabled"] != false {
				h.t.Errorf("U1 %+v, %v", entries, err)
			}
		})
	})
	t.Run("R4 a process that dies while it posts is followed by another, which posts again", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town(notify.RunWaiting)
			h.waiting()
			dies := &deadRoom{Store: h.store}
			town.room.Store = dies
			town.post.fails = func() error { dies.dead = true; return nil }
			town.look()
			town.post.fails, town.room = nil, town.replica(h.store)
			town.look()
			if len(town.post.sent) != 1 {
				h.t.Fatalf("%d posts while the try still belongs to the one that died", len(town.post.sent))
			}
			town.at = town.at.Add(2 * time.Minute)
			town.look()
			if d := town.log()[0]; len(town.post.sent) != 2 || town.post.sent[1].ID != town.post.sent[0].ID || d.Status != notify.Delivered {
				h.t.Errorf("%+v", d)
			}
		})
	})
	t.Run("R4 one that dies after the run's change and before it told anybody is followed by another", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town(notify.RunWaiting)
			r := h.waiting()
			left, err := h.store.Announcements(context.Background(), 10)
			if len(left) != 1 || left[0].Run != r.ID || err != nil {
				h.t.Fatalf("%v, %v", left, err)
			}
			dies := &deadRoom{Store: h.store, dead: true}
			town.room.Store = dies
			_ = town.room.Look(context.Background())
			town.room = town.replica(h.store)
			town.look()
			if len(town.post.sent) != 1 {
				h.t.Errorf("%d posts", len(town.post.sent))
			}
		})
	})
	t.Run("R4 a test is sent to an endpoint that is switched off, too, and old deliveries are removed", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town()
			no := false
			_, err := town.room.Update(context.Background(), h.admin, notify.EndpointUpdate{ID: town.told.ID, Enabled: &no})
			h.ok(err)
			_, err = town.room.Test(context.Background(), h.admin, town.told.ID)
			h.ok(err)
			town.look()
			if !slices.Equal(town.types(), []string{"ping"}) {
				h.t.Errorf("%v", town.types())
			}
			town.at = town.at.AddDate(0, 0, 31)
			if removed, err := town.room.Retain(context.Background()); err != nil || removed != 1 || len(town.log()) != 0 {
				h.t.Errorf("%d, %v", removed, err)
			}
			h.ok(town.room.Delete(context.Background(), h.admin, town.told.ID))
		})
	})
}

func TestEndpoints(t *testing.T) {
	each(t, func(h *house) {
		town := h.town()
		for name, e := range map[string]notify.Endpoint{
			"no events": {URL: "https://a.example"}, "a bad address": {URL: "http://a.example", Events: notify.Events},
			"a long description": {URL: "https://a.example", Events: notify.Events, Description: strings.Repeat("x", 201)},
		} {
			if _, _, err := town.room.Create(context.Background(), h.admin, e); !fault.Is(err, fault.BadInput) {
				h.t.Errorf("%s: %v", name, err)
			}
		}
		for want, by := range map[fault.Kind]actor.Actor{fault.Forbidden: h.person("Ada"), fault.Unauthenticated: {}} {
			ctx, id := context.Background(), town.told.ID
			_, _, create := town.room.Create(ctx, by, town.told)
			_, update := town.room.Update(ctx, by, notify.EndpointUpdate{ID: id})
			_, _, rotate := town.room.RotateSecret(ctx, by, id)
			_, list := town.room.List(ctx, by, notify.Page{Limit: 1})
			_, deliveries := town.room.Deliveries(ctx, by, id, nil, notify.Page{Limit: 1})
			_, test := town.room.Test(ctx, by, id)
			_, again := town.room.Redeliver(ctx, by, id)
			for i, err := range []error{create, update, rotate, list, deliveries, test, again, town.room.Delete(ctx, by, id)} {
				if !fault.Is(err, want) {
					h.t.Errorf("I5 %d: %v instead of %s", i, err, want)
				}
			}
		}
		first, err := h.store.EndpointSecret(context.Background(), town.told.ID)
		h.ok(err)
		_, second, err := town.room.RotateSecret(context.Background(), h.admin, town.told.ID)
		h.ok(err)
		now, err := h.store.EndpointSecret(context.Background(), town.told.ID)
		if err != nil || first == second || now != second {
			h.t.Errorf("the secret was not replaced: %v", err)
		}
	})
}
