package guard

import "strings"

// Stream redacts a text that comes in pieces. What could be the beginning of a secret is
// held back until it is one or not: a few dozen bytes mostly, and never more than HoldBack.
type Stream struct {
	r    *Redactor
	text string // text[:at] was dealt with and is only looked back at
	at   int
	eat  eater // takes the rest of the secret that ended at at
}

// HoldBack is the most that a stream holds back, in bytes, for secrets that are
// recognised by their shape. One that was told is held back as far as it is long.
const HoldBack = 2048

// lookBack is how far before a place a matcher may look.
const lookBack = 80

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Write takes the next piece and returns what of the text can be told so far.
func (s *Stream) Write(piece string) string {
	if s.at > lookBack {
		s.text, s.at = s.text[s.at-lookBack:], lookBack
	}
	s.text += piece
	return s.scan(false)
}

// Close ends the text and returns the rest of it.
func (s *Stream) Close() string { return s.scan(true) }

// Held says how much is held back, in bytes.
func (s *Stream) Held() int { return len(s.text) - s.at }

func (s *Stream) scan(final bool) string {
	var out strings.Builder
	out.Grow(len(s.text) - s.at)
	for s.at < len(s.text) {
		if s.eat != nil {
			n, more := s.eat.next(s.text[s.at:], final)
			s.at += n
			if more {
				break
			}
			s.eat = nil
			continue
		}
		i := s.at + s.r.untriggered(s.text, s.at)
		out.WriteString(s.text[s.at:i])
		if s.at = i; i == len(s.text) {
			break
		}
		f := s.r.match(s.text, i, final)
		if f.wait {
			break
		}
		if f.kind == "" {
			out.WriteByte(s.text[i])
			s.at++
			continue
		}
		out.WriteString(s.text[i:f.from])
		out.WriteString(Marker(f.kind))
		s.at, s.eat = f.to, f.eat
	}
	return out.String()
}

// How a byte may begin a secret.
const (
	atWord   = 1 << iota // at the beginning of a word
	anywhere             // wherever it stands
	asTold               // as the first of a secret that was told
)

// shaped are the bytes that a secret with a shape may begin with.
var shaped = func() (t [256]uint8) {
	for c := range shapesBy {
		if len(shapesBy[c]) > 0 {
			t[c] = atWord
		}
	}
	for _, c := range "eBb" { // JWT, Bearer and Basic
		t[c] = atWord
	}
	for _, c := range ":=-" { // assignments, connection strings, PEM
		t[c] |= anywhere
	}
	return t
}()

func (r *Redactor) triggers() *[256]uint8 {
	if r.told == nil {
		return &shaped
	}
	return &r.told.triggers
}

// pairs are the first two bytes of what may begin at a word.
var pairs = func() (p [256]*charset) {
	begins := []string{"eyJ", "Be", "BE", "be", "Ba", "BA", "ba"}
	for _, s := range shapes {
		begins = append(begins, s.prefix)
	}
	for c := range p {
		p[c] = &charset{}
	}
	for _, b := range begins {
		p[b[0]][b[1]] = true
	}
	return p
}()

// untriggered counts the bytes from i on at which no secret can begin.
func (r *Redactor) untriggered(text string, i int) int {
	triggers := r.triggers()
	for n := i; n < len(text); n++ {
		t := triggers[text[n]]
		if t == 0 {
			continue
		}
		last := n+1 == len(text)
		if t&asTold != 0 && (last || r.told.pairs[text[n]][text[n+1]]) || t&anywhere != 0 {
			return n - i
		}
		if t&atWord != 0 && (n == 0 || !alnum[text[n-1]]) && (last || pairs[text[n]][text[n+1]]) {
			return n - i
		}
	}
	return len(text) - i
}

// match is the secret that begins at i, if any does.
func (r *Redactor) match(text string, i int, final bool) find {
	if f := r.told.match(text, i, final); f.found() {
		return f
	}
	switch text[i] {
	case '=':
		return r.assignment(text, i, final)
	case ':':
		if f := userinfo(text, i, final); f.found() {
			return f
		}
		return r.assignment(text, i, final)
	case '-':
		return pem(text, i, final)
	}
	if i > 0 && alnum[text[i-1]] {
		return none
	}
	return token(text, i, final)
}

// token is the token with a shape of its own that begins at i, if one does.
func token(text string, i int, final bool) find {
	for _, s := range shapesBy[text[i]] {
		if f := s.match(text, i, final); f.found() {
			return f
		}
	}
	switch text[i] {
	case 'e':
		return jwt(text, i, final)
	case 'B', 'b':
		return authorization(text, i, final)
	}
	return none
}
