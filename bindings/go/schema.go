//go:build linux && amd64

package jitrun

// schema.go - JSON Schemas of Go types.

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// SchemaOf is the JSON Schema of what encoding/json reads into values of v's type: a struct, or a pointer to one, or
// anything else that has one. Members have the order of the fields. A field is required unless its tag says omitempty
// or it is a pointer, which may be null, too. More tags say more:
//
//	Sky  string  `json:"sky" description:"over the city" enum:"blue,grey"`
//	Wind float64 `json:"wind" minimum:"0" maximum:"200"`
//	Code string  `json:"code" pattern:"^[A-Z]{3}$"`
func SchemaOf(v any) (json.RawMessage, error) {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	w := schemaWriter{names: map[reflect.Type]string{}, used: map[string]bool{}}
	root, err := w.write(t)
	if err != nil || len(w.order) == 0 {
		return root, err
	}
	return w.withDefinitions(root), nil
}

// schemaText is a schema that is given as text, as a map, or as a Go value.
func schemaText(schema any) (json.RawMessage, error) {
	var text []byte
	switch s := schema.(type) {
	case json.RawMessage:
		text = s
	case []byte:
		text = s
	case string:
		text = []byte(s)
	case map[string]any, bool:
		return marshal(s)
	default:
		return SchemaOf(schema)
	}
	if !json.Valid(text) {
		return nil, errorf(ErrArgument, "the schema is no JSON: %.60q", text)
	}
	return text, nil
}

// schemaWriter writes schemas; struct types that contain themselves become definitions.
type schemaWriter struct {
	stack []reflect.Type
	names map[reflect.Type]string
	used  map[string]bool
	order []reflect.Type
	texts map[reflect.Type]string
}

var (
	timeType      = reflect.TypeOf(time.Time{})
	rawType       = reflect.TypeOf(json.RawMessage{})
	numberType    = reflect.TypeOf(json.Number(""))
	textType      = reflect.TypeOf((*encoding.TextUnmarshaler)(nil)).Elem()
	unmarshalType = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
)

func (w *schemaWriter) write(t reflect.Type) (json.RawMessage, error) {
	if t == nil {
		return json.RawMessage("{}"), nil
	}
	switch {
	case t == timeType:
		// Go reads neither a leap second nor a small t or z.
		return json.RawMessage(`{"type":"string","format":"date-time","pattern":` +
			`"^.{10}T.{6}[0-5].*(Z|[+-]..:..)$"}`), nil
	case t == rawType:
		return json.RawMessage("{}"), nil
	case t == numberType:
		return json.RawMessage(`{"type":"number"}`), nil
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(unmarshalType):
		return json.RawMessage("{}"), nil
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(textType):
		return json.RawMessage(`{"type":"string"}`), nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return json.RawMessage(`{"type":"boolean"}`), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer(t.Bits(), true), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integer(t.Bits(), false), nil
	case reflect.Float32, reflect.Float64:
		return json.RawMessage(`{"type":"number"}`), nil
	case reflect.String:
		return json.RawMessage(`{"type":"string"}`), nil
	case reflect.Interface:
		return json.RawMessage("{}"), nil
	case reflect.Pointer:
		inner, err := w.write(t.Elem())
		if err != nil || string(inner) == "{}" {
			return inner, err
		}
		return json.RawMessage(`{"anyOf":[` + string(inner) + `,{"type":"null"}]}`), nil
	case reflect.Slice, reflect.Array:
		return w.list(t)
	case reflect.Map:
		return w.mapped(t)
	case reflect.Struct:
		return w.named(t)
	}
	return nil, errorf(ErrArgument, "%v has no JSON Schema: encoding/json does not read it", t)
}

// integer has the limits that encoding/json would refuse values beyond. Those of 64 bits no reader of schemas needs.
func integer(bits int, signed bool) json.RawMessage {
	switch {
	case signed && bits < 64:
		return json.RawMessage(`{"type":"integer","minimum":` + strconv.FormatInt(-1<<(bits-1), 10) +
			`,"maximum":` + strconv.FormatInt(1<<(bits-1)-1, 10) + `}`)
	case signed:
		return json.RawMessage(`{"type":"integer"}`)
	case bits < 64:
		return json.RawMessage(`{"type":"integer","minimum":0,"maximum":` + strconv.FormatUint(1<<bits-1, 10) + `}`)
	}
	return json.RawMessage(`{"type":"integer","minimum":0}`)
}

