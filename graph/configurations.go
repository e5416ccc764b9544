package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/tool"
)

func toConfiguration(c library.Configuration) *model.Configuration {
	return &model.Configuration{
		ID: configurationKind.id(c.ID), Name: c.Name, Model: c.Model, ContextWindow: positive(c.ContextWindow), SystemPrompt: c.SystemPrompt,
		AllowedToolGroups: fromGroups(c.AllowedToolGroups), RequireSecondApprover: c.RequireSecondApprover, AllowProposalEdits: c.AllowProposalEdits, SnippetIds: snippetKind.ids(c.SnippetIDs),
		SnippetsInCallerSystemMessage: c.SnippetsInCallerSystemPrompt, MaxIterations: positive(c.MaxIterations),
		AllowedUserIds: userKind.ids(c.AllowedUserIDs), Revision: c.Revision, CreatedAt: c.CreatedAt, Domain: c,
		MaxOutputTokens: positive(c.MaxOutputTokens), Price: toPrice(c.Price), Fallbacks: toFallbacks(c.Fallbacks),
		ApprovalExpiryHours: positive(c.ApprovalExpiryHours),
	}
}

func configurationConnection(w window, read []library.Configuration) *model.ConfigurationConnection {
	c := &model.ConfigurationConnection{}
	key := func(c library.Configuration) uuid.UUID { return c.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toConfiguration,
		func(cursor string, n *model.Configuration) *model.ConfigurationEdge {
			return &model.ConfigurationEdge{Cursor: cursor, Node: n}
		})
	return c
}

// fromGroups writes tool groups; nil, which allows all, stays nil.
func fromGroups(groups []tool.Group) []string {
	if groups == nil {
		return nil
	}
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = string(g)
	}
	return out
}

// toGroups reads tool groups; null, which allows all, stays nil.
func toGroups(names []string) []tool.Group {
	if names == nil {
		return nil
	}
	out := make([]tool.Group, len(names))
	for i, n := range names {
		out[i] = tool.Group(n)
	}
	return out
}

// configurationUpdate reads a change of a configuration.
func configurationUpdate(in model.UpdateConfigurationInput) (library.ConfigurationUpdate, error) {
	id, err := configurationKind.row(in.ConfigurationID)
	if err != nil {
		return library.ConfigurationUpdate{}, err
	}
	provider, err := providerKind.optional(in.ProviderID)
	if err != nil {
		return library.ConfigurationUpdate{}, err
	}
	out := library.ConfigurationUpdate{
		ID: id, Revision: in.Revision, Name: in.Name, ProviderID: provider, Model: in.Model, SystemPrompt: in.SystemPrompt,
		RequireSecondApprover: in.RequireSecondApprover, AllowProposalEdits: in.AllowProposalEdits, SnippetsInCallerSystemPrompt: in.SnippetsInCallerSystemMessage,
		ContextWindow: orZero(in.ContextWindow.ValueOK()), MaxIterations: orZero(in.MaxIterations.ValueOK()),
		ApprovalExpiryHours: orZero(in.ApprovalExpiryHours.ValueOK()),
	}
	out.MaxOutputTokens = orZero(in.MaxOutputTokens.ValueOK())
	if price, set := in.Price.ValueOK(); set {
		read := fromPrice(price)
		out.Price = &read
	}
	if in.Fallbacks != nil {
		fallbacks, err := fromFallbacks(in.Fallbacks)
		if err != nil {
			return library.ConfigurationUpdate{}, err
		}
		out.Fallbacks = &fallbacks
	}
	if groups, set := in.AllowedToolGroups.ValueOK(); set {
		all := toGroups(groups)
		out.AllowedToolGroups = &all
	}
	if in.AllowedUserIds != nil {
		users, err := userKind.rows(in.AllowedUserIds)
		if err != nil {
			return library.ConfigurationUpdate{}, err
		}
		out.AllowedUserIDs = &users
	}
	if in.SnippetIds != nil {
		snippets, err := snippetKind.rows(in.SnippetIds)
		if err != nil {
			return library.ConfigurationUpdate{}, err
		}
		out.SnippetIDs = &snippets
	}
	return out, nil
}

// orZero reads a number for which null says zero and absence says nothing.
func orZero(n *int, set bool) *int {
	if set && n == nil {
		return new(int)
	}
	return n
}

// attachInput reads what to attach where.
func attachInput(in model.AttachSkillInput) (library.AttachInput, error) {
	attached, err := skillKind.row(in.SkillID)
	if err != nil {
		return library.AttachInput{}, err
	}
	out := library.AttachInput{SkillID: attached}
	if in.ConfigurationID != nil {
		if out.ConfigurationID, err = configurationKind.row(*in.ConfigurationID); err != nil {
			return library.AttachInput{}, err
		}
	}
	if in.TaskID != nil {
		if out.TaskID, err = taskKind.row(*in.TaskID); err != nil {
			return library.AttachInput{}, err
		}
	}
	if in.LoadMode != nil {
		out.LoadMode = loadModes.in[*in.LoadMode]
	}
	return out, nil
}

// attachments pages through what a configuration or task offers, for who may see skills.
func (r *Resolver) attachments(ctx context.Context, w window, offered func(context.Context, uuid.UUID) ([]library.Offered, error), by uuid.UUID) (*model.AttachmentConnection, error) {
	if err := needSkillRead(caller(ctx)); err != nil {
		return nil, err
	}
	all, err := offered(ctx, by)
	if err != nil {
		return nil, err
	}
	read, err := slice(w, all, attachmentKey)
	if err != nil {
		return nil, err
	}
	return attachmentConnection(w, read), nil
}

func toAttachment(o library.Offered) *model.Attachment {
	a := o.Attachment
	return &model.Attachment{
		ID: attachmentKind.id(a.ID), Skill: toSkill(o.Dossier), ConfigurationID: configurationKind.maybe(a.ConfigurationID),
		TaskID: taskKind.maybe(a.TaskID), LoadMode: loadModes.out(a.LoadMode), Position: a.Position, CreatedAt: a.CreatedAt,
	}
}

func attachmentKey(o library.Offered) string { return o.Attachment.ID.String() }

func attachmentConnection(w window, read []library.Offered) *model.AttachmentConnection {
	c := &model.AttachmentConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, attachmentKey, toAttachment,
		func(cursor string, n *model.Attachment) *model.AttachmentEdge {
			return &model.AttachmentEdge{Cursor: cursor, Node: n}
		})
	return c
}

func toProvider(p library.Provider) *model.Provider {
	return &model.Provider{
		ID: providerKind.id(p.ID), Name: p.Name, Kind: providerKinds.out(p.Kind), BaseURL: p.BaseURL,
		TrustZone: trustZones.out(p.TrustZone), Script: given(p.Script),
	}
}

func providerConnection(w window, read []library.Provider) *model.ProviderConnection {
	c := &model.ProviderConnection{}
	key := func(p library.Provider) uuid.UUID { return p.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toProvider,
		func(cursor string, n *model.Provider) *model.ProviderEdge {
			return &model.ProviderEdge{Cursor: cursor, Node: n}
		})
	return c
}
