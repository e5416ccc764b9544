package servertest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// object is a JSON object that keeps the order of its members.
type object struct {
	names  []string
	values map[string]any
}

func newObject() *object { return &object{values: map[string]any{}} }

func (o *object) set(name string, value any) {
	o.names = append(o.names, name)
	o.values[name] = value
}

// MarshalJSON writes the members in the order in which they were set.
func (o *object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	for i, name := range o.names {
		value, err := json.Marshal(o.values[name])
		if err != nil {
			return nil, err
		}
		buf.WriteByte("{,"[min(i, 1)])
		buf.WriteString(`"` + name + `":`)
		buf.Write(value)
	}
	if len(o.names) == 0 {
		buf.WriteByte('{')
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// reflected answers an introspection query from gqlgen's introspection values: what
// generated code does field by field, by reflection.
func reflected(op *graphql.OperationContext, value any, selections ast.SelectionSet) any {
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			element := v.Index(i)
			if element.Kind() == reflect.Struct {
				element = element.Addr()
			}
			out[i] = reflected(op, element.Interface(), selections)
		}
		return out
	case len(selections) == 0:
		return value
	}
	out := newObject()
	typeName := "__" + v.Elem().Type().Name()
	for _, field := range graphql.CollectFields(op, selections, []string{typeName}) {
		if field.Name == "__typename" {
			out.set(field.Alias, typeName)
			continue
		}
		out.set(field.Alias, reflected(op, member(v, field.Name), field.Selections))
	}
	return out
}

// member is the method or struct field behind a field of the introspection schema.
// Deprecated elements are always shown.
func member(v reflect.Value, name string) any {
	name = strings.ToUpper(name[:1]) + name[1:]
	if method := v.MethodByName(name); method.IsValid() {
		arguments := make([]reflect.Value, method.Type().NumIn())
		for i := range arguments {
			arguments[i] = reflect.ValueOf(true)
		}
		return method.Call(arguments)[0].Interface()
	}
	return v.Elem().FieldByName(name).Interface()
}
