package ingest

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
)

const (
	skillFile = "SKILL.md"
	// maxDepth counts the folders between where discovery began and SKILL.md.
	maxDepth = 10
)

// walk is one discovery below a folder of a snapshot.
type walk struct {
	*reading
	snap *snapshot
	root string
	// others, when set, is what becomes of every path that no walk before this
	// one has read: the walk only accounts for them.
	others *outcome
	// follow takes a folder outside the root that a link below it leads to; nil
	// where the whole repository is walked anyway.
	follow func(dir string) error

	met, added int // skill files seen, and those not in the source's items before
}

// run accounts for every skill file, link to skills and submodule below the root,
// outer folders before inner ones.
func (w *walk) run() error {
	entries := w.snap.under(w.root)
	var candidates []Entry
	for _, entry := range entries {
		if strings.EqualFold(path.Base(entry.Path), skillFile) {
			candidates = append(candidates, entry)
			w.seen[printable(w.id(entry.Path))] = true
		}
	}
	slices.SortFunc(candidates, func(a, b Entry) int {
		return cmp.Or(strings.Compare(path.Dir(a.Path), path.Dir(b.Path)), strings.Compare(a.Path, b.Path))
	})
	w.report()
	for _, candidate := range candidates {
		if err := interrupted(w.ctx); err != nil {
			return err
		}
		if err := w.consider(candidate); err != nil {
			return err
		}
	}
	return w.remaining(entries)
}

// id is a path as the source names it.
func (w *walk) id(at string) string { return w.pathIn(w.snap.name.String(), at) }

// gates are the reasons for which a skill file is left out before it is read. The
// first that applies is the one reported.
var gates = []func(*walk, Entry) *outcome{
	(*walk).nested, (*walk).skippedFolder, (*walk).tooDeep, (*walk).otherCase, (*walk).unprintable, (*walk).unselected,
}

func (w *walk) consider(candidate Entry) error {
	w.met++
	for _, gate := range gates {
		if why := gate(w, candidate); why != nil {
			w.leaveAt(candidate.Path, why)
			return nil
		}
	}
	id := w.id(candidate.Path)
	if was, met := w.items[id]; met && wasRead(was) {
		if w.commits[id] != w.snap.revision.Commit {
			w.find("%s is asked for at commit %s too; %s, which was asked for first, counts", id, w.snap.revision.Commit, w.commits[id])
		}
		return nil
	}
	content := candidate
	if candidate.Mode == modeLink {
		target, err := w.linkedSkill(candidate)
		if err != nil || target == nil {
			return err
		}
		content = *target
	}
	if candidate.Mode == modeSubmodule {
		w.leaveAt(candidate.Path, left("submodule", "is a submodule, which is not read"))
		return nil
	}
	if w.read >= w.limit {
		w.scopes[w.snap.name.String()] = false
		w.leaveAt(candidate.Path, left("file_limit", "the limit of %d skill files was reached before this one; "+
			"raise the limit or split the source", w.limit))
		return nil
	}
	added, err := w.readSkill(place{snap: w.snap, at: candidate.Path, content: content, folder: true})
	if added {
		w.added++
	}
	return err
}

func (w *walk) leaveAt(at string, why *outcome) {
	if w.leave(w.snap.name.String(), w.id(at), why) {
		w.added++
	}
}

// nested stops descent at a skill: what lies below it is its resource.
func (w *walk) nested(candidate Entry) *outcome {
	if outer, ok := w.skillAround(path.Dir(candidate.Path)); ok {
		return left("nested", "lies in the folder of the skill %s and is one of its files", outer)
	}
	return nil
}

// skillAround finds a loaded skill whose folder, not above the root, holds dir.
func (w *walk) skillAround(dir string) (string, bool) {
	for dir != w.root && dir != "." {
		dir = path.Dir(dir)
		if w.snap.valid[dir] {
			return dir, true
		}
	}
	return "", false
}

func (w *walk) skippedFolder(candidate Entry) *outcome {
	if reason, yes := skipped(w.skips, below(path.Dir(candidate.Path), w.root)); yes {
		return left("skipped_folder", "%s", reason)
	}
	return nil
}

func (w *walk) tooDeep(candidate Entry) *outcome {
	if depth(below(path.Dir(candidate.Path), w.root)) > maxDepth {
		return left("too_deep", "lies more than %d folders deep", maxDepth)
	}
	return nil
}

// otherCase reports skill.md and its like; beside a SKILL.md they lose.
func (w *walk) otherCase(candidate Entry) *outcome {
	if path.Base(candidate.Path) == skillFile {
		return nil
	}
	if _, exact := w.snap.lookup(path.Join(path.Dir(candidate.Path), skillFile)); exact {
		return left("case_conflict", "its folder holds SKILL.md as well, which is the one that counts")
	}
	return left("case_variant", "a skill file is called SKILL.md, in exactly these letters; rename it")
}

func (w *walk) unprintable(candidate Entry) *outcome {
	if isPrintable(candidate.Path) {
		return nil
	}
	return refused("path_unreadable", "its path holds bytes or characters that cannot be shown")
}

// unselected applies to every path of a walk that only accounts for the rest.
func (w *walk) unselected(Entry) *outcome { return w.others }

// linkedSkill says which file a linked SKILL.md stands for. A link to a skill
// that has its own place is an alias and reads nothing.
func (w *walk) linkedSkill(link Entry) (*Entry, error) {
	target, err := w.snap.resolve(w.ctx, link.Path)
	var problem *linkProblem
	if errors.As(err, &problem) {
		w.find("the link %s %s", printable(w.id(link.Path)), problem.reason)
		w.leaveAt(link.Path, refused(problem.code, "is a link that %s", problem.reason))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entry, isFile := w.snap.lookup(target)
	switch {
	case !isFile:
		w.leaveAt(link.Path, refused("link_to_folder", "is a link to the folder %s", target))
		return nil, nil
	case path.Base(target) == skillFile:
		w.leaveAt(link.Path, left("alias", "is a link to %s, which is read in its own place", target))
		return nil, w.leadsTo(path.Dir(target))
	}
	w.find("%s is a link to %s and is read with its content", w.id(link.Path), target)
	return &entry, nil
}

// remaining accounts for links to folders with skills, for links that lead nowhere
// and for submodules.
func (w *walk) remaining(entries []Entry) error {
	for _, entry := range entries {
		var err error
		switch {
		case strings.EqualFold(path.Base(entry.Path), skillFile):
		case entry.Mode == modeLink:
			err = w.folderLink(entry)
		case entry.Mode == modeSubmodule:
			w.find("%s is a submodule at %s and is not read", printable(w.id(entry.Path)), entry.Hash)
			if _, inside := w.skillAround(entry.Path); !inside {
				w.leaveAt(entry.Path, left("submodule", "is a submodule, which is not read"))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) folderLink(link Entry) error {
	target, err := w.snap.resolve(w.ctx, link.Path)
	var problem *linkProblem
	if errors.As(err, &problem) {
		w.find("the link %s %s", printable(w.id(link.Path)), problem.reason)
		return nil
	}
	if err != nil {
		return err
	}
	if _, inside := w.skillAround(link.Path); inside || !w.snap.skilled[target] {
		return nil
	}
	w.leaveAt(link.Path, left("alias", "is a link to %s, whose skills are read in their own place", target))
	return w.leadsTo(target)
}

func (w *walk) leadsTo(dir string) error {
	if w.follow == nil || w.others != nil || within(dir, w.root) {
		return nil
	}
	return w.follow(dir)
}
