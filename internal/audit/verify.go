package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/transparency-dev/merkle/compact"
	"golang.org/x/mod/sumdb/note"
)

// longestLine bounds the memory that a line takes.
const longestLine = 16 << 20

// Report is what a file that verified is.
type Report struct {
	Checkpoint
	From, To int64 // the entries in the file: from From, before To
	Older    int64 // the size that an older checkpoint covered; -1 without one
}

// Failure says why a file is not the trail that was signed, and names the first
// entry that is not as it was.
type Failure struct {
	Line int // of the file, from 1
	// First and Last are the entries among which the first bad one is: one and the
	// same if it is known, none (First > Last) if the fault is in no entry.
	First, Last int64
	Reason      string
}

func (f *Failure) Error() string {
	switch {
	case f.First > f.Last:
		return fmt.Sprintf("line %d: %s", f.Line, f.Reason)
	case f.First == f.Last:
		return fmt.Sprintf("entry %d (line %d): %s", f.First, f.Line, f.Reason)
	}
	return fmt.Sprintf("one of the entries %d to %d (up to line %d): %s", f.First, f.Last, f.Line, f.Reason)
}

// Verify reads a trail file and checks every byte of it against the verifier's key:
// the canonical form and leaf hash of each entry, the order without gaps, the roots
// against the signed checkpoints. older, if not empty, is a signed checkpoint from
// before that must cover the beginning of this trail. It needs no database and keeps
// one line in memory. A file that is not the trail gives a *Failure.
func Verify(file io.Reader, by note.Verifier, older string) (Report, error) {
	v := verification{in: bufio.NewReaderSize(file, 64<<10), by: by}
	if older != "" {
		kept, err := OpenCheckpoint(older, by)
		if err != nil {
			return Report{}, fmt.Errorf("the older checkpoint cannot be used: %w", err)
		}
		v.older = &kept
	}
	if err := v.begin(); err != nil {
		return Report{}, err
	}
	for !v.ended {
		line, err := v.next()
		if err != nil {
			return Report{}, err
		}
		if err := v.take(line); err != nil {
			return Report{}, err
		}
	}
	if err := v.nothingFollows(); err != nil {
		return Report{}, err
	}
	return v.report, nil
}

// verification is one file being verified.
type verification struct {
	in      *bufio.Reader
	by      note.Verifier
	older   *Checkpoint // what the auditor kept
	line    int
	header  header
	covered *compact.Range // [0, index of the next entry)
	marked  int64          // up to where checkpoints confirmed the entries
	agrees  bool           // the older checkpoint was met on the way, with its root
	ended   bool
	report  Report
}

// at is the index of the next entry.
func (v *verification) at() int64 { return int64(v.covered.End()) }

// fail is a failure in no entry.
func (v *verification) fail(format string, args ...any) error {
	return &Failure{Line: v.line, First: 0, Last: -1, Reason: fmt.Sprintf(format, args...)}
}

// failAt is a failure in the next entry.
func (v *verification) failAt(format string, args ...any) error {
	return &Failure{Line: v.line, First: v.at(), Last: v.at(), Reason: fmt.Sprintf(format, args...)}
}

// failSince is a failure in one of the entries that no checkpoint confirmed.
func (v *verification) failSince(format string, args ...any) error {
	return &Failure{Line: v.line, First: v.marked, Last: v.at() - 1, Reason: fmt.Sprintf(format, args...)}
}

// next reads a line without its line break.
func (v *verification) next() ([]byte, error) {
	v.line++
	var whole []byte
	for {
		part, err := v.in.ReadSlice('\n')
		switch {
		case err == nil && whole == nil:
			return part[:len(part)-1], nil
		case len(whole)+len(part) > longestLine:
			return nil, v.fail("it is longer than any line of a trail")
		}
		whole = append(whole, part...)
		switch {
		case err == nil:
			return whole[:len(whole)-1], nil
		case errors.Is(err, io.EOF) && v.covered == nil:
			return nil, v.fail("the file is empty, or its first line has no end")
		case errors.Is(err, io.EOF):
			return nil, v.failAt("the file was cut off here: its last line is missing")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("read line %d: %w", v.line, err)
		}
	}
}

func (v *verification) nothingFollows() error {
	v.line++
	if _, err := v.in.ReadByte(); err == nil {
		return v.fail("something follows the end")
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read line %d: %w", v.line, err)
	}
	return nil
}

func (v *verification) begin() error {
	line, err := v.next()
	if err != nil {
		return err
	}
	h, err := readLine[header](line)
	switch {
	case err != nil:
		return v.fail("%v", err)
	case h.Format != trailFormat:
		return v.fail("the file's format is %q, and only %q can be read", clip(h.Format), trailFormat)
	case h.Origin != v.by.Name():
		return v.fail("this is the trail of %q, and the key is of %q", clip(h.Origin), v.by.Name())
	case h.From < 0 || h.From > h.To || h.To > h.Size:
		return v.fail("it says that entries %d to %d of %d follow", h.From, h.To, h.Size)
	}
	before, err := unhexes(h.Before)
	if err != nil {
		return v.fail("%v", err)
	}
	v.header, v.marked = h, h.From
	if v.covered, err = ranges.NewRange(0, uint64(h.From), before); err != nil {
		return v.fail("it does not say what is before entry %d", h.From)
	}
	return v.meetOlder()
}

