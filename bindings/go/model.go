//go:build linux && amd64

package jitrun

import (
	"context"
	"runtime"
	"unsafe"
)

// Model is a model's weights, tokenizer and machine code, ready to compute. Any number of goroutines may use it.
//
// Sessions go on after the model's Close; its memory is given back when the last of them is closed, too.
type Model struct {
	h         *handle
	vocab     int
	width     int // floats of a token's row
	embedding int // ... of a text's embedding
	ends      map[int32]bool
}

// Bounded is what of a model's products is within an error instead of exact.
type Bounded int

// What Bounded may be.
const (
	BoundedNone    = Bounded(jitBoundedNone)
	BoundedPrompts = Bounded(jitBoundedPrompts) // results depend on how a prompt is cut
	BoundedAll     = Bounded(jitBoundedAll)
)

// ModelInfo is what a model is.
type ModelInfo struct {
	Description        string // "qwen3, 28 layers, hidden 1024, Q8_0"
	Vocab              int    // tokens
	Layers             int
	Hidden             int // floats of an embedding
	ContextTrained     int // positions it was trained for
	HasTokenizer       bool
	HasChatTemplate    bool
	HasSampling        bool    // its files say how tokens are to be chosen, or part of it
	FileBytes          uint64  // of the weight files
	WeightBytes        uint64  // of packed weights, in memory
	TokenBytes         uint64  // of weights read to make one token
	LoadSeconds        float64 // from opening to ready
	WeightCacheTrouble string  // why packed weights could not be kept
	Pooling            Pooling // of embeddings, as its files say; PoolNone: they do not
	Bounded            Bounded
	BoundedGain        float64 // products of BF16 pairs for one of floats, on this processor; 0: not measured
	Encodes            bool    // it encodes texts and generates none
	Embedding          int     // floats of a text's embedding
}

// Open opens a .gguf file, a .safetensors file with config.json beside it, or a directory that holds either. options
// may be nil.
func Open(ctx context.Context, path string, options *ModelOptions) (*Model, error) {
	c, err := newCore()
	if err != nil {
		return nil, err
	}
	defer c.end()
	var h held
	raw := options.raw(&h)
	at := h.text("the path of the model", path)
	if h.err != nil {
		return nil, h.err
	}
	raw.cancel = c.cancel
	var progress *hooks
	if options != nil && options.Progress != nil {
		progress = newHooks(c)
		defer progress.end()
		progress.progress = options.Progress
		raw.progress, raw.progressUser = addressOfCallback(callbackProgress), progress.user()
	}
	p, err := c.open(ctx, jitModelOpen, at, uintptr(unsafe.Pointer(raw)))
	runtime.KeepAlive(&h)
	if err != nil {
		if cause := progress.taken(); cause != nil {
			return nil, &Error{Kind: ErrCancelled, Message: err.Error() + ": " + cause.Error(), cause: cause}
		}
		return nil, err
	}
	m := &Model{h: newHandle("model", jitModelClose, p)}
	info, err := m.Info()
	if err != nil {
		m.Close()
		return nil, err
	}
	m.vocab, m.width, m.embedding = info.Vocab, info.Hidden, info.Embedding
	m.findEnds()
	runtime.SetFinalizer(m, func(m *Model) { go m.Close() })
	return m, nil
}

// Close lets go of the model. Again, nothing happens.
func (m *Model) Close() error {
	runtime.SetFinalizer(m, nil)
	m.h.shut()
	return nil
}

// Info says what it is.
func (m *Model) Info() (ModelInfo, error) {
	p, err := m.h.use()
	if err != nil {
		return ModelInfo{}, err
	}
	defer m.h.release()
	raw := &jitModelInfo{size: unsafe.Sizeof(jitModelInfo{})}
	if err := status(nil, jitModelGetInfo, p, uintptr(unsafe.Pointer(raw))); err != nil {
		return ModelInfo{}, err
	}
	var out ModelInfo
	fromC(&out, raw)
	return out, nil
}

// Written says whether the files of PerfMap, DumpIR, DumpAsm and Jitdump could be written whole so far.
func (m *Model) Written() error {
	p, err := m.h.use()
	if err != nil {
		return err
	}
	defer m.h.release()
	return status(nil, jitModelWritten, p)
}

