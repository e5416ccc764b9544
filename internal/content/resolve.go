package content

import (
	"context"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// maxVisited bounds the search for an address.
const maxVisited = 10_000

// ResolveURL finds the page that answers at an address: a whole URL, of which only
// the path counts, or a path. A page that the actor may not read is not found.
func (c *Content) ResolveURL(ctx context.Context, as actor.Actor, address string) (Record, error) {
	if err := mayRead(as); err != nil {
		return Record{}, err
	}
	parsed, err := url.Parse(strings.TrimSpace(address))
	if err != nil || parsed.Opaque != "" {
		return Record{}, fault.New(fault.BadInput, "%q is no URL", address)
	}
	want := path.Clean("/" + parsed.Path)
	errFound := errors.New("found")
	var found Record
	visited := 0
	err = c.walk().descend(ctx, as, Node{Depth: -1}, func(n Node) (bool, error) {
		if visited++; visited > maxVisited {
			return false, fault.New(fault.Unavailable, "the site has too many pages to look for %s", want)
		}
		if n.Path == want && hasAddress(n.Page) {
			found = n.Page
			return false, errFound
		}
		return true, nil
	})
	switch {
	case errors.Is(err, errFound):
		return found, nil
	case err != nil:
		return Record{}, err
	default:
		return Record{}, fault.New(fault.NotFound, "no page answers at %s", want)
	}
}

// Path is where a page answers on the site, or "" when it has no address of its own or
// its way to the root is broken.
func (c *Content) Path(ctx context.Context, page Record) (string, error) {
	if !hasAddress(page) {
		return "", nil
	}
	return c.walk().path(ctx, page)
}

// path joins the addresses down to a page; one without an address has its parent's.
func (w *walk) path(ctx context.Context, page Record) (string, error) {
	line, err := w.line(ctx, page)
	if errors.Is(err, errBroken) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	at := ""
	for _, p := range slices.Backward(line) {
		at = join(at, p)
	}
	return at, nil
}

func hasAddress(page Record) bool { return slug(page) != "" }

func slug(page Record) string {
	s, _ := page.Fields["slug"].(string)
	return s
}

// join is the path of a page below a path: a slug that begins with a slash is a
// whole path, any other one joins, and a page without one passes its parent's on.
func join(above string, page Record) string {
	s := slug(page)
	switch {
	case s == "":
		return above
	case strings.HasPrefix(s, "/"):
		return path.Clean(s)
	default:
		return path.Clean("/" + above + "/" + s)
	}
}
