package ingest

import (
	"archive/tar"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// enterpriseHost is the GitHub Enterprise server of the tests.
const enterpriseHost = "git.example.com"

// fakeListing is how many lines GitHub lists of a tree before it cuts.
const fakeListing = 100_000

// fakeGitHub serves the repositories of a shelf as GitHub does, over TLS and under
// every host's name. One twist may misbehave before it answers.
type fakeGitHub struct {
	shelf  shelf
	server *httptest.Server
	host   *gitHub

	mu      sync.Mutex
	log     []string                                          // requests, as host/path
	headers []http.Header                                     // of the same requests
	twist   func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	tokens  map[string]string                                 // of private repositories, by name
	listing int                                               // lines before a tree is cut
	archive func(at string, content []byte) ([]byte, bool)    // what an archive makes of a file
}

// startFake starts a fake and a client of it. The caller closes it.
func startFake(s shelf) *fakeGitHub {
	f := &fakeGitHub{
		shelf: s, listing: fakeListing, tokens: map[string]string{},
		archive: func(_ string, content []byte) ([]byte, bool) { return content, true },
	}
	f.server = httptest.NewUnstartedServer(f)
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0) // broken connections are what some tests are about
	f.server.TLS = &tls.Config{Certificates: []tls.Certificate{fakeCertificate()}}
	f.server.StartTLS()
	f.host = f.client(GitHubOptions{Hosts: []string{enterpriseHost}})
	return f
}

// client makes a host that dials the fake, whatever it asks for.
func (f *fakeGitHub) client(o GitHubOptions) *gitHub {
	host, err := newGitHub(o)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(fakeCertificate().Certificate[0])
	if err != nil {
		panic(err)
	}
	roots.AddCert(leaf)
	host.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	at := netip.MustParseAddrPort(f.server.Listener.Addr().String())
	host.route = func(string) string { return at.String() }
	host.exempt = func(to netip.AddrPort) bool { return to == at }
	return host
}

func (f *fakeGitHub) close() {
	f.host.transport.CloseIdleConnections()
	f.server.CloseClientConnections()
	f.server.Close()
}

// requests are those made since the last call.
func (f *fakeGitHub) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	made := f.log
	f.log, f.headers = nil, nil
	return made
}

func (f *fakeGitHub) misbehave(twist func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.twist = twist
}

var fakeCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: append([]string{enterpriseHost, "codeload." + enterpriseHost, "localhost"}, publicSite.hosts...),
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
})

func (f *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.log = append(f.log, r.Host+r.URL.RequestURI())
	f.headers = append(f.headers, r.Header.Clone())
	twist := f.twist
	f.mu.Unlock()
	if twist != nil && twist(w, r) {
		return
	}
	escaped := r.URL.EscapedPath()
	if r.Host == enterpriseHost {
		rest, isAPI := strings.CutPrefix(escaped, "/api/v3")
		if !isAPI {
			http.Error(w, "no page here", http.StatusNotFound)
			return
		}
		escaped = rest
	}
	parts := strings.SplitN(strings.TrimPrefix(escaped, "/"), "/", 4)
	switch {
	case r.Host == "raw.githubusercontent.com" && len(parts) == 4:
		f.serveRaw(w, parts[0]+"/"+parts[1], parts[2], parts[3])
	case strings.HasPrefix(r.Host, "codeload.") && len(parts) == 4:
		f.serveArchive(w, r, parts[0]+"/"+parts[1], parts[3])
	case (r.Host == "api.github.com" || r.Host == enterpriseHost) && len(parts) >= 3 && parts[0] == "repos":
		f.serveAPI(w, r, parts[1]+"/"+parts[2], append(parts, "")[3])
	default:
		http.Error(w, "nothing here", http.StatusNotFound)
	}
}

// repository finds one, in whatever case.
func (f *fakeGitHub) repository(name string) (*gitRepository, string) {
	for full, store := range f.shelf {
		if strings.EqualFold(full, name) {
			owner, repo, _ := strings.Cut(full, "/")
			return &gitRepository{name: Name{Owner: owner, Repo: repo}, store: store}, full
		}
	}
	return nil, ""
}

