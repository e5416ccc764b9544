package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/tool"
)

// text is a value as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func runs(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	user, configuration, skill := r.User(), r.Configuration(), uuid.New()
	now := r.World.Now()
	want := agent.Run{
		Status: run.Completed, Outcome: run.OutcomeCompleted, Reason: run.ReasonMaxIterations, Truncated: true, Message: "m", Answer: "the answer",
		InitiatorID: user, ConfigurationID: configuration, Invocation: &agent.Invocation{Skill: skill, Subject: &tool.Record{Table: "page", ID: "home"}, Derived: true, Ended: true},
		Subject: &tool.Record{Table: "page", ID: "other"}, PredecessorID: uuid.New(),
		Forced: []uuid.UUID{skill}, SkillAllowList: []string{}, CallerTools: []string{"a"},
		Pins:     run.Pins{{Skill: skill, Source: user, Digest: "1:aa", Way: run.WayForced, Process: true, Forced: true, Derived: true}},
		Notices:  []run.Notice{{Code: run.NoticePreviewMoved, Args: []string{"x"}}},
		Progress: &tool.Progress{Position: 1, Total: 2}, Highlight: &tool.Record{Table: "element", ID: "e"}, MaxIterations: 3, Suspension: 2,
		TurnDigest: "d", LeaseOwner: "w", LeaseUntil: &now, ExpiresAt: &now, Fence: &agent.Fence{Tool: "t", Key: "k", At: now},
		Usage: agent.Consumption{Usage: agent.Usage{InputTokens: 5, OutputTokens: 6}, Requests: 2, Cost: 7, Unpriced: 1}, Privacy: run.PrivacyFull, CreatedAt: now, StartedAt: &now, FinishedAt: &now,
	}
	want.ID = r.RunOf(user, configuration, V("status", "completed"), V("outcome", "completed"), V("termination_reason", "max_iterations"),
		V("truncated", true), V("message", "m"), Sealed("answer", "the answer"), V("invocation", text(t, want.Invocation)),
		V("subject", text(t, want.Subject)), V("predecessor_id", want.PredecessorID),
		V("invoked_skill_id", skill), V("forced_skill_ids", text(t, want.Forced)), V("skill_allow_list", "[]"), V("caller_tools", `["a"]`),
		V("pins", text(t, want.Pins)), V("notices", text(t, want.Notices)), V("progress", text(t, want.Progress)),
		V("highlight", text(t, want.Highlight)), V("max_iterations", int64(3)), V("suspension", int64(2)), V("turn_digest", "d"),
		V("lease_owner", "w"), V("lease_until", now), V("expires_at", now), V("fence", text(t, want.Fence)), V("usage", text(t, want.Usage)), V("privacy_level", "full"),
		V("created_at", now), V("started_at", now), V("finished_at", now))
	t.Run("P1 a run is read as it was written", func(t *testing.T) {
		got, err := s.Run(t.Context(), want.ID)
		same(t, got, want, err)
		_, err = s.Run(t.Context(), user)
		notFound(t, err)
	})
	t.Run("M1 R16 what a model writes is read as it was written, and nothing when there is none or it cannot be decrypted", func(t *testing.T) {
		written := agent.LiveText{Owner: "w", Part: 3, Round: 2, Text: "Grüße 👋🏽"}
		row := func(text change.Value) uuid.UUID {
			return r.Insert("run_texts", V("owner", "w"), V("part", int64(3)), V("round", int64(2)), text)
		}
		got, err := s.LiveText(t.Context(), row(Sealed("text", written.Text)))
		same(t, got, written, err)
		for _, id := range []uuid.UUID{uuid.New(), row(V("text", "k0:AAAA"))} {
			got, err := s.LiveText(t.Context(), id)
			same(t, got, agent.LiveText{}, err)
		}
	})
	t.Run("M2 the installation's secrets are those that can be opened", func(t *testing.T) {
		r.Insert("providers", V("name", "Keyed"), V("kind", "scripted"), V("trust_zone", "local"), Sealed("api_key", "the key"), V("created_at", now))
		r.Insert("providers", V("name", "Damaged"), V("kind", "scripted"), V("trust_zone", "local"), V("api_key", "k0:AAAA"), V("created_at", now))
		got, err := s.Secrets(t.Context())
		if err != nil || !slices.Contains(got, "the key") || slices.Contains(got, "") {
			t.Errorf("%q, %v", got, err)
		}
		r.Insert("mcp_servers", V("name", "far"), V("transport", "stdio"), V("data_class", "editor_content"), V("created_at", now), V("imported_at", now),
			Sealed("env", `{"WEATHER_TOKEN":"q7Zk29sLmX0pTe4v","HOME":"/var/lib/weather","DEBUG":"true"}`),
			Sealed("headers", `{"Authorization":"Bearer 8fJd2kLq","Accept":"json"}`))
		r.Insert("notification_endpoints", V("url", "https://hooks.example"), V("events", "[]"), Sealed("secret", "whsec_far"), V("created_at", now), V("updated_at", now))
		got, err = s.Secrets(t.Context())
		if err != nil || !slices.Contains(got, "whsec_far") {
			t.Errorf("%q, %v", got, err)
		}
		if err != nil || !slices.Contains(got, "q7Zk29sLmX0pTe4v") || !slices.Contains(got, "8fJd2kLq") ||
			slices.ContainsFunc(got, func(s string) bool { return s == "true" || s == "/var/lib/weather" || s == "json" }) {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("T1 null and an empty list stay apart, and so do NULL and null", func(t *testing.T) {
		id := r.RunOf(user, configuration, V("skill_allow_list", "null"), V("pins", nil))
		got, err := s.Run(t.Context(), id)
		if err != nil || got.SkillAllowList != nil || got.CallerTools != nil || got.Pins != nil || got.Fence != nil {
			t.Fatalf("%+v %v", got, err)
		}
		if got, _ := s.Run(t.Context(), want.ID); got.SkillAllowList == nil {
			t.Fatal("the empty list became null")
		}
	})
	t.Run("T2 an allow-list that cannot be read is an error, not the absence of one", func(t *testing.T) {
		id := r.RunOf(user, configuration, V("skill_allow_list", "["))
		if _, err := s.Run(t.Context(), id); !fault.Is(err, fault.Internal) || !errors.Is(err, agent.ErrUnreadable) {
			t.Fatalf("got %v", err)
		}
		r.Apply(change.Change{Deletes: []change.Delete{{Table: "runs", ID: id}}})
	})
	t.Run("R8 the queue is told oldest first and holds only what is queued", func(t *testing.T) {
		late := r.RunOf(user, configuration, V("created_at", now.Add(3*time.Hour)))
		early := r.RunOf(user, configuration, V("created_at", now.Add(-time.Hour)))
		r.RunOf(user, configuration, V("status", "running"), V("created_at", now.Add(-2*time.Hour)))
		r.RunOf(user, configuration, V("not_before", now.Add(time.Second)), V("created_at", now.Add(-2*time.Hour)))
		got, err := s.Queued(t.Context(), now, 10)
		if err != nil || len(got) != 3 || got[0] != early || got[2] != late {
			t.Fatalf("%v %v", got, err)
		}
		if got, err := s.Queued(t.Context(), now, 1); err != nil || !slices.Equal(got, []uuid.UUID{early}) {
			t.Fatalf("%v %v", got, err)
		}
	})
	t.Run("Y2 deleting a run takes its events along", func(t *testing.T) {
		id := r.RunOf(user, configuration)
		r.Apply(change.Change{Run: id, Events: []run.Event{r.Event(run.EventStarted)}})
		r.Apply(change.Change{Deletes: []change.Delete{{Table: "runs", ID: id}}})
		if events, err := s.Events(t.Context(), id, -1, 5); err != nil || len(events) > 0 {
			t.Fatalf("%v %v", events, err)
		}
	})
}

func runPages(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	ada, bea, configuration, other, skill := r.User(), r.User(), r.Configuration(), r.Configuration(), uuid.New()
	ids := make([]uuid.UUID, 5) // newest first
	for i := range ids {
		user, of, status := ada, configuration, run.Queued
		if i%2 == 1 {
			user, of, status = bea, other, run.Running
		}
		ids[len(ids)-1-i] = r.RunOf(user, of, V("status", string(status)), V("invoked_skill_id", map[bool]any{true: skill}[i == 0]))
	}
	for name, c := range map[string]struct {
		filter agent.Filter
		page   agent.Page
		want   []uuid.UUID
	}{
		"newest first":         {agent.Filter{}, agent.Page{Limit: 2}, ids[:2]},
		"after a run":          {agent.Filter{}, agent.Page{Limit: 2, Cursor: ids[1]}, ids[2:4]},
		"the last page":        {agent.Filter{}, agent.Page{Limit: 2, Backward: true}, ids[3:]},
		"before a run":         {agent.Filter{}, agent.Page{Limit: 2, Cursor: ids[3], Backward: true}, ids[1:3]},
		"by status":            {agent.Filter{Statuses: []run.Status{run.Running, run.Failed}}, agent.Page{Limit: 9}, []uuid.UUID{ids[1], ids[3]}},
		"by initiator":         {agent.Filter{InitiatorID: &ada}, agent.Page{Limit: 2}, []uuid.UUID{ids[0], ids[2]}},
		"by configuration":     {agent.Filter{ConfigurationID: &other}, agent.Page{Limit: 9}, []uuid.UUID{ids[1], ids[3]}},
		"by skill":             {agent.Filter{SkillID: &skill}, agent.Page{Limit: 9}, ids[4:]},
		"by things that clash": {agent.Filter{InitiatorID: &ada, ConfigurationID: &other}, agent.Page{Limit: 9}, nil},
	} {
		t.Run("runs: "+name, func(t *testing.T) {
			rows, err := s.Runs(t.Context(), c.filter, c.page)
			if err != nil {
				t.Fatal(err)
			}
			var got []uuid.UUID
			for _, row := range rows {
				got = append(got, row.ID)
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}

func states(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	request := agent.Request{Messages: []prompt.Message{{Role: prompt.User, Text: "Proofread <this> & that."}}}
	state := agent.State{Messages: request.Messages, Suspension: 1, NonceKey: []byte{0, 255}, Pending: []agent.Pending{{
		Call: prompt.Call{ID: "c", Tool: "update_element", Arguments: json.RawMessage(`{"a": 1}`)}, Write: true, Lines: []string{"a → b"},
	}}}
	id := r.Run(Sealed("request", text(t, request)), Sealed("state", text(t, state)))
	t.Run("R16 request and state are opened as they were sealed", func(t *testing.T) {
		gotRequest, err := s.Request(t.Context(), id)
		same(t, text(t, gotRequest), text(t, request), err)
		gotState, err := s.State(t.Context(), id)
		same(t, text(t, gotState), text(t, state), err)
	})
	t.Run("R16 what was dropped is NOT_FOUND", func(t *testing.T) {
		for name, dropped := range map[string][]change.Value{
			"to NULL": {V("state", nil)}, "to the empty text": {Sealed("state", "")},
		} {
			r.Apply(update("runs", id, nil, dropped))
			if _, err := s.State(t.Context(), id); !fault.Is(err, fault.NotFound) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		_, err := s.Request(t.Context(), uuid.New())
		notFound(t, err)
	})
	t.Run("R11 a state that cannot be opened or read is refused as unreadable and kept", func(t *testing.T) {
		for name, value := range map[string]change.Value{
			"not sealed":                 {Column: "state", Arg: text(t, state)},
			"sealed with an unknown key": V("state", "gone:AAAA"),
			"damaged":                    V("state", "test:AAAA"),
			"no JSON":                    Sealed("state", "{"),
		} {
			r.Apply(update("runs", id, nil, []change.Value{value}))
			_, err := s.State(t.Context(), id)
			if refused, ok := fault.AsRefusal(err); !ok || refused.Code != fault.StateUnreadable {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got, err := s.Run(t.Context(), id); err != nil || got.Status != run.Queued {
			t.Fatalf("the run itself: %+v %v", got, err)
		}
	})
	t.Run("an answer that cannot be opened leaves the rest of the run readable", func(t *testing.T) {
		r.Apply(update("runs", id, nil, []change.Value{V("answer", "gone:AAAA")}))
		if got, err := s.Run(t.Context(), id); err != nil || got.Answer != "" {
			t.Fatalf("%q %v", got.Answer, err)
		}
	})
}
