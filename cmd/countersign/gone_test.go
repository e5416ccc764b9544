package main

import (
	"bytes"
	"database/sql"
	"io"
	"net"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/countersign/countersign/internal/pgtest"
)

// cable is a connection to a database that can be cut.
type cable struct {
	network, server string // where it leads
	listener        net.Listener

	mu    sync.Mutex
	on    []byte // cuts when a client sends this; nil when it does not
	isCut bool
	open  map[net.Conn]struct{}
}

// layCable makes a cable to the server of a database and returns the database's
// address through it.
func layCable(t *testing.T, database string) (*cable, string) {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{network: "tcp", server: address.Host, open: map[net.Conn]struct{}{}}
	values := address.Query()
	if folder := values.Get("host"); strings.HasPrefix(folder, "/") {
		port := values.Get("port")
		if port == "" {
			port = "5432"
		}
		c.network, c.server = "unix", folder+"/.s.PGSQL."+port
	}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() { c.accept(&work) })
	t.Cleanup(func() {
		c.cut()
		c.listener.Close()
		work.Wait()
	})
	values.Del("host")
	values.Del("port")
	values.Set("sslmode", "disable")
	address.Host, address.RawQuery = c.listener.Addr().String(), values.Encode()
	return c, address.String()
}

func (c *cable) accept(work *sync.WaitGroup) {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(c.network, c.server)
		if err != nil || !c.admit(client, server) {
			client.Close()
			continue
		}
		work.Go(func() { c.forward(server, client) })
		work.Go(func() {
			_, _ = io.Copy(client, server)
			client.Close()
		})
	}
}

// admit notes both ends of a connection, unless the cable is cut.
func (c *cable) admit(ends ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range ends {
		if c.isCut {
			end.Close()
			continue
		}
		c.open[end] = struct{}{}
	}
	return !c.isCut
}

// forward passes on what a client sends, up to what cuts the cable.
func (c *cable) forward(server, client net.Conn) {
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil || c.cuts(buffer[:n]) {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (c *cable) cuts(sent []byte) bool {
	c.mu.Lock()
	hit := c.on != nil && bytes.Contains(sent, c.on)
	c.mu.Unlock()
	if hit {
		c.cut()
	}
	return hit
}

// cutOn cuts the cable as soon as a client sends a text, and before it arrives.
func (c *cable) cutOn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = []byte(text)
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut, c.on = true, nil
	for end := range c.open {
		end.Close()
	}
	clear(c.open)
}

// wasCut reports whether the cable is cut.
func (c *cable) wasCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isCut
}

func (c *cable) repair() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}

const createConfiguration = `mutation($provider: ID!) {
	createConfiguration(input: {name: "Written while the database went", providerId: $provider, model: "scripted"}) {
		configuration { id } refusal { code }
	}
}`

// state is what a mutation may change, and how many entries say so.
func state(s *site) object {
	return object{"rows": s.must(everything, nil), "trail": s.must(`{ auditTrail(first: 100) { nodes { index event } } }`, nil)}
}

// wantNothingStored runs the mutation while the database is gone, and again when it is
// back.
func wantNothingStored(s *site, gone, back func()) {
	s.t.Helper()
	provider := s.must("{ providers { nodes { id } } }", nil)["providers"].(object)["nodes"].([]any)[0].(object)["id"]
	before := state(s)
	gone()
	if a := s.ask(createConfiguration, object{"provider": provider}); a.code() != "UNAVAILABLE" {
		s.t.Errorf("got %d %s", a.Status, a.Raw)
	}
	back()
	if after := state(s); !reflect.DeepEqual(after, before) {
		s.t.Errorf("something was stored: %v, before %v", after, before)
	}
	if payload := s.must(createConfiguration, object{"provider": provider})["createConfiguration"].(object); payload["configuration"] == nil {
		s.t.Errorf("now that it is back: %v", payload)
	}
}

func TestDatabaseGone(t *testing.T) {
	for _, at := range []struct{ name, statement string }{
		{"before the first row is written", `INSERT INTO "configurations"`},
		{"between the row and its audit entry", `INSERT INTO "audit_entries"`},
		{"before the commit", "COMMIT"},
	} {
		t.Run("R5 PostgreSQL goes "+at.name+": UNAVAILABLE, and nothing is half-stored", func(t *testing.T) {
			c, through := layCable(t, pgtest.Schema(t))
			s := startSite(t, demoAt(through))
			wantNothingStored(s, func() { c.cutOn(at.statement) }, func() {
				if !c.wasCut() {
					t.Errorf("the mutation did not send %s", at.statement)
				}
				c.repair()
			})
		})
	}
	t.Run("R5 another program holds the SQLite file: UNAVAILABLE, and nothing is half-stored", func(t *testing.T) {
		file := t.TempDir() + "/countersign.db"
		s := startSite(t, demoAt("sqlite:"+file))
		other, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		var held *sql.Tx
		wantNothingStored(s, func() {
			if held, err = other.Begin(); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := held.Rollback(); err != nil {
				t.Fatal(err)
			}
		})
	})
}
