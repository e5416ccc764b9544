package guard

import "strings"

var (
	pemWords = chars("A-Z0-9 ")
	hyphens  = chars("-")
)

const (
	pemBegin   = "-----BEGIN "
	pemKey     = "PRIVATE KEY"
	pemEnd     = "-----END"
	pemDashes  = "-----"
	longestPEM = 64 // bytes of the words between BEGIN and the dashes
	leastRun   = 16 // bytes of base64 that are a key's, not a word of a sentence
)

// pemHeaders stand before the base64 of some keys.
var pemHeaders = []string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:"}

// pem is the private key whose first line begins at i. That line without a key behind
// it is only mentioned.
func pem(text string, i int, final bool) find {
	have := text[i:]
	if len(have) < len(pemBegin) {
		if !final && strings.HasPrefix(pemBegin, have) {
			return wait
		}
		return none
	}
	if !strings.HasPrefix(have, pemBegin) {
		return none
	}
	words := run(have[len(pemBegin):], pemWords, longestPEM)
	end := len(pemBegin) + words
	rest := have[end:]
	switch {
	case len(rest) < len(pemDashes) && !final && strings.HasPrefix(pemDashes, rest) && words < longestPEM:
		return wait
	case !strings.HasPrefix(rest, pemDashes) || !strings.Contains(have[len(pemBegin):end], pemKey):
		return none
	}
	end += len(pemDashes)
	body := end + breaks(have[end:])
	n := run(have[body:], base64, leastRun)
	switch {
	case n >= leastRun:
	case body-end > longestBreak:
		return none
	default:
		header, sure := headerAt(have[body:], final)
		if !sure || n > 0 && body+n == len(have) && !final {
			return wait
		}
		if !header {
			return none
		}
	}
	return find{kind: "private_key", from: i, to: i + end, eat: &pemEater{}}
}

// longestBreak bounds what stands between two lines of a key, in bytes.
const longestBreak = 64

// breaks counts what separates the lines of a key: white space, and the escapes and quotes
// by which programs write it.
func breaks(text string) int {
	n := 0
	for n < len(text) && n <= longestBreak {
		switch c := text[n]; {
		case strings.IndexByte(" \t\r\n\\\"',>", c) >= 0:
		case c == '+' && n > 0 && strings.IndexByte(" \"'", text[n-1]) >= 0: // joins two strings
		case n > 0 && text[n-1] == '\\' && (c == 'n' || c == 'r' || c == 't'):
		default:
			return n
		}
		n++
	}
	return n
}

// headerAt says whether a header of a key begins a text; not sure when it is too short to
// say.
func headerAt(text string, final bool) (is, sure bool) {
	for _, h := range pemHeaders {
		if strings.HasPrefix(text, h) {
			return true, true
		}
		if !final && len(text) < len(h) && strings.HasPrefix(h, text) {
			return false, false
		}
	}
	return false, true
}

// pemEater takes the lines of a key and its last line, if it comes.
type pemEater struct{ inside bool } // a line of base64, whose rest counts however short it is

func (e *pemEater) next(text string, final bool) (int, bool) {
	taken := 0
	if e.inside {
		if taken = run(text, base64, len(text)); taken == len(text) {
			return taken, !final
		}
		e.inside = false
	}
	for {
		n, goesOn, more := e.line(text[taken:], final)
		taken += n
		if !goesOn {
			return taken, more
		}
	}
}

// line takes a break and what follows it, if that is the key's. goesOn says that another
// line may follow; else more says whether the text was too short to say.
func (e *pemEater) line(text string, final bool) (n int, goesOn, more bool) {
	at := breaks(text)
	have := text[at:]
	if len(have) == 0 { // the break is the text's unless the key goes on
		return 0, false, !final
	}
	if len(have) < len(pemEnd) && strings.HasPrefix(pemEnd, have) && !final {
		return 0, false, true
	}
	if strings.HasPrefix(have, pemEnd) {
		n, more := lastLine(text, at, final)
		return n, false, more
	}
	switch header, sure := headerAt(have, final); {
	case !sure:
		return 0, false, true
	case header:
		line := strings.IndexAny(have[:min(len(have), longestHeader)], "\n\\")
		if line < 0 && len(have) < longestHeader && !final {
			return 0, false, true
		}
		if line < 0 {
			line = min(len(have), longestHeader)
		}
		return at + line, true, false
	}
	length := run(have, base64, len(have))
	end := at + length
	switch {
	case length == 0:
		return 0, false, false
	case end == len(text) && final:
		return end, false, false
	case end == len(text) && length >= leastRun:
		e.inside = true
		return end, false, true
	case end == len(text):
		return 0, false, true
	case length >= leastRun, have[0] == '=', have[length-1] == '=': // also a checksum, and the padded end
		return end, true, false
	}
	// A short line is the key's last if its end follows.
	end += breaks(text[end:])
	tail := text[end:]
	switch {
	case strings.HasPrefix(tail, pemEnd):
		n, more := lastLine(text, end, final)
		return n, false, more
	case len(tail) < len(pemEnd) && strings.HasPrefix(pemEnd, tail) && !final:
		return 0, false, true
	}
	return 0, false, false
}

// lastLine takes everything up to the end of a key's last line, which begins at at.
func lastLine(text string, at int, final bool) (int, bool) {
	end := at + len(pemEnd)
	end += run(text[end:], pemWords, longestPEM)
	dashes := run(text[end:], hyphens, len(pemDashes))
	if end+dashes == len(text) && dashes < len(pemDashes) && !final {
		return 0, true
	}
	return end + dashes, false
}
