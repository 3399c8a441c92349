/* tests/runtime/t_state_tail.c - saved sessions of models whose layers keep states: a session that is restored goes on
 * from less of its text, too, and computes no more than the tail; so does a batch that remembers it. Bits are those of
 * a session that was fed the text. Files that hold the last state alone, as version 1 has them, are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/store/record.h"
#include "runtime/batch/batch.h"
#include "runtime/session/session_file.h"
#include "runtime/session/session_kv.h"
#include "tests/support/shared.h"

enum { CONTEXT = 600, PROMPT = 400, CHOSEN = 3, STEP = 16 };

static const char *const models[] = { "golden/qwen35-a",        "golden/lfm2-a",           "golden/nemotronh-a",
	                              "golden/granitehybrid-a", "golden-next/falconh1-a",  "golden-next/mamba2-a",
	                              "golden-next/jamba-a",    "golden-next/olmohybrid-a" };
static char folder[] = "/tmp/t_state_tail-XXXXXX", file[100];
static jit_model *model;
static size_t vocab;
static int32_t ids[PROMPT];

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

static jit_session *open_session(void)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);

	assert_non_null(s);
	return s;
}

/* The logits behind the prompt. */
static float *alone(void)
{
	jit_error err = { 0 };
	jit_session *s = open_session();
	float *out = malloc(vocab * sizeof *out);

	assert_non_null(out);
	must(jit_session_feed(s, ids, PROMPT, &err), &err);
	memcpy(out, jit_session_logits(s, &err), vocab * sizeof *out);
	jit_session_close(s);
	return out;
}

static jit_batch *open_batch(void)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1), &err);

	assert_non_null(b);
	return b;
}

static void step_until(jit_batch *b, const jit_session *s)
{
	jit_error err = { 0 };
	jit_session *ready = NULL;

	for (size_t n = 0; ready != s || !n;)
		must(jit_batch_step(b, &ready, 1, &n, &err), &err);
}

/* A prompt and some tokens of an answer, in a batch. */
static void save(void)
{
	jit_error err = { 0 };
	jit_batch *b = open_batch();
	jit_session *s = jit_batch_session(b, NULL, &err);
	int32_t id;

	must(jit_session_submit(s, ids, PROMPT, NULL, &err), &err);
	for (int i = 0; i < CHOSEN; i++) {
		step_until(b, s);
		must(jit_session_next(s, &id, &err), &err);
	}
	step_until(b, s);
	must(jit_session_save(s, file, &err), &err);
	jit_session_close(s);
	jit_batch_close(b);
}

/* The prompt again, of which another batch remembers what the file holds: how much of it is not computed. */
static size_t again(const float *logits)
{
	jit_error err = { 0 };
	jit_batch *b = open_batch();
	jit_session *s = jit_batch_session(b, NULL, &err);
	size_t reused = 0;

	must(jit_session_restore(s, file, &err), &err);
	assert_int_equal(jit_session_length(s), PROMPT + CHOSEN);
	jit_session_close(s);
	s = jit_batch_session(b, NULL, &err);
	must(jit_session_submit(s, ids, PROMPT, &reused, &err), &err);
	step_until(b, s);
	assert_memory_equal(jit_session_logits(s, &err), logits, vocab * sizeof *logits);
	jit_session_close(s);
	jit_batch_close(b);
	return reused;
}

/* A session of its own goes back to the prompt, and to less; how many tokens that takes, the state it finds tells. */
static uint64_t go_back(size_t n, const float *logits)
{
	jit_error err = { 0 };
	jit_session *s = open_session();

	must(jit_session_restore(s, file, &err), &err);
	const uint64_t from = states_position(&s->memory.states, states_find(&s->memory.states, n));
	must(jit_session_rewind(s, n, &err), &err);
	must(jit_session_feed(s, ids + n, PROMPT - n, &err), &err);
	assert_memory_equal(jit_session_logits(s, &err), logits, vocab * sizeof *logits);
	jit_session_close(s);
	return from;
}

