package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/countersign/countersign/internal/fault"
)

// The session cookie. Over TLS its name binds it to this host (RFC 6265bis
// prefixes), so that a neighbouring subdomain cannot plant one.
const (
	cookieName       = "countersign_session"
	secureCookieName = "__Host-countersign_session"
)

// sessionSecret returns the session cookie of a request.
func sessionSecret(r *http.Request) (string, bool) {
	for _, name := range []string{secureCookieName, cookieName} {
		if cookie, err := r.Cookie(name); err == nil && cookie.Value != "" {
			return cookie.Value, true
		}
	}
	return "", false
}

func (s *Server) sessionCookie(r *http.Request, secret string, expires time.Time) *http.Cookie {
	cookie := &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", Expires: expires,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if s.isTLS(r) {
		cookie.Name, cookie.Secure = secureCookieName, true
	}
	return cookie
}

// signIn turns the one-time code of a sign-in link into a session. The code arrives in
// a body, never in an address: the link carries it in its fragment, which browsers keep
// to themselves.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if err := s.checkForgery(r); err != nil { // or another site signs its victim in as itself
		s.refuse(w, r, err)
		return
	}
	address := s.clientAddress(r)
	if !s.attempts.allow(address) {
		w.Header().Set("Retry-After", strconv.Itoa(int(attemptEvery/time.Second)))
		s.refuse(w, r, fault.New(fault.RateLimited, "too many attempts to sign in from here; wait a moment"))
		return
	}
	if !isJSON(r) {
		s.badRequest(w, r, http.StatusUnsupportedMediaType, "the Content-Type of a request must be %s, in UTF-8", typeJSON)
		return
	}
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	var input struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(body, &input); err != nil || input.Code == "" {
		s.badRequest(w, r, http.StatusBadRequest, `sign in with {"code": "…"}, the code of a sign-in link`)
		return
	}
	secret, expires, err := s.options.Authenticator.Redeem(r.Context(), input.Code)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.attempts.succeeded(address)
	http.SetCookie(w, s.sessionCookie(r, secret, expires))
	w.WriteHeader(http.StatusNoContent)
}

// signOut ends the session of the request's cookie.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if err := s.checkForgery(r); err != nil {
		s.refuse(w, r, err)
		return
	}
	if secret, ok := sessionSecret(r); ok {
		if err := s.options.Authenticator.SignOut(r.Context(), secret); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	gone := s.sessionCookie(r, "", time.Unix(1, 0))
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	w.WriteHeader(http.StatusNoContent)
}
