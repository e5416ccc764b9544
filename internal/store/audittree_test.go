package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// record appends n entries, in changes of several sizes.
func record(r *storetest.Rows, n int) {
	for size := 1; n > 0; size = size*3 + 1 {
		entries := make([]audit.Entry, min(size, n, 500))
		for i := range entries {
			entries[i] = r.Entry(audit.SkillEnabled).With("n", i)
		}
		r.Apply(change.Change{Audit: entries})
		n -= len(entries)
	}
}

// stored reads every entry that is kept.
func kept(t *testing.T, s *store.Store) []audit.Stored {
	t.Helper()
	all, err := s.StoredEntries(t.Context(), 0, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rootOver is the root over leaves, made without the store's tree.
func rootOver(t *testing.T, leaves [][]byte) []byte {
	t.Helper()
	if len(leaves) == 0 {
		return rfc6962.DefaultHasher.EmptyRoot()
	}
	r := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	for _, leaf := range leaves {
		if err := r.Append(leaf, nil); err != nil {
			t.Fatal(err)
		}
	}
	root, err := r.GetRootHash(nil)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func leavesOf(entries []audit.Stored) [][]byte {
	leaves := make([][]byte, len(entries))
	for i, e := range entries {
		leaves[i] = e.LeafHash
	}
	return leaves
}

func checkpoint(t *testing.T, s *store.Store) (audit.Signed, note.Verifier) {
	t.Helper()
	c, err := audit.NewLog(s).Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(c.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	return c, v
}

func TestAuditTree(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		t.Run("U2 a checkpoint covers what was committed before it was asked for", func(t *testing.T) {
			total := 0
			for _, n := range []int{0, 1, 1, 253, 1, 1, 300, 5000} {
				record(r, n)
				total += n
				c, v := checkpoint(t, s)
				if c.Size != int64(total) || !bytes.Equal(c.Root, rootOver(t, leavesOf(kept(t, s)))) || c.Floor != 0 {
					t.Fatalf("size %d of %d, root %x", c.Size, total, c.Root)
				}
				if read, err := audit.OpenCheckpoint(c.Note, v); err != nil || read.Size != c.Size {
					t.Fatalf("the note: %+v, %v", read, err)
				}
			}
		})
		t.Run("U2 an entry of the trail is proven to be in it, and an older tree to be its beginning", func(t *testing.T) {
			c, _ := checkpoint(t, s)
			log, all := audit.NewLog(s), kept(t, s)
			for _, index := range []int{0, 1, 255, 256, 300, 4095, 5556} {
				p, err := log.InclusionOf(t.Context(), all[index].ID, &c.Size)
				if err != nil {
					t.Fatal(err)
				}
				if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.Index), uint64(p.Size), all[index].LeafHash, p.Hashes, c.Root); err != nil || p.Index != int64(index) {
					t.Errorf("entry %d: %v", index, err)
				}
				from := int64(index)
				q, err := log.Consistency(t.Context(), from, c.Size)
				if err != nil {
					t.Fatal(err)
				}
				if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(from), uint64(c.Size), q.Hashes, rootOver(t, leavesOf(all[:index])), c.Root); err != nil {
					t.Errorf("from %d: %v", from, err)
				}
			}
		})
		t.Run("U2 what an export holds verifies without the database", func(t *testing.T) {
			old, v := checkpoint(t, s)
			record(r, 700)
			var file bytes.Buffer
			if err := audit.NewLog(s).Export(t.Context(), &file, audit.ExportOptions{Older: old.Note}); err != nil {
				t.Fatal(err)
			}
			report, err := audit.Verify(&file, v, old.Note)
			if err != nil || report.To != old.Size+700 || report.Older != old.Size {
				t.Fatalf("%+v, %v", report, err)
			}
		})
	})
}

