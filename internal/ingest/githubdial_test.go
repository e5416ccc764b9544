package ingest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/fault"
)

func TestGitHubAddresses(t *testing.T) {
	public := map[string]bool{
		"140.82.121.3": true, "8.8.8.8": true, "2606:50c0:8000::153": true, "64:ff9b::8c52:7903": true, "::ffff:140.82.121.3": true,
		"127.0.0.1": false, "127.8.8.8": false, "0.0.0.0": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "192.0.0.8": false, "192.0.2.1": false, "198.18.0.1": false, "203.0.113.9": false,
		"224.0.0.1": false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false, "::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fc00::1": false, "fd12::1": false, "fec0::1": false, "ff02::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "2001::1": false, "100::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "::10.0.0.1": false,
	}
	g, err := newGitHub(GitHubOptions{Hosts: []string{"localhost"}, Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	check(t, err)
	for text, want := range public {
		t.Run(fmt.Sprintf("S2 the address %s may be dialled: %t", text, want), func(t *testing.T) {
			err := g.permit("github.com", netip.AddrPortFrom(netip.MustParseAddr(text), 443).String())
			if (err == nil) != want {
				t.Errorf("error %v", err)
			}
		})
	}
	for name, c := range map[string]struct {
		host, at string
		want     bool
	}{
		"a named network is for enterprise hosts":       {"localhost", "10.1.2.3:443", true},
		"a named network is not for github.com":         {"api.github.com", "10.1.2.3:443", false},
		"other private networks stay closed":            {"localhost", "10.2.2.3:443", false},
		"a named network opens no other port":           {"localhost", "10.1.2.3:22", false},
		"no other port of a public address is dialled":  {"github.com", "140.82.121.3:8443", false},
		"what is no address is not dialled":             {"github.com", "140.82.121.3", false},
		"a named network, as an IPv6 address writes it": {"localhost", "[::ffff:10.1.2.3]:443", true},
	} {
		t.Run("S2 "+name, func(t *testing.T) {
			if err := g.permit(c.host, c.at); (err == nil) != c.want {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("S2 a name that resolves to this machine is not dialled", func(t *testing.T) {
		_, err := g.Open(ctx, Name{Host: "localhost", Owner: "o", Repo: "r"}, secret)
		wantError(t, err, fault.Unavailable, "localhost is not read: it resolves to an address that is not public")
	})
	t.Run("S2 a name that comes to resolve to a private address is not dialled", func(t *testing.T) {
		fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
		there := fake.host.route
		fake.host.route = func(address string) string {
			if strings.HasPrefix(address, "raw.") {
				return "10.0.0.1:443"
			}
			return there(address)
		}
		_, err := fetch(fake.host, repoAt("o/r", ""))
		wantError(t, err, fault.Unavailable, "raw.githubusercontent.com is not read: it resolves to an address that is not public")
	})
	t.Run("S2 a server that cannot prove its name is not read", func(t *testing.T) {
		fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
		fake.host.transport.TLSClientConfig = nil
		_, err := fetch(fake.host, repoAt("o/r", ""))
		wantError(t, err, fault.Unavailable, "api.github.com could not be read")
	})
}

func TestGitHubProxy(t *testing.T) {
	fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Host)
		there, err := net.Dial("tcp", fake.server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here); there.Close() }()
		_, _ = io.Copy(here, there)
		here.Close()
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	check(t, err)
	t.Run("S2 a proxy that was named is used, wherever it lies", func(t *testing.T) {
		host := fake.client(GitHubOptions{Proxy: at})
		defer host.transport.CloseIdleConnections()
		host.route, host.exempt = nil, nil
		got, err := fetch(host, repoAt("o/r", ""))
		check(t, err)
		wantLines(t, got, "a/SKILL.md loaded")
		if !slices.Equal(asked, []string{"CONNECT api.github.com:443", "CONNECT raw.githubusercontent.com:443"}) {
			t.Errorf("the proxy was asked for %q", asked)
		}
	})
	t.Run("S2 the environment's proxy is not used", func(t *testing.T) {
		if fake.host.transport.Proxy != nil {
			t.Error("a proxy is asked for")
		}
	})
	t.Run("S2 what is no proxy is refused", func(t *testing.T) {
		for _, text := range []string{"socks5://127.0.0.1:1", "127.0.0.1", "http://"} {
			bad, err := url.Parse(text)
			check(t, err)
			if _, err := GitHub(GitHubOptions{Proxy: bad}); err == nil {
				t.Errorf("%s is accepted", text)
			}
		}
	})
}
