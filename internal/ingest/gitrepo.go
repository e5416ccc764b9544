package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/countersign/countersign/internal/fault"
)

// Bounds of one tree. A few kilobytes of git objects can spell out a tree of
// billions of paths, so the count is a limit on time as well as on memory.
const (
	maxEntries    = 200_000
	maxPathLength = 4096
	maxObject     = 64 << 20 // bytes of one object of any kind
)

var (
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)
	modePattern   = regexp.MustCompile(`^[0-7]{6}$`)
	errNoSuchRef  = errors.New("no such reference")
)

// objectStore is what a repository is read from.
type objectStore interface {
	storer.EncodedObjectStorer
	storer.ReferenceStorer
}

// gitRepository reads git objects through go-git. Every object is hashed again
// on reading: go-git believes the file name, and a damaged mirror must not
// become a changed skill.
type gitRepository struct {
	name  Name
	store objectStore
}

// Resolve implements Repository. A branch wins over a tag of the same name.
func (g *gitRepository) Resolve(ctx context.Context, ref string) (Revision, error) {
	if err := interrupted(ctx); err != nil {
		return Revision{}, err
	}
	if ref == "" {
		return g.defaultBranch()
	}
	if hash := strings.ToLower(ref); commitPattern.MatchString(hash) {
		return g.commit(hash)
	}
	names := []string{"refs/heads/" + ref, "refs/tags/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		names = []string{ref}
	}
	for _, full := range names {
		revision, err := g.reference(plumbing.ReferenceName(full))
		if !errors.Is(err, errNoSuchRef) {
			return revision, err
		}
	}
	return Revision{}, notFound("%s has no branch or tag %q (a commit is named by all its 40 hex digits)", g.name, ref)
}

func (g *gitRepository) commit(hash string) (Revision, error) {
	if err := g.store.HasEncodedObject(plumbing.NewHash(hash)); errors.Is(err, plumbing.ErrObjectNotFound) {
		return Revision{}, notFound("%s has no commit %s", g.name, hash)
	}
	commit, err := g.peel(plumbing.NewHash(hash))
	if err != nil {
		return Revision{}, err
	}
	return Revision{Commit: commit.Hash.String()}, nil
}

// defaultBranch asks HEAD. It tells an empty repository from one whose HEAD names
// a branch that is not there.
func (g *gitRepository) defaultBranch() (Revision, error) {
	head, err := g.store.Reference(plumbing.HEAD)
	if err != nil {
		return Revision{}, g.corrupt(err, "its HEAD cannot be read")
	}
	if head.Type() == plumbing.HashReference {
		return g.commit(head.Hash().String())
	}
	revision, err := g.reference(head.Target())
	if !errors.Is(err, errNoSuchRef) {
		return revision, err
	}
	branches, err := g.branches()
	if err != nil {
		return Revision{}, err
	}
	if len(branches) == 0 {
		return Revision{}, notFound("%s is empty: it has no commit yet", g.name)
	}
	return Revision{}, notFound("the default branch %s of %s does not exist; name one of its branches as ref: %s",
		head.Target().Short(), g.name, strings.Join(branches, ", "))
}

// branches lists up to five branches, for a message.
func (g *gitRepository) branches() ([]string, error) {
	refs, err := g.store.IterReferences()
	if err != nil {
		return nil, g.corrupt(err, "its references cannot be listed")
	}
	defer refs.Close()
	var names []string
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Name().IsBranch() {
			names = append(names, ref.Name().Short())
		}
		if len(names) == 5 {
			return storer.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, g.corrupt(err, "its references cannot be listed")
	}
	return names, nil
}

func (g *gitRepository) reference(name plumbing.ReferenceName) (Revision, error) {
	if name.Validate() != nil {
		return Revision{}, errNoSuchRef // a name git refuses; it must not reach a file path
	}
	ref, err := storer.ResolveReference(g.store, name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return Revision{}, errNoSuchRef
	}
	if err != nil {
		return Revision{}, g.corrupt(err, "its reference %s cannot be read", name)
	}
	commit, err := g.peel(ref.Hash())
	if err != nil {
		return Revision{}, err
	}
	revision := Revision{Commit: commit.Hash.String()}
	if name.IsBranch() {
		revision.Branch = name.Short()
	}
	return revision, nil
}

