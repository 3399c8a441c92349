/* tests/runtime/t_ranks.c - models that several processes compute together have the bits of one: every family, any
 * split, prompts cut at random, draft tokens, batches, forks; what ranks cannot do is refused by name; and a rank that
 * dies or stops ends all of them within two seconds, with a sentence that names it. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_cards.h"
#include "tests/runtime/carrier_tests.h"
#include "tests/runtime/ranks_tests.h"
#include "tests/support/shared.h"

enum { TOKENS = 48, CONTEXT = 192 };

static char cache[] = "/tmp/jitrun-ranks-XXXXXX";

static uint64_t seed = 20261130;
static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static jit_model *open_model(const char *path, const char *ranks, const char *split, jit_error *err)
{
	return jit_model_open(
		path, &JIT_MODEL_OPTIONS(.cache_dir = cache, .tune = JIT_TUNE_OFF, .ranks = ranks, .split = split),
		err);
}

void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

jit_model *must_open(const char *path, const char *ranks, const char *split)
{
	jit_error err = { 0 };
	jit_model *m = open_model(path, ranks, split, &err);

	if (!m)
		fail_msg("%s, %s: %s", path, ranks ? ranks : "alone", err.message);
	return m;
}

jit_session *must_session(jit_model *m, int speculate)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = speculate), &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static int info_of(const jit_model *m, jit_model_info *info)
{
	jit_error err = { 0 };

	*info = JIT_MODEL_INFO();
	must(jit_model_get_info(m, info, &err), &err);
	return info->vocab;
}

static const float *logits_of(jit_session *s)
{
	jit_error err = { 0 };
	const float *l = jit_session_logits(s, &err);

	if (!l)
		fail_msg("%s", err.message);
	return l;
}

static void text_of(int32_t ids[TOKENS], int vocab)
{
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (i % 17 * 29 + i / 5 + 3) % vocab;
}

/* The logits behind each token of a text, fed one by one, malloc'ed. */
static float *all_logits(jit_model *m, int vocab)
{
	jit_session *s = must_session(m, JIT_SPECULATE_OFF);
	float *out = malloc((size_t)TOKENS * (size_t)vocab * sizeof *out);
	jit_error err = { 0 };
	int32_t ids[TOKENS];

	text_of(ids, vocab);
	for (size_t i = 0; i < TOKENS; i++) {
		must(jit_session_feed(s, ids + i, 1, &err), &err);
		memcpy(out + i * (size_t)vocab, logits_of(s), (size_t)vocab * sizeof *out);
	}
	jit_session_close(s);
	return out;
}

/* The same text in pieces, with some of it taken back, against those logits. */
static void check_pieces(jit_model *m, const float *want, int vocab, const char *what)
{
	jit_session *s = must_session(m, JIT_SPECULATE_OFF);
	jit_error err = { 0 };
	int32_t ids[TOKENS];
	bool back = false;

	text_of(ids, vocab);
	for (size_t at = 0; at < TOKENS;) {
		const size_t n = 1 + draw(draw(2) ? 4 : TOKENS - (uint32_t)at);
		const size_t piece = n < TOKENS - at ? n : TOKENS - at;
		must(jit_session_feed(s, ids + at, piece, &err), &err);
		at += piece;
		if (memcmp(logits_of(s), want + (at - 1) * (size_t)vocab, (size_t)vocab * sizeof *want) != 0)
			fail_msg("%s: other logits behind token %zu, the last of %zu", what, at, piece);
		if (!back && at > 20) {
			back = true;
			at = 1 + draw((uint32_t)at - 1);
			must(jit_session_rewind(s, at, &err), &err);
		}
	}
	jit_session_close(s);
}

/* ---- every family */

/* By rows, in shares that are drawn; one rank may have nothing. */
static void check_rows(const char *path, const float *want, int vocab)
{
	const unsigned ranks = 2 + draw(4);
	char name[32], split[64] = "rows", what[1500];
	int n = 4;

	for (unsigned i = 0; ranks != 2 && i < ranks; i++)
		n += snprintf(split + n, sizeof split - (size_t)n, "%c%u", i ? ',' : ':', i ? draw(4) : 1 + draw(3));
	snprintf(name, sizeof name, "fork:%u", ranks);
	snprintf(what, sizeof what, "%s, %s", path, split);
	jit_model *m = must_open(path, name, split);
	check_pieces(m, want, vocab, what);
	jit_model_close(m);
}

