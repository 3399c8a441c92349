//go:build linux && amd64

package jitrun

import (
	"context"
	"runtime"
	"sync"
	"unsafe"
)

// Session is one conversation on a model: a KV cache, a position, and how tokens are chosen.
//
// One goroutine computes at a time, and others wait for it; only Cancel is meant for them. A context that ends has the
// call that computes end with ErrCancelled, and the session is where its last finished pass left it: Len says how many
// tokens were taken. What is computed next has the same bits as ever.
//
// Close gives the memory back. A session that is not closed is closed when the garbage collector finds it, but for
// those of a batch and those whose Logits were asked for.
type Session struct {
	model *Model
	c     *core
	batch *Batch // nil: it is alone
	hooks *hooks
	open  sync.Mutex // of p, for Cancel
	p     uintptr
	// Of Batch.Generate, so that steps of others do not tell of it.
	requested bool
}

// Grammar is what an answer keeps to.
type Grammar struct {
	kind   int32
	text   string
	before *before
}

// before is what may stand before the grammar's part of an answer.
type before struct {
	prompt                string
	tools                 []Tool
	template              *string // "": of a model that was told not to reason
	templateName, opening string
}

// JSONSchema is a grammar of the JSON values that a JSON Schema allows; "{}" is any value. SchemaOf makes schemas of Go
// types.
func JSONSchema(schema string) Grammar { return Grammar{kind: jitGrammarJsonSchema, text: schema} }

// Regex is a grammar of the texts of a regular expression, as ECMA-262 writes them.
func Regex(expression string) Grammar { return Grammar{kind: jitGrammarRegex, text: expression} }

// GBNF is a grammar of rules as llama.cpp writes them, which begins with root.
func GBNF(rules string) Grammar { return Grammar{kind: jitGrammarGbnf, text: rules} }

// Lark is a grammar of rules as Lark writes them, which begins with start.
func Lark(rules string) Grammar { return Grammar{kind: jitGrammarLark, text: rules} }

// Additional has objects of a schema with "properties" and without "additionalProperties" have other members, as JSON
// Schema says. Without it they have none.
func (g Grammar) Additional() Grammar {
	g.kind |= jitGrammarAdditional
	return g
}

// BehindReasoning lets the model reason before the grammar's part of its answer to a conversation, which prompt is
// written from: free but for end tokens, up to the mark that closes it. Session.Chat does so by itself.
func (g Grammar) BehindReasoning(chat *Chat, prompt *Prompt) Grammar {
	if chat == nil {
		chat = &Chat{}
	}
	g.before = chat.before(prompt)
	return g
}

// Pooling is what becomes of the rows of a text's tokens.
type Pooling int

// What Pooling may be.
const (
	PoolLast = Pooling(jitPoolLast) // the last token's row
	PoolMean = Pooling(jitPoolMean) // the mean of all rows
	PoolNone = Pooling(jitPoolNone) // all rows, one after the other
	PoolRank = Pooling(jitPoolRank) // one number: the text's score by the model's classifier
	PoolCLS  = Pooling(jitPoolCls)  // the first token's row
)

// EmbedOptions are those of embeddings.
type EmbedOptions struct {
	Pooling   Pooling
	Normalise bool // each row has length 1
}

// Logprob is a token and the natural logarithm of its probability.
type Logprob struct {
	ID      int32
	Logprob float32
}

// NewSession opens a session. options may be nil.
func (m *Model) NewSession(ctx context.Context, options *SessionOptions) (*Session, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	return m.session(ctx, options, func(c *core, raw *jitSessionOptions) (uintptr, error) {
		return c.open(ctx, jitSessionOpen, p, uintptr(unsafe.Pointer(raw)))
	})
}

// session makes a session with a core of its own, and takes over a use of the model.
func (m *Model) session(ctx context.Context, options *SessionOptions,
	open func(c *core, raw *jitSessionOptions) (uintptr, error)) (*Session, error) {
	c, err := newCore()
	if err != nil {
		m.h.release()
		return nil, err
	}
	var h held
	raw := options.raw(&h)
	raw.cancel = c.cancel
	var p uintptr
	if err = h.err; err == nil {
		p, err = open(c, raw)
	}
	runtime.KeepAlive(&h)
	if err != nil {
		c.end()
		m.h.release()
		return nil, err
	}
	s := &Session{model: m, c: c, p: p}
	runtime.SetFinalizer(s, func(s *Session) { go s.Close() })
	return s, nil
}

