package library

import (
	"slices"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// Object is a kind of record whose fields decide about rights.
type Object string

// The objects of the field table.
const (
	skillObject  Object = "skill"
	sourceObject Object = "source"
)

// Writer says who may write a field.
type Writer string

// The writers.
const (
	// ByAuthor needs skill:author, which administrators hold too.
	ByAuthor Writer = "author"
	// ByAdministrator needs an administrator.
	ByAdministrator Writer = "administrator"
	// ByNobody is never written by a mutation: the server derives it.
	ByNobody Writer = "nobody"
)

// Field is one row of the field table.
type Field struct {
	Object Object
	Name   string // as the API calls it
	Create Writer // who gives it to a new record
	Change Writer // who changes it; nobody changes a version field of a synced skill (RULES S12)
}

// fields says who may write what, field by field, whatever mutation carries it
// (RULES W4). What is ByNobody follows from other fields, or is the sync's.
var fields = []Field{
	{skillObject, "name", ByAuthor, ByAuthor},
	{skillObject, "description", ByAuthor, ByAuthor},
	{skillObject, "body", ByAuthor, ByAuthor},
	{skillObject, "process", ByAuthor, ByAuthor},
	{skillObject, "identifier", ByAuthor, ByNobody},
	{skillObject, "source", ByAuthor, ByAdministrator}, // a new one only in an authored source
	{skillObject, "allowedTools", ByAdministrator, ByAdministrator},
	{skillObject, "enabled", ByNobody, ByAdministrator},
	{skillObject, "trustLevel", ByNobody, ByNobody},
	{skillObject, "supportStatus", ByNobody, ByNobody},
	{skillObject, "parseStatus", ByNobody, ByNobody},
	{skillObject, "orphaned", ByNobody, ByNobody},
	{skillObject, "digest", ByNobody, ByNobody},
	{skillObject, "bodyChecksum", ByNobody, ByNobody},
	{skillObject, "rawDigest", ByNobody, ByNobody},
	{skillObject, "bundleDigest", ByNobody, ByNobody},
	{skillObject, "bundle", ByNobody, ByNobody},
	{skillObject, "frontmatter", ByNobody, ByNobody},
	{skillObject, "findings", ByNobody, ByNobody},

	{sourceObject, "title", ByAdministrator, ByAdministrator},
	{sourceObject, "type", ByAdministrator, ByAdministrator},
	{sourceObject, "url", ByAdministrator, ByAdministrator},
	{sourceObject, "ref", ByAdministrator, ByAdministrator},
	{sourceObject, "pinnedCommit", ByAdministrator, ByAdministrator},
	{sourceObject, "trustLevel", ByAdministrator, ByAdministrator},
	{sourceObject, "expectedFingerprint", ByAdministrator, ByAdministrator},
	{sourceObject, "token", ByAdministrator, ByAdministrator},
	{sourceObject, "enabled", ByNobody, ByAdministrator},
	{sourceObject, "syncStatus", ByNobody, ByNobody},
	{sourceObject, "syncError", ByNobody, ByNobody},
	{sourceObject, "headCommit", ByNobody, ByNobody},
	{sourceObject, "lastSyncedAt", ByNobody, ByNobody},
}

// Fields is the table of who may write which field.
func Fields() []Field { return slices.Clone(fields) }

// mayCreate refuses whoever may not give one of these fields to a new record.
func mayCreate(by actor.Actor, object Object, names ...string) error {
	return mayWrite(by, object, names, func(f Field) Writer { return f.Create })
}

// mayChange refuses whoever may not change one of these fields.
func mayChange(by actor.Actor, object Object, names ...string) error {
	return mayWrite(by, object, names, func(f Field) Writer { return f.Change })
}

func mayWrite(by actor.Actor, object Object, names []string, writer func(Field) Writer) error {
	if err := needSignedIn(by); err != nil {
		return err
	}
	for _, name := range names {
		at := slices.IndexFunc(fields, func(f Field) bool { return f.Object == object && f.Name == name })
		if at < 0 {
			panic("library: the field table has no " + string(object) + "." + name)
		}
		switch writer(fields[at]) {
		case ByAuthor:
			if err := need(by, actor.SkillAuthor); err != nil {
				return err
			}
		case ByAdministrator:
			if !by.Administrator {
				return fault.New(fault.Forbidden, "Only an administrator may set the %s of a %s.", name, object)
			}
		default:
			return fault.New(fault.Forbidden, "Nobody sets the %s of a %s.", name, object)
		}
	}
	return nil
}

// given lists the names of the fields that an input sets.
func given(fields ...namedField) []string {
	var names []string
	for _, f := range fields {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// namedField tells whether an input sets a field.
type namedField struct {
	name string
	set  bool
}
