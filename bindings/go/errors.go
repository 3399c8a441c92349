//go:build linux && amd64

package jitrun

import (
	"fmt"
	"unsafe"
)

// Kind is what kind of error it is. A kind is an error itself, for errors.Is:
//
//	if errors.Is(err, jitrun.ErrContext) { ... }
type Kind int

// The kinds of errors. What a later library adds has another number.
const (
	ErrIO          = Kind(jitErrorIo)          // a file could not be opened or read
	ErrFormat      = Kind(jitErrorFormat)      // a file breaks its format's rules, or gives logits that are not finite
	ErrUnsupported = Kind(jitErrorUnsupported) // well formed, but jitrun does not do it
	ErrMemory      = Kind(jitErrorMemory)      // not enough memory
	ErrArgument    = Kind(jitErrorArgument)    // a value is out of range
	ErrDevice      = Kind(jitErrorDevice)      // the device cannot run this
	ErrContext     = Kind(jitErrorContext)     // the session's context is full
	ErrCancelled   = Kind(jitErrorCancelled)   // Cancel, a context or a callback asked for it
	ErrStalled     = Kind(jitErrorStalled)     // a step of a batch computed nothing of what is due: a fault of jitrun
	ErrClosed      = Kind(-1)                  // it was used after Close
	ErrLibrary     = Kind(-2)                  // libjitrun.so cannot be loaded, or is too old
)

var kindNames = map[Kind]string{
	ErrIO: "a file could not be read", ErrFormat: "wrong format", ErrUnsupported: "not supported",
	ErrMemory: "out of memory", ErrArgument: "wrong argument", ErrDevice: "the device failed",
	ErrContext: "the context is full", ErrCancelled: "cancelled", ErrStalled: "a batch stalled", ErrClosed: "closed",
	ErrLibrary: "libjitrun.so is not there",
}

// Error says what kind it is, in a few words.
func (k Kind) Error() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("error %d of libjitrun", int(k))
}

// Error is what functions of this package return: a kind, and one sentence that names the object, the value found and
// the value expected.
//
// errors.Is(err, kind) asks for the kind. Where a context or a callback ended a call, errors.Is(err, cause) holds for
// the context's or the callback's error, too.
type Error struct {
	Kind    Kind
	Message string
	cause   error
}

func (e *Error) Error() string { return e.Message }

// Is says whether target is the error's kind.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind
}

// Unwrap gives the error of the context or the callback that ended a call; nil: none did.
func (e *Error) Unwrap() error { return e.cause }

func errorf(kind Kind, format string, arguments ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// newError makes room for an error of the library, on the heap.
//
//go:noinline
func newError() *jitError { return new(jitError) }

// asError is the library's error; nil: there is none.
func (e *jitError) asError() error {
	if e.code == jitOk {
		return nil
	}
	return &Error{Kind: Kind(e.code), Message: textOf(e.message[:])}
}

// textOf is the text before the first zero byte.
func textOf(bytes []byte) string {
	for i, c := range bytes {
		if c == 0 {
			return string(bytes[:i])
		}
	}
	return string(bytes)
}

// cText is a text that C ends with a zero byte, which nobody changes meanwhile; "" of NULL.
func cText(p uintptr) string {
	if p == 0 {
		return ""
	}
	start, n := pointer(&p), 0
	for *(*byte)(unsafe.Add(start, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(start), n))
}

// cBytes is a text of n bytes of C.
func cBytes(p uintptr, n uintptr) string {
	if p == 0 || n == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(pointer(&p)), n))
}

// cCopy is a copy of n numbers of C.
func cCopy[T any](p uintptr, n uintptr) []T {
	if p == 0 || n == 0 {
		return nil
	}
	return append([]T(nil), unsafe.Slice((*T)(pointer(&p)), n)...)
}

// at is where a slice begins; nil: it is empty.
func at[T any](list []T) unsafe.Pointer {
	if len(list) == 0 {
		return nil
	}
	return unsafe.Pointer(&list[0])
}

// held is what structs of C point to while a call runs, and the first error in making it.
type held struct {
	things []any
	err    error
}

// text is a text as C takes it.
func (h *held) text(what, text string) uintptr {
	bytes := make([]byte, len(text)+1)
	copy(bytes, text)
	for i := range text {
		if text[i] == 0 {
			h.fail(errorf(ErrArgument, "%s has a zero byte at %d: text without one was expected", what, i))
			return 0
		}
	}
	h.things = append(h.things, bytes)
	return uintptr(unsafe.Pointer(&bytes[0]))
}

// optional is the same of a text that is not given where it is empty.
func (h *held) optional(what, text string) uintptr {
	if text == "" {
		return 0
	}
	return h.text(what, text)
}

// bytes is a text with its length.
func (h *held) bytes(text string) (uintptr, uintptr) {
	bytes := append([]byte(text), 0)
	h.things = append(h.things, bytes)
	return uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(text))
}

// texts is a list of texts; it has an address even where it is empty.
func (h *held) texts(what string, texts []string) uintptr {
	list := make([]uintptr, len(texts)+1)
	for i, text := range texts {
		list[i] = h.text(what, text)
	}
	h.things = append(h.things, list)
	return uintptr(unsafe.Pointer(&list[0]))
}

// keep is where a struct lies.
func keep[T any](h *held, p *T) uintptr {
	h.things = append(h.things, p)
	return uintptr(unsafe.Pointer(p))
}

// int is a number as C's int.
func (h *held) int(what string, n int) int32 {
	if int(int32(n)) != n {
		h.fail(errorf(ErrArgument, "%s is %d, which an int of C does not hold", what, n))
	}
	return int32(n)
}

func (h *held) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

func flag(on bool) int32 {
	if on {
		return 1
	}
	return 0
}
