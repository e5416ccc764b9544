package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign/countersign/internal/remote"
)

// session is the session with one server as it was imported last. Opening it happens
// once, outside the connector's lock; ready is closed when client or err is there.
type session struct {
	server   uuid.UUID
	revision int
	ready    chan struct{}
	client   *connection
	err      error
	idle     *time.Timer
}

var errClosed = errors.New("this server is shutting down")

// session gives the session with a server, and opens it where there is none.
func (c *Connector) session(ctx context.Context, to remote.Reach) (*session, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	s := c.sessions[to.ID]
	if s != nil && s.revision == to.Revision {
		s.idle.Reset(c.options.IdleTimeout)
		c.mu.Unlock()
		return s.wait(ctx)
	}
	old := s
	s = &session{server: to.ID, revision: to.Revision, ready: make(chan struct{})}
	s.idle = time.AfterFunc(c.options.IdleTimeout, func() { c.drop(s) })
	c.sessions[to.ID] = s
	c.mu.Unlock()
	if old != nil {
		old.end()
	}
	go c.begin(context.WithoutCancel(ctx), s, to)
	return s.wait(ctx)
}

// begin opens a session for everybody who waits for it: whoever asked first may have
// given up by then.
func (c *Connector) begin(ctx context.Context, s *session, to remote.Reach) {
	ctx, cancel := context.WithTimeout(ctx, c.options.OpenTimeout)
	defer cancel()
	s.client, s.err = c.connect(ctx, to)
	close(s.ready)
	if s.err != nil {
		c.drop(s)
	}
}

func (s *session) wait(ctx context.Context) (*session, error) {
	select {
	case <-s.ready:
		return s, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// drop closes a session, so that the next call opens another one.
func (c *Connector) drop(s *session) {
	c.mu.Lock()
	if c.sessions[s.server] == s {
		delete(c.sessions, s.server)
	}
	c.mu.Unlock()
	s.end()
}

// end closes the connection as soon as it is there.
func (s *session) end() {
	s.idle.Stop()
	<-s.ready
	if s.client != nil {
		s.client.close()
	}
}

// Forget implements remote.Connector.
func (c *Connector) Forget(server uuid.UUID) {
	c.mu.Lock()
	s := c.sessions[server]
	c.mu.Unlock()
	if s != nil {
		c.drop(s)
	}
}

// Close ends every session and opens no other.
func (c *Connector) Close() {
	c.mu.Lock()
	c.closed = true
	sessions := c.sessions
	c.sessions = map[uuid.UUID]*session{}
	c.mu.Unlock()
	for _, s := range sessions {
		s.end()
	}
}

// answered reports whether an error is the server's answer to a request, so that its
// session is not to blame.
func answered(err error) bool {
	var said *jsonrpc.Error
	return errors.As(err, &said)
}
