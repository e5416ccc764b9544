package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

func TestReportProgress(t *testing.T) {
	s := newSite(t)
	t.Run("C2 progress is position, total and done", func(t *testing.T) {
		s.t = t
		for args, want := range map[string]tool.Progress{
			`{"position":1,"total":1}`:              {Position: 1, Total: 1},
			`{"position":2,"total":5,"done":false}`: {Position: 2, Total: 5},
			`{"position":5,"total":5,"done":true}`:  {Position: 5, Total: 5, Done: true},
		} {
			got := s.do(reader, "report_progress", args)
			if got.IsError || got.Write != nil || !cmp.Equal(got.Report, &tool.Report{Progress: &want}) {
				t.Errorf("%s: got %+v", args, got)
			}
		}
	})
	t.Run("C2 a position outside 1 to total is an error", func(t *testing.T) {
		s.t = t
		for _, args := range []string{`{"position":0,"total":3}`, `{"position":4,"total":3}`, `{"position":-1,"total":-1}`, `{"position":0,"total":0}`} {
			s.wantError(reader, "report_progress", args, "position_out_of_range")
		}
		for _, args := range []string{`{"position":1}`, `{"position":"1","total":2}`, `{"position":1.5,"total":2}`, `{"position":1,"total":99999999999999999999}`, `{"position":1,"total":2,"done":"no"}`} {
			s.wantError(reader, "report_progress", args, tool.TokenInvalidArguments)
		}
	})
}

func TestHighlightRecord(t *testing.T) {
	s := newSite(t)
	highlight := func(t *testing.T, subject *tool.Record, at tool.Record) tool.Result {
		s.t = t
		text, err := compact(at)
		if err != nil {
			t.Fatal(err)
		}
		call := s.call(reader, text)
		call.Subject = subject
		return s.run("highlight_record", call)
	}
	home := tool.Record{Table: content.PageTable, ID: "home"}
	intro := tool.Record{Table: content.ElementTable, ID: "intro"}
	team := tool.Record{Table: content.PageTable, ID: "team"}

	for _, c := range []struct {
		name    string
		subject *tool.Record
		at      tool.Record
		token   string // of the error; empty means it is highlighted
	}{
		{"C2 the subject can be highlighted", &home, home, ""},
		{"C2 an element on the subject can be highlighted", &home, intro, ""},
		{"C2 an element that is the subject can be highlighted", &intro, intro, ""},
		{"C2 without a subject nothing can", nil, home, "no_subject"},
		{"C2 an element of another page cannot", &team, intro, "not_a_target"},
		{"C2 a file that is named like a page is no page", &tool.Record{Table: content.FileTable, ID: "home"}, intro, "not_a_target"},
		{"C2 a neighbour of an element cannot", &intro, tool.Record{Table: content.ElementTable, ID: "more"}, "not_a_target"},
		{"C2 the page of an element cannot", &intro, home, "not_a_target"},
		{"C2 a subpage cannot", &home, team, "not_a_target"},
		{"C2 a record that is not there cannot", &home, tool.Record{Table: content.ElementTable, ID: "gone"}, "not_a_target"},
		{"C2 a subject that the initiator may no longer read cannot", &team, team, "not_a_target"},
		{"C2 nor an element on it", &team, tool.Record{Table: content.ElementTable, ID: "members"}, "not_a_target"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := highlight(t, c.subject, c.at)
			switch {
			case c.token != "" && (!got.IsError || got.Token != c.token || got.Report != nil):
				t.Errorf("got %+v", got)
			case c.token == "" && (got.IsError || !cmp.Equal(got.Report, &tool.Report{Highlight: &c.at})):
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("C2 a selector is no target", func(t *testing.T) {
		s.t = t
		s.wantError(reader, "highlight_record", `{"table":"element","id":"intro","selector":"#main"}`, tool.TokenInvalidArguments)
	})
}

func TestAskChoice(t *testing.T) {
	s := newSite(t)
	long := func(n int) string { return strings.Repeat("ä", n) }
	options := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("%q", fmt.Sprint("option ", i))
		}
		return strings.Join(out, ",")
	}
	for _, c := range []struct {
		name, question, options string
		ok                      bool
	}{
		{"two options", "Which?", options(2), true},
		{"ten options", "Which?", options(10), true},
		{"a question of 300 characters", long(300), options(2), true},
		{"an option of 120 characters", "Which?", `"a","` + long(120) + `"`, true},
		{"no question", "", options(2), false},
		{"one option", "Which?", options(1), false},
		{"eleven options", "Which?", options(11), false},
		{"the same option twice", "Which?", `"a","b","a"`, false},
		{"an empty option", "Which?", `"a",""`, false},
		{"a question of 301 characters", long(301), options(2), false},
		{"an option of 121 characters", "Which?", `"a","` + long(121) + `"`, false},
		{"an option that is no text", "Which?", `"a",2`, false},
	} {
		t.Run("C3 "+c.name, func(t *testing.T) {
			args := json.RawMessage(fmt.Sprintf(`{"question":%q,"options":[%s]}`, c.question, c.options))
			if result, ok := s.tools.Check("ask_choice", args); ok != c.ok {
				t.Errorf("%+v", result)
			}
		})
	}
	t.Run("C3 it pauses for input, and is neither a write nor waits for an approval", func(t *testing.T) {
		spec, known := s.tools.Spec("ask_choice")
		if !known || !spec.RequiresInput || tool.EffectOf(spec).Writes() || tool.DeclaredWrite(spec) || tool.ApprovalBound(spec, tool.Approvals{}) {
			t.Errorf("%+v", spec)
		}
	})
	t.Run("C3 the answer is one of the options and nothing else", func(t *testing.T) {
		raw, err := s.tools.InputSchema(context.Background(), "ask_choice", s.call(reader, `{"question":"Which?","options":["a","b"]}`))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := tool.CompileSchema(raw)
		if err != nil {
			t.Fatal(err)
		}
		for answer, ok := range map[string]bool{
			`{"choice":"a"}`: true, `{"choice":"b"}`: true, `{"choice":"c"}`: false, `{"choice":["a"]}`: false, `{"choice":"a","more":1}`: false, `{}`: false, `"a"`: false,
		} {
			if wrong := schema.Check(json.RawMessage(answer)); (wrong == "") != ok {
				t.Errorf("%s: %s", answer, wrong)
			}
		}
	})
}
