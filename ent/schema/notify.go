package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/notify"
)

// NotificationEndpoint is a server that is told of runs.
type NotificationEndpoint struct{ ent.Schema }

// Fields of the table.
func (NotificationEndpoint) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("url", ""),
		text("description", "for people"),
		must("events", "JSON list of what it is told of"),
		sealed("secret", "signs what it is sent"),
		flag("enabled", "whether it is told anything"),
		text("disabled_reason", "why the server stopped telling it; empty when nobody or a person did"),
		moment("created_at", ""),
		moment("updated_at", ""),
	}
}

// Annotations of the table.
func (NotificationEndpoint) Annotations() []schema.Annotation {
	return table("notification_endpoints")
}

// Announcement is something that happened to a run and that nobody was told of yet. It is
// written in the transaction in which it happened.
type Announcement struct{ ent.Schema }

// Fields of the table.
func (Announcement) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("run_id", ""),
		must("event", ""),
		must("fact", "JSON: codes and ids, no content"),
		moment("at", ""),
	}
}

// Annotations of the table.
func (Announcement) Annotations() []schema.Annotation {
	return table("announcements", enum("event", notify.RunWaiting, notify.RunDecided, notify.RunFailed, notify.RunExpired))
}

// NotificationDelivery is one thing that one endpoint is told, and how that went.
type NotificationDelivery struct{ ent.Schema }

// Fields of the table.
func (NotificationDelivery) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("endpoint_id", ""),
		maybeRef("run_id", "the run, which may be gone; NULL for a test"),
		must("event", ""),
		must("body", "what is posted: codes and ids, no content"),
		must("status", ""),
		number("tries", "how often it was begun; guards its result"),
		must("log", "JSON list of the tries that ended"),
		maybeMoment("next_at", "when it is tried next; NULL when it is over"),
		maybeMoment("delivered_at", ""),
		moment("created_at", ""),
	}
}

// Edges of the table.
func (NotificationDelivery) Edges() []ent.Edge {
	return []ent.Edge{to("endpoint", NotificationEndpoint.Type, "endpoint_id", entsql.Cascade)}
}

// Indexes of the table.
func (NotificationDelivery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("endpoint_id"), index.Fields("next_at"), index.Fields("created_at")}
}

// Annotations of the table.
func (NotificationDelivery) Annotations() []schema.Annotation {
	return table("notification_deliveries",
		enum("event", notify.RunWaiting, notify.RunDecided, notify.RunFailed, notify.RunExpired, notify.Ping),
		enum("status", notify.Pending, notify.Delivered, notify.GivenUp),
	)
}
