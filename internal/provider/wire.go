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

// wire is one endpoint that takes JSON and answers with a stream of events, or with a
// document. What the clients of the different formats share is all here; a format is
// how its request is written, and how one piece of its answer is read.
type wire struct {
	caller
	http     *http.Client
	now      func() time.Time
	endpoint string
	headers  http.Header
	read     func(*answer, []byte) *failure
}

func (m *Models) wire(p library.Provider, key string, endpoint *url.URL, headers http.Header, read func(*answer, []byte) *failure) wire {
	return wire{
		caller: m.caller(p.Name, key, m.breaker(p)), http: m.http, now: m.options.Now,
		endpoint: endpoint.String(), headers: headers, read: read,
	}
}

// shortestKey is the least an API key has. A shorter one could not be kept out of
// messages without garbling them.
const shortestKey = 8

// usableKey is a configured key as it is sent; empty when there is none.
func usableKey(configured string) (string, error) {
	key := strings.TrimSpace(configured)
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) }):
		return "", fault.New(fault.BadInput, "the API key holds a character that no key has; was a line break pasted with it?")
	case key != "" && len(key) < shortestKey:
		return "", fault.New(fault.BadInput, "the API key is too short to be one: it has fewer than %d characters", shortestKey)
	}
	return key, nil
}

// endpointOf is where a provider with a base URL is asked; pathOf completes the URL's
// path, which has no slash at its end. A query is kept, since one hosted service reads
// its version there.
func endpointOf(base string, pathOf func(string) string) (*url.URL, error) {
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
	at.Path = pathOf(strings.TrimRight(at.Path, "/"))
	at.RawPath = ""
	return at, nil
}

// attempt is one request. Its error is ctx's or a *failure.
func (w *wire) attempt(ctx context.Context, body []byte, onText func(string)) (agent.Turn, error) {
	watch := newWatch(ctx, w.limits)
	defer watch.stop()
	request, err := http.NewRequestWithContext(watch.ctx, http.MethodPost, w.endpoint, bytes.NewReader(body))
	if err != nil {
		return agent.Turn{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream, application/json")
	request.Header.Set("User-Agent", "countersign")
	for name, values := range w.headers {
		request.Header[name] = values
	}
	response, err := w.http.Do(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return agent.Turn{}, ctx.Err()
	case err != nil && watch.ctx.Err() != nil:
		return agent.Turn{}, failed(true, "did not begin to answer within %s", w.limits.FirstByte).because(context.Cause(watch.ctx))
	case err != nil:
		return agent.Turn{}, unreachable(err)
	}
	defer response.Body.Close()
	watched := watch.over(response.Body)
	response.Body = watched
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return agent.Turn{}, refused(response, w.key != "", w.now())
	}
	got := &answer{limits: w.limits, onText: onText, add: w.read}
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
	if f := a.add(a, document); f != nil {
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
			if f := a.add(a, data); f != nil {
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
