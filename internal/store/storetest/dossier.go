package storetest

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/store"
)

func dossiers(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	user, source := r.User(), r.Source()
	one, two, bare := r.Skill(source, "one"), r.Skill(source, "two"), r.Skill(source, "bare")
	r.Approval(source, one, user, 1)
	r.Revocation(one, user, 2)
	newest := r.Approval(source, one, user, 3)
	r.Approval(source, two, user, 1)
	t.Run("A2 a dossier holds everything, newest counter first, in the order asked for", func(t *testing.T) {
		got, err := s.Dossiers(t.Context(), []uuid.UUID{two, uuid.New(), one, bare})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 || got[0].Skill.ID != two || got[1].Skill.ID != one || got[2].Skill.ID != bare {
			t.Fatalf("%d dossiers: %+v", len(got), got)
		}
		d := got[1]
		if d.Source.ID != source || len(d.Approvals) != 2 || d.Approvals[0].Counter != 3 || len(d.Revocations) != 1 || d.Revocations[0].Counter != 2 {
			t.Fatalf("%+v", d)
		}
		if len(got[2].Approvals) > 0 || len(got[2].Revocations) > 0 || len(got[0].Approvals) != 1 {
			t.Fatal("an approval stands in another's dossier")
		}
	})
	t.Run("A5 an approval is the snapshot that was stored", func(t *testing.T) {
		got, err := s.Dossiers(t.Context(), []uuid.UUID{one})
		if err != nil {
			t.Fatal(err)
		}
		a := got[0].Approvals[0]
		same(t, a, library.Approval{
			ID: newest, SkillID: one, SourceID: source, Digest: "1:aa", Counter: 3, Version: skill.Version{
				Name: "proof", Description: "Reads proofs.", Body: "Read.\n", Support: skill.SupportFull,
				Tools: skill.DeclareTools("read_page"), Process: skill.ProcessNo,
			}, TrustLevel: skill.Verified, ApproverID: user, Comment: "read it", At: a.At,
		}, nil)
		v := got[0].Revocations[0]
		same(t, v, library.Revocation{ID: v.ID, SkillID: one, Digest: "1:aa", Counter: 2, Reason: "wrong", ActorID: user, At: v.At}, nil)
		approval, err := s.Approval(t.Context(), newest)
		same(t, approval, a, err)
		revocation, err := s.Revocation(t.Context(), v.ID)
		same(t, revocation, v, err)
		_, err = s.Approval(t.Context(), v.ID)
		notFound(t, err)
		_, err = s.Revocation(t.Context(), newest)
		notFound(t, err)
		if a.At.Before(Start) || a.At.Location() != v.At.Location() || !a.At.After(v.At) {
			t.Fatalf("times %v and %v", a.At, v.At)
		}
	})
	t.Run("A2 a counter is given once a skill", func(t *testing.T) {
		_, again := r.Row("revocations", V("skill_id", one), V("digest", "1:aa"), V("counter", int64(2)), V("reason", ""), V("actor_id", user), V("at", Start))
		if out := apply(t, s, change.Change{Inserts: []change.Insert{again}})[0]; out.Applied {
			t.Fatal("two revocations have one counter")
		}
	})
	offered(t, r, one, two, bare)
}

func offered(t *testing.T, r *Rows, one, two, bare uuid.UUID) {
	s := r.s
	configuration := r.Configuration()
	attach := func(skill uuid.UUID, mode library.LoadMode, position int) uuid.UUID {
		return r.Insert("attachments", V("skill_id", skill), V("configuration_id", configuration), V("load_mode", string(mode)),
			V("position", int64(position)), V("created_at", Start))
	}
	last, first := attach(one, library.Always, 2), attach(two, library.OnDemand, 1)
	third := attach(bare, library.OnDemand, 2)
	t.Run("L1 what a configuration offers is ordered by position, then id", func(t *testing.T) {
		got, err := s.Offered(t.Context(), configuration)
		if err != nil || len(got) != 3 {
			t.Fatalf("%d offered, %v", len(got), err)
		}
		for i, want := range []uuid.UUID{first, last, third} {
			if got[i].Attachment.ID != want {
				t.Fatalf("place %d is %v", i, got[i].Attachment.ID)
			}
		}
		if got[0].Attachment.LoadMode != library.OnDemand || got[0].Skill.ID != two || len(got[1].Approvals) != 2 {
			t.Fatalf("%+v", got[0])
		}
		attachment, err := s.Attachment(t.Context(), last)
		same(t, attachment, library.Attachment{ID: last, SkillID: one, ConfigurationID: configuration, LoadMode: library.Always, Position: 2, CreatedAt: Start}, err)
		_, err = s.Attachment(t.Context(), one)
		notFound(t, err)
	})
	t.Run("a configuration without attachments offers nothing", func(t *testing.T) {
		if got, err := s.Offered(t.Context(), uuid.New()); err != nil || len(got) > 0 {
			t.Fatalf("%v %v", got, err)
		}
	})
}

func uses(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	user, source := r.User(), r.Source()
	used, moved := r.Skill(source, "used"), r.Skill(r.Source(), "moved")
	configuration := r.Configuration()
	pinned := func(status run.Status, skill uuid.UUID) uuid.UUID {
		return r.RunOf(user, configuration, V("status", string(status)),
			V("pins", `[{"skill":"`+skill.String()+`","source":"`+source.String()+`","digest":"1:aa","way":"always"}]`))
	}
	want := []library.Use{
		{Kind: library.UsedByApproval, ID: r.Approval(source, used, user, 1), SkillID: used},
		{Kind: library.UsedByApproval, ID: r.Approval(source, moved, user, 1), SkillID: moved},
		{Kind: library.UsedByAttachment, SkillID: used, ID: r.Insert("attachments", V("skill_id", used),
			V("configuration_id", configuration), V("load_mode", "always"), V("created_at", Start))},
		{Kind: library.UsedByRevocation, ID: r.Revocation(used, user, 2), SkillID: used},
		{Kind: library.UsedByRun, ID: pinned(run.WaitingForApproval, used), SkillID: used},
	}
	pinned(run.Completed, used)
	other := pinned(run.Queued, moved)
	t.Run("S15 everything that names a source or its skills is told, by kind", func(t *testing.T) {
		got, err := s.UsesOf(t.Context(), source, 10)
		same(t, got, want, err)
		got, err = s.UsesOf(t.Context(), source, 2)
		same(t, got, want[:2], err)
		got, err = s.UsesOf(t.Context(), uuid.New(), 2)
		if err != nil || len(got) > 0 {
			t.Fatalf("%v %v", got, err)
		}
	})
	t.Run("S15 open runs that pin a skill are told once", func(t *testing.T) {
		got, err := s.PinnedOpen(t.Context(), []uuid.UUID{used, moved})
		if err != nil || len(got) != 2 || !slices.Contains(got, other) || !slices.Contains(got, want[4].ID) {
			t.Fatalf("%v %v", got, err)
		}
		if got, err := s.PinnedOpen(t.Context(), []uuid.UUID{uuid.New()}); err != nil || len(got) > 0 {
			t.Fatalf("%v %v", got, err)
		}
	})
}
