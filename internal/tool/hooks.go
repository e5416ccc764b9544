package tool

import "sync"

// HookWatch notes how the hooks of one call's writes went. The zero value is ready;
// a nil watch notes nothing. Safe for concurrent use.
type HookWatch struct {
	mu      sync.Mutex
	earlier bool // a hook failed after a write that another one followed
	last    bool // a hook failed after the write noted last
}

// Wrote notes a write and whether a hook failed after it.
func (w *HookWatch) Wrote(hookFailed bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.earlier = w.earlier || w.last
	w.last = hookFailed
}

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
	default:
		r.HookFailedAfterWrite = w.last
		return r
	}
}
