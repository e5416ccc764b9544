package guard

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler is a handler of log records that takes the secrets out of them before another
// one gets them. It changes nothing else about a record.
func (c *Current) Handler(next slog.Handler) slog.Handler { return handler{c, next} }

type handler struct {
	current *Current
	next    slog.Handler
}

// Enabled is as the next handler says.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle hands on the record without its secrets.
func (h handler) Handle(ctx context.Context, record slog.Record) error {
	r := h.current.Redactor()
	clean := slog.NewRecord(record.Time, record.Level, r.Text(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(attribute(r, a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs and WithGroup redact what they add, too.
func (h handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	r, clean := h.current.Redactor(), make([]slog.Attr, len(attributes))
	for i, a := range attributes {
		clean[i] = attribute(r, a)
	}
	return handler{h.current, h.next.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.current, h.next.WithGroup(name)}
}

// attribute is an attribute without secrets. What can hold none stays what it is; an error
// or another value is what it says.
func attribute(r *Redactor, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(r.member(a.Key, v.String()))
	case slog.KindGroup:
		inner := v.Group()
		clean := make([]slog.Attr, len(inner))
		for i, one := range inner {
			clean[i] = attribute(r, one)
		}
		a.Value = slog.GroupValue(clean...)
	case slog.KindAny:
		if text := fmt.Sprint(v.Any()); r.Text(text) != text {
			a.Value = slog.StringValue(r.Text(text))
		}
	}
	return a
}
