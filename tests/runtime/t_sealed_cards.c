/* tests/runtime/t_sealed_cards.c - sealed models on NVIDIA cards: they run from what the driver made before, with the
 * same logits, and ask the driver for no code once they are open; what it has not made is refused with the command that
 * makes it. The library is the simulated one, whose calls are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit/store/pack.h"
#include "kernels-templates/templates.h"
#include "runtime/device/cuda/cuda_simulated.h"
#include "include/jitrun.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_cards.h"
#include "runtime/plan/key_list.h"
#include "tests/support/no_exec.h"
#include "tests/support/shared.h"

const struct cuda_api *__real_cuda_simulated(void);
const struct cuda_api *__wrap_cuda_simulated(void);

enum { BATCH = 4, STEPS = 1, LOGITS = 4096, FILTERED = 3, SKIPPED = 77 };
static char model_path[1024], dir[64];
static _Atomic unsigned links, loads;

static int count_link(void *state, int type, void *data, size_t bytes, const char *name, uint32_t n, int *options,
                      void **values)
{
	links++;
	return __real_cuda_simulated()->link_add(state, type, data, bytes, name, n, options, values);
}

static int count_load(void **module, const void *image)
{
	loads++;
	return __real_cuda_simulated()->module_load(module, image);
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api;

	api = *__real_cuda_simulated();
	api.link_add = count_link;
	api.module_load = count_load;
	return &api;
}

/* ---- caches: all texts of the model, and what the driver makes of those that keep() takes */

static bool all_of_them(const char *key) { return true; }
static bool none_of_them(const char *key) { return false; }
static char left_out[KEY_TEXT_MAX];
static bool all_but_one(const char *key) { return strcmp(key, left_out) != 0; }

/* Text and the driver's code of a model's programs, which are behind n other keys. */
static bool with_programs;
static size_t add_programs(const struct model_spec *spec, const struct key_list_options *o, struct key **keys, size_t n)
{
	struct error err = { 0 };
	struct key *program;
	size_t more;

	assert_true(key_list_programs(spec, o, &program, &more, &err));
	assert_true(more > 0);
	*keys = realloc(*keys, (n + more) * sizeof **keys);
	assert_non_null(*keys);
	memcpy(*keys + n, program, more * sizeof *program);
	free(program);
	return n + more;
}

static void make_pack(const char *path, const char *device, bool (*keep)(const char *key))
{
	struct error err = { 0 };
	struct device *d = device_open(device, NULL, &err);
	struct model m;
	struct key *keys;
	size_t n, made = 0;

	assert_true(d && model_open(&m, model_path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err));
	const struct key_list_options o = { .target = d->facts.target,
		                            .activations = KEY_LIST_INT8_ACTIVATIONS,
		                            .kv = KEY_LIST_KV_F16,
		                            .tokens = BATCH,
		                            .dataflow = d->facts.awaits };
	assert_true(key_list_kernels(&m.spec, &o, &keys, &n, &err));
	if (with_programs)
		n = add_programs(&m.spec, &o, &keys, n);
	struct pack_item *item = calloc(2 * n, sizeof *item);
	assert_non_null(item);
	for (size_t i = 0; i < n; i++) {
		const struct key kept = driver_code_key(&keys[i], d->linker->by);
		char name[KEY_TEXT_MAX];
		item[made].key = keys[i];
		assert_true(compile_key(&item[made++].object, &keys[i], template_build, NULL, NULL, &err));
		if (!keep(key_text(&keys[i], name, sizeof name)))
			continue;
		item[made].key = kept;
		assert_true(driver_code_make(d->linker, &kept, template_build, &item[made++].object, &err));
	}
	assert_true(pack_write(path, item, made, &err));
	for (size_t i = 0; i < made; i++)
		object_free(&item[i].object);
	free(item);
	free(keys);
	model_close(&m);
	device_close(d);
}

static jit_model *open_model(const char *device, const char *cache, int sealed, jit_error *err)
{
	return jit_model_open(model_path,
	                      &JIT_MODEL_OPTIONS(.device = device, .cache_dir = cache, .sealed = sealed, .threads = 1),
	                      err);
}

static void must(bool ok, const jit_error *err)
{
	if (!ok)
		fail_msg("%s", err->message);
}

static jit_session *open_session(jit_model *m, jit_error *err)
{
	return jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32, .batch = BATCH, .threads = 2), err);
}

static bool run(jit_model *m, float logits[LOGITS], jit_error *err)
{
	static const int32_t prompt[] = { 300, 311 };
	jit_session *s = open_session(m, err);
	bool ok = s && jit_session_feed(s, prompt, 2, err) == JIT_OK;

	for (int i = 0; ok && i < STEPS; i++)
		ok = jit_session_feed(s, &prompt[i], 1, err) == JIT_OK;
	const float *l = ok ? jit_session_logits(s, err) : NULL;
	if (l)
		memcpy(logits, l, LOGITS * sizeof *l);
	if (s)
		jit_session_close(s);
	return l != NULL;
}

