//go:build linux && amd64

package jitrun

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

func openBatch(t *testing.T, m *Model) *Batch {
	t.Helper()
	b, err := m.NewBatch(ctx, &BatchOptions{Threads: 1, Context: 512})
	ok(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func TestManyRequests(t *testing.T) {
	m := openModel(t)
	b := openBatch(t, m)
	sampling, err := m.SamplingDefaults()
	ok(t, err)
	sampling.Temperature, sampling.Seed = 1.2, 7
	yes := struct {
		A string `json:"a" enum:"yes,no"`
	}{}
	digits := Regex("[0-9]{3}")
	ids, err := m.Tokenize("The sea", true, false)
	ok(t, err)
	chat := &Chat{Messages: []Message{User("Go")}, Template: chatML, MaxTokens: 100}
	schema, call := *chat, *chat
	schema.Schema = yes
	call.Tools, call.Function = []Tool{weatherTool}, "weather"
	requests := []Request{
		{Prompt: prompt, MaxTokens: 24}, {Prompt: prompt, MaxTokens: 40, Sampling: &sampling}, {IDs: ids, MaxTokens: 1},
		{Prompt: prompt, MaxTokens: 60, Grammar: &digits}, {Prompt: prompt, MaxTokens: 24, Stop: []string{" king"}},
		{Chat: &schema}, {Chat: &call}, {Chat: chat, Sampling: &sampling}, {Prompt: prompt},
	}
	requests[7].Chat.MaxTokens = 9
	// A session of one's own is told by Step, whatever Generate computes.
	own, err := b.NewSession(nil)
	ok(t, err)
	_, err = own.Submit(ids)
	ok(t, err)
	told := make([]string, len(requests))
	out, err := b.Generate(ctx, requests, func(i int, text string) error {
		told[i] += text
		return nil
	})
	ok(t, err)
	if b.Pending() != 1 {
		t.Fatal("the session of one's own is lost")
	}
	ready, err := b.Step(ctx)
	ok(t, err)
	same(t, "ready", ready, []*Session{own})
	_, err = own.Next(ctx)
	ok(t, err)
	same(t, "greedy tokens", out[0].IDs, expectedIDs(t))
	same(t, "seeded tokens", out[1].IDs, idsOf(t, "JITRUN_SEEDED_IDS"))
	same(t, "one token", []int{len(out[2].IDs), len(out[3].Text)}, []int{1, 3})
	same(t, "ends", []Finish{out[0].Finish, out[3].Finish, out[4].Finish, out[5].Finish, out[6].Finish}, []Finish{
		FinishLength, FinishStop, FinishStop, FinishStop, FinishCalls})
	same(t, "before the stop text", out[4].Text, out[0].Text[:strings.Index(out[0].Text, " king")])
	ok(t, out[5].Reply.Decode(&yes))
	if len(out[6].Reply.Calls) != 1 || out[6].Text != "" || len(out[8].IDs) < 400 || out[8].Reply != nil {
		t.Fatalf("%+v", out)
	}
	for i, one := range out {
		same(t, "what was told", told[i], one.Text)
	}
	// Alone, it is the same.
	for i := 5; i < 8; i++ {
		s, err := m.NewSession(ctx, &SessionOptions{Context: 512, Threads: 1, Sampling: requests[i].Sampling})
		ok(t, err)
		reply, err := s.Chat(ctx, requests[i].Chat).Reply()
		ok(t, err)
		reply.IDs, out[i].Reply.IDs = append([]int32{}, reply.IDs...), append([]int32{}, out[i].Reply.IDs...)
		same(t, "a reply alone", reply, out[i].Reply)
		s.Close()
	}
	again, err := b.Generate(ctx, requests[:1], nil)
	ok(t, err)
	if again[0].Reused == 0 || again[0].Text != out[0].Text {
		t.Fatalf("%+v", again)
	}

	enough := errors.New("enough")
	_, err = b.Generate(ctx, requests, func(i int, _ string) error { return enough })
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	_, err = b.Generate(ctx, []Request{{Prompt: "a", MaxTokens: 1}, {IDs: []int32{}}}, nil)
	want(t, err, ErrArgument, "request 1", "no tokens")
	_, err = b.Generate(ctx, []Request{{Prompt: "a", MaxTokens: -1}}, nil)
	want(t, err, ErrArgument, "MaxTokens")
	_, err = b.Generate(ctx, []Request{{Prompt: "a", Stop: []string{""}}}, nil)
	want(t, err, ErrArgument)
	_, err = b.Generate(ctx, []Request{{Chat: &Chat{Messages: chat.Messages, Template: chatML, MaxTokens: -1}}}, nil)
	want(t, err, ErrArgument, "MaxTokens")
	bad := GBNF("nothing")
	_, err = b.Generate(ctx, []Request{{Prompt: "a", Grammar: &bad}}, nil)
	want(t, err, ErrArgument)
	over, cancel := context.WithCancel(ctx)
	_, err = b.Generate(over, requests[:1], func(int, string) error { cancel(); return nil })
	want(t, err, ErrCancelled)
	same(t, "sessions that are left", len(b.sessions), 1)
	none, err := b.Generate(ctx, nil, nil)
	ok(t, err)
	same(t, "no requests", len(none), 0)
	ok(t, own.Close())

	// Several goroutines, one batch.
	var all sync.WaitGroup
	for i := 0; i < 6; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			got, err := b.Generate(ctx, requests[:3], nil)
			if err != nil || got[1].Text != out[1].Text || got[0].Text != out[0].Text {
				t.Error(got, err)
			}
		}()
	}
	all.Wait()
	ok(t, b.Close())
	_, err = b.Generate(ctx, requests, nil)
	want(t, err, ErrClosed)
}

// What a callback of a session does to a step of its batch.
func TestCallbacksInBatches(t *testing.T) {
	m := openModel(t)
	b := openBatch(t, m)
	ids, err := m.Tokenize(prompt, true, false)
	ok(t, err)
	var all [3]*Session
	enough := errors.New("enough")
	passes := 0
	for i := range all {
		all[i], err = b.NewSession(nil)
		ok(t, err)
		_, err = all[i].Submit(append([]int32{int32(i + 10)}, ids...))
		ok(t, err)
	}
	ok(t, all[0].SetPromptFunc(func(computed, length int) error {
		passes++
		same(t, "computed", []int{computed, length}, []int{len(ids) + 1, len(ids) + 1})
		return enough
	}))
	ok(t, all[1].SetLogitsFunc(func([]float32, []int32) error { return enough }))
	ok(t, all[2].SetPromptFunc(func(int, int) error { panic("in a step") }))
	func() {
		defer func() { same(t, "the panic", recover(), "in a step") }()
		b.Step(ctx)
		t.Error("Step came back")
	}()
	same(t, "passes", passes, 1)
	same(t, "pending", b.Pending(), 3)
	ready, err := b.Step(ctx)
	ok(t, err)
	same(t, "ready", len(ready), 3)
	_, err = all[1].Next(ctx)
	if !errors.Is(err, enough) || !errors.Is(err, ErrCancelled) {
		t.Fatal(err)
	}
	// Where all is computed, an answer of the others has nothing to end.
	for _, s := range []*Session{all[0], all[2]} {
		_, err = s.Next(ctx)
		ok(t, err)
	}
}
