package graph

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/fault"
)

// kinds lists every kind.
var kinds = []kind{
	userKind, tokenKind, sourceKind, skillKind, approvalKind, revocationKind, attachmentKind, configurationKind, providerKind, runKind, entryKind, snippetKind, taskKind,
}

func anyRow() *rapid.Generator[uuid.UUID] {
	return rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
	})
}

func TestIDs(t *testing.T) {
	t.Run("an id leads back to its row", rapid.MakeCheck(func(t *rapid.T) {
		row, k := anyRow().Draw(t, "row"), rapid.SampledFrom(kinds).Draw(t, "kind")
		id := k.id(row)
		if got, err := k.row(id); err != nil || got != row {
			t.Fatalf("%s leads to %v, %v; want %v", id, got, err, row)
		}
		if strings.Trim(strings.TrimPrefix(id, k.prefix+"_"), "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Fatalf("%s is not in lower-case base32", id)
		}
	}))

	t.Run("an id of another kind is refused and the wanted kind named", func(t *testing.T) {
		row := uuid.New()
		for _, wanted := range kinds {
			for _, given := range kinds {
				_, err := wanted.row(given.id(row))
				if wanted == given {
					if err != nil {
						t.Errorf("%s: %v", given.id(row), err)
					}
					continue
				}
				if !fault.Is(err, fault.BadInput) || !strings.Contains(err.Error(), wanted.noun) {
					t.Errorf("%s where %s is wanted: %v", given.id(row), wanted.noun, err)
				}
			}
		}
	})

	t.Run("prefixes differ", func(t *testing.T) {
		seen := map[string]bool{}
		for _, k := range kinds {
			if seen[k.prefix] {
				t.Errorf("%s is the prefix of two kinds", k.prefix)
			}
			seen[k.prefix] = true
		}
	})

	good := skillKind.id(uuid.New())
	for name, id := range map[string]string{
		"nothing":              "",
		"no prefix":            strings.TrimPrefix(good, "skl_"),
		"upper case":           strings.ToUpper(good),
		"cut":                  good[:len(good)-1],
		"longer":               good + "a",
		"spare bits not 0":     good[:len(good)-1] + "7",
		"a UUID":               uuid.New().String(),
		"characters not in it": "skl_" + strings.Repeat("1", 26),
		"invalid UTF-8":        "skl_\xff\xfe",
		"very long":            "skl_" + strings.Repeat("a", 1<<16),
	} {
		t.Run("no id: "+name, func(t *testing.T) {
			_, err := skillKind.row(id)
			if !fault.Is(err, fault.BadInput) {
				t.Fatalf("got %v", err)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the message repeats what was sent: %d bytes", len(err.Error()))
			}
		})
	}
}
