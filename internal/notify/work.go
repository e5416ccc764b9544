package notify

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

const (
	atOnce     = 8               // how many deliveries one process sends at a time
	batch      = 100             // how much one look takes up
	lookEvery  = 2 * time.Second // without being rung
	holdFor    = time.Minute     // how long a try belongs to whoever began it; longer than a post can take
	longest    = 24 * time.Hour  // a receiver cannot ask for a longer pause
	keptTries  = 20              // in a delivery's log, the newest
	statusGone = 410             // of HTTP
)

// pauses are what lies between the tries: 9 of them in about a day. Each is lengthened by
// up to a fifth, so that what failed together is not tried together.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// Work tells endpoints what happened until ctx ends. Every replica may do it.
func (r *Room) Work(ctx context.Context) {
	rings, stop := r.Bell.Listen(change.NotifyTopic)
	defer stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := r.Look(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error("telling other servers of runs failed", slog.Any("error", err))
		}
		select {
		case <-rings:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// Look turns announcements into deliveries and tries those that are due, once each.
func (r *Room) Look(ctx context.Context) error {
	if err := r.spread(ctx); err != nil {
		return err
	}
	due, err := r.Store.Due(ctx, r.World.Now(), batch)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	errs := make([]error, len(due))
	for i, d := range due {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = r.try(ctx, d)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// spread makes a delivery for every endpoint that wants to know of an announcement. The
// announcement goes with it, so that only one replica does it.
func (r *Room) spread(ctx context.Context) error {
	told, err := r.Store.Announcements(ctx, batch)
	if err != nil || len(told) == 0 {
		return err
	}
	endpoints, err := r.wanting(ctx)
	if err != nil {
		return err
	}
	for _, a := range told {
		c := change.Change{Deletes: []change.Delete{{Table: announcementsTable, ID: a.ID}}}
		if body, err := r.about(ctx, a, endpoints); err != nil {
			return err
		} else if body != "" {
			for _, e := range endpoints {
				if slices.Contains(e.Events, a.Event) {
					c.Inserts = append(c.Inserts, deliveryOf(r.World.NewID(), e.ID, a.Run, a.Event, body, r.World.Now()))
				}
			}
		}
		out, err := change.One(ctx, r.Store, c)
		if err != nil {
			return err
		}
		if !out.Applied && out.Lost != announcementsTable { // an endpoint was deleted meanwhile; look again
			return nil
		}
	}
	return nil
}

// wanting lists the endpoints that are told anything.
func (r *Room) wanting(ctx context.Context) ([]Endpoint, error) {
	var all []Endpoint
	page := Page{Limit: batch}
	for {
		some, err := r.Store.Endpoints(ctx, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < batch {
			return slices.DeleteFunc(all, func(e Endpoint) bool { return !e.Enabled }), nil
		}
		page.Cursor = some[len(some)-1].ID
	}
}

// about is what is posted of an announcement; empty when nobody wants it, or its run is gone.
func (r *Room) about(ctx context.Context, a Announcement, endpoints []Endpoint) (string, error) {
	if !slices.ContainsFunc(endpoints, func(e Endpoint) bool { return slices.Contains(e.Events, a.Event) }) {
		return "", nil
	}
	subject, err := r.Store.SubjectOf(ctx, a.Run)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return r.body(a, subject)
}

// body is what is posted: the event, when it happened, and ids and codes.
func (r *Room) body(a Announcement, s Subject) (string, error) {
	type record struct {
		Table string `json:"table"`
		ID    string `json:"id"`
	}
	data := map[string]any{}
	id := func(name string, write func(uuid.UUID) string, of uuid.UUID) {
		if of != uuid.Nil {
			data[name] = write(of)
		}
	}
	id("runId", r.Names.Run, a.Run)
	id("initiatorId", r.Names.User, s.Initiator)
	id("configurationId", r.Names.Configuration, s.Configuration)
	id("conversationId", r.Names.Conversation, s.Conversation)
	if by, err := uuid.Parse(a.Fact.DecidedBy); err == nil {
		id("decidedById", r.Names.User, by)
	}
	if s.Table != "" {
		data["subject"] = record{s.Table, s.Record}
	}
	for name, text := range map[string]string{"status": string(a.Fact.Status), "turnDigest": a.Fact.TurnDigest, "reason": a.Fact.Reason} {
		if text != "" {
			data[name] = text
		}
	}
	if a.Fact.Approved != nil {
		data["approved"] = *a.Fact.Approved
	}
	b, err := json.Marshal(map[string]any{"type": a.Event.Type(), "timestamp": a.At.UTC().Format(time.RFC3339Nano), "data": data})
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "writing a notification")
	}
	return string(b), nil
}

func deliveryOf(id, endpoint, run uuid.UUID, event Event, body string, now time.Time) change.Insert {
	return change.Insert{Table: deliveriesTable, Row: []change.Value{
		deliveryID.To(id), deliveryEndpoint.To(endpoint), deliveryRun.Maybe(orNone(run)), deliveryEvent.To(event), deliveryBody.To(body),
		deliveryStatus.To(Pending), deliveryTries.To(0), deliveryLog.To([]Try{}), deliveryNextAt.To(now), deliveryDeliveredAt.Null(), deliveryCreatedAt.To(now),
	}}
}

// try claims a delivery, posts it and stores how that went. The number of the try guards
// both: whoever comes later with an old one writes nothing.
func (r *Room) try(ctx context.Context, d Delivery) error {
	e, err := r.Store.Endpoint(ctx, d.Endpoint)
	if fault.Is(err, fault.NotFound) {
		return nil // its log went with it
	}
	if err != nil {
		return err
	}
	now, mine := r.World.Now(), d.Tries+1
	claimed, err := r.set(ctx, d, d.Tries, deliveryTries.To(mine), deliveryNextAt.To(now.Add(holdFor)))
	if err != nil || !claimed {
		return err
	}
	if !e.Enabled && d.Event != Ping {
		return r.store(ctx, d, mine, Try{At: now, Error: "the endpoint is switched off"}, Answer{}, true)
	}
	secret, err := r.Store.EndpointSecret(ctx, e.ID)
	if err != nil {
		return err
	}
	answer, err := r.Sender.Post(ctx, Message{ID: r.Names.Delivery(d.ID), URL: e.URL, Body: d.Body, Secret: secret, At: now})
	tried := Try{At: now, StatusCode: answer.StatusCode, Duration: int(r.World.Now().Sub(now).Milliseconds())}
	if err != nil {
		if ctx.Err() != nil {
			return nil // this process ends: tried again when its hold is over
		}
		tried.Error = err.Error()
	}
	if answer.StatusCode == statusGone {
		if err := r.switchOff(ctx, e); err != nil {
			return err
		}
	}
	return r.store(ctx, d, mine, tried, answer, answer.StatusCode == statusGone)
}

// store stores how a try went. over says that there is no other one.
func (r *Room) store(ctx context.Context, d Delivery, mine int, tried Try, answer Answer, over bool) error {
	log := append(slices.Clone(d.Log), tried)
	log = log[max(0, len(log)-keptTries):]
	set := []change.Value{deliveryLog.To(log)}
	now := r.World.Now()
	switch {
	case answer.StatusCode/100 == 2:
		set = append(set, deliveryStatus.To(Delivered), deliveryNextAt.Null(), deliveryDeliveredAt.To(now))
	case over, mine > len(pauses):
		set = append(set, deliveryStatus.To(GivenUp), deliveryNextAt.Null())
	default:
		set = append(set, deliveryNextAt.To(now.Add(r.pause(mine, answer.RetryAfter))))
	}
	_, err := r.set(ctx, d, mine, set...)
	return err
}

// pause is what lies between a try and the next one.
func (r *Room) pause(tried int, asked time.Duration) time.Duration {
	pause := pauses[tried-1]
	pause += pause * time.Duration(r.World.Secret(1)[0]) / (5 * 255)
	return max(pause, min(asked, longest))
}

func (r *Room) set(ctx context.Context, d Delivery, tries int, set ...change.Value) (bool, error) {
	out, err := change.One(ctx, r.Store, change.Change{Updates: []change.Update{{
		Table: deliveriesTable, ID: d.ID, If: []change.Value{deliveryTries.Is(tries), deliveryStatus.Is(Pending)}, Set: set,
	}}})
	return out.Applied, err
}

// switchOff stops telling an endpoint that says it is gone.
func (r *Room) switchOff(ctx context.Context, e Endpoint) error {
	_, err := change.One(ctx, r.Store, change.Change{Updates: []change.Update{{
		Table: endpointsTable, ID: e.ID, If: []change.Value{endpointURL.Is(e.URL)},
		Set: []change.Value{endpointEnabled.To(false), endpointDisabled.To("it answered 410 Gone"), endpointUpdatedAt.To(r.World.Now())},
	}}})
	return err
}

// Retain removes deliveries that are over and older than the setting keeps them.
func (r *Room) Retain(ctx context.Context) (removed int, err error) {
	days, err := r.KeepDays(ctx)
	if err != nil || days == 0 {
		return 0, err
	}
	for {
		ids, err := r.Store.Over(ctx, r.World.Now().AddDate(0, 0, -days), batch)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		for _, id := range ids {
			out, err := change.One(ctx, r.Store, change.Change{Deletes: []change.Delete{{Table: deliveriesTable, ID: id, IfAny: true}}})
			if err != nil {
				return removed, err
			}
			if out.Applied {
				removed++
			}
		}
	}
}
