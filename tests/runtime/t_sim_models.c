/* tests/runtime/t_sim_models.c - whole models on simulated cards: the logits, scores and tokens of the CPU, bit for
 * bit.
 *
 * Each model runs token by token on the CPU once. A card must give the same however many tokens a pass has, however
 * much goes into one launch, when loads arrive and in which order waves run. Few tokens: a simulated instruction takes
 * as long as thousands of real ones. Here the ways take turns; with JITRUN_TEST_FULL every model goes through every
 * card, number of tokens and cut into launches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "include/jitrun_cards.h"
#include "runtime/device/simulated/simulator.h"
#include "runtime/session/session.h"
#include "tests/support/shared.h"

enum { TOKENS = 24, MAX_COLUMNS = 16, GENERATED = 2 };

/* What the CPU says of a model. */
struct truth {
	char path[1024];
	int kv, f32_activations;
	size_t vocab;
	int32_t prompt[TOKENS], chosen[GENERATED]; /* chosen after the whole prompt */
	float *logits;                             /* [TOKENS][vocab], after each token of the prompt */
	float logprob[TOKENS];
};

struct how {
	const char *target;
	int tokens, launch;
	struct simulator_options sim;
};

static void failed(const struct truth *t, const struct how *h, const char *what, const char *why)
{
	fail_msg("%s on %s, %d tokens, launch %d, %u workgroups, memory %d, seed %llu: %s: %s", t->path, h->target,
	         h->tokens, h->launch, h->sim.workgroups, (int)h->sim.memory, (unsigned long long)h->sim.seed, what,
	         why);
}

static jit_model *open_model(const struct truth *t, const char *device)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(t->path,
	                              &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1,
	                                                 .f32_activations = t->f32_activations),
	                              &err);
	if (!m)
		fail_msg("%s on %s: %s", t->path, device, err.message);
	return m;
}

static jit_session *open_session(jit_model *m, const struct truth *t, int batch)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m,
	                                  &JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .kv = t->kv, .batch = batch,
	                                                       .speculate = JIT_SPECULATE_OFF),
	                                  &err);
	if (!s)
		fail_msg("%s: %s", t->path, err.message);
	return s;
}

