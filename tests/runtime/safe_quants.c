#include "tests/runtime/safe_quants.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/safetensors.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"

static uint64_t drawn = 7;

uint32_t safe_quants_draw(uint32_t n)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 40) % n;
}

/* ---- numbers */

static uint32_t float_bits(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, 4);
	return bits;
}

static float bits_float(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, 4);
	return f;
}

/* The number as the type holds it, cut where that is bf16. */
static uint32_t to_number(enum dtype type, float f)
{
	return type == DTYPE_F16 ? float_to_half(f) : type == DTYPE_BF16 ? float_bits(f) >> 16 : float_bits(f);
}

static float of_number(enum dtype type, uint32_t h)
{
	return type == DTYPE_U8     ? ldexpf(1, (int)h - 127)
	       : type == DTYPE_F16  ? half_to_float((uint16_t)h)
	       : type == DTYPE_BF16 ? bits_float(h << 16)
	                            : bits_float(h);
}

static float of_fp8(unsigned byte)
{
	int e = byte >> 3 & 15, m = byte & 7;
	float f = e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
	return byte & 128 ? -f : f;
}

static float of_fp4(unsigned code)
{
	static const float size[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
	return code & 8 ? -size[code & 7] : size[code & 7];
}

/* ---- a matrix */

struct quantised {
	uint64_t rows, cols, group, group_rows, groups, group_lines, experts; /* experts: rows are theirs, 0: are not */
	uint8_t *q;
	uint32_t *scale, *bias; /* of each group: bits */
	uint8_t *zero;
	float *value;
};

static void *room(uint64_t n)
{
	void *p = calloc(n + 1, 1);
	assert_non_null(p);
	return p;
}

static struct quantised make_room(const struct form *f, uint64_t rows, uint64_t cols)
{
	struct quantised m = { .rows = rows, .cols = cols };

	m.group = f->group ? f->group : cols;
	m.group_rows = f->group_rows == UINT64_MAX ? rows : f->group_rows ? f->group_rows : 1;
	m.groups = (cols + m.group - 1) / m.group;
	m.group_lines = (rows + m.group_rows - 1) / m.group_rows;
	m.q = room(rows * cols);
	m.scale = room(m.groups * m.group_lines * 4);
	m.bias = room(m.groups * m.group_lines * 4);
	m.zero = room(m.groups * m.group_lines);
	m.value = room(rows * cols * 4);
	return m;
}

static void free_room(struct quantised *m)
{
	free(m->q);
	free(m->scale);
	free(m->bias);
	free(m->zero);
	free(m->value);
}

static uint64_t group_of(const struct quantised *m, uint64_t i)
{
	return i / m->cols / m->group_rows * m->groups + i % m->cols / m->group;
}

/* The integer nearest to x, in range. */
static uint8_t cut(float x, unsigned max) { return (uint8_t)(x < 0 ? 0 : x > (float)max ? (float)max : rintf(x)); }

static uint8_t to_fp8(float x)
{
	unsigned best = 0;

	for (unsigned b = 0; b < 256; b++)
		if ((b & 127) != 127 && fabsf(of_fp8(b) - x) < fabsf(of_fp8(best) - x))
			best = b;
	return (uint8_t)best;
}

/* One weight, by the method's definition. */
static float scale_of(const struct form *f, uint32_t scale)
{
	return f->method == MLX_FLOATS && f->group == 16 ? of_fp8(scale) : of_number(f->number, scale);
}

static float value_of(const struct form *f, const struct quantised *m, uint64_t i)
{
	uint64_t g = group_of(m, i);
	float scale = scale_of(f, m->scale[g]);

	switch (f->method) {
	case MLX_FLOATS: return scale * (f->bits == 8 ? of_fp8(m->q[i]) : of_fp4(m->q[i]));
	case MLX: return fmaf(scale, (float)m->q[i], of_number(f->number, m->bias[g]));
	case FLOAT8: return scale * of_fp8(m->q[i]);
	default: return scale * (float)(m->q[i] - m->zero[g]);
	}
}

static uint8_t to_float(const struct form *f, float x)
{
	unsigned best = 0;

	if (f->bits == 8)
		return to_fp8(x);
	for (unsigned b = 0; b < 16; b++)
		if (fabsf(of_fp4(b) - x) < fabsf(of_fp4(best) - x))
			best = b;
	return (uint8_t)best;
}

/* A byte: a power of two, or FP8. */
static uint32_t draw_byte(const struct form *f)
{
	return f->group == 16 ? 3 + safe_quants_draw(12) : (f->bits == 8 ? 114 : 120) + safe_quants_draw(3);
}

/* Scales and zero points are drawn, the integers fit them. */
static struct quantised quantise(const struct form *f, const float *w, uint64_t rows, uint64_t cols)
{
	struct quantised m = make_room(f, rows, cols);
	unsigned max = (1u << f->bits) - 1;

	for (uint64_t g = 0; g < m.groups * m.group_lines; g++) {
		float step =
			(0.9f + (float)safe_quants_draw(100) / 500) * 0.25f / (float)(f->method == FLOAT8 ? 448 : max);
		m.scale[g] = f->method == MLX_FLOATS ? draw_byte(f) : to_number(f->number, step);
		m.bias[g] = to_number(f->number, -0.125f - (float)safe_quants_draw(50) / 5000);
		m.zero[g] = (uint8_t)(f->zeros ? 1 + safe_quants_draw(14) : (max + 1) / 2);
	}
	for (uint64_t i = 0; i < rows * cols; i++) {
		uint64_t g = group_of(&m, i);
		float scale = scale_of(f, m.scale[g]);
		m.q[i] = f->method == MLX_FLOATS && (f->bits == 4 || rows * cols <= 4096) ? to_float(f, w[i] / scale)
		         : f->method == FLOAT8 || f->method == MLX_FLOATS
		                 ? (rows * cols > 4096 ? (uint8_t)(safe_quants_draw(127) | safe_quants_draw(2) << 7)
		                                       : to_fp8(w[i] / scale))
		         : f->method == MLX ? cut((w[i] - of_number(f->number, m.bias[g])) / scale, max)
		                            : cut(w[i] / scale + (float)m.zero[g], max);
		m.value[i] = value_of(f, &m, i);
	}
	return m;
}

/* ---- laying it down */

/* Bit by bit, the lowest first. */
static void put_bits(uint8_t *out, uint64_t at, unsigned bits, unsigned value)
{
	for (unsigned i = 0; i < bits; i++)
		out[(at + i) / 8] |= (uint8_t)((value >> i & 1) << (at + i) % 8);
}

/* experts: the rows are theirs, 0: they are not. */
static void write_rows(struct st_writer *w, const char *stem, const char *end, enum dtype type, uint64_t experts,
                       uint64_t rows, uint64_t cols, const void *data)
{
	char name[160];

	snprintf(name, sizeof name, "%s%s", stem, end);
	st_write_tensor(w, name, type, experts ? 3 : 2,
	                experts ? (const uint64_t[]){ experts, rows / experts, cols }
	                        : (const uint64_t[]){ rows, cols },
	                data, rows * cols * dtype_table[type].bytes);
}

static void write_2d(struct st_writer *w, const char *stem, const char *end, enum dtype type, uint64_t rows,
                     uint64_t cols, const void *data)
{
	write_rows(w, stem, end, type, 0, rows, cols, data);
}

/* Numbers of `lines` lines of groups; transposed: of `groups` lines of rows. */
static void write_numbers(struct st_writer *w, const struct form *f, const struct quantised *m, const char *stem,
                          const char *end, const uint32_t *number, bool transposed)
{
	uint64_t n = m->groups * m->group_lines;
	unsigned bytes = dtype_table[f->number].bytes;
	uint8_t *out = room((n + m->groups) * bytes);

	for (uint64_t i = 0; i < n; i++)
		memcpy(out + (transposed ? i % m->groups * m->group_lines + i / m->groups : i) * bytes, &number[i],
		       bytes);
	if (n == 1 && m->group_rows > 1) {
		char name[160];
		snprintf(name, sizeof name, "%s%s", stem, end);
		st_write_tensor(w, name, f->number, 1, (const uint64_t[]){ 1 }, out, bytes);
	} else {
		uint64_t lines = m->group_lines + (f->wrong == MORE_BLOCKS);
		write_rows(w, stem, end, f->number, m->experts, transposed ? m->groups : lines,
		           transposed ? lines : m->groups, out);
	}
	free(out);
}

/* Row r's place in a word of eight. */
static unsigned position(const struct form *f, uint64_t r)
{
	static const unsigned awq[8] = { 0, 2, 4, 6, 1, 3, 5, 7 }; /* which row each nibble has */
	unsigned at = 0;

	if (f->method != AWQ)
		return (unsigned)(r % 8);
	while (awq[at] != r % 8)
		at++;
	return at;
}

static void write_transposed(struct st_writer *w, const struct form *f, const struct quantised *m, const char *stem)
{
	const unsigned bits = f->bits, each = 32 / bits;
	uint8_t *quants = room(m->rows * m->cols), *zeros = room(m->groups * m->rows);
	int32_t *order = room(m->cols * 4);

	for (uint64_t r = 0; r < m->rows; r++)
		for (uint64_t k = 0; k < m->cols; k++)
			put_bits(quants,
			         f->method == GPTQ ? (k / each * m->rows + r) * 32 + k % each * bits
			                           : (k * m->rows / 8 + r / 8) * 32 + position(f, r) * 4,
			         bits, m->q[r * m->cols + k]);
	for (uint64_t i = 0; i < m->groups * m->rows; i++) {
		uint64_t r = i / m->groups, g = i % m->groups;
		unsigned zero = f->wrong == ZERO_OF_7    ? 6
		                : f->wrong == ZERO_OF_15 ? 15
		                                         : (unsigned)(m->zero[i] - f->shift);
		put_bits(zeros, (g * m->rows / each + r / each) * 32 + (bits == 8 ? r % 4 : position(f, r)) * bits,
		         bits, zero);
	}
	for (uint64_t k = 0; k < m->cols; k++)
		order[k] = (int32_t)(k / m->group);
	if (f->wrong == OTHER_ORDER)
		order[m->cols - 1] = 0;
	write_2d(w, stem, "qweight", DTYPE_I32, f->method == GPTQ ? m->cols / each : m->cols,
	         f->method == GPTQ ? m->rows : m->rows / 8, quants);
	if (f->wrong != NO_ZEROS)
		write_2d(w, stem, "qzeros", DTYPE_I32, m->groups, m->rows / each - (f->wrong == SHORT_ZEROS), zeros);
	write_numbers(w, f, m, stem, "scales", m->scale, true);
	if (f->method == GPTQ) {
		char name[160];
		snprintf(name, sizeof name, "%sg_idx", stem);
		st_write_tensor(w, name, DTYPE_I32, 1, &m->cols, order, m->cols * 4);
	}
	free(quants);
	free(zeros);
	free(order);
}

static void write_packed_zeros(struct st_writer *w, const struct form *f, const struct quantised *m, const char *stem)
{
	uint64_t words = (m->rows + 7) / 8;
	uint8_t *zeros = room(words * m->groups * 4);

	for (uint64_t i = 0; i < m->groups * m->rows; i++)
		put_bits(zeros, (i / m->groups / 8 * m->groups + i % m->groups) * 32 + i / m->groups % 8 * 4, 4,
		         m->zero[i]);
	if (f->wrong != NO_ZEROS)
		write_2d(w, stem, "weight_zero_point", DTYPE_I32, words, m->groups, zeros);
	free(zeros);
}

static void write_in_rows(struct st_writer *w, const struct form *f, const struct quantised *m, const char *stem)
{
	uint64_t words = m->cols * f->bits / 32 - (f->wrong == ODD_WORDS);
	uint8_t *quants = room(m->rows * m->cols);

	for (uint64_t i = 0; i < m->rows * m->cols; i++)
		put_bits(quants, i * f->bits, f->bits, f->method == BYTES ? (m->q[i] ^ 0x80u) : m->q[i]);
	if (f->wrong == NOT_A_NUMBER)
		quants[m->cols + 5] = 0xff;
	switch (f->method) {
	case MLX:
	case MLX_FLOATS: write_rows(w, stem, "weight", DTYPE_U32, m->experts, m->rows, words, quants); break;
	case PACKED: write_2d(w, stem, "weight_packed", DTYPE_I32, m->rows, words, quants); break;
	case BYTES: write_2d(w, stem, "weight", DTYPE_I8, m->rows, m->cols, quants); break;
	default: write_2d(w, stem, "weight", DTYPE_F8_E4M3, m->rows, m->cols, quants);
	}
	if (f->wrong == LARGE_SCALE)
		m->scale[0] = float_bits(128.0f);
	write_numbers(w, f, m, stem, f->scale_name, m->scale, false);
	if (f->method == MLX)
		write_numbers(w, f, m, stem, "biases", m->bias, false);

	if (f->method == PACKED && f->zeros)
		write_packed_zeros(w, f, m, stem);
	free(quants);
}

/* ---- a model */

struct pair {
	struct st_writer quants, floats;
	const struct form *form;
};

static bool wanted(const struct form *f, const struct safetensors_tensor *t, const char *name)
{
	const bool mlx = f->method == MLX || f->method == MLX_FLOATS,
		   experts = t->rank == 3 && mlx &&
	                     (strstr(name, "switch_") || strstr(name, "experts.") || strstr(name, "embed"));
	const uint64_t cols = t->rank ? t->dim[t->rank - 1] : 0;

	return (t->rank == 2 || experts) && !strstr(name, "mlp.gate.weight") && (mlx || strstr(name, "layers.")) &&
	       (!mlx || cols % (f->group == 16 ? 64 : f->group) == 0);
}

static void write_tensor(struct pair *p, const struct safetensors_tensor *t, const uint8_t *data, char *name)
{
	uint64_t n = t->bytes / dtype_table[t->type].bytes;
	float *w = room(n * 4);

	for (uint64_t i = 0; i < n; i++)
		if (t->type == DTYPE_F32)
			memcpy(&w[i], data + 4 * i, 4);
		else
			memcpy((uint8_t *)&w[i] + 2, data + 2 * i, 2);
	if (wanted(p->form, t, name)) {
		struct quantised m = quantise(p->form, w, n / t->dim[t->rank - 1], t->dim[t->rank - 1]);
		m.experts = t->rank == 3 ? t->dim[0] : 0;
		st_write_tensor(&p->floats, name, DTYPE_F32, t->rank, t->dim, m.value, n * 4);
		name[strlen(name) - strlen("weight")] = 0;
		(p->form->method == GPTQ || p->form->method == AWQ ? write_transposed
		                                                   : write_in_rows)(&p->quants, p->form, &m, name);
		free_room(&m);
	} else {
		st_write_tensor(&p->quants, name, DTYPE_F32, t->rank, t->dim, w, n * 4);
		st_write_tensor(&p->floats, name, DTYPE_F32, t->rank, t->dim, w, n * 4);
	}
	free(w);
}

static void write_one(const char *dir, const char *sub, struct st_writer *w, const char *config, const char *more)
{
	char path[96], *text = room(strlen(config) + strlen(more) + 1);
	size_t n, end = strlen(config);
	uint8_t *p = st_writer_finish(w, 8, &n);

	while (config[end - 1] != '}')
		end--;
	sprintf(text, "%.*s%s}", (int)end - 1, config, more);
	snprintf(path, sizeof path, "mkdir -p %s/%s", dir, sub);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof path, "%s/%s", dir, sub);
	tiny_write(path, "config.json", text, strlen(text));
	tiny_write(path, "model.safetensors", p, n);
	free(text);
	free(p);
}

