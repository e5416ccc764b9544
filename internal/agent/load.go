package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// Catalogue is what the model of a run may load (RULES L4). It is fixed when the run
// begins and kept while it waits; what it lists are candidates, which a load judges
// again.
type Catalogue struct {
	Skills []uuid.UUID `json:"skills,omitempty"`
	Text   string      `json:"text,omitempty"` // as the system message ends with it
}

func (c Catalogue) offers() bool { return len(c.Skills) > 0 }

// catalogue lists what of the set may be loaded beside the pins that are held, in the
// order of attachment, with a notice for each skill that has no room in it.
func (a *Agent) catalogue(set lineup, held run.Pins, bytes int) (Catalogue, []run.Notice) {
	var (
		ids   []uuid.UUID
		lines []prompt.Loadable
	)
	for _, m := range set {
		if holds(held, m.Skill.ID) {
			continue
		}
		if h, ok := m.loadable(); ok {
			ids = append(ids, h.Skill)
			lines = append(lines, prompt.Loadable{ID: a.SkillID(h.Skill), Name: h.version.Name, Description: h.version.Description})
		}
	}
	text, kept := prompt.Catalogue(lines, bytes)
	var cut []run.Notice
	for _, line := range lines[kept:] {
		cut = append(cut, notice(run.NoticeCatalogueCut, line.Name))
	}
	return Catalogue{Skills: ids[:kept], Text: a.Secrets.Redactor().Any(text)}, cut // as messages are (RULES M2)
}

// loadable is the pin of a member that meets every condition of the catalogue, with its
// approved text: attached on demand, effective, instructing, and no process.
func (m member) loadable() (heldPin, bool) {
	if !m.onDemand || !m.effective() || m.Skill.Version.Process != skill.ProcessNo || !skill.Stand(m.facts).Instructs {
		return heldPin{}, false
	}
	pin := m.pin()
	pin.Way, pin.Forced = run.WayLoaded, m.forced
	version, _, ok := skill.PinHolds(skill.Pin{Skill: pin.Skill, Source: pin.Source, Digest: pin.Digest}, holdingFacts(m.Dossier, m.facts))
	return heldPin{Pin: pin, version: version}, ok
}

// The tokens of loads that load nothing.
const (
	tokenNotInCatalogue = "not_in_catalogue"
	tokenNotLoadable    = "not_loadable"
	tokenOtherVersion   = "other_version_held"
	tokenTooLarge       = "section_too_large"
)

// What a load answers. The text that was loaded is never in it (RULES L5).
const (
	loadedText        = "loaded"
	alreadyLoadedText = "already loaded"
)

// loadSkill carries out a load: its pin is stored with its step (RULES P1), and its
// section is in the system message when the model is asked next (RULES L5).
func (s *segment) loadSkill(ctx context.Context, at int, c prompt.Call) error {
	began := s.agent.World.Now()
	loaded, result, err := s.judgeLoad(ctx, c)
	if err != nil {
		return err
	}
	took := int(s.agent.World.Now().Sub(began).Milliseconds())
	if loaded == nil {
		return s.record(ctx, at, c, result, took, nil, change.Change{})
	}
	pins := append(slices.Clone(s.pins), loaded.Pin)
	if err := s.record(ctx, at, c, result, took, []change.Value{runPins.To(pins)}, change.Change{}); err != nil {
		return err
	}
	s.pins, s.held = pins, append(s.held, *loaded)
	s.join(*loaded)
	return nil
}

// join puts a section into the system message.
func (s *segment) join(h heldPin) {
	s.transcript = s.agent.clean(prompt.WithSection(s.transcript, s.catalogue.Text, h.section()))
}

// judgeLoad says what a call loads, nil when nothing, and what it is answered. Every
// condition of the catalogue is asked again: what it listed when the run began may not
// be what it would list now (RULES L5).
func (s *segment) judgeLoad(ctx context.Context, c prompt.Call) (*heldPin, tool.Result, error) {
	var asked struct {
		SkillID string `json:"skillId"`
	}
	if err := json.Unmarshal(c.Arguments, &asked); err != nil { // the schema was checked
		return nil, tool.Result{}, fmt.Errorf("reading the arguments of a load: %w", err)
	}
	named := func(id uuid.UUID) bool { return s.agent.SkillID(id) == asked.SkillID }
	if i := slices.IndexFunc(s.pins, func(p run.Pin) bool { return named(p.Skill) }); i >= 0 {
		result, err := s.loadAgain(ctx, s.pins[i])
		return nil, result, err
	}
	i := slices.IndexFunc(s.catalogue.Skills, named)
	if i < 0 {
		return nil, tool.Fail(tokenNotInCatalogue, "The catalogue of this run lists no skill with this id."), nil
	}
	set, err := s.agent.lineup(ctx, s.run.origin())
	if err != nil {
		return nil, tool.Result{}, err
	}
	m, _ := set.find(s.catalogue.Skills[i])
	loaded, ok := m.loadable()
	if !ok {
		return nil, tool.Fail(tokenNotLoadable, "This skill cannot be loaded any more."), nil
	}
	answered := append(slices.Clone(s.transcript), prompt.Message{Role: prompt.ToolRole, CallID: c.ID, Text: loadedText})
	with := prompt.WithSection(answered, s.catalogue.Text, loaded.section())
	if !prompt.Admits(with, s.offer.definitions, s.chain[0].budget(), s.gauge) { // RULES B4
		return nil, tool.Fail(tokenTooLarge, tooLargeText(loaded.version.Name)+"; it was not loaded"), nil
	}
	return &loaded, tool.OK(loadedText), nil
}

// loadAgain answers a load of what the run holds: it keeps the version it has, and says
// so when the skill has moved on (RULES L6).
func (s *segment) loadAgain(ctx context.Context, held run.Pin) (tool.Result, error) {
	dossiers, err := s.agent.Skills.Dossiers(ctx, []uuid.UUID{held.Skill})
	if err != nil {
		return tool.Result{}, err
	}
	if len(dossiers) == 0 || dossiers[0].Digest() != held.Digest {
		return tool.Fail(tokenOtherVersion, "This conversation holds another version of the skill and keeps it."), nil
	}
	return tool.OK(alreadyLoadedText), nil
}

// loadedSkills are those whose sections joined after a run of the lineage had begun.
func loadedSkills(pins run.Pins) []uuid.UUID {
	var out []uuid.UUID
	for _, p := range pins {
		if p.Way == run.WayLoaded {
			out = append(out, p.Skill)
		}
	}
	return out
}

// rejoin composes what was loaded after the state was stored, by a worker that died:
// its pin is held, so its section stands in what the model reads next.
func (s *segment) rejoin(held []heldPin, state State) {
	for _, h := range held {
		if h.Way == run.WayLoaded && !slices.Contains(state.Loaded, h.Skill) {
			s.join(h)
		}
	}
}
