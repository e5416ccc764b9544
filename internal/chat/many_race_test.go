//go:build race

package chat_test

// many is how many conversations live at random under the race detector.
const many = 100

// collisions is how often each pair of a state and a rival is forced under the race
// detector.
const collisions = 1
