package library

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

const (
	// importBatch is how many lines one transaction stores.
	importBatch = 100
	// maxImportLine bounds a line: the largest body, every byte of it escaped, and the rest.
	maxImportLine = 6*maxBody + 1<<20
)

// LineStatus is what became of one line of an import.
type LineStatus string

// The statuses.
const (
	LineImported LineStatus = "imported"
	LinePresent  LineStatus = "present" // imported before: nothing changed
	LineSkipped  LineStatus = "skipped"
)

// ImportLine is one line of an import that somebody should look at.
type ImportLine struct {
	Line   int // from 1
	Kind   string
	ID     string // in the export
	Status LineStatus
	Reason string
}

// ImportReport says what an import did: Lines = Imported + Present + Skipped, and
// every line that was skipped, or imported with something to know, is a note.
type ImportReport struct {
	Lines, Imported, Present, Skipped int
	Sources, Skills, Attachments      int // imported
	Notes                             []ImportLine
}

// Import reads an export of an older installation (docs/importing.md) into rows
// without a digest: they can be fenced and never instruct, whatever the export says
// (RULES D7), and an attachment is loaded always (RULES L1). A line that cannot be
// imported is skipped with its reason and stops no other. Rows get ids that follow
// from the export, so that an import that broke off is repeated as a whole and goes
// on where it was. Administrators only; every row is audited.
func (l *Library) Import(ctx context.Context, by actor.Actor, from io.Reader) (ImportReport, error) {
	if err := needAdministrator(by); err != nil {
		return ImportReport{}, err
	}
	in := &importing{library: l, by: by, sources: map[uuid.UUID]Source{}, skills: map[uuid.UUID]Skill{}}
	lines := bufio.NewReaderSize(from, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return in.report, in.flush(ctx)
		case errors.Is(err, errLineTooLong):
			in.note(ImportLine{Line: n, Status: LineSkipped, Reason: fmt.Sprintf("the line has more than %d bytes", maxImportLine)})
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return in.report, errors.Join(fmt.Errorf("read line %d of the export: %w", n, err), in.flush(ctx))
		case len(line) == 0:
			continue
		}
		if err := in.take(ctx, n, line); err != nil {
			return in.report, err
		}
	}
}

var errLineTooLong = errors.New("the line is too long")

// readLine reads up to the next LF, which it leaves out, and no more of a line than
// is accepted.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxImportLine; !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong:
			return nil, errLineTooLong
		case len(line) > 0 && line[len(line)-1] == '\n':
			line = line[:len(line)-1]
		}
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		return line, err
	}
}

// importing is one import under way.
type importing struct {
	library      *Library
	by           actor.Actor
	installation string // as the header names it
	report       ImportReport

	sources map[uuid.UUID]Source // that lines named, stored or about to be
	skills  map[uuid.UUID]Skill
	batch   []pending

	configurations, tasks map[string][]uuid.UUID // by name
}

// pending is a line whose change waits for its batch.
type pending struct {
	line   ImportLine
	change change.Change
	lost   string // why it is skipped if the change loses
}

// skipped is why a line is not imported.
type skipped struct{ reason string }

func (s skipped) Error() string { return s.reason }

func skip(format string, args ...any) error { return skipped{fmt.Sprintf(format, args...)} }

// errPresent says that a line's row is there from an earlier import.
var errPresent = errors.New("present")

