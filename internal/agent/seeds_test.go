//go:build !race

package agent_test

// simulations is how many seeds the simulation runs. The test command runs this many in
// a step of its own, without the race detector, which makes each of them six times as
// slow.
const simulations = 300

// turns is how many random turns of a process are played, in the same step.
const turns = 120

// machines is how often rapid plays a house, in the same step.
const machines = 30
