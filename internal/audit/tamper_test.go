package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/countersign/countersign/internal/audit"
)

// copied is a trail file in the hands of somebody who edits it: who knows its format
// and, to fork it, has even stolen the key.
type copied struct {
	t      *testing.T
	random *rand.Rand
	m      *memory // the trail it was copied from
	lines  [][]byte
}

func (c copied) file() []byte { return bytes.Join(c.lines, nil) }

func (c copied) line() int { return c.random.IntN(len(c.lines)) }

// entry finds a line that holds an entry.
func (c copied) entry() int {
	for {
		if i := c.line(); bytes.HasPrefix(c.lines[i], []byte(`{"index":`)) {
			return i
		}
	}
}

var (
	indexOf = regexp.MustCompile(`^\{"index":(\d+)`)
	eventOf = regexp.MustCompile(`"event":"[A-Z_]+"`)
)

// renumber gives entry lines the indexes of their places, from the first of them on.
func (c copied) renumber(first int) {
	for _, line := range c.lines {
		if at := indexOf.FindSubmatchIndex(line); at != nil {
			renumbered := fmt.Appendf(nil, `{"index":%d`, first)
			copy := append(renumbered, line[at[1]:]...)
			c.replace(line, copy)
			first++
		}
	}
}

func (c copied) replace(line, with []byte) {
	for i := range c.lines {
		if &c.lines[i][0] == &line[0] {
			c.lines[i] = with
		}
	}
}

// edits are the ways to tamper. Each returns the file it leaves.
var edits = []struct {
	name string
	do   func(c copied) []byte
}{
	{"flip a bit", func(c copied) []byte {
		file := c.file()
		file[c.random.IntN(len(file))] ^= 1 << c.random.IntN(8)
		return file
	}},
	{"change an event and hash it anew", func(c copied) []byte {
		i := c.entry()
		index := i - 1 - (i-1)/257
		text := eventOf.ReplaceAll(c.m.entries[index].Text, []byte(`"event":"TOOL_DENIED"`))
		c.lines[i] = lineOf(index, text)
		return c.file()
	}},
	{"swap two lines", func(c copied) []byte {
		i, j := c.line(), c.line()
		for bytes.Equal(c.lines[i], c.lines[j]) {
			j = c.line()
		}
		c.lines[i], c.lines[j] = c.lines[j], c.lines[i]
		return c.file()
	}},
	{"swap two entries and number them anew", func(c copied) []byte {
		i, j := c.entry(), c.entry()
		for i == j {
			j = c.entry()
		}
		c.lines[i], c.lines[j] = c.lines[j], c.lines[i]
		c.renumber(0)
		return c.file()
	}},
	{"delete a line", func(c copied) []byte {
		i := c.line()
		c.lines = append(c.lines[:i], c.lines[i+1:]...)
		return c.file()
	}},
	{"delete an entry and number the rest anew", func(c copied) []byte {
		i := c.entry()
		c.lines = append(c.lines[:i], c.lines[i+1:]...)
		c.renumber(0)
		return c.file()
	}},
	{"insert a line again", func(c copied) []byte {
		i := c.line()
		c.lines = append(c.lines[:i+1:i+1], c.lines[i:]...)
		return c.file()
	}},
	{"insert a forged entry and number the rest anew", func(c copied) []byte {
		i := c.entry()
		c.lines = append(c.lines[:i:i], append([][]byte{forged(0, made(1, c.random.Uint64())[0])}, c.lines[i:]...)...)
		c.renumber(0)
		return c.file()
	}},
	{"cut at a byte", func(c copied) []byte {
		file := c.file()
		return file[:c.random.IntN(len(file))]
	}},
	{"cut after a line", func(c copied) []byte {
		c.lines = c.lines[:c.line()]
		return c.file()
	}},
	{"cut entries out before the end", func(c copied) []byte {
		i := c.entry()
		c.lines = append(c.lines[:i:i], c.lines[len(c.lines)-1])
		return c.file()
	}},
	{"fork with another key", func(c copied) []byte {
		forked := trail(c.t, 0, c.random.Uint64())
		c.forkInto(forked)
		return forked.export(c.t, audit.ExportOptions{})
	}},
	{"fork with the stolen key", func(c copied) []byte {
		forked := trail(c.t, 0, 0)
		forked.signer, forked.verifier = c.m.signer, c.m.verifier
		c.forkInto(forked)
		return forked.export(c.t, audit.ExportOptions{})
	}},
	{"fork with the stolen key to a shorter trail", func(c copied) []byte {
		forked := trail(c.t, 0, 0)
		forked.signer, forked.verifier = c.m.signer, c.m.verifier
		for _, e := range c.m.entries[:c.random.IntN(seen)] {
			forked.add(e.Entry)
		}
		return forked.export(c.t, audit.ExportOptions{})
	}},
}

const (
	recorded = 300
	seen     = 200 // entries when the auditor took a checkpoint
)

// forkInto rewrites history before the auditor's checkpoint and goes on as before.
func (c copied) forkInto(forked *memory) {
	at := c.random.IntN(seen)
	for i, e := range c.m.entries {
		if i == at {
			e.Entry = made(1, c.random.Uint64())[0]
		}
		forked.add(e.Entry)
	}
}

func TestTamper(t *testing.T) {
	m := trail(t, seen, 1)
	kept := m.checkpoint(t).Note
	m.add(made(recorded-seen, 2)...)
	from := int64(100)
	for _, c := range []struct {
		name     string
		attempts int
		options  audit.ExportOptions
	}{
		{"U2 500 edits to a copy are all found", 500, audit.ExportOptions{}},
		{"U2 also in a trail that proves an older checkpoint", 100, audit.ExportOptions{Older: kept}},
		{"U2 also in the end of one", 100, audit.ExportOptions{Older: kept, From: &from}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, intact := c.options, m.export(t, c.options)
			if _, err := audit.Verify(bytes.NewReader(intact), m.key(t), kept); err != nil {
				t.Fatalf("a false alarm: %v", err)
			}
			for attempt := range c.attempts {
				edit := edits[attempt%len(edits)]
				if o.From != nil && bytes.Contains([]byte(edit.name), []byte("anew")) {
					edit = edits[0] // those count from the trail's beginning
				}
				c := copied{t, rand.New(rand.NewPCG(7, uint64(attempt))), m, bytes.SplitAfter(bytes.TrimSuffix(bytes.Clone(intact), []byte("\n")), []byte("\n"))}
				c.lines[len(c.lines)-1] = append(c.lines[len(c.lines)-1], '\n')
				file := edit.do(c)
				if bytes.Equal(file, intact) {
					t.Fatalf("attempt %d (%s) changed nothing", attempt, edit.name)
				}
				_, err := audit.Verify(bytes.NewReader(file), m.key(t), kept)
				var failure *audit.Failure
				if !errors.As(err, &failure) {
					t.Errorf("attempt %d (%s) was not found: %v", attempt, edit.name, err)
				}
			}
		})
	}
}
