package store

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func testKey(id string) Key { return Key{ID: id, Secret: sha256.Sum256([]byte(id))} }

func sealerOf(t *testing.T, keys ...Key) *sealer {
	t.Helper()
	s, err := newSealer(keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSeal(t *testing.T) {
	here := place{"runs", "state", "a"}
	one, two := testKey("one"), testKey("two")
	s := sealerOf(t, one)
	t.Run("R16 what is sealed opens in its place", rapid.MakeCheck(func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		sealed := s.seal(here, text)
		if got, err := s.open(here, sealed); err != nil || got != text {
			t.Fatalf("%q %v", got, err)
		}
		if len(text) > 3 && strings.Contains(sealed, text) {
			t.Fatal("the text stands in what was sealed")
		}
	}))
	t.Run("R16 it does not open elsewhere", func(t *testing.T) {
		sealed := s.seal(here, "secret")
		for _, elsewhere := range []place{{"runs", "state", "b"}, {"runs", "request", "a"}, {"sources", "state", "a"}, {"run", "sstate", "a"}} {
			if got, err := s.open(elsewhere, sealed); !errors.Is(err, errUnreadable) || got != "" {
				t.Errorf("in %v: %q %v", elsewhere, got, err)
			}
		}
	})
	t.Run("R16 keys are changed: the first seals, the others open", func(t *testing.T) {
		old := s.seal(here, "secret")
		both := sealerOf(t, two, one)
		if got, err := both.open(here, old); err != nil || got != "secret" {
			t.Fatalf("%q %v", got, err)
		}
		if sealed := both.seal(here, "secret"); !strings.HasPrefix(sealed, "two:") {
			t.Fatalf("sealed with %s", sealed)
		}
		if _, err := sealerOf(t, two).open(here, old); !errors.Is(err, errUnreadable) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("the same text is never sealed alike", func(t *testing.T) {
		if once, twice := s.seal(here, "secret"), s.seal(here, "secret"); once == twice {
			t.Fatal("two seals are equal")
		}
	})
	t.Run("what is damaged does not open", func(t *testing.T) {
		sealed := s.seal(here, "secret")
		raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(sealed, "one:"))
		for i := range raw {
			raw[i] ^= 1
			if _, err := s.open(here, "one:"+base64.StdEncoding.EncodeToString(raw)); !errors.Is(err, errUnreadable) {
				t.Fatalf("byte %d: %v", i, err)
			}
			raw[i] ^= 1
		}
		for _, bad := range []string{"one:", "one:AAAA", "one:!", "secret", ":", "two:" + sealed[4:]} {
			if _, err := s.open(here, bad); !errors.Is(err, errUnreadable) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

func TestParseKeys(t *testing.T) {
	one, two := testKey("one"), testKey("two-2_")
	t.Run("a list is read as it is written", func(t *testing.T) {
		got, err := ParseKeys(" " + one.String() + ",\n" + two.String() + "\n")
		if err != nil || len(got) != 2 || got[0] != one || got[1] != two {
			t.Fatalf("%v %v", got, err)
		}
	})
	for name, text := range map[string]string{
		"without an id":     base64.StdEncoding.EncodeToString(one.Secret[:]),
		"with a strange id": "a/b:" + base64.StdEncoding.EncodeToString(one.Secret[:]),
		"too short":         "a:" + base64.StdEncoding.EncodeToString(one.Secret[:31]),
		"that is no base64": "a:!",
		"after one that is": one.String() + ",b:",
	} {
		t.Run("a key "+name+" is refused and not repeated", func(t *testing.T) {
			_, err := ParseKeys(text)
			if err == nil || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(one.Secret[:31])) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("two keys with one id are refused", func(t *testing.T) {
		if _, err := newSealer([]Key{one, one}); err == nil {
			t.Fatal("they were taken")
		}
	})
}
