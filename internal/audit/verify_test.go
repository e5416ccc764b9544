package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
)

func TestVerifyIntact(t *testing.T) {
	t.Run("U2 a trail of any size verifies", func(t *testing.T) {
		for _, n := range sizes {
			m := trail(t, n, 1)
			report, err := audit.Verify(bytes.NewReader(m.export(t, audit.ExportOptions{})), m.key(t), "")
			if err != nil || report.From != 0 || report.To != int64(n) || !bytes.Equal(report.Root, naive(m.leaves)) || report.Older != -1 {
				t.Errorf("size %d: %+v, %v", n, report, err)
			}
		}
	})
	t.Run("U2 any part of it verifies", func(t *testing.T) {
		m := trail(t, 700, 2)
		for _, from := range []int64{0, 1, 255, 256, 300, 512, 699, 700} {
			for _, to := range []int64{0, 1, 256, 257, 511, 512, 700} {
				if from > to {
					continue
				}
				report, err := audit.Verify(bytes.NewReader(m.export(t, audit.ExportOptions{From: &from, To: &to})), m.key(t), "")
				if err != nil || report.From != from || report.To != to || report.Size != 700 {
					t.Errorf("%d to %d: %+v, %v", from, to, report, err)
				}
			}
		}
	})
	t.Run("U2 an older checkpoint of any size is found to be its beginning", func(t *testing.T) {
		m := trail(t, 0, 3)
		var kept []audit.Signed
		for _, e := range made(600, 3) {
			kept = append(kept, m.checkpoint(t))
			m.add(e)
		}
		from := int64(300)
		whole := m.export(t, audit.ExportOptions{})
		for size := 0; size < len(kept); size += 29 {
			old := kept[size].Note
			if report, err := audit.Verify(bytes.NewReader(whole), m.key(t), old); err != nil || report.Older != int64(size) {
				t.Errorf("size %d in the whole: %+v, %v", size, report, err)
			}
			part := m.export(t, audit.ExportOptions{From: &from, Older: old})
			for _, given := range []string{"", old} {
				if report, err := audit.Verify(bytes.NewReader(part), m.key(t), given); err != nil || report.Older != int64(size) {
					t.Errorf("size %d in a part: %+v, %v", size, report, err)
				}
			}
		}
		_, err := audit.Verify(bytes.NewReader(m.export(t, audit.ExportOptions{From: &from})), m.key(t), kept[1].Note)
		var failure *audit.Failure
		if err == nil || errors.As(err, &failure) {
			t.Errorf("a part without the proof is no proof, and no failure: %v", err)
		}
	})
	t.Run("U2 verifying keeps one line at a time, and reads however the file comes", func(t *testing.T) {
		m := trail(t, 300, 4)
		m.add(made(1, 5)[0].With("long", strings.Repeat("x", 200_000)))
		if _, err := audit.Verify(iotest.OneByteReader(bytes.NewReader(m.export(t, audit.ExportOptions{}))), m.key(t), ""); err != nil {
			t.Error(err)
		}
		broken := io.MultiReader(bytes.NewReader(m.export(t, audit.ExportOptions{})[:5000]), iotest.ErrReader(errors.New("the disk is gone")))
		if _, err := audit.Verify(broken, m.key(t), ""); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("a file that cannot be read: %v", err)
		}
	})
}

