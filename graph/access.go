package graph

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

func toUser(u access.User) *model.User {
	return &model.User{
		ID: userKind.id(u.ID), Name: u.Name, Kind: userKinds.out(u.Kind),
		Administrator: &u.Administrator, Enabled: &u.Enabled, Permissions: permissions.outs(u.Permissions), CreatedAt: &u.CreatedAt,
	}
}

// user is an account as a viewer may see it: everything of oneself and, for administrators, of everybody; of others a name.
func (r *Resolver) user(ctx context.Context, by actor.Actor, id uuid.UUID) (*model.User, error) {
	u, err := r.Access.FindUser(ctx, by, id)
	if err == nil {
		return toUser(u), nil
	}
	if by.IsNobody() || !hidden(err) {
		return nil, err
	}
	other, err := r.Access.Actor(ctx, id)
	if err != nil {
		return nil, err
	}
	if other.IsNobody() {
		return nil, fault.New(fault.NotFound, "There is no such user, or none you may see.")
	}
	return &model.User{ID: userKind.id(id), Name: other.Name, Kind: userKinds.out(other.Kind)}, nil
}

// person is the account that a field points at.
func (r *Resolver) person(ctx context.Context, id uuid.UUID) (*model.User, error) {
	return pointed(ctx, r.load(ctx).users, id, func(u *model.User) *model.User { return u })
}

func userConnection(w window, read []access.User) *model.UserConnection {
	c := &model.UserConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, func(u access.User) string { return u.ID.String() }, toUser,
		func(cursor string, n *model.User) *model.UserEdge { return &model.UserEdge{Cursor: cursor, Node: n} })
	return c
}

func toToken(t access.Token) *model.Token {
	return &model.Token{
		ID: tokenKind.id(t.ID), UserID: userKind.id(t.UserID), UserUUID: t.UserID, Name: t.Name,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt,
	}
}

func tokenConnection(w window, read []access.Token) *model.TokenConnection {
	c := &model.TokenConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, func(t access.Token) string { return t.ID.String() }, toToken,
		func(cursor string, n *model.Token) *model.TokenEdge { return &model.TokenEdge{Cursor: cursor, Node: n} })
	return c
}

// forwards reads a window of a list that its room reads only from the front: to read backwards it goes through the list, page by page, and keeps what
// stands before the cursor.
func forwards[D any](ctx context.Context, w window, list func(ctx context.Context, after uuid.UUID, limit int) ([]D, error), id func(D) uuid.UUID) ([]D, error) {
	row, err := w.row()
	if err != nil {
		return nil, err
	}
	if !w.backward {
		return list(ctx, row, w.fetch())
	}
	var kept []D
	after := uuid.Nil
	for {
		read, err := list(ctx, after, maxPage)
		if err != nil {
			return nil, err
		}
		end := len(read)
		if row != uuid.Nil {
			if at := slices.IndexFunc(read, func(d D) bool { return id(d).String() >= row.String() }); at >= 0 {
				end = at
			}
		}
		kept = append(kept, read[:end]...)
		kept = kept[max(0, len(kept)-w.fetch()):]
		if end < maxPage {
			return kept, nil
		}
		after = id(read[end-1])
	}
}
