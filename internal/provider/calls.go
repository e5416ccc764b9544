package provider

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/prompt"
)

// fragment is a piece of a call as it arrives. Servers differ in what they leave
// out: the index, the id, both; some give every call index 0, some repeat the name
// or send a new id with every piece.
type fragment struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string       `json:"name"`
		Arguments argumentText `json:"arguments"`
	} `json:"function"`
}

type partialCall struct {
	index     *int
	id, name  string
	arguments strings.Builder
	scan      scanner
	batch     int
}

// assembly puts calls together. The rule: a fragment that names a tool starts a
// call, unless it repeats the name of the unfinished call that it would continue;
// a fragment that names none continues.
type assembly struct {
	calls []*partialCall
	batch int
}

// add takes the fragments of one chunk.
func (a *assembly) add(fragments []fragment) {
	a.batch++
	for _, f := range fragments {
		a.take(f)
	}
}

func (a *assembly) take(f fragment) {
	arguments := string(f.Function.Arguments)
	call := a.continued(f)
	if call != nil && a.repeats(call, f, arguments) {
		return
	}
	if call == nil || a.starts(call, f, arguments) {
		if f.ID == "" && f.Function.Name == "" && arguments == "" {
			return // some servers end with an empty entry
		}
		call = &partialCall{index: f.Index}
		a.calls = append(a.calls, call)
	}
	if call.id == "" {
		call.id = f.ID
	}
	if call.name == "" {
		call.name = f.Function.Name
	}
	call.batch = a.batch
	call.arguments.WriteString(arguments)
	call.scan.read(arguments)
}

// continued finds the call that the fragment belongs to if it starts none: by id,
// else the newest at its index, else the newest.
func (a *assembly) continued(f fragment) *partialCall {
	sameIndex := func(call *partialCall) bool {
		return f.Index == nil || call.index != nil && *call.index == *f.Index
	}
	var newest *partialCall
	for i := len(a.calls) - 1; i >= 0; i-- {
		call := a.calls[i]
		if !sameIndex(call) {
			continue
		}
		if f.ID != "" && call.id == f.ID {
			return call
		}
		if newest == nil {
			newest = call
		}
	}
	return newest
}

// starts says whether a fragment begins a call although it could continue one.
func (a *assembly) starts(call *partialCall, f fragment, arguments string) bool {
	switch {
	case f.Function.Name == "":
		return false
	case f.Function.Name != call.name && call.name != "":
		return true
	case f.ID != "" && call.id != "" && f.ID != call.id:
		return true
	case call.batch == a.batch: // two entries of one chunk are two calls
		return true
	}
	return call.scan.closed && strings.TrimSpace(arguments) != ""
}

// repeats recognises a finished call that is sent once more as a whole.
func (a *assembly) repeats(call *partialCall, f fragment, arguments string) bool {
	return f.ID != "" && f.ID == call.id && f.Function.Name == call.name && call.batch != a.batch &&
		call.scan.closed && arguments == call.arguments.String()
}

// finish returns the calls with ids unique in the turn: a missing, overlong or
// repeated one is replaced by the first free call_<n>.
func (a *assembly) finish() ([]prompt.Call, *failure) {
	const longestID = 256
	taken := map[string]bool{}
	for _, call := range a.calls {
		taken[call.id] = true
	}
	kept := map[string]bool{}
	number := 0
	var calls []prompt.Call
	for _, call := range a.calls {
		if call.name == "" {
			return nil, failed(true, "asked for a call without naming a tool")
		}
		id := call.id
		if id == "" || len(id) > longestID || kept[id] {
			for id = ""; id == "" || taken[id]; {
				number++
				id = fmt.Sprintf("call_%d", number)
			}
		}
		kept[id], taken[id] = true, true
		calls = append(calls, prompt.Call{ID: id, Tool: call.name, Arguments: receivedArguments(call.arguments.String())})
	}
	return calls, nil
}
