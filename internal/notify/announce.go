package notify

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
)

// Announce adds to a change of a run what its events have to tell other servers, so that
// neither is stored without the other. newID makes ids that sort by time.
func Announce(c change.Change, newID func() uuid.UUID) change.Change {
	for _, e := range c.Events {
		event, fact, tells := told(e)
		if !tells {
			continue
		}
		c.Inserts = append(c.Inserts, change.Insert{Table: announcementsTable, Row: []change.Value{
			announcementID.To(newID()), announcementRun.To(c.Run), announcementEvent.To(event), announcementFact.To(fact), announcementAt.To(e.At),
		}})
		c.Ring = append(c.Ring, change.NotifyTopic)
	}
	return c
}

// told is what an event of a run tells other servers, if anything.
func told(e run.Event) (Event, Fact, bool) {
	d := e.Data
	switch {
	case e.Kind == run.EventSuspended:
		return RunWaiting, Fact{Status: run.Status(d.Status), TurnDigest: d.TurnDigest}, true
	case e.Kind == run.EventDecision, e.Kind == run.EventInput:
		return RunDecided, Fact{TurnDigest: d.TurnDigest, Approved: d.Approved, DecidedBy: d.DecidedBy, Reason: d.DenialReason}, true
	case e.Kind == run.EventSettled && d.Reason == string(run.ReasonApprovalExpired):
		return RunExpired, Fact{Status: run.Status(d.Status), Reason: d.Reason}, true
	case e.Kind == run.EventSettled && d.Status == string(run.Failed):
		return RunFailed, Fact{Status: run.Status(d.Status), Reason: d.Reason}, true
	}
	return "", Fact{}, false
}
