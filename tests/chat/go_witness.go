// tests/chat/go_witness.go - what Go's own text/template makes of the lines that go_cases reads, for t_go_template.sh.
//
// Values have the types, and templates are driven in the way, that docs/presets.md tells of ollama.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

// Names of types are as long as those of ollama's with their packages, since printf writes them and len counts them.

// ---- objects that keep the order of their members

type orderedMapOfProp struct {
	keys []string
	of   map[string]oneProperty
}

func (o *orderedMapOfProp) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	o.of = map[string]oneProperty{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var p oneProperty
		if err := d.Decode(&p); err != nil {
			return err
		}
		if _, had := o.of[key.(string)]; !had {
			o.keys = append(o.keys, key.(string))
		}
		o.of[key.(string)] = p
	}
	return nil
}

func (o orderedMapOfProp) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, key := range o.keys {
		k, _ := json.Marshal(key)
		v, err := json.Marshal(o.of[key])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%c%s:%s", "{,"[map[bool]int{false: 0, true: 1}[i > 0]], k, v)
	}
	if len(o.keys) == 0 {
		return []byte("{}"), nil
	}
	return append(b.Bytes(), '}'), nil
}

func (o *orderedMapOfProp) Len() int {
	if o == nil {
		return 0
	}
	return len(o.keys)
}

func (o *orderedMapOfProp) ToMap() map[string]oneProperty {
	if o == nil {
		return nil
	}
	return o.of
}

// ---- tools

type typesOfJSON []string

