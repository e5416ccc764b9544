package skill

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

var (
	skillID     = uuid.MustParse("01890000-0000-7000-8000-000000000001")
	homeSource  = uuid.MustParse("01890000-0000-7000-8000-000000000002")
	otherSource = uuid.MustParse("01890000-0000-7000-8000-000000000003")
)

func sampleVersion() Version {
	return Version{Name: "style", Description: "house style", Body: "Write plainly.\n", Support: SupportFull, Tools: DeclareTools("Read"), Process: ProcessNo}
}

func approvalOf(v Version, source uuid.UUID, counter int64) Approval {
	return Approval{Source: source, Digest: v.Digest(), Counter: counter, Snapshot: v, BundleDigest: "bundle one"}
}

// standingFacts are the facts of a synced skill that instructs.
func standingFacts() Facts {
	v := sampleVersion()
	return Facts{
		Skill: skillID, Source: homeSource, Version: v, StoredDigest: v.Digest(),
		CopiedLevel: Verified, SourceLevel: Verified, MinLevel: Untrusted, InstructionLevel: Verified,
		Approvals: []Approval{approvalOf(v, homeSource, 1)}, BundleDigest: "bundle one",
	}
}

func TestStand(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Facts)
		want   []Reason
	}{
		{"A2 approved, admitted, whole and trusted enough instructs", func(*Facts) {}, nil},
		{"A2 without an approval it does not", func(f *Facts) { f.Approvals = nil }, []Reason{ReasonNoApproval}},
		{"A2 an approval of another digest is none", func(f *Facts) {
			other := f.Version
			other.Body = "other"
			f.Approvals = []Approval{approvalOf(other, homeSource, 1)}
		}, []Reason{ReasonNoApproval}},
		{"A2 an approval from another source is none", func(f *Facts) { f.Source = otherSource }, []Reason{ReasonNoApproval}},
		{"A1 a source below the threshold does not instruct", func(f *Facts) { f.SourceLevel = Community }, []Reason{ReasonBelowThreshold}},
		{"A3 a synced skill is admitted by the level copied at sync", func(f *Facts) { f.MinLevel, f.CopiedLevel = Community, Untrusted }, []Reason{ReasonNotAdmitted}},
		{"A3 a synced skill's admission does not read the live level", func(f *Facts) { f.MinLevel, f.SourceLevel = Community, Untrusted }, []Reason{ReasonBelowThreshold}},
		{"D6 stored fields that are not the synced ones do not instruct", func(f *Facts) { f.StoredDigest = Digest("1:00") }, []Reason{ReasonIntegrityFailed}},
		{"D7 a legacy row does not instruct", func(f *Facts) {
			f.StoredDigest, f.StoredBodyChecksum = "", BodyChecksum(f.Version.Body)
		}, []Reason{ReasonLegacy}},
		{"D7 a legacy row is held to its body checksum", func(f *Facts) {
			f.StoredDigest, f.StoredBodyChecksum = "", BodyChecksum("other")
		}, []Reason{ReasonIntegrityFailed, ReasonLegacy}},
		{"A7 a revocation wins over the approval before it", func(f *Facts) { f.revoke(f.Version, 2) }, []Reason{ReasonRevoked}},
		{"A7 a revocation wins at the same count", func(f *Facts) { f.revoke(f.Version, 1) }, []Reason{ReasonRevoked}},
		{"A7 a new approval lifts a revocation", func(f *Facts) {
			f.revoke(f.Version, 2)
			f.Approvals = append(f.Approvals, approvalOf(f.Version, homeSource, 3))
		}, nil},
		{"A7 every revocation counts, in any order", func(f *Facts) {
			f.revoke(f.Version, 4)
			f.revoke(f.Version, 2)
			f.Approvals = append(f.Approvals, approvalOf(f.Version, homeSource, 3))
		}, []Reason{ReasonRevoked}},
		{"A7 a revocation of another digest does not matter", func(f *Facts) {
			other := f.Version
			other.Body = "other"
			f.revoke(other, 9)
		}, nil},
		{"A7 a revoked digest from a new source lacks an approval and is revoked", func(f *Facts) {
			f.revoke(f.Version, 2)
			f.Source = otherSource
		}, []Reason{ReasonNoApproval, ReasonRevoked}},
		{"A2 bundle binding voids a changed bundle", func(f *Facts) { f.BundleBinding, f.BundleDigest = true, "bundle two" }, []Reason{ReasonBundleChanged}},
		{"A2 without bundle binding a changed bundle gates nothing", func(f *Facts) { f.BundleDigest = "bundle two" }, nil},
		{"A2 a bundle that returns to an approved one instructs again", func(f *Facts) {
			f.BundleBinding = true
			newer := approvalOf(f.Version, homeSource, 2)
			newer.BundleDigest = "bundle two"
			f.Approvals = append(f.Approvals, newer)
		}, nil},
		{"A2 every reason is named", func(f *Facts) {
			f.Approvals, f.SourceLevel, f.CopiedLevel, f.MinLevel, f.StoredDigest = nil, Untrusted, Untrusted, Community, "1:00"
		}, []Reason{ReasonNoApproval, ReasonBelowThreshold, ReasonNotAdmitted, ReasonIntegrityFailed}},
		{"A1 a level that is none reaches nothing", func(f *Facts) { f.SourceLevel, f.CopiedLevel = "gold", "gold" }, []Reason{ReasonBelowThreshold, ReasonNotAdmitted}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			facts := standingFacts()
			c.change(&facts)
			got := Stand(facts)
			if diff := cmp.Diff(Standing{Instructs: len(c.want) == 0, Reasons: c.want}, got); diff != "" {
				t.Errorf("standing (-want +got):\n%s", diff)
			}
			for _, reason := range c.want {
				if !got.Has(reason) {
					t.Errorf("Has(%s) is false", reason)
				}
			}
		})
	}
}

