package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/runcontent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
)

// runContents holds what was said in the steps of runs (RULES Y1), beside their events.
const runContents change.Table = "run_contents"

// runContent is declared for the rotation of keys; the rows are written with the events.
var runContent = change.Sealed(runContents, runcontent.FieldContent)

// wordsOf is the row of a step's content. A sealed text opens in its own row alone, so
// that no content can be shown as another step's.
func wordsOf(id uuid.UUID, sequence int) uuid.UUID {
	return uuid.NewSHA1(id, []byte(strconv.Itoa(sequence)))
}

// words stores the content of events whose first one has the sequence first.
func (tx transaction) words(seals *sealer, id uuid.UUID, first int, events []run.Event) error {
	for n, e := range events {
		if e.Content == nil {
			continue
		}
		text, err := json.Marshal(e.Content)
		if err != nil {
			return err
		}
		row := wordsOf(id, first+n)
		statement, args := entsql.Dialect(tx.dialect).Insert(string(runContents)).
			Columns(runcontent.FieldID, runcontent.FieldRunID, runcontent.FieldSequence, runcontent.FieldContent).
			Values(row, id, first+n, seals.seal(place{string(runContents), runContent.Name(), row.String()}, string(text))).Query()
		if err := tx.exec(statement, args...); err != nil {
			return fmt.Errorf("%s: %w", runContents, err)
		}
	}
	return nil
}

// withWords adds their content to events of one run that say they have any. What cannot
// be decrypted makes its own event unreadable, and no other.
func (s *Store) withWords(ctx context.Context, id uuid.UUID, events []run.Event) error {
	var said []uuid.UUID
	for _, e := range events {
		if e.Data.Content {
			said = append(said, wordsOf(id, e.Sequence))
		}
	}
	if len(said) == 0 {
		return nil
	}
	rows, err := s.client.RunContent.Query().Where(runcontent.IDIn(said...)).All(ctx)
	if err != nil {
		return reading(ctx, err, "run content")
	}
	found := make(map[uuid.UUID]*ent.RunContent, len(rows))
	for _, row := range rows {
		found[row.ID] = row
	}
	seals, err := s.seals()
	if err != nil {
		return err
	}
	for i, e := range events {
		if !e.Data.Content {
			continue
		}
		row := wordsOf(id, e.Sequence)
		content, err := opened(seals, row, found[row])
		if err != nil {
			s.log.ErrorContext(ctx, "what was said in a step of a run cannot be read", "run", id, "sequence", e.Sequence, "error", err)
			events[i].Unreadable = true
			continue
		}
		events[i].Content = &content
	}
	return nil
}

func opened(seals *sealer, id uuid.UUID, row *ent.RunContent) (run.Content, error) {
	if row == nil {
		return run.Content{}, fmt.Errorf("%w: its row is gone", errUnreadable)
	}
	text, err := seals.open(place{string(runContents), runContent.Name(), id.String()}, row.Content)
	if err != nil {
		return run.Content{}, err
	}
	return decoded[run.Content](text)
}
