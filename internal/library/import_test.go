package library_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

const header = `{"kind":"export","format":1,"installation":"intranet"}`

const oldSource = `{"kind":"source","id":3,"title":"Acme","type":"repo","url":"https://github.com/acme/skills","trust_level":"first_party"}`

// exportOf is an export of these lines, after the header and a source with the id 3.
func exportOf(lines ...string) string {
	return strings.Join(append([]string{header, oldSource}, lines...), "\n") + "\n"
}

// row is an exported skill of the source 3, whose frontmatter says what its fields say; set overrides a field.
func row(t testing.TB, id int, set map[string]any) string {
	t.Helper()
	fields := map[string]any{
		"kind": "skill", "id": id, "source": 3, "identifier": fmt.Sprintf("s%d", id), "name": "one", "description": "Does what one does.",
		"body": "One.\n", "allowed_tools": "get_page list_pages", "enabled": true, "body_checksum": skill.BodyChecksum("One.\n"),
		"frontmatter": "name: one\ndescription: Does what one does.\nallowed-tools: get_page, list_pages\n",
	}
	for key, value := range set {
		fields[key] = value
	}
	line, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func (f *fixture) imported(export string) library.ImportReport {
	f.t.Helper()
	r, err := f.Import(f.ctx, f.admin, strings.NewReader(export))
	f.ok(err)
	if r.Lines != r.Imported+r.Present+r.Skipped || r.Imported != r.Sources+r.Skills+r.Attachments {
		f.t.Fatalf("the report does not add up: %+v", r)
	}
	return r
}

// legacy imports one skill and returns it; its source becomes the fixture's.
func (f *fixture) legacy(set map[string]any) library.Dossier {
	f.t.Helper()
	if r := f.imported(exportOf(row(f.t, 1, set))); r.Skills != 1 {
		f.t.Fatalf("%+v", r)
	}
	sources, err := f.ListSources(f.ctx, f.admin, library.Page{Limit: 100})
	f.ok(err)
	f.source = sources[slices.IndexFunc(sources, func(s library.Source) bool { return s.TrustLevel == skill.FirstParty })]
	return f.skill("s1")
}

func (f *fixture) reasons(r library.ImportReport) string {
	var all []string
	for _, n := range r.Notes {
		all = append(all, fmt.Sprintf("%d %s: %s", n.Line, n.Status, n.Reason))
	}
	return strings.Join(all, "\n")
}

func TestImport(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("D7 L1 the example of docs/importing.md is imported as it stands", func(t *testing.T) {
			f := setUp(t)
			page, err := os.ReadFile("../../docs/importing.md")
			f.ok(err)
			example := regexp.MustCompile("(?s)```jsonl\n(.*?)```").FindSubmatch(page)
			if example == nil {
				t.Fatal("the page has no example")
			}
			c := f.configuration()
			_, err = f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Name: ptr("Editorial")})
			f.ok(err)
			r := f.imported(string(example[1]))
			if r.Sources != 1 || r.Skills != 2 || r.Attachments != 1 || len(r.Notes) != 0 {
				t.Fatalf("%+v", r)
			}
			offered, err := f.Offered(f.ctx, c.ID)
			f.ok(err)
			if len(offered) != 1 || offered[0].Attachment.LoadMode != library.Always || !slices.Equal(offered[0].Skill.Version.Tools.Items, []string{"get_page", "list_pages"}) {
				t.Fatalf("%+v", offered)
			}
			adopted, err := f.AdoptLegacy(f.ctx, f.admin)
			f.ok(err)
			if len(adopted) != 2 || len(adopted[0].Failures)+len(adopted[1].Failures) != 0 {
				t.Fatalf("D9 %+v", adopted)
			}
		})
		t.Run("D7 an imported row has no digest, is held to its body's checksum, and neither instructs nor is approved", func(t *testing.T) {
			f := setUp(t)
			d := f.legacy(nil)
			if d.Digest() != "" || !d.Skill.Enabled || !d.Effective(library.Thresholds{Admission: skill.FirstParty}) {
				t.Fatalf("%+v", d.Skill)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval, skill.ReasonLegacy)
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Skill.Version.Digest())})
			f.refused(err, fault.LegacyVersion)
			f.apply(library.Tampered(d.Skill.ID, "Do as I say.\n"))
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval, skill.ReasonIntegrityFailed, skill.ReasonLegacy)
			f.ok(f.NoteIntegrityFailure(f.ctx, f.reread(d.Skill.ID)))
			f.ok(f.NoteIntegrityFailure(f.ctx, f.reread(d.Skill.ID)))
			f.once(audit.IntegrityFailed)
		})
		t.Run("U1 every imported row is audited, and no approval is written", func(t *testing.T) {
			f := setUp(t)
			before := len(f.trail())
			d := f.legacy(nil)
			for _, e := range f.trail()[before:] {
				if e.Actor != f.admin.ID || e.Detail["imported"] != "intranet" {
					t.Fatalf("%+v", e)
				}
			}
			if e := f.once(audit.IngestCreated); e.Skill != d.Skill.ID || e.Digest != "" {
				t.Fatalf("%+v", e)
			}
			for _, c := range f.between.applied {
				if library.Touches(c, library.Approvals) {
					t.Fatal("A5 an import wrote an approval")
				}
			}
		})
		t.Run("D7 an import is repeated without a change, and goes on where it broke off", func(t *testing.T) {
			f := setUp(t)
			var lines []string
			for id := range 250 {
				lines = append(lines, row(t, id+1, nil))
			}
			f.between.before(func() {})
			f.between.before(func() { f.between.broken = fault.New(fault.Unavailable, "The database is gone.") })
			_, err := f.Import(f.ctx, f.admin, strings.NewReader(exportOf(lines...)))
			f.failed(err, fault.Unavailable)
			f.between.broken = nil
			if r := f.imported(exportOf(lines...)); r.Present != 100 || r.Imported != 151 {
				t.Fatalf("%+v", r)
			}
			size := len(f.trail())
			if r := f.imported(exportOf(lines...)); r.Present != 251 || r.Imported != 0 || len(f.trail()) != size {
				t.Fatalf("%+v", r)
			}
			if r := f.imported(strings.Replace(exportOf(lines[0]), "intranet", "other", 1)); r.Imported != 2 {
				t.Fatalf("another installation's ids are its own: %+v", r)
			}
		})
		t.Run("D7 a line that cannot be imported is skipped with its reason and stops no other", func(t *testing.T) {
			f := setUp(t)
			c := f.configuration()
			_, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Name: ptr("Editorial")})
			f.ok(err)
			cases := []struct{ line, reason string }{
				{`{"kind":"source","id":4,"title":"A","type":"authored"}`, "a type that is synced"},
				{`{"kind":"source","id":5,"title":"A","type":"repo","url":"https://evil.example/a/b"}`, "url is not one"},
				{`{"kind":"source","id":6,"title":"A","type":"repo","url":"https://github.com/a/b","token":"hush"}`, `unknown field "token"`},
				{`{"kind":"task","id":1}`, "a line is a source"},
				{`not JSON`, "not a JSON object"},
				{"{\"kind\":\"skill\",\"name\":\"\xff\"}", "not valid UTF-8"},
				{`{"kind":"skill","id":9,"source":3,"identifier":"x","name":"a\ud800","body":""}`, "half of a surrogate pair"},
				{row(t, 10, map[string]any{"source": 99}), `no line before it brought its source "99"`},
				{row(t, 11, map[string]any{"name": " "}), "name is missing"},
				{row(t, 12, map[string]any{"body_checksum": ""}), "body_checksum is not"},
				{row(t, 13, map[string]any{"body": strings.Repeat("x", 512<<10+1)}), "at most 524288 are accepted"},
				{row(t, 14, map[string]any{"description": "a\x00"}), "NUL"},
				{row(t, 15, map[string]any{"frontmatter": 7}), "frontmatter is neither"},
				{row(t, 16, map[string]any{"trust_level": "first_party"}), `unknown field "trust_level"`},
				{row(t, 17, map[string]any{"body": strings.Repeat("x", 8<<20)}), "the line has more than"},
				{row(t, 18, map[string]any{"identifier": "s1"}), "has a skill with this identifier"},
				{row(t, 19, nil) + row(t, 20, nil), "not a JSON object"},
				{`{"kind":"attachment","skill":99,"configuration":"Editorial"}`, `no line before it brought its skill "99"`},
				{`{"kind":"attachment","skill":1,"configuration":"Other"}`, `no configuration "Other"`},
				{`{"kind":"attachment","skill":2,"configuration":"Editorial"}`, "is a process"},
				{`{"kind":"attachment","skill":1,"task":"T"}`, `no task "T"`},
				{`{"kind":"attachment","skill":1}`, "either a configuration or a task"},
				{`{"kind":"attachment","skill":1,"place":"T"}`, `unknown field "place"`},
			}
			_, err = f.CreateTask(f.ctx, f.admin, library.NewTask{Name: "Summary", ConfigurationID: c.ID, Prompt: "Sum up."})
			f.ok(err)
			lines := []string{row(t, 1, nil), row(t, 2, map[string]any{"frontmatter": map[string]any{"name": "one", "description": "x", "process": true}})}
			for _, c := range cases {
				lines = append(lines, c.line)
			}
			r := f.imported(exportOf(append(lines, `{"kind":"attachment","skill":1,"configuration":"Editorial"}`,
				`{"kind":"attachment","skill":1,"task":"Summary"}`)...))
			if r.Skipped != len(cases) || r.Skills != 2 || r.Attachments != 2 {
				t.Errorf("%+v", r)
			}
			slices.SortFunc(r.Notes, func(a, b library.ImportLine) int { return a.Line - b.Line })
			for i, c := range cases {
				if i >= len(r.Notes) || r.Notes[i].Line != i+5 || !strings.Contains(r.Notes[i].Reason, c.reason) {
					t.Fatalf("line %d is not skipped for %q:\n%s", i+5, c.reason, f.reasons(r))
				}
			}
		})
		t.Run("D7 a body that its checksum does not name is imported, and the report says that it is left out", func(t *testing.T) {
			f := setUp(t)
			r := f.imported(exportOf(row(t, 1, map[string]any{"body": "Edited.\n"})))
			if r.Skills != 1 || len(r.Notes) != 1 || r.Notes[0].Status != library.LineImported || !strings.Contains(r.Notes[0].Reason, "left out") {
				t.Fatalf("%+v", r)
			}
		})
		t.Run("S5 tools are read as a skill file's", func(t *testing.T) {
			for _, c := range []struct {
				written any
				want    skill.Tools
			}{
				{nil, skill.NoTools()},
				{"", skill.DeclareTools()},
				{[]string{}, skill.DeclareTools()},
				{"Bash(git add:*), Read", skill.DeclareTools("Bash(git add:*)", "Read")},
				{[]string{"b", "a"}, skill.DeclareTools("a", "b")},
				{"whatever it takes!", skill.UnreadableTools()},
				{map[string]any{"a": 1}, skill.UnreadableTools()},
			} {
				f := setUp(t)
				got := f.legacy(map[string]any{"allowed_tools": c.written}).Skill.Version.Tools
				if got.State != c.want.State || !slices.Equal(got.Items, c.want.Items) {
					t.Errorf("%v is %+v", c.written, got)
				}
			}
		})
		t.Run("D7 only an administrator imports, and only what has a header", func(t *testing.T) {
			f := setUp(t)
			_, err := f.Import(f.ctx, f.author, strings.NewReader(exportOf()))
			f.failed(err, fault.Forbidden)
			for _, text := range []string{oldSource, `{"kind":"export","format":2,"installation":"x"}`, `{"kind":"export","format":1}`, `{"kind":"export","format":1,"installation":"x","more":1}`} {
				_, err := f.Import(f.ctx, f.admin, strings.NewReader(text))
				f.failed(err, fault.BadInput)
			}
			if r := f.imported(""); r.Lines != 0 {
				t.Fatalf("%+v", r)
			}
		})
	})
}

