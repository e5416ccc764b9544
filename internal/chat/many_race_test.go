//go:build race

package chat_test

// many is how many conversations live at random under the race detector.
const many = 100
