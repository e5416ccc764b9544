package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/auditentry"
	"github.com/countersign/countersign/ent/audittile"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
)

// growsBy is how many entries join the tree in one transaction.
const growsBy = 4096

// GrowAuditTree implements audit.Store. Each step is a transaction that moves the
// tree's size from what it was: of several processes one wins, and one that stopped
// half-way left nothing.
func (s *Store) GrowAuditTree(ctx context.Context) (int64, error) {
	goal, err := s.AuditSize(ctx)
	if err != nil {
		return 0, err
	}
	for {
		tree, err := s.client.AuditTree.Get(ctx, 1)
		if err != nil {
			return 0, failed(ctx, err, "read the size of the audit tree")
		}
		if tree.Size >= goal {
			return tree.Size, nil
		}
		if err := s.growAuditTree(ctx, tree); err != nil {
			return 0, failed(ctx, err, "extend the audit tree")
		}
	}
}

// growAuditTree adds the next entries to the tree, unless another process was faster.
func (s *Store) growAuditTree(ctx context.Context, tree *ent.AuditTree) error {
	entries, err := s.client.AuditEntry.Query().Select(auditentry.FieldIndex, auditentry.FieldAt, auditentry.FieldLeafHash).
		Where(auditentry.IndexGTE(tree.Size), auditentry.IndexLT(tree.Size+growsBy)).Order(auditentry.ByIndex()).All(ctx)
	if err != nil {
		return err
	}
	leaves := make([][]byte, len(entries))
	latest, disorder := tree.Latest, tree.Disorder
	for i, e := range entries {
		if e.Index != tree.Size+int64(i) {
			return fault.New(fault.Internal, "audit entry %d is not in the database", tree.Size+int64(i))
		}
		leaves[i] = e.LeafHash
		if latest == nil || e.At.After(*latest) {
			latest = &e.At
		}
		disorder = max(disorder, latest.Sub(e.At).Microseconds())
	}
	if len(leaves) == 0 {
		return fault.New(fault.Internal, "audit entry %d is not in the database", tree.Size)
	}
	edge, err := s.AuditTiles(ctx, audit.Edge(tree.Size))
	if err != nil {
		return err
	}
	grown, err := audit.Grow(tree.Size, edge, leaves)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx transaction) error {
		statement, args := entsql.Dialect(s.dialect).Update("audit_tree").Set("size", tree.Size+int64(len(leaves))).
			Set("latest", stored(*latest)).Set("disorder", disorder).Where(entsql.And(entsql.EQ("id", 1), entsql.EQ("size", tree.Size))).Query()
		moved, err := tx.affected(statement, args...)
		if err != nil || moved == 0 {
			return err
		}
		return tx.tiles(grown)
	})
}

// tiles stores tiles, in the order of their numbers.
func (tx transaction) tiles(tiles audit.Tiles) error {
	numbers := make([]int64, 0, len(tiles))
	for id := range tiles {
		numbers = append(numbers, id.Number())
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		statement, args := entsql.Dialect(tx.dialect).Insert("audit_tiles").Columns("id", "hashes").
			Values(number, tiles[audit.TileNumbered(number)]).OnConflict(entsql.ConflictColumns("id"), entsql.ResolveWithNewValues()).Query()
		if err := tx.exec(statement, args...); err != nil {
			return fmt.Errorf("audit_tiles: %w", err)
		}
	}
	return nil
}

// AuditTiles implements audit.TileReader.
func (s *Store) AuditTiles(ctx context.Context, ids []audit.TileID) (audit.Tiles, error) {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i] = id.Number()
	}
	rows, err := s.client.AuditTile.Query().Where(audittile.IDIn(numbers...)).All(ctx)
	if err != nil {
		return nil, failed(ctx, err, "read the audit tree")
	}
	tiles := make(audit.Tiles, len(rows))
	for _, row := range rows {
		tiles[audit.TileNumbered(row.ID)] = row.Hashes
	}
	return tiles, nil
}

// StoredEntries implements audit.Store.
func (s *Store) StoredEntries(ctx context.Context, from int64, limit int) ([]audit.Stored, error) {
	rows, err := s.client.AuditEntry.Query().Where(auditentry.IndexGTE(from)).Order(auditentry.ByIndex()).Limit(limit).All(ctx)
	if err != nil {
		return nil, failed(ctx, err, "read audit entries")
	}
	entries := make([]audit.Stored, len(rows))
	for i, row := range rows {
		e, err := toEntry(row)
		if err != nil {
			return nil, err
		}
		entries[i] = audit.Stored{Entry: e, Text: []byte(row.Canonical)}
	}
	return entries, nil
}

