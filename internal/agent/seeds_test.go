//go:build !race

package agent_test

// simulations is how many seeds the simulation runs. The test command runs this many in
// a step of its own, without the race detector, which makes each of them six times as
// slow.
const simulations = 300
