package agent

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// opening is what a run's first messages are made from. They are made twice: at start,
// to see whether they may be sent, and at pickup, to be sent.
type opening struct {
	initiator     actor.Actor
	configuration library.Configuration
	messages      []prompt.Message
	tools         *tool.Registry
	set           lineup
	sorted        composition
	held          []heldPin // the pins of sorted, with their texts
	known         run.Pins  // of these, those that were admitted before
	continues     bool      // another run
	list          []string  // what the run's skills allow
	callerList    []string
	nonceKey      []byte
	budget        int // of the configuration's own model, in tokens
}

// opened is what comes of an opening.
type opened struct {
	messages  []prompt.Message
	held      []heldPin // all but what was refused or left out
	refused   []heldPin // sections that do not fit, for which the run must not begin
	catalogue Catalogue
	offer     offer
	notices   []run.Notice
}

// open resolves what may be called, admits new sections, and composes the first
// messages: the configuration's snippets, sections from the pinned snapshots, the
// catalogue, fenced skills from their current records (RULES N1, L4, L9, P1, P13, B4).
func (a *Agent) open(ctx context.Context, o opening) (opened, error) {
	values, err := a.Settings.Values(ctx)
	if err != nil {
		return opened{}, err
	}
	in, err := a.material(ctx, o, values)
	if err != nil {
		return opened{}, err
	}
	out := opened{notices: slices.Clone(o.sorted.notices)}
	var cut []run.Notice
	out.catalogue, cut = a.catalogue(o.set, o.sorted.pins, values.CatalogueMaxBytes)
	situation, err := a.situation(ctx, o.initiator, o.configuration, o.list, o.callerList)
	if err != nil {
		return opened{}, err
	}
	situation.Loads = out.catalogue.offers()
	out.offer = offerOf(o.tools, situation)
	if !out.offer.has(tool.LoadSkill) { // switched off: nothing is offered that cannot be had
		out.catalogue, cut = Catalogue{}, nil
	}
	in.Catalogue = out.catalogue.Text
	leftOut := o.admit(&out, in)

	in.Sections = sections(out.held)
	composed := prompt.Compose(in)
	out.messages = composed.Messages
	for _, i := range composed.Dropped {
		out.notices = append(out.notices, notice(run.NoticeDroppedForSize, in.Fenced[i].Name))
	}
	for _, h := range leftOut {
		out.notices = append(out.notices, notice(run.NoticeSectionLeftOut, h.version.Name))
	}
	out.notices = append(out.notices, cut...)
	return out, nil
}

// material is everything that is composed but the sections and the catalogue.
func (a *Agent) material(ctx context.Context, o opening, values access.Values) (prompt.Input, error) {
	snippets, err := a.Skills.Snippets(ctx, o.configuration)
	if err != nil {
		return prompt.Input{}, err
	}
	in := prompt.Input{
		SystemPrompt:      o.configuration.SystemPrompt,
		SnippetsInCallers: o.configuration.SnippetsInCallerSystemPrompt,
		FencedBytes:       values.SkillMaxBytes,
		NonceKey:          o.nonceKey,
		Messages:          o.messages,
	}
	for _, snippet := range snippets {
		in.Snippets = append(in.Snippets, snippet.Snippet)
	}
	for _, m := range o.sorted.fenced {
		v := m.Skill.Version
		in.Fenced = append(in.Fenced, prompt.Fenced{Name: v.Name, Body: v.Body, Partial: v.Support == skill.SupportPartial, OfTask: m.ofTask})
	}
	return in, nil
}

// admit holds each section that is new against what the model's window leaves (RULES
// B4), those that the run must not go without before the others. Of these a
// continuation leaves out what does not fit; whatever else does not fit is refused.
func (o opening) admit(out *opened, in prompt.Input) (leftOut []heldPin) {
	fits := func(held []heldPin) bool {
		in.Sections = sections(held)
		return prompt.Admits(prompt.Compose(in).Messages, out.offer.definitions, o.budget, prompt.Gauge{})
	}
	var fresh []heldPin
	for _, h := range o.held {
		if !holds(o.known, h.Skill) {
			fresh = append(fresh, h)
		}
	}
	if len(fresh) == 0 || fits(o.held) {
		out.held = o.held
		return nil
	}
	without := func(fresh []heldPin) []heldPin {
		return slices.DeleteFunc(slices.Clone(o.held), func(h heldPin) bool { return among(fresh, h) })
	}
	slices.SortStableFunc(fresh, func(a, b heldPin) int { return dispensable(a) - dispensable(b) })
	for i := range fresh {
		missing := slices.Concat(fresh[i+1:], out.refused, leftOut)
		switch h := fresh[i]; {
		case fits(without(missing)):
		case o.continues && dispensable(h) == 1:
			leftOut = append(leftOut, h)
		default:
			out.refused = append(out.refused, h)
		}
	}
	out.held = without(slices.Concat(out.refused, leftOut))
	return leftOut
}

// dispensable is 1 for a section that nobody asked for in this run: one that an
// attachment composes.
func dispensable(h heldPin) int {
	if h.Way == run.WayAlways && !h.Forced {
		return 1
	}
	return 0
}

func among(held []heldPin, one heldPin) bool {
	return slices.ContainsFunc(held, func(h heldPin) bool { return h.Skill == one.Skill })
}

func pinsOf(held []heldPin) run.Pins {
	pins := make(run.Pins, len(held))
	for i, h := range held {
		pins[i] = h.Pin
	}
	return pins
}

func sections(held []heldPin) []prompt.Section {
	out := make([]prompt.Section, len(held))
	for i, h := range held {
		out[i] = h.section()
	}
	return out
}

func (h heldPin) section() prompt.Section {
	return prompt.Section{Name: h.version.Name, Body: h.version.Body, Partial: h.version.Support == skill.SupportPartial}
}

// tooLarge is how a run ends whose sections may not join. It keeps the pins of the
// others, so that the next one can go on from it.
func (o opened) tooLarge() (stop stopped, refused bool) {
	if len(o.refused) == 0 {
		return stopped{}, false
	}
	texts := make([]string, len(o.refused))
	for i, h := range o.refused {
		texts[i] = tooLargeText(h.version.Name)
	}
	rest := pinsOf(o.held)
	return stopped{reason: run.ReasonPolicyDenied, message: strings.Join(texts, "\n"), pins: &rest}, true
}

func tooLargeText(name string) string {
	return "the instruction " + name + " does not fit into the model's context window beside what has to be sent with it"
}

// budget is what may be sent to a configuration's own model, in tokens. A provider that
// cannot be used bounds nothing here: that is how the run ends once it is picked up.
func (a *Agent) budget(ctx context.Context, c library.Configuration) (int, error) {
	chain, err := a.chain(ctx, c)
	var unusable stopped
	switch {
	case errors.As(err, &unusable):
		return math.MaxInt, nil
	case err != nil:
		return 0, err
	}
	return chain[0].budget(), nil
}
