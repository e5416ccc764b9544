package prompt

import "math"

// Gauge estimates tokens from bytes. No tokenizer is the model's own behind an endpoint
// that anybody may configure, so the estimate is held against what the provider reports
// and only ever corrected upward (RULES B5). The zero Gauge is ready; it is a value, kept
// with the run.
type Gauge struct {
	// Factor is what the estimates have to be multiplied with; below 1 is 1.
	Factor float64 `json:"factor,omitempty"`
}

// What a token is estimated at, in bytes, and what a message and a call cost beside
// their text, in tokens.
const (
	proseBytes    = 3.5
	denseBytes    = 2.5
	messageTokens = 8
	callTokens    = 12
)

// Messages estimates the tokens of messages with their calls.
func (g Gauge) Messages(messages []Message) int {
	sum := 0.0
	for _, m := range messages {
		sum += rawMessage(m)
	}
	return g.corrected(sum)
}

// Tools estimates the tokens of tool definitions.
func (g Gauge) Tools(tools []Definition) int {
	sum := 0.0
	for _, t := range tools {
		sum += callTokens + rawText(t.Description) + float64(len(t.Name)+len(t.Schema))/denseBytes
	}
	return g.corrected(sum)
}

// Text estimates a text by itself.
func (g Gauge) Text(text string) int { return g.corrected(rawText(text)) }

// Learn is the gauge after a provider has counted what was estimated: more than that
// corrects it, less changes nothing.
func (g Gauge) Learn(estimated, counted int) Gauge {
	if estimated > 0 && counted > estimated {
		g.Factor = g.factor() * float64(counted) / float64(estimated)
	}
	return g
}

func (g Gauge) factor() float64 { return max(g.Factor, 1) }

func (g Gauge) corrected(raw float64) int { return int(math.Ceil(raw * g.factor())) }

func rawMessage(m Message) float64 {
	sum := messageTokens + rawText(m.Text)
	for _, c := range m.Calls {
		sum += callTokens + float64(len(c.Tool)+len(c.Arguments))/denseBytes
	}
	return sum
}

// rawText is the estimate of a text: code, numbers, markup and scripts of several bytes
// a letter take more tokens a byte than prose.
func rawText(text string) float64 {
	plain := 0
	for i := range len(text) {
		if isPlain[text[i]] {
			plain++
		}
	}
	if 5*plain < 4*len(text) { // less than four bytes in five are letters and spaces
		return float64(len(text)) / denseBytes
	}
	return float64(len(text)) / proseBytes
}

// isPlain are the bytes that prose mostly consists of.
var isPlain = func() (plain [256]bool) {
	for _, b := range []byte(" \n.,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		plain[b] = true
	}
	return plain
}()
