package run

import (
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/skill"
)

// Way is how a skill reached a run.
type Way string

// The ways.
const (
	WayAlways  Way = "always"
	WayInvoked Way = "invoked"
	WayForced  Way = "forced"
	WayLoaded  Way = "loaded"
)

// Pin names the version of an instruction section that a run holds: ids and a
// digest, no text (RULES P1). Its section is composed from the approval snapshot,
// never from the live body.
type Pin struct {
	Skill   uuid.UUID    `json:"skill"`
	Source  uuid.UUID    `json:"source"`
	Digest  skill.Digest `json:"digest"`
	Way     Way          `json:"way"`
	Process bool         `json:"process,omitempty"`
	// Forced says that an administrator forced the skill onto a run of the lineage
	// although it came to this one another way; see InLineage.
	Forced bool `json:"forced,omitempty"`
	// Derived says that the pin was taken over from the run before: it is composed
	// without being admitted again (RULES P11).
	Derived bool `json:"derived,omitempty"`
}

// InLineage reports whether the skill was forced on a run of the lineage: then its pin
// needs no attachment (RULES L11, P8).
func (p Pin) InLineage() bool { return p.Forced || p.Way == WayForced }

// Pins are what a run holds, in section order.
type Pins []Pin

// Process returns the process pin, if the run is a process run. There is never
// more than one (RULES X3).
func (p Pins) Process() (Pin, bool) {
	i := slices.IndexFunc(p, func(pin Pin) bool { return pin.Process })
	if i < 0 {
		return Pin{}, false
	}
	return p[i], true
}

// Of returns the pin of a skill, if one is held.
func (p Pins) Of(id uuid.UUID) (Pin, bool) {
	i := slices.IndexFunc(p, func(pin Pin) bool { return pin.Skill == id })
	if i < 0 {
		return Pin{}, false
	}
	return p[i], true
}

// Derive is what a continuation takes over: every pin whose skill is still attached
// or was forced in the lineage, in order, and none of another configuration's (RULES
// P4, P8). Dropped are the others.
func (p Pins) Derive(sameConfiguration bool, attached func(skill uuid.UUID) bool) (kept, dropped Pins) {
	for _, pin := range p {
		if !sameConfiguration || !pin.InLineage() && !attached(pin.Skill) {
			dropped = append(dropped, pin)
			continue
		}
		pin.Derived = true
		kept = append(kept, pin)
	}
	return kept, dropped
}

// Without returns the pins less those of the named skills.
func (p Pins) Without(skills ...uuid.UUID) Pins {
	out := make(Pins, 0, len(p))
	for _, pin := range p {
		if !slices.Contains(skills, pin.Skill) {
			out = append(out, pin)
		}
	}
	return out
}

// NoticeCode names something a person should know about a run (RULES V6).
type NoticeCode string

// The notices.
const (
	NoticeIntegritySkipped  NoticeCode = "INTEGRITY_SKIPPED"
	NoticeDroppedForSize    NoticeCode = "DROPPED_FOR_SIZE"
	NoticeProcessSkipped    NoticeCode = "PROCESS_SKIPPED"
	NoticeInstructionGone   NoticeCode = "INSTRUCTION_WITHDRAWN"
	NoticePreviewMoved      NoticeCode = "PREVIEW_MOVED"
	NoticeGuardrailBlocked  NoticeCode = "GUARDRAIL_BLOCKED"
	NoticeGuardrailApproval NoticeCode = "GUARDRAIL_APPROVAL_REQUIRED"
	NoticeSecondApprover    NoticeCode = "SECOND_APPROVER_REQUIRED"
	NoticeUnreadableProcess NoticeCode = "PROCESS_UNREADABLE_SKIPPED"
	NoticePinDetached       NoticeCode = "PIN_DROPPED_DETACHED"
	NoticePinConfiguration  NoticeCode = "PIN_DROPPED_CONFIGURATION"
	NoticeProcessEnded      NoticeCode = "PROCESS_ENDED"
	NoticeRequeued          NoticeCode = "REQUEUED"
	NoticeAnswerVoid        NoticeCode = "ANSWER_VOID"
	NoticeApprovalExpired   NoticeCode = "APPROVAL_EXPIRED"
	NoticeToolChanged       NoticeCode = "TOOL_CHANGED"
	NoticeNoChangeMade      NoticeCode = "NO_CHANGE_MADE"
	NoticeBudgetExhausted   NoticeCode = "BUDGET_EXHAUSTED"
	NoticeCatalogueCut      NoticeCode = "CATALOGUE_CUT"
	NoticeSectionLeftOut    NoticeCode = "SECTION_LEFT_OUT"
)

// Notices lists every code.
var Notices = []NoticeCode{
	NoticeIntegritySkipped, NoticeDroppedForSize, NoticeProcessSkipped, NoticeInstructionGone, NoticePreviewMoved, NoticeGuardrailBlocked,
	NoticeGuardrailApproval, NoticeSecondApprover, NoticeUnreadableProcess, NoticePinDetached, NoticePinConfiguration, NoticeProcessEnded,
	NoticeRequeued, NoticeAnswerVoid, NoticeApprovalExpired, NoticeToolChanged, NoticeNoChangeMade, NoticeBudgetExhausted, NoticeCatalogueCut, NoticeSectionLeftOut,
}

// Notice is a code with arguments; the sentence is the reader's (internal/wording).
type Notice struct {
	Code NoticeCode `json:"code"`
	Args []string   `json:"args"`
}
