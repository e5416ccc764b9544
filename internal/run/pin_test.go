package run_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/run"
)

func TestPins(t *testing.T) {
	a, b := uuid.UUID{1}, uuid.UUID{2}
	pins := run.Pins{{Skill: a, Way: run.WayAlways}, {Skill: b, Way: run.WayInvoked, Process: true}}
	t.Run("P1 a run with a process pin is a process run", func(t *testing.T) {
		if p, is := pins.Process(); !is || p.Skill != b {
			t.Errorf("got %v %v", p, is)
		}
	})
	t.Run("P3 a stopped run keeps the pins that hold", func(t *testing.T) {
		rest := pins.Without(b)
		if _, is := rest.Process(); is || len(rest) != 1 || rest[0].Skill != a {
			t.Errorf("got %v", rest)
		}
		if len(pins) != 2 {
			t.Error("the original was changed")
		}
	})
}
