/* tests/t_dev.c - how host devices hand a plan's units out: each once, in order, for any number of workers and any even share; and what even shares follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "runtime/dev.h"
#include "tests/shared.h"

enum { LAUNCHES = 8, UNITS_MOST = 1200, STEPS = 6 };

/* A chain of three, three side by side of which one is too small to share, one whose units differ, one with fewer units than workers. */
static const struct plan_launch launches[LAUNCHES] = {
	{ .begin = 0, .end = 2 * STEPS, .chain = 2 }, { .begin = 3, .end = 3 + STEPS, .chain = 1 }, { .begin = 0, .end = 3 * STEPS, .chain = 3, .barrier = true },
	{ .begin = 5, .end = 101 }, { .begin = 0, .end = 3, .alone = true }, { .begin = 0, .end = 33, .barrier = true },
	{ .begin = 0, .end = UNITS_MOST, .dynamic = true, .barrier = true }, { .begin = 1, .end = 3, .barrier = true },
};
static uint32_t phase[] = { 0, 3, 6, 7, 8 };
enum { PHASES = sizeof phase / sizeof *phase - 1 };

static _Atomic unsigned done[LAUNCHES][UNITS_MOST], wrong;

static bool whole(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		for (int64_t u = launches[i].begin; u < launches[i].end; u++)
			if (atomic_load(&done[i][u]) != 1)
				return false;
	return true;
}

/* handle: the launch's number. A phase begins when those before are done, a step's unit when the same step's of the launches before are. */
static void count(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	uint32_t i = (uint32_t)(uintptr_t)handle, p = 0;
	(void)arg;

	while (phase[p + 1] <= i)
		p++;
	wrong += !whole(0, phase[p]) || begin < launches[i].begin || end > launches[i].end || begin > end;
	for (int64_t u = begin; u < end; u++) {
		atomic_fetch_add(&done[i][u], 1);
		for (uint32_t b = phase[p]; launches[i].chain && b < i; b++) {
			int64_t step = (u - launches[i].begin) / launches[i].chain, first = launches[b].begin + step * launches[b].chain;
			for (int64_t v = first; v < first + launches[b].chain; v++)
				wrong += atomic_load(&done[b][v]) != 1;
		}
	}
}

struct made { struct plan plan; struct plan_launch launch[LAUNCHES]; struct plan_kernel kernel[LAUNCHES]; };

static void make(struct made *m)
{
	*m = (struct made){ .plan = { .n_kernels = LAUNCHES, .n_launches = LAUNCHES, .phase = phase, .n_phases = PHASES } };
	memcpy(m->launch, launches, sizeof launches);
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		m->launch[i].kernel = i;
		m->kernel[i].handle = (void *)(uintptr_t)i;
	}
	m->plan.launch = m->launch;
	m->plan.kernel = m->kernel;
}

static void test_units(void **state)
{
	struct device d = { .name = "counting", .call = count };
	struct error err = { 0 };
	(void)state;

	for (int workers = 1; workers <= 7; workers++) {
		struct pool *pool = pool_open(workers, &err);
		assert_non_null(pool);
		for (uint32_t even = 0; even <= DEV_WHOLE; even += even < 4 || even > DEV_WHOLE - 4 ? 1 : test_quick() ? 85 : 17) {
			struct made m;
			make(&m);
			m.plan.pace.even = even;
			memset(done, 0, sizeof done);
			assert_true(dev_run(&d, &m.plan, pool, &err));
			if (wrong || !whole(0, LAUNCHES))
				fail_msg("%d workers, even shares of %u: units were left out, done twice or too early", workers, even);
			assert_in_range(m.plan.pace.even, 0, DEV_WHOLE);
		}
		pool_close(pool);
	}
}

/* ---- what even shares follow */

static _Thread_local bool calls;        /* of the thread that runs the plan */
static struct { long call, caller, other; } pauses[2];         /* by launch, in nanoseconds: for a call; for each of its units, by who does it */
static _Atomic unsigned called;

static void rest(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	const uintptr_t i = (uintptr_t)handle;
	called++;
	long all = pauses[i].call + (calls ? pauses[i].caller : pauses[i].other) * (end - begin);
	(void)arg;
	nanosleep(&(struct timespec){ .tv_nsec = all }, NULL);
}

typedef bool (*pace_fn)(const struct plan_pace *p, uint32_t least, uint32_t most);

static bool even_is(const struct plan_pace *p, uint32_t least, uint32_t most) { return p->even >= least && p->even <= most; }
static bool decided_apart(const struct plan_pace *p, uint32_t least, uint32_t most) { return p->trials >= DEV_TRIALS && p->apart >= least && p->apart <= most; }

/* The machine may be busy: after some run it is as it should be. */
static bool comes_to(int workers, pace_fn is, uint32_t least, uint32_t most)
{
	enum { RUNS = 300 };
	struct device d = { .name = "resting", .call = rest };
	struct plan_kernel kernel[2] = { { .handle = (void *)0 }, { .handle = (void *)1 } };
	struct plan_launch launch[2] = { { .begin = 0, .end = 96, .barrier = true }, { .kernel = 1, .begin = 0, .end = 96, .barrier = true } };
	uint32_t phases[] = { 0, 1, 2 };
	struct plan p = { .kernel = kernel, .n_kernels = 2, .launch = launch, .n_launches = 2, .phase = phases, .n_phases = 2 };
	struct error err = { 0 };
	struct pool *pool = pool_open(workers, &err);
	bool came = false;

	assert_non_null(pool);
	calls = true;
	for (int i = 0, last = RUNS; i < last; i++) {
		const struct plan_pace was = p.pace;
		called = 0;
		assert_true(dev_run(&d, &p, pool, &err));
		if (was.even == DEV_WHOLE && was.trials >= DEV_TRIALS && (called > 2 * (unsigned)workers) != was.apart)
			fail_msg("%u calls of two launches by %d workers that are alike, small shares are%s wanted", (unsigned)called, workers, was.apart ? "" : " not");
		if (!came && is(&p.pace, least, most)) {
			came = true;
			last = i + 3;
		}
	}
	pool_close(pool);
	return came;
}

static void pause_for(long call, long caller, long other, long caller_later, long other_later)
{
	pauses[0].call = pauses[1].call = call;
	pauses[0].caller = caller;
	pauses[0].other = other;
	pauses[1].caller = caller_later;
	pauses[1].other = other_later;
}

static void test_even(void **state)
{
	(void)state;

	pause_for(0, 50000, 50000, 50000, 50000);
	assert_true(comes_to(2, even_is, DEV_WHOLE, DEV_WHOLE));
	/* The slower ones do a fifth and a sixth of the whole, so two fifths and three sixths are cut evenly, less an eighth. */
	pause_for(0, 50000, 200000, 50000, 200000);
	assert_true(comes_to(2, even_is, DEV_WHOLE * 3 / 10, DEV_WHOLE * 2 / 5));
	assert_true(comes_to(3, even_is, DEV_WHOLE * 3 / 8, DEV_WHOLE / 2));
}

/* Whether even shares are all there is, of workers that are alike. */
static void test_apart(void **state)
{
	(void)state;

	/* What it takes to begin is most of it. */
	pause_for(1000000, 1000, 1000, 1000, 1000);
	assert_true(comes_to(2, decided_apart, false, false));
	/* Each is the slower one in a launch. */
	pause_for(0, 100000, 20000, 20000, 100000);
	assert_true(comes_to(2, decided_apart, true, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_units), cmocka_unit_test(test_even), cmocka_unit_test(test_apart) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
