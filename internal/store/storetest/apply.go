package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

// apply applies changes and fails on an error.
func apply(t *testing.T, s *store.Store, changes ...change.Change) []change.Outcome {
	t.Helper()
	out, err := s.Apply(t.Context(), changes...)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return out
}

// update is an update of one row.
func update(table change.Table, id uuid.UUID, conditions, set []change.Value) change.Change {
	return change.Change{Updates: []change.Update{{Table: table, ID: id, If: conditions, Set: set}}}
}

func status(t *testing.T, s *store.Store, id uuid.UUID) run.Status {
	t.Helper()
	r, err := s.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

func guards(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	id := r.Run(V("lease_until", Start), V("lease_owner", "w1"), V("turn_digest", "d"))
	for name, c := range map[string]struct {
		guard change.Value
		holds bool
	}{
		"equal":                 {V("lease_owner", "w1"), true},
		"not equal":             {V("lease_owner", "w2"), false},
		"one of":                {change.Value{Column: "status", In: []any{"running", "queued"}}, true},
		"none of":               {change.Value{Column: "status", In: []any{"running", "failed"}}, false},
		"one of nothing":        {change.Value{Column: "status", In: []any{}}, false},
		"null":                  {V("finished_at", nil), true},
		"not null":              {V("lease_owner", nil), false},
		"null is not a value":   {V("outcome", "completed"), false},
		"before":                {change.Value{Column: "lease_until", Before: Start.Add(time.Microsecond)}, true},
		"not before itself":     {change.Value{Column: "lease_until", Before: Start}, false},
		"null is before no one": {change.Value{Column: "finished_at", Before: Start.Add(time.Hour)}, false},
		"true":                  {V("truncated", true), false},
		"false":                 {V("truncated", false), true},
		"a time":                {V("lease_until", Start), true},
		"an integer":            {V("suspension", int64(0)), true},
		"an id":                 {V("invoked_skill_id", id), false},
	} {
		t.Run("R2 guard: "+name, func(t *testing.T) {
			out := apply(t, s, update("runs", id, []change.Value{c.guard}, nil))[0]
			if out.Applied != c.holds {
				t.Fatalf("applied: %v", out.Applied)
			}
			if !c.holds && out.Lost != "runs" {
				t.Fatalf("lost on %q", out.Lost)
			}
		})
	}
	t.Run("R2 a guard that does not hold loses the whole change", func(t *testing.T) {
		before, _ := s.AuditSize(t.Context())
		_, other := r.Row("settings", V("name", "a"), V("value", "1"))
		c := update("runs", id, []change.Value{V("status", "running")}, []change.Value{V("status", "completed")})
		c.Inserts = []change.Insert{other}
		c.Run, c.Events = id, []run.Event{r.Event(run.EventStarted)}
		c.Audit = []audit.Entry{r.Entry(audit.RunStarted)}
		if out := apply(t, s, c)[0]; out.Applied || out.Lost != "runs" {
			t.Fatalf("outcome %+v", out)
		}
		settings, _ := s.Settings(t.Context())
		events, _ := s.Events(t.Context(), id, -1, 10)
		if after, _ := s.AuditSize(t.Context()); len(settings) > 0 || len(events) > 0 || after != before || status(t, s, id) != run.Queued {
			t.Fatal("a part of the change was stored")
		}
	})
	t.Run("R2 an update hits one row and a missing row loses", func(t *testing.T) {
		out := apply(t, s, update("runs", r.World.NewID(), nil, []change.Value{V("status", "running")}))[0]
		if out.Applied || out.Lost != "runs" || status(t, s, id) != run.Queued {
			t.Fatalf("outcome %+v", out)
		}
	})
	t.Run("R2 a delete is guarded like an update", func(t *testing.T) {
		setting := r.Insert("settings", V("name", "b"), V("value", "1"))
		drop := func(value string) change.Change {
			return change.Change{Deletes: []change.Delete{{Table: "settings", ID: setting, If: []change.Value{V("value", value)}}}}
		}
		if out := apply(t, s, drop("2"))[0]; out.Applied || out.Lost != "settings" {
			t.Fatalf("outcome %+v", out)
		}
		if out := apply(t, s, drop("1"))[0]; !out.Applied {
			t.Fatalf("outcome %+v", out)
		}
	})
	t.Run("R2 a row that may be gone already loses nothing", func(t *testing.T) {
		setting := r.Insert("settings", V("name", "c"), V("value", "1"))
		c := update("runs", id, nil, []change.Value{V("message", "m")})
		for range 2 {
			c.Deletes = []change.Delete{{Table: "settings", ID: setting, IfAny: true}}
			if out := apply(t, s, c)[0]; !out.Applied {
				t.Fatalf("outcome %+v", out)
			}
		}
		if left, _ := s.Settings(t.Context()); len(left) > 0 {
			t.Errorf("%v is still there", left)
		}
	})
}

func batches(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	setting := func(name string) change.Change {
		_, row := r.Row("settings", V("name", name), V("value", name))
		return change.Change{Inserts: []change.Insert{row}, Audit: []audit.Entry{r.Entry(audit.SettingChanged)}}
	}
	r.Apply(setting("taken"))
	t.Run("R2 a change that loses loses alone, and the trail has no gap", func(t *testing.T) {
		first, lost, last := setting("first"), setting("last"), setting("last")
		_, taken := r.Row("settings", V("name", "taken"), V("value", ""))
		lost.Inserts = append(lost.Inserts, taken) // its first insert succeeds and is undone
		out := apply(t, s, first, lost, last)
		if !out[0].Applied || out[1].Applied || !out[2].Applied || out[1].Lost != "settings" {
			t.Fatalf("outcomes %+v", out)
		}
		if out[0].FirstIndex != 1 || out[2].FirstIndex != 2 {
			t.Fatalf("indexes %d and %d", out[0].FirstIndex, out[2].FirstIndex)
		}
		settings, _ := s.Settings(t.Context())
		if len(settings) != 3 || settings["last"] != "last" {
			t.Fatalf("stored: %v", settings)
		}
	})
	t.Run("R2 a foreign key that does not hold loses alone too", func(t *testing.T) {
		_, orphan := r.Row("grants", V("user_id", r.World.NewID()), V("permission", "run:start"))
		out := apply(t, s, change.Change{Inserts: []change.Insert{orphan}}, setting("after"))
		if out[0].Applied || out[0].Lost != "grants" || !out[1].Applied {
			t.Fatalf("outcomes %+v", out)
		}
	})
	t.Run("a batch in which everything loses stores nothing", func(t *testing.T) {
		before, _ := s.AuditSize(t.Context())
		out := apply(t, s, setting("taken"), setting("first"))
		if after, _ := s.AuditSize(t.Context()); out[0].Applied || out[1].Applied || before != after {
			t.Fatalf("outcomes %+v, %d entries more", out, after-before)
		}
	})
	t.Run("no changes are no transaction", func(t *testing.T) {
		if out := apply(t, s); out != nil {
			t.Fatalf("outcomes %+v", out)
		}
	})
	t.Run("the zero change changes nothing", func(t *testing.T) {
		if out := apply(t, s, change.Change{}); !out[0].Applied {
			t.Fatalf("outcome %+v", out[0])
		}
	})
}

func keys(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	user, source := r.User(), r.Source()
	skill := r.Skill(source, "proof")
	configuration := r.Configuration()
	id := r.RunOf(user, configuration, V("status", "running"))
	_, attached := r.Row("attachments", V("skill_id", skill), V("configuration_id", configuration), V("load_mode", "always"), V("created_at", Start))
	r.Apply(change.Change{Inserts: []change.Insert{attached}})
	record := r.Insert("content_records", V("table_name", "page"), V("record_id", "home"), V("fields", "{}"), V("updated_at", Start))
	call := []change.Value{
		V("record", record), V("revision", int64(1)), V("kind", "update"), V("fields", "{}"), V("run_id", id),
		V("call_key", "k"), V("at", Start),
	}
	r.Insert("content_revisions", call...)
	for name, row := range map[string][]change.Value{
		"S6 an identifier is unique in its source/skills":           append(version("x"), V("source_id", source), V("identifier", "proof"), V("trust_level", "verified"), V("created_at", Start), V("updated_at", Start)),
		"L1 a skill is attached once/attachments":                   {V("skill_id", skill), V("configuration_id", configuration), V("load_mode", "on_demand"), V("created_at", Start)},
		"a call writes once/content_revisions":                      append(call, V("revision", int64(2))),
		"W5 a record has one entry a revision/content_revisions":    append(call, V("call_key", nil), V("run_id", nil)),
		"a child of no record loses/content_revisions":              append(call, V("record", skill), V("call_key", "z"), V("revision", int64(7))),
		"an attachment of a skill that is gone loses/attachments":   {V("skill_id", user), V("configuration_id", configuration), V("load_mode", "always"), V("created_at", Start)},
		"a run of a configuration that is gone loses/runs":          {V("status", "queued"), V("initiator_id", user), V("configuration_id", user), V("created_at", Start)},
		"a configuration of a provider that is gone/configurations": {V("name", "c"), V("provider_id", user), V("model", "m"), V("created_at", Start)},
	} {
		name, table := cut(name)
		t.Run(name, func(t *testing.T) {
			_, insert := r.Row(table, row...)
			if out := apply(t, s, change.Change{Inserts: []change.Insert{insert}})[0]; out.Applied || out.Lost != table {
				t.Fatalf("outcome %+v", out)
			}
		})
	}
	for name, row := range map[string]struct {
		table change.Table
		id    uuid.UUID
	}{
		"S15 an attached skill is not deleted":            {"skills", skill},
		"S15 a source with skills is not deleted":         {"sources", source},
		"a configuration with runs is not deleted":        {"configurations", configuration},
		"a person who started a run is not deleted":       {"users", user},
		"S15 nor is a skill that was approved or revoked": {"skills", func() uuid.UUID { k := r.Skill(source, "k"); r.Revocation(k, user, 1); return k }()},
	} {
		t.Run(name, func(t *testing.T) {
			out := apply(t, s, change.Change{Deletes: []change.Delete{{Table: row.table, ID: row.id}}})[0]
			if out.Applied || out.Lost != row.table {
				t.Fatalf("outcome %+v", out)
			}
		})
	}
	t.Run("an update into a taken place loses", func(t *testing.T) {
		other := r.Skill(source, "other")
		out := apply(t, s, update("skills", other, nil, []change.Value{V("identifier", "proof")}))[0]
		if out.Applied || out.Lost != "skills" {
			t.Fatalf("outcome %+v", out)
		}
	})
}

// cut parts a name from its table.
func cut(name string) (string, change.Table) {
	for i := len(name) - 1; ; i-- {
		if name[i] == '/' {
			return name[:i], change.Table(name[i+1:])
		}
	}
}

func races(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	t.Run("R2 of many that race for one transition one wins", func(t *testing.T) {
		id := r.Run()
		const racers = 12
		won := make(chan int, racers)
		var all sync.WaitGroup
		for n := range racers {
			all.Go(func() {
				c := update("runs", id, []change.Value{V("status", "queued")}, []change.Value{V("status", "running"), V("suspension", int64(n))})
				c.Run, c.Events = id, []run.Event{r.Event(run.EventStarted)}
				out, err := change.One(t.Context(), s, c)
				if err != nil {
					t.Error(err)
				}
				if out.Applied {
					won <- n
				}
			})
		}
		all.Wait()
		close(won)
		winner, more := <-won, len(won)
		got, err := s.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if more != 0 || got.Suspension != winner || got.Events != 1 {
			t.Fatalf("%d more winners; stored %d by %d, %d events", more, got.Suspension, winner, got.Events)
		}
	})
	t.Run("two that take the same rows in another order both succeed", func(t *testing.T) {
		user, configuration := r.User(), r.Configuration()
		a, b := r.RunOf(user, configuration), r.RunOf(user, configuration)
		touch := func(ids ...uuid.UUID) change.Change {
			var c change.Change
			for _, id := range ids {
				c.Updates = append(c.Updates, change.Update{Table: "runs", ID: id, Set: []change.Value{V("message", "touched")}})
			}
			return c
		}
		var all sync.WaitGroup
		for _, writer := range []struct {
			times   int
			changes []change.Change
		}{
			{20, []change.Change{touch(a, b)}}, // sorted: they never wait for each other in a circle
			{20, []change.Change{touch(b, a)}},
			{1, []change.Change{touch(a), touch(b)}}, // in the order given: a deadlock is retried
			{1, []change.Change{touch(b), touch(a)}},
		} {
			all.Go(func() {
				for range writer.times {
					if _, err := s.Apply(t.Context(), writer.changes...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

func contexts(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, row := r.Row("settings", V("name", "a"), V("value", "1"))
	t.Run("a change whose caller is gone is not made", func(t *testing.T) {
		if _, err := s.Apply(ended, change.Change{Inserts: []change.Insert{row}}); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if settings, err := s.Settings(t.Context()); err != nil || len(settings) > 0 {
			t.Fatalf("stored %v, %v", settings, err)
		}
	})
	t.Run("a read whose caller is gone says so", func(t *testing.T) {
		if _, err := s.Settings(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a statement that cannot be right is an internal error and stores nothing", func(t *testing.T) {
		good, bad := row, change.Insert{Table: "settings", Row: []change.Value{V("id", r.World.NewID()), V("no_such_column", "")}}
		_, err := s.Apply(t.Context(), change.Change{Inserts: []change.Insert{good}}, change.Change{Inserts: []change.Insert{bad}})
		if !fault.Is(err, fault.Internal) {
			t.Fatalf("got %v", err)
		}
		if settings, _ := s.Settings(t.Context()); len(settings) > 0 {
			t.Fatal("something was stored")
		}
	})
	t.Run("a row without an id and events without a run are refused before anything is stored", func(t *testing.T) {
		for _, c := range []change.Change{
			{Inserts: []change.Insert{{Table: "settings", Row: []change.Value{V("name", "x")}}}},
			{Events: []run.Event{r.Event(run.EventStarted)}},
		} {
			if _, err := s.Apply(t.Context(), c); err == nil {
				t.Errorf("%+v was applied", c)
			}
		}
	})
	t.Run("events of a run that is gone lose", func(t *testing.T) {
		out := apply(t, s, change.Change{Run: r.World.NewID(), Events: []run.Event{r.Event(run.EventStarted)}})[0]
		if out.Applied || out.Lost != "runs" {
			t.Fatalf("outcome %+v", out)
		}
	})
}
