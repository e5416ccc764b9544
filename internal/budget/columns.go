package budget

import "github.com/countersign/countersign/internal/change"

// The tables this room changes.
const (
	budgetsTable   change.Table = "budgets"
	spendingsTable change.Table = "spendings"
)

// The columns.
var (
	idOf       = change.ID(budgetsTable, "id")
	scopeOf    = change.Text[Scope](budgetsTable, "scope")
	subjectOf  = change.ID(budgetsTable, "subject_id")
	periodOf   = change.Text[Period](budgetsTable, "period")
	requestsOf = change.Int(budgetsTable, "requests")
	tokensOf   = change.Int(budgetsTable, "tokens")
	costOf     = change.Int(budgetsTable, "cost")
	updatedOf  = change.Time(budgetsTable, "updated_at")

	spendingID       = change.ID(spendingsTable, "id")
	spendingSubject  = change.ID(spendingsTable, "subject_id")
	spendingDay      = change.Text[string](spendingsTable, "day")
	spendingRequests = change.Int(spendingsTable, "requests")
	spendingInput    = change.Int(spendingsTable, "input_tokens")
	spendingOutput   = change.Int(spendingsTable, "output_tokens")
	spendingCost     = change.Int(spendingsTable, "cost")
)