func TestExport(t *testing.T) {
	m := trail(t, 600, 1)
	_, _ = m.RemoveAuditEntries(t.Context(), 0)
	at := func(n int64) *int64 { return &n }
	log := audit.NewLog(m)
	t.Run("U2 what cannot be exported is bad input", func(t *testing.T) {
		foreign := trail(t, 5, 2).checkpoint(t).Note
		later := trail(t, 601, 1).checkpoint(t).Note // the same key
		for name, o := range map[string]audit.ExportOptions{
			"beyond the end":     {To: at(601)},
			"backwards":          {From: at(6), To: at(5)},
			"below 0":            {From: at(-1)},
			"another trail's":    {Older: foreign},
			"a later checkpoint": {Older: later},
			"no checkpoint":      {Older: "x"},
		} {
			if err := log.Export(t.Context(), io.Discard, o); fault.KindOf(err) != fault.BadInput {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("U3 what was removed is said to be", func(t *testing.T) {
		m := trail(t, 600, 1)
		m.checkpoint(t)
		if _, err := m.RemoveAuditEntries(t.Context(), 256); err != nil {
			t.Fatal(err)
		}
		if err := audit.NewLog(m).Export(t.Context(), io.Discard, audit.ExportOptions{From: at(255)}); err == nil || !strings.Contains(err.Error(), "below 256") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("U2 an entry that is gone without a trace stops the export by its name", func(t *testing.T) {
		m := trail(t, 600, 1)
		m.entries = append(m.entries[:300:300], m.entries[301:]...)
		if err := audit.NewLog(m).Export(t.Context(), io.Discard, audit.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "Entry 300") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("U2 a full disk is an error", func(t *testing.T) {
		if err := log.Export(t.Context(), failing{}, audit.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "full") {
			t.Errorf("got %v", err)
		}
	})
	for name, change := range map[string]func(*audit.Stored){
		"what the API shows":    func(e *audit.Stored) { e.Event = audit.SkillEnabled },
		"the text that is kept": func(e *audit.Stored) { e.Text = bytes.Replace(e.Text, []byte("2026"), []byte("2027"), 1) },
		"both, with the hash": func(e *audit.Stored) {
			e.Event = audit.SkillEnabled
			e.Text = e.Canonical()
			e.LeafHash = audit.Leaf(e.Text)
		},
	} {
		t.Run("U2 an entry changed in the database is named: "+name, func(t *testing.T) {
			m := trail(t, 600, 1)
			m.checkpoint(t)
			change(&m.entries[417])
			_, err := audit.Verify(bytes.NewReader(m.export(t, audit.ExportOptions{})), m.key(t), "")
			var failure *audit.Failure
			if !errors.As(err, &failure) || failure.First != 417 || failure.Last != 417 {
				t.Errorf("got %v", err)
			}
		})
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// TestVerifyNames: the failure names the first bad entry, or as few as can be known.
func TestVerifyNames(t *testing.T) {
	m := trail(t, 600, 1)
	file := m.export(t, audit.ExportOptions{})
	lines := bytes.SplitAfter(file, []byte("\n"))
	line := func(index int) int { return 1 + index + index/256 } // after the header and the checkpoints
	edit := func(change func(lines [][]byte) [][]byte) []byte {
		copied := make([][]byte, len(lines))
		copy(copied, lines)
		return bytes.Join(change(copied), nil)
	}
	for _, c := range []struct {
		name        string
		first, last int64
		says        string
		file        []byte
	}{
		{"U2 a changed word", 300, 300, "leaf hash", edit(func(l [][]byte) [][]byte {
			l[line(300)] = bytes.Replace(l[line(300)], []byte(`"event":"`), []byte(`"event":"X`), 1)
			return l
		})},
		{"U2 an entry that is missing", 42, 42, "entry 43 stands in its place", edit(func(l [][]byte) [][]byte {
			return append(l[:line(42)], l[line(43):]...)
		})},
		{"U2 two entries that changed places", 42, 42, "entry 99 stands in its place", edit(func(l [][]byte) [][]byte {
			l[line(42)], l[line(99)] = l[line(99)], l[line(42)]
			return l
		})},
		{"U2 an entry twice", 43, 43, "entry 42 stands in its place", edit(func(l [][]byte) [][]byte {
			return append(l[:line(43):line(43)], append([][]byte{l[line(42)]}, l[line(43):]...)...)
		})},
		{"U2 the last entries missing", 598, 598, "it is missing", edit(func(l [][]byte) [][]byte {
			return append(l[:line(598)], l[line(600):]...)
		})},
		{"U2 cut off", 500, 500, "cut off", edit(func(l [][]byte) [][]byte { return l[:line(500)] })},
		{"U2 an entry whose hash was made anew: its block is named", 256, 511, "not the one that was signed", edit(func(l [][]byte) [][]byte {
			l[line(300)] = forged(300, made(1, 77)[0])
			return l
		})},
		{"U2 the same after the last block", 512, 599, "not the one that was signed", edit(func(l [][]byte) [][]byte {
			l[line(555)] = forged(555, made(1, 77)[0])
			return l
		})},
		{"U2 an entry that is no entry", 300, 300, "it is no entry", edit(func(l [][]byte) [][]byte {
			l[line(300)] = lineOf(300, []byte(`{"no":"entry"]`))
			return l
		})},
		{"U2 an entry in another form", 300, 300, "not written in the canonical form", edit(func(l [][]byte) [][]byte {
			text := m.entries[300].Text
			l[line(300)] = lineOf(300, append(bytes.TrimSuffix(bytes.Clone(text), []byte("}")), ` }`...))
			return l
		})},
		{"U2 an entry of a later format", 300, 300, "its format is", edit(func(l [][]byte) [][]byte {
			l[line(300)] = lineOf(300, bytes.Replace(m.entries[300].Text, []byte("entry/1"), []byte("entry/2"), 1))
			return l
		})},
		{"a file that is none", 0, -1, "line 1", []byte("hello\n")},
		{"an empty file", 0, -1, "empty", nil},
		{"a line without end", 0, -1, "longer than any", bytes.Repeat([]byte("x"), 17<<20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := audit.Verify(bytes.NewReader(c.file), m.key(t), "")
			var failure *audit.Failure
			if !errors.As(err, &failure) || failure.First != c.first || failure.Last != c.last || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want entries %d to %d and %q", err, c.first, c.last, c.says)
			}
		})
	}
	t.Run("U2 another trail's key verifies nothing", func(t *testing.T) {
		if _, err := audit.Verify(bytes.NewReader(file), trail(t, 0, 2).key(t), ""); err == nil || !strings.Contains(err.Error(), "the key is of") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("U2 a trail that lost its newest entries is not the one the older checkpoint saw", func(t *testing.T) {
		shorter := trail(t, 500, 1) // the same key and entries
		if _, err := audit.Verify(bytes.NewReader(shorter.export(t, audit.ExportOptions{})), m.key(t), m.checkpoint(t).Note); err == nil ||
			!strings.Contains(err.Error(), "lost entries") {
			t.Errorf("got %v", err)
		}
	})
}

// lineOf is an entry's line with the leaf hash of whatever its text is.
func lineOf(index int, text []byte) []byte {
	return fmt.Appendf(nil, "{\"index\":%d,\"leafHash\":\"%x\",\"entry\":%s}\n", index, audit.Leaf(text), text)
}

// forged is the line of an entry that was never recorded, consistent in itself.
func forged(index int, e audit.Entry) []byte { return lineOf(index, e.Canonical()) }
