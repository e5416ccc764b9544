package ingest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	git "github.com/go-git/go-git/v5"

	"github.com/countersign/countersign/internal/fault"
)

// MirrorVariable names the directory of bare repositories (RULES S13).
const MirrorVariable = "COUNTERSIGN_GIT_MIRROR"

// Mirror reads owner/repo from dir/owner/repo.git instead of the network, and from
// dir/host/owner/repo.git what lies on an enterprise host.
func Mirror(dir string) Host { return mirror{dir: dir} }

type mirror struct {
	dir string
}

func (m mirror) Open(ctx context.Context, name Name, _ string) (Repository, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	if info, err := os.Stat(m.dir); err != nil || !info.IsDir() {
		return nil, fault.Wrap(fault.Unavailable, notADirectory(m.dir, err),
			"cannot read %s: the directory named by %s is missing or unreadable", name, MirrorVariable)
	}
	dir := filepath.Join(m.dir, name.Host, name.Owner, name.Repo+".git")
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("the mirror holds no %s; add it with git clone --mirror as %s.git under %s",
			name, name, MirrorVariable)
	}
	if err != nil || !info.IsDir() {
		return nil, fault.Wrap(fault.Unavailable, notADirectory(dir, err), "the mirror's %s.git cannot be read", name)
	}
	return openMirrored(name, dir)
}

func openMirrored(name Name, dir string) (Repository, error) {
	opened, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err,
			"the mirror's %s.git is no git repository that can be read (no HEAD, a broken config, or an object format other than sha1)", name)
	}
	return &gitRepository{name: name, store: opened.Storer}, nil
}

func notADirectory(path string, err error) error {
	if err != nil {
		return err
	}
	return &fs.PathError{Op: "open", Path: path, Err: errors.New("not a directory")}
}
