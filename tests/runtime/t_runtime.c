/* tests/runtime/t_runtime.c - the small parts of runtime/: pool, own mathematics, rotary frequencies, sampling. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/host/pool.h"
#include "runtime/host/system.h"
#include "runtime/host/wait.h"
#include "tests/runtime/math_tests.h"

/* Of each stage, how many shares are done: a stage that opens early, or a share that is handed out twice or not at all,
 * is seen. Every third stage has none. */
enum { PHASES = 60, SHARES_MAX = 40 };
struct phases {
	struct pool *pool;
	_Atomic int taken[PHASES][SHARES_MAX], done[PHASES];
	_Atomic int wrong, calls;
};

static uint32_t phase_shares(uint32_t phase) { return phase % 3 == 2 ? 0 : 1 + phase * 7 % SHARES_MAX; }

static uint32_t open_phase(void *user, int worker, uint32_t phase)
{
	struct phases *p = user;
	(void)worker;

	if (phase > 0 && (uint32_t)p->done[phase - 1] != phase_shares(phase - 1))
		p->wrong++;
	return phase_shares(phase);
}

static void do_share(void *user, int worker, uint32_t phase, uint32_t share)
{
	struct phases *p = user;
	bool before = phase == 0 || (uint32_t)p->done[phase - 1] == phase_shares(phase - 1);

	if (!before || worker < 0 || worker >= pool_threads(p->pool) || share >= phase_shares(phase) ||
	    p->taken[phase][share]++)
		p->wrong++;
	p->done[phase]++;
}

static void count_call(void *user, int worker, int workers)
{
	struct phases *p = user;

	p->wrong += worker < 0 || worker >= workers || workers != pool_threads(p->pool);
	p->calls++;
}

static void check_stages(int threads, int times)
{
	struct error e = { 0 };
	struct phases *p = test_calloc(1, sizeof *p);

	p->pool = pool_open(threads, &e);
	assert_non_null(p->pool);
	for (int i = 0; i < times; i++) {
		memset(p->taken, 0, sizeof p->taken);
		memset(p->done, 0, sizeof p->done);
		pool_work(p->pool,
		          &(struct pool_work){ .stages = PHASES, .open = open_phase, .share = do_share, .user = p });
		for (uint32_t phase = 0; phase < PHASES; phase++)
			assert_int_equal(p->done[phase], phase_shares(phase));
		pool_run(p->pool, count_call, p);
	}
	assert_int_equal(p->wrong, 0);
	assert_int_equal(p->calls, times * threads);
	pool_close(p->pool);
	test_free(p);
}

static void test_pool(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 9; threads += 2)
		check_stages(threads, 10);
	struct error e = { 0 };
	assert_null(pool_open(0, &e));
	assert_int_equal(e.code, ERROR_ARGUMENT);
	assert_true(system_default_threads() >= 1);
	assert_true(system_available_memory() > 1 << 20);
}

/* The one core that all threads are to share; false: the system does not let us. */
static bool stay_on_one_core(cpu_set_t *old)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof *old, old) != 0)
		return false;
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, old)) {
			CPU_SET(i, &one);
			return sched_setaffinity(0, sizeof one, &one) == 0;
		}
	return false;
}

static void test_pool_one_core(void **state)
{
	cpu_set_t old;
	(void)state;

	if (!stay_on_one_core(&old))
		skip();
	check_stages(16, 50);
	assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
}

/* One worker holds the only share of a stage until the other sleeps; the system says whether a thread does. */
struct holding {
	struct pool *pool;
	_Atomic pid_t holder, waiter;
	_Atomic bool slept;
};

static bool thread_sleeps(pid_t id)
{
	char path[64], state = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
	FILE *f = fopen(path, "r");
	bool ok = f && fscanf(f, "%*d %*s %c", &state) == 1;
	if (f)
		fclose(f);
	return ok && state == 'S';
}

static uint32_t open_holding(void *user, int worker, uint32_t phase)
{
	(void)user, (void)worker;
	return phase == 0 ? 2 : 1;
}

