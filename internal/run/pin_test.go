package run_test

import (
	"slices"
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

func TestDerive(t *testing.T) {
	attached, detached, forced, also := uuid.UUID{1}, uuid.UUID{2}, uuid.UUID{3}, uuid.UUID{4}
	pins := run.Pins{
		{Skill: detached, Way: run.WayAlways},
		{Skill: attached, Way: run.WayLoaded, Process: true},
		{Skill: forced, Way: run.WayForced},
		{Skill: also, Way: run.WayInvoked, Forced: true},
	}
	is := func(id uuid.UUID) bool { return id == attached }
	skills := func(pins run.Pins) (ids []uuid.UUID) {
		for _, p := range pins {
			ids = append(ids, p.Skill)
		}
		return ids
	}
	t.Run("P4 P8 what is attached or was forced in the lineage is taken over, in order", func(t *testing.T) {
		kept, dropped := pins.Derive(true, is)
		if !slices.Equal(skills(kept), []uuid.UUID{attached, forced, also}) || !slices.Equal(skills(dropped), []uuid.UUID{detached}) {
			t.Errorf("kept %v, dropped %v", kept, dropped)
		}
		for _, p := range kept {
			if !p.Derived {
				t.Errorf("%v does not tell that it was taken over", p)
			}
		}
		if _, process := kept.Process(); !process || pins[1].Derived {
			t.Error("the pins of the run before were changed, or the process is lost")
		}
	})
	t.Run("P8 another configuration takes nothing over", func(t *testing.T) {
		if kept, dropped := pins.Derive(false, is); len(kept) != 0 || len(dropped) != len(pins) {
			t.Errorf("kept %v, dropped %v", kept, dropped)
		}
	})
}
