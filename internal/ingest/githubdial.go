package ingest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// dial connects to a host by whatever address it resolves to, and looks at that
// address at the last moment: a name may resolve to another one each time.
func (g *gitHub) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		Timeout: g.waits.connect,
		Control: func(_, resolved string, _ syscall.RawConn) error { return g.permit(host, resolved) },
	}
	if g.route != nil {
		address = g.route(address)
	}
	return dialer.DialContext(ctx, network, address)
}

// forbiddenAddress says that a host resolves to an address that must not be dialled.
type forbiddenAddress struct {
	host string
}

func (e *forbiddenAddress) Error() string {
	return e.host + " resolves to an address that is not public"
}

// permit refuses every address that is not public, but for enterprise hosts in the
// networks that were named for them, and for the proxy.
func (g *gitHub) permit(host, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("the address of %s cannot be read: %w", host, err)
	}
	address := to.Addr().Unmap().WithZone("")
	inside := func(network netip.Prefix) bool { return network.Contains(address) }
	switch {
	case g.exempt != nil && g.exempt(to), g.proxy != "" && host == g.proxy:
		return nil
	case to.Port() != 443:
	case isPublic(address), !slices.Contains(publicSite.hosts, host) && slices.ContainsFunc(g.networks, inside):
		return nil
	}
	return &forbiddenAddress{host: host}
}

// reserved are the networks of IANA's special-purpose registries that lie within
// what netip calls global unicast.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

// translated is how an IPv4 address looks behind NAT64: its last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

func isPublic(address netip.Addr) bool {
	if translated.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return address.IsGlobalUnicast() && !address.IsPrivate() &&
		!slices.ContainsFunc(reserved, func(network netip.Prefix) bool { return network.Contains(address) })
}

func prefixes(texts ...string) []netip.Prefix {
	made := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		made[i] = netip.MustParsePrefix(text)
	}
	return made
}
