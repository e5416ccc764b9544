package library

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// SourceUpdate is the input of UpdateSource; a nil field stays as it is. A source's type
// cannot change: approvals name the source, and a source of another type is another
// source (RULES S12).
type SourceUpdate struct {
	ID                  uuid.UUID
	Title               *string
	URL                 *string
	Ref                 *string
	PinnedCommit        *string
	ExpectedFingerprint *string
	Enabled             *bool
}

// UpdateSource changes where a source is read from, or switches its sync on or off.
// Administrators only; audited.
func (l *Library) UpdateSource(ctx context.Context, by actor.Actor, in SourceUpdate) (Source, error) {
	if err := needAdministrator(by); err != nil {
		return Source{}, err
	}
	err := l.retried(ctx, "the source", func() (change.Change, error) {
		was, err := l.Store.Source(ctx, in.ID)
		if err != nil {
			return change.Change{}, err
		}
		now, err := in.applied(was)
		if err == nil {
			err = l.checkSource(now)
		}
		if err != nil {
			return change.Change{}, err
		}
		return l.sourceChange(by, was, now), nil
	})
	if err != nil {
		return Source{}, err
	}
	return l.shown(l.Store.Source(ctx, in.ID))
}

// applied is the source as the update would have it.
func (in SourceUpdate) applied(s Source) (Source, error) {
	if in.Title != nil {
		title, err := label("title", *in.Title)
		if err != nil {
			return Source{}, err
		}
		s.Title = title
	}
	for _, field := range []struct {
		from *string
		to   *string
	}{{in.URL, &s.URL}, {in.Ref, &s.Ref}, {in.PinnedCommit, &s.PinnedCommit}, {in.ExpectedFingerprint, &s.ExpectedFingerprint}} {
		if field.from != nil {
			*field.to = strings.TrimSpace(*field.from)
		}
	}
	if in.Enabled != nil {
		s.Enabled = *in.Enabled
	}
	return s, nil
}

// sourceChange is the change of one state of a source to another; empty when
// nothing differs.
func (l *Library) sourceChange(by actor.Actor, was, now Source) change.Change {
	fields := []struct {
		name    string
		changed bool
		guard   change.Value
		set     change.Value
	}{
		{"title", was.Title != now.Title, sourceTitle.Is(was.Title), sourceTitle.To(now.Title)},
		{"url", was.URL != now.URL, sourceURL.Is(was.URL), sourceURL.To(now.URL)},
		{"ref", was.Ref != now.Ref, sourceRef.Is(was.Ref), sourceRef.To(now.Ref)},
		{"pinnedCommit", was.PinnedCommit != now.PinnedCommit, sourcePinned.Is(was.PinnedCommit), sourcePinned.To(now.PinnedCommit)},
		{
			"expectedFingerprint", was.ExpectedFingerprint != now.ExpectedFingerprint,
			sourceFingerprint.Is(was.ExpectedFingerprint), sourceFingerprint.To(now.ExpectedFingerprint),
		},
		{"enabled", was.Enabled != now.Enabled, sourceEnabled.Is(was.Enabled), sourceEnabled.To(now.Enabled)},
	}
	update := change.Update{Table: sourcesTable, ID: was.ID}
	var changed []string
	for _, f := range fields {
		if f.changed {
			changed = append(changed, f.name)
			update.If = append(update.If, f.guard)
			update.Set = append(update.Set, f.set)
		}
	}
	if len(changed) == 0 {
		return change.Change{}
	}
	entry := audit.Record(l.World, by, audit.SourceUpdated).About(was.ID, uuid.Nil, "").With("changed", changed).With("url", now.URL)
	return change.Change{Updates: []change.Update{update}, Audit: []audit.Entry{entry}}
}

// SetSourceTrustLevel changes what a source is trusted as. It acts at once on
// instructing, on pins and on skills written here; synced skills are admitted by it
// from their next sync on (RULES A3, A10). Approvals stay as they are. Administrators
// only; audited.
func (l *Library) SetSourceTrustLevel(ctx context.Context, by actor.Actor, id uuid.UUID, level skill.TrustLevel) (Source, error) {
	if err := needAdministrator(by); err != nil {
		return Source{}, err
	}
	if err := checkLevel(level); err != nil {
		return Source{}, err
	}
	err := l.retried(ctx, "the source", func() (change.Change, error) {
		was, err := l.Store.Source(ctx, id)
		if err != nil || was.TrustLevel == level {
			return change.Change{}, err
		}
		return change.Change{
			Updates: []change.Update{{
				Table: sourcesTable, ID: id, If: []change.Value{sourceTrust.Is(was.TrustLevel)}, Set: []change.Value{sourceTrust.To(level)},
			}},
			Audit: []audit.Entry{audit.Record(l.World, by, audit.SourceTrustChanged).About(id, uuid.Nil, "").
				With("from", string(was.TrustLevel)).With("to", string(level))},
		}, nil
	})
	if err != nil {
		return Source{}, err
	}
	return l.shown(l.Store.Source(ctx, id))
}

// SetSourceToken replaces a source's access token; empty removes it. The token is
// kept sealed and never read back. Administrators only; audited.
func (l *Library) SetSourceToken(ctx context.Context, by actor.Actor, id uuid.UUID, token string) (Source, error) {
	if err := needAdministrator(by); err != nil {
		return Source{}, err
	}
	if err := checkToken(token); err != nil {
		return Source{}, err
	}
	s, err := l.Store.Source(ctx, id)
	if err != nil {
		return Source{}, err
	}
	if s.Type == Authored && token != "" {
		return Source{}, fault.New(fault.BadInput, "sourceId names an authored source, which is read from nowhere and takes no token.")
	}
	out, err := change.One(ctx, l.Store, change.Change{
		Updates: []change.Update{{Table: sourcesTable, ID: id, Set: []change.Value{sourceToken.To(token)}}},
		Audit: []audit.Entry{audit.Record(l.World, by, audit.SourceUpdated).About(id, uuid.Nil, "").
			With("changed", []string{"token"}).With("tokenSet", token != "")},
	})
	if err != nil {
		return Source{}, err
	}
	if !out.Applied {
		return Source{}, fault.New(fault.NotFound, "There is no such source.")
	}
	return l.shown(l.Store.Source(ctx, id))
}
