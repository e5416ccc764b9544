package graph

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

func toRecord(r content.Record) *model.Record {
	return &model.Record{
		Table: r.Table, ID: r.ID, ParentID: given(r.ParentID), TranslationOf: given(r.TranslationOf), Position: r.Position, Fields: toFields(r.Table, r.Fields),
		Revision: r.Revision, Hidden: r.Hidden, UpdatedAt: r.UpdatedAt,
	}
}

func recordKey(r content.Record) string { return r.ID }

func recordConnection(w window, read []content.Record) *model.RecordConnection {
	c := &model.RecordConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, recordKey, toRecord,
		func(cursor string, n *model.Record) *model.RecordEdge {
			return &model.RecordEdge{Cursor: cursor, Node: n}
		})
	return c
}

func toRevision(table string) func(content.Revision) *model.Revision {
	return func(r content.Revision) *model.Revision {
		return &model.Revision{
			Revision: r.Revision, Kind: r.Kind, Fields: toFields(table, r.Fields), RunID: runKind.maybe(r.Run), At: r.At, ActorID: r.Actor,
		}
	}
}

func toReference(r *tool.Record) *model.RecordReference {
	if r == nil {
		return nil
	}
	return &model.RecordReference{Table: r.Table, ID: r.ID}
}

// toFields writes the fields of a record. Fields that name users hold row ids in the content room and API ids here.
func toFields(table string, fields map[string]any) json.RawMessage {
	out := maps.Clone(fields)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range out {
		ids, ok := textList(v)
		if !ok || !namesUsers(table, name) {
			continue
		}
		users := make([]string, 0, len(ids))
		for _, id := range ids {
			if row, err := uuid.Parse(id); err == nil {
				users = append(users, userKind.id(row))
			}
		}
		out[name] = users
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(fault.Wrap(fault.Internal, err, "fields of a record that are no JSON"))
	}
	return raw
}

// fromFields reads the fields of a record.
func fromFields(table string, raw json.RawMessage) (map[string]any, error) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, fault.New(fault.BadInput, "fields must be a JSON object.")
	}
	for name, v := range fields {
		ids, ok := textList(v)
		if !ok || !namesUsers(table, name) {
			continue // the content room says what a field may hold
		}
		rows := make([]string, len(ids))
		for i, id := range ids {
			row, err := userKind.row(id)
			if err != nil {
				return nil, err
			}
			rows[i] = row.String()
		}
		fields[name] = rows
	}
	return fields, nil
}

// namesUsers reports whether a field of a table holds users.
func namesUsers(table, field string) bool {
	t, err := content.TableNamed(table)
	if err != nil {
		return false
	}
	f, known := t.Field(field)
	return known && f.Type == content.Users
}

// textList reads a list of texts as the rooms keep one or as JSON gives one.
func textList(v any) ([]string, bool) {
	switch list := v.(type) {
	case []string:
		return list, true
	case []any:
		out := make([]string, len(list))
		for i, e := range list {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	}
	return nil, false
}

// children is a window of the records of a table below a parent.
func (r *Resolver) children(ctx context.Context, w window, table, parentID string) (*model.RecordConnection, error) {
	all, err := r.Content.Children(ctx, caller(ctx), table, parentID)
	if err != nil {
		return nil, err
	}
	read, err := slice(w, all, recordKey)
	if err != nil {
		return nil, err
	}
	return recordConnection(w, read), nil
}

func revisionKey(r content.Revision) string { return strconv.Itoa(r.Revision) }

func revisionConnection(w window, table string, read []content.Revision) *model.RevisionConnection {
	c := &model.RevisionConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, revisionKey, toRevision(table),
		func(cursor string, n *model.Revision) *model.RevisionEdge {
			return &model.RevisionEdge{Cursor: cursor, Node: n}
		})
	return c
}

// seenRevision refuses a revision that no record has.
func seenRevision(revision int) error {
	if revision < 1 {
		return fault.New(fault.BadInput, "revision must be the one that the change started from: 1 or more.")
	}
	return nil
}

// toNames are the records that should have gone along with a write and did not.
func toNames(refusal model.Refusal, left content.Left) []*model.RecordReference {
	if refusal != nil {
		return nil
	}
	out := make([]*model.RecordReference, len(left.Names))
	for i, n := range left.Names {
		out[i] = &model.RecordReference{Table: n.Table, ID: n.ID}
	}
	return out
}

// toTexts is a list that is null when the rules refused.
func toTexts(refusal model.Refusal, texts []string) []string {
	if refusal != nil {
		return nil
	}
	return append([]string{}, texts...)
}

// deletedName is the id of a deleted record, or null when the rules refused it.
func deletedName(refusal model.Refusal, id string) *string {
	if refusal != nil {
		return nil
	}
	return &id
}

// fromElements reads the texts of a page's elements.
func fromElements(raw json.RawMessage) (map[string]map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var elements map[string]map[string]any
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, fault.New(fault.BadInput, "elements must be a JSON object of objects.")
	}
	return elements, nil
}

func some(n int) *int { return &n }