func (t *typesOfJSON) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = typesOfJSON{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

func (t typesOfJSON) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

func (t typesOfJSON) String() string {
	switch len(t) {
	case 0:
		return ""
	case 1:
		return t[0]
	}
	return fmt.Sprint([]string(t))
}

type oneProperty struct {
	AnyOf       []oneProperty     `json:"anyOf,omitempty"`
	Type        typesOfJSON       `json:"type,omitempty"`
	Items       any               `json:"items,omitempty"`
	Description string            `json:"description,omitempty"`
	Enum        []any             `json:"enum,omitempty"`
	Properties  *orderedMapOfProp `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
}

func (p oneProperty) ToTypeScriptType() string {
	var all []string
	for _, one := range p.AnyOf {
		all = append(all, one.ToTypeScriptType())
	}
	if len(all) == 0 {
		words := map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean",
			"array": "any[]", "object": "Record<string, any>", "null": "null"}
		for _, t := range p.Type {
			word := words[t]
			if word == "" {
				word = "any"
			}
			all = append(all, word)
		}
	}
	if len(all) == 0 {
		return "any"
	}
	return strings.Join(all, " | ")
}

func asJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

type propertiesOfParameters map[string]oneProperty

func (p propertiesOfParameters) String() string {
	if p == nil {
		return "{}"
	}
	return asJSON(p)
}

type parametersOfTheFunctionOfAToolHere struct {
	Type       string                 `json:"type"`
	Defs       any                    `json:"$defs,omitempty"`
	Items      any                    `json:"items,omitempty"`
	Required   []string               `json:"required,omitempty"`
	Properties propertiesOfParameters `json:"properties"`
}

type oneTemplatesTool struct {
	Type     string `json:"type"`
	Items    any    `json:"items,omitempty"`
	Function struct {
		Name        string                             `json:"name"`
		Description string                             `json:"description"`
		Parameters  parametersOfTheFunctionOfAToolHere `json:"parameters"`
	} `json:"function"`
}

func (t oneTemplatesTool) String() string { return asJSON(t) }

type manyTemplateTools []oneTemplatesTool

func (t manyTemplateTools) String() string { return asJSON(t) }

// What tools are read as: their parameters' properties are an object in its order first.
type givenTool struct {
	Type     string
	Items    any
	Function struct {
		Name        string
		Description string
		Parameters  struct {
			Type       string
			Defs       any `json:"$defs"`
			Items      any
			Required   []string
			Properties *orderedMapOfProp
		}
	}
}

func toolsOf(given []givenTool) manyTemplateTools {
	if given == nil {
		return nil
	}
	all := manyTemplateTools{}
	for _, g := range given {
		t := oneTemplatesTool{Type: g.Type, Items: g.Items}
		t.Function.Name = g.Function.Name
		t.Function.Description = g.Function.Description
		p := g.Function.Parameters
		t.Function.Parameters = parametersOfTheFunctionOfAToolHere{p.Type, p.Defs, p.Items, p.Required, propertiesOfParameters(p.Properties.ToMap())}
		all = append(all, t)
	}
	return all
}

// ---- messages

type argumentsOfACall map[string]any

func (a argumentsOfACall) String() string {
	if a == nil {
		return "{}"
	}
	return asJSON(a)
}

type functionOfACallOfTheTemplate struct {
	Index     int
	Name      string
	Arguments argumentsOfACall
}

type callOfATemplatesTool struct {
	ID       string
	Function functionOfACallOfTheTemplate
}

type oneTemplatesMessage struct {
	Role, Content, Thinking string
	Images                  [][]byte
	ToolCalls               []callOfATemplatesTool
	ToolName, ToolCallID    string
}

type givenMessage struct {
	Role, Content, Thinking string
	ToolCalls               []struct {
		ID       string
		Function struct {
			Index     int
			Name      string
			Arguments map[string]any
		}
	} `json:"tool_calls"`
	ToolName   string `json:"tool_name"`
	ToolCallID string `json:"tool_call_id"`
}

// Neighbours of one role are one message, but for results of tools.
func collate(given []givenMessage) (system string, all []*oneTemplatesMessage) {
	var systems []string
	for _, g := range given {
		role := strings.ToLower(g.Role)
		if role == "system" {
			systems = append(systems, g.Content)
		}
		if n := len(all); n > 0 && all[n-1].Role == role && role != "tool" {
			all[n-1].Content += "\n\n" + g.Content
			continue
		}
		m := &oneTemplatesMessage{Role: role, Content: g.Content, Thinking: g.Thinking, ToolName: g.ToolName, ToolCallID: g.ToolCallID}
		for _, c := range g.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, callOfATemplatesTool{c.ID, functionOfACallOfTheTemplate{c.Function.Index, c.Function.Name, c.Function.Arguments}})
		}
		all = append(all, m)
	}
	return strings.Join(systems, "\n\n"), all
}

// ---- what a template looks at

func names(n parse.Node, see func(string)) {
	list := func(l *parse.ListNode) {
		if l != nil {
			for _, n := range l.Nodes {
				names(n, see)
			}
		}
	}
	branch := func(b *parse.BranchNode) {
		names(b.Pipe, see)
		list(b.List)
		list(b.ElseList)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		list(n)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			names(n.Pipe, see)
		}
	case *parse.ActionNode:
		names(n.Pipe, see)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			for _, a := range c.Args {
				names(a, see)
			}
		}
	case *parse.FieldNode:
		for _, name := range n.Ident {
			see(strings.ToLower(name))
		}
	case *parse.VariableNode:
		for _, name := range n.Ident {
			see(strings.ToLower(name))
		}
	}
}

// Whether the action has .Response for an operand.
func writes(p *parse.PipeNode) bool {
	for _, c := range p.Cmds {
		for _, a := range c.Args {
			switch a := a.(type) {
			case *parse.PipeNode:
				if writes(a) {
					return true
				}
			case *parse.FieldNode:
				for _, name := range a.Ident {
					if name == "Response" {
						return true
					}
				}
			}
		}
	}
	return false
}

// The list without what stands behind .Response.
func cut(l *parse.ListNode, over *bool) {
	if l == nil {
		return
	}
	kept := l.Nodes[:0:0]
	for _, n := range l.Nodes {
		if *over {
			break
		}
		kept = append(kept, n)
		switch n := n.(type) {
		case *parse.ActionNode:
			*over = writes(n.Pipe)
		case *parse.IfNode:
			cut(n.List, over)
			cut(n.ElseList, over)
		case *parse.RangeNode:
			cut(n.List, over)
			cut(n.ElseList, over)
		case *parse.WithNode:
			cut(n.List, over)
			cut(n.ElseList, over)
		}
	}
	l.Nodes = kept
}

// ---- a line

type given struct {
	Template       string
	Messages       []givenMessage
	Tools          []givenTool
	Think          *bool
	Effort         string
	Prompt, Suffix string
}

func thinking(g given, m map[string]any) map[string]any {
	think := g.Think != nil && *g.Think || g.Think == nil && g.Effort != "" && g.Effort != "none"
	level := ""
	if think {
		level = "medium"
		if g.Effort != "" {
			level = g.Effort
		}
	}
	m["Think"], m["ThinkLevel"], m["IsThinkSet"] = think, level, g.Think != nil || g.Effort != ""
	return m
}

func parsed(text string) (*template.Template, map[string]bool, error) {
	day := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	t, err := template.New("").Option("missingkey=zero").Funcs(template.FuncMap{
		"json":          asJSON,
		"currentDate":   func(...string) string { return day.Format("2006-01-02") },
		"yesterdayDate": func(...string) string { return day.AddDate(0, 0, -1).Format("2006-01-02") },
		"toTypeScriptType": func(v any) string {
			if p, ok := v.(oneProperty); ok {
				return p.ToTypeScriptType()
			}
			return "any"
		},
	}).Parse(text)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, one := range t.Templates() {
		names(one.Root, func(name string) { seen[name] = true })
	}
	return t, seen, nil
}

func render(g given) (string, error) {
	var b bytes.Buffer
	t, seen, err := parsed(g.Template)
	if err != nil {
		return "", err
	}
	ends := !seen["messages"] && !seen["response"]
	if len(g.Messages) == 0 && g.Prompt != "" && g.Suffix != "" {
		err = t.Execute(&b, thinking(g, map[string]any{"Prompt": g.Prompt, "Suffix": g.Suffix, "Response": ""}))
		return b.String(), err
	}
	system, messages := collate(g.Messages)
	if seen["messages"] {
		err = t.Execute(&b, thinking(g, map[string]any{"System": system, "Messages": messages,
			"Tools": toolsOf(g.Tools), "Response": ""}))
		return b.String(), err
	}
	var prompt, response string
	system = ""
	turn := func() {
		if err == nil {
			err = t.Execute(&b, thinking(g, map[string]any{"System": system, "Prompt": prompt, "Response": response}))
			if ends {
				b.WriteString(response)
			}
		}
		system, prompt, response = "", "", ""
	}
	for _, m := range messages {
		switch m.Role {
		case "system":
			if prompt != "" || response != "" {
				turn()
			}
			system = m.Content
		case "user":
			if response != "" {
				turn()
			}
			prompt = m.Content
		case "assistant":
			response = m.Content
		}
	}
	over := false
	cut(t.Root, &over)
	t.Option("missingkey=default")
	turn()
	return b.String(), err
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		var g given
		answer := map[string]string{}
		if e := json.Unmarshal(line, &g); e != nil {
			answer["error"] = e.Error()
		} else if text, e := render(g); e != nil {
			answer["error"] = e.Error()
		} else {
			answer["text"] = text
		}
		if out.Encode(answer) != nil {
			os.Exit(1)
		}
	}
}
