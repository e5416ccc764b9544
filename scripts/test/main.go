// Command test runs every check of the module in order and stops at the first that
// fails.
//
//	go run ./scripts/test            everything
//	go run ./scripts/test STEP...    these steps only
//
// Checks that need little come first. Vet and staticcheck look at packages built for
// the race detector, as the tests do, so that next to nothing is compiled twice; on an
// empty build cache those compilations are most of the time.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// step is one check. What it does must hold from the module's root, in any order, and
// without a terminal.
type step struct {
	name string
	does string
	run  func(io.Writer) error
}

// realClients are the Go tests that talk to Node's clients and servers. They are a step
// of their own, so that Node's own report is seen.
const realClients = "^TestReal(Clients|Servers)$"

// timeout is for one package. It is for tests that hang: a machine that is busy with
// other things may take much longer than two idle cores do.
const timeout = "20m"

// clientTests are the packages that have one: the transports alone with a schema for
// tests, the whole command, and what calls MCP servers.
var clientTests = []string{"./server", "./cmd/countersign", "./internal/mcp"}

var steps = []step{
	{"needs", "find what the tests need; as root on Debian, install it", findNeeds},
	{"modules", "download the Go modules", command("go", "mod", "download")},
	{"format", "gofumpt", format},
	{"vet", "go vet", command("go", "vet", "-race", "./...")},
	{"staticcheck", "staticcheck", staticcheck},
	{"generate", "generated Go code is what the generators make", generated},
	{"bundles", "committed web bundles are what their sources build", bundles},
	{"go", "Go tests on both databases: rules, import table, migrations, fuzz seeds, documents", goTests},
	{"simulation", "the runtime under 300 seeds, random commands and random turns, 1,000 conversations and their races, without the race detector", command("go", "test", "-count=1", "-timeout", timeout, "-run", "^(TestSimulation|TestMachine|TestRandomProcessTurns|TestManyConversations|TestMessageArrivesWhile)$", "./internal/agent", "./internal/chat")},
	{"benchmarks", "every benchmark still runs (once, measuring nothing)", benchmarks},
	{"clients", "real GraphQL clients in Node and a browser, real MCP servers in Node", clients},
}

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, names []string) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run this from the module's root: go run ./scripts/test")
	}
	var times, reports bytes.Buffer
	for _, s := range chosen {
		fmt.Fprintf(out, "== %s: %s\n", s.name, s.does)
		began := time.Now()
		err := s.run(io.MultiWriter(out, &reports))
		took := time.Since(began).Round(100 * time.Millisecond)
		if err != nil {
			return fmt.Errorf("== %s failed after %s: %w", s.name, took, err)
		}
		fmt.Fprintf(out, "== %s passed in %s\n", s.name, took)
		fmt.Fprintf(&times, "%10s  %s\n", took, s.name)
	}
	fmt.Fprintf(out, "\n== all passed\n%s\n%s", &times, summary(reports.String()))
	return nil
}

func choose(names []string) ([]step, error) {
	if len(names) == 0 {
		return steps, nil
	}
	var chosen []step
	for _, name := range names {
		i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no step %q; there are:\n%s", name, list())
		}
		chosen = append(chosen, steps[i])
	}
	return chosen, nil
}

func list() string {
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "  %-12s %s\n", s.name, s.does)
	}
	return out.String()
}

// reported are the lines in which go test and Node sum up.
var reported = regexp.MustCompile(`(?m)^\s*(ok  \t.*|(#|ℹ) (tests|pass|fail|cancelled|skipped|todo) \d+)$`)

// summary repeats what the test runners reported about themselves.
func summary(output string) string {
	var out strings.Builder
	for _, line := range reported.FindAllString(output, -1) {
		fmt.Fprintln(&out, strings.TrimSpace(line))
	}
	return out.String()
}

// command runs a program with its output where it belongs and nothing to read.
func command(name string, args ...string) func(io.Writer) error {
	return func(out io.Writer) error { return execute(out, exec.Command(name, args...)) }
}

func execute(out io.Writer, c *exec.Cmd) error {
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.Args[:min(len(c.Args), 6)], " "), err)
	}
	return nil
}

func format(out io.Writer) error {
	var wrong bytes.Buffer
	c := exec.Command("go", "run", "mvdan.cc/gofumpt", "-l", ".")
	c.Stdout, c.Stderr = &wrong, out
	if err := c.Run(); err != nil {
		return fmt.Errorf("gofumpt: %w\n%s", err, &wrong)
	}
	if wrong.Len() > 0 {
		return fmt.Errorf("not formatted (go run mvdan.cc/gofumpt -w .):\n%s", &wrong)
	}
	return nil
}

// staticcheck is built as it is and told to look at race builds.
func staticcheck(out io.Writer) error {
	folder, err := os.MkdirTemp("", "staticcheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "staticcheck")
	if err := execute(out, exec.Command("go", "build", "-o", program, "honnef.co/go/tools/cmd/staticcheck")); err != nil {
		return err
	}
	check := exec.Command(program, "./...")
	check.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -race"))
	return execute(out, check)
}

// bundles lets every folder of web/ that has a package compare its bundle with what
// its sources build.
func bundles(out io.Writer) error {
	packages, err := filepath.Glob("web/*/package.json")
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("there is no web/*/package.json to check")
	}
	for _, path := range packages {
		folder := filepath.Dir(path)
		if err := install(out, folder); err != nil {
			return err
		}
		if err := execute(out, exec.Command("npm", "--prefix", folder, "run", "check")); err != nil {
			return err
		}
	}
	return nil
}

// install gives a folder exactly the packages that its lock file names.
func install(out io.Writer, folder string) error {
	return execute(out, exec.Command("npm", "--prefix", folder, "ci", "--no-audit", "--no-fund"))
}

// passedReal are the lines of the tests themselves; those of their parts are indented.
var passedReal = regexp.MustCompile(`(?m)^--- PASS: TestReal`)

func clients(out io.Writer) error {
	if err := install(out, "clients"); err != nil {
		return err
	}
	var report bytes.Buffer
	args := []string{"test", "-race", "-count=1", "-v", "-run", realClients}
	c := exec.Command("go", append(args, clientTests...)...)
	if err := execute(io.MultiWriter(out, &report), c); err != nil {
		return err
	}
	if ran := len(passedReal.FindAllString(report.String(), -1)); ran != len(clientTests) {
		return fmt.Errorf("the tests of real peers ran in %d of %s", ran, strings.Join(clientTests, ", "))
	}
	return nil
}

// goTests leaves out the packages without tests, which vet has compiled already and
// which would only fill the report.
func goTests(out io.Writer) error {
	list := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	list.Stderr = out
	packages, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	args := []string{"test", "-race", "-timeout", timeout, "-skip", realClients}
	return execute(out, exec.Command("go", append(args, strings.Fields(string(packages))...)...))
}

var declaresBenchmark = regexp.MustCompile(`(?m)^func Benchmark[A-Z_]`)

// benchmarks runs each once. It says -short, by which a benchmark over much data knows
// that a little will do.
func benchmarks(out io.Writer) error {
	var folders []string
	err := sources(".", func(path string) error {
		folder := "./" + filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, "_test.go") || slices.Contains(folders, folder) {
			return nil
		}
		code, err := os.ReadFile(path)
		if err == nil && declaresBenchmark.Match(code) {
			folders = append(folders, folder)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		return errors.New("there are no benchmarks")
	}
	args := []string{"test", "-race", "-short", "-timeout", timeout, "-run", "^$", "-bench", ".", "-benchtime", "1x"}
	return execute(out, exec.Command("go", append(args, folders...)...))
}
