//go:build linux && amd64

package jitrun

// chat.go - conversations: messages and tools into a prompt, and answers into messages.

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime"
	"time"
	"unsafe"
)

// Message is a message of a conversation, in JSON in the form of OpenAI's API.
type Message struct {
	Role      string
	Content   string
	Reasoning string     // of the model's answers
	Calls     []ToolCall // likewise
	CallID    string     // of a tool's result: the call that it answers
	Name      string
	// Raw is used instead of all this where it is set.
	Raw json.RawMessage
}

// System is a message with instructions.
func System(content string) Message { return Message{Role: "system", Content: content} }

// User is what the user says.
func User(content string) Message { return Message{Role: "user", Content: content} }

// Assistant is what the model said.
func Assistant(content string) Message { return Message{Role: "assistant", Content: content} }

// ToolResult is what a tool answered to a call.
func ToolResult(call ToolCall, content string) Message {
	return Message{Role: "tool", Content: content, CallID: call.ID, Name: call.Name}
}

// ToolCall is a call of a tool.
type ToolCall struct {
	ID        string
	Name      string // the function's
	Arguments string // JSON text
	Whole     bool   // the arguments are complete
}

// Decode puts the arguments into what v points to, as json.Unmarshal does.
func (c ToolCall) Decode(v any) error { return json.Unmarshal([]byte(c.Arguments), v) }

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters are the JSON Schema of the arguments: a json.RawMessage or a string, a map, or a value of a Go struct,
	// of which SchemaOf makes one; nil: there are none.
	Parameters any
	// Strict lets objects of a schema have members that it does not name, where it does not say that they may not.
	Strict bool
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}

type wireCall struct {
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireMessage struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []wireCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
	Name      string     `json:"name,omitempty"`
}

// wire is the message as JSON has it. asObjects: arguments of calls that are JSON objects are given as such.
func (m Message) wire(asObjects bool) any {
	if m.Raw != nil {
		return m.Raw
	}
	out := wireMessage{m.Role, m.Content, m.Reasoning, nil, m.CallID, m.Name}
	for _, c := range m.Calls {
		var arguments any = c.Arguments
		if text := bytes.TrimSpace([]byte(c.Arguments)); asObjects && len(text) > 0 && text[0] == '{' && json.Valid(text) {
			arguments = json.RawMessage(text)
		}
		out.Calls = append(out.Calls, wireCall{c.ID, "function", wireFunction{c.Name, arguments}})
	}
	return out
}

// MarshalJSON gives the message in the form of OpenAI's API.
func (m Message) MarshalJSON() ([]byte, error) { return marshal(m.wire(false)) }

// UnmarshalJSON reads it in that form. Content that is no text, and what Message has no field for, is an error: such a
// message goes into Raw.
func (m *Message) UnmarshalJSON(data []byte) error {
	var in struct {
		Role      string  `json:"role"`
		Content   *string `json:"content"`
		Reasoning string  `json:"reasoning_content"`
		Calls     []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		CallID string `json:"tool_call_id"`
		Name   string `json:"name"`
	}
	reader := json.NewDecoder(bytes.NewReader(data))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&in); err != nil {
		return err
	}
	*m = Message{Role: in.Role, Reasoning: in.Reasoning, CallID: in.CallID, Name: in.Name}
	if in.Content != nil {
		m.Content = *in.Content
	}
	for _, c := range in.Calls {
		m.Calls = append(m.Calls, ToolCall{c.ID, c.Function.Name, c.Function.Arguments,
			json.Valid([]byte(c.Function.Arguments))})
	}
	return nil
}

// MarshalJSON gives the tool in the form of OpenAI's API.
func (t Tool) MarshalJSON() ([]byte, error) {
	out := struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
			Strict      bool            `json:"strict,omitempty"`
		} `json:"function"`
	}{Type: "function"}
	f := &out.Function
	f.Name, f.Description, f.Strict = t.Name, t.Description, t.Strict
	if t.Parameters != nil {
		schema, err := schemaText(t.Parameters)
		if err != nil {
			return nil, err
		}
		f.Parameters = schema
	}
	return marshal(out)
}

