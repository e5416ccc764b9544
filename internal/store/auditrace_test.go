//go:build race

package store_test

// benchEntries is fewer under the race detector, which makes SQLite's own code a
// hundred times slower and measures nothing.
const benchEntries = 5_000
