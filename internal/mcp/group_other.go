//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

func ofItsOwn(*exec.Cmd) {}

func kill(p *os.Process) error { return p.Kill() }
