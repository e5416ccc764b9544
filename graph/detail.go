package graph

import (
	"encoding/json"
	"maps"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/fault"
)

// detailIDs are the members of an entry's detail that name objects. The rooms write row ids, and those are what an entry's hash covers; the API shows the
// ids that it uses everywhere else. A member whose value is no row id stays as it is: `from` and `to` name sources on a moved skill, and levels elsewhere.
var detailIDs = map[string]kind{
	"user": userKind, "allowedUsers": userKind, "token": tokenKind, "from": sourceKind, "to": sourceKind, "approval": approvalKind, "revocation": revocationKind,
	"attachment": attachmentKind, "configuration": configurationKind, "provider": providerKind, "snippet": snippetKind, "snippets": snippetKind,
	"endpoint": endpointKind, "budget": budgetKind, "task": taskKind, "addedTask": taskKind, "predecessor": runKind,
}

func toDetail(detail map[string]any) json.RawMessage {
	shown := maps.Clone(detail)
	if shown == nil {
		return json.RawMessage("{}")
	}
	for name, value := range shown {
		if k, names := detailIDs[name]; names {
			shown[name] = shownIDs(k, value)
		}
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		panic(fault.Wrap(fault.Internal, err, "an entry's detail that is no JSON"))
	}
	return raw
}

// shownIDs are the row ids in a value as API ids.
func shownIDs(k kind, value any) any {
	switch v := value.(type) {
	case string:
		if row, err := uuid.Parse(v); err == nil {
			return k.id(row)
		}
	case uuid.UUID:
		return k.id(v)
	case []any:
		out := make([]any, len(v))
		for i, each := range v {
			out[i] = shownIDs(k, each)
		}
		return out
	}
	return value
}
