package prompt_test

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/prompt"
)

func TestPartial(t *testing.T) {
	const body = "Read references/a.md first.\nThen run scripts/check.sh.\nUse short sentences.\n\n"
	const note = "\n\n(Files that this instruction names under references/, scripts/ or assets/ are not available here.)"
	section := func(partial bool) []prompt.Message {
		return prompt.Compose(prompt.Input{
			Sections: []prompt.Section{{Name: "House style", Body: body, Partial: partial}}, Messages: user("Go."),
		}).Messages
	}
	whole, partial := section(false), section(true)

	t.Run("L10 an approved text is given to the byte, with one note after it if it is partial", func(t *testing.T) {
		if want := "# Instruction: House style\n\n" + body; whole[0].Text != want {
			t.Errorf("got %q", whole[0].Text)
		}
		if partial[0].Text != whole[0].Text+note {
			t.Errorf("got %q", partial[0].Text)
		}
	})
	t.Run("L10 the note is charged to the budget", func(t *testing.T) {
		var g prompt.Gauge
		without, fits := prompt.Fit(whole, nil, 1000, g)
		if !fits {
			t.Fatalf("%d tokens do not fit", without.Tokens)
		}
		with, fits := prompt.Fit(partial, nil, without.Tokens, g)
		if fits {
			t.Errorf("what fits to the token without the note fits with it: %d and %d", without.Tokens, with.Tokens)
		}
		if got, least := with.Tokens-without.Tokens, len(note)/4; got < least {
			t.Errorf("a note of %d bytes costs %d tokens, want %d or more", len(note), got, least)
		}
	})
	t.Run("L10 lines that refer to bundled files are taken out of fenced text alone", func(t *testing.T) {
		fenced := func(partial bool) string {
			return prompt.Compose(prompt.Input{
				FencedBytes: 24_000, NonceKey: key, Messages: user("Go."),
				Fenced: []prompt.Fenced{{Name: "Reference", Body: body, Partial: partial}},
			}).Messages[0].Text
		}
		for _, line := range []string{"Read references/a.md first.", "Then run scripts/check.sh."} {
			if strings.Contains(fenced(true), line) {
				t.Errorf("%q is in the fenced text of a partial skill", line)
			}
			if !strings.Contains(fenced(false), line) {
				t.Errorf("%q is missing from the fenced text of a whole skill", line)
			}
		}
		if !strings.Contains(fenced(true), "Use short sentences.") {
			t.Error("a line that refers to nothing is gone")
		}
	})
}
