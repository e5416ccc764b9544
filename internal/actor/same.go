package actor

import "slices"

// Same reports whether b is the same actor with the same rights. A stream that was
// opened by a ends when the actor looked up again is not the same any more.
func (a Actor) Same(b Actor) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Administrator == b.Administrator &&
		slices.Equal(sorted(a.Granted), sorted(b.Granted))
}

func sorted(permissions []Permission) []Permission {
	return slices.Compact(slices.Sorted(slices.Values(permissions)))
}
