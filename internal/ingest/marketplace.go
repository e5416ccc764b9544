package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// market is the reading of one marketplace.
type market struct {
	*reading
	home  *snapshot
	root  string               // metadata.pluginRoot
	snaps map[string]*snapshot // by repository and revision asked for
	names map[string]Name      // folded owner/repo → the spelling met first
}

// marketplace reads the plugins of a marketplace, one result an entry: the skills
// it brought, or one item that says why it brought none.
func (r *reading) marketplace(from library.Origin) (Revision, error) {
	name, err := r.hosts.repository(from.URL)
	if err != nil {
		return Revision{}, err
	}
	r.home = name
	home, err := r.open(name, from.Ref, from.PinnedCommit)
	if err != nil {
		return Revision{}, err
	}
	m := &market{
		reading: r, home: home, snaps: map[string]*snapshot{},
		names: map[string]Name{strings.ToLower(name.String()): name},
	}
	list, err := m.load()
	if err != nil {
		return Revision{}, err
	}
	r.scopes[name.String()] = true
	m.root = list.pluginRoot
	for _, finding := range list.findings {
		r.find("%s", finding)
	}
	for i, entry := range list.plugins {
		if err := m.entry(i, entry); err != nil {
			return Revision{}, err
		}
	}
	rest := &walk{reading: r, snap: home, root: ".", others: left("not_in_plugin", "belongs to no plugin of the marketplace")}
	return home.revision, rest.run()
}

func (m *market) load() (manifest, error) {
	name := m.home.name
	data, err := m.file(m.home, marketplaceFile)
	if err != nil {
		return manifest{}, err
	}
	if data == nil {
		return manifest{}, notFound("%s has no %s at %s; a source of type repo reads its skills without one",
			name, marketplaceFile, cmp.Or(m.home.revision.Branch, m.home.revision.Commit))
	}
	list, err := parseMarketplace(data, m.hosts)
	if err != nil {
		return manifest{}, fault.Wrap(fault.BadInput, err, "the %s of %s cannot be read: %s", marketplaceFile, name, err)
	}
	return list, nil
}

// file reads a manifest; nil when there is none.
func (m *market) file(s *snapshot, at string) ([]byte, error) {
	target, err := s.resolve(m.ctx, at)
	var problem *linkProblem
	if errors.As(err, &problem) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entry, ok := s.lookup(target)
	if !ok {
		return nil, nil
	}
	data, err := s.repo.Blob(m.ctx, entry.Hash, maxManifest)
	var large *tooLarge
	if errors.As(err, &large) {
		return nil, fault.New(fault.BadInput, "the %s of %s has %d bytes; the limit is %d", at, s.name, large.size, large.max)
	}
	return data, err
}

// entry reads one plugin and sees to it that the entry has a result.
func (m *market) entry(position int, entry plugin) error {
	at := m.pathIn(m.home.name.String(), fmt.Sprintf("%s#/plugins/%d", marketplaceFile, position))
	scope := m.home.name.String()
	if entry.from.repo != (Name{}) {
		entry.from.repo = m.spelling(entry.from.repo)
		scope = entry.from.repo.String()
	}
	if entry.problem != nil {
		return m.fail(scope, at, entry, entry.problem)
	}
	snap, err := m.snapshot(entry.from)
	if err != nil {
		return m.unreached(scope, at, entry, err)
	}
	reader := &pluginReader{market: m, snap: snap, entry: entry, at: at}
	why, err := reader.read()
	switch {
	case err != nil && snap != m.home:
		return m.unreached(scope, at, entry, err)
	case err != nil:
		return err
	case why == nil && reader.met == 0:
		why = left("no_skills", "brings no skills")
	case why == nil && reader.added == 0:
		why = left("already_listed", "brings only skills that an entry before it brought")
	}
	if why != nil {
		m.leave(scope, at, &outcome{status: why.status, code: why.code, reason: fmt.Sprintf("plugin %s: %s", entry.name, why.reason)})
	}
	return nil
}

// fail gives an entry its one item. Its repository, if the entry names another
// one, was listed and not reached.
func (m *market) fail(scope, at string, entry plugin, why *outcome) error {
	if scope != m.home.name.String() {
		m.scopes[scope] = false
	}
	m.leave(scope, at, &outcome{status: why.status, code: why.code, reason: fmt.Sprintf("plugin %s: %s", entry.name, why.reason)})
	return nil
}

// unreached turns the error of one entry's repository into that entry's item.
// What stops the whole sync stays an error: a rate limit and an interruption.
func (m *market) unreached(scope, at string, entry plugin, err error) error {
	var known *fault.Error
	if m.ctx.Err() != nil || !errors.As(err, &known) || known.Kind == fault.RateLimited || known.Kind == fault.Internal {
		return err
	}
	m.scopes[scope] = false
	return m.fail(scope, at, entry, refused("not_reached", "%s", known.Message))
}

// spelling keeps one name for a repository that entries write in different cases.
func (m *market) spelling(name Name) Name {
	folded := strings.ToLower(name.String())
	if known, ok := m.names[folded]; ok {
		return known
	}
	m.names[folded] = name
	return name
}

