package agent

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

// heldPin is a pin that holds now, with the approved text it is composed from.
type heldPin struct {
	run.Pin
	version skill.Version
}

// failedPin is a pin that does not hold any more, and why.
type failedPin struct {
	run.Pin
	name    string
	failure skill.PinFailure
}

// checkPins holds every pin against what is approved now (RULES P2). It is asked at
// start and continuation, at pickup, and at every resume before the approved write runs.
func (a *Agent) checkPins(ctx context.Context, pins run.Pins) (held []heldPin, failed []failedPin, err error) {
	if len(pins) == 0 {
		return nil, nil, nil
	}
	ids := make([]uuid.UUID, len(pins))
	for i, p := range pins {
		ids[i] = p.Skill
	}
	dossiers, err := a.Skills.Dossiers(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	thresholds, err := a.Skills.Thresholds(ctx)
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[uuid.UUID]library.Dossier, len(dossiers))
	for _, d := range dossiers {
		byID[d.Skill.ID] = d
	}
	for _, p := range pins {
		dossier, exists := byID[p.Skill]
		facts, err := a.pinFacts(ctx, p, dossier, exists, thresholds)
		if err != nil {
			return nil, nil, err
		}
		version, failure, ok := skill.PinHolds(skill.Pin{Skill: p.Skill, Source: p.Source, Digest: p.Digest}, facts)
		if ok {
			held = append(held, heldPin{Pin: p, version: version})
			continue
		}
		failed = append(failed, failedPin{Pin: p, name: nameOf(p, dossier), failure: failure})
	}
	return held, failed, nil
}

// pinFacts reads what one pin depends on. The source is the pin's own, which is not
// the record's once the skill was moved.
func (a *Agent) pinFacts(ctx context.Context, p run.Pin, d library.Dossier, exists bool, t library.Thresholds) (skill.PinFacts, error) {
	if !exists {
		return skill.PinFacts{}, nil
	}
	out := holdingFacts(d, d.Facts(t))
	if p.Source == d.Source.ID {
		return out, nil
	}
	source, err := a.Skills.Source(ctx, p.Source)
	switch {
	case fault.Is(err, fault.NotFound):
		out.SourceExists = false
	case err != nil:
		return skill.PinFacts{}, err
	default:
		out.SourceLevel = source.TrustLevel
	}
	return out, nil
}

// holdingFacts are what a pin of a skill depends on while the skill stays in its source.
func holdingFacts(d library.Dossier, facts skill.Facts) skill.PinFacts {
	return skill.PinFacts{
		SkillExists:      true,
		Orphaned:         d.Skill.Orphaned,
		SourceExists:     true,
		SourceLevel:      d.Source.TrustLevel,
		InstructionLevel: facts.InstructionLevel,
		Approvals:        facts.Approvals,
		Revocations:      facts.Revocations,
	}
}

func nameOf(p run.Pin, d library.Dossier) string {
	if d.Skill.ID == uuid.Nil {
		return p.Skill.String()
	}
	return d.Skill.Version.Name
}

// pinReasons says each failure for people.
var pinReasons = map[skill.PinFailure]string{
	skill.PinSkillMissing:   "the skill does not exist any more",
	skill.PinOrphaned:       "its source no longer contains it",
	skill.PinSourceMissing:  "its source does not exist any more",
	skill.PinNoApproval:     "nobody approved this version from this source",
	skill.PinRevoked:        "its approval was revoked",
	skill.PinSnapshotBroken: "its approved text was changed in the database",
	skill.PinBelowThreshold: "its source's trust level is below the threshold",
}

// pinsWithout is what a stopped run stores: its pins less those that failed, so that
// the next turn works (RULES P3).
func pinsWithout(pins run.Pins, failed []failedPin) run.Pins {
	ids := make([]uuid.UUID, len(failed))
	for i, f := range failed {
		ids[i] = f.Skill
	}
	return pins.Without(ids...)
}

// withdrawn is the message of a run that stops because a pin failed, and its notices.
func withdrawn(failed []failedPin) (string, []run.Notice) {
	var (
		texts   []error
		notices []run.Notice
	)
	for _, f := range failed {
		n := notice(run.NoticeInstructionGone, f.name, pinReasons[f.failure])
		texts = append(texts, errors.New(said(n)))
		notices = append(notices, n)
	}
	return errors.Join(texts...).Error(), notices
}
