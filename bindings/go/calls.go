//go:build linux && amd64

package jitrun

// calls.go - calls of C functions from Go without cgo: slots, workers, and the functions that C calls back.
//
// HOW A CALL IS MADE. C code runs on threads that the C library made. Such a worker waits at its slot (a futex) for
// requests: the addresses of functions and their arguments. Go writes these, wakes the worker, and waits at the same
// slot in a blocking system call, so that other goroutines go on meanwhile. A function that C calls back puts the
// callback's number and arguments into the slot and waits; the goroutine that waits for the call runs the Go function
// and answers. So Go never runs on a thread of C, C never on one of Go's, and neither knows of the other's stacks,
// signals and thread-local storage.
//
// THE FIRST WORKER. The line //go:cgo_import_dynamic below makes the program a dynamically linked one, whose C library
// the dynamic linker has prepared before Go begins; system.go finds its functions. But pthread_create wants to be called
// by a thread of the C library.
// There is one: that of the main thread, whose thread pointer Go's runtime replaced by its own, and which nobody uses
// since. The kernel knows where it lies: its list of robust mutexes is part of it (get_robust_list). startFirst calls
// pthread_create as that thread, once, with all signals blocked and on a stack of its own. In a program with cgo all
// threads are the C library's, and the thread pointer stays.
//
// SIGNALS. Threads inherit the signals that their creator blocks: workers, and the threads that the library makes, have
// all of them blocked. So handlers of Go's runtime only run on threads of Go's.
//
// MEMORY. What is handed to C lies on the heap, where the collector moves nothing, and stays alive until the call ends:
// arguments written as uintptr(unsafe.Pointer(p)) in a call of a function with //go:uintptrescapes, and what a `held`
// keeps. What C may look at between calls lies in memory that is not Go's (stable).

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

//go:cgo_import_dynamic _ _ "libc.so.6"

// The functions in calls_amd64.s.
func work()
func progressCalled()
func logitsCalled()
func promptCalled()
func threadPointer() uintptr
func startFirst(b *first)
func addressOfWork() uintptr
func addressOfCallback(kind int) uintptr

// For addressOfCallback, and slot.kind.
const (
	callbackProgress = iota + 1
	callbackLogits
	callbackPrompt
)

// The states of a slot: stateCall, stateAnswered and stateQuit are set by Go, the others by the worker. Behind
// stateGone the worker does not look at the slot any more.
const (
	stateIdle uint32 = iota
	stateCall
	stateDone
	stateCallback
	stateAnswered
	stateQuit
	stateGone
)

// slot is where Go and a worker meet.
type slot struct {
	state    uint32 // a futex
	answer   int32  // to a callback
	requests uintptr
	n        uintptr
	thread   uintptr    // pthread_t
	kind     uintptr    // of a callback, and what it was given
	given    [5]uintptr // the first is a *hookCell
	one      request
}

// request is a call of a C function with up to 8 integers or addresses.
type request struct {
	function  uintptr
	result    uintptr
	arguments [mostParameters]uintptr
}

// first is what startFirst works on.
type first struct {
	blocked uint64  // all signals
	before  uint64  // those that were blocked
	fs      uintptr // the thread pointer to call with; 0: the one that is set
	own     uintptr // the one that is set
	stack   uintptr // its upper end
	slot    uintptr
	result  int32
	_       int32
	create  uintptr // pthread_create
}

// mostParameters is how many parameters a function of C may have; calls_amd64.s passes that many.
const mostParameters = 8

// stableBytes is the size of each piece that stable gives.
const stableBytes = 256

var stableMemory struct {
	sync.Mutex
	free []unsafe.Pointer
}

// stable gives zeroed memory that is not the collector's.
func stable() unsafe.Pointer {
	m := &stableMemory
	m.Lock()
	defer m.Unlock()
	if len(m.free) == 0 {
		const pages = 4096
		got, err := syscall.Mmap(-1, 0, pages, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			panic("jitrun: mmap of a page failed: " + err.Error())
		}
		for at := 0; at < pages; at += stableBytes {
			m.free = append(m.free, unsafe.Pointer(&got[at]))
		}
	}
	p := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	*(*[stableBytes]byte)(p) = [stableBytes]byte{}
	return p
}

