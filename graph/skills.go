package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

func toSkill(d library.Dossier) *model.Skill {
	s, v := d.Skill, d.Skill.Version
	return &model.Skill{
		ID: skillKind.id(s.ID), Identifier: s.Identifier, Name: v.Name, Description: v.Description, Body: v.Body,
		AllowedTools: toTools(v.Tools), AllowedToolsUnreadable: v.Tools.State == skill.ToolsUnreadable,
		Process: v.Process == skill.ProcessYes, ProcessUnreadable: v.Process == skill.ProcessUnreadable,
		SupportStatus: supportStatuses.out(v.Support), ParseStatus: parseStatuses.out(parseStatus(s)),
		Enabled: s.Enabled, Orphaned: s.Orphaned, Source: toSource(d.Source), TrustLevel: trustLevels.out(s.TrustLevel),
		Digest: given(d.Digest()), BodyChecksum: given(s.BodyChecksum), RawDigest: given(s.RawDigest), BundleDigest: given(s.BundleDigest),
		Bundle: toBundle(s.Bundle), Findings: toFindings(s.Findings), Revision: s.Revision, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
		Dossier: d,
	}
}

// parseStatus is how a skill's text came to be read. What is written here was never parsed, so nothing had to be repaired.
func parseStatus(s library.Skill) skill.ParseStatus {
	if s.ParseStatus == "" {
		return skill.ParseOK
	}
	return s.ParseStatus
}

// toTools writes a declaration: null without one, and an empty list for one that grants nothing.
func toTools(t skill.Tools) []string {
	if !t.Declares() {
		return nil
	}
	return append([]string{}, t.Grants()...)
}

func toBundle(files []skill.BundleFile) []*model.BundleFile {
	out := make([]*model.BundleFile, len(files))
	for i, f := range files {
		out[i] = &model.BundleFile{Path: f.Path, Mode: f.Mode, Size: f.Size, Sha256: f.SHA256}
	}
	return out
}

func toFindings(findings []skill.Finding) []*model.Finding {
	out := make([]*model.Finding, len(findings))
	for i, f := range findings {
		out[i] = &model.Finding{Rule: f.Rule, Severity: severities.out(f.Severity), Message: f.Message, Excerpt: f.Excerpt, Line: positive(f.Line)}
	}
	return out
}

func toStanding(s skill.Standing) *model.Standing {
	return &model.Standing{Instructs: s.Instructs, Reasons: standingReasons.outs(s.Reasons)}
}

func skillID(d library.Dossier) uuid.UUID { return d.Skill.ID }

func skillConnection(w window, read []library.Dossier) *model.SkillConnection {
	c := &model.SkillConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, skillID), rowKey(skillID), toSkill,
		func(cursor string, n *model.Skill) *model.SkillEdge { return &model.SkillEdge{Cursor: cursor, Node: n} })
	return c
}

// skillQuery reads the filter of a list of skills.
func skillQuery(f *model.SkillFilter) (library.SkillQuery, error) {
	if f == nil {
		return library.SkillQuery{}, nil
	}
	source, err := sourceKind.optional(f.SourceID)
	return library.SkillQuery{
		SkillFilter: library.SkillFilter{SourceID: source, Enabled: f.Enabled, Orphaned: f.Orphaned, Process: f.Process, Search: text(f.Search)},
		Instructs:   f.Instructs,
	}, err
}

func toCatalogue(entries []library.Entry) []*model.CatalogueEntry {
	out := make([]*model.CatalogueEntry, len(entries))
	for i, e := range entries {
		v := e.Skill.Version
		out[i] = &model.CatalogueEntry{
			ID: skillKind.id(e.Skill.ID), Identifier: e.Skill.Identifier, Name: v.Name, Description: v.Description,
			DescriptionUntrusted: !e.Standing.Instructs, LoadMode: loadModes.out(e.Attachment.LoadMode),
			Process: v.Process == skill.ProcessYes, Instructs: e.Standing.Instructs,
		}
	}
	return out
}

// declared reads a declaration of tools: absence says nothing, null withdraws it.
func declared(tools []string, set bool) *[]string {
	if !set {
		return nil
	}
	return &tools
}

// needSkillRead refuses who may not see skills, where a use case that the runtime shares does not ask.
func needSkillRead(by actor.Actor) error {
	if !by.May(actor.SkillRead) {
		return fault.New(fault.Forbidden, "This needs the permission %s.", actor.SkillRead)
	}
	return nil
}
