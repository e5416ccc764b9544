package store

import (
	"context"
	"encoding/json"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/announcement"
	"github.com/countersign/countersign/ent/notificationdelivery"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/notify"
)

// Endpoint implements notify.Store.
func (s *Store) Endpoint(ctx context.Context, id uuid.UUID) (notify.Endpoint, error) {
	row, err := s.client.NotificationEndpoint.Get(ctx, id)
	if err != nil {
		return notify.Endpoint{}, reading(ctx, err, "notification endpoint")
	}
	return toEndpoint(row)
}

// EndpointSecret implements notify.Store.
func (s *Store) EndpointSecret(ctx context.Context, id uuid.UUID) (string, error) {
	row, err := s.client.NotificationEndpoint.Get(ctx, id)
	if err != nil {
		return "", reading(ctx, err, "notification endpoint")
	}
	return s.secret(place{"notification_endpoints", "secret", id.String()}, row.Secret)
}

// Endpoints implements notify.Store.
func (s *Store) Endpoints(ctx context.Context, page notify.Page) ([]notify.Endpoint, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.NotificationEndpoint.Query().Where(p.on).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "notification endpoint")
	}
	out := make([]notify.Endpoint, len(rows))
	for i, row := range in(p, rows) {
		if out[i], err = toEndpoint(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Announcements implements notify.Store.
func (s *Store) Announcements(ctx context.Context, limit int) ([]notify.Announcement, error) {
	rows, err := s.client.Announcement.Query().Order(ent.Asc(announcement.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "announcement")
	}
	out := make([]notify.Announcement, len(rows))
	for i, row := range rows {
		fact, err := decoded[notify.Fact](row.Fact)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "what announcement %s says cannot be read", row.ID)
		}
		out[i] = notify.Announcement{ID: row.ID, Run: row.RunID, Event: notify.Event(row.Event), Fact: fact, At: row.At.UTC()}
	}
	return out, nil
}

// SubjectOf implements notify.Store.
func (s *Store) SubjectOf(ctx context.Context, run uuid.UUID) (notify.Subject, error) {
	r, err := s.Run(ctx, run)
	if err != nil {
		return notify.Subject{}, err
	}
	out := notify.Subject{Initiator: r.InitiatorID, Configuration: r.ConfigurationID, Conversation: r.ConversationID}
	if r.Subject != nil {
		out.Table, out.Record = r.Subject.Table, r.Subject.ID
	}
	return out, nil
}

// Delivery implements notify.Store.
func (s *Store) Delivery(ctx context.Context, id uuid.UUID) (notify.Delivery, error) {
	row, err := s.client.NotificationDelivery.Get(ctx, id)
	if err != nil {
		return notify.Delivery{}, reading(ctx, err, "notification delivery")
	}
	return toDelivery(row)
}

// Deliveries implements notify.Store.
func (s *Store) Deliveries(ctx context.Context, endpoint uuid.UUID, status *notify.Status, page notify.Page) ([]notify.Delivery, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, true}
	query := s.client.NotificationDelivery.Query().Where(notificationdelivery.EndpointID(endpoint), p.on)
	if status != nil {
		query.Where(notificationdelivery.Status(string(*status)))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "notification delivery")
	}
	return toDeliveries(in(p, rows))
}

// Due implements notify.Store.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]notify.Delivery, error) {
	rows, err := s.client.NotificationDelivery.Query().Where(notificationdelivery.NextAtLTE(stored(now))).
		Order(notificationdelivery.ByNextAt(), notificationdelivery.ByID()).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "notification delivery")
	}
	return toDeliveries(rows)
}

// Over implements notify.Store.
func (s *Store) Over(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.NotificationDelivery.Query().
		Where(notificationdelivery.StatusNEQ(string(notify.Pending)), notificationdelivery.CreatedAtLT(stored(before))).
		Order(notificationdelivery.ByCreatedAt(entsql.OrderAsc())).Limit(limit).IDs(ctx)
	if err != nil {
		return nil, reading(ctx, err, "notification delivery")
	}
	return ids, nil
}

func toEndpoint(row *ent.NotificationEndpoint) (notify.Endpoint, error) {
	events, err := decoded[[]notify.Event](row.Events)
	if err != nil {
		return notify.Endpoint{}, fault.Wrap(fault.Internal, err, "the events of notification endpoint %s cannot be read", row.ID)
	}
	return notify.Endpoint{
		ID: row.ID, URL: row.URL, Description: row.Description, Events: events, Enabled: row.Enabled, DisabledReason: row.DisabledReason,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}, nil
}

func toDeliveries(rows []*ent.NotificationDelivery) (out []notify.Delivery, err error) {
	out = make([]notify.Delivery, len(rows))
	for i, row := range rows {
		if out[i], err = toDelivery(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func toDelivery(row *ent.NotificationDelivery) (notify.Delivery, error) {
	out := notify.Delivery{
		ID: row.ID, Endpoint: row.EndpointID, Event: notify.Event(row.Event), Body: row.Body, Status: notify.Status(row.Status),
		Tries: row.Tries, NextAt: row.NextAt, DeliveredAt: row.DeliveredAt, CreatedAt: row.CreatedAt.UTC(),
	}
	if row.RunID != nil {
		out.Run = *row.RunID
	}
	if err := json.Unmarshal([]byte(row.Log), &out.Log); err != nil {
		return out, fault.Wrap(fault.Internal, err, "the log of notification delivery %s cannot be read", row.ID)
	}
	return out, nil
}
