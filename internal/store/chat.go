package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	entconversation "github.com/countersign/countersign/ent/conversation"
	"github.com/countersign/countersign/ent/conversationentry"
	entpoint "github.com/countersign/countersign/ent/openpoint"
	"github.com/countersign/countersign/ent/predicate"
	entrun "github.com/countersign/countersign/ent/run"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// The tables whose sealed columns this file opens.
const (
	conversations       = "conversations"
	conversationEntries = "conversation_entries"
)

// Conversation implements chat.Store.
func (s *Store) Conversation(ctx context.Context, id uuid.UUID) (chat.Conversation, error) {
	row, err := s.client.Conversation.Get(ctx, id)
	if err != nil {
		return chat.Conversation{}, reading(ctx, err, "conversation")
	}
	return s.toConversation(ctx, row)
}

// Conversations implements chat.Store.
func (s *Store) Conversations(ctx context.Context, owner uuid.UUID, filter chat.Filter, page chat.Page) ([]chat.Conversation, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, true}
	where := append(conversationConditions(filter), entconversation.OwnerID(owner), p.on)
	rows, err := s.client.Conversation.Query().Where(where...).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "conversation")
	}
	out := make([]chat.Conversation, len(rows))
	for i, row := range in(p, rows) {
		if out[i], err = s.toConversation(ctx, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func conversationConditions(f chat.Filter) []predicate.Conversation {
	var conditions []predicate.Conversation
	if f.Archived != nil {
		archived := entconversation.ArchivedAtIsNil()
		if *f.Archived {
			archived = entconversation.ArchivedAtNotNil()
		}
		conditions = append(conditions, archived)
	}
	if f.Pinned != nil {
		conditions = append(conditions, entconversation.Pinned(*f.Pinned))
	}
	if len(f.Statuses) > 0 {
		conditions = append(conditions, entconversation.StatusIn(texts(f.Statuses)...))
	}
	if f.ConfigurationID != nil {
		conditions = append(conditions, entconversation.ConfigurationID(*f.ConfigurationID))
	}
	if f.Search != "" {
		conditions = append(conditions, entconversation.SearchContains(strings.ToLower(f.Search)))
	}
	return conditions
}

// toConversation maps a row. A queue that cannot be opened is left out and logged: the
// conversation stands without it.
func (s *Store) toConversation(ctx context.Context, row *ent.Conversation) (chat.Conversation, error) {
	c := chat.Conversation{
		ID: row.ID, OwnerID: row.OwnerID, ConfigurationID: row.ConfigurationID, Title: row.Title, Status: chat.Status(row.Status),
		RunID: known(row.RunID), Seen: row.Seen, SkillID: known(row.SkillID), Started: row.Started,
		Pinned: row.Pinned, Archived: utc(row.ArchivedAt), LeaseOwner: row.LeaseOwner, LeaseUntil: utc(row.LeaseUntil),
		Entries: row.Entries, CreatedAt: row.CreatedAt.UTC(), ActiveAt: row.ActiveAt.UTC(),
	}
	var bad error
	field[*tool.Record](&bad, &c.Subject, row.Subject)
	field[*chat.Card](&bad, &c.Card, row.Card)
	if bad != nil {
		return chat.Conversation{}, fault.Wrap(fault.Internal, bad, "conversation %s cannot be read", row.ID)
	}
	text, err := s.secret(place{conversations, entconversation.FieldQueue, row.ID.String()}, row.Queue)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &c.Queue)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "the messages that wait in a conversation cannot be read", "conversation", row.ID, "error", err)
	}
	return c, nil
}

// Input implements chat.Store.
func (s *Store) Input(ctx context.Context, id uuid.UUID) (string, error) {
	row, err := s.client.Conversation.Query().Where(entconversation.ID(id)).Select(entconversation.FieldID, entconversation.FieldInput).Only(ctx)
	if err != nil {
		return "", reading(ctx, err, "conversation")
	}
	text, err := s.secret(place{conversations, entconversation.FieldInput, id.String()}, row.Input)
	if errors.Is(err, errUnreadable) {
		return "", fault.Refuse(fault.StateUnreadable, "The answer on its way cannot be read; its operator has to look at it.")
	}
	return text, err
}

// Log implements chat.Store. A text that cannot be opened is left out and logged: the
// others stand without it.
func (s *Store) Log(ctx context.Context, id uuid.UUID, after, limit int, kinds ...chat.Kind) ([]chat.Entry, error) {
	query := s.client.ConversationEntry.Query().
		Where(conversationentry.ConversationID(id), conversationentry.SequenceGT(after)).
		Order(conversationentry.BySequence()).Limit(limit)
	if len(kinds) > 0 {
		query.Where(conversationentry.KindIn(texts(kinds)...))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "conversation")
	}
	out := make([]chat.Entry, len(rows))
	for i, row := range rows {
		data, err := decoded[chat.Data](row.Data)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "entry %d of conversation %s cannot be read", row.Sequence, id)
		}
		text, err := s.secret(place{conversationEntries, conversationentry.FieldText, row.ID.String()}, row.Text)
		if err != nil {
			s.log.ErrorContext(ctx, "an entry's text cannot be read", "conversation", id, "sequence", row.Sequence, "error", err)
		}
		out[i] = chat.Entry{
			ID: row.ID, ConversationID: row.ConversationID, Sequence: row.Sequence, Kind: chat.Kind(row.Kind), Status: chat.Status(row.Status),
			RunID: known(row.RunID), Text: text, Data: data, At: row.At.UTC(),
		}
	}
	return out, nil
}