func (f *Facts) revoke(v Version, counter int64) {
	f.Revocations = append(f.Revocations, Revocation{Digest: v.Digest(), Counter: counter})
}

func TestAuthored(t *testing.T) {
	authored := func() Facts {
		f := standingFacts()
		f.Authored, f.StoredDigest, f.CopiedLevel = true, "", ""
		return f
	}
	t.Run("W1 a text written here has a computed digest and is never legacy", func(t *testing.T) {
		f := authored()
		if got := Stand(f); !got.Instructs {
			t.Errorf("standing = %+v", got)
		}
		f.StoredDigest = "1:00"
		if got := Stand(f); !got.Instructs {
			t.Errorf("a stored digest was trusted: %+v", got)
		}
	})
	t.Run("W1 an edit leaves it without an approval", func(t *testing.T) {
		f := authored()
		f.Version.Description = "edited"
		if got := Stand(f); !slices.Equal(got.Reasons, []Reason{ReasonNoApproval}) {
			t.Errorf("standing = %+v", got)
		}
	})
	t.Run("A3 it is admitted by its source's live level", func(t *testing.T) {
		f := authored()
		f.MinLevel, f.SourceLevel, f.CopiedLevel = Community, Untrusted, FirstParty
		if got := Stand(f); !got.Has(ReasonNotAdmitted) {
			t.Errorf("standing = %+v", got)
		}
	})
}

func TestContributedTools(t *testing.T) {
	v := sampleVersion()
	v2 := v
	v2.Tools = DeclareTools("Bash")
	live := v
	live.Tools = DeclareTools("Everything")
	facts := func(approvals ...Approval) Facts {
		return Facts{Source: homeSource, Authored: true, Version: live, Approvals: approvals}
	}
	t.Run("W3 it contributes its newest approved snapshot's tools, not the live ones", func(t *testing.T) {
		got := ContributedTools(facts(approvalOf(v2, homeSource, 5), approvalOf(v, homeSource, 1)))
		if !sameTools(got, DeclareTools("Bash")) {
			t.Errorf("tools = %+v", got)
		}
	})
	t.Run("W3 a revoked newest snapshot gives way to the one before", func(t *testing.T) {
		f := facts(approvalOf(v, homeSource, 1), approvalOf(v2, homeSource, 5))
		f.revoke(v2, 6)
		if got := ContributedTools(f); !sameTools(got, DeclareTools("Read")) {
			t.Errorf("tools = %+v", got)
		}
	})
	t.Run("W3 never approved, all revoked or approved elsewhere is a declared empty list", func(t *testing.T) {
		revoked := facts(approvalOf(v, homeSource, 1))
		revoked.revoke(v, 1)
		for name, f := range map[string]Facts{"never": facts(), "revoked": revoked, "elsewhere": facts(approvalOf(v, otherSource, 1))} {
			if got := ContributedTools(f); !sameTools(got, DeclareTools()) {
				t.Errorf("%s: tools = %+v", name, got)
			}
		}
	})
	t.Run("T9 a synced skill contributes its own declaration, and a declared empty list when it is not whole", func(t *testing.T) {
		f := standingFacts()
		f.Version.Tools = NoTools()
		f.StoredDigest = f.Version.Digest()
		if got := ContributedTools(f); !sameTools(got, NoTools()) {
			t.Errorf("tools = %+v", got)
		}
		f.StoredDigest = "1:00"
		if got := ContributedTools(f); !sameTools(got, DeclareTools()) {
			t.Errorf("tools = %+v", got)
		}
	})
}

