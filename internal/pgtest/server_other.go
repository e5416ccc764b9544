//go:build !unix

package pgtest

import "fmt"

// start cannot keep a server to the life of this process here.
func start() (string, error) {
	return "", fmt.Errorf("pgtest: name a PostgreSQL server in %s: a temporary one is started on Unix only", environment)
}

// Program finds PostgreSQL's own programs on Unix only.
func Program(name string) (string, error) {
	return "", fmt.Errorf("pgtest: %s is looked for on Unix only", name)
}
