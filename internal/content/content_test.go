package content_test

import (
	"testing"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/content/contenttest"
)

func TestContent(t *testing.T) {
	contenttest.Suite(t, func(*testing.T, contenttest.Needs) content.Store { return contenttest.NewMemory() })
}
