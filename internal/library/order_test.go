package library_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/world"
)

func TestOrderOfNewSkills(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S4 skills that one sync brings are listed in the order of their paths", func(t *testing.T) {
			f := setUp(t)
			stopped := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
			f.World = world.New(func() time.Time { return stopped }, rand.Reader) // every id is of the same millisecond
			var contents []string
			for range 20 {
				contents = append(contents, file("a skill", "", "Text.\n"))
			}
			f.synced(contents...)
			listed, err := f.ListSkills(f.ctx, f.admin, library.SkillQuery{}, library.Page{Limit: 100})
			f.ok(err)
			var want, got []string
			for _, item := range f.fetcher.fetched.Items {
				want = append(want, item.Identifier)
			}
			for _, d := range listed {
				got = append(got, d.Skill.Identifier)
			}
			if !slices.Equal(got, want) {
				t.Errorf("listed %s", strings.Join(got, " "))
			}
		})
	})
}
