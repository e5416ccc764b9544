//go:build tools

package tools

// Direct dependencies that no package imports yet; each line goes when its room is built.
import (
	_ "github.com/aymanbagabas/go-udiff"
	_ "github.com/go-git/go-git/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/gorilla/websocket"
	_ "github.com/lib/pq"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/sony/gobreaker/v2"
	_ "github.com/spf13/cobra"
	_ "github.com/transparency-dev/merkle/proof"
	_ "github.com/transparency-dev/merkle/compact"
	_ "github.com/transparency-dev/merkle/rfc6962"
	_ "github.com/vektah/gqlparser/v2"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/mod/sumdb/note"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "entgo.io/ent/entc"
	_ "ariga.io/atlas/sql/migrate"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)
