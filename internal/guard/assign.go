package guard

import (
	"math"
	"slices"
	"strings"
)

// secretNames are the endings of names whose values are secrets, without the characters
// that names are divided with.
var secretNames = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "secretkey", "apikey", "accesskey", "privatekey", "encryptionkey", "signingkey",
	"accountkey", "authtoken", "accesstoken", "refreshtoken", "apitoken", "bearertoken", "sessiontoken", "secrettoken", "bottoken", "deploytoken",
	"idtoken", "personaltoken", "securitytoken",
}

// loudNames count when they are the whole name, or end one in capitals: PAGE_TOKEN holds
// a secret more often than pageToken.
var loudNames = []string{"token", "pass"}

var (
	dividers    = strings.NewReplacer("_", "", "-", "", ".", "")
	lastLetters = chars("detynsDETYNS") // of the names above
)

// secretName says whether a value of this name is a secret.
func secretName(name string) bool {
	if name == "" || !lastLetters[name[len(name)-1]] {
		return false
	}
	plain := strings.ToLower(dividers.Replace(name))
	if slices.ContainsFunc(secretNames, func(ending string) bool { return strings.HasSuffix(plain, ending) }) {
		return true
	}
	loud := name == strings.ToUpper(name)
	return slices.ContainsFunc(loudNames, func(ending string) bool { return plain == ending || loud && strings.HasSuffix(plain, ending) })
}

// longestValue is how much of a value is looked at, in bytes, and longestName of a name.
const (
	longestValue = 128
	longestName  = 48
)

// Where values end: a quoted one at its quote, which is checked apart.
var (
	bareEnds   = chars(" \t\r\n\"'`\\,;&<>()[]{}|")
	quotedEnds = chars("\r\n\\")
	quotes     = chars("\"'`")
	blanks     = chars(" \t")
	slashes    = chars("\\")
	signs      = chars("=>")
)

// assignment is the value behind the sign at i, if the name before it says that it is
// secret and it looks like one.
func (r *Redactor) assignment(text string, i int, final bool) find {
	name := nameBefore(text, i)
	if !secretName(name) {
		return none
	}
	from, quote, sure := valueAt(text, i)
	if !sure || from == len(text) {
		if final {
			return none
		}
		return wait
	}
	if f := r.shapedAt(text, from, final); f.found() {
		return f
	}
	n := 0
	for most := min(len(text)-from, longestValue); n < most && !ended(text[from+n], quote); n++ {
		continue
	}
	end := from + n
	switch {
	case n < longestValue && end == len(text) && !final:
		return wait
	case !secretValue(text[from:end], quote != 0):
		return none
	case quote == 0 && strings.HasSuffix(strings.ToLower(name), "key") && variable(text[from:end]):
		return none
	case quote == 0 && end < len(text) && (text[end] == '(' || text[end] == '['):
		return none // a call or an index
	}
	f := find{kind: "password", from: from, to: end}
	if n == longestValue {
		f.eat = valueEater(quote)
	}
	return f
}

// shapedAt is a secret with a kind of its own that begins at i.
func (r *Redactor) shapedAt(text string, i int, final bool) find {
	if f := r.told.match(text, i, final); f.found() {
		return f
	}
	return token(text, i, final)
}

// nameBefore is the name that a sign at i gives a value to.
func nameBefore(text string, i int) string {
	end := i
	for end > 0 && i-end < 8 && (blanks[text[end-1]] || quotes[text[end-1]] || slashes[text[end-1]] || text[end-1] == ':') {
		end--
	}
	begin := end
	for begin > 0 && end-begin < longestName && dotted[text[begin-1]] {
		begin--
	}
	return text[begin:end]
}

// valueAt is where the value behind a sign begins, and in which quote; sure unless the
// text ends too early to say.
func valueAt(text string, i int) (from int, quote byte, sure bool) {
	from = i + 1
	from += run(text[from:], signs, 2)
	from += run(text[from:], blanks, 8)
	escapes := run(text[from:], slashes, 4)
	if from+escapes == len(text) {
		return from, 0, false
	}
	if quotes[text[from+escapes]] {
		return from + escapes + 1, text[from+escapes], true
	}
	return from, 0, true
}

func ended(c, quote byte) bool {
	if quote != 0 {
		return c == quote || quotedEnds[c]
	}
	return bareEnds[c]
}

// valueEater takes the rest of a long value in its quote, 0 for none.
type valueEater byte

func (quote valueEater) next(text string, _ bool) (int, bool) {
	for n := range len(text) {
		if ended(text[n], byte(quote)) {
			return n, false
		}
	}
	return len(text), true
}

// leastEntropy of a secret value, in bits a character.
const leastEntropy = 2.7

// secretValue says whether a value looks like a secret and not like a word, a name, a path
// or the place for one.
func secretValue(value string, quoted bool) bool {
	if len(value) < 8 || template(value) || strings.Contains(value, "${") || strings.Contains(value, "{{") || strings.Contains(value, "://") ||
		strings.ContainsRune("/~. \t+,;:)", rune(value[0])) || strings.ContainsRune(value, '<') {
		return false
	}
	var letters, digits, others int
	for i := range len(value) {
		switch c := value[i]; {
		case c >= '0' && c <= '9':
			digits++
		case alnum[c]:
			letters++
		case c != '_' && c != '-' && c != '.' && c != ' ':
			others++
		}
	}
	switch {
	case letters == 0, digits == 0 && others == 0, strings.Count(value, " ") > 2:
		return false
	case !quoted && (digits == 0 || others == 0 && dotsOnly(value)):
		return false // as programs name things
	}
	return entropy(value) >= leastEntropy
}

// dotsOnly: names joined by dots, as programs write them.
func dotsOnly(value string) bool {
	parts := strings.Split(value, ".")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return part == "" || part[0] >= '0' && part[0] <= '9' })
}

// variable says whether a value may be the name of a variable that holds a key, with a
// number in it: rsa2048Key.
func variable(value string) bool {
	numbers := strings.FieldsFunc(value, func(r rune) bool { return r < '0' || r > '9' })
	return len(numbers) == 1 && run(value, wordy, len(value)) == len(value) && !hasDigit(value[:1])
}

// entropy is Shannon's, over the bytes of a text.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
