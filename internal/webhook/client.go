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

// client is an HTTP client that dials public addresses and those in named networks, and
// follows no redirect.
func client(networks []netip.Prefix, timeout time.Duration) *http.Client {
	permit := func(_, resolved string, _ syscall.RawConn) error { return permitted(networks, resolved) }
	dialer := net.Dialer{Timeout: timeout, Control: permit}
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// permitted refuses, at the moment of dialling, an address that is neither public nor in
// the networks: a name may resolve to another one each time.
func permitted(networks []netip.Prefix, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("the address cannot be read: %w", err)
	}
	address := to.Addr().Unmap().WithZone("")
	if network.Public(address) || slices.ContainsFunc(networks, func(named netip.Prefix) bool { return named.Contains(address) }) {
		return nil
	}
	return errNotPublic
}

var errNotPublic = errors.New("the server has an address that is not public")

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
