package ingest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// maxHops bounds a chain of links, as kernels do.
const maxHops = 40

// maxLinkTarget bounds the text of one link.
const maxLinkTarget = 4096

// linkProblem says why a link or a path leads nowhere in the tree.
type linkProblem struct {
	code, reason string
}

func (p *linkProblem) Error() string { return p.reason }

// resolve follows every link in a path, textually and inside the tree only. The
// result is the path of an entry or a folder that exists. The error is a
// *linkProblem, or what reading a link's blob gave.
func (s *snapshot) resolve(ctx context.Context, at string) (string, error) {
	pending := strings.Split(at, "/")
	done := "."
	for hops := 0; len(pending) > 0; {
		segment := pending[0]
		pending = pending[1:]
		switch segment {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", &linkProblem{"link_escapes", "leads out of the repository"}
			}
			done = path.Dir(done)
			continue
		}
		done = path.Join(done, segment)
		entry, isEntry := s.lookup(done)
		switch {
		case isEntry && entry.Mode == modeLink:
			if hops++; hops > maxHops {
				return "", &linkProblem{"link_loop", "goes in circles"}
			}
			target, err := s.linkTarget(ctx, entry)
			if err != nil {
				return "", err
			}
			pending = append(strings.Split(target, "/"), pending...)
			done = path.Dir(done)
		case isEntry && entry.Mode == modeSubmodule:
			return "", &linkProblem{"link_dangling", fmt.Sprintf("leads into the submodule %s, which is not read", done)}
		case !isEntry && !s.folders[done], isEntry && len(pending) > 0:
			return "", &linkProblem{"link_dangling", fmt.Sprintf("leads to %s, which does not exist", done)}
		}
	}
	return done, nil
}

func (s *snapshot) linkTarget(ctx context.Context, link Entry) (string, error) {
	content, err := s.repo.Blob(ctx, link.Hash, maxLinkTarget)
	var large *tooLarge
	if errors.As(err, &large) {
		return "", &linkProblem{"link_dangling", "has a target too long to be a path"}
	}
	if err != nil {
		return "", err
	}
	target := string(content)
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\\\x00") || hasDrive(target) {
		return "", &linkProblem{"link_absolute", fmt.Sprintf("has the absolute or impossible target %q", target)}
	}
	return target, nil
}

// hasDrive recognises a Windows drive letter.
func hasDrive(target string) bool {
	return len(target) >= 2 && target[1] == ':' && (target[0]|0x20) >= 'a' && (target[0]|0x20) <= 'z'
}
