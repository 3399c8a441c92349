/* tests/runtime/adapters_experts.c - adapters of the matrices of experts: part of t_adapters.
 *
 * The witness is a model whose file has W + scale * B A in the place of experts' matrices, summed here. Beside it, the
 * same adapter as a folder of PEFT and as a GGUF file, every width of passes, devices and batches have the same bits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_logits.h"
#include "tests/runtime/adapter_sessions.h"
#include "tests/runtime/experts_files.h"
#include "tests/support/shared.h"

/* ---- what sessions say */

static const int32_t *prompt(void)
{
	static int32_t ids[PROMPT];

	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * i * 31 + 7 * i + 3) % VOCAB;
	return ids;
}

/* The logits behind the prompt, and behind one more token. */
struct said {
	float logits[2][VOCAB];
};

static void tell(jit_session *s, struct said *out)
{
	feed(s, prompt(), PROMPT);
	memcpy(out->logits[0], jit_session_logits(s, NULL), sizeof out->logits[0]);
	assert_int_equal(jit_session_feed(s, &(int32_t){ 77 }, 1, NULL), JIT_OK);
	memcpy(out->logits[1], jit_session_logits(s, NULL), sizeof out->logits[1]);
}

static struct said said_by(const char *model, const char *adapter, const char *device, bool floats,
                           const struct way *way, float scale)
{
	char path[400];
	jit_model *m = open_model(model, device, floats);
	jit_adapter *a = adapter ? open_adapter(m, inside(path, adapter)) : NULL;
	jit_session *s = open_session(m, way);
	struct said out;

	if (a)
		use(s, &a, &scale, 1);
	tell(s, &out);
	jit_session_close(s);
	jit_adapter_close(a);
	jit_model_close(m);
	return out;
}

static double distance(const struct said *x, const struct said *y)
{
	double far = 0, greatest = 0;

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < VOCAB; i++) {
			far = fmax(far, fabs((double)x->logits[k][i] - (double)y->logits[k][i]));
			greatest = fmax(greatest, fabs((double)y->logits[k][i]));
		}
	return far / greatest;
}

static const struct way usual = { .threads = 1 };

static void test_merged(void **unused)
{
	char plain[400], merged[400];
	(void)unused;

	if (!*folder)
		return;
	inside(plain, "plain");
	inside(merged, "merged");
	const struct said without = said_by(plain, NULL, "cpu", true, &usual, 1),
			  want = said_by(merged, NULL, "cpu", true, &usual, 1),
			  peft = said_by(plain, "peft", "cpu", true, &usual, 1),
			  of_gguf = said_by(plain, "adapter.gguf", "cpu", true, &usual, 1),
			  off = said_by(plain, "peft", "cpu", true, &usual, 0);
	printf("# experts: %.1e from the model they are summed into, which is %.1e from the model itself\n",
	       distance(&peft, &want), distance(&without, &want));
	assert_true(distance(&peft, &want) < 1e-5);
	assert_true(distance(&without, &want) > 1e-2);
	assert_memory_equal(&peft, &of_gguf, sizeof peft);
	assert_memory_equal(&off, &without, sizeof off);
}

static void test_parameters(void **unused)
{
	static const struct parameters ways[] = {
		{ "straight", "0.20.1.dev0", false, false, RANK },
		{ "crossed", "0.19.0", true, false, RANK },
		{ "silent", NULL, true, false, RANK },
		{ "gates", "0.19.1", false, true, RANK },
		{ "older", "0.17.0", true, true, RANK },
	};
	char plain[400], merged[400];
	struct said want = { 0 }, gates = { 0 };
	(void)unused;

	if (!*folder)
		return;
	inside(plain, "plain");
	want = said_by(inside(merged, "merged"), NULL, "cpu", true, &usual, 1);
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
		const struct said got = said_by(plain, write_parameters(&ways[i]), "cpu", true, &usual, 1);
		if (!ways[i].gates_alone)
			assert_true(distance(&got, &want) < 1e-5);
		else if (ways[i].crossed)
			assert_memory_equal(&got, &gates, sizeof got);
		else
			gates = got;
	}
	assert_true(distance(&gates, &want) > 1e-3);
}