// take reads one line and puts its change into the batch.
func (in *importing) take(ctx context.Context, n int, text []byte) error {
	kind, err := kindOf(text)
	if err != nil {
		in.note(ImportLine{Line: n, Status: LineSkipped, Reason: err.Error()})
		return nil
	}
	if in.installation == "" {
		return in.open(kind, text)
	}
	p := pending{line: ImportLine{Line: n, Kind: kind, Status: LineImported}}
	readers := map[string]func(context.Context, []byte, *pending) error{
		sourceLine: in.source, skillLine: in.skill, attachmentLine: in.attachment,
	}
	read, known := readers[kind]
	if !known {
		p.line.Kind, err = clip(kind, 40), skip("a line is a %s, a %s or an %s", sourceLine, skillLine, attachmentLine)
	} else {
		err = read(ctx, text, &p)
	}
	var why skipped
	switch {
	case errors.As(err, &why):
		p.line.Status, p.line.Reason = LineSkipped, why.reason
		in.note(p.line)
		return nil
	case errors.Is(err, errPresent):
		p.line.Status = LinePresent
		in.note(p.line)
		return nil
	case err != nil:
		return err
	}
	if changesNothing(p.change) { // stored already
		in.note(p.line)
		return nil
	}
	if in.batch = append(in.batch, p); len(in.batch) < importBatch {
		return nil
	}
	return in.flush(ctx)
}

// open reads the header, without which no id can be made.
func (in *importing) open(kind string, text []byte) error {
	var header exportedHeader
	if kind != exportLine {
		return fault.New(fault.BadInput, `The first line must be the header of an export: {"kind":"export","format":1,"installation":"…"}.`)
	}
	if err := decodeLine(text, &header); err != nil {
		return fault.Wrap(fault.BadInput, err, "The header of the export cannot be read: %s.", err)
	}
	if header.Format != exportFormat {
		return fault.New(fault.BadInput, "The export has format %d; format %d is read.", header.Format, exportFormat)
	}
	name, err := label("installation", header.Installation)
	in.installation = name
	return err
}

// flush stores what is in the batch, each line by itself, in one transaction.
func (in *importing) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	changes := make([]change.Change, len(in.batch))
	for i, p := range in.batch {
		changes[i] = p.change
	}
	outcomes, err := in.library.Store.Apply(ctx, changes...)
	if err != nil {
		return err
	}
	for i, p := range in.batch {
		if !outcomes[i].Applied {
			p.line.Status, p.line.Reason = LineSkipped, p.lost
		}
		in.note(p.line)
	}
	in.batch = nil
	return nil
}

// note counts a line, and keeps it if there is something to know.
func (in *importing) note(line ImportLine) {
	r := &in.report
	r.Lines++
	switch line.Status {
	case LineImported:
		r.Imported++
		*map[string]*int{sourceLine: &r.Sources, skillLine: &r.Skills, attachmentLine: &r.Attachments}[line.Kind]++
	case LinePresent:
		r.Present++
	case LineSkipped:
		r.Skipped++
	}
	if line.Reason != "" {
		r.Notes = append(r.Notes, line)
	}
}

// row is the id of a row that an exported id stands for.
func (in *importing) row(kind string, id exportID) uuid.UUID {
	return uuid.NewSHA1(keyedRows, []byte("import "+in.installation+"\x00"+kind+"\x00"+string(id)))
}

// found reads a row that an earlier line or an earlier import brought; false when
// there is none.
func found[T any](ctx context.Context, here map[uuid.UUID]T, id uuid.UUID, read func(context.Context, uuid.UUID) (T, error)) (T, bool, error) {
	if v, known := here[id]; known {
		return v, true, nil
	}
	v, err := read(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return v, false, nil
	}
	if err == nil {
		here[id] = v
	}
	return v, err == nil, err
}

