package ingest

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/fault"
)

const (
	acceptedRepo = "give the address of a repository: https://github.com/owner/repo"
	acceptedFile = "give the address of one file: https://github.com/owner/repo/blob/REF/path/SKILL.md " +
		"or https://raw.githubusercontent.com/owner/repo/REF/path/SKILL.md"
)

// hosts are the enterprise hosts that addresses may name beside github.com.
type hosts []string

// named says how a host stands in a Name, and whether it may stand there.
func (h hosts) named(host string) (string, bool) {
	if host == "github.com" {
		return "", true
	}
	return host, slices.Contains(h, host)
}

func (h hosts) list() string { return strings.Join(append([]string{"github.com"}, h...), " or ") }

// repository reads the address of a whole repository.
func (h hosts) repository(text string) (Name, error) {
	host, segments, why := splitURL(text)
	host, allowed := h.named(host)
	switch {
	case why != "":
	case !allowed:
		why = "its host is not " + h.list()
	case len(segments) != 2:
		why = "its path is not owner/repo (a branch goes into the source's ref)"
	default:
		if name, ok := newName(segments[0], segments[1]); ok {
			name.Host = host
			return name, nil
		}
		why = "its owner or repository has an impossible name"
	}
	return Name{}, fault.New(fault.BadInput, "the source's URL cannot be read: %s; %s", why, acceptedRepo)
}

// fileAddress is the address of one file. Where the ref ends and the path begins
// cannot be told from the text alone, since a branch may be called feature/x:
// the repository decides.
type fileAddress struct {
	name Name
	rest []string // the ref's segments, then the path's
}

// file reads a blob, raw or raw.githubusercontent.com address (RULES S3).
func (h hosts) file(text string) (fileAddress, error) {
	host, segments, why := splitURL(text)
	var rest []string
	if host == "raw.githubusercontent.com" && len(segments) >= 4 {
		host, segments = "github.com", slices.Insert(segments, 2, "raw")
	}
	host, allowed := h.named(host)
	switch {
	case why != "":
	case allowed && len(segments) >= 5 && (segments[2] == "blob" || segments[2] == "raw"):
		rest = segments[3:]
	default:
		why = "it names no file at a branch, tag or commit"
	}
	if why == "" {
		if name, ok := newName(segments[0], segments[1]); ok {
			name.Host = host
			return fileAddress{name: name, rest: rest}, nil
		}
		why = "its owner or repository has an impossible name"
	}
	return fileAddress{}, fault.New(fault.BadInput, "the source's URL cannot be read: %s; %s", why, acceptedFile)
}

// splitURL gives a URL's host and decoded path segments, or why it is refused.
// Segments are split before they are decoded: %2F is part of a name.
func splitURL(text string) (host string, segments []string, why string) {
	parsed, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return "", nil, "it is no URL"
	case parsed.Scheme != "https":
		return "", nil, "it does not begin with https://"
	case parsed.User != nil:
		return "", nil, "it carries a user name or password (a token goes into the source's token)"
	case parsed.Port() != "":
		return "", nil, "it carries a port"
	case parsed.RawQuery != "" && parsed.RawQuery != "raw=true" && parsed.RawQuery != "raw=1" && parsed.RawQuery != "plain=1":
		return "", nil, "it carries a query (a token goes into the source's token)"
	}
	for _, segment := range strings.Split(strings.Trim(parsed.EscapedPath(), "/"), "/") {
		decoded, err := url.PathUnescape(segment)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || strings.ContainsAny(decoded, "\x00\\") {
			return "", nil, "its path has an empty, relative or impossible part"
		}
		segments = append(segments, decoded)
	}
	return strings.ToLower(parsed.Hostname()), segments, ""
}
