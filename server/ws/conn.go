package ws

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// conn is one WebSocket.
//
// States: waiting for connection_init → initialised (who is it?) → acknowledged →
// closing. Only the reading goroutine moves it, but for closing, which anyone may ask for.
type conn struct {
	t       *Transport
	socket  *websocket.Conn
	request *http.Request // the upgrade
	exec    graphql.GraphExecutor
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	running sync.WaitGroup // operations, and the keeper

	writing sync.Mutex // held for each frame: gorilla takes one writer at a time

	mu           sync.Mutex // guards all that follows
	initialised  bool
	acknowledged bool
	closing      bool
	actor        actor.Actor
	token        string
	operations   map[string]*operation
}

func newConn(t *Transport, socket *websocket.Conn, r *http.Request, exec graphql.GraphExecutor) *conn {
	ctx, cancel := context.WithCancel(r.Context())
	c := &conn{
		t: t, socket: socket, request: r, exec: exec, ctx: ctx, cancel: cancel,
		operations: map[string]*operation{},
	}
	socket.SetReadLimit(t.options.MaxMessageBytes)
	socket.SetPongHandler(func(string) error {
		c.extend()
		return nil
	})
	// gorilla's own handlers write without our deadline and answer a close twice.
	socket.SetPingHandler(func(data string) error {
		c.extend()
		c.control(websocket.PongMessage, []byte(data))
		return nil
	})
	socket.SetCloseHandler(func(code int, _ string) error {
		if code == websocket.CloseNoStatusReceived {
			code = websocket.CloseNormalClosure
		}
		c.close(code, "")
		return nil
	})
	return c
}

// serve reads until the connection ends, and then waits for its goroutines.
func (c *conn) serve() {
	defer c.running.Wait()
	defer c.hangUp()
	c.running.Add(1)
	go c.keep()
	for {
		c.extend()
		kind, data, err := c.socket.ReadMessage()
		if err != nil {
			c.linger(err)
			return
		}
		if c.isClosing() {
			continue // nothing counts any more but the peer's close frame
		}
		if kind != websocket.TextMessage {
			c.close(closeBadRequest, "a message must be text")
			continue
		}
		c.receive(data)
	}
}

func (c *conn) receive(data []byte) {
	m, err := parseMessage(data)
	if err != nil {
		c.close(closeBadRequest, err.Error())
		return
	}
	switch m.Type {
	case typeInit:
		c.initialise(m)
	case typePing:
		c.pong(m)
	case typeSubscribe:
		c.subscribe(m)
	case typeComplete:
		c.stop(m.ID)
	case typePong: // it has already moved the read deadline
	}
}

func (c *conn) initialise(m message) {
	c.mu.Lock()
	second := c.initialised
	c.initialised = true
	c.mu.Unlock()
	if second {
		c.close(closeSecondInit, "Too many initialisation requests")
		return
	}
	payload, err := m.object()
	if err != nil {
		c.close(closeBadRequest, err.Error())
		return
	}
	secret, given := token(payload)
	if given && secret == "" {
		c.close(closeForbidden, "Forbidden")
		return
	}
	who, err := c.authenticate(secret)
	switch {
	case err != nil:
		c.close(refusal(err))
		return
	case who.IsNobody():
		c.close(closeUnauthorized, "Unauthorized")
		return
	}
	c.mu.Lock()
	c.actor, c.token, c.acknowledged = who, secret, true
	c.mu.Unlock()
	c.write([]byte(`{"type":"` + typeAck + `"}`))
}

func (c *conn) pong(m message) {
	payload, err := m.object()
	if err != nil {
		c.close(closeBadRequest, err.Error())
		return
	}
	answer, _ := json.Marshal(struct {
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload,omitempty"`
	}{typePong, payload}) // valid JSON came in, valid JSON goes out
	c.write(answer)
}

// refusal says how a connection ends whose actor was not found. A credential that is
// refused is 4403: a client must never see 1000, at which it would connect again
// at once.
func refusal(err error) (code int, reason string) {
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.Forbidden:
		return closeForbidden, "Forbidden"
	}
	return closeTryAgainLater, "Try again later"
}

// write sends one text frame. A peer that does not take it in time is cut off.
func (c *conn) write(frame []byte) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.t.options.WriteTimeout))
	err := c.socket.WriteMessage(websocket.TextMessage, frame)
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.cut()
	}
	return err == nil
}

// control sends a control frame; gorilla lets it pass between two text frames.
func (c *conn) control(kind int, data []byte) {
	err := c.socket.WriteControl(kind, data, time.Now().Add(c.t.options.WriteTimeout))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.cut()
	}
}

// close says goodbye with a code. Operations end at once; the reading goroutine
// waits for the peer's own close frame, or for the close timeout: a connection torn
// down at once could lose the code on its way.
func (c *conn) close(code int, reason string) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return
	}
	c.closing = true
	deadline := time.Now().Add(c.t.options.CloseTimeout)
	_ = c.socket.SetReadDeadline(deadline)
	c.mu.Unlock()
	c.cancel()
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
}

// maxReason is what a close frame has left for its reason (RFC 6455, 5.5).
const maxReason = 123

func (c *conn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// extend moves the read deadline: the peer has shown that it lives.
func (c *conn) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		_ = c.socket.SetReadDeadline(time.Now().Add(c.t.options.PingInterval * 5 / 2))
	}
}

// linger takes in what is still on its way after a broken frame or one that was
// too long. Closing a socket with unread bytes resets it, and the peer would
// never read the close code that gorilla has sent.
func (c *conn) linger(err error) {
	var closed *websocket.CloseError
	var timeout net.Error
	if errors.As(err, &closed) || errors.As(err, &timeout) && timeout.Timeout() {
		return
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.cancel()
	raw := c.socket.NetConn()
	_ = raw.SetReadDeadline(time.Now().Add(c.t.options.CloseTimeout))
	_, _ = io.Copy(io.Discard, raw)
}

// cut drops the connection without a word.
func (c *conn) cut() {
	c.cancel()
	_ = c.socket.NetConn().Close()
}

// hangUp ends the connection once reading is over.
func (c *conn) hangUp() {
	c.cancel()
	_ = c.socket.Close()
}
