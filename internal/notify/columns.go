package notify

import (
	"github.com/countersign/countersign/internal/change"
	"github.com/google/uuid"
)

// The tables this room changes.
const (
	endpointsTable     change.Table = "notification_endpoints"
	announcementsTable change.Table = "announcements"
	deliveriesTable    change.Table = "notification_deliveries"
)

// The columns.
var (
	endpointID          = change.ID(endpointsTable, "id")
	endpointURL         = change.Text[string](endpointsTable, "url")
	endpointDescription = change.Text[string](endpointsTable, "description")
	endpointEvents      = change.JSON[[]Event](endpointsTable, "events")
	endpointSecret      = change.Sealed(endpointsTable, "secret")
	endpointEnabled     = change.Bool(endpointsTable, "enabled")
	endpointDisabled    = change.Text[string](endpointsTable, "disabled_reason")
	endpointCreatedAt   = change.Time(endpointsTable, "created_at")
	endpointUpdatedAt   = change.Time(endpointsTable, "updated_at")

	announcementID    = change.ID(announcementsTable, "id")
	announcementRun   = change.ID(announcementsTable, "run_id")
	announcementEvent = change.Text[Event](announcementsTable, "event")
	announcementFact  = change.JSON[Fact](announcementsTable, "fact")
	announcementAt    = change.Time(announcementsTable, "at")

	deliveryID          = change.ID(deliveriesTable, "id")
	deliveryEndpoint    = change.ID(deliveriesTable, "endpoint_id")
	deliveryRun         = change.ID(deliveriesTable, "run_id")
	deliveryEvent       = change.Text[Event](deliveriesTable, "event")
	deliveryBody        = change.Text[string](deliveriesTable, "body")
	deliveryStatus      = change.Text[Status](deliveriesTable, "status")
	deliveryTries       = change.Int(deliveriesTable, "tries")
	deliveryLog         = change.JSON[[]Try](deliveriesTable, "log")
	deliveryNextAt      = change.Time(deliveriesTable, "next_at")
	deliveryDeliveredAt = change.Time(deliveriesTable, "delivered_at")
	deliveryCreatedAt   = change.Time(deliveriesTable, "created_at")
)

func orNone(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
