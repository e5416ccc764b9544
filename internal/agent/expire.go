package agent

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// expiry is until when a suspension that begins now may be answered; nil for ever. Later
// changes of the configuration or the setting do not move it.
func (s *segment) expiry(ctx context.Context) (*time.Time, error) {
	values, err := s.agent.Settings.Values(ctx)
	if err != nil {
		return nil, err
	}
	hours := cmp.Or(s.configuration.ApprovalExpiryHours, values.ApprovalExpiryHours)
	if hours == 0 {
		return nil, nil
	}
	until := s.agent.World.Now().Add(time.Duration(hours) * time.Hour)
	return &until, nil
}

// inTime refuses an answer after its time, also before anybody has ended the run for it.
func (a *Agent) inTime(r Run) error {
	if r.ExpiresAt != nil && r.ExpiresAt.Before(a.World.Now()) {
		return fault.Refuse(fault.NotWaiting, "the run does not wait any more; there was time to answer until %s", r.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// expire ends runs that nobody answered in time. Nothing that waited is carried out and
// nothing goes on: the run ends as denied by its expiry, and its pins stay for a run that
// continues it. Any replica does it for all of them. An answer that came first has won.
func (a *Agent) expire(ctx context.Context) {
	ids, err := a.Store.Expired(ctx, a.World.Now(), reapBatch)
	if err != nil {
		if ctx.Err() == nil {
			a.Log.Error("looking for runs that nobody answered failed", slog.Any("error", err))
		}
		return
	}
	a.each(ctx, ids, "ending a run that nobody answered failed", func(r Run) error { return a.expireOne(ctx, r) })
}

func (a *Agent) expireOne(ctx context.Context, r Run) error {
	if !r.Status.Waiting() || a.inTime(r) == nil {
		return nil // answered meanwhile
	}
	told := notice(run.NoticeApprovalExpired, r.ExpiresAt.UTC().Format(time.RFC3339))
	c := a.withdrawing(actor.Actor{}, r, run.CancelIfWaiting, run.ReasonApprovalExpired)
	c.Updates[0].If = append(c.Updates[0].If, runSuspension.Is(r.Suspension), runExpiresAt.Before(a.World.Now()))
	c.Updates[0].Set = append(c.Updates[0].Set, runMessage.To(said(told)), runNotices.To(append(orEmpty(r.Notices), told)))
	c.Events = append(noticeEvents(a.World.Now(), []run.Notice{told}), c.Events...)
	_, err := a.apply(ctx, r.Privacy, c)
	return err
}
