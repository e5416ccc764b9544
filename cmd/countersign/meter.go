package main

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/notify"
)

// meter counts what models are asked, for /metrics. Its labels are fixed: neither a model
// nor a person can make new series.
type meter struct {
	turns, tokens              *prometheus.CounterVec
	requests, passed, overdraw prometheus.Counter
	cost                       prometheus.Counter
}

var _ agent.Meter = (*meter)(nil)

func newMeter(registry prometheus.Registerer) *meter {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_" + name, Help: help})
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "countersign_" + name, Help: help}, []string{label})
	}
	m := &meter{
		turns:    vector("model_turns_total", "Turns that models were asked for, by outcome (answered, failed).", "outcome"),
		tokens:   vector("model_tokens_total", "Tokens of models, by direction (input, output).", "direction"),
		requests: counter("model_requests_total", "Requests to models, failed ones and fallbacks included."),
		passed:   counter("model_fallbacks_total", "Models of a chain that were passed over before another one was asked."),
		cost:     counter("model_cost_total", "What models cost, as far as they have prices, in millionths of the installation's currency."),
		overdraw: counter("budget_refusals_total", "Starts and model calls that a budget did not allow."),
	}
	registry.MustRegister(m.turns, m.tokens, m.requests, m.passed, m.cost, m.overdraw)
	return m
}

// Asked implements agent.Meter.
func (m *meter) Asked(used agent.Consumption, passed int, failed bool) {
	outcome := "answered"
	if failed {
		outcome = "failed"
	}
	m.turns.WithLabelValues(outcome).Inc()
	m.tokens.WithLabelValues("input").Add(float64(used.InputTokens))
	m.tokens.WithLabelValues("output").Add(float64(used.OutputTokens))
	m.requests.Add(float64(used.Requests))
	m.passed.Add(float64(passed))
	m.cost.Add(float64(used.Cost))
}

// OutOfBudget implements agent.Meter.
func (m *meter) OutOfBudget() { m.overdraw.Inc() }

// postMeter counts what other servers are told, for /metrics.
type postMeter struct{ tries *prometheus.CounterVec }

var _ notify.Meter = postMeter{}

// newPostMeter also shows how much is still to be told, which it asks for when somebody
// looks: every replica shows the same.
func newPostMeter(registry prometheus.Registerer, untold func(context.Context) (int, error)) postMeter {
	m := postMeter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_notification_tries_total", Help: "Posts of notifications, by outcome (taken, failed, dropped).",
	}, []string{"outcome"})}
	registry.MustRegister(m.tries, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_notifications_pending", Help: "Notifications that no server has taken yet and that were not given up.",
	}, func() float64 {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		n, err := untold(ctx)
		if err != nil {
			return math.NaN()
		}
		return float64(n)
	}))
	return m
}

// Tried implements notify.Meter.
func (m postMeter) Tried(outcome notify.Outcome) { m.tries.WithLabelValues(string(outcome)).Inc() }
