package provider

import (
	"context"
	"net/http"
	"strings"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
)

// openAI speaks the chat completions of OpenAI and of the many servers that
// imitate it.
type openAI struct {
	wire
	// completionTokens: this is OpenAI itself, see encode.
	completionTokens bool
}

func newOpenAI(m *Models, provider library.Provider) (agent.Model, error) {
	endpoint, err := endpointOf(provider.BaseURL, chatPath)
	if err != nil {
		return nil, err
	}
	key, err := usableKey(provider.APIKey)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	if key != "" {
		headers.Set("Authorization", "Bearer "+key)
	}
	return &openAI{
		wire:             m.wire(provider, key, endpoint, headers, (*answer).addCompletion),
		completionTokens: endpoint.Hostname() == "api.openai.com",
	}, nil
}

func chatPath(base string) string {
	const path = "/chat/completions"
	return strings.TrimSuffix(base, path) + path
}

// Turn implements agent.Model.
func (o *openAI) Turn(ctx context.Context, request agent.TurnRequest, onText func(string)) (agent.Turn, error) {
	body, err := encode(request, o.completionTokens)
	if err != nil {
		return agent.Turn{}, o.told(failed(false, "could not be asked: a tool's schema is not JSON").because(err))
	}
	return o.turn(ctx, func(int) (agent.Turn, error) { return o.attempt(ctx, body, onText) })
}