/* ---- tests */

static void test_the_same_and_nothing_loaded_later(void **state)
{
	static const char *const devices[] = { "sim:sm90", "sim:sm90x2", "sim:sm80" };
	static float want[LOGITS], got[LOGITS];
	jit_error err = { 0 };
	char cache[128];

	for (unsigned i = 0; i < (test_small_share() ? 2 : sizeof devices / sizeof *devices); i++) {
		snprintf(cache, sizeof cache, "%s/whole-%u.jkp", dir, i);
		make_pack(cache, devices[i], all_of_them);
		jit_model *open = open_model(devices[i], "", 0, &err);
		must(open && run(open, want, &err), &err);
		jit_model_close(open);
		links = loads = 0;
		jit_model *sealed = open_model(devices[i], cache, 1, &err);
		must(sealed != NULL, &err);
		unsigned loaded = loads;
		assert_true(loaded > 20);
		must(run(sealed, got, &err), &err);
		must(run(sealed, got, &err), &err);
		assert_int_equal(links, 0);
		assert_int_equal(loads, loaded);
		assert_memory_equal(want, got, sizeof want);
		jit_model_close(sealed);
	}
}

/* Passes of several sequences, with a token each and not. */
static void test_sequences(void **state)
{
	enum { SEQUENCES = 3, PASSES = 3 };
	static const uint32_t tokens[PASSES][SEQUENCES] = { { 1, 1, 1 }, { 2, 1, 1 }, { 1, 1, 0 } };
	static const int32_t ids[] = { 300, 311 };
	static const char *const devices[] = { "sim:sm90", "sim:sm80" };
	jit_session *s[SEQUENCES], *ready[SEQUENCES];
	jit_error err = { 0 };
	char cache[128];
	size_t n;

	for (unsigned d = 0; d < (test_small_share() ? 1 : sizeof devices / sizeof *devices); d++) {
		snprintf(cache, sizeof cache, "%s/sequences-%u.jkp", dir, d);
		make_pack(cache, devices[d], all_of_them);
		jit_model *m = open_model(devices[d], cache, 1, &err);
		must(m != NULL, &err);
		links = 0;
		jit_batch *b = jit_batch_open(
			m, &JIT_BATCH_OPTIONS(.context = 32, .tokens = BATCH, .speculate = JIT_SPECULATE_OFF), &err);
		must(b != NULL, &err);
		for (int i = 0; i < SEQUENCES; i++)
			must((s[i] = jit_batch_session(b, NULL, &err)) != NULL, &err);
		for (int p = 0; p < PASSES; p++) {
			for (int i = 0; i < SEQUENCES; i++)
				must(!tokens[p][i] || jit_session_submit(s[i], ids, tokens[p][i], NULL, &err) == JIT_OK,
				     &err);
			must(jit_batch_step(b, ready, SEQUENCES, &n, &err) == JIT_OK, &err);
			assert_int_equal(n, p < 2 ? SEQUENCES : 2);
		}
		assert_int_equal(links, 0);
		for (int i = 0; i < SEQUENCES; i++)
			jit_session_close(s[i]);
		jit_batch_close(b);
		jit_model_close(m);
	}
}

/* Behind the second token of run(). */
static uint64_t commands_of(jit_model *m, float logits[LOGITS], jit_error *err)
{
	static const int32_t prompt[] = { 300, 311 };
	jit_card_stats stats = JIT_CARD_STATS();
	jit_session *s = open_session(m, err);

	must(s && jit_session_feed(s, prompt, 2, err) == JIT_OK && jit_session_feed(s, prompt, 1, err) == JIT_OK &&
	             jit_session_get_card_stats(s, &stats, err) == JIT_OK,
	     err);
	const float *l = jit_session_logits(s, err);
	must(l != NULL, err);
	memcpy(logits, l, LOGITS * sizeof *l);
	jit_session_close(s);
	return stats.commands;
}

/* A token is one launch where what that needs is there; else the graph does it. */
static void test_programs(void **state)
{
	static float want[LOGITS], got[LOGITS];
	jit_error err = { 0 };
	char cache[128];

	jit_model *open = open_model("sim:sm90", "", 0, &err);
	must(open && run(open, want, &err), &err);
	jit_model_close(open);
	setenv("JITRUN_CUDA_LAUNCH", "beside", 1);
	for (unsigned program = 0; program < 2; program++) {
		snprintf(cache, sizeof cache, "%s/program-%u.jkp", dir, program);
		with_programs = program;
		make_pack(cache, "sim:sm90", all_of_them);
		links = loads = 0;
		jit_model *m = open_model("sim:sm90", cache, 1, &err);
		must(m != NULL, &err);
		unsigned loaded = loads;
		assert_int_equal(commands_of(m, got, &err) > 0, program);
		assert_memory_equal(want, got, sizeof want);
		assert_int_equal(links, 0);
		assert_int_equal(loads, loaded);
		jit_model_close(m);
	}
	with_programs = false;
	setenv("JITRUN_CUDA_LAUNCH", "graph", 1);
}