static void learn(struct truth *t, const char *path, int kv, int f32_activations)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	*t = (struct truth){ .kv = kv, .f32_activations = f32_activations };
	snprintf(t->path, sizeof t->path, "%s", path);
	jit_model *m = open_model(t, "cpu");
	jit_session *s = open_session(m, t, 1);
	jit_model_get_info(m, &info, NULL);
	t->vocab = (size_t)info.vocab;
	t->logits = malloc(TOKENS * t->vocab * sizeof *t->logits);
	assert_non_null(t->logits);
	for (int i = 0; i < TOKENS; i++) {
		t->prompt[i] = (int32_t)((size_t)(i * 37 + 11) % t->vocab);
		assert_int_equal(jit_session_feed(s, &t->prompt[i], 1, &err), JIT_OK);
		memcpy(t->logits + (size_t)i * t->vocab, jit_session_logits(s, &err), t->vocab * sizeof *t->logits);
	}
	for (int i = 0; i < GENERATED; i++)
		assert_int_equal(jit_session_next(s, &t->chosen[i], &err), JIT_OK);
	assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
	assert_int_equal(jit_session_score(s, t->prompt, TOKENS, t->logprob, &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
}

static void same_logits(const struct truth *t, const struct how *h, jit_session *s, size_t token)
{
	const float *want = t->logits + token * t->vocab, *got = jit_session_logits(s, NULL);
	char why[160];

	for (size_t i = 0; i < t->vocab; i++)
		if (!got || memcmp(&got[i], &want[i], sizeof *got) != 0) {
			snprintf(why, sizeof why, "entry %zu is %.9g, the CPU has %.9g", i, got ? (double)got[i] : 0,
			         (double)want[i]);
			failed(t, h, "the logits differ", why);
		}
}

static void feed(const struct truth *t, const struct how *h, jit_session *s, int from, int n)
{
	jit_error err = { 0 };

	if (jit_session_feed(s, t->prompt + from, (size_t)n, &err) != JIT_OK)
		failed(t, h, "feed", err.message);
	same_logits(t, h, s, (size_t)(from + n - 1));
}

static void choose(const struct truth *t, const struct how *h, jit_session *s)
{
	jit_error err = { 0 };
	int32_t id;

	for (int i = 0; i < GENERATED; i++) {
		if (jit_session_next(s, &id, &err) != JIT_OK)
			failed(t, h, "next", err.message);
		if (id != t->chosen[i])
			failed(t, h, "next", "another token");
	}
}

static void score(const struct truth *t, const struct how *h, jit_session *s, int from, int n)
{
	jit_error err = { 0 };
	float logprob[TOKENS];

	if (jit_session_score(s, t->prompt + from, (size_t)n, logprob, &err) != JIT_OK)
		failed(t, h, "score", err.message);
	if (memcmp(logprob, t->logprob + from, (size_t)n * sizeof *logprob) != 0)
		failed(t, h, "score", "other probabilities");
	same_logits(t, h, s, (size_t)(from + n - 1));
}

/* Token by token: the last of the prompt, and what is chosen after it. The tokens before go in one pass. */
static void decode(const struct truth *t, const struct how *h, jit_session *s)
{
	feed(t, h, s, 0, TOKENS - 2);
	for (int i = TOKENS - 2; i < TOKENS; i++)
		feed(t, h, s, i, 1);
	choose(t, h, s);
}

/* A pass over tokens with the last one's logits, and one with the logits of all. */
static void passes(const struct truth *t, const struct how *h, jit_session *s)
{
	feed(t, h, s, 0, h->tokens);
	score(t, h, s, h->tokens, h->tokens < TOKENS - h->tokens ? h->tokens : TOKENS - h->tokens);
}

/* The prompt by so many tokens, choices, and the prompt again with the logits of all tokens. */
static void everything(const struct truth *t, const struct how *h, jit_session *s)
{
	jit_error err = { 0 };

	for (int at = 0; at < TOKENS; at += h->tokens)
		feed(t, h, s, at, h->tokens < TOKENS - at ? h->tokens : TOKENS - at);
	choose(t, h, s);
	assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
	score(t, h, s, 0, TOKENS);
}

static unsigned combinations;

static void check(const struct truth *t, jit_model *m, const struct how *h)
{
	jit_session *s = open_session(m, t, h->tokens > 1 || test_full() ? h->tokens : TOKENS);
	struct simulator_options sim = h->sim;

	sim.launch = (enum stream_launch)h->launch;
	sim.units = 24; /* room for any of the ways' workgroups, and for more */
	assert_true(simulator_set(session_stream(s), &sim));
	(test_full() ? everything : h->tokens > 1 ? passes : decode)(t, h, s);
	const struct simulator_counters *c = simulator_count(session_stream(s));
	assert_true(c->card.passes > 1 && c->card.launches >= c->card.passes &&
	            c->card.commands > c->card.launches - 1 && c->sim.load_bytes > 0);
	assert_true(h->launch != JIT_LAUNCH_TOKEN || c->card.launches == c->card.passes);
	assert_true(h->launch != JIT_LAUNCH_OP || (c->card.launches == c->card.commands && c->card.barriers == 0));
	jit_session_close(s);
	combinations++;
}

static const char *const targets[] = { "gfx1030", "gfx1100", "gfx1200" };
enum { TARGETS = sizeof targets / sizeof *targets };

static void check_ways(const struct truth *t, jit_model *m, const char *target, bool some, unsigned n)
{
	static const struct how ways[] = {
		{ .tokens = 1, .launch = JIT_LAUNCH_TOKEN, .sim = { .memory = SIM_MEMORY_RANDOM, .workgroups = 8 } },
		{ .tokens = 4, .launch = JIT_LAUNCH_LAYER, .sim = { .memory = SIM_MEMORY_AT_WAIT, .workgroups = 3 } },
		{ .tokens = 8, .launch = JIT_LAUNCH_OP, .sim = { .memory = SIM_MEMORY_NOW, .workgroups = 5 } },
		{ .tokens = 16, .launch = JIT_LAUNCH_TOKEN, .sim = { .memory = SIM_MEMORY_AT_WAIT, .workgroups = 13 } },
		{ .tokens = 1, .launch = JIT_LAUNCH_OP, .sim = { .memory = SIM_MEMORY_AT_WAIT, .workgroups = 8 } },
		{ .tokens = 1, .launch = JIT_LAUNCH_LAYER, .sim = { .memory = SIM_MEMORY_RANDOM, .workgroups = 1 } },
		{ .tokens = 4,
		  .launch = JIT_LAUNCH_TOKEN,
		  .sim = { .memory = SIM_MEMORY_RANDOM, .workgroups = 8, .races = true } },
		{ .tokens = 8, .launch = JIT_LAUNCH_TOKEN, .sim = { .memory = SIM_MEMORY_RANDOM, .workgroups = 24 } },
		{ .tokens = 1,
		  .launch = JIT_LAUNCH_TOKEN,
		  .sim = { .memory = SIM_MEMORY_RANDOM, .workgroups = 8, .races = true } },
	};

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct how h = ways[i];
		h.target = target;
		h.sim.seed = 1000 * n + i;
		if (!some || i % 3 == n % 3)
			check(t, m, &h);
	}
}

