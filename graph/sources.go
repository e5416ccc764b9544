package graph

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/library"
)

func toSource(s library.Source) *model.Source {
	return &model.Source{
		ID: sourceKind.id(s.ID), Title: s.Title, Type: sourceTypes.out(s.Type), URL: s.URL, Ref: s.Ref, PinnedCommit: given(s.PinnedCommit),
		HasToken: s.HasToken, TrustLevel: trustLevels.out(s.TrustLevel), ExpectedFingerprint: given(s.ExpectedFingerprint),
		Enabled: s.Enabled, SyncStatus: syncStatuses.out(s.SyncStatus), SyncError: given(s.SyncError), LastSyncedAt: s.LastSyncedAt,
		HeadCommit: given(s.HeadCommit), CreatedAt: s.CreatedAt,
	}
}

func sourceConnection(w window, read []library.Source) *model.SourceConnection {
	c := &model.SourceConnection{}
	key := func(s library.Source) uuid.UUID { return s.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toSource,
		func(cursor string, n *model.Source) *model.SourceEdge {
			return &model.SourceEdge{Cursor: cursor, Node: n}
		})
	return c
}

// libraryPage is a window as the library reads it.
func libraryPage(first *int, after *string, last *int, before *string) (window, library.Page, error) {
	w, err := page(first, after, last, before)
	if err != nil {
		return window{}, library.Page{}, err
	}
	row, err := w.row()
	return w, library.Page{Cursor: row, Limit: w.fetch(), Backward: w.backward}, err
}

// oldestFirst puts rows in the order of their list: a page that was read backwards may come from its end.
func oldestFirst[D any](read []D, id func(D) uuid.UUID) []D {
	return slices.SortedFunc(slices.Values(read), func(a, b D) int {
		x, y := id(a), id(b)
		return bytes.Compare(x[:], y[:])
	})
}

// rowKey is the cursor key of a list ordered by row id.
func rowKey[D any](id func(D) uuid.UUID) func(D) string {
	return func(d D) string { return id(d).String() }
}

func toReport(r library.Report) *model.SyncReport {
	out := &model.SyncReport{
		Found: r.Found, Loaded: r.Loaded, Repaired: r.Repaired, Rejected: r.Rejected, Skipped: r.Skipped, Unchanged: r.Unchanged, Orphaned: r.Orphaned,
		Commit: r.Commit, Items: make([]*model.SyncItem, len(r.Items)),
	}
	for i, item := range r.Items {
		out.Items[i] = &model.SyncItem{
			Path: item.Path, Status: itemStatuses.out(item.Status), Code: given(item.Code), Reason: given(item.Reason), Line: positive(item.Line),
		}
		if item.Offset >= 0 && item.Status == library.ItemRejected {
			out.Items[i].Offset = &r.Items[i].Offset
		}
	}
	return out
}
