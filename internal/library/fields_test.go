package library_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// role is somebody who tries to write, and what they may write.
type role struct {
	name    string
	by      actor.Actor
	may     []library.Writer
	refused fault.Kind
}

func (f *fixture) roles() []role {
	service := actor.Actor{ID: f.World.NewID(), Name: "bot", Kind: actor.ServiceAccount}
	authoring := service
	authoring.ID, authoring.Granted = f.World.NewID(), []actor.Permission{actor.SkillRead, actor.SkillAuthor}
	person := actor.Actor{ID: f.World.NewID(), Name: "person", Kind: actor.Person, Granted: actor.Default}
	return []role{
		{"nobody", actor.Actor{}, nil, fault.Unauthenticated},
		{"a person", person, nil, fault.Forbidden},
		{"an approver", f.approver, nil, fault.Forbidden},
		{"a service account", service, nil, fault.Forbidden},
		{"an author", f.author, []library.Writer{library.ByAuthor}, fault.Forbidden},
		{"a service account that authors", authoring, []library.Writer{library.ByAuthor}, fault.Forbidden},
		{"an administrator", f.admin, []library.Writer{library.ByAuthor, library.ByAdministrator}, fault.Forbidden},
	}
}

// writing is one mutation that carries one field.
type writing struct {
	mutation string
	object   library.Object
	field    string
	creates  bool
	try      func(by actor.Actor) error
}

// inputField is the field of the table that a field of an input means; empty for one
// that only says which record or which edit.
func inputField(of reflect.StructField) string {
	switch of.Name {
	case "ID", "SkillID", "Revision", "Number":
		return ""
	case "SourceID":
		return "source"
	case "URL":
		return "url"
	}
	return strings.ToLower(of.Name[:1]) + of.Name[1:]
}

// samples is a value for each field that an input may carry.
var samples = map[string]any{
	"name": "Named", "description": "Described.", "body": "Other.\n", "process": true, "identifier": "an-identifier", "allowedTools": []string{"get_page"},
	"title": "Titled", "type": library.Repo, "url": "https://github.com/acme/elsewhere", "ref": "v1", "pinnedCommit": strings.Repeat("a", 40),
	"trustLevel": skill.Community, "expectedFingerprint": strings.Repeat("b", 64), "token": "hush", "enabled": false,
}

// carrying makes one writing for each field of an input, set alone in a copy of base.
func carrying[In any](t testing.TB, mutation string, object library.Object, creates bool, base In, apply func(actor.Actor, In) error) []writing {
	t.Helper()
	var all []writing
	of := reflect.TypeOf(base)
	for i := range of.NumField() {
		name := inputField(of.Field(i))
		if name == "" {
			continue
		}
		in := base
		field := reflect.ValueOf(&in).Elem().Field(i)
		if name != "source" { // which a base always says
			sample, known := samples[name]
			if !known {
				t.Errorf("W4 %s carries %s, which the test has no value for", mutation, name)
				continue
			}
			value := reflect.ValueOf(sample)
			if field.Kind() == reflect.Pointer {
				pointer := reflect.New(field.Type().Elem())
				pointer.Elem().Set(value)
				value = pointer
			}
			field.Set(value)
		}
		all = append(all, writing{mutation, object, name, creates, func(by actor.Actor) error { return apply(by, in) }})
	}
	return all
}

