// Package webhook tells other servers of writes to the content: a hook of the content
// room that posts a signed note, at the time of the write and once. It implements
// content.Hook, holds nothing but its configuration and is safe for concurrent use.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/network"
)

// Target is a server to tell.
type Target struct {
	URL    string `yaml:"url"`
	Secret string `yaml:"secret"` // signs the notes; at least 16 characters
	// Networks are networks that are not public and that the server may lie in.
	Networks []netip.Prefix `yaml:"networks"`
}

// Timeout bounds one note, answer included.
const Timeout = 5 * time.Second

// SignatureHeader holds `t=SECONDS,v1=HEX`: HMAC-SHA-256 over the seconds since 1970, a
// dot and the body.
const SignatureHeader = "Countersign-Signature"

// Hook posts notes to one target.
type Hook struct {
	target Target
	now    func() time.Time
	client *http.Client
}

var _ content.Hook = (*Hook)(nil)

// New makes a hook, or says what is wrong with its target.
func New(target Target, now func() time.Time) (*Hook, error) {
	to, err := url.Parse(target.URL)
	if err != nil || to.Host == "" || to.User != nil || to.Scheme != "https" && to.Scheme != "http" {
		return nil, errors.New("a hook's url must be a plain http or https URL")
	}
	if to.Scheme == "http" && len(target.Networks) == 0 {
		return nil, errors.New("a hook's url must be https unless it lies in a network of its own")
	}
	if len(target.Secret) < 16 {
		return nil, errors.New("a hook's secret must have at least 16 characters")
	}
	h := &Hook{target: target, now: now}
	dialer := net.Dialer{Timeout: Timeout, Control: func(_, resolved string, _ syscall.RawConn) error { return h.permit(resolved) }}
	h.client = &http.Client{
		Timeout:       Timeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return h, nil
}

// permit refuses, at the moment of dialling, an address that is neither public nor in
// the target's networks: a name may resolve to another one each time.
func (h *Hook) permit(resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("the address of a hook cannot be read: %w", err)
	}
	address := to.Addr().Unmap().WithZone("")
	if network.Public(address) || slices.ContainsFunc(h.target.Networks, func(named netip.Prefix) bool { return named.Contains(address) }) {
		return nil
	}
	return errors.New("the hook's server has an address that is not public")
}

// note is what a server is told: names and ids, no content.
type note struct {
	Kind     string    `json:"kind"`
	Table    string    `json:"table"`
	ID       string    `json:"id"`
	Revision int       `json:"revision"`
	Fields   []string  `json:"fields"`
	Actor    uuid.UUID `json:"actor"`
	Run      string    `json:"run,omitempty"`
	At       time.Time `json:"at"`
}

// AfterWrite implements content.Hook. Any answer but 2xx is a failure.
func (h *Hook) AfterWrite(ctx context.Context, e content.Event) error {
	told := note{
		Kind: e.Kind, Table: e.Record.Table, ID: e.Record.ID, Revision: e.Record.Revision,
		Fields: append([]string{}, e.Fields...), Actor: e.By.ID, At: e.Record.UpdatedAt,
	}
	if e.Origin.Run != uuid.Nil {
		told.Run = e.Origin.Run.String()
	}
	body, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("writing a hook's note: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.target.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("writing a hook's note: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(SignatureHeader, h.sign(body))
	response, err := h.client.Do(request)
	if err != nil {
		return fmt.Errorf("telling a hook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 4096) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("telling a hook: it answered %d", response.StatusCode)
	}
	return nil
}

func (h *Hook) sign(body []byte) string {
	at := strconv.FormatInt(h.now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(h.target.Secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
