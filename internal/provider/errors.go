package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// stated reports whether a JSON member is there and says something.
func stated(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "false", "{}":
		return false
	}
	return true
}

// reported is an error that a provider wrote into its answer.
func reported(raw []byte) *failure {
	text, codes := readError(raw)
	f := failed(true, "reported an error: %s", text)
	for _, code := range codes {
		if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
			f.Status, f.Retryable = status, retryableStatus(status)
		}
	}
	if final(codes) {
		f.Retryable = false
	}
	return f
}

// final says whether one of the codes means that the same request fails again.
func final(codes []string) bool {
	return slices.ContainsFunc(codes, func(code string) bool { return finalCodes[code] })
}

// finalCodes are such codes and types.
var finalCodes = map[string]bool{
	"authentication_error":    true,
	"content_filter":          true,
	"context_length_exceeded": true,
	"insufficient_quota":      true,
	"invalid_api_key":         true,
	"invalid_request_error":   true,
	"model_not_found":         true,
	"not_found_error":         true,
	"permission_error":        true,
}

// readError makes one readable line of an error body, whatever it is: JSON with the
// error as a string, an object or a list, an HTML page, plain text. codes are what
// the provider calls the error, if it says.
func readError(body []byte) (text string, codes []string) {
	trimmed := bytes.TrimSpace(body)
	var value any
	switch {
	case len(trimmed) == 0:
		return "(no explanation)", nil
	case json.Unmarshal(trimmed, &value) == nil:
		if message := errorText(value, 0); message != "" {
			return oneLine(message), errorCodes(value, 0)
		}
	case trimmed[0] == '<':
		if title := htmlTitle.FindSubmatch(trimmed); title != nil {
			return oneLine(string(title[1])), nil
		}
		return oneLine(string(htmlTag.ReplaceAll(trimmed, []byte(" ")))), nil
	}
	return oneLine(string(trimmed)), nil
}

var (
	htmlTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	htmlTag   = regexp.MustCompile(`<[^>]*>`)
)

const errorDepth = 4 // how deep an explanation is looked for

func errorText(value any, depth int) string {
	if depth > errorDepth {
		return ""
	}
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v)
	case []any:
		for _, item := range v {
			if text := errorText(item, depth+1); text != "" {
				return text
			}
		}
	case map[string]any:
		for _, key := range []string{"error", "message", "detail", "msg", "errors"} {
			if text := errorText(v[key], depth+1); text != "" {
				return text
			}
		}
	}
	return ""
}

func errorCodes(value any, depth int) []string {
	if depth > errorDepth {
		return nil
	}
	switch v := value.(type) {
	case []any:
		if len(v) > 0 {
			return errorCodes(v[0], depth+1)
		}
	case map[string]any:
		codes := errorCodes(v["error"], depth+1)
		for _, key := range []string{"code", "type"} {
			switch code := v[key].(type) {
			case string:
				codes = append(codes, code)
			case float64:
				codes = append(codes, strconv.Itoa(int(code)))
			}
		}
		return codes
	}
	return nil
}

// oneLine is text as one printable line.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// statusPhrases say what a status means to someone who set the provider up. Others
// are quoted as they are.
var statusPhrases = map[int]string{
	http.StatusForbidden:             "does not let this API key do that (403)",
	http.StatusNotFound:              "has no such model, or nothing at this base URL (404; is a path such as /v1 missing?)",
	http.StatusRequestEntityTooLarge: "finds the request too large (413)",
	http.StatusTooManyRequests:       "limits its rate (429)",
}

// refused reads a response that is no answer. Nothing of an answer has arrived.
func refused(resp *http.Response, hasKey bool, now time.Time) *failure {
	f := failed(retryableStatus(resp.StatusCode), "")
	f.Status, f.unanswered = resp.StatusCode, true
	f.after = retryAfter(resp.Header.Get("Retry-After"), now)
	switch {
	case resp.StatusCode == http.StatusUnauthorized && hasKey:
		// Not what the body says: providers repeat the key in it.
		f.Message = "refused its API key (401)"
		return f
	case resp.StatusCode == http.StatusUnauthorized:
		f.Message = "wants an API key, and none is set (401)"
		return f
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		f.Message = redirectPhrase(resp)
		return f
	}
	phrase, ok := statusPhrases[resp.StatusCode]
	if !ok {
		phrase = "answered " + strings.TrimSpace(strconv.Itoa(resp.StatusCode)+" "+http.StatusText(resp.StatusCode))
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // as much of it as came
	text, codes := readError(body)
	if final(codes) { // a quota that is used up is sent as 429
		f.Retryable = false
	}
	if f.after > 0 {
		phrase += fmt.Sprintf(" and asks to wait %s", f.after.Round(time.Second))
	}
	f.Message = phrase + ": " + text
	return f
}

func redirectPhrase(resp *http.Response) string {
	phrase := "redirects (" + strconv.Itoa(resp.StatusCode) + "), which is not followed; set its base URL to the final address"
	if to, err := resp.Location(); err == nil && to.Host != "" {
		phrase += ", on " + to.Scheme + "://" + to.Host
	}
	return phrase
}

// retryAfter reads seconds or a date; what is neither, or past, is no wait.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// unreachable explains a request that got no response. The cause keeps the detail
// for the log, without the URL.
func unreachable(err error) *failure {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var (
		lookup      *net.DNSError
		certificate *tls.CertificateVerificationError
		timeout     net.Error
		f           *failure
	)
	switch {
	case errors.As(err, &certificate):
		return failed(false, "cannot be reached: its certificate is not trusted").because(err)
	case errors.As(err, &lookup):
		f = failed(true, "cannot be reached: its host name is not known")
	case errors.Is(err, syscall.ECONNREFUSED):
		f = failed(true, "cannot be reached: the connection was refused")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		f = failed(true, "closed the connection without an answer")
	case errors.As(err, &timeout) && timeout.Timeout():
		f = failed(true, "cannot be reached: it took too long to connect")
	default:
		f = failed(true, "cannot be reached")
	}
	f.unanswered = true
	return f.because(err)
}

var (
	errSilent = errors.New("provider fell silent")
	errLong   = errors.New("answer took too long")
	errBytes  = errors.New("response too large")
)

// broken explains a response that stopped before its end.
func broken(ctx context.Context, err error, limits Limits) *failure {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent):
		return failed(true, "fell silent").because(cause)
	case errors.Is(cause, errLong):
		return failed(true, "did not finish within %s", limits.Total).because(cause)
	case errors.Is(err, errLongLine):
		return failed(false, "sent a line of more than %d bytes", limits.Line).because(err)
	case errors.Is(err, errBytes):
		return failed(false, "sent more than the %d bytes a response may have", limits.Response).because(err)
	}
	return cutOff().because(err)
}

func cutOff() *failure { return failed(true, "cut its answer off before it was finished") }
