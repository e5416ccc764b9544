package graph

import (
	"github.com/countersign/countersign/graph/generated"
	"github.com/countersign/countersign/graph/model"
)

// complexity says what a field costs: one for itself and its children, but a connection costs its children as often as its page may hold. What a
// document may cost altogether is the server's to say.
func complexity() generated.ComplexityRoot {
	var c generated.ComplexityRoot
	c.Query.Nodes = func(child int, ids []string) int { return 1 + child*len(ids) }

	c.Query.McpServers, c.Query.Budgets, c.Query.NotificationEndpoints = paged, paged, paged
	c.McpServer.Tools = func(child int) int { return 1 + child*defaultPage }
	c.Query.Sources, c.Query.Configurations, c.Query.Providers = paged, paged, paged
	c.Query.Users, c.Query.Tokens, c.Query.Inbox = paged, paged, paged
	c.Source.Skills = paged
	c.Skill.Approvals, c.Skill.Revocations, c.Skill.Revisions = paged, paged, paged
	c.Configuration.Attachments, c.Task.Attachments = paged, paged
	c.Query.Snippets, c.Query.Tasks = paged, paged
	c.Record.History = paged

	c.Query.Skills = filtered[*model.SkillFilter]
	c.Query.Runs = filtered[*model.RunFilter]
	c.Query.AuditTrail = filtered[*model.AuditFilter]
	c.Query.Pages = filtered[*string]
	c.Record.Children = filtered[string]
	c.Query.Conversations = filtered[*model.ConversationFilter]
	c.NotificationEndpoint.Deliveries = filtered[*model.NotificationDeliveryStatus]
	c.Query.OpenPoints = filtered[*model.OpenPointFilter]
	numbered := func(child int, first *int, _ *string, _ *int) int { return paged(child, first, nil, nil, nil) }
	c.Run.Events, c.Conversation.Entries = numbered, numbered
	return c
}

// paged is the cost of a connection.
func paged(child int, first *int, _ *string, last *int, _ *string) int {
	size := defaultPage
	for _, asked := range []*int{first, last} {
		if asked != nil {
			size = min(max(*asked, 0), maxPage) // what is out of bounds is refused by the resolver
		}
	}
	return 1 + child*max(size, 1)
}

// filtered is the cost of a connection with one more argument.
func filtered[F any](child int, _ F, first *int, after *string, last *int, before *string) int {
	return paged(child, first, after, last, before)
}
