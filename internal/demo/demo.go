// Package demo is what a first start shows: a small site, a repository of skills, a
// model that follows a script, and a configuration that puts them together. It is
// installed through the same use cases that everybody uses, as the built-in
// administrator, and every step of it is in the audit trail. Nothing it brings
// instructs: its skills wait for an approval like any others.
package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"go.yaml.in/yaml/v3"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// The repository of the demo's skills, as a source names it.
const (
	Owner      = "countersign-demo"
	Repository = "skills"
	URL        = "https://github.com/" + Owner + "/" + Repository
)

var (
	//go:embed all:skills
	skills embed.FS
	//go:embed site.yaml
	site []byte
	//go:embed script.yaml
	script string
)

// Files is the tree of the demo's repository.
func Files() fs.FS {
	tree, err := fs.Sub(skills, "skills")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return tree
}

// Demo installs itself through these rooms.
type Demo struct {
	Library *library.Library
	Content *content.Content
}

// writeTools are off until somebody switches them on; the demo does.
var writeTools = []string{
	"update_element", "update_page_metadata", "create_element_draft", "create_page_draft", "create_translation_draft",
	"move_element", "move_page", "copy_record", "delete_record", "publish_record",
	"attach_file", "replace_file_reference", "set_alternative_text",
}

// Install brings the demo into an installation that has no configuration yet, and
// does nothing in any other. A start that is interrupted is gone on with at the next.
func (d Demo) Install(ctx context.Context, by actor.Actor) error {
	there, err := d.Library.ListConfigurations(ctx, by, library.Page{Limit: 1})
	if err != nil || len(there) > 0 {
		return err
	}
	steps := []struct {
		what string
		do   func(context.Context, actor.Actor) error
	}{
		{"the site", d.site},
		{"the skills", d.source},
		{"the tools", d.tools},
		{"the configuration", d.configuration}, // last: it says that the demo is there
	}
	for _, step := range steps {
		if err := step.do(ctx, by); err != nil {
			return fmt.Errorf("installing the demo: %s: %w", step.what, err)
		}
	}
	return nil
}

type page struct {
	ID       string         `yaml:"id"`
	Parent   string         `yaml:"parent"`
	Fields   map[string]any `yaml:"fields"`
	Elements []struct {
		ID     string         `yaml:"id"`
		Fields map[string]any `yaml:"fields"`
	} `yaml:"elements"`
}

func (d Demo) site(ctx context.Context, by actor.Actor) error {
	var tree struct {
		Files        []page        `yaml:"files"`
		Pages        []page        `yaml:"pages"`
		Translations []translation `yaml:"translations"`
	}
	if err := yaml.Unmarshal(site, &tree); err != nil {
		return err
	}
	for _, f := range tree.Files {
		if err := d.record(ctx, by, content.FileTable, f.ID, "", f.Fields); err != nil {
			return err
		}
	}
	for _, p := range tree.Pages {
		if err := d.record(ctx, by, content.PageTable, p.ID, p.Parent, p.Fields); err != nil {
			return err
		}
		for _, e := range p.Elements {
			if err := d.record(ctx, by, content.ElementTable, e.ID, p.ID, e.Fields); err != nil {
				return err
			}
		}
	}
	for _, t := range tree.Translations {
		_, err := d.Content.Translate(ctx, by, content.Translating{
			Table: content.PageTable, ID: t.ID, Language: t.Language, Fields: t.Fields, Elements: t.Elements,
		})
		if err != nil && !fault.Is(err, fault.Conflict) { // an earlier start made it
			return err
		}
	}
	return nil
}

type translation struct {
	ID       string                    `yaml:"id"`
	Language string                    `yaml:"language"`
	Fields   map[string]any            `yaml:"fields"`
	Elements map[string]map[string]any `yaml:"elements"`
}

// record makes a record unless an earlier start that was interrupted did.
func (d Demo) record(ctx context.Context, by actor.Actor, table, id, parent string, fields map[string]any) error {
	_, err := d.Content.Read(ctx, by, table, id)
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	_, err = d.Content.Create(ctx, by, content.Creation{Table: table, ID: id, ParentID: parent, Fields: fields})
	return err
}

func (d Demo) source(ctx context.Context, by actor.Actor) error {
	sources, err := d.Library.ListSources(ctx, by, library.Page{Limit: 1})
	if err != nil || len(sources) > 0 {
		return err
	}
	source, err := d.Library.CreateSource(ctx, by, library.NewSource{
		Title: "Demo skills", Type: library.Repo, URL: URL, TrustLevel: skill.Verified,
	})
	if err != nil {
		return err
	}
	_, err = d.Library.Sync(ctx, by, source.ID)
	return err
}

func (d Demo) tools(ctx context.Context, by actor.Actor) error {
	for _, name := range writeTools {
		if err := d.Library.SetToolEnabled(ctx, by, name, true); err != nil {
			return err
		}
	}
	return nil
}

func (d Demo) configuration(ctx context.Context, by actor.Actor) error {
	provider, err := d.provider(ctx, by)
	if err != nil {
		return err
	}
	_, err = d.Library.CreateConfiguration(ctx, by, library.NewConfiguration{
		Name: "Demo assistant", ProviderID: provider.ID, Model: "scripted", MaxIterations: 10,
		SystemPrompt: "You help the editors of a plant nursery's website.",
	})
	return err
}

func (d Demo) provider(ctx context.Context, by actor.Actor) (library.Provider, error) {
	there, err := d.Library.ListProviders(ctx, by, library.Page{Limit: 1})
	if err != nil {
		return library.Provider{}, err
	}
	if len(there) > 0 {
		return there[0], nil
	}
	return d.Library.CreateProvider(ctx, by, library.NewProvider{
		Name: "Demo script", Kind: library.Scripted, TrustZone: library.ZoneLocal, Script: script,
	})
}
