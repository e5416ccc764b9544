package chat

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/wording"
)

// View returns a conversation of the actor's.
func (c *Chat) View(ctx context.Context, by actor.Actor, id uuid.UUID) (Conversation, error) {
	return c.find(ctx, by, id)
}

// List pages through the actor's conversations, the latest made first.
func (c *Chat) List(ctx context.Context, by actor.Actor, filter Filter, page Page) ([]Conversation, error) {
	if err := need(by); err != nil {
		return nil, err
	}
	return c.Store.Conversations(ctx, by.ID, filter, page)
}

// Entries lists entries of a conversation of the actor's.
func (c *Chat) Entries(ctx context.Context, by actor.Actor, id uuid.UUID, after, limit int) ([]Entry, error) {
	if _, err := c.find(ctx, by, id); err != nil {
		return nil, err
	}
	return c.Store.Log(ctx, id, after, limit)
}

// Card returns what a conversation waits with, nil when it does not wait, with the answers
// that its owner may give.
func (c *Chat) Card(ctx context.Context, by actor.Actor, now Conversation) (*agent.Card, error) {
	if !now.Status.Waits() {
		return nil, nil
	}
	r, err := c.Runs.Run(ctx, now.RunID)
	if err != nil {
		return nil, err
	}
	return c.Runtime.ConversationCard(ctx, by, r)
}

// followBatch is how many entries one read of a follower takes.
const followBatch = 200

// Follow streams a conversation's log after a sequence: what is stored, then what comes,
// each entry once and in order, until the conversation is gone or not the actor's.
func (c *Chat) Follow(ctx context.Context, by actor.Actor, id uuid.UUID, after int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		rings, stop := c.Bell.Listen(change.ConversationTopic(id))
		defer stop()
		heal := time.NewTicker(healEvery)
		defer heal.Stop()
		for {
			batch, err := c.Entries(ctx, by, id, after, followBatch)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
				after = e.Sequence
			}
			if len(batch) == followBatch {
				continue
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

// Export is a conversation as a text to keep: what was said, what was proposed and what
// became of it, in order, in Markdown.
func (c *Chat) Export(ctx context.Context, by actor.Actor, id uuid.UUID) (string, error) {
	now, err := c.find(ctx, by, id)
	if err != nil {
		return "", err
	}
	log, err := c.Store.Log(ctx, id, -1, maxLog)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("# " + heading(now.Title) + "\n")
	for _, e := range log {
		at := e.At.Format(time.RFC3339)
		switch e.Kind {
		case KindMessage:
			out.WriteString("\n## " + at + " · Message\n\n" + e.Text + "\n")
		case KindAnswer:
			out.WriteString("\n## " + at + " · Answer\n\n" + e.Text + "\n")
		case KindProposal, KindQuestion:
			out.WriteString("\n- " + at + " · " + string(e.Kind) + " · " + e.Data.Tool + targetText(e.Data) + "\n")
		case KindOutcome, KindNotice:
			out.WriteString("\n- " + at + " · " + e.Data.Code + " · " + wording.Say(wording.English, e.Data.Code, e.Data.Args...) + "\n")
		}
	}
	return out.String(), nil
}

func heading(title string) string {
	if title == "" {
		return "Conversation"
	}
	return title
}

func targetText(d Data) string {
	if d.Target == nil {
		return ""
	}
	return " · " + d.Target.Table + " " + d.Target.ID + " " + strings.Join(d.Target.Fields, ", ")
}
