package audit

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"github.com/transparency-dev/merkle/compact"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/internal/fault"
)

// ExportOptions say what an export holds. The zero value is everything that is kept.
type ExportOptions struct {
	// From is the first index; nil is the oldest entry that is kept.
	From *int64
	// To is the index after the last one; nil is the trail's end.
	To *int64
	// Older is a signed checkpoint of this trail from before; the export will prove
	// that it covers the beginning of this trail. Empty proves nothing.
	Older string
}

// Export writes the trail as a file that Verify checks without this database. It
// keeps a page of entries in memory, whatever the size of the trail, and covers what
// was committed when it began.
func (l *Log) Export(ctx context.Context, w io.Writer, o ExportOptions) error {
	c, err := l.Checkpoint(ctx)
	if err != nil {
		return err
	}
	signer, _, err := l.key(ctx)
	if err != nil {
		return err
	}
	h, err := o.header(c)
	if err != nil {
		return err
	}
	last := end{Checkpoint: c.Note}
	if last.Older, err = l.proveOlder(ctx, o.Older, c, signer); err != nil {
		return err
	}
	if last.After, err = subtrees(ctx, l.store, h.To, h.Size); err != nil {
		return err
	}
	x := export{log: l, signer: signer, out: bufio.NewWriter(w)}
	if x.covered, err = treeRange(ctx, l.store, h.From); err != nil {
		return err
	}
	h.Before = hexes(x.covered.Hashes())
	x.write(encode(h))
	for at := h.From; at < h.To; {
		next := min(h.To, at-at%blockSize+blockSize)
		if err := x.block(ctx, at, next); err != nil {
			return err
		}
		at = next
	}
	x.write(encode(last))
	return x.out.Flush()
}

func (o ExportOptions) header(c Signed) (header, error) {
	h := header{Format: trailFormat, Origin: c.Origin, Size: c.Size, From: c.Floor, To: c.Size}
	if o.From != nil {
		h.From = *o.From
	}
	if o.To != nil {
		h.To = *o.To
	}
	switch {
	case h.From < c.Floor:
		return header{}, fault.New(fault.BadInput, "The entries below %d were removed; export from there.", c.Floor)
	case h.From > h.To || h.To > c.Size:
		return header{}, fault.New(fault.BadInput, "The trail has the entries %d to %d: there is nothing from %d to %d.", c.Floor, c.Size-1, h.From, h.To)
	}
	return h, nil
}

// proveOlder proves that an older checkpoint covers the beginning of this trail. It
// does so whatever the older root is: who reads the proof finds out. The checkpoint
// is written without what others signed.
func (l *Log) proveOlder(ctx context.Context, signed string, now Signed, signer note.Signer) (*older, error) {
	if signed == "" {
		return nil, nil
	}
	verifier, err := note.NewVerifier(now.Verifier)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the key that verifies checkpoints cannot be read")
	}
	c, err := OpenCheckpoint(signed, verifier)
	if err != nil {
		return nil, fault.New(fault.BadInput, "The older checkpoint cannot be used: %v.", err)
	}
	if c.Size > now.Size {
		return nil, fault.New(fault.BadInput, "The older checkpoint covers %d entries, and the trail has %d.", c.Size, now.Size)
	}
	hashes, err := consistencyProof(ctx, l.store, c.Size, now.Size)
	if err != nil {
		return nil, err
	}
	signed, err = c.Sign(signer)
	return &older{Checkpoint: signed, Proof: hexes(hashes)}, err
}

// subtrees are the hashes of the complete subtrees that cover [from, to).
func subtrees(ctx context.Context, tiles TileReader, from, to int64) ([]string, error) {
	hashes, err := nodes(ctx, tiles, compact.RangeNodes(uint64(from), uint64(to), nil))
	return hexes(hashes), err
}

// export is one export under way.
type export struct {
	log     *Log
	signer  note.Signer
	out     *bufio.Writer
	covered *compact.Range // [0, what was written)
	line    []byte
}

// write adds a line. An error stays in the writer until it is flushed.
func (x *export) write(line []byte) {
	x.out.Write(line)
	x.out.WriteByte('\n')
}

// block writes the entries [from, to), which one tile holds, and the checkpoint that
// follows a full one. The leaf hashes are the tree's, not the entries': an entry that
// was changed in the database does not have the hash that its line says.
func (x *export) block(ctx context.Context, from, to int64) error {
	entries, err := x.log.store.StoredEntries(ctx, from, int(to-from))
	if err != nil {
		return err
	}
	leaves, err := leavesOf(ctx, x.log.store, from, to)
	if err != nil {
		return err
	}
	for i, leaf := range leaves {
		index := from + int64(i)
		if i >= len(entries) || entries[i].Index != index {
			return fault.New(fault.NotFound, "Entry %d is not in the database: it was removed, or lost.", index)
		}
		x.line = appendEntry(x.line[:0], index, leaf, entries[i].evidence(leaf))
		x.write(x.line)
		if err := x.covered.Append(leaf, nil); err != nil {
			return fault.Wrap(fault.Internal, err, "the trail's tree cannot be followed")
		}
	}
	if to%blockSize != 0 {
		return nil
	}
	root, err := rootOf(x.covered)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the trail's tree cannot be followed")
	}
	signed, err := Checkpoint{Origin: x.signer.Name(), Size: to, Root: root}.Sign(x.signer)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "a checkpoint cannot be signed")
	}
	x.write(encode(mark{signed}))
	return nil
}

// leavesOf are the hashes of the leaves [from, to), which one tile holds.
func leavesOf(ctx context.Context, tiles TileReader, from, to int64) ([][]byte, error) {
	ids := make([]compact.NodeID, 0, to-from)
	for index := from; index < to; index++ {
		ids = append(ids, compact.NewNodeID(0, uint64(index)))
	}
	return nodes(ctx, tiles, ids)
}

// evidence is the entry's text as a verifier should see it: made from what the API
// shows. When that is not the text which was hashed, and has the hash nevertheless,
// the kept text is the one that was changed, and the evidence.
func (s Stored) evidence(leaf []byte) []byte {
	shown := s.Canonical()
	if !bytes.Equal(shown, s.Text) && bytes.Equal(Leaf(shown), leaf) {
		return s.Text
	}
	return shown
}
