package access_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

// stored answers what somebody could have put into the settings' table.
type stored struct {
	access.Store
	settings map[string]string
}

func (s stored) Settings(context.Context) (map[string]string, error) { return s.settings, nil }

func TestSettingsAsRead(t *testing.T) {
	read := func(t *testing.T, file, kept map[string]string) access.Values {
		t.Helper()
		v, err := (&access.Access{Store: stored{settings: kept}, File: file}).Values(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Run("I8 the defaults are those of the rules", func(t *testing.T) {
		want := access.Values{
			MinTrustLevel: skill.Untrusted, InstructionTrustLevel: skill.Verified, SkillMaxBytes: 24000, CatalogueMaxBytes: 8000, DefaultMaxIterations: 5,
			MaxIterations: 20, Lease: 900 * time.Second, RunWait: 50 * time.Second, DrainTimeout: 10 * time.Second, SyncMaxFiles: 500, SyncMax: 120 * time.Second,
			Privacy: run.PrivacyMetadata, Guardrails: "[]", ApprovalTools: "none", RunDays: 30, ConversationDays: 30, ArchivedDays: 90, WaitingRunDays: 30, NotificationDays: 30,
		}
		if got := read(t, nil, nil); got != want {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("A1 a level nobody can read is first_party, and instructing is never below admission", func(t *testing.T) {
		for _, c := range []struct{ admission, instructing, wantAdmission, wantInstructing string }{
			{"", "", "untrusted", "verified"},
			{"community", "first_party", "community", "first_party"},
			{"first_party", "community", "first_party", "first_party"},
			{"", "Verified!", "untrusted", "first_party"},
			{"garbage", "", "first_party", "first_party"},
		} {
			got := read(t, nil, map[string]string{"skills.minTrustLevel": c.admission, "skills.instructionTrustLevel": c.instructing})
			if string(got.MinTrustLevel) != c.wantAdmission || string(got.InstructionTrustLevel) != c.wantInstructing {
				t.Errorf("%q, %q: %+v", c.admission, c.instructing, got)
			}
		}
	})
	t.Run("Y1 a level of privacy nobody can read keeps nothing", func(t *testing.T) {
		for set, want := range map[string]run.Privacy{"": run.PrivacyMetadata, "full": run.PrivacyFull, "Full": run.PrivacyNone} {
			if got := read(t, nil, map[string]string{"privacy.level": set}).Privacy; got != want {
				t.Errorf("%q is read as %q", set, got)
			}
		}
	})
	t.Run("R9 an empty, invalid or too small limit falls back, and the default is never above the ceiling", func(t *testing.T) {
		for _, c := range []struct {
			initial, ceiling string
			want, wantMost   int
		}{{"", "", 5, 20}, {"7", "9", 7, 9}, {"0", "-3", 5, 20}, {"many", "3.5", 5, 20}, {"50", "10", 10, 10}, {"", "3", 3, 3}, {" 8 ", "", 8, 20}} {
			got := read(t, nil, map[string]string{"agent.defaultMaxIterations": c.initial, "agent.maxIterations": c.ceiling})
			if got.DefaultMaxIterations != c.want || got.MaxIterations != c.wantMost {
				t.Errorf("%q, %q: %+v", c.initial, c.ceiling, got)
			}
		}
	})
	t.Run("A2 a bundle binding nobody can read binds", func(t *testing.T) {
		for text, want := range map[string]bool{"": false, "true": true, "false": false, "yes": true} {
			if got := read(t, nil, map[string]string{"skills.bundleBinding": text}); got.BundleBinding != want {
				t.Errorf("%q: %v", text, got.BundleBinding)
			}
		}
	})
	t.Run("I8 a value from a file lies below one that was set, and is checked again on reading", func(t *testing.T) {
		file := map[string]string{"skills.maxBytes": "30000", "sync.maxFiles": "-1", "skills.instructionTrustLevel": "best"}
		got := read(t, file, nil)
		if got.SkillMaxBytes != 30000 || got.SyncMaxFiles != 500 || got.InstructionTrustLevel != skill.FirstParty {
			t.Fatalf("%+v", got)
		}
		if got := read(t, file, map[string]string{"skills.maxBytes": "40000"}); got.SkillMaxBytes != 40000 {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("I8 a file that names no setting, or means nothing, stops the start", func(t *testing.T) {
		for name, value := range map[string]string{"skills.maxBites": "1", "sync.maxFiles": "0"} {
			if err := access.CheckFile(map[string]string{name: value}); !fault.Is(err, fault.BadInput) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := access.CheckFile(map[string]string{"sync.maxFiles": "5", "skills.bundleBinding": "true"}); err != nil {
			t.Error(err)
		}
	})
}

func TestUpdateSetting(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("I8 an administrator changes a setting while the server runs, audited, and takes it back", func(t *testing.T) {
			f := setUp(t)
			f.File = map[string]string{"sync.maxFiles": "300"}
			for _, step := range []struct {
				value   *string
				inForce int
			}{{ptr("100"), 100}, {ptr("200"), 200}, {ptr("200"), 200}, {nil, 300}, {nil, 300}} {
				shown, err := f.UpdateSetting(f.ctx, f.admin, "sync.maxFiles", step.value)
				f.ok(err)
				values, err := f.Values(f.ctx)
				f.ok(err)
				if values.SyncMaxFiles != step.inForce || shown.InForce != strconv.Itoa(step.inForce) || shown.File != "300" {
					t.Fatalf("%+v %+v", shown, values)
				}
			}
			entries := f.audited(audit.SettingChanged)
			if len(entries) != 3 || entries[0].Detail["from"] != "300" || entries[0].Detail["to"] != "100" || entries[1].Detail["from"] != "100" ||
				entries[2].Detail["to"] != "300" || entries[2].Detail["takenBack"] != true || entries[2].Actor != f.admin.ID {
				t.Fatalf("%+v", entries)
			}
		})
		t.Run("I8 every setting is shown with what is in force, and accepts its own default", func(t *testing.T) {
			f := setUp(t)
			_, err := f.UpdateSetting(f.ctx, f.admin, "skills.minTrustLevel", ptr("first_party"))
			f.ok(err)
			all, err := f.Settings(f.ctx, f.admin)
			f.ok(err)
			if len(all) == 0 {
				t.Fatalf("%d settings", len(all))
			}
			for _, s := range all {
				if s.Description == "" || s.Default == "" || s.InForce == "" {
					t.Errorf("%+v", s)
				}
				if s.Name == "skills.instructionTrustLevel" && s.InForce != "first_party" {
					t.Errorf("A1 what is in force is %s", s.InForce)
				}
			}
			for _, s := range all {
				_, err := f.UpdateSetting(f.ctx, f.admin, s.Name, &s.Default)
				f.ok(err)
			}
		})
		t.Run("I8 what a setting cannot be is refused, saying what it can", func(t *testing.T) {
			f := setUp(t)
			for name, c := range map[string]struct{ value, accepted string }{
				"sync.maxFiles":                {"0", "from 1 to 100000"},
				"agent.maxIterations":          {"x", "whole number of rounds"},
				"skills.instructionTrustLevel": {"best", "untrusted, community, verified, first_party"},
				"skills.bundleBinding":         {"yes", "true, false"},
				"skills.maxBytes":              {"", "whole number of bytes"},
			} {
				_, err := f.UpdateSetting(f.ctx, f.admin, name, &c.value)
				f.failed(err, fault.BadInput)
				if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), c.accepted) {
					t.Errorf("%s: %v", name, err)
				}
			}
			_, err := f.UpdateSetting(f.ctx, f.admin, "skills.maxBites", ptr("1"))
			f.failed(err, fault.NotFound)
		})
		t.Run("I8 only administrators see and change settings", func(t *testing.T) {
			f := setUp(t)
			ada := f.user(access.NewUser{Name: "Ada", Kind: actor.Person}).Actor()
			_, err := f.Settings(f.ctx, ada)
			f.failed(err, fault.Forbidden)
			_, err = f.UpdateSetting(f.ctx, ada, "sync.maxFiles", ptr("1"))
			f.failed(err, fault.Forbidden)
			_, err = f.UpdateSetting(f.ctx, actor.Actor{}, "sync.maxFiles", ptr("1"))
			f.failed(err, fault.Unauthenticated)
		})
		t.Run("two who change a setting at once: each entry tells from what to what", func(t *testing.T) {
			f := setUp(t)
			f.between.before(func() {
				_, err := f.UpdateSetting(f.ctx, f.admin, "sync.maxFiles", ptr("100"))
				f.ok(err)
			})
			shown, err := f.UpdateSetting(f.ctx, f.admin, "sync.maxFiles", ptr("200"))
			f.ok(err)
			entries := f.audited(audit.SettingChanged)
			if shown.InForce != "200" || len(entries) != 2 || entries[1].Detail["from"] != "100" || entries[1].Detail["to"] != "200" {
				t.Fatalf("%+v %+v", shown, entries)
			}
		})
	})
}
