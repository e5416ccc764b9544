package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/fault"
)

// GitHubOptions says what is read beside github.com, and by which clock.
type GitHubOptions struct {
	// Hosts are GitHub Enterprise servers, as in the addresses of their repositories:
	// git.example.com, or acme.ghe.com.
	Hosts []string
	// Networks are the private networks that Hosts may lie in. Nothing else may
	// resolve to an address that is not public.
	Networks []netip.Prefix
	// Proxy is asked to connect instead of dialling; nil dials. It sees to where names
	// lead: the addresses behind it are not looked at here. The environment's is not used.
	Proxy *url.URL
	// Now is the clock that says when a rate limit ends; nil is the system's.
	Now func() time.Time
}

// GitHub reads repositories from GitHub over https (RULES S2).
//
// A source's token is sent to the API host of its own GitHub and to nobody else.
// Answers are kept in memory by address and token, so that a repository in which
// nothing changed costs two conditional requests, and none for what a hash names.
//
// A commit that is asked for by its hash is whatever GitHub serves under the
// repository's name, which includes commits of its forks.
func GitHub(o GitHubOptions) (Host, error) { return newGitHub(o) }

func newGitHub(o GitHubOptions) (*gitHub, error) {
	g := &gitHub{
		sites: map[string]*site{"": publicSite}, networks: o.Networks, now: o.Now,
		waits: gitHubWaits, cache: newBodyCache(maxCached), paused: map[cacheKey]time.Time{},
	}
	if g.now == nil {
		g.now = time.Now
	}
	for _, host := range o.Hosts {
		made, err := enterprise(host)
		if err != nil {
			return nil, err
		}
		g.sites[made.host] = made
	}
	g.transport = &http.Transport{
		DialContext: g.dial, TLSHandshakeTimeout: g.waits.connect, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	if o.Proxy != nil {
		if o.Proxy.Scheme != "http" && o.Proxy.Scheme != "https" || o.Proxy.Hostname() == "" {
			return nil, errors.New("the proxy's address does not begin with http:// or https://")
		}
		g.transport.Proxy, g.proxy = http.ProxyURL(o.Proxy), o.Proxy.Hostname()
	}
	return g, nil
}

// gitHub is safe for concurrent use.
type gitHub struct {
	sites     map[string]*site // by Name.Host
	networks  []netip.Prefix
	proxy     string // its host
	now       func() time.Time
	waits     waits
	cache     *bodyCache
	transport *http.Transport // used without a Client, which would follow redirects and put addresses into errors

	// Tests stand a server of their own in the place of every host: route says
	// where to dial instead, exempt which address may be dialled though it is not public.
	route  func(address string) string
	exempt func(netip.AddrPort) bool

	mu     sync.Mutex
	paused map[cacheKey]time.Time // by host and token: when its rate limit ends
}

// site is one GitHub and the hosts it answers from.
type site struct {
	host    string   // in the addresses of repositories
	api     string   // where the API's paths begin; the only place a token goes to
	raw     string   // where files are public by commit and path; empty where nowhere
	archive string   // where archives are public; empty where the API must be asked
	hosts   []string // every host that may be asked or redirected to, exactly
}

var publicSite = &site{
	host: "github.com", api: "https://api.github.com", raw: "https://raw.githubusercontent.com", archive: "https://codeload.github.com",
	hosts: []string{"github.com", "api.github.com", "raw.githubusercontent.com", "codeload.github.com"},
}

var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// enterprise says where a GitHub Enterprise host answers: under /api/v3 on a server
// of one's own, at api.NAME.ghe.com where GitHub runs it.
func enterprise(host string) (*site, error) {
	host = strings.ToLower(host)
	_, notAddress := netip.ParseAddr(host)
	if !hostPattern.MatchString(host) || notAddress == nil || host == publicSite.host || strings.HasSuffix(host, ".github.com") {
		return nil, fmt.Errorf("%q is not the name of a GitHub Enterprise host, such as git.example.com", host)
	}
	made := &site{host: host, api: "https://" + host + "/api/v3", hosts: []string{host, "codeload." + host}}
	if strings.HasSuffix(host, ".ghe.com") {
		made.api = "https://api." + host
		made.hosts = append(made.hosts, "api."+host)
	}
	return made, nil
}

// Open implements Host. A repository that moved is not followed: whoever took its
// old name over could be read in its place, so a person says that it is still the
// one that was meant.
func (g *gitHub) Open(ctx context.Context, name Name, token string) (Repository, error) {
	where, known := g.sites[name.Host]
	if !known {
		return nil, fault.New(fault.Unavailable, "cannot read %s: %s is no host that this installation reads from", name, name.Host)
	}
	r := &gitHubRepository{
		gitHub: g, site: where, name: name, token: token,
		base:  where.api + "/repos/" + name.Owner + "/" + name.Repo,
		trees: map[string]string{}, files: map[string]gitHubFile{}, lists: map[string][]Entry{},
		kept: map[string][]byte{}, room: maxKept, archived: map[string]bool{},
	}
	var about struct {
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
	}
	status, err := r.get(ctx, "", changing, &about)
	switch {
	case err != nil:
		return nil, err
	case isRedirect(status):
		return nil, r.moved(ctx)
	case status == http.StatusNotFound:
		return nil, notFound("%s has no repository %s%s", where.host, name, map[bool]string{
			true: ", or it is private and was asked for without a token", false: ", or the source's token may not read it",
		}[token == ""])
	case status != http.StatusOK:
		return nil, r.unexpected(status)
	case !strings.EqualFold(about.FullName, name.Owner+"/"+name.Repo):
		return nil, movedTo(name, about.FullName)
	}
	r.defaultBranch = about.DefaultBranch
	return r, nil
}

// moved finds out where a repository moved to, for the message only.
func (r *gitHubRepository) moved(ctx context.Context) error {
	var about struct {
		FullName string `json:"full_name"`
	}
	if strings.HasPrefix(r.redirect, r.site.api+"/repositories/") {
		status, err := (&gitHubRepository{gitHub: r.gitHub, site: r.site, name: r.name, base: r.redirect}).get(ctx, "", changing, &about)
		if err != nil && (ctx.Err() != nil || fault.Is(err, fault.RateLimited)) {
			return err
		}
		if err != nil || status != http.StatusOK {
			about.FullName = ""
		}
	}
	return movedTo(r.name, about.FullName)
}

func movedTo(name Name, to string) error {
	owner, repo, _ := strings.Cut(to, "/")
	if _, ok := newName(owner, repo); !ok {
		return notFound("%s has moved; find out where to, and give the source its new address", name)
	}
	return notFound("%s has moved to %s, which is not followed; if that is still the repository you mean, give the source its new address", name, to)
}

// gitHubRepository reads one repository for one fetch.
type gitHubRepository struct {
	*gitHub
	site          *site
	name          Name
	token         string
	base          string // where its part of the API begins
	defaultBranch string
	redirect      string // where the last answer pointed to, if it did

	trees    map[string]string     // commit → its tree
	lists    map[string][]Entry    // commit → what its tree holds
	files    map[string]gitHubFile // by hash, every file of a listed tree
	kept     map[string][]byte     // by hash, what archives brought
	room     int64                 // bytes that archives may still bring
	archived map[string]bool       // commits whose archive was considered
	alone    int                   // files asked for one by one
}