// writings are every mutation of a skill or a source with every field it can carry.
// Each works on records of its own, as they are when it is tried.
func (f *fixture) writings() []writing {
	home := f.newSource(library.Authored, "", skill.Verified)
	fresh := func() library.Dossier {
		d, err := f.CreateSkill(f.ctx, f.admin, library.NewSkill{SourceID: home.ID, Identifier: f.World.NewID().String(), Name: "n", Description: "d", Body: "b"})
		f.ok(err)
		return d
	}
	repo := func() library.Source {
		return f.newSource(library.Repo, "https://github.com/acme/skills", skill.Untrusted)
	}
	all := carrying(f.t, "createSkill", "skill", true, library.NewSkill{SourceID: home.ID, Name: "n", Description: "d", Body: "b"},
		func(by actor.Actor, in library.NewSkill) error {
			in.Identifier += f.World.NewID().String()
			_, err := f.CreateSkill(f.ctx, by, in)
			return err
		})
	all = append(all, carrying(f.t, "updateSkill", "skill", false, library.SkillUpdate{}, func(by actor.Actor, in library.SkillUpdate) error {
		d := fresh()
		in.SkillID, in.Revision = d.Skill.ID, d.Skill.Revision
		_, err := f.UpdateSkill(f.ctx, by, in)
		return err
	})...)
	all = append(all, carrying(f.t, "createSource", "source", true, library.NewSource{Title: "t", Type: library.Repo, URL: "https://github.com/acme/skills"},
		func(by actor.Actor, in library.NewSource) error {
			_, err := f.CreateSource(f.ctx, by, in)
			return err
		})...)
	all = append(all, carrying(f.t, "updateSource", "source", false, library.SourceUpdate{}, func(by actor.Actor, in library.SourceUpdate) error {
		in.ID = repo().ID
		_, err := f.UpdateSource(f.ctx, by, in)
		return err
	})...)
	return append(all,
		writing{"restoreSkillRevision", "skill", "body", false, func(by actor.Actor) error {
			d := f.edited(fresh(), "Two.\n")
			_, err := f.RestoreRevision(f.ctx, by, library.RestoreInput{SkillID: d.Skill.ID, Revision: 2, Number: 1})
			return err
		}},
		writing{"setSkillEnabled", "skill", "enabled", false, func(by actor.Actor) error {
			_, err := f.SetSkillEnabled(f.ctx, by, fresh().Skill.ID, true)
			return err
		}},
		writing{"moveSkill", "skill", "source", false, func(by actor.Actor) error {
			d, to := fresh(), f.newSource(library.Authored, "", skill.FirstParty)
			_, err := f.MoveSkill(f.ctx, by, d.Skill.ID, to.ID)
			return err
		}},
		writing{"setSourceTrustLevel", "source", "trustLevel", false, func(by actor.Actor) error {
			_, err := f.SetSourceTrustLevel(f.ctx, by, repo().ID, skill.FirstParty)
			return err
		}},
		writing{"setSourceToken", "source", "token", false, func(by actor.Actor) error {
			_, err := f.SetSourceToken(f.ctx, by, repo().ID, "hush")
			return err
		}},
	)
}

func TestFieldTable(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		f := setUp(t)
		roles, writings := f.roles(), f.writings()
		for _, field := range library.Fields() {
			carriers := func(creates bool) (names []string) {
				for _, w := range writings {
					if w.object == field.Object && w.field == field.Name && w.creates == creates {
						names = append(names, w.mutation)
					}
				}
				return names
			}
			t.Run("W4 "+string(field.Object)+"."+field.Name+" is carried by mutations exactly if somebody may write it", func(t *testing.T) {
				for creates, writer := range map[bool]library.Writer{true: field.Create, false: field.Change} {
					if by := carriers(creates); (len(by) > 0) != (writer != library.ByNobody) {
						t.Errorf("creating=%v: %s may write it, and %q carry it", creates, writer, by)
					}
				}
			})
		}
		for _, w := range writings {
			at := slices.IndexFunc(library.Fields(), func(of library.Field) bool { return of.Object == w.object && of.Name == w.field })
			if at < 0 {
				t.Errorf("W4 %s carries %s.%s, which is not in the table", w.mutation, w.object, w.field)
				continue
			}
			writer := library.Fields()[at].Change
			if w.creates {
				writer = library.Fields()[at].Create
			}
			t.Run("W4 "+string(w.object)+"."+w.field+" through "+w.mutation, func(t *testing.T) {
				for _, r := range roles {
					before := len(f.between.applied)
					err := w.try(r.by)
					may := slices.Contains(r.may, writer)
					switch {
					case may && err != nil:
						t.Errorf("%s may, and got %v", r.name, err)
					case !may && !fault.Is(err, r.refused):
						t.Errorf("%s may not, and got %v", r.name, err)
					}
					for _, c := range f.between.applied[before:] { // what the attempt needs is written by somebody who may
						if !may && c.Audit[0].Actor == r.by.ID {
							t.Errorf("%s was refused and changed something", r.name)
						}
					}
				}
			})
		}
	})
}

