package builtin

import (
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/content"
)

// recordView is a record as the model reads it. Who may read and edit it is no
// business of a model's.
type recordView struct {
	Table    string         `json:"table"`
	ID       string         `json:"id"`
	ParentID string         `json:"parentId,omitempty"`
	Path     string         `json:"path,omitempty"`
	Revision int            `json:"revision"`
	Hidden   bool           `json:"hidden,omitempty"`
	Fields   map[string]any `json:"fields"`
}

func viewOf(r content.Record) recordView {
	return recordView{
		Table: r.Table, ID: r.ID, ParentID: r.ParentID, Revision: r.Revision, Hidden: r.Hidden,
		Fields: plainFields(r.Table, r.Fields),
	}
}

// plainFields leaves out what names users.
func plainFields(table string, fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	declared, err := content.TableNamed(table)
	if err != nil {
		return out
	}
	for _, f := range declared.Fields {
		if v, ok := fields[f.Name]; ok && f.Type != content.Users {
			out[f.Name] = v
		}
	}
	return out
}

// pageView is a line of a list of pages.
type pageView struct {
	ID       string `json:"id"`
	ParentID string `json:"parentId,omitempty"`
	Title    string `json:"title"`
	Path     string `json:"path,omitempty"`
	Hidden   bool   `json:"hidden,omitempty"`
}

type pageList struct {
	Pages []pageView `json:"pages"`
	More  bool       `json:"more,omitempty"`
}

type pageWithElements struct {
	Page     recordView   `json:"page"`
	Elements []recordView `json:"elements"`
}

type recordList struct {
	Records []recordView `json:"records"`
}

// revisionView is a revision with the fields that became others in it.
type revisionView struct {
	Revision int            `json:"revision"`
	Kind     string         `json:"kind"`
	At       time.Time      `json:"at"`
	InRun    bool           `json:"inRun,omitempty"`
	Set      map[string]any `json:"set"`
}

type historyView struct {
	Table     string         `json:"table"`
	ID        string         `json:"id"`
	Revisions []revisionView `json:"revisions"`
}

// writtenView is what a write answers.
type writtenView struct {
	Table    string   `json:"table"`
	ID       string   `json:"id"`
	Revision int      `json:"revision"`
	Hidden   bool     `json:"hidden,omitempty"`
	Changed  []string `json:"changed"`
	// Along counts the other records that the same write changed.
	Along        int      `json:"along,omitempty"`
	NotTaken     []string `json:"notTaken,omitempty"`
	Left         []string `json:"left,omitempty"`
	Untranslated []string `json:"untranslated,omitempty"`
}

// leftNames are the records that stayed, as a person or a model reads them.
func leftNames(left content.Left) []string {
	var out []string
	for _, n := range left.Names {
		out = append(out, n.Table+" "+n.ID)
	}
	if left.Others > 0 {
		out = append(out, fmt.Sprintf("%d that you may not read", left.Others))
	}
	return out
}

func field(r content.Record, name string) string {
	s, _ := r.Fields[name].(string)
	return s
}
