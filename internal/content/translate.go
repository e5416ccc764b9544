package content

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// Translating is a page or an element to be translated.
type Translating struct {
	Table    string
	ID       string
	Language string
	// Fields are texts in that language, and for a page its address there. Elements are
	// those of a page's elements, by their id.
	Fields   map[string]any
	Elements map[string]map[string]any
	Revision int // that the caller saw; 0 takes the record as it is
	Seen     Seen
	Origin   Origin
}

// Translation is what Translate would make.
type Translation struct {
	Plan                  // of the new record; Record is as it would stand
	Of           Record   // the original
	Elements     []Plan   // of a page's elements
	Originals    []Record // of Elements
	ToID         string   // the page that it would stand below
	Untranslated []string // what would stay in the original's language
}

// Translate makes a hidden translation of an original: what is not text as it is, and
// text as given. What is not given stays in the original's language, which the answer
// names.
func (c *Content) Translate(ctx context.Context, as actor.Actor, in Translating) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindCreate, record: Record{Table: in.Table}, planned: in.Fields}
	out, ok, err := c.before(ctx, w)
	if err != nil {
		return out, err
	}
	if ok {
		out.Untranslated, err = c.stillSame(ctx, out)
		return out, err
	}
	var plan Translation
	// The id says which translation it is, so that of two made at once one loses. It may
	// be taken, then any will do.
	id := in.ID + "-" + strings.ToLower(in.Language)
	out, err = c.several(ctx, as, func() (prepared, error) {
		if plan, err = c.PlanTranslate(ctx, as, in); err != nil {
			return prepared{}, err
		}
		elements := make([]Record, len(plan.Elements))
		for i, e := range plan.Elements {
			elements[i] = e.Record
		}
		if !idPattern.MatchString(id) {
			id = ""
		}
		p, err := c.prepareNew(ctx, w, plan.Record, id, plan.ToID, elements)
		id = ""
		p.main.planned = plan.given()
		return p, err
	})
	out.Untranslated = plan.Untranslated
	return out, err
}

// stillSame is what a translation made earlier says as its original does.
func (c *Content) stillSame(ctx context.Context, made Written) ([]string, error) {
	var out []string
	for _, t := range append([]Record{made.Record}, made.Beside...) {
		original, err := c.store.Record(ctx, t.Table, t.TranslationOf)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		mark := ""
		if t.Table != made.Record.Table {
			mark = "element " + original.ID + ": "
		}
		table, _ := TableNamed(t.Table)
		for _, f := range table.Fields {
			if f.Spoken && !blank(original.Fields[f.Name]) && Same(original.Fields[f.Name], t.Fields[f.Name]) {
				out = append(out, mark+f.Name)
			}
		}
	}
	return out, nil
}

// PlanTranslate says what Translate would make, with the same checks.
func (c *Content) PlanTranslate(ctx context.Context, as actor.Actor, in Translating) (Translation, error) {
	r, err := c.translatable(ctx, as, in)
	if err != nil {
		return Translation{}, err
	}
	plan := Translation{Of: r}
	if plan.ToID, err = c.home(ctx, r.ParentID, in.Language); err != nil {
		return Translation{}, err
	}
	if err := c.mayCreateBelow(ctx, as, r.Table, plan.ToID); err != nil {
		return Translation{}, err
	}
	line, err := c.walk().lineBelow(ctx, plan.ToID)
	if err != nil {
		return Translation{}, err
	}
	if err := c.mayWiden(ctx, as, r.ParentID, line); err != nil {
		return Translation{}, err
	}
	if plan.Plan, plan.Untranslated, err = draft(r, in.Language, in.Fields); err != nil {
		return Translation{}, err
	}
	plan.Record.Hidden = true
	return plan, c.planElements(ctx, as, in, &plan)
}

func (c *Content) planElements(ctx context.Context, as actor.Actor, in Translating, plan *Translation) error {
	given := maps.Clone(in.Elements)
	if plan.Of.Table == PageTable {
		elements, err := c.Children(ctx, as, ElementTable, plan.Of.ID)
		if err != nil {
			return err
		}
		for _, e := range elements {
			if e.TranslationOf != "" {
				continue
			}
			part, missing, err := draft(e, in.Language, given[e.ID])
			if err != nil {
				return fault.New(fault.BadInput, "element %s: %s", e.ID, err)
			}
			delete(given, e.ID)
			for _, name := range missing {
				plan.Untranslated = append(plan.Untranslated, "element "+e.ID+": "+name)
			}
			plan.Elements, plan.Originals = append(plan.Elements, part), append(plan.Originals, e)
		}
	}
	if len(given) > 0 {
		return fault.New(fault.BadInput, "elements: not on the page: %s", strings.Join(slices.Sorted(maps.Keys(given)), ", "))
	}
	if len(plan.Elements) > maxAlong {
		return fault.New(fault.BadInput, "more than %d elements stand on the page", maxAlong)
	}
	return in.Seen.check(append(plan.Originals, plan.Of)...)
}

// translatable returns the original of a translation to be made.
func (c *Content) translatable(ctx context.Context, as actor.Actor, in Translating) (Record, error) {
	r, _, err := c.walk().readable(ctx, as, in.Table, in.ID)
	if err != nil {
		return Record{}, err
	}
	switch {
	case in.Revision != 0 && in.Revision != r.Revision:
		return Record{}, stale(r)
	case r.Table == FileTable:
		return Record{}, fault.New(fault.BadInput, "a file is not translated: its text is set where it is shown")
	case r.TranslationOf != "":
		return Record{}, fault.New(fault.BadInput, "the %s %q is a translation itself: translate %q", r.Table, r.ID, r.TranslationOf)
	case !wordPattern.MatchString(in.Language):
		return Record{}, fault.New(fault.BadInput, "language: must be a language tag such as en or de-AT")
	case r.Fields[LanguageField] == in.Language:
		return Record{}, fault.New(fault.BadInput, "the %s %q is in %s already", r.Table, r.ID, in.Language)
	}
	there, err := c.store.Translations(ctx, r.Table, r.ID)
	for _, t := range there {
		if t.Fields[LanguageField] == in.Language {
			return Record{}, fault.New(fault.Conflict, "the %s %q is translated into %s already: %s", r.Table, r.ID, in.Language, t.ID)
		}
	}
	return r, err
}

// draft is a translation of one record, with the names of the texts that stay in the
// original's language.
func draft(of Record, language string, given map[string]any) (Plan, []string, error) {
	table, err := TableNamed(of.Table)
	if err != nil {
		return Plan{}, nil, err
	}
	texts, err := table.valid(given)
	if err != nil {
		return Plan{}, nil, err
	}
	for name := range texts {
		if f, _ := table.Field(name); !f.Spoken && name != "slug" {
			return Plan{}, nil, fault.New(fault.BadInput, "%s: is not text, and comes from the original", name)
		}
	}
	made := of
	made.TranslationOf, made.Fields = of.ID, maps.Clone(of.Fields)
	delete(made.Fields, "slug") // an address is its page's alone
	made.Fields[LanguageField] = language
	var missing []string
	plan := Plan{}
	for _, f := range table.Fields {
		to, ok := texts[f.Name]
		if ok && !blank(to) {
			plan.Fields = append(plan.Fields, FieldChange{Field: f, From: of.Fields[f.Name], To: to})
			made.Fields[f.Name] = to
		} else if f.Spoken && !blank(of.Fields[f.Name]) {
			missing = append(missing, f.Name)
		}
	}
	plan.Record = made
	return plan, missing, nil
}
