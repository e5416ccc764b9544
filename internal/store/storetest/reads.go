package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/tool"
)

func notFound(t *testing.T, err error) {
	t.Helper()
	if !fault.Is(err, fault.NotFound) {
		t.Fatalf("got %v, want NOT_FOUND", err)
	}
}

// same compares what was read with what was written.
func same(t *testing.T, got, want any, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("read back (-want +got):\n%s", diff)
	}
}

func accessReads(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	created := r.World.Now()
	ada := r.User(V("administrator", true), V("created_at", created))
	bot := r.User(V("name", "Bot"), V("kind", "service_account"), V("enabled", false), V("created_at", created))
	for _, p := range []actor.Permission{actor.RunApprove, actor.ContentRead} {
		r.Insert("grants", V("user_id", ada), V("permission", string(p)))
	}
	users := []access.User{
		{ID: ada, Name: "Ada", Kind: actor.Person, Administrator: true, Enabled: true, CreatedAt: created, Permissions: []actor.Permission{actor.ContentRead, actor.RunApprove}},
		{ID: bot, Name: "Bot", Kind: actor.ServiceAccount, CreatedAt: created},
	}
	t.Run("I5 a user has a kind and permissions in the order of a form", func(t *testing.T) {
		got, err := s.User(t.Context(), ada)
		same(t, got, users[0], err)
	})
	t.Run("users are listed from a cursor", func(t *testing.T) {
		got, err := s.Users(t.Context(), uuid.Nil, 10)
		same(t, got, users, err)
		got, err = s.Users(t.Context(), ada, 1)
		same(t, got, users[1:], err)
	})
	expires := created.Add(time.Hour)
	token := r.Insert("tokens", V("user_id", ada), V("name", "ci"), V("hash", "h1"), V("created_at", created), V("expires_at", expires))
	r.Insert("sessions", V("user_id", ada), V("hash", "h2"), V("created_at", created), V("expires_at", expires))
	r.Insert("sign_in_codes", V("user_id", bot), V("hash", "h3"), V("created_at", created), V("expires_at", expires), V("used_at", created))
	t.Run("a token is found by its hash, by its id and in the list", func(t *testing.T) {
		want := access.Token{ID: token, UserID: ada, Name: "ci", CreatedAt: created, ExpiresAt: &expires}
		got, err := s.TokenByHash(t.Context(), "h1")
		same(t, got, want, err)
		got, err = s.Token(t.Context(), token)
		same(t, got, want, err)
		list, err := s.Tokens(t.Context(), uuid.Nil, 5)
		same(t, list, []access.Token{want}, err)
	})
	t.Run("a session and a code are found by their hash", func(t *testing.T) {
		session, err := s.SessionByHash(t.Context(), "h2")
		same(t, session, access.Session{ID: session.ID, UserID: ada, ExpiresAt: expires}, err)
		code, err := s.SignInCodeByHash(t.Context(), "h3")
		same(t, code, access.SignInCode{ID: code.ID, UserID: bot, ExpiresAt: expires, UsedAt: &created}, err)
	})
	t.Run("what is not there is NOT_FOUND", func(t *testing.T) {
		_, err := s.User(t.Context(), token)
		notFound(t, err)
		_, err = s.TokenByHash(t.Context(), "h2")
		notFound(t, err)
		_, err = s.Token(t.Context(), ada)
		notFound(t, err)
		_, err = s.SessionByHash(t.Context(), "h1")
		notFound(t, err)
		_, err = s.SignInCodeByHash(t.Context(), "h1")
		notFound(t, err)
	})
	t.Run("deleting a user takes what signs them in along", func(t *testing.T) {
		r.Apply(change.Change{Deletes: []change.Delete{{Table: "users", ID: ada}}})
		_, err := s.TokenByHash(t.Context(), "h1")
		notFound(t, err)
		_, err = s.SessionByHash(t.Context(), "h2")
		notFound(t, err)
	})
	t.Run("I8 settings are told by name", func(t *testing.T) {
		r.Insert("settings", V("name", "skills.maxBytes"), V("value", "1000"))
		got, err := s.Settings(t.Context())
		same(t, got, map[string]string{"skills.maxBytes": "1000"}, err)
	})
}

