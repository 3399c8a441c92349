//go:build linux && amd64

package jitrun

// Models, sessions, batches and conversations, with the model in JITRUN_MODEL; JITRUN_IDS and so on are what the program
// jitrun makes of "Once upon a time" (tests/bindings/expected.sh).

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const prompt = "Once upon a time"

var ctx = context.Background()

func modelPath(t testing.TB) string {
	path := os.Getenv("JITRUN_MODEL")
	if path == "" {
		t.Skip("JITRUN_MODEL names no model")
	}
	return path
}

func openModel(t testing.TB) *Model {
	t.Helper()
	m, err := Open(ctx, modelPath(t), &ModelOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func openSession(t testing.TB, m *Model) *Session {
	t.Helper()
	s, err := m.NewSession(ctx, &SessionOptions{Context: 256, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func expectedIDs(t testing.TB) []int32 { return idsOf(t, "JITRUN_IDS") }

func idsOf(t testing.TB, variable string) []int32 {
	var out []int32
	for _, word := range strings.Split(os.Getenv(variable), ",") {
		id, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			t.Skip(variable + " is no list of tokens")
		}
		out = append(out, int32(id))
	}
	return out
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, err error, kind Kind, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v is the error, %v was expected", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Fatalf("%q does not say %q", err, word)
		}
	}
}

func same(t testing.TB, what string, got, expected any) {
	t.Helper()
	if !reflect.DeepEqual(got, expected) {
		t.Fatalf("%s: %v, expected %v", what, got, expected)
	}
}

func fed(t testing.TB, m *Model) *Session {
	t.Helper()
	s := openSession(t, m)
	ok(t, s.FeedText(ctx, prompt, false))
	return s
}

func TestIDsAreThoseOfTheProgram(t *testing.T) {
	m, ids := openModel(t), expectedIDs(t)
	s := fed(t, m)
	before := s.Len()
	g := s.Generate(ctx, len(ids))
	text, err := g.ReadAll()
	ok(t, err)
	same(t, "tokens", g.IDs(), ids)
	same(t, "finish", g.Finish(), FinishLength)
	same(t, "the session's tokens", s.IDs()[before:], ids)
	all, err := m.Detokenize(s.IDs())
	ok(t, err)
	if !strings.HasSuffix(all, text) {
		t.Fatalf("%q does not end with %q", all, text)
	}
	// With the model's defaults, a temperature and a seed: the same tokens and bytes, alone and in a batch.
	sampling, err := m.SamplingDefaults()
	ok(t, err)
	sampling.Temperature, sampling.Seed = 1.2, 7
	seeded, err := m.NewSession(ctx, &SessionOptions{Context: 256, Threads: 1, Sampling: &sampling})
	ok(t, err)
	defer seeded.Close()
	ok(t, seeded.FeedText(ctx, prompt, false))
	ids = idsOf(t, "JITRUN_SEEDED_IDS")
	g = seeded.Generate(ctx, 40)
	text, err = g.ReadAll()
	ok(t, err)
	same(t, "seeded tokens", g.IDs()[:len(ids)], ids)
	expected, err := os.ReadFile(os.Getenv("JITRUN_SEEDED_TEXT"))
	ok(t, err)
	same(t, "seeded text", text, string(expected))
}

func TestLogits(t *testing.T) {
	m := openModel(t)
	s := openSession(t, m)
	_, err := s.Logits(ctx)
	want(t, err, ErrArgument)
	ids, err := m.Tokenize(prompt, true, false)
	ok(t, err)
	rows, err := s.FeedLogits(ctx, ids)
	ok(t, err)
	logits, err := s.Logits(ctx)
	ok(t, err)
	same(t, "the last row", rows[len(ids)-1], append([]float32(nil), logits...))
	largest, sum := 0, 0.0
	for i, l := range logits {
		if l > logits[largest] {
			largest = i
		}
		sum += math.Exp(float64(l))
	}
	logprob := float64(logits[largest]) - math.Log(sum)
	id, err := s.Next(ctx)
	ok(t, err)
	same(t, "the likeliest", id, int32(largest))
	chosen, top, err := s.Logprobs(3)
	ok(t, err)
	if len(top) != 3 || top[0] != (Logprob{id, chosen}) || math.Abs(float64(chosen)-logprob) > 1e-4 {
		t.Fatal(chosen, top, logprob)
	}
	chosen, top, err = s.SampledLogprobs(3)
	ok(t, err)
	if len(top) != 1 || top[0].ID != id || chosen != 0 {
		t.Fatal(chosen, top)
	}
	_, _, err = s.Logprobs(10000)
	want(t, err, ErrArgument)
	_, err = s.Text(-1)
	want(t, err, ErrArgument)
	text, err := s.Text(id)
	ok(t, err)
	rest, err := s.Flush()
	ok(t, err)
	if text+rest == "" {
		t.Fatal("a token has no text")
	}
}

func TestBatchGivesTheSameTokens(t *testing.T) {
	m, ids := openModel(t), expectedIDs(t)
	b, err := m.NewBatch(ctx, &BatchOptions{Threads: 1, Context: 256})
	ok(t, err)
	defer b.Close()
	texts := []string{prompt, "The sea", prompt}
	said := map[*Session][]int32{}
	var all []*Session
	for _, text := range texts {
		s, err := b.NewSession(nil)
		ok(t, err)
		tokens, err := m.Tokenize(text, true, false)
		ok(t, err)
		_, err = s.Submit(tokens)
		ok(t, err)
		all = append(all, s)
	}
	for b.Pending() > 0 {
		ready, err := b.Step(ctx)
		ok(t, err)
		for _, s := range ready {
			id, err := s.Next(ctx)
			ok(t, err)
			if said[s] = append(said[s], id); len(said[s]) == len(ids) {
				s.Close()
			}
		}
	}
	same(t, "the first", said[all[0]], ids)
	same(t, "the third", said[all[2]], ids)
	if reflect.DeepEqual(said[all[1]], ids) {
		t.Fatal("another prompt gives the same tokens")
	}
	stats, err := b.Stats()
	ok(t, err)
	if stats.Passes == 0 || stats.Width[2] == 0 || stats.Context != 256 {
		t.Fatal(stats)
	}
	if b.Forget(nil) == 0 {
		t.Fatal("nothing was remembered")
	}
	open, err := b.NewSession(nil)
	ok(t, err)
	_, err = all[0].Submit(ids)
	want(t, err, ErrClosed)
	ok(t, b.Close())
	ok(t, b.Close())
	_, err = b.Step(ctx)
	want(t, err, ErrClosed)
	_, err = open.Next(ctx)
	want(t, err, ErrClosed)
	open.Cancel()
	ok(t, open.Close())
	_, err = openSession(t, m).Submit(ids)
	want(t, err, ErrArgument, "alone")
}

func TestOptionsByName(t *testing.T) {
	m := openModel(t)
	text := func(sampling *Sampling) string {
		s := fed(t, m)
		ok(t, s.SetSampling(sampling))
		out, err := s.Generate(ctx, 24).ReadAll()
		ok(t, err)
		return out
	}
	var said []string
	for _, seed := range []uint64{1, 2, 1} {
		var p Sampling
		ok(t, p.Set("--temp", 1.5))
		ok(t, p.Set("seed", seed))
		ok(t, p.Set("samplers", "top_k;temperature"))
		ok(t, p.Set("top-k", 50))
		same(t, "fields", p, Sampling{Temperature: 1.5, Seed: seed, TopK: 50, Samplers: []string{"top_k", "temperature"}})
		said = append(said, text(&p))
	}
	if said[0] != said[2] || said[0] == said[1] {
		t.Fatal(said)
	}
	s := fed(t, m)
	first := expectedIDs(t)[0]
	ok(t, s.SetSampling(&Sampling{LogitBias: map[int32]float32{first: float32(math.Inf(-1))}}))
	id, err := s.Next(ctx)
	ok(t, err)
	if id == first {
		t.Fatal("a token that must not be chosen is")
	}
	ok(t, s.SetSampling(&Sampling{DryBreakers: []string{"\n"}, DryMultiplier: 1}))
	ok(t, s.SetSampling(&Sampling{DryBreakers: []string{}, DryMultiplier: 1}))
	var p Sampling
	want(t, p.Set("top_q", 1), ErrArgument, "top_q")
	want(t, p.Set("top_k", "4\x00"), ErrArgument, "zero byte")
	want(t, p.Set("top_k", struct{}{}), ErrArgument, "top_k")
	want(t, p.Set("top_p", 1.5), ErrArgument)
	want(t, p.Set("logit_bias", "1"), ErrArgument)
	want(t, s.SetSampling(&Sampling{Samplers: []string{"no such sampler"}}), ErrArgument, "no such sampler")
	want(t, s.SetSampling(&Sampling{TopK: math.MaxInt}), ErrArgument, "TopK")
	o := ModelOptions{Device: "ref", Tune: TuneOff, Progress: func(_, _ uint64) error { return nil }}
	ok(t, o.Set("threads", 3))
	ok(t, o.Set("sealed", true))
	ok(t, o.Set("cache_dir", ""))
	ok(t, o.Set("weight_cache", "w"))
	if o.Device != "ref" || o.Threads != 3 || !o.Sealed || !o.NoCache || o.WeightCache != "w" || o.Tune != TuneOff ||
		o.Progress == nil {
		t.Fatalf("%+v", o)
	}
	so := SessionOptions{Sampling: &p}
	ok(t, so.Set("kv", "q8_0"))
	ok(t, so.Set("speculate", "off"))
	same(t, "session options", so, SessionOptions{Sampling: &p, KV: KVQ80, Speculate: SpeculateOff})
	var bo BatchOptions
	ok(t, bo.Set("max_pass_ms", 5))
	ok(t, bo.Set("kv_bytes", uint64(1)<<40))
	same(t, "batch options", bo, BatchOptions{MaxPassMS: 5, KVBytes: 1 << 40})
	var co CardOptions
	ok(t, co.Set("launch", "op"))
	same(t, "card options", co, CardOptions{Launch: LaunchOp})
	defaults, err := m.SamplingDefaults()
	ok(t, err)
	if defaults.TopK != 40 {
		t.Fatal(defaults)
	}
}

// Every field of the structs of options has one of C, in both directions.
func TestOptionsAreWhole(t *testing.T) {
	fill := func(v reflect.Value) {
		for i := 0; i < v.NumField(); i++ {
			switch f := v.Field(i); f.Kind() {
			case reflect.Int:
				f.SetInt(int64(i + 1))
			case reflect.Uint64:
				f.SetUint(uint64(i + 1))
			case reflect.Float32:
				f.SetFloat(float64(i) + 1.5)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.String:
				f.SetString(fmt.Sprint("text ", i))
			case reflect.Slice:
				f.Set(reflect.ValueOf([]string{"one", fmt.Sprint(i)}))
			case reflect.Map:
				f.Set(reflect.ValueOf(map[int32]float32{int32(i): 2.5}))
			case reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
			}
		}
	}
	set := func(raw reflect.Value, but ...string) {
		for i := 0; i < raw.NumField(); i++ {
			name := raw.Type().Field(i).Name
			if raw.Field(i).IsZero() == !strings.Contains(" "+strings.Join(but, " ")+" ", " "+name+" ") {
				t.Errorf("%v.%s is %v", raw.Type(), name, raw.Field(i))
			}
		}
	}
	var h held
	defer runtime.KeepAlive(&h)
	var p Sampling
	fill(reflect.ValueOf(&p).Elem())
	raw := p.raw(&h)
	set(reflect.ValueOf(*raw))
	same(t, "sampling", samplingOf(raw), p)
	var m ModelOptions
	fill(reflect.ValueOf(&m).Elem())
	m.NoCache = false
	set(reflect.ValueOf(*m.raw(&h)), "progress", "progressUser", "cancel", "ranks", "split")
	var s SessionOptions
	fill(reflect.ValueOf(&s).Elem())
	set(reflect.ValueOf(*s.raw(&h)), "cancel", "draft")
	var b BatchOptions
	fill(reflect.ValueOf(&b).Elem())
	set(reflect.ValueOf(*b.raw(&h)), "cancel", "draft")
	var c CardOptions
	fill(reflect.ValueOf(&c).Elem())
	set(reflect.ValueOf(*c.raw(&h)), "reserved")
	ok(t, h.err)
}

func TestNumbersAndTokens(t *testing.T) {
	m := openModel(t)
	info, err := m.Info()
	ok(t, err)
	if !strings.Contains(info.Description, "layers") || !info.HasTokenizer || info.WeightBytes == 0 {
		t.Fatalf("%+v", info)
	}
	ids, err := m.Tokenize("a small house", true, false)
	ok(t, err)
	s := openSession(t, m)
	rows, err := s.HiddenStates(ctx, ids)
	ok(t, err)
	same(t, "rows", []int{len(rows), len(rows[0])}, []int{len(ids), info.Hidden})
	ok(t, s.Rewind(0))
	last, err := s.Embed(ctx, ids, EmbedOptions{})
	ok(t, err)
	same(t, "the last row", last, rows[len(rows)-1])
	mean, err := m.Embed(ctx, "a small house", EmbedOptions{Pooling: PoolMean, Normalise: true})
	ok(t, err)
	length := 0.0
	for _, x := range mean {
		length += float64(x) * float64(x)
	}
	if math.Abs(length-1) > 1e-4 {
		t.Fatal(length)
	}
	_, err = m.Embed(ctx, "a", EmbedOptions{Pooling: PoolRank})
	want(t, err, ErrUnsupported)
	ok(t, s.Rewind(0))
	scores, err := s.Score(ctx, ids)
	ok(t, err)
	scored, err := m.Score(ctx, "", "a small house")
	ok(t, err)
	for i, one := range scored {
		if one != (TokenScore{ids[i], scores[i]}) || one.Logprob > 0 {
			t.Fatal(scored, scores)
		}
	}
	behind, err := m.Score(ctx, "a small", " house")
	ok(t, err)
	if behind[len(behind)-1].Logprob == 0 {
		t.Fatal(behind)
	}
	tokens, err := m.Tokens()
	ok(t, err)
	same(t, "tokens", len(tokens), info.Vocab)
	ends := 0
	for i, one := range tokens {
		alone, err := m.Token(int32(i))
		ok(t, err)
		same(t, "a token", one, alone)
		if one.IsEnd != m.IsEnd(one.ID) {
			t.Fatal(one)
		}
		if one.IsEnd {
			ends++
		}
		if i == 300 {
			break
		}
	}
	if ends == 0 {
		t.Fatal("no token ends a text")
	}
	_, err = m.Token(-1)
	want(t, err, ErrArgument)
	at := tokens[ids[len(ids)-1]]
	found, there := m.FindToken(at.Text)
	if !there || found != at.ID {
		t.Fatal(found, at)
	}
	if _, there := m.FindToken("no such token of any vocabulary"); there {
		t.Fatal("it is there")
	}
	_, _, err = m.Role("no such role")
	want(t, err, ErrArgument)
	roles, err := Roles()
	ok(t, err)
	for _, role := range roles {
		id, there, err := m.Role(role)
		ok(t, err)
		if there != (id >= 0) {
			t.Fatal(role, id)
		}
	}
	_, err = m.StopTexts()
	ok(t, err)
}

func TestMetadata(t *testing.T) {
	m := openModel(t)
	keys, err := m.MetadataKeys()
	ok(t, err)
	kinds := map[string]int{}
	for _, key := range keys {
		value, there, err := m.Metadata(key)
		ok(t, err)
		if !there {
			t.Fatal(key)
		}
		kinds[fmt.Sprintf("%T", value)]++
	}
	name, _, err := m.Metadata("general.architecture")
	ok(t, err)
	if text, is := name.(string); !is || text == "" {
		t.Fatal(name)
	}
	list, there, err := m.Metadata("tokenizer.ggml.tokens")
	ok(t, err)
	if texts, is := list.([]string); there && (!is || len(texts) != m.vocab || texts[0] == "") {
		t.Fatalf("%T", list)
	}
	if kinds["string"] == 0 || kinds["int64"] == 0 || kinds["[]string"] == 0 {
		t.Fatal(kinds)
	}
	_, there, err = m.Metadata("no such key")
	if there || err != nil {
		t.Fatal(there, err)
	}
}

func TestStopTextsGrammarsAndFiles(t *testing.T) {
	m := openModel(t)
	s := fed(t, m)
	before := s.Len()
	whole, err := s.Generate(ctx, 24).ReadAll()
	ok(t, err)
	stop := whole[len(whole)/2 : len(whole)/2+3]
	ids := s.IDs()
	ok(t, s.Rewind(before-1))
	ok(t, s.Feed(ctx, ids[before-1:before]))
	ok(t, s.SetStop("never in any text", stop))
	g := s.Generate(ctx, 24)
	cut, err := g.ReadAll()
	ok(t, err)
	same(t, "what is before the stop text", cut, whole[:strings.Index(whole, stop)])
	n, found := s.Stopped()
	if n != 1 || !found || g.Finish() != FinishStop {
		t.Fatal(n, found, g.Finish())
	}
	file := filepath.Join(t.TempDir(), "session")
	ok(t, s.Save(file))
	again := openSession(t, m)
	ok(t, again.Restore(file))
	same(t, "restored", again.IDs(), s.IDs())
	fork, err := s.Fork(ctx, &SessionOptions{Context: 256, Threads: 1})
	ok(t, err)
	defer fork.Close()
	a, err := fork.Next(ctx)
	ok(t, err)
	b, err := again.Next(ctx)
	ok(t, err)
	same(t, "the next token of a fork and of a restored session", a, b)
	want(t, again.Restore(file), ErrArgument)
	want(t, s.Save("/no/such/directory/file"), ErrIO, "/no/such/directory")

	s = fed(t, m)
	if _, is := s.GrammarComplete(); is {
		t.Fatal("there is a grammar")
	}
	ok(t, s.SetGrammar(Regex("(red|blue) [0-9]{2}")))
	complete, is := s.GrammarComplete()
	if complete || !is {
		t.Fatal(complete, is)
	}
	text, err := s.Generate(ctx, 40).ReadAll()
	ok(t, err)
	if complete, _ = s.GrammarComplete(); !complete || len(text) < 6 {
		t.Fatal(text)
	}
	want(t, s.SetGrammar(JSONSchema("{")), ErrFormat)
	want(t, s.SetGrammar(GBNF("nothing")), ErrArgument)
	ok(t, s.SetGrammar(Lark(`start: start "b" | "a"`)))
	want(t, s.SetGrammar(Lark(`root ::= "a"`)), ErrArgument)
	ok(t, s.ClearGrammar())
	if _, is := s.GrammarComplete(); is {
		t.Fatal("there is a grammar")
	}
}

func TestReports(t *testing.T) {
	m := openModel(t)
	s, err := m.NewSession(ctx, &SessionOptions{Context: 64, Threads: 1, Profile: ProfileEvents})
	ok(t, err)
	defer s.Close()
	ok(t, s.FeedText(ctx, prompt, false))
	stats, err := s.Stats()
	ok(t, err)
	if stats.PromptTokens != uint64(s.Len()) || stats.Context != 64 || stats.Kernels == 0 || stats.Threads != 1 ||
		stats.Speculation[2].Tokens != 16 {
		t.Fatalf("%+v", stats)
	}
	table, err := s.Report(false)
	ok(t, err)
	object, err := s.Report(true)
	ok(t, err)
	if table == "" || object[0] != '{' {
		t.Fatal(table, object)
	}
	ok(t, s.Trace(filepath.Join(t.TempDir(), "trace")))
	_, err = s.CardStats()
	want(t, err, ErrUnsupported)
	ok(t, m.Written())
	ok(t, m.Alive())
	devices, err := Devices()
	ok(t, err)
	if len(devices) == 0 || devices[0].Name != "cpu" || devices[0].WhyNot != "" {
		t.Fatal(devices)
	}
	needs, err := ModelNeeds(modelPath(t), &SessionOptions{Context: 64})
	ok(t, err)
	if needs.Context != 64 || needs.WeightBytes == 0 || needs.KVBytes == 0 {
		t.Fatalf("%+v", needs)
	}
	_, err = ModelNeeds("/no/such/model", nil)
	want(t, err, ErrIO)
	_, err = m.NewSession(ctx, &SessionOptions{Card: &CardOptions{Workgroups: -5}})
	want(t, err, ErrArgument, "workgroups")
	wrote, err := WriteObjects(modelPath(t), ObjectsOptions{Target: "gfx1101", Dir: filepath.Join(t.TempDir(), "new")})
	ok(t, err)
	if wrote.Kernels == 0 || wrote.Programs == 0 || wrote.Bytes == 0 {
		t.Fatal(wrote)
	}
	_, err = WriteObjects(modelPath(t), ObjectsOptions{Dir: t.TempDir()})
	want(t, err, ErrArgument)
	if s.Model() != m {
		t.Fatal("another model")
	}
}

func TestCallbacks(t *testing.T) {
	var told []uint64
	m, err := Open(ctx, modelPath(t), &ModelOptions{Threads: 1, Progress: func(done, total uint64) error {
		told = append(told, done, total)
		return nil
	}})
	ok(t, err)
	defer m.Close()
	if len(told) == 0 || told[len(told)-2] != told[len(told)-1] {
		t.Fatal(told)
	}
	enough := errors.New("enough")
	_, err = Open(ctx, modelPath(t), &ModelOptions{Progress: func(_, _ uint64) error { return enough }})
	if !errors.Is(err, enough) || !errors.Is(err, ErrCancelled) {
		t.Fatal(err)
	}
	s := openSession(t, m)
	var passes [][2]int
	ok(t, s.SetPromptFunc(func(computed, length int) error {
		passes = append(passes, [2]int{computed, length})
		return nil
	}))
	ok(t, s.FeedText(ctx, prompt, false))
	same(t, "the last pass", passes[len(passes)-1], [2]int{s.Len(), s.Len()})
	const chosen = 100
	var seen []int32
	ok(t, s.SetLogitsFunc(func(logits []float32, ids []int32) error {
		// Calls of the library within a callback, and a stack that grows meanwhile.
		if _, err := m.Tokenize("within", false, false); err != nil {
			return err
		}
		deep(200)
		runtime.GC()
		seen = append([]int32(nil), ids...)
		for i := range logits {
			if i != chosen {
				logits[i] = float32(math.Inf(-1))
			}
		}
		return nil
	}))
	id, err := s.Next(ctx)
	ok(t, err)
	same(t, "the token", id, int32(chosen))
	same(t, "the tokens before", append(seen, id), s.IDs())
	ok(t, s.SetLogitsFunc(func([]float32, []int32) error { return enough }))
	_, err = s.Next(ctx)
	if !errors.Is(err, enough) || !errors.Is(err, ErrCancelled) {
		t.Fatal(err)
	}
	ok(t, s.SetLogitsFunc(func([]float32, []int32) error { return s.Rewind(0) }))
	_, err = s.Next(ctx)
	want(t, err, ErrCancelled, "used by a function that it calls")
	ok(t, s.SetLogitsFunc(nil))
	_, err = s.Next(ctx)
	ok(t, err)
	ok(t, s.SetPromptFunc(nil))
	ok(t, s.FeedText(ctx, prompt, false))
	same(t, "passes told", len(passes), 1)
}

//go:noinline
func deep(n int) int {
	var room [512]byte
	if n == 0 {
		return len(room)
	}
	room[n%512] = byte(n)
	return deep(n-1) + int(room[0])
}

func TestPanicsAndGoexitInCallbacks(t *testing.T) {
	m := openModel(t)
	s := fed(t, m)
	ok(t, s.SetLogitsFunc(func([]float32, []int32) error { panic("at the disco") }))
	func() {
		defer func() { same(t, "the panic", recover(), "at the disco") }()
		s.Next(ctx)
		t.Error("Next came back")
	}()
	ok(t, s.SetLogitsFunc(func([]float32, []int32) error { runtime.Goexit(); return nil }))
	gone := make(chan bool)
	go func() {
		defer close(gone)
		s.Next(ctx)
		t.Error("Next came back")
	}()
	<-gone
	ok(t, s.SetLogitsFunc(nil))
	id, err := s.Next(ctx)
	ok(t, err)
	same(t, "the token behind both", id, expectedIDs(t)[0])
}

func TestManyGoroutines(t *testing.T) {
	m, ids := openModel(t), expectedIDs(t)
	const n = 64
	var all sync.WaitGroup
	failed := make(chan error, n)
	for i := 0; i < n; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			failed <- func() error {
				s, err := m.NewSession(ctx, &SessionOptions{Context: 64, Threads: 1})
				if err != nil {
					return err
				}
				defer s.Close()
				if i%4 == 0 {
					count := 0
					s.SetLogitsFunc(func(logits []float32, _ []int32) error { count++; return nil })
				}
				if err := s.FeedText(ctx, prompt, false); err != nil {
					return err
				}
				g := s.Generate(ctx, 6)
				if _, err := g.ReadAll(); err != nil {
					return err
				}
				if !reflect.DeepEqual(g.IDs(), ids[:6]) {
					return fmt.Errorf("goroutine %d: %v, expected %v", i, g.IDs(), ids[:6])
				}
				return nil
			}()
		}(i)
	}
	all.Wait()
	for i := 0; i < n; i++ {
		ok(t, <-failed)
	}
	// One session, used by all: each call waits for the others.
	s := fed(t, m)
	before := s.Len()
	for i := 0; i < n; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := s.Next(ctx)
			failed <- err
		}()
	}
	all.Wait()
	for i := 0; i < n; i++ {
		ok(t, <-failed)
	}
	same(t, "its length", s.Len(), before+n)
}

