/* tests/runtime/t_device.c - how host devices hand a plan's units out: each once, in order, for any number of workers
 * and any even share; and what that follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "runtime/device/device.h"
#include "tests/support/shared.h"

enum { LAUNCHES = 11, UNITS_MAX = 1200, STEPS = 6 };

/* A chain of three, three side by side, of which one is too small to share and one costs more, one whose units differ,
 * one with fewer units than workers; launches in parts: much work, little, and so little that one thread does it. */
static const struct plan_op launches[LAUNCHES] = {
	{ .begin = 0, .end = 2 * STEPS, .unit_cost = 1, .fused_units = 2 },
	{ .begin = 3, .end = 3 + STEPS, .unit_cost = 1, .fused_units = 1 },
	{ .begin = 0, .end = 3 * STEPS, .unit_cost = 1, .fused_units = 3, .barrier = true },
	{ .begin = 5, .end = 101, .unit_cost = 7 },
	{ .begin = 0, .end = 3, .unit_cost = 1, .serial = true },
	{ .begin = 0, .end = 33, .unit_cost = 1, .barrier = true },
	{ .begin = 0, .end = UNITS_MAX, .unit_cost = 1, .uneven = true, .barrier = true },
	{ .begin = 1, .end = 3, .unit_cost = 1, .barrier = true },
	{ .begin = 2, .end = 1000, .unit_cost = 1, .parts = true, .operations = 1e9, .barrier = true },
	{ .begin = 0, .end = 5, .unit_cost = 1, .parts = true, .moves = 1, .barrier = true },
	{ .begin = 0, .end = 9, .unit_cost = 1, .parts = true, .serial = true, .barrier = true },
};
static uint32_t phase[] = { 0, 3, 6, 7, 8, 9, 10, 11 };
enum { PHASES = sizeof phase / sizeof *phase - 1 };

static _Atomic unsigned done[LAUNCHES][UNITS_MAX], wrong;

static bool whole(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		for (int64_t u = launches[i].begin; u < launches[i].end; u++)
			if (atomic_load(&done[i][u]) != 1)
				return false;
	return true;
}

/* handle: the launch's number. A stage begins when those before are done, a step's unit when the same step's of the
 * launches before are. */
static void count(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	uint32_t i = (uint32_t)(uintptr_t)handle, p = 0;
	(void)arg;

	while (phase[p + 1] <= i)
		p++;
	wrong += !whole(0, phase[p]) || begin < launches[i].begin || end > launches[i].end || begin > end;
	for (int64_t u = begin; u < end; u++) {
		atomic_fetch_add(&done[i][u], 1);
		for (uint32_t b = phase[p]; launches[i].fused_units && b < i; b++) {
			int64_t step = (u - launches[i].begin) / launches[i].fused_units,
				first = launches[b].begin + step * launches[b].fused_units;
			for (int64_t v = first; v < first + launches[b].fused_units; v++)
				wrong += atomic_load(&done[b][v]) != 1;
		}
	}
}

struct made {
	struct plan plan;
	struct plan_op launch[LAUNCHES];
	struct plan_kernel kernel[LAUNCHES];
};

static void make(struct made *m)
{
	*m = (struct made){ .plan = { .n_kernels = LAUNCHES, .n_ops = LAUNCHES, .stage = phase, .n_stages = PHASES } };
	memcpy(m->launch, launches, sizeof launches);
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		m->launch[i].kernel = i;
		m->kernel[i].handle = (void *)(uintptr_t)i;
	}
	m->plan.op = m->launch;
	m->plan.kernel = m->kernel;
}

static void test_units(void **state)
{
	struct stream d = { .call = count };
	struct error err = { 0 };
	(void)state;

	for (int workers = 1; workers <= 7; workers++) {
		struct pool *pool = pool_open(workers, &err);
		assert_non_null(pool);
		for (uint32_t even = 0; even <= HOST_SCHEDULE_SHARE_ONE;
		     even += even < 4 || even > HOST_SCHEDULE_SHARE_ONE - 4 ? 1
		             : test_quick()                                 ? 85
		                                                            : 17) {
			struct made m;
			make(&m);
			m.plan.static_share = even;
			memset(done, 0, sizeof done);
			assert_true(host_schedule_run(&d, &m.plan, pool, &err));
			if (wrong || !whole(0, LAUNCHES))
				fail_msg("%d workers, even shares of %u: units were left out, done twice or too early",
				         workers, even);
			assert_in_range(m.plan.static_share, 0, HOST_SCHEDULE_SHARE_ONE);
		}
		pool_close(pool);
	}
}

/* ---- how long the pieces are */

static _Thread_local bool calls; /* of the thread that runs the plan */
static struct {
	long caller, other;
} pause_of; /* of a unit, by who does it; in nanoseconds */
/* Of the halves of a launch's units, by launch: the end of the last piece but those from the end; the longest piece;
 * pieces from the end. */
