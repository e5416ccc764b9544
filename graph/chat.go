package graph

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/tool"
)

func toConversation(c chat.Conversation) *model.Conversation {
	return &model.Conversation{
		ID: conversationKind.id(c.ID), Title: given(c.Title), Status: conversationStatuses.out(c.Status),
		ConfigurationID: configurationKind.id(c.ConfigurationID), RunID: runKind.maybe(c.RunID), SkillID: skillKind.maybe(c.SkillID),
		Subject: toReference(c.Subject), QueuedMessages: len(c.Queue), Pinned: c.Pinned, ArchivedAt: c.Archived,
		CreatedAt: c.CreatedAt, ActiveAt: c.ActiveAt, Domain: c,
	}
}

// conversed is what a mutation on a conversation came to: the conversation once its turn rests, unless the client does not wait, or the refusal.
func (r *Resolver) conversed(ctx context.Context, now chat.Conversation, err error, background bool) (*model.Conversation, model.Refusal, error) {
	refusal, err := asData(err)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	if !background {
		if now, err = r.Chat.Wait(ctx, now.ID); err != nil {
			return nil, nil, err
		}
	}
	return toConversation(now), nil, nil
}

// entryTypes is the type of every kind of entry.
var entryTypes = map[chat.Kind]func(chat.Entry) model.ConversationEntry{
	chat.KindMessage:   messageEntry,
	chat.KindAnswer:    answerEntry,
	chat.KindProposal:  cardEntry,
	chat.KindQuestion:  cardEntry,
	chat.KindOutcome:   outcomeEntry,
	chat.KindNotice:    noticeEntry,
	chat.KindProgress:  progressEntry,
	chat.KindHighlight: highlightEntry,
	chat.KindState:     stateEntry,
}

// toLogEntry gives an entry the type of its kind. A kind that has no type of its own, which only a newer replica could write, keeps what all have.
func toLogEntry(e chat.Entry) model.ConversationEntry {
	make, known := entryTypes[e.Kind]
	if !known {
		make = stateEntry
	}
	return make(e)
}

func messageEntry(e chat.Entry) model.ConversationEntry {
	return &model.MessageEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		ID: messageKind.id(e.ID), Text: e.Text, ReplacesID: messageKind.maybe(e.Data.Replaces),
	}
}

func answerEntry(e chat.Entry) model.ConversationEntry {
	return &model.AnswerEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		Text: e.Text, Writes: e.Data.Writes, NoChangeMade: e.Data.Unchanged, Truncated: e.Data.Truncated,
	}
}

func cardEntry(e chat.Entry) model.ConversationEntry {
	return &model.CardEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		Conversation: e.ConversationID, TurnDigest: e.Data.Turn, IsProcess: e.Data.Process, Tool: e.Data.Tool, Target: toTarget(e.Data.Target), Edited: e.Data.Edited,
	}
}

func outcomeEntry(e chat.Entry) model.ConversationEntry {
	return &model.OutcomeEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		TurnDigest: e.Data.Turn, Outcome: cardOutcomes.out(chat.Outcome(e.Data.Code)), Tool: e.Data.Tool, Target: toTarget(e.Data.Target), Edited: e.Data.Edited,
		Args: append([]string{}, e.Data.Args...),
	}
}

func noticeEntry(e chat.Entry) model.ConversationEntry {
	return &model.NoticeEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		Code: e.Data.Code, Args: append([]string{}, e.Data.Args...),
	}
}

func progressEntry(e chat.Entry) model.ConversationEntry {
	out := &model.ProgressEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
	}
	if p := e.Data.Progress; p != nil {
		out.Position, out.Total, out.Done = p.Position, p.Total, p.Done
	}
	return out
}

func highlightEntry(e chat.Entry) model.ConversationEntry {
	return &model.HighlightEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		Record: toReference(e.Data.Highlight),
	}
}

func stateEntry(e chat.Entry) model.ConversationEntry {
	return &model.StateEntry{
		Sequence: e.Sequence, Kind: conversationKinds.out(e.Kind), Status: conversationStatuses.out(e.Status), RunID: runKind.maybe(e.RunID), At: e.At,
		Field: given(e.Data.Field),
	}
}

func toTarget(t *tool.Target) *model.CallTarget {
	if t == nil {
		return nil
	}
	return &model.CallTarget{Table: t.Table, ID: t.ID, Fields: append([]string{}, t.Fields...)}
}

func logConnection(w window, read []chat.Entry) *model.ConversationEntryConnection {
	c := &model.ConversationEntryConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, func(e chat.Entry) string { return strconv.Itoa(e.Sequence) }, toLogEntry,
		func(cursor string, n model.ConversationEntry) *model.ConversationEntryEdge {
			return &model.ConversationEntryEdge{Cursor: cursor, Node: n}
		})
	return c
}

