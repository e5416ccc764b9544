package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/run"
)

func TestRescue(t *testing.T) {
	t.Run("R8 what becomes of a run whose worker is gone is as the table says", func(t *testing.T) {
		var b strings.Builder
		for attempts := range 5 {
			for bits := range 2 * 3 * 3 {
				writes := []run.Write{run.NoWrite, run.Repeatable, run.Once}
				l := run.Lost{Attempts: attempts, Answered: bits >= 9, Fence: writes[bits/3%3], Wrote: writes[bits%3]}
				end, wait := run.Rescue(l)
				fmt.Fprintf(&b, "attempts=%d answered=%-5v fence=%-10s wrote=%-10s  ", l.Attempts, l.Answered, l.Fence, l.Wrote)
				if end != "" {
					fmt.Fprintf(&b, "%s\n", end)
				} else {
					fmt.Fprintf(&b, "again in %s\n", wait)
				}
			}
		}
		golden(t, "testdata/rescue.golden", b.String())
	})
	t.Run("R8 the wait doubles from 30 seconds to ten minutes", func(t *testing.T) {
		for n, want := range []int{30, 60, 120, 240, 480, 600, 600, 600} {
			if got := run.Backoff(n); got != time.Duration(want)*time.Second {
				t.Errorf("after %d: %s", n, got)
			}
		}
		if got := run.Backoff(1 << 30); got != 10*time.Minute {
			t.Errorf("far out: %s", got)
		}
	})
}
