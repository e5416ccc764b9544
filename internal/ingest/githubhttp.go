package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/fault"
)

// waits bounds one request.
type waits struct {
	connect time.Duration // to be connected, and again for the TLS handshake
	idle    time.Duration // without a byte: of the header, then of the body
	total   time.Duration // from the first byte sent to the last one read
}

var gitHubWaits = waits{connect: 10 * time.Second, idle: 30 * time.Second, total: 5 * time.Minute}

// maxAnswer bounds an answer of the API, in bytes. The longest is a listing, which
// GitHub cuts at 7 MB and says so.
const maxAnswer = 32 << 20

var (
	errStalled = errors.New("nothing arrived for too long")
	errTooSlow = errors.New("the whole answer took too long")
)

// call is one request. All are GET.
type call struct {
	url       string
	token     string // sent only if the address is the API's
	accept    string
	etag      string
	redirects int // how many are followed, to hosts of the site only
}

// stream is an answer whose body is still on its way. Whoever has it closes it.
type stream struct {
	status int
	header http.Header
	host   string

	ctx     context.Context // the caller's, under the request's limits
	body    io.ReadCloser
	stall   *time.Timer
	idle    time.Duration
	release func()
	failed  error // what ended the body before its end
}

// Read hands the body on and gives up when nothing arrives. What ends after that is
// not whole, though the server may end it properly on seeing us go.
func (s *stream) Read(p []byte) (int, error) {
	s.stall.Reset(s.idle)
	n, err := s.body.Read(p)
	s.stall.Stop()
	if err != nil {
		err = causeOf(s.ctx, err)
	}
	if err != nil && err != io.EOF {
		s.failed = err
	}
	return n, err
}

func (s *stream) close() {
	s.stall.Stop()
	s.release()
	_ = s.body.Close() // what was wanted of it has been read
}

// begin sends a request and returns when the header is there. Redirects are
// followed as often as the call says, to hosts of the site and without the token.
func (g *gitHub) begin(ctx context.Context, where *site, c call) (*stream, error) {
	to, err := url.Parse(c.url)
	if err != nil || to.Scheme != "https" || to.User != nil || to.Port() != "" || !slices.Contains(where.hosts, to.Host) {
		// Not the whole address: behind a ? it may let somebody in.
		return nil, fault.New(fault.Unavailable, "%s leads to %q, which is not https on a host that is read from", where.host, hostOf(to))
	}
	isAPI := strings.HasPrefix(c.url, where.api+"/")
	if !isAPI {
		c.token = ""
	}
	if until, paused := g.pausedUntil(c.token, to.Host); paused {
		return nil, limitedUntil(to.Host, c.token, until)
	}
	s, err := g.send(ctx, to, c)
	if err != nil {
		return nil, g.lost(ctx, to.Host, err)
	}
	if isRedirect(s.status) && c.redirects > 0 {
		location, err := to.Parse(s.header.Get("Location"))
		s.close()
		if err != nil {
			return nil, fault.New(fault.Unavailable, "%s leads to no address that can be read", to.Host)
		}
		return g.begin(ctx, where, call{url: location.String(), accept: c.accept, redirects: c.redirects - 1})
	}
	if err := g.judge(s, c.token, isAPI); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Host
}

func isRedirect(status int) bool {
	return slices.Contains([]int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	}, status)
}

// send makes the request under the limits of time.
func (g *gitHub) send(ctx context.Context, to *url.URL, c call) (*stream, error) {
	limited, cancel := context.WithTimeoutCause(ctx, g.waits.total, errTooSlow)
	limited, stop := context.WithCancelCause(limited)
	s := &stream{
		host: to.Host, ctx: limited, idle: g.waits.idle, release: func() { stop(nil); cancel() },
		stall: time.AfterFunc(g.waits.idle, func() { stop(errStalled) }),
	}
	request, err := http.NewRequestWithContext(limited, http.MethodGet, to.String(), nil)
	if err != nil {
		s.release()
		return nil, err
	}
	request.Header.Set("User-Agent", "countersign")
	request.Header.Set("Accept", c.accept)
	if c.accept == anyType {
		request.Header.Set("Accept-Encoding", "identity") // an archive is read as it is
	} else {
		request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.etag != "" {
		request.Header.Set("If-None-Match", c.etag)
	}
	response, err := g.transport.RoundTrip(request)
	if err != nil {
		err = causeOf(limited, err)
		s.stall.Stop()
		s.release()
		return nil, err
	}
	s.status, s.header, s.body = response.StatusCode, response.Header, response.Body
	return s, nil
}

// causeOf prefers what ended a request to how it ended.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lost says that a host could not be read, or that somebody stopped reading it.
func (g *gitHub) lost(ctx context.Context, host string, cause error) error {
	if err := interrupted(ctx); err != nil {
		return err
	}
	if forbidden := (*forbiddenAddress)(nil); errors.As(cause, &forbidden) {
		return fault.Wrap(fault.Unavailable, cause, "%s is not read: it resolves to an address that is not public", host)
	}
	if cause == errStalled || cause == errTooSlow {
		return fault.Wrap(fault.Unavailable, cause, "%s did not answer in time; try again later", host)
	}
	return fault.Wrap(fault.Unavailable, cause, "%s could not be read: no connection, or one that broke; try again later", host)
}

// all reads a body to its end. More than max bytes is errTooLong.
func (s *stream) all(max int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(s, max+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > max:
		return nil, errTooLong
	}
	return body, nil
}

var errTooLong = errors.New("the answer is longer than the limit")

const (
	jsonType = "application/vnd.github+json"
	rawType  = "application/vnd.github.raw+json"
	anyType  = "*/*"
)

// lifetime is how long an answer stays true.
type lifetime int

const (
	changing lifetime = iota // ask again, if only whether it changed
	fixed                    // what a hash names: it never changes
)

// get asks the API for a part of the repository and decodes what a 200 brings.
// Other statuses are returned if they may be an answer (judge), and are errors otherwise.
func (r *gitHubRepository) get(ctx context.Context, part string, lasts lifetime, into any) (int, error) {
	key := keyOf(r.token, r.base+part)
	known, cached := r.cache.get(key)
	if cached && lasts == fixed {
		return http.StatusOK, json.Unmarshal(known.body, into)
	}
	s, err := r.begin(ctx, r.site, call{url: r.base + part, token: r.token, accept: jsonType, etag: known.etag})
	if err != nil {
		return 0, err
	}
	defer s.close()
	r.redirect = s.header.Get("Location")
	switch {
	case s.status == http.StatusNotModified && cached:
		return http.StatusOK, json.Unmarshal(known.body, into)
	case s.status != http.StatusOK:
		return s.status, nil
	}
	body, err := s.all(maxAnswer)
	if errors.Is(err, errTooLong) {
		return 0, fault.New(fault.Unavailable, "%s answered with more than %d bytes for %s", s.host, maxAnswer, r.name)
	}
	if err != nil {
		return 0, r.lost(ctx, s.host, err)
	}
	kind, _, _ := mime.ParseMediaType(s.header.Get("Content-Type"))
	if err := json.Unmarshal(body, into); err != nil || kind != "application/json" {
		return 0, fault.Wrap(fault.Unavailable, err, "%s answered something that is not JSON for %s; "+
			"a proxy may stand between, or the service may be down", s.host, r.name)
	}
	if etag := s.header.Get("ETag"); etag != "" || lasts == fixed {
		r.cache.put(cachedBody{key: key, etag: etag, body: body})
	}
	return http.StatusOK, nil
}
