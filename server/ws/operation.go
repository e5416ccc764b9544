package ws

import (
	"context"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

// operation is one query, mutation or subscription on a connection. It is live
// while the connection's table has it under its id.
type operation struct {
	id     string
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *conn) subscribe(m message) {
	c.mu.Lock()
	acknowledged, who, open := c.acknowledged, c.actor, len(c.operations)
	_, duplicate := c.operations[m.ID]
	c.mu.Unlock()
	if !acknowledged {
		c.close(closeUnauthorized, "Unauthorized")
		return
	}
	payload, err := m.object()
	if err != nil || payload == nil {
		c.close(closeBadRequest, "the payload of subscribe must be an object")
		return
	}
	params, err := wire.ParseParams(payload)
	switch {
	case err != nil:
		c.close(closeBadRequest, err.Error())
		return
	case duplicate:
		c.close(closeDuplicate, "Subscriber for "+m.ID+" already exists")
		return
	case open >= c.t.options.MaxOperations:
		c.fail(m.ID, gqlerror.List{wire.Error(fault.RateLimited,
			"this connection has %d open operations, which is the limit; complete one first", open)})
		return
	}
	op := &operation{id: m.ID}
	op.ctx, op.cancel = context.WithCancel(actor.WithActor(c.ctx, who))
	c.mu.Lock()
	c.operations[op.id] = op
	c.mu.Unlock()
	c.running.Add(1)
	go c.run(op, params)
}

// stop is the client's complete: the operation ends and is answered no more.
func (c *conn) stop(id string) {
	c.mu.Lock()
	op := c.operations[id]
	delete(c.operations, id)
	c.mu.Unlock()
	if op != nil {
		op.cancel()
	}
}

// release takes an operation out of the table and reports whether it was still
// there, which means that the client waits for its end. The id is free before the
// client reads complete and may use it again.
func (c *conn) release(op *operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.operations[op.id] != op {
		return false
	}
	delete(c.operations, op.id)
	return !c.closing
}

func (c *conn) isLive(op *operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.operations[op.id] == op && !c.closing
}

func (c *conn) run(op *operation, params *graphql.RawParams) {
	defer c.running.Done()
	defer op.cancel()
	errs := c.execute(op, params)
	if !c.release(op) {
		return
	}
	if len(errs) > 0 {
		c.fail(op.id, errs)
		return
	}
	c.write(idMessage(op.id, typeComplete, nil))
}

// execute runs an operation to its end. The errors it returns are those that the
// protocol sends as error: the request was refused, or the server panicked.
func (c *conn) execute(op *operation, params *graphql.RawParams) (errs gqlerror.List) {
	ctx := graphql.StartOperationTrace(op.ctx)
	defer func() {
		if p := recover(); p != nil {
			errs = gqlerror.List{c.t.options.Recovered(ctx, p)}
		}
	}()
	params.Headers = c.request.Header
	params.ReadTime = graphql.TraceTiming{Start: graphql.Now(), End: graphql.Now()}
	opCtx, errs := c.exec.CreateOperationContext(ctx, params)
	if len(errs) > 0 {
		return c.exec.DispatchError(graphql.WithOperationContext(ctx, opCtx), errs).Errors
	}
	if opCtx.Operation.Operation == ast.Subscription {
		c.t.options.Subscriptions(1)
		defer c.t.options.Subscriptions(-1)
		c.stream(ctx, op, opCtx)
		return nil
	}
	// By HTTP a revoked token is refused at once, and so it is here: a mutation does
	// not wait for the keeper to notice.
	if !c.recheck() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.t.options.OperationTimeout)
	defer cancel()
	responses, ctx := c.exec.DispatchOperation(ctx, opCtx)
	if response := responses(ctx); response != nil {
		c.next(op, response)
		return nil
	}
	// The executor answers nothing once its context has ended.
	return gqlerror.List{wire.Error(fault.Unavailable, "the operation took too long and was given up")}
}

func (c *conn) stream(ctx context.Context, op *operation, opCtx *graphql.OperationContext) {
	responses, ctx := c.exec.DispatchOperation(ctx, opCtx)
	for {
		response := responses(ctx)
		if response == nil || !c.next(op, response) {
			return
		}
	}
}

// next sends one response and reports whether another is wanted.
func (c *conn) next(op *operation, response *graphql.Response) bool {
	if !c.isLive(op) {
		return false
	}
	payload, err := wire.AppendResponse(nil, response)
	if err != nil {
		panic(err) // the recovery in execute answers and logs it
	}
	return c.write(idMessage(op.id, typeNext, payload))
}

func (c *conn) fail(id string, errs gqlerror.List) {
	payload, err := json.Marshal(errs)
	if err != nil {
		payload = []byte(`[{"message":"the errors of this operation could not be encoded"}]`)
	}
	c.write(idMessage(id, typeError, payload))
}
