package emoji

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestTable reads the data file in its own way and compares every character, so that a stale or edited table shows.
func TestTable(t *testing.T) {
	data, err := os.ReadFile("emoji-data.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[rune]bool{}
	fields := regexp.MustCompile(`^([0-9A-F.]+) *; *Emoji `)
	for line := range strings.Lines(string(data)) {
		match := fields.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		low, high, isRange := strings.Cut(match[1], "..")
		if !isRange {
			high = low
		}
		for r := parse(t, low); r <= parse(t, high); r++ {
			want[r] = true
		}
	}
	if _, total, _ := strings.Cut(string(data), "# Total elements: "); strings.TrimSpace(total) != strconv.Itoa(len(want)) {
		t.Errorf("read %d emoji, the file says %q", len(want), total)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if Is(r) != want[r] {
			t.Errorf("Is(%U) = %v, the data says %v", r, Is(r), want[r])
		}
	}
}

func parse(t *testing.T, digits string) rune {
	t.Helper()
	value, err := strconv.ParseInt(digits, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return rune(value)
}
