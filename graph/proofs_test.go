package graph

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"testing"

	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
)

// fakeTree is a trail's tree whose entries have the indexes of their ids' last bytes.
type fakeTree struct {
	audit.Store
	leaves           [][]byte
	signer, verifier string
}

func newTree(t *testing.T, size byte) *fakeTree {
	t.Helper()
	f := &fakeTree{}
	for i := range size {
		f.leaves = append(f.leaves, audit.Leaf([]byte{i}))
	}
	var err error
	if f.signer, f.verifier, err = audit.NewKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeTree) GrowAuditTree(context.Context) (int64, error) { return int64(len(f.leaves)), nil }

func (f *fakeTree) AuditTiles(context.Context, []audit.TileID) (audit.Tiles, error) {
	return audit.Grow(0, nil, f.leaves)
}

func (f *fakeTree) AuditKey(context.Context) (string, string, error) {
	return f.signer, f.verifier, nil
}

func (f *fakeTree) AuditFloor(context.Context) (int64, error) { return 3, nil }

func (f *fakeTree) AuditEntry(_ context.Context, id uuid.UUID) (audit.Entry, error) {
	if int(id[15]) >= len(f.leaves) {
		return audit.Entry{}, fault.New(fault.NotFound, "There is no such audit entry.")
	}
	return audit.Entry{ID: id, Index: int64(id[15])}, nil
}

func hashesIn(t *testing.T, list any) [][]byte {
	t.Helper()
	texts, _ := list.([]any)
	hashes := make([][]byte, len(texts))
	for i, text := range texts {
		hashes[i] = hashIn(t, text)
	}
	return hashes
}

func hashIn(t *testing.T, text any) []byte {
	t.Helper()
	digits, _ := text.(string)
	hash, err := hex.DecodeString(digits)
	if err != nil || len(hash) != 32 {
		t.Fatalf("%v is no hash", text)
	}
	return hash
}

func TestProofs(t *testing.T) {
	tree := newTree(t, 7)
	rooms := Rooms{Proofs: audit.NewLog(tree)}
	auditor := actor.Actor{ID: person.ID, Kind: actor.Person, Granted: []actor.Permission{actor.AuditRead}}
	entry := entryKind.id(uuid.UUID{15: 4})
	given := map[string]any{"entry": entry}
	const checkpoint = `{ auditCheckpoint { origin size rootHash note verifierKey firstIndex } }`

	c := ask(t, t.Context(), rooms, auditor, checkpoint, nil).next().Data["auditCheckpoint"].(map[string]any)
	root := hashIn(t, c["rootHash"])
	t.Run("U2 the note says what the checkpoint does, and the key verifies it", func(t *testing.T) {
		verifier, err := note.NewVerifier(c["verifierKey"].(string))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := audit.OpenCheckpoint(c["note"].(string), verifier)
		if err != nil || opened.Size != 7 || c["size"] != 7.0 || string(opened.Root) != string(root) || opened.Origin != c["origin"] || c["firstIndex"] != 3.0 {
			t.Errorf("%+v, %v, %v", opened, c, err)
		}
	})
	t.Run("U2 an entry is proven by its id or its index, in the present tree or an older one", func(t *testing.T) {
		for query, size := range map[string]uint64{
			`query($entry: ID!) { auditInclusionProof(entryId: $entry) { index leafHash treeSize rootHash hashes } }`:             7,
			`query($entry: ID) { auditInclusionProof(entryId: $entry, treeSize: 5) { index leafHash treeSize rootHash hashes } }`: 5,
			`{ auditInclusionProof(index: 4, treeSize: "7") { index leafHash treeSize rootHash hashes } }`:                        7,
		} {
			got := ask(t, t.Context(), rooms, auditor, query, given).next()
			p, _ := got.Data["auditInclusionProof"].(map[string]any)
			if p == nil || p["index"] != 4.0 || p["treeSize"] != float64(size) {
				t.Fatalf("%s: %+v", query, got)
			}
			if err := proof.VerifyInclusion(rfc6962.DefaultHasher, 4, size, hashIn(t, p["leafHash"]), hashesIn(t, p["hashes"]), hashIn(t, p["rootHash"])); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
	})
	t.Run("U2 a smaller tree is proven to be the beginning", func(t *testing.T) {
		got := ask(t, t.Context(), rooms, auditor, `{ auditConsistencyProof(from: 3, to: 7) { from fromRootHash to toRootHash hashes } }`, nil).next()
		p, _ := got.Data["auditConsistencyProof"].(map[string]any)
		if p == nil || string(hashIn(t, p["toRootHash"])) != string(root) {
			t.Fatalf("%+v", got)
		}
		if err := proof.VerifyConsistency(rfc6962.DefaultHasher, 3, 7, hashesIn(t, p["hashes"]), hashIn(t, p["fromRootHash"]), root); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		by    actor.Actor
		query string
		code  string
	}{
		"U2 a checkpoint takes a right":        {person, checkpoint, "FORBIDDEN"},
		"U2 a proof takes a right":             {person, `{ auditInclusionProof(index: 1) { index } }`, "FORBIDDEN"},
		"U2 the other proof takes a right":     {person, `{ auditConsistencyProof(from: 1, to: 2) { from } }`, "FORBIDDEN"},
		"U2 nobody gets one":                   {actor.Actor{}, checkpoint, "UNAUTHENTICATED"},
		"U2 no entry is named":                 {auditor, `{ auditInclusionProof { index } }`, "BAD_USER_INPUT"},
		"U2 an entry is named twice":           {auditor, `{ auditInclusionProof(entryId: "` + entry + `", index: 4) { index } }`, "BAD_USER_INPUT"},
		"U2 the id is of something else":       {auditor, `{ auditInclusionProof(entryId: "` + userKind.id(person.ID) + `") { index } }`, "BAD_USER_INPUT"},
		"U2 there is no such entry":            {auditor, `{ auditInclusionProof(entryId: "` + entryKind.id(uuid.UUID{15: 200}) + `") { index } }`, "NOT_FOUND"},
		"U2 there is no such index":            {auditor, `{ auditInclusionProof(index: 7) { index } }`, "BAD_USER_INPUT"},
		"U2 the entry is not in that tree yet": {auditor, `{ auditInclusionProof(index: 4, treeSize: 4) { index } }`, "BAD_USER_INPUT"},
		"U2 the tree is yet to come":           {auditor, `{ auditConsistencyProof(from: 1, to: 8) { from } }`, "BAD_USER_INPUT"},
		"U2 the trees are the wrong way round": {auditor, `{ auditConsistencyProof(from: 5, to: 4) { from } }`, "BAD_USER_INPUT"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, t.Context(), rooms, c.by, c.query, nil).next(); got.code() != c.code {
				t.Errorf("got %+v", got)
			}
		})
	}
}
