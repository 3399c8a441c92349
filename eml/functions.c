#include "eml/functions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "eml/kernel_texts.h"

enum { ROWS = FUNCTIONS_ROWS, WIDTH = FUNCTIONS_WIDTH, BLOCK = ROWS * WIDTH, TILE_ROWS = 32, AHEAD = 16 };

static const struct {
	enum operation op;
	bool swapped;
} of_code[FUNCTIONS_CODES] = {
	{ OP_ADD, false }, { OP_SUB, false },  { OP_SUB, true },   { OP_MUL, false },
	{ OP_DIV, false }, { OP_DIV, true },   { OP_POW, false },  { OP_POW, true },
	{ OP_EXP, false }, { OP_LN, false },   { OP_SQRT, false }, { OP_SIN, false },
	{ OP_COS, false }, { OP_TANH, false }, { OP_MUL, false },  { OP_DIV, false },
};

static bool fail(jit_error *err, int code, const char *sentence)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s", sentence);
	return false;
}

/* ---- hashes, as formulas.jk has them */

static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static double rounded(double x)
{
	const double a = fabs(x);
	const uint64_t exponent = bits_of(a > 1e-12 ? a : 1e-12) & UINT64_C(0x7ff0000000000000);
	double power;

	memcpy(&power, &exponent, sizeof power);
	return a < 1e-12 ? 0 : (x + power * 1572864) - power * 1572864;
}

uint64_t functions_hash(const double values[ROWS])
{
	uint64_t h = 0;

	for (unsigned r = 0; r < ROWS; r++) {
		if (!(fabs(values[r]) < 1e100))
			return 0;
		const uint64_t m = (h ^ bits_of(rounded(values[r]))) * UINT64_C(0x9e3779b97f4a7c15);
		h = m << 29 | m >> 35;
	}
	uint64_t z = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 29;
	return z ? z : 1;
}

/* ---- kernels */

static bool set(const struct functions_kernel *k, const char *name, void *memory, size_t bytes, jit_error *err)
{
	return jit_launch_set_memory(k->launch, (size_t)jit_kernel_find(k->kernel, name), memory, bytes, err) == JIT_OK;
}

static bool set_part(const struct functions_kernel *k, const char *name, jit_buffer *b, uint64_t at, jit_error *err)
{
	return jit_launch_set_buffer(k->launch, (size_t)jit_kernel_find(k->kernel, name), b, at, err) == JIT_OK;
}

static bool open_kernel(struct functions *f, struct functions_kernel *k, const char *name, unsigned operation,
                        unsigned smaller, jit_error *err)
{
	char constants[160];

	snprintf(constants, sizeof constants, "rows=%d width=%d targets=%u operation=%u few=%u", ROWS, WIDTH,
	         f->options.targets, operation, smaller);
	k->kernel =
		jit_kernel_open(f->compute,
	                        &JIT_KERNEL_OPTIONS(.source = (const char *)eml_formulas_text, .n = eml_formulas_bytes,
	                                            .path = "formulas.jk", .kernel = name, .constants = constants),
	                        err);
	k->launch = k->kernel ? jit_launch_open(k->kernel, err) : NULL;
	if (!k->launch || strcmp(name, "keep") == 0)
		return k->launch != NULL;
	return set(k, "t", f->t, f->options.targets * ROWS * sizeof *f->t, err) &&
	       set(k, "h", f->hash, (size_t)smaller * WIDTH * sizeof *f->hash, err) &&
	       set(k, "rest", f->rest, (size_t)smaller * WIDTH * sizeof *f->rest, err) &&
	       set(k, "which", f->which, (size_t)smaller * WIDTH, err);
}

static bool open_kernels(struct functions *f, jit_error *err)
{
	for (unsigned c = 0; c < FUNCTIONS_CODES; c++) {
		if (!(f->options.codes >> c & 1))
			continue;
		if (c >= 8 ? !open_kernel(f, &f->singles[c - 8], "singles", c - 8, 1, err)
		           : !open_kernel(f, &f->pairs[c][0], "pairs", c, TILE_ROWS, err) ||
		                     !open_kernel(f, &f->pairs[c][1], "pairs", c, 1, err))
			return false;
	}
	return open_kernel(f, &f->keep, "keep", 0, 1, err) && set(&f->keep, "code", f->code, WIDTH, err) &&
	       set(&f->keep, "a", f->a, BLOCK * sizeof *f->a, err) &&
	       set(&f->keep, "b", f->b, BLOCK * sizeof *f->b, err);
}

static void close_kernel(struct functions_kernel *k)
{
	jit_launch_close(k->launch);
	jit_kernel_close(k->kernel);
}

