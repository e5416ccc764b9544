package guard_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/guard"
)

// The secrets of the tests are put together from parts, so that no scanner of
// repositories takes them for real ones.
var (
	letters = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ0123456789abcdefghij"
	awsKey  = "AKIA" + "IOSFODNN7EXAMPLE"
	jwt     = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + "." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0" + "." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	line64  = strings.Repeat("MIIEvQIBADANBgkq", 4)
	key     = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + line64 + "\n" + line64 + "\nhkiG9w0B\n-----END RSA PRIVATE KEY-----"
	sealed  = "-----BEGIN " + "ENCRYPTED PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123ABCD\n\n" + line64 + "\nab==\n-----END ENCRYPTED PRIVATE KEY-----"
)

// secrets are texts with what must be gone of them, and what must be there instead.
var secrets = []struct{ kind, text, secret string }{
	{"aws_access_key", "id " + awsKey + ", region", awsKey},
	{"password", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
	{"github_token", "use ghp_" + letters[:36] + ".", "ghp_" + letters[:36]},
	{"github_token", "use github_pat_" + letters + "!", "github_pat_" + letters},
	{"gitlab_token", "glpat-" + letters[:20], "glpat-" + letters[:20]},
	{"slack_token", "xoxb-123456789012-" + letters[:24], "xoxb-123456789012-" + letters[:24]},
	{"slack_webhook", "https://hooks.slack.com/services/T00000000/B00000000/" + letters[:24], "T00000000/B00000000/" + letters[:24]},
	{"stripe_key", "sk_live_" + letters[:24], "sk_live_" + letters[:24]},
	{"google_key", "?key=AIza" + letters[:35] + "&x", "AIza" + letters[:35]},
	{"anthropic_key", "sk-ant-api03-" + letters + "-AA", "sk-ant-api03-" + letters + "-AA"},
	{"openai_key", "sk-proj-" + letters, "sk-proj-" + letters},
	{"openai_key", "sk-" + letters[:48], "sk-" + letters[:48]},
	{"jwt", "cookie=" + jwt + "; path=/", jwt},
	{"private_key", "Here:\n" + key + "\nThat was it.", key},
	{"private_key", sealed, sealed},
	{"private_key", strings.ReplaceAll(key, "\n", `\n`), line64},
	{"private_key", `const key = "` + strings.ReplaceAll(key, "\n", "\\n\" +\n  \"") + `";`, line64},
	{"bearer_token", "Authorization: Bearer " + letters[:30], letters[:30]},
	{"bearer_token", "curl -H 'authorization: bearer 0123456789'", "0123456789"},
	{"basic_credentials", "Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==", "dXNlcjpodW50ZXIyaHVudGVyMg"},
	{"connection_password", "postgres://app:hunter2@db.example.org:5432/app", "hunter2"},
	{"connection_password", "amqp://guest:p%40ss:w@rd@mq", "p%40ss:w@rd"},
	{"password", "password=hunter2secret", "hunter2secret"},
	{"password", "DB_PASSWORD: 'Tr0ub4dor&3'", "Tr0ub4dor&3"},
	{"password", `{"clientSecret": "aB3dE5gH7jK9"}`, "aB3dE5gH7jK9"},
	{"password", `{\"api_key\": \"aB3dE5gH7jK9\"}`, "aB3dE5gH7jK9"},
	{"password", `Password := "aB3dE5gH7jK9"`, "aB3dE5gH7jK9"},
	{"password", "X-Api-Key: aB3dE5gH7jK9", "aB3dE5gH7jK9"},
	{"password", "CI_TOKEN=aB3dE5gH7jK9mN1", "aB3dE5gH7jK9mN1"},
	{"password", "secret_key=" + strings.Repeat(letters, 6), letters},
	{"github_token", "GITHUB_TOKEN=ghp_" + letters[:36], "ghp_" + letters[:36]},
	{"countersign_token", "cs_" + strings.Repeat("a2b3c4d5e6", 4), "a2b3c4d5e6"},
}

func TestSecrets(t *testing.T) {
	var r *guard.Redactor = &guard.Redactor{}
	for _, s := range secrets {
		t.Run("M2 "+s.kind+" in "+s.text[:min(len(s.text), 24)], func(t *testing.T) {
			got := r.Text(s.text)
			if strings.Contains(got, s.secret) || !strings.Contains(got, guard.Marker(s.kind)) {
				t.Errorf("got %q", got)
			}
			if again := r.Text(got); again != got {
				t.Errorf("redacted twice it is %q", again)
			}
		})
	}
	t.Run("M2 what stands around a secret stays", func(t *testing.T) {
		for text, want := range map[string]string{
			"a " + awsKey + " b":                                               "a [redacted:aws_access_key] b",
			"postgres://app:hunter2@db/app":                                    "postgres://app:[redacted:connection_password]@db/app",
			`{"password": "hunter2secret"}`:                                    `{"password": "[redacted:password]"}`,
			"Here:\n" + key + "\nThat was it.":                                 "Here:\n[redacted:private_key]\nThat was it.",
			"Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==\r\nAccept: */*": "Authorization: Basic [redacted:basic_credentials]\r\nAccept: */*",
		} {
			if got := r.Text(text); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

func TestHarmlessTexts(t *testing.T) {
	r := &guard.Redactor{}
	image := "data:image/png;base64," + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg", 40) + "=="
	for _, text := range []string{
		"The password must have at least 12 characters, and the token: none.",
		"Password: required, at least 8 characters and 1 digit",
		"550e8400-e29b-41d4-a716-446655440000", "commit 37905c3f4e0b8b0d8b7b2d2f6d6a8f0a1b2c3d4e",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", image,
		"password = os.environ['DB_PASSWORD_2']", "password = getPassword2(user)", "PrivateKey: testRSA2048PrivateKey,", `"?token=" + canary2Text(x)`, "token: ${{ secrets.GITHUB_TOKEN }}", "api_key=<your-api-key-1>",
		"password: user.passwordHash2", "const secret = process.env.CLIENT_SECRET1", "secret_path=/run/secrets/db1", "SECRET_URL=https://example.org/x1",
		"http://localhost:8080/path@2", "mailto:someone@example.org", "https://example.org/?next=a@b", "postgres://$USER:$PASSWORD@host/db", "postgres://user:<password>@host",
		"Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "Authorization: Bearer YOUR_API_TOKEN", "Bearer of bad news, authentication is required", "Basic information about the thing",
		"a file that begins with -----BEGIN PRIVATE KEY----- is a key", "-----BEGIN CERTIFICATE-----\n" + line64 + "\n-----END CERTIFICATE-----",
		"risk-assessment-and-task-force-planning-2", "sk-loading-indicator-with-long-name-1", "nextPageToken: CAUQAA3bC4dE5f", "max_tokens: 4096", "eyJust text.",
		"Das Passwort: geheim", "1. one\n2. two --- and -----", "::::====----", "[redacted:password] password=[redacted:password]",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("M2 %q became %q", text, got)
		}
	}
}

// corpusVariable names a folder of public skill files, which stay outside the repository.
const corpusVariable = "COUNTERSIGN_CORPUS"

// TestRealSkillFiles reads what people have published. Four of their texts hold what would be
// a password if it were not an example.
func TestRealSkillFiles(t *testing.T) {
	folder := os.Getenv(corpusVariable)
	if folder == "" && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set: it names the folder of public skills that this test must read", corpusVariable)
	}
	if folder == "" {
		t.Logf("%s is not set: the corpus was not read", corpusVariable)
		return
	}
	r := &guard.Redactor{}
	files, redacted := 0, 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		got := r.Text(string(text))
		redacted += strings.Count(got, "[redacted:") - strings.Count(string(text), "[redacted:")
		return nil
	})
	if err != nil || files < 300 || redacted > 4 {
		t.Errorf("M2 %d files, %d times redacted, %v", files, redacted, err)
	}
}

func TestKnownSecrets(t *testing.T) {
	r := guard.New("plain-as-day", `with "quotes" & more`, "short", "plain-as-day-and-longer", "")
	t.Run("M2 a secret of the installation is replaced wherever it stands", func(t *testing.T) {
		for text, want := range map[string]string{
			"xxplain-as-dayxx":                     "xx[redacted:known_secret]xx",
			"plain-as-day-and-longer":              "[redacted:known_secret]",
			"plain-as-day-and":                     "[redacted:known_secret]-and",
			`"with \"quotes\" \u0026 more"`:        `"[redacted:known_secret]"`,
			"?k=with+%22quotes%22+%26+more&":       "?k=[redacted:known_secret]&",
			"short":                                "short",
			"password=plain-as-day":                "password=[redacted:known_secret]",
			"https://me:plain-as-day@example.org/": "https://me:[redacted:connection_password]@example.org/",
		} {
			if got := r.Text(text); got != want {
				t.Errorf("%q became %q, not %q", text, got, want)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	r := guard.New(`odd "secret"`)
	t.Run("M2 arguments stay JSON and keep every byte that is no secret", func(t *testing.T) {
		for raw, want := range map[string]string{
			`{ "a":1.50, "password" : "hunter2secret","b":"x\ny"}`: `{ "a":1.50, "password" : "[redacted:password]","b":"x\ny"}`,
			`{"text":"say \"password\": \"hunter22\\\"secret\""}`:  `{"text":"say \"password\": \"[redacted:password]\\\"secret\""}`,
			`{"k":"` + strings.ReplaceAll(key, "\n", `\n`) + `"}`:  `{"k":"[redacted:private_key]"}`,
			`["odd \"secret\"", {"` + awsKey + `": null}]`:         `["[redacted:known_secret]", {"[redacted:aws_access_key]": null}]`,
			`{"page_token":"CAUQAA3bC4dE5f","n":"<&>"}`:            `{"page_token":"CAUQAA3bC4dE5f","n":"<&>"}`,
			`not json ` + awsKey:                                   `not json [redacted:aws_access_key]`,
		} {
			got := string(r.JSON(json.RawMessage(raw)))
			if got != want {
				t.Errorf("%s became %s, not %s", raw, got, want)
			}
			if any := r.Any(raw); any != want {
				t.Errorf("as a text of any kind it became %s", any)
			}
		}
	})
}

// pieces cuts a text anywhere.
func pieces(t *rapid.T, text string) []string {
	var out []string
	for len(text) > 0 {
		n := rapid.IntRange(1, min(len(text), rapid.SampledFrom([]int{1, 3, 12, 200}).Draw(t, "most"))).Draw(t, "cut")
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func TestStreams(t *testing.T) {
	told := "Told-Secret-0123456789"
	r := guard.New(told)
	around := []string{" ", "\n", "and so on ", "=", ": ", "\"", "password=", "Authorization: Bearer ", "A", "eyJ", "-----", "https://a:", "@", "AKIA", "sk-", "=== ", "日本 ", "MIIEvQIBADANBgkqhkiG9w0B", "ghp", `\n`, "-----BEGIN PRIVATE KEY-----\n"}
	property := func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "parts") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				text.WriteString(rapid.SampledFrom(secrets).Draw(t, "secret").text)
			case 1:
				text.WriteString(told)
			case 2:
				text.WriteString(rapid.SampledFrom(around).Draw(t, "around"))
			default:
				text.WriteString(rapid.StringMatching(`[a-zA-Z0-9_=:@/. -]{0,30}`).Draw(t, "words"))
			}
		}
		whole := text.String()
		want := r.Text(whole)
		s := r.Stream()
		out := ""
		for _, piece := range pieces(t, whole) {
			out += s.Write(piece)
			if !strings.HasPrefix(want, out) {
				t.Fatalf("M2 of %q the stream tells %q, and the whole text is %q", whole, out, want)
			}
			if s.Held() > guard.HoldBack+len(told) {
				t.Fatalf("M2 %d bytes are held back", s.Held())
			}
		}
		if out += s.Close(); out != want {
			t.Fatalf("M2 %q became %q, and in pieces %q", whole, want, out)
		}
		if strings.Contains(out, told) || strings.Contains(out, awsKey+" ") {
			t.Fatalf("M2 a secret is still there: %q", out)
		}
	}
	t.Run("M2 a text in pieces comes out as the whole one, and nothing of a secret ever leaves", func(t *testing.T) {
		rapid.Check(t, property)
	})
	t.Run("M2 no part of a secret leaves before it is known to be one", func(t *testing.T) {
		for _, one := range secrets {
			begin := strings.Index(one.text, one.secret)
			if one.kind == "private_key" {
				begin = strings.Index(one.text, "-----BEGIN")
			}
			s, out := r.Stream(), ""
			for i := range len(one.text) {
				out += s.Write(one.text[i : i+1])
				if before, _, _ := strings.Cut(out, "[redacted:"); !strings.HasPrefix(one.text[:begin], before) {
					t.Errorf("%s: %q left", one.kind, before[begin:])
					break
				}
			}
		}
	})
	t.Run("M2 a harmless text is only held back where a secret could begin", func(t *testing.T) {
		s, out := r.Stream(), ""
		const text = "Prices rose by 3 %, and the editor asks what else to write about the opening hours."
		for i := range len(text) {
			out += s.Write(text[i : i+1])
			if s.Held() > 24 {
				t.Fatalf("%d bytes are held back after %q", s.Held(), out)
			}
		}
		if out += s.Close(); out != text {
			t.Errorf("got %q", out)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, s := range secrets {
		f.Add(s.text, 7)
	}
	r := guard.New("Told-Secret-0123456789")
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = 1 + max(cut, -cut)%64
		want, s, out := r.Text(text), r.Stream(), ""
		for len(text) > 0 {
			n := min(cut, len(text))
			out += s.Write(text[:n])
			text = text[n:]
		}
		if out += s.Close(); out != want {
			t.Errorf("in pieces %q, whole %q", out, want)
		}
		if again := r.JSON(json.RawMessage(want)); json.Valid([]byte(want)) && !json.Valid(again) {
			t.Errorf("%q is no JSON any more", again)
		}
	})
}

// BenchmarkText compares redacting with reading every byte once.
func BenchmarkText(b *testing.B) {
	prose := strings.Repeat("The editor of the page asks for shorter opening hours: Monday to Friday, 9 to 5. See https://example.org/a=b for more.\n", 1000)
	r := guard.New("Told-Secret-0123456789", "another-one-of-them")
	began := time.Now()
	const scans = 200
	for range scans {
		n := 0
		for i := range len(prose) {
			if prose[i] == '\n' {
				n++
			}
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
	plain := float64(time.Since(began).Nanoseconds()) / scans
	b.SetBytes(int64(len(prose)))
	for b.Loop() {
		if got := r.Text(prose); len(got) != len(prose) {
			b.Fatal(len(got))
		}
	}
	b.ReportMetric(plain/(float64(b.Elapsed().Nanoseconds())/float64(b.N)), "of-a-plain-scan")
}