static struct {
	_Atomic int64_t next, longest;
	_Atomic unsigned breaks;
} own[2][2];

/* handle: the launch's number. The first half of the units is the calling thread's. */
static void rest(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	uint32_t i = (uint32_t)(uintptr_t)handle;
	int half = !calls;
	(void)arg;

	if (begin == own[i][half].next) {
		own[i][half].next = end;
		if (end - begin > own[i][half].longest)
			own[i][half].longest = end - begin;
	} else {
		own[i][half].breaks++;
	}
	nanosleep(&(struct timespec){ .tv_nsec = (calls ? pause_of.caller : pause_of.other) * (end - begin) }, NULL);
}

enum { REST_UNITS = 1024 };

/* The machine may be busy: after some run, what is cut evenly is within the bounds. */
static bool comes_to(int workers, uint32_t min, uint32_t max)
{
	enum { RUNS = 300 };
	struct stream d = { .call = rest };
	struct plan_kernel kernel = { .handle = NULL };
	struct plan_op launch = { .begin = 0, .end = REST_UNITS, .unit_cost = 1, .barrier = true };
	uint32_t phases[] = { 0, 1 };
	struct plan p = {
		.kernel = &kernel, .n_kernels = 1, .op = &launch, .n_ops = 1, .stage = phases, .n_stages = 1
	};
	struct error err = { 0 };
	struct pool *pool = pool_open(workers, &err);
	bool came = false;

	assert_non_null(pool);
	calls = true;
	for (int i = 0; i < RUNS && !came; i++) {
		assert_true(host_schedule_run(&d, &p, pool, &err));
		came = p.static_share >= min && p.static_share <= max;
	}
	pool_close(pool);
	return came;
}

static void test_even(void **state)
{
	(void)state;

	/* Of workers that are alike, all less an eighth. */
	pause_of.caller = pause_of.other = 5000;
	assert_true(comes_to(2, HOST_SCHEDULE_SHARE_ONE * 26 / 32, HOST_SCHEDULE_SHARE_ONE * 28 / 32 + 1));
	/* The slower ones do a fifth and a sixth of the whole, so two fifths and three sixths are cut evenly, less an
	 * eighth. */
	pause_of.other = 20000;
	assert_true(comes_to(2, HOST_SCHEDULE_SHARE_ONE * 3 / 10, HOST_SCHEDULE_SHARE_ONE * 2 / 5));
	assert_true(comes_to(3, HOST_SCHEDULE_SHARE_ONE * 3 / 8, HOST_SCHEDULE_SHARE_ONE / 2));
}

static void begin_anew(void)
{
	memset(own, 0, sizeof own);
	own[0][1].next = own[1][1].next = REST_UNITS / 2;
}

/* A worker's pieces of the last launch are one after another but for a few, and most of the units. */
static bool in_order(void)
{
	return own[1][0].breaks + own[1][1].breaks <= 4 &&
	       own[1][0].next + own[1][1].next > REST_UNITS + REST_UNITS / 2 * 3 / 4;
}

/* Of two launches of a stage, whose units cost 3 and 1: the first piece is as much of their cost as was asked for, the
 * rest is cut into eight. */
static void test_parts(void **state)
{
	enum { HALF = REST_UNITS / 2 };
	static const struct {
		uint32_t even;
		int64_t longest[2];
	} cases[] = { { HOST_SCHEDULE_SHARE_ONE / 4, { HALF / 3, 3 * HALF / 8 } },
		      { HOST_SCHEDULE_SHARE_ONE * 7 / 8, { HALF, HALF / 2 } },
		      { HOST_SCHEDULE_SHARE_ONE, { HALF, HALF } } };
	struct stream d = { .call = rest };
	struct plan_kernel kernel[2] = { { .handle = NULL }, { .handle = (void *)(uintptr_t)1 } };
	struct plan_op launch[2] = { { .begin = 0, .end = REST_UNITS, .unit_cost = 3 },
		                     { .kernel = 1, .begin = 0, .end = REST_UNITS, .unit_cost = 1, .barrier = true } };
	uint32_t phases[] = { 0, 2 };
	struct plan p = { .kernel = kernel, .n_kernels = 2, .op = launch, .n_ops = 2, .stage = phases, .n_stages = 1 };
	struct error err = { 0 };
	struct pool *pool = pool_open(2, &err);
	(void)state;

	assert_non_null(pool);
	calls = true;
	pause_of.caller = pause_of.other = 10000;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool came = false;
		for (int run = 0; run < 100 && !came; run++) { /* both workers came in time: the machine may be busy */
			begin_anew();
			p.static_share = cases[i].even;
			assert_true(host_schedule_run(&d, &p, pool, &err));
			came = in_order();
			for (int l = 0; l < 2; l++)
				came &= own[l][0].longest == cases[i].longest[l] &&
				        own[l][1].longest == cases[i].longest[l];
		}
		if (!came)
			fail_msg("even shares of %u: the last launch's runs of %d units ended at %d and %d, the "
			         "longest pieces had %d and %d of the first launch, %d and %d of the last",
			         cases[i].even, HALF, (int)own[1][0].next, (int)own[1][1].next, (int)own[0][0].longest,
			         (int)own[0][1].longest, (int)own[1][0].longest, (int)own[1][1].longest);
	}
	pool_close(pool);
}

