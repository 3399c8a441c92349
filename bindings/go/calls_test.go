//go:build linux && amd64

package jitrun

import (
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// calls_amd64.s has these numbers.
func TestOffsets(t *testing.T) {
	var s slot
	var r request
	var f first
	for i, one := range [][2]uintptr{
		{unsafe.Offsetof(s.state), 0}, {unsafe.Offsetof(s.answer), 4}, {unsafe.Offsetof(s.requests), 8},
		{unsafe.Offsetof(s.n), 16}, {unsafe.Offsetof(s.thread), 24}, {unsafe.Offsetof(s.kind), 32},
		{unsafe.Offsetof(s.given), 40}, {unsafe.Offsetof(r.function), 0}, {unsafe.Offsetof(r.result), 8},
		{unsafe.Offsetof(r.arguments), 16}, {unsafe.Sizeof(r), 80}, {unsafe.Offsetof(f.before), 8},
		{unsafe.Offsetof(f.fs), 16}, {unsafe.Offsetof(f.own), 24}, {unsafe.Offsetof(f.stack), 32},
		{unsafe.Offsetof(f.slot), 40}, {unsafe.Offsetof(f.result), 48}, {unsafe.Offsetof(f.create), 56},
		{uintptr(stateCall), 1}, {uintptr(stateGone), 6}, {callbackPrompt, 3},
	} {
		if one[0] != one[1] {
			t.Errorf("number %d: %d, calls_amd64.s has %d", i, one[0], one[1])
		}
	}
	if unsafe.Sizeof(s) > stableBytes {
		t.Error("a slot is larger than what stable gives")
	}
}

// Signals and other programs, while C computes.
func TestSignalsAndPrograms(t *testing.T) {
	m := openModel(t)
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	defer signal.Stop(got)
	var over atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !over.Load() {
			s, err := m.NewSession(ctx, &SessionOptions{Context: 64, Threads: 2})
			if err == nil {
				err = s.FeedText(ctx, prompt, false)
				s.Close()
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for i := 0; i < 20; i++ {
		ok(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
		select {
		case <-got:
		case <-time.After(10 * time.Second):
			t.Fatal("the signal does not come")
		}
		said, err := exec.Command("/bin/echo", "said").Output()
		ok(t, err)
		same(t, "what a program says", string(said), "said\n")
	}
	over.Store(true)
	ok(t, <-done)
}

// More calls at once than there are idle workers, again and again.
func TestWorkersComeAndGo(t *testing.T) {
	if _, err := Version(); err != nil {
		t.Skip(err)
	}
	for round := 0; round < 3; round++ {
		start, done := make(chan bool), make(chan uintptr)
		for i := 0; i < 100; i++ {
			go func() {
				<-start
				done <- call(jitDeviceCount)
			}()
		}
		close(start)
		for i := 0; i < 100; i++ {
			if <-done == 0 {
				t.Fatal("there is no device")
			}
		}
	}
	// Each of them in C at the same time.
	var held []*slot
	for i := 0; i < 60; i++ {
		held = append(held, workers.acquire(false))
	}
	for _, s := range held {
		workers.release(s)
	}
	workers.mu.Lock()
	defer workers.mu.Unlock()
	if len(workers.idle) != mostIdle || workers.running != 0 {
		t.Fatal(len(workers.idle), workers.running)
	}
}
