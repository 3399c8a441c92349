//go:build linux && amd64

package jitrun

// library.go - libjitrun.so: where it is, and calls of its functions.

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// function is the number of a function in functionNames.
type function int

// soname is the library's name for the dynamic linker.
const soname = "libjitrun.so.1"

// sharedLibrary is what is loaded once.
type sharedLibrary struct {
	mu        sync.Mutex
	loaded    atomic.Bool
	path      string
	version   string
	functions [len(functionNames)]uintptr
}

var library sharedLibrary

// Load loads the library from a file, before anything else of this package is used. Without it, the library is the file
// that the environment variable JITRUN_LIBRARY names, or else the libjitrun.so.1 that the dynamic linker finds.
func Load(path string) error {
	l := &library
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded.Load() {
		return l.load(path)
	}
	if path != l.path {
		return errorf(ErrLibrary, "%s cannot be loaded: the library is already, from %s", path, l.path)
	}
	return nil
}

// Version is the version of the library, which is loaded for it.
func Version() (string, error) {
	if err := ensure(); err != nil {
		return "", err
	}
	return library.version, nil
}

// ensure loads the library unless it is loaded.
func ensure() error {
	l := &library
	if l.loaded.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded.Load() {
		return nil
	}
	path := os.Getenv("JITRUN_LIBRARY")
	if path == "" {
		path = soname
	}
	return l.load(path)
}

// load loads the library and finds its functions. One that it lacks is an error when it is called.
func (l *sharedLibrary) load(path string) error {
	if err := workers.start(); err != nil {
		return errorf(ErrLibrary, "%s cannot be loaded: %v", path, err)
	}
	var h held
	defer runtime.KeepAlive(&h)
	name := h.text("the library's path", path)
	if h.err != nil {
		return h.err
	}
	const now = 2 // RTLD_NOW
	handle, said := dynamic(systemOpen, name, now)
	if handle == 0 {
		return errorf(ErrLibrary, "the library cannot be loaded: %s; JITRUN_LIBRARY can name its file", said)
	}
	for i, name := range functionNames {
		l.functions[i], _ = dynamic(systemSymbol, handle, h.text("a name", name))
	}
	for _, f := range []function{jitVersion, jitFree} {
		if l.functions[f] == 0 {
			return errorf(ErrLibrary, "%s has no %s: it is no libjitrun.so of version 0.3.0 or later", path,
				functionNames[f])
		}
	}
	version := []request{{function: l.functions[jitVersion]}}
	invoke(nil, true, version)
	l.path, l.version = path, cText(version[0].result)
	l.loaded.Store(true)
	return nil
}

// newRequests makes requests on the heap, where C finds them.
//
//go:noinline
func newRequests(n int) []request { return make([]request, n) }

// dynamic calls a function of the dynamic linker, and tells what dlerror says behind it, on the same thread.
func dynamic(number int, arguments ...uintptr) (uintptr, string) {
	requests := newRequests(2)
	requests[0].function = system[number]
	copy(requests[0].arguments[:], arguments)
	requests[1].function = system[systemSaid]
	invoke(nil, true, requests)
	return requests[0].result, cText(requests[1].result)
}

// has says whether the library has a function.
func has(f function) error {
	if library.functions[f] == 0 {
		return errorf(ErrLibrary, "version %s of the library, %s, has no %s", library.version, library.path,
			functionNames[f])
	}
	return nil
}

// do calls a function of the loaded library; where it lacks it, the result is 0. Arguments are pointers on the heap
// that live until it returns, where they are written as uintptr(unsafe.Pointer(p)).
func do(c *core, urgent bool, f function, arguments []uintptr) uintptr {
	if library.functions[f] == 0 {
		return 0
	}
	one := []request{{function: library.functions[f]}}
	copy(one[0].arguments[:], arguments)
	invoke(c, urgent, one)
	return one[0].result
}

// call calls a function that gives a number or an address, and no error.
//
//go:uintptrescapes
func call(f function, arguments ...uintptr) uintptr {
	return do(nil, false, f, arguments)
}

// urgently is the same for what must not wait for others: what ends them.
//
//go:uintptrescapes
func urgently(f function, arguments ...uintptr) uintptr {
	return do(nil, true, f, arguments)
}

// status calls a function that gives a status, and whose last parameter is a jit_error.
//
//go:uintptrescapes
func status(c *core, f function, arguments ...uintptr) error {
	if err := has(f); err != nil {
		return err
	}
	e := newError()
	code := do(c, false, f, append(arguments, uintptr(unsafe.Pointer(e))))
	if int32(code) == jitOk {
		return nil
	}
	if e.code == jitOk {
		e.code = int32(code)
	}
	return e.asError()
}

// address calls a function that gives an address, or NULL and an error in its last parameter.
//
//go:uintptrescapes
func address(c *core, f function, arguments ...uintptr) (uintptr, error) {
	if err := has(f); err != nil {
		return 0, err
	}
	e := newError()
	p := do(c, false, f, append(arguments, uintptr(unsafe.Pointer(e))))
	if p != 0 {
		return p, nil
	}
	if err := e.asError(); err != nil {
		return 0, err
	}
	return 0, errorf(ErrMemory, "%s gave nothing", functionNames[f])
}

// many calls one function n times on one worker: fill has the arguments of each, and get its result. What arguments
// point to lies on the heap, and get keeps it alive.
func many(f function, n int, fill func(i int, arguments *[mostParameters]uintptr), get func(i int, result uintptr)) {
	const most = 4096
	for from := 0; from < n; from += most {
		part := n - from
		if part > most {
			part = most
		}
		requests := newRequests(part)
		for i := range requests {
			requests[i].function = library.functions[f]
			fill(from+i, &requests[i].arguments)
		}
		if library.functions[f] != 0 {
			invoke(nil, false, requests)
		}
		for i := range requests {
			get(from+i, requests[i].result)
		}
		runtime.KeepAlive(requests)
	}
}
