package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign/countersign/graph"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/demo"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/server"
)

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serves the API (what countersign does without a command)",
		Long:  "Serves the API, picks up runs, and migrates the database before it does.\n\n" + environment,
		Args:  cobra.NoArgs,
		RunE:  serveHere,
	}
}

// serveHere serves as the environment says.
func serveHere(cmd *cobra.Command, _ []string) error {
	c, err := readConfig(os.Getenv)
	if err != nil {
		return err
	}
	return serve(cmd.Context(), c, cmd.OutOrStdout())
}

// serve runs until ctx ends, then lets requests and runs under way come to an end. It
// says on out where to go.
func serve(ctx context.Context, c config, out io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	listener, err := net.Listen("tcp", c.Addr) // before anything is made that a wrong address would leave behind
	if err != nil {
		return fmt.Errorf("COUNTERSIGN_ADDR: %w", err)
	}
	h, err := open(ctx, c, log, store.Options{Serve: true, KeepSchema: c.Migrate == "off"})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer h.close()
	if err := h.prepare(ctx, out, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return h.run(ctx, listener)
}

// prepare makes sure that there is an administrator, a way in, and the demo, and says
// where to go.
func (h *house) prepare(ctx context.Context, out io.Writer, at net.Addr) error {
	if h.store.Ready(ctx) != nil {
		return nil // pending migrations: serve says so on /readyz until somebody applies them
	}
	admin, err := h.access.EnsureBuiltIn(ctx)
	if err != nil {
		return err
	}
	if h.config.Demo == "on" {
		if err := (demo.Demo{Library: h.library, Content: h.content}).Install(ctx, admin.Actor()); err != nil {
			return err
		}
	}
	address := "http://" + at.String()
	fmt.Fprintf(out, "Countersign %s is ready at %s\n", version(), address)
	if err := h.printToken(ctx, out, admin.Actor()); err != nil {
		return err
	}
	return h.printLink(ctx, out, address)
}

// printToken makes the administrator's token at the first start and prints it once.
func (h *house) printToken(ctx context.Context, out io.Writer, admin actor.Actor) error {
	if h.config.AdminToken != "" {
		return nil
	}
	there, err := h.access.ListTokens(ctx, admin, noID, 1)
	if err != nil || len(there) > 0 {
		return err
	}
	_, secret, err := h.access.CreateToken(ctx, admin, access.NewToken{UserID: admin.ID, Name: "first start"})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Administrator token (shown once): %s\n", secret)
	return err
}

func (h *house) printLink(ctx context.Context, out io.Writer, address string) error {
	code, expires, err := h.auth.NewCode(ctx, access.BuiltIn)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Sign in (once, until %s): %s/sign-in#%s\n", expires.Format(time.TimeOnly+" MST"), address, code)
	return err
}

// run serves and works until ctx ends.
func (h *house) run(ctx context.Context, listener net.Listener) error {
	api := graph.New(graph.Rooms{
		Access: h.access, Library: h.library, Content: h.content, Agent: h.agent, Chat: h.chat, Tools: h.tools, Remote: h.remote, Spending: h.budgets, Notify: h.notify, Audit: h.store, Proofs: h.proofs,
		Keys: h.keys, Log: h.log, Bell: h.bell,
	})
	s := server.New(server.Options{
		Schema:         api.Schema(),
		Registry:       h.counted,
		Authenticator:  h.auth,
		ErrorPresenter: api.PresentError,
		Recover:        api.Recover,
		Ready: func(ctx context.Context) []string {
			if err := h.store.Ready(ctx); err != nil {
				return []string{err.Error()}
			}
			return nil
		},
		Logger: h.log, Origins: h.config.Origins, TrustedProxies: h.config.TrustedProxies, HideSchema: h.config.HideSchema,
	})
	background, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { h.agent.Work(background) })
	work.Go(func() { h.chat.Work(background) })
	work.Go(func() { h.notify.Work(background) })
	work.Go(func() { h.keep(background) })
	work.Go(func() {
		if err := h.listen(background); err != nil {
			h.log.Warn("nothing wakes this process for what others do; streams heal by looking", slog.Any("error", err))
		}
	})
	err := s.Serve(ctx, listener)
	stop()
	work.Wait()
	return err
}
