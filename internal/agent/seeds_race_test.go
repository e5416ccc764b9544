//go:build race

package agent_test

// simulations is how many seeds the simulation runs under the race detector.
const simulations = 30
