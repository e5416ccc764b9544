package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/run"
)

// Run is a run's row.
type Run struct{ ent.Schema }

// Fields of the table.
func (Run) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("status", "guards every transition (RULES R2)"),
		maybe("outcome", "of the last segment"),
		maybe("termination_reason", "once the run is terminal"),
		flag("truncated", "ended before it was done"),
		text("message", "why it failed, for people"),
		sealed("answer", "the final answer"),
		ref("initiator_id", "the person the run belongs to"),
		ref("configuration_id", ""),
		maybe("invocation", "JSON: skill and subject of an explicit start"),
		maybe("subject", "JSON: the record it works on"),
		maybeRef("predecessor_id", "the run it continues, which may be gone; NULL for a first run"),
		maybeRef("invoked_skill_id", "the invocation's skill again, for filtering"),
		maybeRef("task_id", "the task it carries out; NULL for any other run"),
		maybeRef("conversation_id", "the conversation whose turn it is, which may be gone; NULL for any other run"),
		maybe("forced_skill_ids", "JSON list"),
		maybe("skill_allow_list", "JSON list fixed at start; null is unrestricted (RULES T1)"),
		maybe("caller_tools", "JSON list; null narrows nothing (RULES T10)"),
		maybe("pins", "JSON list: skill, source, digest (RULES P1)"),
		maybe("notices", "JSON list of codes with arguments"),
		maybe("progress", "JSON: the last progress report"),
		maybe("highlight", "JSON: the last highlighted record"),
		number("max_iterations", "the caller's cap; 0 when none"),
		number("suspension", "counts suspensions (RULES R19)"),
		text("turn_digest", "of the pending calls, while the run waits"),
		sealed("request", "what was asked, until the run settles (RULES R16)"),
		sealed("state", "what a suspended run needs to go on, until it settles (RULES R16)"),
		sealed("last_input", "JSON: who answered which question last, and a digest of what they gave, for whoever sends it twice"),
		maybe("lease_owner", "which worker executes the segment (RULES R6)"),
		maybeMoment("expires_at", "of the last suspension: after this nobody may answer it any more"),
		maybeMoment("lease_until", "after this the segment is lost"),
		number("attempts", "how often its segment was begun again (RULES R8)"),
		maybeMoment("not_before", "a requeued run is not picked up before this"),
		maybe("fence", "JSON: a write that was begun and not recorded yet (RULES R7)"),
		maybe("usage", "JSON: tokens"),
		field.Text("privacy_level").Default(string(run.PrivacyMetadata)).Comment("which level it began with (RULES Y1)"),
		number("writes", "how many of its calls wrote"),
		number("next_seq", "the sequence of the next event; taking numbers locks the row (RULES R5)"),
		moment("created_at", ""),
		maybeMoment("started_at", ""),
		maybeMoment("finished_at", ""),
	}
}

// Edges of the table.
func (Run) Edges() []ent.Edge {
	return []ent.Edge{
		to("initiator", User.Type, "initiator_id", entsql.Restrict),
		to("configuration", Configuration.Type, "configuration_id", entsql.Restrict),
	}
}

// Indexes of the table. The first one is the queue's: what is queued, oldest first,
// stands together in it however many runs there have been.
func (Run) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("status", "created_at", "id"),
		index.Fields("initiator_id"),
		index.Fields("configuration_id"),
		index.Fields("invoked_skill_id"),
		index.Fields("lease_until"),
		index.Fields("expires_at"),
		index.Fields("finished_at"),
	}
}

// Annotations of the table.
func (Run) Annotations() []schema.Annotation {
	return table("runs",
		enum("status", run.Statuses...),
		enumOrNone("outcome", run.OutcomeCompleted, run.OutcomeAwaitingApproval, run.OutcomeAwaitingInput,
			run.OutcomeSuspendFailed, run.OutcomeGuardrailBlocked, run.OutcomeGuardrailApprovalRequired,
			run.OutcomeFailed, run.OutcomeCancelled, run.OutcomeRequeued, run.OutcomeLeaseLost),
		enumOrNone("termination_reason", run.ReasonCompleted, run.ReasonMaxIterations, run.ReasonBudgetExhausted,
			run.ReasonPolicyDenied, run.ReasonApprovalDenied, run.ReasonApprovalExpired, run.ReasonProviderFailed, run.ReasonCancelled,
			run.ReasonRetriesExhausted, run.ReasonNotRetryable, run.ReasonContextTruncated,
			run.ReasonInstructionWithdrawn, run.ReasonSecondApproverRequired, run.ReasonSuspendFailed,
			run.ReasonGuardrailBlocked, run.ReasonGuardrailApproval),
		enum("privacy_level", run.Privacies...),
		notNegative("next_seq"),
	)
}

// RunText is what a model has written so far in a run's present round: one row a run, while
// the run is open and its worker's model has written something.
type RunText struct{ ent.Schema }

// Fields of the table.
func (RunText) Fields() []ent.Field {
	return []ent.Field{
		id(), // the run's own
		must("owner", "the segment that writes it: its lease's owner"),
		number("part", "counts the model calls of the segment: each begins a text of its own"),
		number("round", "as in the events of that call"),
		sealed("text", "the text so far"),
	}
}

// Annotations of the table.
func (RunText) Annotations() []schema.Annotation {
	return table("run_texts", notNegative("part"), notNegative("round"))
}

// RunEvent is one step of a run. Append-only: it goes only with its run.
type RunEvent struct{ ent.Schema }

// Fields of the table.
func (RunEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Comment("means nothing; readers go by (run_id, sequence)"),
		ref("run_id", ""),
		field.Int("sequence").Comment("gapless from 0 in its run (RULES R5)"),
		must("kind", ""),
		number("round", "1-based within the segment; 0 outside a round"),
		number("duration_ms", ""),
		moment("at", ""),
		must("data", "JSON: counts, names and codes; content stands apart (RULES Y1)"),
	}
}

// Edges of the table.
func (RunEvent) Edges() []ent.Edge {
	return []ent.Edge{to("run", Run.Type, "run_id", entsql.Cascade)}
}

// Indexes of the table.
func (RunEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("run_id", "sequence").Unique()}
}

// Annotations of the table.
func (RunEvent) Annotations() []schema.Annotation {
	return table("run_events",
		enum("kind", run.EventStarted, run.EventModelCall, run.EventToolCall, run.EventWrite, run.EventSuspended,
			run.EventEdited, run.EventDecision, run.EventInput, run.EventProgress, run.EventHighlight, run.EventNotice, run.EventSettled),
		notNegative("sequence"),
	)
}

// RunContent is what was said in a step of a run, where its privacy level keeps that. It
// stands apart from the event, which never changes, because keys do.
type RunContent struct{ ent.Schema }

// Fields of the table.
func (RunContent) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("run_id", ""),
		field.Int("sequence").Comment("of the event; the id is made from the run and it"),
		sealed("content", "JSON: run.Content (RULES Y1)"),
	}
}

// Edges of the table.
func (RunContent) Edges() []ent.Edge {
	return []ent.Edge{to("run", Run.Type, "run_id", entsql.Cascade)}
}

// Indexes of the table.
func (RunContent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("run_id", "sequence").Unique()}
}

// Annotations of the table.
func (RunContent) Annotations() []schema.Annotation {
	return table("run_contents", notNegative("sequence"))
}
