package library_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// memory keeps rows as a Change writes them, so that the rules are tested without a
// database. It holds guards and unique keys; it knows nothing else of a schema.
type memory struct {
	mu      sync.Mutex
	tables  map[change.Table]map[uuid.UUID]row
	trail   []audit.Entry
	queries int
	broken  error // returned by every call when set
}

type row map[string]any

var unique = map[change.Table][]string{
	"skills": {"source_id", "identifier"}, "attachments": {"skill_id", "configuration_id"}, "tool_switches": {"name"},
	"integrity_failures": {"skill_id", "stored", "computed"},
}

func newMemory() *memory { return &memory{tables: map[change.Table]map[uuid.UUID]row{}} }

func (m *memory) Apply(_ context.Context, changes ...change.Change) ([]change.Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return nil, m.broken
	}
	var outcomes []change.Outcome
	for _, c := range changes {
		lost, ok := m.holds(c)
		if ok {
			m.write(c)
		}
		outcomes = append(outcomes, change.Outcome{Applied: ok, Lost: lost})
	}
	return outcomes, nil
}

func (m *memory) holds(c change.Change) (change.Table, bool) {
	for _, u := range c.Updates {
		if r, there := m.tables[u.Table][u.ID]; !there || !matches(r, u.If) {
			return u.Table, false
		}
	}
	for _, d := range c.Deletes {
		if r, there := m.tables[d.Table][d.ID]; !there || !matches(r, d.If) {
			return d.Table, false
		}
	}
	for _, i := range c.Inserts {
		added := rowOf(i.Row)
		for id, r := range m.tables[i.Table] {
			keys, same := unique[i.Table], true
			for _, k := range keys {
				same = same && r[k] == added[k]
			}
			if id == added["id"] || len(keys) > 0 && same {
				return i.Table, false
			}
		}
	}
	return "", true
}

func (m *memory) write(c change.Change) {
	for _, u := range c.Updates {
		maps.Copy(m.tables[u.Table][u.ID], rowOf(u.Set))
	}
	for _, d := range c.Deletes {
		delete(m.tables[d.Table], d.ID)
	}
	for _, i := range c.Inserts {
		added := rowOf(i.Row)
		if m.tables[i.Table] == nil {
			m.tables[i.Table] = map[uuid.UUID]row{}
		}
		m.tables[i.Table][added["id"].(uuid.UUID)] = added
	}
	m.trail = append(m.trail, c.Audit...)
}

func rowOf(values []change.Value) row {
	r := row{}
	for _, v := range values {
		r[v.Column] = v.Arg
	}
	return r
}

func matches(r row, guards []change.Value) bool {
	for _, g := range guards {
		have := r[g.Column]
		switch {
		case !g.Before.IsZero():
			if at, ok := have.(time.Time); !ok || !at.Before(g.Before) {
				return false
			}
		case g.In != nil:
			if !slices.Contains(g.In, have) {
				return false
			}
		case have != g.Arg:
			return false
		}
	}
	return true
}

func (r row) text(c string) string { s, _ := r[c].(string); return s }
func (r row) int(c string) int     { n, _ := r[c].(int64); return int(n) }
func (r row) bool(c string) bool   { b, _ := r[c].(bool); return b }
func (r row) id(c string) uuid.UUID {
	id, _ := r[c].(uuid.UUID)
	return id
}
func (r row) time(c string) time.Time { t, _ := r[c].(time.Time); return t }
func (r row) maybe(c string) *time.Time {
	if t, ok := r[c].(time.Time); ok {
		return &t
	}
	return nil
}

func from[T any](r row, c string) (v T) {
	if err := json.Unmarshal([]byte(r.text(c)), &v); err != nil {
		panic(err)
	}
	return v
}

func one[T any](m *memory, table change.Table, id uuid.UUID, read func(row) T) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries++
	var none T
	if m.broken != nil {
		return none, m.broken
	}
	r, there := m.tables[table][id]
	if !there {
		return none, fault.New(fault.NotFound, "There is no such row in %s.", table)
	}
	return read(r), nil
}

