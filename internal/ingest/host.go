package ingest

import (
	"context"
	"regexp"
	"strings"

	"github.com/countersign/countersign/internal/fault"
)

// Name is the owner and the name of a repository, checked by newName: neither
// half can leave a folder or end up in a path of its own.
type Name struct {
	Host        string // of a GitHub Enterprise server; empty is github.com
	Owner, Repo string
}

func (n Name) String() string {
	if n.Host != "" {
		return n.Host + "/" + n.Owner + "/" + n.Repo
	}
	return n.Owner + "/" + n.Repo
}

var (
	ownerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	repoPattern  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
)

// newName checks both halves against what GitHub allows and takes one ".git" off
// the repository.
func newName(owner, repo string) (Name, bool) {
	repo = strings.TrimSuffix(repo, ".git")
	ok := ownerPattern.MatchString(owner) && repoPattern.MatchString(repo) &&
		repo != "." && repo != ".." && !strings.HasSuffix(repo, ".git")
	return Name{Owner: owner, Repo: repo}, ok
}

// Host holds repositories. Implementations may be called concurrently.
type Host interface {
	// Open finds a repository. The token is the source's, for this call only;
	// a host that asks for none ignores it. Errors: NotFound (the host can be
	// reached and has no such repository), Unavailable (it cannot be reached),
	// Forbidden (it refuses the token, or what the token asks for), RateLimited
	// (stop, and say when to try again). The methods of a Repository may return the same.
	Open(ctx context.Context, name Name, token string) (Repository, error)
}

// Repository is read as git objects, never through a checkout. It belongs to the
// one fetch that opened it.
type Repository interface {
	// Resolve finds the commit behind a branch, a tag or 40 hex digits; empty
	// asks for the default branch. NotFound says what was looked for.
	Resolve(ctx context.Context, ref string) (Revision, error)
	// Tree lists every file, link and submodule of a commit. A tree that cannot be
	// listed to its end is an error, never a shorter list (RULES S2).
	Tree(ctx context.Context, commit string) ([]Entry, error)
	// Blob reads a file of the tree whole. More than max bytes is a *tooLarge.
	Blob(ctx context.Context, hash string, max int64) ([]byte, error)
}

// Revision is a commit and, when a branch led to it, that branch.
type Revision struct {
	Commit, Branch string
}

// Entry is one leaf of a tree.
type Entry struct {
	Path string // from the root, slashes between, as the bytes in the tree
	Mode Mode
	Hash string
}

// Mode is git's mode of an entry as it prints it: six octal digits.
type Mode string

// The modes that are told apart. Everything else is a plain file.
const (
	modeLink      Mode = "120000"
	modeSubmodule Mode = "160000"
)

// tooLarge says that a blob was not read because of its size.
type tooLarge struct {
	size, max int64
}

func (e *tooLarge) Error() string { return "larger than the limit" }

// ByOwner sends the owners it names to a host of their own and everybody else to
// otherwise. The demo's repository lives in memory this way, beside the mirror.
func ByOwner(owners map[string]Host, otherwise Host) Host {
	folded := make(map[string]Host, len(owners))
	for owner, host := range owners {
		folded[strings.ToLower(owner)] = host
	}
	return byOwner{owners: folded, otherwise: otherwise}
}

type byOwner struct {
	owners    map[string]Host
	otherwise Host
}

func (h byOwner) Open(ctx context.Context, name Name, token string) (Repository, error) {
	if host, ok := h.owners[strings.ToLower(name.Owner)]; ok && name.Host == "" {
		return host.Open(ctx, name, token)
	}
	return h.otherwise.Open(ctx, name, token)
}

func notFound(format string, args ...any) error {
	return fault.New(fault.NotFound, format, args...)
}
