package agent

import (
	"strings"

	"github.com/countersign/countersign/internal/skill"
)

// standingReasons says why a version does not instruct, for people.
var standingReasons = map[skill.Reason]string{
	skill.ReasonNoApproval:      "nobody approved this version from this source",
	skill.ReasonRevoked:         "its approval was revoked",
	skill.ReasonBelowThreshold:  "its source's trust level is below skills.instructionTrustLevel",
	skill.ReasonNotAdmitted:     "its trust level is below skills.minTrustLevel",
	skill.ReasonIntegrityFailed: "its stored text is not what was synced",
	skill.ReasonLegacy:          "it was imported without a digest",
	skill.ReasonBundleChanged:   "its bundled files changed since the approval",
}

func standingText(s skill.Standing) string {
	texts := make([]string, len(s.Reasons))
	for i, reason := range s.Reasons {
		texts[i] = standingReasons[reason]
	}
	return strings.Join(texts, "; ")
}
