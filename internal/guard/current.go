package guard

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Current is the redactor that counts now: it is told of the installation's secrets as they
// come and go. The values are held in this process's memory alone. The zero value knows the
// shapes; it is safe for concurrent use.
type Current struct {
	now atomic.Pointer[Redactor]

	mu    sync.Mutex
	fixed []string
	told  []string
}

// Always adds secrets that stay the same as long as the process lives.
func (c *Current) Always(secrets ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = append(c.fixed, secrets...)
	c.now.Store(New(append(slices.Clone(c.fixed), c.told...)...))
}

// Tell says which other secrets there are now.
func (c *Current) Tell(secrets []string) {
	secrets = slices.Sorted(slices.Values(secrets))
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(secrets, c.told) {
		return
	}
	c.told = secrets
	c.now.Store(New(append(slices.Clone(c.fixed), c.told...)...))
}

// Redactor is the present redactor.
func (c *Current) Redactor() *Redactor {
	if r := c.now.Load(); r != nil {
		return r
	}
	return &Redactor{}
}
