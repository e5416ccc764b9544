package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Registry holds the tools of an installation and is the one way to call them:
// arguments are validated, panics and errors become results, hook failures are
// settled and results bounded here and nowhere else. It does not decide whether a
// call may run; that is Decide. Immutable, safe for concurrent use.
type Registry struct {
	order []string
	tools map[string]registered
}

type registered struct {
	tool      Tool
	spec      Spec
	arguments Schema
}

// The tokens of the errors that the registry itself answers with.
const (
	TokenUnknownTool      = "unknown_tool"
	TokenInvalidArguments = "invalid_arguments"
	TokenToolFailed       = "tool_failed"
)

// TokenChanged is the token with which a remote tool answers that it is not as it was
// reviewed: nothing was called, and it is offered no longer (RULES G8).
const TokenChanged = "tool_changed"

// New makes a registry. It refuses what would contradict itself later: a name used
// twice, a schema that cannot be used, a tool that is both approval-bound and
// input-requiring (RULES G2), a write that cannot say what it is about (RULES G7).
func New(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: make(map[string]registered, len(tools))}
	for _, t := range tools {
		spec := t.Spec()
		if err := r.add(t, spec); err != nil {
			return nil, fmt.Errorf("registering tool %q: %w", spec.Name, err)
		}
	}
	return r, nil
}

// with is the registry with more tools behind its own. One that cannot be registered is
// left out: whoever imports tools checks them first, and a bad one costs only itself.
// What known compiled is not compiled again.
func (r *Registry) with(more []Tool, known *Registry) *Registry {
	out := &Registry{order: slices.Clone(r.order), tools: maps.Clone(r.tools)}
	for _, t := range more {
		spec := t.Spec()
		if was, same := known.tools[spec.Name]; same && bytes.Equal(was.spec.Schema, spec.Schema) {
			_ = out.enter(t, spec, was.arguments)
			continue
		}
		_ = out.add(t, spec)
	}
	return out
}

func (r *Registry) add(t Tool, spec Spec) error {
	args, err := CompileSchema(spec.Schema)
	if err != nil {
		return err
	}
	return r.enter(t, spec, args)
}

func (r *Registry) enter(t Tool, spec Spec, args Schema) error {
	if _, taken := r.tools[spec.Name]; taken || spec.Name == "" {
		return errors.New("a tool needs a name of its own")
	}
	for _, rule := range contradictions {
		if rule.holds(t, spec) {
			return errors.New(rule.message)
		}
	}
	r.order = append(r.order, spec.Name)
	r.tools[spec.Name] = registered{tool: t, spec: spec, arguments: args}
	return nil
}

// contradictions are the declarations that no tool may make.
var contradictions = []struct {
	message string
	holds   func(Tool, Spec) bool
}{
	{"its effect is none that is known", func(_ Tool, s Spec) bool {
		return s.Effect != "" && s.Effect != ReadOnly && !s.Effect.Writes()
	}},
	{"it waits for an approval and for input; one pause can carry only one answer", func(_ Tool, s Spec) bool {
		// A remote tool counts as bound even where its operator freed it today.
		return s.RequiresInput && (s.RequiresApproval || EffectOf(s).Writes())
	}},
	{"it requires input and cannot say which", func(t Tool, s Spec) bool {
		_, asks := t.(Asker)
		return s.RequiresInput && !asks
	}},
	{"it writes and has no preview", func(t Tool, s Spec) bool {
		_, previews := t.(Previewer)
		return DeclaredWrite(s) && !previews
	}},
	{"it names places of text that it would write, and is no write", func(_ Tool, s Spec) bool {
		return len(s.TextPlaces) > 0 && !DeclaredWrite(s)
	}},
	{"it writes and does not name its target", func(t Tool, s Spec) bool {
		_, targets := t.(Targeter)
		return DeclaredWrite(s) && !targets
	}},
}

// Spec returns a tool's declaration.
func (r *Registry) Spec(name string) (Spec, bool) {
	t, ok := r.tools[name]
	return t.spec, ok
}

// Specs lists every declaration in the order of registration.
func (r *Registry) Specs() []Spec {
	out := make([]Spec, len(r.order))
	for i, name := range r.order {
		out[i] = r.tools[name].spec
	}
	return out
}

// maxLabel bounds what is kept of a name that nobody registered, in characters.
const maxLabel = 100

// Label is a tool's name as events and the trail keep it. A name that nobody
// registered is text that a model wrote, and is bounded like one (RULES Y1).
func (r *Registry) Label(name string) string {
	if _, known := r.tools[name]; known {
		return name
	}
	return BoundLine(name, maxLabel)
}

