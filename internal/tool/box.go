package tool

import (
	"context"
	"sync/atomic"
)

// Remote gives the tools of other servers as they are imported and reviewed now. Each
// call gives tools of their own: what one of them notices about its server counts for
// those that came with it.
type Remote interface {
	Tools(ctx context.Context) ([]Tool, error)
}

// Box gives the tools there are at one moment: the shipped ones, which never change, and
// those of other servers, which do while this server runs. Whoever works with several of
// them takes one registry and stays with it. Safe for concurrent use.
type Box struct {
	shipped *Registry
	remote  Remote
	last    atomic.Pointer[Registry] // what its schemas were compiled for need not be compiled again
}

// NewBox makes a box; remote is nil where there are shipped tools alone.
func NewBox(shipped *Registry, remote Remote) *Box {
	b := &Box{shipped: shipped, remote: remote}
	b.last.Store(shipped)
	return b
}

// Shipped are the tools that do not change.
func (b *Box) Shipped() *Registry { return b.shipped }

// Now are the tools there are now.
func (b *Box) Now(ctx context.Context) (*Registry, error) {
	if b.remote == nil {
		return b.shipped, nil
	}
	remote, err := b.remote.Tools(ctx)
	if err != nil {
		return nil, err
	}
	if len(remote) == 0 {
		return b.shipped, nil
	}
	now := b.shipped.with(remote, b.last.Load())
	b.last.Store(now)
	return now, nil
}