// list is of a slice or an array.
func (w *schemaWriter) list(t reflect.Type) (json.RawMessage, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		// base64, as encoding/json has it.
		return json.RawMessage(`{"type":"string","pattern":` +
			`"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}`), nil
	}
	items, err := w.write(t.Elem())
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Slice {
		return json.RawMessage(`{"type":"array","items":` + string(items) + `}`), nil
	}
	n := strconv.Itoa(t.Len())
	return json.RawMessage(`{"type":"array","items":` + string(items) + `,"minItems":` + n + `,"maxItems":` + n + `}`), nil
}

// mapped is of a map; keys that are numbers have members that look like numbers.
func (w *schemaWriter) mapped(t reflect.Type) (json.RawMessage, error) {
	values, err := w.write(t.Elem())
	if err != nil {
		return nil, err
	}
	key := t.Key()
	switch {
	case key.Kind() == reflect.String || reflect.PointerTo(key).Implements(textType):
		return json.RawMessage(`{"type":"object","additionalProperties":` + string(values) + `}`), nil
	case key.Kind() >= reflect.Int && key.Kind() <= reflect.Uintptr:
		sign, digits := "", len(strconv.FormatUint(1<<(key.Bits()-1)-1, 10))-1
		if key.Kind() <= reflect.Int64 {
			sign = "-?"
		}
		return json.RawMessage(`{"type":"object","patternProperties":{"^` + sign + `[0-9]{1,` + strconv.Itoa(digits) +
			`}$":` + string(values) + `},"additionalProperties":false}`), nil
	}
	return nil, errorf(ErrArgument, "%v has no JSON Schema: encoding/json does not read keys of type %v", t, key)
}

// named is of a struct; one that contains itself is a reference.
func (w *schemaWriter) named(t reflect.Type) (json.RawMessage, error) {
	for _, outer := range w.stack {
		if outer == t && w.names[t] == "" {
			name := t.Name()
			for i := 2; w.used[name]; i++ {
				name = t.Name() + strconv.Itoa(i)
			}
			w.names[t], w.used[name] = name, true
			w.order = append(w.order, t)
		}
	}
	if name := w.names[t]; name != "" {
		return json.RawMessage(`{"$ref":"#/$defs/` + name + `"}`), nil
	}
	w.stack = append(w.stack, t)
	text, err := w.members(t)
	w.stack = w.stack[:len(w.stack)-1]
	if err != nil || w.names[t] == "" {
		return text, err
	}
	if w.texts == nil {
		w.texts = map[reflect.Type]string{}
	}
	w.texts[t] = string(text)
	return json.RawMessage(`{"$ref":"#/$defs/` + w.names[t] + `"}`), nil
}

// withDefinitions puts the definitions behind the root.
func (w *schemaWriter) withDefinitions(root json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	out.Write(root[:len(root)-1])
	out.WriteString(`,"$defs":{`)
	for i, t := range w.order {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + w.names[t] + `":` + w.texts[t])
	}
	out.WriteString(`}}`)
	return out.Bytes()
}

// member is a field as encoding/json reads it.
type member struct {
	name           string
	field          reflect.StructField
	depth          int
	tagged         bool
	omitted, texts bool // the options omitempty and string
}

