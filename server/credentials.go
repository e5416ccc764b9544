package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// CSRFHeader must accompany every request that changes something and is
// authenticated by the session cookie, with any value. A page of another origin can
// not add it without a preflight, which is never allowed with cookies.
const CSRFHeader = "X-Countersign-CSRF"

// identify finds out who sent a request: by its bearer token or, without one, by its
// session cookie. Nobody, without an error, means that it carries neither. A credential
// that is given and not valid is an error, never a fall-back to nobody.
func (s *Server) identify(ctx context.Context, r *http.Request) (actor.Actor, error) {
	if r.Header.Get("Authorization") != "" {
		token, err := bearer(r)
		if err != nil {
			return actor.Actor{}, err
		}
		return s.options.Authenticator.Bearer(ctx, token)
	}
	if secret, ok := sessionSecret(r); ok {
		return s.options.Authenticator.Session(ctx, secret)
	}
	return actor.Actor{}, nil
}

// connected finds out who opened a WebSocket: by the token from connection_init,
// else as any other request.
func (s *Server) connected(ctx context.Context, upgrade *http.Request, token string) (actor.Actor, error) {
	if token != "" {
		return s.options.Authenticator.Bearer(ctx, token)
	}
	return s.identify(ctx, upgrade)
}

func bearer(r *http.Request) (string, error) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !found || !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", fault.New(fault.Unauthenticated, "the Authorization header must read: Bearer, a space, and a token")
	}
	return token, nil
}

// checkForgery refuses a request that another site may have made a browser send
// along with the session cookie. A bearer token is no cookie: no browser adds it by itself.
func (s *Server) checkForgery(r *http.Request) error {
	if r.Header.Get(CSRFHeader) == "" {
		return fault.New(fault.Forbidden, "a request with the session cookie needs the header %s: 1", CSRFHeader)
	}
	if err := s.crossOrigin.Check(r); err != nil {
		return fault.Wrap(fault.Forbidden, err, "a request with the session cookie must come from this server's own pages")
	}
	return nil
}

func usesCookie(r *http.Request) bool {
	_, ok := sessionSecret(r)
	return ok && r.Header.Get("Authorization") == ""
}
