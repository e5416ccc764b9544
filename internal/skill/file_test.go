package skill

import (
	"strings"
	"testing"
)

func TestRejectionError(t *testing.T) {
	for _, c := range []struct {
		name string
		err  Rejection
		want string
	}{
		{"S4 a byte offset is said with its line", Rejection{Reason: "control character U+0000", Line: 3, Offset: 32}, "control character U+0000 (line 3, byte 32)"},
		{"S4 a line alone is said", Rejection{Reason: "name missing", Line: 2, Offset: -1}, "name missing (line 2)"},
		{"S4 an unknown place is not invented", Rejection{Reason: "name missing", Offset: -1}, "name missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("error = %q, want %q", got, c.want)
			}
		})
	}
	t.Run("S4 what is quoted in a message is short and whole characters", func(t *testing.T) {
		_, err := ParseDigest(strings.Repeat("é", 500))
		if err == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), `\x`) {
			t.Errorf("error = %v", err)
		}
		if got := clip("éé", 3); got != "é…" {
			t.Errorf("clip = %q", got)
		}
	})
}