// enter begins what nobody else may do meanwhile. It ends with s.c.mu.Unlock().
func (s *Session) enter() error {
	if err := s.c.lock("session"); err != nil {
		return err
	}
	if s.p == 0 {
		s.c.mu.Unlock()
		return errorf(ErrClosed, "the session is closed")
	}
	return nil
}

// Model is what it is on.
func (s *Session) Model() *Model { return s.model }

// Close closes the session. Again, nothing happens. What Logits gave must not be used any more.
func (s *Session) Close() error {
	if err := s.c.lock("session"); err != nil {
		return err
	}
	runtime.SetFinalizer(s, nil)
	s.close()
	return nil
}

// close unlocks the core.
func (s *Session) close() {
	s.open.Lock()
	p := s.p
	s.p = 0
	s.open.Unlock()
	if p == 0 {
		s.c.mu.Unlock()
		return
	}
	if s.batch != nil {
		s.batch.forgetSession(s, p)
	}
	urgently(jitSessionClose, p)
	if s.hooks != nil {
		s.hooks.end()
	}
	s.c.mu.Unlock()
	if s.batch == nil {
		s.c.end()
		s.model.h.release()
	}
}

// Cancel has the call that computes on the session, or else the next one that will, end with ErrCancelled. Any
// goroutine may call it; once the session is closed, it does nothing.
func (s *Session) Cancel() {
	s.open.Lock()
	defer s.open.Unlock()
	if s.p != 0 {
		urgently(jitSessionCancel, s.p)
	}
}

// compute calls what may take long and call back, between enter and the unlock.
//
//go:uintptrescapes
func (s *Session) compute(ctx context.Context, f function, arguments ...uintptr) error {
	err := s.c.compute(ctx, f, arguments...)
	return because(err, s.hooks.taken())
}

// Feed appends tokens and computes them.
func (s *Session) Feed(ctx context.Context, ids []int32) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	return s.feed(ctx, ids)
}

func (s *Session) feed(ctx context.Context, ids []int32) error {
	return s.compute(ctx, jitSessionFeed, s.p, uintptr(at(ids)), uintptr(len(ids)))
}

// FeedText appends the tokens of a text and computes them; of an empty session, with the token that the model wants
// before a text. parseSpecial: text such as "<|im_start|>" becomes that token; false is for text that others wrote.
func (s *Session) FeedText(ctx context.Context, text string, parseSpecial bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	var h held
	defer runtime.KeepAlive(&h)
	at, n := h.bytes(text)
	return s.compute(ctx, jitSessionFeedText, s.p, at, n, uintptr(flag(parseSpecial)))
}

// FeedLogits appends tokens and gives the logits behind each of them.
func (s *Session) FeedLogits(ctx context.Context, ids []int32) ([][]float32, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.c.mu.Unlock()
	out := make([]float32, len(ids)*s.model.vocab)
	err := s.compute(ctx, jitSessionFeedLogits, s.p, uintptr(at(ids)), uintptr(len(ids)), uintptr(at(out)),
		uintptr(len(out)))
	if err != nil {
		return nil, err
	}
	return rows(out, s.model.vocab), nil
}

func rows(all []float32, width int) [][]float32 {
	out := make([][]float32, 0, len(all)/width)
	for len(all) > 0 {
		out, all = append(out, all[:width:width]), all[width:]
	}
	return out
}

// Next chooses the next token; the call behind it computes it.
func (s *Session) Next(ctx context.Context) (int32, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.c.mu.Unlock()
	return s.next(ctx)
}

func (s *Session) next(ctx context.Context) (int32, error) {
	id := new(int32)
	err := s.compute(ctx, jitSessionNext, s.p, uintptr(unsafe.Pointer(id)))
	return *id, err
}

// Text is what a token completes, whole characters; to be asked for once for each token, in their order.
func (s *Session) Text(id int32) (string, error) {
	if id < 0 {
		return "", errorf(ErrArgument, "the token is %d: 0 or more was expected", id)
	}
	return s.enterText(id)
}

// Flush is the text that was held back, at the end.
func (s *Session) Flush() (string, error) { return s.enterText(-1) }

func (s *Session) enterText(id int32) (string, error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	defer s.c.mu.Unlock()
	return s.text(id)
}

func (s *Session) text(id int32) (string, error) {
	n := new(uintptr)
	p, err := address(s.c, jitSessionText, s.p, uintptr(uint32(id)), uintptr(unsafe.Pointer(n)))
	if err != nil {
		return "", err
	}
	return cBytes(p, *n), nil
}

