package ws

import (
	"context"
	"time"

	"github.com/gorilla/websocket"

	"github.com/countersign/countersign/internal/actor"
)

// keep watches over a connection: it must be initialised in time, answer pings,
// and belong to somebody who still has the rights it was opened with.
func (c *conn) keep() {
	defer c.running.Done()
	initialise := time.NewTimer(c.t.options.InitTimeout)
	defer initialise.Stop()
	ping := time.NewTicker(c.t.options.PingInterval)
	defer ping.Stop()
	recheck := time.NewTicker(c.t.options.RecheckInterval)
	defer recheck.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-initialise.C:
			c.mu.Lock()
			late := !c.initialised
			c.mu.Unlock()
			if late {
				c.close(closeInitTimeout, "Connection initialisation timeout")
			}
		case <-ping.C:
			c.control(websocket.PingMessage, nil)
		case <-recheck.C:
			c.recheck()
		}
	}
}

// recheck closes the connection when its actor is gone or has other rights than
// before: the client connects again and gets what it may see now. Where the answer
// cannot be had the connection closes as well, for a right may have been revoked.
// It reports whether the connection goes on.
func (c *conn) recheck() bool {
	c.mu.Lock()
	acknowledged, before, secret := c.acknowledged, c.actor, c.token
	c.mu.Unlock()
	if !acknowledged {
		return true
	}
	now, err := c.authenticate(secret)
	switch {
	case c.ctx.Err() != nil:
		return false
	case err != nil:
		c.close(refusal(err))
		return false
	case !before.Same(now):
		c.close(closeForbidden, "Forbidden")
		return false
	}
	return true
}

// authenticate asks who is connected. An answer that takes longer than half the
// time between two checks is none, so that a revoked right takes effect within one
// and a half of them.
func (c *conn) authenticate(secret string) (who actor.Actor, err error) {
	defer func() {
		if p := recover(); p != nil { // outside net/http's own recovery it would end the process
			who, err = actor.Actor{}, c.t.options.Recovered(c.ctx, p)
		}
	}()
	ctx, cancel := context.WithTimeout(c.ctx, c.t.options.RecheckInterval/2)
	defer cancel()
	return c.t.options.Authenticate(ctx, c.request, secret)
}
