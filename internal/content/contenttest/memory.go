// Package contenttest is for tests only: a store of the content room in memory, and
// the suite that every store of the content room has to pass.
package contenttest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
)

const (
	records   change.Table = "content_records"
	revisions change.Table = "content_revisions"
)

// row is a row as a database has it: columns by name.
type row map[string]any

// Memory is a content.Store that keeps what a database would keep and loses what a
// database would refuse. Safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	rows    map[change.Table]map[uuid.UUID]row
	entries int64 // of the audit trail, which only the next index is known of
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{rows: map[change.Table]map[uuid.UUID]row{records: {}, revisions: {}}}
}

// uniques are the unique constraints; a NULL is unlike every other.
var uniques = map[change.Table][][]string{
	records:   {{"id"}, {"table_name", "record_id"}},
	revisions: {{"id"}, {"record", "revision"}, {"run_id", "call_key"}},
}

// Apply applies changes, each whole or not at all.
func (m *Memory) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]change.Outcome, len(changes))
	for i, c := range changes {
		next := m.copyRows()
		lost, ok := applyTo(next, c)
		if !ok {
			out[i] = change.Outcome{Lost: lost}
			continue
		}
		out[i] = change.Outcome{Applied: true, FirstIndex: m.entries}
		m.rows = next
		m.entries += int64(len(c.Audit))
	}
	return out, nil
}

func (m *Memory) copyRows() map[change.Table]map[uuid.UUID]row {
	next := make(map[change.Table]map[uuid.UUID]row, len(m.rows))
	for table, rows := range m.rows {
		next[table] = maps.Clone(rows)
	}
	return next
}

func applyTo(rows map[change.Table]map[uuid.UUID]row, c change.Change) (change.Table, bool) {
	for _, u := range c.Updates {
		found, ok := rows[u.Table][u.ID]
		if !ok || !holds(found, u.If) {
			return u.Table, false
		}
		changed := maps.Clone(found)
		for _, v := range u.Set {
			changed[v.Column] = v.Arg
		}
		rows[u.Table][u.ID] = changed
	}
	for _, in := range c.Inserts {
		made := row{}
		for _, v := range in.Row {
			made[v.Column] = v.Arg
		}
		for _, columns := range uniques[in.Table] {
			if taken(rows[in.Table], made, columns) {
				return in.Table, false
			}
		}
		rows[in.Table][made["id"].(uuid.UUID)] = made
	}
	return "", true
}

func holds(found row, guards []change.Value) bool {
	for _, g := range guards {
		if g.In == nil && found[g.Column] != g.Arg || g.In != nil && !slices.Contains(g.In, found[g.Column]) {
			return false
		}
	}
	return true
}

func taken(rows map[uuid.UUID]row, made row, columns []string) bool {
	for _, other := range rows {
		same := true
		for _, column := range columns {
			same = same && made[column] != nil && made[column] == other[column]
		}
		if same {
			return true
		}
	}
	return false
}

func fieldsOf(r row) map[string]any {
	var fields map[string]any
	if err := json.Unmarshal([]byte(r["fields"].(string)), &fields); err != nil {
		panic(fmt.Sprintf("contenttest: stored fields: %v", err))
	}
	return fields
}

func recordOf(r row) content.Record {
	return content.Record{
		Row: r["id"].(uuid.UUID), Table: r["table_name"].(string), ID: r["record_id"].(string),
		ParentID: r["parent_id"].(string), TranslationOf: r["translation_of"].(string), Position: int(r["position"].(int64)), Fields: fieldsOf(r),
		Revision: int(r["revision"].(int64)), Hidden: r["hidden"].(bool), Deleted: r["deleted"].(bool),
		UpdatedAt: r["updated_at"].(time.Time),
	}
}

