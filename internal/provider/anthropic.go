package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

// anthropic speaks the Messages API of Anthropic.
type anthropic struct{ wire }

const (
	anthropicBase    = "https://api.anthropic.com" // when the provider has no base URL
	anthropicVersion = "2023-06-01"                // of the wire format, which every request names
	// anthropicTokens is asked for when nobody names a length: the wire demands one, and
	// every model takes this.
	anthropicTokens = 4096
)

func newAnthropic(m *Models, provider library.Provider) (agent.Model, error) {
	endpoint, err := endpointOf(cmp.Or(strings.TrimSpace(provider.BaseURL), anthropicBase), messagesPath)
	if err != nil {
		return nil, err
	}
	key, err := usableKey(provider.APIKey)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set("Anthropic-Version", anthropicVersion)
	if key != "" {
		headers.Set("X-Api-Key", key)
	}
	return &anthropic{m.wire(provider, key, endpoint, headers, (*answer).addMessageEvent)}, nil
}

// messagesPath takes a base with or without /v1, as either is written down.
func messagesPath(base string) string {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/messages"), "/v1")
	return base + "/v1/messages"
}

// UsualTokens implements agent.Capped.
func (a *anthropic) UsualTokens() int { return anthropicTokens }

// Turn implements agent.Model.
func (a *anthropic) Turn(ctx context.Context, request agent.TurnRequest, onText func(string)) (agent.Turn, error) {
	body, err := encodeAnthropic(request)
	if err != nil {
		return agent.Turn{}, a.told(failed(false, "could not be asked: a tool's schema is not JSON").because(err))
	}
	return a.turn(ctx, func(int) (agent.Turn, error) { return a.attempt(ctx, body, onText) })
}

// The request of a message, as the wire names it.
type (
	messageRequest struct {
		Model     string          `json:"model"`
		MaxTokens int             `json:"max_tokens"`
		System    string          `json:"system,omitempty"`
		Messages  []wireMessage   `json:"messages"`
		Tools     []anthropicTool `json:"tools,omitempty"`
		Stream    bool            `json:"stream"`
	}
	wireMessage struct {
		Role    prompt.Role `json:"role"`
		Content []wireBlock `json:"content"`
	}
	wireBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		Content   *string         `json:"content,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
)

// encodeAnthropic writes the body. System messages are a field of their own, roles
// alternate, and the results of a turn's calls open the user's next message: that is
// what the wire accepts.
func encodeAnthropic(request agent.TurnRequest) ([]byte, error) {
	out := messageRequest{Model: request.Model, MaxTokens: cmp.Or(request.MaxTokens, anthropicTokens), Stream: true}
	var system []string
	for _, m := range request.Messages {
		if m.Role == prompt.System {
			system = append(system, m.Text)
			continue
		}
		blocks := blocksOf(m)
		if len(blocks) == 0 {
			continue // the wire takes no empty text
		}
		role := prompt.User
		if m.Role == prompt.Assistant {
			role = prompt.Assistant
		}
		if last := len(out.Messages) - 1; last >= 0 && out.Messages[last].Role == role {
			out.Messages[last].Content = append(out.Messages[last].Content, blocks...)
			continue
		}
		out.Messages = append(out.Messages, wireMessage{Role: role, Content: blocks})
	}
	out.System = strings.Join(system, "\n\n")
	for _, t := range request.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = anyObject
		}
		out.Tools = append(out.Tools, anthropicTool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	body, err := marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return body, nil
}

func blocksOf(m prompt.Message) []wireBlock {
	if m.Role == prompt.ToolRole {
		text := m.Text // an empty result is a result
		return []wireBlock{{Type: "tool_result", ToolUseID: m.CallID, Content: &text, IsError: m.Failed}}
	}
	var blocks []wireBlock
	if strings.TrimSpace(m.Text) != "" {
		blocks = append(blocks, wireBlock{Type: "text", Text: m.Text})
	}
	for _, c := range m.Calls {
		blocks = append(blocks, wireBlock{Type: "tool_use", ID: c.ID, Name: c.Tool, Input: json.RawMessage(sentArguments(c.Arguments))})
	}
	return blocks
}

// messageEvent is one event of an answer, or, from servers that do not stream, all of it.
type messageEvent struct {
	Type    string `json:"type"`
	Index   *int   `json:"index"`
	Message *struct {
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	Block *answerBlock `json:"content_block"`
	Delta *struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage *anthropicUsage `json:"usage"`
	Error json.RawMessage `json:"error"`

	// Of a whole message.
	Content    []answerBlock `json:"content"`
	StopReason string        `json:"stop_reason"`
}

type answerBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// anthropicUsage counts what was read from the cache apart from the rest.
type anthropicUsage struct {
	Input   int `json:"input_tokens"`
	Written int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Output  int `json:"output_tokens"`
}

// stopReasons are the wire's words for what an answer's end means to every client.
var stopReasons = map[string]string{"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}

// addMessageEvent takes one event of a message, or a whole one. Kinds of events and
// blocks that it does not know, such as thinking, are passed over: new ones come.
func (a *answer) addMessageEvent(data []byte) *failure {
	var e messageEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return failed(true, "sent something that is no answer: %s", oneLine(string(data))).because(err)
	}
	if stated(e.Error) || e.Type == "error" {
		return reported(data)
	}
	if e.Message != nil {
		a.count(e.Message.Usage)
	}
	if e.Usage != nil {
		a.count(*e.Usage)
	}
	for i, block := range e.Content {
		if f := a.addBlock(&i, block); f != nil {
			return f
		}
	}
	if e.Block != nil {
		if f := a.addBlock(e.Index, *e.Block); f != nil {
			return f
		}
	}
	reason := e.StopReason
	if d := e.Delta; d != nil {
		if f := a.addPiece(e.Index, d.Text, d.PartialJSON); f != nil {
			return f
		}
		reason = cmp.Or(d.StopReason, reason)
	}
	if reason != "" {
		a.finish = cmp.Or(stopReasons[reason], reason)
	}
	return nil
}

// addBlock takes the beginning of a block, or a whole one.
func (a *answer) addBlock(index *int, block answerBlock) *failure {
	switch block.Type {
	case "text":
		return a.addDelta(delta{Content: contentText(block.Text)})
	case "tool_use":
		call := fragment{Index: index, ID: block.ID}
		call.Function.Name = block.Name
		if input := string(block.Input); stated(block.Input) { // else it comes in pieces
			call.Function.Arguments = argumentText(input)
		}
		return a.addDelta(delta{ToolCalls: []fragment{call}})
	}
	return nil
}

func (a *answer) addPiece(index *int, text, arguments string) *failure {
	d := delta{Content: contentText(text)}
	if arguments != "" {
		piece := fragment{Index: index}
		piece.Function.Arguments = argumentText(arguments)
		d.ToolCalls = []fragment{piece}
	}
	return a.addDelta(d)
}

// count keeps what was reported last: the end of a stream repeats what grew.
func (a *answer) count(u anthropicUsage) {
	if input := u.Input + u.Written + u.Read; input > 0 {
		a.usage.InputTokens = input
	}
	if u.Output > 0 {
		a.usage.OutputTokens = u.Output
	}
}