static void test_ways(void **unused)
{
	static const struct way ways[] = {
		{ .threads = 1, .batch = 1 }, { .threads = 3, .batch = 7 }, { .threads = 2 }
	};
	static const char *const devices[] = { "ref", "sim:sm90", "sim:gfx1101" };
	char base[1024];
	(void)unused;

	if (!*folder || !shared_path(base, "golden/mixtral-a"))
		return;
	const struct said want = said_by(base, "peft", "cpu", false, &usual, 0.75f);
	for (unsigned i = 0; i < 3; i++) {
		const struct said got = said_by(base, "peft", "cpu", false, &ways[i], 0.75f);
		assert_memory_equal(&got, &want, sizeof got);
	}
	for (unsigned i = 0; i < 3 && !test_quick(); i++) {
		const struct said got = said_by(base, "peft", devices[i], false, &usual, 0.75f);
		if (memcmp(&got, &want, sizeof got) != 0)
			fail_msg("%s gives other bits", devices[i]);
	}
}

/* Three sessions in one pass: with the adapter at two scales, and without. */
static void test_batch(void **unused)
{
	static const float scales[] = { 1, 0, 0.5f };
	jit_session *s[3], *ready[3];
	struct said want[3];
	char base[1024], path[400];
	jit_error err = { 0 };
	size_t n;
	(void)unused;

	if (!*folder || !shared_path(base, "golden/mixtral-a"))
		return;
	jit_model *m = open_model(base, "cpu", false);
	jit_adapter *a = open_adapter(m, inside(path, "peft"));
	jit_batch *b = jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 64, .threads = 2), &err);
	if (!b)
		fail_msg("%s", err.message);
	for (int i = 0; i < 3; i++) {
		s[i] = open_session(m, &usual);
		use(s[i], &a, &scales[i], 1);
		tell(s[i], &want[i]);
		jit_session_close(s[i]);
		s[i] = jit_batch_session(b, NULL, &err);
		if (!s[i])
			fail_msg("%s", err.message);
		use(s[i], &a, &scales[i], 1);
		assert_int_equal(jit_session_submit(s[i], prompt(), PROMPT, NULL, &err), JIT_OK);
	}
	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, 3, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < n; i++) {
			unsigned which = 0;
			while (s[which] != ready[i])
				which++;
			assert_memory_equal(jit_session_logits(ready[i], &err), want[which].logits[0],
			                    sizeof want[which].logits[0]);
		}
	}
	for (int i = 0; i < 3; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
	jit_adapter_close(a);
	jit_model_close(m);
}

static void test_refused(void **unused)
{
	char base[1024], path[400];
	(void)unused;

	if (!*folder || !shared_path(base, "golden/mixtral-a"))
		return;
	jit_model *m = open_model(base, "cpu", false);
	static const struct {
		const char *name, *says;
	} bad[] = { { "scales", "experts of a layer with several scales are not done" },
		    { "few.gguf", "is of 4 experts, expected 5" },
		    { "silent-gates", "peft_version does not say which of them its columns are" },
		    { "between", "peft_version does not say which of them its columns are" },
		    { "other-rank", "has 15 rows, expected 5 for each of 5 experts" } };
	write_peft("scales", "5");
	write_gguf("few.gguf", EXPERTS - 1);
	static const struct parameters wrong[] = {
		{ "silent-gates", NULL, false, true, RANK },
		{ "between", "0.19.0.dev0", false, true, RANK },
		{ "other-rank", "0.20.0", false, false, 5 },
	};
	for (int i = 0; i < 3; i++)
		write_parameters(&wrong[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		jit_error err = { 0 };
		assert_null(jit_adapter_open(m, inside(path, bad[i].name), &err));
		if (!strstr(err.message, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.message, bad[i].says);
	}
	jit_model_close(m);
}

static int make_files(void **unused)
{
	char base[1024];
	(void)unused;

	if (!shared_path(base, "golden/mixtral-a"))
		return 0;
	strcpy(folder, "/tmp/t_adapters-experts-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	write_models(base);
	write_peft("peft", "6");
	write_gguf("adapter.gguf", EXPERTS);
	return 0;
}

static int remove_files(void **unused)
{
	char line[120];
	(void)unused;

	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	return *folder ? system(line) : 0;
}

int run_experts(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged), cmocka_unit_test(test_parameters), cmocka_unit_test(test_ways),
		cmocka_unit_test(test_batch),  cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("experts", tests, make_files, remove_files);
}
