package provider

import (
	"context"
	"io"
	"time"
)

// watch ends an attempt that hangs or never ends. Its context's cause says which:
// errSilent or errLong. The clock for silence runs only while something is awaited,
// so that a slow reader of the text is not taken for a slow provider.
type watch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence *time.Timer
	total   *time.Timer
	idle    time.Duration
	left    int64 // bytes the response may still have
}

func newWatch(ctx context.Context, limits Limits) *watch {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watch{
		ctx: ctx, cancel: cancel, idle: limits.Idle, left: limits.Response,
		silence: time.AfterFunc(limits.FirstByte, func() { cancel(errSilent) }),
		total:   time.AfterFunc(limits.Total, func() { cancel(errLong) }),
	}
}

func (w *watch) stop() {
	w.silence.Stop()
	w.total.Stop()
	w.cancel(nil)
}

// over watches the reading of a response that has begun.
func (w *watch) over(body io.ReadCloser) *watchedBody {
	w.silence.Stop()
	return &watchedBody{ReadCloser: body, watch: w}
}

type watchedBody struct {
	io.ReadCloser
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.silence.Reset(b.watch.idle)
	n, err := b.ReadCloser.Read(p)
	b.watch.silence.Stop()
	if b.watch.left -= int64(n); b.watch.left < 0 {
		return 0, errBytes
	}
	return n, err
}
