#include "eml/levels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eml/kernel_texts.h"

enum { PARTS = 2 * LEVELS_POINTS, BLOCK = PARTS * LEVELS_WIDTH, ROWS = 64, AHEAD = 16 };
static const unsigned rows_of[3] = { ROWS, 8, 1 };

static bool fail(jit_error *err, int code, const char *sentence)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s", sentence);
	return false;
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void levels_point(unsigned point, unsigned variable, double value[2])
{
	/* Euler's constant and Glaisher's, and places near them: numbers that nothing relates to each other */
	static const double at[LEVELS_VARIABLES][LEVELS_POINTS] = {
		{ 0.57721566490153286061, 0.58578643762690495120, 0.56714329040978387300 },
		{ 1.28242712910062263688, 1.29128595049686231600, 1.27323954473516268615 },
	};
	value[0] = at[variable][point];
	value[1] = 0;
}

/* ---- hashes, as levels.jk has them */

static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static uint64_t rotated(uint64_t x, unsigned n) { return x << n | x >> (64 - n); }

static uint64_t mix(uint64_t h, double x)
{
	const uint64_t m = (h ^ bits_of(x)) * UINT64_C(0x9e3779b97f4a7c15);

	return rotated(m, 29);
}

static double grid_of(double re, double im)
{
	const double a = fabs(re), b = fabs(im), high = a > b ? a : b;
	const double usable = !(high < INFINITY) ? 1 : high > 0.0078125 ? high : 0.0078125;
	const uint64_t exponent = bits_of(usable) & UINT64_C(0x7ff0000000000000);
	double power;

	memcpy(&power, &exponent, sizeof power);
	return power * 1572864;
}

/* *other: what it would be rounded to if it lay on the other side of the middle it is close to; else the same. */
static double on_grid(double x, double grid, double *other)
{
	const double r = fabs(x) < INFINITY ? (x + grid) - grid : x, step = grid / 1572864 / 4294967296.0;
	const double left = x - r;

	*other = fabs(left) > step * 0.48 ? r + (left > 0 ? step : -step) : r;
	return r;
}

static uint64_t last(uint64_t h)
{
	uint64_t z = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);

	z ^= z >> 29;
	return z ? z : 1;
}

uint64_t levels_hash(const double value[PARTS], uint64_t *nearby)
{
	uint64_t h = 0, other = 0;
	bool near = false;

	if (nearby)
		*nearby = 0;
	for (unsigned p = 0; p < LEVELS_POINTS; p++) {
		const double re = value[2 * p], im = value[2 * p + 1], grid = grid_of(re, im);
		double re2, im2;
		if (isnan(re) || isnan(im))
			return 0;
		const double r = on_grid(re, grid, &re2), i = on_grid(im, grid, &im2);
		h = mix(mix(h, r), i);
		other = mix(mix(other, re2), im2);
		near |= r != re2 || i != im2;
	}
	if (nearby && near)
		*nearby = last(other);
	return last(h);
}

/* ---- kernels */

static bool open_kernel(struct levels *l, struct levels_kernel *k, const char *name, unsigned rows, jit_error *err)
{
	char constants[160];

	snprintf(constants, sizeof constants, "points=%d width=%d rows=%u cap=%.17g extended=%s", LEVELS_POINTS,
	         LEVELS_WIDTH, rows, l->options.cap, l->options.extended ? "true" : "false");
	k->kernel = jit_kernel_open(l->compute,
	                            &JIT_KERNEL_OPTIONS(.source = (const char *)eml_levels_text, .n = eml_levels_bytes,
	                                                .path = "levels.jk", .kernel = name, .constants = constants),
	                            err);
	k->launch = k->kernel ? jit_launch_open(k->kernel, err) : NULL;
	return k->launch != NULL;
}

static bool set(const struct levels_kernel *k, const char *name, void *memory, size_t bytes, jit_error *err)
{
	return jit_launch_set_memory(k->launch, (size_t)jit_kernel_find(k->kernel, name), memory, bytes, err) == JIT_OK;
}

