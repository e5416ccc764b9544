package tool

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// full is a success with every member set, which the test asserts of itself, so that
// a member added later has to be thought of here.
func full(t *testing.T) Result {
	r := Result{
		Text: strings.Repeat("x", 2*MaxResultBytes), Token: "token",
		Write:                &Write{Target: Record{Table: "page", ID: "home"}, Kind: "update", Completeness: Partial},
		Report:               &Report{Progress: &Progress{Position: 1, Total: 2}},
		HookFailedAfterWrite: true,
	}
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "IsError" && v.Field(i).IsZero() {
			t.Fatalf("the test sets no %s", name)
		}
	}
	return r
}

func TestBounded(t *testing.T) {
	t.Run("G5 bounding a success keeps every other member", func(t *testing.T) {
		before := full(t)
		after := before.Bounded()
		if len(after.Text) > MaxResultBytes || !strings.HasSuffix(after.Text, "[cut: the whole text has 100000 bytes]") {
			t.Errorf("%d bytes ending in %q", len(after.Text), after.Text[len(after.Text)-60:])
		}
		before.Text, after.Text = "", ""
		if diff := cmp.Diff(before, after); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("G5 an error carries neither write nor hook flag", func(t *testing.T) {
		r := full(t)
		r.IsError = true
		want := Result{IsError: true, Token: "token"}
		got := r.Bounded()
		got.Text = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("G5 text is at most 50,000 bytes of valid UTF-8, whatever it was", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			unit := rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "unit")
			s := strings.Repeat(string(unit), rapid.IntRange(0, MaxResultBytes/len(unit)+5).Draw(t, "times"))
			got := Result{Text: s}.Bounded().Text
			if len(got) > MaxResultBytes || !utf8.ValidString(got) {
				t.Fatalf("%d bytes, valid=%v", len(got), utf8.ValidString(got))
			}
			if utf8.ValidString(s) && len(s) <= MaxResultBytes && got != s {
				t.Fatal("text within the bounds was changed")
			}
			if again := (Result{Text: got}).Bounded().Text; again != got {
				t.Fatal("bounding twice is not bounding once")
			}
		})
	})
}

func TestBoundPreview(t *testing.T) {
	t.Run("G7 at most 20 lines of at most 500 characters, on one line each", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				return strings.Repeat(rapid.String().Draw(t, "unit"), rapid.IntRange(0, 200).Draw(t, "times"))
			}), 0, 30).Draw(t, "lines")
			got := BoundPreview(lines)
			if len(got) > MaxPreviewLines {
				t.Fatalf("%d lines", len(got))
			}
			for _, line := range got {
				if utf8.RuneCountInString(line) > MaxPreviewCharacters || strings.ContainsAny(line, "\n\r") || !utf8.ValidString(line) {
					t.Fatalf("line %q", line)
				}
			}
			if diff := cmp.Diff(got, BoundPreview(lines)); diff != "" {
				t.Fatal(diff)
			}
		})
	})
	t.Run("R12 previews that differ only where they are cut stay different", func(t *testing.T) {
		long := func(end string) []string { return []string{strings.Repeat("x", 2000) + end} }
		if cmp.Equal(BoundPreview(long("a")), BoundPreview(long("b"))) {
			t.Error("two long lines became one")
		}
		many := func(end string) []string {
			lines := make([]string, 30)
			for i := range lines {
				lines[i] = fmt.Sprint("line ", i)
			}
			lines[29] += end
			return lines
		}
		if a := BoundPreview(many("a")); cmp.Equal(a, BoundPreview(many("b"))) || !strings.HasPrefix(a[19], "… and 11 more lines [") {
			t.Errorf("the last line is %q", a[19])
		}
	})
	t.Run("G7 twenty lines are not cut", func(t *testing.T) {
		lines := strings.Split(strings.Repeat("a\n", 19)+"a", "\n")
		if diff := cmp.Diff(lines, BoundPreview(lines)); diff != "" {
			t.Error(diff)
		}
	})
}
