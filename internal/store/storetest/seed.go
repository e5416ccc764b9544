package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/world"
)

// Start is when the suite's clock begins.
var Start = time.Date(2025, 3, 4, 5, 6, 7, 123456000, time.UTC)

// Rows makes rows for tests and stores them.
type Rows struct {
	t     testing.TB
	s     *store.Store
	World world.World
}

// NewRows makes rows in a store. The same seed makes the same ids.
func NewRows(t testing.TB, s *store.Store) *Rows {
	return &Rows{t: t, s: s, World: world.Fixed(Start, 1)}
}

// On makes rows in another store, with ids that this one did not use.
func (r *Rows) On(s *store.Store) *Rows { return &Rows{t: r.t, s: s, World: r.World} }

// V is one column with its value.
func V(column string, arg any) change.Value { return change.Value{Column: column, Arg: arg} }

// Sealed is one column whose value is encrypted.
func Sealed(column, text string) change.Value {
	return change.Value{Column: column, Arg: text, Seal: true}
}

// Row is an insert of a row with an id of its own; values said twice count as said
// last.
func (r *Rows) Row(table change.Table, values ...change.Value) (uuid.UUID, change.Insert) {
	id := r.World.NewID()
	row := []change.Value{V("id", id)}
	for _, v := range values {
		replaced := false
		for i := range row {
			if row[i].Column == v.Column {
				row[i], replaced = v, true
			}
		}
		if !replaced {
			row = append(row, v)
		}
	}
	return id, change.Insert{Table: table, Row: row}
}

// Insert stores a row.
func (r *Rows) Insert(table change.Table, values ...change.Value) uuid.UUID {
	r.t.Helper()
	id, insert := r.Row(table, values...)
	r.Apply(change.Change{Inserts: []change.Insert{insert}})
	return id
}

// Apply applies a change that must not lose.
func (r *Rows) Apply(c change.Change) change.Outcome {
	r.t.Helper()
	out, err := change.One(context.Background(), r.s, c)
	if err != nil {
		r.t.Fatalf("apply: %v", err)
	}
	if !out.Applied {
		r.t.Fatalf("the change lost on %s", out.Lost)
	}
	return out
}

// User stores a person.
func (r *Rows) User(more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.Insert("users", append([]change.Value{
		V("name", "Ada"), V("kind", "person"), V("administrator", false), V("enabled", true), V("created_at", r.World.Now()),
	}, more...)...)
}

// Source stores a source.
func (r *Rows) Source(more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.Insert("sources", append([]change.Value{
		V("title", "Skills"), V("type", "repo"), V("url", "https://github.com/example/skills"), V("trust_level", "verified"),
		V("sync_status", "never_synced"), V("enabled", true), V("created_at", r.World.Now()),
	}, more...)...)
}

// version are the columns of a version.
func version(name string) []change.Value {
	return []change.Value{
		V("name", name), V("description", "Reads proofs."), V("body", "Read.\n"), V("support_status", "full"),
		V("allowed_tools", `{"State":"declared","Items":["read_page"]}`), V("process", "no"),
	}
}

// Skill stores a skill of a source.
func (r *Rows) Skill(source uuid.UUID, identifier string, more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.Insert("skills", append(append(version(identifier),
		V("source_id", source), V("identifier", identifier), V("digest", "1:aa"), V("trust_level", "verified"),
		V("created_at", r.World.Now()), V("updated_at", r.World.Now())), more...)...)
}

// Approval stores an approval of a skill.
func (r *Rows) Approval(source, skill, by uuid.UUID, counter int) uuid.UUID {
	r.t.Helper()
	return r.Insert("approvals", append(version("proof"),
		V("skill_id", skill), V("source_id", source), V("digest", "1:aa"), V("counter", int64(counter)),
		V("trust_level", "verified"), V("approver_id", by), V("comment", "read it"), V("at", r.World.Now()))...)
}

// Revocation stores a revocation of a skill.
func (r *Rows) Revocation(skill, by uuid.UUID, counter int) uuid.UUID {
	r.t.Helper()
	return r.Insert("revocations", V("skill_id", skill), V("digest", "1:aa"), V("counter", int64(counter)),
		V("reason", "wrong"), V("actor_id", by), V("at", r.World.Now()))
}

// Configuration stores a configuration with a provider of its own.
func (r *Rows) Configuration(more ...change.Value) uuid.UUID {
	r.t.Helper()
	provider := r.Insert("providers", V("name", "Script"), V("kind", "scripted"), V("trust_zone", "local"),
		V("created_at", r.World.Now()), Sealed("api_key", "a secret key"))
	return r.Insert("configurations", append([]change.Value{
		V("name", "Editorial"), V("provider_id", provider), V("model", "script"), V("created_at", r.World.Now()),
	}, more...)...)
}

// Snippet stores a snippet.
func (r *Rows) Snippet(more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.Insert("snippets", append([]change.Value{
		V("name", "Profile"), V("text", "We write."), V("editor_id", uuid.Max), V("created_at", Start), V("updated_at", Start),
	}, more...)...)
}

// Task stores a task of a configuration.
func (r *Rows) Task(configuration uuid.UUID) uuid.UUID {
	r.t.Helper()
	return r.Insert("tasks", V("name", "Proofread"), V("configuration_id", configuration), V("prompt", "Read it."), V("created_at", Start))
}

// Run stores a queued run of a user of its own.
func (r *Rows) Run(more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.RunOf(r.User(), r.Configuration(), more...)
}

// RunOf stores a queued run.
func (r *Rows) RunOf(user, configuration uuid.UUID, more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.Insert("runs", append([]change.Value{
		V("status", string(run.Queued)), V("initiator_id", user), V("configuration_id", configuration),
		V("created_at", r.World.Now()),
	}, more...)...)
}

// Entry is an audit entry.
func (r *Rows) Entry(event audit.Event) audit.Entry {
	return audit.Entry{ID: r.World.NewID(), At: r.World.Now(), Event: event, Detail: map[string]any{"count": 1}}
}

// Event is an event of a run.
func (r *Rows) Event(kind run.EventKind) run.Event {
	return run.Event{Kind: kind, Round: 1, DurationMS: 12, At: r.World.Now(), Data: run.EventData{Tool: "read_page", Bytes: 3}}
}
