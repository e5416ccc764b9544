package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/rfc6962"
)

// canonicalFormat names the form below. Another form gets another name, so that
// entries of this one stay verifiable.
const canonicalFormat = "countersign/entry/1"

// canonical is an entry as it is hashed: one JSON object in this order of members,
// without spaces; an id that does not apply is null; the members of detail are
// sorted. The index is not part of it, because it is known only at the commit.
type canonical struct {
	Format string         `json:"format"`
	ID     uuid.UUID      `json:"id"`
	At     string         `json:"at"`
	Event  Event          `json:"event"`
	Actor  *uuid.UUID     `json:"actor"`
	Source *uuid.UUID     `json:"source"`
	Skill  *uuid.UUID     `json:"skill"`
	Run    *uuid.UUID     `json:"run"`
	Digest string         `json:"digest"`
	Detail map[string]any `json:"detail"`
}

// timeFormat is RFC 3339 in UTC with exactly six digits of a second.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// Canonical is the text whose bytes the log's leaf covers. An entry that is read
// back gives the same bytes as the entry that was written.
func (e Entry) Canonical() []byte {
	return encode(canonical{
		Format: canonicalFormat,
		ID:     e.ID,
		At:     e.At.UTC().Truncate(time.Microsecond).Format(timeFormat),
		Event:  e.Event,
		Actor:  given(e.Actor),
		Source: given(e.Source),
		Skill:  given(e.Skill),
		Run:    given(e.Run),
		Digest: strings.ToValidUTF8(e.Digest, "\ufffd"),
		Detail: e.details(),
	})
}

// ParseCanonical reads canonical bytes. It refuses whatever Canonical would write
// in another way, so that an entry has exactly one text.
func ParseCanonical(text []byte) (Entry, error) {
	var c canonical
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&c); err != nil {
		return Entry{}, fmt.Errorf("it is no entry: %w", err)
	}
	if c.Format != canonicalFormat {
		return Entry{}, fmt.Errorf("its format is %q, and only %q can be read", clip(c.Format), canonicalFormat)
	}
	at, err := time.Parse(timeFormat, c.At)
	if err != nil {
		return Entry{}, fmt.Errorf("its time cannot be read: %w", err)
	}
	e := Entry{
		ID: c.ID, At: at, Event: c.Event, Actor: known(c.Actor), Source: known(c.Source), Skill: known(c.Skill), Run: known(c.Run),
		Digest: c.Digest, Detail: c.Detail,
	}
	if !bytes.Equal(e.Canonical(), text) {
		return Entry{}, errors.New("it is not written in the canonical form")
	}
	return e, nil
}

// clip keeps what somebody else wrote short enough for a message.
func clip(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// EncodeDetail is the detail as the store keeps it: JSON with sorted members.
func (e Entry) EncodeDetail() string { return string(encode(e.details())) }

// DecodeDetail reads what EncodeDetail wrote. Numbers stay as they were written.
func DecodeDetail(text string) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	detail := map[string]any{}
	if err := decoder.Decode(&detail); err != nil {
		return nil, fmt.Errorf("read the detail of an audit entry: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the detail of an audit entry: something follows it")
	}
	return detail, nil
}

// Leaf is the RFC 6962 leaf hash of canonical bytes.
func Leaf(canonical []byte) []byte { return rfc6962.DefaultHasher.HashLeaf(canonical) }

// details is the detail as it will be read back: plain objects, whose members are
// sorted, and valid UTF-8.
func (e Entry) details() map[string]any {
	if len(e.Detail) == 0 {
		return map[string]any{}
	}
	plain, err := DecodeDetail(string(encode(e.Detail)))
	if err != nil {
		panic(fmt.Sprintf("audit: an entry's detail does not read back: %v", err)) // encode wrote an object
	}
	return plain
}

// given is nil for the zero id.
func given(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// known is the zero id for nil.
func known(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

func encode(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		// Whoever records an entry gives names, counts, ids and codes.
		panic(fmt.Sprintf("audit: an entry's detail is no JSON: %v", err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
