package agent

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// TextDelta is what a model wrote since the delta before. Offset is where it belongs in
// the text of its round, in UTF-16 units; at 0 another text begins.
type TextDelta struct {
	Round  int
	Offset int
	Text   string
}

// FollowText streams what the models of a run write: first the text of the present round so
// far, then what comes, until the run is terminal. A run that completed ends with its whole
// answer, however late somebody joined. The text of a round that is over is not shown
// again. Like Follow it reads when it is rung, so a slow reader costs nothing.
func (a *Agent) FollowText(ctx context.Context, by actor.Actor, id uuid.UUID) iter.Seq2[TextDelta, error] {
	return func(yield func(TextDelta, error) bool) {
		rings, stop := a.Bell.Listen(change.RunTopic(id), change.TextTopic(id))
		defer stop()
		heal := time.NewTicker(healEvery)
		defer heal.Stop()
		var seen reading
		for {
			r, err := a.View(ctx, by, id) // before the text: a terminal run gets no more
			if err != nil {
				yield(TextDelta{}, err)
				return
			}
			now, err := a.textNow(ctx, r)
			if err != nil {
				yield(TextDelta{}, err)
				return
			}
			if d, is := seen.next(now); is && !yield(d, nil) || r.Status.Terminal() {
				return
			}
			select {
			case <-rings:
			case <-heal.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// textNow is the text that there is: what is being written, or in the end the answer.
func (a *Agent) textNow(ctx context.Context, r Run) (LiveText, error) {
	if !r.Status.Terminal() {
		return a.Store.LiveText(ctx, r.ID)
	}
	if r.Answer == "" || r.Events == 0 {
		return LiveText{}, nil
	}
	last, err := a.Store.Events(ctx, r.ID, r.Events-2, 1)
	if err != nil || len(last) == 0 {
		return LiveText{}, err
	}
	return LiveText{Round: last[0].Round, Text: r.Answer}, nil
}

// reading is how far a reader is.
type reading struct {
	at     LiveText
	offset int
}

// next is what the reader lacks of the text as it is now, which is nothing while there is
// none. A terminal run's answer has no owner: it goes on with the last text, if it begins
// like it.
func (d *reading) next(now LiveText) (TextDelta, bool) {
	if now == (LiveText{}) {
		return TextDelta{}, false
	}
	same := now.Owner == d.at.Owner && now.Part == d.at.Part || now.Owner == "" && now.Round == d.at.Round
	if !same || !strings.HasPrefix(now.Text, d.at.Text) {
		*d = reading{}
	}
	added := now.Text[len(d.at.Text):]
	out := TextDelta{Round: now.Round, Offset: d.offset, Text: added}
	d.at = now
	d.offset += units(added)
	return out, added != ""
}

// units counts UTF-16 units.
func units(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}
