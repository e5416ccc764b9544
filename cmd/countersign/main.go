// Command countersign serves the GraphQL API and does the chores of its database.
// It is the only package that knows every room: it reads the configuration, joins
// adapters and use cases, and starts what was asked for.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/countersign/countersign/internal/fault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "countersign: "+explain(err))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "countersign",
		Short: "Runs LLM agents under instructions that a person countersigned",
		Long: `Countersign is a GraphQL server that runs LLM agents under countersigned instructions.

Without any setting it serves on 127.0.0.1:8080 with an embedded database in the
current folder, demo content and a scripted model, and prints a sign-in link.

` + environment,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          serveHere,
	}
	root.AddCommand(serveCommand(), migrateCommand(), syncCommand(), importCommand(), adoptCommand(), tokenCommand(), auditCommand(), keysCommand(), versionCommand())
	return root
}

// explain is what an operator reads: the message and, since nobody else sees it, the
// cause.
func explain(err error) string {
	if refusal, ok := fault.AsRefusal(err); ok {
		return refusal.Message
	}
	if errors.Is(err, context.Canceled) {
		return "stopped"
	}
	return err.Error()
}