// unstable gives it back.
func unstable(p unsafe.Pointer) {
	stableMemory.Lock()
	stableMemory.free = append(stableMemory.free, p)
	stableMemory.Unlock()
}

func futex(at *uint32, operation uintptr, value uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(at)), operation, uintptr(value), 0, 0, 0)
}

const (
	futexWaitPrivate = 128
	futexWakePrivate = 129
)

// tell gives the slot a state and wakes the worker.
func (s *slot) tell(state uint32) {
	atomic.StoreUint32(&s.state, state)
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&s.state)), futexWakePrivate, 1, 0, 0, 0)
}

// wait waits until the worker is done, or calls back.
func (s *slot) wait() uint32 {
	for {
		state := atomic.LoadUint32(&s.state)
		if state == stateDone || state == stateCallback {
			return state
		}
		futex(&s.state, futexWaitPrivate, state)
	}
}

// run makes the calls of n requests; c serves what they call back.
func (s *slot) run(c *core, requests *request, n int) {
	if c != nil {
		c.cell.slot = uintptr(unsafe.Pointer(s))
	}
	s.requests, s.n = uintptr(unsafe.Pointer(requests)), uintptr(n)
	s.tell(stateCall)
	for s.wait() == stateCallback {
		s.answer = s.serve(c)
		s.tell(stateAnswered)
	}
}

// serve runs the Go function of a callback. Where that panics, or ends the goroutine, the call of C is told to give up
// and waited for before the goroutine leaves it.
func (s *slot) serve(c *core) int32 {
	returned := false
	workers.lend()
	c.answering.Store(goroutine())
	defer func() {
		c.answering.Store(0)
		workers.takeBack()
		if !returned {
			for state := stateCallback; state == stateCallback; state = s.wait() {
				s.answer = 1
				s.tell(stateAnswered)
			}
		}
	}()
	answer := hooksOf(s.given[0]).serve(int(s.kind), s)
	returned = true
	return answer
}

// goroutine is the number of the goroutine that asks. The runtime tells it in traces alone.
func goroutine() uint64 {
	var room [64]byte
	said := room[len("goroutine "):runtime.Stack(room[:], false)]
	end := 0
	for end < len(said) && said[end] >= '0' && said[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseUint(string(said[:end]), 10, 64)
	return n
}

// pool has the workers.
type pool struct {
	mu      sync.Mutex
	room    *sync.Cond
	idle    []*slot
	leaving []*slot // they were told to end
	running int     // in C; those that wait for the answer of a callback do not count
	spawner struct {
		sync.Mutex
		slot *slot // the first worker, which makes others
	}
}

const (
	mostRunning = 256 // calls beyond that wait for a worker
	mostIdle    = 16  // workers beyond that end
)

var workers = newPool()

func newPool() *pool {
	p := &pool{}
	p.room = sync.NewCond(&p.mu)
	return p
}

// start makes the first worker.
func (p *pool) start() error {
	p.spawner.Lock()
	defer p.spawner.Unlock()
	if p.spawner.slot != nil {
		return nil
	}
	if err := findSystem(); err != nil {
		return err
	}
	const stackBytes = 1 << 18
	stack, err := syscall.Mmap(-1, 0, stackBytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("a stack for a first thread cannot be had: %w", err)
	}
	defer syscall.Munmap(stack)
	s := (*slot)(stable())
	b := &first{blocked: ^uint64(0), slot: uintptr(unsafe.Pointer(s)), create: system[systemCreateThread]}
	b.stack = uintptr(unsafe.Pointer(&stack[0])) + stackBytes
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.own = threadPointer()
	if !isThread(&b.own) {
		if b.fs, err = mainThread(); err != nil {
			unstable(unsafe.Pointer(s))
			return err
		}
	}
	startFirst(b)
	if b.result != 0 {
		unstable(unsafe.Pointer(s))
		return fmt.Errorf("a thread cannot be started: %w", syscall.Errno(b.result))
	}
	s.detach()
	p.spawner.slot = s
	return nil
}

// detach has the worker's thread need no pthread_join.
func (s *slot) detach() {
	s.one = request{function: system[systemDetachThread]}
	s.one.arguments[0] = s.thread
	s.run(nil, &s.one, 1)
}

// pointer is an address that C gave.
func pointer(p *uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(p))
}

