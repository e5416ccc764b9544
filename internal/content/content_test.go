package content_test

import (
	"testing"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/content/contenttest"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

func TestContent(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		contenttest.Suite(t, func(*testing.T) content.Store { return contenttest.NewMemory() })
	})
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			contenttest.Suite(t, func(t *testing.T) content.Store {
				return storetest.OpenAt(t, database.URL(t), store.Options{})
			})
		})
	}
}
