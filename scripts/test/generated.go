package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// generated runs the generators and compares every file before and after, so that it
// can be asked in a working copy with changes that are not committed yet.
func generated(out io.Writer) error {
	before, err := sums(".")
	if err != nil {
		return err
	}
	if err := execute(out, exec.Command("go", "generate", "./...")); err != nil {
		return err
	}
	after, err := sums(".")
	if err != nil {
		return err
	}
	if changed := differences(before, after); len(changed) > 0 {
		return fmt.Errorf("go generate ./... changed these files, which are now as they should be:\n  %s", strings.Join(changed, "\n  "))
	}
	return nil
}

type sum = [sha256.Size]byte

func sums(root string) (map[string]sum, error) {
	out := map[string]sum{}
	return out, sources(root, func(path string) error {
		content, err := os.ReadFile(path)
		out[path] = sha256.Sum256(content)
		return err
	})
}

// differences lists the paths whose content is not the same in both.
func differences(before, after map[string]sum) []string {
	var out []string
	for path, is := range after {
		if was, known := before[path]; !known || was != is {
			out = append(out, path)
		}
	}
	for path := range before {
		if _, kept := after[path]; !kept {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// sources visits every file below a folder but for what git and npm keep there.
func sources(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone since the folder was listed, as a program's temporary file is
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		if err := visit(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
