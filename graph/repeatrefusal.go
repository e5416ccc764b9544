package graph

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// packedRefusal is a refusal as it is kept: its data, and the name of the object that it shows, which is read again.
type packedRefusal struct {
	Type    string            `json:"type"`
	Code    model.RefusalCode `json:"code"`
	Message string            `json:"message"`
	Shows   string            `json:"shows,omitempty"`
	Table   string            `json:"table,omitempty"` // of a record that it shows
	Data    json.RawMessage   `json:"data,omitempty"`
}

// packedProcess is what a refusal says of a process that is running.
type packedProcess struct {
	Pin     run.Pin                `json:"pin"`
	Subject *model.RecordReference `json:"subject"`
}

// plainRefusals are the types of refusals that are data alone.
var plainRefusals = refusalsByName(model.SimpleRefusal{}, model.InvisibleCharactersRefusal{}, model.AlreadyDecidedRefusal{},
	model.SyncRunningRefusal{}, model.PredecessorOpenRefusal{}, model.DecidedInChatRefusal{}, model.BudgetExhaustedRefusal{}, model.NotInstructionRefusal{}, model.InUseRefusal{})

// showingRefusals are the types of refusals that show an object as it is now.
var showingRefusals = map[string]func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error){
	"ProcessRunningRefusal": func(_ context.Context, _ *Resolver, p packedRefusal) (model.Refusal, error) {
		var d packedProcess
		if err := json.Unmarshal(p.Data, &d); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "a kept refusal cannot be read")
		}
		return model.ProcessRunningRefusal{Code: p.Code, Message: p.Message, Process: toPin(d.Pin), Subject: d.Subject}, nil
	},
	"StaleDigestRefusal": func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error) {
		id, err := skillKind.row(p.Shows)
		if err != nil {
			return nil, err
		}
		review, err := r.Library.Review(ctx, caller(ctx), id)
		if err != nil {
			return nil, err
		}
		now := toSkill(review.Dossier)
		return model.StaleDigestRefusal{Code: p.Code, Message: p.Message, Current: now.Digest, Skill: now, Diff: toDiff(review.Diff)}, nil
	},
	"StaleSkillRefusal": func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error) {
		now, err := shown[*model.Skill](ctx, r, p)
		return model.StaleSkillRefusal{Code: p.Code, Message: p.Message, Current: now}, err
	},
	"StaleConfigurationRefusal": func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error) {
		now, err := shown[*model.Configuration](ctx, r, p)
		return model.StaleConfigurationRefusal{Code: p.Code, Message: p.Message, Current: now}, err
	},
	"StaleSnippetRefusal": func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error) {
		now, err := shown[*model.Snippet](ctx, r, p)
		return model.StaleSnippetRefusal{Code: p.Code, Message: p.Message, Current: now}, err
	},
	"StaleToolRefusal": func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error) {
		now, err := r.mcpTool(ctx, p.Shows)
		return model.StaleToolRefusal{Code: p.Code, Message: p.Message, Current: now}, err
	},
	"StaleRecordRefusal": func(ctx context.Context, r *Resolver, p packedRefusal) (model.Refusal, error) {
		now, err := r.Content.Read(ctx, caller(ctx), p.Table, p.Shows)
		return model.StaleRecordRefusal{Code: p.Code, Message: p.Message, Current: toRecord(now)}, err
	},
}

func refusalsByName(types ...model.Refusal) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, t := range types {
		out[reflect.TypeOf(t).Name()] = reflect.TypeOf(t)
	}
	return out
}

// shown reads the object that a refusal shows.
func shown[N model.Node](ctx context.Context, r *Resolver, p packedRefusal) (N, error) {
	var none N
	now, err := r.node(ctx, p.Shows)
	if err != nil {
		return none, err
	}
	n, ok := now.(N)
	if !ok {
		return none, fault.New(fault.Internal, "a kept refusal shows a %T", now)
	}
	return n, nil
}

func packRefusal(refusal any) packedRefusal {
	v := reflect.ValueOf(refusal)
	p := packedRefusal{Type: v.Type().Name(), Message: v.FieldByName("Message").String()}
	p.Code = v.FieldByName("Code").Interface().(model.RefusalCode)
	switch d := refusal.(type) {
	case model.StaleDigestRefusal:
		p.Shows = d.Skill.ID
	case model.StaleSkillRefusal:
		p.Shows = d.Current.ID
	case model.StaleConfigurationRefusal:
		p.Shows = d.Current.ID
	case model.StaleSnippetRefusal:
		p.Shows = d.Current.ID
	case model.StaleToolRefusal:
		p.Shows = d.Current.Name
	case model.StaleRecordRefusal:
		p.Table, p.Shows = d.Current.Table, d.Current.ID
	case model.ProcessRunningRefusal:
		p.Data = mustPack(packedProcess{Pin: d.Process.Domain, Subject: d.Subject})
	default:
		p.Data = mustPack(refusal)
	}
	return p
}

// setRefusal puts a kept refusal into a payload's field.
func (r *Resolver) setRefusal(ctx context.Context, field reflect.Value, kept json.RawMessage) error {
	if kept == nil {
		return nil
	}
	var p packedRefusal
	if err := json.Unmarshal(kept, &p); err != nil {
		return fault.Wrap(fault.Internal, err, "a kept refusal cannot be read")
	}
	refusal, err := r.refusal(ctx, p)
	if err != nil {
		return err
	}
	field.Set(reflect.ValueOf(refusal))
	return nil
}

// refusal is a kept refusal as it was, with what it shows as it is now. What is gone by now is no longer shown.
func (r *Resolver) refusal(ctx context.Context, p packedRefusal) (model.Refusal, error) {
	simple := model.SimpleRefusal{Code: p.Code, Message: p.Message}
	if show, shows := showingRefusals[p.Type]; shows {
		refusal, err := show(ctx, r, p)
		if fault.Is(err, fault.NotFound) {
			return simple, nil
		}
		return refusal, err
	}
	plain, known := plainRefusals[p.Type]
	if !known { // kept by a version that knew more
		return simple, nil
	}
	v := reflect.New(plain)
	if err := json.Unmarshal(p.Data, v.Interface()); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a kept refusal cannot be read")
	}
	if decided, ok := v.Interface().(*model.AlreadyDecidedRefusal); ok && decided.DecidedByID != nil {
		if row, err := userKind.row(*decided.DecidedByID); err == nil {
			decided.DecidedByUUID = row
		}
	}
	refusal, _ := v.Elem().Interface().(model.Refusal)
	return refusal, nil
}
