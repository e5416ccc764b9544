package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/store"
)

// noID is where a list begins.
var noID uuid.UUID

// chore runs do in a house that does not serve, as the built-in administrator. It may
// share an embedded database with a server.
func chore(ctx context.Context, do func(context.Context, *house, actor.Actor) error) error {
	c, err := readConfig(os.Getenv)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: max(c.LogLevel, slog.LevelWarn)}))
	h, err := open(ctx, c, log, store.Options{})
	if err != nil {
		return err
	}
	defer h.close()
	admin, err := h.access.EnsureBuiltIn(ctx)
	if err != nil {
		return err
	}
	return do(ctx, h, admin.Actor())
}

func migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Brings the database to this version's schema",
		Long:  "Brings the database to this version's schema. serve does the same unless COUNTERSIGN_MIGRATE=off.\n\n" + environment,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(context.Context, *house, actor.Actor) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "The database is up to date.")
				return err
			})
		},
	}
}

func syncCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sync",
		Short: "Syncs every enabled source and prints what was found",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, by actor.Actor) error {
				return syncAll(ctx, cmd.OutOrStdout(), h.library, by)
			})
		},
	}
}

// syncPage is how many sources are read at once.
const syncPage = 100

func syncAll(ctx context.Context, out io.Writer, l *library.Library, by actor.Actor) error {
	failed := 0
	for page := (library.Page{Limit: syncPage}); ; {
		sources, err := l.ListSources(ctx, by, page)
		if err != nil {
			return err
		}
		for _, s := range sources {
			page.Cursor = s.ID
			if !s.Enabled || s.Type == library.Authored {
				continue
			}
			report, err := l.Sync(ctx, by, s.ID)
			if err != nil {
				failed++
				fmt.Fprintf(out, "%s: %s\n", s.Title, explain(err))
				continue
			}
			fmt.Fprintf(out, "%s: found %d, loaded %d, repaired %d, rejected %d, skipped %d, unchanged %d, orphaned %d\n", s.Title,
				report.Found, report.Loaded, report.Repaired, report.Rejected, report.Skipped, report.Unchanged, report.Orphaned)
		}
		if len(sources) < syncPage {
			break
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d sources could not be synced", failed)
	}
	return nil
}

func tokenCommand() *cobra.Command {
	token := &cobra.Command{Use: "token", Short: "Makes tokens and sign-in links of the built-in administrator"}
	token.AddCommand(&cobra.Command{
		Use:   "create NAME",
		Short: "Makes a bearer token and prints it once",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, by actor.Actor) error {
				_, secret, err := h.access.CreateToken(ctx, by, access.NewToken{UserID: by.ID, Name: args[0]})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
				return err
			})
		},
	}, &cobra.Command{
		Use:   "link",
		Short: "Makes a sign-in link that works once, for 15 minutes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, _ actor.Actor) error {
				return h.printLink(ctx, cmd.OutOrStdout(), "http://"+h.config.Addr)
			})
		},
	})
	return token
}