func many[T any](m *memory, table change.Table, wanted func(row) bool, read func(row) T) ([]T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries++
	if m.broken != nil {
		return nil, m.broken
	}
	var all []T
	ids := slices.SortedFunc(maps.Keys(m.tables[table]), func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	for _, id := range ids {
		if r := m.tables[table][id]; wanted(r) {
			all = append(all, read(r))
		}
	}
	return all, nil
}

func paged[T any](m *memory, table change.Table, page library.Page, wanted func(row) bool, read func(row) T) ([]T, error) {
	all, err := many(m, table, func(r row) bool {
		after := strings.Compare(r.id("id").String(), page.Cursor.String())
		if page.Backward {
			return wanted(r) && (page.Cursor == uuid.Nil || after < 0)
		}
		return wanted(r) && after > 0
	}, read)
	if page.Backward {
		slices.Reverse(all)
	}
	return all[:min(len(all), page.Limit)], err
}

func any_(row) bool { return true }

func sourceRow(r row) library.Source {
	return library.Source{
		ID: r.id("id"), Title: r.text("title"), Type: library.SourceType(r.text("type")), URL: r.text("url"), Ref: r.text("ref"),
		PinnedCommit: r.text("pinned_commit"), AccessToken: r.text("access_token"), TrustLevel: skill.TrustLevel(r.text("trust_level")),
		ExpectedFingerprint: r.text("expected_fingerprint"), Enabled: r.bool("enabled"), SyncStatus: library.SyncStatus(r.text("sync_status")),
		SyncError: r.text("sync_error"), LastSyncedAt: r.maybe("last_synced_at"), HeadCommit: r.text("head_commit"),
		LeaseOwner: r.text("lease_owner"), LeaseUntil: r.maybe("lease_until"), CreatedAt: r.time("created_at"),
	}
}

func versionRow(r row) skill.Version {
	return skill.Version{
		Name: r.text("name"), Description: r.text("description"), Body: r.text("body"), Support: skill.SupportStatus(r.text("support_status")),
		Tools: from[skill.Tools](r, "allowed_tools"), Process: skill.Process(r.text("process")),
	}
}

func skillRow(r row) library.Skill {
	return library.Skill{
		ID: r.id("id"), SourceID: r.id("source_id"), Identifier: r.text("identifier"), Version: versionRow(r),
		StoredDigest: skill.Digest(r.text("digest")), BodyChecksum: r.text("body_checksum"), RawDigest: r.text("raw_digest"),
		BundleDigest: r.text("bundle_digest"), Bundle: from[[]skill.BundleFile](r, "bundle"), Frontmatter: r.text("frontmatter"),
		ParseStatus: skill.ParseStatus(r.text("parse_status")), Findings: from[[]skill.Finding](r, "findings"), Enabled: r.bool("enabled"),
		Orphaned: r.bool("orphaned"), TrustLevel: skill.TrustLevel(r.text("trust_level")), Counter: r.int("counter"), Revision: r.int("revision"),
		CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"),
	}
}

func approvalRow(r row) library.Approval {
	return library.Approval{
		ID: r.id("id"), SkillID: r.id("skill_id"), SourceID: r.id("source_id"), Digest: skill.Digest(r.text("digest")), Counter: r.int("counter"),
		Version: versionRow(r), TrustLevel: skill.TrustLevel(r.text("trust_level")), RawDigest: r.text("raw_digest"),
		BundleDigest: r.text("bundle_digest"), Bundle: from[[]skill.BundleFile](r, "bundle"), ApproverID: r.id("approver_id"),
		Comment: r.text("comment"), At: r.time("at"),
	}
}

func revocationRow(r row) library.Revocation {
	return library.Revocation{
		ID: r.id("id"), SkillID: r.id("skill_id"), Digest: skill.Digest(r.text("digest")), Counter: r.int("counter"), Reason: r.text("reason"),
		ActorID: r.id("actor_id"), At: r.time("at"),
	}
}

func revisionRow(r row) library.Revision {
	v := versionRow(r)
	v.Support = skill.SupportOf(v.Body)
	return library.Revision{
		ID: r.id("id"), SkillID: r.id("skill_id"), Number: r.int("revision"), Version: v, AuthorID: r.id("author_id"), At: r.time("at"),
	}
}

func attachmentRow(r row) library.Attachment {
	return library.Attachment{
		ID: r.id("id"), SkillID: r.id("skill_id"), ConfigurationID: r.id("configuration_id"), LoadMode: library.LoadMode(r.text("load_mode")),
		Position: r.int("position"), CreatedAt: r.time("created_at"),
	}
}

func providerRow(r row) library.Provider {
	return library.Provider{
		ID: r.id("id"), Name: r.text("name"), Kind: library.ProviderKind(r.text("kind")), BaseURL: r.text("base_url"), APIKey: r.text("api_key"),
		TrustZone: library.TrustZone(r.text("trust_zone")), Script: r.text("script"),
	}
}

func configurationRow(r row) library.Configuration {
	var c library.Configuration
	c.ID, c.Name, c.ProviderID, c.Model = r.id("id"), r.text("name"), r.id("provider_id"), r.text("model")
	c.ContextWindow, c.SystemPrompt = r.int("context_window"), r.text("system_prompt")
	c.RequireSecondApprover, c.SnippetsInCallerSystemPrompt = r.bool("require_second_approver"), r.bool("snippets_in_caller_system_message")
	c.MaxIterations, c.Revision, c.CreatedAt = r.int("max_iterations"), r.int("revision"), r.time("created_at")
	c.AllowedUserIDs = from[[]uuid.UUID](r, "allowed_user_ids")
	if err := json.Unmarshal([]byte(r.text("allowed_tool_groups")), &c.AllowedToolGroups); err != nil {
		panic(err)
	}
	return c
}

func (m *memory) Source(_ context.Context, id uuid.UUID) (library.Source, error) {
	return one(m, "sources", id, sourceRow)
}

func (m *memory) Skill(_ context.Context, id uuid.UUID) (library.Skill, error) {
	return one(m, "skills", id, skillRow)
}

func (m *memory) SkillsOf(_ context.Context, source uuid.UUID) ([]library.Skill, error) {
	all, err := many(m, "skills", func(r row) bool { return r.id("source_id") == source }, skillRow)
	slices.SortFunc(all, func(a, b library.Skill) int { return strings.Compare(a.Identifier, b.Identifier) })
	return all, err
}

func (m *memory) Dossiers(ctx context.Context, ids []uuid.UUID) ([]library.Dossier, error) {
	named := func(c string) func(row) bool { return func(r row) bool { return slices.Contains(ids, r.id(c)) } }
	skills, err := many(m, "skills", named("id"), skillRow)
	if err != nil {
		return nil, err
	}
	approvals, err := many(m, "approvals", named("skill_id"), approvalRow)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(approvals, func(a, b library.Approval) int { return b.Counter - a.Counter })
	revocations, err := many(m, "revocations", named("skill_id"), revocationRow)
	if err != nil {
		return nil, err
	}
	var ds []library.Dossier
	for _, id := range ids {
		at := slices.IndexFunc(skills, func(s library.Skill) bool { return s.ID == id })
		if at < 0 {
			continue
		}
		d := library.Dossier{Skill: skills[at], Source: sourceRow(m.tables["sources"][skills[at].SourceID])}
		for _, a := range approvals {
			if a.SkillID == id {
				d.Approvals = append(d.Approvals, a)
			}
		}
		for _, r := range revocations {
			if r.SkillID == id {
				d.Revocations = append(d.Revocations, r)
			}
		}
		ds = append(ds, d)
	}
	return ds, nil
}

func (m *memory) Offered(ctx context.Context, configuration uuid.UUID) ([]library.Offered, error) {
	as, err := many(m, "attachments", func(r row) bool { return r.id("configuration_id") == configuration }, attachmentRow)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(as, func(a, b library.Attachment) int { return a.Position - b.Position })
	var offered []library.Offered
	for _, a := range as {
		ds, err := m.Dossiers(ctx, []uuid.UUID{a.SkillID})
		if err != nil {
			return nil, err
		}
		offered = append(offered, library.Offered{Attachment: a, Dossier: ds[0]})
	}
	return offered, nil
}

func (m *memory) Attachment(_ context.Context, id uuid.UUID) (library.Attachment, error) {
	return one(m, "attachments", id, attachmentRow)
}

func (m *memory) Revisions(_ context.Context, skillID uuid.UUID) ([]library.Revision, error) {
	all, err := many(m, "skill_revisions", func(r row) bool { return r.id("skill_id") == skillID }, revisionRow)
	slices.SortFunc(all, func(a, b library.Revision) int { return b.Number - a.Number })
	return all, err
}

func (m *memory) UsesOf(ctx context.Context, source uuid.UUID, limit int) ([]library.Use, error) {
	skills, err := m.SkillsOf(ctx, source)
	if err != nil {
		return nil, err
	}
	inside := func(r row) bool {
		return r.id("source_id") == source || slices.ContainsFunc(skills, func(s library.Skill) bool { return s.ID == r.id("skill_id") })
	}
	var uses []library.Use
	for table, kind := range map[change.Table]library.UseKind{
		"approvals": library.UsedByApproval, "revocations": library.UsedByRevocation, "attachments": library.UsedByAttachment,
	} {
		found, err := many(m, table, inside, func(r row) library.Use {
			return library.Use{Kind: kind, ID: r.id("id"), SkillID: r.id("skill_id")}
		})
		if err != nil {
			return nil, err
		}
		uses = append(uses, found...)
	}
	slices.SortFunc(uses, func(a, b library.Use) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return uses[:min(len(uses), limit)], nil
}

func (m *memory) Provider(_ context.Context, id uuid.UUID) (library.Provider, error) {
	return one(m, "providers", id, providerRow)
}

func (m *memory) Configuration(_ context.Context, id uuid.UUID) (library.Configuration, error) {
	return one(m, "configurations", id, configurationRow)
}

func (m *memory) ToolSwitches(context.Context) (map[string]bool, error) {
	switches := map[string]bool{}
	_, err := many(m, "tool_switches", any_, func(r row) bool { switches[r.text("name")] = r.bool("enabled"); return true })
	return switches, err
}

func (m *memory) IntegritySeen(_ context.Context, id uuid.UUID, stored, computed string) (bool, error) {
	seen, err := many(m, "integrity_failures", func(r row) bool {
		return r.id("skill_id") == id && r.text("stored") == stored && r.text("computed") == computed
	}, any_)
	return len(seen) > 0, err
}

func (m *memory) Sources(_ context.Context, page library.Page) ([]library.Source, error) {
	return paged(m, "sources", page, any_, sourceRow)
}

func (m *memory) Skills(_ context.Context, f library.SkillFilter, page library.Page) ([]library.Skill, error) {
	return paged(m, "skills", page, func(r row) bool {
		return (f.SourceID == nil || *f.SourceID == r.id("source_id")) && (f.Enabled == nil || *f.Enabled == r.bool("enabled")) &&
			(f.Orphaned == nil || *f.Orphaned == r.bool("orphaned")) && strings.Contains(r.text("name"), f.Search)
	}, skillRow)
}

func (m *memory) Configurations(_ context.Context, page library.Page) ([]library.Configuration, error) {
	return paged(m, "configurations", page, any_, configurationRow)
}

func (m *memory) Providers(_ context.Context, page library.Page) ([]library.Provider, error) {
	return paged(m, "providers", page, any_, providerRow)
}
