package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

// doors is a sender to servers of which some let nobody in before they are opened.
type doors struct {
	post
	knocked chan string // the URL of every post that begins
	closed  map[string]chan struct{}
}

func (d *doors) Post(ctx context.Context, m notify.Message) (notify.Answer, error) {
	d.knocked <- m.URL
	if door, closed := d.closed[m.URL]; closed {
		select {
		case <-door:
		case <-ctx.Done():
			return notify.Answer{}, ctx.Err()
		}
	}
	return d.post.Post(ctx, m)
}

const hanging, quick = "https://hanging.example", "https://hooks.example.org"

// hangs adds an endpoint that does not answer before its door is opened. It is told
// the same as the other.
func (t *town) hangs() (at *doors, told notify.Endpoint, open func()) {
	t.t.Helper()
	door := make(chan struct{})
	at = &doors{knocked: make(chan string, 1000), closed: map[string]chan struct{}{hanging: door}}
	t.room.Sender = at
	told, _, err := t.room.Create(context.Background(), t.admin, notify.Endpoint{URL: hanging, Events: notify.Events, Enabled: true})
	t.ok(err)
	return at, told, func() { close(door) }
}

// works lets the room work until stop, which waits for it.
func (t *town) works() (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); t.room.Work(ctx) }()
	return func() { end(); <-done }
}

// RULES R4: what is told to one server waits for no other server, and no run waits for any.
func TestHangingEndpoint(t *testing.T) {
	each(t, func(h *house) {
		town := h.town()
		doors, told, open := town.hangs()
		stop := town.works()
		const runs = 20 // more than one endpoint may hold up
		for range runs {
			h.ordinary(h.admin)
		}
		for hung, done := 0, 0; done < runs || hung < 4; {
			if url := <-doors.knocked; url == quick {
				done++
			} else if hung++; hung > 4 {
				h.t.Fatal("an endpoint that hangs takes more places than there are for one")
			}
		}
		open()
		for range runs - 4 {
			if url := <-doors.knocked; url != hanging {
				h.t.Errorf("%s was told twice", url)
			}
		}
		stop()
		for _, e := range []notify.Endpoint{told, town.told} {
			log, err := town.room.Deliveries(context.Background(), h.admin, e.ID, nil, notify.Page{Limit: 100})
			h.ok(err)
			for _, d := range log {
				if d.Status != notify.Delivered || len(d.Log) != 1 {
					h.t.Errorf("%s: %+v", e.URL, d)
				}
			}
			if len(log) != runs {
				h.t.Errorf("%d deliveries to %s", len(log), e.URL)
			}
		}
	})
}

// RULES R4: a server that shuts down lets a post come to an end, and gives back the one that
// takes too long, for another replica to send at once.
func TestNotificationsDrain(t *testing.T) {
	t.Run("R4 what ends in time is stored", func(t *testing.T) {
		each(t, func(h *house) {
			town := h.town()
			doors, told, open := town.hangs()
			stop := town.works()
			h.waiting()
			for url := range doors.knocked {
				if url == hanging {
					break
				}
			}
			ended := make(chan struct{})
			go func() { defer close(ended); stop() }()
			open()
			<-ended
			if d := town.deliveries(told)[0]; d.Status != notify.Delivered || len(d.Log) != 1 {
				h.t.Errorf("%+v", d)
			}
		})
	})
	t.Run("R4 what does not is given back as if it had not been begun", func(t *testing.T) {
		each(t, func(h *house) {
			none := "0"
			_, err := h.access.UpdateSetting(context.Background(), h.admin, "server.drainTimeout", &none)
			h.ok(err)
			town := h.town()
			doors, told, open := town.hangs()
			stop := town.works()
			h.waiting()
			for url := range doors.knocked {
				if url == hanging {
					break
				}
			}
			stop()
			if d := town.deliveries(told)[0]; d.Status != notify.Pending || d.Tries != 0 || len(d.Log) != 0 || d.NextAt == nil || d.NextAt.After(town.at) {
				h.t.Fatalf("%+v", d)
			}
			open()
			town.look() // another replica, in the same minute
			if d := town.deliveries(told)[0]; d.Status != notify.Delivered {
				h.t.Errorf("%+v", d)
			}
		})
	})
}