// Logits are those behind the last token, one for each token of the vocabulary. The slice is the library's own memory:
// it is valid until the next call on the session, of a batch until the next step, and nothing may be written to it.
// After Close it must not be used. For longer, copy it.
func (s *Session) Logits(ctx context.Context) ([]float32, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.c.mu.Unlock()
	// Nobody but the caller knows how long the slice is used.
	runtime.SetFinalizer(s, nil)
	p, err := s.c.open(ctx, jitSessionLogits, s.p)
	if err = because(err, s.hooks.taken()); err != nil {
		return nil, err
	}
	return unsafe.Slice((*float32)(pointer(&p)), s.model.vocab), nil
}

// Logprobs gives, right behind Next, how likely the model held the token that it chose, and the n likeliest tokens,
// before anything of Sampling.
func (s *Session) Logprobs(n int) (chosen float32, top []Logprob, err error) {
	return s.logprobs(n, false)
}

// SampledLogprobs gives the same as they were drawn from, behind all of Sampling and a grammar; there may be fewer.
func (s *Session) SampledLogprobs(n int) (chosen float32, top []Logprob, err error) {
	return s.logprobs(n, true)
}

func (s *Session) logprobs(n int, sampled bool) (float32, []Logprob, error) {
	if n < 0 || n > jitLogprobsMost {
		return 0, nil, errorf(ErrArgument, "%d likeliest tokens are asked for: 0 to %d were expected", n, jitLogprobsMost)
	}
	if err := s.enter(); err != nil {
		return 0, nil, err
	}
	defer s.c.mu.Unlock()
	chosen, list, got := new(float32), make([]jitLogprob, n), new(uintptr)
	var err error
	if sampled {
		err = status(s.c, jitSessionSampledLogprobs, s.p, uintptr(unsafe.Pointer(chosen)), uintptr(at(list)),
			uintptr(n), uintptr(unsafe.Pointer(got)))
	} else {
		*got = uintptr(n)
		err = status(s.c, jitSessionLogprobs, s.p, uintptr(unsafe.Pointer(chosen)), uintptr(at(list)), uintptr(n))
	}
	if err != nil {
		return 0, nil, err
	}
	top := make([]Logprob, *got)
	for i := range top {
		top[i] = Logprob{list[i].id, list[i].logprob}
	}
	return *chosen, top, nil
}

// Score appends tokens, and gives the natural logarithm of each one's probability behind everything before it.
func (s *Session) Score(ctx context.Context, ids []int32) ([]float32, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.c.mu.Unlock()
	out := make([]float32, len(ids))
	if err := s.compute(ctx, jitSessionScore, s.p, uintptr(at(ids)), uintptr(len(ids)), uintptr(at(out))); err != nil {
		return nil, err
	}
	return out, nil
}

// Embed appends tokens, at least one, and gives their embedding. Behind it, at least one token has to be fed before
// logits can be asked for.
func (s *Session) Embed(ctx context.Context, ids []int32, options EmbedOptions) ([]float32, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.c.mu.Unlock()
	n := s.model.embedding
	switch options.Pooling {
	case PoolNone:
		n = s.model.width * len(ids)
	case PoolRank:
		n = 1
	}
	var h held
	raw := &jitEmbeddingOptions{size: unsafe.Sizeof(jitEmbeddingOptions{})}
	raw.pooling, raw.normalise = h.int("the pooling", int(options.Pooling)), flag(options.Normalise)
	if h.err != nil {
		return nil, h.err
	}
	out := make([]float32, n)
	err := s.compute(ctx, jitSessionEmbed, s.p, uintptr(at(ids)), uintptr(len(ids)), uintptr(unsafe.Pointer(raw)),
		uintptr(at(out)), uintptr(n))
	if err != nil {
		return nil, err
	}
	return out, nil
}

// HiddenStates appends tokens, at least one, and gives each one's hidden state behind the final norm, of which the
// output matrix makes the logits.
func (s *Session) HiddenStates(ctx context.Context, ids []int32) ([][]float32, error) {
	all, err := s.Embed(ctx, ids, EmbedOptions{Pooling: PoolNone})
	if err != nil {
		return nil, err
	}
	return rows(all, s.model.width), nil
}

// Len is how many tokens it has, the last chosen one included; 0 of a closed session.
func (s *Session) Len() int {
	if s.enter() != nil {
		return 0
	}
	defer s.c.mu.Unlock()
	return int(call(jitSessionLength, s.p))
}

