package agent

import (
	"fmt"

	"github.com/countersign/countersign/internal/run"
)

// noticeTexts says each notice in English, for clients without a catalogue.
var noticeTexts = map[run.NoticeCode]string{
	run.NoticeIntegritySkipped:  "The stored text of %s is not what was synced; it was left out.",
	run.NoticeDroppedForSize:    "%s did not fit into the fenced block and was left out.",
	run.NoticeProcessSkipped:    "%s is a process and only starts when it is invoked; it was left out.",
	run.NoticeUnreadableProcess: "The process marker of %s cannot be read; it was left out.",
	run.NoticeInstructionGone:   "%s may not instruct any more: %s.",
	run.NoticePreviewMoved:      "What %s would change is no longer what the card showed.",
	run.NoticePinDetached:       "%s is not attached any more; the conversation goes on without it.",
	run.NoticePinConfiguration:  "%s stays behind with the configuration that it was used with.",
	run.NoticeAnswerVoid:        "The answer that was given does not count any more: %s.",
	run.NoticeApprovalExpired:   "Nobody answered by %s; nothing that waited was carried out.",
	run.NoticeCatalogueCut:      "The catalogue is full; %s cannot be loaded in this run.",
	run.NoticeSectionLeftOut:    "%s does not fit into the model's context window and was left out.",
	run.NoticeRequeued:          "The worker that executed the run is gone; it is tried again (%s of %s).",
	run.NoticeProcessEnded:      "The process %s has ended.",
	run.NoticeToolChanged:       "%s is not as it was reviewed any more; it is blocked until an administrator has looked at it.",
	run.NoticeNoChangeMade:      "The run could write and wrote nothing.",
	run.NoticeGuardrailBlocked:  "The guardrail %s ended the run over its %s.",
	run.NoticeGuardrailApproval: "The guardrail %s asks for an approval over the run's %s.",
	run.NoticeSecondApprover:    "The configuration now requires a second approver.",
}

// notice makes a notice whose text fills the code's sentence with the arguments.
func notice(code run.NoticeCode, args ...string) run.Notice {
	filled := make([]any, len(args))
	for i, arg := range args {
		filled[i] = arg
	}
	return run.Notice{Code: code, Args: args, Text: fmt.Sprintf(noticeTexts[code], filled...)}
}