// Effect is what a call by this name may do. A name that nobody registered counts as
// a write that must not be repeated, so that nothing runs it early (RULES G1).
func (r *Registry) Effect(name string) Effect {
	t, ok := r.tools[name]
	if !ok {
		return NonIdempotentWrite
	}
	return EffectOf(t.spec)
}

// Check validates a call's arguments. When they do not fit it returns the error
// result that tells the model why, and false.
func (r *Registry) Check(name string, args json.RawMessage) (Result, bool) {
	t, ok := r.tools[name]
	if !ok {
		return Fail(TokenUnknownTool, "There is no such tool."), false
	}
	if wrong := t.arguments.Check(args); wrong != "" {
		return Fail(TokenInvalidArguments, "Invalid arguments: "+wrong).Bounded(), false
	}
	return Result{}, true
}

// Answer is what became of a call.
type Answer struct {
	// Result is always one that the model may read, the events may hold and the card
	// may show.
	Result Result
	// Failure is why the tool, or a hook after its writes, failed. It is for the log
	// alone and decides nothing (RULES G4, R17, R20).
	Failure error
}

// Execute runs a call. When the arguments do not fit, the tool is not asked.
func (r *Registry) Execute(ctx context.Context, name string, call Call) Answer {
	if refused, ok := r.Check(name, call.Arguments); !ok {
		return Answer{Result: refused}
	}
	watch := &HookWatch{}
	call.Hooks = watch
	result, err := guard(func() (Result, error) { return r.tools[name].tool.Execute(ctx, call) })
	if err != nil {
		result = Fail(TokenToolFailed, "The tool failed.")
		err = fmt.Errorf("executing tool %s: %w", name, err)
	}
	result.HookFailedAfterWrite = false // no tool sets it
	return Answer{Result: watch.settle(result).Bounded(), Failure: errors.Join(err, watch.failure())}
}

// InvalidArguments is the error of a preview, target or input schema that was asked
// for arguments which Check refuses. Result is what the model is told.
type InvalidArguments struct{ Result Result }

func (e *InvalidArguments) Error() string { return e.Result.Text }

// Preview says what a call would change, bounded (RULES G7). It fails for a tool
// that has no preview.
func (r *Registry) Preview(ctx context.Context, name string, call Call) ([]string, error) {
	p, err := capable[Previewer](r, name, call)
	if err != nil {
		return nil, err
	}
	lines, err := guard(func() ([]string, error) { return p.Preview(ctx, call) })
	if err != nil {
		return nil, fmt.Errorf("previewing tool %s: %w", name, err)
	}
	return BoundPreview(lines), nil
}

// PendingTarget names what a pending call is about, or false when it has no target: it
// creates its record, or it is no declared write.
func (r *Registry) PendingTarget(ctx context.Context, name string, call Call) (Target, bool, error) {
	t, err := capable[Targeter](r, name, call)
	if errors.Is(err, errNotCapable) {
		return Target{}, false, nil
	}
	if err != nil {
		return Target{}, false, err
	}
	type found struct {
		target Target
		ok     bool
	}
	f, err := guard(func() (found, error) {
		target, ok, err := t.PendingTarget(ctx, call)
		return found{target, ok}, err
	})
	if err != nil {
		return Target{}, false, fmt.Errorf("finding the target of tool %s: %w", name, err)
	}
	return f.target, f.ok, nil
}

// InputSchema is the schema of what a person has to give before the call can run.
func (r *Registry) InputSchema(ctx context.Context, name string, call Call) (json.RawMessage, error) {
	a, err := capable[Asker](r, name, call)
	if err != nil {
		return nil, err
	}
	schema, err := guard(func() (json.RawMessage, error) { return a.InputSchema(ctx, call) })
	if err != nil {
		return nil, fmt.Errorf("making the input schema of tool %s: %w", name, err)
	}
	return schema, nil
}

var errNotCapable = errors.New("the tool does not offer this")

func capable[T any](r *Registry, name string, call Call) (T, error) {
	var none T
	if refused, ok := r.Check(name, call.Arguments); !ok {
		return none, &InvalidArguments{Result: refused}
	}
	can, ok := r.tools[name].tool.(T)
	if !ok {
		return none, fmt.Errorf("tool %s: %w", name, errNotCapable)
	}
	return can, nil
}

// guard turns a panic of a tool into an error, so that one bad call costs only
// itself.
func guard[T any](f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