void safe_quants_write(const char *dir, const struct form *f, const uint8_t *p, size_t n, const char *config)
{
	struct pair pair = { .form = f };
	struct safetensors s;
	struct error err = { 0 };
	char name[160];

	assert_true(safetensors_parse(&s, p, n, "made", false, &err));
	st_writer_start(&pair.quants);
	st_writer_start(&pair.floats);
	for (uint32_t i = 0; i < s.n_tensors; i++) {
		snprintf(name, sizeof name, "%.*s", (int)s.tensor[i].name.n, (const char *)s.tensor[i].name.p);
		write_tensor(&pair, &s.tensor[i], p + s.tensor[i].offset, name);
	}
	write_one(dir, "quants", &pair.quants, config, f->config);
	write_one(dir, "floats", &pair.floats, config, "");
	safetensors_free(&s);
}

void safe_quants_write_tiny(const char *dir, const struct form *f)
{
	const struct tiny_model t = {
		.arch = "qwen3",
		.layers = 1,
		.hidden = 256,
		.ffn = 192,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 32,
		.vocab = 96,
		.type = DTYPE_F32,
		.tied = f->method != MLX && f->method != MLX_FLOATS
	};
	size_t n;
	uint8_t *p = tiny_safetensors(&t, &n);
	char *config = tiny_config(&t);

	safe_quants_write(dir, f, p, n, config);
	free(config);
	free(p);
}