/* The same file as version 1 has it: the last state alone, and no table. Sums go piece by piece. */
static void make_old(void)
{
	jit_session *s = open_session();
	struct error err = { 0 };
	size_t n;
	uint8_t *p = file_bytes(file, &n), *at = p + HEADER;
	const uint32_t length = record_get32(p + AT_LENGTH), computed = record_get32(p + AT_COMPUTED),
		       states = record_get32(p + AT_STATE);
	const uint64_t bytes = s->memory.states.bytes;

	assert_int_equal(record_get32(p + AT_VERSION), 2);
	assert_true(states >= 2);
	session_memory_begin_window(&s->memory, &model->file.spec, computed, 0);
	struct kv_extent *extent = kv_extents(&s->memory, &model->file.spec, computed, 0, &err);
	uint64_t extents = kv_extents_count(&model->file.spec, computed, 0),
		 sum = record_checksum(at, (length + length % 2) * 4, 1);
	at += (length + length % 2) * 4;
	for (uint64_t i = 0; i < extents; at += extent[i++].bytes)
		sum = record_checksum(at, extent[i].bytes, sum);
	const uint64_t last = record_get64(at + 8 * (states - 1));
	memmove(at, at + 8 * states + (states - 1) * bytes, bytes);
	sum = record_checksum(at, bytes, sum);
	record_put32(p + AT_VERSION, 1);
	record_put32(p + AT_STATE, (uint32_t)last);
	record_put64(p + AT_BYTES, (uint64_t)(at - p) + bytes - HEADER);
	record_put64(p + AT_SUM, sum);
	record_put64(p + AT_HEADER_SUM, record_checksum(p, AT_HEADER_SUM, 1));
	FILE *f = fopen(file, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, (size_t)(at - p) + bytes, f), (size_t)(at - p) + bytes);
	fclose(f);
	free(extent);
	free(p);
	jit_session_close(s);
}

/* A table that contradicts itself is refused, with sums that are right. */
static void check_damage(uint32_t number, uint64_t position)
{
	jit_session *s = open_session();
	jit_error err = { 0 };
	size_t n;
	uint8_t *p = file_bytes(file, &n);
	const uint64_t table = n - record_get32(p + AT_STATE) * (8 + s->memory.states.bytes);

	record_put64(p + table + 8 * number, position);
	FILE *f = fopen(file, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
	assert_int_equal(jit_session_restore(s, file, &err), JIT_ERROR_FORMAT);
	assert_non_null(strstr(err.message, "contradict each other"));
	assert_int_equal(jit_session_length(s), 0);
	must(jit_session_feed(s, ids, 5, &err), &err); /* it is as good as new */
	jit_session_close(s);
	free(p);
}

static void check_model(const char *name)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	if (!shared_path(path, name))
		return;
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
	if (!model)
		fail_msg("%s: %s", path, err.message);
	must(jit_model_get_info(model, &info, &err), &err);
	vocab = (size_t)info.vocab;
	for (int i = 0; i < PROMPT; i++)
		ids[i] = (int32_t)((size_t)(i * 7 + i % 5) % vocab);
	float *logits = alone();
	save();
	const size_t reused = again(logits);
	const uint64_t near = go_back(PROMPT - 5, logits), far = go_back(300, logits);
	printf("# %s: %zu of %d tokens are not computed again; from %llu and %llu\n", name, reused, PROMPT,
	       (unsigned long long)near, (unsigned long long)far);
	assert_true(reused >= PROMPT - STEP);
	assert_true(near >= PROMPT - STEP - 5);
	make_old();
	again(logits);
	go_back(PROMPT - 5, logits);
	for (uint32_t i = 0; i < 2; i++) {
		save();
		check_damage(i, 0);
		save();
		check_damage(i, PROMPT + CHOSEN + 1);
	}
	free(logits);
	jit_model_close(model);
}

static void only_the_tail_is_computed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof models / sizeof *models; i++)
		if (test_mine_of_halves(i))
			check_model(models[i]);
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof file, "%s/session", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(only_the_tail_is_computed) };

	return cmocka_run_group_tests(tests, begin, end);
}
