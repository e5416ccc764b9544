package notify

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

const (
	holdFor    = time.Minute    // how long a try belongs to whoever began it; longer than a post can take
	longest    = 24 * time.Hour // a receiver cannot ask for a longer pause
	keptTries  = 20             // in a delivery's log, the newest
	statusGone = 410            // of HTTP
)

// pauses are what lies between the tries: 9 of them in about a day. Each is lengthened by
// up to a fifth, so that what failed together is not tried together.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// claim begins a try of a delivery. The number of the try guards this and its result:
// whoever comes later with an old one writes nothing.
func (r *Room) claim(ctx context.Context, d Delivery) (bool, error) {
	return r.set(ctx, d, d.Tries, deliveryTries.To(d.Tries+1), deliveryNextAt.To(r.World.Now().Add(holdFor)))
}

// attempt posts a delivery that was claimed and stores how that went. posting ends the
// post, and then the delivery is given back as it was.
func (r *Room) attempt(posting context.Context, d Delivery) error {
	ctx, mine, now := context.WithoutCancel(posting), d.Tries+1, r.World.Now()
	e, err := r.Store.Endpoint(ctx, d.Endpoint)
	if fault.Is(err, fault.NotFound) {
		return nil // its log went with it
	}
	if err != nil {
		return err
	}
	if !e.Enabled && d.Event != Ping {
		return r.store(ctx, d, mine, Try{At: now, Error: "the endpoint is switched off"}, Answer{}, true)
	}
	secret, err := r.Store.EndpointSecret(ctx, e.ID)
	if fault.Is(err, fault.Unavailable) {
		return err
	}
	if err != nil { // somebody has to bring the key back; meanwhile it fails as any other
		r.Log.Error("the secret of a notification endpoint cannot be read", slog.String("endpoint", e.ID.String()), slog.Any("error", err))
		return r.store(ctx, d, mine, Try{At: now, Error: "the endpoint's secret cannot be read"}, Answer{}, false)
	}
	answer, err := r.Sender.Post(posting, Message{ID: r.Names.Delivery(d.ID), URL: e.URL, Body: d.Body, Secret: secret, At: now})
	tried := Try{At: now, StatusCode: answer.StatusCode, Duration: int(r.World.Now().Sub(now).Milliseconds())}
	if err != nil {
		if posting.Err() != nil {
			_, err := r.set(ctx, d, mine, deliveryTries.To(d.Tries), deliveryNextAt.To(r.World.Now()))
			return err
		}
		tried.Error = err.Error()
	}
	gone := answer.StatusCode == statusGone
	if err := r.store(ctx, d, mine, tried, answer, gone); err != nil || !gone {
		return err
	}
	return r.switchOff(ctx, e)
}

// store stores how a try went. over says that there is no other one.
func (r *Room) store(ctx context.Context, d Delivery, mine int, tried Try, answer Answer, over bool) error {
	log := append(slices.Clone(d.Log), tried)
	log = log[max(0, len(log)-keptTries):]
	set := []change.Value{deliveryLog.To(log)}
	now, outcome := r.World.Now(), Failed
	switch {
	case answer.StatusCode/100 == 2:
		outcome = Taken
		set = append(set, deliveryStatus.To(Delivered), deliveryNextAt.Null(), deliveryDeliveredAt.To(now))
	case over, mine > len(pauses):
		outcome = Dropped
		set = append(set, deliveryStatus.To(GivenUp), deliveryNextAt.Null())
	default:
		set = append(set, deliveryNextAt.To(now.Add(r.pause(mine, answer.RetryAfter))))
	}
	stored, err := r.set(ctx, d, mine, set...)
	if stored && r.Meter != nil {
		r.Meter.Tried(outcome)
	}
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

// switchOff stops telling an endpoint that says it is gone, unless somebody changed where
// it is meanwhile.
func (r *Room) switchOff(ctx context.Context, e Endpoint) error {
	off := e
	off.Enabled = false
	_, err := change.One(ctx, r.Store, change.Change{
		Updates: []change.Update{{
			Table: endpointsTable, ID: e.ID, If: []change.Value{endpointURL.Is(e.URL), endpointEnabled.Is(true)},
			Set: []change.Value{endpointEnabled.To(false), endpointDisabled.To("it answered 410 Gone"), endpointUpdatedAt.To(r.World.Now())},
		}},
		Audit: []audit.Entry{off.told(audit.Record(r.World, actor.Actor{}, audit.NotificationsChanged), "switched off: it answered 410 Gone")},
	})
	return err
}
