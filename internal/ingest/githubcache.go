package ingest

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// maxCached bounds the answers kept in memory, in bytes.
const maxCached = 64 << 20

// bodyCache keeps answers until others need the room, those longest unused first.
// What it holds is read by several fetches and never changed. Safe for concurrent use.
type bodyCache struct {
	mu    sync.Mutex
	left  int64
	order *list.List // of cachedBody, the latest used in front
	byKey map[cacheKey]*list.Element
}

// cacheKey is an address as a token sees it: what one token may read, another
// may not.
type cacheKey [sha256.Size]byte

func keyOf(token, url string) cacheKey {
	secret := sha256.Sum256([]byte(token))
	return sha256.Sum256(append(secret[:], url...))
}

type cachedBody struct {
	key  cacheKey
	etag string
	body []byte
}

// cost counts what an entry takes beside its body.
func (b cachedBody) cost() int64 { return int64(len(b.body)) + 512 }

func newBodyCache(size int64) *bodyCache {
	return &bodyCache{left: size, order: list.New(), byKey: map[cacheKey]*list.Element{}}
}

func (c *bodyCache) get(key cacheKey) (cachedBody, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return cachedBody{}, false
	}
	c.order.MoveToFront(element)
	return element.Value.(cachedBody), true
}

func (c *bodyCache) put(made cachedBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.byKey[made.key]; ok {
		c.drop(old)
	}
	c.byKey[made.key] = c.order.PushFront(made)
	c.left -= made.cost()
	for c.left < 0 {
		c.drop(c.order.Back())
	}
}

func (c *bodyCache) drop(element *list.Element) {
	old := c.order.Remove(element).(cachedBody)
	delete(c.byKey, old.key)
	c.left += old.cost()
}
