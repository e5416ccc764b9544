package content

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

// Written is what a write came to.
type Written struct {
	Record Record // as it stands after the write and its hooks
	// Changed names the fields that the write changed, in the table's order.
	Changed []string
	// Missed names the planned fields that the record does not hold as planned, sorted:
	// what makes an update partial (RULES G9).
	Missed []string
	// Untranslated names what a translation still says in the original's language, in
	// the table's order; what stands on an element comes after "element ID: ".
	Untranslated []string
	// Beside are the other records that the same write changed.
	Beside []Record
	// Left is what should have gone along and did not.
	Left Left
	// Repeated is true when the same call of the same run wrote before: nothing was
	// written again.
	Repeated bool
	// HookError is why a hook failed after the write, which stands nevertheless. It is
	// for the log.
	HookError error
}

// HookFailed reports whether a hook failed after the write.
func (w Written) HookFailed() bool { return w.HookError != nil }

// Partial reports whether the write is there but not all that was meant (RULES G9).
func (w Written) Partial() bool {
	return len(w.Missed) > 0 || len(w.Untranslated) > 0 || w.Left.Any()
}

// check refuses a half origin, which could not be recognised when it comes again.
func (o Origin) check() error {
	if (o.Run == uuid.Nil) != (o.Key == "") {
		return fault.New(fault.Internal, "content: a write of a run needs the run and the key of its call, one of them is missing")
	}
	return nil
}

// write is one write on its way.
type write struct {
	as      actor.Actor
	origin  Origin
	kind    string
	record  Record   // as the write leaves it
	fields  []string // that it changes
	planned map[string]any
}

// commit makes a change of records durable together with their revisions and audit
// entries, and then tells the hooks. It reports false when the change lost against
// another write that is not this one made earlier.
func (c *Content) commit(ctx context.Context, w write, ch change.Change, along ...write) (Written, bool, error) {
	r := w.record
	for _, each := range append([]write{w}, along...) {
		ch.Inserts = append(ch.Inserts, change.Insert{Table: historyTable, Row: each.revision(c.world.NewID())})
		ch.Audit = append(ch.Audit, each.entry(c.world))
	}
	outcome, err := change.One(ctx, c.store, ch)
	if err != nil {
		return Written{}, false, fmt.Errorf("writing %s %s: %w", r.Table, r.ID, err)
	}
	if !outcome.Applied {
		return c.before(ctx, w)
	}
	out := Written{Record: r, Changed: append([]string{}, w.fields...)}
	events := []Event{w.event()}
	for _, each := range along {
		out.Beside = append(out.Beside, each.record)
		events = append(events, each.event())
	}
	c.tell(ctx, events, &out)
	out.Missed = missed(w.planned, out.Record.Fields)
	return out, true, nil
}

func (w write) entry(of world.World) audit.Entry {
	return audit.Record(of, w.as, audit.ContentChanged).InRun(w.origin.Run).
		With("table", w.record.Table).With("record", w.record.ID).With("kind", w.kind).
		With("revision", w.record.Revision).With("fields", w.fields)
}

func (w write) revision(row uuid.UUID) []change.Value {
	out := []change.Value{
		revisionRow.To(row), revisionRecord.To(w.record.Row), revisionNumber.To(w.record.Revision),
		revisionKind.To(w.kind), revisionFields.To(w.record.Fields), revisionActor.To(w.as.ID),
		revisionParent.To(w.record.ParentID), revisionHidden.To(w.record.Hidden), revisionAt.To(w.record.UpdatedAt),
	}
	if w.origin.Run == uuid.Nil {
		return append(out, revisionRun.Null(), revisionKey.Null())
	}
	return append(out, revisionRun.To(w.origin.Run), revisionKey.To(w.origin.Key))
}

func (w write) event() Event {
	return Event{Record: w.record, Kind: w.kind, Fields: w.fields, By: w.as, Origin: w.origin}
}

// before finds what the same call of the same run wrote before (RULES R7). Rights
// are not asked again: what is answered is what this call did, not what it may do.
func (c *Content) before(ctx context.Context, w write) (Written, bool, error) {
	if w.origin.Run == uuid.Nil {
		return Written{}, false, nil
	}
	record, ok, err := c.store.Written(ctx, w.origin.Run, w.origin.Key)
	if err != nil || !ok {
		return Written{}, false, err
	}
	if record.Table != w.record.Table || w.kind != KindCreate && record.ID != w.record.ID {
		return Written{}, false, fault.New(fault.Conflict, "call %s of this run wrote another record before: %s %s", w.origin.Key, record.Table, record.ID)
	}
	out := Written{Record: record, Repeated: true}
	if out.Beside, err = c.store.WrittenBeside(ctx, w.origin.Run, w.origin.Key+keyMark); err != nil {
		return Written{}, false, fmt.Errorf("reading what call %s wrote: %w", w.origin.Key, err)
	}
	revisions, err := c.store.History(ctx, record.Table, record.ID)
	if err != nil {
		return Written{}, false, fmt.Errorf("reading what call %s wrote: %w", w.origin.Key, err)
	}
	out.Missed = missedBy(w.origin.Run, revisions, w.planned, record)
	w.record = record
	events := []Event{w.event()}
	for _, r := range out.Beside {
		events = append(events, w.beside(r, nil).event())
	}
	c.tell(ctx, events, &out)
	return out, true, nil
}

// missedBy is what none of the run's revisions of the record holds as planned. The
// record itself may have been changed by others since.
func missedBy(run uuid.UUID, revisions []Revision, planned map[string]any, now Record) []string {
	fewest := missed(planned, now.Fields)
	for _, rev := range revisions {
		if m := missed(planned, rev.Fields); rev.Run == run && len(m) < len(fewest) {
			fewest = m
		}
	}
	return fewest
}

func missed(planned, stored map[string]any) []string {
	var out []string
	for name, v := range planned {
		if !Same(v, stored[name]) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// tell tells the hooks of a durable write and reads back what they made of the
// record. The caller's cancellation does not reach them: the write has happened, and
// what follows it should too. All are told, whatever one of them says.
func (c *Content) tell(ctx context.Context, events []Event, out *Written) {
	if len(c.hooks) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var failures []error
	for _, event := range events {
		for _, h := range c.hooks {
			if err := tellOne(ctx, h, event); err != nil {
				failures = append(failures, err)
			}
		}
	}
	if !out.Repeated && !out.Record.Deleted {
		now, err := c.store.Record(ctx, out.Record.Table, out.Record.ID)
		if err != nil {
			failures = append(failures, fmt.Errorf("reading back %s %s: %w", out.Record.Table, out.Record.ID, err))
		} else {
			out.Record = now
		}
	}
	out.HookError = errors.Join(failures...)
}

func tellOne(ctx context.Context, h Hook, event Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("content: a hook panicked: %v", p)
		}
	}()
	return h.AfterWrite(ctx, event)
}
