package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/predicate"
	entrun "github.com/countersign/countersign/ent/run"
	"github.com/countersign/countersign/ent/runevent"
	"github.com/countersign/countersign/ent/runtext"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// plainRun are the columns that a run is read from: what is sealed and only seldom needed
// is read on its own.
var plainRun = slices.DeleteFunc(slices.Clone(entrun.Columns), func(column string) bool {
	return column == entrun.FieldRequest || column == entrun.FieldState || column == entrun.FieldLastInput
})

// Run implements agent.Store.
func (s *Store) Run(ctx context.Context, id uuid.UUID) (agent.Run, error) {
	rows, err := s.client.Run.Query().Where(entrun.ID(id)).Select(plainRun...).All(ctx)
	if err != nil {
		return agent.Run{}, reading(ctx, err, "run")
	}
	if len(rows) == 0 {
		return agent.Run{}, fault.New(fault.NotFound, "There is no such run.")
	}
	return s.toRun(ctx, rows[0])
}

// Runs implements agent.Store.
func (s *Store) Runs(ctx context.Context, filter agent.Filter, page agent.Page) ([]agent.Run, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, true}
	rows, err := s.client.Run.Query().Where(append(runConditions(filter), p.on)...).Select(plainRun...).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "run")
	}
	out := make([]agent.Run, len(rows))
	for i, row := range in(p, rows) {
		if out[i], err = s.toRun(ctx, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func runConditions(filter agent.Filter) []predicate.Run {
	var conditions []predicate.Run
	if len(filter.Statuses) > 0 {
		conditions = append(conditions, entrun.StatusIn(texts(filter.Statuses)...))
	}
	if filter.InitiatorID != nil {
		conditions = append(conditions, entrun.InitiatorID(*filter.InitiatorID))
	}
	if filter.ConfigurationID != nil {
		conditions = append(conditions, entrun.ConfigurationID(*filter.ConfigurationID))
	}
	if filter.SkillID != nil {
		conditions = append(conditions, entrun.InvokedSkillID(*filter.SkillID))
	}
	return conditions
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// toRun maps a row. Its JSON is the store's own: what cannot be read there is an
// error, because the zero value of an allow-list or of pins would lift a limit.
func (s *Store) toRun(ctx context.Context, row *ent.Run) (agent.Run, error) {
	r := agent.Run{
		ID: row.ID, Status: run.Status(row.Status), Outcome: run.Outcome(row.Outcome), Reason: run.Reason(row.TerminationReason),
		Truncated: row.Truncated, Message: row.Message, Answer: s.answer(ctx, row), InitiatorID: row.InitiatorID,
		ConfigurationID: row.ConfigurationID, TaskID: known(row.TaskID), PredecessorID: known(row.PredecessorID), ConversationID: known(row.ConversationID), Writes: row.Writes,
		MaxIterations: row.MaxIterations, Suspension: row.Suspension,
		TurnDigest: row.TurnDigest, ExpiresAt: utc(row.ExpiresAt), LeaseOwner: row.LeaseOwner, LeaseUntil: utc(row.LeaseUntil), Attempts: row.Attempts, Events: row.NextSeq,
		Privacy: run.Privacy(row.PrivacyLevel), CreatedAt: row.CreatedAt.UTC(), StartedAt: utc(row.StartedAt), FinishedAt: utc(row.FinishedAt),
	}
	var bad error
	field(&bad, &r.Invocation, row.Invocation)
	field[*tool.Record](&bad, &r.Subject, row.Subject)
	field(&bad, &r.Forced, row.ForcedSkillIds)
	field(&bad, &r.SkillAllowList, row.SkillAllowList)
	field(&bad, &r.CallerTools, row.CallerTools)
	field(&bad, &r.Pins, row.Pins)
	field(&bad, &r.Notices, row.Notices)
	field[*tool.Progress](&bad, &r.Progress, row.Progress)
	field[*tool.Record](&bad, &r.Highlight, row.Highlight)
	field(&bad, &r.Fence, row.Fence)
	field(&bad, &r.Usage, row.Usage)
	if bad != nil {
		return agent.Run{}, fault.Wrap(fault.Internal, errors.Join(agent.ErrUnreadable, bad), "run %s cannot be read", row.ID)
	}
	return r, nil
}

// field reads one JSON column unless an earlier one was bad.
func field[T any](bad *error, to *T, text string) {
	if *bad == nil {
		*to, *bad = decoded[T](text)
	}
}

// answer opens a run's answer. One that cannot be opened is left out and logged:
// the run's outcome stands without it.
func (s *Store) answer(ctx context.Context, row *ent.Run) string {
	text, err := s.secret(place{string(runs), "answer", row.ID.String()}, row.Answer)
	if err != nil {
		s.log.ErrorContext(ctx, "a run's answer cannot be read", "run", row.ID, "error", err)
	}
	return text
}

// Request implements agent.Store.
func (s *Store) Request(ctx context.Context, id uuid.UUID) (agent.Request, error) {
	return unsealed[agent.Request](ctx, s, id, entrun.FieldRequest)
}

// State implements agent.Store.
func (s *Store) State(ctx context.Context, id uuid.UUID) (agent.State, error) {
	return unsealed[agent.State](ctx, s, id, entrun.FieldState)
}

// LastInput implements agent.Store.
func (s *Store) LastInput(ctx context.Context, id uuid.UUID) (agent.Submitted, error) {
	return unsealed[agent.Submitted](ctx, s, id, entrun.FieldLastInput)
}

// unsealed reads one sealed JSON column of a run.
func unsealed[T any](ctx context.Context, s *Store, id uuid.UUID, column string) (T, error) {
	var none T
	rows, err := s.client.Run.Query().Where(entrun.ID(id)).Select(entrun.FieldID, column).All(ctx)
	if err != nil {
		return none, reading(ctx, err, "run")
	}
	if len(rows) == 0 {
		return none, fault.New(fault.NotFound, "There is no such run.")
	}
	sealed := map[string]string{
		entrun.FieldRequest: rows[0].Request, entrun.FieldState: rows[0].State, entrun.FieldLastInput: rows[0].LastInput,
	}[column]
	if sealed == "" {
		return none, fault.New(fault.NotFound, "The run no longer has a %s.", column)
	}
	seals, err := s.seals()
	if err != nil {
		return none, err
	}
	text, err := seals.open(place{string(runs), column, id.String()}, sealed)
	if err == nil {
		var v T
		if v, err = decoded[T](text); err == nil {
			return v, nil
		}
	}
	s.log.ErrorContext(ctx, "what a run kept cannot be read", "run", id, "column", column, "error", err)
	return none, fault.Refuse(fault.StateUnreadable, "The run's stored %s cannot be read; its operator has to look at it.", column)
}

// Events implements agent.Store.
func (s *Store) Events(ctx context.Context, id uuid.UUID, after, limit int) ([]run.Event, error) {
	rows, err := s.client.RunEvent.Query().Where(runevent.RunID(id), runevent.SequenceGT(after)).
		Order(runevent.BySequence()).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "run event")
	}
	events := make([]run.Event, len(rows))
	for i, row := range rows {
		if events[i], err = toEvent(row); err != nil {
			return nil, err
		}
	}
	return events, s.withWords(ctx, id, events)
}

// LiveText implements agent.Store.
func (s *Store) LiveText(ctx context.Context, id uuid.UUID) (agent.LiveText, error) {
	rows, err := s.client.RunText.Query().Where(runtext.ID(id)).All(ctx)
	if err != nil || len(rows) == 0 {
		return agent.LiveText{}, failed(ctx, err, "read what a model writes")
	}
	row := rows[0]
	text, err := s.secret(place{runtext.Table, runtext.FieldText, id.String()}, row.Text)
	if err != nil {
		s.log.ErrorContext(ctx, "what a model writes cannot be read", "run", id, "error", err)
		return agent.LiveText{}, nil
	}
	return agent.LiveText{Owner: row.Owner, Part: row.Part, Round: row.Round, Text: text}, nil
}

// LastDecision implements agent.Store.
func (s *Store) LastDecision(ctx context.Context, id uuid.UUID) (run.Event, bool, error) {
	rows, err := s.client.RunEvent.Query().Where(runevent.RunID(id), runevent.Kind(string(run.EventDecision))).
		Order(runevent.BySequence(entsql.OrderDesc())).Limit(1).All(ctx)
	if err != nil {
		return run.Event{}, false, reading(ctx, err, "run event")
	}
	if len(rows) == 0 {
		return run.Event{}, false, nil
	}
	event, err := toEvent(rows[0])
	return event, err == nil, err
}

func toEvent(row *ent.RunEvent) (run.Event, error) {
	data, err := decoded[run.EventData](row.Data)
	if err != nil {
		return run.Event{}, fault.Wrap(fault.Internal, err, "event %d of run %s cannot be read", row.Sequence, row.RunID)
	}
	return run.Event{
		Sequence: row.Sequence, Kind: run.EventKind(row.Kind), Round: row.Round, DurationMS: row.DurationMs,
		At: row.At.UTC(), Data: data,
	}, nil
}

// Queued implements agent.Store.
func (s *Store) Queued(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.Run.Query().
		Where(entrun.Status(string(run.Queued)), entrun.Or(entrun.NotBeforeIsNil(), entrun.NotBeforeLTE(stored(now)))).
		Order(entrun.ByCreatedAt(), entrun.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the queue")
}

// Lost implements agent.Store.
func (s *Store) Lost(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.Run.Query().Where(entrun.Status(string(run.Running)), entrun.LeaseUntilLT(stored(before))).
		Order(entrun.ByLeaseUntil(), entrun.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the runs that were lost")
}

// Expired implements agent.Store.
func (s *Store) Expired(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.Run.Query().
		Where(entrun.StatusIn(string(run.WaitingForApproval), string(run.WaitingForInput)), entrun.ExpiresAtLT(stored(before))).
		Order(entrun.ByExpiresAt(), entrun.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the runs that nobody answered")
}

// Segment implements agent.Store.
func (s *Store) Segment(ctx context.Context, id uuid.UUID) ([]run.Event, error) {
	kinds := texts([]run.EventKind{run.EventStarted, run.EventDecision, run.EventInput})
	rows, err := s.client.RunEvent.Query().Where(runevent.RunID(id), runevent.KindIn(kinds...)).
		Order(runevent.BySequence(entsql.OrderDesc())).Limit(1).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "run event")
	}
	first := -1
	if len(rows) > 0 {
		first = rows[0].Sequence - 1
	}
	return s.Events(ctx, id, first, math.MaxInt32)
}

// WaitingSince implements agent.Store. A run's newest event is the one before its next.
func (s *Store) WaitingSince(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.Run.Query().
		Where(entrun.StatusIn(string(run.WaitingForApproval), string(run.WaitingForInput)), func(q *entsql.Selector) {
			of := entsql.Dialect(q.Dialect())
			event := of.Table(runevent.Table)
			q.Where(entsql.Exists(of.Select(event.C(runevent.FieldID)).From(event).Where(entsql.And(
				entsql.ColumnsEQ(event.C(runevent.FieldRunID), q.C(entrun.FieldID)),
				entsql.ExprP(event.C(runevent.FieldSequence)+" = "+q.C(entrun.FieldNextSeq)+" - 1"),
				entsql.LT(event.C(runevent.FieldAt), stored(before)),
			))))
		}).
		Order(entrun.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the runs that wait")
}

// EndedBefore implements agent.Store.
func (s *Store) EndedBefore(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.Run.Query().Where(entrun.FinishedAtLT(stored(before))).
		Order(entrun.ByFinishedAt(), entrun.ByID()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the runs that ended")
}

// PinnedOpen implements agent.Store.
func (s *Store) PinnedOpen(ctx context.Context, skills []uuid.UUID) ([]uuid.UUID, error) {
	var ids []uuid.UUID
	err := s.openPins(ctx, func(id uuid.UUID, pin run.Pin) {
		if slices.Contains(skills, pin.Skill) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	})
	return ids, err
}

// openPins shows every pin of every open run, by run.
func (s *Store) openPins(ctx context.Context, each func(id uuid.UUID, pin run.Pin)) error {
	open := slices.DeleteFunc(slices.Clone(run.Statuses), run.Status.Terminal)
	rows, err := s.client.Run.Query().Where(entrun.StatusIn(texts(open)...), entrun.PinsContains(`"skill"`)).
		Order(entrun.ByID()).Select(entrun.FieldID, entrun.FieldPins).All(ctx)
	if err != nil {
		return failed(ctx, err, "read the pins of open runs")
	}
	for _, row := range rows {
		pins, err := decoded[run.Pins](row.Pins)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "the pins of run %s cannot be read", row.ID)
		}
		for _, pin := range pins {
			each(row.ID, pin)
		}
	}
	return nil
}
