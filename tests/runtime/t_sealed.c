/* tests/runtime/t_sealed.c - sealed models: the same logits from kernels that were made before, nothing generated, what
 * is missing named; and all of it where the system forbids executable memory from the moment the model is open (a
 * seccomp filter of our own). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "kernels-templates/templates.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/plan/key_list.h"
#include "tests/support/no_exec.h"
#include "tests/support/shared.h"
#include "tests/support/warm_pack.h"
#include "tests/support/widths.h"

enum { PROMPT = 70, STEPS = 40, FILTERED = 3, SKIPPED = 77, KV_TYPES = JIT_KV_Q8_0 + 1 };

static char model_path[1024], dir[64], pack[96];

/* Every kernel of the model for a target but those that `left_out` names. */
static void make_pack(const char *path, const struct target *t, const char *left_out)
{
	warm_pack(model_path, path,
	          &(struct key_list_options){
			  .target = t, .activations = KEY_LIST_INT8_ACTIVATIONS, .kv = KEY_LIST_KV_ANY },
	          left_out);
}

static jit_model *open_model(const char *cache, int sealed)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(model_path,
	                              &JIT_MODEL_OPTIONS(.cache_dir = cache, .sealed = sealed, .threads = 1), &err);
	if (!m)
		fail_msg("%s", err.message);
	return m;
}

/* Chosen tokens of a text that repeats itself, the logits at its end, and what was scored. */
struct result {
	int32_t ids[STEPS];
	float logits[4096], score[PROMPT];
};

static bool run(jit_model *m, int kv, int speculate, struct result *out, jit_error *err)
{
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 2 * PROMPT + STEPS, .kv = kv, .speculate = speculate, .threads = 2),
		err);
	int32_t prompt[PROMPT];
	bool ok = s != NULL;

	memset(out, 0, sizeof *out);
	for (int i = 0; i < PROMPT; i++)
		prompt[i] = 300 + i % 7 * 11;
	ok = ok && jit_session_score(s, prompt, PROMPT, out->score, err) == JIT_OK &&
	     jit_session_feed(s, prompt, PROMPT, err) == JIT_OK;
	for (int i = 0; ok && i < STEPS; i++)
		ok = jit_session_next(s, &out->ids[i], err) == JIT_OK;
	const float *l = ok ? jit_session_logits(s, err) : NULL;
	if (l)
		memcpy(out->logits, l, sizeof out->logits);
	jit_session_close(s);
	return l != NULL;
}

static void test_the_same_without_generating(void **state)
{
	static struct result want, got;
	jit_error err = { 0 };
	(void)state;

	jit_model *open = open_model("", 0), *sealed = open_model(pack, 1);
	for (int kv = 0; kv < KV_TYPES; kv++)
		for (int speculate = JIT_SPECULATE_OFF; speculate <= 8; speculate += speculate < 0 ? 5 : 4) {
			assert_true(run(open, kv, speculate, &want, &err));
			if (!run(sealed, kv, speculate, &got, &err))
				fail_msg("%s", err.message);
			assert_memory_equal(&want, &got, sizeof want);
		}
	struct registry_counters c;
	registry_count(sealed->registry, &c);
	assert_int_equal(c.generated, 0);
	registry_count(open->registry, &c);
	assert_true(c.generated > 0);
	jit_model_close(open);
	jit_model_close(sealed);
}

/* ---- what is missing */

static void test_a_missing_kernel(void **state)
{
	char path[128], key[KEY_TEXT_MAX];
	jit_error err = { 0 };
	(void)state;

	const struct target *t = target_native(NULL);
	snprintf(path, sizeof path, "%s/gap.jkp", dir);
	snprintf(key, sizeof key, "interleave.aq8_0.k256.c5.b%u.%s", widths_panel(t, DTYPE_Q8_0, DTYPE_Q8_0, 5),
	         t->name);
	make_pack(path, t, key);
	jit_model *m = open_model(path, 1);
	assert_null(jit_session_open(m, NULL, &err));
	assert_int_equal(err.code, JIT_ERROR_UNSUPPORTED);
	if (!strstr(err.message, key) || !strstr(err.message, "tile_n is "))
		fail_msg("%s", err.message);
	jit_model_close(m);
}

static void refused(const jit_model_options *o, int code, const char *says)
{
	jit_error err = { 0 };

	assert_null(jit_model_open(model_path, o, &err));
	assert_int_equal(err.code, code);
	if (!strstr(err.message, says))
		fail_msg("%s", err.message);
}