static bool set_part(const struct levels_kernel *k, const char *name, jit_buffer *b, uint64_t at, jit_error *err)
{
	return jit_launch_set_buffer(k->launch, (size_t)jit_kernel_find(k->kernel, name), b, at, err) == JIT_OK;
}

static bool open_kernels(struct levels *l, jit_error *err)
{
	for (unsigned i = 0; i < 3; i++) {
		if (!open_kernel(l, &l->by_left[i], "by_left", rows_of[i], err) ||
		    !open_kernel(l, &l->by_right[i], "by_right", rows_of[i], err))
			return false;
		const size_t bytes = (size_t)rows_of[i] * LEVELS_WIDTH * sizeof *l->hash;
		if (!set(&l->by_left[i], "h", l->hash, bytes, err) || !set(&l->by_right[i], "h", l->hash, bytes, err))
			return false;
	}
	return open_kernel(l, &l->operands, "operands", 1, err) &&
	       set(&l->operands, "a", l->a, BLOCK * sizeof *l->a, err) &&
	       set(&l->operands, "b", l->b, BLOCK * sizeof *l->b, err);
}

struct levels *levels_open(const struct levels_options *options, jit_error *err)
{
	struct levels *l = calloc(1, sizeof *l);

	if (l) {
		l->options = *options;
		if (l->options.cap == 0)
			l->options.cap = 12;
		l->hash = aligned_alloc(64, sizeof *l->hash * ROWS * LEVELS_WIDTH);
		l->a = aligned_alloc(64, sizeof *l->a * BLOCK);
		l->b = aligned_alloc(64, sizeof *l->b * BLOCK);
	}
	if (!l || !l->hash || !l->a || !l->b) {
		fail(err, JIT_ERROR_MEMORY, "there is no memory for an enumeration");
		levels_close(l);
		return NULL;
	}
	l->compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = options->device, .cache_dir = options->cache,
	                                                   .threads = options->threads, .cancel = options->cancel),
	                              err);
	if (l->compute && open_kernels(l, err))
		return l;
	levels_close(l);
	return NULL;
}

static void close_kernel(struct levels_kernel *k)
{
	jit_launch_close(k->launch);
	jit_kernel_close(k->kernel);
}

void levels_close(struct levels *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < 3; i++) {
		close_kernel(&l->by_left[i]);
		close_kernel(&l->by_right[i]);
	}
	close_kernel(&l->operands);
	for (unsigned i = 0; i < sizeof l->level / sizeof *l->level; i++) {
		struct level *v = &l->level[i];
		jit_buffer_close(v->exp_buffer);
		jit_buffer_close(v->ln_buffer);
		free(v->left);
		free(v->right);
		if (v->owned) {
			free(v->exp_value);
			free(v->ln_value);
		}
	}
	jit_compute_close(l->compute);
	seen_free(&l->seen);
	free(l->hash);
	free(l->a);
	free(l->b);
	free(l);
}

const struct level *levels_owner(const struct levels *l, uint32_t number)
{
	unsigned i = 0;

	while (number >= l->level[i].first + l->level[i].blocks * LEVELS_WIDTH)
		i++;
	return &l->level[i];
}

/* ---- values as operands */

static void take(const struct level *v, bool exp, uint32_t number, double *block, unsigned lane)
{
	const uint32_t at = number - v->first;
	const double *from =
		(exp ? v->exp_value : v->ln_value) + (size_t)(at / LEVELS_WIDTH) * BLOCK + at % LEVELS_WIDTH;

	for (unsigned k = 0; k < PARTS; k++)
		block[k * LEVELS_WIDTH + lane] = from[k * LEVELS_WIDTH];
}

/* What lane `at` of the level is made of. */
static void fill_lane(struct levels *l, const struct level *v, uint32_t at, unsigned lane)
{
	for (unsigned k = 0; k < PARTS; k++) {
		double value[2] = { 1, 0 };
		if (at >= v->count)
			value[0] = value[1] = NAN;
		else if (v == l->level && at > 0)
			levels_point(k / 2, at - 1, value);
		l->a[k * LEVELS_WIDTH + lane] = value[k % 2];
		l->b[k * LEVELS_WIDTH + lane] = 0;
	}
	if (at < v->count && v != l->level) {
		take(levels_owner(l, v->left[at]), true, v->left[at], l->a, lane);
		take(levels_owner(l, v->right[at]), false, v->right[at], l->b, lane);
	}
}