// IDs are its tokens, those chosen but not yet computed included.
func (s *Session) IDs() []int32 {
	if s.enter() != nil {
		return nil
	}
	defer s.c.mu.Unlock()
	return s.ids()
}

func (s *Session) ids() []int32 {
	return cCopy[int32](call(jitSessionIds, s.p), call(jitSessionLength, s.p))
}

// Rewind forgets every token from position n on. Then feed at least one.
func (s *Session) Rewind(n int) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	return s.rewind(n)
}

func (s *Session) rewind(n int) error {
	if n < 0 {
		return errorf(ErrArgument, "the position is %d: 0 or more was expected", n)
	}
	return status(s.c, jitSessionRewind, s.p, uintptr(n))
}

// withPath calls a function that takes a path.
func (s *Session) withPath(f function, path string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	var h held
	defer runtime.KeepAlive(&h)
	at := h.text("the path", path)
	if h.err != nil {
		return h.err
	}
	return status(s.c, f, s.p, at)
}

// Save writes its tokens and its cache into a file.
func (s *Session) Save(path string) error { return s.withPath(jitSessionSave, path) }

// Restore reads them back, into a session without tokens.
func (s *Session) Restore(path string) error { return s.withPath(jitSessionRestore, path) }

// Trace writes what every worker did when, in Chrome's trace format, of a session with ProfileEvents.
func (s *Session) Trace(path string) error { return s.withPath(jitSessionTrace, path) }

// Fork opens a session with the same tokens and a copy of the cache. options may be nil; their KV is that of s.
func (s *Session) Fork(ctx context.Context, options *SessionOptions) (*Session, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.c.mu.Unlock()
	s.model.h.again()
	return s.model.session(ctx, options, func(c *core, raw *jitSessionOptions) (uintptr, error) {
		return c.open(ctx, jitSessionFork, s.p, uintptr(unsafe.Pointer(raw)))
	})
}

// SetSampling says how tokens are chosen from the next one on; nil: the likeliest is.
func (s *Session) SetSampling(sampling *Sampling) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	var h held
	defer runtime.KeepAlive(&h)
	raw := sampling.raw(&h)
	if h.err != nil {
		return h.err
	}
	return status(s.c, jitSessionSetSampling, s.p, uintptr(unsafe.Pointer(raw)))
}

// SetStop gives texts that end an answer and are not part of it; none: those of the model's files.
func (s *Session) SetStop(texts ...string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	return s.setStop(texts)
}

func (s *Session) setStop(texts []string) error {
	var h held
	defer runtime.KeepAlive(&h)
	list := h.texts("a stop text", texts)
	if h.err != nil {
		return h.err
	}
	return status(s.c, jitSessionSetStop, s.p, list, uintptr(len(texts)))
}

// Stopped is the number of the stop text that was found; false: none was.
func (s *Session) Stopped() (int, bool) {
	if s.enter() != nil {
		return -1, false
	}
	defer s.c.mu.Unlock()
	return s.stopped()
}

func (s *Session) stopped() (int, bool) {
	n := int(int32(call(jitSessionStopped, s.p)))
	return n, n >= 0
}

// SetGrammar says what the text from here on keeps to. Set it behind the prompt, and anew for another answer.
func (s *Session) SetGrammar(grammar Grammar) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	return s.setGrammar(grammar)
}

// ClearGrammar ends the grammar.
func (s *Session) ClearGrammar() error { return s.SetGrammar(noGrammar) }

var noGrammar = Grammar{kind: jitGrammarNone}

func (s *Session) setGrammar(grammar Grammar) error {
	var h held
	defer runtime.KeepAlive(&h)
	if grammar.before == nil {
		at, n := h.bytes(grammar.text)
		return status(s.c, jitSessionSetGrammar, s.p, uintptr(grammar.kind), at, n)
	}
	raw, b := &jitGrammarOptions{size: unsafe.Sizeof(jitGrammarOptions{})}, grammar.before
	raw.kind, raw.behindReasoning = grammar.kind, 1
	raw.text, raw.n = h.bytes(grammar.text)
	raw.prompt, raw.nPrompt = h.bytes(b.prompt)
	raw.tools = toolsText(&h, b.tools)
	if b.template != nil {
		raw.templateText = h.text("the template", *b.template)
	}
	raw.templateName = h.optional("the template's name", b.templateName)
	raw.opening = h.optional("what opens a call", b.opening)
	if h.err != nil {
		return h.err
	}
	return status(s.c, jitSessionBeginGrammar, s.p, uintptr(unsafe.Pointer(raw)))
}