// Alive gives an error of the kind ErrDevice once the model's device has failed for good. Then nothing is computed with
// the model any more; it can be closed.
func (m *Model) Alive() error {
	p, err := m.h.use()
	if err != nil {
		return err
	}
	defer m.h.release()
	return status(nil, jitModelAlive, p)
}

// Tokenize makes tokens of a text. addSpecial: with those that the model wants before and behind a text. parseSpecial:
// text such as "<|im_start|>" becomes that token; false is for text that others wrote.
func (m *Model) Tokenize(text string, addSpecial, parseSpecial bool) ([]int32, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	return tokenize(p, text, addSpecial, parseSpecial)
}

func tokenize(p uintptr, text string, addSpecial, parseSpecial bool) ([]int32, error) {
	var h held
	at, n := h.bytes(text)
	out := &struct{ ids, n uintptr }{}
	err := status(nil, jitModelTokenize, p, at, n, uintptr(flag(addSpecial)), uintptr(flag(parseSpecial)),
		uintptr(unsafe.Pointer(&out.ids)), uintptr(unsafe.Pointer(&out.n)))
	runtime.KeepAlive(&h)
	if err != nil {
		return nil, err
	}
	defer call(jitFree, out.ids)
	ids := cCopy[int32](out.ids, out.n)
	if ids == nil {
		ids = []int32{}
	}
	return ids, nil
}

// Detokenize makes text of tokens, as the bytes are, which may be no UTF-8.
func (m *Model) Detokenize(ids []int32) (string, error) {
	p, err := m.h.use()
	if err != nil {
		return "", err
	}
	defer m.h.release()
	n := new(uintptr)
	text, err := address(nil, jitModelDetokenize, p, uintptr(at(ids)), uintptr(len(ids)), uintptr(unsafe.Pointer(n)))
	if err != nil {
		return "", err
	}
	defer call(jitFree, text)
	return cBytes(text, *n), nil
}

// IsEnd says whether the token ends a generation; false also for what is no token.
func (m *Model) IsEnd(id int32) bool { return m.ends[id] }

// findEnds asks for all tokens at once.
func (m *Model) findEnds() {
	m.ends = map[int32]bool{}
	many(jitModelIsEnd, m.vocab, func(i int, a *[mostParameters]uintptr) {
		a[0], a[1] = m.h.p, uintptr(i)
	}, func(i int, result uintptr) {
		if int32(result) != 0 {
			m.ends[int32(i)] = true
		}
	})
}

// SamplingDefaults is how the model's makers say that tokens are to be chosen. Its seed is 0: set another for other
// texts.
func (m *Model) SamplingDefaults() (Sampling, error) {
	p, err := m.h.use()
	if err != nil {
		return Sampling{}, err
	}
	defer m.h.release()
	raw := &jitSampling{size: unsafe.Sizeof(jitSampling{})}
	if err := status(nil, jitModelSamplingDefaults, p, uintptr(unsafe.Pointer(raw))); err != nil {
		return Sampling{}, err
	}
	return samplingOf(raw), nil
}

// oneOff opens a session for n tokens and closes it behind what is done with it.
func (m *Model) oneOff(ctx context.Context, n int, then func(s *Session) error) error {
	if n == 0 {
		return errorf(ErrArgument, "the text has no tokens: one at least was expected")
	}
	s, err := m.NewSession(ctx, &SessionOptions{Context: n})
	if err != nil {
		return err
	}
	defer s.Close()
	return then(s)
}

// Embed gives the embedding of a text of its own.
func (m *Model) Embed(ctx context.Context, text string, options EmbedOptions) ([]float32, error) {
	ids, err := m.Tokenize(text, true, false)
	if err != nil {
		return nil, err
	}
	var out []float32
	err = m.oneOff(ctx, len(ids), func(s *Session) (err error) {
		out, err = s.Embed(ctx, ids, options)
		return err
	})
	return out, err
}

// TokenScore is a token of a text, and the natural logarithm of its probability behind all before it.
type TokenScore struct {
	ID      int32
	Logprob float32
}