static bool open_values(struct levels *l, jit_buffer **buffer, double **value, const struct level *v, jit_error *err)
{
	/* a block more, as launches over few rows begin inside of one */
	const uint64_t bytes = (uint64_t)(v->blocks + 1) * BLOCK * sizeof **value;

	*buffer = jit_buffer_open(l->compute, bytes, err);
	if (!*buffer)
		return false;
	*value = jit_buffer_memory(*buffer);
	if (!*value && !(*value = malloc(bytes)))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for the values of a level");
	return true;
}

bool levels_operands(struct levels *l, struct level *v, jit_error *err)
{
	if (v->exp_buffer)
		return true;
	if (!open_values(l, &v->exp_buffer, &v->exp_value, v, err))
		return false;
	v->owned = !jit_buffer_memory(v->exp_buffer);
	if (!open_values(l, &v->ln_buffer, &v->ln_value, v, err))
		return false;
	for (uint32_t b = 0; b < v->blocks; b++) {
		const uint64_t at = (uint64_t)b * BLOCK * sizeof(double), bytes = BLOCK * sizeof(double);
		for (unsigned lane = 0; lane < LEVELS_WIDTH; lane++)
			fill_lane(l, v, b * LEVELS_WIDTH + lane, lane);
		if (!set_part(&l->operands, "e", v->exp_buffer, at, err) ||
		    !set_part(&l->operands, "l", v->ln_buffer, at, err) ||
		    jit_launch_run(l->operands.launch, err) != JIT_OK)
			return false;
		if (v->owned && (jit_buffer_read(v->exp_buffer, at, (char *)v->exp_value + at, bytes, err) != JIT_OK ||
		                 jit_buffer_read(v->ln_buffer, at, (char *)v->ln_value + at, bytes, err) != JIT_OK))
			return false;
	}
	return true;
}

/* ---- a level */

static bool add(struct levels *l, struct level *v, uint64_t hash, uint32_t left, uint32_t right)
{
	if (!seen_put(&l->seen, hash, v->first + v->count))
		return true;
	if (!(v->count & (v->count - 1)) && v->count >= 1024) {
		uint32_t *more = realloc(v->left, 2 * (size_t)v->count * sizeof *more);
		v->left = more ? more : v->left;
		uint32_t *right_more = realloc(v->right, 2 * (size_t)v->count * sizeof *more);
		v->right = right_more ? right_more : v->right;
		if (!more || !right_more)
			return false;
	}
	v->left[v->count] = left;
	v->right[v->count] = right;
	v->count++;
	return true;
}

/* A launch's hashes: rows from `row` on, columns from `column` on. */
static bool take_hashes(struct levels *l, struct level *v, uint32_t row, unsigned rows, uint32_t column,
                        unsigned columns, bool by_left, jit_error *err)
{
	if (l->next / 2 > UINT32_MAX / 2 - v->count - ROWS * LEVELS_WIDTH ||
	    !seen_reserve(&l->seen, l->seen.n + (size_t)rows * columns))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for that many values");
	for (unsigned i = 0; i < rows; i++) {
		const uint64_t *h = l->hash + (size_t)i * LEVELS_WIDTH;
		for (unsigned j = 0; j < columns; j++) {
			if (j + AHEAD < columns)
				seen_fetch(&l->seen, h[j + AHEAD]);
			const uint32_t a = by_left ? row + i : column + j, b = by_left ? column + j : row + i;
			if (h[j] && !add(l, v, h[j], a, b))
				return fail(err, JIT_ERROR_MEMORY, "there is no memory for that many values");
		}
	}
	return true;
}

