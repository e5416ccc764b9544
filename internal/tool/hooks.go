package tool

import (
	"errors"
	"sync"
)

// HookWatch notes how the hooks of one call's writes went. The zero value is ready;
// a nil watch notes nothing. Safe for concurrent use.
type HookWatch struct {
	mu      sync.Mutex
	earlier bool // a hook failed after a write that another one followed
	last    bool // a hook failed after the write noted last
	errs    []error
}

// Wrote notes a write and how its hooks went; nil says that none failed.
func (w *HookWatch) Wrote(hookError error) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.earlier = w.earlier || w.last
	w.last = hookError != nil
	w.errs = append(w.errs, hookError)
}

// failure is every hook's error, for the log.
func (w *HookWatch) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errs...)
}

// hookNote tells the model what the flag tells the card.
const hookNote = "[The change was made, but a step that follows it failed. Its record needs a look.]"

// settle is G6: a hook that failed after the call's last write raises the flag and
// changes nothing else; one that failed during the writes makes the call an error,
// unless the tool read back and stated what became of them.
func (w *HookWatch) settle(r Result) Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.IsError:
		return r
	case w.earlier && (r.Write == nil || r.Write.Completeness == NotStated):
		return Fail("hook_failed", "A step that follows a change failed before all changes were made. Check the record.")
	case w.last:
		r.HookFailedAfterWrite = true
		r.Text = hookNote + "\n" + r.Text
		return r
	default:
		return r
	}
}
