package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// Point is an open point: a proposal that its initiator skipped, until a write on the same
// record and the same fields is applied (RULES O1, O3).
type Point struct {
	ID             uuid.UUID
	SkillID        uuid.UUID    // the process that proposed it
	Subject        *tool.Record // what the process worked on
	Target         tool.Target  // fields sorted
	Tool           string
	SkippedBy      uuid.UUID
	ConversationID uuid.UUID
	RunID          uuid.UUID
	SkippedAt      time.Time // last
	Times          int       // how often it was skipped
	ClosedAt       *time.Time
	CreatedAt      time.Time
}

// PointFilter narrows a list of open points; a nil field does not.
type PointFilter struct {
	SkillID   *uuid.UUID
	Subject   *tool.Record
	Target    *tool.Record
	SkippedBy *uuid.UUID
	Closed    bool // those that are closed instead
}

// pointKey names a point: the process, its subject, the record and the sorted names of the
// fields, so that the same finding is one row (RULES O2).
func pointKey(process uuid.UUID, subject *tool.Record, target tool.Target) string {
	b, err := json.Marshal([]any{process, subject, target.Record, SortedFields(target)})
	if err != nil {
		panic("chat: a point's key: " + err.Error()) // ids and names always marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// SortedFields is the field names of a target as a point keeps them: sorted, never nil.
func SortedFields(target tool.Target) []string {
	return append([]string{}, slices.Sorted(slices.Values(target.Fields))...)
}

// keepPoints adds to a change what an outcome makes of the open points: a skip records the
// one that the card was about, an applied write closes those on its record and fields, and
// everything else leaves them (RULES O1, O3).
func (c *Chat) keepPoints(ctx context.Context, at Conversation, turn uuid.UUID, card Card, o Outcome, to *change.Change) error {
	switch {
	case card.Target == nil:
		return nil
	case o == Skipped && card.Process != uuid.Nil:
		return c.recordPoint(ctx, at, turn, card, to)
	case o == Applied:
		open, err := c.Store.PointsOn(ctx, *card.Target)
		for _, p := range open {
			to.Updates = append(to.Updates, change.Update{
				Table: points, ID: p.ID, If: []change.Value{pClosedAt.Null()},
				Set: []change.Value{pClosedAt.To(c.World.Now()), pClosedRun.To(turn)},
			})
		}
		return err
	}
	return nil
}

// recordPoint makes the same finding one row, however often it is skipped (RULES O2).
func (c *Chat) recordPoint(ctx context.Context, at Conversation, turn uuid.UUID, card Card, to *change.Change) error {
	now, key := c.World.Now(), pointKey(card.Process, card.Subject, *card.Target)
	old, known, err := c.Store.Point(ctx, key)
	if err != nil {
		return err
	}
	last := []change.Value{
		pBy.To(card.By), pConversation.To(at.ID), pRun.To(turn), pTool.To(card.Tool), pSkippedAt.To(now),
		pTimes.To(old.Times + 1), pClosedAt.Null(), pClosedRun.Null(),
	}
	if known {
		to.Updates = append(to.Updates, change.Update{Table: points, ID: old.ID, If: []change.Value{pTimes.Is(old.Times)}, Set: last})
		return nil
	}
	to.Inserts = append(to.Inserts, change.Insert{Table: points, Row: append(last,
		pID.To(c.World.NewID()), pKey.To(key), pSkill.To(card.Process), pSubject.To(card.Subject),
		pTable.To(card.Target.Table), pRecord.To(card.Target.ID), pFields.To(SortedFields(*card.Target)), pCreatedAt.To(now),
	)})
	return nil
}

// OpenPoints pages through the open points whose record the actor may read (RULES O4). A
// page may hold fewer than its limit.
func (c *Chat) OpenPoints(ctx context.Context, by actor.Actor, filter PointFilter, page Page) ([]Point, error) {
	return Points{c.Store, c.Content}.List(ctx, by, filter, page)
}

// Points reads open points for whoever has no conversation, such as the tool that lists
// them for the model.
type Points struct {
	Store   PointStore
	Content content.Reader
}

// PointStore is what reading open points needs kept.
type PointStore interface {
	Points(ctx context.Context, filter PointFilter, page Page) ([]Point, error)
}

// List is OpenPoints.
func (c Points) List(ctx context.Context, by actor.Actor, filter PointFilter, page Page) ([]Point, error) {
	if by.IsNobody() {
		return nil, fault.New(fault.Unauthenticated, "Sign in to see open points.")
	}
	all, err := c.Store.Points(ctx, filter, page)
	if err != nil || by.Administrator {
		return all, err
	}
	readable := all[:0]
	for _, p := range all {
		_, err := c.Content.Read(ctx, by, p.Target.Table, p.Target.ID)
		switch {
		case err == nil:
			readable = append(readable, p)
		case !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Forbidden):
			return nil, err
		}
	}
	return readable, nil
}
