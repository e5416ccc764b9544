package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

// memory is a store in memory. It grows its tree a few entries at a time, so that
// every shape of an edge is met.
type memory struct {
	audit.Store
	entries          []audit.Stored // of index floor and up
	leaves           [][]byte       // of index 0 and up
	tiles            audit.Tiles
	size, floor      int64
	signer, verifier string
}

const growsBy = 100

func (m *memory) GrowAuditTree(context.Context) (int64, error) {
	for m.size < int64(len(m.leaves)) {
		edge := audit.Tiles{}
		for _, id := range audit.Edge(m.size) {
			edge[id] = m.tiles[id]
		}
		to := min(m.size+growsBy, int64(len(m.leaves)))
		grown, err := audit.Grow(m.size, edge, m.leaves[m.size:to])
		if err != nil {
			return 0, err
		}
		for id, tile := range grown {
			if !bytes.HasPrefix(tile, m.tiles[id]) {
				return 0, fmt.Errorf("tile %v does not grow at its end", id)
			}
			m.tiles[id] = tile
		}
		m.size = to
	}
	return m.size, nil
}

func (m *memory) AuditTiles(_ context.Context, ids []audit.TileID) (audit.Tiles, error) {
	found := audit.Tiles{}
	for _, id := range ids {
		if tile, there := m.tiles[id]; there {
			found[id] = tile
		}
	}
	return found, nil
}

func (m *memory) AuditKey(context.Context) (string, string, error) { return m.signer, m.verifier, nil }

func (m *memory) AuditFloor(context.Context) (int64, error) { return m.floor, nil }

func (m *memory) StoredEntries(_ context.Context, from int64, limit int) ([]audit.Stored, error) {
	rest := m.entries[max(from-m.floor, 0):]
	return rest[:min(limit, len(rest))], nil
}

func (m *memory) AuditEntry(_ context.Context, id uuid.UUID) (audit.Entry, error) {
	for _, e := range m.entries {
		if e.ID == id {
			return e.Entry, nil
		}
	}
	return audit.Entry{}, fault.New(fault.NotFound, "There is no such audit entry.")
}

func (m *memory) FirstAuditEntrySince(_ context.Context, at time.Time) (int64, error) {
	i := slices.IndexFunc(m.entries, func(e audit.Stored) bool { return !e.At.Before(at) })
	if i < 0 {
		return int64(len(m.leaves)), nil
	}
	return m.floor + int64(i), nil
}

func (m *memory) RemoveAuditEntries(_ context.Context, below int64) (int64, error) {
	n := max(below-m.floor, 0)
	m.entries, m.floor = m.entries[n:], m.floor+n
	return n, nil
}

// add appends entries.
func (m *memory) add(entries ...audit.Entry) {
	for _, e := range entries {
		text := e.Canonical()
		e.Index, e.LeafHash = int64(len(m.leaves)), audit.Leaf(text)
		m.leaves = append(m.leaves, e.LeafHash)
		m.entries = append(m.entries, audit.Stored{Entry: e, Text: text})
	}
}

// trail is a trail of n entries made from a seed, with a key of its own.
func trail(t testing.TB, n int, seed uint64) *memory {
	t.Helper()
	m := &memory{tiles: audit.Tiles{}}
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	var err error
	if m.signer, m.verifier, err = audit.NewKey(rand.NewChaCha8(key)); err != nil {
		t.Fatal(err)
	}
	m.add(made(n, seed)...)
	return m
}

// made are n entries of every shape.
func made(n int, seed uint64) []audit.Entry {
	w := world.Fixed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), seed)
	events := []audit.Event{audit.VersionApproved, audit.RunDecided, audit.SettingChanged, audit.WriteExecuted}
	entries := make([]audit.Entry, n)
	for i := range entries {
		e := audit.Entry{ID: w.NewID(), At: w.Now(), Event: events[i%len(events)]}
		if i%2 == 0 {
			e.Actor, e.Skill = w.NewID(), w.NewID()
			e.Digest = fmt.Sprintf("1:%x", sha256.Sum256([]byte{byte(i)}))
		}
		if i%3 == 0 {
			e = e.With("count", i).With("name", strings.Repeat("ü<&>\u2028\"", i%5)).With("codes", []string{"A", "B"})
		}
		entries[i] = e
	}
	return entries
}

func (m *memory) key(t testing.TB) note.Verifier {
	t.Helper()
	v, err := note.NewVerifier(m.verifier)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (m *memory) checkpoint(t testing.TB) audit.Signed {
	t.Helper()
	c, err := audit.NewLog(m).Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (m *memory) export(t testing.TB, o audit.ExportOptions) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := audit.NewLog(m).Export(t.Context(), &file, o); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// naive is the tree's root as RFC 6962, 2.1 defines it, with nothing but SHA-256.
func naive(leaves [][]byte) []byte {
	switch len(leaves) {
	case 0:
		empty := sha256.Sum256(nil)
		return empty[:]
	case 1:
		return leaves[0]
	}
	k := 1
	for k*2 < len(leaves) {
		k *= 2
	}
	both := sha256.Sum256(slices.Concat([]byte{1}, naive(leaves[:k]), naive(leaves[k:])))
	return both[:]
}
