package ws

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"type":"connection_init","payload":{"authorization":"Bearer x"}}`))
	f.Add([]byte(`{"type":"subscribe","id":"1","payload":{"query":"{a}"}}`))
	f.Add([]byte(`{"type":"complete","id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data)
		if err != nil {
			return
		}
		payload, err := m.object()
		if err == nil {
			token(payload)
		}
		if answer := idMessage(m.ID, typeNext, []byte(`{}`)); !json.Valid(answer) || !utf8.Valid(answer) {
			t.Fatalf("%q", answer)
		}
	})
}
