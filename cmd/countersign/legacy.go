package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/library"
)

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Takes over sources, skills and attachments of an older installation",
		Long: `Takes over sources, skills and attachments from an export of an older installation, one JSON object a
line; - reads standard input. Nothing that is imported instructs. An import that broke off is
repeated with the same file. docs/importing.md describes the format.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, by actor.Actor) error {
				return importFrom(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), h.library, by, args[0])
			})
		},
	}
}

func importFrom(ctx context.Context, in io.Reader, out io.Writer, l *library.Library, by actor.Actor, path string) error {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	report, err := l.Import(ctx, by, in)
	for _, n := range report.Notes {
		fmt.Fprintf(out, "line %d, %s %s, %s: %s\n", n.Line, n.Kind, n.ID, n.Status, n.Reason)
	}
	fmt.Fprintf(out, "%d lines: imported %d (sources %d, skills %d, attachments %d), present %d, skipped %d\n", report.Lines,
		report.Imported, report.Sources, report.Skills, report.Attachments, report.Present, report.Skipped)
	return err
}

func adoptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "adopt-legacy",
		Short: "Gives imported skills that nobody edited a digest",
		Long: `Gives a digest to every imported skill whose body fits its checksum and whose name, description and
tools follow from its stored frontmatter. One that fails is disabled and left without. Nothing is
approved by it, and a second time it changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, by actor.Actor) error {
				return adopt(ctx, cmd.OutOrStdout(), h.library, by)
			})
		},
	}
}

func adopt(ctx context.Context, out io.Writer, l *library.Library, by actor.Actor) error {
	all, err := l.AdoptLegacy(ctx, by)
	failed := 0
	for _, a := range all {
		switch {
		case len(a.Failures) == 0:
			fmt.Fprintf(out, "%s, %s: adopted as %s\n", a.Source, a.Identifier, a.Digest)
			continue
		case a.Disabled:
			fmt.Fprintf(out, "%s, %s: not adopted and disabled, failed: %s\n", a.Source, a.Identifier, strings.Join(a.Failures, ", "))
		default:
			fmt.Fprintf(out, "%s, %s: not adopted, failed: %s\n", a.Source, a.Identifier, strings.Join(a.Failures, ", "))
		}
		failed++
	}
	fmt.Fprintf(out, "adopted %d, failed %d\n", len(all)-failed, failed)
	return err
}
