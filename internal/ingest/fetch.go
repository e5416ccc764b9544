// Package ingest reads a source into library.Fetched: bytes of a git repository
// become skill files with their place, their bundle and, for everything that was
// not loaded, a reason.
//
// What may enter: the address, ref and token of a source, and a Host to read
// repositories from. Three things stand behind the Host interface: GitHub over
// https (RULES S2), the air-gapped mirror (RULES S13) and repositories built in
// memory. Nothing is written: repositories are read as git objects, never
// through a checkout.
//
// A Fetcher keeps no state between calls and may be called concurrently. One
// fetch reads sequentially, on the caller's goroutine, and calls progress there.
//
// # Identity
//
// A skill's identifier is the path of its folder in the source, "." for a
// SKILL.md at the root (RULES S6). In a marketplace owner/repo comes first, so that a root
// skill there is owner/repo. A single file that is not called SKILL.md has
// its own path as identifier, because its folder may hold others; the bundle of a
// single_file source is that one file.
//
// # What is complete
//
// An error means that nothing is known. A Fetched may still hold scopes that were
// not read to the end: a marketplace's repository that could not be reached, or one with
// more skill files than the limit (RULES S11). Such a scope is not in
// Reached, its paths say why, and its skills must not be orphaned (RULES S8). A
// scope that is neither in Reached nor named by an item is no longer part of the
// source.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// defaultFiles is the limit of skill files where the caller names none (RULES S11).
const defaultFiles = 500

// Fetcher implements library.Fetcher over a host.
type Fetcher struct {
	host  Host
	skips []SkipRule
	hosts hosts
}

var _ library.Fetcher = (*Fetcher)(nil)

// New makes a fetcher that leaves out the folders of DefaultSkips, or of the
// given rules instead if there are any.
func New(host Host, skips ...SkipRule) *Fetcher {
	if len(skips) == 0 {
		skips = DefaultSkips()
	}
	return &Fetcher{host: host, skips: skips}
}

// Beside makes a fetcher that takes addresses on enterprise hosts too.
func (f *Fetcher) Beside(enterprise ...string) *Fetcher {
	with := *f
	with.hosts = nil
	for _, host := range enterprise {
		with.hosts = append(with.hosts, strings.ToLower(host))
	}
	return &with
}

// Fetch implements library.Fetcher. A limit of zero files asks for the default.
func (f *Fetcher) Fetch(ctx context.Context, from library.Origin, limits library.FetchLimits,
	progress func(library.Progress),
) (library.Fetched, error) {
	read, ok := map[library.SourceType]func(*reading, library.Origin) (Revision, error){
		library.Repo:        (*reading).repo,
		library.SingleFile:  (*reading).singleFile,
		library.Marketplace: (*reading).marketplace,
	}[from.Type]
	if !ok {
		return library.Fetched{}, fault.New(fault.BadInput, "a source of type %s is not read from anywhere", from.Type)
	}
	r := &reading{
		ctx: ctx, host: f.host, hosts: f.hosts, repos: map[string]Repository{}, token: from.Token, skips: f.skips, limit: cmp.Or(max(limits.Files, 0), defaultFiles),
		scoped: from.Type == library.Marketplace, progress: progress,
		items: map[string]library.Item{}, commits: map[string]string{}, seen: map[string]bool{}, scopes: map[string]bool{},
	}
	revision, err := read(r, from)
	if err != nil {
		return library.Fetched{}, err
	}
	return r.fetched(revision), nil
}

// repo reads every skill of a repository.
func (r *reading) repo(from library.Origin) (Revision, error) {
	name, err := r.hosts.repository(from.URL)
	if err != nil {
		return Revision{}, err
	}
	r.home = name
	snap, err := r.open(name, from.Ref, from.PinnedCommit)
	if err != nil {
		return Revision{}, err
	}
	r.scopes[name.String()] = true
	if err := (&walk{reading: r, snap: snap, root: "."}).run(); err != nil {
		return Revision{}, err
	}
	if len(r.items) == 0 {
		r.find("%s holds no SKILL.md at %s", name, snap.revision.Commit)
	}
	return snap.revision, nil
}

// singleFile reads one file. The ref in its URL is honoured: a pinned commit
// beats it, the source's own ref does not (RULES S3).
func (r *reading) singleFile(from library.Origin) (Revision, error) {
	address, err := r.hosts.file(from.URL)
	if err != nil {
		return Revision{}, err
	}
	r.home = address.name
	file, err := r.locate(address, from.PinnedCommit)
	if err != nil {
		return Revision{}, err
	}
	revision := file.snap.revision
	if from.Ref != "" && from.PinnedCommit == "" && from.Ref != revision.Branch && from.Ref != revision.Commit {
		r.find("the ref %q of the source is not used: the URL names its own", from.Ref)
	}
	if file.content.Path != file.at {
		r.find("%s is a link to %s and is read with its content", file.at, file.content.Path)
	}
	r.scopes[address.name.String()] = true
	if !isPrintable(file.at) {
		r.leave(address.name.String(), file.at, refused("path_unreadable", "its path holds bytes or characters that cannot be shown"))
		return revision, nil
	}
	_, err = r.readSkill(file)
	return revision, err
}

// locate finds where the ref ends and the path begins: at the first slash, from
// the left, for which both exist.
func (r *reading) locate(address fileAddress, pinned string) (place, error) {
	if _, err := r.repository(address.name); err != nil {
		return place{}, err
	}
	var tried error
	for i := 1; i < len(address.rest); i++ {
		ref, at := strings.Join(address.rest[:i], "/"), strings.Join(address.rest[i:], "/")
		snap, err := r.open(address.name, ref, pinned)
		if fault.Is(err, fault.NotFound) && pinned == "" {
			tried = cmp.Or(tried, err)
			continue
		}
		if err != nil {
			return place{}, err
		}
		target, err := snap.resolve(r.ctx, at)
		var problem *linkProblem
		if err != nil && !errors.As(err, &problem) {
			return place{}, err
		}
		if content, isFile := snap.lookup(target); err == nil && isFile {
			return place{snap: snap, at: at, content: content}, nil
		}
		tried = notFound("%s has no file %s at %s", address.name, at, cmp.Or(pinned, ref))
	}
	return place{}, tried
}