// Stirring implements chat.Store. A conversation that is claimed is left alone until its
// lease has ended.
func (s *Store) Stirring(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error) {
	open := texts([]chat.Status{chat.Queued, chat.Processing, chat.AwaitingApproval, chat.AwaitingInput})
	ids, err := s.client.Conversation.Query().Where(
		entconversation.Or(entconversation.LeaseOwner(""), entconversation.LeaseUntilLTE(stored(now))),
		entconversation.Or(
			entconversation.And(entconversation.StatusIn(open...), entconversation.Or(entconversation.LeaseOwnerNEQ(""), runMovedOn)),
			entconversation.And(entconversation.StatusNotIn(open...), entconversation.QueuedGT(0)),
		),
	).Order(entconversation.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the conversations that go on")
}

// runMovedOn: the conversation's run has events that are not in its log, or is gone.
func runMovedOn(q *entsql.Selector) {
	of := entsql.Dialect(q.Dialect())
	r := of.Table(entrun.Table)
	q.Where(entsql.Not(entsql.Exists(of.Select(r.C(entrun.FieldID)).From(r).Where(entsql.And(
		entsql.ColumnsEQ(r.C(entrun.FieldID), q.C(entconversation.FieldRunID)),
		entsql.ColumnsLTE(r.C(entrun.FieldNextSeq), q.C(entconversation.FieldSeen)),
	)))))
}

// Stale implements chat.Store.
func (s *Store) Stale(ctx context.Context, archived bool, before time.Time, limit int) ([]uuid.UUID, error) {
	query := s.client.Conversation.Query().Where(
		entconversation.Pinned(false), entconversation.StatusIn(string(chat.Idle), string(chat.Failed)), entconversation.Queued(0))
	if archived {
		query.Where(entconversation.ArchivedAtLT(stored(before)))
	} else {
		query.Where(entconversation.ArchivedAtIsNil(), entconversation.ActiveAtLT(stored(before)))
	}
	ids, err := query.Order(entconversation.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the conversations that are old")
}

// Point implements chat.Store.
func (s *Store) Point(ctx context.Context, key string) (chat.Point, bool, error) {
	row, err := s.client.OpenPoint.Query().Where(entpoint.Key(key)).Only(ctx)
	if ent.IsNotFound(err) {
		return chat.Point{}, false, nil
	}
	p, err := one(ctx, "open point", row, err, toPoint)
	return p, err == nil, err
}

// PointsOn implements chat.Store.
func (s *Store) PointsOn(ctx context.Context, target tool.Target) ([]chat.Point, error) {
	fields, err := json.Marshal(chat.SortedFields(target))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the fields of a target")
	}
	rows, err := s.client.OpenPoint.Query().Where(
		entpoint.TargetTable(target.Table), entpoint.TargetID(target.ID), entpoint.Fields(string(fields)), entpoint.ClosedAtIsNil(),
	).Order(entpoint.ByID()).All(ctx)
	return all(ctx, "open point", rows, err, toPoint)
}

// Points implements chat.Store.
func (s *Store) Points(ctx context.Context, f chat.PointFilter, page chat.Page) ([]chat.Point, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	query := s.client.OpenPoint.Query().Where(p.on)
	if f.Closed {
		query.Where(entpoint.ClosedAtNotNil())
	} else {
		query.Where(entpoint.ClosedAtIsNil())
	}
	if f.SkillID != nil {
		query.Where(entpoint.SkillID(*f.SkillID))
	}
	if f.SkippedBy != nil {
		query.Where(entpoint.SkippedBy(*f.SkippedBy))
	}
	if f.Target != nil {
		query.Where(entpoint.TargetTable(f.Target.Table), entpoint.TargetID(f.Target.ID))
	}
	if f.Subject != nil {
		subject, err := json.Marshal(f.Subject)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the subject of a point")
		}
		query.Where(entpoint.Subject(string(subject)))
	}
	rows, err := query.All(ctx)
	return all(ctx, "open point", in(p, rows), err, toPoint)
}

func toPoint(row *ent.OpenPoint) chat.Point {
	return chat.Point{
		ID: row.ID, SkillID: row.SkillID, Subject: lenient[*tool.Record](row.Subject),
		Target: tool.Target{Record: tool.Record{Table: row.TargetTable, ID: row.TargetID}, Fields: lenient[[]string](row.Fields)},
		Tool:   row.Tool, SkippedBy: row.SkippedBy, ConversationID: row.ConversationID, RunID: row.RunID,
		SkippedAt: row.SkippedAt.UTC(), Times: row.Times, ClosedAt: utc(row.ClosedAt), CreatedAt: row.CreatedAt.UTC(),
	}
}
