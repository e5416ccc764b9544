package builtin

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

// maxListed bounds the lists that are not bounded by the content room.
const maxListed = 200

func reading(name, title, description string, schema map[string]any) tool.Spec {
	return tool.Spec{
		Definition: define(name, description, schema), Title: title,
		Group: tool.GroupContentRead, Effect: tool.ReadOnly,
	}
}

func listPages(c *content.Content) tool.Tool {
	type args struct {
		ParentID string `json:"parentId"`
		Depth    int    `json:"depth"`
	}
	return read[args]{
		spec: reading("list_pages", "List pages", "Lists the pages of the site, or those below one page, with their paths.",
			object([]string{}, map[string]any{
				"parentId": text("The page to list below; without it the whole site."),
				"depth":    number("How many levels to list; 3 without it.", 1, 10),
			})),
		run: func(ctx context.Context, call tool.Call, a args) (tool.Result, error) {
			if a.Depth == 0 {
				a.Depth = 3
			}
			nodes, more, err := c.Tree(ctx, call.Actor, a.ParentID, a.Depth, maxListed)
			if err != nil {
				return tool.Result{}, err
			}
			list := pageList{Pages: make([]pageView, len(nodes)), More: more}
			for i, n := range nodes {
				list.Pages[i] = pageView{
					ID: n.Page.ID, ParentID: n.Page.ParentID, Title: field(n.Page, "title"), Path: n.Path, Hidden: n.Page.Hidden,
				}
			}
			return answer(list)
		},
	}
}

func getPage(c *content.Content) tool.Tool {
	type args struct {
		ID string `json:"id"`
	}
	return read[args]{
		spec: reading("get_page", "Read a page", "Reads a page: its fields and all elements on it, in their order.",
			object([]string{"id"}, map[string]any{"id": text("The page's id.")})),
		run: func(ctx context.Context, call tool.Call, a args) (tool.Result, error) {
			page, err := oneView(ctx, c, call, tool.Record{Table: content.PageTable, ID: a.ID})
			if err != nil {
				return tool.Result{}, err
			}
			elements, err := c.Children(ctx, call.Actor, content.ElementTable, a.ID)
			if err != nil {
				return tool.Result{}, err
			}
			out := pageWithElements{Page: page, Elements: make([]recordView, len(elements))}
			for i, e := range elements {
				out.Elements[i] = viewOf(e)
			}
			return answer(out)
		},
	}
}

func readRecord(c *content.Content) tool.Tool {
	return read[tool.Record]{
		spec: reading("read_record", "Read a record", "Reads one record of a table: a page, an element or a file.",
			object([]string{"table", "id"}, map[string]any{"table": tableName(), "id": text("The record's id.")})),
		run: func(ctx context.Context, call tool.Call, a tool.Record) (tool.Result, error) {
			view, err := oneView(ctx, c, call, a)
			if err != nil {
				return tool.Result{}, err
			}
			return answer(view)
		},
	}
}

// oneView reads a record as the initiator; a page comes with its path.
func oneView(ctx context.Context, c *content.Content, call tool.Call, at tool.Record) (recordView, error) {
	r, err := c.Read(ctx, call.Actor, at.Table, at.ID)
	if err != nil {
		return recordView{}, err
	}
	view := viewOf(r)
	if r.Table == content.PageTable {
		view.Path, err = c.Path(ctx, r)
	}
	return view, err
}

func searchRecords(c *content.Content) tool.Tool {
	type args struct {
		Words string `json:"words"`
		Table string `json:"table"`
		Limit int    `json:"limit"`
	}
	return read[args]{
		spec: reading("search_records", "Search", "Finds records that contain the words, newest first within a table.",
			object([]string{"words"}, map[string]any{
				"words": map[string]any{"type": "string", "minLength": 1, "maxLength": 200, "description": "What to look for."},
				"table": tableName(),
				"limit": number("How many records to return at most; 20 without it.", 1, content.MaxSearch),
			})),
		run: func(ctx context.Context, call tool.Call, a args) (tool.Result, error) {
			if a.Limit == 0 {
				a.Limit = 20
			}
			found, err := c.Search(ctx, call.Actor, a.Table, a.Words, a.Limit)
			if err != nil {
				return tool.Result{}, err
			}
			out := recordList{Records: make([]recordView, len(found))}
			for i, r := range found {
				out.Records[i] = viewOf(r)
			}
			return answer(out)
		},
	}
}

func recordHistory(c *content.Content) tool.Tool {
	type args struct {
		tool.Record
		Limit int `json:"limit"`
	}
	return read[args]{
		spec: reading("record_history", "History of a record", "Lists the revisions of a record, newest first, with the fields that each of them set.",
			object([]string{"table", "id"}, map[string]any{
				"table": tableName(), "id": text("The record's id."),
				"limit": number("How many revisions to return at most; 20 without it.", 1, 100),
			})),
		run: func(ctx context.Context, call tool.Call, a args) (tool.Result, error) {
			if a.Limit == 0 {
				a.Limit = 20
			}
			revisions, err := c.History(ctx, call.Actor, a.Table, a.ID)
			if err != nil {
				return tool.Result{}, err
			}
			out := historyView{Table: a.Table, ID: a.ID, Revisions: []revisionView{}}
			for i, rev := range revisions[:min(len(revisions), a.Limit)] {
				var earlier map[string]any
				if i+1 < len(revisions) {
					earlier = revisions[i+1].Fields
				}
				out.Revisions = append(out.Revisions, revisionView{
					Revision: rev.Revision, Kind: rev.Kind, At: rev.At, InRun: rev.Run != uuid.Nil,
					Set: plainFields(a.Table, changedFields(earlier, rev.Fields)),
				})
			}
			return answer(out)
		},
	}
}

// changedFields are the fields that differ between two revisions, as they are in the
// later one; one that went away is null.
func changedFields(earlier, later map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range later {
		if !content.Same(v, earlier[name]) {
			out[name] = v
		}
	}
	for name, v := range earlier {
		if _, kept := later[name]; !kept && !content.Same(v, nil) {
			out[name] = nil
		}
	}
	return out
}

func resolveURL(c *content.Content) tool.Tool {
	type args struct {
		URL string `json:"url"`
	}
	return read[args]{
		spec: reading("resolve_url", "Find the page of a URL", "Finds the page that answers at a URL or path of the site.",
			object([]string{"url"}, map[string]any{"url": text("A URL, or a path such as /about/team.")})),
		run: func(ctx context.Context, call tool.Call, a args) (tool.Result, error) {
			page, err := c.ResolveURL(ctx, call.Actor, a.URL)
			if err != nil {
				return tool.Result{}, err
			}
			view, err := oneView(ctx, c, call, recordOf(page))
			if err != nil {
				return tool.Result{}, err
			}
			return answer(view)
		},
	}
}