// isThread says whether a thread pointer is one of the C library's: its first and third word are its own address.
func isThread(fs *uintptr) bool {
	words := (*[3]uintptr)(pointer(fs))
	return words[0] == *fs && words[2] == *fs
}

// mainThread finds the thread pointer that the C library gave to the main thread: before its list of robust mutexes, in
// the same struct.
func mainThread() (uintptr, error) {
	var list, bytes uintptr
	_, _, errno := syscall.RawSyscall(syscall.SYS_GET_ROBUST_LIST, uintptr(syscall.Getpid()),
		uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&bytes)))
	if errno != 0 {
		return 0, fmt.Errorf("get_robust_list failed: %w", errno)
	}
	const most = 4096
	for fs := list &^ 7; list != 0 && fs+most > list; fs -= 8 {
		if isThread(&fs) {
			return fs, nil
		}
	}
	return 0, errors.New("the main thread of the C library was not found: the program was started by no dynamic " +
		"linker of the GNU C library")
}

// unused gives a slot without a worker.
func (p *pool) unused() *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.leaving {
		if atomic.LoadUint32(&s.state) == stateGone {
			p.leaving = append(p.leaving[:i], p.leaving[i+1:]...)
			*s = slot{}
			return s
		}
	}
	return (*slot)(stable())
}

// spawn makes another worker. nil: no thread can be started.
func (p *pool) spawn() *slot {
	p.spawner.Lock()
	defer p.spawner.Unlock()
	s := p.unused()
	by := p.spawner.slot
	by.one = request{function: system[systemCreateThread]}
	by.one.arguments[0] = uintptr(unsafe.Pointer(&s.thread))
	by.one.arguments[2] = addressOfWork()
	by.one.arguments[3] = uintptr(unsafe.Pointer(s))
	by.run(nil, &by.one, 1)
	if int32(by.one.result) != 0 {
		unstable(unsafe.Pointer(s))
		return nil
	}
	s.detach()
	return s
}

// acquire gives a worker. urgent: however many there are. nil: no thread can be started.
func (p *pool) acquire(urgent bool) *slot {
	p.mu.Lock()
	for !urgent && p.running >= mostRunning {
		p.room.Wait()
	}
	p.running++
	var s *slot
	if n := len(p.idle); n > 0 {
		s, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if s == nil {
		s = p.spawn()
	}
	return s
}

// release takes it back.
func (p *pool) release(s *slot) {
	p.mu.Lock()
	p.running--
	p.room.Signal()
	keep := s != nil && len(p.idle) < mostIdle
	if keep {
		p.idle = append(p.idle, s)
	}
	quit := s != nil && !keep
	if quit {
		p.leaving = append(p.leaving, s)
	}
	p.mu.Unlock()
	if quit {
		s.tell(stateQuit)
	}
}

// lend counts a worker out while it waits for the answer of a callback, which may make calls itself.
func (p *pool) lend() {
	p.mu.Lock()
	p.running--
	p.room.Signal()
	p.mu.Unlock()
}

// takeBack counts it in again, at once: a wait for others could be for those that wait for it.
func (p *pool) takeBack() {
	p.mu.Lock()
	p.running++
	p.mu.Unlock()
}

// invoke makes calls on a worker, one after the other; several lie on the heap, made by make. urgent: at once, however
// many workers there are.
func invoke(c *core, urgent bool, requests []request) {
	s := workers.acquire(urgent)
	defer workers.release(s)
	by := s
	if s == nil {
		workers.spawner.Lock()
		defer workers.spawner.Unlock()
		by = workers.spawner.slot
	}
	if len(requests) != 1 {
		by.run(c, &requests[0], len(requests))
		return
	}
	by.one = requests[0]
	by.run(c, &by.one, 1)
	requests[0].result = by.one.result
}
