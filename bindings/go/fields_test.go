//go:build linux && amd64

package jitrun

// Whether each field of Go is that of C. The library's own setters by name are the witness for options; for results it
// is a struct of C with another number in each field.

import (
	"reflect"
	"testing"
)

func TestEveryOptionIsTheOneThatItsNameSays(t *testing.T) {
	if _, err := Version(); err != nil {
		t.Skip(err)
	}
	for _, one := range []struct {
		name, value string
		want        Sampling
	}{
		{"temperature", "0.5", Sampling{Temperature: 0.5}}, {"top_k", "3", Sampling{TopK: 3}},
		{"top_p", "0.5", Sampling{TopP: 0.5}}, {"min_p", "0.5", Sampling{MinP: 0.5}},
		{"repeat_penalty", "1.5", Sampling{RepeatPenalty: 1.5}}, {"repeat_window", "3", Sampling{RepeatWindow: 3}},
		{"seed", "18446744073709551615", Sampling{Seed: 1<<64 - 1}},
		{"samplers", "top_p;min_p", Sampling{Samplers: []string{"top_p", "min_p"}}},
		{"typical_p", "0.5", Sampling{TypicalP: 0.5}}, {"top_n_sigma", "0.5", Sampling{TopNSigma: 0.5}},
		{"frequency_penalty", "0.5", Sampling{FrequencyPenalty: 0.5}},
		{"presence_penalty", "0.5", Sampling{PresencePenalty: 0.5}},
		{"dynatemp_range", "0.5", Sampling{DynatempRange: 0.5}},
		{"dynatemp_exponent", "0.5", Sampling{DynatempExponent: 0.5}},
		{"xtc_probability", "0.5", Sampling{XTCProbability: 0.5}},
		{"xtc_threshold", "0.25", Sampling{XTCThreshold: 0.25}}, {"dry_multiplier", "0.5", Sampling{DryMultiplier: 0.5}},
		{"dry_base", "1.5", Sampling{DryBase: 1.5}}, {"dry_allowed_length", "3", Sampling{DryAllowedLength: 3}},
		{"dry_window", "3", Sampling{DryWindow: 3}}, {"mirostat", "2", Sampling{Mirostat: 2}},
		{"min_keep", "3", Sampling{MinKeep: 3}}, {"mirostat_tau", "0.5", Sampling{MirostatTau: 0.5}},
		{"mirostat_eta", "0.5", Sampling{MirostatEta: 0.5}}, {"adaptive_target", "0.5", Sampling{AdaptiveTarget: 0.5}},
		{"adaptive_decay", "0.5", Sampling{AdaptiveDecay: 0.5}},
	} {
		var p Sampling
		ok(t, p.Set(one.name, one.value))
		same(t, one.name, p, one.want)
	}
	for _, one := range []struct {
		name, value string
		want        ModelOptions
	}{
		{"device", "ref", ModelOptions{Device: "ref"}}, {"isa", "avx2", ModelOptions{ISA: "avx2"}},
		{"threads", "3", ModelOptions{Threads: 3}}, {"sealed", "on", ModelOptions{Sealed: true}},
		{"cache_dir", "d", ModelOptions{CacheDir: "d"}}, {"cache_dir", "", ModelOptions{NoCache: true}},
		{"cache_limit", "5000000000", ModelOptions{CacheLimit: 5000000000}},
		{"f32_activations", "1", ModelOptions{F32Activations: true}},
		{"bounded_numerics", "always_bounded", ModelOptions{BoundedNumerics: NumericsAlwaysBounded}},
		{"numerics", "bounded", ModelOptions{BoundedNumerics: NumericsBounded}},
		{"tune", "cached", ModelOptions{Tune: TuneCached}}, {"perf_map", "1", ModelOptions{PerfMap: true}},
		{"dump_ir", "f", ModelOptions{DumpIR: "f"}}, {"dump_asm", "f", ModelOptions{DumpAsm: "f"}},
		{"jitdump", "d", ModelOptions{Jitdump: "d"}}, {"gdb", "1", ModelOptions{GDB: true}},
		{"copy_weights", "1", ModelOptions{CopyWeights: true}}, {"weight_cache", "d", ModelOptions{WeightCache: "d"}},
		{"weight_cache", "", ModelOptions{KeepWeights: true}},
		{"weight_cache_limit", "5000000000", ModelOptions{WeightCacheLimit: 5000000000}},
	} {
		var o ModelOptions
		ok(t, o.Set(one.name, one.value))
		same(t, one.name, o, one.want)
	}
	for _, one := range []struct {
		name, value string
		want        SessionOptions
	}{
		{"context", "3", SessionOptions{Context: 3}}, {"threads", "3", SessionOptions{Threads: 3}},
		{"batch", "3", SessionOptions{Batch: 3}}, {"kv", "f32", SessionOptions{KV: KVF32}},
		{"speculate", "8", SessionOptions{Speculate: 8}}, {"profile", "events", SessionOptions{Profile: ProfileEvents}},
	} {
		var o SessionOptions
		ok(t, o.Set(one.name, one.value))
		same(t, one.name, o, one.want)
	}
	for _, one := range []struct {
		name, value string
		want        BatchOptions
	}{
		{"threads", "3", BatchOptions{Threads: 3}}, {"tokens", "3", BatchOptions{Tokens: 3}},
		{"context", "3", BatchOptions{Context: 3}}, {"kv", "q8_0", BatchOptions{KV: KVQ80}},
		{"speculate", "off", BatchOptions{Speculate: SpeculateOff}}, {"max_pass_ms", "3", BatchOptions{MaxPassMS: 3}},
		{"kv_bytes", "5000000000", BatchOptions{KVBytes: 5000000000}},
	} {
		var o BatchOptions
		ok(t, o.Set(one.name, one.value))
		same(t, one.name, o, one.want)
	}
	for _, one := range []struct {
		name, value string
		want        CardOptions
	}{
		{"launch", "layer", CardOptions{Launch: LaunchLayer}}, {"workgroups", "3", CardOptions{Workgroups: 3}},
		{"units", "3", CardOptions{Units: 3}},
	} {
		var o CardOptions
		ok(t, o.Set(one.name, one.value))
		same(t, one.name, o, one.want)
	}
}