static void check_family(const char *path, unsigned ranks)
{
	jit_model_info info;
	jit_model *alone = must_open(path, NULL, NULL);
	const int vocab = info_of(alone, &info), layers = info.layers;
	char name[32];

	if (info.encodes) {
		jit_error err = { 0 };
		jit_model_close(alone);
		assert_null(open_model(path, "fork:2", "rows", &err));
		assert_non_null(strstr(err.message, "split rows: not yet of models that encode texts"));
		return;
	}
	float *want = all_logits(alone, vocab);
	jit_model_close(alone);
	if ((int)ranks > layers)
		ranks = (unsigned)layers;
	snprintf(name, sizeof name, "fork:%u", ranks);
	jit_error err = { 0 };
	jit_model *m = open_model(path, name, NULL, &err);
	if (!m && strstr(err.message, "too many")) /* what shares keys and values stays together */
		m = must_open(path, "fork:2", NULL);
	if (!m)
		fail_msg("%s: %s", path, err.message);
	check_pieces(m, want, vocab, path);
	jit_model_close(m);
	check_rows(path, want, vocab);
	free(want);
}

static void test_families(void **state)
{
	static const char *const folder[] = { "golden", "golden-next" };
	unsigned i = 0, done = 0;
	char path[1024], file[1400];

	for (size_t f = 0; f < sizeof folder / sizeof *folder; f++) {
		DIR *d = shared_path(path, folder[f]) ? opendir(path) : NULL;
		for (struct dirent *e; d && (e = readdir(d));) {
			jit_error err = { 0 };
			snprintf(file, sizeof file, "%s/%s", path, e->d_name);
			if (e->d_name[0] == '.' || !strcmp(e->d_name, "README.md") || !test_mine_of_halves(i++) ||
			    (test_quick() && draw(8)))
				continue;
			jit_model *m = open_model(file, NULL, NULL, &err);
			if (!m) /* of families that are refused alone, too */
				continue;
			jit_model_close(m);
			check_family(file, 2 + draw(4));
			done++;
		}
		if (d)
			closedir(d);
	}
	printf("# %u families\n", done);
}

/* ---- a small trained model */

const char *tale(char path[1024]) { return source_path(path, "models/tale-q8_0.gguf"); }

static void test_splits(void **state)
{
	static const char *const split[] = { NULL,   "pipeline", "pipeline:1,5", "pipeline:5,1", "pipeline:2,3,1",
		                             "rows", "rows:1,7", "rows:0,1,1" };
	static const char *const says[] = {
		"rank 0 layers 0 to ",        "rank 0 layers 0 to ",
		"rank 1 layers 1 to 5",       "rank 0 layers 0 to 4",
		"rank 2 layers 5 to 5",       "rank 1 50 % of each matrix",
		"rank 1 87 % of each matrix", "rank 0 0 % of each matrix and the embeddings"
	};
	char path[1024];
	jit_model_info info;
	jit_model *alone = must_open(tale(path), NULL, NULL);
	const int vocab = info_of(alone, &info);
	float *want = all_logits(alone, vocab);

	assert_int_equal(info.layers, 6);
	assert_null(info.ranks);
	jit_model_close(alone);
	for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
		jit_model *m = must_open(path, i == 4 || i == 7 ? "fork:3" : "fork:2", split[i]);
		info_of(m, &info);
		assert_non_null(info.ranks);
		if (!strstr(info.ranks, says[i]))
			fail_msg("\"%s\" does not say \"%s\"", info.ranks, says[i]);
		check_pieces(m, want, vocab, split[i] ? split[i] : "the usual split");
		jit_model_close(m);
	}
	free(want);
}

/* Tokens that a session chooses, with and without draft tokens, and one that goes on from a copy of it. */
static void choose(jit_model *m, int speculate, int32_t ids[2 * TOKENS])
{
	jit_session *s = must_session(m, speculate);
	jit_error err = { 0 };
	int32_t text[TOKENS];
	jit_model_info info;

	text_of(text, info_of(m, &info));
	must(jit_session_feed(s, text, TOKENS, &err), &err);
	for (int i = 0; i < TOKENS; i++)
		must(jit_session_next(s, &ids[i], &err), &err);
	jit_session *copy = jit_session_fork(
		s, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = speculate), &err);
	assert_non_null(copy);
	jit_session_close(s);
	for (int i = 0; i < TOKENS; i++)
		must(jit_session_next(copy, &ids[TOKENS + i], &err), &err);
	jit_session_close(copy);
}

static void test_choices(void **state)
{
	int32_t want[2 * TOKENS], got[2 * TOKENS];
	static const char *const split[] = { "pipeline", "rows:3,1,2" };
	char path[1024];
	jit_model *alone = must_open(tale(path), NULL, NULL);

	choose(alone, JIT_SPECULATE_OFF, want);
	for (int i = 0; i < 2; i++) {
		jit_model *m = must_open(path, "fork:3", split[i]);
		choose(m, JIT_SPECULATE_OFF, got);
		assert_memory_equal(got, want, sizeof want);
		choose(m, 8, got);
		assert_memory_equal(got, want, sizeof want);
		jit_model_close(m);
	}
	jit_model_close(alone);
}