// list returns the records that are there and match.
func (m *Memory) list(match func(content.Record) bool) []content.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []content.Record{}
	for _, r := range m.rows[records] {
		if rec := recordOf(r); !rec.Deleted && match(rec) {
			out = append(out, rec)
		}
	}
	slices.SortFunc(out, func(a, b content.Record) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Record returns one record.
func (m *Memory) Record(_ context.Context, table, id string) (content.Record, error) {
	found := m.list(func(r content.Record) bool { return r.Table == table && r.ID == id })
	if len(found) == 0 {
		return content.Record{}, fault.New(fault.NotFound, "no %s %s", table, id)
	}
	return found[0], nil
}

// RecordAt returns the record with a row.
func (m *Memory) RecordAt(_ context.Context, row uuid.UUID) (content.Record, error) {
	found := m.list(func(r content.Record) bool { return r.Row == row })
	if len(found) == 0 {
		return content.Record{}, fault.New(fault.NotFound, "no record %s", row)
	}
	return found[0], nil
}

// Children lists the records of a table below a parent.
func (m *Memory) Children(_ context.Context, table, parentID string) ([]content.Record, error) {
	return m.list(func(r content.Record) bool { return r.Table == table && r.ParentID == parentID }), nil
}

// NextPosition is one after the last child.
func (m *Memory) NextPosition(ctx context.Context, table, parentID string) (int, error) {
	children, err := m.Children(ctx, table, parentID)
	next := 0
	for _, c := range children {
		next = max(next, c.Position+1)
	}
	return next, err
}

// Search finds records that contain all words in one text field or another.
func (m *Memory) Search(_ context.Context, table, words string, limit int) ([]content.Record, error) {
	found := m.list(func(r content.Record) bool {
		var all strings.Builder
		for _, v := range r.Fields {
			if s, ok := v.(string); ok {
				all.WriteString(strings.ToLower(s) + "\n")
			}
		}
		for _, w := range strings.Fields(strings.ToLower(words)) {
			if !strings.Contains(all.String(), w) {
				return false
			}
		}
		return r.Table == table
	})
	slices.SortStableFunc(found, func(a, b content.Record) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return found[:min(limit, len(found))], nil
}

// Translations lists the translations of a record.
func (m *Memory) Translations(_ context.Context, table, id string) ([]content.Record, error) {
	found := m.list(func(r content.Record) bool { return r.Table == table && r.TranslationOf == id })
	slices.SortFunc(found, func(a, b content.Record) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// Showing lists the records that show a file.
func (m *Memory) Showing(_ context.Context, fileID string, limit int) ([]content.Record, error) {
	found := m.list(func(r content.Record) bool { return r.Fields[content.ImageField] == fileID })
	slices.SortFunc(found, func(a, b content.Record) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.ID, b.ID))
	})
	return found[:min(limit, len(found))], nil
}

// History lists the revisions of a record, of a deleted one too.
func (m *Memory) History(_ context.Context, table, id string) ([]content.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var of any
	for row, r := range m.rows[records] {
		if r["table_name"] == table && r["record_id"] == id {
			of = row
		}
	}
	if of == nil {
		return nil, fault.New(fault.NotFound, "no %s %s", table, id)
	}
	var out []content.Revision
	for _, r := range m.rows[revisions] {
		if r["record"] != of {
			continue
		}
		run, _ := r["run_id"].(uuid.UUID)
		parent, hidden := r["parent_id"].(string), r["hidden"].(bool)
		out = append(out, content.Revision{
			ParentID: &parent, Hidden: &hidden,
			Revision: int(r["revision"].(int64)), Kind: r["kind"].(string), Fields: fieldsOf(r),
			Actor: r["actor_id"].(uuid.UUID), Run: run, At: r["at"].(time.Time),
		})
	}
	slices.SortFunc(out, func(a, b content.Revision) int { return a.Revision - b.Revision })
	return out, nil
}

// Written returns the record that a call of a run wrote.
func (m *Memory) Written(_ context.Context, run uuid.UUID, key string) (content.Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows[revisions] {
		if r["run_id"] == run && r["call_key"] == key {
			return recordOf(m.rows[records][r["record"].(uuid.UUID)]), true, nil
		}
	}
	return content.Record{}, false, nil
}

// WrittenBeside returns the records that a run wrote under keys that begin so.
func (m *Memory) WrittenBeside(_ context.Context, run uuid.UUID, keys string) ([]content.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]content.Record{}
	for _, r := range m.rows[revisions] {
		if key, _ := r["call_key"].(string); r["run_id"] == run && strings.HasPrefix(key, keys) {
			found[key] = recordOf(m.rows[records][r["record"].(uuid.UUID)])
		}
	}
	var out []content.Record
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[key])
	}
	return out, nil
}
