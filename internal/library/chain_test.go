package library_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		price         library.Price
		input, output int
		want          int64
	}{
		"M1 nothing costs nothing":                    {library.Price{Input: 3_000_000, Output: 15_000_000}, 0, 0, 0},
		"M1 both ways are added":                      {library.Price{Input: 3_000_000, Output: 15_000_000}, 1000, 10, 3150},
		"M1 a part of a millionth is a whole one":     {library.Price{Input: 50_000}, 1, 0, 1},
		"M1 parts are added before they are rounded":  {library.Price{Input: 500_000, Output: 500_000}, 1, 1, 1},
		"M1 a count below zero is none":               {library.Price{Input: 3_000_000, Output: 1_000_000}, -5, 1, 1},
		"M1 no count and no price leaves 64 bits":     {library.Price{Input: 10_000_000_000, Output: 10_000_000_000}, math.MaxInt, math.MaxInt, 2_000_000_000_000},
		"M1 a free model costs nothing, however much": {library.Price{}, 1_000_000, 1_000_000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.price.Cost(c.input, c.output); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}

func TestChain(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		f := setUp(t)
		provider, err := f.CreateProvider(f.ctx, f.admin, library.NewProvider{Name: "Lab", Kind: library.OpenAICompatible, BaseURL: "https://lab.example/v1"})
		f.ok(err)
		c, err := f.CreateConfiguration(f.ctx, f.admin, library.NewConfiguration{Name: "Site", ProviderID: provider.ID, Model: "m", ContextWindow: 8192})
		f.ok(err)
		choice := func(model string) library.Choice { return library.Choice{ProviderID: provider.ID, Model: model} }
		t.Run("M1 fallbacks, length and price are kept as they were given, audited, and taken back", func(t *testing.T) {
			want := []library.Choice{choice("b"), {ProviderID: provider.ID, Model: "a", ContextWindow: 9000, MaxOutputTokens: 100, Price: &library.Price{Output: 7}}}
			price, most := &library.Price{Input: 1, Output: 2}, 500
			now, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Fallbacks: &want, Price: &price, MaxOutputTokens: &most})
			f.ok(err)
			if len(now.Fallbacks) != 2 || now.Fallbacks[0] != want[0] || *now.Fallbacks[1].Price != *want[1].Price || *now.Price != *price || now.MaxOutputTokens != most {
				t.Fatalf("%+v", now)
			}
			if chain := now.Chain(); len(chain) != 3 || chain[0].Model != "m" || chain[0].MaxOutputTokens != most || *chain[0].Price != *price {
				t.Fatalf("%+v", chain)
			}
			entries := f.audited(audit.ConfigurationUpdated)
			if told := entries[len(entries)-1].Detail["fallbacks"]; !strings.Contains(fmt.Sprint(told), provider.ID.String()+" b") {
				t.Errorf("the trail says %v", told)
			}
			none, nothing, free := []library.Choice{}, (*library.Price)(nil), 0
			now, err = f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Fallbacks: &none, Price: &nothing, MaxOutputTokens: &free})
			f.ok(err)
			if len(now.Fallbacks) != 0 || now.Price != nil || now.MaxOutputTokens != 0 {
				t.Fatalf("%+v", now)
			}
		})
		t.Run("M1 a chain that could not be asked is refused, saying which field", func(t *testing.T) {
			for name, bad := range map[string]struct {
				chain []library.Choice
				says  string
			}{
				"its own model again": {[]library.Choice{choice("m")}, "twice"},
				"one of them again":   {[]library.Choice{choice("a"), choice("a")}, "twice"},
				"too many":            {[]library.Choice{choice("1"), choice("2"), choice("3"), choice("4"), choice("5"), choice("6")}, "at most 5"},
				"no model":            {[]library.Choice{choice("")}, "model"},
				"a window below zero": {[]library.Choice{{ProviderID: provider.ID, Model: "a", ContextWindow: -1}}, "contextWindow"},
				"nothing but answer":  {[]library.Choice{{ProviderID: provider.ID, Model: "a", ContextWindow: 100, MaxOutputTokens: 100}}, "maxOutputTokens"},
				"a price below zero":  {[]library.Choice{{ProviderID: provider.ID, Model: "a", Price: &library.Price{Input: -1}}}, "price"},
			} {
				given := slices.Clone(bad.chain)
				_, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Fallbacks: &given})
				if !fault.Is(err, fault.BadInput) || !strings.Contains(err.Error(), bad.says) {
					t.Errorf("%s: %v", name, err)
				}
			}
			gone := []library.Choice{{ProviderID: uuid.Max, Model: "a"}}
			if _, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Fallbacks: &gone}); !fault.Is(err, fault.NotFound) {
				t.Errorf("a provider that is not there: %v", err)
			}
		})
	})
}