/* ---- batches */

enum { SESSIONS = 3, STEPS = 16 };

static void choose_together(jit_model *m, int32_t ids[SESSIONS][STEPS])
{
	jit_error err = { 0 };
	jit_batch *b =
		jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .kv_bytes = 64 << 20), &err);
	jit_session *s[SESSIONS];
	int n[SESSIONS] = { 0 };
	jit_model_info info;
	int32_t text[TOKENS];

	if (!b)
		fail_msg("%s", err.message);
	text_of(text, info_of(m, &info));
	for (size_t i = 0; i < SESSIONS; i++) {
		s[i] = jit_batch_session(b, NULL, &err);
		assert_non_null(s[i]);
		must(jit_session_submit(s[i], text + i, TOKENS / 2 + 3 * i, NULL, &err), &err);
	}
	for (int left = SESSIONS * STEPS; left;) {
		jit_session *ready[SESSIONS];
		size_t n_ready;
		must(jit_batch_step(b, ready, SESSIONS, &n_ready, &err), &err);
		for (size_t i = 0; i < n_ready; i++) {
			size_t which = 0;
			while (s[which] != ready[i])
				which++;
			if (n[which] < STEPS) {
				must(jit_session_next(s[which], &ids[which][n[which]++], &err), &err);
				left--;
			}
		}
	}
	for (size_t i = 0; i < SESSIONS; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
}

static void test_batches(void **state)
{
	int32_t want[SESSIONS][STEPS], got[SESSIONS][STEPS];
	static const char *const split[] = { "pipeline", "rows" };
	char path[1024];
	jit_model *alone = must_open(tale(path), NULL, NULL);

	choose_together(alone, want);
	for (int i = 0; i < 2; i++) {
		jit_model *m = must_open(path, "fork:2", split[i]);
		choose_together(m, got);
		assert_memory_equal(got, want, sizeof want);
		jit_model_close(m);
	}
	jit_model_close(alone);
}

/* ---- refusals */

static void refuses(const jit_model_options *o, const char *why)
{
	jit_error err = { 0 };
	char path[1024];
	jit_model *m = jit_model_open(tale(path), o, &err);

	assert_null(m);
	if (!strstr(err.message, why))
		fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

static void test_refusals(void **state)
{
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:1"), "fork:1 does not say a number from 2 to 64");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2x"), "fork:2x");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "tcp:2"), "\"tcp:2\" is no carrier");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:7"), "7 are too many for a model of 6 layers");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .split = "pipeline"), "nothing is split without ranks");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "delay:fork:2"), "expected as in delay:200:fork:2");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "delay:9:mpi"), "expected as in delay:200:fork:2");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "delay:2000000:fork:2"), "microseconds up to 1000000");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "delay:9:fork:1"), "a number from 2 to 64");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "rowsx"), "\"rowsx\" is not known");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "rows:1"),
	        "no share from 0 to 1000 for rank 1");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "rows:0,0"), "not all of them 0");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "rows:1,1,1"), "shares of 2 ranks");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "rows:1,1001"),
	        "no share from 0 to 1000 for rank 1");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "pipeline:2,3"),
	        "6 layers to 2 ranks");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "pipeline:6"),
	        "6 layers to 2 ranks");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .split = "pipeline:0,6"), "for rank 0");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2", .device = "sim:gfx1100"), "on CPUs alone");
	refuses(&JIT_MODEL_OPTIONS(.cache_dir = cache, .ranks = "fork:2",
	                           .bounded_numerics = JIT_NUMERICS_ALWAYS_BOUNDED),
	        "bounded_numerics");
}

static int set_up(void **state)
{
	setenv("JITRUN_RANK_PATIENCE", "20", 1); /* other tests may keep all cores busy */
	return mkdtemp(cache) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", cache);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carrier_bytes), cmocka_unit_test(test_carrier_gathers),
		cmocka_unit_test(test_carrier_ends),  cmocka_unit_test(test_splits),
		cmocka_unit_test(test_choices),       cmocka_unit_test(test_batches),
		cmocka_unit_test(test_ranks_bytes),   cmocka_unit_test(test_ranks_seconds),
		cmocka_unit_test(test_refusals),      cmocka_unit_test(test_ranks_saved),
		cmocka_unit_test(test_ranks_choose),  cmocka_unit_test(test_ranks_auto),
		cmocka_unit_test(test_ranks_killed),  cmocka_unit_test(test_ranks_killed_anywhere),
		cmocka_unit_test(test_families)
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
