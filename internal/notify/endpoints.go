package notify

import (
	"context"
	"encoding/base64"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// maxEndpoints bounds what every announcement is held against, and how many posts a
// process has under way.
const maxEndpoints = 50

// newSecret is a key to sign with, as receivers' libraries take it (Standard Webhooks).
func (r *Room) newSecret() string {
	return "whsec_" + base64.StdEncoding.EncodeToString(r.World.Secret(32))
}

// checked holds an endpoint against what can be one.
func (r *Room) checked(e *Endpoint) error {
	if err := r.Sender.Check(e.URL); err != nil {
		return err
	}
	if utf8.RuneCountInString(e.Description) > 200 {
		return fault.New(fault.BadInput, "The description has more than 200 characters.")
	}
	slices.Sort(e.Events)
	if e.Events = slices.Compact(e.Events); len(e.Events) == 0 {
		return fault.New(fault.BadInput, "Name at least one event to tell of.")
	}
	return nil
}

// Create adds an endpoint and returns the secret that signs what it is sent, which is shown
// this once. Administrators only; audited.
func (r *Room) Create(ctx context.Context, by actor.Actor, e Endpoint) (made Endpoint, secret string, err error) {
	if err := needAdministrator(by); err != nil {
		return Endpoint{}, "", err
	}
	if err := r.checked(&e); err != nil {
		return Endpoint{}, "", err
	}
	there, err := r.Store.Endpoints(ctx, Page{Limit: maxEndpoints})
	if err != nil {
		return Endpoint{}, "", err
	}
	if len(there) == maxEndpoints {
		return Endpoint{}, "", fault.New(fault.BadInput, "There are %d endpoints already; delete one first.", maxEndpoints)
	}
	now := r.World.Now()
	e.ID, e.CreatedAt, e.UpdatedAt, secret = r.World.NewID(), now, now, r.newSecret()
	_, err = change.One(ctx, r.Store, change.Change{
		Inserts: []change.Insert{{Table: endpointsTable, Row: []change.Value{
			endpointID.To(e.ID), endpointURL.To(e.URL), endpointDescription.To(e.Description), endpointEvents.To(e.Events), endpointSecret.To(secret),
			endpointEnabled.To(e.Enabled), endpointDisabled.To(""), endpointCreatedAt.To(now), endpointUpdatedAt.To(now),
		}}},
		Audit: []audit.Entry{e.told(audit.Record(r.World, by, audit.NotificationsChanged), "created")},
	})
	if err != nil {
		return Endpoint{}, "", err
	}
	made, err = r.Store.Endpoint(ctx, e.ID)
	return made, secret, err
}

// EndpointUpdate changes what is not nil.
type EndpointUpdate struct {
	ID          uuid.UUID
	URL         *string
	Description *string
	Events      *[]Event
	Enabled     *bool
}

// Update changes an endpoint. Deliveries that are pending go to where it is by then.
// Administrators only; audited.
func (r *Room) Update(ctx context.Context, by actor.Actor, in EndpointUpdate) (Endpoint, error) {
	e, err := r.Find(ctx, by, in.ID)
	if err != nil {
		return Endpoint{}, err
	}
	if in.URL != nil {
		e.URL = *in.URL
	}
	if in.Description != nil {
		e.Description = *in.Description
	}
	if in.Events != nil {
		e.Events = slices.Clone(*in.Events)
	}
	if in.Enabled != nil {
		e.Enabled = *in.Enabled
	}
	if err := r.checked(&e); err != nil {
		return Endpoint{}, err
	}
	return r.change(ctx, by, e, "updated",
		endpointURL.To(e.URL), endpointDescription.To(e.Description), endpointEvents.To(e.Events), endpointEnabled.To(e.Enabled), endpointDisabled.To(""))
}

// RotateSecret gives an endpoint another secret, which is shown this once and signs from
// the next try on. Administrators only; audited.
func (r *Room) RotateSecret(ctx context.Context, by actor.Actor, id uuid.UUID) (Endpoint, string, error) {
	e, err := r.Find(ctx, by, id)
	if err != nil {
		return Endpoint{}, "", err
	}
	secret := r.newSecret()
	e, err = r.change(ctx, by, e, "secret rotated", endpointSecret.To(secret))
	return e, secret, err
}

func (r *Room) change(ctx context.Context, by actor.Actor, e Endpoint, what string, set ...change.Value) (Endpoint, error) {
	out, err := change.One(ctx, r.Store, change.Change{
		Updates: []change.Update{{Table: endpointsTable, ID: e.ID, Set: append(set, endpointUpdatedAt.To(r.World.Now()))}},
		Audit:   []audit.Entry{e.told(audit.Record(r.World, by, audit.NotificationsChanged), what)},
	})
	if err != nil {
		return Endpoint{}, err
	}
	if !out.Applied {
		return Endpoint{}, fault.New(fault.NotFound, "There is no such endpoint any more.")
	}
	return r.Store.Endpoint(ctx, e.ID)
}

// Delete takes an endpoint away, with its log. Administrators only; audited.
func (r *Room) Delete(ctx context.Context, by actor.Actor, id uuid.UUID) error {
	e, err := r.Find(ctx, by, id)
	if err != nil {
		return err
	}
	out, err := change.One(ctx, r.Store, change.Change{
		Deletes: []change.Delete{{Table: endpointsTable, ID: id}},
		Audit:   []audit.Entry{e.told(audit.Record(r.World, by, audit.NotificationsChanged), "deleted")},
	})
	if err == nil && !out.Applied {
		err = fault.New(fault.NotFound, "There is no such endpoint any more.")
	}
	return err
}

func (e Endpoint) told(entry audit.Entry, what string) audit.Entry {
	return entry.With("endpoint", e.ID).With("what", what).With("events", e.Events).With("enabled", e.Enabled)
}

// Find returns an endpoint. Administrators only.
func (r *Room) Find(ctx context.Context, by actor.Actor, id uuid.UUID) (Endpoint, error) {
	if err := needAdministrator(by); err != nil {
		return Endpoint{}, err
	}
	return r.Store.Endpoint(ctx, id)
}

// List pages through the endpoints. Administrators only.
func (r *Room) List(ctx context.Context, by actor.Actor, page Page) ([]Endpoint, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return r.Store.Endpoints(ctx, page)
}

// Deliveries pages through the log of an endpoint, newest first. Administrators only.
func (r *Room) Deliveries(ctx context.Context, by actor.Actor, endpoint uuid.UUID, status *Status, page Page) ([]Delivery, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return r.Store.Deliveries(ctx, endpoint, status, page)
}

// FindDelivery returns a delivery. Administrators only.
func (r *Room) FindDelivery(ctx context.Context, by actor.Actor, id uuid.UUID) (Delivery, error) {
	if err := needAdministrator(by); err != nil {
		return Delivery{}, err
	}
	return r.Store.Delivery(ctx, id)
}

// Test sends a ping to an endpoint, enabled or not. Administrators only.
func (r *Room) Test(ctx context.Context, by actor.Actor, id uuid.UUID) (Delivery, error) {
	e, err := r.Find(ctx, by, id)
	if err != nil {
		return Delivery{}, err
	}
	now, delivery := r.World.Now(), r.World.NewID()
	body, err := r.body(Announcement{Event: Ping, At: now}, Subject{})
	if err != nil {
		return Delivery{}, err
	}
	_, err = change.One(ctx, r.Store, change.Change{
		Inserts: []change.Insert{deliveryOf(delivery, e.ID, uuid.Nil, Ping, body, now)}, Ring: []change.Topic{change.NotifyTopic},
		Audit: []audit.Entry{e.told(audit.Record(r.World, by, audit.NotificationsChanged), "tested")},
	})
	if err != nil {
		return Delivery{}, err
	}
	return r.Store.Delivery(ctx, delivery)
}

// Redeliver has a delivery tried again that is over, with all its tries before it.
// Administrators only; audited. One that is pending stays as it is.
func (r *Room) Redeliver(ctx context.Context, by actor.Actor, id uuid.UUID) (Delivery, error) {
	d, err := r.FindDelivery(ctx, by, id)
	if err != nil || d.Status == Pending {
		return d, err
	}
	_, err = change.One(ctx, r.Store, change.Change{
		Updates: []change.Update{{
			Table: deliveriesTable, ID: id, If: []change.Value{deliveryTries.Is(d.Tries), deliveryStatus.Is(d.Status)},
			Set: []change.Value{deliveryStatus.To(Pending), deliveryNextAt.To(r.World.Now()), deliveryTries.To(0), deliveryDeliveredAt.Null()},
		}},
		Ring:  []change.Topic{change.NotifyTopic},
		Audit: []audit.Entry{audit.Record(r.World, by, audit.NotificationsChanged).With("endpoint", d.Endpoint).With("what", "redelivered")},
	})
	if err != nil {
		return Delivery{}, err
	}
	return r.Store.Delivery(ctx, id)
}
