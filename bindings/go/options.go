//go:build linux && amd64

package jitrun

// options.go - how models, sessions and batches are opened: fields, and the same by their names.

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

// KV is a type of the numbers in a KV cache.
type KV int

// Types of KV caches.
const (
	KVF16 = KV(jitKvF16)
	KVF32 = KV(jitKvF32)
	KVQ80 = KV(jitKvQ80) // 9 bits a number instead of 16, rounded more
)

// Tune is what becomes of schedules that are not known yet.
type Tune int

// What Tune may be.
const (
	TuneQuick  = Tune(jitTuneQuick)  // the first session to decode tries some, and keeps the fastest in the cache
	TuneCached = Tune(jitTuneCached) // only what is known is used
	TuneOff    = Tune(jitTuneOff)
)

// Numerics is how exact products are.
type Numerics int

// What Numerics may be.
const (
	NumericsExact         = Numerics(jitNumericsExact)   // every device, prompt length and cut gives the same bits
	NumericsBounded       = Numerics(jitNumericsBounded) // within a stated error, where it is faster
	NumericsAlwaysBounded = Numerics(jitNumericsAlwaysBounded)
)

// Speculate is how many tokens a pass with draft tokens has: 4, 8 or 16, or one of the constants.
type Speculate int

// What else Speculate may be.
const (
	SpeculateAuto = Speculate(jitSpeculateAuto) // where it gains time
	SpeculateOff  = Speculate(jitSpeculateOff)
)

// Profile is what a session measures.
type Profile int

// What Profile may be.
const (
	ProfileOff    = Profile(jitProfileOff)
	ProfileSums   = Profile(jitProfileSums)   // for Session.Report
	ProfileEvents = Profile(jitProfileEvents) // for Session.Trace, too
)

// Launch is what one launch on a card does.
type Launch int

// What Launch may be.
const (
	LaunchToken = Launch(jitLaunchToken) // all of a pass
	LaunchLayer = Launch(jitLaunchLayer)
	LaunchOp    = Launch(jitLaunchOp)
)

// ModelOptions say how a model is opened. The zero value is all defaults.
type ModelOptions struct {
	Device           string   // "cpu" (which "" is), "ref", "sim:gfx1100", "cuda", "cuda:1", "amd" and so on
	ISA              string   // "avx2" and so on; "": the best that this processor has
	Threads          int      // for loading; 0: one for each core that the process may use
	Sealed           bool     // no code is generated: all of it is in CacheDir
	CacheDir         string   // for generated code; "": $JITRUN_CACHE, or $XDG_CACHE_HOME/jitrun
	NoCache          bool     // generated code is kept nowhere
	CacheLimit       uint64   // bytes of a cache; 0: 256 MiB
	F32Activations   bool     // quantised weights multiply floats: slower, closer to floats
	BoundedNumerics  Numerics // exact unless it is set
	Tune             Tune
	PerfMap          bool   // /tmp/perf-PID.map for Linux perf
	DumpIR           string // a file for the IR of every kernel that is generated
	DumpAsm          string // the same as machine code
	Jitdump          string // a directory for jit-PID.dump
	GDB              bool   // kernels have names in gdb
	CopyWeights      bool   // packed weights are copied, not mapped
	WeightCache      string // a directory for packed weights; "": $JITRUN_WEIGHT_CACHE, or nowhere
	KeepWeights      bool   // where WeightCache is "": in $XDG_CACHE_HOME/jitrun-weights then
	WeightCacheLimit uint64 // bytes it may hold; 0: 64 GiB
	// Session is the session to come: what it needs and cannot have is refused before the weights are loaded.
	Session *SessionOptions
	// Progress is called while the model loads, with bytes. Where it gives an error, Open ends with it.
	Progress func(done, total uint64) error
}

// SessionOptions say how a session is opened. The zero value is all defaults, and takes the likeliest token.
type SessionOptions struct {
	Context   int // positions; 0: as in training, as far as memory goes
	Threads   int // 0: one for each core that the process may use
	Batch     int // most prompt tokens of a pass, at most 1024; 0: 264, on NVIDIA cards 512
	KV        KV
	Speculate Speculate
	Profile   Profile
	Sampling  *Sampling    // nil: the likeliest token is taken
	Card      *CardOptions // nil: all defaults
}

