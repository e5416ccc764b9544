// Package webhook posts to other servers. Hook tells them of writes to the content, at
// the time of the write and once; Sender posts the notifications of runs, which come again
// until they are taken. Both implement a port of their room (content.Hook, notify.Sender),
// hold nothing but their configuration and are safe for concurrent use.
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
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/content"
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
	if err := plain(target.URL, target.Networks); err != nil {
		return nil, fmt.Errorf("a hook's %w", err)
	}
	if len(target.Secret) < 16 {
		return nil, errors.New("a hook's secret must have at least 16 characters")
	}
	return &Hook{target: target, now: now, client: client(reach{target.Networks, true}, Timeout)}, nil
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
