package store_test

import (
	"testing"

	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

func TestOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := s.AuditSize(t.Context()); err != nil || n != 0 {
			t.Fatalf("a new trail has %d entries, %v", n, err)
		}
	})
}