// marshal writes JSON with '<' as it is, which templates show.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	w := json.NewEncoder(&out)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// json writes a value for C.
func (h *held) json(what string, v any) uintptr {
	text, err := marshal(v)
	if err != nil {
		h.fail(errorf(ErrArgument, "%s cannot be written as JSON: %v", what, err))
		return 0
	}
	return h.text(what, string(text))
}

func toolsText(h *held, tools []Tool) uintptr {
	if len(tools) == 0 {
		return 0
	}
	return h.json("tools", tools)
}

// Chat is a conversation, and how it is answered.
type Chat struct {
	Messages     []Message
	Tools        []Tool
	Variables    map[string]any // what else the template knows, such as "enable_thinking"
	Template     string         // instead of the model's own
	TemplateName string         // which of the model's templates
	Unfinished   bool           // the text ends with the last message instead of beginning an answer
	Now          time.Time      // for templates that write the date; the zero value: they find none

	// ForceCall makes the answer a call of one of the tools, and Function of the one with this name.
	ForceCall bool
	Function  string
	OneCall   bool // one call at most
	// Schema is the JSON Schema that the answer keeps to, as of Tool.Parameters; Reply.Decode reads it. Grammar is any
	// grammar. One of the two may be set, and neither with a forced call. A model that reasons does so before what these
	// say, unless the variable "enable_thinking" is false.
	Schema  any
	Grammar *Grammar

	MaxTokens     int      // 0: as many as there is room for
	Stop          []string // texts that end the answer; none: those of the model's files
	KeepReasoning bool     // reasoning is text, with its marks
}

// Prompt is a conversation as the model's template writes it.
type Prompt struct {
	Text string
	IDs  []int32
}

func errNoChat() error { return errorf(ErrArgument, "the conversation is nil: a Chat was expected") }

// Render writes a conversation by the chat template.
func (m *Model) Render(chat *Chat) (*Prompt, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	return render(p, chat)
}

// render writes arguments of calls as objects, as most templates want them, and as text for those that refuse these.
func render(p uintptr, chat *Chat) (*Prompt, error) {
	if chat == nil {
		return nil, errNoChat()
	}
	out, err := renderWith(p, chat, true)
	if err == nil {
		return out, nil
	}
	for _, m := range chat.Messages {
		if len(m.Calls) > 0 {
			if out, again := renderWith(p, chat, false); again == nil {
				return out, nil
			}
			break
		}
	}
	return nil, err
}

func renderWith(p uintptr, chat *Chat, asObjects bool) (*Prompt, error) {
	var h held
	defer runtime.KeepAlive(&h)
	messages := make([]any, len(chat.Messages))
	for i, m := range chat.Messages {
		messages[i] = m.wire(asObjects)
	}
	raw := &jitChatOptions{size: unsafe.Sizeof(jitChatOptions{})}
	raw.messages, raw.tools = h.json("messages", messages), toolsText(&h, chat.Tools)
	if len(chat.Variables) > 0 {
		raw.variables = h.json("variables", chat.Variables)
	}
	raw.templateText = h.optional("the template", chat.Template)
	raw.templateName = h.optional("the template's name", chat.TemplateName)
	raw.noGenerationPrompt = flag(chat.Unfinished)
	if !chat.Now.IsZero() {
		raw.hasNow, raw.now = 1, chat.Now.Unix()
	}
	if h.err != nil {
		return nil, h.err
	}
	out := &jitChat{size: unsafe.Sizeof(jitChat{})}
	if err := status(nil, jitChatRender, p, uintptr(unsafe.Pointer(raw)), uintptr(unsafe.Pointer(out))); err != nil {
		return nil, err
	}
	prompt := &Prompt{cBytes(out.text, out.n), cCopy[int32](out.ids, out.nIds)}
	call(jitChatFree, uintptr(unsafe.Pointer(out)))
	return prompt, nil
}