func (in *importing) source(ctx context.Context, text []byte, p *pending) error {
	var e exportedSource
	if err := decodeLine(text, &e); err != nil {
		return skip("%s", err)
	}
	p.line.ID = string(e.ID)
	id := in.row(sourceLine, e.ID)
	if _, there, err := found(ctx, in.sources, id, in.library.Store.Source); there || err != nil {
		return orPresent(err)
	}
	s := Source{
		ID: id, Type: e.Type, URL: e.URL, Ref: e.Ref, PinnedCommit: e.PinnedCommit, TrustLevel: e.TrustLevel,
		ExpectedFingerprint: e.ExpectedFingerprint, Enabled: e.Enabled == nil || *e.Enabled, SyncStatus: NeverSynced,
		CreatedAt: in.library.World.Now(),
	}
	if s.TrustLevel == "" {
		s.TrustLevel = skill.Untrusted
	}
	title, err := label("title", e.Title)
	if err != nil {
		return skip("%s", messageOf(err))
	}
	s.Title = title
	if e.ID == "" || s.Type == Authored {
		return skip("a source has an id and a type that is synced: single_file, repo or marketplace")
	}
	if err := in.library.checkSource(s); err != nil {
		return skip("%s", messageOf(err))
	}
	in.sources[id] = s
	p.change = change.Change{
		Inserts: []change.Insert{insertSource(s)},
		Audit: []audit.Entry{in.record(audit.SourceCreated).About(id, uuid.Nil, "").
			With("type", string(s.Type)).With("url", s.URL).With("level", string(s.TrustLevel))},
	}
	p.lost = "another import brought it meanwhile"
	return nil
}

func orPresent(err error) error {
	if err != nil {
		return err
	}
	return errPresent
}

// messageOf is what a person may read of an input error.
func messageOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

func (in *importing) skill(ctx context.Context, text []byte, p *pending) error {
	var e exportedSkill
	if err := decodeLine(text, &e); err != nil {
		return skip("%s", err)
	}
	p.line.ID = string(e.ID)
	id := in.row(skillLine, e.ID)
	if _, there, err := found(ctx, in.skills, id, in.library.Store.Skill); there || err != nil {
		return orPresent(err)
	}
	source, there, err := found(ctx, in.sources, in.row(sourceLine, e.Source), in.library.Store.Source)
	switch {
	case err != nil:
		return err
	case !there:
		return skip("no line before it brought its source %q", clip(string(e.Source), 60))
	case source.Type == Authored:
		return skip("its source is written here by now")
	case e.ID == "" || e.Identifier == "" || len(e.Identifier) > maxURL:
		return skip("a skill has an id, and an identifier of at most %d bytes", maxURL)
	}
	frontmatter, err := e.frontmatter()
	if err != nil {
		return skip("%s", err)
	}
	v, err := e.version(frontmatter)
	if err != nil {
		return skip("%s", err)
	}
	if e.BodyChecksum != skill.BodyChecksum(v.Body) {
		p.line.Reason = "the body is not the one its checksum names: it is left out of every prompt until a sync brings it"
	}
	s := Skill{ID: id, SourceID: source.ID, Identifier: e.Identifier, Version: v, Enabled: e.Enabled && !e.Orphaned, Orphaned: e.Orphaned}
	in.skills[id] = s
	p.change = in.legacyRow(s, source, frontmatter, e.BodyChecksum)
	p.lost = "its source is gone, or has a skill with this identifier"
	return nil
}

// legacyRow is the insert of a skill without a digest.
func (in *importing) legacyRow(s Skill, source Source, frontmatter, checksum string) change.Change {
	now := in.library.World.Now()
	row := []change.Value{
		skillID.To(s.ID), skillSourceID.To(s.SourceID), skillIdentifier.To(s.Identifier), skillEnabled.To(s.Enabled),
		skillOrphaned.To(s.Orphaned), skillTrust.To(source.TrustLevel), skillCounter.To(0), skillRevision.To(0), skillDigest.To(""),
		skillRawDigest.To(""), skillBundleDigest.To(""), skillBundle.To(nil), skillParseStatus.To(skill.ParseOK),
		skillCreatedAt.To(now), skillUpdatedAt.To(now),
	}
	row = append(row, versionColumns(s.Version)...)
	row = append(row, skillFrontmatter.To(frontmatter))
	for i := range row {
		if row[i].Column == skillBodyChecksum.Name() {
			row[i] = skillBodyChecksum.To(checksum) // what the older installation synced, not what is there now
		}
	}
	entry := in.record(audit.IngestCreated).About(s.SourceID, s.ID, "").With("identifier", s.Identifier).With("enabled", s.Enabled)
	return change.Change{Inserts: []change.Insert{{Table: skillsTable, Row: row}}, Audit: []audit.Entry{entry}}
}

