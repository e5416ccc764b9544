package server_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign/countersign/server/internal/servertest"
)

// TestRealClients runs the tests in clients/, which use the clients that people
// use, against a server with the test schema.
func TestRealClients(t *testing.T) {
	h := open(t, nil)
	server := httptest.NewServer(h.server)
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "npm", "test")
	node.WaitDelay = 10 * time.Second // its own children may hold the output open
	node.Dir = filepath.Join("..", "clients")
	if _, err := os.Stat(filepath.Join(node.Dir, "node_modules")); err != nil {
		t.Fatalf("the clients are not installed (%v); install Node 20 or newer and run: npm --prefix clients ci", err)
	}
	node.Env = append(os.Environ(),
		"COUNTERSIGN_URL="+server.URL+"/graphql",
		"COUNTERSIGN_TOKEN="+servertest.Token,
		"COUNTERSIGN_SIGN_IN="+servertest.Code,
		`COUNTERSIGN_OPERATIONS={
			"query": {"query": "query Q($n: String) { viewer { name } greeting(name: $n) }", "variables": {"n": "client"}},
			"mutation": {"query": "mutation { count }"},
			"subscription": {"query": "subscription S($to: Int) { ticks(to: $to) }", "variables": {"to": 5}}
		}`)
	output, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("npm test: %v (needs Node 20: apt-get install nodejs npm; and Chromium: apt-get install chromium)\n%s", err, output)
	}
	t.Logf("%s", output)
}
