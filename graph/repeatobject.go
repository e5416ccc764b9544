package graph

import (
	"context"
	"reflect"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// object is how a type of object that payloads show is found again.
type object struct {
	kind  kind         // of a node
	table change.Table // of a node's rows
	// name is what it is found again by.
	name func(any) string
	read func(ctx context.Context, r *Resolver, input reflect.Value, name string) (any, error)
	// written names the object that a mutation with this input and effect was about; empty when there is none.
	written func(ctx context.Context, r *Resolver, input reflect.Value, effect change.Effect) (string, error)
}

// objects are the types of objects that payloads show.
var objects = map[reflect.Type]object{
	reflect.TypeFor[*model.User]():                 node(userKind, "users"),
	reflect.TypeFor[*model.Token]():                node(tokenKind, "tokens"),
	reflect.TypeFor[*model.Source]():               node(sourceKind, "sources"),
	reflect.TypeFor[*model.Skill]():                node(skillKind, "skills"),
	reflect.TypeFor[*model.Approval]():             node(approvalKind, "approvals"),
	reflect.TypeFor[*model.Revocation]():           node(revocationKind, "revocations"),
	reflect.TypeFor[*model.Attachment]():           node(attachmentKind, "attachments"),
	reflect.TypeFor[*model.Configuration]():        node(configurationKind, "configurations"),
	reflect.TypeFor[*model.Provider]():             node(providerKind, "providers"),
	reflect.TypeFor[*model.McpServer]():            node(mcpServerKind, "mcp_servers"),
	reflect.TypeFor[*model.McpTool]():              mcpToolObject(),
	reflect.TypeFor[*model.NotificationEndpoint](): node(endpointKind, "notification_endpoints"),
	reflect.TypeFor[*model.NotificationDelivery](): node(deliveryKind, "notification_deliveries"),
	reflect.TypeFor[*model.Budget]():               node(budgetKind, "budgets"),
	reflect.TypeFor[*model.Snippet]():              node(snippetKind, "snippets"),
	reflect.TypeFor[*model.Task]():                 node(taskKind, "tasks"),
	reflect.TypeFor[*model.Run]():                  runObject(),
	reflect.TypeFor[*model.Conversation]():         conversationObject(),
	reflect.TypeFor[*model.RunStatus]():            statusObject(),
	reflect.TypeFor[*model.Record]():               recordObject(),
	reflect.TypeFor[*model.Setting]():              named((*Resolver).setting),
	reflect.TypeFor[*model.Tool]():                 named((*Resolver).tool),
	reflect.TypeFor[*model.ToolGroup]():            named((*Resolver).toolGroup),
}

// node is an object with an id of its own.
func node(k kind, table change.Table) object {
	return object{
		kind: k, table: table,
		name: func(v any) string { return reflect.ValueOf(v).Elem().FieldByName("ID").String() },
		read: func(ctx context.Context, r *Resolver, _ reflect.Value, id string) (any, error) {
			return r.node(ctx, id)
		},
		written: func(_ context.Context, _ *Resolver, input reflect.Value, effect change.Effect) (string, error) {
			return writtenNode(k, table, input, effect), nil
		},
	}
}

// writtenNode is the id of the node that a mutation made, else of the one that its input names, else of the one it changed.
func writtenNode(k kind, table change.Table, input reflect.Value, effect change.Effect) string {
	if row := effectOn(effect, table, change.Inserted); row != uuid.Nil {
		return k.id(row)
	}
	if id := idIn(input, k); id != "" {
		return id
	}
	if row := effectOn(effect, table, change.Updated); row != uuid.Nil {
		return k.id(row)
	}
	return ""
}

// effectOn is the first row of a table that was written like this; the zero id when none was.
func effectOn(effect change.Effect, table change.Table, how change.How) uuid.UUID {
	for _, row := range effect.Rows {
		if row.Table == table && row.How == how {
			return row.ID
		}
	}
	return uuid.Nil
}

// idIn is the first id of a kind among the fields of an input.
func idIn(input reflect.Value, k kind) string {
	for i := range input.NumField() {
		if text, ok := textOf(input.Field(i)); ok {
			if _, err := k.row(text); err == nil {
				return text
			}
		}
	}
	return ""
}

// textOf reads a field that holds a text.
func textOf(v reflect.Value) (string, bool) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.String {
		return "", false
	}
	return v.String(), true
}

// deletedBy is the id in an input whose row was deleted.
func deletedBy(input reflect.Value, effect change.Effect) string {
	for _, o := range objects {
		if o.table == "" {
			continue
		}
		row := effectOn(effect, o.table, change.Deleted)
		if row != uuid.Nil && idIn(input, o.kind) == o.kind.id(row) {
			return o.kind.id(row)
		}
	}
	if effectOn(effect, records, change.Updated) != uuid.Nil { // a deleted record keeps its row
		id, _ := textOf(input.FieldByName("ID"))
		return id
	}
	return ""
}

