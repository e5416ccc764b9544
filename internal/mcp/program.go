package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/remote"
)

// maxMessage bounds one message of a server, in bytes: what is longer breaks its session.
const maxMessage = 8 << 20

// endsWithin is how long a program has to end once its input is closed.
const endsWithin = 3 * time.Second

func (c *Connector) checkProgram() error {
	if c.options.NoPrograms {
		return fault.New(fault.BadInput, "This installation starts no programs (mcpPrograms: off); use a server over streamable_http.")
	}
	return nil
}

// program is a server that is a program, not started yet.
type program struct {
	command *exec.Cmd
	said    tail // what it wrote to its standard error

	mu      sync.Mutex
	started bool
	input   io.Closer
	ended   chan struct{}
}

// program makes the transport to a program. It starts in the temporary folder, where
// nothing of this server's lies.
func (c *Connector) program(to remote.Reach) (*program, error) {
	if err := c.checkProgram(); err != nil {
		return nil, err
	}
	env := environment(to.Env)
	path, err := lookUp(to.Command, env["PATH"])
	if err != nil {
		return nil, err
	}
	command := exec.Command(path, to.Args...)
	p := &program{command: command, ended: make(chan struct{})}
	command.Dir, command.Env, command.Stderr, command.WaitDelay = os.TempDir(), []string{}, &p.said, time.Second
	ofItsOwn(command)
	for name, value := range env {
		command.Env = append(command.Env, name+"="+value)
	}
	slices.Sort(command.Env)
	return p, nil
}

// environment is everything that a program gets: what was listed for it, and what no
// program does without. Nothing of this process's environment is in it, which holds keys.
func environment(listed map[string]string) map[string]string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if runtime.GOOS == "windows" {
		root := os.Getenv("SystemRoot")
		env = map[string]string{"SystemRoot": root, "PATH": filepath.Join(root, "System32")}
	}
	for name, value := range listed {
		env[name] = value
	}
	return env
}

// lookUp finds a program by the PATH that it will have.
func lookUp(command, path string) (string, error) {
	if filepath.IsAbs(command) {
		return command, nil
	}
	if filepath.Base(command) != command {
		return "", fmt.Errorf("command %s must be a name or an absolute path", command)
	}
	for _, folder := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(folder, command)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in %s; give its absolute path, or list PATH in env", command, path)
}

// Connect implements the SDK's Transport: it starts the program.
func (p *program) Connect(ctx context.Context) (sdk.Connection, error) {
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	input, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	p.mu.Lock()
	p.started, p.input = true, input
	p.mu.Unlock()
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // it closes the pipes: a program that ended ends its session
	}()
	return (&sdk.IOTransport{Reader: io.NopCloser(output), Writer: writer{input, p}, MaxLineLength: maxMessage}).Connect(ctx)
}

// writer is the program's input: closing it ends the program.
type writer struct {
	io.Writer
	program *program
}

func (w writer) Close() error { return w.program.Close() }

// Close ends the program: by closing its input, and by force if that is not enough.
func (p *program) Close() error {
	p.mu.Lock()
	started, input := p.started, p.input
	p.mu.Unlock()
	if !started {
		return nil
	}
	err := input.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	select {
	case <-p.ended:
		return err
	case <-time.After(endsWithin):
	}
	if killed := kill(p.command.Process); killed != nil && !errors.Is(killed, os.ErrProcessDone) {
		return errors.Join(err, killed)
	}
	<-p.ended
	return err
}

// explain adds to an error what the program said before it failed.
func (p *program) explain(err error) error {
	if said := p.said.String(); said != "" {
		return fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const maxTail = 200 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), ""))
}
