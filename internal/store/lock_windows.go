package store

import (
	"errors"
	"syscall"
)

// errHeld says that somebody else holds a lock.
var errHeld = errors.New("the lock is held")

// tryLock takes the lock that a file stands for, or says errHeld: the file is
// opened shared with nobody. The system lets it go when the process ends.
func tryLock(path string) (release func() error, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const nobody, sharingViolation = 0, syscall.Errno(32)
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, nobody, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return func() error { return syscall.CloseHandle(handle) }, nil
}
