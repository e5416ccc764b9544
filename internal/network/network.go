// Package network knows which addresses are public: what whoever dials an address that
// somebody else named asks at the last moment. It holds no state.
package network

import (
	"net/netip"
	"slices"
)

// reserved are the networks of IANA's special-purpose registries that lie within
// what netip calls global unicast.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

// translated is how an IPv4 address looks behind NAT64: its last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// Public reports whether an address belongs to the public internet. An IPv4 address
// behind NAT64 is judged as itself.
func Public(address netip.Addr) bool {
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