func TestEffective(t *testing.T) {
	for _, c := range []struct {
		name                         string
		enabled, orphaned, want      bool
		minLevel, copied, authoredAt TrustLevel
	}{
		{"A11 enabled, present and admitted is effective", true, false, true, Untrusted, Untrusted, Untrusted},
		{"A11 disabled is not", false, false, false, Untrusted, Untrusted, Untrusted},
		{"A11 orphaned is not", true, true, false, Untrusted, Untrusted, Untrusted},
		{"A11 not admitted is not", true, false, false, Community, Untrusted, FirstParty},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Effective(c.enabled, c.orphaned, Facts{MinLevel: c.minLevel, CopiedLevel: c.copied, SourceLevel: c.authoredAt}); got != c.want {
				t.Errorf("effective = %v", got)
			}
		})
	}
}

func TestPinHolds(t *testing.T) {
	v := sampleVersion()
	pin := Pin{Skill: skillID, Source: homeSource, Digest: v.Digest()}
	whole := func() PinFacts {
		return PinFacts{SkillExists: true, SourceExists: true, SourceLevel: Verified, InstructionLevel: Verified, Approvals: []Approval{approvalOf(v, homeSource, 1)}}
	}
	tampered := approvalOf(v, homeSource, 1)
	tampered.Snapshot.Body = "other"
	revoked := []Revocation{{Digest: v.Digest(), Counter: 2}}
	cases := []struct {
		name   string
		change func(*PinFacts)
		want   PinFailure
	}{
		{"P2 a pin holds on its approval", func(*PinFacts) {}, ""},
		{"P2 the skill must exist", func(f *PinFacts) { f.SkillExists = false }, PinSkillMissing},
		{"P2 the skill must not be orphaned", func(f *PinFacts) { f.Orphaned = true }, PinOrphaned},
		{"P2 the pin's own source must exist", func(f *PinFacts) { f.SourceExists = false }, PinSourceMissing},
		{"P2 its source must reach the threshold", func(f *PinFacts) { f.SourceLevel = Community }, PinBelowThreshold},
		{"P2 an approval must exist", func(f *PinFacts) { f.Approvals = nil }, PinNoApproval},
		{"P2 an approval from another source does not hold it", func(f *PinFacts) { f.Approvals = []Approval{approvalOf(v, otherSource, 1)} }, PinNoApproval},
		{"P9 a revocation ends it", func(f *PinFacts) { f.Revocations = revoked }, PinRevoked},
		{"P2 a later approval makes it hold again", func(f *PinFacts) {
			f.Revocations, f.Approvals = revoked, append(f.Approvals, approvalOf(v, homeSource, 3))
		}, ""},
		{"P9 a newer approval of another version does not touch it", func(f *PinFacts) {
			other := v
			other.Body = "other"
			f.Approvals = append(f.Approvals, approvalOf(other, homeSource, 3))
		}, ""},
		{"P2 the snapshot must hash to the digest", func(f *PinFacts) { f.Approvals = []Approval{tampered} }, PinSnapshotBroken},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			facts := whole()
			c.change(&facts)
			snapshot, failure, holds := PinHolds(pin, facts)
			if failure != c.want || holds != (c.want == "") {
				t.Errorf("PinHolds = %q, %v, want %q", failure, holds, c.want)
			}
			if holds && snapshot.Digest() != pin.Digest {
				t.Error("the snapshot is not the pinned version")
			}
		})
	}
}
