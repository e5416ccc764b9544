package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// answers is what a rotation came to with the answers of runs.
func answers(all []store.Rotation) (done, unopened int) {
	for _, r := range all {
		if r.Table == "runs" && r.Column == "answer" {
			return r.Done, len(r.Failed)
		}
	}
	return 0, 0
}

func TestRotate(t *testing.T) {
	fresh := store.NewKey()
	both := store.Options{Keys: []store.Key{fresh, storetest.Key}}
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			at := database.URL(t)
			old := storetest.OpenAt(t, at, store.Options{})
			rows := storetest.NewRows(t, old)
			var runs []uuid.UUID
			for range 250 { // more than two batches
				runs = append(runs, rows.Run(storetest.Sealed("answer", "the answer")))
			}
			damaged := runs[120]
			rows.Apply(change.Change{Updates: []change.Update{{Table: "runs", ID: damaged, Set: []change.Value{storetest.V("answer", "gone:AAAA")}}}})

			t.Run("R16 a rotation that was stopped goes on where it was", func(t *testing.T) {
				s := storetest.OpenAt(t, at, both)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				all, err := s.Rotate(ctx, func(r store.Rotation) {
					if r.Table == "runs" {
						stop()
					}
				})
				first, _ := answers(all)
				if !errors.Is(err, context.Canceled) || first != 100 {
					t.Fatalf("%d sealed anew, %v", first, err)
				}
				all, err = s.Rotate(t.Context(), func(store.Rotation) {})
				rest, unopened := answers(all)
				if err != nil || first+rest != 249 || unopened != 1 {
					t.Errorf("%d and %d sealed anew, %d not opened, %v", first, rest, unopened, err)
				}
			})
			t.Run("R16 a row that cannot be opened is named and stays as it was", func(t *testing.T) {
				all, err := storetest.OpenAt(t, at, both).Rotate(t.Context(), func(store.Rotation) {})
				if err != nil || len(all) != 1 || all[0].Table != "runs" || all[0].Column != "answer" || all[0].Done != 0 ||
					len(all[0].Failed) != 1 || all[0].Failed[0].Row != damaged.String() || all[0].Failed[0].Err == nil {
					t.Errorf("%+v, %v", all, err)
				}
			})
			t.Run("R16 afterwards the new key opens everything, and the old one not even the database", func(t *testing.T) {
				s := storetest.OpenAt(t, at, store.Options{Keys: []store.Key{fresh}})
				for _, id := range runs {
					r, err := s.Run(t.Context(), id)
					if err != nil || (r.Answer == "the answer") == (id == damaged) {
						t.Errorf("%s: %q, %v", id, r.Answer, err)
					}
				}
				if _, _, err := s.AuditKey(t.Context()); err != nil {
					t.Errorf("the key that signs checkpoints: %v", err)
				}
				refused(t, at, store.Options{Keys: []store.Key{storetest.Key}}, "the encryption key is not the one")
			})
		})
	}
}

// TestSealedColumns: a rotation knows every column that the schema seals, and the store's own.
func TestSealedColumns(t *testing.T) {
	files, err := filepath.Glob("../../ent/schema/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schema: %v", err)
	}
	sealed := 0
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sealed += len(regexp.MustCompile(`(?m)^\t\tsealed\("`).FindAll(source, -1))
	}
	if known := len(store.SealedColumns()); sealed < 5 || known != sealed+2 {
		t.Errorf("R16 the schema seals %d columns and the store 2 of its own, a rotation knows %d: declare each with change.Sealed", sealed, known)
	}
}
