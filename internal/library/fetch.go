package library

import (
	"context"

	"github.com/countersign/countersign/internal/skill"
)

// SourceType says how a source is read (RULES S1).
type SourceType string

// The source types.
const (
	SingleFile  SourceType = "single_file"
	Repo        SourceType = "repo"
	Marketplace SourceType = "marketplace"
	Authored    SourceType = "authored"
)

// Origin is the part of a source that a fetch needs.
type Origin struct {
	Type         SourceType
	URL          string // https://github.com/owner/repo, or a blob or raw URL of one file
	Ref          string // branch, tag or commit; empty asks for the default branch
	PinnedCommit string // 40 hex digits; beats Ref
	Token        string // in the clear, for this call only
}

// ItemStatus is what became of one path of a source.
type ItemStatus string

// The statuses. A fetch gives loaded, repaired, rejected or skipped; only the
// sync, which knows what was there before, gives unchanged and orphaned.
const (
	ItemLoaded    ItemStatus = "loaded"
	ItemRepaired  ItemStatus = "repaired"
	ItemRejected  ItemStatus = "rejected"
	ItemSkipped   ItemStatus = "skipped"
	ItemUnchanged ItemStatus = "unchanged"
	ItemOrphaned  ItemStatus = "orphaned"
)

// Item is one path that a fetch considered. No path is left out: what was not
// loaded carries a reason (SKILL-FILES, Discovery).
type Item struct {
	Path       string // in the source, with owner/repo in front for a marketplace
	Identifier string // RULES S6; empty unless loaded or repaired
	Scope      string // owner/repo the path was read from; a scope not reached protects its skills (RULES S8)
	Status     ItemStatus
	Code       string // why it was rejected or skipped, for machines
	Reason     string // the same for people
	Line       int    // 1-based, 0 unknown
	Offset     int    // 0-based byte offset in the file as read, -1 unknown
	File       skill.File
	Bundle     []skill.BundleFile
}

// Fetched is everything one complete read of a source found. An error instead
// of a Fetched means that nothing is known: it never orphans.
type Fetched struct {
	Commit   string   // the commit that was read
	Branch   string   // the branch that was asked for or is the default; empty for a commit
	Items    []Item   // sorted by path
	Reached  []string // scopes that were read completely
	Findings []string // about the source itself: a moved repository, a dangling link
}

// Progress counts files while a fetch goes on.
type Progress struct {
	Seen, Done, Errors int
}

// Fetcher reads a source. Implementations keep no state between calls and may be
// called concurrently. Errors are fault.Error values whose message a person can act on:
// NotFound (no such repository, ref or path), Unavailable (unreachable, rate limited),
// BadInput (the URL is not one this source type can read).
type Fetcher interface {
	Fetch(ctx context.Context, from Origin, limits FetchLimits, progress func(Progress)) (Fetched, error)
}

// FetchLimits bounds one fetch (RULES S11).
type FetchLimits struct {
	Files int // skill files
}