// take reads one line after the header.
func (v *verification) take(line []byte) error {
	// After the last entry of a block comes its checkpoint, unless that was read.
	due := v.at()%blockSize == 0 && v.at() > v.marked
	switch {
	case due:
		return v.mark(line)
	case v.at() == v.header.To:
		return v.end(line)
	}
	return v.entry(line)
}

func (v *verification) entry(line []byte) error {
	for _, other := range [][]byte{endBegins, markBegins} {
		if bytes.HasPrefix(line, other) {
			return v.failAt("it is missing")
		}
	}
	index, leaf, canonical, err := readEntry(line)
	switch {
	case err != nil:
		return v.failAt("%v", err)
	case index != v.at():
		return v.failAt("entry %d stands in its place", index)
	case !bytes.Equal(Leaf(canonical), leaf):
		return v.failAt("it is not what was recorded: its bytes do not have its leaf hash")
	}
	if _, err := ParseCanonical(canonical); err != nil {
		return v.failAt("%v", err)
	}
	if err := v.covered.Append(leaf, nil); err != nil {
		return v.failAt("%v", err)
	}
	return v.meetOlder()
}

// mark reads the checkpoint that follows a block.
func (v *verification) mark(line []byte) error {
	m, err := readLine[mark](line)
	if err != nil {
		return v.fail("the checkpoint after entry %d is missing: %v", v.at()-1, err)
	}
	c, err := openExactly(m.Checkpoint, v.by)
	if err != nil {
		return v.fail("the checkpoint after entry %d is not to be trusted: %v", v.at()-1, err)
	}
	if c.Size != v.at() {
		return v.fail("after entry %d stands a checkpoint of %d entries", v.at()-1, c.Size)
	}
	if err := v.rootIs(c); err != nil {
		return err
	}
	v.marked = v.at()
	return nil
}

// rootIs compares what was read with a checkpoint of its size.
func (v *verification) rootIs(c Checkpoint) error {
	root, err := rootOf(v.covered)
	if err != nil {
		return v.fail("%v", err)
	}
	if !bytes.Equal(root, c.Root) {
		return v.failSince("it is not what was recorded: the root over the entries is not the one that was signed")
	}
	return nil
}

// meetOlder compares the root with the older checkpoint's when the file has come to
// its size.
func (v *verification) meetOlder() error {
	if v.older == nil || v.older.Size != v.at() {
		return nil
	}
	root, err := rootOf(v.covered)
	if err != nil {
		return v.fail("%v", err)
	}
	if !bytes.Equal(root, v.older.Root) {
		return v.failSinceBegin()
	}
	v.agrees = true
	return nil
}

// failSinceBegin says that the beginning is another than the older checkpoint saw.
func (v *verification) failSinceBegin() error {
	return &Failure{
		Line: v.line, First: v.header.From, Last: v.at() - 1,
		Reason: fmt.Sprintf("the trail was written anew: its first %d entries are not those of the older checkpoint", v.older.Size),
	}
}

func (v *verification) end(line []byte) error {
	e, err := readLine[end](line)
	if err != nil {
		return v.fail("the end is missing: %v", err)
	}
	c, err := openExactly(e.Checkpoint, v.by)
	if err != nil {
		return v.fail("the checkpoint at the end is not to be trusted: %v", err)
	}
	if c.Size != v.header.Size {
		return v.fail("the checkpoint at the end covers %d entries, and the first line says %d", c.Size, v.header.Size)
	}
	hashes, err := unhexes(e.After)
	if err != nil {
		return v.fail("%v", err)
	}
	to := v.covered.End()
	after, err := ranges.NewRange(to, uint64(c.Size), hashes)
	if err != nil {
		return v.fail("it does not say what is after entry %d", v.at()-1)
	}
	whole, err := ranges.NewRange(0, to, v.covered.Hashes())
	if err != nil {
		return v.fail("%v", err)
	}
	if err := whole.AppendRange(after, nil); err != nil {
		return v.fail("%v", err)
	}
	if root, err := rootOf(whole); err != nil || !bytes.Equal(root, c.Root) {
		return v.failSince("it is not what was recorded: the root over the entries is not the one that was signed")
	}
	v.ended = true
	v.report = Report{Checkpoint: c, From: v.header.From, To: v.header.To, Older: -1}
	return v.endOlder(e.Older, c)
}

// endOlder checks the proof that an older checkpoint covers the beginning.
func (v *verification) endOlder(proved *older, now Checkpoint) error {
	if proved != nil {
		kept, err := openExactly(proved.Checkpoint, v.by)
		if err != nil {
			return v.fail("the older checkpoint in the file is not to be trusted: %v", err)
		}
		hashes, err := unhexes(proved.Proof)
		if err != nil {
			return v.fail("%v", err)
		}
		if kept.Size > now.Size || verifyConsistency(kept.Size, now.Size, hashes, kept.Root, now.Root) != nil {
			return v.fail("the trail was written anew: its first %d entries are not those of the older checkpoint", kept.Size)
		}
		v.report.Older = kept.Size
		if v.older != nil && v.older.Size == kept.Size && bytes.Equal(v.older.Root, kept.Root) {
			v.agrees = true
		}
	}
	switch {
	case v.older == nil:
		return nil
	case v.agrees:
		v.report.Older = v.older.Size
		return nil
	case v.older.Size > now.Size:
		return v.fail("the trail lost entries: the older checkpoint covers %d, and this one %d", v.older.Size, now.Size)
	}
	return fmt.Errorf("the file cannot be compared with the older checkpoint, which covers %d entries: export it with that checkpoint", v.older.Size)
}
