/* tests/runtime/ranks_saved.c - sessions that several ranks keep are saved as the file that one process writes, byte
 * for byte, and go on from it like one process, with any split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/runtime/ranks_tests.h"
#include "tests/support/shared.h"

enum { TEXT = 150, MORE = 3, VOCAB_MAX = 1 << 16 };

static const int kinds[] = { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };

static jit_session *open_kept(jit_model *m, int kv)
{
	jit_error err = { 0 };
	jit_session *s =
		jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1, .kv = kv, .batch = 40), &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static void feed_text(jit_session *s, int vocab)
{
	jit_error err = { 0 };
	int32_t ids[TEXT];

	for (int i = 0; i < TEXT; i++)
		ids[i] = (i % 17 * 29 + i / 5 + 3) % vocab;
	must(jit_session_feed(s, ids, TEXT, &err), &err);
}

/* The logits behind each of some tokens more. */
static void go_on(jit_session *s, size_t vocab, float *out)
{
	jit_error err = { 0 };

	for (int32_t i = 1; i <= MORE; i++) {
		must(jit_session_feed(s, &i, 1, &err), &err);
		const float *logits = jit_session_logits(s, &err);
		assert_non_null(logits);
		memcpy(out, logits, vocab * sizeof *out);
		out += vocab;
	}
}

static void check_same_files(const char *a, const char *b, const char *what)
{
	size_t n, m;
	uint8_t *one = file_bytes(a, &n), *two = file_bytes(b, &m);

	if (n != m)
		fail_msg("%s: %zu bytes are saved, and %zu by one process", what, m, n);
	for (size_t i = 0; i < n; i++)
		if (one[i] != two[i])
			fail_msg("%s: byte %zu of %zu that are saved is another one", what, i, n);
	free(one);
	free(two);
}

static void check_saved(const char *path, const char *ranks, const char *split, int kv)
{
	char file[2][64], what[1200];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *alone = must_open(path, NULL, NULL);

	must(jit_model_get_info(alone, &info, &err), &err);
	const size_t vocab = (size_t)info.vocab;
	float *want = malloc(MORE * vocab * sizeof *want), *got = malloc(MORE * vocab * sizeof *got);
	assert_true(want && got);
	snprintf(what, sizeof what, "%s, %s %s", path, ranks, split);
	for (int i = 0; i < 2; i++)
		snprintf(file[i], sizeof file[i], "/tmp/jitrun-ranks-saved-%d-%d", (int)getpid(), i);
	jit_session *s = open_kept(alone, kv);
	feed_text(s, info.vocab);
	must(jit_session_save(s, file[0], &err), &err);
	go_on(s, vocab, want);
	jit_session_close(s);

	jit_model *m = must_open(path, ranks, split);
	s = open_kept(m, kv);
	feed_text(s, info.vocab);
	must(jit_session_save(s, file[1], &err), &err);
	check_same_files(file[0], file[1], what);
	go_on(s, vocab, got); /* saving changes nothing */
	if (memcmp(got, want, MORE * vocab * sizeof *got) != 0)
		fail_msg("%s: a session goes on otherwise behind a save", what);
	jit_session_close(s);
	s = open_kept(m, kv);
	must(jit_session_restore(s, file[0], &err), &err);
	go_on(s, vocab, got);
	if (memcmp(got, want, MORE * vocab * sizeof *got) != 0)
		fail_msg("%s: a session goes on otherwise behind a restore", what);
	jit_session_close(s);
	jit_model_close(m);

	s = open_kept(alone, kv);
	must(jit_session_restore(s, file[1], &err), &err);
	go_on(s, vocab, got);
	assert_memory_equal(got, want, MORE * vocab * sizeof *got);
	jit_session_close(s);
	jit_model_close(alone);
	remove(file[0]);
	remove(file[1]);
	free(want);
	free(got);
}

void test_ranks_saved(void **state)
{
	/* Attention with windows, states, latent attention, experts; heads of 80 numbers, of which blocks have several.
	 */
	static const char *const family[] = { "golden/gemma3-a",       "golden/qwen35-a",    "golden/deepseekv2-a",
		                              "golden/mixtral-a",      "golden/nemotronh-a", "golden/gemma4-e-a",
		                              "golden/qwen3-gqa2-bf16" };
	char path[1024];

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		check_saved(tale(path), "fork:3", "pipeline", kinds[i]);
		check_saved(path, "fork:3", "rows:1,2,1", kinds[i]);
	}
	for (size_t i = 0; i < sizeof family / sizeof *family; i++)
		if (shared_path(path, family[i])) {
			check_saved(path, "fork:2", "pipeline", JIT_KV_F16);
			check_saved(path, "fork:2", "rows:2,1", JIT_KV_F16);
		}
}
