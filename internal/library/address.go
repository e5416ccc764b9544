package library

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/fault"
)

// addresses says which URLs a source type takes (RULES S2, S3). A fetcher reads them
// more closely; what is refused here could be read by none.
var addresses = map[SourceType]struct {
	shapes   []*regexp.Regexp // of host and path
	accepted string
}{
	Repo: {
		shapes:   []*regexp.Regexp{repository},
		accepted: "the address of a repository: https://github.com/owner/repo",
	},
	Marketplace: {
		shapes:   []*regexp.Regexp{repository},
		accepted: "the address of a marketplace's repository: https://github.com/owner/repo",
	},
	SingleFile: {
		shapes: []*regexp.Regexp{
			regexp.MustCompile(`^github\.com/[^/]+/[^/]+/(blob|raw)/[^/]+(/[^/]+)+$`),
			regexp.MustCompile(`^raw\.githubusercontent\.com/[^/]+/[^/]+/[^/]+(/[^/]+)+$`),
		},
		accepted: "the address of one file: https://github.com/owner/repo/blob/REF/path/SKILL.md or https://raw.githubusercontent.com/owner/repo/REF/path/SKILL.md",
	},
}

var repository = regexp.MustCompile(`^github\.com/[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+/?$`)

const maxURL = 2000 // bytes

// checkAddress refuses a URL that this type of source cannot read. An enterprise host
// has the shapes of github.com.
func checkAddress(kind SourceType, text string, enterprise []string) error {
	address, known := addresses[kind]
	if !known {
		return fault.New(fault.BadInput, "type must be single_file, repo, marketplace or authored.")
	}
	u, err := url.Parse(text)
	host := ""
	if err == nil {
		host = strings.ToLower(u.Host)
	}
	if slices.Contains(enterprise, host) {
		host = "github.com"
	}
	why := ""
	switch {
	case err != nil || len(text) > maxURL:
		why = "is no URL"
	case u.Scheme != "https":
		why = "does not begin with https://"
	case u.User != nil:
		why = "carries a user name or password (a token goes into token)"
	case u.Port() != "":
		why = "carries a port"
	case !fits(address.shapes, host+u.EscapedPath()):
		why = "is not one this type of source can read"
	default:
		return nil
	}
	return fault.New(fault.BadInput, "url %s; give %s.", why, address.accepted)
}

func fits(shapes []*regexp.Regexp, text string) bool {
	for _, shape := range shapes {
		if shape.MatchString(text) {
			return true
		}
	}
	return false
}

// tokenHost is the host whose tokens a source with this address takes: the files of
// github.com are served by a host of their own. Empty for no address.
func tokenHost(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Host)
	if host == "raw.githubusercontent.com" {
		return "github.com"
	}
	return host
}
