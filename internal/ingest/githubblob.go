package ingest

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign/countersign/internal/fault"
)

const (
	// oneByOne is how many files of a repository are asked for singly before the
	// rest is taken from an archive.
	oneByOne = 8
	// maxKept bounds what an archive may leave in memory, and maxArchived what
	// its repository may hold for it to be asked for at all; both in bytes.
	maxKept, maxArchived = 64 << 20, 512 << 20
)

// Blob implements Repository. The content is shared and must not be changed.
//
// The first few files are asked for one by one. Who wants more gets the files of all
// skills at once, from the commit's archive, which costs one request. An archive is
// not the tree (export-ignore leaves files out, export-subst and LFS change
// them), so only what has the hash of the tree is taken from it, and the rest is asked
// for one by one as well.
func (r *gitHubRepository) Blob(ctx context.Context, hash string, max int64) ([]byte, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	file, listed := r.files[hash]
	switch {
	case !listed:
		return nil, fault.New(fault.Unavailable, "the object %s of %s was not listed", hash, r.name)
	case file.size > max:
		return nil, &tooLarge{size: file.size, max: max}
	}
	if content, ok := r.known(hash); ok {
		return content, nil
	}
	if r.alone >= oneByOne && !r.archived[file.commit] {
		r.archived[file.commit] = true
		if err := r.readArchive(ctx, file.commit); err != nil {
			return nil, err
		}
		if content, ok := r.known(hash); ok {
			return content, nil
		}
	}
	r.alone++
	return r.ask(ctx, hash, file)
}

func (r *gitHubRepository) blobKey(hash string) cacheKey {
	return keyOf(r.token, r.base+"/git/blobs/"+hash)
}

func (r *gitHubRepository) known(hash string) ([]byte, bool) {
	if content, ok := r.kept[hash]; ok {
		return content, true
	}
	cached, ok := r.cache.get(r.blobKey(hash))
	return cached.body, ok
}

// ask reads one file: by commit and path where that needs no quota, by its hash
// from the API otherwise.
func (r *gitHubRepository) ask(ctx context.Context, hash string, file gitHubFile) ([]byte, error) {
	c := call{url: r.base + "/git/blobs/" + hash, token: r.token, accept: rawType}
	if r.site.raw != "" && r.token == "" && !strings.Contains(file.path, "\xff") {
		c = call{url: r.site.raw + "/" + r.name.Owner + "/" + r.name.Repo + "/" + file.commit + "/" + escapePath(file.path), accept: anyType}
	}
	s, err := r.begin(ctx, r.site, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.status != http.StatusOK {
		return nil, r.unexpected(s.status)
	}
	content, err := s.all(file.size)
	if err != nil && !errors.Is(err, errTooLong) {
		return nil, r.lost(ctx, s.host, err)
	}
	if err != nil || plumbing.ComputeHash(plumbing.BlobObject, content).String() != hash {
		return nil, fault.Wrap(fault.Unavailable, err, "%s answered with other bytes than those of %s in %s at %s; try again later",
			s.host, printable(file.path), r.name, file.commit)
	}
	r.cache.put(cachedBody{key: r.blobKey(hash), body: content})
	return content, nil
}

// wanted lists by path, of one commit, the files in folders of skills that are not
// known yet, as many as may be kept. Nil says that an archive would not pay.
func (r *gitHubRepository) wanted(commit string) map[string]string {
	folders, total := map[string]bool{}, int64(0)
	for _, entry := range r.lists[commit] {
		total += r.files[entry.Hash].size
		if strings.EqualFold(path.Base(entry.Path), skillFile) {
			folders[path.Dir(entry.Path)] = true
		}
	}
	if total > maxArchived {
		return nil
	}
	room, made := r.room, map[string]string{}
	for _, entry := range r.lists[commit] {
		size := r.files[entry.Hash].size
		if _, known := r.known(entry.Hash); known || size > min(room, maxBundleFile) || entry.Mode == modeSubmodule || !lies(entry.Path, folders) {
			continue
		}
		room -= size
		made[entry.Path] = entry.Hash
	}
	if len(made) <= oneByOne {
		return nil
	}
	return made
}

// lies reports whether a path lies in one of the folders or below one.
func lies(at string, folders map[string]bool) bool {
	for dir := path.Dir(at); ; dir = path.Dir(dir) {
		if folders[dir] || dir == "." {
			return folders[dir]
		}
	}
}

// readArchive keeps what is wanted of a commit's archive. One that is damaged, or
// longer than its tree allows, is left where it stops making sense.
func (r *gitHubRepository) readArchive(ctx context.Context, commit string) error {
	wanted := r.wanted(commit)
	if wanted == nil {
		return nil
	}
	c := call{url: r.base + "/tarball/" + commit, token: r.token, accept: anyType, redirects: 2}
	if r.site.archive != "" && r.token == "" {
		c.url = r.site.archive + "/" + r.name.Owner + "/" + r.name.Repo + "/tar.gz/" + commit
	}
	s, err := r.begin(ctx, r.site, c)
	if err != nil {
		return err
	}
	defer s.close()
	if s.status != http.StatusOK {
		return r.unexpected(s.status)
	}
	limit := int64(1 << 20)
	for _, entry := range r.lists[commit] {
		limit += r.files[entry.Hash].size + int64(2*len(entry.Path)) + 2048 // a header, its extension and padding
	}
	r.unpack(s, limit, wanted)
	if s.failed != nil {
		return r.lost(ctx, s.host, s.failed)
	}
	return nil
}

// unpack keeps the wanted files of an archive that have the hash they should have.
// Where the archive cannot be read further it ends, and after limit bytes, packed or not.
func (r *gitHubRepository) unpack(packed io.Reader, limit int64, wanted map[string]string) {
	plain, err := gzip.NewReader(io.LimitReader(packed, limit))
	if err != nil {
		return
	}
	archive := tar.NewReader(io.LimitReader(plain, limit))
	for len(wanted) > 0 {
		header, err := archive.Next()
		if err != nil {
			return
		}
		_, at, _ := strings.Cut(header.Name, "/") // the archive's own folder
		hash, yes := wanted[at]
		if !yes || header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeSymlink {
			continue
		}
		content := []byte(header.Linkname)
		if header.Typeflag == tar.TypeReg {
			if header.Size != r.files[hash].size {
				continue
			}
			content = make([]byte, header.Size)
			if _, err := io.ReadFull(archive, content); err != nil {
				return
			}
		}
		if plumbing.ComputeHash(plumbing.BlobObject, content).String() == hash {
			r.kept[hash] = content
			r.room -= int64(len(content))
			r.cache.put(cachedBody{key: r.blobKey(hash), body: content})
			delete(wanted, at)
		}
	}
}
