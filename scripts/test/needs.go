package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// need is a program that the tests start and the module does not bring.
type need struct {
	what     string
	find     func() (string, error) // where it is or which one
	packages []string               // of Debian
	instead  string                 // what helps where Debian's package does not
}

var needs = []need{
	{"a C compiler, for the race detector", findCompiler, []string{"gcc", "libc6-dev"}, "install gcc or clang, or name one in CC"},
	{"PostgreSQL 15 or newer", findPostgres, []string{"postgresql"}, "install its server, or name one to test against in TEST_DATABASE_URL"},
	{"git", inPath("git"), []string{"git"}, "install git"},
	{"Node 20 or newer", findNode, []string{"nodejs"}, "see https://nodejs.org/en/download"},
	{"npm", inPath("npm"), []string{"npm"}, "it comes with Node; see https://nodejs.org/en/download"},
	{"Chromium", findChromium, []string{"chromium"}, "install Chromium or Chrome and name the program in COUNTERSIGN_CHROMIUM"},
}

// findNeeds reports what there is and, where it can, installs what there is not.
func findNeeds(out io.Writer) error {
	lacking := lack(out, needs)
	if len(lacking) > 0 && canInstall() {
		if err := aptInstall(out, lacking); err != nil {
			return err
		}
		lacking = lack(out, lacking)
	}
	if len(lacking) > 0 {
		return errors.New(advice(lacking))
	}
	return findCorpus(out)
}

func lack(out io.Writer, of []need) []need {
	var lacking []need
	for _, n := range of {
		found, err := n.find()
		if err != nil {
			fmt.Fprintf(out, "lacks %s: %v\n", n.what, err)
			lacking = append(lacking, n)
			continue
		}
		fmt.Fprintf(out, "has %s: %s\n", n.what, found)
	}
	return lacking
}

func advice(lacking []need) string {
	text := "the tests need programs that are not here:"
	var packages []string
	for _, n := range lacking {
		text += fmt.Sprintf("\n  %s: %s", n.what, n.instead)
		packages = append(packages, n.packages...)
	}
	return text + "\nOn Debian or Ubuntu: apt-get install -y " + strings.Join(packages, " ")
}

func canInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

func aptInstall(out io.Writer, lacking []need) error {
	args := []string{"install", "-y", "--no-install-recommends"}
	for _, n := range lacking {
		args = append(args, n.packages...)
	}
	for _, args := range [][]string{{"update"}, args} {
		apt := exec.Command("apt-get", args...)
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := execute(out, apt); err != nil {
			return fmt.Errorf("%w\n%s", err, advice(lacking))
		}
	}
	return nil
}

// findCorpus says which public skill files the tests will read. Without the variable
// they read none; a folder that is named must be there.
func findCorpus(out io.Writer) error {
	folder := os.Getenv("COUNTERSIGN_CORPUS")
	if folder == "" {
		fmt.Fprintln(out, "COUNTERSIGN_CORPUS is not set: no public skill files will be read")
		return nil
	}
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("COUNTERSIGN_CORPUS names no folder of public skill files: %w", err)
	}
	fmt.Fprintf(out, "has public skill files: %s\n", folder)
	return nil
}

func inPath(program string) func() (string, error) {
	return func() (string, error) { return exec.LookPath(program) }
}

func findCompiler() (string, error) {
	given, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return "", fmt.Errorf("go env CC: %w", err)
	}
	words := strings.Fields(string(given))
	if len(words) == 0 {
		return "", errors.New("go env CC names none")
	}
	return exec.LookPath(words[0])
}

const oldestPostgres, oldestNode = 15, 20

// findPostgres looks where the tests look (internal/pgtest).
func findPostgres() (string, error) {
	if os.Getenv("TEST_DATABASE_URL") != "" {
		return "the server that TEST_DATABASE_URL names", nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", errors.New("there is no postgres in the path or under /usr/lib/postgresql")
	}
	var err error
	for _, path := range found {
		if err = atLeast(oldestPostgres, path, "--version"); err == nil {
			return path, nil
		}
	}
	return "", err
}

func findNode() (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", err
	}
	return path, atLeast(oldestNode, path, "--version")
}

func findChromium() (string, error) {
	path := os.Getenv("COUNTERSIGN_CHROMIUM")
	if path == "" {
		path = "/usr/bin/chromium"
	}
	return exec.LookPath(path)
}

var firstNumber = regexp.MustCompile(`\d+`)

// atLeast asks a program for its version.
func atLeast(oldest int, program, flag string) error {
	said, err := exec.Command(program, flag).Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w", program, flag, err)
	}
	version, err := strconv.Atoi(firstNumber.FindString(string(said)))
	if err != nil || version < oldest {
		return fmt.Errorf("%s is %s, and %d is the oldest that will do", program, strings.TrimSpace(string(said)), oldest)
	}
	return nil
}