static void check_product(const struct truth *t, jit_model *m, const char *target, unsigned n)
{
	static const int tokens[] = { 1, 4, 8, 16 };
	static const uint32_t workgroups[] = { 8, 3, 13, 1, 24 };

	for (unsigned i = 0; i < 4; i++)
		for (int launch = JIT_LAUNCH_TOKEN; launch <= JIT_LAUNCH_OP; launch++) {
			unsigned at = 12 * n + 3 * i + (unsigned)launch;
			struct how h = { target,
				         tokens[i],
				         launch,
				         { .memory = (enum sim_memory_mode)((at + n) % 3),
				           .seed = at,
				           .races = at % 5 == 0,
				           .workgroups = workgroups[at % 5] } };
			check(t, m, &h);
		}
}

/* On one card. `some`: of the ways, only every third, another third for each n. */
static void check_card(const struct truth *t, const char *target, bool some, unsigned n)
{
	char device[32];

	snprintf(device, sizeof device, "sim:%s", target);
	/* every other time the host cannot reach the card's memory, as it could not reach a real one's */
	(n % 2 ? setenv("JITRUN_SIM_HIDE", "1", 1) : unsetenv("JITRUN_SIM_HIDE"));
	jit_model *m = open_model(t, device);
	unsetenv("JITRUN_SIM_HIDE");
	if (test_full())
		check_product(t, m, target, n);
	else
		check_ways(t, m, target, some, n);
	jit_model_close(m);
}

/* Of several models each leaves out one card in turn, all but one in a quick run, and none with JITRUN_TEST_FULL. */
static bool leaves_out(unsigned model, unsigned card)
{
	bool round = (model + card) % TARGETS == 0;

	return !test_full() && (test_quick() ? !round : round);
}

/* `several`: its cards are tried with other models, too. */
static void check_model(const char *path, bool some, bool several, int kv, int f32_activations)
{
	static unsigned n, models, cards;
	struct truth t;

	learn(&t, path, kv, f32_activations);
	for (unsigned i = 0; i < TARGETS; i++, n++)
		if ((!several || !leaves_out(models, i)) && test_mine(cards++))
			check_card(&t, targets[i], some || test_quick(), n);
	n++; /* another third of the ways for the next model's first card */
	models += several;
	free(t.logits);
}

static void check_shared(const char *const *list, size_t n, bool some, int kv)
{
	char path[1024];

	for (size_t i = 0; i < n; i++)
		if (shared_path(path, list[i]))
			check_model(path, some, some, kv, 0);
}

/* ---- tests */

static void test_golden_models(void **state)
{
	static const char *const golden[] = { "golden/llama-gqa4-bf16", "golden/qwen3-gqa2-bf16",
		                              "golden/llama-mha-f32", "golden/mistral-gqa4-f16" };
	(void)state;
	check_shared(golden, sizeof golden / sizeof *golden, true, JIT_KV_F16);
}

