//go:build linux && amd64

package jitrun

// requests.go - many prompts and conversations at one call, in a batch.

import (
	"context"
	"fmt"
)

// Request is a prompt or a conversation for Batch.Generate.
type Request struct {
	Prompt    string    // with the token that the model wants before a text
	IDs       []int32   // instead of Prompt, where it is not nil
	Sampling  *Sampling // nil: the likeliest token is taken
	MaxTokens int       // 0: as many as there is room for
	Stop      []string  // texts that end the answer; none: those of the model's files
	Grammar   *Grammar
	// Chat is a conversation, instead of Prompt and all but Sampling: it has limits and grammars of its own.
	Chat *Chat
}

// Completion is what became of a request.
type Completion struct {
	Text   string
	IDs    []int32 // the tokens, without one that ended the text
	Finish Finish
	Reused int    // tokens of the prompt that another session had already
	Reply  *Reply // of a conversation
}

// running is a request that is computed.
type running struct {
	number int
	s      *Session
	stream ChatStream
	out    Completion
}

// Generate computes many requests together; each gives what it would give alone. told, unless nil, is called with texts
// as they come, by the number of their request, and an error of it ends all; of conversations it is told what is neither
// reasoning nor a call. An error says which request it is of.
func (b *Batch) Generate(ctx context.Context, requests []Request, told func(number int, text string) error) (
	[]Completion, error) {
	open := map[*Session]*running{}
	defer func() {
		for _, r := range open {
			r.close()
		}
	}()
	for i := range requests {
		r, err := b.begin(ctx, i, &requests[i])
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
		open[r.s] = r
	}
	out := make([]Completion, len(requests))
	for len(open) > 0 {
		ready, err := b.step(ctx, func(s *Session) bool { return open[s] != nil })
		if err != nil {
			return nil, err
		}
		for _, s := range ready {
			r := open[s]
			goesOn, err := r.step(told)
			if err != nil {
				return nil, fmt.Errorf("request %d: %w", r.number, err)
			}
			if !goesOn {
				out[r.number] = r.out
				delete(open, s)
				r.close()
			}
		}
	}
	return out, nil
}

func (r *running) close() {
	r.stream.Close()
	r.s.Close()
}

// begin opens a session and submits the prompt.
func (b *Batch) begin(ctx context.Context, number int, request *Request) (*running, error) {
	m, r := b.model, &running{number: number}
	ids, grammar, stop, most := request.IDs, request.Grammar, request.Stop, request.MaxTokens
	var err error
	if most < 0 {
		return nil, errorf(ErrArgument, "MaxTokens is %d: 0 or more was expected", most)
	}
	if err = b.enter(); err != nil {
		return nil, err
	}
	m.h.again() // the batch has it in use
	b.c.mu.Unlock()
	defer m.h.release()
	switch {
	case request.Chat != nil:
		ids, grammar, err = r.stream.prepare(m, request.Chat)
		stop, most = request.Chat.Stop, request.Chat.MaxTokens
	case ids == nil:
		ids, err = tokenize(m.h.p, request.Prompt, true, false)
	}
	if err == nil && len(ids) == 0 {
		err = errorf(ErrArgument, "the prompt has no tokens: one at least was expected")
	}
	if err == nil {
		r.s, err = b.newSession(request.Sampling, true)
	}
	if err != nil {
		r.stream.Close()
		return nil, err
	}
	if err = r.s.SetStop(stop...); err == nil {
		r.out.Reused, err = r.s.Submit(ids)
	}
	if err == nil && grammar != nil {
		err = r.s.SetGrammar(*grammar)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	r.stream.g = r.s.Generate(ctx, limit(most))
	return r, nil
}

// step chooses a token, and gives false at the end.
func (r *running) step(told func(number int, text string) error) (bool, error) {
	g := r.stream.g
	for {
		id, text, goesOn, err := g.step()
		if err != nil {
			return false, err
		}
		if r.stream.answer != nil {
			text, err = r.read(id, text, goesOn)
		} else {
			r.out.Text += text
		}
		if err == nil && told != nil && text != "" {
			err = told(r.number, text)
		}
		if err != nil {
			return false, err
		}
		if !goesOn {
			r.out.IDs, r.out.Finish = g.IDs(), g.finish
			if r.out.Reply != nil {
				r.out.Finish = r.out.Reply.ended().Finish
			}
			return false, nil
		}
		// What nothing is to be computed for ends at once.
		if g.finish == FinishNone && len(g.ids) < g.most {
			return true, nil
		}
	}
}

// read reads an answer, and gives what is text of it.
func (r *running) read(id int32, text string, goesOn bool) (string, error) {
	events, err := r.stream.read(id, text, goesOn)
	text = ""
	for _, e := range events {
		r.stream.reply.take(e)
		if e.Kind == EventText {
			text += e.Text
		}
	}
	r.out.Text += text
	if !goesOn {
		r.out.Reply = &r.stream.reply
	}
	return text, err
}
