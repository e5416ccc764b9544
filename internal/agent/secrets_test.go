package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// What no text may hold: a secret by its shape, by its name, and one of the installation.
var (
	awsKey    = "AKIA" + "IOSFODNN7EXAMPLE"
	leaked    = "hunter2secret"
	installed = "the-providers-own-key"
	marked    = "[redacted:aws_access_key] password=[redacted:password] [redacted:known_secret]"
	loose     = awsKey + " password=" + leaked + " " + installed
)

func free(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{awsKey, leaked, installed} {
		if strings.Contains(text, secret) {
			t.Errorf("M2 %s holds %s: %q", what, secret, text)
		}
	}
}

// keeps a secret of the installation, and one in a record.
func (h *house) keepsSecrets() {
	h.t.Helper()
	ctx := context.Background()
	_, err := h.library.CreateProvider(ctx, h.admin, library.NewProvider{Name: "Keyed", Kind: library.OpenAICompatible, BaseURL: "https://example.org", APIKey: installed})
	h.ok(err)
	_, err = h.content.Update(ctx, h.admin, content.Edit{Table: content.ElementTable, ID: "hello", Fields: map[string]any{"text": loose}})
	h.ok(err)
}

func TestSecretsInARun(t *testing.T) {
	t.Run("M2 no model, event, transcript or answer has a secret that a message, a record or the model brings", func(t *testing.T) {
		each(t, func(h *house) {
			h.keepsSecrets()
			h.setting("privacy.level", "full")
			propose := `{"id":"hello","fields":{"text":` + quote("New: "+loose) + `}}`
			h.model.does(func(ctx context.Context) (agent.Turn, error) {
				return agent.Turn{Text: "I know " + loose, Calls: calls("read_record", `{"table":"element","id":"hello"}`, "update_element", propose)}, nil
			})
			h.model.does(func(context.Context) (agent.Turn, error) { return agent.Turn{Text: "Done: " + loose}, nil })
			req := h.plain()
			req.Messages[0].Text = "Go: " + loose
			r := h.start(h.admin, req)
			state, err := h.store.State(context.Background(), r.ID)
			h.ok(err)
			if r.Status != run.WaitingForApproval {
				h.t.Fatalf("%s %q", r.Status, r.Message)
			}
			card, err := h.agent.Card(context.Background(), h.admin, r)
			h.ok(err)
			h.t.Run("M2 what is shown for approval is what is written", func(t *testing.T) {
				arguments := string(card.Calls[0].Arguments)
				if free(t, "the card", arguments); !strings.Contains(arguments, "New: "+marked) {
					t.Errorf("%s", arguments)
				}
				if lines := strings.Join(card.Calls[0].Lines, "\n"); !strings.Contains(lines, "New: "+marked) || !strings.Contains(lines, loose) {
					t.Errorf("the card does not show what would be lost and what takes its place: %q", lines)
				}
			})
			messages, err := json.Marshal(state.Messages)
			h.ok(err)
			free(h.t, "the suspended state", string(messages))
			r = h.decide(h.admin, r, true, "")
			if got := h.text("hello"); got != "New: "+marked {
				h.t.Errorf("M2 %q was written", got)
			}
			if r.Answer != "Done: "+marked {
				h.t.Errorf("M2 the answer is %q", r.Answer)
			}
			for n := range h.model.count() {
				free(h.t, "what the model reads", fmt.Sprint(h.model.asked(n)))
			}
			events, err := h.agent.Events(context.Background(), h.admin, r.ID, -1, 1000)
			h.ok(err)
			for _, e := range events {
				kept, err := json.Marshal(e)
				h.ok(err)
				free(h.t, "the event "+string(e.Kind), string(kept))
			}
		})
	})
	t.Run("M2 a queued run's request has none, and neither has the message of a failed one", func(t *testing.T) {
		each(t, func(h *house) {
			h.keepsSecrets()
			h.drain()
			req := h.plain()
			req.Messages[0].Text = loose
			r, err := h.agent.Start(context.Background(), h.admin, req)
			h.ok(err)
			request, err := h.store.Request(context.Background(), r.ID)
			h.ok(err)
			if got := request.Messages[0].Text; got != marked {
				h.t.Errorf("M2 %q", got)
			}
		})
		each(t, func(h *house) {
			h.keepsSecrets()
			h.model.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{}, &agent.ProviderError{Message: "refused " + loose, Cause: errors.New(loose)}
			})
			if r := h.start(h.admin, h.plain()); r.Message != "refused "+marked {
				h.t.Errorf("M2 %q", r.Message)
			}
		})
	})
	t.Run("M2 no part of a secret reaches a reader of what is written", func(t *testing.T) {
		each(t, func(h *house) {
			h.keepsSecrets()
			k := h.typist()
			r := h.begins()
			reader := h.reads(h.agent, r.ID)
			k.keys <- "It is " + awsKey[:9]
			reader.until("It is ")
			k.keys <- awsKey[9:] + " password=hun"
			reader.until("It is [redacted:aws_access_key] password")
			k.keys <- leaked[3:] + " the-prov"
			reader.until("It is [redacted:aws_access_key] password=[redacted:password] ")
			k.keys <- installed[8:]
			k.ends <- agent.Turn{Text: "It is " + loose}
			reader.ends("It is " + marked)
			if len(reader.texts) > 0 {
				h.t.Errorf("M2 %q was replaced", reader.texts)
			}
		})
	})
	t.Run("M2 a marker is never written into the place of the secret that it stands for", func(t *testing.T) {
		each(t, func(h *house) {
			h.keepsSecrets()
			h.model.says(calls("update_element", `{"id":"hello","fields":{"text":`+quote(marked+" and more")+`}}`))
			r := h.start(h.admin, h.plain())
			if r.Status != run.Completed || h.text("hello") != loose {
				h.t.Errorf("%s, and the record is %q", r.Status, h.text("hello"))
			}
			last := h.model.asked(1).Messages
			if result := last[len(last)-1]; result.Role != prompt.ToolRole || !result.Failed || !strings.Contains(result.Text, `"redacted_text"`) {
				h.t.Errorf("%+v", result)
			}
		})
	})
}

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