static void test_tales(void **state)
{
	static const char *const tale[] = { "models/tale-llama", "models/tale-qwen3" };
	(void)state;
	check_shared(tale, test_quick() ? 1 : 2, true, JIT_KV_F32);
}

static void test_stories(void **state)
{
	static const char *const stories[] = { "data/stories260K/stories260K.gguf" }, *const others[] = {
		"data/stories260K/stories260K.own-f32.gguf", "data/stories260K/stories260K.llamacpp-f16.gguf",
		"data/stories260K/hf"
	};
	(void)state;
	check_shared(stories, 1, false, JIT_KV_F16);
	check_shared(others, test_quick() ? 0 : 3, true, JIT_KV_F32);
}

static void test_int8(void **state)
{
	char path[1024];
	(void)state;
	check_model(source_path(path, "models/tale-q8_0.gguf"), true, false, JIT_KV_F16, 0);
	if (!test_quick())
		check_model(path, true, false, JIT_KV_F16, 1);
}

/* The other formats of weights. */
static void test_formats(void **state)
{
	static const char *const file[] = {
		"models/tale-llama/tale-llama-q4_0.gguf",   "models/tale-llama/tale-llama-q4_k_m.gguf",
		"models/tale-llama/tale-llama-q5_1.gguf",   "models/tale-llama/tale-llama-q5_k_m.gguf",
		"models/tale-llama/tale-llama-q6_k.gguf",   "models/tale-llama/tale-llama-q2_k.gguf",
		"models/tale-llama/tale-llama-q3_k_m.gguf", "models/tale-llama/tale-llama-iq4_xs.gguf",
		"models/tale-llama/tale-llama-q8_0.gguf",   "models/tale-qwen3/tale-qwen3-q4_k_m.gguf",
		"models/tale-qwen3/tale-qwen3-q4_0.gguf",   "models/tale-qwen3/tale-qwen3-q6_k.gguf",
		"models/tale-qwen3/tale-qwen3-q8_0.gguf"
	};
	(void)state;
	check_shared(file, test_quick() ? 0 : sizeof file / sizeof *file, true, JIT_KV_F16);
}

/* ---- how many workgroups */

struct seen {
	uint32_t workgroups, vgprs, lds;
};

static void see(void *user, const struct plan *p, const struct sim_kernel *kernel, size_t first, size_t end,
                const struct sim_counters *c)
{
	(void)p;
	(void)first;
	(void)end;
	*(struct seen *)user = (struct seen){ (uint32_t)c->workgroups, kernel->vgprs, kernel->lds_size };
}

/* One pass over `tokens` tokens and its logits, on a card of so many units. */
static bool try_card(const struct truth *t, jit_model *m, int tokens, uint32_t units, uint32_t workgroups,
                     struct seen *seen, jit_error *err)
{
	const struct how h = { .target = "a card",
		               .tokens = tokens,
		               .sim = { .units = units, .workgroups = workgroups, .watch = see, .user = seen } };
	jit_session *s = open_session(m, t, tokens);

	*seen = (struct seen){ 0 };
	assert_true(simulator_set(session_stream(s), &h.sim));
	bool ok = jit_session_feed(s, t->prompt, (size_t)tokens, err) == JIT_OK;
	if (ok)
		same_logits(t, &h, s, (size_t)tokens - 1);
	jit_session_close(s);
	return ok;
}

/* As many as the card has room for, which the program's registers decide; or as many as one asks for, but no more.
 * Always the same logits. */
static void check_room(const struct truth *t, const char *target, int tokens)
{
	struct seen seen;
	jit_error err = { 0 };
	char device[32];

	snprintf(device, sizeof device, "sim:%s", target);
	jit_model *m = open_model(t, device);
	const uint32_t min = test_quick() && tokens == 1 ? 3 : 1, max = test_quick() && tokens > 1 ? 1 : 3;
	for (uint32_t units = min; units <= max; units += 2) {
		assert_true(try_card(t, m, tokens, units, 0, &seen, &err));
		uint32_t room = backend_rdna.resident(target_find(target), units, seen.vgprs, seen.lds);
		assert_int_equal(seen.workgroups, room);
		uint32_t step = test_quick() && room > 3 ? (room - 1) / 2 : 2 * units - 1;
		for (uint32_t n = 1; n <= room; n += step) {
			assert_true(try_card(t, m, tokens, units, n, &seen, &err));
			assert_int_equal(seen.workgroups, n);
		}
		assert_false(try_card(t, m, tokens, units, room + 1, &seen, &err));
		assert_non_null(strstr(err.message, "workgroups are to run at once"));
		assert_non_null(strstr(err.message, target));
		assert_int_equal(seen.workgroups, 0);
	}
	jit_model_close(m);
}

