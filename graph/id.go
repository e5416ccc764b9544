package graph

import (
	"encoding/base32"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/fault"
)

// kind is one kind of object with an id of its own. An API id is the kind's prefix, an underscore and the row's UUID in base32: opaque, and of no
// use where another kind is wanted.
type kind struct {
	prefix string
	noun   string // with its article, for messages
}

// The kinds. A prefix is never reused with another meaning.
var (
	userKind          = kind{"usr", "a user"}
	tokenKind         = kind{"tok", "a token"}
	sourceKind        = kind{"src", "a source"}
	skillKind         = kind{"skl", "a skill"}
	approvalKind      = kind{"apr", "an approval"}
	revocationKind    = kind{"rvk", "a revocation"}
	attachmentKind    = kind{"att", "an attachment"}
	configurationKind = kind{"cfg", "a configuration"}
	providerKind      = kind{"prv", "a provider"}
	mcpServerKind     = kind{"mcp", "an MCP server"}
	endpointKind      = kind{"nep", "a notification endpoint"}
	deliveryKind      = kind{"ndl", "a notification delivery"}
	budgetKind        = kind{"bdg", "a budget"}
	snippetKind       = kind{"snp", "a snippet"}
	taskKind          = kind{"tsk", "a task"}
	runKind           = kind{"run", "a run"}
	conversationKind  = kind{"cnv", "a conversation"}
	messageKind       = kind{"msg", "a message"}
	pointKind         = kind{"pnt", "an open point"}
	entryKind         = kind{"aud", "an audit entry"}
)

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// id is the API id of a row.
func (k kind) id(row uuid.UUID) string {
	return k.prefix + "_" + strings.ToLower(idEncoding.EncodeToString(row[:]))
}

// RunID is the API id of a run, for whoever names one outside the API.
func RunID(row uuid.UUID) string { return runKind.id(row) }

// UserID, ConfigurationID and ConversationID are API ids, for what is said about them
// elsewhere.
func UserID(row uuid.UUID) string          { return userKind.id(row) }
func ConfigurationID(row uuid.UUID) string { return configurationKind.id(row) }
func ConversationID(row uuid.UUID) string  { return conversationKind.id(row) }

// DeliveryID is the API id of a notification's delivery, which its receiver knows it by.
func DeliveryID(row uuid.UUID) string { return deliveryKind.id(row) }

// SkillID is a skill's API id, for what is said about skills elsewhere.
func SkillID(row uuid.UUID) string { return skillKind.id(row) }

// maybe is the API id of a row, or nil for the zero id, which says that there is none.
func (k kind) maybe(row uuid.UUID) *string {
	if row == uuid.Nil {
		return nil
	}
	id := k.id(row)
	return &id
}

// row reads an API id of this kind. Anything else is an input error that names the kind that is wanted.
func (k kind) row(id string) (uuid.UUID, error) {
	prefix, digits, _ := strings.Cut(id, "_")
	if prefix == k.prefix {
		// Only the canonical spelling counts: an object has one id.
		if b, err := idEncoding.DecodeString(strings.ToUpper(digits)); err == nil {
			if row, err := uuid.FromBytes(b); err == nil && k.id(row) == id {
				return row, nil
			}
		}
	}
	return uuid.Nil, fault.New(fault.BadInput, "%q is not the id of %s, which begins with %s_.", clip(id), k.noun, k.prefix)
}

// optional reads an id that need not be given.
func (k kind) optional(id *string) (*uuid.UUID, error) {
	if id == nil {
		return nil, nil
	}
	row, err := k.row(*id)
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// rows reads a list of ids.
func (k kind) rows(ids []string) ([]uuid.UUID, error) {
	if ids == nil {
		return nil, nil
	}
	out := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		row, err := k.row(id)
		if err != nil {
			return nil, err
		}
		out[i] = row
	}
	return out, nil
}

// ids are the API ids of rows.
func (k kind) ids(rows []uuid.UUID) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = k.id(row)
	}
	return out
}

// clip shortens what a client sent for a message.
func clip(s string) string {
	const most = 60
	if r := []rune(strings.ToValidUTF8(s, "�")); len(r) > most {
		return string(r[:most]) + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
