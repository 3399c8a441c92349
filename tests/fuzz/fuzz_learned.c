/* tests/fuzz/fuzz_learned.c - arbitrary bytes as a saved state of an optimiser and of a training. Each input is tried
 * as it is, and once more with checksums that fit. What is accepted goes on; what is refused is so with a sentence, and
 * changes nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_optimise.h"
#include "tests/fuzz/fuzz.h"
#include "train/train.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

static void take_file(const char *path, void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static uint8_t bytes[1 << 16];
	FILE *f = fopen(path, "rb");

	need(f != NULL);
	const size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	remove(path);
	take(user, bytes, n);
}

/* ---- optimisers */

enum { SUM_BYTES = 4 + 16 + 1, NUMBERS_MAX = 1 << 18 };

/* The last line, over the text before it. */
static void seal_text(uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;
	char line[SUM_BYTES + 1];

	for (size_t i = 0; i < n - SUM_BYTES; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	snprintf(line, sizeof line, "sum %016" PRIx64 "\n", h);
	memcpy(p + n - SUM_BYTES, line, SUM_BYTES);
}

static int ellipsoid(void *user, const double *x, size_t count, double *values)
{
	const jit_optimise_state *s = user;

	for (size_t i = 0; i < count * (size_t)s->objectives; i++) {
		values[i] = 0;
		for (int k = 0; k < s->dimension; k++) {
			const double at = x[i / (size_t)s->objectives * (size_t)s->dimension + (size_t)k];
			values[i] += (1 + k) * (at - (double)(i % (size_t)s->objectives)) * at;
		}
	}
	return 0;
}

static void go_on(jit_optimiser *o)
{
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	jit_error err = { 0 };

	need(jit_optimiser_get_state(o, &s, &err) == JIT_OK && s.dimension > 0 && s.objectives > 0);
	if (jit_optimiser_count(o) > NUMBERS_MAX / ((size_t)s.dimension + (size_t)s.objectives))
		return;
	if (jit_optimiser_run(o, ellipsoid, &s, s.evaluations + 2 * jit_optimiser_count(o), NULL, &err) != JIT_OK)
		need(err.message[0]);
}

static void load_optimiser(const uint8_t *p, size_t n)
{
	jit_error err = { 0 };
	jit_optimiser *o = jit_optimiser_load(fuzz_file(0, "optimiser", p, n), &err);

	need(o ? !err.code : err.message[0] != 0);
	if (o)
		go_on(o);
	jit_optimiser_close(o);
}

void fuzz_optimiser(const uint8_t *p, size_t n)
{
	load_optimiser(p, n);
	if (n <= SUM_BYTES)
		return;
	uint8_t *sealed = malloc(n);
	need(sealed != NULL);
	memcpy(sealed, p, n);
	seal_text(sealed, n);
	load_optimiser(sealed, n);
	free(sealed);
}

static void optimiser_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const double start[] = { 1, -2, 0.5 }, low[] = { -3, -3, -3 }, high[] = { 3, 3, 3 };
	const jit_optimise_options each[] = {
		JIT_OPTIMISE_OPTIONS(.dimension = 3, .start = start, .sigma = 1, .restarts = JIT_RESTARTS_BIPOP),
		JIT_OPTIMISE_OPTIONS(.dimension = 3, .start = start, .sigma = 0.5, .lower = low, .upper = high,
		                     .bounds = JIT_BOUNDS_PENALTY, .separable = 1),
		JIT_OPTIMISE_OPTIONS(.method = JIT_OPTIMISE_NSGA2, .dimension = 2, .population = 8, .lower = low,
		                     .upper = high),
		JIT_OPTIMISE_OPTIONS(.method = JIT_OPTIMISE_NSGA3, .dimension = 2, .objectives = 3, .divisions = 2,
		                     .lower = low, .upper = high),
		JIT_OPTIMISE_OPTIONS(.method = JIT_OPTIMISE_MOEAD, .dimension = 2, .divisions = 6, .lower = low,
		                     .upper = high)
	};

	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		jit_error err = { 0 };
		jit_optimiser *o = jit_optimiser_open(&each[i], &err);
		char path[300];
		need(o != NULL);
		go_on(o);
		snprintf(path, sizeof path, "%s/saved", fuzz_directory());
		need(jit_optimiser_save(o, path, &err) == JIT_OK);
		jit_optimiser_close(o);
		take_file(path, take, user);
	}
}

