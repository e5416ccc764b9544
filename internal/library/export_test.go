package library

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/skill"
)

// Tampered writes a body past every use case, as somebody with the database at hand
// could.
func Tampered(id uuid.UUID, body string) change.Change {
	return change.Change{Updates: []change.Update{{Table: skillsTable, ID: id, Set: []change.Value{skillBody.To(body)}}}}
}

// Legacy makes a row as an older installation left it: without a digest.
func Legacy(id uuid.UUID, body string) change.Change {
	return change.Change{Updates: []change.Update{{
		Table: skillsTable, ID: id, Set: []change.Value{skillDigest.To(""), skillBody.To(body), skillBodyChecksum.To(skill.BodyChecksum(body))},
	}}}
}

// Moved puts a skill into another source, as an administrator with the database at
// hand could.
func Moved(id, source uuid.UUID) change.Change {
	return change.Change{Updates: []change.Update{{Table: skillsTable, ID: id, Set: []change.Value{skillSourceID.To(source)}}}}
}

// Tables that a change touches, for tests that look at what a use case meant to do.
func Touches(c change.Change, table change.Table) bool {
	for _, i := range c.Inserts {
		if i.Table == table {
			return true
		}
	}
	for _, u := range c.Updates {
		if u.Table == table {
			return true
		}
	}
	return false
}

// Approvals and Skills are tables' names for Touches.
const (
	Approvals = approvalsTable
	Skills    = skillsTable
)

// Raised raises a skill's counter, as some other approval would.
func Raised(s Skill) change.Change {
	return change.Change{Updates: []change.Update{{Table: skillsTable, ID: s.ID, Set: []change.Value{skillCounter.To(s.Counter + 1)}}}}
}

// Attempts is how often a use case judges.
const Attempts = attempts
