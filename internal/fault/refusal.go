package fault

import (
	"errors"
	"fmt"
)

// Code names a refusal (RULES I7). The value is the API's enum value.
type Code string

// Every refusal the rules know. A code is never reused with another meaning.
const (
	SkillOrphaned           Code = "SKILL_ORPHANED"
	IntegrityFailed         Code = "INTEGRITY_FAILED"
	LegacyVersion           Code = "LEGACY_VERSION"
	StaleDigest             Code = "STALE_DIGEST"
	ProcessUnreadable       Code = "PROCESS_UNREADABLE"
	InvisibleCharacters     Code = "INVISIBLE_CHARACTERS"
	StaleRevision           Code = "STALE_REVISION"
	StaleSnippet            Code = "STALE_SNIPPET"
	SyncRunning             Code = "SYNC_RUNNING"
	SyncFailed              Code = "SYNC_FAILED"
	InUse                   Code = "IN_USE"
	AlreadyDecided          Code = "ALREADY_DECIDED"
	Busy                    Code = "BUSY"
	NotAttached             Code = "NOT_ATTACHED"
	AlreadyAttached         Code = "ALREADY_ATTACHED"
	ProcessNotAlways        Code = "PROCESS_NOT_ALWAYS"
	TaskAlwaysOnly          Code = "TASK_ALWAYS_ONLY"
	NotEffective            Code = "NOT_EFFECTIVE"
	NotInstruction          Code = "NOT_INSTRUCTION"
	SubjectUnreadable       Code = "SUBJECT_UNREADABLE"
	ConfigurationNotAllowed Code = "CONFIGURATION_NOT_ALLOWED"
	ConfigurationGone       Code = "CONFIGURATION_GONE"
	ProcessRunning          Code = "PROCESS_RUNNING"
	SecondApproverRequired  Code = "SECOND_APPROVER_REQUIRED"
	ServiceAccount          Code = "SERVICE_ACCOUNT"
	DecidedInChat           Code = "DECIDED_IN_CHAT"
	NotInitiator            Code = "NOT_INITIATOR"
	PredecessorOpen         Code = "PREDECESSOR_OPEN"
	PredecessorMissing      Code = "PREDECESSOR_MISSING"
	SectionTooLarge         Code = "SECTION_TOO_LARGE"
	NotWaiting              Code = "NOT_WAITING"
	StateUnreadable         Code = "STATE_UNREADABLE"
	PositionUnavailable     Code = "POSITION_UNAVAILABLE"
	ClaimLost               Code = "CLAIM_LOST"
	StaleTurn               Code = "STALE_TURN"
	AnswerNotOffered        Code = "ANSWER_NOT_OFFERED"
	BudgetExhausted         Code = "BUDGET_EXHAUSTED"
	NotEditable             Code = "NOT_EDITABLE"
	InputInvalid            Code = "INPUT_INVALID"
	ToolNotAllowed          Code = "TOOL_NOT_ALLOWED"
	InstructionWithdrawn    Code = "INSTRUCTION_WITHDRAWN"
	ConversationArchived    Code = "CONVERSATION_ARCHIVED"
	NothingToRetry          Code = "NOTHING_TO_RETRY"
	RunOpen                 Code = "RUN_OPEN"
	ServerUnreachable       Code = "SERVER_UNREACHABLE"
	TooManyTools            Code = "TOO_MANY_TOOLS"
	ToolGone                Code = "TOOL_GONE"
)

// Refused is the refusal of a rule. Detail, where a caller needs more than the
// message to go on, is a value of the room that refused (such as the current
// version and its diff behind a STALE_DIGEST); the API maps it to a type of its
// own.
type Refused struct {
	Code    Code
	Message string
	Detail  any
}

func (r *Refused) Error() string { return string(r.Code) + ": " + r.Message }

// Refuse makes a refusal without detail.
func Refuse(code Code, format string, args ...any) *Refused {
	return &Refused{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds the detail a caller needs next.
func (r *Refused) With(detail any) *Refused {
	return &Refused{Code: r.Code, Message: r.Message, Detail: detail}
}

// AsRefusal returns the refusal in err's chain, if there is one.
func AsRefusal(err error) (*Refused, bool) {
	var r *Refused
	ok := errors.As(err, &r)
	return r, ok
}
