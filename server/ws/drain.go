package ws

import (
	"context"

	"github.com/gorilla/websocket"
)

// Drain closes every connection with 1012 (service restart), after which clients
// connect again elsewhere, and refuses new ones. http.Server.Shutdown does neither: it
// forgets connections once they are upgraded. Drain returns when all have ended;
// those that linger when ctx ends are cut, and ctx's error is returned.
func (t *Transport) Drain(ctx context.Context) error {
	t.mu.Lock()
	t.draining = true
	connections := make([]*conn, 0, len(t.open))
	for c := range t.open {
		connections = append(connections, c)
	}
	t.mu.Unlock()

	for _, c := range connections {
		go c.close(websocket.CloseServiceRestart, "Service restart")
	}
	ended := make(chan struct{})
	go func() {
		t.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, c := range connections {
		c.cut()
	}
	<-ended
	return ctx.Err()
}

func (t *Transport) isDraining() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.draining
}

// enter counts a connection in, unless the transport drains.
func (t *Transport) enter(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining {
		return false
	}
	t.open[c] = struct{}{}
	t.ended.Add(1)
	t.options.Connections(1)
	return true
}

func (t *Transport) leave(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
	t.options.Connections(-1)
	t.ended.Done()
}
