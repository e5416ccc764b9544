package run_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

func TestAllowList(t *testing.T) {
	tests := []struct {
		name string
		in   []skill.Tools
		want []string
	}{
		{"T1 no skill restricts nothing", nil, nil},
		{"T1 no declaration restricts nothing", []skill.Tools{skill.NoTools(), skill.NoTools()}, nil},
		{"T1 a lone empty declaration allows no tool", []skill.Tools{skill.NoTools(), skill.DeclareTools()}, []string{}},
		{"S5 an unreadable declaration grants nothing and still restricts", []skill.Tools{skill.UnreadableTools()}, []string{}},
		{"T1 declarations add up", []skill.Tools{skill.DeclareTools("b", "a"), skill.NoTools(), skill.DeclareTools("a", "c")}, []string{"a", "b", "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run.AllowList(tt.in)
			if !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
				t.Errorf("got %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestShrink(t *testing.T) {
	t.Run("T3 null imposes nothing", func(t *testing.T) {
		if got := run.Shrink(nil, []string{"a"}); !slices.Equal(got, []string{"a"}) {
			t.Errorf("stored null: %v", got)
		}
		if got := run.Shrink([]string{"a"}, nil); !slices.Equal(got, []string{"a"}) {
			t.Errorf("live null: %v", got)
		}
	})
	t.Run("T3 a resume never gains a tool", func(t *testing.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		rapid.Check(t, func(t *rapid.T) {
			stored := rapid.SliceOf(name).Draw(t, "stored")
			live := rapid.SliceOf(name).Draw(t, "live")
			if stored == nil {
				stored = []string{}
			}
			got := run.Shrink(stored, live)
			if got == nil {
				t.Fatal("a restriction vanished")
			}
			for _, g := range got {
				if !slices.Contains(stored, g) {
					t.Fatalf("%s was gained", g)
				}
			}
		})
	})
}
