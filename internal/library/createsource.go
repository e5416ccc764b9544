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

// NewSource is the input of CreateSource.
type NewSource struct {
	Title               string
	Type                SourceType
	URL                 string // of every type but authored, which has none
	Ref                 string
	PinnedCommit        string
	TrustLevel          skill.TrustLevel // empty is untrusted
	Token               string
	ExpectedFingerprint string
}

// CreateSource adds a source, enabled and never synced. Administrators only;
// audited (RULES S1).
func (l *Library) CreateSource(ctx context.Context, by actor.Actor, in NewSource) (Source, error) {
	err := mayCreate(by, sourceObject, "title", "type", "url", "ref", "pinnedCommit", "trustLevel", "expectedFingerprint", "token")
	if err != nil {
		return Source{}, err
	}
	s := Source{
		ID: l.World.NewID(), Type: in.Type, URL: strings.TrimSpace(in.URL), Ref: strings.TrimSpace(in.Ref), PinnedCommit: in.PinnedCommit,
		AccessToken: in.Token, TrustLevel: in.TrustLevel, ExpectedFingerprint: in.ExpectedFingerprint, Enabled: true,
		SyncStatus: NeverSynced, CreatedAt: l.World.Now(),
	}
	if s.TrustLevel == "" {
		s.TrustLevel = skill.Untrusted
	}
	if s.Title, err = label("title", in.Title); err != nil {
		return Source{}, err
	}
	if err := l.checkSource(s); err != nil {
		return Source{}, err
	}
	entry := audit.Record(l.World, by, audit.SourceCreated).About(s.ID, uuid.Nil, "").
		With("type", string(s.Type)).With("url", s.URL).With("level", string(s.TrustLevel))
	c := change.Change{Inserts: []change.Insert{insertSource(s)}, Audit: []audit.Entry{entry}}
	if _, err := change.One(ctx, l.Store, c); err != nil {
		return Source{}, err
	}
	return l.shown(l.Store.Source(ctx, s.ID))
}

func insertSource(s Source) change.Insert {
	row := []change.Value{
		sourceID.To(s.ID), sourceTitle.To(s.Title), sourceType.To(s.Type), sourceURL.To(s.URL), sourceRef.To(s.Ref),
		sourcePinned.To(s.PinnedCommit), sourceToken.To(s.AccessToken), sourceTrust.To(s.TrustLevel),
		sourceFingerprint.To(s.ExpectedFingerprint), sourceEnabled.To(s.Enabled), sourceSyncStatus.To(s.SyncStatus),
		sourceSyncError.To(""), sourceLastSyncedAt.Null(), sourceHeadCommit.To(""), sourceLeaseOwner.To(""),
		sourceLeaseUntil.Null(), sourceCreatedAt.To(s.CreatedAt),
	}
	return change.Insert{Table: sourcesTable, Row: row}
}

// checkSource refuses a source that no sync could read.
func (l *Library) checkSource(s Source) error {
	if err := checkLevel(s.TrustLevel); err != nil {
		return err
	}
	if s.Type == Authored {
		if s.URL != "" || s.Ref != "" || s.PinnedCommit != "" || s.AccessToken != "" || s.ExpectedFingerprint != "" {
			return fault.New(fault.BadInput, "url, ref, pinnedCommit, token and expectedFingerprint must be left out for an authored source: its skills are written here.")
		}
		return nil
	}
	if err := checkAddress(s.Type, s.URL, l.EnterpriseHosts); err != nil {
		return err
	}
	switch {
	case len(s.Ref) > maxName || strings.ContainsAny(s.Ref, " \t\n\x00\\~^:?*[") || strings.HasPrefix(s.Ref, "-"):
		return fault.New(fault.BadInput, "ref must be the name of a branch or tag, or a commit.")
	case s.PinnedCommit != "" && !isHex(s.PinnedCommit, 40):
		return fault.New(fault.BadInput, "pinnedCommit must be 40 lower-case hexadecimal digits.")
	case s.ExpectedFingerprint != "" && !isHex(s.ExpectedFingerprint, 64):
		return fault.New(fault.BadInput, "expectedFingerprint must be 64 lower-case hexadecimal digits.")
	}
	return checkToken(s.AccessToken)
}

func checkLevel(level skill.TrustLevel) error {
	if _, err := skill.ParseTrustLevel(string(level)); err != nil {
		return fault.Wrap(fault.BadInput, err, "trustLevel must be untrusted, community, verified or first_party.")
	}
	return nil
}

func checkToken(token string) error {
	if len(token) > 1000 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.New(fault.BadInput, "token must be at most 1000 visible ASCII characters.")
	}
	return nil
}

func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}
