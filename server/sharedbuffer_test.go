package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestSharedBuffer(t *testing.T) {
	t.Run("an event stream sends each event as it was made, although the next one is made in its buffer", func(t *testing.T) {
		const all = 2000
		response := open(t, nil).ask(fmt.Sprintf("subscription { ticks(to: %d) }", all), streamed)
		body := wantStatus(t, response, http.StatusOK)
		n := 0
		for _, line := range strings.Split(body, "\n") {
			data, isData := strings.CutPrefix(line, "data: ")
			if !isData || data == "" {
				continue
			}
			n++
			if want := fmt.Sprintf(`{"data":{"ticks":%d}}`, n); data != want {
				t.Fatalf("event %d is %s", n, data)
			}
		}
		if n != all {
			t.Errorf("%d events", n)
		}
	})
}