void functions_close(struct functions *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < 8; i++) {
		close_kernel(&f->pairs[i][0]);
		close_kernel(&f->pairs[i][1]);
		close_kernel(&f->singles[i]);
	}
	close_kernel(&f->keep);
	for (unsigned i = 0; i <= FUNCTIONS_SIZES; i++) {
		jit_buffer_close(f->size[i].buffer);
		if (f->size[i].owned)
			free(f->size[i].value);
	}
	jit_compute_close(f->compute);
	seen_free(&f->seen);
	free(f->made);
	free(f->hash);
	free(f->rest);
	free(f->which);
	free(f->code);
	free(f->a);
	free(f->b);
	free(f->t);
	free(f);
}

/* ---- values that are kept */

const double *functions_values(const struct functions *f, uint32_t number)
{
	unsigned s = 1;

	while (number >= f->size[s].first + f->size[s].blocks * WIDTH)
		s++;
	const uint32_t at = number - f->size[s].first;

	return f->size[s].value + (size_t)(at / WIDTH) * BLOCK + at % WIDTH;
}

static void take(const struct functions *f, uint32_t number, double *block, unsigned lane)
{
	const double *from = functions_values(f, number);

	for (unsigned r = 0; r < ROWS; r++)
		block[r * WIDTH + lane] = from[r * WIDTH];
}

/* The values of a size's functions, whose `made` is there. */
static bool keep(struct functions *f, struct function_size *s, jit_error *err)
{
	const uint64_t bytes = (uint64_t)(s->blocks + 1) * BLOCK * sizeof *s->value;

	if (!(s->buffer = jit_buffer_open(f->compute, bytes, err)))
		return false;
	s->value = jit_buffer_memory(s->buffer);
	if (!s->value) {
		s->owned = true;
		if (!(s->value = calloc(1, bytes)))
			return fail(err, JIT_ERROR_MEMORY, "there is no memory for the values of functions");
	}
	for (uint32_t b = 0; b < s->blocks; b++) {
		const uint64_t at = (uint64_t)b * BLOCK * sizeof *s->value;
		for (unsigned lane = 0; lane < WIDTH; lane++) {
			const uint32_t number = b * WIDTH + lane;
			const struct made *m = &f->made[s->first + number];
			f->code[lane] = 0;
			for (unsigned r = 0; r < ROWS; r++)
				f->a[r * WIDTH + lane] = f->b[r * WIDTH + lane] = NAN;
			if (number >= s->count)
				continue;
			if (m->code == FUNCTIONS_LEAF) { /* + 0 */
				for (unsigned r = 0; r < ROWS; r++) {
					f->a[r * WIDTH + lane] = m->left ? f->options.x[(m->left - 1) * ROWS + r] : 1;
					f->b[r * WIDTH + lane] = 0;
				}
				continue;
			}
			f->code[lane] = m->code;
			take(f, m->left, f->a, lane);
			take(f, m->code < 8 ? m->right : m->left, f->b, lane);
		}
		if (!set_part(&f->keep, "v", s->buffer, at, err) || jit_launch_run(f->keep.launch, err) != JIT_OK)
			return false;
		if (s->owned &&
		    jit_buffer_read(s->buffer, at, (char *)s->value + at, BLOCK * sizeof *s->value, err) != JIT_OK)
			return false;
	}
	return true;
}

/* ---- candidates */

static void consider(struct function_size *s, const struct candidate *c)
{
	unsigned at = s->n_best;

	if (at == FUNCTIONS_BEST && c->rest >= s->best[at - 1].rest)
		return;
	for (unsigned i = 0; i < s->n_best; i++)
		if (s->best[i].hash == c->hash)
			return;
	if (at == FUNCTIONS_BEST)
		at--;
	else
		s->n_best++;
	for (; at > 0 && s->best[at - 1].rest > c->rest; at--)
		s->best[at] = s->best[at - 1];
	s->best[at] = *c;
}

static bool take_one(struct functions *f, struct function_size *s, const struct candidate *c, bool keeps)
{
	if (seen_find(&f->seen, c->hash) != SEEN_NONE)
		return true;
	consider(s, c);
	if (!keeps)
		return true;
	if (!array_grow((void **)&f->made, &f->made_capacity, (size_t)s->first + s->count + 1 + WIDTH, sizeof *f->made))
		return false;
	f->made[s->first + s->count] = c->made;
	return seen_put(&f->seen, c->hash, s->first + s->count++);
}

struct launch {
	unsigned code, size, rows, columns;
	uint32_t row, column;
	bool keeps;
};