// CardOptions are what only graphics cards have.
type CardOptions struct {
	Launch     Launch
	Workgroups int // of 8 waves, that run at the same time; 0: as many as there is room for
	Units      int // compute units of simulated cards; 0: 2
}

// BatchOptions say how a batch is opened. The zero value is all defaults.
type BatchOptions struct {
	Threads   int // 0: one for each core that the process may use
	Tokens    int // most tokens of a pass, at most 1024; 0: 264, on NVIDIA cards 512
	Context   int // most positions of a session; 0: as in training, as far as KVBytes go
	KV        KV
	Speculate Speculate
	MaxPassMS int    // milliseconds that a pass with parts of prompts should take at most; 0: 200
	KVBytes   uint64 // memory for the KV caches of all sessions; 0: half of what is free
}

// Sampling is how tokens are chosen; docs/sampling.md explains the fields. The zero value takes the likeliest token;
// Model.SamplingDefaults has what the model's makers say.
type Sampling struct {
	Temperature      float32 // 0 or less: the likeliest token
	TopK             int     // 0: all
	TopP             float32 // 1 or 0: all
	MinP             float32 // 0: all
	RepeatPenalty    float32 // 1 or 0: none
	RepeatWindow     int     // last tokens that penalties look at; 0: 64
	Seed             uint64  // the same seed, options and tokens give the same choice
	Samplers         []string
	DryBreakers      []string // nil: newline, colon, quotation mark, asterisk
	LogitBias        map[int32]float32
	TypicalP         float32 // 1 or 0: off
	TopNSigma        float32 // 0 or less: off
	FrequencyPenalty float32
	PresencePenalty  float32
	DynatempRange    float32
	DynatempExponent float32 // 0: 1
	XTCProbability   float32
	XTCThreshold     float32 // 0: 0.1
	DryMultiplier    float32 // 0: off
	DryBase          float32 // 0: 1.75
	DryAllowedLength int     // 0: 2
	DryWindow        int     // 0: 64; -1: all
	Mirostat         int     // 0: off; 1, 2: that version
	MinKeep          int
	MirostatTau      float32 // 0: 5
	MirostatEta      float32 // 0: 0.1
	AdaptiveTarget   float32 // 0: off
	AdaptiveDecay    float32 // 0: 0.9
}

// Set sets the field with this name, as jitrun.h spells it, or with that of the option of the program jitrun that means
// the same ("top_k", "--temp"). The value is a number, a text or a bool. The error says which names there are, or what
// was expected.
func (o *ModelOptions) Set(name string, value any) error {
	var h held
	raw := o.raw(&h)
	if err := set(&h, jitModelOptionsSet, unsafe.Pointer(raw), name, value); err != nil {
		return err
	}
	made := *o
	fromC(&made, raw)
	made.NoCache = raw.cacheDir != 0 && made.CacheDir == ""
	made.KeepWeights = raw.weightCache != 0 && made.WeightCache == ""
	*o = made
	runtime.KeepAlive(&h)
	return nil
}

// Set sets the field with this name, as ModelOptions.Set does.
func (o *SessionOptions) Set(name string, value any) error {
	var h held
	raw := o.raw(&h)
	if err := set(&h, jitSessionOptionsSet, unsafe.Pointer(raw), name, value); err != nil {
		return err
	}
	fromC(o, raw)
	return nil
}

// Set sets the field with this name, as ModelOptions.Set does.
func (o *CardOptions) Set(name string, value any) error {
	var h held
	raw := o.raw(&h)
	if err := set(&h, jitCardOptionsSet, unsafe.Pointer(raw), name, value); err != nil {
		return err
	}
	fromC(o, raw)
	return nil
}

// Set sets the field with this name, as ModelOptions.Set does.
func (o *BatchOptions) Set(name string, value any) error {
	var h held
	raw := o.raw(&h)
	if err := set(&h, jitBatchOptionsSet, unsafe.Pointer(raw), name, value); err != nil {
		return err
	}
	fromC(o, raw)
	return nil
}

// Set sets the field with this name, as ModelOptions.Set does. Lists (LogitBias, DryBreakers) have no text; Samplers
// has: names with semicolons between.
func (p *Sampling) Set(name string, value any) error {
	var h held
	raw := p.raw(&h)
	if err := set(&h, jitSamplingSet, unsafe.Pointer(raw), name, value); err != nil {
		return err
	}
	*p = samplingOf(raw)
	runtime.KeepAlive(&h)
	return nil
}