static void test_room(void **state)
{
	char path[1024];
	struct truth t;
	(void)state;

	learn(&t, source_path(path, "models/tale-q8_0.gguf"), 0, 0);
	for (int i = 0; i < (test_small_share() ? 1 : TARGETS); i++)
		for (int tokens = 1; tokens <= 16; tokens += 15)
			check_room(&t, targets[i], tokens);
	free(t.logits);
}

/* Sessions on one card take turns, and each keeps its own memory. */
static void test_two_sessions(void **state)
{
	const struct how h = { .target = "one card with two sessions" };
	struct truth t;
	char path[1024];

	learn(&t, source_path(path, "models/tale-q8_0.gguf"), 0, 0);
	setenv("JITRUN_SIM_HIDE", "1", 1);
	jit_model *m = open_model(&t, "sim:gfx1100");
	unsetenv("JITRUN_SIM_HIDE");
	jit_session *a = open_session(m, &t, 4), *b = open_session(m, &t, 4);
	feed(&t, &h, a, 0, 4);
	feed(&t, &h, b, 0, 2);
	feed(&t, &h, a, 4, 2);
	feed(&t, &h, b, 2, 4);
	jit_session_close(a);
	feed(&t, &h, b, 6, 2);
	jit_session_close(b);
	jit_model_close(m);
	free(t.logits);
}

/* What there is no card for, and what no card does. */
static void test_errors(void **state)
{
	char path[1024];
	jit_error err = { 0 };
	(void)state;

	source_path(path, "models/tale-q8_0.gguf");
	assert_null(jit_model_open(path, &JIT_MODEL_OPTIONS(.device = "sim:gfx900"), &err));
	assert_non_null(strstr(err.message, "gfx900"));
	assert_non_null(strstr(err.message, "gfx1201"));
	assert_null(jit_model_open(path, &JIT_MODEL_OPTIONS(.device = "sim:avx2"), &err));
	assert_null(jit_model_open(path, &JIT_MODEL_OPTIONS(.device = "sim:gfx1100", .isa = "avx2"), &err));
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = "sim:gfx1100", .cache_dir = ""), &err);
	assert_non_null(m);
	assert_null(jit_session_open(m, &JIT_SESSION_OPTIONS(.card = &JIT_CARD_OPTIONS(.workgroups = 5000)), &err));
	assert_non_null(strstr(err.message, "5000"));
	assert_null(jit_session_open(m, &JIT_SESSION_OPTIONS(.card = &JIT_CARD_OPTIONS(.units = 257)), &err));
	assert_non_null(strstr(err.message, "257"));
	assert_null(jit_session_open(m, &JIT_SESSION_OPTIONS(.card = &JIT_CARD_OPTIONS(.launch = 3)), &err));
	assert_non_null(strstr(err.message, "launch: 3"));
	jit_model_close(m);
	m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	jit_session *s = jit_session_open(m, NULL, &err);
	assert_false(simulator_set(session_stream(s), &(struct simulator_options){ 0 }));
	assert_null(simulator_count(session_stream(s)));
	jit_session_close(s);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),  cmocka_unit_test(test_two_sessions),  cmocka_unit_test(test_room),
		cmocka_unit_test(test_stories), cmocka_unit_test(test_golden_models), cmocka_unit_test(test_tales),
		cmocka_unit_test(test_int8),    cmocka_unit_test(test_formats)
	};
	int failures = cmocka_run_group_tests_name("sim_models", tests, NULL, NULL);
	printf("# %u combinations of model, card, tokens, launch and order\n", combinations);
	return failures;
}
