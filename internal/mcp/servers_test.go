package mcp

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/remote"
	"github.com/countersign/countersign/internal/tool"
)

// published finds a server that npm ci has put into clients/.
func published(t *testing.T, name string) (node, script string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v; see CONTRIBUTING.md", err)
	}
	script, err = filepath.Abs(filepath.Join("..", "..", "clients", "node_modules", "@modelcontextprotocol", name, "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("%v; run npm --prefix clients ci", err)
	}
	return node, script
}

// usable fails for a tool that an import would leave out.
func usable(t *testing.T, listed []remote.Definition, name string) {
	t.Helper()
	if !slices.ContainsFunc(listed, func(d remote.Definition) bool { return d.Name == name }) {
		t.Errorf("it has no tool %s among %d", name, len(listed))
	}
	for _, d := range listed {
		if _, err := tool.CompileSchema(d.Schema); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

// TestRealServers talks to the protocol's reference servers. The test command runs it in
// a step of its own, after npm ci.
func TestRealServers(t *testing.T) {
	c := connector(t, Options{})
	t.Run("G8 server-everything over stdio", func(t *testing.T) {
		node, script := published(t, "server-everything")
		to := remote.Reach{Server: remote.Server{ID: uuid.New(), Transport: remote.Stdio, Command: node, Args: []string{script, "stdio"}}}
		listed, err := c.List(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		usable(t, listed, "echo")
		if a := call(t, c, to, "echo", `{"message":"hello"}`); a.IsError || !strings.Contains(a.Text, "hello") {
			t.Errorf("got %+v", a)
		}
		again, err := c.List(t.Context(), to)
		if err != nil || len(again) != len(listed) {
			t.Fatalf("%d tools, %v", len(again), err)
		}
		for i := range listed {
			if listed[i].Digest() != again[i].Digest() {
				t.Errorf("%s has another digest", listed[i].Name)
			}
		}
	})
	t.Run("G8 server-everything over streamable HTTP", func(t *testing.T) {
		to := remote.Reach{Server: remote.Server{ID: uuid.New(), Transport: remote.StreamableHTTP, URL: everything(t)}}
		listed, err := c.List(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		usable(t, listed, "echo")
		if a := call(t, c, to, "echo", `{"message":"hello"}`); a.IsError || !strings.Contains(a.Text, "hello") {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("G8 server-filesystem writes where it may, and says where it may not", func(t *testing.T) {
		node, script := published(t, "server-filesystem")
		folder, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		to := remote.Reach{Server: remote.Server{ID: uuid.New(), Transport: remote.Stdio, Command: node, Args: []string{script, folder}}}
		listed, err := c.List(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		usable(t, listed, "write_file")
		note := filepath.Join(folder, "note.txt")
		if a := call(t, c, to, "write_file", fmt.Sprintf(`{"path":%q,"content":"Hello."}`, note)); a.IsError {
			t.Fatalf("got %+v", a)
		}
		if written, err := os.ReadFile(note); err != nil || string(written) != "Hello." {
			t.Errorf("%q, %v", written, err)
		}
		if a := call(t, c, to, "write_file", `{"path":"/etc/countersign","content":""}`); !a.IsError {
			t.Errorf("got %+v", a)
		}
	})
}

// everything starts server-everything at an address and waits until it listens.
func everything(t *testing.T) string {
	t.Helper()
	node, script := published(t, "server-everything")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, node, script, "streamableHttp")
	server.Env = append(os.Environ(), fmt.Sprint("PORT=", port))
	if err := server.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = server.Wait() })
	for range 200 {
		if conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			conn.Close()
			return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("it does not listen")
	return ""
}
