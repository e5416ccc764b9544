package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Verify is what docs/notifications.md shows to receivers who write Go.
func Verify(secret string, h http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	at, unread := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || unread != nil || math.Abs(time.Since(time.Unix(at, 0)).Seconds()) > 300 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + string(body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(want), []byte(h.Get("webhook-signature")))
}

const secretOfDocs = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"

// signed are the headers of a post of a body, some time ago.
func signed(body string, ago time.Duration) http.Header {
	at := strconv.FormatInt(time.Now().Add(-ago).Unix(), 10)
	h := http.Header{}
	h.Set("webhook-id", "ndl_1")
	h.Set("webhook-timestamp", at)
	h.Set("webhook-signature", Signature(secretOfDocs, "ndl_1", at, body))
	return h
}

// shown is the code that docs/notifications.md shows in a language.
func shown(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	code, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("no %s is shown", language)
	}
	return code
}

func TestReceivers(t *testing.T) {
	const body = `{"type":"ping"}`
	forged := signed(body, 0)
	forged.Set("webhook-id", "ndl_2")
	tests := []struct {
		name, body string
		header     http.Header
		ok         bool
	}{
		{"what was sent", body, signed(body, 0), true},
		{"another body", `{"type":"pong"}`, signed(body, 0), false},
		{"another id", body, forged, false},
		{"an old one", body, signed(body, time.Hour), false},
		{"one from the future", body, signed(body, -time.Hour), false},
		{"none", body, http.Header{}, false},
	}
	t.Run("the Go that is shown is the Go that is tested", func(t *testing.T) {
		source, err := os.ReadFile("receiver_test.go")
		if err != nil {
			t.Fatal(err)
		}
		if code := shown(t, "go"); !strings.Contains(string(source), code) {
			t.Errorf("docs/notifications.md shows another function:\n%s", code)
		}
		for _, c := range tests {
			if Verify(secretOfDocs, c.header, []byte(c.body)) != c.ok {
				t.Errorf("%s: not %v", c.name, c.ok)
			}
		}
	})
	t.Run("the JavaScript that is shown takes what is sent and nothing else", func(t *testing.T) {
		code := shown(t, "js")
		for _, c := range tests {
			script := code + `
const headers = {'webhook-id': process.argv[2] ?? '', 'webhook-timestamp': process.argv[3] ?? '', 'webhook-signature': process.argv[4] ?? ''};
console.log(verify(process.argv[1], headers, process.argv[5]));`
			out, err := exec.Command("node", "--input-type=module", "-e", script, "--", secretOfDocs,
				c.header.Get("webhook-id"), c.header.Get("webhook-timestamp"), c.header.Get("webhook-signature"), c.body).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != strconv.FormatBool(c.ok) {
				t.Errorf("%s: %s, %v", c.name, out, err)
			}
		}
	})
}