func sources(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	now := r.World.Now()
	id := r.Source(V("ref", "main"), V("pinned_commit", "c"), Sealed("access_token", "hush"), V("expected_fingerprint", "f"),
		V("sync_status", "ok"), V("sync_error", "none"), V("last_synced_at", now), V("head_commit", "h"), V("lease_owner", "w"),
		V("lease_until", now), V("created_at", now))
	want := library.Source{
		ID: id, Title: "Skills", Type: library.Repo, URL: "https://github.com/example/skills", Ref: "main", PinnedCommit: "c",
		AccessToken: "hush", HasToken: true, TrustLevel: skill.Verified, ExpectedFingerprint: "f", Enabled: true, SyncStatus: library.SyncOK,
		SyncError: "none", LastSyncedAt: &now, HeadCommit: "h", LeaseOwner: "w", LeaseUntil: &now, CreatedAt: now,
	}
	t.Run("S1 a source is read as it was written", func(t *testing.T) {
		got, err := s.Source(t.Context(), id)
		same(t, got, want, err)
		_, err = s.Source(t.Context(), uuid.New())
		notFound(t, err)
	})
	t.Run("S1 a list never opens a token", func(t *testing.T) {
		got, err := s.Sources(t.Context(), library.Page{Limit: 5})
		listed := want
		listed.AccessToken = ""
		same(t, got, []library.Source{listed}, err)
	})
	all := []uuid.UUID{id}
	for range 4 {
		all = append(all, r.Source())
	}
	page := func(t *testing.T, p library.Page) []uuid.UUID {
		t.Helper()
		rows, err := s.Sources(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var ids []uuid.UUID
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return ids
	}
	for name, c := range map[string]struct {
		page library.Page
		want []uuid.UUID
	}{
		"the first page":            {library.Page{Limit: 2}, all[:2]},
		"after a row":               {library.Page{Limit: 2, Cursor: all[1]}, all[2:4]},
		"the last page":             {library.Page{Limit: 2, Backward: true}, all[3:]},
		"before a row":              {library.Page{Limit: 2, Cursor: all[3], Backward: true}, all[1:3]},
		"after the last row":        {library.Page{Limit: 2, Cursor: all[4]}, nil},
		"before the first row":      {library.Page{Limit: 2, Cursor: all[0], Backward: true}, nil},
		"a page larger than it all": {library.Page{Limit: 50, Backward: true}, all},
	} {
		t.Run("pages: "+name, func(t *testing.T) {
			if got := page(t, c.page); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}

func skills(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	source, now := r.Source(), r.World.Now()
	id := r.Skill(source, "b/full", V("body_checksum", "c"), V("raw_digest", "r"), V("bundle_digest", "d"),
		V("bundle", `[{"Path":"a.py","Mode":"100644","Size":3,"SHA256":"x"}]`), V("frontmatter", "name: b"), V("parse_status", "repaired"),
		V("findings", `[{"Rule":"url","Severity":"high","Message":"m","Excerpt":"e","Line":4}]`), V("enabled", true), V("orphaned", true),
		V("counter", int64(7)), V("revision", int64(2)), V("process", "yes"), V("created_at", now), V("updated_at", now))
	plain := r.Skill(source, "a/Plain", V("allowed_tools", `{"State":"undeclared","Items":null}`))
	t.Run("D1 a skill is read as it was written", func(t *testing.T) {
		got, err := s.Skill(t.Context(), id)
		same(t, got, library.Skill{
			ID: id, SourceID: source, Identifier: "b/full",
			Version: skill.Version{
				Name: "b/full", Description: "Reads proofs.", Body: "Read.\n", Support: skill.SupportFull,
				Tools: skill.DeclareTools("read_page"), Process: skill.ProcessYes,
			},
			StoredDigest: "1:aa", BodyChecksum: "c", RawDigest: "r", BundleDigest: "d",
			Bundle: []skill.BundleFile{{Path: "a.py", Mode: "100644", Size: 3, SHA256: "x"}}, Frontmatter: "name: b",
			ParseStatus: skill.ParseRepaired,
			Findings:    []skill.Finding{{Rule: "url", Severity: skill.SeverityHigh, Message: "m", Excerpt: "e", Line: 4}},
			Enabled:     true, Orphaned: true, TrustLevel: skill.Verified, Counter: 7, Revision: 2, CreatedAt: now, UpdatedAt: now,
		}, err)
		_, err = s.Skill(t.Context(), source)
		notFound(t, err)
	})
	t.Run("D6 a declaration that cannot be read grants nothing and is not the stored version", func(t *testing.T) {
		damaged := r.Skill(source, "c/damaged", V("allowed_tools", "{"))
		got, err := s.Skill(t.Context(), damaged)
		if err != nil || !got.Version.Tools.Declares() || len(got.Version.Tools.Grants()) > 0 {
			t.Fatalf("%+v %v", got.Version.Tools, err)
		}
		r.Apply(change.Change{Deletes: []change.Delete{{Table: "skills", ID: damaged}}})
	})
	t.Run("S6 a source's skills are listed by identifier", func(t *testing.T) {
		got, err := s.SkillsOf(t.Context(), source)
		if err != nil || len(got) != 2 || got[0].ID != plain || got[1].ID != id {
			t.Fatalf("%+v %v", got, err)
		}
	})
	skillFilters(t, s, source, id, plain)
	skillHistory(t, r, id, plain)
}

func skillFilters(t *testing.T, s *store.Store, source, id, plain uuid.UUID) {
	yes, no, elsewhere := true, false, uuid.New()
	for name, c := range map[string]struct {
		filter library.SkillFilter
		want   []uuid.UUID
	}{
		"all":                {library.SkillFilter{}, []uuid.UUID{id, plain}},
		"of a source":        {library.SkillFilter{SourceID: &source}, []uuid.UUID{id, plain}},
		"of another":         {library.SkillFilter{SourceID: &elsewhere}, nil},
		"enabled":            {library.SkillFilter{Enabled: &yes}, []uuid.UUID{id}},
		"not enabled":        {library.SkillFilter{Enabled: &no}, []uuid.UUID{plain}},
		"orphaned":           {library.SkillFilter{Orphaned: &yes}, []uuid.UUID{id}},
		"processes":          {library.SkillFilter{Process: &yes}, []uuid.UUID{id}},
		"no processes":       {library.SkillFilter{Process: &no}, []uuid.UUID{plain}},
		"by a word":          {library.SkillFilter{Search: "pLAIN"}, []uuid.UUID{plain}},
		"by what is no glob": {library.SkillFilter{Search: "%"}, nil},
	} {
		t.Run("skills: "+name, func(t *testing.T) {
			rows, err := s.Skills(t.Context(), c.filter, library.Page{Limit: 10})
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

func skillHistory(t *testing.T, r *Rows, id, plain uuid.UUID) {
	s, now := r.s, r.World.Now()
	t.Run("W2 revisions are listed newest first", func(t *testing.T) {
		author := r.User()
		for n := range 2 {
			r.Insert("skill_revisions", V("skill_id", plain), V("revision", int64(n+1)), V("name", "n"), V("description", "d"),
				V("body", "see references/a.md"), V("allowed_tools", `{"State":"undeclared"}`), V("process", "no"), V("author_id", author), V("at", now))
		}
		got, err := s.Revisions(t.Context(), plain)
		if err != nil || len(got) != 2 || got[0].Number != 2 {
			t.Fatalf("%+v %v", got, err)
		}
		same(t, got[1], library.Revision{ID: got[1].ID, SkillID: plain, Number: 1, AuthorID: author, At: now, Version: skill.Version{
			Name: "n", Description: "d", Body: "see references/a.md", Support: skill.SupportPartial, Tools: skill.NoTools(), Process: skill.ProcessNo,
		}}, nil)
	})
	t.Run("D6 an integrity failure is remembered by both digests", func(t *testing.T) {
		r.Insert("integrity_failures", V("skill_id", id), V("stored", "1:a"), V("computed", "1:b"), V("at", now))
		for computed, want := range map[string]bool{"1:b": true, "1:c": false} {
			if seen, err := s.IntegritySeen(t.Context(), id, "1:a", computed); err != nil || seen != want {
				t.Fatalf("%s: %v %v", computed, seen, err)
			}
		}
	})
}

func configurations(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	now, ada, other := r.World.Now(), uuid.New(), uuid.New()
	id := r.Configuration(V("context_window", int64(8192)), V("system_prompt", "Be brief."), V("allowed_tool_groups", `["content_read"]`),
		V("require_second_approver", true), V("allow_proposal_edits", true), V("snippets_in_caller_system_message", true), V("max_iterations", int64(4)), V("approval_expiry_hours", int64(9)),
		V("allowed_user_ids", `["`+ada.String()+`"]`), V("snippet_ids", `["`+other.String()+`","`+ada.String()+`"]`), V("revision", int64(3)), V("created_at", now),
		V("max_output_tokens", int64(900)), V("price", `{"input":3,"output":4}`), V("fallbacks", `[{"provider":"`+ada.String()+`","model":"b","contextWindow":7}]`))
	var provider uuid.UUID
	t.Run("a configuration is read as it was written", func(t *testing.T) {
		got, err := s.Configuration(t.Context(), id)
		provider = got.ProviderID
		same(t, got, library.Configuration{
			ID: id, Name: "Editorial", ProviderID: provider, Model: "script", ContextWindow: 8192, SystemPrompt: "Be brief.",
			AllowedToolGroups: []tool.Group{tool.GroupContentRead}, RequireSecondApprover: true, AllowProposalEdits: true, SnippetsInCallerSystemPrompt: true,
			SnippetIDs: []uuid.UUID{other, ada}, MaxIterations: 4, ApprovalExpiryHours: 9, AllowedUserIDs: []uuid.UUID{ada}, Revision: 3, CreatedAt: now,
			MaxOutputTokens: 900, Price: &library.Price{Input: 3, Output: 4}, Fallbacks: []library.Choice{{ProviderID: ada, Model: "b", ContextWindow: 7}},
		}, err)
		_, err = s.Configuration(t.Context(), ada)
		notFound(t, err)
		list, err := s.Configurations(t.Context(), library.Page{Limit: 3})
		same(t, list, []library.Configuration{got}, err)
	})
	t.Run("I6 a list of users that cannot be read does not let everybody in", func(t *testing.T) {
		r.Apply(update("configurations", id, nil, []change.Value{V("allowed_user_ids", "[")}))
		if _, err := s.Configuration(t.Context(), id); !fault.Is(err, fault.Internal) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a provider has its key, a list of providers has none", func(t *testing.T) {
		want := library.Provider{ID: provider, Name: "Script", Kind: library.Scripted, TrustZone: library.ZoneLocal}
		list, err := s.Providers(t.Context(), library.Page{Limit: 3})
		same(t, list, []library.Provider{want}, err)
		got, err := s.Provider(t.Context(), provider)
		want.APIKey = "a secret key"
		same(t, got, want, err)
		_, err = s.Provider(t.Context(), ada)
		notFound(t, err)
	})
	t.Run("T7 switches are told by tool", func(t *testing.T) {
		r.Insert("tool_switches", V("name", "move_page"), V("enabled", true))
		got, err := s.ToolSwitches(t.Context())
		same(t, got, map[string]bool{"move_page": true}, err)
		r.Insert("tool_group_switches", V("name", "content_write"), V("enabled", false))
		groups, err := s.GroupSwitches(t.Context())
		same(t, groups, map[tool.Group]bool{tool.GroupContentWrite: false}, err)
	})
}