static bool take_launch(struct functions *f, const struct launch *l, jit_error *err)
{
	struct function_size *s = &f->size[l->size];
	bool fine = seen_reserve(&f->seen, f->seen.n + (size_t)l->rows * l->columns);

	f->examined += (uint64_t)l->rows * l->columns;
	for (unsigned i = 0; fine && i < l->rows; i++)
		for (unsigned j = 0; fine && j < l->columns; j++) {
			const size_t at = (size_t)i * WIDTH + j;
			if (j + AHEAD < l->columns)
				seen_fetch(&f->seen, f->hash[at + AHEAD]);
			if (!f->hash[at])
				continue;
			const uint32_t row = l->row + i, column = l->column + j;
			const struct candidate c = { .made = { l->code < 8 ? row : column, column, (uint8_t)l->code },
				                     .hash = f->hash[at],
				                     .rest = f->rest[at],
				                     .size = l->size,
				                     .target = f->which[at] };
			fine = take_one(f, s, &c, l->keeps);
		}
	return fine || fail(err, JIT_ERROR_MEMORY, "there is no memory for that many functions");
}

static unsigned columns_of(const struct function_size *s, uint32_t block)
{
	const uint32_t rest = s->count - block * WIDTH;

	return rest < WIDTH ? rest : WIDTH;
}

static bool run_singles(struct functions *f, unsigned size, bool keeps, jit_error *err)
{
	const struct function_size *a = &f->size[size - 1];

	for (unsigned c = 8; c < FUNCTIONS_CODES; c++)
		for (uint32_t b = 0; f->options.codes >> c & 1 && b < a->blocks; b++) {
			const struct functions_kernel *k = &f->singles[c - 8];
			if (!set_part(k, "a", a->buffer, (uint64_t)b * BLOCK * sizeof(double), err) ||
			    jit_launch_run(k->launch, err) != JIT_OK)
				return false;
			if (!take_launch(f,
			                 &(struct launch){ .code = c,
			                                   .size = size,
			                                   .rows = 1,
			                                   .columns = columns_of(a, b),
			                                   .column = a->first + b * WIDTH,
			                                   .keeps = keeps },
			                 err))
				return false;
		}
	return true;
}

static bool run_rows(struct functions *f, unsigned code, unsigned size, const struct function_size *smaller,
                     uint32_t row, const struct function_size *many, bool keeps, jit_error *err)
{
	const bool one = smaller->count - row < TILE_ROWS / 4;
	const struct functions_kernel *k = &f->pairs[code][one];
	const unsigned n = one ? 1 : smaller->count - row < TILE_ROWS ? smaller->count - row : TILE_ROWS;
	const uint64_t at = ((uint64_t)(row / WIDTH) * BLOCK + row % WIDTH) * sizeof(double);

	if (!set_part(k, "a", smaller->buffer, at, err))
		return false;
	for (uint32_t b = 0; b < many->blocks; b++) {
		if (!set_part(k, "b", many->buffer, (uint64_t)b * BLOCK * sizeof(double), err) ||
		    jit_launch_run(k->launch, err) != JIT_OK)
			return false;
		if (!take_launch(f,
		                 &(struct launch){ .code = code,
		                                   .size = size,
		                                   .rows = n,
		                                   .columns = columns_of(many, b),
		                                   .row = smaller->first + row,
		                                   .column = many->first + b * WIDTH,
		                                   .keeps = keeps },
		                 err))
			return false;
	}
	return true;
}

static bool run_pairs(struct functions *f, unsigned size, bool keeps, jit_error *err)
{
	for (unsigned i = 1; 2 * i <= size - 1; i++) {
		const struct function_size *a = &f->size[i], *b = &f->size[size - 1 - i];
		const struct function_size *smaller = a->count <= b->count ? a : b, *many = smaller == a ? b : a;
		for (unsigned c = 0; c < 8; c++) {
			/* of one size with itself, both orders come by themselves */
			if (!(f->options.codes >> c & 1) || (a == b && of_code[c].swapped))
				continue;
			for (uint32_t row = 0; row < smaller->count;
			     row += smaller->count - row < TILE_ROWS / 4 ? 1 : TILE_ROWS)
				if (jit_cancel_get(f->options.cancel) ||
				    !run_rows(f, c, size, smaller, row, many, keeps, err))
					return jit_cancel_get(f->options.cancel)
					               ? fail(err, JIT_ERROR_CANCELLED, "interrupted")
					               : false;
		}
	}
	return true;
}

