//go:build linux && amd64

// Package jitrun runs large language models with jitrun.
//
// A Model is a GGUF or safetensors file made ready; a Session is one conversation on it; a Batch computes many sessions
// together. The same tokens give the same bits on every machine, alone and in a batch.
//
//	model, err := jitrun.Open(ctx, "model.gguf", nil)
//	...
//	defer model.Close()
//	session, err := model.NewSession(ctx, &jitrun.SessionOptions{Context: 2048})
//	...
//	defer session.Close()
//	err = session.FeedText(ctx, "Once upon a time", false)
//	...
//	g := session.Generate(ctx, 64)
//	for g.Next() {
//		fmt.Print(g.Text())
//	}
//	err = g.Err()
//
// The package is Go and needs no cgo, though it works in programs that have it. The library, libjitrun.so.1, is loaded
// when it is used first: the file that JITRUN_LIBRARY names, or that the dynamic linker finds. A program is linked to
// the GNU C library alone, of version 2.34 or later, and starts without jitrun, too.
//
// Functions that compute take a context, whose end ends the computation with ErrCancelled. Errors are of type *Error,
// with the library's sentence, and errors.Is(err, jitrun.ErrContext) asks for their kind.
//
// The functions that a program has the library call (ModelOptions.Progress, Session.SetLogitsFunc,
// Session.SetPromptFunc) run on the goroutine that made the call. A panic in one of them ends the call and goes on.
package jitrun
