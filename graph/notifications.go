package graph

import (
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/notify"
)

func toEndpoint(e notify.Endpoint) *model.NotificationEndpoint {
	return &model.NotificationEndpoint{
		ID: endpointKind.id(e.ID), URL: e.URL, Description: e.Description, Events: notifyEvents.outs(e.Events), Enabled: e.Enabled,
		DisabledReason: given(e.DisabledReason), CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, RowID: e.ID,
	}
}

func toDelivery(d notify.Delivery) *model.NotificationDelivery {
	out := &model.NotificationDelivery{
		ID: deliveryKind.id(d.ID), Event: notifyEvents.out(d.Event), RunID: runKind.maybe(d.Run), Body: d.Body, Status: notifyStatus.out(d.Status),
		Attempts: make([]*model.NotificationAttempt, len(d.Log)), NextAttemptAt: d.NextAt, DeliveredAt: d.DeliveredAt, CreatedAt: d.CreatedAt,
	}
	for i, try := range d.Log {
		out.Attempts[i] = &model.NotificationAttempt{At: try.At, StatusCode: positive(try.StatusCode), Error: given(try.Error), DurationMs: try.Duration}
	}
	return out
}

// subscribed are the events that an endpoint is to be told of.
func subscribed(events []model.NotificationEvent) ([]notify.Event, error) {
	out := make([]notify.Event, len(events))
	for i, e := range events {
		if out[i] = notifyEvents.in[e]; out[i] == notify.Ping {
			return nil, fault.New(fault.BadInput, "PING is sent by testNotificationEndpoint, to any endpoint.")
		}
	}
	return out, nil
}

func endpointConnection(w window, read []notify.Endpoint) *model.NotificationEndpointConnection {
	c := &model.NotificationEndpointConnection{}
	key := func(e notify.Endpoint) uuid.UUID { return e.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toEndpoint,
		func(cursor string, n *model.NotificationEndpoint) *model.NotificationEndpointEdge {
			return &model.NotificationEndpointEdge{Cursor: cursor, Node: n}
		})
	return c
}

// notifyPage is the window of a list of this room.
func notifyPage(first *int, after *string, last *int, before *string) (window, notify.Page, error) {
	w, err := page(first, after, last, before)
	if err != nil {
		return window{}, notify.Page{}, err
	}
	row, err := w.row()
	return w, notify.Page{Cursor: row, Limit: w.fetch(), Backward: w.backward}, err
}

func deliveryConnection(w window, read []notify.Delivery) *model.NotificationDeliveryConnection {
	c := &model.NotificationDeliveryConnection{}
	key := func(d notify.Delivery) uuid.UUID { return d.ID }
	read = oldestFirst(read, key)
	slices.Reverse(read)
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, rowKey(key), toDelivery,
		func(cursor string, n *model.NotificationDelivery) *model.NotificationDeliveryEdge {
			return &model.NotificationDeliveryEdge{Cursor: cursor, Node: n}
		})
	return c
}
