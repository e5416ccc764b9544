package store

import (
	"context"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/announcement"
	"github.com/countersign/countersign/ent/notificationdelivery"
	entrun "github.com/countersign/countersign/ent/run"
	"github.com/countersign/countersign/ent/runevent"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/tool"
)

// Endpoint implements notify.Store.
func (s *Store) Endpoint(ctx context.Context, id uuid.UUID) (notify.Endpoint, error) {
	row, err := s.client.NotificationEndpoint.Get(ctx, id)
	return one(ctx, "notification endpoint", row, err, toEndpoint)
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
	return all(ctx, "notification endpoint", in(p, rows), err, toEndpoint)
}

// Announcements implements notify.Store.
func (s *Store) Announcements(ctx context.Context, limit int) ([]notify.Announcement, error) {
	rows, err := s.client.Announcement.Query().Order(ent.Asc(announcement.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "announcement")
	}
	out := make([]notify.Announcement, len(rows))
	for i, row := range rows { // a fact that cannot be read is left out: that something happened is still told
		out[i] = notify.Announcement{
			ID: row.ID, Run: row.RunID, Event: notify.Event(row.Event), Fact: lenient[notify.Fact](row.Fact), At: row.At.UTC(),
		}
	}
	return out, nil
}

// Untold counts what other servers are still to be told.
func (s *Store) Untold(ctx context.Context) (int, error) {
	announced, err := s.client.Announcement.Query().Count(ctx)
	if err != nil {
		return 0, reading(ctx, err, "announcement")
	}
	pending, err := s.client.NotificationDelivery.Query().Where(notificationdelivery.NextAtNotNil()).Count(ctx)
	return announced + pending, failed(ctx, err, "count the notifications")
}

// SubjectOf implements notify.Store. It reads no more of the run than it tells, so that a
// run whose row is damaged is told as well.
func (s *Store) SubjectOf(ctx context.Context, a notify.Announcement) (notify.Subject, error) {
	row, err := s.client.Run.Query().Where(entrun.ID(a.Run)).
		Select(entrun.FieldID, entrun.FieldInitiatorID, entrun.FieldConfigurationID, entrun.FieldConversationID, entrun.FieldSubject).Only(ctx)
	if err != nil {
		return notify.Subject{}, reading(ctx, err, "run")
	}
	out := notify.Subject{Initiator: row.InitiatorID, Configuration: row.ConfigurationID, Conversation: known(row.ConversationID)}
	if subject := lenient[*tool.Record](row.Subject); subject != nil {
		out.Table, out.Record = subject.Table, subject.ID
	}
	events, err := s.client.RunEvent.Query().
		Where(runevent.RunID(a.Run), runevent.KindIn(texts(a.Event.Kinds())...), runevent.At(stored(a.At))).
		Order(runevent.BySequence(entsql.OrderDesc())).Limit(1).Select(runevent.FieldID, runevent.FieldSequence).All(ctx)
	if err != nil {
		return notify.Subject{}, reading(ctx, err, "run event")
	}
	if len(events) > 0 {
		out.Sequence = &events[0].Sequence
	}
	return out, nil
}

// Delivery implements notify.Store.
func (s *Store) Delivery(ctx context.Context, id uuid.UUID) (notify.Delivery, error) {
	row, err := s.client.NotificationDelivery.Get(ctx, id)
	return one(ctx, "notification delivery", row, err, toDelivery)
}

// Deliveries implements notify.Store.
func (s *Store) Deliveries(ctx context.Context, endpoint uuid.UUID, status *notify.Status, page notify.Page) ([]notify.Delivery, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, true}
	query := s.client.NotificationDelivery.Query().Where(notificationdelivery.EndpointID(endpoint), p.on)
	if status != nil {
		query.Where(notificationdelivery.Status(string(*status)))
	}
	rows, err := query.All(ctx)
	return all(ctx, "notification delivery", in(p, rows), err, toDelivery)
}

// Due implements notify.Store.
func (s *Store) Due(ctx context.Context, now time.Time, except []uuid.UUID, limit int) ([]notify.Delivery, error) {
	query := s.client.NotificationDelivery.Query().Where(notificationdelivery.NextAtLTE(stored(now)))
	if len(except) > 0 {
		query.Where(notificationdelivery.EndpointIDNotIn(except...))
	}
	rows, err := query.Order(notificationdelivery.ByNextAt(), notificationdelivery.ByID()).Limit(limit).All(ctx)
	return all(ctx, "notification delivery", rows, err, toDelivery)
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

// toEndpoint takes a list of events that cannot be read as an empty one: one endpoint that
// is damaged must not keep the others from being told.
func toEndpoint(row *ent.NotificationEndpoint) notify.Endpoint {
	return notify.Endpoint{
		ID: row.ID, URL: row.URL, Description: row.Description, Events: lenient[[]notify.Event](row.Events), Enabled: row.Enabled,
		DisabledReason: row.DisabledReason, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

// toDelivery takes a log that cannot be read as an empty one, for the same reason.
func toDelivery(row *ent.NotificationDelivery) notify.Delivery {
	return notify.Delivery{
		ID: row.ID, Endpoint: row.EndpointID, Run: known(row.RunID), Event: notify.Event(row.Event), Body: row.Body, Status: notify.Status(row.Status),
		Tries: row.Tries, Log: lenient[[]notify.Try](row.Log), NextAt: utc(row.NextAt), DeliveredAt: utc(row.DeliveredAt), CreatedAt: row.CreatedAt.UTC(),
	}
}
