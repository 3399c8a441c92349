/* tests/runtime/t_ranks_adapters.c - adapters on a model that several processes compute have the bits that they have on
 * one process: pairs of every kind, whole matrices, experts, batches of sessions with unlike ones, adapters that come
 * and go while others compute. One whose files are others on some rank is refused by its name. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_cards.h"
#include "runtime/model/model.h"
#include "runtime/ranks/ranks.h"
#include "tests/runtime/adapter_sessions.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

enum { STEPS = 4, PROMPT = 21, ADAPTERS = 5, VOCAB_MAX = 4096 };

static char folder[] = "/tmp/t_ranks_adapters-XXXXXX";
static const char *const splits[][2] = {
	{ "fork:2", "pipeline" },
	{ "fork:3", "pipeline" },
	{ "fork:2", "rows" },
	{ "fork:3", "rows:3,1,2" },
	{ "fork:2", "rows:0,1" }
};
enum { SPLITS = sizeof splits / sizeof *splits };

static const char *inside(char out[200], const char *name)
{
	snprintf(out, 200, "%s/%s", folder, name);
	return out;
}

static void run(const char *command, const char *argument)
{
	char line[600];

	snprintf(line, sizeof line, command, argument);
	assert_int_equal(system(line), 0);
}

static jit_model *open_ranks(const char *path, const char *ranks, const char *split)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(
		path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF, .ranks = ranks, .split = split), &err);

	if (!m)
		fail_msg("%s, %s: %s", path, ranks ? ranks : "alone", err.message);
	return m;
}

/* ---- adapters of models/tale-q8_0.gguf */

static const struct lora_module whole[] = { { "model.layers.2.mlp.up_proj", 768, 256 },
	                                    { "model.embed_tokens.weight", 4096, 256 },
	                                    { "lm_head.weight", 4096, 256 } };

static void write_adapters(void)
{
	static const struct lora_written all[ADAPTERS] = {
		{ lora_tale, LORA_TALE_ALL, 4, 0.08f, 1, ", \"use_rslora\": true", NULL },
		{ lora_tale, LORA_TALE, 16, 0.08f, 2, ", \"use_dora\": true", ".lora_magnitude_vector" },
		{ lora_tale, 14, 6, 0.08f, 3, ", \"lora_bias\": true", ".lora_B.bias" },
		{ lora_tale, 1, 3, 0.3f, 4, "", NULL },
		{ whole, 3, 5, 0.1f, 5, ", \"modules_to_save\": [\"embed_tokens\", \"lm_head\"]", NULL }
	};

	for (unsigned i = 0; i < ADAPTERS; i++) {
		char path[200], name[8];
		snprintf(name, sizeof name, "%u", i);
		run("mkdir '%s'", inside(path, name));
		lora_folder(path, &all[i]);
	}
}

static jit_adapter *open_one(jit_model *m, unsigned i)
{
	char path[200], name[8];

	snprintf(name, sizeof name, "%u", i);
	return open_adapter(m, inside(path, name));
}

/* Those of bits that are set, with scales of their own. */
static void wear(jit_session *s, jit_adapter *const all[ADAPTERS], unsigned which)
{
	static const float scales[ADAPTERS] = { 1, 0.75f, -0.5f, 2, 1 };
	jit_adapter *a[ADAPTERS];
	float scale[ADAPTERS];
	size_t n = 0;

	for (unsigned i = 0; i < ADAPTERS; i++)
		if (which >> i & 1) {
			a[n] = all[i];
			scale[n++] = scales[i];
		}
	use(s, a, scale, n);
}

static void prompt_of(int32_t ids[PROMPT], unsigned which)
{
	for (unsigned i = 0; i < PROMPT; i++)
		ids[i] = (int32_t)((i * 131 + which * 17 + 7) % 300);
}

struct told {
	float logits[STEPS + 1][VOCAB_MAX];
};

static void take_logits(jit_session *s, float out[VOCAB_MAX], size_t vocab)
{
	jit_error err = { 0 };
	const float *logits = jit_session_logits(s, &err);

	if (!logits)
		fail_msg("%s", err.message);
	memcpy(out, logits, vocab * sizeof *out);
}