/* How many functions of a size there are to look at. */
static uint64_t many_of(const struct functions *f, unsigned size)
{
	uint64_t n = 0;

	for (unsigned c = 0; c < FUNCTIONS_CODES; c++) {
		if (!(f->options.codes >> c & 1))
			continue;
		if (c >= 8)
			n += f->size[size - 1].count;
		for (unsigned i = 1; c < 8 && 2 * i <= size - 1; i++)
			if (2 * i != size - 1 || !of_code[c].swapped)
				n += (uint64_t)f->size[i].count * f->size[size - 1 - i].count;
	}
	return n;
}

bool functions_next(struct functions *f, bool *more, jit_error *err)
{
	const unsigned size = f->largest + 1;
	struct function_size *s = &f->size[size];

	*more = false;
	if (size > FUNCTIONS_SIZES || f->kept + 1 < size)
		return true;
	const uint64_t n = many_of(f, size);
	if (f->examined + n > f->options.max_examined)
		return true;
	const bool keeps = n <= f->options.max_kept;
	s->first = f->next;
	if (!run_singles(f, size, keeps, err) || !run_pairs(f, size, keeps, err))
		return false;
	f->largest = size;
	*more = true;
	if (!keeps)
		return true;
	s->blocks = (s->count + WIDTH - 1) / WIDTH;
	f->next += s->blocks * WIDTH;
	if (!array_grow((void **)&f->made, &f->made_capacity, f->next, sizeof *f->made))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for that many functions");
	f->kept = size;
	return keep(f, s, err);
}

/* ---- opening: 1 and the variables */

static bool add_leaves(struct functions *f, jit_error *err)
{
	struct function_size *s = &f->size[1];
	double values[ROWS];

	if (!seen_reserve(&f->seen, 1024) || !array_grow((void **)&f->made, &f->made_capacity, WIDTH, sizeof *f->made))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for an enumeration");
	for (unsigned leaf = 0; leaf <= f->options.variables; leaf++) {
		for (unsigned r = 0; r < ROWS; r++)
			values[r] = leaf ? f->options.x[(leaf - 1) * ROWS + r] : 1;
		const uint64_t hash = functions_hash(values);
		if (!hash || seen_find(&f->seen, hash) != SEEN_NONE)
			continue;
		f->made[s->count] = (struct made){ leaf, 0, FUNCTIONS_LEAF };
		seen_put(&f->seen, hash, s->count++);
	}
	s->blocks = 1;
	f->next = WIDTH;
	f->largest = f->kept = 1;
	return keep(f, s, err);
}

struct functions *functions_open(const struct functions_options *options, jit_error *err)
{
	struct functions *f = calloc(1, sizeof *f);
	const size_t cells = (size_t)TILE_ROWS * WIDTH;

	if (f) {
		f->options = *options;
		f->options.max_kept = options->max_kept ? options->max_kept : 1000000;
		f->options.max_examined = options->max_examined ? options->max_examined : 20000000;
		f->hash = aligned_alloc(64, cells * sizeof *f->hash);
		f->rest = aligned_alloc(64, cells * sizeof *f->rest);
		f->which = aligned_alloc(64, cells);
		f->code = aligned_alloc(64, WIDTH);
		f->a = aligned_alloc(64, BLOCK * sizeof *f->a);
		f->b = aligned_alloc(64, BLOCK * sizeof *f->b);
		f->t = aligned_alloc(64, FUNCTIONS_TARGETS * ROWS * sizeof *f->t);
	}
	if (!f || !f->hash || !f->rest || !f->which || !f->code || !f->a || !f->b || !f->t) {
		fail(err, JIT_ERROR_MEMORY, "there is no memory for an enumeration");
		functions_close(f);
		return NULL;
	}
	memcpy(f->t, options->t, options->targets * ROWS * sizeof *f->t);
	f->compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = options->device, .cache_dir = options->cache,
	                                                   .threads = options->threads, .cancel = options->cancel),
	                              err);
	if (f->compute && open_kernels(f, err) && add_leaves(f, err))
		return f;
	functions_close(f);
	return NULL;
}

uint32_t functions_expression(const struct functions *f, struct made m, struct expression *out)
{
	if (m.code == FUNCTIONS_LEAF)
		return m.left ? expression_variable(out, m.left - 1) : expression_number(out, 1);
	const uint32_t a = functions_expression(f, f->made[m.left], out);
	if (m.code == 14 || m.code == 15) {
		const uint32_t n = expression_number(out, m.code == 14 ? 2 : -1);
		return expression_add(out, OP_POW, a, n);
	}
	const uint32_t b = m.code < 8 ? functions_expression(f, f->made[m.right], out) : 0;
	return expression_add(out, of_code[m.code].op, of_code[m.code].swapped ? b : a,
	                      of_code[m.code].swapped ? a : b);
}
