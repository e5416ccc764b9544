package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/network"
	"github.com/countersign/countersign/internal/remote"
)

// checkAddress takes https, and http on this machine alone.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return fault.New(fault.BadInput, "url must be an https address without user and fragment, such as https://tools.example.org/mcp; secrets belong in headers.")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return fault.New(fault.BadInput, "url must begin with https://; http is taken for this machine alone.")
	}
	return nil
}

// loopback reports whether a host names this machine, whatever it resolves to elsewhere.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

// address makes the transport to a server at an address.
func (c *Connector) address(to remote.Reach) (over sdk.Transport, release func(), err error) {
	if err := checkAddress(to.URL); err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, nil, err
	}
	plain := &http.Transport{
		DialContext:            c.dialer(u.Hostname()),
		TLSHandshakeTimeout:    c.options.OpenTimeout,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &sdk.StreamableClientTransport{
		Endpoint: to.URL,
		HTTPClient: &http.Client{
			Transport: bounded{next: plain, headers: to.Headers, host: u.Host},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("the server redirects; give the address it redirects to")
			},
		},
		MaxRetries:           -1, // a call is not repeated (RULES G1)
		DisableStandaloneSSE: true,
		MaxEventSize:         maxMessage,
	}, plain.CloseIdleConnections, nil
}

// dialer looks at the address that a host resolves to at the last moment. The
// environment's proxy is not used.
func (c *Connector) dialer(host string) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{Timeout: c.options.OpenTimeout, Control: func(_, resolved string, _ syscall.RawConn) error { return c.permit(host, resolved) }}
	return d.DialContext
}

// permit takes public addresses, this machine for who names it, and the private networks
// that the operator named.
func (c *Connector) permit(host, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("the address of %s cannot be read: %w", host, err)
	}
	address := to.Addr().Unmap().WithZone("")
	inside := func(named netip.Prefix) bool { return named.Contains(address) }
	switch {
	case loopback(host) && address.IsLoopback(), network.Public(address), slices.ContainsFunc(c.options.Networks, inside):
		return nil
	}
	return fmt.Errorf("%s resolves to an address that is not public; name its network in mcpNetworks", host)
}

// bounded sends a server's headers, to its host alone, and bounds what it answers.
type bounded struct {
	next    http.RoundTripper
	headers map[string]string
	host    string
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != b.host {
		return nil, fmt.Errorf("a request to %s, which is not the server", r.URL.Host)
	}
	r = r.Clone(r.Context())
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &limited{ReadCloser: response.Body, left: maxMessage}
	return response, nil
}

// limited breaks an answer that is longer than any may be: a cut one could be read as
// another answer.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the server's answer is too long")
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