func (t *town) deliveries(to notify.Endpoint) []notify.Delivery {
	t.t.Helper()
	log, err := t.room.Deliveries(context.Background(), t.admin, to.ID, nil, notify.Page{Limit: 100})
	t.ok(err)
	if len(log) == 0 {
		t.t.Fatalf("nothing is told to %s", to.URL)
	}
	return log
}

// RULES R4: a run that is stored as failed before anything ran is told like any other.
func TestFailedAtStartIsTold(t *testing.T) {
	each(t, func(h *house) {
		town := h.town(notify.RunFailed)
		first := h.decide(h.admin, h.waiting(), false, agent.Skip)
		h.revoke("tour")
		stopped := h.stopsStart(h.admin, h.after(first), fault.InstructionWithdrawn, "Tour may not instruct any more: its approval was revoked")
		town.look()
		if got := town.types(); stopped.Status != run.Failed || !slices.Equal(got, []string{"run.failed"}) || !strings.Contains(town.post.sent[0].Body, stopped.ID.String()) {
			h.t.Errorf("%s, and %v was told", stopped.Status, got)
		}
	})
}

// RULES R4: a run of a conversation is told with its conversation.
func TestConversationIsTold(t *testing.T) {
	each(t, func(h *house) {
		town := h.town(notify.RunWaiting)
		conversation := uuid.New()
		ready(h)
		h.model.says(calls("update_element", fix))
		turn := h.tour()
		turn.Conversation = conversation
		h.start(h.admin, turn)
		town.look()
		if len(town.post.sent) != 1 || !strings.Contains(town.post.sent[0].Body, `"conversationId":"cnv_`+conversation.String()+`"`) {
			h.t.Errorf("%v", town.post.sent)
		}
	})
}

// locked is a store that cannot open the endpoints' secrets.
type locked struct{ notify.Store }

func (locked) EndpointSecret(context.Context, uuid.UUID) (string, error) {
	return "", errors.New("there is no such key")
}

// RULES R4: an endpoint whose secret cannot be read fails as any other, and is told once it
// can be.
func TestUnreadableSecret(t *testing.T) {
	each(t, func(h *house) {
		town := h.town(notify.RunWaiting)
		h.waiting()
		town.room.Store = locked{h.store}
		town.look()
		d := town.log()[0]
		if len(town.post.sent) != 0 || d.Status != notify.Pending || len(d.Log) != 1 || d.Log[0].Error == "" {
			h.t.Fatalf("%d posts, %+v", len(town.post.sent), d)
		}
		town.room.Store, town.at = h.store, *d.NextAt
		town.look()
		if d := town.log()[0]; len(town.post.sent) != 1 || d.Status != notify.Delivered {
			h.t.Errorf("%+v", d)
		}
	})
}

// RULES R16: the secret of an endpoint is encrypted, follows the keys, and is one of those
// that no text of a run and no log may hold (RULES M2).
func TestEndpointSecrets(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			url, rings := database.URL(t), &live.Hub{}
			s := storetest.OpenAt(t, url, store.Options{Bell: rings})
			h := build(t, s, rings, s, world.Real())
			town := h.town()
			secret, err := s.EndpointSecret(t.Context(), town.told.ID)
			h.ok(err)
			if all := storetest.Everything(t, url, "notification_endpoints"); secret == "" || strings.Contains(all, secret) || !strings.Contains(all, town.told.URL) {
				t.Error("it is stored as it is")
			}
			for _, table := range []string{"audit_entries", "notification_deliveries", "announcements"} {
				if strings.Contains(storetest.Everything(t, url, table), secret) {
					t.Errorf("it stands in %s", table)
				}
			}
			known, err := s.Secrets(t.Context())
			h.ok(err)
			if !slices.Contains(known, secret) {
				t.Error("nobody looks for it")
			}
			h.drain()
			h.ok(s.Close())
			next := store.NewKey()
			s = storetest.OpenAt(t, url, store.Options{Keys: []store.Key{next, storetest.Key}})
			if _, err := s.Rotate(t.Context(), func(store.Rotation) {}); err != nil {
				t.Fatal(err)
			}
			h.ok(s.Close())
			s = storetest.OpenAt(t, url, store.Options{Keys: []store.Key{next}})
			if again, err := s.EndpointSecret(t.Context(), town.told.ID); err != nil || again != secret {
				t.Errorf("after the old key is gone: %v", err)
			}
		})
	}
}
