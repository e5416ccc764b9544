package audit_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
)

// sizes are trees around every border: of a pair, a tile, a full tile level.
var sizes = []int{0, 1, 2, 3, 7, 8, 99, 100, 101, 255, 256, 257, 511, 512, 513, 700}

func TestLog(t *testing.T) {
	t.Run("U2 a checkpoint's root is the one that RFC 6962 defines", func(t *testing.T) {
		for _, n := range sizes {
			m := trail(t, n, 1)
			c := m.checkpoint(t)
			if c.Size != int64(n) || !bytes.Equal(c.Root, naive(m.leaves)) {
				t.Errorf("size %d: got size %d and root %x", n, c.Size, c.Root)
			}
			read, err := audit.OpenCheckpoint(c.Note, m.key(t))
			if err != nil || read.Size != c.Size || !bytes.Equal(read.Root, c.Root) || read.Origin != c.Origin {
				t.Errorf("size %d: the note reads as %+v, %v", n, read, err)
			}
		}
	})
	t.Run("U2 a tile of the third level is as good", func(t *testing.T) {
		m := &memory{tiles: audit.Tiles{}}
		leaf := make([]byte, 32)
		for i := range 256*256 + 300 {
			leaf = bytes.Clone(leaf)
			leaf[0], leaf[1], leaf[2] = byte(i), byte(i>>8), byte(i>>16)
			m.leaves = append(m.leaves, leaf)
		}
		m.signer, m.verifier = trail(t, 0, 1).signer, trail(t, 0, 1).verifier
		if c := m.checkpoint(t); !bytes.Equal(c.Root, naive(m.leaves)) {
			t.Errorf("got root %x", c.Root)
		}
		if len(m.tiles[audit.TileID{Level: 2}]) != 32 {
			t.Error("there is no tile of level 2")
		}
	})
	t.Run("U2 every entry is proven to be in every later tree, also after it was removed", func(t *testing.T) {
		m := trail(t, 300, 2)
		log := audit.NewLog(m)
		m.checkpoint(t)
		if _, err := m.RemoveAuditEntries(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		for index := int64(0); index < 300; index += 7 {
			for size := index + 1; size <= 300; size += 11 {
				p, err := log.InclusionAt(t.Context(), index, &size)
				if err != nil {
					t.Fatal(err)
				}
				if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(index), uint64(size), m.leaves[index], p.Hashes, naive(m.leaves[:size])); err != nil {
					t.Errorf("entry %d in %d: %v", index, size, err)
				}
				if !bytes.Equal(p.Leaf, m.leaves[index]) || !bytes.Equal(p.Root, naive(m.leaves[:size])) {
					t.Errorf("entry %d in %d: leaf %x, root %x", index, size, p.Leaf, p.Root)
				}
			}
		}
		p, err := log.InclusionOf(t.Context(), m.entries[3].ID, nil)
		if err != nil || p.Index != 103 || p.Size != 300 {
			t.Errorf("by its id: %+v, %v", p, err)
		}
	})
	t.Run("U2 every tree is proven to be the beginning of every later one", func(t *testing.T) {
		m := trail(t, 300, 3)
		log := audit.NewLog(m)
		for from := int64(0); from <= 300; from += 13 {
			for to := from; to <= 300; to += 17 {
				p, err := log.Consistency(t.Context(), from, to)
				if err != nil {
					t.Fatal(err)
				}
				if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(from), uint64(to), p.Hashes, naive(m.leaves[:from]), naive(m.leaves[:to])); err != nil {
					t.Errorf("%d to %d: %v", from, to, err)
				}
			}
		}
	})
	t.Run("U2 what there is no proof of is bad input, and an unknown entry is not found", func(t *testing.T) {
		log := audit.NewLog(trail(t, 10, 4))
		of := func(size int64) *int64 { return &size }
		for name, ask := range map[string]func() error{
			"a tree to come":         func() error { _, err := log.InclusionAt(t.Context(), 1, of(11)); return err },
			"an entry after it":      func() error { _, err := log.InclusionAt(t.Context(), 5, of(5)); return err },
			"a negative index":       func() error { _, err := log.InclusionAt(t.Context(), -1, of(5)); return err },
			"an empty tree":          func() error { _, err := log.InclusionAt(t.Context(), 0, of(0)); return err },
			"a negative size":        func() error { _, err := log.InclusionAt(t.Context(), 1, of(-5)); return err },
			"backwards":              func() error { _, err := log.Consistency(t.Context(), 6, 5); return err },
			"a beginning below none": func() error { _, err := log.Consistency(t.Context(), -1, 5); return err },
			"an end to come":         func() error { _, err := log.Consistency(t.Context(), 1, 11); return err },
		} {
			if err := ask(); fault.KindOf(err) != fault.BadInput {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := log.InclusionOf(t.Context(), uuid.New(), nil); fault.KindOf(err) != fault.NotFound {
			t.Errorf("an unknown entry: %v", err)
		}
	})
	t.Run("U3 entries go by age, up to the first that must stay, and what stays verifies", func(t *testing.T) {
		m := trail(t, 600, 5)
		before := m.checkpoint(t)
		young := m.entries[400].At
		m.add(made(20, 6)...)
		removed, err := audit.NewLog(m).Prune(t.Context(), young)
		if err != nil || removed != 400 || m.floor != 400 {
			t.Fatalf("removed %d, floor %d, %v", removed, m.floor, err)
		}
		report, err := audit.Verify(bytes.NewReader(m.export(t, audit.ExportOptions{Older: before.Note})), m.key(t), before.Note)
		if err != nil || report.From != 400 || report.To != 620 || report.Older != 600 {
			t.Errorf("%+v, %v", report, err)
		}
		if removed, err := audit.NewLog(m).Prune(t.Context(), young); err != nil || removed != 0 {
			t.Errorf("again: removed %d, %v", removed, err)
		}
		if removed, err := audit.NewLog(m).Prune(t.Context(), time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil || removed != 220 {
			t.Errorf("everything: removed %d, %v", removed, err)
		}
		if _, err := audit.Verify(bytes.NewReader(m.export(t, audit.ExportOptions{})), m.key(t), ""); err != nil {
			t.Errorf("a trail whose entries all went: %v", err)
		}
	})
}
