//go:build linux && amd64

package jitrun

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// misuse_test.go - programs that are wrong: nothing where something was expected, what is closed while others compute
// with it, generations that are left, empty prompts and those that are too long.

func TestNothingGiven(t *testing.T) {
	m, s := openModel(t), openSession(t, openModel(t))
	b, err := m.NewBatch(ctx, &BatchOptions{Threads: 1, Context: 64})
	ok(t, err)
	defer b.Close()
	var none context.Context
	ids := []int32{300}
	for name, call := range map[string]func() error{
		"Open":         func() error { _, err := Open(none, modelPath(t), nil); return err },
		"NewSession":   func() error { _, err := m.NewSession(none, nil); return err },
		"NewBatch":     func() error { _, err := m.NewBatch(none, nil); return err },
		"Embed":        func() error { _, err := m.Embed(none, "a", EmbedOptions{}); return err },
		"Score":        func() error { _, err := m.Score(none, "", "a"); return err },
		"Feed":         func() error { return s.Feed(none, ids) },
		"FeedText":     func() error { return s.FeedText(none, "a", false) },
		"FeedLogits":   func() error { _, err := s.FeedLogits(none, ids); return err },
		"Next":         func() error { _, err := s.Next(none); return err },
		"Logits":       func() error { _, err := s.Logits(none); return err },
		"HiddenStates": func() error { _, err := s.HiddenStates(none, ids); return err },
		"Fork":         func() error { _, err := s.Fork(none, nil); return err },
		"Generate":     func() error { _, err := s.Generate(none, 1).ReadAll(); return err },
		"Chat":         func() error { _, err := s.Chat(none, &Chat{Template: chatML}).Reply(); return err },
		"Step":         func() error { _, err := b.Step(none); return err },
		"Requests":     func() error { _, err := b.Generate(none, []Request{{Prompt: prompt}}, nil); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "the context is nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func() error{
		"Render":    func() error { _, err := m.Render(nil); return err },
		"ForceCall": func() error { _, err := m.ForceCall(nil, nil); return err },
		"Chat":      func() error { _, err := s.Chat(ctx, nil).Reply(); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "the conversation is nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What may be left out.
	ok(t, s.SetGrammar(Regex("[a-z ]+").BehindReasoning(nil, nil)))
	ok(t, s.SetGrammar(Grammar{}))
	ok(t, s.SetSampling(nil))
	ok(t, s.SetStop())
	ok(t, s.SetLogitsFunc(nil))
	ok(t, s.SetPromptFunc(nil))
	ok(t, s.FeedText(ctx, prompt, false))
	out, err := b.Generate(ctx, nil, nil)
	ok(t, err)
	same(t, "completions", len(out), 0)
	_, err = m.NewAnswer(AnswerOptions{Template: "a\x00b"})
	want(t, err, ErrArgument, "zero byte")
	want(t, s.Save(filepath.Join(t.TempDir(), "no", "file")), ErrIO)
	want(t, s.Save("a\x00b"), ErrArgument, "zero byte")
	want(t, s.Restore(os.DevNull), ErrArgument)
	want(t, s.SetStop("a\x00b"), ErrArgument, "zero byte")
	for _, id := range []int32{-1, 1 << 30} {
		want(t, s.Feed(ctx, []int32{id}), ErrArgument)
		_, err = s.Score(ctx, []int32{id})
		want(t, err, ErrArgument)
		_, err = s.FeedLogits(ctx, []int32{id})
		want(t, err, ErrArgument)
		_, err = s.Text(id)
		want(t, err, ErrArgument)
		_, err = m.Detokenize([]int32{id})
		want(t, err, ErrArgument)
	}
}

func TestEmptyAndLongPrompts(t *testing.T) {
	m := openModel(t)
	s := openSession(t, m)
	b, err := m.NewBatch(ctx, &BatchOptions{Threads: 1, Context: 64})
	ok(t, err)
	defer b.Close()
	begun, err := m.Tokenize("", true, false)
	ok(t, err)
	ok(t, s.FeedText(ctx, "", false))
	same(t, "the tokens of no text", s.IDs(), begun)
	alone, err := s.Generate(ctx, 4).ReadAll()
	ok(t, err)
	out, err := b.Generate(ctx, []Request{{MaxTokens: 4}}, nil)
	ok(t, err)
	same(t, "behind no text", out[0].Text, alone)
	_, err = b.Generate(ctx, []Request{{Prompt: "a"}, {IDs: []int32{}}}, nil)
	want(t, err, ErrArgument, "request 1", "no tokens")
	bare := openSession(t, m)
	_, err = bare.Next(ctx)
	want(t, err, ErrArgument, "feed at least one token")
	_, err = bare.Logits(ctx)
	want(t, err, ErrArgument)
	_, err = bare.Embed(ctx, nil, EmbedOptions{})
	want(t, err, ErrArgument)
	scores, err := bare.Score(ctx, nil)
	ok(t, err)
	same(t, "scores", len(scores), 0)
	// As many tokens as there is room for, and one more.
	long := strings.Repeat(prompt+" ", 60)
	ids, err := m.Tokenize(long, true, false)
	ok(t, err)
	narrow, err := m.NewSession(ctx, &SessionOptions{Context: 64, Threads: 1})
	ok(t, err)
	defer narrow.Close()
	for _, call := range []func(ids []int32) error{
		func(ids []int32) error { return narrow.Feed(ctx, ids) },
		func(ids []int32) error { _, err := narrow.FeedLogits(ctx, ids); return err },
		func(ids []int32) error { _, err := narrow.Score(ctx, ids); return err },
		func(ids []int32) error { _, err := narrow.Embed(ctx, ids, EmbedOptions{}); return err },
	} {
		want(t, call(ids[:65]), ErrContext, "the context of 64 tokens is full")
		same(t, "length", narrow.Len(), 0)
		ok(t, call(ids[:64]))
		same(t, "length", narrow.Len(), 64)
		ok(t, narrow.Rewind(0))
	}
	want(t, narrow.FeedText(ctx, long, false), ErrContext)
	_, err = narrow.Chat(ctx, &Chat{Template: chatML, Messages: []Message{User(long)}}).Reply()
	want(t, err, ErrContext)
	_, err = b.Generate(ctx, []Request{{Prompt: prompt}, {Prompt: long}}, nil)
	want(t, err, ErrContext, "request 1")
	same(t, "pending", b.Pending(), 0)
	ok(t, narrow.Rewind(0))
	ok(t, narrow.Feed(ctx, ids[:64]))
	g := narrow.Generate(ctx, 100)
	_, err = g.ReadAll()
	ok(t, err)
	same(t, "what has room", []any{len(g.IDs()), g.Finish()}, []any{1, FinishLength})
}

// A goroutine that steps through the batch takes nothing from those that generate.
func TestStepsBesideRequests(t *testing.T) {
	m, ids := openModel(t), expectedIDs(t)
	b, err := m.NewBatch(ctx, &BatchOptions{Threads: 1, Context: 64})
	ok(t, err)
	defer b.Close()
	over, ended := make(chan bool), make(chan error, 1)
	go func() {
		for {
			ready, err := b.Step(ctx)
			if err == nil && len(ready) > 0 {
				err = errorf(ErrArgument, "a step gave %d sessions", len(ready))
			}
			select {
			case <-over:
				ended <- err
				return
			default:
				if err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	requests := []Request{{Prompt: prompt, MaxTokens: 12}, {Prompt: prompt, MaxTokens: 12}}
	for i := 0; i < 4; i++ {
		out, err := b.Generate(limited, requests, nil)
		ok(t, err)
		same(t, "tokens", [][]int32{out[0].IDs, out[1].IDs}, [][]int32{ids[:12], ids[:12]})
	}
	close(over)
	ok(t, <-ended)
}

func TestClosedWhileOthersCompute(t *testing.T) {
	for turn := 0; turn < 4; turn++ {
		m, err := Open(ctx, modelPath(t), &ModelOptions{Threads: 1})
		ok(t, err)
		s, err := m.NewSession(ctx, &SessionOptions{Context: 256, Threads: 1})
		ok(t, err)
		b, err := m.NewBatch(ctx, &BatchOptions{Context: 256, Threads: 1})
		ok(t, err)
		member, err := b.NewSession(nil)
		ok(t, err)
		a, err := m.NewAnswer(AnswerOptions{Template: chatML})
		ok(t, err)
		long := make([]int32, 200)
		var all sync.WaitGroup
		for _, call := range []func() error{
			func() error {
				err := s.Rewind(0)
				if err == nil {
					err = s.Feed(ctx, long)
				}
				if err == nil {
					_, err = s.Generate(ctx, 2).ReadAll()
				}
				return err
			},
			func() error { _, err := b.Generate(ctx, []Request{{Prompt: prompt, MaxTokens: 3}}, nil); return err },
			func() error { _, err := member.Submit([]int32{5}); return because(err, nil) },
			func() error { _, err := m.Tokenize(prompt, true, false); return err },
			func() error { _, err := m.Score(ctx, "", prompt); return err },
			func() error { _, err := a.FeedToken("<tool_call> a", 1); return err },
		} {
			all.Add(1)
			go func(call func() error) {
				defer all.Done()
				for {
					if err := call(); err != nil {
						if !isAny(err, ErrClosed, ErrContext) {
							t.Error(err)
						}
						return
					}
				}
			}(call)
		}
		time.Sleep(20 * time.Millisecond)
		for _, thing := range []interface{ Close() error }{s, b, a, m} {
			ok(t, thing.Close())
			runtime.GC()
		}
		all.Wait()
	}
}

func isAny(err error, kinds ...Kind) bool {
	for _, kind := range kinds {
		if e, is := err.(*Error); is && e.Kind == kind || strings.Contains(err.Error(), "closed") {
			return true
		}
	}
	return false
}

// Generations that nobody goes on with, and answers that nobody holds while C reads them.
func TestLeftAndCollected(t *testing.T) {
	m, ids := openModel(t), expectedIDs(t)
	for i := 0; i < 8; i++ {
		s, err := m.NewSession(ctx, &SessionOptions{Context: 64, Threads: 1})
		ok(t, err)
		ok(t, s.FeedText(ctx, prompt, false))
		g := s.Generate(ctx, 20)
		same(t, "more", g.Next(), true)
		c := s.Chat(ctx, &Chat{Template: chatML, Messages: []Message{User("a")}})
		c.Next()
		if i%2 == 0 {
			ok(t, c.Close())
			ok(t, s.Close())
		}
		runtime.GC()
	}
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < 50; k++ {
				a, err := m.NewAnswer(AnswerOptions{Template: chatML})
				ok(t, err)
				go runtime.GC()
				_, err = a.Finish(false)
				ok(t, err)
			}
		}()
	}
	all.Wait()
	s := fed(t, m)
	g := s.Generate(ctx, 8)
	_, err := g.ReadAll()
	ok(t, err)
	same(t, "tokens", g.IDs(), ids[:8])
}
