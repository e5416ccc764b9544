package server

import (
	"container/list"
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// recent keeps the values used last, up to a number of them. It is safe for
// concurrent use.
type recent[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	order *list.List // of entry, the last used in front
	byKey map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, order: list.New(), byKey: map[K]*list.Element{}}
}

// get returns the value of a key and makes it the last used.
func (c *recent[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(element)
	return element.Value.(entry[K, V]).value, true
}

// getOrAdd returns the value of a key, made where there is none.
func (c *recent[K, V]) getOrAdd(key K, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.order.MoveToFront(element)
		return element.Value.(entry[K, V]).value
	}
	value := make()
	c.byKey[key] = c.order.PushFront(entry[K, V]{key, value})
	if c.order.Len() > c.limit {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.byKey, oldest.Value.(entry[K, V]).key)
	}
	return value
}

func (c *recent[K, V]) remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.order.Remove(element)
		delete(c.byKey, key)
	}
}

const (
	cachedQueries    = 1000
	cachedQueryBytes = 16 << 10 // a longer document is parsed each time
)

// queryCache keeps parsed and validated documents. Both the number of documents
// and the length of each are bounded, so a client that never repeats itself cannot
// fill the memory.
type queryCache struct {
	documents *recent[string, *ast.QueryDocument]
}

func newQueryCache() queryCache {
	return queryCache{newRecent[string, *ast.QueryDocument](cachedQueries)}
}

// Get returns the document of a query, if it is kept.
func (c queryCache) Get(_ context.Context, query string) (*ast.QueryDocument, bool) {
	return c.documents.get(query)
}

// Add keeps the document of a query, unless it is long.
func (c queryCache) Add(_ context.Context, query string, document *ast.QueryDocument) {
	if len(query) <= cachedQueryBytes {
		c.documents.getOrAdd(query, func() *ast.QueryDocument { return document })
	}
}
