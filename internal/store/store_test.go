package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			storetest.RunAll(t, func(t *testing.T) *store.Store {
				return storetest.OpenAt(t, database.URL(t), store.Options{})
			})
		})
	}
}
