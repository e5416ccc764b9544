package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/store"
)

func keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Makes encryption keys and brings what is stored under a new one"}
	keys.AddCommand(&cobra.Command{
		Use:   "new",
		Short: "Prints a new encryption key",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), store.NewKey())
			return err
		},
	}, &cobra.Command{
		Use:   "rotate",
		Short: "Encrypts everything stored under older keys with the first one",
		Long: `Encrypts everything that is stored under older keys with the first key of COUNTERSIGN_ENCRYPTION_KEY, or of
the key file beside an embedded database. It may be stopped and begun again, and servers that know the key
may go on working. What cannot be decrypted is named and left as it is; then the command fails, and the older
keys must stay. docs/operating.md says how keys are changed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return chore(cmd.Context(), func(ctx context.Context, h *house, _ actor.Actor) error {
				return rotate(ctx, cmd.OutOrStdout(), h.store)
			})
		},
	})
	return keys
}

func rotate(ctx context.Context, out io.Writer, s *store.Store) error {
	all, err := s.Rotate(ctx, func(r store.Rotation) {
		fmt.Fprintf(out, "%s.%s: %d encrypted anew\n", r.Table, r.Column, r.Done)
	})
	unopened := 0
	for _, r := range all {
		for _, row := range r.Failed {
			unopened++
			fmt.Fprintf(out, "%s.%s of %s: %s\n", r.Table, r.Column, row.Row, row.Err)
		}
	}
	switch {
	case err != nil:
		return err
	case unopened > 0:
		return fmt.Errorf("%d texts could not be decrypted and are as they were", unopened)
	}
	_, err = fmt.Fprintln(out, "Everything is under the first key.")
	return err
}
