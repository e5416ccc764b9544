package builtin

import (
	"regexp"
	"testing"
)

func TestReads(t *testing.T) {
	s := newSite(t)
	t.Run("G1 answers are plain compact JSON with keys in a stable order", func(t *testing.T) {
		s.t = t
		s.want(editor, "list_pages", `{}`, `{"pages":[{"id":"home","title":"Home","path":"/"},{"id":"team","parentId":"home","title":"Team","path":"/team"}]}`)
		s.want(editor, "list_pages", `{"depth":1}`, `{"pages":[{"id":"home","title":"Home","path":"/"}],"more":true}`)
		s.want(editor, "list_pages", `{"parentId":"home"}`, `{"pages":[{"id":"team","parentId":"home","title":"Team","path":"/team"}]}`)
		s.want(reader, "get_page", `{"id":"home"}`, `{"page":{"table":"page","id":"home","path":"/","revision":1,"fields":{"description":"Welcome","slug":"/","title":"Home"}},`+
			`"elements":[{"table":"element","id":"intro","parentId":"home","revision":1,"fields":{"header":"Helo","kind":"text","text":"We bake <bread> & cake."}},`+
			`{"table":"element","id":"more","parentId":"home","revision":1,"fields":{"header":"More","kind":"text"}}]}`)
		s.want(reader, "read_record", `{"table":"file","id":"logo"}`, `{"table":"file","id":"logo","revision":1,"fields":{"name":"logo.svg"}}`)
		s.want(reader, "search_records", `{"words":"cake"}`, `{"records":[{"table":"element","id":"intro","parentId":"home","revision":1,"fields":{"header":"Helo","kind":"text","text":"We bake <bread> & cake."}}]}`)
		s.want(reader, "resolve_url", `{"url":"https://example.org/?a=b"}`, `{"table":"page","id":"home","path":"/","revision":1,"fields":{"description":"Welcome","slug":"/","title":"Home"}}`)
	})

	t.Run("I6 reads are the initiator's and nobody else's", func(t *testing.T) {
		s.t = t
		s.want(reader, "list_pages", `{}`, `{"pages":[{"id":"home","title":"Home","path":"/"}]}`)
		s.want(reader, "search_records", `{"words":"Ann"}`, `{"records":[]}`)
		for name, args := range map[string]string{
			"list_pages":     `{"parentId":"team"}`,
			"get_page":       `{"id":"team"}`,
			"read_record":    `{"table":"element","id":"members"}`,
			"record_history": `{"table":"page","id":"team"}`,
			"resolve_url":    `{"url":"/team"}`,
		} {
			s.wantError(reader, name, args, "not_found")
		}
		s.want(editor, "read_record", `{"table":"element","id":"members"}`, `{"table":"element","id":"members","parentId":"team","revision":1,"fields":{"kind":"text","text":"Bread is baked by Ann."}}`)
	})

	t.Run("I6 no model reads who may read a page", func(t *testing.T) {
		s.t = t
		s.want(editor, "read_record", `{"table":"page","id":"team"}`, `{"table":"page","id":"team","parentId":"home","path":"/team","revision":1,"fields":{"slug":"team","title":"Team"}}`)
	})
}

func TestHistoryAndArguments(t *testing.T) {
	t.Run("a history names what each revision set, newest first", func(t *testing.T) {
		s := newSite(t)
		s.do(editor, "update_page_metadata", `{"id":"home","fields":{"title":"Start","description":""}}`)
		got := s.do(reader, "record_history", `{"table":"page","id":"home"}`)
		at := regexp.MustCompile(`"2026-01-02T03:04:05\.\d+Z"`) // the test's clock moves with every reading
		want := `{"table":"page","id":"home","revisions":[` +
			`{"revision":2,"kind":"update","at":T,"inRun":true,"set":{"description":"","title":"Start"}},` +
			`{"revision":1,"kind":"create","at":T,"set":{"description":"Welcome","slug":"/","title":"Home"}}]}`
		if text := at.ReplaceAllString(got.Text, "T"); text != want {
			t.Errorf("got %s", text)
		}
	})

	t.Run("invalid arguments are errors that name the field", func(t *testing.T) {
		s := newSite(t)
		for name, args := range map[string]string{
			"list_pages":     `{"depth":0}`,
			"get_page":       `{}`,
			"read_record":    `{"table":"skill","id":"x"}`,
			"search_records": `{"words":""}`,
			"record_history": `{"table":"page","id":"home","limit":"all"}`,
			"resolve_url":    `{"url":"/","follow":true}`,
		} {
			s.wantError(editor, name, args, "invalid_arguments")
		}
		s.wantError(editor, "resolve_url", `{"url":"mailto:a@b"}`, "invalid_arguments")
	})
}
