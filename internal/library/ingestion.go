package library

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/world"
)

// Report says what a sync did (SKILL-FILES, Discovery): every path that was
// considered is an item, and Found = Loaded + Repaired + Rejected + Skipped + Unchanged.
type Report struct {
	Found, Loaded, Repaired, Rejected, Skipped, Unchanged, Orphaned int

	Items     []ReportItem // by path; orphaned skills by their identifier
	Unreached []string     // scopes that were not read to the end and keep their skills
	Findings  []string     // about the source itself
	Commit    string
}

// ReportItem is what became of one path. Loaded means created or updated; a
// repaired file that did not change is unchanged.
type ReportItem struct {
	Path    string
	Status  ItemStatus
	Code    string
	Reason  string
	Line    int       // 1-based, 0 unknown
	Offset  int       // 0-based, -1 unknown
	SkillID uuid.UUID // of the skill it belongs to, if any
}

func (r *Report) add(item ReportItem) {
	r.Items = append(r.Items, item)
	counts := map[ItemStatus]*int{
		ItemLoaded: &r.Loaded, ItemRepaired: &r.Repaired, ItemRejected: &r.Rejected, ItemSkipped: &r.Skipped,
		ItemUnchanged: &r.Unchanged, ItemOrphaned: &r.Orphaned,
	}
	*counts[item.Status]++
	if item.Status != ItemOrphaned {
		r.Found++
	}
}

func (r Report) entry(e audit.Entry) audit.Entry {
	return e.With("found", r.Found).With("loaded", r.Loaded).With("repaired", r.Repaired).With("rejected", r.Rejected).
		With("skipped", r.Skipped).With("unchanged", r.Unchanged).With("orphaned", r.Orphaned)
}

// lacks says what the sync did not take in; empty when it took everything.
func (r Report) lacks() string {
	var lacks []string
	if r.Rejected > 0 {
		lacks = append(lacks, fmt.Sprintf("%d files were rejected", r.Rejected))
	}
	if len(r.Unreached) > 0 {
		lacks = append(lacks, clip("not read to the end: "+strings.Join(r.Unreached, ", "), 1000))
	}
	return strings.Join(lacks, "; ")
}

// ingestion turns one complete read of a source into one change. It decides
// nothing by itself but what the rules say, so that it can be made again when the
// change is lost.
type ingestion struct {
	world   world.World
	by      actor.Actor
	source  Source
	fetched Fetched
	ids     []uuid.UUID // for skills that are new, ascending
}

// against compares what was fetched with the skills that are there.
func (in *ingestion) against(existing []Skill) (change.Change, Report) {
	var c change.Change
	report := Report{Findings: in.fetched.Findings, Commit: in.fetched.Commit, Unreached: in.unreached()}
	known := make(map[string]Skill, len(existing))
	for _, s := range existing {
		known[s.Identifier] = s
	}
	in.reserve(known)
	present, taken := map[string]bool{}, map[string]bool{}
	for _, item := range in.fetched.Items {
		line := ReportItem{Path: item.Path, Status: item.Status, Code: item.Code, Reason: item.Reason, Line: item.Line, Offset: item.Offset}
		switch {
		case item.Status == ItemRejected:
			// The file is there, only not readable: its skill keeps its last readable text.
			id := identifierOf(item.Path)
			line.SkillID = known[id].ID
			present[id] = true
		case item.Status == ItemLoaded || item.Status == ItemRepaired:
			if taken[item.Identifier] {
				line.Status, line.Code, line.Reason = ItemSkipped, "duplicate", "another path of this source has the same identifier "+item.Identifier
				break
			}
			present[item.Identifier], taken[item.Identifier] = true, true
			line.SkillID, line.Status = in.ingest(&c, known, item)
		}
		report.add(line)
	}
	in.orphan(&c, &report, existing, present)
	slices.SortStableFunc(report.Items, func(a, b ReportItem) int { return strings.Compare(a.Path, b.Path) })
	return c, report
}