// ForcedCall is what makes an answer a call of a tool: what opens it in the prompt, and a grammar.
type ForcedCall struct {
	IDs     []int32 // to be fed behind the prompt's; none where the model may reason before the call
	Grammar Grammar // to be set then
	opened  string
}

// ForceCall makes the next answer of a conversation a call of one of its tools, or of chat.Function. prompt is what the
// conversation was written as: a model that reasons may do so before the call; nil: it must call at once.
func (m *Model) ForceCall(chat *Chat, prompt *Prompt) (*ForcedCall, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	return forceCall(p, chat, prompt)
}

// before is what may stand before the part of an answer that keeps to a grammar.
func (chat *Chat) before(prompt *Prompt) *before {
	b := &before{tools: chat.Tools, templateName: chat.TemplateName}
	if prompt != nil {
		b.prompt = prompt.Text
	}
	if thinks, told := chat.Variables["enable_thinking"].(bool); told && !thinks {
		b.template, b.templateName = new(string), ""
	} else if chat.Template != "" {
		b.template = &chat.Template
	}
	return b
}

func forceCall(p uintptr, chat *Chat, prompt *Prompt) (*ForcedCall, error) {
	if chat == nil {
		return nil, errNoChat()
	}
	var h held
	defer runtime.KeepAlive(&h)
	raw := &jitForcedOptions{size: unsafe.Sizeof(jitForcedOptions{})}
	raw.tools = toolsText(&h, chat.Tools)
	raw.function = h.optional("the function's name", chat.Function)
	raw.templateText = h.optional("the template", chat.Template)
	raw.templateName = h.optional("the template's name", chat.TemplateName)
	raw.oneCall = flag(chat.OneCall)
	if prompt != nil {
		raw.prompt, raw.nPrompt = h.bytes(prompt.Text)
	}
	if h.err != nil {
		return nil, h.err
	}
	out := &jitForcedCall{size: unsafe.Sizeof(jitForcedCall{})}
	if err := status(nil, jitCallForce, p, uintptr(unsafe.Pointer(raw)), uintptr(unsafe.Pointer(out))); err != nil {
		return nil, err
	}
	made := &ForcedCall{Grammar: Grammar{kind: out.kind, text: cBytes(out.grammar, out.nGrammar)}}
	if out.behindReasoning != 0 {
		made.Grammar.before = chat.before(prompt)
		made.Grammar.before.opening = cBytes(out.prompt, out.nPrompt)
	} else {
		made.IDs, made.opened = cCopy[int32](out.ids, out.nIds), cText(out.opened)
	}
	call(jitForcedCallFree, uintptr(unsafe.Pointer(out)))
	return made, nil
}

// ParseAnswer reads a whole answer that came from elsewhere. cut: the model had more to say.
func (m *Model) ParseAnswer(text string, options AnswerOptions, cut bool) (Message, error) {
	p, err := m.h.use()
	if err != nil {
		return Message{}, err
	}
	defer m.h.release()
	var h held
	defer runtime.KeepAlive(&h)
	raw := options.raw(&h)
	raw.cut = flag(cut)
	at, n := h.bytes(text)
	if h.err != nil {
		return Message{}, h.err
	}
	said, err := address(nil, jitChatParse, p, at, n, uintptr(unsafe.Pointer(raw)))
	if err != nil {
		return Message{}, err
	}
	defer call(jitFree, said)
	var out Message
	if err := json.Unmarshal([]byte(cText(said)), &out); err != nil {
		return Message{}, errorf(ErrFormat, "the answer cannot be read: %v", err)
	}
	return out, nil
}

