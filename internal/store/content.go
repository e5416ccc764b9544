package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/contentrecord"
	"github.com/countersign/countersign/ent/contentrevision"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
)

// Record implements content.Store.
func (s *Store) Record(ctx context.Context, table, id string) (content.Record, error) {
	row, err := s.client.ContentRecord.Query().
		Where(contentrecord.TableName(table), contentrecord.RecordID(id), contentrecord.Deleted(false)).Only(ctx)
	if err != nil {
		return content.Record{}, reading(ctx, err, "record")
	}
	return toRecord(row)
}

// RecordAt implements content.Store.
func (s *Store) RecordAt(ctx context.Context, row uuid.UUID) (content.Record, error) {
	found, err := s.client.ContentRecord.Query().Where(contentrecord.ID(row), contentrecord.Deleted(false)).Only(ctx)
	if err != nil {
		return content.Record{}, reading(ctx, err, "record")
	}
	return toRecord(found)
}

// Children implements content.Store.
func (s *Store) Children(ctx context.Context, table, parentID string) ([]content.Record, error) {
	rows, err := s.client.ContentRecord.Query().
		Where(contentrecord.TableName(table), contentrecord.ParentID(parentID), contentrecord.Deleted(false)).
		Order(contentrecord.ByPosition(), contentrecord.ByRecordID()).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "record")
	}
	return toRecords(rows)
}

// Translations implements content.Store.
func (s *Store) Translations(ctx context.Context, table, id string) ([]content.Record, error) {
	rows, err := s.client.ContentRecord.Query().
		Where(contentrecord.TableName(table), contentrecord.TranslationOf(id), contentrecord.Deleted(false)).
		Order(contentrecord.ByRecordID()).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "record")
	}
	return toRecords(rows)
}

// Showing implements content.Store. Ids need no escapes in JSON, so that the database
// can narrow by the text of the field; what is left is compared here.
func (s *Store) Showing(ctx context.Context, fileID string, limit int) ([]content.Record, error) {
	shown, err := json.Marshal(fileID)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the id of a file that is no JSON")
	}
	rows, err := s.client.ContentRecord.Query().
		Where(contentrecord.Deleted(false), contentrecord.ValuesContains(`"`+content.ImageField+`":`+string(shown))).
		Order(contentrecord.ByTableName(), contentrecord.ByRecordID()).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "record")
	}
	records, err := toRecords(rows)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r content.Record) bool { return r.Fields[content.ImageField] != fileID }), nil
}

// searchBatch is how many rows a search looks at at a time.
const searchBatch = 200

// Search implements content.Store. The database narrows by the words that it can
// compare without regard to case; what is left is compared here, in the texts
// alone.
func (s *Store) Search(ctx context.Context, table, words string, limit int) ([]content.Record, error) {
	wanted := strings.Fields(strings.ToLower(words))
	var found []content.Record
	for offset := 0; len(found) < limit; offset += searchBatch {
		query := s.client.ContentRecord.Query().Where(contentrecord.TableName(table), contentrecord.Deleted(false))
		for _, word := range wanted {
			if comparable(word) {
				query.Where(contentrecord.ValuesContainsFold(word))
			}
		}
		rows, err := query.Order(contentrecord.ByUpdatedAt(entsql.OrderDesc()), contentrecord.ByID()).
			Offset(offset).Limit(searchBatch).All(ctx)
		if err != nil {
			return nil, reading(ctx, err, "record")
		}
		records, err := toRecords(rows)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			if len(found) < limit && holds(record.Fields, wanted) {
				found = append(found, record)
			}
		}
		if len(rows) < searchBatch {
			break
		}
	}
	return found, nil
}

// comparable reports whether a word stands in JSON as it is and whether both
// databases fold its case alike.
func comparable(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// holds reports whether every word stands in a text of the fields.
func holds(fields map[string]any, words []string) bool {
	for _, word := range words {
		if !stands(fields, word) {
			return false
		}
	}
	return true
}

func stands(value any, word string) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(strings.ToLower(v), word)
	case []any:
		for _, item := range v {
			if stands(item, word) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if stands(item, word) {
				return true
			}
		}
	}
	return false
}

// History implements content.Store, newest first. A record that is deleted keeps its
// history.
func (s *Store) History(ctx context.Context, table, id string) ([]content.Revision, error) {
	row, err := s.client.ContentRecord.Query().
		Where(contentrecord.TableName(table), contentrecord.RecordID(id)).OnlyID(ctx)
	if err != nil {
		return nil, reading(ctx, err, "record")
	}
	rows, err := s.client.ContentRevision.Query().Where(contentrevision.Record(row)).
		Order(contentrevision.ByRevision(entsql.OrderDesc())).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "revision")
	}
	history := make([]content.Revision, len(rows))
	for i, row := range rows {
		fields, err := decoded[map[string]any](row.Values)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "revision %d of %s %s cannot be read", row.Revision, table, id)
		}
		history[i] = content.Revision{
			Revision: row.Revision, Kind: row.Kind, Fields: fields, ParentID: row.ParentID, Hidden: row.Hidden, Actor: known(row.ActorID), Run: known(row.RunID), At: row.At.UTC(),
		}
	}
	return history, nil
}

// Written implements content.Store. The record may be deleted by now: the write
// was made all the same.
func (s *Store) Written(ctx context.Context, run uuid.UUID, key string) (content.Record, bool, error) {
	row, err := s.client.ContentRevision.Query().
		Where(contentrevision.RunID(run), contentrevision.CallKey(key)).QueryOf().Only(ctx)
	if ent.IsNotFound(err) {
		return content.Record{}, false, nil
	}
	if err != nil {
		return content.Record{}, false, reading(ctx, err, "record")
	}
	record, err := toRecord(row)
	return record, err == nil, err
}

// WrittenBeside implements content.Store.
func (s *Store) WrittenBeside(ctx context.Context, run uuid.UUID, keys string) ([]content.Record, error) {
	rows, err := s.client.ContentRevision.Query().
		Where(contentrevision.RunID(run), contentrevision.CallKeyHasPrefix(keys)).
		Order(contentrevision.ByCallKey()).WithOf().All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "record")
	}
	records := make([]content.Record, len(rows))
	for i, row := range rows {
		if records[i], err = toRecord(row.Edges.Of); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// NextPosition implements content.Store. Deleted records keep their places.
func (s *Store) NextPosition(ctx context.Context, table, parentID string) (int, error) {
	rows, err := s.client.ContentRecord.Query().
		Where(contentrecord.TableName(table), contentrecord.ParentID(parentID)).
		Order(contentrecord.ByPosition(entsql.OrderDesc())).Limit(1).All(ctx)
	if err != nil || len(rows) == 0 {
		return 0, failed(ctx, err, "read the positions")
	}
	return rows[0].Position + 1, nil
}

func toRecords(rows []*ent.ContentRecord) ([]content.Record, error) {
	records := make([]content.Record, len(rows))
	for i, row := range rows {
		var err error
		if records[i], err = toRecord(row); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func toRecord(row *ent.ContentRecord) (content.Record, error) {
	fields, err := decoded[map[string]any](row.Values)
	if err != nil {
		return content.Record{}, fault.Wrap(fault.Internal, err, "the fields of %s %s cannot be read", row.TableName, row.RecordID)
	}
	return content.Record{
		Row: row.ID, Table: row.TableName, ID: row.RecordID, ParentID: row.ParentID, TranslationOf: row.TranslationOf, Position: row.Position,
		Fields: fields, Revision: row.Revision, Hidden: row.Hidden, Deleted: row.Deleted, UpdatedAt: row.UpdatedAt.UTC(),
	}, nil
}
