//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// errHeld says that somebody else holds a lock.
var errHeld = errors.New("the lock is held")

// tryLock takes the lock that a file stands for, or says errHeld. The system lets
// it go when the process ends, however it ends.
func tryLock(path string) (release func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, err
	}
	return file.Close, nil
}
