package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
)

// FindSource reads a source; it needs skill:read.
func (l *Library) FindSource(ctx context.Context, by actor.Actor, id uuid.UUID) (Source, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return Source{}, err
	}
	return l.shown(l.Store.Source(ctx, id))
}

// shown is a source as people see it: without its secret, and not as syncing when
// the sync that said so has died.
func (l *Library) shown(s Source, err error) (Source, error) {
	s.AccessToken = ""
	if s.SyncStatus == Syncing && (s.LeaseUntil == nil || !l.World.Now().Before(*s.LeaseUntil)) {
		s.SyncStatus, s.SyncError = SyncError, "The last sync did not finish."
	}
	return s, err
}

func withoutKey(p Provider, err error) (Provider, error) {
	p.APIKey = ""
	return p, err
}

// FindSkill reads a skill with everything that decides what it may do; it needs
// skill:read.
func (l *Library) FindSkill(ctx context.Context, by actor.Actor, id uuid.UUID) (Dossier, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return Dossier{}, err
	}
	return l.dossier(ctx, id)
}

// FindProvider reads a provider without its key. Administrators only.
func (l *Library) FindProvider(ctx context.Context, by actor.Actor, id uuid.UUID) (Provider, error) {
	if err := needAdministrator(by); err != nil {
		return Provider{}, err
	}
	return withoutKey(l.Store.Provider(ctx, id))
}

// FindAttachment reads an attachment with the skill it offers; it needs skill:read.
func (l *Library) FindAttachment(ctx context.Context, by actor.Actor, id uuid.UUID) (Offered, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return Offered{}, err
	}
	a, err := l.Store.Attachment(ctx, id)
	if err != nil {
		return Offered{}, err
	}
	d, err := l.dossier(ctx, a.SkillID)
	return Offered{Attachment: a, Dossier: d}, err
}

// FindApproval reads an approval; it needs skill:read.
func (l *Library) FindApproval(ctx context.Context, by actor.Actor, id uuid.UUID) (Approval, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return Approval{}, err
	}
	return l.Store.Approval(ctx, id)
}

// FindRevocation reads a revocation; it needs skill:read.
func (l *Library) FindRevocation(ctx context.Context, by actor.Actor, id uuid.UUID) (Revocation, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return Revocation{}, err
	}
	return l.Store.Revocation(ctx, id)
}

// ListSources pages through the sources; it needs skill:read.
func (l *Library) ListSources(ctx context.Context, by actor.Actor, page Page) ([]Source, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return nil, err
	}
	sources, err := l.Store.Sources(ctx, page)
	for i := range sources {
		sources[i], _ = l.shown(sources[i], nil)
	}
	return sources, err
}

// ListProviders pages through the providers, without their keys. Administrators
// only.
func (l *Library) ListProviders(ctx context.Context, by actor.Actor, page Page) ([]Provider, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	ps, err := l.Store.Providers(ctx, page)
	for i := range ps {
		ps[i].APIKey = ""
	}
	return ps, err
}

// ListConfigurations pages through the configurations that somebody may use.
func (l *Library) ListConfigurations(ctx context.Context, by actor.Actor, page Page) ([]Configuration, error) {
	if err := needSignedIn(by); err != nil {
		return nil, err
	}
	return filtered(page, func(p Page) ([]Configuration, error) { return l.Store.Configurations(ctx, p) },
		func(c Configuration) uuid.UUID { return c.ID },
		func(cs []Configuration) ([]Configuration, error) {
			return slices.DeleteFunc(cs, func(c Configuration) bool { return !c.MayUse(by) }), nil
		})
}

// SkillQuery narrows a list of skills; a nil field does not narrow.
type SkillQuery struct {
	SkillFilter
	Instructs *bool
}

// ListSkills pages through the skills with everything that decides what they may
// do, in four queries a page, or more when it must look for those that (do not) instruct. It needs
// skill:read.
func (l *Library) ListSkills(ctx context.Context, by actor.Actor, q SkillQuery, page Page) ([]Dossier, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return nil, err
	}
	t, err := l.Thresholds(ctx)
	if err != nil {
		return nil, err
	}
	return filtered(page, func(p Page) ([]Skill, error) { return l.Store.Skills(ctx, q.SkillFilter, p) },
		func(s Skill) uuid.UUID { return s.ID },
		func(skills []Skill) ([]Dossier, error) {
			ids := make([]uuid.UUID, len(skills))
			for i, s := range skills {
				ids[i] = s.ID
			}
			if len(ids) == 0 {
				return nil, nil
			}
			ds, err := l.Store.Dossiers(ctx, ids)
			return slices.DeleteFunc(ds, func(d Dossier) bool {
				return q.Instructs != nil && d.Standing(t).Instructs != *q.Instructs
			}), err
		})
}

// filtered fills a page with what keep leaves of the rows that read gives, reading
// on until the page is full or the rows end. A page is in the list's order, also a
// backward one.
func filtered[Row, Kept any](page Page, read func(Page) ([]Row, error), id func(Row) uuid.UUID, keep func([]Row) ([]Kept, error)) ([]Kept, error) {
	var all []Kept
	for next := page; ; {
		rows, err := read(next)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			farthest := rows[len(rows)-1]
			if page.Backward {
				farthest = rows[0]
			}
			next.Cursor = id(farthest)
		}
		ended := len(rows) < next.Limit
		kept, err := keep(rows)
		if err != nil {
			return nil, err
		}
		if page.Backward {
			all = append(kept, all...)
			all = all[max(0, len(all)-page.Limit):]
		} else {
			all = append(all, kept...)
			all = all[:min(len(all), page.Limit)]
		}
		if ended || len(all) == page.Limit {
			return all, nil
		}
	}
}
