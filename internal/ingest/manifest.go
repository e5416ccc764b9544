package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	marketplaceFile = ".claude-plugin/marketplace.json"
	pluginFile      = ".claude-plugin/plugin.json"
	maxManifest     = 4 << 20 // bytes
	maxPlugins      = 2_000
)

// manifest is a marketplace.json as far as it could be read.
type manifest struct {
	pluginRoot string // cleaned; "" when there is none
	plugins    []plugin
	findings   []string
}

// plugin is one entry of a marketplace. An entry that could not be understood has
// problem set and costs nobody else anything.
type plugin struct {
	name    string
	from    pluginSource
	skills  []listed
	lists   bool // the entry has a skills key
	problem *outcome
}

// pluginSource says where a plugin lies: a path in the marketplace's own
// repository, or another repository.
type pluginSource struct {
	other    bool
	repo     Name
	ref, sha string
	path     string // cleaned, "." for the root
}

// listed is one path of a skills list, or why it is refused.
type listed struct {
	path    string
	problem *outcome
}

type jsonObject = map[string]json.RawMessage

// parseMarketplace reads a marketplace.json. The error is for a file that is no
// marketplace at all; everything inside an entry stays inside it. Addresses may be on
// github.com and on the given hosts.
func parseMarketplace(data []byte, on hosts) (manifest, error) {
	var top jsonObject
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &top); err != nil {
		return manifest{}, fmt.Errorf("it is no JSON object: %w", err)
	}
	var entries []json.RawMessage
	if raw, ok := top["plugins"]; !ok || json.Unmarshal(raw, &entries) != nil || entries == nil {
		return manifest{}, fmt.Errorf("it has no list %q", "plugins")
	}
	if len(entries) > maxPlugins {
		return manifest{}, fmt.Errorf("it lists %d plugins; the limit is %d", len(entries), maxPlugins)
	}
	m := manifest{}
	m.readPluginRoot(top["metadata"])
	names := map[string]bool{}
	for i, raw := range entries {
		entry, warnings := parsePlugin(raw, i, on)
		for _, warning := range warnings {
			m.findings = append(m.findings, fmt.Sprintf("plugin %s: %s", entry.name, warning))
		}
		if names[entry.name] {
			m.findings = append(m.findings, fmt.Sprintf("plugin %s is listed more than once", entry.name))
		}
		names[entry.name] = true
		m.plugins = append(m.plugins, entry)
	}
	return m, nil
}

func (m *manifest) readPluginRoot(metadata json.RawMessage) {
	var fields jsonObject
	if metadata == nil || json.Unmarshal(metadata, &fields) != nil || fields["pluginRoot"] == nil {
		return
	}
	text, ok := textOf(fields["pluginRoot"])
	clean, why := cleanPath(text)
	if !ok || why != nil {
		m.findings = append(m.findings, "metadata.pluginRoot is no path inside the repository and is not used")
		return
	}
	m.pluginRoot = clean
}

// parsePlugin reads one entry. Keys of the entry itself that nothing reads are
// no obstacle; an unknown key of its source is, because it may say where to read.
func parsePlugin(raw json.RawMessage, position int, on hosts) (entry plugin, warnings []string) {
	entry.name = fmt.Sprintf("#%d", position)
	var fields jsonObject
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		entry.problem = refused("entry_unreadable", "the entry is no object")
		return entry, nil
	}
	if name, ok := textOf(fields["name"]); ok && strings.TrimSpace(name) != "" {
		entry.name = printable(strings.TrimSpace(name))
	} else {
		warnings = append(warnings, "has no name")
	}
	var warning string
	entry.from, warning, entry.problem = parseSource(fields["source"], on)
	if warning != "" {
		warnings = append(warnings, warning)
	}
	if list, ok := fields["skills"]; ok {
		var readable bool
		entry.skills, readable = parseSkills(list)
		entry.lists = true
		if !readable && entry.problem == nil {
			entry.problem = refused("skills_unreadable", "its skills are neither a path nor a list of paths")
		}
	}
	return entry, warnings
}

// sourceForm is one way to write a plugin's source as an object.
type sourceForm struct {
	keys []string // allowed beside source
	read func(jsonObject, *pluginSource, hosts) *outcome
}

var sourceForms = map[string]sourceForm{
	"github":     {[]string{"repo", "ref", "sha"}, readGitHub},
	"url":        {[]string{"url", "ref", "sha"}, readURL},
	"git-subdir": {[]string{"url", "path", "ref", "sha"}, readSubdir},
	"npm": {[]string{"package", "version", "registry"}, func(jsonObject, *pluginSource, hosts) *outcome {
		return refused("npm_refused", "its source is an npm package; skills are read from git repositories only")
	}},
}

func parseSource(raw json.RawMessage, on hosts) (from pluginSource, warning string, problem *outcome) {
	if text, ok := textOf(raw); ok {
		return parseRelative(text)
	}
	var fields jsonObject
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return from, "", refused("source_unreadable", "its source is neither a path nor an object")
	}
	kind, _ := textOf(fields["source"])
	form, known := sourceForms[kind]
	if !known {
		return from, "", refused("source_unknown", "its source is of the unknown type %q", kind)
	}
	from.other, from.path = true, "."
	problem = form.read(fields, &from, on) // first, so that the repository is known even when a key is not
	for key := range fields {
		if key != "source" && !slices.Contains(form.keys, key) && problem == nil {
			problem = refused("source_key_unknown", "its source has the unknown key %q", key)
		}
	}
	return from, "", cmpOutcome(problem, readRevision(fields, &from))
}

