/* tests/runtime/t_hybrid.c - models of which some layers keep a state: whatever a session went through, feeds of any
 * length, taking back, draft tokens, files, forks, its logits are those of a fresh session that was fed the same text
 * in passes of another length, bit for bit. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/go_back.h"
#include "include/jitrun.h"
#include "runtime/session/session.h"
#include "runtime/session/session_state.h"
#include "tests/support/shared.h"

static const char *const models[] = {
	"golden/lfm2-a",
	"golden/lfm2-a/model-bf16.gguf",
	"golden/qwen35-a",
	"golden/qwen35-a/model-q8_0.gguf",
	"golden/lfm2moe-a/model-bf16.gguf",
	"golden/qwen35moe-a",
	"golden/qwen3next-a",
	"golden/granitehybrid-a",
	"golden/nemotronh-a/model-bf16.gguf"
};
enum { MODELS = sizeof models / sizeof *models, CONTEXT = 320 };

struct subject {
	jit_model *model;
	const char *name;
	int vocab;
	uint64_t random;
};

static unsigned draw(struct subject *t, unsigned max)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(t->random >> 33) % (max + 1);
}

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

static bool open_subject(struct subject *t, size_t i, const char *device)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	*t = (struct subject){ .name = models[i], .random = 5 + i };
	if (!shared_path(path, models[i]))
		return false;
	t->model = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = ""), &err);
	if (!t->model)
		fail_msg("%s: %s", path, err.message);
	must(jit_model_get_info(t->model, &info, &err), &err);
	t->vocab = info.vocab;
	return true;
}

static jit_session *open_session(const struct subject *t, int batch, int speculate)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(t->model,
	                                  &JIT_SESSION_OPTIONS(.context = CONTEXT, .batch = batch,
	                                                       .threads = 1 + batch % 2, .speculate = speculate),
	                                  &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

/* The logits behind a text are those of a session that knows nothing else. */
static void check(struct subject *t, jit_session *s, const char *after)
{
	static const int cuts[] = { 1, 7, 64, 129, 300 };
	jit_error err = { 0 };
	size_t n = jit_session_length(s);
	const float *logits = jit_session_logits(s, &err);
	jit_session *fresh = open_session(t, cuts[draw(t, 4)], JIT_SPECULATE_OFF);

	assert_non_null(logits);
	must(jit_session_feed(fresh, jit_session_ids(s), n, &err), &err);
	if (memcmp(logits, jit_session_logits(fresh, &err), (size_t)t->vocab * sizeof *logits) != 0)
		fail_msg("%s: after %s to %zu tokens the logits differ from those of a fresh session", t->name, after,
		         n);
	jit_session_close(fresh);
}

/* ---- feeding, choosing, taking back */

/* So many tokens, at most, of a text that often repeats itself. */
static void feed(struct subject *t, jit_session *s, unsigned max)
{
	jit_error err = { 0 };
	size_t n = jit_session_length(s), room = CONTEXT - n;
	int32_t ids[CONTEXT];
	unsigned count = 1 + draw(t, max - 1), period = 3 + draw(t, 9);

	if (count > room)
		count = (unsigned)room;
	for (unsigned i = 0; i < count; i++)
		ids[i] = i >= period ? ids[i - period] : (int32_t)draw(t, (unsigned)t->vocab - 1);
	must(jit_session_feed(s, ids, count, &err), &err);
}

static void choose(struct subject *t, jit_session *s, unsigned max)
{
	jit_error err = { 0 };
	int32_t id;

	for (unsigned i = draw(t, max); i > 0 && jit_session_length(s) < CONTEXT; i--)
		must(jit_session_next(s, &id, &err), &err);
}

static void walk(struct subject *t, int batch, int speculate, unsigned steps, unsigned max)
{
	jit_session *s = open_session(t, batch, speculate);
	jit_error err = { 0 };

	for (unsigned i = 0; i < steps; i++) {
		size_t n = jit_session_length(s);
		if (n + max >= CONTEXT || draw(t, 2) == 0)
			must(jit_session_rewind(s, draw(t, (unsigned)n), &err), &err);
		feed(t, s, max);
		choose(t, s, max / 4);
		check(t, s, "a walk");
	}
	jit_session_close(s);
}

static void test_walks(void **state)
{
	static const int widths[] = { JIT_SPECULATE_OFF, JIT_SPECULATE_AUTO, 4, 16 };

	for (size_t i = 0; i < MODELS; i++) {
		struct subject t;
		if (!open_subject(&t, i, "cpu"))
			skip();
		for (unsigned k = 0; k < 4; k++)
			walk(&t, 24 + (int)k * 9, widths[k], test_full() ? 400 : test_quick() ? 8 : 30, 90);
		jit_model_close(t.model);
	}
}

/* A text that repeats itself, but for a change here and there, is decoded as if it had been chosen: draft tokens are
 * accepted and refused, and make no difference. */
