package server

import (
	"context"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

func TestRecent(t *testing.T) {
	t.Run("the value used longest ago goes first", func(t *testing.T) {
		c := newRecent[string, int](2)
		add := func(key string, value int) { c.getOrAdd(key, func() int { return value }) }
		add("a", 1)
		add("b", 2)
		c.get("a")
		add("c", 3)
		if _, ok := c.get("b"); ok {
			t.Error("b stayed")
		}
		if v, ok := c.get("a"); !ok || v != 1 {
			t.Error("a went")
		}
		if got := c.getOrAdd("a", func() int { return 9 }); got != 1 {
			t.Errorf("a became %d", got)
		}
		c.remove("a")
		if _, ok := c.get("a"); ok {
			t.Error("a stayed")
		}
	})
	t.Run("a long document is not kept", func(t *testing.T) {
		c, ctx := newQueryCache(), context.Background()
		short, long := strings.Repeat("x", cachedQueryBytes), strings.Repeat("x", cachedQueryBytes+1)
		c.Add(ctx, short, &ast.QueryDocument{})
		c.Add(ctx, long, &ast.QueryDocument{})
		if _, ok := c.Get(ctx, short); !ok {
			t.Error("the short one went")
		}
		if _, ok := c.Get(ctx, long); ok {
			t.Error("the long one stayed")
		}
	})
}
