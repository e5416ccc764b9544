package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// Bounds of one fetch.
const (
	maxSkillFile = 1 << 20 // bytes; the parser's own limits are lower and say more
	maxFindings  = 200
	maxListed    = 500_000 // paths of all trees together
)

// reading is the state of one fetch.
type reading struct {
	ctx      context.Context
	host     Host
	hosts    hosts
	repos    map[string]Repository // by name, as opened for this fetch
	home     Name                  // the source's own repository; the token is for its owner only
	token    string
	skips    []SkipRule
	limit    int  // skill files to read
	scoped   bool // paths and identifiers carry owner/repo in front (a marketplace)
	progress func(library.Progress)

	items    map[string]library.Item // by path: no path has two
	commits  map[string]string       // the commit an item's file was read at
	seen     map[string]bool
	read     int // skill files
	listed   int // paths of all trees
	rejected int
	scopes   map[string]bool // scope → read completely so far
	findings []string
	unsaid   int // findings beyond maxFindings
}

// outcome is why a path was not loaded.
type outcome struct {
	status library.ItemStatus
	code   string
	reason string
}

func left(code, format string, args ...any) *outcome {
	return &outcome{status: library.ItemSkipped, code: code, reason: fmt.Sprintf(format, args...)}
}

func refused(code, format string, args ...any) *outcome {
	return &outcome{status: library.ItemRejected, code: code, reason: fmt.Sprintf(format, args...)}
}

// repository opens a repository, once. The token goes along for repositories of the
// source's owner only: a marketplace must not read somebody else's private repository
// with it.
func (r *reading) repository(name Name) (Repository, error) {
	key := strings.ToLower(name.String())
	if known, ok := r.repos[key]; ok {
		return known, nil
	}
	token := ""
	if name.Host == r.home.Host && strings.EqualFold(name.Owner, r.home.Owner) {
		token = r.token
	}
	repo, err := r.host.Open(r.ctx, name, token)
	if err == nil {
		r.repos[key] = repo
	}
	return repo, err
}

// open lists one commit of a repository. The commit beats the ref (RULES S1).
func (r *reading) open(name Name, ref, commit string) (*snapshot, error) {
	repo, err := r.repository(name)
	if err != nil {
		return nil, err
	}
	wanted := cmp.Or(commit, ref)
	if commit != "" && !isCommit(commit) {
		return nil, fault.New(fault.BadInput, "the pinned commit %q is not 40 hex digits", commit)
	}
	revision, err := repo.Resolve(r.ctx, wanted)
	if err != nil {
		return nil, err
	}
	entries, err := repo.Tree(r.ctx, revision.Commit)
	if err != nil {
		return nil, err
	}
	if r.listed += len(entries); r.listed > maxListed {
		return nil, fault.New(fault.BadInput, "%s is not read: with it the repositories of the source hold more than %d paths", name, maxListed)
	}
	return newSnapshot(name, repo, revision, entries), nil
}

func isCommit(text string) bool { return commitPattern.MatchString(strings.ToLower(text)) }

// pathIn names a path of a repository in the source.
func (r *reading) pathIn(scope, at string) string {
	if !r.scoped {
		return at
	}
	if at == "." {
		return scope
	}
	return scope + "/" + at
}

// leave records a path that is not loaded.
func (r *reading) leave(scope, at string, why *outcome) bool {
	return r.add(library.Item{Path: at, Scope: scope, Status: why.status, Code: why.code, Reason: why.reason, Offset: -1})
}

// add records an item unless one that says more is there for its path: a file
// that was read says more than one that was left out. It reports whether the
// item is new.
func (r *reading) add(item library.Item) bool {
	item.Path = printable(item.Path)
	was, met := r.items[item.Path]
	if met && (wasRead(was) || !wasRead(item)) {
		return false
	}
	r.items[item.Path] = item
	r.seen[item.Path] = true
	if item.Status == library.ItemRejected {
		r.rejected++
	}
	r.report()
	return true
}

func wasRead(item library.Item) bool { return item.Status != library.ItemSkipped }