func (f *fakeGitHub) serveAPI(w http.ResponseWriter, r *http.Request, name, rest string) {
	repo, full := f.repository(name)
	sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch needed := f.tokens[full]; {
	case repo == nil, needed != "" && sent == "":
		fail(w, http.StatusNotFound, "Not Found")
		return
	case needed != "" && sent != needed:
		fail(w, http.StatusUnauthorized, "Bad credentials: "+sent)
		return
	}
	answer, status := f.answer(repo, full, rest, r)
	switch body := answer.(type) {
	case nil:
		fail(w, status, http.StatusText(status))
	case []byte:
		_, _ = w.Write(body)
	case redirectTo:
		http.Redirect(w, r, string(body), http.StatusFound)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		etag := fmt.Sprintf("W/%q", fmt.Sprintf("%x", sha256.Sum256(text)))
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(text)
	}
}

type redirectTo string

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

type jsonMap = map[string]any

// answer is what the API says about a part of a repository.
func (f *fakeGitHub) answer(repo *gitRepository, full, rest string, r *http.Request) (any, int) {
	first, last, _ := strings.Cut(rest, "/")
	kind, id, _ := strings.Cut(last, "/")
	branch, _ := url.PathUnescape(last)
	switch {
	case rest == "":
		head := plumbing.ReferenceName("refs/heads/main")
		if ref, err := repo.store.Reference(plumbing.HEAD); err == nil {
			head = ref.Target()
		}
		return jsonMap{"full_name": full, "default_branch": head.Short(), "private": f.tokens[full] != ""}, 0
	case first == "branches" && last == "":
		names, _ := repo.branches()
		list := []jsonMap{}
		for _, name := range names {
			list = append(list, jsonMap{"name": name})
		}
		return list, 0
	case first == "branches":
		return f.branch(repo, branch)
	case first == "tarball":
		host := map[string]string{"api.github.com": "codeload.github.com"}[r.Host]
		if host == "" {
			host = "codeload." + r.Host
		}
		return redirectTo("https://" + host + "/" + full + "/legacy.tar.gz/" + last + "?token=" + archivePass), 0
	case first == "git" && kind == "ref":
		ref, err := repo.store.Reference(plumbing.ReferenceName("refs/" + id))
		if err != nil {
			return nil, http.StatusNotFound
		}
		return jsonMap{"ref": "refs/" + id, "object": f.object(repo, ref.Hash())}, 0
	case first == "git":
		return f.gitObject(repo, kind, id, r.URL.Query().Get("recursive") != "")
	}
	return nil, http.StatusNotFound
}

// archivePass lets whoever has it read an archive, as GitHub's redirects do.
const archivePass = "let-me-in-for-five-minutes"

func (f *fakeGitHub) branch(repo *gitRepository, name string) (any, int) {
	ref, err := repo.store.Reference(plumbing.NewBranchReferenceName(name))
	if err != nil {
		return nil, http.StatusNotFound
	}
	commit, err := object.GetCommit(repo.store, ref.Hash())
	if err != nil {
		return nil, http.StatusInternalServerError
	}
	return jsonMap{"name": name, "commit": jsonMap{"sha": commit.Hash.String(), "commit": jsonMap{"tree": jsonMap{"sha": commit.TreeHash.String()}}}}, 0
}

func (f *fakeGitHub) object(repo *gitRepository, hash plumbing.Hash) jsonMap {
	kind := "missing"
	if encoded, err := repo.store.EncodedObject(plumbing.AnyObject, hash); err == nil {
		kind = encoded.Type().String()
	}
	return jsonMap{"type": kind, "sha": hash.String()}
}

