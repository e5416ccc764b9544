package agent

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

// member is one skill of a run's set, with the way it reached the run.
type member struct {
	library.Dossier
	facts    skill.Facts
	way      run.Way // WayAlways also for a skill attached on demand that nobody invoked
	composed bool    // false for a skill that is only attached on demand
	attached bool    // to the configuration
	onDemand bool    // and in that mode
	offered  bool    // attached to the configuration or to the run's task
	ofTask   bool    // composed because the run's task offers it, and nothing else
	forced   bool    // onto this run, whichever way it is composed
	derived  bool    // invoked in an earlier run of the lineage, and not again
}

func (m member) effective() bool {
	return skill.Effective(m.Skill.Enabled, m.Skill.Orphaned, m.facts)
}

// lineup is the set of skills a run works with: attached to its configuration in both
// modes, attached to its task, forced and invoked, each once, in section order (RULES
// T1).
type lineup []member

// origin is where a run's skills come from. An invocation that ended brings nothing.
type origin struct {
	configuration uuid.UUID
	task          uuid.UUID // zero when the run carries out none
	invoked       *Invocation
	forced        []uuid.UUID
}

func (r Run) origin() origin {
	return origin{configuration: r.ConfigurationID, task: r.TaskID, invoked: r.invoked(), forced: r.Forced}
}

// invoked is what the run still invokes (RULES X9).
func (r Run) invoked() *Invocation {
	if r.Invocation == nil || r.Invocation.Ended {
		return nil
	}
	return r.Invocation
}

// lineup reads a run's skill set as it is now.
func (a *Agent) lineup(ctx context.Context, from origin) (lineup, error) {
	set, err := a.attached(ctx, from)
	if err != nil {
		return nil, err
	}
	forced, invoked := from.forced, from.invoked
	named := slices.Clone(forced)
	if invoked != nil && !invoked.Derived {
		named = append(named, invoked.Skill)
	}
	extra, err := a.Skills.Dossiers(ctx, set.missing(named))
	if err != nil {
		return nil, err
	}
	for _, d := range extra {
		set = append(set, member{Dossier: d})
	}
	for i := range set {
		id := set[i].Skill.ID
		if slices.Contains(forced, id) {
			set[i].way, set[i].composed, set[i].ofTask, set[i].forced = run.WayForced, true, false, true
		}
		if invoked != nil && id == invoked.Skill {
			set[i].way, set[i].composed, set[i].ofTask, set[i].derived = run.WayInvoked, true, false, invoked.Derived
		}
	}
	return set, a.addFacts(ctx, set)
}

// attached reads what the configuration offers and then what the task does. A skill
// that both offer stands where the configuration has it; a task composes it also where
// the configuration would not (RULES I4).
func (a *Agent) attached(ctx context.Context, from origin) (lineup, error) {
	offered, err := a.Skills.Offered(ctx, from.configuration)
	if err != nil {
		return nil, err
	}
	var set lineup
	for _, o := range offered {
		set = append(set, member{
			Dossier: o.Dossier, way: run.WayAlways, composed: o.Attachment.LoadMode == library.Always,
			attached: true, onDemand: o.Attachment.LoadMode == library.OnDemand, offered: true,
		})
	}
	if from.task == uuid.Nil {
		return set, nil
	}
	if offered, err = a.Skills.OfferedByTask(ctx, from.task); err != nil {
		return nil, err
	}
	for _, o := range offered {
		at := slices.IndexFunc(set, func(m member) bool { return m.Skill.ID == o.Skill.ID })
		switch {
		case at < 0:
			set = append(set, member{Dossier: o.Dossier, way: run.WayAlways, composed: true, offered: true, ofTask: true})
		case !set[at].composed:
			set[at].composed, set[at].ofTask = true, true
		}
	}
	return set, nil
}

func (a *Agent) addFacts(ctx context.Context, set lineup) error {
	thresholds, err := a.Skills.Thresholds(ctx)
	if err != nil {
		return err
	}
	for i := range set {
		set[i].facts = set[i].Facts(thresholds)
	}
	return nil
}

func (set lineup) find(id uuid.UUID) (member, bool) {
	i := slices.IndexFunc(set, func(m member) bool { return m.Skill.ID == id })
	if i < 0 {
		return member{}, false
	}
	return set[i], true
}

// missing lists the ids that are no members yet.
func (set lineup) missing(ids []uuid.UUID) []uuid.UUID {
	var out []uuid.UUID
	for _, id := range ids {
		if _, found := set.find(id); !found {
			out = append(out, id)
		}
	}
	return out
}

// allowList is the live skill-derived list over the set (RULES T1, T3, T4, T9): every
// effective skill counts with its declaration, composed or not; a pinned one with its
// pinned snapshot's, enabled or not, as long as it is attached or was forced in the
// lineage.
func (set lineup) allowList(held []heldPin) []string {
	var declarations []skill.Tools
	for _, m := range set {
		if m.effective() && !slices.ContainsFunc(held, func(h heldPin) bool { return h.Skill == m.Skill.ID }) {
			declarations = append(declarations, skill.ContributedTools(m.facts))
		}
	}
	for _, h := range held {
		if m, member := set.find(h.Skill); !h.InLineage() && (!member || !m.offered && !m.forced) {
			continue // detached: attachment granted its tools
		}
		declarations = append(declarations, h.version.Tools)
	}
	return run.AllowList(declarations)
}

// composition is what a run's set comes to at its start: the versions that instruct,
// those that are fenced, and what a person should know.
type composition struct {
	pins    run.Pins
	fenced  []member
	notices []run.Notice
	broken  []library.Dossier // failed their integrity check (RULES D6)
}

// compose sorts the set. Held pins stand for their skills: the live record adds
// nothing while one holds (RULES P11).
func (set lineup) compose(held run.Pins) composition {
	c := composition{pins: held}
	for _, m := range set {
		if !m.composed || !m.effective() || holds(held, m.Skill.ID) {
			continue
		}
		standing := skill.Stand(m.facts)
		switch {
		case standing.Has(skill.ReasonIntegrityFailed):
			c.broken = append(c.broken, m.Dossier)
			c.notices = append(c.notices, notice(run.NoticeIntegritySkipped, m.Skill.Version.Name))
		case m.Skill.Version.Process == skill.ProcessUnreadable:
			c.notices = append(c.notices, notice(run.NoticeUnreadableProcess, m.Skill.Version.Name))
		case m.Skill.Version.Process == skill.ProcessYes && (m.way != run.WayInvoked || m.derived): // a start is never taken over
			c.notices = append(c.notices, notice(run.NoticeProcessSkipped, m.Skill.Version.Name))
		case standing.Instructs:
			c.pins = append(c.pins, m.pin())
		default:
			c.fenced = append(c.fenced, m)
		}
	}
	return c
}

func holds(pins run.Pins, id uuid.UUID) bool {
	return slices.ContainsFunc(pins, func(p run.Pin) bool { return p.Skill == id })
}

// pin names the member's current version, which instructs.
func (m member) pin() run.Pin {
	return run.Pin{
		Skill:   m.Skill.ID,
		Source:  m.Skill.SourceID,
		Digest:  m.Skill.Version.Digest(),
		Way:     m.way,
		Process: m.Skill.Version.Process == skill.ProcessYes,
		Forced:  m.forced && m.way != run.WayForced,
	}
}
