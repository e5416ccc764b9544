package guard_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/guard"
)

func TestLog(t *testing.T) {
	var out bytes.Buffer
	var current guard.Current
	current.Always("the-administrators-token")
	log := slog.New(current.Handler(slog.NewTextHandler(&out, nil)))
	t.Run("M2 nothing is logged with a secret in it, wherever it stands", func(t *testing.T) {
		current.Tell([]string{"the-sources-token"})
		log.With("with", awsKey).WithGroup("g").Error("asked "+awsKey, "error", fmt.Errorf("at: %w", errors.New("the-sources-token")), "n", 7,
			slog.Group("h", "password", "hunter2secret"), "token", "the-administrators-token")
		got := out.String()
		for _, secret := range []string{awsKey, "the-sources-token", "hunter2secret", "the-administrators-token"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s is in %s", secret, got)
			}
		}
		for _, kept := range []string{"asked [redacted:aws_access_key]", "with=[redacted:aws_access_key]", `g.error="at: [redacted:known_secret]"`, "g.n=7", "g.h.password=[redacted:password]"} {
			if !strings.Contains(got, kept) {
				t.Errorf("%s is not in %s", kept, got)
			}
		}
	})
	t.Run("M2 a secret that was taken away is one no more, and the fixed ones stay", func(t *testing.T) {
		current.Tell(nil)
		if got := current.Redactor().Text("the-sources-token the-administrators-token"); got != "the-sources-token [redacted:known_secret]" {
			t.Errorf("%q", got)
		}
	})
}