static void tell(jit_session *s, unsigned which, size_t vocab, struct told *out)
{
	jit_error err = { 0 };
	int32_t ids[PROMPT], id;

	memset(out, 0, sizeof *out);
	prompt_of(ids, which);
	feed(s, ids, PROMPT);
	take_logits(s, out->logits[0], vocab);
	for (unsigned i = 1; i <= STEPS; i++) {
		if (jit_session_next(s, &id, &err) != JIT_OK)
			fail_msg("%s", err.message);
		take_logits(s, out->logits[i], vocab);
	}
}

static size_t vocab_of(const jit_model *m)
{
	jit_model_info info = JIT_MODEL_INFO();

	assert_int_equal(jit_model_get_info(m, &info, NULL), JIT_OK);
	assert_in_range(info.vocab, 1, VOCAB_MAX);
	return (size_t)info.vocab;
}

static const unsigned worn[] = { 1, 2, 4, 8, 16, 7, 15, 18, 0 };
enum { WORN = sizeof worn / sizeof *worn };

static void tell_all(jit_model *m, const struct way *way, struct told got[WORN])
{
	jit_adapter *a[ADAPTERS];

	for (unsigned i = 0; i < ADAPTERS; i++)
		a[i] = open_one(m, i);
	for (unsigned i = 0; i < WORN; i++) {
		jit_session *s = open_session(m, way);
		wear(s, a, worn[i]);
		tell(s, i, vocab_of(m), &got[i]);
		jit_session_close(s);
	}
	for (unsigned i = 0; i < ADAPTERS; i++)
		jit_adapter_close(a[i]);
}

static void test_splits(void **unused)
{
	struct told *want = calloc(WORN, sizeof *want), *got = calloc(WORN, sizeof *got);
	char path[1024];
	jit_model *alone = open_ranks(source_path(path, "models/tale-q8_0.gguf"), NULL, NULL);

	assert_true(want && got);
	tell_all(alone, &(struct way){ .threads = 1 }, want);
	jit_model_close(alone);
	for (unsigned i = 1; i < WORN; i++) /* each of them counts */
		assert_memory_not_equal(want[i].logits[0], want[0].logits[0], sizeof want->logits[0]);
	for (unsigned i = 0; i < SPLITS; i++) {
		jit_model *m = open_ranks(path, splits[i][0], splits[i][1]);
		tell_all(m, &(struct way){ .threads = 1, .batch = i % 2 ? 5 : 0 }, got);
		for (unsigned k = 0; k < WORN; k++)
			if (memcmp(&got[k], &want[k], sizeof got[k]) != 0)
				fail_msg("%s, %s: adapters %x have other bits", splits[i][0], splits[i][1], worn[k]);
		jit_model_close(m);
	}
	free(want);
	free(got);
}

/* ---- sessions with unlike adapters in one pass */

static void tell_together(jit_model *m, struct told got[WORN])
{
	const jit_batch_options o =
		JIT_BATCH_OPTIONS(.threads = 1, .tokens = 48, .context = 128, .speculate = JIT_SPECULATE_OFF);
	jit_session *s[WORN], *ready[WORN];
	jit_adapter *a[ADAPTERS];
	unsigned steps[WORN] = { 0 };
	jit_error err = { 0 };
	int32_t ids[PROMPT], id;
	size_t n;

	for (unsigned i = 0; i < ADAPTERS; i++)
		a[i] = open_one(m, i);
	jit_batch *b = jit_batch_open(m, &o, &err);
	assert_non_null(b);
	for (unsigned i = 0; i < WORN; i++) {
		assert_non_null(s[i] = jit_batch_session(b, NULL, NULL));
		wear(s[i], a, worn[i]);
		prompt_of(ids, i);
		assert_int_equal(jit_session_submit(s[i], ids, PROMPT, NULL, NULL), JIT_OK);
	}
	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, WORN, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t k = 0; k < n; k++) {
			unsigned i = 0;
			while (s[i] != ready[k])
				i++;
			take_logits(s[i], got[i].logits[steps[i]], VOCAB_MAX);
			if (steps[i]++ < STEPS)
				assert_int_equal(jit_session_next(s[i], &id, &err), JIT_OK);
		}
	}
	for (unsigned i = 0; i < WORN; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
	for (unsigned i = 0; i < ADAPTERS; i++)
		jit_adapter_close(a[i]);
}

