package scalar

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/countersign/countersign/internal/fault"
)

func written(m graphql.Marshaler) string {
	var b strings.Builder
	m.MarshalGQL(&b)
	return b.String()
}

// reader makes the functions comparable: what comes out is written again.
func reader[T any](read func(any) (T, error), write func(T) graphql.Marshaler) func(any) (string, error) {
	return func(v any) (string, error) {
		t, err := read(v)
		if err != nil {
			return "", err
		}
		return written(write(t)), nil
	}
}

func TestScalars(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	readers := map[string]func(any) (string, error){
		"text":     reader(UnmarshalText, MarshalText),
		"boolean":  reader(UnmarshalBoolean, MarshalBoolean),
		"int":      reader(UnmarshalInt, MarshalInt),
		"long":     reader(UnmarshalLong, MarshalLong),
		"dateTime": reader(UnmarshalDateTime, MarshalDateTime),
		"digest":   reader(UnmarshalDigest, MarshalDigest),
		"json":     reader(UnmarshalJSON, MarshalJSON),
	}
	const wrong = "!"
	for _, c := range []struct {
		scalar string
		in     any
		want   string
	}{
		{"text", "a\"b", `"a\"b"`},
		{"text", json.Number("12"), `"12"`},
		{"text", int64(12), `"12"`},
		{"text", true, wrong},
		{"text", []any{"a"}, wrong},
		{"boolean", true, "true"},
		{"boolean", "true", wrong},
		{"int", json.Number("-2147483648"), "-2147483648"},
		{"int", json.Number("2147483647"), "2147483647"},
		{"int", json.Number("2147483648"), wrong},
		{"int", json.Number("1.5"), wrong},
		{"int", 3.0, "3"},
		{"int", 3.5, wrong},
		{"int", "3", wrong},
		{"int", nil, wrong},
		{"long", json.Number("9223372036854775807"), "9223372036854775807"},
		{"long", "9223372036854775807", "9223372036854775807"},
		{"long", "9223372036854775808", wrong},
		{"long", 1e300, wrong},
		{"long", "", wrong},
		{"dateTime", "2026-01-31T10:30:00.1234567+01:00", `"2026-01-31T09:30:00.123456Z"`},
		{"dateTime", "2026-01-31T09:30:00Z", `"2026-01-31T09:30:00Z"`},
		{"dateTime", "2026-01-31", wrong},
		{"dateTime", json.Number("0"), wrong},
		{"digest", "1:" + hex, `"1:` + hex + `"`},
		{"digest", hex, `"` + hex + `"`},
		{"digest", strings.ToUpper(hex), wrong},
		{"digest", "1:" + hex + "\n", wrong},
		{"digest", ":" + hex, wrong},
		{"json", map[string]any{"b": json.Number("1.50"), "a": []any{nil, true}}, `{"a":[null,true],"b":1.50}`},
		{"json", nil, "null"},
		{"json", func() {}, wrong},
	} {
		got, err := readers[c.scalar](c.in)
		switch {
		case c.want == wrong && !fault.Is(err, fault.BadInput):
			t.Errorf("%s %v: got %s, %v; want an input error", c.scalar, c.in, got, err)
		case c.want != wrong && (err != nil || got != c.want):
			t.Errorf("%s %v: got %s, %v; want %s", c.scalar, c.in, got, err, c.want)
		}
	}
	if got := written(MarshalDateTime(time.Date(2026, 1, 31, 10, 30, 0, 0, time.FixedZone("", 3600)))); got != `"2026-01-31T09:30:00Z"` {
		t.Errorf("a moment elsewhere is written %s", got)
	}
	if got := written(MarshalJSON(nil)); got != "null" {
		t.Errorf("no JSON is written %s", got)
	}
}