func TestEveryResultIsTheOneThatItsNameSays(t *testing.T) {
	var stats SessionStats
	fromC(&stats, &jitSessionStats{
		promptTokens: 1, decodeTokens: 2, promptSeconds: 3, decodeSeconds: 4, kernels: 5, kernelsGenerated: 6,
		kernelsFromCache: 7, kernelsFromPack: 8, cacheDamaged: 9, cacheStoreFailed: 10, cacheEvicted: 11,
		generateSeconds: 12, codeBytes: 13, kvBytes: 14, threads: 15, context: 16, decodePasses: 17, drafted: 18,
		accepted: 19, speculation: [3]jitSessionStatsSpeculation{
			{tokens: 20, passes: 21, drafted: 22, accepted: 23}, {tokens: 24}, {accepted: 25}},
		kernelsBackground: 26, kernelStalls: 27, cacheUnreadable: 28,
	})
	same(t, "of a session", stats, SessionStats{
		PromptTokens: 1, DecodeTokens: 2, PromptSeconds: 3, DecodeSeconds: 4, Kernels: 5, KernelsGenerated: 6,
		KernelsFromCache: 7, KernelsFromPack: 8, CacheDamaged: 9, CacheStoreFailed: 10, CacheEvicted: 11,
		GenerateSeconds: 12, CodeBytes: 13, KVBytes: 14, Threads: 15, Context: 16, DecodePasses: 17, Drafted: 18,
		Accepted: 19, Speculation: [3]PassStats{
			{Tokens: 20, Passes: 21, Drafted: 22, Accepted: 23}, {Tokens: 24}, {Accepted: 25}},
		KernelsBackground: 26, KernelStalls: 27, CacheUnreadable: 28,
	})
	var batch BatchStats
	fromC(&batch, &jitBatchStats{
		passes: 1, tokens: 2, promptTokens: 3, decodeTokens: 4, reusedTokens: 5, setBack: 6, pages: 7, pagesUsed: 8,
		pagesKept: 9, kvBytes: 10, seconds: 11, width: [16]uint64{12, 13, 15: 14}, pagesShared: 15, context: 16,
	})
	same(t, "of a batch", batch, BatchStats{
		Passes: 1, Tokens: 2, PromptTokens: 3, DecodeTokens: 4, ReusedTokens: 5, SetBack: 6, Pages: 7, PagesUsed: 8,
		PagesKept: 9, KVBytes: 10, Seconds: 11, Width: [16]uint64{12, 13, 15: 14}, PagesShared: 15, Context: 16,
	})
	var card CardStats
	fromC(&card, &jitCardStats{
		launches: 1, barriers: 2, instructions: 3, loadBytes: 4, load128Bytes: 5, storeBytes: 6, scalarBytes: 7,
		weightBytes: 8, cacheBytes: 9, commands: 10,
	})
	same(t, "of a card", card, CardStats{
		Launches: 1, Barriers: 2, Instructions: 3, LoadBytes: 4, Load128Bytes: 5, StoreBytes: 6, ScalarBytes: 7,
		WeightBytes: 8, CacheBytes: 9, Commands: 10,
	})
	var needs Needs
	fromC(&needs, &jitNeeds{weightBytes: 1, tokenBytes: 2, kvBytes: 3, passBytes: 4, availableBytes: 1<<64 - 1,
		context: 6, contextTrained: 7})
	same(t, "of a measure", needs, Needs{WeightBytes: 1, TokenBytes: 2, KVBytes: 3, PassBytes: 4,
		AvailableBytes: 1<<64 - 1, Context: 6, ContextTrained: 7})
	var h held
	var info ModelInfo
	fromC(&info, &jitModelInfo{
		description: h.text("", "what"), vocab: 1, layers: 2, hidden: 3, contextTrained: 4, hasTokenizer: 5,
		fileBytes: 6, weightBytes: 7, tokenBytes: 8, loadSeconds: 9, hasChatTemplate: 10, hasSampling: 11,
		weightCacheTrouble: h.text("", "why"), pooling: jitPoolRank, bounded: jitBoundedAll, boundedGain: 12,
		encodes: 1, embedding: 13,
	})
	same(t, "of a model", info, ModelInfo{
		Description: "what", Vocab: 1, Layers: 2, Hidden: 3, ContextTrained: 4, HasTokenizer: true, FileBytes: 6,
		WeightBytes: 7, TokenBytes: 8, LoadSeconds: 9, HasChatTemplate: true, HasSampling: true,
		WeightCacheTrouble: "why", Pooling: PoolRank, Bounded: BoundedAll, BoundedGain: 12,
		Encodes: true, Embedding: 13,
	})
	fromC(&info, &jitModelInfo{layers: 2, hasSampling: 11})
	same(t, "of another model", info, ModelInfo{Layers: 2, HasSampling: true, Pooling: PoolLast, Bounded: BoundedNone})
	var wrote Objects
	fromC(&wrote, &jitObjects{kernels: 1, programs: 2, bytes: 3})
	same(t, "of code objects", wrote, Objects{Kernels: 1, Programs: 2, Bytes: 3})
	raw := &jitObjectsOptions{}
	h.toC(raw, &ObjectsOptions{Target: "gfx1101", Dir: "d", KV: KVF32, F32Activations: true,
		BoundedNumerics: NumericsBounded})
	same(t, "options of code objects", []any{cText(raw.target), cText(raw.dir), raw.kv, raw.f32Activations,
		raw.boundedNumerics}, []any{"gfx1101", "d", int32(jitKvF32), int32(1), int32(jitNumericsBounded)})
	device := &jitDeviceInfo{}
	copy(device.name[:], "n")
	copy(device.about[:], "a")
	copy(device.whyNot[:], "w")
	var d Device
	fromC(&d, device)
	same(t, "of a device", d, Device{Name: "n", About: "a", WhyNot: "w"})
	ok(t, h.err)
}