func TestLegacySync(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		const tools = "allowed-tools: list_pages get_page\n"
		t.Run("D8 an unchanged imported skill gets its digest and stays enabled", func(t *testing.T) {
			f := setUp(t)
			d := f.legacy(nil)
			f.fetcher.set(t, file("one", tools, "One.\n"))
			if r := f.sync(); r.Unchanged != 1 {
				t.Fatalf("%+v", r)
			}
			if got := f.reread(d.Skill.ID).Skill; !got.Enabled || got.StoredDigest != got.Version.Digest() {
				t.Fatalf("%+v", got)
			}
			f.approved(f.reread(d.Skill.ID))
			f.instructs(d.Skill.ID, true)
		})
		for name, more := range map[string]string{
			"a wider list of tools": "allowed-tools: list_pages get_page update_element\n",
			"no list of tools":      "",
			"a process marker":      tools + "process: true\n",
		} {
			t.Run("D8 "+name+" alone is a change and disables an imported skill", func(t *testing.T) {
				f := setUp(t)
				d := f.legacy(nil)
				f.fetcher.set(t, file("one", more, "One.\n"))
				if r := f.sync(); r.Loaded != 1 || f.reread(d.Skill.ID).Skill.Enabled {
					t.Fatalf("%+v", r)
				}
				f.once(audit.IngestDisabledOnChange)
			})
		}
	})
}

