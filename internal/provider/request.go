package provider

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/prompt"
)

// The request of a chat completion, as the wire names it.
type (
	chatRequest struct {
		Model               string        `json:"model"`
		Messages            []chatMessage `json:"messages"`
		Tools               []chatTool    `json:"tools,omitempty"`
		Stream              bool          `json:"stream"`
		StreamOptions       streamOptions `json:"stream_options"`
		MaxTokens           int           `json:"max_tokens,omitempty"`
		MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chatMessage struct {
		Role       prompt.Role `json:"role"`
		Content    *string     `json:"content"`
		ToolCalls  []chatCall  `json:"tool_calls,omitempty"`
		ToolCallID string      `json:"tool_call_id,omitempty"`
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatTool struct {
		Type     string         `json:"type"`
		Function chatDefinition `json:"function"`
	}
	chatDefinition struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// anyObject is the schema of a tool that declares none: the wire demands one.
var anyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// encode writes the body. completionTokens chooses OpenAI's newer name of the
// limit, which its reasoning models demand and other servers do not know.
func encode(request agent.TurnRequest, completionTokens bool) ([]byte, error) {
	wire := chatRequest{Model: request.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}}
	if completionTokens {
		wire.MaxCompletionTokens = request.MaxTokens
	} else {
		wire.MaxTokens = request.MaxTokens
	}
	wire.Messages = make([]chatMessage, 0, len(request.Messages))
	for _, message := range request.Messages {
		wire.Messages = append(wire.Messages, encodeMessage(message))
	}
	for _, definition := range request.Tools {
		schema := definition.Schema
		if len(schema) == 0 {
			schema = anyObject
		}
		wire.Tools = append(wire.Tools, chatTool{Type: "function", Function: chatDefinition{
			Name: definition.Name, Description: definition.Description, Parameters: schema,
		}})
	}
	body, err := marshal(wire)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return body, nil
}

// encodeMessage keeps an empty text as "": an empty tool result is a result, and
// leaving it out would leave its call unanswered. Only a turn of nothing but calls
// has no content, as the wire's own answers have it.
func encodeMessage(message prompt.Message) chatMessage {
	wire := chatMessage{Role: message.Role, Content: &message.Text, ToolCallID: message.CallID}
	for _, call := range message.Calls {
		wire.ToolCalls = append(wire.ToolCalls, chatCall{
			ID: call.ID, Type: "function",
			Function: chatFunction{Name: call.Tool, Arguments: sentArguments(call.Arguments)},
		})
	}
	if len(wire.ToolCalls) > 0 && message.Text == "" {
		wire.Content = nil
	}
	return wire
}