// No field of Go is without one of C, but for what is made by hand.
func TestFieldsHavePartners(t *testing.T) {
	for _, one := range []struct{ of, raw any }{
		{ModelInfo{}, jitModelInfo{}}, {SessionStats{}, jitSessionStats{}}, {BatchStats{}, jitBatchStats{}},
		{CardStats{}, jitCardStats{}}, {Needs{}, jitNeeds{}}, {Objects{}, jitObjects{}}, {Device{}, jitDeviceInfo{}},
		{ObjectsOptions{}, jitObjectsOptions{}}, {Sampling{}, jitSampling{}}, {SessionOptions{}, jitSessionOptions{}},
		{BatchOptions{}, jitBatchOptions{}}, {CardOptions{}, jitCardOptions{}}, {ModelOptions{}, jitModelOptions{}},
		{EmbedOptions{}, jitEmbeddingOptions{}}, {PassStats{}, jitSessionStatsSpeculation{}},
	} {
		of := reflect.TypeOf(one.of)
		for i := 0; i < of.NumField(); i++ {
			name := of.Field(i).Name
			if _, is := partner(reflect.ValueOf(one.raw), name); !is && name != "NoCache" && name != "KeepWeights" {
				t.Errorf("%v.%s has no partner", of, name)
			}
		}
	}
}
