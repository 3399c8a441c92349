/* tests/runtime/carrier_tests.c - a carrier delivers what was sent, whatever the sizes, beside plain copies; and
 * how it ends. */
#include "tests/runtime/carrier_tests.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/ranks/carrier.h"
#include "tests/support/shared.h"

enum { RANKS = 3, BYTES_MAX = 3 << 20 /* more than a ring has room for */ };

double carrier_test_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The same numbers on every rank. */
static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static size_t draw_size(uint64_t *state)
{
	const uint64_t kind = draw(state) % 4;

	return kind == 0 ? draw(state) % 3 : draw(state) % (kind == 1 ? 100 : kind == 2 ? 70000 : BYTES_MAX);
}

static void fill(uint8_t *to, size_t n, uint64_t number)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)((i + number) * 2654435761u >> 13);
}

/* Children say what they found and end; only rank 0 goes on with the tests. */
static void check(struct carrier *c, bool ok, const char *what)
{
	if (ok)
		return;
	if (c->rank == 0)
		fail_msg("rank 0: %s", what);
	carrier_abort(c, what);
	_exit(1);
}

static struct carrier *open_ranks(const char *name)
{
	struct error err = { 0 };
	struct carrier *c = carrier_open(name, &err);

	if (!c)
		fail_msg("%s", err.text);
	return c;
}

static void close_ranks(struct carrier *c)
{
	const unsigned rank = c->rank;

	carrier_close(c);
	if (rank)
		_exit(0);
}

/* Around the ring, and from a root to all. */
void test_carrier_bytes(void **state)
{
	struct carrier *c = open_ranks("fork:3");
	uint8_t *bytes = malloc(BYTES_MAX), *want = malloc(BYTES_MAX);
	struct error err = { 0 };
	uint64_t random = 7;

	assert_int_equal(c->size, RANKS);
	assert_true(c->own && c->here == RANKS);
	for (unsigned i = 0; i < (test_quick() ? 40 : 400); i++) {
		const size_t n = draw_size(&random);
		const unsigned from = (unsigned)(draw(&random) % RANKS), to = (from + 1) % RANKS;
		fill(want, n, i);
		memcpy(bytes, want, n);
		if (c->rank == from)
			check(c, carrier_send(c, to, bytes, n, &err), err.text);
		if (c->rank == to) {
			memset(bytes, 0x5a, n);
			check(c, carrier_receive(c, from, bytes, n, &err), err.text);
		}
		check(c, memcmp(bytes, want, n) == 0, "other bytes than were sent");
		if (c->rank != from)
			memset(bytes, 0x5a, n);
		check(c, carrier_broadcast(c, from, bytes, n, &err), err.text);
		check(c, memcmp(bytes, want, n) == 0, "other bytes than the root's");
	}
	free(bytes);
	free(want);
	close_ranks(c);
}

/* Pieces of any sizes, none among them. */
void test_carrier_gathers(void **state)
{
	struct carrier *c = open_ranks("fork:3");
	uint8_t *all = malloc(RANKS * (size_t)BYTES_MAX), *want = malloc(RANKS * (size_t)BYTES_MAX);
	struct error err = { 0 };
	uint64_t random = 11;

	for (unsigned i = 0; i < (test_quick() ? 30 : 300); i++) {
		size_t begin[RANKS + 1] = { 0 };
		for (unsigned r = 0; r < RANKS; r++)
			begin[r + 1] = begin[r] + draw_size(&random);
		fill(want, begin[RANKS], i);
		memset(all, 0x5a, begin[RANKS]);
		memcpy(all + begin[c->rank], want + begin[c->rank], begin[c->rank + 1] - begin[c->rank]);
		check(c, carrier_gather_begin(c, all, begin, &err) && carrier_gather_wait(c, &err), err.text);
		check(c, memcmp(all, want, begin[RANKS]) == 0, "other bytes than were gathered");
	}
	free(all);
	free(want);
	close_ranks(c);
}

/* What rank 0 hears when another rank does this to itself. */
static void hears(void (*end)(struct carrier *c), const char *why, double limit)
{
	struct carrier *c = open_ranks("fork:3");
	struct error err = { 0 };
	uint8_t byte = 0;

	if (c->rank == 2)
		end(c);
	const double begin = carrier_test_seconds();
	const bool got = carrier_receive(c, c->rank == 1 ? 2 : 1, &byte, 1, &err); /* nobody sends */
	if (c->rank == 1)
		_exit(got);
	const double took = carrier_test_seconds() - begin;
	assert_false(got);
	if (!strstr(err.text, why) || !strstr(err.text, "rank 2"))
		fail_msg("\"%s\" does not say \"%s\" of rank 2", err.text, why);
	if (took > limit)
		fail_msg("%s: after %.1f s", err.text, took);
	err = (struct error){ 0 };
	assert_false(carrier_alive(c, &err));
	assert_non_null(strstr(err.text, "rank 2"));
	carrier_close(c);
}

static void gives_up(struct carrier *c)
{
	carrier_abort(c, "the file is not there");
	_exit(1);
}
static void leaves(struct carrier *c)
{
	(void)c;
	_exit(3);
}
static void is_killed(struct carrier *c)
{
	(void)c;
	raise(SIGKILL);
}
static void stops(struct carrier *c)
{
	(void)c;
	usleep(200000); /* it has shown that it lives */
	raise(SIGSTOP);
	_exit(0);
}

void test_carrier_ends(void **state)
{
	const double limit = 6; /* two seconds where cores are free */
	struct error err = { 0 };

	hears(gives_up, "rank 2: the file is not there", limit);
	hears(leaves, "has ended", limit);
	hears(is_killed, "was killed by signal 9", limit);
	setenv("JITRUN_RANK_PATIENCE", "0.5", 1);
	hears(stops, "no sign of life for 0.5 s", limit);
	setenv("JITRUN_RANK_PATIENCE", "0.1", 1);
	assert_null(carrier_open("fork:2", &err));
	assert_non_null(strstr(err.text, "JITRUN_RANK_PATIENCE is \"0.1\", expected seconds from 0.2"));
	setenv("JITRUN_RANK_PATIENCE", "20", 1);
}
