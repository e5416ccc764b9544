package once

import "github.com/countersign/countersign/internal/change"

// keysTable is the one table this room changes. Reading goes through Store.
const keysTable change.Table = "idempotency_keys"

var (
	keyID       = change.ID(keysTable, "id")
	keyActor    = change.ID(keysTable, "actor_id")
	keyMutation = change.Text[string](keysTable, "mutation")
	keyInput    = change.Sealed(keysTable, "input")
	keyStatus   = change.Text[Status](keysTable, "status")
	keyHolder   = change.Text[string](keysTable, "holder")
	keyLease    = change.Time(keysTable, "lease_until")
	keyEffect   = change.Sealed(keysTable, "effect")
	keyAnswer   = change.Sealed(keysTable, "answer")
	keyCreated  = change.Time(keysTable, "created_at")
	keyExpires  = change.Time(keysTable, "expires_at")
)