// rights says what every use case of the room needs of whoever asks for it. A use
// case that is not here fails the test below.
var rights = map[string]actor.Permission{
	"Approve": actor.SkillApprove, "Revoke": actor.SkillApprove,
	"CreateSkill": actor.SkillAuthor, "UpdateSkill": actor.SkillAuthor, "RestoreRevision": actor.SkillAuthor,
	"FindSource": actor.SkillRead, "FindSkill": actor.SkillRead, "FindAttachment": actor.SkillRead, "FindApproval": actor.SkillRead,
	"FindRevocation": actor.SkillRead, "ListSources": actor.SkillRead, "ListSkills": actor.SkillRead, "Review": actor.SkillRead, "Revisions": actor.SkillRead,
	"CreateSnippet": actor.SnippetEdit, "UpdateSnippet": actor.SnippetEdit,
	"AdoptLegacy": administrator, "Import": administrator, "Attach": administrator, "Detach": administrator, "UpdateAttachment": administrator,
	"CreateConfiguration": administrator, "UpdateConfiguration": administrator, "CreateSource": administrator, "DeleteSource": administrator,
	"SetSkillEnabled": administrator, "FindProvider": administrator, "ListProviders": administrator, "MoveSkill": administrator,
	"CreateProvider": administrator, "UpdateProvider": administrator, "MarkSnippet": administrator, "UnmarkSnippet": administrator, "Sync": administrator,
	"BeginSync": administrator, "CancelSync": administrator, "CreateTask": administrator, "SetToolEnabled": administrator, "SetToolGroupEnabled": administrator,
	"UpdateSource": administrator, "SetSourceTrustLevel": administrator, "SetSourceToken": administrator,
	"FindSnippet": signedIn, "ListSnippets": signedIn, "Catalogue": signedIn, "FindConfiguration": signedIn, "ListConfigurations": signedIn,
	"FindTask": signedIn, "ListTasks": signedIn,
}

const (
	administrator actor.Permission = "an administrator"
	signedIn      actor.Permission = "somebody who is signed in"
)

func TestRightsOfUseCases(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		f := setUp(t)
		everything := actor.Actor{ID: f.World.NewID(), Kind: actor.Person, Granted: actor.Permissions}
		of := reflect.ValueOf(f.Library)
		seen := 0
		for i := range of.NumMethod() {
			name, method := of.Type().Method(i).Name, of.Method(i)
			if method.Type().NumIn() < 2 || method.Type().In(1) != reflect.TypeFor[actor.Actor]() {
				continue
			}
			seen++
			right, known := rights[name]
			if !known {
				t.Errorf("W4 nobody said who may call %s", name)
				continue
			}
			call := func(by actor.Actor) error {
				args := []reflect.Value{reflect.ValueOf(f.ctx), reflect.ValueOf(by)}
				for n := 2; n < method.Type().NumIn(); n++ {
					args = append(args, reflect.Zero(method.Type().In(n)))
				}
				out := method.Call(args)
				err, _ := out[len(out)-1].Interface().(error)
				return err
			}
			t.Run("W4 A8 "+name+" needs "+string(right), func(t *testing.T) {
				before := len(f.trail())
				if err := call(actor.Actor{}); !fault.Is(err, fault.Unauthenticated) {
					t.Errorf("nobody got %v", err)
				}
				without := everything
				switch right {
				case signedIn:
					return
				case administrator:
				default:
					without.Granted = slices.DeleteFunc(slices.Clone(actor.Permissions), func(p actor.Permission) bool { return p == right })
				}
				if err := call(without); !fault.Is(err, fault.Forbidden) {
					t.Errorf("somebody without it got %v", err)
				}
				if len(f.trail()) != before {
					t.Error("what was refused left something behind")
				}
			})
		}
		if seen != len(rights) {
			t.Errorf("%d use cases, and %d have a right", seen, len(rights))
		}
	})
}
