//go:build tools

// Package tools pins the versions of the programs that generate and check this
// module, so that a clone builds with the same ones as CI.
package tools

import (
	_ "entgo.io/ent/cmd/ent"
	_ "github.com/99designs/gqlgen"
	_ "honnef.co/go/tools/cmd/staticcheck"
	_ "mvdan.cc/gofumpt"
)