// snapshot finds the commit an entry asks for: sha beats ref beats the default
// branch. An entry that names the marketplace's own repository without a revision
// means the commit being read, so that a pinned marketplace stays pinned.
func (m *market) snapshot(from pluginSource) (*snapshot, error) {
	if !from.other || from.repo == m.home.name && from.ref == "" && from.sha == "" {
		return m.home, nil
	}
	key := from.repo.String() + "@" + cmp.Or(from.sha, from.ref)
	if known, ok := m.snaps[key]; ok {
		return known, nil
	}
	snap, err := m.open(from.repo, from.ref, from.sha)
	if err != nil {
		return nil, err
	}
	m.snaps[key] = snap
	if _, met := m.scopes[from.repo.String()]; !met {
		m.scopes[from.repo.String()] = true
	}
	return snap, nil
}

// pluginReader reads the skills of one plugin.
type pluginReader struct {
	*market
	snap       *snapshot
	entry      plugin
	at         string // the entry's own path, for items about its lists
	root       string
	visited    []string
	met, added int
}

// read walks the folders of a plugin. The outcome is why there is nothing to walk.
func (p *pluginReader) read() (*outcome, error) {
	why, err := p.findRoot()
	if why != nil || err != nil {
		return why, err
	}
	if p.entry.lists && p.root == "." && p.snap == p.home {
		return nil, p.only(p.entry.skills, p.at+"/skills")
	}
	named, declared, err := p.manifest()
	if err != nil {
		return nil, err
	}
	manifestAt := p.pathIn(p.snap.name.String(), path.Join(p.root, pluginFile)) + "#/skills"
	if declared {
		if err := p.readListed(p.entry.skills, p.at+"/skills"); err != nil {
			return nil, err
		}
		return nil, p.only(append(named, p.defaults()...), manifestAt)
	}
	if err := p.walk(p.root); err != nil {
		return nil, err
	}
	return nil, p.readListed(p.entry.skills, p.at+"/skills")
}

// findRoot finds the plugin's folder. metadata.pluginRoot goes in front of a path
// when that folder exists; "./" is the marketplace's root in any case.
func (p *pluginReader) findRoot() (*outcome, error) {
	wanted := p.entry.from.path
	tries := []string{wanted}
	if p.market.root != "" && !p.entry.from.other && wanted != "." {
		tries = []string{path.Join(p.market.root, wanted), wanted}
	}
	for _, try := range tries {
		target, err := p.snap.resolve(p.ctx, try)
		var problem *linkProblem
		if err != nil && !errors.As(err, &problem) {
			return nil, err
		}
		if err == nil && p.snap.folders[target] {
			p.root = target
			return nil, nil
		}
	}
	return refused("source_missing", "%s has no folder %q", p.snap.name, wanted), nil
}

// manifest reads the skills that the plugin's own plugin.json lists. One that
// cannot be read costs itself only: the plugin is walked without it.
func (p *pluginReader) manifest() (named []listed, declared bool, err error) {
	at := path.Join(p.root, pluginFile)
	data, err := p.file(p.snap, at)
	if fault.Is(err, fault.BadInput) {
		p.leave(p.snap.name.String(), p.pathIn(p.snap.name.String(), at), refused("plugin_unreadable", "%s", err))
		return nil, false, nil
	}
	if err != nil || data == nil {
		return nil, false, err
	}
	named, declared, why := parsePluginFile(data)
	if why != nil {
		p.leave(p.snap.name.String(), p.pathIn(p.snap.name.String(), at), why)
	}
	return named, declared, nil
}

// defaults are the folders that hold skills by convention, whatever a plugin lists.
func (p *pluginReader) defaults() []listed {
	var found []listed
	base := path.Join(p.root, "skills")
	for _, entry := range p.snap.under(base) {
		if rest := below(entry.Path, base); path.Base(rest) == skillFile && strings.Count(rest, "/") == 1 {
			found = append(found, listed{path: below(path.Dir(entry.Path), p.root)})
		}
	}
	return found
}

// only walks a list that is the complete set, then accounts for the rest.
func (p *pluginReader) only(list []listed, at string) error {
	if err := p.readListed(list, at); err != nil {
		return err
	}
	rest := &walk{reading: p.reading, snap: p.snap, root: p.root, others: left("not_listed",
		"plugin %s lists its skills, and this is none of them", p.entry.name)}
	return rest.run()
}

// readListed walks the folders of a skills list.
func (p *pluginReader) readListed(list []listed, at string) error {
	for i, one := range list {
		item := fmt.Sprintf("%s/%d", at, i)
		if one.problem != nil {
			p.met, p.added = p.met+1, p.added+1
			p.leave(p.snap.name.String(), item, one.problem)
			continue
		}
		target, err := p.snap.resolve(p.ctx, path.Join(p.root, one.path))
		var problem *linkProblem
		if err != nil && !errors.As(err, &problem) {
			return err
		}
		if err != nil || !p.snap.folders[target] {
			p.met, p.added = p.met+1, p.added+1
			p.leave(p.snap.name.String(), item, refused("skill_missing", "plugin %s lists %q, which does not exist", p.entry.name, one.path))
			continue
		}
		if err := p.walk(target); err != nil {
			return err
		}
	}
	return nil
}

// walk reads everything below a folder, and what links in it lead to.
func (p *pluginReader) walk(dir string) error {
	if slices.Contains(p.visited, dir) {
		return nil
	}
	p.visited = append(p.visited, dir)
	w := &walk{reading: p.reading, snap: p.snap, root: dir, follow: p.walk}
	err := w.run()
	p.met, p.added = p.met+w.met, p.added+w.added
	return err
}