static void test_batches(void **unused)
{
	struct told *want = calloc(WORN, sizeof *want), *got = calloc(WORN, sizeof *got);
	char path[1024];
	jit_model *alone = open_ranks(source_path(path, "models/tale-q8_0.gguf"), NULL, NULL);

	assert_true(want && got);
	tell_all(alone, &(struct way){ .threads = 1 }, want);
	jit_model_close(alone);
	for (unsigned i = 1; i < SPLITS; i += 2) {
		jit_model *m = open_ranks(path, splits[i][0], splits[i][1]);
		tell_together(m, got);
		for (unsigned k = 0; k < WORN; k++)
			if (memcmp(&got[k], &want[k], sizeof got[k]) != 0)
				fail_msg("%s, %s: adapters %x have other bits in a batch", splits[i][0], splits[i][1],
				         worn[k]);
		jit_model_close(m);
	}
	free(want);
	free(got);
}

/* ---- other families */

static void tell_one(const char *model, const char *adapter, const char *ranks, const char *split, struct told *out)
{
	jit_model *m = open_ranks(model, ranks, split);
	jit_adapter *a = open_adapter(m, adapter);
	jit_session *s = open_session(m, &(struct way){ .threads = 1 });

	use(s, &a, NULL, 1);
	tell(s, 0, vocab_of(m), out);
	jit_session_close(s);
	jit_adapter_close(a);
	jit_model_close(m);
}

static void check_family(const char *model, const char *adapter)
{
	struct told *want = calloc(1, sizeof *want), *got = calloc(1, sizeof *got);

	assert_true(want && got);
	tell_one(model, adapter, NULL, NULL, want);
	for (unsigned i = 0; i < SPLITS; i++) {
		if (i == 1) /* of two layers there are no three parts */
			continue;
		tell_one(model, adapter, splits[i][0], splits[i][1], got);
		if (memcmp(got, want, sizeof *got) != 0)
			fail_msg("%s, %s: %s has other bits", splits[i][0], splits[i][1], adapter);
	}
	free(want);
	free(got);
}

static void test_families(void **unused)
{
	static const char *const all[][2] = { { "lora-llama-a", "llama-a" },
		                              { "lora-llama-rs-a", "llama-a" },
		                              { "lora-qwen3-a", "qwen3-gqa2-bf16" },
		                              { "lora-gemma3-a", "gemma3-a" } };
	char name[64], model[1024], adapter[1024];

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		snprintf(name, sizeof name, "golden-more/%s", all[i][0]);
		if (!shared_path(adapter, name))
			skip();
		snprintf(name, sizeof name, "golden/%s", all[i][1]);
		if (!shared_path(model, name))
			skip();
		check_family(model, adapter);
	}
}

