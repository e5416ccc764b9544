package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// openAI speaks the chat completions of OpenAI and of the many servers that
// imitate it.
type openAI struct {
	caller
	http     *http.Client
	now      func() time.Time
	endpoint string
	// completionTokens: this is OpenAI itself, see encode.
	completionTokens bool
}

func newOpenAI(m *Models, provider library.Provider) (agent.Model, error) {
	endpoint, err := endpointOf(provider.BaseURL)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(provider.APIKey)
	if strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) }) {
		return nil, fault.New(fault.BadInput, "the API key holds a character that no key has; was a line break pasted with it?")
	}
	return &openAI{
		caller: m.caller(provider.Name, key, m.breaker(provider)),
		http:   m.http, now: m.options.Now,
		endpoint:         endpoint.String(),
		completionTokens: endpoint.Hostname() == "api.openai.com",
	}, nil
}

// endpointOf appends /chat/completions to the base URL. Its path is kept as given,
// with or without a slash at the end: a server that wants /v1 is configured with
// /v1. A query is kept too, since one hosted service reads its version there.
func endpointOf(base string) (*url.URL, error) {
	at, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
		return nil, fault.New(fault.BadInput, "the base URL is not a URL")
	case at.Scheme != "http" && at.Scheme != "https", at.Hostname() == "":
		return nil, fault.New(fault.BadInput, "the base URL must be like https://host/v1")
	case at.User != nil:
		return nil, fault.New(fault.BadInput, "the base URL holds a user name or password; the key has a field of its own")
	case at.Fragment != "":
		return nil, fault.New(fault.BadInput, "the base URL holds a fragment (#)")
	}
	const path = "/chat/completions"
	at.Path = strings.TrimRight(at.Path, "/")
	if !strings.HasSuffix(at.Path, path) {
		at.Path += path
	}
	at.RawPath = ""
	return at, nil
}

// Turn implements agent.Model.
func (o *openAI) Turn(ctx context.Context, request agent.TurnRequest, onText func(string)) (agent.Turn, error) {
	body, err := encode(request, o.completionTokens)
	if err != nil {
		return agent.Turn{}, o.told(failed(false, "could not be asked: a tool's schema is not JSON").because(err))
	}
	return o.turn(ctx, func(int) (agent.Turn, error) { return o.attempt(ctx, body, onText) })
}

// attempt is one request. Its error is ctx's or a *failure.
func (o *openAI) attempt(ctx context.Context, body []byte, onText func(string)) (agent.Turn, error) {
	watch := newWatch(ctx, o.limits)
	defer watch.stop()
	request, err := http.NewRequestWithContext(watch.ctx, http.MethodPost, o.endpoint, bytes.NewReader(body))
	if err != nil {
		return agent.Turn{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream, application/json")
	request.Header.Set("User-Agent", "countersign")
	if o.key != "" {
		request.Header.Set("Authorization", "Bearer "+o.key)
	}
	response, err := o.http.Do(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return agent.Turn{}, ctx.Err()
	case err != nil && watch.ctx.Err() != nil:
		return agent.Turn{}, failed(true, "did not begin to answer within %s", o.limits.FirstByte).because(context.Cause(watch.ctx))
	case err != nil:
		return agent.Turn{}, unreachable(err)
	}
	defer response.Body.Close()
	watched := watch.over(response.Body)
	response.Body = watched
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return agent.Turn{}, refused(response, o.key != "", o.now())
	}
	got := &answer{limits: o.limits, onText: onText}
	if f := got.read(watched); f != nil {
		if ctx.Err() != nil {
			return agent.Turn{}, ctx.Err()
		}
		return agent.Turn{}, f
	}
	turn, f := got.turn()
	if f != nil {
		return agent.Turn{}, f
	}
	return turn, nil
}

// read takes the body of a good response: a stream of events, or, from servers that
// do not stream, one JSON document. The first byte tells them apart, because
// content types do not.
func (a *answer) read(body *watchedBody) *failure {
	in := bufio.NewReader(body)
	first, err := firstByte(in)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return broken(body.watch.ctx, err, a.limits)
	case err != nil:
		f := cutOff() // a response without one byte of an answer
		f.unanswered = true
		return f
	case first == '{', first == '[', first == '<':
		return a.readWhole(in, body)
	}
	return a.readStream(&events{in: in, longest: a.limits.Line}, body)
}

// firstByte passes over blanks and a byte order mark and leaves what follows.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.Contains([]byte(" \t\r\n\uFEFF"), []byte{c}) {
			return c, in.UnreadByte()
		}
	}
}

func (a *answer) readWhole(in io.Reader, body *watchedBody) *failure {
	document, err := io.ReadAll(in)
	if err != nil {
		return broken(body.watch.ctx, err, a.limits)
	}
	if document[0] != '{' {
		text, _ := readError(document)
		return failed(true, "sent something that is no answer: %s", text)
	}
	if f := a.add(document); f != nil {
		return f
	}
	if a.finish == "" && a.text.Len() == 0 && len(a.calls.calls) == 0 {
		text, _ := readError(document)
		return failed(true, "sent something that is no answer: %s", text)
	}
	return nil
}

// readStream reads events up to the end. After the finish reason the answer is
// whole: usage may follow, and a stream that breaks or hangs then loses nothing.
func (a *answer) readStream(stream *events, body *watchedBody) *failure {
	for {
		next, err := stream.next()
		switch {
		case err != nil && a.finish != "":
			return nil
		case errors.Is(err, io.EOF):
			return cutOff()
		case err != nil:
			return broken(body.watch.ctx, err, a.limits)
		}
		switch data := bytes.TrimSpace(next.data); {
		case len(data) == 0:
			continue
		case string(data) == "[DONE]":
			if a.finish == "" {
				return cutOff()
			}
			return nil
		case next.kind == "error":
			return reported(data)
		default:
			if f := a.add(data); f != nil {
				if next.cut && errors.As(f.Cause, new(*json.SyntaxError)) {
					return cutOff().because(f.Cause)
				}
				return f
			}
		}
		if a.finish != "" {
			body.watch.idle = a.limits.Tail
		}
	}
}