static void hold(void *user, int worker, uint32_t phase, uint32_t share)
{
	struct holding *h = user;
	pid_t self = (pid_t)syscall(SYS_gettid);
	(void)worker, (void)share;

	if (phase == 0) { /* each worker has one of the two: neither goes on before both have come */
		pid_t nobody = 0;
		if (!atomic_compare_exchange_strong(&h->holder, &nobody, self))
			h->waiter = self;
		while (!h->waiter)
			sched_yield();
		return;
	}
	pid_t other = self == h->holder ? h->waiter : h->holder;
	for (int i = 0; i < 10000 && !h->slept; i++) {
		h->slept = thread_sleeps(other);
		usleep(1000);
	}
}

static void test_pool_sleeps(void **state)
{
	struct error e = { 0 };
	struct holding h = { .pool = pool_open(2, &e) };
	(void)state;

	assert_non_null(h.pool);
	uint64_t before = pool_sleeps(h.pool);
	pool_work(h.pool, &(struct pool_work){ .stages = 2, .open = open_holding, .share = hold, .user = &h });
	assert_true(h.slept);
	assert_true(pool_sleeps(h.pool) > before);
	pool_close(h.pool);
}

/* Of two workers, the second is held up in the first share of its run until the first has done all others: its own run
 * from first to last, then the other's from the end. */
enum { RUN = 4 };
struct held {
	_Atomic bool begun;
	_Atomic uint32_t done;
	uint32_t order[2 * RUN];
};

static uint32_t open_two_runs(void *user, int worker, uint32_t phase)
{
	(void)user, (void)worker, (void)phase;
	return 2 * RUN;
}

static void note_order(void *user, int worker, uint32_t phase, uint32_t share)
{
	struct held *h = user;
	(void)worker, (void)phase;

	if (share == RUN) {
		h->begun = true;
		while (h->done < 2 * RUN - 1)
			sched_yield();
	}
	while (!h->begun)
		sched_yield();
	h->order[h->done++] = share;
}

static void test_pool_runs(void **state)
{
	static const uint32_t order[2 * RUN] = { 0, 1, 2, 3, 7, 6, 5, 4 };
	struct error e = { 0 };
	struct held h = { .begun = false };
	struct pool *p = pool_open(2, &e);
	(void)state;

	assert_non_null(p);
	pool_work(p, &(struct pool_work){ .stages = 1, .open = open_two_runs, .share = note_order, .user = &h });
	assert_memory_equal(h.order, order, sizeof order);
	pool_close(p);
	for (uint32_t workers = 1; workers < 9; workers++)
		for (uint32_t n = 0; n < 40; n++) {
			assert_int_equal(pool_run_begin(n, 0, workers), 0);
			assert_int_equal(pool_run_begin(n, workers, workers), n);
			for (uint32_t i = 0; i < workers; i++)
				assert_in_range(pool_run_begin(n, i + 1, workers) - pool_run_begin(n, i, workers),
				                n / workers, (n + workers - 1) / workers);
		}
}

/* Waits that looking does not shorten get shorter looks, and end all the same. The word changes only when the one who
 * waits for it sleeps. */
struct changing {
	_Atomic uint32_t word, sleepers, round;
};

enum { ROUNDS = 100 };

static void *change_word(void *arg)
{
	struct changing *c = arg;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		while (c->round != i || !c->sleepers)
			usleep(10);
		atomic_store(&c->word, i);
		wait_wake(&c->word, &c->sleepers);
	}
	return NULL;
}

static void test_wait(void **state)
{
	struct changing c = { 0 };
	struct wait_habit habit = { 0 };
	pthread_t other;
	(void)state;

	assert_int_equal(pthread_create(&other, NULL, change_word, &c), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		c.round = i + 1;
		wait_while(&c.word, &c.sleepers, i, &habit);
		assert_int_equal(c.word, i + 1);
	}
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(habit.sleeps, ROUNDS);
	assert_true(habit.failed > 0);
	wait_while(&c.word, &c.sleepers, 0, &habit); /* changed long ago */
	assert_int_equal(habit.sleeps, ROUNDS);
	assert_int_equal(habit.failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),        cmocka_unit_test(test_pool_one_core),
		cmocka_unit_test(test_pool_sleeps), cmocka_unit_test(test_pool_runs),
		cmocka_unit_test(test_wait),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += math_tests();
	return failed;
}
