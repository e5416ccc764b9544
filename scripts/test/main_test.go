package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	t.Run("without names every step runs", func(t *testing.T) {
		if got, err := choose(nil); err != nil || len(got) != len(steps) {
			t.Errorf("%d steps, %v", len(got), err)
		}
	})
	t.Run("named steps run in the order given", func(t *testing.T) {
		got, err := choose([]string{"go", "vet"})
		if err != nil || len(got) != 2 || got[0].name != "go" || got[1].name != "vet" {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("an unknown name is answered with the list", func(t *testing.T) {
		if _, err := choose([]string{"lint"}); err == nil || !strings.Contains(err.Error(), "staticcheck") {
			t.Errorf("got %v", err)
		}
	})
}

func TestSummary(t *testing.T) {
	output := "?   \ta/b\t[no test files]\nok  \ta/c\t1.2s\n--- PASS: TestX\n    x_test.go:1: \n        ok 3 - a subtest of Node\n        # tests 14\n        # pass 14\nℹ fail 0\n# a comment\n"
	want := "ok  \ta/c\t1.2s\n# tests 14\n# pass 14\nℹ fail 0\n"
	if got := summary(output); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestGenerated(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("same.go", "1")
	write("changed.go", "1")
	write("gone.go", "1")
	write("web/node_modules/p/index.js", "1")
	before, err := sums(root)
	if err != nil {
		t.Fatal(err)
	}
	write("changed.go", "2")
	write("new.go", "1")
	write("web/node_modules/p/index.js", "2")
	if err := os.Remove(filepath.Join(root, "gone.go")); err != nil {
		t.Fatal(err)
	}
	after, err := sums(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range differences(before, after) {
		got = append(got, filepath.Base(path))
	}
	if want := []string{"changed.go", "gone.go", "new.go"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAtLeast(t *testing.T) {
	program := func(says string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+says+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for says, fits := range map[string]bool{
		"postgres (PostgreSQL) 15.4 (Debian 15.4-1)": true,
		"postgres (PostgreSQL) 14.9":                 false,
		"v20.20.2":                                   true,
		"no version":                                 false,
	} {
		t.Run(says, func(t *testing.T) {
			if err := atLeast(15, program(says), "--version"); (err == nil) != fits {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAdvice(t *testing.T) {
	got := advice([]need{{what: "Node", instead: "see there", packages: []string{"nodejs"}}, {what: "npm", packages: []string{"npm"}}})
	if !strings.Contains(got, "Node: see there") || !strings.Contains(got, "apt-get install -y nodejs npm") {
		t.Error(got)
	}
}
