package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/vektah/gqlparser/v2/ast"
)

// metrics counts what the server does. Labels come from fixed sets: a client can
// not make new series by inventing names.
type metrics struct {
	requests          *prometheus.CounterVec
	requestDuration   *prometheus.HistogramVec
	operations        *prometheus.CounterVec
	operationDuration *prometheus.HistogramVec
	sockets           prometheus.Gauge
	subscriptions     prometheus.Gauge
}

func newMetrics(registry *prometheus.Registry) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "countersign_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 14),
		}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "countersign_" + name, Help: help})
	}
	m := &metrics{
		requests:          counter("http_requests_total", "HTTP requests answered.", "route", "method", "code"),
		requestDuration:   histogram("http_request_duration_seconds", "Time to answer an HTTP request; streams and WebSockets are left out.", "route"),
		operations:        counter("graphql_operations_total", "GraphQL operations, by type and outcome (ok, error, refused).", "type", "outcome"),
		operationDuration: histogram("graphql_operation_duration_seconds", "Time to execute a query or a mutation.", "type"),
		sockets:           gauge("websockets_open", "Open WebSockets."),
		subscriptions:     gauge("subscriptions_open", "Running subscriptions, over WebSockets and event streams."),
	}
	registry.MustRegister(m.requests, m.requestDuration, m.operations, m.operationDuration, m.sockets, m.subscriptions)
	return m
}

var (
	_ graphql.OperationInterceptor = (*metrics)(nil)
	_ graphql.ResponseInterceptor  = (*metrics)(nil)
)

// ExtensionName names the extension to gqlgen.
func (*metrics) ExtensionName() string { return "Metrics" }

// Validate has nothing to check.
func (*metrics) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation counts a subscription when it starts; its responses are no
// operations of their own.
func (m *metrics) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Subscription {
		m.operations.WithLabelValues("subscription", "ok").Inc()
	}
	return next(ctx)
}

// InterceptResponse counts a query or a mutation when it is answered, and any
// operation that was refused before it ran.
func (m *metrics) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response == nil || !graphql.HasOperationContext(ctx) {
		return response
	}
	op := graphql.GetOperationContext(ctx)
	if op.Operation == nil || len(response.Data) == 0 {
		m.operations.WithLabelValues("unknown", "refused").Inc()
		return response
	}
	if op.Operation.Operation == ast.Subscription {
		return response
	}
	kind, outcome := string(op.Operation.Operation), "ok"
	if len(response.Errors) > 0 {
		outcome = "error"
	}
	m.operations.WithLabelValues(kind, outcome).Inc()
	m.operationDuration.WithLabelValues(kind).Observe(time.Since(op.Stats.OperationStart).Seconds())
	return response
}

// count wraps the handler of a route.
func (m *metrics) count(route string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		recorder := &recorder{ResponseWriter: w}
		next.ServeHTTP(recorder, r)
		if recorder.hijacked {
			return
		}
		m.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(recorder.code())).Inc()
		if !recorder.streamed {
			m.requestDuration.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}
	})
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions:
		return method
	}
	return "other"
}

func metricsHandler(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