/* ---- trainings */

enum { LINE = sizeof "jitrun training 1\n" - 1, HEAD = LINE + 24, A = 3, B = 5, ALL = 3 * (A + B) };

struct learning {
	jit_train t;
	struct net net;
	struct net_tensor tensor[2];
	char name[2][2];
	float number[2][3][B];
};

static void begin(struct learning *l)
{
	*l = (struct learning){ .t = { .o = { .context = 8, .rank = 2 }, .net = &l->net },
		                .net = { .tensor = l->tensor, .tensors = 2 },
		                .name = { "a", "b" } };
	for (int i = 0; i < 2; i++) {
		float(*x)[B] = l->number[i];
		l->tensor[i] = (struct net_tensor){
			.name = l->name[i], .n = i ? B : A, .value = x[0], .mean = x[1], .square = x[2]
		};
		for (int k = 0; k < 3 * B; k++)
			x[k / B][k % B] = (float)(1 + i + k);
	}
}

static uint64_t mixed(uint64_t sum, const uint8_t *p, size_t n)
{
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, sizeof word);
		sum = (sum ^ word) * 0x9E3779B97F4A7C15;
		sum ^= sum >> 29;
	}
	for (; n; n--, p++)
		sum = ((sum ^ *p) * 0x9E3779B97F4A7C15) ^ (sum >> 32);
	return sum;
}

static void read_state(const uint8_t *p, size_t n, int sound)
{
	struct learning l, was;
	struct error err = { 0 };

	begin(&l);
	begin(&was);
	if (train_read_state(&l.t, fuzz_file(0, "training", p, n), &err)) {
		const uint8_t *at = p + HEAD;
		for (int i = 0; i < 2; i++)
			for (int k = 0; k < 3; k++, at += l.tensor[i].n * sizeof(float))
				need(memcmp(l.number[i][k], at, l.tensor[i].n * sizeof(float)) == 0);
		need(memcmp(&l.t.step, p + LINE + 8, 8) == 0);
		return;
	}
	need(err.text[0] && !sound);
	need(memcmp(l.number, was.number, sizeof l.number) == 0 && l.t.step == 0 && l.t.fed == 0);
}

/* The state of a training of one step, at `out`. */
static void saved(uint8_t out[HEAD + ALL * 4 + 8])
{
	struct learning l;
	struct error err = { 0 };
	char path[300];

	begin(&l);
	l.t.step = 1;
	snprintf(path, sizeof path, "%s/saved", fuzz_directory());
	need(train_write_state(&l.t, path, &err));
	FILE *f = fopen(path, "rb");
	need(f && fread(out, 1, HEAD + ALL * 4 + 8, f) == HEAD + ALL * 4 + 8 && fgetc(f) == EOF);
	fclose(f);
	remove(path);
}

void fuzz_training(const uint8_t *p, size_t n)
{
	static uint8_t own[HEAD + ALL * 4 + 8], sealed[sizeof own];

	if (!own[0])
		saved(own);
	read_state(p, n, 0);
	if (n != sizeof sealed)
		return;
	memcpy(sealed, p, n);
	memcpy(sealed, own, LINE + 8); /* the line, and what says which training it is */
	uint64_t sum = mixed(0, sealed + LINE, 24);
	const uint8_t *at = sealed + HEAD;
	for (int i = 0; i < 6; at += (i < 3 ? A : B) * 4, i++)
		sum = mixed(sum, at, (i < 3 ? A : B) * 4);
	memcpy(sealed + HEAD + ALL * 4, &sum, sizeof sum);
	read_state(sealed, n, 1);
}

void fuzz_learned_seeds(enum fuzz_number target, void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	uint8_t state[HEAD + ALL * 4 + 8];

	if (target == FUZZ_optimiser) {
		optimiser_seeds(take, user);
		return;
	}
	saved(state);
	take(user, state, sizeof state);
	take(user, state, sizeof state - 1);
}
