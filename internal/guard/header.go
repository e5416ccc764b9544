package guard

import (
	b64 "encoding/base64"
	"strings"
	"unicode"
)

// longestHeader bounds the first part of a JSON web token, in bytes.
const longestHeader = 1024

// jwt is the JSON web token that begins at i: a header, which is a JSON object in
// base64url, a dot, and more.
func jwt(text string, i int, final bool) find {
	const begin, least = "eyJ", 8
	have := text[i:]
	if len(have) < len(begin) {
		if !final && strings.HasPrefix(begin, have) {
			return wait
		}
		return none
	}
	if !strings.HasPrefix(have, begin) {
		return none
	}
	header := run(have, dashed, longestHeader)
	switch {
	case header == len(have) && !final && header < longestHeader:
		return wait
	case header == len(have), header == longestHeader, have[header] != '.':
		return none
	}
	payload := run(have[header+1:], dashed, least)
	end := header + 1 + payload
	switch {
	case payload < least && end == len(have) && !final:
		return wait
	case payload < least, !names(have[:header], `"alg"`):
		return none
	}
	return find{kind: "jwt", from: i, to: i + end, eat: dotted}
}

func names(encoded, field string) bool {
	decoded, _ := b64.RawURLEncoding.DecodeString(encoded) // what of it can be decoded
	return strings.Contains(string(decoded), field)
}

// How much of a credential is looked at.
const (
	longestBasic  = 64
	leastBearer   = 16
	leastInHeader = 8
)

// authorization is the credential behind the word Bearer or Basic at i. In an
// Authorization header anything is one; elsewhere it must look like one.
func authorization(text string, i int, final bool) find {
	const word = "bearer " // as long as "basic " and one more
	have := text[i:]
	scheme, _, whole := strings.Cut(have[:min(len(have), len(word))], " ")
	lower := strings.ToLower(scheme)
	switch {
	case lower == "bearer" && whole, lower == "basic" && whole:
	case !whole && !final && len(have) < len(word) && (strings.HasPrefix("bearer", lower) || strings.HasPrefix("basic", lower)):
		return wait
	default:
		return none
	}
	from := i + len(scheme) + 1
	from += run(text[from:], blanks, 4)
	before := strings.ToLower(text[max(0, i-lookBack/2):i])
	header := strings.Contains(before, "authorization")
	if lower == "basic" {
		return basic(text, from, final, header)
	}
	least := leastBearer
	if header {
		least = leastInHeader
	}
	n := run(text[from:], bearer, leastBearer)
	end := from + n
	switch {
	case n < leastBearer && end == len(text) && !final:
		return wait
	case n < least, !header && !mixed(text[from:end]), strings.ToUpper(text[from:end]) == text[from:end] && !hasDigit(text[from:end]):
		return none
	}
	return find{kind: "bearer_token", from: from, to: end, eat: bearer}
}

// basic is the name and password in base64 that begin at from.
func basic(text string, from int, final, header bool) find {
	n := run(text[from:], base64, longestBasic)
	end := from + n
	if n < longestBasic && end == len(text) && !final {
		return wait
	}
	if n < leastInHeader {
		return none
	}
	decoded, err := b64.StdEncoding.DecodeString(text[from : from+n/4*4])
	if err != nil {
		decoded, _ = b64.RawStdEncoding.DecodeString(strings.TrimRight(text[from:end], "="))
	}
	printable := len(decoded) > 0 && strings.IndexFunc(string(decoded), func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) < 0
	if !printable || !header && !strings.Contains(string(decoded), ":") {
		return none
	}
	return find{kind: "basic_credentials", from: from, to: end, eat: base64}
}

// mixed says whether a token is made like one: with digits, or with letters of both
// cases in its middle.
func mixed(token string) bool {
	lower := strings.ContainsFunc(token[1:], unicode.IsLower)
	upper := strings.ContainsFunc(token[1:], unicode.IsUpper)
	return hasDigit(token) || lower && upper
}

// longestUserinfo bounds the name and password of a connection string, in bytes.
const longestUserinfo = 256

// ends are the bytes at which the place of a name and password in a URL is over.
var ends = chars(" \t\r\n\"'`<>\\/?#,;|(){}")

// userinfo is the password in a URL whose "://" stands at i.
func userinfo(text string, i int, final bool) find {
	const begin = "://"
	have := text[i:]
	if len(have) < len(begin) {
		if !final && strings.HasPrefix(begin, have) {
			return wait
		}
		return none
	}
	if !strings.HasPrefix(have, begin) || i == 0 || !alnum[text[i-1]] {
		return none
	}
	have = have[len(begin):]
	colon, at, n := -1, -1, 0
	for n < len(have) && n < longestUserinfo && !ends[have[n]] {
		switch {
		case have[n] == ':' && colon < 0:
			colon = n
		case have[n] == '@':
			at = n
		}
		n++
	}
	switch {
	case n == len(have) && n < longestUserinfo && !final:
		return wait
	case colon < 0, at < colon+2, template(have[colon+1 : at]):
		return none
	}
	from := i + len(begin) + colon + 1
	return find{kind: "connection_password", from: from, to: i + len(begin) + at}
}

// template says whether a value is a place for one.
func template(value string) bool {
	return strings.ContainsRune("$<{[*", rune(value[0])) || strings.HasPrefix(value, "%s") || strings.HasPrefix(value, "%(") || strings.Trim(value, "xX.*") == ""
}
