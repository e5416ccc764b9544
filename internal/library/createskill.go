package library

import (
	"context"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// NewSkill is the input of CreateSkill. AllowedTools needs an administrator
// (RULES W4); nil is no declaration.
type NewSkill struct {
	SourceID     uuid.UUID // an authored source
	Identifier   string    // unique in its source; empty derives one from the name
	Name         string
	Description  string
	Body         string
	Process      bool
	AllowedTools *[]string
}

// CreateSkill writes a new skill: disabled, at revision 1, and no instruction before
// somebody approves it. The body is text and never parsed for frontmatter. It needs
// skill:author; audited (RULES W2, W4).
//
// Refusals: IN_USE when the identifier is taken.
func (l *Library) CreateSkill(ctx context.Context, by actor.Actor, in NewSkill) (Dossier, error) {
	names := append([]string{"source", "identifier", "name", "description", "body", "process"},
		given(namedField{"allowedTools", in.AllowedTools != nil})...)
	if err := mayCreate(by, skillObject, names...); err != nil {
		return Dossier{}, err
	}
	v := skill.Version{Tools: skill.NoTools(), Process: processOf(in.Process)}
	if in.AllowedTools != nil {
		if err := setTools(&v, *in.AllowedTools); err != nil {
			return Dossier{}, err
		}
	}
	if err := setText(&v, in.Name, in.Description, in.Body); err != nil {
		return Dossier{}, err
	}
	source, err := l.Store.Source(ctx, in.SourceID)
	if err != nil {
		return Dossier{}, err
	}
	if source.Type != Authored {
		return Dossier{}, fault.New(fault.BadInput, "sourceId must name an authored source; %q gets its skills by sync.", source.Title)
	}
	id := l.World.NewID()
	identifier, err := identifierFor(in.Identifier, v.Name, id)
	if err != nil {
		return Dossier{}, err
	}
	out, err := change.One(ctx, l.Store, l.creation(by, source, id, identifier, v))
	if err != nil {
		return Dossier{}, err
	}
	if !out.Applied {
		return Dossier{}, fault.Refuse(fault.InUse, "The source %q already has a skill with the identifier %q.", source.Title, identifier)
	}
	return l.dossier(ctx, id)
}

// creation is the change that adds an authored skill with its first revision.
func (l *Library) creation(by actor.Actor, source Source, id uuid.UUID, identifier string, v skill.Version) change.Change {
	now := l.World.Now()
	row := []change.Value{
		skillID.To(id), skillSourceID.To(source.ID), skillIdentifier.To(identifier), skillDigest.To(""), skillRawDigest.To(""),
		skillBundleDigest.To(""), skillBundle.To(nil), skillFrontmatter.To(""), skillParseStatus.To(skill.ParseOK),
		skillEnabled.To(false), skillOrphaned.To(false), skillTrust.To(source.TrustLevel), skillCounter.To(0), skillRevision.To(1),
		skillCreatedAt.To(now), skillUpdatedAt.To(now),
	}
	return change.Change{
		Updates: []change.Update{holds(sourcesTable, source.ID, sourceType.Is(Authored))},
		Inserts: []change.Insert{
			{Table: skillsTable, Row: append(row, versionColumns(v)...)},
			l.insertRevision(by, id, 1, v),
		},
		Audit: []audit.Entry{audit.Record(l.World, by, audit.IngestCreated).About(source.ID, id, string(v.Digest())).
			With("identifier", identifier).With("revision", 1)},
	}
}

// versionColumns are the columns of an authored skill's text.
func versionColumns(v skill.Version) []change.Value {
	return []change.Value{
		skillName.To(v.Name), skillDescription.To(v.Description), skillBody.To(v.Body), skillSupport.To(v.Support),
		skillTools.To(v.Tools), skillProcess.To(v.Process), skillBodyChecksum.To(skill.BodyChecksum(v.Body)),
		skillFindings.To(skill.ScanText(v, 1)),
	}
}

func (l *Library) insertRevision(by actor.Actor, skillID uuid.UUID, number int, v skill.Version) change.Insert {
	return change.Insert{Table: revisionsTable, Row: []change.Value{
		revisionID.To(l.World.NewID()), revisionSkillID.To(skillID), revisionNumber.To(number), revisionName.To(v.Name),
		revisionDescr.To(v.Description), revisionBody.To(v.Body), revisionTools.To(v.Tools), revisionProcess.To(v.Process),
		revisionAuthorID.To(by.ID), revisionAt.To(l.World.Now()),
	}}
}

// setText puts checked text into a version and derives what follows from it.
func setText(v *skill.Version, name, description, body string) (err error) {
	if v.Name, err = label("name", name); err != nil {
		return err
	}
	if description, err = prose("description", description, maxDescription); err != nil {
		return err
	}
	if v.Description = strings.TrimSpace(description); v.Description == "" {
		return fault.New(fault.BadInput, "description must not be empty.")
	}
	if v.Body, err = prose("body", body, maxBody); err != nil {
		return err
	}
	v.Support = skill.SupportOf(v.Body)
	return nil
}

// setTools declares tools.
func setTools(v *skill.Version, tools []string) error {
	for _, t := range tools {
		if t == "" || len(t) > maxName || strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			return fault.New(fault.BadInput, "allowedTools must be names of tools, each 1 to %d bytes without white space.", maxName)
		}
	}
	v.Tools = skill.DeclareTools(tools...)
	return nil
}

func processOf(yes bool) skill.Process {
	if yes {
		return skill.ProcessYes
	}
	return skill.ProcessNo
}

// identifierFor is the identifier given, or one made from the name; a name that
// leaves nothing takes the id's.
func identifierFor(given, name string, id uuid.UUID) (string, error) {
	if given != "" {
		return label("identifier", given)
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return id.String(), nil
	}
	return strings.Join(words, "-"), nil
}