/* Rows of the level with fewer values, from `at` on, with all blocks of the other. */
static bool run_rows(struct levels *l, struct level *v, const struct level *smaller, const struct level *many,
                     bool by_left, uint32_t at, unsigned which, jit_error *err)
{
	const struct levels_kernel *k = by_left ? &l->by_left[which] : &l->by_right[which];
	jit_buffer *rows = by_left ? smaller->exp_buffer : smaller->ln_buffer;
	jit_buffer *columns = by_left ? many->ln_buffer : many->exp_buffer;
	const uint64_t from = ((uint64_t)(at / LEVELS_WIDTH) * BLOCK + at % LEVELS_WIDTH) * sizeof(double);
	const unsigned n = rows_of[which] < smaller->count - at ? rows_of[which] : smaller->count - at;

	if (!set_part(k, by_left ? "e" : "l", rows, from, err))
		return false;
	for (uint32_t b = 0; b < many->blocks; b++) {
		const double begun = now(CLOCK_PROCESS_CPUTIME_ID);
		const uint32_t column = b * LEVELS_WIDTH;
		if (!set_part(k, by_left ? "l" : "e", columns, (uint64_t)b * BLOCK * sizeof(double), err) ||
		    jit_launch_run(k->launch, err) != JIT_OK)
			return false;
		v->kernel_seconds += now(CLOCK_PROCESS_CPUTIME_ID) - begun;
		const unsigned width = many->count - column < LEVELS_WIDTH ? many->count - column : LEVELS_WIDTH;
		if (!take_hashes(l, v, smaller->first + at, n, many->first + column, width, by_left, err))
			return false;
	}
	return true;
}

static bool run_pair(struct levels *l, struct level *v, struct level *left, struct level *right, jit_error *err)
{
	const bool by_left = left->count <= right->count;
	const struct level *smaller = by_left ? left : right, *many = by_left ? right : left;

	v->pairs += (uint64_t)left->count * right->count;
	for (uint32_t at = 0; at < smaller->count;) {
		const uint32_t rest = smaller->count - at;
		const unsigned which = rest > 32 ? 0 : rest > 2 ? 1 : 2;
		if (!run_rows(l, v, smaller, many, by_left, at, which, err))
			return false;
		at += rows_of[which];
	}
	return true;
}

/* 1 and the variables. */
static bool add_leaves(struct levels *l, struct level *v, jit_error *err)
{
	double value[PARTS];

	if (!seen_reserve(&l->seen, 64))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for an enumeration");
	for (unsigned leaf = 0; leaf <= l->options.variables; leaf++) {
		for (unsigned p = 0; p < LEVELS_POINTS; p++) {
			value[2 * p] = 1;
			value[2 * p + 1] = 0;
			if (leaf)
				levels_point(p, leaf - 1, value + 2 * p);
		}
		v->pairs++;
		add(l, v, levels_hash(value, NULL), leaf, leaf);
	}
	return true;
}

bool levels_next(struct levels *l, jit_error *err)
{
	const unsigned size = l->size ? l->size + 2 : 1;
	uint64_t trees = 0;
	struct level *v = levels_of(l, size);
	const double begun = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);

	if (size > LEVELS_MAX)
		return fail(err, JIT_ERROR_ARGUMENT, "trees of that size are not enumerated");
	v->first = l->next;
	v->left = malloc(1024 * sizeof *v->left);
	v->right = malloc(1024 * sizeof *v->right);
	if (!v->left || !v->right)
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for an enumeration");
	if (size == 1 && !add_leaves(l, v, err))
		return false;
	for (unsigned i = 1; i + 2 <= size; i += 2) {
		trees += (uint64_t)levels_of(l, i)->count * levels_of(l, size - 1 - i)->count;
		if (!levels_operands(l, levels_of(l, i), err))
			return false;
	}
	/* Most trees are new values: a table that grows by and by is written several times. */
	if (trees < UINT32_MAX && !seen_reserve(&l->seen, l->seen.n + (size_t)trees / 8 * 7))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for that many values");
	for (unsigned i = 1; i + 2 <= size; i += 2)
		if (!run_pair(l, v, levels_of(l, i), levels_of(l, size - 1 - i), err))
			return false;
	v->blocks = (v->count + LEVELS_WIDTH - 1) / LEVELS_WIDTH;
	l->next += v->blocks * LEVELS_WIDTH;
	l->size = size;
	v->seconds = now(CLOCK_MONOTONIC) - begun;
	v->processor_seconds = now(CLOCK_PROCESS_CPUTIME_ID) - processor;
	return true;
}