// peel follows annotated tags to their commit.
func (g *gitRepository) peel(hash plumbing.Hash) (*object.Commit, error) {
	for range 16 {
		encoded, _, err := g.object(plumbing.AnyObject, hash)
		if err != nil {
			return nil, err
		}
		switch encoded.Type() {
		case plumbing.CommitObject:
			commit, err := object.DecodeCommit(g.store, encoded)
			if err != nil {
				return nil, g.corrupt(err, "its commit %s cannot be read", hash)
			}
			return commit, nil
		case plumbing.TagObject:
			tag, err := object.DecodeTag(g.store, encoded)
			if err != nil {
				return nil, g.corrupt(err, "its tag %s cannot be read", hash)
			}
			hash = tag.Target
		default:
			return nil, notFound("%s in %s is a %s, not a commit", hash, g.name, encoded.Type())
		}
	}
	return nil, notFound("%s in %s is a tag of a tag of a tag, without a commit in sight", hash, g.name)
}

// Tree implements Repository.
func (g *gitRepository) Tree(ctx context.Context, commit string) ([]Entry, error) {
	head, err := g.peel(plumbing.NewHash(commit))
	if err != nil {
		return nil, err
	}
	lister := treeLister{ctx: ctx, repo: g}
	if err := lister.list(head.TreeHash, ""); err != nil {
		return nil, err
	}
	return lister.entries, nil
}

type treeLister struct {
	ctx     context.Context
	repo    *gitRepository
	entries []Entry
	visited int // entries of every kind, so that folders of folders count too
}

func (l *treeLister) list(hash plumbing.Hash, dir string) error {
	if err := interrupted(l.ctx); err != nil {
		return err
	}
	encoded, _, err := l.repo.object(plumbing.TreeObject, hash)
	if err != nil {
		return err
	}
	tree, err := object.DecodeTree(l.repo.store, encoded)
	if err != nil {
		return l.repo.corrupt(err, "its folder %q cannot be read", dir)
	}
	seen := make(map[string]bool, len(tree.Entries))
	for _, entry := range tree.Entries {
		at := path.Join(dir, entry.Name)
		if l.visited++; l.visited > maxEntries || len(at) > maxPathLength {
			return fault.New(fault.BadInput, "%s is too large to read: more than %d paths, or a path longer than %d bytes",
				l.repo.name, maxEntries, maxPathLength)
		}
		if badName(entry.Name) || seen[entry.Name] {
			return l.repo.corrupt(fmt.Errorf("entry %q", entry.Name), "its folder %q holds an impossible or repeated name", dir)
		}
		seen[entry.Name] = true
		if entry.Mode == filemode.Dir {
			if err := l.list(entry.Hash, at); err != nil {
				return err
			}
			continue
		}
		l.entries = append(l.entries, Entry{Path: at, Mode: modeOf(entry.Mode), Hash: entry.Hash.String()})
	}
	return nil
}

func badName(name string) bool {
	return name == "" || name == "." || name == ".." || strings.Contains(name, "/")
}

func modeOf(mode filemode.FileMode) Mode { return Mode(fmt.Sprintf("%06o", uint32(mode))) }

// Blob implements Repository.
func (g *gitRepository) Blob(ctx context.Context, hash string, max int64) ([]byte, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	id := plumbing.NewHash(hash)
	size, err := g.store.EncodedObjectSize(id)
	if err != nil {
		return nil, g.damaged(err, id)
	}
	if size > max {
		return nil, &tooLarge{size: size, max: max}
	}
	_, content, err := g.object(plumbing.BlobObject, id)
	return content, err
}

// object reads an object and checks that its content is what its name says.
func (g *gitRepository) object(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, []byte, error) {
	if size, err := g.store.EncodedObjectSize(hash); err != nil || size < 0 || size > maxObject {
		return nil, nil, g.damaged(cmp.Or(err, fmt.Errorf("it has %d bytes", size)), hash)
	}
	encoded, err := g.store.EncodedObject(kind, hash)
	if err != nil {
		return nil, nil, g.damaged(err, hash)
	}
	reader, err := encoded.Reader()
	if err != nil {
		return nil, nil, g.damaged(err, hash)
	}
	defer reader.Close()
	content := make([]byte, encoded.Size())
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, nil, g.damaged(err, hash)
	}
	if plumbing.ComputeHash(encoded.Type(), content) != hash {
		return nil, nil, g.damaged(errors.New("its content has another hash"), hash)
	}
	return encoded, content, nil
}

func (g *gitRepository) damaged(cause error, hash plumbing.Hash) error {
	return g.corrupt(cause, "its object %s is missing or damaged", hash)
}

func (g *gitRepository) corrupt(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, cause,
		"the repository %s is damaged or incomplete: %s; run git fsck and fetch it again", g.name, fmt.Sprintf(format, args...))
}

// interrupted reports a cancelled or overdue fetch.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, context.Cause(ctx), "reading the source was cancelled or took too long")
}
