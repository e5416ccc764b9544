// Package pgtest gives tests a PostgreSQL: the server that TEST_DATABASE_URL names,
// or else a temporary one, started once in a test process from the binaries of the
// distribution and gone when the process is, however it ends. A missing server
// fails the test with the command that installs it; nothing is skipped.
//
// Every test gets a schema of its own, so that tests share the server and may run
// in parallel. The functions are safe for concurrent use.
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/lib/pq" // registers the driver
)

// environment names a server to use instead of a temporary one.
const environment = "TEST_DATABASE_URL"

// shared is the server of this process.
var shared = sync.OnceValues(func() (string, error) {
	if given := os.Getenv(environment); given != "" {
		return given, nil
	}
	return start()
})

// URL is the server's own database: of the temporary server, or TEST_DATABASE_URL.
func URL() (string, error) { return shared() }

// Schema makes an empty schema for a test and returns a URL whose search_path is
// that schema alone. It is dropped when the test ends.
func Schema(t testing.TB) string {
	t.Helper()
	return scratch(t, "SCHEMA", func(base *url.URL, name string) {
		query := base.Query()
		query.Set("search_path", name)
		base.RawQuery = query.Encode()
	})
}

// Database makes an empty database for a test that needs one to itself. It is
// dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	return scratch(t, "DATABASE", func(base *url.URL, name string) { base.Path = "/" + name })
}

func scratch(t testing.TB, kind string, use func(base *url.URL, name string)) string {
	t.Helper()
	server, err := URL()
	if err != nil {
		t.Fatal(err)
	}
	made, drop, err := Scratch(server, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	base, err := url.Parse(server)
	if err != nil {
		t.Fatalf("pgtest: %s: %v", environment, err)
	}
	use(base, made)
	return base.String()
}

// Scratch makes a SCHEMA or DATABASE with a name of its own on the server and
// returns the name and what drops it.
func Scratch(server, kind string) (name string, drop func() error, err error) {
	var random [8]byte
	rand.Read(random[:])
	name = "test_" + hex.EncodeToString(random[:])
	if err := execute(server, "CREATE "+kind+" "+name); err != nil {
		return "", nil, err
	}
	how := map[string]string{"SCHEMA": " CASCADE", "DATABASE": " WITH (FORCE)"}[kind]
	return name, func() error { return execute(server, "DROP "+kind+" "+name+how) }, nil
}

func execute(server, statement string) error {
	db, err := sql.Open("postgres", server)
	if err != nil {
		return fmt.Errorf("pgtest: open the test server: %w", err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("pgtest: %s: %w", statement, err)
	}
	return nil
}
