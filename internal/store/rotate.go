package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
)

// NewKey makes an encryption key from the system's randomness.
func NewKey() Key { return newKey() }

// Rotation is how far the texts of one column have been sealed anew.
type Rotation struct {
	Table, Column string
	Done          int // sealed under the first key now
	Failed        []Unopened
}

// Unopened is a row whose text could not be opened, and stays as it was.
type Unopened struct {
	Row string
	Err error
}

// own are the sealed columns of the store's own tables, which have one row each.
var own = []change.Declared{
	{Table: "installation", Column: keyCheckPlace.column, Sealed: true}, {Table: "audit_key", Column: auditSigner.column, Sealed: true},
}

// sealedColumns are all columns that are sealed, in one order.
func sealedColumns() []change.Declared {
	all := slices.DeleteFunc(append(change.Columns(), own...), func(c change.Declared) bool { return !c.Sealed })
	slices.SortFunc(all, func(a, b change.Declared) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Column, b.Column))
	})
	return all
}

// rotationBatch is how many rows are sealed anew in one transaction.
const rotationBatch = 100

// Rotate seals everything anew that is sealed under another key than the first, in
// batches, and tells each whenever a column is further on. It may be stopped at any time and
// begun again: what is under the first key is not looked at. A row that cannot be opened
// is told and left alone. A server may work meanwhile, if it knows the first key: a row that it
// writes during the rotation is its own.
func (s *Store) Rotate(ctx context.Context, each func(Rotation)) ([]Rotation, error) {
	seals, err := s.seals()
	if err != nil {
		return nil, err
	}
	var all []Rotation
	for _, column := range sealedColumns() {
		r := Rotation{Table: string(column.Table), Column: column.Column}
		err := s.rotate(ctx, seals, &r, slices.Contains(own, column), each)
		if r.Done > 0 || len(r.Failed) > 0 {
			all = append(all, r)
		}
		if err != nil {
			return all, failed(ctx, err, fmt.Sprintf("seal %s.%s anew", r.Table, r.Column))
		}
	}
	return all, nil
}

// sealedText is a sealed text with the row that holds it.
type sealedText struct{ row, text string }

// rotate seals one column anew.
func (s *Store) rotate(ctx context.Context, seals *sealer, r *Rotation, numbered bool, each func(Rotation)) error {
	for after := ""; ; {
		texts, err := s.under(ctx, seals, r, numbered, after)
		if err != nil || len(texts) == 0 {
			return err
		}
		after = texts[len(texts)-1].row
		if err := s.reseal(ctx, seals, r, texts); err != nil {
			return err
		}
		each(*r)
		if numbered || len(texts) < rotationBatch {
			return nil
		}
	}
}

// under lists the next texts of a column that are not sealed with the first key.
func (s *Store) under(ctx context.Context, seals *sealer, r *Rotation, numbered bool, after string) ([]sealedText, error) {
	first := seals.first + ":"
	query := entsql.Dialect(s.dialect).Select("id", r.Column).From(entsql.Table(r.Table)).Where(entsql.And(
		entsql.NotNull(r.Column), entsql.NEQ(r.Column, ""),
		entsql.Not(entsql.P(func(b *entsql.Builder) {
			b.WriteString("substr(").Ident(r.Column).WriteString(", 1, ").Arg(len(first)).WriteString(") = ").Arg(first)
		})),
	)).OrderBy("id").Limit(rotationBatch)
	if after != "" && !numbered {
		cursor, err := uuid.Parse(after)
		if err != nil {
			return nil, err
		}
		query.Where(entsql.GT("id", cursor))
	}
	statement, args := query.Query()
	rows, err := s.reader.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var texts []sealedText
	for rows.Next() {
		var t sealedText
		var id uuid.UUID
		var number int
		into := any(&id)
		if numbered {
			into = &number
		}
		if err := rows.Scan(into, &t.text); err != nil {
			return nil, err
		}
		t.row = id.String()
		if numbered {
			t.row = fmt.Sprint(number)
		}
		texts = append(texts, t)
	}
	return texts, rows.Err()
}

// reseal stores texts under the first key, in one transaction, unless a text has changed
// since it was read.
func (s *Store) reseal(ctx context.Context, seals *sealer, r *Rotation, texts []sealedText) error {
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.turn.Release(1)
	begun, err := s.writer.BeginTx(ctx, s.isolation())
	if err != nil {
		return err
	}
	defer begun.Rollback()
	done, unopened := 0, []Unopened(nil)
	for _, t := range texts {
		at := place{r.Table, r.Column, t.row}
		text, err := seals.open(at, t.text)
		if err != nil {
			unopened = append(unopened, Unopened{Row: t.row, Err: err})
			continue
		}
		var id any = 1
		if row, err := uuid.Parse(t.row); err == nil {
			id = row
		}
		statement, args := entsql.Dialect(s.dialect).Update(r.Table).Set(r.Column, seals.seal(at, text)).
			Where(entsql.And(entsql.EQ("id", id), entsql.EQ(r.Column, t.text))).Query()
		result, err := begun.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		hit, err := result.RowsAffected()
		if err != nil {
			return err
		}
		done += int(hit)
	}
	if err := begun.Commit(); err != nil {
		return err
	}
	r.Done += done
	r.Failed = append(r.Failed, unopened...)
	return nil
}
