//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// ofItsOwn gives a program a process group, so that what it started ends with it.
func ofItsOwn(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