// Reply is a whole answer.
type Reply struct {
	Text      string // what is neither reasoning nor a call
	Reasoning string
	Calls     []ToolCall
	IDs       []int32 // the tokens, without one that ended the answer
	Finish    Finish
}

// Message is the answer as a message, to be put behind the others of its conversation.
func (r *Reply) Message() Message {
	return Message{Role: "assistant", Content: r.Text, Reasoning: r.Reasoning, Calls: r.Calls}
}

// Decode puts the text of an answer that keeps to a schema into what v points to, as json.Unmarshal does.
func (r *Reply) Decode(v any) error {
	err := json.Unmarshal([]byte(r.Text), v)
	if err != nil && r.Finish == FinishLength {
		return errorf(ErrFormat, "the answer was cut off at MaxTokens or the context's end: %v", err)
	}
	return err
}

func (r *Reply) take(e Event) {
	switch e.Kind {
	case EventText:
		r.Text += e.Text
	case EventReasoning:
		r.Reasoning += e.Text
	case EventCall:
		r.Calls = append(r.Calls, ToolCall{ID: e.ID, Name: e.Name})
	case EventArguments:
		r.Calls[e.Call].Arguments += e.Text
	case EventCallEnd:
		r.Calls[e.Call].Whole = e.Whole
	}
}

// ChatStream is an answer as it comes, made by Session.Chat:
//
//	stream := session.Chat(ctx, chat)
//	defer stream.Close()
//	for stream.Next() {
//		if e := stream.Event(); e.Kind == jitrun.EventText {
//			fmt.Print(e.Text)
//		}
//	}
//	reply, err := stream.Reply()
type ChatStream struct {
	g       *Generation
	answer  *Answer
	waiting []Event
	event   Event
	reply   Reply
	err     error
	over    bool
}

// Chat answers a conversation. Of what the session has, the beginning that the conversation shares is kept, so that
// only what is new is computed. The grammar and the stop texts of the session are those of the answer afterwards.
func (s *Session) Chat(ctx context.Context, chat *Chat) *ChatStream {
	c := &ChatStream{}
	if c.err = c.begin(ctx, s, chat); c.err != nil {
		c.Close()
	}
	return c
}

func (c *ChatStream) begin(ctx context.Context, s *Session, chat *Chat) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	ids, grammar, err := c.prepare(s.model, chat)
	if err != nil {
		return err
	}
	if err := s.goOn(ctx, ids, grammar, chat.Stop); err != nil {
		return err
	}
	c.g = s.Generate(ctx, limit(chat.MaxTokens))
	return nil
}

// limit is a number of tokens; 0 stands for as many as there is room for.
func limit(most int) int {
	if most == 0 {
		return math.MaxInt
	}
	return most
}

// prepare opens the reader of an answer, and gives the prompt's tokens and what the answer keeps to. The model is in
// use.
func (c *ChatStream) prepare(m *Model, chat *Chat) ([]int32, *Grammar, error) {
	grammar, err := chat.grammar()
	if err != nil {
		return nil, nil, err
	}
	prompt, err := render(m.h.p, chat)
	if err != nil {
		return nil, nil, err
	}
	options := AnswerOptions{Tools: chat.Tools, Prompt: prompt, Template: chat.Template,
		TemplateName: chat.TemplateName, OneCall: chat.OneCall, KeepReasoning: chat.KeepReasoning}
	ids := prompt.IDs
	if grammar != nil {
		behind := grammar.BehindReasoning(chat, prompt)
		grammar = &behind
	}
	if chat.ForceCall || chat.Function != "" {
		forced, err := forceCall(m.h.p, chat, prompt)
		if err != nil {
			return nil, nil, err
		}
		options.Forced, grammar = forced, &forced.Grammar
		ids = append(ids[:len(ids):len(ids)], forced.IDs...)
	}
	if len(ids) == 0 {
		return nil, nil, errorf(ErrArgument, "the conversation has no tokens: one at least was expected")
	}
	m.h.again()
	c.answer, err = m.answer(m.h.p, options)
	return ids, grammar, err
}

