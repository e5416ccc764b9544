package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/countersign/countersign/internal/network"
)

// reach is where a client may connect to.
type reach struct {
	networks []netip.Prefix // private ones that are named
	public   bool           // and any public address
}

// client is an HTTP client that dials only where it may, follows no redirect, uses no proxy
// of the environment, and reads little of what it is answered.
func client(r reach, timeout time.Duration) *http.Client {
	permit := func(_, resolved string, _ syscall.RawConn) error { return r.permitted(resolved) }
	dialer := net.Dialer{Timeout: timeout, Control: permit}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// permitted refuses, at the moment of dialling, an address that is not within reach: a
// name may resolve to another one each time.
func (r reach) permitted(resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("the address cannot be read: %w", err)
	}
	address := to.Addr().Unmap().WithZone("")
	switch {
	case r.public && network.Public(address), slices.ContainsFunc(r.networks, func(named netip.Prefix) bool { return named.Contains(address) }):
		return nil
	case !r.public:
		return errOnlyHTTPS
	}
	return errNotPublic
}

var (
	errNotPublic = errors.New("the server has an address that is not public")
	errOnlyHTTPS = errors.New("the server lies in no network of its own, and must be told over https")
)

// plain says what is wrong with a URL to post to: it is https, or http in a network of
// its own, and names nobody.
func plain(text string, networks []netip.Prefix) error {
	to, err := url.Parse(text)
	switch {
	case err != nil || to.Host == "" || to.User != nil || to.Scheme != "https" && to.Scheme != "http":
		return errors.New("url must be a plain http or https URL")
	case to.Scheme == "http" && len(networks) == 0:
		return errors.New("url must be https unless it lies in a network of its own")
	}
	return nil
}