static void test_nothing_to_run(void **state)
{
	char path[128], empty[128];
	(void)state;

	const struct target *t = target_native(NULL),
			    *other = &target_table[t->id == TARGET_AVX2 ? TARGET_AVX512 : TARGET_AVX2];
	snprintf(path, sizeof path, "%s/other.jkp", dir);
	make_pack(path, other, NULL);
	char says[64];
	snprintf(says, sizeof says, "target is %s, not %s", other->name, t->name);
	refused(&JIT_MODEL_OPTIONS(.cache_dir = path, .sealed = 1), JIT_ERROR_UNSUPPORTED, says);
	snprintf(empty, sizeof empty, "%s/empty", dir);
	assert_int_equal(mkdir(empty, 0700), 0);
	refused(&JIT_MODEL_OPTIONS(.cache_dir = empty, .sealed = 1), JIT_ERROR_UNSUPPORTED,
	        "the cache has no kernels at all");
	assert_int_equal(rmdir(empty), 0);
	refused(&JIT_MODEL_OPTIONS(.cache_dir = empty, .sealed = 1), JIT_ERROR_IO, "empty");
	assert_int_equal(access(empty, F_OK), -1);
	refused(&JIT_MODEL_OPTIONS(.cache_dir = "", .sealed = 1), JIT_ERROR_ARGUMENT, "there is no cache");
	refused(&JIT_MODEL_OPTIONS(.cache_dir = pack, .sealed = 1, .device = "ref"), JIT_ERROR_ARGUMENT,
	        "only the devices cpu and cuda");
	refused(&JIT_MODEL_OPTIONS(.cache_dir = pack, .sealed = 1, .dump_ir = "/dev/null"), JIT_ERROR_ARGUMENT,
	        "could be dumped");
	assert_int_equal(unlink(path), 0);
}

/* ---- schedules that this machine is said to like */

/* All kernels of one token get a schedule that packs do not have; of the directory's code there is only that for
 * `kept`, if not NULL. */