#define EXPERT(layer, e) \
	{ "model.layers." #layer ".block_sparse_moe.experts." #e ".w1", 32, 64 }, \
		{ "model.layers." #layer ".block_sparse_moe.experts." #e ".w2", 64, 32 }, \
	{ \
		"model.layers." #layer ".block_sparse_moe.experts." #e ".w3", 32, 64 \
	}
static const struct lora_module experts[] = { EXPERT(0, 0), EXPERT(0, 3), EXPERT(1, 1), EXPERT(1, 4), EXPERT(1, 2) };

static void test_experts(void **unused)
{
	char model[1024], path[200];

	if (!shared_path(model, "golden/mixtral-a"))
		skip();
	run("mkdir '%s'", inside(path, "experts"));
	lora_folder(path, &(struct lora_written){ experts, sizeof experts / sizeof *experts, 4, 0.5f, 9,
	                                          ", \"lora_alpha\": 8", NULL });
	check_family(model, path);
}

/* ---- the handshake */

static const struct carrier_driver *below;
static const char *before_telling; /* a command that changes files when an adapter is told */

static bool broadcast(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err)
{
	struct ranks_command told;

	if (before_telling && n == sizeof told) {
		memcpy(&told, bytes, n);
		if (told.what == RANKS_ADAPTER) {
			run(before_telling, folder);
			before_telling = NULL;
		}
	}
	return below->broadcast(c, root, bytes, n, err);
}

static void refuses(jit_model *m, const char *command, const char *says)
{
	char path[200];
	jit_error err = { 0 };

	before_telling = command;
	assert_null(jit_adapter_open(m, inside(path, "0"), &err));
	assert_null(before_telling);
	if (!strstr(err.message, says) || !strstr(err.message, path))
		fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

static void test_handshake(void **unused)
{
	struct told *bare = calloc(1, sizeof *bare), *want = calloc(1, sizeof *want), *got = calloc(1, sizeof *got);
	struct carrier_driver driver;
	char path[1024], adapter[200];

	assert_true(bare && want && got);
	source_path(path, "models/tale-q8_0.gguf");
	jit_model *m = open_ranks(path, NULL, NULL);
	jit_session *s = open_session(m, &(struct way){ .threads = 1 });
	tell(s, 0, VOCAB_MAX, bare);
	jit_session_close(s);
	jit_model_close(m);
	tell_one(path, inside(adapter, "3"), NULL, NULL, want);
	for (unsigned i = 1; i < 3; i++) {
		m = open_ranks(path, splits[i][0], splits[i][1]);
		below = m->ranks->carrier->driver;
		driver = *below;
		driver.broadcast = broadcast;
		m->ranks->carrier->driver = &driver;
		refuses(m, "cd '%s' && mv 0 kept && cp -r 1 0", "is another adapter here: its fingerprint is ");
		run("cd '%s' && rm -r 0 && mv kept 0", folder);
		refuses(m, "cd '%s' && mv 0 kept", "rank 1: ");
		run("cd '%s' && mv kept 0", folder);
		/* What was refused is nowhere, and its number has nothing left of it. */
		jit_adapter *a = open_one(m, 3);
		for (int with = 0; with < 2; with++) {
			s = open_session(m, &(struct way){ .threads = 1 });
			use(s, &a, NULL, (size_t)with);
			tell(s, 0, VOCAB_MAX, got);
			assert_memory_equal(got, with ? want : bare, sizeof *got);
			jit_session_close(s);
		}
		jit_adapter_close(a);
		m->ranks->carrier->driver = below;
		jit_model_close(m);
	}
	free(bare);
	free(want);
	free(got);
}

/* ---- adapters that come and go while a session computes */

static _Atomic bool over;

static void *come_and_go(void *user)
{
	jit_model *m = user;

	for (unsigned i = 0; !atomic_load(&over); i++)
		jit_adapter_close(open_one(m, i % 2 ? 4 : 2));
	return NULL;
}

static void test_come_and_go(void **unused)
{
	struct told *want = calloc(1, sizeof *want), *got = calloc(1, sizeof *got);
	char path[1024], adapter[200];
	pthread_t thread;

	assert_true(want && got);
	source_path(path, "models/tale-q8_0.gguf");
	tell_one(path, inside(adapter, "1"), NULL, NULL, want);
	for (unsigned i = 0; i < 4; i += 3) {
		jit_model *m = open_ranks(path, splits[i][0], splits[i][1]);
		jit_adapter *a = open_one(m, 1);
		jit_session *s = open_session(m, &(struct way){ .threads = 1, .batch = 4 });
		atomic_store(&over, false);
		assert_int_equal(pthread_create(&thread, NULL, come_and_go, m), 0);
		for (unsigned k = 0; k < (test_quick() ? 10 : 40); k++) {
			assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
			use(s, &a, NULL, 1);
			tell(s, 0, VOCAB_MAX, got);
			assert_memory_equal(got, want, sizeof *got);
		}
		atomic_store(&over, true);
		pthread_join(thread, NULL);
		jit_session_close(s);
		jit_adapter_close(a);
		jit_model_close(m);
	}
	free(want);
	free(got);
}

static int set_up(void **state)
{
	setenv("JITRUN_RANK_PATIENCE", "20", 1); /* other tests may keep all cores busy */
	if (!mkdtemp(folder))
		return -1;
	write_adapters();
	return 0;
}

static int tear_down(void **state)
{
	run("rm -rf '%s'", folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_splits),    cmocka_unit_test(test_batches),
		                            cmocka_unit_test(test_families),  cmocka_unit_test(test_experts),
		                            cmocka_unit_test(test_handshake), cmocka_unit_test(test_come_and_go) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
