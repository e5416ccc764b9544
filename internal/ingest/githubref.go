package ingest

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign/countersign/internal/fault"
)

// maxTags bounds a chain of tags of tags, as in the mirror.
const maxTags = 16

// gitHubObject is how the API names a git object.
type gitHubObject struct {
	Type string `json:"type"`
	SHA  string `json:"sha"`
}

// Resolve implements Repository. A branch wins over a tag of the same name.
func (r *gitHubRepository) Resolve(ctx context.Context, ref string) (Revision, error) {
	if hash := strings.ToLower(ref); commitPattern.MatchString(hash) {
		return r.commit(ctx, hash)
	}
	if ref == "" {
		return r.ofDefault(ctx)
	}
	kinds, rest := []func(context.Context, string) (Revision, bool, error){r.branch, r.tag}, ref
	if short, full := strings.CutPrefix(ref, "refs/heads/"); full {
		kinds, rest = kinds[:1], short
	} else if strings.HasPrefix(ref, "refs/") {
		kinds = []func(context.Context, string) (Revision, bool, error){r.reference}
	}
	for _, find := range kinds {
		revision, found, err := find(ctx, rest)
		if found || err != nil {
			return revision, err
		}
	}
	return Revision{}, notFound("%s has no branch or tag %q (a commit is named by all its 40 hex digits)", r.name, ref)
}

// ofDefault reads the branch that the repository calls its default.
func (r *gitHubRepository) ofDefault(ctx context.Context) (Revision, error) {
	revision, found, err := r.branch(ctx, r.defaultBranch)
	if found || err != nil {
		return revision, err
	}
	var branches []struct {
		Name string `json:"name"`
	}
	status, err := r.get(ctx, "/branches?per_page=5", changing, &branches)
	switch {
	case err != nil:
		return Revision{}, err
	case status != http.StatusOK && status != http.StatusNotFound && status != http.StatusConflict:
		return Revision{}, r.unexpected(status)
	case len(branches) == 0:
		return Revision{}, notFound("%s is empty: it has no commit yet", r.name)
	}
	var names []string
	for _, branch := range branches {
		names = append(names, branch.Name)
	}
	return Revision{}, notFound("the default branch %s of %s does not exist; name one of its branches as ref: %s",
		r.defaultBranch, r.name, strings.Join(names, ", "))
}

// branch finds a branch, and its tree in the same request. One that was renamed is
// not there: GitHub would lead to its new name.
func (r *gitHubRepository) branch(ctx context.Context, name string) (Revision, bool, error) {
	if plumbing.NewBranchReferenceName(name).Validate() != nil {
		return Revision{}, false, nil
	}
	var found struct {
		Name   string `json:"name"`
		Commit struct {
			SHA    string `json:"sha"`
			Commit struct {
				Tree gitHubObject `json:"tree"`
			} `json:"commit"`
		} `json:"commit"`
	}
	status, err := r.get(ctx, "/branches/"+url.PathEscape(name), changing, &found)
	switch {
	case err != nil:
		return Revision{}, false, err
	case status == http.StatusNotFound, status == http.StatusConflict, isRedirect(status):
		return Revision{}, false, nil
	case status != http.StatusOK:
		return Revision{}, false, r.unexpected(status)
	case found.Name != name || !commitPattern.MatchString(found.Commit.SHA) || !commitPattern.MatchString(found.Commit.Commit.Tree.SHA):
		return Revision{}, false, r.unreadable("the branch " + name)
	}
	r.trees[found.Commit.SHA] = found.Commit.Commit.Tree.SHA
	return Revision{Commit: found.Commit.SHA, Branch: name}, true, nil
}

func (r *gitHubRepository) tag(ctx context.Context, name string) (Revision, bool, error) {
	return r.reference(ctx, "refs/tags/"+name)
}

// reference finds the commit behind a reference that is no branch.
func (r *gitHubRepository) reference(ctx context.Context, full string) (Revision, bool, error) {
	if plumbing.ReferenceName(full).Validate() != nil {
		return Revision{}, false, nil
	}
	var found struct {
		Ref    string       `json:"ref"`
		Object gitHubObject `json:"object"`
	}
	status, err := r.get(ctx, "/git/ref/"+escapePath(strings.TrimPrefix(full, "refs/")), changing, &found)
	switch {
	case err != nil:
		return Revision{}, false, err
	case status == http.StatusNotFound, status == http.StatusConflict:
		return Revision{}, false, nil
	case status != http.StatusOK:
		return Revision{}, false, r.unexpected(status)
	case found.Ref != full:
		return Revision{}, false, r.unreadable("the reference " + full)
	}
	revision, err := r.peel(ctx, found.Object)
	return revision, err == nil, err
}

// peel follows annotated tags to their commit.
func (r *gitHubRepository) peel(ctx context.Context, object gitHubObject) (Revision, error) {
	for range maxTags {
		switch {
		case !commitPattern.MatchString(object.SHA):
			return Revision{}, r.unreadable("a tag")
		case object.Type == "commit":
			return r.commit(ctx, object.SHA)
		case object.Type != "tag":
			return Revision{}, notFound("%s in %s is a %s, not a commit", object.SHA, r.name, object.Type)
		}
		var tag struct {
			Object gitHubObject `json:"object"`
		}
		status, err := r.get(ctx, "/git/tags/"+object.SHA, fixed, &tag)
		if err != nil {
			return Revision{}, err
		}
		if status != http.StatusOK {
			return Revision{}, r.unexpected(status)
		}
		object = tag.Object
	}
	return Revision{}, notFound("%s in %s is a tag of a tag of a tag, without a commit in sight", object.SHA, r.name)
}

// commit finds a commit by its hash.
func (r *gitHubRepository) commit(ctx context.Context, hash string) (Revision, error) {
	var found struct {
		SHA  string       `json:"sha"`
		Tree gitHubObject `json:"tree"`
	}
	status, err := r.get(ctx, "/git/commits/"+hash, fixed, &found)
	switch {
	case err != nil:
		return Revision{}, err
	case status == http.StatusNotFound, status == http.StatusConflict, status == http.StatusUnprocessableEntity:
		return Revision{}, notFound("%s has no commit %s", r.name, hash)
	case status != http.StatusOK:
		return Revision{}, r.unexpected(status)
	case found.SHA != hash || !commitPattern.MatchString(found.Tree.SHA):
		return Revision{}, r.unreadable("the commit " + hash)
	}
	r.trees[hash] = found.Tree.SHA
	return Revision{Commit: hash}, nil
}

// escapePath makes a path that is safe in a URL, its slashes kept.
func escapePath(at string) string {
	segments := strings.Split(at, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/")
}

func (r *gitHubRepository) unexpected(status int) error {
	if isRedirect(status) {
		return fault.New(fault.Unavailable, "%s sends the request for %s elsewhere, which is not followed", r.site.host, r.name)
	}
	return fault.New(fault.Unavailable, "%s answered %d %s for %s; try again later", r.site.host, status, http.StatusText(status), r.name)
}

func (r *gitHubRepository) unreadable(what string) error {
	return fault.New(fault.Unavailable, "%s did not answer what was asked about %s of %s; try again later", r.site.host, what, r.name)
}
