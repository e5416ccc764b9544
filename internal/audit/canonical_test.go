package audit_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
)

func entry() audit.Entry {
	return audit.Entry{
		ID:     uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"),
		At:     time.Date(2025, 3, 4, 5, 6, 7, 8009, time.FixedZone("", 3600)),
		Event:  audit.VersionApproved,
		Actor:  uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8058"),
		Skill:  uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8059"),
		Digest: "1:00",
		Detail: map[string]any{"name": `a "<b>" & ü`, "count": 3, "big": int64(9007199254740993), "codes": []string{"X"}},
		Index:  12,
	}
}

func TestCanonical(t *testing.T) {
	const golden = `{"format":"countersign/entry/1","id":"01890a5d-ac96-774b-bcce-b302099a8057","at":"2025-03-04T04:06:07.000008Z",` +
		`"event":"VERSION_APPROVED","actor":"01890a5d-ac96-774b-bcce-b302099a8058","source":null,` +
		`"skill":"01890a5d-ac96-774b-bcce-b302099a8059","run":null,"digest":"1:00",` +
		`"detail":{"big":9007199254740993,"codes":["X"],"count":3,"name":"a \"<b>\" & ü"}}`
	t.Run("U2 the canonical bytes never change", func(t *testing.T) {
		if got := string(entry().Canonical()); got != golden {
			t.Fatalf("got  %s\nwant %s", got, golden)
		}
		const leaf = "5716f075d9c82ca2e0809ce8fd6a33fab89c72596f803882763dad56535999c2"
		if got := hex.EncodeToString(audit.Leaf(entry().Canonical())); got != leaf {
			t.Fatalf("the leaf hash is %s, want %s", got, leaf)
		}
	})
	t.Run("U2 the index is not part of it", func(t *testing.T) {
		moved := entry()
		moved.Index, moved.LeafHash = 99, []byte{1}
		if string(moved.Canonical()) != golden {
			t.Fatal("an entry's place changes its bytes")
		}
	})
	t.Run("U2 an entry that was read back has the bytes it was written with", func(t *testing.T) {
		read := entry()
		detail, err := audit.DecodeDetail(entry().EncodeDetail())
		if err != nil {
			t.Fatal(err)
		}
		read.Detail, read.At = detail, read.At.UTC().Truncate(time.Microsecond)
		if got := string(read.Canonical()); got != golden {
			t.Fatalf("got  %s\nwant %s", got, golden)
		}
	})
	t.Run("U2 without a detail there is an empty one", func(t *testing.T) {
		if got := (audit.Entry{}).EncodeDetail(); got != "{}" {
			t.Fatalf("got %s", got)
		}
	})
}
