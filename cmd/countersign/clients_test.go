package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// startProcess starts the command as a newcomer does: in an empty folder and without a
// setting but a free port.
func startProcess(t *testing.T) *site {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), asCommand+"=1", "COUNTERSIGN_ADDR=127.0.0.1:0")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t}
	s.stop = func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the command did not end well: %v", err)
		}
	}
	t.Cleanup(s.stop)
	s.greet(out)
	return s
}

// TestRealClients runs the clients that people use, which are kept in clients/, against
// the command as a process of its own that has done what the quick start says.
func TestRealClients(t *testing.T) {
	s := startProcess(t)
	w := walkThrough(t, "../../docs/quickstart.md", s)
	operations, err := json.Marshal(object{
		"query":    object{"query": "query Q($first: Int) { viewer { name } skills(first: $first) { nodes { id } } }", "variables": object{"first": 3}},
		"mutation": object{"query": `mutation { updateSetting(input: {name: "server.runWait", value: "50"}) { setting { value } refusal { code } } }`},
		"subscription": object{
			"query":     "subscription S($runId: ID!) { runEvents(runId: $runId) { sequence kind } }",
			"variables": object{"runId": w.kept["RUN"]},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "npm", "run", "test:house")
	node.WaitDelay = 10 * time.Second // its own children may hold the output open
	node.Dir = filepath.Join("..", "..", "clients")
	if _, err := os.Stat(filepath.Join(node.Dir, "node_modules")); err != nil {
		t.Fatalf("the clients are not installed (%v); install Node 20 or newer and run: npm --prefix clients ci", err)
	}
	node.Env = append(os.Environ(),
		"COUNTERSIGN_URL="+s.url+"/graphql", "COUNTERSIGN_TOKEN="+s.token, "COUNTERSIGN_SIGN_IN="+s.code, "COUNTERSIGN_OPERATIONS="+string(operations))
	output, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("npm run test:house: %v (needs Node 20: apt-get install nodejs npm; and Chromium: apt-get install chromium)\n%s", err, output)
	}
	t.Logf("%s", output)
}