// grammar is what Schema or Grammar say; nil: nothing.
func (chat *Chat) grammar() (*Grammar, error) {
	if chat == nil {
		return nil, errNoChat()
	}
	forced := chat.ForceCall || chat.Function != ""
	if chat.Schema != nil && chat.Grammar != nil || forced && (chat.Schema != nil || chat.Grammar != nil) {
		return nil, errorf(ErrArgument, "the answer has two grammars: one of Schema, Grammar and a forced call was expected")
	}
	if chat.MaxTokens < 0 {
		return nil, errorf(ErrArgument, "MaxTokens is %d: 0 or more was expected", chat.MaxTokens)
	}
	if chat.Schema == nil {
		return chat.Grammar, nil
	}
	text, err := schemaText(chat.Schema)
	if err != nil {
		return nil, err
	}
	grammar := JSONSchema(string(text))
	return &grammar, nil
}

// goOn feeds what the session does not have yet of a prompt.
func (s *Session) goOn(ctx context.Context, ids []int32, grammar *Grammar, stop []string) error {
	have, shared := s.ids(), 0
	for shared < len(have) && shared < len(ids)-1 && have[shared] == ids[shared] {
		shared++
	}
	if err := s.setGrammar(noGrammar); err != nil {
		return err
	}
	if err := s.rewind(shared); err != nil {
		return err
	}
	if err := s.feed(ctx, ids[shared:]); err != nil {
		return err
	}
	if err := s.setStop(stop); err != nil || grammar == nil {
		return err
	}
	return s.setGrammar(*grammar)
}

// Next waits for the next event. false: the answer has ended.
func (c *ChatStream) Next() bool {
	for len(c.waiting) == 0 {
		if c.over {
			return false
		}
		if c.waiting, c.err = c.more(); c.err != nil {
			c.Close()
			return false
		}
	}
	c.event, c.waiting = c.waiting[0], c.waiting[1:]
	c.reply.take(c.event)
	return true
}

// more computes a token and reads it.
func (c *ChatStream) more() ([]Event, error) {
	id, text, goesOn, err := c.g.step()
	if err != nil {
		return nil, err
	}
	return c.read(id, text, goesOn)
}

// read takes what a step gave.
func (c *ChatStream) read(id int32, text string, goesOn bool) ([]Event, error) {
	if goesOn {
		return c.answer.FeedToken(text, id)
	}
	c.over = true
	events, err := c.answer.Feed(text)
	if err != nil {
		return nil, err
	}
	rest, err := c.answer.Finish(c.g.finish == FinishLength)
	c.reply.IDs, c.reply.Finish = c.g.IDs(), c.g.finish
	return append(events, rest...), err
}

// Event is what the last Next found.
func (c *ChatStream) Event() Event { return c.event }

// Err is what ended the answer before its end; nil: nothing did.
func (c *ChatStream) Err() error { return c.err }

// Reply is the whole answer; what is to come of it is generated first.
func (c *ChatStream) Reply() (*Reply, error) {
	for c.Next() {
	}
	if c.err == nil && c.reply.Finish == FinishNone {
		c.err = errorf(ErrClosed, "the answer was closed before its end")
	}
	if c.err != nil {
		return nil, c.err
	}
	c.Close()
	return c.reply.ended(), nil
}

// ended is a reply whose calls say how it ended.
func (r *Reply) ended() *Reply {
	for _, one := range r.Calls {
		if one.Whole && r.Finish == FinishStop {
			r.Finish = FinishCalls
		}
	}
	return r
}

// Close ends it: nothing more comes. The session stays.
func (c *ChatStream) Close() error {
	c.over, c.waiting = true, nil
	if c.answer != nil {
		return c.answer.Close()
	}
	return nil
}
