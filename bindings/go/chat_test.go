//go:build linux && amd64

package jitrun

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"
)

const chatML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}" +
	"{% for c in m.tool_calls %}[{{ c.function.name }}:{{ c.function.arguments.sky }}]{% endfor %}<|im_end|>\n" +
	"{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

type weather struct {
	Sky string `json:"sky" enum:"blue,grey"`
}

var weatherTool = Tool{Name: "weather", Description: "a < b", Parameters: weather{}}

func TestConversations(t *testing.T) {
	m := openModel(t)
	chat := &Chat{Template: chatML, Messages: []Message{System("a \"b\" \\ \x01 \n <c>"), User("Hello")}, MaxTokens: 12}
	p, err := m.Render(chat)
	ok(t, err)
	if !strings.Contains(p.Text, "a \"b\" \\ \x01 \n <c>") || !strings.HasSuffix(p.Text, "assistant\n") || len(p.IDs) == 0 {
		t.Fatal(p)
	}
	unfinished := *chat
	unfinished.Unfinished = true
	q, err := m.Render(&unfinished)
	ok(t, err)
	same(t, "without an answer's beginning", q.Text+"<|im_start|>assistant\n", p.Text)
	_, err = m.Render(&Chat{Template: chatML, Messages: []Message{{Raw: json.RawMessage("{")}}})
	want(t, err, ErrArgument)
	more, err := m.Render(&Chat{
		Template: "{{ x.y }} {{ strftime_now('%Y') }} {% for t in tools %}{{ t.function.description }}{% endfor %}",
		Messages: chat.Messages, Tools: []Tool{weatherTool},
		Variables: map[string]any{"x": map[string]any{"y": 7}}, Now: time.Unix(86400*400, 0)})
	ok(t, err)
	same(t, "variables, time and tools", more.Text, "7 1971 a < b")

	s := openSession(t, m)
	stream := s.Chat(ctx, chat)
	told := ""
	for stream.Next() {
		if e := stream.Event(); e.Kind == EventText {
			told += e.Text
		}
	}
	ok(t, stream.Err())
	reply, err := stream.Reply()
	ok(t, err)
	if told != reply.Text || len(reply.IDs) == 0 || len(reply.IDs) > 12 || reply.Finish == FinishNone {
		t.Fatalf("%q %+v", told, reply)
	}
	before, err := s.Stats()
	ok(t, err)
	chat.Messages = append(chat.Messages, reply.Message(), User("And?"))
	chat.Tools, chat.Function, chat.MaxTokens = []Tool{weatherTool}, "weather", 100
	reply, err = s.Chat(ctx, chat).Reply()
	ok(t, err)
	after, err := s.Stats()
	ok(t, err)
	whole, err := m.Render(chat)
	ok(t, err)
	if n := after.PromptTokens - before.PromptTokens; n >= uint64(len(whole.IDs)) {
		t.Fatalf("%d tokens of %d are computed again", n, len(whole.IDs))
	}
	if len(reply.Calls) != 1 || reply.Calls[0].Name != "weather" || !reply.Calls[0].Whole || reply.Finish != FinishCalls {
		t.Fatalf("%+v", reply)
	}
	var got weather
	ok(t, reply.Calls[0].Decode(&got))
	if got.Sky != "blue" && got.Sky != "grey" {
		t.Fatal(got)
	}
	chat.Messages = append(chat.Messages, reply.Message(), ToolResult(reply.Calls[0], "it is grey"))
	p, err = m.Render(chat)
	ok(t, err)
	if !strings.Contains(p.Text, "[weather:"+got.Sky+"]") || !strings.Contains(p.Text, "it is grey") {
		t.Fatal(p.Text)
	}
	chat.Template = strings.ReplaceAll(chatML, "arguments.sky", "arguments | replace('x', 'y')")
	_, err = m.Render(chat)
	ok(t, err)
	chat.Template = chatML
	chat.Function = "no such tool"
	_, err = s.Chat(ctx, chat).Reply()
	want(t, err, ErrArgument, "no such tool")
	chat.Function, chat.Tools = "", nil
	chat.Schema = struct {
		Colour string `json:"colour" enum:"red,green"`
		Ready  bool   `json:"ready"`
	}{}
	reply, err = s.Chat(ctx, chat).Reply()
	ok(t, err)
	var value map[string]any
	ok(t, reply.Decode(&value))
	if len(value) != 2 || strings.Index(reply.Text, "colour") > strings.Index(reply.Text, "ready") {
		t.Fatal(reply.Text)
	}
	chat.MaxTokens = 2
	reply, err = s.Chat(ctx, chat).Reply()
	ok(t, err)
	want(t, reply.Decode(&value), ErrFormat, "cut off")
	chat.Schema, chat.MaxTokens = nil, 200
	grammar := Regex("[ab]{4}")
	chat.Grammar = &grammar
	reply, err = s.Chat(ctx, chat).Reply()
	ok(t, err)
	if len(reply.Text) != 4 || reply.Finish != FinishStop {
		t.Fatal(reply)
	}
	chat.ForceCall, chat.Tools = true, []Tool{weatherTool}
	_, err = s.Chat(ctx, chat).Reply()
	want(t, err, ErrArgument, "two grammars")
	stream = s.Chat(ctx, &Chat{Template: chatML, Messages: chat.Messages})
	ok(t, stream.Close())
	_, err = stream.Reply()
	want(t, err, ErrClosed)
	_, err = s.Chat(ctx, &Chat{Template: chatML, Messages: chat.Messages, MaxTokens: -1}).Reply()
	want(t, err, ErrArgument, "MaxTokens")
}