func (r *reading) report() {
	if r.progress != nil {
		r.progress(library.Progress{Seen: len(r.seen), Done: len(r.items), Errors: r.rejected})
	}
}

// find records something about the source itself.
func (r *reading) find(format string, args ...any) {
	finding := fmt.Sprintf(format, args...)
	switch {
	case slices.Contains(r.findings, finding):
	case len(r.findings) == maxFindings:
		r.unsaid++
	default:
		r.findings = append(r.findings, finding)
	}
}

// fetched closes the reading.
func (r *reading) fetched(from Revision) library.Fetched {
	result := library.Fetched{Commit: from.Commit, Branch: from.Branch, Findings: r.findings}
	if r.unsaid > 0 {
		result.Findings = append(result.Findings, fmt.Sprintf("%d more findings are not listed", r.unsaid))
	}
	for _, item := range r.items {
		result.Items = append(result.Items, item)
	}
	slices.SortFunc(result.Items, func(a, b library.Item) int { return strings.Compare(a.Path, b.Path) })
	for scope, complete := range r.scopes {
		if complete {
			result.Reached = append(result.Reached, scope)
		}
	}
	slices.Sort(result.Reached)
	return result
}

// place is where a skill file was found.
type place struct {
	snap    *snapshot
	at      string
	content Entry // what is read: the entry at the path, or the one a link there leads to
	folder  bool  // the skill is the whole folder (false for a single_file source)
}

// identifier is the path that names the skill in its repository (RULES S6).
func (p place) identifier() string {
	if path.Base(p.at) == skillFile {
		return path.Dir(p.at)
	}
	return p.at
}

// bundled are the entries that belong to the skill.
func (p place) bundled() []Entry {
	if p.folder {
		return p.snap.under(path.Dir(p.at))
	}
	entry, _ := p.snap.lookup(p.at)
	return []Entry{entry}
}

// readSkill reads one skill file and records what became of it.
func (r *reading) readSkill(from place) (added bool, err error) {
	scope := from.snap.name.String()
	id := r.pathIn(scope, from.at)
	r.read++
	r.commits[id] = from.snap.revision.Commit
	data, err := from.snap.repo.Blob(r.ctx, from.content.Hash, maxSkillFile)
	var large *tooLarge
	if errors.As(err, &large) {
		return r.leave(scope, id, refused("too_large", "the file has %d bytes; the limit is %d", large.size, large.max)), nil
	}
	if err != nil {
		return false, err
	}
	item := library.Item{Path: id, Scope: scope, Offset: -1}
	file, err := skill.Parse(data)
	var rejection *skill.Rejection
	switch {
	case errors.As(err, &rejection):
		item.Status, item.Code, item.Reason = library.ItemRejected, string(rejection.Code), rejection.Reason
		if rejection.Hint != "" {
			item.Reason += "; " + rejection.Hint
		}
		item.Line, item.Offset = rejection.Line, rejection.Offset
		return r.add(item), nil
	case err != nil:
		return false, fault.Wrap(fault.Internal, err, "the skill file %s could not be parsed", id)
	}
	bundle, why, err := from.snap.bundle(r.ctx, path.Dir(from.at), from.bundled())
	if err != nil {
		return false, err
	}
	if why != nil {
		return r.leave(scope, id, why), nil
	}
	item.Status, item.File, item.Bundle = library.ItemLoaded, file, bundle
	item.Identifier = r.pathIn(scope, from.identifier())
	if file.Status == skill.ParseRepaired {
		item.Status, item.Reason = library.ItemRepaired, repairs(file)
	}
	from.snap.valid[path.Dir(from.at)] = true
	return r.add(item), nil
}

func repairs(file skill.File) string {
	var said []string
	for _, repair := range file.Repairs {
		said = append(said, repair.Message)
	}
	return strings.Join(said, "; ")
}

// printable gives a path as text that can be stored and shown: as it is, or
// quoted when it holds bytes that are no text.
func printable(at string) string {
	if isPrintable(at) {
		return at
	}
	return strconv.QuoteToGraphic(at)
}

func isPrintable(at string) bool {
	return utf8.ValidString(at) && strings.IndexFunc(at, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}
