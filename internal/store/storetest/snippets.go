package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/store"
)

func snippets(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	ada, later := r.User(), Start.Add(time.Hour)
	one := r.Snippet(V("mark", "abc"), V("revision", int64(3)), V("editor_id", ada), V("updated_at", later))
	two, three := r.Snippet(), r.Snippet()
	t.Run("a snippet is read as it was written", func(t *testing.T) {
		got, err := s.Snippet(t.Context(), one)
		same(t, got, library.Snippet{
			ID: one, Snippet: prompt.Snippet{Name: "Profile", Text: "We write.", Mark: "abc"}, Revision: 3, EditorID: ada,
			CreatedAt: Start, UpdatedAt: later,
		}, err)
		_, err = s.Snippet(t.Context(), ada)
		notFound(t, err)
	})
	t.Run("N5 snippets are read in the order asked for, without those that are gone", func(t *testing.T) {
		got, err := s.SnippetsByID(t.Context(), []uuid.UUID{three, ada, one, two})
		if err != nil || len(got) != 3 || got[0].ID != three || got[1].ID != one || got[2].ID != two {
			t.Fatalf("%+v %v", got, err)
		}
	})
	t.Run("snippets are paged by id", func(t *testing.T) {
		got, err := s.Snippets(t.Context(), library.Page{Cursor: one, Limit: 1})
		if err != nil || len(got) != 1 || got[0].ID != two {
			t.Fatalf("%+v %v", got, err)
		}
		got, err = s.Snippets(t.Context(), library.Page{Limit: 2, Backward: true})
		if err != nil || len(got) != 2 || got[0].ID != two || got[1].ID != three {
			t.Fatalf("%+v %v", got, err)
		}
	})
}

func tasks(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	configuration, source := r.Configuration(), r.Source()
	one, two := r.Task(configuration), r.Task(configuration)
	a, b := r.Skill(source, "a"), r.Skill(source, "b")
	t.Run("a task is read as it was written, and listed", func(t *testing.T) {
		got, err := s.Task(t.Context(), one)
		same(t, got, library.Task{ID: one, Name: "Proofread", ConfigurationID: configuration, Prompt: "Read it.", CreatedAt: Start}, err)
		_, err = s.Task(t.Context(), configuration)
		notFound(t, err)
		list, err := s.Tasks(t.Context(), library.Page{Cursor: one, Limit: 5})
		if err != nil || len(list) != 1 || list[0].ID != two {
			t.Fatalf("%+v %v", list, err)
		}
	})
	attach := func(skill uuid.UUID, where, mode string, to uuid.UUID, position int, more ...change.Value) change.Change {
		_, row := r.Row("attachments", append([]change.Value{
			V("skill_id", skill), V(where, to), V("load_mode", mode), V("position", int64(position)), V("created_at", Start),
		}, more...)...)
		return change.Change{Inserts: []change.Insert{row}}
	}
	t.Run("I4 a task offers its own skills, in order, and a configuration only its own", func(t *testing.T) {
		r.Apply(attach(a, "task_id", "always", one, 2))
		r.Apply(attach(b, "task_id", "always", one, 1))
		r.Apply(attach(a, "task_id", "always", two, 1))
		r.Apply(attach(a, "configuration_id", "on_demand", configuration, 1))
		got, err := s.OfferedByTask(t.Context(), one)
		if err != nil || len(got) != 2 || got[0].Skill.ID != b || got[1].Skill.ID != a {
			t.Fatalf("%+v %v", got, err)
		}
		if of := got[0].Attachment; of.TaskID != one || of.ConfigurationID != uuid.Nil {
			t.Fatalf("%+v", of)
		}
		got, err = s.Offered(t.Context(), configuration)
		if err != nil || len(got) != 1 || got[0].Attachment.TaskID != uuid.Nil {
			t.Fatalf("%+v %v", got, err)
		}
	})
	t.Run("L1 a skill is attached to a task once", func(t *testing.T) {
		if out := apply(t, s, attach(b, "task_id", "always", one, 9))[0]; out.Applied {
			t.Fatal("it is attached twice")
		}
	})
	t.Run("I4 the database takes no attachment to both or neither, and none on demand to a task", func(t *testing.T) {
		for name, c := range map[string]change.Change{
			"both":      attach(b, "task_id", "always", two, 1, V("configuration_id", configuration)),
			"neither":   attach(b, "skill_id", "always", b, 1),
			"on demand": attach(b, "task_id", "on_demand", two, 1),
		} {
			if _, err := s.Apply(t.Context(), c); !fault.Is(err, fault.Internal) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("I4 a run knows the task it carries out", func(t *testing.T) {
		id := r.Run(V("task_id", one))
		got, err := s.Run(t.Context(), id)
		if err != nil || got.TaskID != one {
			t.Fatalf("%v %v", got.TaskID, err)
		}
	})
}