func TestAnswers(t *testing.T) {
	m := openModel(t)
	options := AnswerOptions{Tools: []Tool{weatherTool}, Template: chatML, ID: "nr"}
	const said = `Well. <tool_call>{"name": "weather", "arguments": {"sky": "blue"}}</tool_call>`
	message, err := m.ParseAnswer(said, options, false)
	ok(t, err)
	same(t, "the message", message, Message{Role: "assistant", Content: "Well. ",
		Calls: []ToolCall{{"nr_0", "weather", `{"sky":"blue"}`, true}}})
	text, err := json.Marshal(message)
	ok(t, err)
	var again Message
	ok(t, json.Unmarshal(text, &again))
	same(t, "a message in JSON and back", again, message)
	if err := json.Unmarshal([]byte(`{"role":"user","content":[]}`), &again); err == nil {
		t.Fatal("content that is no text is read")
	}
	for _, cut := range []bool{false, true} {
		a, err := m.NewAnswer(options)
		ok(t, err)
		var r Reply
		for i := range said[:len(said)-14] {
			events, err := a.FeedToken(said[i:i+1], -1)
			ok(t, err)
			for _, e := range events {
				r.take(e)
			}
		}
		rest, err := a.Finish(cut)
		ok(t, err)
		for _, e := range rest {
			r.take(e)
		}
		if len(r.Calls) != 1 || r.Calls[0].Whole == cut && r.Calls[0].Arguments == "" {
			t.Fatalf("%+v", r)
		}
		_, err = a.Feed("more")
		want(t, err, ErrArgument)
		ok(t, a.Close())
		ok(t, a.Close())
		_, err = a.Feed("more")
		want(t, err, ErrClosed)
	}
}

type node struct {
	Name     string           `json:"name"`
	Children []node           `json:"children,omitempty"`
	Next     *other           `json:"next"`
	Named    map[string]*node `json:"named,omitempty"`
}

type other struct {
	Back *node `json:"back,omitempty"`
}

type base struct {
	Common string
	Hidden int `json:"-"`
	Both   int
	secret int
}

