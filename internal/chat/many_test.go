//go:build !race

package chat_test

// many is how many conversations live at random. The test command runs this many in a step
// of its own, without the race detector.
const many = 1000

// collisions is how often each pair of a state and a rival is forced, in the same step.
const collisions = 3
