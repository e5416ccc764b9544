package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Serve answers on the listener until ctx ends, and then drains: it stops
// accepting, closes WebSockets with 1012 and ends event streams, so that clients go
// elsewhere, and waits for the requests under way. Those that outlast the drain
// timeout are cut, and that is an error.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	hs := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	return s.drain(hs)
}

func (s *Server) drain(hs *http.Server) error {
	s.drainOnce.Do(func() { close(s.draining) })
	ctx, cancel := context.WithTimeout(context.Background(), s.options.DrainTimeout)
	defer cancel()
	sockets := make(chan error, 1)
	go func() { sockets <- s.sockets.Drain(ctx) }()
	err := errors.Join(hs.Shutdown(ctx), <-sockets)
	if err != nil {
		return fmt.Errorf("wait for requests at shutdown: %w", errors.Join(err, hs.Close()))
	}
	return nil
}

func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}