type everything struct {
	base
	*other
	B     bool                `json:"b"`
	I8    int8                `json:"i8"`
	U16   uint16              `json:"u16"`
	I64   int64               `json:"i64"`
	U64   uint64              `json:"u64"`
	F     float32             `json:"f" minimum:"0" maximum:"1"`
	S     string              `json:"s" pattern:"^[a-c]{1,3}$" description:"a \"word\""`
	Bytes []byte              `json:"bytes"`
	List  []int8              `json:"list" minItems:"1" maxItems:"2"`
	Two   [2]bool             `json:"two"`
	Map   map[string]bool     `json:"map,omitempty"`
	ByInt map[int16]bool      `json:"by_int,omitempty"`
	Time  time.Time           `json:"time"`
	Any   any                 `json:"any,omitempty"`
	Raw   json.RawMessage     `json:"raw,omitempty"`
	Maybe *uint8              `json:"maybe"`
	Text  int16               `json:"text,string"`
	Level int                 `json:"level" enum:"1,2,3"`
	Inner struct{ X, Y int8 } `json:"inner"`
	Both  int8
}

func TestSchemaText(t *testing.T) {
	for _, one := range []struct {
		value any
		text  string
	}{
		{struct {
			A int8   `json:"a"`
			B string `json:"b,omitempty"`
		}{}, `{"type":"object","properties":{"a":{"type":"integer","minimum":-128,"maximum":127},"b":{"type":"string"}},` +
			`"required":["a"],"additionalProperties":false}`},
		{nil, `{}`},
		{[2]bool{}, `{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2}`},
		{map[string]any{}, `{"type":"object","additionalProperties":{}}`},
		{&other{}, `{"$ref":"#/$defs/other","$defs":{"other":{"type":"object","properties":{"back":{"anyOf":[{"type":` +
			`"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}},` +
			`"next":{"anyOf":[{"$ref":"#/$defs/other"},{"type":"null"}]},"named":{"type":"object","additionalProperties":` +
			`{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}}},"required":["name"],"additionalProperties":false},` +
			`{"type":"null"}]}},"additionalProperties":false}}}`},
	} {
		got, err := SchemaOf(one.value)
		ok(t, err)
		if _, is := one.value.(*other); is {
			var schema map[string]any
			ok(t, json.Unmarshal(got, &schema))
			if definitions := schema["$defs"].(map[string]any); len(definitions) != 2 {
				t.Fatal(string(got))
			}
			continue
		}
		same(t, "a schema", string(got), one.text)
	}
	for _, bad := range []any{func() {}, struct{ C chan int }{}, struct {
		X int `minimum:"much"`
	}{}, struct {
		X int `enum:"one"`
	}{}, struct {
		X string `json:",string"`
	}{}, map[bool]int{}} {
		_, err := SchemaOf(bad)
		want(t, err, ErrArgument)
	}
	_, err := schemaText("{")
	want(t, err, ErrArgument)
}

// Whatever a schema of a Go type lets through, encoding/json reads into that type.
func TestSchemasAreWhatGoReads(t *testing.T) {
	m := openModel(t)
	s, err := m.NewSession(ctx, &SessionOptions{Context: 1024, Threads: 1})
	ok(t, err)
	defer s.Close()
	seed := rand.New(rand.NewSource(1))
	for i, value := range []any{everything{}, node{}, everything{}, other{}, node{}} {
		schema, err := SchemaOf(value)
		ok(t, err)
		ok(t, s.ClearGrammar())
		ok(t, s.Rewind(0))
		ok(t, s.FeedText(ctx, prompt, false))
		ok(t, s.SetSampling(&Sampling{Temperature: 2, Seed: seed.Uint64()}))
		if err := s.SetGrammar(JSONSchema(string(schema))); err != nil {
			t.Fatalf("%v: %s", err, schema)
		}
		g := s.Generate(ctx, 900)
		text, err := g.ReadAll()
		ok(t, err)
		if g.Finish() != FinishStop {
			continue // it could go on for long
		}
		into := reflect.New(reflect.TypeOf(value))
		reader := json.NewDecoder(strings.NewReader(text))
		reader.DisallowUnknownFields()
		if err := reader.Decode(into.Interface()); err != nil {
			t.Fatalf("%d: %v: %s", i, err, text)
		}
	}
}

