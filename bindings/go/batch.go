//go:build linux && amd64

package jitrun

import (
	"context"
	"runtime"
	"unsafe"
)

// Batch computes many sessions of a model together: one pass reads the weights once for all. What each session gives is
// the same, bit for bit, as if it were alone.
//
//	for batch.Pending() > 0 {
//		ready, err := batch.Step(ctx)
//		...
//		for _, s := range ready {
//			id, err := s.Next(ctx) // chooses; the next step computes
//			...
//		}
//	}
//
// A batch and its sessions are used by one goroutine at a time, and others wait for it. Close closes its sessions, too;
// a batch that is not closed stays.
type Batch struct {
	model    *Model
	c        *core
	p        uintptr
	sessions map[uintptr]*Session
	left     []*Session // they are ready, and nobody was told
}

// NewBatch opens a batch without sessions. options may be nil.
func (m *Model) NewBatch(ctx context.Context, options *BatchOptions) (*Batch, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	c, err := newCore()
	if err != nil {
		m.h.release()
		return nil, err
	}
	var h held
	raw := options.raw(&h)
	raw.cancel = c.cancel
	var b uintptr
	if err = h.err; err == nil {
		b, err = c.open(ctx, jitBatchOpen, p, uintptr(unsafe.Pointer(raw)))
	}
	runtime.KeepAlive(&h)
	if err != nil {
		c.end()
		m.h.release()
		return nil, err
	}
	return &Batch{model: m, c: c, p: b, sessions: map[uintptr]*Session{}}, nil
}

func (b *Batch) enter() error {
	if err := b.c.lock("batch"); err != nil {
		return err
	}
	if b.p == 0 {
		b.c.mu.Unlock()
		return errorf(ErrClosed, "the batch is closed")
	}
	return nil
}

// Close closes its sessions and the batch. Again, nothing happens.
func (b *Batch) Close() error {
	if err := b.c.lock("batch"); err != nil {
		return err
	}
	defer b.c.mu.Unlock()
	if b.p == 0 {
		return nil
	}
	for p, s := range b.sessions {
		s.open.Lock()
		s.p = 0
		s.open.Unlock()
		urgently(jitSessionClose, p)
		if s.hooks != nil {
			s.hooks.end()
		}
	}
	b.sessions, b.left = nil, nil
	urgently(jitBatchClose, b.p)
	b.p = 0
	b.c.end()
	b.model.h.release()
	return nil
}

// NewSession opens a session of the batch; sampling nil: the likeliest token is taken. Its tokens come by Submit, and
// Step computes them. What else Session has, computes at once, and lets the others wait.
func (b *Batch) NewSession(sampling *Sampling) (*Session, error) {
	return b.newSession(sampling, false)
}

func (b *Batch) newSession(sampling *Sampling, requested bool) (*Session, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.c.mu.Unlock()
	var h held
	defer runtime.KeepAlive(&h)
	raw := sampling.raw(&h)
	if h.err != nil {
		return nil, h.err
	}
	p, err := address(b.c, jitBatchSession, b.p, uintptr(unsafe.Pointer(raw)))
	if err != nil {
		return nil, err
	}
	s := &Session{model: b.model, c: b.c, batch: b, p: p, requested: requested}
	b.sessions[p] = s
	return s, nil
}

// Submit appends tokens to a session of a batch, which the steps to come compute; how many of them need not be
// computed, since another session began with the same.
func (s *Session) Submit(ids []int32) (reused int, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.c.mu.Unlock()
	if s.batch == nil {
		return 0, errorf(ErrArgument, "the session is alone: one of a batch was expected")
	}
	n := new(uintptr)
	err = status(s.c, jitSessionSubmit, s.p, uintptr(at(ids)), uintptr(len(ids)), uintptr(unsafe.Pointer(n)))
	return int(*n), err
}

// Step makes at most one pass over what is pending, and gives the sessions whose tokens are all computed by now, each
// told once; those of a Generate that another goroutine runs are told to that. An error of one session is told by what
// is asked of it next. Behind a panic of a function that it called, the next step tells of what is ready.
func (b *Batch) Step(ctx context.Context) ([]*Session, error) {
	return b.step(ctx, func(s *Session) bool { return !s.requested })
}

// step tells of the sessions that the caller wants, and leaves others to others.
func (b *Batch) step(ctx context.Context, wants func(s *Session) bool) ([]*Session, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.c.mu.Unlock()
	if out := b.take(wants); len(out) > 0 {
		return out, nil
	}
	if err := b.pass(ctx); err != nil {
		return nil, err
	}
	return b.take(wants), nil
}

// pass computes, and keeps who is ready, also where a function that it calls panics.
func (b *Batch) pass(ctx context.Context) error {
	ready, n := make([]uintptr, len(b.sessions)+1), new(uintptr)
	defer func() {
		for _, p := range ready[:*n] {
			if s := b.sessions[p]; s != nil {
				b.left = append(b.left, s)
			}
		}
	}()
	return b.c.compute(ctx, jitBatchStep, b.p, uintptr(at(ready)), uintptr(len(ready)), uintptr(unsafe.Pointer(n)))
}

// forgetSession takes out a session that is closed.
func (b *Batch) forgetSession(s *Session, p uintptr) {
	delete(b.sessions, p)
	for i, one := range b.left {
		if one == s {
			b.left = append(b.left[:i:i], b.left[i+1:]...)
			return
		}
	}
}

// take takes some of those that are left.
func (b *Batch) take(wants func(s *Session) bool) []*Session {
	var out, left []*Session
	for _, s := range b.left {
		if wants(s) {
			out = append(out, s)
		} else {
			left = append(left, s)
		}
	}
	b.left = left
	return out
}

// Pending is how many sessions have tokens to compute, or are ready and were not told yet.
func (b *Batch) Pending() int {
	if b.enter() != nil {
		return 0
	}
	defer b.c.mu.Unlock()
	return int(call(jitBatchPending, b.p)) + len(b.left)
}

// Forget forgets what is remembered of closed sessions that begin with these tokens; without tokens: of all. How many
// these were.
func (b *Batch) Forget(ids []int32) int {
	if b.enter() != nil {
		return 0
	}
	defer b.c.mu.Unlock()
	return int(call(jitBatchForget, b.p, uintptr(at(ids)), uintptr(len(ids))))
}

// BatchStats are the numbers of jit_batch_stats (man 3 jitrun).
type BatchStats struct {
	Passes, Tokens, PromptTokens, DecodeTokens, ReusedTokens uint64
	SetBack                                                  uint64 // how often a session made room
	Pages, PagesUsed, PagesKept, PagesShared                 uint64 // of 128 positions of a session
	KVBytes                                                  uint64
	Seconds                                                  float64
	Width                                                    [16]uint64 // passes by sessions: 1, 2, 3-4, 5-8, ...
	Context                                                  uint64     // most positions of a session
}

// Stats is what it has computed so far.
func (b *Batch) Stats() (BatchStats, error) {
	if err := b.enter(); err != nil {
		return BatchStats{}, err
	}
	defer b.c.mu.Unlock()
	return numbers[BatchStats](b.c, jitBatchGetStats, b.p, &jitBatchStats{size: unsafe.Sizeof(jitBatchStats{})})
}