func conversationConnection(w window, read []chat.Conversation) *model.ConversationConnection {
	key := func(c chat.Conversation) uuid.UUID { return c.ID }
	read = oldestFirst(read, key)
	slices.Reverse(read)
	c := &model.ConversationConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, rowKey(key), toConversation,
		func(cursor string, n *model.Conversation) *model.ConversationEdge {
			return &model.ConversationEdge{Cursor: cursor, Node: n}
		})
	return c
}

func pointConnection(w window, read []chat.Point) *model.OpenPointConnection {
	c := &model.OpenPointConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, rowKey(func(p chat.Point) uuid.UUID { return p.ID }), toPoint,
		func(cursor string, n *model.OpenPoint) *model.OpenPointEdge {
			return &model.OpenPointEdge{Cursor: cursor, Node: n}
		})
	return c
}

func toPoint(p chat.Point) *model.OpenPoint {
	return &model.OpenPoint{
		ID: pointKind.id(p.ID), SkillID: skillKind.id(p.SkillID), Subject: toReference(p.Subject), Target: toTarget(&p.Target), Tool: p.Tool,
		SkippedByID: userKind.id(p.SkippedBy), SkippedAt: p.SkippedAt, Times: p.Times, ClosedAt: p.ClosedAt, Domain: p,
	}
}

// chatPage is a window as the chat reads it.
func chatPage(first *int, after *string, last *int, before *string) (window, chat.Page, error) {
	w, p, err := runPage(first, after, last, before)
	return w, chat.Page(p), err
}

func conversationFilter(f *model.ConversationFilter) (chat.Filter, error) {
	if f == nil {
		return chat.Filter{}, nil
	}
	out := chat.Filter{Archived: f.Archived, Pinned: f.Pinned, Statuses: conversationStatuses.ins(f.Status), Search: text(f.Search)}
	var err error
	out.ConfigurationID, err = configurationKind.optional(f.ConfigurationID)
	return out, err
}

func pointFilter(f *model.OpenPointFilter) (chat.PointFilter, error) {
	if f == nil {
		return chat.PointFilter{}, nil
	}
	out := chat.PointFilter{Subject: record(f.Subject), Target: record(f.Target), Closed: f.Closed}
	var err error
	out.SkillID, err = skillKind.optional(f.SkillID)
	return out, err
}

// record is a record that an input names, nil when it names none.
func record(in *model.RecordReferenceInput) *tool.Record {
	if in == nil {
		return nil
	}
	return &tool.Record{Table: in.Table, ID: in.ID}
}

// rowOrNone is the row of an id that need not be given.
func rowOrNone(k kind, id *string) (uuid.UUID, error) {
	row, err := k.optional(id)
	if err != nil || row == nil {
		return uuid.Nil, err
	}
	return *row, nil
}

func (r *Resolver) inboxUpdate(ctx context.Context) func(agent.InboxChange) *model.InboxUpdate {
	return func(c agent.InboxChange) *model.InboxUpdate {
		out := &model.InboxUpdate{Kind: model.InboxUpdateKindLeft, RunID: runKind.id(c.Run)}
		if c.Waits {
			out.Kind = model.InboxUpdateKindWaits
		}
		if now, err := r.Agent.View(ctx, caller(ctx), c.Run); err == nil {
			out.Run = toRun(now)
		}
		return out
	}
}

// cardNow is what an entry's card shows while it is what the conversation waits with.
func (r *Resolver) cardNow(ctx context.Context, e *model.CardEntry) (*agent.Card, error) {
	now, err := r.Chat.View(ctx, caller(ctx), e.Conversation)
	if hidden(err) || err == nil && (now.Card == nil || now.Card.Turn != e.TurnDigest) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return shownCard(r.Chat.Card(ctx, caller(ctx), now))
}

// shownCard is a card, or none where it went on meanwhile or is only for the operator.
func shownCard(card *agent.Card, err error) (*agent.Card, error) {
	if refusal, other := asData(err); refusal != nil || hidden(other) {
		return nil, nil
	}
	return card, err
}

func decisionOf(card *agent.Card, err error) (*model.PendingDecision, error) {
	if err != nil || card == nil || card.Input != nil {
		return nil, err
	}
	return toPendingDecision(card), nil
}

func inputOf(card *agent.Card, err error) (*model.PendingInput, error) {
	if err != nil || card == nil || card.Input == nil {
		return nil, err
	}
	return &model.PendingInput{TurnDigest: card.TurnDigest, Tool: card.Input.Tool, Schema: card.Input.Schema, ExpiresAt: card.ExpiresAt}, nil
}
