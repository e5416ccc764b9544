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

// SourceUpdate is the input of UpdateSource; a nil field stays as it is.
type SourceUpdate struct {
	ID                  uuid.UUID
	Title               *string
	Type                *SourceType
	URL                 *string
	Ref                 *string
	PinnedCommit        *string
	ExpectedFingerprint *string
	Enabled             *bool
}

// UpdateSource changes where a source is read from, or switches its sync on or off. With
// another type it is as good as another source: it was never synced, and no approval
// matches its skills (RULES S12). With an address at another host it loses its token, which was
// made for the old one. Administrators only; audited.
func (l *Library) UpdateSource(ctx context.Context, by actor.Actor, in SourceUpdate) (Source, error) {
	if err := in.permitted(by); err != nil {
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
		c := l.sourceChange(by, was, now)
		if was.Type != now.Type {
			return l.retyped(ctx, by, c, was, now)
		}
		return c, nil
	})
	if err != nil {
		return Source{}, err
	}
	return l.shown(l.Store.Source(ctx, in.ID))
}

func (in SourceUpdate) permitted(by actor.Actor) error {
	if err := needAdministrator(by); err != nil { // also of an update that sets nothing
		return err
	}
	return mayChange(by, sourceObject, given(
		namedField{"title", in.Title != nil}, namedField{"type", in.Type != nil}, namedField{"url", in.URL != nil},
		namedField{"ref", in.Ref != nil}, namedField{"pinnedCommit", in.PinnedCommit != nil},
		namedField{"expectedFingerprint", in.ExpectedFingerprint != nil}, namedField{"enabled", in.Enabled != nil},
	)...)
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
	if in.Type != nil {
		s.Type = *in.Type
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
		{"type", was.Type != now.Type, sourceType.Is(was.Type), sourceType.To(now.Type)},
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
	elsewhere := tokenHost(was.URL) != tokenHost(now.URL)
	if elsewhere { // also of one that is set this very moment
		update.Set = append(update.Set, sourceToken.To(""))
	}
	entry := audit.Record(l.World, by, audit.SourceUpdated).About(was.ID, uuid.Nil, "").With("changed", changed).With("url", now.URL)
	if elsewhere && was.HasToken {
		entry = entry.With("tokenSet", false)
	}
	return change.Change{Updates: []change.Update{update}, Audit: []audit.Entry{entry}}
}

// retyped adds to a source's change what another type means for its skills and for
// a sync that is running: they have a new origin, and it stores nothing.
func (l *Library) retyped(ctx context.Context, by actor.Actor, c change.Change, was, now Source) (change.Change, error) {
	skills, err := l.Store.SkillsOf(ctx, was.ID)
	if err != nil {
		return change.Change{}, err
	}
	if err := l.noteTampered(ctx, was, skills); err != nil {
		return change.Change{}, err
	}
	update := &c.Updates[0]
	update.If = append(update.If, sourceLeaseOwner.Is(was.LeaseOwner), sourceTrust.Is(was.TrustLevel))
	update.Set = append(update.Set, sourceSyncStatus.To(NeverSynced), sourceSyncError.To(""), sourceHeadCommit.To(""),
		sourceLastSyncedAt.Null(), sourceLeaseOwner.To(""), sourceLeaseUntil.Null())
	for _, s := range skills {
		of := l.rehoused(by, s, was.Type, now)
		c.Updates, c.Inserts = append(c.Updates, of.Updates...), append(c.Inserts, of.Inserts...)
	}
	c.Audit[0] = c.Audit[0].With("from", string(was.Type)).With("to", string(now.Type)).With("skills", len(skills))
	c.Ring = append(c.Ring, change.SourceTopic(was.ID))
	return c, nil
}

// SetSourceTrustLevel changes what a source is trusted as. It acts at once on
// instructing, on pins and on skills written here; synced skills are admitted by it
// from their next sync on (RULES A3, A10). Approvals stay as they are. Administrators
// only; audited.
func (l *Library) SetSourceTrustLevel(ctx context.Context, by actor.Actor, id uuid.UUID, level skill.TrustLevel) (Source, error) {
	if err := mayChange(by, sourceObject, "trustLevel"); err != nil {
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
	if err := mayChange(by, sourceObject, "token"); err != nil {
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
