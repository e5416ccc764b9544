package guard

import "strings"

// charset is which bytes may stand in a token.
type charset [256]bool

func chars(ranges string) *charset {
	var set charset
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := int(ranges[i]); c <= int(ranges[i+2]); c++ {
				set[c] = true
			}
			i += 2
			continue
		}
		set[ranges[i]] = true
	}
	return &set
}

var (
	alnum    = chars("A-Za-z0-9")
	upperNum = chars("A-Z0-9")
	wordy    = chars("A-Za-z0-9_")
	dashed   = chars("A-Za-z0-9_-")
	dotted   = chars("A-Za-z0-9_.-")
	slashed  = chars("A-Za-z0-9/")
	hex      = chars("a-f0-9")
	base64   = chars("A-Za-z0-9+/=")
	bearer   = chars("A-Za-z0-9._~+/=-")
)

// shape is a kind of secret that its beginning gives away.
type shape struct {
	kind   string
	prefix string
	body   *charset
	least  int  // bytes of the body, at least
	exact  bool // the body has no more than that
	fits   func(body string) bool
}

// shapes are the tokens that have a prefix of their own. What issuers document of them is
// the prefix and, less firmly, the length.
var shapes = []shape{
	{kind: "aws_access_key", prefix: "AKIA", body: upperNum, least: 16, exact: true},
	{kind: "aws_access_key", prefix: "ASIA", body: upperNum, least: 16, exact: true},
	{kind: "aws_access_key", prefix: "ABIA", body: upperNum, least: 16, exact: true},
	{kind: "github_token", prefix: "ghp_", body: alnum, least: 30},
	{kind: "github_token", prefix: "gho_", body: alnum, least: 30},
	{kind: "github_token", prefix: "ghu_", body: alnum, least: 30},
	{kind: "github_token", prefix: "ghs_", body: alnum, least: 30},
	{kind: "github_token", prefix: "ghr_", body: alnum, least: 30},
	{kind: "github_token", prefix: "github_pat_", body: wordy, least: 22},
	{kind: "gitlab_token", prefix: "glpat-", body: dashed, least: 20},
	{kind: "gitlab_token", prefix: "gldt-", body: dashed, least: 20},
	{kind: "gitlab_token", prefix: "glrt-", body: dashed, least: 20},
	{kind: "gitlab_token", prefix: "glcbt-", body: dashed, least: 20},
	{kind: "gitlab_token", prefix: "glptt-", body: dashed, least: 20},
	{kind: "gitlab_token", prefix: "gloas-", body: dashed, least: 20},
	{kind: "slack_token", prefix: "xoxa-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_token", prefix: "xoxb-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_token", prefix: "xoxp-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_token", prefix: "xoxr-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_token", prefix: "xoxs-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_token", prefix: "xoxe-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_token", prefix: "xapp-", body: dashed, least: 10, fits: hasDigit},
	{kind: "slack_webhook", prefix: "hooks.slack.com/services/", body: slashed, least: 20},
	{kind: "stripe_key", prefix: "sk_live_", body: alnum, least: 16},
	{kind: "stripe_key", prefix: "sk_test_", body: alnum, least: 16},
	{kind: "stripe_key", prefix: "rk_live_", body: alnum, least: 16},
	{kind: "stripe_key", prefix: "rk_test_", body: alnum, least: 16},
	{kind: "stripe_key", prefix: "whsec_", body: base64, least: 16},
	{kind: "google_key", prefix: "AIza", body: dashed, least: 35},
	{kind: "google_key", prefix: "ya29.", body: dotted, least: 20},
	{kind: "google_key", prefix: "GOCSPX-", body: dashed, least: 20},
	{kind: "anthropic_key", prefix: "sk-ant-", body: dashed, least: 20},
	{kind: "openai_key", prefix: "sk-proj-", body: dashed, least: 20},
	{kind: "openai_key", prefix: "sk-svcacct-", body: dashed, least: 20},
	{kind: "openai_key", prefix: "sk-admin-", body: dashed, least: 20},
	{kind: "openai_key", prefix: "sk-or-v1-", body: alnum, least: 20},
	{kind: "openai_key", prefix: "sk-", body: alnum, least: 20, fits: hasDigit},
	{kind: "groq_key", prefix: "gsk_", body: alnum, least: 20},
	{kind: "huggingface_token", prefix: "hf_", body: alnum, least: 30},
	{kind: "npm_token", prefix: "npm_", body: alnum, least: 36},
	{kind: "pypi_token", prefix: "pypi-AgEI", body: dashed, least: 20},
	{kind: "sendgrid_key", prefix: "SG.", body: dotted, least: 60, fits: func(body string) bool { return body[22] == '.' }},
	{kind: "shopify_token", prefix: "shpat_", body: hex, least: 32},
	{kind: "digitalocean_token", prefix: "dop_v1_", body: hex, least: 64},
	{kind: "age_key", prefix: "AGE-SECRET-KEY-1", body: upperNum, least: 50},
	{kind: "countersign_token", prefix: "cs_", body: chars("a-z2-7"), least: 40, exact: true},
}

func hasDigit(body string) bool { return strings.ContainsAny(body, "0123456789") }

// shapesBy are the shapes by the byte that they begin with.
var shapesBy = func() (by [256][]shape) {
	for _, s := range shapes {
		by[s.prefix[0]] = append(by[s.prefix[0]], s)
	}
	return by
}()

// find is what a matcher says of a place in a text.
type find struct {
	wait     bool   // it cannot say before more of the text is there
	kind     string // of the secret; empty when there is none
	from, to int    // the part of the text that the marker stands for
	eat      eater  // takes what else belongs to it
}

var (
	none = find{}
	wait = find{wait: true}
)

// found says that there is something to heed.
func (f find) found() bool { return f.wait || f.kind != "" }

// match says whether a token of this shape begins at i.
func (s shape) match(text string, i int, final bool) find {
	have := text[i:]
	if len(have) < len(s.prefix) {
		if !final && strings.HasPrefix(s.prefix, have) {
			return wait
		}
		return none
	}
	if !strings.HasPrefix(have, s.prefix) {
		return none
	}
	body := have[len(s.prefix):]
	n := run(body, s.body, s.least)
	end := i + len(s.prefix) + n
	switch {
	case n < s.least && end == len(text) && !final:
		return wait
	case n < s.least, s.fits != nil && !s.fits(body[:n]):
		return none
	case !s.exact:
		return find{kind: s.kind, from: i, to: end, eat: s.body}
	case end == len(text) && !final:
		return wait
	case end < len(text) && wordy[text[end]]:
		return none
	}
	return find{kind: s.kind, from: i, to: end}
}

// run counts the bytes of a set that a text begins with, up to most.
func run(text string, set *charset, most int) int {
	n := 0
	for n < len(text) && n < most && set[text[n]] {
		n++
	}
	return n
}

// eater takes the rest of a secret whose marker is written already. It says how much of
// the text belongs to it, and whether it needs to see more of it.
type eater interface {
	next(text string, final bool) (n int, more bool)
}

func (set *charset) next(text string, _ bool) (int, bool) {
	n := run(text, set, len(text))
	return n, n == len(text)
}
