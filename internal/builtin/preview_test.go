package builtin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff/lcs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

type fields = map[string]any

func (s *site) preview(t *testing.T, name string, args fields) []string {
	t.Helper()
	text, err := compact(args)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := s.tools.Preview(context.Background(), name, s.call(editor, text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.tools.Preview(context.Background(), name, s.call(editor, text))
	if diff := cmp.Diff(lines, again); diff != "" || err != nil {
		t.Error("not deterministic", diff, err)
	}
	return lines
}

func TestPreview(t *testing.T) {
	t.Run("G7 an update shows current and proposed, field by field in the table's order", func(t *testing.T) {
		s := newSite(t)
		want := []string{
			"change element intro “Helo” on page home",
			"kind: unchanged",
			"header: “Helo” → “Hello”",
			"text: “We bake <bread> & cake.” → “We bake.⏎Daily.”",
			"link: (empty) → “/cakes”",
		}
		got := s.preview(t, "update_element", fields{"id": "intro", "fields": fields{
			"link": "/cakes", "text": "We bake.\nDaily.", "header": "Hello", "kind": "text",
		}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("G7 flags and cleared fields are shown as what they are", func(t *testing.T) {
		s := newSite(t)
		want := []string{"change page home “Home”", "description: “Welcome” → (empty)", "noIndex: (empty) → true"}
		got := s.preview(t, "update_page_metadata", fields{"id": "home", "fields": fields{"noIndex": true, "description": ""}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("G7 a draft shows where it will stand and what it will hold", func(t *testing.T) {
		s := newSite(t)
		want := []string{"new hidden element at the end of page home “Home”", "header: (empty) → “News”"}
		if diff := cmp.Diff(want, s.preview(t, "create_element_draft", fields{"pageId": "home", "fields": fields{"header": "News"}})); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("G7 a card spells out what would not be seen", func(t *testing.T) {
		s := newSite(t)
		got := s.preview(t, "update_element", fields{"id": "intro", "fields": fields{"header": "Pay\u202eevil\u00a0\u200bx\U000e0161\u3164"}})
		if want := `header: “Helo” → “Pay\u{202E}evil\u{00A0}\u{200B}x\u{E0161}\u{3164}”`; got[1] != want {
			t.Errorf("got %s", got[1])
		}
	})
}

func TestPreviewOfLongText(t *testing.T) {
	t.Run("G7 a change in a long text is shown with what stands around it", func(t *testing.T) {
		s := newSite(t)
		long := strings.Repeat("All work and no play. ", 100)
		before := long + "We recieve guests. " + long + "Open on mondays. " + long
		after := long + "We receive guests. " + long + "Open on Mondays. " + long
		s.do(editor, "update_element", mustJSON(t, fields{"id": "intro", "fields": fields{"text": before}}))
		got := s.preview(t, "update_element", fields{"id": "intro", "fields": fields{"text": after}})
		want := []string{
			"change element intro “Helo” on page home",
			fmt.Sprintf("text: 6636 characters [%s] → 6636 characters [%s]", tool.Fingerprint(before), tool.Fingerprint(after)),
			"  “no play. We recieve guests. All work” → “no play. We receive guests. All work”",
			"  “play. Open on mondays. All work and” → “play. Open on Mondays. All work and”",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("G7 new long text is shown as a whole", func(t *testing.T) {
		s := newSite(t)
		text := strings.Repeat("0123456789", 120)
		got := s.preview(t, "create_element_draft", fields{"pageId": "home", "fields": fields{"text": text}})
		var shown strings.Builder
		for _, line := range got[2:] {
			shown.WriteString(strings.TrimSuffix(strings.TrimPrefix(line, "  “"), "”"))
		}
		if shown.String() != text || len(got) != 5 {
			t.Errorf("%d lines: %q", len(got), got)
		}
	})

	t.Run("G7 a passage that is rewritten shows both its sides whole", func(t *testing.T) {
		s := newSite(t)
		before, after := strings.Repeat("old ", 200), strings.Repeat("new ", 250)
		s.do(editor, "update_element", mustJSON(t, fields{"id": "intro", "fields": fields{"text": before}}))
		sides := map[string]string{}
		for _, line := range s.preview(t, "update_element", fields{"id": "intro", "fields": fields{"text": after}})[2:] {
			mark, text, _ := strings.Cut(strings.TrimSuffix(line, "”"), "“")
			sides[mark] += text
		}
		if diff := cmp.Diff(map[string]string{"  − ": before, "  + ": after}, sides); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPreviewBinds(t *testing.T) {
	t.Run("R12 a preview moves with the current text, wherever in it the change is", func(t *testing.T) {
		s := newSite(t)
		words := strings.Repeat("word ", 2000)
		texts := []string{words + "end", "Word " + words[5:] + "end", words + "END"}
		seen := map[string]bool{}
		for _, text := range texts {
			s.do(editor, "update_element", mustJSON(t, fields{"id": "intro", "fields": fields{"text": text}}))
			got := s.preview(t, "update_element", fields{"id": "intro", "fields": fields{"text": words + "the end"}})
			seen[strings.Join(got, "\n")] = true
		}
		if len(seen) != len(texts) {
			t.Errorf("%d texts gave %d previews", len(texts), len(seen))
		}
	})

	t.Run("G7 a preview is made under the initiator's rights", func(t *testing.T) {
		s := newSite(t)
		for _, c := range []struct {
			args string
			kind fault.Kind
		}{
			{`{"id":"intro","fields":{"header":"x"}}`, fault.Forbidden},
			{`{"id":"members","fields":{"header":"x"}}`, fault.NotFound},
		} {
			lines, err := s.tools.Preview(context.Background(), "update_element", s.call(reader, c.args))
			if !fault.Is(err, c.kind) || lines != nil {
				t.Errorf("%s: got %q, %v", c.args, lines, err)
			}
		}
	})
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := compact(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWordDifference(t *testing.T) {
	t.Run("G7 passages account for every word that differs", func(t *testing.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ü", " ", "\n", "  "}), 0, 60).Draw(t, "words"), "")
		})
		rapid.Check(t, func(t *rapid.T) {
			from, to := text.Draw(t, "from"), text.Draw(t, "to")
			a, b := words(from), words(to)
			if strings.Join(a, "") != from {
				t.Fatal("words are not the text")
			}
			var made strings.Builder
			at := 0
			for _, d := range merged(lcs.DiffLines(a, b)) {
				made.WriteString(strings.Join(a[at:d.Start], ""))
				made.WriteString(strings.Join(b[d.ReplStart:d.ReplEnd], ""))
				at = d.End
			}
			made.WriteString(strings.Join(a[at:], ""))
			if made.String() != to {
				t.Fatalf("the passages make %q of %q, not %q", made.String(), from, to)
			}
		})
	})

	t.Run("G7 every field that a tool may set has a line", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			table := rapid.SampledFrom([]string{content.PageTable, content.ElementTable}).Draw(t, "table")
			declared, err := content.TableNamed(table)
			if err != nil {
				t.Fatal(err)
			}
			f := rapid.SampledFrom(declared.Fields).Draw(t, "field")
			from, to := rapid.String().Draw(t, "from"), rapid.String().Draw(t, "to")
			lines := linesOf(content.FieldChange{Field: f, From: from, To: to})
			if len(lines) == 0 || !strings.HasPrefix(lines[0], f.Name+": ") {
				t.Fatalf("got %q", lines)
			}
			if (from == to) != (lines[0] == f.Name+": unchanged") {
				t.Fatalf("%q → %q gave %q", from, to, lines)
			}
		})
	})
}
