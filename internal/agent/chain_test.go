package agent_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/provider"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// endpoint adds a provider whose client is real and whose endpoint the test is.
func (h *house) endpoint(name string, zone library.TrustZone, limits provider.Limits, answer http.HandlerFunc) library.Provider {
	h.t.Helper()
	server := httptest.NewServer(answer)
	h.t.Cleanup(server.Close)
	p, err := h.library.CreateProvider(context.Background(), h.admin, library.NewProvider{
		Name: name, Kind: library.OpenAICompatible, BaseURL: server.URL, TrustZone: zone,
	})
	h.ok(err)
	clients := provider.New(provider.Options{Limits: limits, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	h.t.Cleanup(clients.Close)
	p.Name = name
	client, err := clients.Open(p)
	h.ok(err)
	h.named.Store(name, client)
	return p
}

// spare adds a provider that a fake answers for.
func (h *house) spare(name string, zone library.TrustZone) (library.Provider, *fakeModel) {
	h.t.Helper()
	p, err := h.library.CreateProvider(context.Background(), h.admin, library.NewProvider{
		Name: name, Kind: library.Anthropic, TrustZone: zone,
	})
	h.ok(err)
	fake := &fakeModel{}
	h.named.Store(name, agent.Model(fake))
	return p, fake
}

func (h *house) configure(in library.ConfigurationUpdate) {
	h.t.Helper()
	in.ID = h.config.ID
	var err error
	h.config, err = h.library.UpdateConfiguration(context.Background(), h.admin, in)
	h.ok(err)
}

func (h *house) fallsBackTo(choices ...library.Choice) {
	h.t.Helper()
	h.configure(library.ConfigurationUpdate{Fallbacks: &choices})
}

func (h *house) modelCalls(r agent.Run) []run.EventData {
	h.t.Helper()
	var out []run.EventData
	for _, e := range h.events(r.ID) {
		if e.Kind == run.EventModelCall {
			out = append(out, e.Data)
		}
	}
	return out
}

func says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestFallbacks(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the client go
		<-r.Context().Done()
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half an ans\"}}]}\n\n")
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		limits provider.Limits
		falls  bool
		code   run.AttemptCode
		status int
	}{
		"M1 a provider that answers 503 after its retries": {says(503, "busy"), provider.Limits{}, true, run.AttemptFailed, 503},
		"M1 a provider that limits the rate":               {says(429, "slow down"), provider.Limits{}, true, run.AttemptFailed, 429},
		"M1 a provider that does not begin to answer":      {silent, provider.Limits{FirstByte: time.Millisecond, Attempts: 1}, true, run.AttemptFailed, 0},
		"M1 an answer that is cut off in its middle":       {cut, provider.Limits{}, true, run.AttemptFailed, 0},
		"M1 a request that is wrong":                       {says(400, "no"), provider.Limits{}, false, "", 0},
		"M1 a key that is refused":                         {says(401, "no"), provider.Limits{}, false, "", 0},
		"M1 a model that is not there":                     {says(404, "no"), provider.Limits{}, false, "", 0},
		"M1 an answer that is withheld":                    {says(500, `{"error":{"code":"content_filter","message":"no"}}`), provider.Limits{}, false, "", 0},
		"M1 a quota that is used up":                       {says(429, `{"error":{"code":"insufficient_quota","message":"pay"}}`), provider.Limits{}, false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(h *house) {
				first := h.endpoint("first", library.ZoneLocal, c.limits, c.answer)
				second, fake := h.spare("second", library.ZoneLocal)
				h.configure(library.ConfigurationUpdate{ProviderID: &first.ID})
				h.fallsBackTo(library.Choice{ProviderID: second.ID, Model: "m2"})
				fake.does(func(ctx context.Context) (agent.Turn, error) {
					write(ctx, "Whole.")
					return agent.Turn{Text: "Whole.", Usage: agent.Usage{InputTokens: 3, OutputTokens: 1}}, nil
				})
				r := h.start(h.admin, h.plain())
				if !c.falls {
					if r.Reason != run.ReasonProviderFailed || fake.count() != 0 || r.Usage.Requests != 1 {
						h.t.Fatalf("%s after %d calls of the fallback, %+v", r.Reason, fake.count(), r.Usage)
					}
					return
				}
				if r.Reason != run.ReasonCompleted || r.Answer != "Whole." || fake.asked(0).Model != "m2" {
					h.t.Fatalf("%s %q: %s", r.Reason, r.Answer, r.Message)
				}
				call := h.modelCalls(r)[0]
				passed := []run.Attempt{{Provider: first.ID.String(), Model: "m", Code: c.code, Status: c.status}}
				if call.Provider != second.ID.String() || call.Model != "m2" || !slices.Equal(call.Attempts, passed) {
					h.t.Errorf("the event says %+v", call)
				}
				began := strings.Contains(name, "in its middle") // what came of it counts, too
				if r.Usage.Requests != 2 || began != (r.Usage.InputTokens > 3) {
					h.t.Errorf("usage %+v", r.Usage)
				}
			})
		})
	}
	t.Run("M1 a provider whose breaker is open is not asked", func(t *testing.T) {
		each(t, func(h *house) {
			asked := make(chan struct{}, 10)
			first := h.endpoint("first", library.ZoneLocal, provider.Limits{Attempts: 1, Trip: 1}, func(w http.ResponseWriter, _ *http.Request) {
				asked <- struct{}{}
				w.WriteHeader(500)
			})
			second, _ := h.spare("second", library.ZoneLocal)
			h.configure(library.ConfigurationUpdate{ProviderID: &first.ID})
			h.fallsBackTo(library.Choice{ProviderID: second.ID, Model: "m2"})
			h.start(h.admin, h.plain())
			call := h.modelCalls(h.start(h.admin, h.plain()))[0]
			if len(asked) != 1 || len(call.Attempts) != 1 || call.Attempts[0].Code != run.AttemptLeftAlone {
				h.t.Errorf("asked %d times, %+v", len(asked), call.Attempts)
			}
		})
	})
	busy := func(context.Context) (agent.Turn, error) {
		return agent.Turn{}, &agent.ProviderError{Message: "busy", Status: 503, Retryable: true}
	}
	t.Run("M1 T8 nobody falls back to where the tools' results may not go", func(t *testing.T) {
		each(t, func(h *house) {
			abroad, fake := h.spare("abroad", library.ZoneGlobalExternal)
			hosted, _ := h.spare("hosted", library.ZonePrivateHosted)
			h.fallsBackTo(library.Choice{ProviderID: abroad.ID, Model: "m2"}, library.Choice{ProviderID: hosted.ID, Model: "m3"})
			h.connect(func(s *tool.Spec) { s.Freed, s.DataClass = true, tool.Diagnostics })
			h.model.does(busy)
			offered := h.modelCalls(h.start(h.admin, h.plain()))[0]

			h.model.says(calls(far, `{}`), calls("update_element", fix))
			waiting := h.start(h.admin, h.plain())
			h.ok(h.library.SetToolEnabled(context.Background(), h.admin, far, false))
			h.model.does(busy)
			all := h.modelCalls(h.decide(h.admin, waiting, true, ""))
			for name, call := range map[string]run.EventData{"offered": offered, "in the transcript": all[len(all)-1]} {
				if call.Model != "m3" || len(call.Attempts) != 2 || call.Attempts[1].Code != run.AttemptTrustZone || fake.count() != 0 {
					h.t.Errorf("%s: %+v", name, call)
				}
			}
			h.model.does(busy)
			if free := h.modelCalls(h.start(h.admin, h.plain()))[0]; free.Model != "m2" {
				h.t.Errorf("without the tool: %+v", free)
			}
		})
	})
	t.Run("M1 what does not fit a fallback's window is not cut further than its own window asks", func(t *testing.T) {
		each(t, func(h *house) {
			small, fake := h.spare("small", library.ZoneLocal)
			large, other := h.spare("large", library.ZoneLocal)
			h.window(100_000)
			h.fallsBackTo(library.Choice{ProviderID: small.ID, Model: "s"}, library.Choice{ProviderID: large.ID, Model: "l", ContextWindow: 200_000, MaxOutputTokens: 777})
			h.model.does(busy)
			req := h.plain()
			req.Messages[0].Text = strings.Repeat("green ferns ", 5000)
			call := h.modelCalls(h.start(h.admin, req))[0]
			if fake.count() != 0 || other.asked(0).MaxTokens != 777 || len(call.Attempts) != 2 || call.Attempts[1].Code != run.AttemptTooLong {
				h.t.Fatalf("%+v", call)
			}
		})
	})
	t.Run("M1 when nobody answers the run says what each of them met", func(t *testing.T) {
		each(t, func(h *house) {
			second, fake := h.spare("second", library.ZoneLocal)
			h.fallsBackTo(library.Choice{ProviderID: second.ID, Model: "m2"})
			h.model.does(busy)
			fake.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{}, &agent.ProviderError{Message: "wants a key", Status: 401}
			})
			r := h.start(h.admin, h.plain())
			if r.Reason != run.ReasonProviderFailed || r.Message != "busy; wants a key" || r.Usage.Requests != 2 {
				h.t.Fatalf("%s %q %+v", r.Reason, r.Message, r.Usage)
			}
		})
	})
	t.Run("M1 the cost of a run is of the prices of who answered", func(t *testing.T) {
		each(t, func(h *house) {
			second, fake := h.spare("second", library.ZoneLocal)
			h.fallsBackTo(library.Choice{ProviderID: second.ID, Model: "m2", Price: &library.Price{Input: 3_000_000, Output: 15_000_000}})
			own := &library.Price{Input: 50_000, Output: 1}
			h.configure(library.ConfigurationUpdate{Price: &own})
			h.model.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{Calls: calls("list_pages", `{}`), Usage: agent.Usage{InputTokens: 21, OutputTokens: 1}}, nil
			})
			h.model.does(busy)
			fake.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{Text: "Done.", Usage: agent.Usage{InputTokens: 100, OutputTokens: 10}}, nil
			})
			r := h.start(h.admin, h.plain())
			// 1.050001 millionths are 2, and 300 + 150.
			if r.Usage.Cost != 452 || r.Usage.Unpriced != 0 || r.Usage.Requests != 3 {
				h.t.Fatalf("%+v", r.Usage)
			}
		})
	})
}

