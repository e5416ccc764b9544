package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/library"
)

// Provider is a configured model endpoint.
type Provider struct{ ent.Schema }

// Fields of the table.
func (Provider) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", ""),
		must("kind", "the wire format it speaks"),
		text("base_url", ""),
		sealed("api_key", "of the endpoint"),
		must("trust_zone", "bounds the data class of tools (RULES T8)"),
		text("script", "YAML of the scripted kind"),
		moment("created_at", ""),
	}
}

// Annotations of the table.
func (Provider) Annotations() []schema.Annotation {
	return table("providers",
		enum("kind", library.OpenAICompatible, library.Anthropic, library.Scripted),
		enum("trust_zone", library.ZoneLocal, library.ZonePrivateHosted, library.ZoneEUExternal, library.ZoneGlobalExternal),
	)
}

// Configuration is what a run runs with.
type Configuration struct{ ent.Schema }

// Fields of the table.
func (Configuration) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", ""),
		ref("provider_id", ""),
		must("model", "as the provider names it"),
		number("context_window", "tokens; 0 is unknown"),
		text("system_prompt", ""),
		maybe("allowed_tool_groups", "JSON list; null allows all groups"),
		flag("require_second_approver", "nobody decides their own run"),
		flag("allow_proposal_edits", "whoever approves may change proposed texts first"),
		flag("snippets_in_caller_system_message", "RULES N2"),
		maybe("snippet_ids", "JSON list, in the order in which they join (RULES N5)"),
		number("max_iterations", "0 leaves it to the settings"),
		number("approval_expiry_hours", "0 leaves it to the settings"),
		maybe("allowed_user_ids", "JSON list; empty allows every person (RULES I6)"),
		number("max_output_tokens", "of one answer; 0 leaves it to the runtime (RULES B1)"),
		maybe("price", "JSON, in millionths a million tokens; null is unknown"),
		maybe("fallbacks", "JSON list of models in the order in which they are asked (RULES M1)"),
		number("revision", "guards concurrent edits"),
		number("arrangement", "raised with every attachment that is added or moved: no two come from the same order"),
		moment("created_at", ""),
	}
}

// Edges of the table.
func (Configuration) Edges() []ent.Edge {
	return []ent.Edge{to("provider", Provider.Type, "provider_id", entsql.Restrict)}
}

// Indexes of the table.
func (Configuration) Indexes() []ent.Index { return []ent.Index{index.Fields("provider_id")} }

// Annotations of the table.
func (Configuration) Annotations() []schema.Annotation { return table("configurations") }

// Snippet is a text that joins prompts.
type Snippet struct{ ent.Schema }

// Fields of the table.
func (Snippet) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", "the block's label"),
		must("text", ""),
		text("mark", "SHA-256 of the block that was marked; another block is unmarked (RULES N2, N4)"),
		number("revision", "guards concurrent edits"),
		ref("editor_id", "who wrote the present text"),
		moment("created_at", ""),
		moment("updated_at", "when the present text was written"),
	}
}

// Annotations of the table.
func (Snippet) Annotations() []schema.Annotation { return table("snippets") }

// Task is one prompt that is run for one answer (RULES I4).
type Task struct{ ent.Schema }

// Fields of the table.
func (Task) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", ""),
		ref("configuration_id", "what it runs with"),
		must("prompt", ""),
		number("arrangement", "as a configuration's"),
		moment("created_at", ""),
	}
}

// Edges of the table.
func (Task) Edges() []ent.Edge {
	return []ent.Edge{to("configuration", Configuration.Type, "configuration_id", entsql.Restrict)}
}

// Indexes of the table.
func (Task) Indexes() []ent.Index { return []ent.Index{index.Fields("configuration_id")} }

// Annotations of the table.
func (Task) Annotations() []schema.Annotation { return table("tasks") }

// Attachment offers a skill on a configuration or on a task.
type Attachment struct{ ent.Schema }

// Fields of the table.
func (Attachment) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("skill_id", ""),
		maybeRef("configuration_id", "NULL: offered by a task"),
		maybeRef("task_id", "NULL: offered by a configuration"),
		must("load_mode", "when it is composed (RULES L1)"),
		number("position", "orders what a configuration or task offers"),
		moment("created_at", ""),
	}
}

// Edges of the table.
func (Attachment) Edges() []ent.Edge {
	return []ent.Edge{
		to("skill", Skill.Type, "skill_id", entsql.Restrict),
		maybeTo("configuration", Configuration.Type, "configuration_id", entsql.Cascade),
		maybeTo("task", Task.Type, "task_id", entsql.Cascade),
	}
}

// Indexes of the table. NULL equals nothing, so that each of the unique ones holds
// for the attachments of its kind.
func (Attachment) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("skill_id", "configuration_id").Unique(),
		index.Fields("skill_id", "task_id").Unique(),
		index.Fields("configuration_id", "position"),
		index.Fields("task_id", "position"),
	}
}

// Annotations of the table. A task composes all its skills (RULES I4).
func (Attachment) Annotations() []schema.Annotation {
	return table("attachments",
		enum("load_mode", library.Always, library.OnDemand),
		check{"offerer", "task_id IS NULL AND configuration_id IS NOT NULL OR configuration_id IS NULL AND task_id IS NOT NULL"},
		check{"task_mode", "task_id IS NULL OR load_mode = 'always'"},
	)
}

// ToolSwitch is a tool's switch that was set at least once.
type ToolSwitch struct{ ent.Schema }

// Fields of the table.
func (ToolSwitch) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", "the tool's"),
		flag("enabled", ""),
	}
}

// Indexes of the table.
func (ToolSwitch) Indexes() []ent.Index { return []ent.Index{index.Fields("name").Unique()} }

// Annotations of the table.
func (ToolSwitch) Annotations() []schema.Annotation { return table("tool_switches") }

// ToolGroupSwitch is a tool group's switch that was set at least once.
type ToolGroupSwitch struct{ ent.Schema }

// Fields of the table.
func (ToolGroupSwitch) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", "the group's"),
		flag("enabled", ""),
	}
}

// Indexes of the table.
func (ToolGroupSwitch) Indexes() []ent.Index { return []ent.Index{index.Fields("name").Unique()} }

// Annotations of the table.
func (ToolGroupSwitch) Annotations() []schema.Annotation { return table("tool_group_switches") }