func (f *fakeGitHub) gitObject(repo *gitRepository, kind, id string, recursive bool) (any, int) {
	hash := plumbing.NewHash(id)
	switch kind {
	case "commits":
		commit, err := object.GetCommit(repo.store, hash)
		if err != nil {
			return nil, http.StatusNotFound
		}
		return jsonMap{"sha": id, "tree": f.object(repo, commit.TreeHash)}, 0
	case "tags":
		tag, err := object.GetTag(repo.store, hash)
		if err != nil {
			return nil, http.StatusNotFound
		}
		return jsonMap{"sha": id, "object": f.object(repo, tag.Target)}, 0
	case "blobs":
		_, content, err := repo.object(plumbing.BlobObject, hash)
		if err != nil {
			return nil, http.StatusNotFound
		}
		return content, 0
	case "trees":
		listing := []jsonMap{}
		whole, err := f.list(repo, hash, "", recursive, &listing)
		if err != nil {
			return nil, http.StatusNotFound
		}
		return jsonMap{"sha": id, "tree": listing, "truncated": !whole}, 0
	}
	return nil, http.StatusNotFound
}

// list appends the lines of a tree until it is cut.
func (f *fakeGitHub) list(repo *gitRepository, hash plumbing.Hash, dir string, recursive bool, into *[]jsonMap) (whole bool, err error) {
	encoded, err := repo.store.EncodedObject(plumbing.TreeObject, hash)
	if err != nil {
		return false, err
	}
	tree, err := object.DecodeTree(repo.store, encoded)
	if err != nil {
		return false, err
	}
	for _, entry := range tree.Entries {
		if len(*into) == f.listing {
			return false, nil
		}
		at := strings.TrimPrefix(dir+"/"+entry.Name, "/")
		line := jsonMap{"path": at, "mode": modeOf(entry.Mode), "sha": entry.Hash.String(), "type": "tree"}
		if entry.Mode != filemode.Dir {
			line["type"] = "blob"
			line["size"], _ = repo.store.EncodedObjectSize(entry.Hash)
		}
		*into = append(*into, line)
		if entry.Mode == filemode.Dir && recursive {
			if whole, err := f.list(repo, entry.Hash, at, true, into); err != nil || !whole {
				return false, err
			}
		}
	}
	return true, nil
}

func (f *fakeGitHub) serveRaw(w http.ResponseWriter, name, commit, escaped string) {
	repo, full := f.repository(name)
	at, _ := url.PathUnescape(escaped)
	if repo == nil || f.tokens[full] != "" {
		http.Error(w, "404: Not Found", http.StatusNotFound)
		return
	}
	head, err := object.GetCommit(repo.store, plumbing.NewHash(commit))
	if err != nil {
		http.Error(w, "404: Not Found", http.StatusNotFound)
		return
	}
	tree, err := head.Tree()
	if err != nil {
		http.Error(w, "404: Not Found", http.StatusNotFound)
		return
	}
	entry, err := tree.FindEntry(at)
	if err != nil {
		http.Error(w, "404: Not Found", http.StatusNotFound)
		return
	}
	_, content, err := repo.object(plumbing.BlobObject, entry.Hash)
	if err != nil {
		http.Error(w, "500: broken", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(content)
}

func (f *fakeGitHub) serveArchive(w http.ResponseWriter, r *http.Request, name, commit string) {
	repo, full := f.repository(name)
	if repo == nil || f.tokens[full] != "" && r.URL.Query().Get("token") != archivePass {
		http.Error(w, "404: Not Found", http.StatusNotFound)
		return
	}
	entries, err := repo.Tree(r.Context(), commit)
	if err != nil {
		http.Error(w, "500: broken", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-gzip")
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	archive := tar.NewWriter(packed)
	folder := path.Base(name) + "-" + commit
	_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": commit}})
	_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755})
	for _, entry := range entries {
		f.pack(archive, repo, folder, entry)
	}
	_ = archive.Close() // the client may have gone, which is its business
	_ = packed.Close()
}

func (f *fakeGitHub) pack(archive *tar.Writer, repo *gitRepository, folder string, entry Entry) {
	name := folder + "/" + entry.Path
	_, content, err := repo.object(plumbing.BlobObject, plumbing.NewHash(entry.Hash))
	content, kept := f.archive(entry.Path, content)
	switch {
	case entry.Mode == modeSubmodule:
		_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case err != nil || !kept:
	case entry.Mode == modeLink:
		_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: string(content)})
	default:
		_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: memoryTime})
		_, _ = archive.Write(content)
	}
}
