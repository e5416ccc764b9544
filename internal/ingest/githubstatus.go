package ingest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/fault"
)

const (
	// untold is how long to wait when a rate limit does not say; GitHub asks for a
	// minute at least.
	untold = time.Minute
	// longest is the longest that a rate limit is believed to last.
	longest = 24 * time.Hour
	// maxSaid bounds what is read of an answer that refuses, and maxQuoted what is
	// told of it, in bytes.
	maxSaid, maxQuoted = 64 << 10, 300
)

// judge turns a status that is no answer into an error. What may be one (found,
// unchanged, not there, elsewhere) is the caller's to read. Only what the API says is told.
func (g *gitHub) judge(s *stream, token string, isAPI bool) error {
	switch s.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusUnavailableForLegalReasons:
	default:
		return nil
	}
	said := saidBy(s, token)
	if until, yes := g.limited(s, said); yes {
		g.pause(token, s.host, until)
		return limitedUntil(s.host, token, until)
	}
	because := ""
	if said != "" && isAPI {
		because = fmt.Sprintf(" (it says: %s)", said)
	}
	switch {
	case s.status == http.StatusUnauthorized && token != "":
		return fault.New(fault.Forbidden, "%s refused the source's access token: it is wrong, expired or withdrawn; give the source a new one", s.host)
	case s.status == http.StatusUnavailableForLegalReasons:
		return fault.New(fault.Unavailable, "%s may not show this for legal reasons%s", s.host, because)
	}
	return fault.New(fault.Forbidden, "%s refused the request%s; the source's access token may need more rights or another one", s.host, because)
}

// saidBy reads the message of an answer that refuses. One that repeats the token,
// or cannot be shown, is not told.
func saidBy(s *stream, token string) string {
	var answer struct {
		Message string `json:"message"`
	}
	body, err := io.ReadAll(io.LimitReader(s, maxSaid))
	if err != nil || json.Unmarshal(body, &answer) != nil || token != "" && strings.Contains(answer.Message, token) || !isPrintable(answer.Message) {
		return ""
	}
	return strings.ToValidUTF8(answer.Message[:min(len(answer.Message), maxQuoted)], "")
}

// limited tells a rate limit and when it ends: 429, or 403 with an exhausted quota,
// a time to come back, or words that say so.
func (g *gitHub) limited(s *stream, said string) (time.Time, bool) {
	exhausted := s.header.Get("X-RateLimit-Remaining") == "0"
	after := s.header.Get("Retry-After")
	if s.status != http.StatusTooManyRequests &&
		(s.status != http.StatusForbidden || !exhausted && after == "" && !strings.Contains(strings.ToLower(said), "rate limit")) {
		return time.Time{}, false
	}
	now := g.now().UTC()
	until, err := comeBack(after, now)
	if err != nil && exhausted {
		var epoch int64
		epoch, err = strconv.ParseInt(s.header.Get("X-RateLimit-Reset"), 10, 64)
		until = time.Unix(epoch, 0).UTC()
	}
	if err != nil || !until.After(now) {
		until = now.Add(untold)
	}
	if last := now.Add(longest); until.After(last) {
		until = last
	}
	return until, true
}

// comeBack reads a Retry-After: seconds or a date.
func comeBack(header string, now time.Time) (time.Time, error) {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second), nil
	}
	return http.ParseTime(cmp.Or(header, "none"))
}

func limitedUntil(host, token string, until time.Time) error {
	hint := ""
	if token == "" {
		hint = " (without an access token few requests are allowed)"
	}
	return fault.New(fault.RateLimited, "the rate limit of %s is used up%s; try again after %s", host, hint,
		until.Add(time.Second-1).Truncate(time.Second).Format(time.RFC3339))
}

// pause keeps further requests back until a rate limit ends: GitHub bans those who
// go on asking.
func (g *gitHub) pause(token, host string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for key, ends := range g.paused {
		if !ends.After(now) {
			delete(g.paused, key)
		}
	}
	g.paused[keyOf(token, host)] = until
}

func (g *gitHub) pausedUntil(token, host string) (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, paused := g.paused[keyOf(token, host)]
	return until, paused && until.After(g.now())
}
