package notify

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

const (
	batch     = 100             // how much one look takes up at a time
	lookEvery = 2 * time.Second // without being rung
	// stopsWithin is how long posts may take to end where nobody can read how long, and
	// how long they have to be given back once they are cut off.
	stopsWithin = 10 * time.Second
)

// Work tells endpoints what happened until ctx ends; then it waits for the posts under way,
// as long as server.drainTimeout says, and gives the others back. Every replica may do it.
func (r *Room) Work(ctx context.Context) {
	rings, stop := r.Bell.Listen(change.NotifyTopic)
	defer stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	f := newFlights(ctx)
	for ctx.Err() == nil {
		if _, err := r.begin(ctx, f); err != nil && ctx.Err() == nil {
			r.Log.Error("telling other servers of runs failed", slog.Any("error", err))
		}
		select {
		case <-rings:
		case <-tick.C:
		case <-f.room:
		case <-ctx.Done():
		}
	}
	r.drain(context.WithoutCancel(ctx), f)
}

// drain lets the posts under way come to an end, and gives back what outlasts that, so
// that another replica sends it at once.
func (r *Room) drain(ctx context.Context, f *flights) {
	patience := stopsWithin
	if values, err := r.Settings.Values(ctx); err == nil {
		patience = values.DrainTimeout
	}
	if f.landWithin(patience) {
		return
	}
	f.cut()
	if !f.landWithin(stopsWithin) {
		r.Log.Warn("a notification that was cut off was not given back; it is sent again in a minute")
	}
}

// Look turns announcements into deliveries and tries those that are due, once each, until
// none is.
func (r *Room) Look(ctx context.Context) error {
	f := newFlights(ctx)
	for {
		begun, err := r.begin(ctx, f)
		f.busy.Wait()
		if err != nil || begun == 0 {
			return err
		}
	}
}

// begin turns announcements into deliveries and begins those that are due, as far as there
// is room for their endpoints. It does not wait for them.
func (r *Room) begin(ctx context.Context, f *flights) (begun int, err error) {
	if err := r.spread(ctx); err != nil {
		return 0, err
	}
	for {
		due, err := r.Store.Due(ctx, r.World.Now(), f.full(), batch)
		if err != nil || len(due) == 0 {
			return begun, err
		}
		before := begun
		for _, d := range due {
			if !f.enter(d.Endpoint) {
				continue
			}
			claimed, err := r.claim(ctx, d)
			if err != nil || !claimed {
				f.leave(d.Endpoint)
				if err != nil {
					return begun, err
				}
				continue // another replica was first
			}
			begun++
			f.busy.Go(func() {
				defer f.leave(d.Endpoint)
				if err := r.attempt(f.posts, d); err != nil {
					r.Log.Error("a notification could not be handled; it is sent again in a minute",
						slog.String("delivery", d.ID.String()), slog.Any("error", err))
				}
			})
		}
		if begun == before {
			return begun, nil // the others are at it
		}
	}
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
	subject, err := r.Store.SubjectOf(ctx, a)
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
	if s.Sequence != nil {
		data["sequence"] = *s.Sequence
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

// Retain removes deliveries that are over and older than the setting keeps them.
func (r *Room) Retain(ctx context.Context) (removed int, err error) {
	values, err := r.Settings.Values(ctx)
	days := values.NotificationDays
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
