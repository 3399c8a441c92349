/* bench/texts_main.c - how many texts of given lengths a model embeds in a second.
 *
 * build/bench/texts MODEL [THREADS [DEVICE]]: for some lengths, texts and tokens a second, many at once, and texts a
 * second one by one; and the same for each second of processor time, where other work shares the machine.
 *
 * build/bench/texts --worker MODEL THREADS: each line of its input, "N MIN MAX MS", has it embed N texts at a time,
 * of MIN to MAX tokens, until so many milliseconds are over; it answers "ok", how often it did, and the nanoseconds
 * of wall and of processor time. bench/texts_compare.mjs asks so. bench/make_encoder.py writes models of usual shapes
 * with weights by chance.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/jitrun_texts.h"

enum { TEXTS = 64, TOKENS_MAX = 512, ROUNDS = 5 };
static const double enough = 2; /* seconds of all rounds */

static int32_t ids[TEXTS][TOKENS_MAX];

struct times {
	double wall, cpu;
};

struct embedder {
	jit_session *s;
	jit_embedding_text texts[TEXTS];
	float *out;
	size_t n, width;
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct times now(void) { return (struct times){ seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID) }; }

static struct times since(struct times t)
{
	const struct times n = now();

	return (struct times){ n.wall - t.wall, n.cpu - t.cpu };
}

/* n texts of lengths that are spread evenly, the order mixed; returns all their tokens. */
static size_t take_lengths(struct embedder *e, size_t n, size_t min, size_t max)
{
	size_t all = 0;

	e->n = n;
	for (size_t i = 0; i < n; i++) {
		const size_t tokens = min + (i * 37 % n) * (max - min) / (n > 1 ? n - 1 : 1);
		e->texts[i] = (jit_embedding_text){ .ids = ids[i], .n = tokens };
		all += tokens;
	}
	return all;
}

static bool embed_all(const struct embedder *e, size_t at_once, jit_error *err)
{
	for (size_t i = 0; i < e->n; i += at_once)
		if (jit_session_embed_texts(e->s, e->texts + i, at_once, NULL, e->out, at_once * e->width, err) !=
		    JIT_OK)
			return false;
	return true;
}

/* For all texts, the least of some rounds; < 0: it failed. */
static struct times time_of(const struct embedder *e, size_t at_once, jit_error *err)
{
	struct times min = { -1, -1 };
	const struct times begun = now();

	for (int r = 0; r < ROUNDS && (r == 0 || since(begun).wall < enough); r++) {
		const struct times start = now();
		if (!embed_all(e, at_once, err))
			return (struct times){ -1, -1 };
		const struct times took = since(start);
		min.wall = r == 0 || took.wall < min.wall ? took.wall : min.wall;
		min.cpu = r == 0 || took.cpu < min.cpu ? took.cpu : min.cpu;
	}
	return min;
}

static bool measure(struct embedder *e, size_t min, size_t max, jit_error *err)
{
	enum { N = 32 };
	const size_t all = take_lengths(e, N, min, max);
	const struct times together = time_of(e, N, err), alone = time_of(e, 1, err);
	char name[48];

	if (together.wall < 0 || alone.wall < 0)
		return false;
	snprintf(name, sizeof name, min == max ? "%zu" : "%zu to %zu", min, max);
	printf("%-10s  %10.1f  %10.0f  %10.1f  %10.1f  %10.0f  %10.1f\n", name, N / together.wall,
	       (double)all / together.wall, N / alone.wall, N / together.cpu, (double)all / together.cpu,
	       N / alone.cpu);
	fflush(stdout);
	return true;
}

static bool measure_all(struct embedder *e, jit_error *err)
{
	static const size_t lengths[][2] = { { 16, 16 },   { 64, 64 },   { 128, 128 },
		                             { 256, 256 }, { 512, 512 }, { 1, 128 } };
	bool ok = true;

	printf("%-10s  %10s  %10s  %10s  %10s  %10s  %10s\n", "tokens", "texts/s", "tokens/s", "alone/s", "texts/cpu",
	       "tokens/cpu", "alone/cpu");
	for (size_t i = 0; ok && i < sizeof lengths / sizeof *lengths; i++)
		ok = measure(e, lengths[i][0], lengths[i][1], err);
	return ok;
}

static bool work(struct embedder *e, jit_error *err)
{
	size_t n, min, max;
	double ms;

	while (scanf("%zu %zu %zu %lf", &n, &min, &max, &ms) == 4) {
		if (!n || n > TEXTS || !min || min > max || max > TOKENS_MAX) {
			printf("no: 1 to %d texts of 1 to %d tokens\n", TEXTS, TOKENS_MAX);
			return true;
		}
		uint64_t runs = 0;
		take_lengths(e, n, min, max);
		const struct times start = now();
		do {
			if (!embed_all(e, n, err))
				return false;
			runs++;
		} while (since(start).wall < ms / 1e3);
		const struct times took = since(start);
		printf("ok %" PRIu64 " %.0f %.0f\n", runs, took.wall * 1e9, took.cpu * 1e9);
		fflush(stdout);
	}
	return true;
}

int main(int argc, char **argv)
{
	const bool worker = argc > 1 && strcmp(argv[1], "--worker") == 0;
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	struct embedder e = { 0 };

	argc -= worker;
	argv += worker;
	if (argc < 2) {
		fprintf(stderr, "usage: texts [--worker] MODEL [THREADS [DEVICE]]\n");
		return 2;
	}
	jit_model *m = jit_model_open(argv[1], &JIT_MODEL_OPTIONS(.device = argc > 3 ? argv[3] : NULL), &err);
	e.s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.threads = argc > 2 ? atoi(argv[2]) : 0), &err) : NULL;
	bool ok = e.s && jit_model_get_info(m, &info, &err) == JIT_OK;

	e.width = (size_t)info.embedding;
	e.out = calloc(TEXTS, (e.width + 1) * sizeof *e.out);
	for (size_t i = 0; ok && i < (size_t)TEXTS * TOKENS_MAX; i++)
		ids[i / TOKENS_MAX][i % TOKENS_MAX] = (int32_t)(i * 7919 % (size_t)info.vocab);
	ok = ok && e.out && (worker ? work(&e, &err) : measure_all(&e, &err));
	if (!ok)
		fprintf(stderr, "texts: %s\n", err.message);
	free(e.out);
	jit_session_close(e.s);
	jit_model_close(m);
	return !ok;
}
