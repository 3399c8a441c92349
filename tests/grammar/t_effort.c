/* tests/grammar/t_effort.c - grammars that ask for any amount of work, with a vocabulary of the usual size: each comes
 * to an end with a sentence, or with masks that took no more than their account. And ordinary ones take as much as they
 * did. Steps are counted; the processor time and memory that they took are printed, for people to look at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "grammar/machine/effort.h"
#include "grammar/grammar.h"
#include "tests/grammar/bombs.h"
#include "tests/grammar/large_vocabulary.h"
#include "tests/support/shared.h"

static uint64_t seed = 88172645463325252u;
static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

static uint32_t named(void *user, const char *text, size_t n)
{
	(void)user;
	(void)text;
	(void)n;
	return UINT32_MAX;
}
static bool takes(void *user, uint32_t id)
{
	(void)user;
	return id >= 256;
}
static const struct machine_tokens tokens = { NULL, LARGE_TOKENS, named, takes };

static uint32_t allowed_from(const uint32_t *bits, uint32_t id)
{
	for (uint32_t i = 0; i < LARGE_TOKENS; i++, id = (id + 1) % LARGE_TOKENS)
		if (bits[id / 32] >> id % 32 & 1)
			return id;
	return LARGE_TOKENS;
}

struct outcome_of_walk {
	unsigned masks;
	uint64_t opening, max;   /* steps of one token */
	double seconds, longest; /* of the processor */
	struct error err;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Random tokens, small ones first, as far as it goes. */
static struct outcome_of_walk walk(const struct bomb *b, unsigned length)
{
	struct outcome_of_walk w = { 0 };
	const double from = now();
	uint64_t steps = EFFORT_TO_OPEN;
	struct grammar *g =
		grammar_open_within(large_vocabulary(), b->kind, b->text, strlen(b->text), &tokens, &steps, &w.err);

	w.opening = EFFORT_TO_OPEN - steps;
	for (unsigned i = 0; g && i < length && w.err.code == ERROR_NONE; i++) {
		bool ends;
		const double began = now();
		const uint64_t had = grammar_left(g);
		const uint32_t *bits = grammar_allowed(g, &ends, &w.err);
		const uint64_t took = had - grammar_left(g);
		w.max = took > w.max ? took : w.max;
		w.longest = now() - began > w.longest ? now() - began : w.longest;
		const uint32_t id = bits ? allowed_from(bits, draw(draw(2) ? 256 : LARGE_TOKENS)) : LARGE_TOKENS;
		w.masks += bits != NULL;
		if (id == LARGE_TOKENS)
			break;
		struct grammar_token t = { .id = id };
		t.text = large_token(id, &t.n);
		if (!grammar_take(g, &t, &w.err))
			break;
	}
	grammar_close(g);
	w.seconds = now() - from;
	return w;
}

enum { MEMORY_MAX = 256 << 10 }; /* in KiB, with what malloc keeps for itself */

/* Each in a process of its own, so that its memory shows. */
static bool walk_apart(const struct bomb *b, unsigned length)
{
	struct rusage before, after;
	int status;

	fflush(stdout);
	large_vocabulary();
	getrusage(RUSAGE_SELF, &before);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct outcome_of_walk w = walk(b, length);
		getrusage(RUSAGE_SELF, &after);
		printf("# %-24s %8zu bytes: %3u masks, %.2f s, a mask %.3f s, %.1f million steps, a mask %.1f; %ld MB: "
		       "%s\n",
		       b->name, strlen(b->text), w.masks, w.seconds, w.longest, (double)w.opening / 1e6,
		       (double)w.max / 1e6, (after.ru_maxrss - before.ru_maxrss) / 1024,
		       w.err.code == ERROR_NONE ? "goes on" : w.err.text);
		fflush(stdout);
		if (!SANITIZED && after.ru_maxrss - before.ru_maxrss > MEMORY_MAX)
			_exit(2);
		/* No out of memory, no token that is taken wrongly; only what says how it is. */
		const bool ok = w.err.code == ERROR_NONE || w.err.code == ERROR_UNSUPPORTED ||
		                (w.err.code != ERROR_MEMORY && w.masks == 0);
		_exit(ok && w.opening <= EFFORT_TO_OPEN && w.max <= EFFORT_TO_OPEN ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		printf("# %s: status %x\n", b->name, (unsigned)status);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_bombs(void **state)
{
	unsigned wrong = 0;
	(void)state;

	for (size_t i = 0;; i++) {
		struct bomb b = bomb_make(i);
		if (!b.name)
			break;
		wrong += !walk_apart(&b, test_quick() ? 12 : 60);
		free(b.text);
	}
	assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bombs) };

	if (argc == 2 && strchr(argv[1], '/')) { /* a schema of a file */
		size_t n;
		struct bomb b = { argv[1], GRAMMAR_SCHEMA, NULL };
		char *text = (char *)file_bytes(argv[1], &n);
		text[n] = 0;
		b.text = text;
		walk_apart(&b, 60);
		free(text);
		return 0;
	}
	for (size_t i = 0; argc == 2; i++) { /* one of them by its name */
		struct bomb b = bomb_make(i);
		if (!b.name)
			return 1;
		if (strcmp(b.name, argv[1]) == 0) {
			walk_apart(&b, 60);
			return 0;
		}
		free(b.text);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
