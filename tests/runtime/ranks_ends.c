/* tests/runtime/ranks_ends.c - a rank that dies or stops ends all of them, with a sentence that names it. */
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

#include "include/jitrun_cards.h"
#include "runtime/model/model.h"
#include "runtime/ranks/ranks.h"
#include "tests/runtime/carrier_tests.h"
#include "tests/runtime/ranks_tests.h"
#include "tests/support/shared.h"

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The processes that are children of this one, in the order in which they were made. Returns how many. */
static int children(int pid[16])
{
	DIR *d = opendir("/proc");
	int n = 0;

	for (struct dirent *e; d && n < 16 && (e = readdir(d));) {
		char path[300], state;
		int parent = 0;
		snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		FILE *f = *e->d_name >= '1' && *e->d_name <= '9' ? fopen(path, "r") : NULL;
		if (f && fscanf(f, "%d (%*[^)]) %c %d", &pid[n], &state, &parent) == 3 && parent == getpid())
			n++;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	qsort(pid, (size_t)n, sizeof *pid, by_number);
	return n;
}

static void end_rank(int signal_number, unsigned rank, const char *split, const char *why)
{
	char path[1024], name[32];
	int pid[16];
	jit_error err = { 0 };
	jit_model *m = must_open(tale(path), "fork:3", split);
	jit_session *s = must_session(m, JIT_SPECULATE_OFF);
	const int32_t id = 1;

	must(jit_session_feed(s, (const int32_t[]){ 1, 2, 3 }, 3, &err), &err);
	assert_int_equal(children(pid), 2);
	kill(pid[rank - 1], signal_number);
	const double begin = carrier_test_seconds();
	while (jit_session_feed(s, &id, 1, &err) == JIT_OK && carrier_test_seconds() - begin < 20)
		jit_session_rewind(s, 3, &err);
	const double took = carrier_test_seconds() - begin;
	snprintf(name, sizeof name, "rank %u ", rank);
	if (!strstr(err.message, name) || !strstr(err.message, why))
		fail_msg("\"%s\" names not %sor not \"%s\"", err.message, name, why);
	printf("# after %.1f s: %s\n", took, err.message);
	if (took > 6) /* two seconds where cores are free */
		fail_msg("%s: it took %.1f s", err.message, took);
	assert_int_not_equal(jit_model_alive(m, &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	assert_int_equal(children(pid), 0);
}

void test_ranks_killed(void **state)
{
	end_rank(SIGKILL, 1, NULL, "was killed by signal 9");
	end_rank(SIGKILL, 2, "rows", "was killed by signal 9");
	unsetenv("JITRUN_RANK_PATIENCE");
	end_rank(SIGSTOP, 2, NULL, "has given no sign of life for 1.5 s");
	end_rank(SIGSTOP, 1, "rows", "has given no sign of life for 1.5 s");
	setenv("JITRUN_RANK_PATIENCE", "20", 1);
}

/* ---- at each exchange */

static unsigned exchange, kill_at;
static int victim;
static const struct carrier_driver *usual;

static void kill_if_now(void)
{
	if (exchange++ == kill_at)
		kill(victim, SIGKILL);
}

static bool gather_or_kill(struct carrier *c, void *all, const size_t *begin, struct error *err)
{
	kill_if_now();
	return usual->gather_begin(c, all, begin, err);
}

static bool send_or_kill(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err)
{
	kill_if_now();
	return usual->send(c, to, bytes, n, err);
}

static bool receive_or_kill(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err)
{
	kill_if_now();
	return usual->receive(c, from, bytes, n, err);
}

static bool broadcast_or_kill(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err)
{
	kill_if_now();
	return usual->broadcast(c, root, bytes, n, err);
}

/* Before the exchange of that number, as rank 0 has them. Whether a pass has as many. */
static bool kill_before(const char *split, unsigned number, unsigned rank)
{
	char path[1024], name[32];
	int pid[16];
	jit_error err = { 0 };
	jit_model *m = must_open(tale(path), "fork:3", split);
	jit_session *s = must_session(m, JIT_SPECULATE_OFF);
	struct carrier_driver killing = *m->ranks->carrier->driver;

	must(jit_session_feed(s, (const int32_t[]){ 1, 2, 3 }, 3, &err), &err);
	assert_int_equal(children(pid), 2);
	victim = pid[rank - 1];
	usual = m->ranks->carrier->driver;
	killing.gather_begin = gather_or_kill;
	killing.send = send_or_kill;
	killing.receive = receive_or_kill;
	killing.broadcast = broadcast_or_kill;
	exchange = 0;
	kill_at = number;
	m->ranks->carrier->driver = &killing;
	const double begin = carrier_test_seconds();
	/* What was there when the rank was killed may end the first pass well, and never the second. */
	const bool first = jit_session_feed(s, &(int32_t){ 4 }, 1, &err) == JIT_OK, killed = exchange > number;
	const bool second = first && jit_session_feed(s, &(int32_t){ 5 }, 1, &err) == JIT_OK;
	const double took = carrier_test_seconds() - begin;
	snprintf(name, sizeof name, "rank %u ", rank);
	if (killed && (second || took > 6 || !strstr(err.message, name) || !strstr(err.message, "killed by signal 9")))
		fail_msg("%s, rank %u, exchange %u: after %.1f s \"%s\"", split, rank, number, took, err.message);
	m->ranks->carrier->driver = usual;
	jit_session_close(s);
	jit_model_close(m);
	assert_int_equal(children(pid), 0);
	return killed;
}

void test_ranks_killed_anywhere(void **state)
{
	static const char *const split[] = { "pipeline", "rows" };
	const unsigned step = test_quick() ? 13 : 1;

	for (unsigned i = 0; i < 2; i++) {
		unsigned n = 0;
		while (kill_before(split[i], n, 1 + n % 2))
			n += step;
		printf("# %s: killed before each of %u exchanges, %u apart\n", split[i], n, step);
		assert_true(n > (i ? 25u : 0u));
	}
}
