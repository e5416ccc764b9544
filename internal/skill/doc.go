// Package skill holds what a skill is and what may be said about it: how a skill file is read, what its version and digest are, where its source
// stands in trust, whether the version instructs and why not, what keeps it from being approved, and how two versions differ.
//
// The room is pure: bytes and facts enter, values leave. It knows no database, network, clock or randomness, so that import, review, approval,
// composition and pin checks all ask the same functions and get the same answer (RULES D5). Every value is immutable by convention and every
// function may be called from any number of goroutines; nothing here keeps state between calls. Returned slices belong to the caller.
package skill
