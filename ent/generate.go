// Package ent is generated from ent/schema; only internal/store imports it.
package ent

//go:generate go run entgo.io/ent/cmd/ent generate --target . ./schema
