package audit

import (
	"context"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/internal/fault"
)

// Store is what the log keeps and who keeps it.
type Store interface {
	Reader
	TileReader
	// GrowAuditTree brings every entry that was committed before the call into the
	// tree and returns its size. Any process may call it at any time; what another
	// has done already is not done again.
	GrowAuditTree(ctx context.Context) (int64, error)
	// AuditKey is the key that signs checkpoints, as NewKey made it.
	AuditKey(ctx context.Context) (signer, verifier string, err error)
	// AuditFloor is the index of the oldest entry that retention left.
	AuditFloor(ctx context.Context) (int64, error)
	// StoredEntries reads at most limit entries from an index on, oldest first.
	StoredEntries(ctx context.Context, from int64, limit int) ([]Stored, error)
	// FirstAuditEntrySince is the lowest index of an entry that is not before a time,
	// or the trail's size.
	FirstAuditEntrySince(ctx context.Context, at time.Time) (int64, error)
	// RemoveAuditEntries removes every entry below an index that the tree holds, and
	// returns how many there were.
	RemoveAuditEntries(ctx context.Context, below int64) (int64, error)
}

// Stored is an entry with the text that was hashed when it was written.
type Stored struct {
	Entry
	Text []byte
}

// Log proves what the trail says: it signs checkpoints and gives proofs for them. It
// is safe for concurrent use.
type Log struct{ store Store }

// NewLog is the log over a store.
func NewLog(s Store) *Log { return &Log{s} }

// Signed is a checkpoint with the note that an auditor keeps.
type Signed struct {
	Checkpoint
	Note     string
	Verifier string // the key that verifies the note
	Floor    int64  // the index of the oldest entry that is kept
}

// Checkpoint signs what the trail is now: it covers every entry that was committed
// before the call (RULES U2).
func (l *Log) Checkpoint(ctx context.Context) (Signed, error) {
	size, err := l.store.GrowAuditTree(ctx)
	if err != nil {
		return Signed{}, err
	}
	root, err := treeRoot(ctx, l.store, size)
	if err != nil {
		return Signed{}, err
	}
	signer, verifier, err := l.key(ctx)
	if err != nil {
		return Signed{}, err
	}
	floor, err := l.store.AuditFloor(ctx)
	if err != nil {
		return Signed{}, err
	}
	c := Checkpoint{Origin: signer.Name(), Size: size, Root: root}
	signed, err := c.Sign(signer)
	return Signed{Checkpoint: c, Note: signed, Verifier: verifier, Floor: floor}, err
}

// VerifierKey is the public key of the trail, as signed notes write it. An auditor
// keeps it: whoever can write it anew could write the trail anew.
func (l *Log) VerifierKey(ctx context.Context) (string, error) {
	_, verifier, err := l.store.AuditKey(ctx)
	return verifier, err
}

func (l *Log) key(ctx context.Context) (note.Signer, string, error) {
	secret, verifier, err := l.store.AuditKey(ctx)
	if err != nil {
		return nil, "", err
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, "", fault.Wrap(fault.Internal, err, "the key that signs checkpoints cannot be read")
	}
	return signer, verifier, nil
}

// Inclusion proves that a leaf is in the tree of a size: whoever hashes Leaf with
// Hashes (RFC 9162, 2.1.3) gets Root.
type Inclusion struct {
	Index  int64
	Leaf   []byte
	Size   int64
	Root   []byte
	Hashes [][]byte
}

// InclusionOf proves that an entry is in the tree of a size; nil is the tree as it is
// now.
func (l *Log) InclusionOf(ctx context.Context, id uuid.UUID, size *int64) (Inclusion, error) {
	e, err := l.store.AuditEntry(ctx, id)
	if err != nil {
		return Inclusion{}, err
	}
	return l.InclusionAt(ctx, e.Index, size)
}

// InclusionAt is InclusionOf for an index, whose entry retention may have removed.
func (l *Log) InclusionAt(ctx context.Context, index int64, of *int64) (Inclusion, error) {
	now, err := l.store.GrowAuditTree(ctx)
	if err != nil {
		return Inclusion{}, err
	}
	size := now
	if of != nil {
		size = *of
	}
	switch {
	case size < 0 || size > now:
		return Inclusion{}, fault.New(fault.BadInput, "The trail has %d entries: there is no tree of size %d.", now, size)
	case index < 0 || index >= size:
		return Inclusion{}, fault.New(fault.BadInput, "The tree of size %d has no entry %d.", size, index)
	}
	p := Inclusion{Index: index, Size: size}
	if p.Root, err = treeRoot(ctx, l.store, size); err != nil {
		return Inclusion{}, err
	}
	if p.Leaf, err = leafAt(ctx, l.store, index); err != nil {
		return Inclusion{}, err
	}
	p.Hashes, err = inclusionProof(ctx, l.store, index, size)
	return p, err
}

// Consistency proves that the tree of size From is the beginning of the tree of size
// To (RFC 9162, 2.1.4).
type Consistency struct {
	From, To         int64
	FromRoot, ToRoot []byte
	Hashes           [][]byte
}

// Consistency proves that nothing which a checkpoint of size from covers was changed
// until the one of size to.
func (l *Log) Consistency(ctx context.Context, from, to int64) (Consistency, error) {
	now, err := l.store.GrowAuditTree(ctx)
	if err != nil {
		return Consistency{}, err
	}
	if from < 0 || from > to || to > now {
		return Consistency{}, fault.New(fault.BadInput, "The trail has %d entries: there is no proof from size %d to size %d.", now, from, to)
	}
	c := Consistency{From: from, To: to}
	if c.FromRoot, err = treeRoot(ctx, l.store, from); err != nil {
		return Consistency{}, err
	}
	if c.ToRoot, err = treeRoot(ctx, l.store, to); err != nil {
		return Consistency{}, err
	}
	c.Hashes, err = consistencyProof(ctx, l.store, from, to)
	return c, err
}

// Prune removes the entries before a time, oldest first, up to the first that is not
// before it. Their hashes stay, so that proofs and checkpoints hold (RULES U3). It
// returns how many went.
func (l *Log) Prune(ctx context.Context, before time.Time) (int64, error) {
	size, err := l.store.GrowAuditTree(ctx)
	if err != nil {
		return 0, err
	}
	first, err := l.store.FirstAuditEntrySince(ctx, before)
	if err != nil {
		return 0, err
	}
	return l.store.RemoveAuditEntries(ctx, min(first, size))
}

// Grow brings what was recorded into the tree, so that whoever asks for a proof need
// not wait for it.
func (l *Log) Grow(ctx context.Context) error {
	_, err := l.store.GrowAuditTree(ctx)
	return err
}
