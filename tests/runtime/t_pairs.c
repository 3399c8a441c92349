/* tests/runtime/t_pairs.c - the class BOUNDED on CPUs with pairs of BF16: by peaks that the test makes up, it is used
 * where pairs are faster, and results have the exact bits where they are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/target.h"
#include "runtime/host/pairs.h"
#include "include/jitrun_batch.h"
#include "tests/support/shared.h"

#define ISA "avx512bf16"
enum { TOKENS = 20 };

static char path[1024], folder[] = "/tmp/t_pairs-XXXXXX";
static bool there, cpu_has;
static float *exact, *pairs; /* what either class computes, as the reference has it */
static const struct pairs_peaks slower = { 1364e9, 699e9 }, faster = { 236e9, 473e9 };

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

static jit_model *open_model(const char *device, const char *isa, int numerics, const char *cache, int sealed,
                             int expected)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m =
		jit_model_open(path,
	                       &JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = cache, .sealed = sealed,
	                                          .bounded_numerics = numerics, .tune = JIT_TUNE_OFF),
	                       &err);

	if (!m)
		fail_msg("%s", err.message);
	must(jit_model_get_info(m, &info, &err), &err);
	assert_int_equal(info.bounded, expected);
	return m;
}

/* Logits of a session, and of one of a batch, which have the same bits. free() them. */
static float *compute(jit_model *m, size_t *n)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err), *ready[1];
	jit_batch *b = jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 64, .threads = 1), &err);
	jit_session *member = b ? jit_batch_session(b, NULL, &err) : NULL;
	int32_t ids[TOKENS];
	size_t told = 0;

	if (!s || !member)
		fail_msg("%s", err.message);
	must(jit_model_get_info(m, &info, &err), &err);
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (i * 37 + 11) % info.vocab;
	must(jit_session_feed(s, ids, TOKENS, &err), &err);
	must(jit_session_submit(member, ids, TOKENS, NULL, &err), &err);
	while (!told)
		must(jit_batch_step(b, ready, 1, &told, &err), &err);
	*n = (size_t)info.vocab * sizeof(float);
	float *out = malloc(*n);
	assert_non_null(out);
	memcpy(out, jit_session_logits(s, &err), *n);
	assert_memory_equal(out, jit_session_logits(member, &err), *n);
	jit_session_close(member);
	jit_batch_close(b);
	jit_session_close(s);
	return out;
}

static float *logits(const char *device, const char *isa, int numerics, const char *cache, int sealed, int expected,
                     size_t *n)
{
	jit_model *m = open_model(device, isa, numerics, cache, sealed, expected);
	float *out = compute(m, n);

	jit_model_close(m);
	return out;
}

/* Under made-up peaks, the bits of the class that is expected. */
static void check(const char *device, const struct pairs_peaks *p, int numerics, const char *cache, int sealed,
                  int expected)
{
	size_t n;

	pairs_pretend(p);
	float *got = logits(device, ISA, numerics, cache, sealed, expected, &n);
	pairs_pretend(NULL);
	assert_memory_equal(got, expected == JIT_BOUNDED_ALL ? pairs : exact, n);
	free(got);
}

static void check_device(const char *device, const char *cache, int sealed)
{
	check(device, &slower, JIT_NUMERICS_BOUNDED, cache, sealed, JIT_BOUNDED_NONE);
	check(device, &slower, JIT_NUMERICS_ALWAYS_BOUNDED, cache, sealed, JIT_BOUNDED_ALL);
	check(device, &slower, JIT_NUMERICS_EXACT, cache, sealed, JIT_BOUNDED_NONE);
	check(device, &faster, JIT_NUMERICS_BOUNDED, cache, sealed, JIT_BOUNDED_ALL);
	check(device, &faster, JIT_NUMERICS_EXACT, cache, sealed, JIT_BOUNDED_NONE);
}

static void peaks_decide_the_class(void **state)
{
	static const struct pairs_peaks unknown = { 0, 0 };
	(void)state;

	if (!there)
		return;
	check_device("ref", "", 0);
	check("ref", &unknown, JIT_NUMERICS_BOUNDED, "", 0, JIT_BOUNDED_ALL);
	if (cpu_has)
		check_device("cpu", "", 0);
}

/* What is in a cache says nothing about the class, and a sealed model decides as any other: jitwarm has kernels for
 * either answer. */
static void caches_decide_nothing(void **state)
{
	char line[2200];
	(void)state;

	if (!there || !cpu_has)
		return;
	check_device("cpu", folder, 0);
	snprintf(line, sizeof line, "./jitwarm '%s' --target " ISA " --numerics bounded --quiet --out '%s'", path,
	         folder);
	assert_int_equal(system(line), 0);
	check_device("cpu", folder, 1);
}

static void the_ratio_decides(void **state)
{
	(void)state;
	assert_true(pairs_pay(&(struct pairs_peaks){ 100, 200 }));
	assert_true(pairs_pay(&(struct pairs_peaks){ 100, 141 }));
	assert_false(pairs_pay(&(struct pairs_peaks){ 100, 139 }));
	assert_false(pairs_pay(&(struct pairs_peaks){ 100, 100 }));
	assert_false(pairs_pay(&(struct pairs_peaks){ 0, 0 }));
	assert_false(pairs_pay(&slower));
	assert_true(pairs_pay(&faster));
}

static void this_machine_is_measured(void **state)
{
	const struct pairs_peaks p = pairs_peaks();
	(void)state;

	printf("# %.1f Gop/s of floats, %.1f of pairs: %.2f times\n", p.floats / 1e9, p.pairs / 1e9, pairs_gain(&p));
	assert_int_equal(p.floats > 0, cpu_has);
	assert_int_equal(p.pairs > 0, cpu_has);
	assert_true(!cpu_has || (pairs_gain(&p) > 0.1 && pairs_gain(&p) < 8));
	assert_true(!pairs_pay(&p) || cpu_has);
}

static int begin(void **state)
{
	const struct target_cpu cpu = target_this_cpu();
	(void)state;

	cpu_has = target_runs(&cpu, target_find(ISA), NULL);
	there = shared_path(path, "golden/qwen3-gqa2-bf16") != NULL;
	if (there) {
		size_t n;
		exact = logits("cpu", "avx2", JIT_NUMERICS_EXACT, "", 0, JIT_BOUNDED_NONE, &n);
		pairs = logits("ref", ISA, JIT_NUMERICS_ALWAYS_BOUNDED, "", 0, JIT_BOUNDED_ALL, &n);
		assert_memory_not_equal(exact, pairs, n);
	}
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char line[100];
	(void)state;

	free(exact);
	free(pairs);
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	return system(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ratio_decides), cmocka_unit_test(peaks_decide_the_class),
		cmocka_unit_test(caches_decide_nothing), cmocka_unit_test(this_machine_is_measured)
	};

	return cmocka_run_group_tests(tests, begin, end);
}