func TestAnswerLength(t *testing.T) {
	for name, c := range map[string]struct {
		capped       bool
		window, most int
		sent, room   int // length that is sent, and left free of the window
	}{
		"B1 without a length nothing is sent and the usual room is left": {false, 100_000, 0, 0, 2000},
		"B1 a configured length is sent and left free":                   {false, 100_000, 5000, 5000, 5000},
		"B1 a model that needs a length leaves the same free":            {true, 100_000, 0, 4096, 4096},
		"B1 a model that needs a length takes the configured one":        {true, 100_000, 300, 300, 300},
		"B1 in a small window it asks for a quarter":                     {true, 8192, 0, 2048, 2048},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(h *house) {
				if c.capped {
					h.named.Store("Fake", agent.Model(cappedModel{h.model}))
				}
				h.configure(library.ConfigurationUpdate{ContextWindow: &c.window, MaxOutputTokens: &c.most})
				fits := h.plain()
				fits.AllowedTools = []string{}
				// Dense text: 2.5 bytes a token.
				budget := c.window - c.room - (c.window*3+99)/100
				fits.Messages = []prompt.Message{{Role: prompt.User, Text: strings.Repeat("0", budget*5/2-200)}}
				if r := h.start(h.admin, fits); r.Reason != run.ReasonCompleted || h.model.asked(0).MaxTokens != c.sent {
					h.t.Fatalf("%s: %s", r.Reason, r.Message)
				}
				fits.Messages[0].Text += strings.Repeat("0", 400)
				if r := h.start(h.admin, fits); r.Reason != run.ReasonContextTruncated {
					h.t.Fatalf("%s: %s", r.Reason, r.Message)
				}
			})
		})
	}
}

type cappedModel struct{ *fakeModel }

func (cappedModel) UsualTokens() int { return 4096 }