// FirstAuditEntrySince implements audit.Store.
func (s *Store) FirstAuditEntrySince(ctx context.Context, at time.Time) (int64, error) {
	size, err := s.AuditSize(ctx)
	if err != nil {
		return 0, err
	}
	row, err := s.client.AuditEntry.Query().Where(auditentry.AtGTE(stored(at))).Order(auditentry.ByIndex()).First(ctx)
	if ent.IsNotFound(err) {
		return size, nil // what came meanwhile has a higher index
	}
	if err != nil {
		return 0, failed(ctx, err, "find the oldest audit entry to keep")
	}
	return row.Index, nil
}

// AuditFloor implements audit.Store.
func (s *Store) AuditFloor(ctx context.Context) (int64, error) {
	row, err := s.client.AuditRetention.Get(ctx, 1)
	if err != nil {
		return 0, failed(ctx, err, "read where the audit trail begins")
	}
	return row.Floor, nil
}

// removesBy is how many entries go in one transaction.
const removesBy = 1000

// RemoveAuditEntries implements audit.Store. The floor and the entries below it move
// in one transaction; the database refuses to delete any other.
func (s *Store) RemoveAuditEntries(ctx context.Context, below int64) (int64, error) {
	var removed int64
	for {
		floor, err := s.AuditFloor(ctx)
		if err != nil || floor >= below {
			return removed, err
		}
		next := min(floor+removesBy, below)
		var gone int64
		err = s.write(ctx, func(tx transaction) error {
			raise, args := entsql.Dialect(s.dialect).Update("audit_retention").Set("floor", next).
				Where(entsql.And(entsql.EQ("id", 1), entsql.EQ("floor", floor))).Query()
			raised, err := tx.affected(raise, args...)
			if gone = 0; err != nil || raised == 0 {
				return err // another process removes them
			}
			remove, args := entsql.Dialect(s.dialect).Delete("audit_entries").Where(entsql.LT("index", next)).Query()
			gone, err = tx.affected(remove, args...)
			return err
		})
		if err != nil {
			return removed, failed(ctx, err, "remove audit entries")
		}
		removed += gone
	}
}

// write does something in a transaction of its own, in its turn among the writers,
// and again if others were in the way.
func (s *Store) write(ctx context.Context, do func(transaction) error) error {
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.turn.Release(1)
	for attempt := 1; ; attempt++ {
		err := s.once(ctx, do)
		if err == nil || attempt == attempts || ctx.Err() != nil || diagnose(err) != retry {
			return err
		}
		pause(ctx, attempt)
	}
}

func (s *Store) once(ctx context.Context, do func(transaction) error) error {
	begun, err := s.writer.BeginTx(ctx, s.isolation())
	if err != nil {
		return err
	}
	defer begun.Rollback() // after a commit this does nothing
	if err := do(transaction{begun, s.dialect, ctx}); err != nil {
		return err
	}
	return begun.Commit()
}

// affected runs a statement and says how many rows it changed.
func (tx transaction) affected(statement string, args ...any) (int64, error) {
	result, err := tx.ExecContext(tx.ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// auditSigner is where the key that signs checkpoints is sealed.
var auditSigner = place{"audit_key", "signer", "1"}

// makeAuditKey makes the key that signs checkpoints if there is none.
func (s *Store) makeAuditKey(ctx context.Context, sealer *sealer) error {
	var there int
	err := s.writer.QueryRowContext(ctx, "SELECT id FROM audit_key").Scan(&there)
	if !errors.Is(err, sql.ErrNoRows) {
		return failed(ctx, err, "read the key that signs audit checkpoints")
	}
	signer, verifier, err := audit.NewKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key that signs audit checkpoints: %w", err)
	}
	statement, args := entsql.Dialect(s.dialect).Insert("audit_key").Columns("id", "verifier", "signer").
		Values(1, verifier, sealer.seal(auditSigner, signer)).OnConflict(entsql.DoNothing()).Query() // another replica may be first
	_, err = s.writer.ExecContext(ctx, statement, args...)
	return failed(ctx, err, "keep the key that signs audit checkpoints")
}

// AuditKey implements audit.Store.
func (s *Store) AuditKey(ctx context.Context) (signer, verifier string, err error) {
	seals, err := s.seals()
	if err != nil {
		return "", "", err
	}
	row, err := s.client.AuditKey.Get(ctx, 1)
	if err != nil {
		return "", "", failed(ctx, err, "read the key that signs audit checkpoints")
	}
	if signer, err = seals.open(auditSigner, row.Signer); err != nil {
		return "", "", fault.Wrap(fault.Internal, err, "the key that signs audit checkpoints cannot be read")
	}
	return signer, row.Verifier, nil
}
