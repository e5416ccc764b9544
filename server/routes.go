package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/countersign/countersign/server/internal/wire"
	"github.com/countersign/countersign/web"
)

// routes lists every address the server answers.
func (s *Server) routes() http.Handler {
	playground := newAssets(web.Playground())
	signIn := newAssets(web.SignIn())
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		handler http.Handler
	}{
		{"/graphql", s.allowOrigins(http.HandlerFunc(s.graphql))},
		{"GET /healthz", http.HandlerFunc(s.healthz)},
		{"GET /readyz", http.HandlerFunc(s.readyz)},
		{"GET /metrics", metricsHandler(s.options.Registry)},
		{"GET /playground", playground.page("index.html")},
		{"GET /playground/{file}", playground},
		{"GET /sign-in", signIn.page("index.html")},
		{"GET /sign-in/{file}", signIn},
		{"POST /sign-in", http.HandlerFunc(s.signIn)},
		{"POST /sign-out", http.HandlerFunc(s.signOut)},
		{"GET /{$}", http.RedirectHandler("/playground", http.StatusFound)},
		{"/", http.NotFoundHandler()},
	} {
		mux.Handle(route.pattern, s.metrics.count(route.pattern, s.recovering(secured(s.hurried(route.handler)))))
	}
	return mux
}

// healthz says that the process runs; readyz says whether it can do its work.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.options.WriteTimeout)
	defer cancel()
	reasons := s.options.Ready(ctx)
	if s.isDraining() {
		reasons = append(reasons, "the server is shutting down")
	}
	body, err := json.Marshal(struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}{len(reasons) == 0, append([]string{}, reasons...)})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
	if len(reasons) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(body, '\n'))
}

// secured sets the headers that every answer carries. The console brings its own
// scripts; GraphiQL's editor sets styles from script, hence 'unsafe-inline' for those.
func secured(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-site")
		next.ServeHTTP(w, r)
	})
}

// hurried gives every answer its time, so that a client that reads slowly does not
// keep a connection for ever. Handlers that answer later move the deadline themselves.
func (s *Server) hurried(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.options.OperationTimeout + s.options.WriteTimeout))
		next.ServeHTTP(w, r)
	})
}

// allowOrigins lets pages of the configured origins read the answers. Cookies are
// never allowed to them: they bring a bearer token.
func (s *Server) allowOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		w.Header().Add("Vary", "Accept")
		origin := r.Header.Get("Origin")
		if origin != "" && slices.Contains(s.options.Origins, origin) {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
				w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
				w.Header().Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// recovering answers a panic as INTERNAL, if nothing was answered yet.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			switch {
			case p == nil:
			case p == http.ErrAbortHandler:
				panic(p)
			default:
				failure := s.recovered(r.Context(), p)
				if rec, ok := w.(*recorder); ok && !rec.answered() {
					s.answer(w, r, http.StatusInternalServerError, wire.Failure(failure))
				}
			}
		}()
		next.ServeHTTP(w, r)
	})
}
