//go:build linux && amd64

package jitrun

// answer.go - what a model says, read while it comes: text, reasoning and calls of tools.

import (
	"runtime"
	"sync"
	"unsafe"
)

// EventKind is what became known of an answer.
type EventKind int

// The kinds of events.
const (
	EventText      = EventKind(jitAnswerText)      // more text
	EventReasoning = EventKind(jitAnswerReasoning) // more of the model's reasoning
	EventCall      = EventKind(jitAnswerCall)      // a call begins: ID and Name
	EventArguments = EventKind(jitAnswerArguments) // more of a call's arguments, which together are JSON text
	EventCallEnd   = EventKind(jitAnswerCallEnd)   // a call ends: Whole
)

// Event is what became known of an answer.
type Event struct {
	Kind  EventKind
	Text  string // of EventText, EventReasoning, EventArguments
	Call  int    // the call's number from 0
	ID    string
	Name  string
	Whole bool // of EventCallEnd: the arguments are complete
}

// AnswerOptions say how an answer is read.
type AnswerOptions struct {
	Tools         []Tool
	Prompt        *Prompt // what the conversation was written as: it may end within the reasoning
	Template      string  // instead of the model's own
	TemplateName  string
	Forced        *ForcedCall // where a call was forced
	ID            string      // ids of calls are this, "_" and their number; "": "call"
	OneCall       bool        // of what follows the first call, nothing is told
	KeepReasoning bool        // reasoning is text, with its marks
}

// Answer reads one answer: the same events for every model family, however its bytes are cut. One goroutine uses it at a
// time, and others wait.
type Answer struct {
	mu    sync.Mutex // also against the garbage collector, which closes what nobody holds
	model *Model
	p     uintptr
}

// NewAnswer opens a reader.
func (m *Model) NewAnswer(options AnswerOptions) (*Answer, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	return m.answer(p, options)
}

// answer takes over a use of the model.
func (m *Model) answer(p uintptr, options AnswerOptions) (*Answer, error) {
	var h held
	raw := options.raw(&h)
	err := h.err
	var a uintptr
	if err == nil {
		a, err = address(nil, jitAnswerOpen, p, uintptr(unsafe.Pointer(raw)))
	}
	runtime.KeepAlive(&h)
	if err != nil {
		m.h.release()
		return nil, err
	}
	out := &Answer{model: m, p: a}
	runtime.SetFinalizer(out, func(a *Answer) { go a.Close() })
	return out, nil
}

func (o *AnswerOptions) raw(h *held) *jitAnswerOptions {
	raw := &jitAnswerOptions{size: unsafe.Sizeof(jitAnswerOptions{})}
	keep(h, raw)
	raw.tools = toolsText(h, o.Tools)
	if o.Prompt != nil {
		raw.prompt, raw.nPrompt = h.bytes(o.Prompt.Text)
	}
	raw.templateText, raw.templateName = h.optional("the template", o.Template),
		h.optional("the template's name", o.TemplateName)
	if o.Forced != nil && o.Forced.opened != "" {
		raw.opened = h.text("what opens a call", o.Forced.opened)
	}
	raw.id = h.optional("the id", o.ID)
	raw.oneCall, raw.keepReasoning = flag(o.OneCall), flag(o.KeepReasoning)
	return raw
}

// Close gives it back. Again, nothing happens.
func (a *Answer) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	runtime.SetFinalizer(a, nil)
	if a.p != 0 {
		call(jitAnswerClose, a.p)
		a.p = 0
		a.model.h.release()
	}
	return nil
}

// Feed takes the next bytes of the answer.
func (a *Answer) Feed(text string) ([]Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.feed(text)
}

func (a *Answer) feed(text string) ([]Event, error) {
	if a.p == 0 {
		return nil, errorf(ErrClosed, "the answer is closed")
	}
	var h held
	defer runtime.KeepAlive(&h)
	at, n := h.bytes(text)
	if err := status(nil, jitAnswerFeed, a.p, at, n); err != nil {
		return nil, err
	}
	return a.events(nil)
}

// FeedToken takes the text of a token, and what the token stands for: some that have no text are marks.
func (a *Answer) FeedToken(text string, id int32) ([]Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	events, err := a.feed(text)
	if err != nil || id < 0 {
		return events, err
	}
	n := new(uintptr)
	mark := call(jitAnswerMark, a.p, uintptr(uint32(id)), uintptr(unsafe.Pointer(n)))
	if mark == 0 || *n == 0 {
		return events, nil
	}
	if err := status(nil, jitAnswerFeed, a.p, mark, *n); err != nil {
		return events, err
	}
	return a.events(events)
}

// Finish ends the answer, and tells what was held back. cut: the model had more to say, as at a limit of tokens.
func (a *Answer) Finish(cut bool) ([]Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.p == 0 {
		return nil, errorf(ErrClosed, "the answer is closed")
	}
	if err := status(nil, jitAnswerFinish, a.p, uintptr(flag(cut))); err != nil {
		return nil, err
	}
	return a.events(nil)
}

func (a *Answer) events(events []Event) ([]Event, error) {
	raw := &jitAnswerEvent{size: unsafe.Sizeof(jitAnswerEvent{})}
	for {
		if err := status(nil, jitAnswerNext, a.p, uintptr(unsafe.Pointer(raw))); err != nil {
			return events, err
		}
		if raw.kind == jitAnswerNothing {
			return events, nil
		}
		events = append(events, Event{Kind: EventKind(raw.kind), Text: cBytes(raw.text, raw.n), Call: int(raw.call),
			ID: cText(raw.id), Name: cText(raw.name), Whole: raw.whole != 0})
	}
}
