package guard

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// told are the secrets that a redactor looks for by their value.
type told struct {
	triggers [256]uint8
	pairs    [256]*charset            // their first two bytes
	by       map[[told4]byte][]string // by their first bytes, the longest first
}

// told4 is how many bytes candidates are found by.
const told4 = 4

// tell makes the table of some secrets, nil when none can be looked for.
func tell(secrets []string) *told {
	t := &told{triggers: shaped, by: map[[told4]byte][]string{}}
	for _, secret := range secrets {
		for _, form := range forms(strings.TrimSpace(secret)) {
			if len(form) < ShortestTold {
				continue
			}
			key := [told4]byte([]byte(form[:told4]))
			if !slices.Contains(t.by[key], form) {
				t.by[key] = append(t.by[key], form)
				t.triggers[form[0]] |= asTold
				if t.pairs[form[0]] == nil {
					t.pairs[form[0]] = &charset{}
				}
				t.pairs[form[0]][form[1]] = true
			}
		}
	}
	if len(t.by) == 0 {
		return nil
	}
	for _, forms := range t.by {
		slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	}
	return t
}

// forms are the ways in which a secret is written.
func forms(secret string) []string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		return []string{secret}
	}
	return []string{secret, string(quoted[1 : len(quoted)-1]), url.QueryEscape(secret)}
}

func (t *told) match(text string, i int, final bool) find {
	if t == nil || t.triggers[text[i]]&asTold == 0 {
		return none
	}
	have := text[i:]
	if len(have) < told4 {
		if final {
			return none
		}
		for key := range t.by {
			if strings.HasPrefix(string(key[:]), have) {
				return wait
			}
		}
		return none
	}
	for _, secret := range t.by[[told4]byte([]byte(have[:told4]))] {
		switch {
		case strings.HasPrefix(have, secret):
			return find{kind: "known_secret", from: i, to: i + len(secret)}
		case !final && strings.HasPrefix(secret, have):
			return wait
		}
	}
	return none
}
