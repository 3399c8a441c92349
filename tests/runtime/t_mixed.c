/* tests/runtime/t_mixed.c - models that mix weight formats: a prompt fed at once gives the logits of its tokens fed one
 * by one, bit for bit, for every length, on every instruction set and interpreted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/target.h"
#include "include/jitrun.h"
#include "tests/runtime/mixed_model.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

/* The longest prompt that sessions compute in one pass unless they are told otherwise. */
enum { LONGEST = 264 };

struct opened {
	jit_model *model;
	jit_session *session;
};

static struct opened open_one(const char *path, const char *device, const char *isa, int f32)
{
	jit_error err = { 0 };
	struct opened o = { .model = jit_model_open(path,
		                                    &JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = "",
		                                                       .tune = JIT_TUNE_OFF, .f32_activations = f32),
		                                    &err) };

	if (!o.model)
		fail_msg("%s %s: %s", device, isa, err.message);
	o.session = jit_session_open(o.model,
	                             &JIT_SESSION_OPTIONS(.context = LONGEST, .batch = LONGEST, .threads = 2,
	                                                  .speculate = JIT_SPECULATE_OFF),
	                             &err);
	if (!o.session)
		fail_msg("%s %s: %s", device, isa, err.message);
	return o;
}

static void close_one(struct opened *o)
{
	jit_session_close(o->session);
	jit_model_close(o->model);
}

static const float *feed(struct opened *o, const int32_t *ids, size_t n)
{
	jit_error err = { 0 };

	if (jit_session_feed(o->session, ids, n, &err) != JIT_OK)
		fail_msg("%s", err.message);
	return jit_session_logits(o->session, &err);
}

static void restart(struct opened *o)
{
	jit_error err = { 0 };
	assert_int_equal(jit_session_rewind(o->session, 0, &err), JIT_OK);
}

static const int32_t *prompt(void)
{
	static int32_t ids[LONGEST];

	for (int i = 0; i < LONGEST; i++)
		ids[i] = (int32_t)((unsigned)i * 37u % MIXED_VOCAB);
	return ids;
}

static const enum dtype pairs[][2] = {
	{ DTYPE_Q4_K, DTYPE_Q6_K }, { DTYPE_Q8_0, DTYPE_Q4_0 }, { DTYPE_BF16, DTYPE_F32 }
};
enum { PAIRS = sizeof pairs / sizeof *pairs };
/* For each pair a length whose tiles are not all alike, and whose last ones, on processors without VNNI, the two
 * formats want prepared differently. */
static const unsigned telling[PAIRS] = { 31, 25, 36 };

/* Logits behind each of the first tokens of the prompt, one fed after the other. */
struct expected {
	float behind[LONGEST][MIXED_VOCAB];
};

static void one_by_one(struct opened *o, struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy(e->behind[i], feed(o, prompt() + i, 1), sizeof e->behind[i]);
	restart(o);
}

static void check_length(struct opened *o, const struct expected *e, unsigned n, const char *what)
{
	if (memcmp(feed(o, prompt(), n), e->behind[n - 1], sizeof e->behind[n - 1]) != 0)
		fail_msg("%s: the logits behind %u tokens at once are not those of the tokens one by one", what, n);
	restart(o);
}

static bool runs(const struct target *t)
{
	const struct target_cpu cpu = target_this_cpu();
	return target_runs(&cpu, t, NULL);
}

/* One pair on one instruction set. step 0: the telling length alone. */
static void check_pair(const enum dtype pair[2], bool f32, const char *isa, unsigned step, unsigned alone)
{
	static struct expected e;
	static unsigned at;
	if (!test_in_part(at++))
		return;
	const struct mixed_types types = mixed_pair(pair[0], pair[1]);
	char path[64], what[128];
	int fd = mixed_model(path, &types);
	struct opened o = open_one(path, "cpu", isa, f32);

	snprintf(what, sizeof what, "%s with %s, %s%s", dtype_table[pair[0]].name, dtype_table[pair[1]].name, isa,
	         f32 ? ", f32 activations" : "");
	one_by_one(&o, &e, step ? LONGEST : alone);
	for (unsigned n = 1; step && n <= LONGEST; n += step)
		check_length(&o, &e, n, what);
	if (alone)
		check_length(&o, &e, alone, what);
	close_one(&o);
	close(fd);
}

/* Every length where the instruction set has the most ways of preparing inputs, which is the least one; some on the
 * others. */
static void test_lengths(void **state)
{
	(void)state;
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		for (int i = 0; runs(&target_table[t]) && i < PAIRS; i++)
			check_pair(pairs[i], false, target_table[t].name,
			           test_quick()       ? 0
			           : t == TARGET_AVX2 ? 1
			                              : 7,
			           telling[i]);
}

/* Two layers have a pair both ways round. */
static void test_every_pair(void **state)
{
	(void)state;
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);
	if (!test_full())
		skip();
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		for (unsigned i = 0; runs(&target_table[t]) && i < n; i++)
			for (unsigned j = 0; j <= i; j++)
				for (int f32 = 0; f32 < 2; f32++)
					check_pair((const enum dtype[]){ types[i], types[j] }, f32,
					           target_table[t].name, t == TARGET_AVX2 && !f32 ? 1 : 7, 31);
}

/* The interpreter is held to generated code, fed one by one, of whichever instruction set. */
static void check_interpreted(int i, const char *isa)
{
	static struct expected e;
	const struct mixed_types types = mixed_pair(pairs[i][0], pairs[i][1]);
	char path[64];
	int fd = mixed_model(path, &types);
	struct opened cpu = open_one(path, "cpu", NULL, 0), ref = open_one(path, "ref", isa, 0);

	one_by_one(&cpu, &e, telling[i]);
	check_length(&ref, &e, telling[i], isa);
	close_one(&cpu);
	close_one(&ref);
	close(fd);
}

static void test_interpreted(void **state)
{
	(void)state;
	for (int t = TARGET_AVX2; t <= TARGET_AVX512_AMX; t++)
		for (int i = 0; i < (test_quick() ? 1 : PAIRS); i++)
			check_interpreted(i, target_table[t].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lengths), cmocka_unit_test(test_interpreted),
		                            cmocka_unit_test(test_every_pair) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