func TestReasoningAndForms(t *testing.T) {
	m := openModel(t)
	const form = "{% for m in messages %}{{ m.content }}{% endfor %}<think></think><tool_call>"
	within := &Prompt{Text: "hello<think>\n"}
	for _, one := range []struct {
		options AnswerOptions
		said    string
		want    Message
	}{
		{AnswerOptions{}, "<think>hm</think>yes", Message{Content: "yes", Reasoning: "hm"}},
		{AnswerOptions{}, "hm</think>yes", Message{Content: "hm</think>yes"}},
		{AnswerOptions{Prompt: within}, "hm</think>yes", Message{Content: "yes", Reasoning: "hm"}},
		{AnswerOptions{KeepReasoning: true}, "<think>hm</think>yes", Message{Content: "<think>hm</think>yes"}},
	} {
		one.options.Template, one.want.Role = form, "assistant"
		got, err := m.ParseAnswer(one.said, one.options, false)
		ok(t, err)
		same(t, one.said, got, one.want)
		a, err := m.NewAnswer(one.options)
		ok(t, err)
		events, err := a.Feed(one.said)
		ok(t, err)
		rest, err := a.Finish(false)
		ok(t, err)
		ok(t, a.Close())
		var r Reply
		for _, e := range append(events, rest...) {
			r.take(e)
		}
		same(t, "the events' text", []string{r.Text, r.Reasoning}, []string{one.want.Content, one.want.Reasoning})
	}
	text, err := Message{Role: "assistant", Reasoning: "hm"}.MarshalJSON()
	ok(t, err)
	same(t, "a message with reasoning", string(text), `{"role":"assistant","content":"","reasoning_content":"hm"}`)
	var read Message
	ok(t, read.UnmarshalJSON([]byte(`{"role":"tool","content":null,"tool_call_id":"c","name":"n"}`)))
	same(t, "a result", read, Message{Role: "tool", CallID: "c", Name: "n"})
	same(t, "what a tool answers", ToolResult(ToolCall{ID: "c", Name: "n"}, "x"),
		Message{Role: "tool", Content: "x", CallID: "c", Name: "n"})
	same(t, "what the model said", Assistant("x"), Message{Role: "assistant", Content: "x"})

	const two = `<tool_call>{"name": "weather", "arguments": {"sky": "blue"}}</tool_call>` +
		`<tool_call>{"name": "weather", "arguments": {"sky": "grey"}}</tool_call>`
	for n, oneCall := range map[int]bool{2: false, 1: true} {
		got, err := m.ParseAnswer(two, AnswerOptions{Tools: []Tool{weatherTool}, OneCall: oneCall}, false)
		ok(t, err)
		same(t, "calls", len(got.Calls), n)
		strict := weatherTool
		strict.Strict = oneCall
		forced, err := m.ForceCall(&Chat{Tools: []Tool{strict}, OneCall: oneCall}, nil)
		ok(t, err)
		same(t, "other members", forced.Grammar.kind&jitGrammarAdditional != 0, oneCall)
		a, err := m.NewAnswer(AnswerOptions{Tools: []Tool{strict}, Forced: forced})
		ok(t, err)
		events, err := a.Feed(`weather", "arguments": {"sky": "grey"}}</tool_call>`)
		ok(t, err)
		if len(events) == 0 || events[0].Kind != EventCall || events[0].Call != 0 || events[0].Name != "weather" {
			t.Fatal(events)
		}
		ok(t, a.Close())
	}
	_, err = m.Render(&Chat{Messages: []Message{User("a")}, TemplateName: "no such one"})
	want(t, err, ErrArgument, "no such one")
	_, err = m.ForceCall(&Chat{Tools: []Tool{weatherTool}, TemplateName: "no such one"}, nil)
	want(t, err, ErrArgument, "no such one")
	_, err = m.ForceCall(&Chat{}, nil)
	want(t, err, ErrArgument, "no function")
	same(t, "a tool in JSON", mustJSON(t, Tool{Name: "n", Strict: true, Parameters: "{}"}),
		`{"type":"function","function":{"name":"n","parameters":{},"strict":true}}`)

	// Other members, where they are asked for.
	s := fed(t, m)
	const others = `{"type":"object","properties":{},"minProperties":1,"maxProperties":1}`
	want(t, s.SetGrammar(JSONSchema(others)), ErrArgument)
	ok(t, s.SetGrammar(JSONSchema(others).Additional()))
}

func mustJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	ok(t, err)
	return string(text)
}

// A model that reasons may do so before what its answer keeps to.
func TestReasoningBeforeAGrammar(t *testing.T) {
	m := openModel(t)
	const may = chatML + "{# <tool_call> <think></think> #}"
	reasons := strings.Replace(may, "assistant\n", "assistant\n<think>\n", 1)
	yes := struct {
		A string `json:"a" enum:"yes,no"`
	}{}
	for _, chat := range []Chat{{Schema: yes}, {Tools: []Tool{weatherTool}, Function: "weather"}} {
		chat.Messages = []Message{User("Go")}
		// The prompt is within the reasoning, and the model does not end it by itself.
		chat.Template, chat.MaxTokens = reasons, 9
		s := openSession(t, m)
		reply, err := s.Chat(ctx, &chat).Reply()
		ok(t, err)
		if reply.Finish != FinishLength || reply.Text != "" || len(reply.Calls) != 0 || reply.Reasoning == "" {
			t.Fatalf("%+v", reply)
		}
		// The model may begin it, and does not.
		chat.Template, chat.MaxTokens = may, 150
		reply, err = s.Chat(ctx, &chat).Reply()
		ok(t, err)
		if chat.Schema == nil {
			if reply.Reasoning != "" || len(reply.Calls) != 1 || !reply.Calls[0].Whole {
				t.Fatalf("%+v", reply)
			}
			continue
		}
		ok(t, reply.Decode(&yes))
		if reply.Reasoning != "" || yes.A != "yes" && yes.A != "no" {
			t.Fatalf("%+v", reply)
		}
		// It begins it, unless it shall not reason.
		mark, err := m.Tokenize("<", false, false)
		ok(t, err)
		ok(t, s.SetSampling(&Sampling{LogitBias: map[int32]float32{mark[0]: 60}}))
		chat.MaxTokens = 20
		reply, err = s.Chat(ctx, &chat).Reply()
		ok(t, err)
		if reply.Finish != FinishLength || reply.Text != "" {
			t.Fatalf("%+v", reply)
		}
		chat.Variables, chat.MaxTokens = map[string]any{"enable_thinking": false}, 60
		reply, err = s.Chat(ctx, &chat).Reply()
		ok(t, err)
		ok(t, reply.Decode(&yes))
	}
	chat := &Chat{Messages: []Message{User("Go")}, Template: reasons}
	p, err := m.Render(chat)
	ok(t, err)
	s := openSession(t, m)
	ok(t, s.Feed(ctx, p.IDs))
	ok(t, s.SetGrammar(Regex("yes|no").BehindReasoning(chat, p)))
	ok(t, s.FeedText(ctx, "Let me see. yes or no", false))
	if complete, _ := s.GrammarComplete(); complete {
		t.Fatal("it is complete within the reasoning")
	}
	ok(t, s.FeedText(ctx, "</think>\n\n", false))
	text, err := s.Generate(ctx, 40).ReadAll()
	ok(t, err)
	if words := strings.Fields(text); len(words) == 0 || words[len(words)-1] != "yes" && words[len(words)-1] != "no" {
		t.Fatalf("%q", text)
	}
	ok(t, s.SetGrammar(Regex("yes|no")))
	want(t, s.FeedText(ctx, "Let me see", false), ErrArgument, "does not allow")
}