// cmpOutcome returns the first outcome there is.
func cmpOutcome(first, second *outcome) *outcome {
	if first != nil {
		return first
	}
	return second
}

func parseRelative(text string) (from pluginSource, warning string, problem *outcome) {
	if strings.Contains(text, "://") || strings.HasPrefix(text, "git@") {
		return from, "", refused("source_unreadable", "its source %q is an address; write it as an object with source and url", text)
	}
	if from.path, problem = cleanPath(text); problem != nil {
		return from, "", problem
	}
	switch {
	case text == ".":
		warning = `its source "." is read as "./"`
	case !strings.HasPrefix(text, "./"):
		warning = fmt.Sprintf("its source %q is read as %q", text, "./"+from.path)
	}
	return from, warning, nil
}

func readGitHub(fields jsonObject, from *pluginSource, _ hosts) *outcome {
	text, _ := textOf(fields["repo"])
	owner, repo, _ := strings.Cut(text, "/")
	name, ok := newName(owner, repo)
	if !ok {
		return refused("source_unreadable", "its repo %q is not owner/repo", text)
	}
	from.repo = name
	return nil
}

func readURL(fields jsonObject, from *pluginSource, on hosts) *outcome {
	text, _ := textOf(fields["url"])
	name, err := on.repository(text)
	if err != nil {
		return refused("source_refused", "its url %q is not the https address of a repository on %s", text, on.list())
	}
	from.repo = name
	return nil
}

func readSubdir(fields jsonObject, from *pluginSource, on hosts) *outcome {
	text, _ := textOf(fields["url"])
	problem := readURL(fields, from, on)
	if owner, repo, short := strings.Cut(text, "/"); short && problem != nil {
		if name, ok := newName(owner, repo); ok {
			from.repo, problem = name, nil
		}
	}
	if problem != nil {
		return problem
	}
	dir, ok := textOf(fields["path"])
	if !ok {
		return refused("source_unreadable", "its source has no path")
	}
	from.path, problem = cleanPath(dir)
	return problem
}

func readRevision(fields jsonObject, from *pluginSource) *outcome {
	for key, into := range map[string]*string{"ref": &from.ref, "sha": &from.sha} {
		raw, has := fields[key]
		text, ok := textOf(raw)
		if has && !ok && string(raw) != "null" {
			return refused("source_unreadable", "its %s is no text", key)
		}
		*into = text
	}
	if from.sha != "" && !isCommit(from.sha) {
		return refused("source_unreadable", "its sha %q is not 40 hex digits", from.sha)
	}
	return nil
}

// parseSkills reads a skills list: one path, a list of paths, or a list of objects
// that carry the path.
func parseSkills(raw json.RawMessage) ([]listed, bool) {
	if text, ok := textOf(raw); ok {
		return []listed{newListed(text)}, true
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		return nil, false
	}
	skills := make([]listed, 0, len(items))
	for _, item := range items {
		text, ok := textOf(item)
		if !ok {
			text, ok = pathOf(item)
		}
		if !ok {
			skills = append(skills, listed{problem: refused("skill_unreadable", "is neither a path nor an object with a path")})
			continue
		}
		skills = append(skills, newListed(text))
	}
	return skills, true
}

// pathOf finds the path in an object of a skills list; one that has only a name
// lies where skills lie by default.
func pathOf(raw json.RawMessage) (string, bool) {
	var fields jsonObject
	if json.Unmarshal(raw, &fields) != nil {
		return "", false
	}
	for _, key := range []string{"path", "source", "file"} {
		if text, ok := textOf(fields[key]); ok {
			return text, true
		}
	}
	name, ok := textOf(fields["name"])
	return "skills/" + name, ok
}

func newListed(text string) listed {
	clean, problem := cleanPath(text)
	if path.Base(clean) == skillFile {
		clean = path.Dir(clean)
	}
	return listed{path: clean, problem: problem}
}

// cleanPath reads a relative path with slashes. Nothing may lead upwards, not
// even on the way down.
func cleanPath(text string) (string, *outcome) {
	switch {
	case text == "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || hasDrive(text):
		return "", refused("path_refused", "the path %q is not relative to its folder", text)
	case strings.ContainsAny(text, "\\\x00"):
		return "", refused("path_refused", "the path %q holds a character that no path here holds; write slashes", text)
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "", refused("path_refused", "the path %q leads upwards", text)
	}
	return path.Clean(text), nil
}

func textOf(raw json.RawMessage) (string, bool) {
	var text *string
	if raw == nil || json.Unmarshal(raw, &text) != nil || text == nil {
		return "", false
	}
	return *text, true
}

// parsePluginFile reads the skills of a plugin.json. The outcome says that the
// file, or its list, cannot be read.
func parsePluginFile(data []byte) (named []listed, declared bool, why *outcome) {
	var fields jsonObject
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &fields); err != nil {
		return nil, false, refused("plugin_unreadable", "it is no JSON object: %s", err)
	}
	raw, has := fields["skills"]
	if !has || string(raw) == "null" {
		return nil, false, nil
	}
	named, readable := parseSkills(raw)
	if !readable {
		return nil, false, refused("plugin_unreadable", "its skills are neither a path nor a list of paths")
	}
	return named, true, nil
}