func TestAuditTreeIsAnybodys(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			at := database.URL(t)
			replicas := make([]*store.Store, 3)
			for i := range replicas {
				replicas[i] = storetest.OpenAt(t, at, store.Options{})
			}
			r := storetest.NewRows(t, replicas[0])
			t.Run("U2 processes that extend it at once, some of which stop half-way, leave one tree", func(t *testing.T) {
				var work sync.WaitGroup
				for i, s := range replicas {
					work.Go(func() {
						for n := range 15 {
							record(r.On(s), 40)
							ctx, stop := context.WithCancel(t.Context())
							if (n+i)%3 == 0 { // this one dies at some point
								go stop()
							}
							if _, err := s.GrowAuditTree(ctx); err != nil && !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
							stop()
						}
					})
				}
				work.Wait()
				all := kept(t, replicas[0])
				for _, s := range replicas {
					c, _ := checkpoint(t, s)
					if c.Size != 3*15*40 || !bytes.Equal(c.Root, rootOver(t, leavesOf(all))) {
						t.Errorf("size %d, root %x", c.Size, c.Root)
					}
				}
			})
			t.Run("U2 they sign with one key, which is kept encrypted", func(t *testing.T) {
				secret, verifier, err := replicas[0].AuditKey(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range append(replicas, storetest.OpenAt(t, at, store.Options{})) {
					if again, same, err := s.AuditKey(t.Context()); err != nil || same != verifier || again != secret {
						t.Errorf("another key: %s, %v", same, err)
					}
				}
				var sealed string
				if err := replicas[0].Writer().QueryRowContext(t.Context(), "SELECT signer FROM audit_key").Scan(&sealed); err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(sealed, "test:") || strings.Contains(sealed, secret[len(secret)-20:]) {
					t.Errorf("kept as %q", sealed)
				}
			})
		})
	}
}

