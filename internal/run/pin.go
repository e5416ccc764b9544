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
}

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
	NoticeSecondApprover    NoticeCode = "SECOND_APPROVER_REQUIRED"
	NoticeUnreadableProcess NoticeCode = "PROCESS_UNREADABLE_SKIPPED"
)

// Notice is a code with arguments; the text is the client's.
type Notice struct {
	Code NoticeCode `json:"code"`
	Args []string   `json:"args"`
	Text string     `json:"text"` // English, for clients without a catalogue
}