// Score says how much the model expected each token of a text. given is what stands before the text, and may be empty;
// the first token of all has 0.
func (m *Model) Score(ctx context.Context, given, text string) ([]TokenScore, error) {
	var before []int32
	var err error
	if given != "" {
		if before, err = m.Tokenize(given, true, false); err != nil {
			return nil, err
		}
	}
	ids, err := m.Tokenize(text, given == "", false)
	if err != nil {
		return nil, err
	}
	out := make([]TokenScore, len(ids))
	err = m.oneOff(ctx, len(before)+len(ids), func(s *Session) error {
		if len(before) > 0 {
			if err := s.Feed(ctx, before); err != nil {
				return err
			}
		}
		scores, err := s.Score(ctx, ids)
		for i := range scores {
			out[i] = TokenScore{ids[i], scores[i]}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Device is something that models can be opened on.
type Device struct {
	Name   string // for ModelOptions.Device
	About  string // what it is, one line
	WhyNot string // "": models can be opened on it
}

// Devices are those of this machine.
func Devices() ([]Device, error) {
	if err := ensure(); err != nil {
		return nil, err
	}
	var out []Device
	for i, n := uintptr(0), call(jitDeviceCount); i < n; i++ {
		raw := &jitDeviceInfo{size: unsafe.Sizeof(jitDeviceInfo{})}
		if err := status(nil, jitDeviceGetInfo, i, uintptr(unsafe.Pointer(raw))); err != nil {
			return nil, err
		}
		var one Device
		fromC(&one, raw)
		out = append(out, one)
	}
	return out, nil
}

// Needs is what a model and one session on it take of this machine's memory, in bytes.
type Needs struct {
	WeightBytes    uint64 // of weights, packed for this processor
	TokenBytes     uint64 // of weights read to make one token
	KVBytes        uint64 // of the KV cache, and of states that layers keep
	PassBytes      uint64 // of what passes compute
	AvailableBytes uint64 // of memory that can be had now; math.MaxUint64: not known
	Context        int    // of the session, in tokens
	ContextTrained int    // what the model was trained for; 0: its files do not say
}

// ModelNeeds measures a model before it is opened. Of the session's options, which may be nil, Context, Batch, KV and
// Speculate count.
func ModelNeeds(path string, session *SessionOptions) (Needs, error) {
	if err := ensure(); err != nil {
		return Needs{}, err
	}
	var h held
	options, at := session.raw(&h), h.text("the path of the model", path)
	if h.err != nil {
		return Needs{}, h.err
	}
	raw := &jitNeeds{size: unsafe.Sizeof(jitNeeds{})}
	err := status(nil, jitModelNeeds, at, uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(raw)))
	runtime.KeepAlive(&h)
	if err != nil {
		return Needs{}, err
	}
	var out Needs
	fromC(&out, raw)
	return out, nil
}

// ObjectsOptions say which machine code WriteObjects writes, and where.
type ObjectsOptions struct {
	Target          string // a card, "gfx1101"
	Dir             string // made when it is missing
	KV              KV
	F32Activations  bool
	BoundedNumerics Numerics
}

// Objects is what WriteObjects wrote.
type Objects struct {
	Kernels, Programs int
	Bytes             uint64
}

// WriteObjects writes the machine code of a model's passes as files: code objects for AMD's cards, PTX for NVIDIA's. No
// card is needed, and of the model's file only the header.
func WriteObjects(path string, options ObjectsOptions) (Objects, error) {
	if err := ensure(); err != nil {
		return Objects{}, err
	}
	var h held
	defer runtime.KeepAlive(&h)
	raw := &jitObjectsOptions{size: unsafe.Sizeof(jitObjectsOptions{})}
	h.toC(raw, &options)
	at := h.text("the path of the model", path)
	if h.err != nil {
		return Objects{}, h.err
	}
	wrote := &jitObjects{size: unsafe.Sizeof(jitObjects{})}
	if err := status(nil, jitWriteObjects, at, uintptr(unsafe.Pointer(raw)), uintptr(unsafe.Pointer(wrote))); err != nil {
		return Objects{}, err
	}
	var out Objects
	fromC(&out, wrote)
	return out, nil
}