func (in *importing) attachment(ctx context.Context, text []byte, p *pending) error {
	var e exportedAttachment
	if err := decodeLine(text, &e); err != nil {
		return skip("%s", err)
	}
	p.line.ID = string(e.Skill)
	s, there, err := found(ctx, in.skills, in.row(skillLine, e.Skill), in.library.Store.Skill)
	switch {
	case err != nil:
		return err
	case !there:
		return skip("no line before it brought its skill %q", clip(string(e.Skill), 60))
	}
	a := Attachment{SkillID: s.ID, LoadMode: Always, CreatedAt: in.library.World.Now()}
	if a.ConfigurationID, a.TaskID, err = in.place(ctx, e); err != nil {
		return err
	}
	if err := modeAllowed(s, a.TaskID, Always); err != nil {
		return skip("an imported attachment is loaded always, and the skill is a process or may be one: attach it on demand")
	}
	a.ID = in.row(attachmentLine, e.Skill+"\x00"+exportID(a.ConfigurationID.String()+a.TaskID.String()))
	if _, err := in.library.Store.Attachment(ctx, a.ID); err == nil || !fault.Is(err, fault.NotFound) {
		return orPresent(err)
	}
	return in.attach(ctx, a)
}

// attach stores an attachment at once: its place depends on those before it, and its
// skill may still wait in the batch.
func (in *importing) attach(ctx context.Context, a Attachment) error {
	if err := in.flush(ctx); err != nil {
		return err
	}
	return in.library.retried(ctx, "the attachments", func() (change.Change, error) {
		c, _, err := in.library.placedLast(ctx, in.by, &a)
		if _, refused := fault.AsRefusal(err); refused {
			return change.Change{}, skip("the skill is attached there already, or changed meanwhile")
		}
		if err != nil {
			return change.Change{}, err
		}
		c.Audit[0] = c.Audit[0].With("imported", in.installation)
		return c, nil
	})
}

// place finds the configuration or the task that a line names.
func (in *importing) place(ctx context.Context, e exportedAttachment) (configuration, task uuid.UUID, err error) {
	if in.configurations == nil {
		store := in.library.Store
		if in.configurations, err = named(ctx, store.Configurations, func(c Configuration) (string, uuid.UUID) { return c.Name, c.ID }); err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		if in.tasks, err = named(ctx, store.Tasks, func(t Task) (string, uuid.UUID) { return t.Name, t.ID }); err != nil {
			return uuid.Nil, uuid.Nil, err
		}
	}
	switch {
	case (e.Configuration == "") == (e.Task == ""):
		return uuid.Nil, uuid.Nil, skip("an attachment names either a configuration or a task")
	case e.Task != "":
		task, err = only("task", e.Task, in.tasks)
	default:
		configuration, err = only("configuration", e.Configuration, in.configurations)
	}
	return configuration, task, err
}

// named lists the ids of all rows by their names, which need not be unique.
func named[T any](ctx context.Context, list func(context.Context, Page) ([]T, error), of func(T) (string, uuid.UUID)) (map[string][]uuid.UUID, error) {
	const page = 100
	ids := map[string][]uuid.UUID{}
	for p := (Page{Limit: page}); ; {
		rows, err := list(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			name, id := of(row)
			ids[name], p.Cursor = append(ids[name], id), id
		}
		if len(rows) < page {
			return ids, nil
		}
	}
}

// only is the one id with a name.
func only(what, name string, ids map[string][]uuid.UUID) (uuid.UUID, error) {
	switch found := ids[name]; len(found) {
	case 1:
		return found[0], nil
	case 0:
		return uuid.Nil, skip("there is no %s %q here; create it first", what, clip(name, 60))
	default:
		return uuid.Nil, skip("there are %d of the name %q here", len(found), clip(name, 60))
	}
}

func (in *importing) record(event audit.Event) audit.Entry {
	return audit.Record(in.library.World, in.by, event).With("imported", in.installation)
}