// set calls jit_..._set. The struct is one that h keeps.
func set(h *held, f function, raw unsafe.Pointer, name string, value any) error {
	text, err := valueText(name, value)
	if err == nil {
		err = ensure()
	}
	if err != nil {
		return err
	}
	nameAt, valueAt := h.text("the name of an option", name), h.text(name, text)
	if h.err != nil {
		return h.err
	}
	err = status(nil, f, uintptr(raw), nameAt, valueAt)
	runtime.KeepAlive(h)
	return err
}

// valueText is a value as the library reads it.
func valueText(name string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, KV, Tune, Numerics, Speculate, Profile,
		Launch:
		return fmt.Sprint(v), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return "", errorf(ErrArgument, "%s is a %T: a number, a text or a bool was expected", name, value)
}

func (o *ModelOptions) raw(h *held) *jitModelOptions {
	raw := &jitModelOptions{size: unsafe.Sizeof(jitModelOptions{})}
	keep(h, raw)
	if o == nil {
		return raw
	}
	h.toC(raw, o)
	if o.NoCache {
		if o.CacheDir != "" {
			h.fail(errorf(ErrArgument, "NoCache is set and CacheDir is %q: one of them was expected", o.CacheDir))
		}
		raw.cacheDir = h.text("", "")
	}
	if o.KeepWeights && o.WeightCache == "" {
		raw.weightCache = h.text("", "")
	}
	if o.Session != nil {
		raw.session = keep(h, o.Session.raw(h))
	}
	return raw
}

func (o *SessionOptions) raw(h *held) *jitSessionOptions {
	raw := &jitSessionOptions{size: unsafe.Sizeof(jitSessionOptions{})}
	keep(h, raw)
	if o == nil {
		return raw
	}
	h.toC(raw, o)
	if o.Sampling != nil {
		raw.sampling = keep(h, o.Sampling.raw(h))
	}
	if o.Card != nil {
		raw.card = keep(h, o.Card.raw(h))
	}
	return raw
}

func (o *CardOptions) raw(h *held) *jitCardOptions {
	raw := &jitCardOptions{size: unsafe.Sizeof(jitCardOptions{})}
	keep(h, raw)
	h.toC(raw, o)
	return raw
}

func (o *BatchOptions) raw(h *held) *jitBatchOptions {
	raw := &jitBatchOptions{size: unsafe.Sizeof(jitBatchOptions{})}
	keep(h, raw)
	if o == nil {
		return raw
	}
	h.toC(raw, o)
	return raw
}

func (p *Sampling) raw(h *held) *jitSampling {
	raw := &jitSampling{size: unsafe.Sizeof(jitSampling{})}
	keep(h, raw)
	if p == nil {
		return raw
	}
	h.toC(raw, p)
	if p.Samplers != nil {
		raw.samplers = h.text("samplers", strings.Join(p.Samplers, ";"))
	}
	if p.DryBreakers != nil {
		raw.dryBreakers = h.texts("a text of dry_breakers", p.DryBreakers)
		raw.nDryBreakers = h.int("the number of dry_breakers", len(p.DryBreakers))
	}
	if len(p.LogitBias) > 0 {
		list := make([]jitLogitBias, 0, len(p.LogitBias))
		for id, bias := range p.LogitBias {
			list = append(list, jitLogitBias{id: id, bias: bias})
		}
		raw.logitBias, raw.nLogitBias = keep(h, &list[0]), h.int("the number of biases", len(list))
	}
	return raw
}

// samplingOf copies all that the library's struct points to.
func samplingOf(raw *jitSampling) Sampling {
	var made Sampling
	fromC(&made, raw)
	if raw.samplers != 0 {
		made.Samplers = strings.Split(cText(raw.samplers), ";")
	}
	if raw.dryBreakers != 0 {
		made.DryBreakers = []string{}
		for _, text := range cCopy[uintptr](raw.dryBreakers, uintptr(raw.nDryBreakers)) {
			made.DryBreakers = append(made.DryBreakers, cText(text))
		}
	}
	for _, one := range cCopy[jitLogitBias](raw.logitBias, uintptr(raw.nLogitBias)) {
		if made.LogitBias == nil {
			made.LogitBias = map[int32]float32{}
		}
		made.LogitBias[one.id] = one.bias
	}
	return made
}