// reserve makes ids for the files that are not known. Skills are listed by id, and
// ids of one millisecond have no order of their own: ascending ones give the list
// the order in which the source was read, which is that of its paths.
func (in *ingestion) reserve(known map[string]Skill) {
	for _, item := range in.fetched.Items {
		if _, there := known[item.Identifier]; !there {
			in.ids = append(in.ids, in.world.NewID())
		}
	}
	slices.SortFunc(in.ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}

// identifierOf is the identifier that a readable file at a path would have
// (RULES S6).
func identifierOf(at string) string {
	if path.Base(at) == "SKILL.md" {
		return path.Dir(at)
	}
	return at
}

// ingest adds one readable file to the change and says what became of it.
func (in *ingestion) ingest(c *change.Change, known map[string]Skill, item Item) (uuid.UUID, ItemStatus) {
	was, there := known[item.Identifier]
	if !there {
		return in.create(c, item), item.Status
	}
	if changed := in.update(c, was, item); changed {
		return was.ID, item.Status
	}
	return was.ID, ItemUnchanged
}

// create adds a skill. It starts disabled, unless it is the one file of a
// single_file source and nothing in it was found alarming (RULES S9).
func (in *ingestion) create(c *change.Change, item Item) uuid.UUID {
	v, id, now := item.File.Version, in.ids[0], in.world.Now()
	in.ids = in.ids[1:]
	high := slices.ContainsFunc(item.File.Findings, func(f skill.Finding) bool { return f.Severity == skill.SeverityHigh })
	enabled := in.source.Type == SingleFile && !high
	row := []change.Value{
		skillID.To(id), skillSourceID.To(in.source.ID), skillIdentifier.To(item.Identifier), skillEnabled.To(enabled),
		skillCounter.To(0), skillRevision.To(0), skillCreatedAt.To(now),
	}
	row = append(row, in.fields(item, now)...)
	c.Inserts = append(c.Inserts, change.Insert{Table: skillsTable, Row: row})
	entry := in.record(audit.IngestCreated, id, v.Digest()).With("identifier", item.Identifier).With("enabled", enabled)
	c.Audit = append(c.Audit, entry)
	if in.source.Type == SingleFile && high {
		c.Audit = append(c.Audit, in.record(audit.InjectionBlocked, id, v.Digest()).With("identifier", item.Identifier))
	}
	return id
}

// update brings a skill to the fetched file. A changed version disables an enabled
// skill (RULES S7); one that returns stays disabled (RULES S8).
func (in *ingestion) update(c *change.Change, was Skill, item Item) (changed bool) {
	v, now := item.File.Version, in.world.Now()
	digest := v.Digest()
	newText := skill.Changed(was.StoredDigest, was.Version, v)
	restored := !newText && was.Version.Digest() != digest // somebody wrote past the sync
	if !newText && !restored && !was.Orphaned && sameOutside(was, in.source, item) {
		return false
	}
	set := in.fields(item, now)
	if newText {
		set = append(set, skillEnabled.To(false))
	}
	c.Updates = append(c.Updates, change.Update{
		Table: skillsTable, ID: was.ID, Set: set,
		If: []change.Value{
			skillDigest.Is(was.StoredDigest), skillEnabled.Is(was.Enabled), skillOrphaned.Is(was.Orphaned), skillSourceID.Is(was.SourceID),
		},
	})
	if newText || restored || was.Orphaned {
		entry := in.record(audit.IngestUpdated, was.ID, digest).With("identifier", was.Identifier).With("before", string(was.StoredDigest))
		if restored {
			entry = entry.With("restored", true)
		}
		if was.Orphaned {
			entry = entry.With("returned", true)
		}
		c.Audit = append(c.Audit, entry)
	}
	if newText && was.Enabled {
		c.Audit = append(c.Audit, in.record(audit.IngestDisabledOnChange, was.ID, digest).
			With("identifier", was.Identifier).With("before", string(was.StoredDigest)))
	}
	return newText || restored || was.Orphaned
}

// fields are the columns that a sync writes, whatever was there.
func (in *ingestion) fields(item Item, at time.Time) []change.Value {
	f, v := item.File, item.File.Version
	return []change.Value{
		skillName.To(v.Name), skillDescription.To(v.Description), skillBody.To(v.Body), skillSupport.To(v.Support),
		skillTools.To(v.Tools), skillProcess.To(v.Process), skillDigest.To(v.Digest()), skillBodyChecksum.To(skill.BodyChecksum(v.Body)),
		skillRawDigest.To(f.RawDigest), skillBundleDigest.To(bundleDigest(item.Bundle)), skillBundle.To(item.Bundle),
		skillFrontmatter.To(f.Frontmatter), skillParseStatus.To(f.Status), skillFindings.To(f.Findings), skillOrphaned.To(false),
		skillTrust.To(in.source.TrustLevel), skillUpdatedAt.To(at),
	}
}

// bundleDigest is empty when there are no files to bind: a skill without a folder.
func bundleDigest(files []skill.BundleFile) string {
	if len(files) == 0 {
		return ""
	}
	return skill.BundleDigest(files)
}

// sameOutside reports whether nothing beside the version differs either, so that
// there is nothing to write at all.
func sameOutside(was Skill, source Source, item Item) bool {
	return was.StoredDigest != "" && was.RawDigest == item.File.RawDigest && was.BundleDigest == bundleDigest(item.Bundle) &&
		was.ParseStatus == item.File.Status && was.TrustLevel == source.TrustLevel &&
		was.BodyChecksum == skill.BodyChecksum(item.File.Version.Body) && slices.Equal(was.Findings, item.File.Findings)
}

// orphan disables what is gone from its source; it deletes nothing (RULES S8).
func (in *ingestion) orphan(c *change.Change, report *Report, existing []Skill, present map[string]bool) {
	for _, was := range existing {
		if was.Orphaned || present[was.Identifier] || in.protected(was.Identifier, report.Unreached) {
			continue
		}
		c.Updates = append(c.Updates, change.Update{
			Table: skillsTable, ID: was.ID,
			If:  []change.Value{skillOrphaned.Is(false), skillEnabled.Is(was.Enabled), skillSourceID.Is(was.SourceID)},
			Set: []change.Value{skillOrphaned.To(true), skillEnabled.To(false), skillUpdatedAt.To(in.world.Now())},
		})
		c.Audit = append(c.Audit, in.record(audit.Orphaned, was.ID, was.StoredDigest).
			With("identifier", was.Identifier).With("wasEnabled", was.Enabled))
		report.add(ReportItem{
			Path: was.Identifier, Status: ItemOrphaned, Code: "orphaned", Reason: "it is gone from its source", Offset: -1, SkillID: was.ID,
		})
	}
}

// unreached lists the scopes that the source names and that were not read to the
// end.
func (in *ingestion) unreached() []string {
	var scopes []string
	for _, item := range in.fetched.Items {
		if item.Scope != "" && !slices.Contains(in.fetched.Reached, item.Scope) {
			scopes = append(scopes, item.Scope)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// protected reports whether nothing is known of a skill, because the scope it was
// read from was not read to the end. Only a marketplace has several scopes, and its
// identifiers begin with them; any other source is one scope.
func (in *ingestion) protected(identifier string, unreached []string) bool {
	if in.source.Type != Marketplace {
		return len(unreached) > 0
	}
	return slices.ContainsFunc(unreached, func(scope string) bool {
		return identifier == scope || strings.HasPrefix(identifier, scope+"/")
	})
}

func (in *ingestion) record(event audit.Event, id uuid.UUID, digest skill.Digest) audit.Entry {
	return audit.Record(in.world, in.by, event).About(in.source.ID, id, string(digest))
}
