package content

import "github.com/countersign/countersign/internal/change"

// The tables this room changes. A record's row has an id of its own (a UUID, which
// changes guard by); its name is (table_name, record_id).
const (
	recordsTable change.Table = "content_records"
	historyTable change.Table = "content_revisions"
)

var (
	recordRow      = change.ID(recordsTable, "id")
	recordTable    = change.Text[string](recordsTable, "table_name")
	recordID       = change.Text[string](recordsTable, "record_id")
	recordOriginal = change.Text[string](recordsTable, "translation_of")
	recordParent   = change.Text[string](recordsTable, "parent_id")
	recordPosition = change.Int(recordsTable, "position")
	recordFields   = change.JSON[map[string]any](recordsTable, "fields")
	recordRevision = change.Int(recordsTable, "revision")
	recordHidden   = change.Bool(recordsTable, "hidden")
	recordDeleted  = change.Bool(recordsTable, "deleted")
	recordUpdated  = change.Time(recordsTable, "updated_at")

	revisionRow    = change.ID(historyTable, "id")
	revisionRecord = change.ID(historyTable, "record") // the row of the record
	revisionNumber = change.Int(historyTable, "revision")
	revisionKind   = change.Text[string](historyTable, "kind")
	revisionFields = change.JSON[map[string]any](historyTable, "fields")
	revisionParent = change.Text[string](historyTable, "parent_id")
	revisionHidden = change.Bool(historyTable, "hidden")
	revisionActor  = change.ID(historyTable, "actor_id")
	revisionRun    = change.ID(historyTable, "run_id")             // NULL without a run
	revisionKey    = change.Text[string](historyTable, "call_key") // NULL without a run; unique with run_id
	revisionAt     = change.Time(historyTable, "at")
)