func TestAuditTreeIsKeptByTheDatabase(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		record(r, 300)
		before, _ := checkpoint(t, s)
		record(r, 10) // not in the tree
		statements := map[string]string{
			"changing a tile":                    "UPDATE audit_tiles SET hashes = (SELECT leaf_hash FROM audit_entries LIMIT 1)",
			"moving a tile":                      "UPDATE audit_tiles SET id = id + 100",
			"deleting a tile":                    "DELETE FROM audit_tiles",
			"shrinking the tree":                 "UPDATE audit_tree SET size = 0",
			"deleting its size":                  "DELETE FROM audit_tree",
			"raising the floor beyond the tree":  "UPDATE audit_retention SET floor = 301",
			"deleting the floor":                 "DELETE FROM audit_retention",
			"deleting an entry above the floor":  `DELETE FROM audit_entries WHERE "index" = 0`,
			"deleting entries not in the tree":   `DELETE FROM audit_entries WHERE "index" >= 300`,
			"changing an entry":                  `UPDATE audit_entries SET detail = '{}' WHERE "index" = 5`,
			"a second row for the tree's size":   "INSERT INTO audit_tree (id, size, disorder) VALUES (2, 0, 0)",
			"a second row for the floor":         "INSERT INTO audit_retention (id, floor) VALUES (2, 400)",
			"changing an entry by an insert":     "INSERT INTO audit_entries SELECT * FROM audit_entries WHERE \"index\" = 5",
			"lowering the floor below what went": "UPDATE audit_retention SET floor = -1",
		}
		if s.Channel() != "" {
			for _, table := range []string{"audit_tiles", "audit_tree", "audit_retention"} {
				statements["emptying "+table] = "TRUNCATE " + table
			}
		} else {
			statements["replacing a tile"] = "INSERT OR REPLACE INTO audit_tiles (id, hashes) SELECT id, x'00' FROM audit_tiles"
			statements["replacing the size"] = "INSERT OR REPLACE INTO audit_tree (id, size, disorder) VALUES (1, 0, 0)"
		}
		for name, statement := range statements {
			t.Run("U1 "+name+" is refused", func(t *testing.T) {
				if _, err := s.Writer().ExecContext(t.Context(), statement); err == nil {
					t.Fatal("it was done")
				}
			})
		}
		t.Run("U3 what is removed is what is older, its hashes stay, and the floor with it", func(t *testing.T) {
			all := kept(t, s)
			removed, err := audit.NewLog(s).Prune(t.Context(), all[290].At)
			if err != nil || removed != 290 {
				t.Fatalf("removed %d, %v", removed, err)
			}
			now, v := checkpoint(t, s)
			if now.Floor != 290 || now.Size != 310 || !bytes.Equal(now.Root, rootOver(t, leavesOf(all))) {
				t.Fatalf("floor %d, size %d, root %x", now.Floor, now.Size, now.Root)
			}
			var file bytes.Buffer
			if err := audit.NewLog(s).Export(t.Context(), &file, audit.ExportOptions{Older: before.Note}); err != nil {
				t.Fatal(err)
			}
			if report, err := audit.Verify(&file, v, before.Note); err != nil || report.From != 290 || report.To != 310 || report.Older != 300 {
				t.Errorf("%+v, %v", report, err)
			}
			p, err := audit.NewLog(s).InclusionAt(t.Context(), 7, &now.Size)
			if err != nil || proof.VerifyInclusion(rfc6962.DefaultHasher, 7, uint64(now.Size), all[7].LeafHash, p.Hashes, now.Root) != nil {
				t.Errorf("a removed entry is not proven any more: %v", err)
			}
			if _, err := s.AuditEntry(t.Context(), all[7].ID); err == nil {
				t.Error("a removed entry is still there")
			}
		})
		t.Run("U3 the floor does not fall, and nothing above it goes", func(t *testing.T) {
			for _, statement := range []string{"UPDATE audit_retention SET floor = 289", `DELETE FROM audit_entries WHERE "index" = 290`} {
				if _, err := s.Writer().ExecContext(t.Context(), statement); err == nil {
					t.Errorf("%s was done", statement)
				}
			}
		})
		t.Run("U3 removing goes on with what comes, in any number of steps and processes", func(t *testing.T) {
			record(r, 3000)
			var work sync.WaitGroup
			var mu sync.Mutex
			total := int64(0)
			for range 3 {
				work.Go(func() {
					removed, err := audit.NewLog(s).Prune(t.Context(), time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
					mu.Lock()
					defer mu.Unlock()
					if total += removed; err != nil {
						t.Error(err)
					}
				})
			}
			work.Wait()
			if left := kept(t, s); total != 3020 || len(left) != 0 {
				t.Errorf("removed %d, left %d", total, len(left))
			}
			record(r, 3)
			_, v := checkpoint(t, s)
			var file bytes.Buffer
			if err := audit.NewLog(s).Export(t.Context(), &file, audit.ExportOptions{}); err != nil {
				t.Fatal(err)
			}
			if report, err := audit.Verify(&file, v, ""); err != nil || report.From != 3310 || report.To != 3313 {
				t.Errorf("%+v, %v", report, err)
			}
		})
	})
}

func TestAuditTreeFindsWhatIsGone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		record(r, 20)
		checkpoint(t, s)
		drop := "DROP TRIGGER audit_entries_no_delete"
		if s.Channel() != "" {
			drop += " ON audit_entries"
		}
		for _, statement := range []string{drop, `DELETE FROM audit_entries WHERE "index" = 7`} {
			if _, err := s.Writer().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		t.Run("U2 an entry that an operator deleted by hand is named by the export", func(t *testing.T) {
			if err := audit.NewLog(s).Export(t.Context(), io.Discard, audit.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "Entry 7 is not in the database") {
				t.Errorf("got %v", err)
			}
		})
		t.Run("U2 one that is gone before it joined the tree is named by the checkpoint", func(t *testing.T) {
			record(r, 3)
			if _, err := s.Writer().ExecContext(t.Context(), `DELETE FROM audit_entries WHERE "index" = 21`); err != nil {
				t.Fatal(err)
			}
			if _, err := audit.NewLog(s).Checkpoint(t.Context()); err == nil || !strings.Contains(err.Error(), "audit entry 21") {
				t.Errorf("got %v", err)
			}
		})
	})
}
