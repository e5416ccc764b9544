package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/notify"
)

// Sender posts notifications as the Standard Webhooks specification has it
// (https://www.standardwebhooks.com), so that receivers verify them with a library. It is
// safe for concurrent use.
type Sender struct {
	networks []netip.Prefix
	over     map[string]*http.Client // by scheme: http is for named networks alone
}

var _ notify.Sender = (*Sender)(nil)

// PostTimeout bounds one post, answer included.
const PostTimeout = 15 * time.Second

// NewSender makes a sender that also reaches private networks that are named.
func NewSender(networks []netip.Prefix) *Sender {
	return newSender(networks, PostTimeout)
}

func newSender(networks []netip.Prefix, timeout time.Duration) *Sender {
	return &Sender{networks: networks, over: map[string]*http.Client{
		"https": client(reach{networks, true}, timeout), "http": client(reach{networks, false}, timeout),
	}}
}

// Check implements notify.Sender.
func (s *Sender) Check(url string) error {
	if len(url) > 2000 {
		return fault.New(fault.BadInput, "The url has more than 2000 characters.")
	}
	if err := plain(url, s.networks); err != nil {
		return fault.New(fault.BadInput, "The %s.", err)
	}
	return nil
}

// Post implements notify.Sender.
func (s *Sender) Post(ctx context.Context, m notify.Message) (notify.Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, strings.NewReader(m.Body))
	if err != nil {
		return notify.Answer{}, errors.New("the url cannot be used")
	}
	id, at := m.ID, strconv.FormatInt(m.At.Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Countersign")
	request.Header.Set("webhook-id", id)
	request.Header.Set("webhook-timestamp", at)
	request.Header.Set("webhook-signature", Signature(m.Secret, id, at, m.Body))
	over, known := s.over[request.URL.Scheme]
	if !known {
		return notify.Answer{}, errors.New("the url cannot be used")
	}
	response, err := over.Do(request)
	if err != nil {
		return notify.Answer{}, unanswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 4096) // so that the connection can be used again
	return notify.Answer{StatusCode: response.StatusCode, RetryAfter: retryAfter(response.Header.Get("Retry-After"), m.At)}, nil
}

// Signature is what webhook-signature holds: `v1,` and HMAC-SHA-256 in base64 over id,
// timestamp and body, joined by dots, under the key in the secret.
func Signature(secret, id, at, body string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		key = []byte(secret) // one that we did not make
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// unanswered is why a post had no answer, without the address that was dialled.
func unanswered(err error) error {
	var timeout net.Error
	var name *net.DNSError
	switch {
	case errors.Is(err, errNotPublic):
		return errNotPublic
	case errors.Is(err, errOnlyHTTPS):
		return errOnlyHTTPS
	case errors.As(err, &name):
		return errors.New("the server's name cannot be resolved")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the server did not answer in time")
	}
	return errors.New("the server cannot be reached, or broke the connection off")
}

// retryAfter reads seconds or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
