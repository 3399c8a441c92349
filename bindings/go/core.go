//go:build linux && amd64

package jitrun

// core.go - what belongs to one thread of C at a time: a session that is alone, or a batch with its sessions.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"
)

// handle is something of C's that others may still need when it is closed: a model, as long as there are sessions on
// it.
type handle struct {
	mu     sync.Mutex
	what   string
	close  function
	p      uintptr
	users  int
	closed bool
}

func newHandle(what string, close function, p uintptr) *handle {
	return &handle{what: what, close: close, p: p, users: 1}
}

// use gives the address until the call of release.
func (h *handle) use() (uintptr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, errorf(ErrClosed, "the %s is closed", h.what)
	}
	h.users++
	return h.p, nil
}

// again is use for who has it in use already.
func (h *handle) again() {
	h.mu.Lock()
	h.users++
	h.mu.Unlock()
}

// release ends a use; with the last one it goes.
func (h *handle) release() {
	h.mu.Lock()
	h.users--
	last := h.users == 0
	h.mu.Unlock()
	if last {
		urgently(h.close, h.p)
	}
}

// shut lets nobody begin another use.
func (h *handle) shut() {
	h.mu.Lock()
	was := h.closed
	h.closed = true
	h.mu.Unlock()
	if !was {
		h.release()
	}
}

// cell is memory of C's that says which slot the call of a core that runs has.
type cell struct{ slot uintptr }

// hookCell is what `user` of a callback points to.
type hookCell struct {
	cell uintptr // a *cell
	id   uintptr // of hooks
}

// core is used by one goroutine at a time.
type core struct {
	mu        sync.Mutex
	answering atomic.Uint64 // the goroutine that runs a callback of it
	cell      *cell
	cancel    uintptr // a jit_cancel, for contexts
}

// newCore makes a core; with a jit_cancel.
func newCore() (*core, error) {
	if err := ensure(); err != nil {
		return nil, err
	}
	cancel, err := address(nil, jitCancelOpen)
	if err != nil {
		return nil, err
	}
	return &core{cell: (*cell)(stable()), cancel: cancel}, nil
}

// end gives back what it has, when nothing uses it any more.
func (c *core) end() {
	urgently(jitCancelClose, c.cancel)
	unstable(unsafe.Pointer(c.cell))
}

// lock waits for other goroutines. An error: this one runs a callback of it.
func (c *core) lock(what string) error {
	if c.mu.TryLock() {
		return nil
	}
	if by := c.answering.Load(); by != 0 && by == goroutine() {
		return errorf(ErrArgument, "the %s is used by a function that it calls: it computes until that returns", what)
	}
	c.mu.Lock()
	return nil
}

// watch cancels what the core computes when the context ends. The function that it gives ends the watch, and says
// whether it has cancelled.
func (c *core) watch(ctx context.Context) func() {
	done := ctx.Done()
	if done == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	asked := false
	go func() {
		defer close(ended)
		select {
		case <-done:
			asked = true
			urgently(jitCancelSet, c.cancel, 1)
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-ended
		if asked {
			urgently(jitCancelSet, c.cancel, 0)
		}
	}
}

// because is the error of a cancelled call with what asked for it.
func because(err, cause error) error {
	var e *Error
	if err == nil || cause == nil || !errors.As(err, &e) || e.Kind != ErrCancelled {
		return err
	}
	return &Error{Kind: ErrCancelled, Message: e.Message + ": " + cause.Error(), cause: cause}
}

// beforeCall is the error of a context that is missing, or has ended.
func beforeCall(ctx context.Context) error {
	if ctx == nil {
		return errorf(ErrArgument, "the context is nil: one was expected, such as context.Background()")
	}
	if err := ctx.Err(); err != nil {
		return &Error{Kind: ErrCancelled, Message: "nothing was computed: " + err.Error(), cause: err}
	}
	return nil
}

// compute calls a function that gives a status, as long as the context goes on.
//
//go:uintptrescapes
func (c *core) compute(ctx context.Context, f function, arguments ...uintptr) error {
	if err := beforeCall(ctx); err != nil {
		return err
	}
	stop := c.watch(ctx)
	defer stop()
	return because(status(c, f, arguments...), ctx.Err())
}

// open calls a function that gives an address, likewise.
//
//go:uintptrescapes
func (c *core) open(ctx context.Context, f function, arguments ...uintptr) (uintptr, error) {
	if err := beforeCall(ctx); err != nil {
		return 0, err
	}
	stop := c.watch(ctx)
	defer stop()
	p, err := address(c, f, arguments...)
	return p, because(err, ctx.Err())
}

// hooks are the Go functions that C calls back.
type hooks struct {
	progress func(done, total uint64) error
	logits   func(logits []float32, ids []int32) error
	prompt   func(computed, length int) error
	err      error // what the last one said
	cell     *hookCell
}

var (
	allHooks  sync.Map
	lastHooks atomic.Uint64
)

// newHooks makes hooks for calls of a core.
func newHooks(c *core) *hooks {
	h := &hooks{cell: (*hookCell)(stable())}
	h.cell.cell, h.cell.id = uintptr(unsafe.Pointer(c.cell)), uintptr(lastHooks.Add(1))
	allHooks.Store(h.cell.id, h)
	return h
}

// end lets them go, when C does not know them any more.
func (h *hooks) end() {
	allHooks.Delete(h.cell.id)
	unstable(unsafe.Pointer(h.cell))
}

// user is what C is given for them.
func (h *hooks) user() uintptr { return uintptr(unsafe.Pointer(h.cell)) }

// hooksOf finds them by that; nil: they are gone.
func hooksOf(user uintptr) *hooks {
	h, _ := allHooks.Load((*hookCell)(pointer(&user)).id)
	found, _ := h.(*hooks)
	return found
}

// serve calls the function that the callback in a slot is for. Its answer ends the call of C where it is not 0.
func (h *hooks) serve(kind int, s *slot) int32 {
	var err error
	switch {
	case h == nil:
	case kind == callbackProgress && h.progress != nil:
		err = h.progress(uint64(s.given[1]), uint64(s.given[2]))
	case kind == callbackLogits && h.logits != nil:
		logits := unsafe.Slice((*float32)(pointer(&s.given[1])), s.given[2])
		var ids []int32
		if s.given[4] != 0 {
			ids = unsafe.Slice((*int32)(pointer(&s.given[3])), s.given[4])
		}
		err = h.logits(logits, ids)
	case kind == callbackPrompt && h.prompt != nil:
		err = h.prompt(int(s.given[1]), int(s.given[2]))
	}
	if err == nil {
		return 0
	}
	h.err = err
	return 1
}

// taken is the error that a hook gave since the last call of it.
func (h *hooks) taken() error {
	if h == nil {
		return nil
	}
	err := h.err
	h.err = nil
	return err
}