func TestCancelling(t *testing.T) {
	m := openModel(t)
	s := openSession(t, m)
	over, cancel := context.WithCancel(ctx)
	cancel()
	err := s.FeedText(over, prompt, false)
	want(t, err, ErrCancelled)
	if !errors.Is(err, context.Canceled) || s.Len() != 0 {
		t.Fatal(err, s.Len())
	}
	// In the midst of a feed: the first pass is computed, and no more.
	s, err = m.NewSession(ctx, &SessionOptions{Context: 256, Threads: 1, Batch: 16})
	ok(t, err)
	defer s.Close()
	long, err := m.Tokenize(strings.Repeat(prompt+" ", 40), true, false)
	ok(t, err)
	long = long[:100]
	going, cancel := context.WithCancel(ctx)
	ok(t, s.SetPromptFunc(func(computed, length int) error {
		cancel()
		time.Sleep(20 * time.Millisecond)
		return nil
	}))
	err = s.Feed(going, long)
	want(t, err, ErrCancelled)
	if !errors.Is(err, context.Canceled) || s.Len() == 0 || s.Len() >= 100 {
		t.Fatal(err, s.Len())
	}
	// Nothing of it is left for the next call, and the bits are those of a session that was not cancelled.
	ok(t, s.SetPromptFunc(nil))
	ok(t, s.Feed(ctx, long[s.Len():]))
	cut, err := s.Logits(ctx)
	ok(t, err)
	other := openSession(t, m)
	ok(t, other.Feed(ctx, long))
	straight, err := other.Logits(ctx)
	ok(t, err)
	same(t, "logits", cut, straight)
	s.Cancel()
	want(t, s.FeedText(ctx, prompt, false), ErrCancelled)
	ok(t, s.FeedText(ctx, prompt, false))
	late, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	time.Sleep(time.Millisecond)
	_, err = s.Generate(late, 3).ReadAll()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	_, err = Open(over, modelPath(t), nil)
	want(t, err, ErrCancelled)
	_, err = m.NewSession(over, nil)
	want(t, err, ErrCancelled)
	b, err := m.NewBatch(ctx, &BatchOptions{Threads: 1, Context: 64})
	ok(t, err)
	defer b.Close()
	_, err = b.Step(over)
	want(t, err, ErrCancelled)
}

