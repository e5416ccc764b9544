//go:build race

package agent_test

// simulations is how many seeds the simulation runs under the race detector.
const simulations = 10

// turns is how many random turns of a process are played under the race detector.
const turns = 15

// machines is how often rapid plays a house under the race detector.
const machines = 6