static void tell(const char *path, const char *kept)
{
	struct error err = { 0 };
	struct model m;
	struct key *keys;
	size_t n;
	struct tune *t = tune_open(path, &err);
	struct cache *c = cache_open(path, &(struct cache_options){ 0 }, &err);

	assert_true(t && c);
	assert_true(model_open(&m, model_path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err));
	assert_true(key_list_kernels(&m.spec,
	                             &(struct key_list_options){ .target = target_native(NULL),
	                                                         .activations = KEY_LIST_INT8_ACTIVATIONS,
	                                                         .kv = KEY_LIST_KV_ANY,
	                                                         .usual = true },
	                             &keys, &n, &err));
	for (size_t i = 0; i < n; i++) {
		struct object o = { 0 };
		char text[KEY_TEXT_MAX];
		if (keys[i].kind != KEY_MATMUL || keys[i].tile_n != 1 || keys[i].flags & KEY_WIDE)
			continue;
		keys[i].schedule = 0x50; /* asked for 16 KiB ahead */
		tune_set(t, &(struct tune_result){ .key = keys[i], .gain = 1.5, .samples = 9 });
		if (!kept || !strstr(key_text(&keys[i], text, sizeof text), kept))
			continue;
		if (!compile_key(&o, &keys[i], template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
		cache_store(c, &keys[i], &o, NULL);
		object_free(&o);
	}
	assert_true(tune_save(t, &err));
	free(keys);
	model_close(&m);
	cache_close(c);
	tune_close(t);
}

static void count_scheduled(const struct kernel *k, void *user) { *(unsigned *)user += k->key.schedule == 0x50; }

static void test_schedules_that_are_not_there(void **state)
{
	static struct result want, got;
	char path[96], search[200];
	jit_error err = { 0 };
	(void)state;

	snprintf(path, sizeof path, "%s/tuned", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(search, sizeof search, "%s:%s", path, pack);
	jit_model *open = open_model("", 0);
	assert_true(run(open, 0, JIT_SPECULATE_OFF, &want, &err));
	jit_model_close(open);
	for (int some = 0; some < 2; some++) {
		unsigned scheduled = 0;
		struct registry_counters c;
		tell(path, some ? "256x" : NULL);
		jit_model *sealed = open_model(search, 1);
		if (!run(sealed, 0, JIT_SPECULATE_OFF, &got, &err))
			fail_msg("%s", err.message);
		assert_memory_equal(&want, &got, sizeof want);
		registry_count(sealed->registry, &c);
		assert_int_equal(c.generated, 0);
		registry_each(sealed->registry, count_scheduled, &scheduled);
		assert_true(some ? scheduled > 0 : scheduled == 0);
		jit_model_close(sealed);
	}
}

/* ---- a system that gives no executable memory */

/* In a process of its own: the model is open, the filter comes down, and all the rest happens under it. */
static int run_filtered(const struct result want[KV_TYPES])
{
	static struct result got;
	jit_error err = { 0 };
	jit_model *sealed = open_model(pack, 1), *open = open_model("", 0);

	if (!no_executable_memory(SECCOMP_RET_ERRNO | EPERM))
		return SKIPPED;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED || errno != EPERM)
		return FILTERED + 1;
	if (run(open, 0, JIT_SPECULATE_AUTO, &got, &err)) /* the filter bites: what has to be generated cannot run */
		return FILTERED + 2;
	for (int kv = 0; kv < KV_TYPES; kv++) {
		if (!run(sealed, kv, 4, &got, &err)) {
			fprintf(stderr, "%s\n", err.message);
			return FILTERED + 3;
		}
		if (memcmp(&got, &want[kv], sizeof got) != 0)
			return FILTERED + 4;
	}
	jit_model_close(sealed);
	jit_model_close(open);
	return FILTERED;
}

static void test_without_executable_memory(void **state)
{
	static struct result want[KV_TYPES];
	jit_error err = { 0 };
	int status;
	(void)state;

	jit_model *m = open_model("", 0);
	for (int kv = 0; kv < KV_TYPES; kv++)
		assert_true(run(m, kv, JIT_SPECULATE_OFF, &want[kv], &err));
	jit_model_close(m);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(run_filtered(want));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		printf("# skipped: this system has no seccomp filters\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), FILTERED);
}

/* One kernel is missing when the model is opened, and is stored before a session is: the session is refused by name, as
 * its code would have to be mapped. */
static int open_too_early(const char *gap, const char *late, const char *missing)
{
	char search[300];
	struct error why = { 0 };
	jit_error err = { 0 };
	struct object o;
	struct key key;

	snprintf(search, sizeof search, "%s:%s", late, gap);
	struct cache *writer = cache_open(late, NULL, &why);
	jit_model *m = open_model(search, 1);
	if (!writer || !key_parse(&key, missing) || !compile_key(&o, &key, template_build, NULL, NULL, &why) ||
	    !cache_store(writer, &key, &o, &why))
		return FILTERED + 1;
	if (!no_executable_memory(SECCOMP_RET_KILL_PROCESS))
		return SKIPPED;
	for (int i = 0; i < 2; i++) {
		if (jit_session_open(m, NULL, &err))
			return FILTERED + 2;
		if (err.code != JIT_ERROR_UNSUPPORTED || !strstr(err.message, missing))
			return FILTERED + 3;
	}
	jit_model_close(m);
	cache_close(writer);
	return FILTERED;
}

static void test_kernels_that_come_too_late(void **state)
{
	char gap[128], late[128], missing[KEY_TEXT_MAX];
	int status;
	(void)state;

	const struct target *t = target_native(NULL);
	snprintf(gap, sizeof gap, "%s/gap.jkp", dir);
	snprintf(late, sizeof late, "%s/late", dir);
	snprintf(missing, sizeof missing, "interleave.aq8_0.k256.c5.b%u.%s", widths_panel(t, DTYPE_Q8_0, DTYPE_Q8_0, 5),
	         t->name);
	make_pack(gap, t, missing);
	assert_int_equal(mkdir(late, 0700), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(open_too_early(gap, late, missing));
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
	(void)state;
	source_path(model_path, "models/tale-q8_0.gguf");
	strcpy(dir, "/tmp/t_sealed-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(pack, sizeof pack, "%s/tale.jkp", dir);
	make_pack(pack, target_native(NULL), NULL);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	if (!target_native(NULL)) {
		printf("# skipped: no code is generated for this CPU\n");
		return SKIPPED;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_without_generating),
		cmocka_unit_test(test_a_missing_kernel),
		cmocka_unit_test(test_nothing_to_run),
		cmocka_unit_test(test_schedules_that_are_not_there),
		cmocka_unit_test(test_without_executable_memory),
		cmocka_unit_test(test_kernels_that_come_too_late)
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