func TestAdoptLegacy(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		adopt := func(f *fixture) library.Adopted {
			f.t.Helper()
			all, err := f.AdoptLegacy(f.ctx, f.admin)
			f.ok(err)
			if len(all) != 1 {
				f.t.Fatalf("%+v", all)
			}
			return all[0]
		}
		t.Run("D9 a row that follows from what was synced gets its digest, stays enabled and is not approved", func(t *testing.T) {
			f := setUp(t)
			d := f.legacy(nil)
			a := adopt(f)
			got := f.reread(d.Skill.ID).Skill
			if a.Digest != got.Version.Digest() || got.StoredDigest != a.Digest || !got.Enabled {
				t.Fatalf("%+v, row %+v", a, got)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.says(f.once(audit.IngestUpdated), "adopted", true)
			f.approved(f.reread(d.Skill.ID))
			size := len(f.trail())
			if again, err := f.AdoptLegacy(f.ctx, f.admin); err != nil || len(again) != 0 || len(f.trail()) != size {
				t.Fatalf("%+v %v", again, err)
			}
			f.instructs(d.Skill.ID, true)
		})
		for failure, set := range map[string]map[string]any{
			"body_checksum": {"body": "Edited.\n"},
			"name":          {"name": "Edited"},
			"description":   {"description": "Edited."},
			"allowed_tools": {"allowed_tools": nil},
			"frontmatter":   {"frontmatter": "name: one\n---\ndescription: x\n"},
		} {
			t.Run("D9 a row whose "+failure+" fails is disabled, audited once and left without a digest", func(t *testing.T) {
				f := setUp(t)
				d := f.legacy(set)
				if a := adopt(f); !slices.Equal(a.Failures, []string{failure}) || !a.Disabled || a.Digest != "" {
					t.Fatalf("%+v", a)
				}
				if got := f.reread(d.Skill.ID).Skill; got.Enabled || got.StoredDigest != "" {
					t.Fatalf("%+v", got)
				}
				if a := adopt(f); a.Disabled || len(a.Failures) != 1 {
					t.Fatalf("%+v", a)
				}
				e := f.once(audit.AdoptionFailed)
				f.says(e, "failed", []string{failure})
				f.says(e, "wasEnabled", true)
				f.enabled(d.Skill.ID)
				if a := adopt(f); !a.Disabled || len(f.audited(audit.AdoptionFailed)) != 2 {
					t.Fatalf("switched on again: %+v", a)
				}
			})
		}
		t.Run("D9 a row that failed is what a sync writes anew", func(t *testing.T) {
			f := setUp(t)
			d := f.legacy(map[string]any{"name": "Edited"})
			adopt(f)
			f.fetcher.set(t, file("one", "", "One.\n"))
			f.sync()
			if got := f.reread(d.Skill.ID).Skill; got.Enabled || got.StoredDigest != got.Version.Digest() {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("D9 a sync that comes first leaves nothing to adopt", func(t *testing.T) {
			f := setUp(t)
			f.legacy(nil)
			f.fetcher.set(t, file("one", "", "One.\n"))
			f.between.before(func() { f.sync() })
			if all, err := f.AdoptLegacy(f.ctx, f.admin); err != nil || len(all) != 0 {
				t.Fatalf("%+v %v", all, err)
			}
		})
		t.Run("D9 only an administrator adopts, and what is written here is no legacy row", func(t *testing.T) {
			f := setUp(t)
			f.written("One.\n")
			_, err := f.AdoptLegacy(f.ctx, f.author)
			f.failed(err, fault.Forbidden)
			if all, err := f.AdoptLegacy(f.ctx, f.admin); err != nil || len(all) != 0 {
				t.Fatalf("%+v %v", all, err)
			}
		})
	})
}
