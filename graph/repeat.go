package graph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/countersign/countersign/graph/generated"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/once"
	"github.com/countersign/countersign/internal/run"
)

// What a mutation does with its idempotencyKey (RULES R18) is here, for all of them: a mutation needs an input with the field, and every type that its
// payload shows needs its line in objects, or it is plain data.

// repeatable puts the idempotency keys around the mutations of an operation.
func (r *Resolver) repeatable(next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		return next(ctx, func(ctx context.Context) (any, error) {
			field := graphql.GetFieldContext(ctx)
			if field.Object != "Mutation" {
				return resolve(ctx)
			}
			input := reflect.ValueOf(field.Args["input"])
			key, given := keyIn(input)
			if !given || caller(ctx).IsNobody() { // whoever is not signed in is told so by the use case
				return resolve(ctx)
			}
			if err := checkKey(key); err != nil {
				return nil, err
			}
			return r.once(ctx, field.Field.Name, key, input, resolve)
		})
	}
}

// once carries a mutation out under its key, or answers what it came to before.
func (r *Resolver) once(ctx context.Context, mutation, key string, input reflect.Value, resolve graphql.Resolver) (any, error) {
	digest, err := inputDigest(input)
	if err != nil {
		return nil, err
	}
	request := once.Request{Actor: caller(ctx).ID, Mutation: mutation, Key: key, Input: digest, Pack: func(refused *fault.Refused) json.RawMessage {
		return mustPack(packRefusal(toRefusal(refused)))
	}}
	var payload any
	before, repeated, err := r.Keys.Do(ctx, request, func(ctx context.Context) (json.RawMessage, error) {
		var err error
		if payload, err = resolve(ctx); err != nil {
			return nil, err
		}
		return packPayload(payload)
	})
	if err != nil || !repeated {
		return payload, err
	}
	return r.repeat(ctx, mutation, input, before)
}

// keyIn is the idempotencyKey of an input.
func keyIn(input reflect.Value) (string, bool) {
	field := input.FieldByName("IdempotencyKey")
	if !field.IsValid() || field.IsNil() {
		return "", false
	}
	return field.Elem().String(), true
}

func checkKey(key string) error {
	if key == "" || len(key) > 200 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.New(fault.BadInput, "idempotencyKey must be 1 to 200 visible ASCII characters.")
	}
	return nil
}

// inputDigest names an input, whatever its key and whatever the client wants echoed.
func inputDigest(input reflect.Value) (string, error) {
	said := map[string]any{}
	for name, value := range fieldsOf(input) {
		if omittable, ok := value.Interface().(interface{ IsSet() bool }); ok && !omittable.IsSet() {
			continue
		}
		said[name] = value.Interface()
	}
	delete(said, "idempotencyKey")
	delete(said, "clientMutationId")
	b, err := json.Marshal(said)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "an input cannot be written as JSON")
	}
	sum := sha256.Sum256(run.CanonicalJSON(b))
	return hex.EncodeToString(sum[:]), nil
}

// fieldsOf are the fields of a struct by the names that they have in the schema.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		out[name] = v.Field(i)
	}
	return out
}

// packedPayload is a payload as it is kept: names of objects, which are read again, plain data, and the refusal.
type packedPayload struct {
	Objects map[string]string          `json:"objects,omitempty"`
	Data    map[string]json.RawMessage `json:"data,omitempty"`
	Refusal json.RawMessage            `json:"refusal,omitempty"`
}

// notKept are the fields of payloads that a repetition does not get: a secret is shown once, and what is echoed comes with the request.
var notKept = map[string]bool{"secret": true, "clientMutationId": true, "refusal": true}

func packPayload(payload any) (json.RawMessage, error) {
	v := reflect.ValueOf(payload)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, fault.New(fault.Internal, "a mutation answered with %T instead of its payload", payload)
	}
	packed := packedPayload{Objects: map[string]string{}, Data: map[string]json.RawMessage{}}
	fields := fieldsOf(v.Elem())
	for name, value := range fields {
		if notKept[name] || value.IsZero() {
			continue
		}
		if object, known := objects[value.Type()]; known {
			packed.Objects[name] = object.name(value.Interface())
			continue
		}
		packed.Data[name] = mustPack(value.Interface())
	}
	if refusal := fields["refusal"]; !refusal.IsNil() {
		packed.Refusal = mustPack(packRefusal(refusal.Interface()))
	}
	return mustPack(packed), nil
}

// mustPack writes a value of ours as JSON.
func mustPack(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("graph: %T cannot be kept: %v", v, err))
	}
	return b
}

// payloadOf makes an empty payload of a mutation.
func payloadOf(mutation string) reflect.Value {
	resolvers := reflect.TypeFor[generated.MutationResolver]()
	for i := range resolvers.NumMethod() {
		if m := resolvers.Method(i); strings.EqualFold(m.Name, mutation) {
			return reflect.New(m.Type.Out(0).Elem())
		}
	}
	panic("graph: there is no mutation " + mutation)
}

// repeat answers a mutation from what it came to before.
func (r *Resolver) repeat(ctx context.Context, mutation string, input reflect.Value, before once.Result) (any, error) {
	payload := payloadOf(mutation)
	fields := fieldsOf(payload.Elem())
	fields["clientMutationId"].Set(input.FieldByName("ClientMutationID"))
	if before.Answer == nil {
		if before.Effect.Refusal == nil {
			return payload.Interface(), r.recover(ctx, fields, input, before.Effect)
		}
		return payload.Interface(), r.setRefusal(ctx, fields["refusal"], before.Effect.Refusal)
	}
	var packed packedPayload
	if err := json.Unmarshal(before.Answer, &packed); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a kept answer cannot be read")
	}
	for name, ref := range packed.Objects {
		if err := r.setObject(ctx, fields[name], input, ref); err != nil {
			return nil, err
		}
	}
	for name, data := range packed.Data {
		if err := json.Unmarshal(data, fields[name].Addr().Interface()); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "a kept answer cannot be read")
		}
	}
	return payload.Interface(), r.setRefusal(ctx, fields["refusal"], packed.Refusal)
}

// setObject reads an object again. One that is gone by now is null.
func (r *Resolver) setObject(ctx context.Context, field, input reflect.Value, ref string) error {
	if ref == "" {
		return nil
	}
	now, err := objects[field.Type()].read(ctx, r, input, ref)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if value := reflect.ValueOf(now); value.IsValid() {
		field.Set(value)
	}
	return nil
}

// recover answers a mutation whose server died between its effect and its answer: the rows that were written and the input name the objects, and a
// mutation that says whether it made the difference did.
func (r *Resolver) recover(ctx context.Context, fields map[string]reflect.Value, input reflect.Value, effect change.Effect) error {
	for name, field := range fields {
		object, known := objects[field.Type()]
		switch {
		case notKept[name]:
		case known:
			ref, err := object.written(ctx, r, input, effect)
			if err == nil {
				err = r.setObject(ctx, field, input, ref)
			}
			if err != nil {
				return err
			}
		case name == "deletedId":
			if id := deletedBy(input, effect); id != "" {
				field.Set(reflect.ValueOf(&id))
			}
		case field.Type() == reflect.TypeFor[*bool]():
			made := true
			field.Set(reflect.ValueOf(&made))
		}
	}
	return nil
}