func TestErrorsAndClosing(t *testing.T) {
	_, err := Open(ctx, "/no/such/model.gguf", nil)
	want(t, err, ErrIO, "/no/such/model.gguf")
	if errors.Unwrap(err) != nil || ErrIO.Error() == "" || Kind(99).Error() != "error 99 of libjitrun" {
		t.Fatal(err)
	}
	_, err = Open(ctx, "a\x00b", nil)
	want(t, err, ErrArgument, "zero byte")
	_, err = Open(ctx, modelPath(t), &ModelOptions{Device: "toaster"})
	if err == nil || !strings.Contains(err.Error(), "toaster") {
		t.Fatal(err)
	}
	_, err = Open(ctx, modelPath(t), &ModelOptions{NoCache: true, CacheDir: "x"})
	want(t, err, ErrArgument, "NoCache")
	m, err := Open(ctx, modelPath(t), &ModelOptions{Threads: 1})
	ok(t, err)
	s, err := m.NewSession(ctx, &SessionOptions{Context: 4, Threads: 1})
	ok(t, err)
	want(t, s.Feed(ctx, []int32{1, 1, 1, 1, 1}), ErrContext)
	want(t, s.Feed(ctx, []int32{-1}), ErrArgument)
	want(t, s.Rewind(9), ErrArgument)
	want(t, s.Rewind(-1), ErrArgument)
	same(t, "length", s.Len(), 0)
	ok(t, s.Feed(ctx, nil))
	ok(t, s.FeedText(ctx, "Once", false))
	g := s.Generate(ctx, 100)
	_, err = g.ReadAll()
	ok(t, err)
	same(t, "finish", g.Finish(), FinishLength)
	// The session goes on without its model, and nothing else does.
	ok(t, m.Close())
	ok(t, m.Close())
	ok(t, s.Rewind(1))
	ok(t, s.Feed(ctx, []int32{5}))
	_, err = s.Generate(ctx, 2).ReadAll()
	ok(t, err)
	_, err = m.Tokenize("a", false, false)
	want(t, err, ErrClosed)
	_, err = m.NewSession(ctx, nil)
	want(t, err, ErrClosed)
	_, err = m.Info()
	want(t, err, ErrClosed)
	ok(t, s.Close())
	ok(t, s.Close())
	s.Cancel()
	want(t, s.Feed(ctx, []int32{1}), ErrClosed)
	_, err = s.Next(ctx)
	want(t, err, ErrClosed)
	_, err = s.Generate(ctx, 2).ReadAll()
	want(t, err, ErrClosed)
	_, err = s.Chat(ctx, &Chat{Messages: []Message{User("a")}}).Reply()
	want(t, err, ErrClosed)
	same(t, "tokens", s.IDs(), []int32(nil))
	version, err := Version()
	ok(t, err)
	if expected := os.Getenv("JITRUN_VERSION"); expected != "" {
		same(t, "version", version, expected)
	}
	want(t, Load("another"), ErrLibrary)
}

// What nobody holds any more is closed; what is held by a session is not.
func TestCollector(t *testing.T) {
	m, err := Open(ctx, modelPath(t), &ModelOptions{Threads: 1})
	ok(t, err)
	h := m.h
	func() {
		s, err := m.NewSession(ctx, &SessionOptions{Context: 64, Threads: 1})
		ok(t, err)
		ok(t, s.FeedText(ctx, prompt, false))
	}()
	m = nil
	for i := 0; i < 200; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		h.mu.Lock()
		users := h.users
		h.mu.Unlock()
		if users == 0 {
			return
		}
	}
	t.Fatal("a model and a session are still open")
}
