package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	attemptBurst   = 10
	attemptEvery   = 6 * time.Second
	attemptsKeptOf = 10_000 // addresses
)

// attempts limits sign-ins that fail, by client address. It remembers a bounded
// number of addresses, those seen last.
type attempts struct {
	addresses *recent[netip.Prefix, *rate.Limiter]
}

func newAttempts() *attempts {
	return &attempts{newRecent[netip.Prefix, *rate.Limiter](attemptsKeptOf)}
}

// allow counts an attempt and reports whether it may be made.
func (a *attempts) allow(address netip.Addr) bool {
	return a.addresses.getOrAdd(network(address), func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(attemptEvery), attemptBurst)
	}).Allow()
}

// succeeded forgets the attempts of an address.
func (a *attempts) succeeded(address netip.Addr) { a.addresses.remove(network(address)) }

// network is what one client is taken to own: one IPv4 address, or an IPv6 /64.
func network(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // the zero Prefix for an address that is none
	return prefix
}

// clientAddress is the address a request comes from: the peer's or, where that is
// a trusted proxy, the last one in X-Forwarded-For that is not.
func (s *Server) clientAddress(r *http.Request) netip.Addr {
	address := peerAddress(r)
	if !s.trusted(address) {
		return address
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if address = next; !s.trusted(address) {
			break
		}
	}
	return address
}

// isTLS reports whether the client speaks TLS, to us or to a trusted proxy.
func (s *Server) isTLS(r *http.Request) bool {
	return r.TLS != nil || s.trusted(peerAddress(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func (s *Server) trusted(address netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address.Unmap()) })
}

func peerAddress(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(host)
	return address.Unmap().WithZone("")
}
