// Package scalar says how the API's scalars are written and read. What cannot be read is an input error in words of its own: no text of a Go parser
// reaches a client. The functions are pure and may be called from any number of goroutines.
package scalar

import (
	"encoding/json"
	"io"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/countersign/countersign/internal/fault"
)

// MarshalText writes a string or an id.
func MarshalText(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalText reads a string or an id; as the specification has it, an id may come as a whole number.
func UnmarshalText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return "", fault.New(fault.BadInput, "a text is expected here")
}

// MarshalBoolean writes a truth value.
func MarshalBoolean(b bool) graphql.Marshaler { return graphql.MarshalBoolean(b) }

// UnmarshalBoolean reads a truth value.
func UnmarshalBoolean(v any) (bool, error) {
	if b, ok := v.(bool); ok {
		return b, nil
	}
	return false, fault.New(fault.BadInput, "true or false is expected here")
}

// MarshalInt writes a whole number of 32 bits. Nothing here counts further: positions, sequences and tokens of one run.
func MarshalInt(n int) graphql.Marshaler { return graphql.MarshalInt(n) }

// UnmarshalInt reads a whole number of 32 bits.
func UnmarshalInt(v any) (int, error) {
	n, ok := whole(v)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, fault.New(fault.BadInput, "a whole number of 32 bits is expected here")
	}
	return int(n), nil
}

// MarshalLong writes a whole number of 64 bits.
func MarshalLong(n int64) graphql.Marshaler { return graphql.MarshalInt64(n) }

// UnmarshalLong reads a whole number of 64 bits, also from a string of digits.
func UnmarshalLong(v any) (int64, error) {
	if s, ok := v.(string); ok {
		v = json.Number(s)
	}
	n, ok := whole(v)
	if !ok {
		return 0, fault.New(fault.BadInput, "a whole number of 64 bits is expected here")
	}
	return n, nil
}

// whole reads what the transports and literals make of a whole number.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// MarshalDateTime writes a moment in UTC.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.MarshalString(t.UTC().Format(time.RFC3339Nano))
}

// UnmarshalDateTime reads a moment with any offset, to the microsecond that both databases keep.
func UnmarshalDateTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if ok {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return t.UTC().Truncate(time.Microsecond), nil
		}
	}
	return time.Time{}, fault.New(fault.BadInput, "a moment as RFC 3339 writes it is expected here, such as 2026-01-31T09:30:00Z")
}

// digestShape is a SHA-256, with or without a version's format in front.
var digestShape = regexp.MustCompile(`^(?:[0-9]+:)?[0-9a-f]{64}$`)

// MarshalDigest writes a digest.
func MarshalDigest(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalDigest reads a digest by its shape. Which kind is wanted is for the field that takes it.
func UnmarshalDigest(v any) (string, error) {
	if s, ok := v.(string); ok && digestShape.MatchString(s) {
		return s, nil
	}
	return "", fault.New(fault.BadInput, "a digest is expected here: 64 lower-case hexadecimal digits, for a skill version with 1: in front")
}

// MarshalJSON writes a JSON value as it is; nothing at all is null.
func MarshalJSON(raw json.RawMessage) graphql.Marshaler {
	if len(raw) == 0 {
		return graphql.Null
	}
	return graphql.WriterFunc(func(w io.Writer) { _, _ = w.Write(raw) })
}

// UnmarshalJSON reads any JSON value.
func UnmarshalJSON(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fault.New(fault.BadInput, "a JSON value is expected here")
	}
	return raw, nil
}
