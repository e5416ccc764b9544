package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
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
		Digest: e.Digest,
		Detail: e.details(),
	})
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
	return detail, nil
}

// Leaf is the RFC 6962 leaf hash of canonical bytes.
func Leaf(canonical []byte) []byte { return rfc6962.DefaultHasher.HashLeaf(canonical) }

func (e Entry) details() map[string]any {
	if e.Detail == nil {
		return map[string]any{}
	}
	return e.Detail
}

// given is nil for the zero id.
func given(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
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
