//go:build !race

package store_test

// benchEntries is how many entries the benchmarked trail has.
const benchEntries = 1_000_000
