package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
)

// LiveText is what a model has written so far in one of a run's model calls.
type LiveText struct {
	Owner string // the segment
	Part  int    // the model call within the segment
	Round int    // as in the events of that call
	Text  string
}

// textEvery is the least time between two writes of a run's text: what a model sends in
// between goes with the next one.
const textEvery = 150 * time.Millisecond

// textPatience bounds one write of a text, and how long a suspension waits for the last.
const textPatience = 2 * time.Second

// liveText keeps what the model writes in a segment where any replica finds it. The
// segment adds, a goroutine of its own stores, and only while there is something to
// store; a write that fails, or comes after the segment's end, costs viewers some text and
// nothing else (RULES R17). Its methods are safe for concurrent use.
type liveText struct {
	agent *Agent
	run   uuid.UUID
	owner string

	mu      sync.Mutex
	text    strings.Builder
	part    int
	round   int
	fresh   bool          // there is something that was not stored
	before  *LiveText     // of the model call before, if that was not stored to its end
	there   bool          // this segment's row was made
	over    bool          // nothing is stored any more
	hurry   chan struct{} // gets a value when what there is shall be stored at once
	working chan struct{} // closed when the goroutine has ended; nil while there is none
}

// begin starts the text of another model call.
func (l *liveText) begin(round int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh {
		now := l.now()
		l.before = &now
	}
	l.text.Reset()
	l.part++
	l.round, l.fresh = round, false
}

// now is the text so far; the caller holds mu.
func (l *liveText) now() LiveText {
	return LiveText{Owner: l.owner, Part: l.part, Round: l.round, Text: wholeRunes(l.text.String())}
}

// add takes what the model wrote next. It never waits for the database.
func (l *liveText) add(delta string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delta == "" || l.over {
		return
	}
	l.text.WriteString(delta)
	l.fresh = true
	if l.working == nil {
		l.hurry, l.working = make(chan struct{}, 1), make(chan struct{})
		go l.keep(l.hurry, l.working)
	}
}

// flush has what there is stored at once, and returns what ends when that is done.
func (l *liveText) flush() (done <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.working == nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	select {
	case l.hurry <- struct{}{}:
	default:
	}
	return l.working
}

// settle waits until what there is has been stored, but not for long.
func (l *liveText) settle() {
	select {
	case <-l.flush():
	case <-time.After(textPatience):
	}
}

// stop ends the keeping: the segment is over.
func (l *liveText) stop() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	<-l.flush()
}

// keep stores the text until nothing was added since it last did. In a hurry it does not
// pause before the next look, unless another text has begun.
func (l *liveText) keep(hurry, working chan struct{}) {
	defer close(working)
	pause := time.NewTicker(textEvery)
	defer pause.Stop()
	for hurried := false; ; {
		if !hurried {
			select {
			case <-pause.C:
			case <-hurry:
				hurried = true
				pause.Reset(textEvery)
			}
		}
		now, there, more := l.take()
		if !more {
			return
		}
		again := l.kept(l.store(now, there), now.Part)
		hurried = hurried && again
	}
}

// take is what is to be stored next. When there is nothing the goroutine ends.
func (l *liveText) take() (now LiveText, there, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over || !l.fresh && l.before == nil:
		l.working, l.hurry = nil, nil
		return LiveText{}, false, false
	case l.before != nil:
		now, l.before = *l.before, nil
	default:
		now, l.fresh = l.now(), false
	}
	return now, l.there, true
}

// wholeRunes leaves out the beginning of a character whose end has not come yet.
func wholeRunes(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// kept takes note of how a write went, and says whether the text that was written is still
// the present one. A row that is not this segment's any more ends the keeping; whatever else
// went wrong may go well the next time.
func (l *liveText) kept(err error, part int) (present bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.there = true
	case errors.Is(err, errLeaseLost):
		l.over = true
	case !l.over:
		l.agent.Log.Warn("what the model writes could not be stored for its readers", slog.String("run", l.run.String()), slog.Any("error", err))
	}
	return part == l.part
}

// store writes the row. The first write of a segment takes it over, if the run is the
// segment's; the others find it by its owner, so that they lock nothing else.
func (l *liveText) store(now LiveText, there bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), textPatience)
	defer cancel()
	set := []change.Value{textPart.To(now.Part), textRound.To(now.Round), textSoFar.To(now.Text)}
	c := change.Change{Ring: []change.Topic{change.TextTopic(l.run)}}
	if there {
		c.Updates = []change.Update{{Table: textsTable, ID: l.run, If: []change.Value{textOwner.Is(l.owner)}, Set: set}}
	} else {
		c.Deletes = []change.Delete{textGone(l.run)}
		c.Updates = []change.Update{{Table: runsTable, ID: l.run, If: []change.Value{runStatus.Is(run.Running), runLeaseOwner.Is(l.owner)}}}
		c.Inserts = []change.Insert{{Table: textsTable, Row: append(set, textID.To(l.run), textOwner.To(l.owner))}}
	}
	out, err := change.One(ctx, l.agent.Store, c)
	if err == nil && !out.Applied {
		return errLeaseLost
	}
	return err
}

// textGone removes what a model was writing: part of every change that ends a run or
// takes it from its worker.
func textGone(id uuid.UUID) change.Delete {
	return change.Delete{Table: textsTable, ID: id, IfAny: true}
}
