// Package world is what a use case needs from outside itself: the time, and
// randomness for ids and nonces. Both are injected, so that a run of the core is
// a function of its inputs and one seed. A World is safe for concurrent use when
// its functions are.
package world

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"time"

	"github.com/google/uuid"
)

// World gives time and randomness.
type World struct {
	now  func() time.Time
	rand io.Reader
}

// Real is the world as it is: the system clock and the system's randomness.
func Real() World { return World{now: time.Now, rand: rand.Reader} }

// New makes a world from a clock and a source of randomness.
func New(now func() time.Time, random io.Reader) World { return World{now: now, rand: random} }

// Now is the current time in UTC, cut to microseconds because that is what both
// databases keep: a time read back equals the time written.
func (w World) Now() time.Time { return w.now().UTC().Truncate(time.Microsecond) }

// NewID makes a UUIDv7 (RFC 9562): ordered by its clock, unique by its
// randomness. Nothing relies on the order; indexes merely like it.
func (w World) NewID() uuid.UUID {
	var id uuid.UUID
	w.fill(id[:])
	ms := uint64(w.now().UnixMilli())
	binary.BigEndian.PutUint32(id[0:4], uint32(ms>>16))
	binary.BigEndian.PutUint16(id[4:6], uint16(ms))
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Secret returns n random bytes.
func (w World) Secret(n int) []byte {
	b := make([]byte, n)
	w.fill(b)
	return b
}

func (w World) fill(b []byte) {
	if _, err := io.ReadFull(w.rand, b); err != nil {
		// The system's randomness does not fail, and an id that is not random
		// would be worse than a stop.
		panic(fmt.Sprintf("world: no randomness: %v", err))
	}
}

// Fixed is a world for tests and simulations: a clock that moves one
// millisecond a reading from start, and randomness from one seed.
func Fixed(start time.Time, seed uint64) World {
	var mu sync.Mutex
	at := start
	return New(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Millisecond)
		return at
	}, &stream{state: seed})
}

// stream is splitmix64 as a reader: small, seedable, and not for secrets.
type stream struct {
	mu    sync.Mutex
	state uint64
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(p); i += 8 {
		s.state += 0x9e3779b97f4a7c15
		z := s.state
		hi, lo := bits.Mul64(z^z>>30, 0xbf58476d1ce4e5b9)
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], lo^hi^z>>27)
		copy(p[i:], word[:])
	}
	return len(p), nil
}
