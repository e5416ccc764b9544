package agent

import (
	"context"

	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

// Models opens the model clients of configured providers. internal/provider
// implements it.
type Models interface {
	// Open makes a client for a provider. It fails with fault.BadInput when the
	// provider's settings cannot be used (a script that does not parse, a base URL
	// that is none).
	Open(provider library.Provider) (Model, error)
}

// Model answers one turn. Implementations are safe for concurrent use, take no key
// or header from the environment and retry only before the first byte of an answer.
type Model interface {
	// Turn asks for one answer. onText, when not nil, gets the text as it arrives, in
	// order, from one goroutine. An error is a *ProviderError or ctx's error; no partial
	// answer is returned with it.
	Turn(ctx context.Context, request TurnRequest, onText func(delta string)) (Turn, error)
}

// Capped is a model whose wire demands a length for the answer.
type Capped interface {
	// UsualTokens is the length that its models take when nobody names one.
	UsualTokens() int
}

// TurnRequest is everything a provider is sent.
type TurnRequest struct {
	Model     string
	Messages  []prompt.Message
	Tools     []prompt.Definition
	MaxTokens int // of the answer; 0 lets the provider decide
	// Subject is what ${subject.id} stands for in a script of the scripted provider;
	// model providers ignore it.
	SubjectID string
}

// Turn is one answer of a model: text, calls, or both. Call ids are unique within
// the turn and arguments are JSON objects, whatever the provider sent.
type Turn struct {
	Text  string
	Calls []prompt.Call
	Usage Usage
}

// Usage counts tokens as the provider reports them; zero means not reported.
type Usage struct {
	InputTokens  int `json:"inputTokens"`
	OutputTokens int `json:"outputTokens"`
}

// Consumption is what a run used up. Cost counts millionths, of the answers whose model
// had a price.
type Consumption struct {
	Usage
	Requests int   `json:"requests,omitempty"` // every model that was asked counts, also one that failed
	Cost     int64 `json:"cost,omitempty"`
	Unpriced int   `json:"unpriced,omitempty"` // answers without a price
}

// ProviderError is a failed model call. Message is safe to show to the run's
// initiator: it never holds a key or a header.
type ProviderError struct {
	Message   string
	Status    int  // HTTP status, 0 when there was none
	Retryable bool // the same request may succeed later
	LeftAlone bool // it was not asked: it failed repeatedly (a circuit breaker is open)
	Cause     error
}

func (e *ProviderError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ProviderError) Unwrap() error { return e.Cause }
