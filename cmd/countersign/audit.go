package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
)

func auditCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "audit",
		Short: "Signs, exports and verifies the audit trail",
		Long: "Signs, exports and verifies the audit trail: who allowed what, and what was done with it.\n" +
			"docs/auditing.md shows how an auditor works with it.",
		Args: cobra.NoArgs, // so that a command that there is not is an error
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(auditKeyCommand(), auditCheckpointCommand(), auditExportCommand(), auditVerifyCommand(), auditPruneCommand())
	return root
}

func auditKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Prints the public key that verifies checkpoints; an auditor keeps it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, _ actor.Actor) error {
				key, err := h.proofs.VerifierKey(ctx)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
				return err
			})
		},
	}
}

func auditCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint",
		Short: "Prints a signed checkpoint of the trail as it is now; an auditor keeps it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, _ actor.Actor) error {
				c, err := h.proofs.Checkpoint(ctx)
				if err != nil {
					return err
				}
				_, err = io.WriteString(cmd.OutOrStdout(), c.Note)
				return err
			})
		},
	}
}

func auditExportCommand() *cobra.Command {
	var from, to int64
	var older string
	c := &cobra.Command{
		Use:   "export",
		Short: "Writes the trail as JSON lines that verify checks without the database",
		Long: `Writes the trail, oldest entry first, as JSON lines: a header, the entries, a signed
checkpoint after every 256th, and the checkpoint of the whole trail at the end. It
covers what was recorded before it began, and needs little memory whatever the size.`,
		Args: cobra.NoArgs,
	}
	c.Flags().Int64Var(&from, "from", 0, "index of the first entry; without it the oldest one that is kept")
	c.Flags().Int64Var(&to, "to", 0, "index after the last entry; without it the end of the trail")
	c.Flags().StringVar(&older, "older", "", "file with a checkpoint that was kept; the export proves that it is the trail's beginning")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var o audit.ExportOptions
		if cmd.Flags().Changed("from") {
			o.From = &from
		}
		if cmd.Flags().Changed("to") {
			o.To = &to
		}
		var err error
		if o.Older, err = readNote(older); err != nil {
			return err
		}
		return chore(cmd.Context(), func(ctx context.Context, h *house, _ actor.Actor) error {
			return h.proofs.Export(ctx, cmd.OutOrStdout(), o)
		})
	}
	return c
}

func auditVerifyCommand() *cobra.Command {
	var key, older string
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Checks an exported trail, without a database, and names the first bad entry",
		Long: `Checks every byte of an exported trail against the key that the auditor kept: each
entry, their order, and the signed checkpoints. It needs neither a database nor a
server. FILE may be - for the standard input.`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&key, "key", "", "the public key, as countersign audit key printed it when you began to audit")
	c.Flags().StringVar(&older, "older", "", "file with a checkpoint that was kept: the trail must begin with what it covers")
	if err := c.MarkFlagRequired("key"); err != nil {
		panic(err) // the flag is defined two lines above
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return fmt.Errorf("--key is no public key of a trail: %w", err)
		}
		kept, err := readNote(older)
		if err != nil {
			return err
		}
		file := cmd.InOrStdin()
		if args[0] != "-" {
			opened, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer opened.Close()
			file = opened
		}
		report, err := audit.Verify(file, verifier, kept)
		var failure *audit.Failure
		if errors.As(err, &failure) {
			return fmt.Errorf("%s is not the trail that was signed: %w", args[0], failure)
		}
		if err != nil {
			return err
		}
		return printReport(cmd.OutOrStdout(), report)
	}
	return c
}

func printReport(out io.Writer, r audit.Report) error {
	what := fmt.Sprintf("%d entries, %d to %d,", r.To-r.From, r.From, r.To-1)
	if r.From == r.To {
		what = "no entries"
	}
	older := ""
	if r.Older >= 0 {
		older = fmt.Sprintf("begins with the %d entries of the older checkpoint\n", r.Older)
	}
	_, err := fmt.Fprintf(out, "verified: %s of the %d of %s\nroot: %x\n%s", what, r.Size, r.Origin, r.Root, older)
	return err
}

// readNote reads a checkpoint that somebody kept; no path is no checkpoint.
func readNote(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--older: %w", err)
	}
	if len(text) == 0 {
		return "", fmt.Errorf("--older: %s is empty", path)
	}
	return string(text), nil
}

func auditPruneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Removes entries that are older than the setting retention.auditDays, as serve does every hour",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, _ actor.Actor) error {
				removed, err := h.pruneTrail(ctx)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed: %d entries\n", removed)
				return err
			})
		},
	}
}
