package audit_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/countersign/countersign/internal/audit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// vectors are what another implementation can check itself against.
type vectors struct {
	About       string              `json:"about"`
	Entries     []entryVector       `json:"entries"`
	Roots       []rootVector        `json:"roots"`
	Inclusion   []inclusionVector   `json:"inclusion"`
	Consistency []consistencyVector `json:"consistency"`
	VerifierKey string              `json:"verifierKey"`
	Checkpoint  string              `json:"checkpoint"`
	Trail       string              `json:"trail"`
}

type entryVector struct {
	Canonical string `json:"canonical"`
	Hex       string `json:"canonicalHex"`
	Leaf      string `json:"leafHash"`
}

type rootVector struct {
	Size int    `json:"size"`
	Root string `json:"rootHash"`
}

type inclusionVector struct {
	Index  int64    `json:"index"`
	Size   int64    `json:"treeSize"`
	Hashes []string `json:"hashes"`
}

type consistencyVector struct {
	From   int64    `json:"from"`
	To     int64    `json:"to"`
	Hashes []string `json:"hashes"`
}

// vectorEntries are eight entries that show the form: ids that do and do not apply,
// an empty detail, members that are sorted, characters that are escaped and such
// that are not, numbers, a list, an object.
func vectorEntries() []audit.Entry {
	id := func(n byte) uuid.UUID { return uuid.UUID{0x01, 0x9b, 6: 0x70, 8: 0x80, 15: n} }
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	plain := audit.Entry{ID: id(1), At: at, Event: audit.SettingChanged}
	all := audit.Entry{
		ID: id(2), At: at.Add(time.Microsecond), Event: audit.VersionApproved, Actor: id(10), Source: id(11), Skill: id(12), Run: id(13),
		Digest: "1:" + hex.EncodeToString(bytes.Repeat([]byte{0xab}, 32)),
	}
	out := []audit.Entry{plain, all}
	for n, detail := range []map[string]any{
		{"b": 1, "a": 2, "B": 3, "": 4},
		{"text": "quote \" backslash \\ slash / less < and & ü € 𝄞"},
		{"controls": "tab \t line \n return \r back \b form \f null \x00 delete \x7f", "separators": "\u2028 \u2029"},
		{"int": 9007199254740993, "negative": -1, "float": 0.5, "true": true, "null": nil},
		{"list": []any{"a", 1, []any{}, map[string]any{}}, "object": map[string]any{"z": 1, "y": map[string]any{"x": "w"}}},
		{"invalid": "\xff", "replacement": "\ufffd"},
	} {
		e := plain
		e.ID, e.At, e.Actor, e.Detail = id(byte(3+n)), at.Add(time.Duration(n)*time.Hour), id(10), detail
		out = append(out, e)
	}
	return out
}

func madeVectors(t *testing.T) vectors {
	m := trail(t, 0, 6962)
	m.add(vectorEntries()...)
	log := audit.NewLog(m)
	v := vectors{
		About: "Test vectors of docs/auditing.md: canonical bytes and leaf hash of eight entries, roots of the trees of the first 0 to 8 " +
			"of them, every inclusion and consistency proof, and the trail as a file with its signed checkpoint. Hashes are SHA-256 in hexadecimal.",
		VerifierKey: m.verifier, Checkpoint: m.checkpoint(t).Note, Trail: string(m.export(t, audit.ExportOptions{})),
	}
	for _, e := range m.entries {
		v.Entries = append(v.Entries, entryVector{string(e.Text), hex.EncodeToString(e.Text), hex.EncodeToString(e.LeafHash)})
	}
	for size := int64(0); size <= 8; size++ {
		for from := int64(0); from <= size; from++ {
			c, err := log.Consistency(t.Context(), from, size)
			if err != nil {
				t.Fatal(err)
			}
			v.Consistency = append(v.Consistency, consistencyVector{from, size, hexes(c.Hashes)})
			if from == size {
				v.Roots = append(v.Roots, rootVector{int(size), hex.EncodeToString(c.ToRoot)})
			}
		}
		for index := int64(0); index < size; index++ {
			p, err := log.InclusionAt(t.Context(), index, &size)
			if err != nil {
				t.Fatal(err)
			}
			v.Inclusion = append(v.Inclusion, inclusionVector{index, size, hexes(p.Hashes)})
		}
	}
	return v
}

func hexes(hashes [][]byte) []string {
	out := make([]string, len(hashes))
	for i, h := range hashes {
		out[i] = hex.EncodeToString(h)
	}
	return out
}

func unhex(t *testing.T, texts ...string) [][]byte {
	t.Helper()
	out := make([][]byte, len(texts))
	for i, text := range texts {
		var err error
		if out[i], err = hex.DecodeString(text); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestVectors(t *testing.T) {
	const golden = "testdata/vectors.json"
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(madeVectors(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("U2 what was published as vectors is what the code makes", func(t *testing.T) {
		if !bytes.Equal(kept, text.Bytes()) {
			t.Error("the vectors changed; entries that were recorded no longer verify, unless the form got another name")
		}
	})
	var v vectors
	if err := json.Unmarshal(kept, &v); err != nil {
		t.Fatal(err)
	}
	t.Run("U2 the vectors hold by RFC 6962 and SHA-256 alone", func(t *testing.T) {
		var leaves [][]byte
		for i, e := range v.Entries {
			if hex.EncodeToString([]byte(e.Canonical)) != e.Hex {
				t.Errorf("entry %d: the text is not the bytes", i)
			}
			leaf := naive([][]byte{rfc6962.DefaultHasher.HashLeaf([]byte(e.Canonical))})
			if hex.EncodeToString(leaf) != e.Leaf {
				t.Errorf("entry %d: leaf hash %x, want %s", i, leaf, e.Leaf)
			}
			leaves = append(leaves, leaf)
		}
		for _, r := range v.Roots {
			if got := hex.EncodeToString(naive(leaves[:r.Size])); got != r.Root {
				t.Errorf("size %d: root %s, want %s", r.Size, got, r.Root)
			}
		}
		for _, p := range v.Inclusion {
			if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.Index), uint64(p.Size), leaves[p.Index], unhex(t, p.Hashes...), naive(leaves[:p.Size])); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
		for _, p := range v.Consistency {
			if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(p.From), uint64(p.To), unhex(t, p.Hashes...), naive(leaves[:p.From]), naive(leaves[:p.To])); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
	t.Run("U2 every vector reads back as the entry it was", func(t *testing.T) {
		for i, e := range v.Entries {
			read, err := audit.ParseCanonical([]byte(e.Canonical))
			if err != nil || read.ID != vectorEntries()[i].ID || !bytes.Equal(read.Canonical(), []byte(e.Canonical)) {
				t.Errorf("entry %d: %+v, %v", i, read, err)
			}
		}
	})
}