// GrammarComplete says whether the text is right as it stands; ok: there is a grammar.
func (s *Session) GrammarComplete() (complete, ok bool) {
	if s.enter() != nil {
		return false, false
	}
	defer s.c.mu.Unlock()
	return s.grammarComplete()
}

func (s *Session) grammarComplete() (complete, ok bool) {
	said := int32(call(jitSessionGrammarComplete, s.p))
	return said > 0, said >= 0
}

// hook sets or ends a callback.
func (s *Session) hook(f function, callback int, on bool, set func(h *hooks)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.mu.Unlock()
	if !on {
		if s.hooks != nil {
			set(s.hooks)
		}
		return status(s.c, f, s.p, 0, 0)
	}
	if s.hooks == nil {
		s.hooks = newHooks(s.c)
	}
	if err := status(s.c, f, s.p, addressOfCallback(callback), s.hooks.user()); err != nil {
		return err
	}
	set(s.hooks)
	return nil
}

// SetLogitsFunc has a function called before each choice, by the goroutine that calls Next; nil: none is. It may change
// the logits: each must be a finite number then, or -infinity, after which that token is not chosen. Both slices are
// the library's memory and valid during the call. Where it gives an error, no token is chosen, and Next returns
// ErrCancelled with that error. It must not use the session, nor its batch.
func (s *Session) SetLogitsFunc(f func(logits []float32, ids []int32) error) error {
	return s.hook(jitSessionSetLogitsFn, callbackLogits, f != nil, func(h *hooks) { h.logits = f })
}

// SetPromptFunc has a function called after each pass that computes tokens of a prompt, by the goroutine that computes:
// how many of the session's tokens are computed by then, and how many there are; nil: none is. An error ends what is
// computed with ErrCancelled, unless all is. It must not use the session, nor its batch.
func (s *Session) SetPromptFunc(f func(computed, length int) error) error {
	return s.hook(jitSessionSetPromptFn, callbackPrompt, f != nil, func(h *hooks) { h.prompt = f })
}

// PassStats are those of passes with one number of draft tokens.
type PassStats struct {
	Tokens                    int
	Passes, Drafted, Accepted uint64
}

// SessionStats are the numbers of jit_session_stats (man 3 jitrun).
type SessionStats struct {
	PromptTokens, DecodeTokens                       uint64
	PromptSeconds, DecodeSeconds                     float64
	Kernels, KernelsGenerated                        uint64
	KernelsFromCache, KernelsFromPack                uint64
	CacheDamaged, CacheStoreFailed, CacheEvicted     uint64
	GenerateSeconds                                  float64
	CodeBytes, KVBytes                               uint64
	Threads, Context                                 int
	DecodePasses, Drafted, Accepted                  uint64
	Speculation                                      [3]PassStats
	KernelsBackground, KernelStalls, CacheUnreadable uint64
}

// Stats is what it has computed so far.
func (s *Session) Stats() (SessionStats, error) {
	if err := s.enter(); err != nil {
		return SessionStats{}, err
	}
	defer s.c.mu.Unlock()
	return numbers[SessionStats](s.c, jitSessionGetStats, s.p, &jitSessionStats{size: unsafe.Sizeof(jitSessionStats{})})
}

// CardStats are the numbers of jit_card_stats (man 3 jitrun).
type CardStats struct {
	Launches, Barriers, Instructions, LoadBytes, Load128Bytes, StoreBytes, ScalarBytes uint64
	WeightBytes, CacheBytes, Commands                                                  uint64
}

// CardStats is what it launched and moved on a card; ErrUnsupported on a device that does not count.
func (s *Session) CardStats() (CardStats, error) {
	if err := s.enter(); err != nil {
		return CardStats{}, err
	}
	defer s.c.mu.Unlock()
	return numbers[CardStats](s.c, jitSessionGetCardStats, s.p, &jitCardStats{size: unsafe.Sizeof(jitCardStats{})})
}

// Report tells of every kernel that the session has used, in a table for people, or as a JSON object.
func (s *Session) Report(asJSON bool) (string, error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	defer s.c.mu.Unlock()
	text, err := address(s.c, jitSessionReport, s.p, uintptr(flag(asJSON)))
	if err != nil {
		return "", err
	}
	defer call(jitFree, text)
	return cText(text), nil
}