// members writes a struct's members.
func (w *schemaWriter) members(t reflect.Type) (json.RawMessage, error) {
	var properties, required []string
	for _, m := range visible(membersOf(t, 0, nil)) {
		text, err := w.memberSchema(m)
		if err != nil {
			return nil, err
		}
		name, err := marshal(m.name)
		if err != nil {
			return nil, err
		}
		properties = append(properties, string(name)+":"+string(text))
		if !m.omitted && m.field.Type.Kind() != reflect.Pointer {
			required = append(required, string(name))
		}
	}
	out := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}`
	if len(required) > 0 {
		out += `,"required":[` + strings.Join(required, ",") + `]`
	}
	return json.RawMessage(out + `,"additionalProperties":false}`), nil
}

// membersOf are the fields of a struct with those of structs embedded in it.
func membersOf(t reflect.Type, depth int, within []reflect.Type) []member {
	for _, outer := range within {
		if outer == t {
			return nil
		}
	}
	within = append(within, t)
	var out []member
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if f.Anonymous && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if tag == "-" || !f.IsExported() && !(f.Anonymous && inner.Kind() == reflect.Struct) {
			continue
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			out = append(out, membersOf(inner, depth+1, within)...)
			continue
		}
		m := member{name: name, field: f, depth: depth, tagged: name != ""}
		if name == "" {
			m.name = f.Name
		}
		for _, option := range strings.Split(options, ",") {
			m.omitted = m.omitted || option == "omitempty"
			m.texts = m.texts || option == "string"
		}
		out = append(out, m)
	}
	return out
}

// visible leaves, of several fields with one name, the one that encoding/json takes: the outermost, and of several of
// these the one whose tag has the name; none where that is not one.
func visible(all []member) []member {
	better := func(a, b member) bool { return a.depth < b.depth || a.depth == b.depth && a.tagged && !b.tagged }
	var out []member
	for i, m := range all {
		best := true
		for j, other := range all {
			if i != j && other.name == m.name && !better(m, other) {
				best = false
			}
		}
		if best {
			out = append(out, m)
		}
	}
	return out
}

func (w *schemaWriter) memberSchema(m member) (json.RawMessage, error) {
	text, err := w.write(m.field.Type)
	if err != nil {
		return nil, errorf(ErrArgument, "the field %s: %v", m.field.Name, err)
	}
	if m.texts {
		if text, err = asText(m, text); err != nil {
			return nil, err
		}
	}
	var more []string
	add := func(keyword, value string, err error) error {
		if err != nil {
			return errorf(ErrArgument, "the field %s has a tag %s that is none: %v", m.field.Name, keyword, err)
		}
		more = append(more, `"`+keyword+`":`+value)
		return nil
	}
	for _, keyword := range []string{"description", "pattern"} {
		if value, ok := m.field.Tag.Lookup(keyword); ok {
			quoted, err := marshal(value)
			if err = add(keyword, string(quoted), err); err != nil {
				return nil, err
			}
		}
	}
	for _, keyword := range []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"} {
		if value, ok := m.field.Tag.Lookup(keyword); ok {
			var number json.Number
			if err = add(keyword, value, json.Unmarshal([]byte(value), &number)); err != nil {
				return nil, err
			}
		}
	}
	if value, ok := m.field.Tag.Lookup("enum"); ok {
		list, err := enumOf(m.field.Type, value)
		if err = add("enum", list, err); err != nil {
			return nil, err
		}
	}
	return withKeywords(text, more), nil
}

// withKeywords adds keywords to a schema. Behind a reference or an anyOf they hold as well: all of them do.
func withKeywords(schema json.RawMessage, more []string) json.RawMessage {
	if len(more) == 0 {
		return schema
	}
	var own map[string]json.RawMessage
	json.Unmarshal(schema, &own)
	var fresh, again []string
	for _, one := range more {
		name, _, _ := strings.Cut(one[1:], `"`)
		if _, there := own[name]; there {
			again = append(again, one)
		} else {
			fresh = append(fresh, one)
		}
	}
	if len(again) > 0 {
		fresh = append(fresh, `"allOf":[{`+strings.Join(again, ",")+`}]`)
	}
	start := string(schema[:len(schema)-1])
	if len(own) > 0 {
		start += ","
	}
	return json.RawMessage(start + strings.Join(fresh, ",") + "}")
}

// enumOf are the values of a tag, with commas between.
func enumOf(t reflect.Type, values string) (string, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var out []string
	for _, value := range strings.Split(values, ",") {
		if t.Kind() == reflect.String {
			quoted, err := marshal(value)
			if err != nil {
				return "", err
			}
			out = append(out, string(quoted))
			continue
		}
		if err := json.Unmarshal([]byte(value), reflect.New(t).Interface()); err != nil {
			return "", err
		}
		out = append(out, value)
	}
	return "[" + strings.Join(out, ",") + "]", nil
}

// asText is for the option string: a number or a bool within a text.
func asText(m member, schema json.RawMessage) (json.RawMessage, error) {
	t := m.field.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	pattern := ""
	switch k := t.Kind(); {
	case k == reflect.Bool:
		pattern = "true|false"
	case k >= reflect.Int && k <= reflect.Int64:
		pattern = "0|-?[1-9][0-9]{0," + strconv.Itoa(len(strconv.FormatUint(1<<(t.Bits()-1)-1, 10))-2) + "}"
	case k >= reflect.Uint && k <= reflect.Uintptr:
		pattern = "0|[1-9][0-9]{0," + strconv.Itoa(len(strconv.FormatUint(1<<(t.Bits()-1)-1, 10))-2) + "}"
	case k == reflect.Float32 || k == reflect.Float64:
		pattern = "-?(0|[1-9][0-9]{0,30})([.][0-9]{1,30})?"
	case k == reflect.String:
		return nil, errorf(ErrArgument, "the field %s is a text within a text, which has no JSON Schema", m.field.Name)
	default:
		return schema, nil // encoding/json ignores the option
	}
	return json.RawMessage(`{"type":"string","pattern":"^(` + pattern + `)$"}`), nil
}