// runObject is a run. A mutation that waits for its run waits for it again.
func runObject() object {
	o := node(runKind, "runs")
	o.read = func(ctx context.Context, r *Resolver, input reflect.Value, id string) (any, error) {
		row, err := runKind.row(id)
		if err != nil {
			return nil, err
		}
		now, err := r.Agent.View(ctx, caller(ctx), row)
		if background := input.FieldByName("Background"); err == nil && (!background.IsValid() || !background.Bool()) {
			now, err = r.Agent.Wait(ctx, row)
		}
		return toRun(now), err
	}
	return o
}

// conversationObject is a conversation. A mutation that waits for its turn waits for it again.
func conversationObject() object {
	o := node(conversationKind, "conversations")
	o.read = func(ctx context.Context, r *Resolver, input reflect.Value, id string) (any, error) {
		row, err := conversationKind.row(id)
		if err != nil {
			return nil, err
		}
		now, err := r.Chat.View(ctx, caller(ctx), row)
		if background := input.FieldByName("Background"); err == nil && background.IsValid() && !background.Bool() {
			now, err = r.Chat.Wait(ctx, row)
		}
		return toConversation(now), err
	}
	return o
}

// statusObject is where a run stands after a mutation; a repetition tells where it stood then.
func statusObject() object {
	return object{
		name: func(v any) string { return string(*v.(*model.RunStatus)) },
		read: func(_ context.Context, _ *Resolver, _ reflect.Value, status string) (any, error) {
			s := model.RunStatus(status)
			return &s, nil
		},
		written: func(ctx context.Context, r *Resolver, input reflect.Value, effect change.Effect) (string, error) {
			row, err := runKind.row(writtenNode(runKind, "runs", input, effect))
			if err != nil {
				return "", err
			}
			now, err := r.Agent.View(ctx, caller(ctx), row)
			return string(runStatuses.out(now.Status)), err
		},
	}
}

// records holds the rows of the content room's records.
const records change.Table = "content_records"

// recordObject is a record of the content room, which names it by table and id.
func recordObject() object {
	return object{
		name: func(v any) string { return v.(*model.Record).Table + "/" + v.(*model.Record).ID },
		read: func(ctx context.Context, r *Resolver, _ reflect.Value, name string) (any, error) {
			table, id, _ := strings.Cut(name, "/")
			found, err := r.Content.Read(ctx, caller(ctx), table, id)
			return toRecord(found), err
		},
		written: func(ctx context.Context, r *Resolver, input reflect.Value, effect change.Effect) (string, error) {
			row := effectOn(effect, records, change.Inserted)
			if row == uuid.Nil {
				row = effectOn(effect, records, change.Updated)
			}
			if row == uuid.Nil {
				return "", nil
			}
			found, err := r.Content.ReadRow(ctx, caller(ctx), row)
			if err != nil {
				return "", err
			}
			return found.Table + "/" + found.ID, nil
		},
	}
}

// named is an object that a field `name` names, of the object and of the input.
func named[N any](read func(r *Resolver, ctx context.Context, name string) (*N, error)) object {
	return object{
		name: func(v any) string { return reflect.ValueOf(v).Elem().FieldByName("Name").String() },
		read: func(ctx context.Context, r *Resolver, _ reflect.Value, name string) (any, error) {
			return read(r, ctx, name)
		},
		written: func(_ context.Context, _ *Resolver, input reflect.Value, _ change.Effect) (string, error) {
			name, _ := textOf(input.FieldByName("Name"))
			return name, nil
		},
	}
}

func (r *Resolver) setting(ctx context.Context, name string) (*model.Setting, error) {
	all, err := r.Access.Settings(ctx, caller(ctx))
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Name == name {
			return toSetting(s), nil
		}
	}
	return nil, fault.New(fault.NotFound, "There is no such setting.")
}

func (r *Resolver) tool(ctx context.Context, name string) (*model.Tool, error) {
	at, err := r.switches(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := r.Rooms.Tools.Now(ctx)
	if err != nil {
		return nil, err
	}
	spec, known := tools.Spec(name)
	if !known {
		return nil, fault.New(fault.NotFound, "There is no such tool.")
	}
	return toTool(spec, at), nil
}

func (r *Resolver) toolGroup(ctx context.Context, name string) (*model.ToolGroup, error) {
	at, err := r.switches(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := r.Rooms.Tools.Now(ctx)
	if err != nil {
		return nil, err
	}
	return toToolGroup(tool.Group(name), tools.Specs(), at), nil
}

// mcpToolObject is an imported tool, which the input of its review names.
func mcpToolObject() object {
	o := named((*Resolver).mcpTool)
	o.written = func(_ context.Context, _ *Resolver, input reflect.Value, _ change.Effect) (string, error) {
		name, _ := textOf(input.FieldByName("ToolName"))
		return name, nil
	}
	return o
}