static void expect(const char *message, const char *says)
{
	if (!strstr(message, says))
		fail_msg("\"%s\" does not say \"%s\"", message, says);
}

static void test_texts_alone_are_refused(void **state)
{
	jit_error err = { 0 };
	char cache[128];

	snprintf(cache, sizeof cache, "%s/texts.jkp", dir);
	make_pack(cache, "sim:sm90", none_of_them);
	links = loads = 0;
	assert_null(open_model("sim:sm90", cache, 1, &err));
	assert_int_equal(err.code, JIT_ERROR_UNSUPPORTED);
	expect(err.message, "compute capability 9.0, CUDA 13.0");
	expect(err.message, "'jitwarm MODEL --device sim:sm90 --out CACHE' makes it");
	assert_null(strchr(err.message, '\n'));
	assert_int_equal(links + loads, 0);
}

static void test_one_that_is_missing(void **state)
{
	jit_error err = { 0 };
	char cache[128];

	snprintf(cache, sizeof cache, "%s/gap.jkp", dir);
	snprintf(left_out, sizeof left_out, "embed.q8_0.4096x256.sm90");
	make_pack(cache, "sim:sm90", all_but_one);
	jit_model *m = open_model("sim:sm90", cache, 1, &err);
	must(m != NULL, &err);
	assert_null(open_session(m, &err));
	assert_int_equal(err.code, JIT_ERROR_UNSUPPORTED);
	expect(err.message, "of kernel embed.q8_0.4096x256.sm90 the cache has the text, but not the code");
	jit_model_close(m);
}

/* Bytes that no driver takes, under the key and with the checksum of what it made. */
static void test_what_the_driver_refuses(void **state)
{
	static float want[LOGITS], got[LOGITS];
	struct error why = { 0 };
	jit_error err = { 0 };
	char cache[256];
	uint8_t bytes[] = "no module";
	struct key text;

	snprintf(cache, sizeof cache, "%s/refused", dir);
	assert_true(key_parse(&text, "embed.q8_0.4096x256.sm90"));
	struct device *d = device_open("sim:sm90", NULL, &why);
	assert_non_null(d);
	const struct key key = driver_code_key(&text, d->linker->by);
	device_close(d);
	struct cache *c = cache_open(cache, NULL, &why);
	const struct object o = { .code = bytes, .code_bytes = sizeof bytes, .pool_offset = sizeof bytes };
	assert_true(c && cache_store(c, &key, &o, &why));
	cache_close(c);
	snprintf(cache, sizeof cache, "%s/refused:%s/whole-0.jkp", dir, dir);
	jit_model *m = open_model("sim:sm90", cache, 1, &err);
	assert_null(m);
	expect(err.message, "loading kernel embed.q8_0.4096x256.sm90 failed");
	m = open_model("sim:sm90", "", 0, &err);
	must(m && run(m, want, &err), &err);
	jit_model_close(m);
	for (unsigned again = 0; again < 2; again++) { /* made anew where that may be, and stored */
		links = 0;
		m = open_model("sim:sm90", cache, 0, &err);
		must(m && run(m, got, &err), &err);
		assert_int_equal(links, again ? 0 : 1);
		assert_memory_equal(want, got, sizeof want);
		jit_model_close(m);
	}
}

/* In a process of its own: the model is open, the filter comes down, and all the rest happens under it. */
static int run_filtered(const char *cache, const float want[LOGITS])
{
	static float got[LOGITS];
	jit_error err = { 0 };
	jit_model *m = open_model("sim:sm90", cache, 1, &err);

	if (!m)
		return FILTERED + 1;
	if (!no_executable_memory(SECCOMP_RET_KILL_PROCESS))
		return SKIPPED;
	if (!run(m, got, &err))
		return FILTERED + 2;
	jit_model_close(m);
	return memcmp(got, want, sizeof got) ? FILTERED + 3 : FILTERED;
}

static void test_without_executable_memory(void **state)
{
	static float want[LOGITS];
	jit_error err = { 0 };
	char cache[128];
	int status;

	snprintf(cache, sizeof cache, "%s/whole-0.jkp", dir);
	jit_model *m = open_model("sim:sm90", "", 0, &err);
	must(m && run(m, want, &err), &err);
	jit_model_close(m);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(run_filtered(cache, want));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		printf("# skipped: this system has no seccomp filters\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), FILTERED);
}

static int set_up(void **state)
{
	source_path(model_path, "models/tale-q8_0.gguf");
	strcpy(dir, "/tmp/t_sealed_cards-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	setenv("JITRUN_CUDA_LAUNCH", "graph", 1); /* but for test_programs() */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_and_nothing_loaded_later),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_texts_alone_are_refused),
		cmocka_unit_test(test_one_that_is_missing),
		cmocka_unit_test(test_what_the_driver_refuses),
		cmocka_unit_test(test_without_executable_memory),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
