package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// TestDigestVectors checks testdata/digests.json, which was computed by another implementation.
func TestDigestVectors(t *testing.T) {
	var table struct {
		Cases []struct {
			Case    string `json:"case"`
			Version struct {
				Name, Description, Body, Support, Process string
				Tools                                     json.RawMessage
			} `json:"version"`
			Canonical    string `json:"canonical"`
			Digest       Digest `json:"digest"`
			BodyChecksum string `json:"bodyChecksum"`
		} `json:"cases"`
	}
	readJSON(t, "testdata/digests.json", &table)
	seen := map[Digest]string{}
	for _, c := range table.Cases {
		t.Run("D2 "+c.Case, func(t *testing.T) {
			v := Version{
				Name: c.Version.Name, Description: c.Version.Description, Body: c.Version.Body,
				Support: SupportStatus(c.Version.Support), Process: Process(c.Version.Process), Tools: toolsFromJSON(t, c.Version.Tools),
			}
			var canonical bytes.Buffer
			v.writeCanonical(&canonical)
			if got := hex.EncodeToString(canonical.Bytes()); got != c.Canonical {
				t.Errorf("canonical form\n got %s\nwant %s", got, c.Canonical)
			}
			if got := v.Digest(); got != c.Digest {
				t.Errorf("digest = %s, want %s", got, c.Digest)
			}
			if got := BodyChecksum(v.Body); got != c.BodyChecksum {
				t.Errorf("D4 body checksum = %s, want %s", got, c.BodyChecksum)
			}
			if parsed, err := ParseDigest(string(v.Digest())); err != nil || parsed != v.Digest() {
				t.Errorf("ParseDigest(%s) = %s, %v", v.Digest(), parsed, err)
			}
			if other, taken := seen[c.Digest]; taken {
				t.Errorf("%s has the digest of %s", c.Case, other)
			}
			seen[c.Digest] = c.Case
		})
	}
}

func TestDigest(t *testing.T) {
	base := Version{Name: "a", Description: "b", Body: "B\n", Support: SupportFull, Tools: NoTools(), Process: ProcessNo}

	t.Run("D1 a frontmatter key that nothing reads does not change the digest", func(t *testing.T) {
		plain := mustParse(t, "---\nname: a\ndescription: b\n---\nB\n")
		more := mustParse(t, "---\nauthor: me\nname: a\nmetadata:\n  version: 2.0\ndescription: \"b\"\n---\nB\n")
		if plain.Version.Digest() != more.Version.Digest() {
			t.Error("the digests differ")
		}
		if plain.RawDigest == more.RawDigest {
			t.Error("the raw digests are equal")
		}
	})
	t.Run("D2 the order and repetition of tools do not matter", func(t *testing.T) {
		a, b := base, base
		a.Tools, b.Tools = Tools{State: ToolsDeclared, Items: []string{"b", "a", "b"}}, DeclareTools("a", "b")
		if a.Digest() != b.Digest() {
			t.Error("the digests differ")
		}
	})
	t.Run("D2 a state that is none of the known ones is hashed as unreadable", func(t *testing.T) {
		a, b := base, base
		a.Tools, a.Process = Tools{}, ""
		b.Tools, b.Process = UnreadableTools(), ProcessUnreadable
		if a.Digest() != b.Digest() {
			t.Error("the digests differ")
		}
	})
	t.Run("D3 a digest of another format is refused by name", func(t *testing.T) {
		digits := strings.Repeat("0", 64)
		for _, text := range []string{"", digits, "2:" + digits, "1:", "1:" + digits[1:], "1:" + digits + "0", "1:" + strings.Repeat("A", 64), "1:" + digits[1:] + "g", " 1:" + digits} {
			if got, err := ParseDigest(text); err == nil || got != "" {
				t.Errorf("ParseDigest(%q) = %q, %v", text, got, err)
			}
		}
	})
	t.Run("D8 a legacy row is compared by the digest of its stored fields", func(t *testing.T) {
		widened := base
		widened.Tools = DeclareTools("Bash")
		if Changed("", base, base) {
			t.Error("an unchanged legacy skill counts as changed")
		}
		if !Changed("", base, widened) {
			t.Error("a frontmatter-only change of a legacy skill does not count")
		}
	})
	t.Run("S7 a stored digest is what an incoming version is compared with", func(t *testing.T) {
		tampered := base
		tampered.Body = "other"
		if Changed(base.Digest(), tampered, base) || !Changed(base.Digest(), base, tampered) {
			t.Error("the stored fields decided instead of the stored digest")
		}
	})
}

func TestSupport(t *testing.T) {
	partial := []string{
		"see references/api.md", "run `scripts/build.sh`", "![x](assets/logo.png)", "./scripts/x", "${SKILL_DIR}/scripts/run.py", "a\n\nb scripts/*.py\n",
		"scripts/<name>.py", "references/.hidden", "(references/übersicht.md)", "../other/assets/x",
	}
	full := []string{
		"", "no files", "the references/ folder", "put it in scripts/.", "myscripts/x.sh", "https://example.com/assets/logo.png",
		"preferences/x", "references / x", "SCRIPTS/x",
	}
	for _, body := range partial {
		t.Run("D1 partial: "+body, func(t *testing.T) {
			if got := SupportOf(body); got != SupportPartial {
				t.Errorf("support = %s", got)
			}
		})
	}
	for _, body := range full {
		t.Run("D1 full: "+body, func(t *testing.T) {
			if got := SupportOf(body); got != SupportFull {
				t.Errorf("support = %s", got)
			}
		})
	}
	t.Run("D1 a web address beside a path does not hide it", func(t *testing.T) {
		for _, line := range []string{"https://x.org/scripts/a and scripts/a", "(https://x.org/scripts/a/assets/b)(assets/b)", "assets/a of https://x.org/assets/a"} {
			if !NamesBundledFile(line) {
				t.Errorf("the path in %q was not seen", line)
			}
		}
		if line := "https://x.org/scripts/a/assets/b and https://x.org/assets/c"; NamesBundledFile(line) {
			t.Errorf("a path was seen in %q", line)
		}
	})
}

func mustParse(tb testing.TB, text string) File {
	tb.Helper()
	file, err := Parse([]byte(text))
	if err != nil {
		tb.Fatalf("parse %q: %v", text, err)
	}
	return file
}

// BenchmarkDigest compares the digest with a plain SHA-256 of the same 32 KiB body: the rest of the canonical form must cost little.
func BenchmarkDigest(b *testing.B) {
	v := Version{Name: "a", Description: "b", Body: strings.Repeat("0123456789abcde\n", 2048), Support: SupportFull, Tools: DeclareTools("Read", "Grep"), Process: ProcessNo}
	b.Run("plain SHA-256", func(b *testing.B) {
		body := []byte(v.Body)
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			sha256.Sum256(body)
		}
	})
	b.Run("version digest", func(b *testing.B) {
		b.SetBytes(int64(len(v.Body)))
		b.ReportAllocs()
		for b.Loop() {
			v.Digest()
		}
	})
}
