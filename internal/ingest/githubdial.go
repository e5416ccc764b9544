package ingest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/countersign/countersign/internal/network"
)

// dial connects to a host by whatever address it resolves to, and looks at that
// address at the last moment: a name may resolve to another one each time.
func (g *gitHub) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
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
	return dialer.DialContext(ctx, protocol, address)
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
	inside := func(named netip.Prefix) bool { return named.Contains(address) }
	switch {
	case g.exempt != nil && g.exempt(to), g.proxy != "" && host == g.proxy:
		return nil
	case to.Port() != 443:
	case network.Public(address), !slices.Contains(publicSite.hosts, host) && slices.ContainsFunc(g.networks, inside):
		return nil
	}
	return &forbiddenAddress{host: host}
}
