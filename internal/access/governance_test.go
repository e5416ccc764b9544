package access_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

func TestGovernance(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		read := func(t *testing.T, f *fixture) string {
			t.Helper()
			out, err := f.Governance(f.ctx, f.admin)
			f.ok(err)
			var b strings.Builder
			for _, v := range out.InForce {
				fmt.Fprintf(&b, "%s=%s\n", v.Name, v.Value)
			}
			for _, p := range out.Profiles {
				fmt.Fprintf(&b, "%s:", p.Name)
				for _, e := range p.Expected {
					fmt.Fprintf(&b, " %s/%s %s", e.Want, e.Is, e.Comparison)
				}
				b.WriteString("\n")
			}
			return b.String()
		}
		t.Run("M3 the settings in force are read against the profiles", func(t *testing.T) {
			const want = `skills.minTrustLevel=untrusted
skills.instructionTrustLevel=verified
privacy.level=metadata
retention.runDays=30
agent.defaultMaxIterations=5
agent.maxIterations=20
guardrails=[]
local_only: community/untrusted looser verified/verified matches full/metadata stricter 90/30 stricter
controlled_cloud: verified/untrusted looser verified/verified matches redacted/metadata stricter 30/30 matches
enterprise_strict: first_party/untrusted looser first_party/verified looser metadata/metadata matches 7/30 looser
development: untrusted/untrusted matches verified/verified matches full/metadata stricter 7/30 looser
`
			if got := read(t, setUp(t)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
		t.Run("M3 it follows the settings, R9 both limits of rounds included, and 0 days are for ever", func(t *testing.T) {
			f := setUp(t)
			for name, value := range map[string]string{
				"skills.minTrustLevel": "first_party", "retention.runDays": "0", "agent.maxIterations": "3", "agent.defaultMaxIterations": "9",
				"privacy.level": "redacted",
			} {
				_, err := f.UpdateSetting(f.ctx, f.admin, name, ptr(value))
				f.ok(err)
			}
			got := read(t, f)
			for _, want := range []string{
				"skills.instructionTrustLevel=first_party\n", "agent.defaultMaxIterations=3\nagent.maxIterations=3\n",
				"enterprise_strict: first_party/first_party matches first_party/first_party matches metadata/redacted looser 7/0 looser",
				"local_only: community/first_party stricter",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
		})
		t.Run("M3 only administrators read it", func(t *testing.T) {
			f := setUp(t)
			got, err := f.Governance(f.ctx, f.user(access.NewUser{Name: "Ada", Kind: actor.Person}).Actor())
			if !fault.Is(err, fault.Forbidden) || len(got.Profiles) > 0 {
				t.Errorf("%+v %v", got, err)
			}
		})
	})
}