static void test_drafts(void **state)
{
	for (size_t i = 0; i < MODELS; i++) {
		struct subject t;
		jit_error err = { 0 };
		jit_session_stats stats = JIT_SESSION_STATS();
		int32_t text[CONTEXT], id;
		if (!open_subject(&t, i, "cpu"))
			skip();
		jit_session *s = open_session(&t, 64, 8), *plain = open_session(&t, 64, JIT_SPECULATE_OFF);
		for (int k = 0; k < CONTEXT; k++)
			text[k] = k % 23 == 22 ? (int32_t)draw(&t, (unsigned)t.vocab - 1) : k % 12 * 27 % t.vocab;
		session_force(s, text, CONTEXT);
		must(jit_session_feed(s, text, 30, &err), &err);
		must(jit_session_feed(plain, text, 30, &err), &err);
		for (int k = 30; k < 200; k++) {
			assert_memory_equal(jit_session_logits(s, &err), jit_session_logits(plain, &err),
			                    (size_t)t.vocab * sizeof(float));
			must(jit_session_next(s, &id, &err), &err);
			must(jit_session_feed(plain, text + k, 1, &err), &err);
		}
		must(jit_session_get_stats(s, &stats, &err), &err);
		assert_true(stats.accepted > 20 && stats.drafted > stats.accepted + 20);
		/* What is computed once more is held against the passes whose drafts were refused. */
		assert_true(s->speculate.again[speculate_width(8)] > 0);
		jit_session_close(s);
		jit_session_close(plain);
		jit_model_close(t.model);
	}
}

/* What is timed after going back has nothing to compute once more, however long ago that was. */
static void test_going_back_for_a_bench(void **state)
{
	for (size_t i = 0; i < MODELS; i++) {
		struct subject t;
		jit_error err = { 0 };
		const int32_t id = 3;
		if (!open_subject(&t, i, "cpu"))
			skip();
		jit_session *s = open_session(&t, 64, JIT_SPECULATE_OFF);
		const struct session_states *states = &s->memory.states;
		for (int n = 0; n < 101; n++)
			must(jit_session_feed(s, &id, 1, &err), &err);
		for (size_t to = 1; to < 90; to += 44) {
			assert_true(go_back(s, to, &err));
			assert_int_equal(jit_session_length(s), to);
			assert_int_equal(states_position(states, states_find(states, to)), to);
			must(jit_session_feed(s, &id, 1, &err), &err);
			check(&t, s, "going back");
			for (int n = 0; n < 100; n++)
				must(jit_session_feed(s, &id, 1, &err), &err);
		}
		jit_session_close(s);
		jit_model_close(t.model);
	}
}

/* ---- files and forks */

static void check_copies(struct subject *t, const char *path)
{
	jit_error err = { 0 };
	jit_session *s = open_session(t, 32, 4), *copy = open_session(t, 17, JIT_SPECULATE_OFF);

	feed(t, s, 150);
	choose(t, s, 20);
	must(jit_session_save(s, path, &err), &err);
	must(jit_session_restore(copy, path, &err), &err);
	check(t, copy, "restoring");
	jit_session_close(copy);
	copy = jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = CONTEXT, .batch = 40), &err);
	assert_non_null(copy);
	check(t, copy, "a fork");
	feed(t, copy, 30);
	check(t, copy, "a fork that went on");
	choose(t, s, 20);
	check(t, s, "having been forked");
	jit_session_close(copy);
	jit_session_close(s);
}

static void test_copies(void **state)
{
	char path[] = "/tmp/t_hybrid-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < MODELS; i++) {
		struct subject t;
		if (!open_subject(&t, i, "cpu"))
			break;
		for (int k = 0; k < (test_quick() ? 3 : 12); k++)
			check_copies(&t, path);
		jit_model_close(t.model);
	}
	unlink(path);
}

/* A state in the file that cannot be there, or is cut off, is refused; the session stays as it was. */
static void test_bad_files(void **state)
{
	char path[] = "/tmp/t_hybrid-XXXXXX";
	int fd = mkstemp(path);
	struct subject t;
	jit_error err = { 0 };

	assert_true(fd >= 0);
	if (!open_subject(&t, 0, "cpu")) {
		close(fd);
		unlink(path);
		skip();
	}
	jit_session *s = open_session(&t, 16, JIT_SPECULATE_OFF), *other = open_session(&t, 16, JIT_SPECULATE_OFF);
	feed(&t, s, 90);
	feed(&t, s, 20);
	must(jit_session_save(s, path, &err), &err);
	close(fd);
	fd = open(path, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t byte = 0;
	assert_int_equal(pread(fd, &byte, 1, size - 5), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, size - 5), 1);
	assert_int_not_equal(jit_session_restore(other, path, &err), JIT_OK);
	assert_non_null(strstr(err.message, "checksum"));
	assert_int_equal(ftruncate(fd, size - 64), 0);
	assert_int_not_equal(jit_session_restore(other, path, &err), JIT_OK);
	assert_non_null(strstr(err.message, "expected"));
	close(fd);
	assert_int_equal(jit_session_length(other), 0);
	feed(&t, other, 50);
	check(&t, other, "a file that was refused");
	jit_session_close(s);
	jit_session_close(other);
	jit_model_close(t.model);
	unlink(path);
}

/* ---- devices whose memory the host may not reach, and the interpreter */

static void test_devices(void **state)
{
	static const char *const devices[] = { "ref", "sim:gfx1030", "sim:gfx1100", "sim:gfx1201" };

	for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
		struct subject t;
		if (test_quick() && d % 2)
			continue;
		for (size_t i = d; i < MODELS; i += test_quick() ? MODELS : 4) {
			if (!open_subject(&t, i, devices[d]))
				skip();
			walk(&t, 5, 4, 2, 12);
			jit_model_close(t.model);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks),
		cmocka_unit_test(test_drafts),
		cmocka_unit_test(test_going_back_for_a_bench),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_devices)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
