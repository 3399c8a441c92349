//go:build linux && amd64

package jitrun

import (
	"context"
	"errors"
	"strings"
)

// Finish is why a generation ended.
type Finish string

// What Finish may be.
const (
	FinishNone   = Finish("")           // it goes on, or an error ended it
	FinishStop   = Finish("stop")       // an end token, a stop text, or the grammar's end
	FinishLength = Finish("length")     // the number of tokens that was asked for, or the context's end
	FinishCalls  = Finish("tool_calls") // of a Reply: an end behind calls of tools
)

// Generation is text as it is generated, made by Session.Generate:
//
//	g := session.Generate(ctx, 64)
//	for g.Next() {
//		fmt.Print(g.Text())
//	}
//	if err := g.Err(); err != nil { ... }
type Generation struct {
	s      *Session
	ctx    context.Context
	most   int
	ids    []int32
	finish Finish
	text   string
	err    error
	over   bool
}

// Generate goes on from what the session has, by at most so many tokens.
func (s *Session) Generate(ctx context.Context, most int) *Generation {
	return &Generation{s: s, ctx: ctx, most: most}
}

// Next waits for more text. false: it has ended.
func (g *Generation) Next() bool {
	g.text = ""
	for !g.over {
		_, text, more, err := g.step()
		g.over = err != nil || !more
		g.err = err
		if text != "" && err == nil {
			g.text = text
			return true
		}
	}
	return false
}

// Text is what the last Next found: whole characters.
func (g *Generation) Text() string { return g.text }

// Err is what ended it before its end; nil: nothing did.
func (g *Generation) Err() error { return g.err }

// IDs are the tokens so far, without one that ended the text.
func (g *Generation) IDs() []int32 { return append([]int32(nil), g.ids...) }

// Finish is why it ended.
func (g *Generation) Finish() Finish { return g.finish }

// ReadAll generates all that is to come, and gives its text.
func (g *Generation) ReadAll() (string, error) {
	var all strings.Builder
	for g.Next() {
		all.WriteString(g.text)
	}
	return all.String(), g.err
}

// step gives the next token and the text that it completes; more is false at the end, with the text that was held back.
func (g *Generation) step() (id int32, text string, more bool, err error) {
	s := g.s
	if err = s.enter(); err != nil {
		return 0, "", false, err
	}
	defer s.c.mu.Unlock()
	if g.finish == FinishNone && len(g.ids) >= g.most {
		g.finish = FinishLength
	}
	if g.finish == FinishNone {
		id, err = s.next(g.ctx)
		switch {
		case err == nil && s.model.IsEnd(id):
			g.finish = FinishStop
		case err == nil:
			g.ids = append(g.ids, id)
			if text, err = s.text(id); err != nil {
				return 0, "", false, err
			}
			if _, ok := s.stopped(); ok {
				g.finish = FinishStop
			}
			return id, text, true, nil
		case errors.Is(err, ErrContext):
			g.finish = FinishLength
		default:
			complete, _ := s.grammarComplete()
			if !complete || !errors.Is(err, ErrArgument) {
				return 0, "", false, err
			}
			g.finish = FinishStop
		}
	}
	text, err = s.text(-1)
	return 0, text, false, err
}