/* ---- parts of equal length */

static _Atomic int64_t shortest, longest;
static _Atomic unsigned taken;

static void note_length(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	int64_t n = end - begin, old = atomic_load(&shortest);
	(void)handle, (void)arg;

	taken++;
	while (n < old && !atomic_compare_exchange_weak(&shortest, &old, n))
		;
	old = atomic_load(&longest);
	while (n > old && !atomic_compare_exchange_weak(&longest, &old, n))
		;
}

/* Every worker's run of a launch is cut into parts of equal length; how many depends on the work. */
static void test_even_parts(void **state)
{
	static const struct {
		int workers;
		int64_t units;
		double work;
		unsigned taken;
		int64_t shortest, longest;
	} cases[] = {
		{ 2, 960, 1e9, 96, 10, 10 },
		{ 2, 960, 0, 16, 60, 60 },
		{ 3, 4800, 3.0 * 20 * 262144, 60, 80, 80 },
		{ 2, 1000, 1e9, 96, 10, 11 },
		{ 4, 8, 1e9, 8, 1, 1 },
		{ 2, 3, 1e9, 3, 1, 1 },
		{ 1, 960, 1e9, 1, 960, 960 },
		{ 2, 1 << 20, 1e12, 96, 10922, 10923 },
	};
	struct stream d = { .call = note_length };
	struct plan_kernel kernel = { .handle = NULL };
	uint32_t phases[] = { 0, 1 };
	struct error err = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plan_op launch = { .end = cases[i].units,
			                  .unit_cost = 1,
			                  .parts = true,
			                  .barrier = true,
			                  .moves = cases[i].work / 4,
			                  .operations = cases[i].work / 4 * 3 };
		struct plan p = {
			.kernel = &kernel, .n_kernels = 1, .op = &launch, .n_ops = 1, .stage = phases, .n_stages = 1
		};
		struct pool *pool = pool_open(cases[i].workers, &err);
		assert_non_null(pool);
		for (int run = 0; run < 20; run++) {
			shortest = INT64_MAX;
			longest = 0;
			taken = 0;
			assert_true(host_schedule_run(&d, &p, pool, &err));
			if (taken != cases[i].taken || shortest != cases[i].shortest || longest != cases[i].longest)
				fail_msg("case %zu: %u parts of %d to %d units", i, taken, (int)shortest, (int)longest);
		}
		pool_close(pool);
	}
}

/* ---- units that differ in cost */

static _Thread_local unsigned run_seen;
static unsigned run_number;
static _Atomic int64_t firsts[2];

/* Where the first unit is of each thread that comes. */
static void note_first(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	(void)handle, (void)arg, (void)end;
	if (run_seen == run_number)
		return;
	run_seen = run_number;
	firsts[!calls] = begin;
	for (int i = 0; i < 1000 && firsts[calls] < 0; i++) /* until the other has come, for a while */
		nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

/* The last units, which take longest, come first, whichever thread does them. */
static void test_last_first(void **state)
{
	struct stream d = { .call = note_first };
	struct plan_kernel kernel = { .handle = NULL };
	struct plan_op launch = { .begin = 0, .end = 100, .unit_cost = 1, .uneven = true, .barrier = true };
	uint32_t phases[] = { 0, 1 };
	struct plan p = {
		.kernel = &kernel, .n_kernels = 1, .op = &launch, .n_ops = 1, .stage = phases, .n_stages = 1
	};
	struct error err = { 0 };
	struct pool *pool = pool_open(2, &err);
	bool came = false;
	(void)state;

	assert_non_null(pool);
	calls = true;
	for (int run = 0; run < 100 && !came; run++) {
		run_number++;
		firsts[0] = firsts[1] = -1;
		assert_true(host_schedule_run(&d, &p, pool, &err));
		came = firsts[0] == 99 && firsts[1] == 98;
	}
	if (!came)
		fail_msg("of 100 units the two threads began with %d and %d", (int)firsts[0], (int)firsts[1]);
	pool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_units), cmocka_unit_test(test_even),
		                            cmocka_unit_test(test_parts), cmocka_unit_test(test_even_parts),
		                            cmocka_unit_test(test_last_first) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
