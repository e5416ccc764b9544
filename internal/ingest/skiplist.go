package ingest

import (
	"fmt"
	"regexp"
	"strings"
)

// SkipRule names folders that discovery leaves out. What lies in them is listed
// as skipped, with the reason.
type SkipRule struct {
	Folder *regexp.Regexp // one or more whole segments of a path, slashes between
	Reason string
}

// DefaultSkips returns the folders that are left out unless a fetcher is told
// otherwise (SKILL-FILES, Discovery): copies, dependencies, fixtures, patterns to
// fill in and translations. A bare two-letter folder under docs counts as a
// translation only when it is a language that documentation is translated into:
// docs/ml is more often machine learning than Malayalam.
func DefaultSkips() []SkipRule {
	whole := func(pattern string) *regexp.Regexp { return regexp.MustCompile(`(^|/)(` + pattern + `)(/|$)`) }
	return []SkipRule{
		{whole(`\.git`), "git's own folder"},
		{whole(`node_modules|vendor`), "dependencies of somebody else"},
		{whole(`backups`), "backups"},
		{whole(`templates`), "templates to fill in"},
		{whole(`testdata|fixtures|__fixtures__|test[-_]fixtures`), "test fixtures"},
		{whole(`docs/(` + languages + `|[a-z]{2,3}[-_]([A-Z][a-z]{3}[-_])?([A-Z]{2}|[0-9]{3})|zh[-_](Hans|Hant|hans|hant|cn|tw|hk)|pt[-_]br)`), "translated documentation"},
	}
}

const languages = `ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ko|lt|lv|ms|nb|nl|no|pl|pt|ro|ru|sk|sl|sr|sv|th|tr|uk|ur|vi|zh`

// skipped says whether a folder, relative to where discovery began, is left out.
func skipped(rules []SkipRule, dir string) (reason string, yes bool) {
	for _, rule := range rules {
		if found := rule.Folder.FindString(dir); found != "" {
			return fmt.Sprintf("%s is left out: %s", strings.Trim(found, "/"), rule.Reason), true
		}
	}
	return "", false
}
