/* loaders/model/model_affine_read.c - quantised weights of safetensors, read as rows of blocks of one type.
 *
 * Owns: the orders in which quants, scales and zero points lie in the files (model_affine.h), and what a block of each
 * type is made of. Blocks have 32 columns: what a larger group has is there again in each. Weights that are no number,
 * scales that a type cannot hold, and columns in an order of their own are refused here, where they are first seen.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"

enum { BLOCK_K = 32 };
/* Of FP8's scales: 2^120 of one is a number (kernels-templates/formats/wf_fp8.c). */
#define FP8_SCALE_END 128.0f

/* Rows on their way, numbered as in the tensors. */
struct rows {
	const struct model_part *part;
	const struct model_tensor *t;
	const struct model_quants *q;
	uint64_t first, n, cols;
	uint8_t *quant;   /* a byte each */
	uint32_t *scale;  /* of each group, its bits */
	uint16_t *offset; /* of each group: a minimum's bits, or a zero point */
	uint8_t *raw;
	struct error *err;
};

static bool fetch(const struct rows *r, const struct expert_location *at, uint64_t offset, uint64_t bytes)
{
	return file_read(&r->part[at->part].file, at->offset + offset, bytes, r->raw, r->err);
}

static const char *label_of(const struct rows *r) { return r->part[r->q->quants.part].file.label; }

static unsigned number_bytes(const struct model_quants *q) { return dtype_table[q->number].bytes; }

/* What r->raw must hold at most. */
static uint64_t raw_bytes(const struct model_tensor *t, const struct model_quants *q, uint64_t n)
{
	uint64_t quants = n * t->cols, numbers = (n + 8) * q->groups * 4, order = t->cols * 4;
	uint64_t max = quants > numbers ? quants : numbers;

	return (max > order ? max : order) + 64;
}

bool model_rows_lie_apart(const struct model_tensor *t)
{
	return t->quants && t->quants->order != QUANTS_IN_ROWS && t->quants->order != QUANTS_BY_QUARTERS;
}

/* ---- quants */

static void unpack_row(uint8_t *to, const uint8_t *from, uint64_t cols, unsigned bits)
{
	if (bits == 8) {
		memcpy(to, from, cols);
		return;
	}
	for (uint64_t i = 0; bits == 4 && i < cols / 2; i++) {
		to[2 * i] = from[i] & 15;
		to[2 * i + 1] = from[i] >> 4;
	}
	/* A column's bits are in one byte, or in two that are neighbours; the last one's are in one. */
	for (uint64_t i = 0; bits != 4 && i < cols; i++) {
		uint64_t at = i * bits;
		unsigned both = from[at / 8] | (at % 8 + bits > 8 ? (unsigned)from[at / 8 + 1] << 8 : 0);
		to[i] = (uint8_t)(both >> at % 8 & ((1u << bits) - 1));
	}
}

static bool quants_in_rows(const struct rows *r)
{
	uint64_t bytes = r->cols * r->q->bits / 8;

	if (!fetch(r, &r->q->quants, r->first * bytes, r->n * bytes))
		return false;
	for (uint64_t i = 0; i < r->n; i++)
		unpack_row(r->quant + i * r->cols, r->raw + i * bytes, r->cols, r->q->bits);
	for (uint64_t i = 0; r->q->is_signed && i < r->n * r->cols; i++)
		r->quant[i] ^= 0x80;
	return true;
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t w;
	memcpy(&w, p, 4);
	return w;
}

static bool quants_by_columns(const struct rows *r)
{
	const unsigned bits = r->q->bits, each = 32 / bits;

	for (uint64_t word = 0; word < r->cols / each; word++) {
		if (!fetch(r, &r->q->quants, (word * r->q->all_rows + r->first) * 4, r->n * 4))
			return false;
		for (uint64_t i = 0; i < r->n; i++)
			for (unsigned k = 0; k < each; k++)
				r->quant[i * r->cols + word * each + k] =
					(uint8_t)(word_at(r->raw + i * 4) >> bits * k & ((1u << bits) - 1));
	}
	return true;
}

/* Where of a word of AWQ's the integer of a row lies, in bits. */
static unsigned awq_shift(uint64_t row)
{
	static const uint8_t order[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
	return 4u * order[row % 8];
}

static bool quants_by_rows(const struct rows *r)
{
	uint64_t from = r->first / 8, words = (r->first + r->n + 7) / 8 - from;

	for (uint64_t k = 0; k < r->cols; k++) {
		if (!fetch(r, &r->q->quants, (k * (r->q->all_rows / 8) + from) * 4, words * 4))
			return false;
		for (uint64_t i = 0; i < r->n; i++) {
			uint64_t row = r->first + i;
			r->quant[i * r->cols + k] =
				(uint8_t)(word_at(r->raw + (row / 8 - from) * 4) >> awq_shift(row) & 15);
		}
	}
	return true;
}

/* Pairs of bits, of which 3 means nothing. */
static bool quants_by_quarters(const struct rows *r)
{
	const uint64_t quarter = r->q->all_rows / 4;

	for (uint64_t i = 0; i < r->n; i++) {
		const uint64_t row = r->first + i;
		if (!fetch(r, &r->q->quants, row % quarter * r->cols, r->cols))
			return false;
		for (uint64_t k = 0; k < r->cols; k++) {
			const uint8_t q = r->raw[k] >> 2 * (row / quarter) & 3;
			r->quant[i * r->cols + k] = q;
			if (q == 3)
				return error_set(r->err, ERROR_FORMAT,
				                 "%s: tensor %s has the bits 11 in row %" PRIu64 ", column %" PRIu64
				                 ", expected 00, 01 or 10",
				                 label_of(r), r->t->name, row, k);
		}
	}
	return true;
}

static bool check_floats(const struct rows *r)
{
	for (uint64_t i = 0; i < r->n * r->cols; i++)
		if ((r->quant[i] & 0x7f) == 0x7f)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: tensor %s has the byte 0x%02x in row %" PRIu64 ", column %" PRIu64
			                 ", which is no number, expected numbers of E4M3",
			                 label_of(r), r->t->name, r->quant[i], r->first + i / r->cols, i % r->cols);
	return true;
}

static bool read_quants(const struct rows *r)
{
	switch (r->q->order) {
	case QUANTS_BY_COLUMNS: return quants_by_columns(r);
	case QUANTS_BY_EIGHT_ROWS: return quants_by_rows(r);
	case QUANTS_BY_QUARTERS: return quants_by_quarters(r);
	default: return quants_in_rows(r) && (!r->q->is_float || r->q->bits == 4 || check_floats(r));
	}
}

/* ---- numbers of groups */

static uint32_t bits_at(const uint8_t *p, unsigned bytes)
{
	uint32_t bits = 0;
	memcpy(&bits, p, bytes);
	return bits;
}

static float as_float(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, 4);
	return f;
}

/* The bits of the f32 of the same value; a byte is the exponent of a power of two. */
static uint32_t widened(enum dtype type, uint32_t bits)
{
	uint32_t sign = (bits & 0x8000) << 16, rest = bits & 0x7fff, wide;

	if (type == DTYPE_U8)
		return bits ? bits << 23 : 1u << 22;
	if (type != DTYPE_F16)
		return type == DTYPE_BF16 ? bits << 16 : bits;
	float small = (float)rest * 0x1p-24f;
	memcpy(&wide, &small, 4);
	return sign | (rest < 0x400 ? wide : rest >= 0x7c00 ? rest << 13 | 0x7f800000 : (rest << 13) + (112u << 23));
}

/* Numbers that lie as the quants do, in rows: those of the first row's, and on. */
static bool numbers_in_rows(const struct rows *r, const struct expert_location *at, bool scales)
{
	unsigned bytes = number_bytes(r->q);
	uint64_t each = r->q->group_rows, from = r->first / each, groups = r->q->groups,
		 all = ((r->first + r->n - 1) / each - from + 1) * groups;

	if (!fetch(r, at, from * groups * bytes, all * bytes))
		return false;
	for (uint64_t i = 0; i < r->n; i++)
		for (uint64_t g = 0; g < groups; g++) {
			uint32_t bits = bits_at(r->raw + (((r->first + i) / each - from) * groups + g) * bytes, bytes);
			if (scales)
				r->scale[i * groups + g] = bits;
			else
				r->offset[i * groups + g] = (uint16_t)bits;
		}
	return true;
}

static bool scales_in_columns(const struct rows *r)
{
	unsigned bytes = number_bytes(r->q);

	for (uint64_t g = 0; g < r->q->groups; g++) {
		if (!fetch(r, &r->q->scales, (g * r->q->all_rows + r->first) * bytes, r->n * bytes))
			return false;
		for (uint64_t i = 0; i < r->n; i++)
			r->scale[i * r->q->groups + g] = bits_at(r->raw + i * bytes, bytes);
	}
	return true;
}

/* Zero points of GPTQ and AWQ, those of eight rows in a word, or four; those of compressed-tensors are transposed. */
static bool read_zeros(const struct rows *r)
{
	const struct model_quants *q = r->q;
	bool by_rows = q->order == QUANTS_IN_ROWS;
	const unsigned each = 32u / q->bits;
	uint64_t from = r->first / each, words = (r->first + r->n + each - 1) / each - from;

	if (by_rows && !fetch(r, &q->others, from * q->groups * 4, words * q->groups * 4))
		return false;
	for (uint64_t g = 0; g < q->groups; g++) {
		if (!by_rows && !fetch(r, &q->others, (g * (q->all_rows / each) + from) * 4, words * 4))
			return false;
		for (uint64_t i = 0; i < r->n; i++) {
			uint64_t row = r->first + i, word = row / each - from;
			unsigned shift = q->order == QUANTS_BY_EIGHT_ROWS ? awq_shift(row) : q->bits * (row % each);
			r->offset[i * q->groups + g] =
				(uint16_t)(word_at(r->raw + (by_rows ? word * q->groups + g : word) * 4) >> shift &
			                   ((1u << q->bits) - 1));
		}
	}
	return true;
}

/* Stored less one, 16 and 0 are the same: programs disagree on which of them it is. Of eight bits only the half is one
 * that is expected. */
static bool add_one(const struct rows *r)
{
	for (uint64_t i = 0; i < r->n * r->q->groups; i++) {
		if (r->offset[i] == 15 && r->q->bits == 4)
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: row %" PRIu64 " of tensor %s has a zero point stored as 15, which is 16 "
			                 "to some programs and 0 to others, expected at most 14",
			                 label_of(r), r->first + i / r->q->groups, r->t->name);
		r->offset[i]++;
	}
	return true;
}

static bool check_half(const struct rows *r)
{
	const int half = 1 << (r->q->bits - 1);

	for (uint64_t i = 0; i < r->n * r->q->groups; i++)
		if (r->offset[i] != half)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: row %" PRIu64 " of tensor %s has the zero point %d, expected %d: "
			                 "config.json says that it is symmetric (sym)",
			                 label_of(r), r->first + i / r->q->groups, r->t->name, r->offset[i], half);
	return true;
}

static bool read_offsets(const struct rows *r)
{
	const struct model_quants *q = r->q;

	if (q->offset == OFFSET_MINIMA)
		return numbers_in_rows(r, &q->others, false);
	if (q->offset == OFFSET_HALF && !q->check_half)
		return true;
	return read_zeros(r) && (!q->plus_one || add_one(r)) && (!q->check_half || check_half(r));
}

/* Scales of FP4: the largest byte, and of FP8 the sign, say nothing that a type holds. */
static bool check_byte_scales(const struct rows *r)
{
	const uint32_t end = r->t->type == DTYPE_NVFP4 ? 0x7f : 0xff;

	for (uint64_t i = 0; i < r->n * r->q->groups; i++)
		if (r->scale[i] >= end)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: row %" PRIu64 " of tensor %s has the scale 0x%02" PRIx32
			                 ", which is no positive number, expected less than 0x%02" PRIx32,
			                 label_of(r), r->first + i / r->q->groups, r->t->name, r->scale[i], end);
	return true;
}

static bool halve_scales(const struct rows *r)
{
	for (uint64_t i = 0; i < r->n * r->q->groups; i++)
		if (!ternary_scale(widened(r->q->number, r->scale[i]), &r->scale[i]))
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s has the scale %.9g, expected one that F16 holds exactly, from "
			                 "6.1e-5 to 65504",
			                 label_of(r), r->t->name, (double)as_float(widened(r->q->number, r->scale[i])));
	return true;
}

static bool check_scales(const struct rows *r)
{
	if (r->q->order == QUANTS_BY_QUARTERS)
		return halve_scales(r);
	if (r->q->is_float && r->q->bits == 4)
		return check_byte_scales(r);
	for (uint64_t i = 0; r->q->is_float && i < r->n * r->q->groups; i++) {
		r->scale[i] = widened(r->q->number, r->scale[i]);
		float scale = as_float(r->scale[i]);
		if (!(fabsf(scale) < FP8_SCALE_END))
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: row %" PRIu64 " of tensor %s has the scale %g, expected less than %g",
			                 label_of(r), r->first + i / r->q->groups, r->t->name, (double)scale,
			                 (double)FP8_SCALE_END);
	}
	return true;
}

static bool check_order(const struct rows *r)
{
	if (!r->q->has_order)
		return true;
	if (!fetch(r, &r->q->order_of_columns, 0, r->cols * 4))
		return false;
	for (uint64_t k = 0; k < r->cols; k++) {
		uint32_t group = word_at(r->raw + 4 * k);
		if (group != k / r->q->group)
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: column %" PRIu64 " of tensor %s is of group %" PRId32
			                 " (g_idx, desc_act), expected %" PRIu64
			                 ": columns in an order of their own are not supported",
			                 label_of(r), k, r->t->name, (int32_t)group, k / r->q->group);
	}
	return true;
}

/* ---- blocks */

/* Byte i takes the low bits of i and, above it, of 16 + i. */
static void put_nibbles(uint8_t out[16], const uint8_t quant[BLOCK_K])
{
	for (unsigned i = 0; i < 16; i++)
		out[i] = (uint8_t)((quant[i] & 15) | quant[16 + i] << 4);
}

static void put_fifths(uint8_t out[4], const uint8_t quant[BLOCK_K])
{
	memset(out, 0, 4);
	for (unsigned i = 0; i < BLOCK_K; i++)
		out[i / 8] |= (uint8_t)(quant[i] >> 4 << i % 8);
}

/* Of a number that is the upper half of an f32, `times` it, a power of two: exact. */
static uint16_t times_upper(uint32_t bits, float times)
{
	float f = as_float(bits << 16) * times;
	uint32_t product;

	memcpy(&product, &f, 4);
	return (uint16_t)(product >> 16);
}

static void put_bytes(uint8_t *out, const uint8_t quant[BLOCK_K], uint8_t flip)
{
	for (unsigned i = 0; i < BLOCK_K; i++)
		out[i] = quant[i] ^ flip;
}

/* A block from its quants, scale, and minimum or zero point. */
static void put_block(uint8_t *out, enum dtype type, const struct model_quants *q, const uint8_t quant[BLOCK_K],
                      uint32_t scale, uint16_t other)
{
	if (q->offset == OFFSET_HALF && (type == DTYPE_MLX4 || type == DTYPE_MLX8))
		other = times_upper(scale, type == DTYPE_MLX4 ? -8 : -128);
	memcpy(out, &scale, type == DTYPE_FP8 ? 4 : type == DTYPE_MXFP4 ? 1 : 2);
	switch (type) {
	case DTYPE_MXFP4: put_nibbles(out + 1, quant); return;
	case DTYPE_Q4_0: put_nibbles(out + 2, quant); return;
	case DTYPE_Q8_0: put_bytes(out + 2, quant, 0x80); return;
	case DTYPE_AWQ4:
	case DTYPE_AWQ4_BF16:
		out[2] = (uint8_t)other;
		put_nibbles(out + 3, quant);
		return;
	case DTYPE_FP8: put_bytes(out + 4, quant, 0); return;
	default: break;
	}
	memcpy(out + 2, &other, 2);
	if (type == DTYPE_MLX8 || type == DTYPE_MLX8_F16) {
		put_bytes(out + 4, quant, 0);
		return;
	}
	if (type == DTYPE_Q5_1)
		put_fifths(out + 4, quant);
	put_nibbles(out + (type == DTYPE_Q5_1 ? 8 : 4), quant);
}

/* Four scales, and of each 16 columns the first eight low. */
static void put_nvfp4(uint8_t *out, const uint8_t quant[64], const uint32_t scale[4])
{
	for (unsigned part = 0; part < 4; part++) {
		out[part] = (uint8_t)scale[part];
		for (unsigned i = 0; i < 8; i++)
			out[4 + 8 * part + i] = (uint8_t)(quant[16 * part + i] | quant[16 * part + 8 + i] << 4);
	}
}

static void put_rows(const struct rows *r, uint8_t *out)
{
	unsigned bytes = dtype_table[r->t->type].bytes;
	uint64_t blocks = r->cols / BLOCK_K;

	for (uint64_t i = 0; r->t->type == DTYPE_NVFP4 && i < r->n * r->cols / 64; i++)
		put_nvfp4(out + i * bytes, r->quant + i * 64, r->scale + i * 4);
	for (uint64_t i = 0; r->t->type == DTYPE_TQ2_0 && i < r->n * r->cols / 256; i++)
		ternary_put(out + i * bytes, r->quant + i * 256, r->scale[i * 256 / r->cols]);
	for (uint64_t i = 0; r->t->type != DTYPE_NVFP4 && r->t->type != DTYPE_TQ2_0 && i < r->n; i++)
		for (uint64_t b = 0; b < blocks; b++) {
			uint64_t g = i * r->q->groups + b * BLOCK_K / r->q->group;
			put_block(out + (i * blocks + b) * bytes, r->t->type, r->q,
			          r->quant + i * r->cols + b * BLOCK_K, r->scale[g],
			          r->q->offset == OFFSET_HALF ? 0 : r->offset[g]);
		}
}

static bool read_rows(struct rows *r, uint8_t *out)
{
	const struct model_quants *q = r->q;
	bool in_columns = q->order != QUANTS_IN_ROWS && q->order != QUANTS_BY_QUARTERS;

	if (!check_order(r) || !read_quants(r) ||
	    !(in_columns ? scales_in_columns(r) : numbers_in_rows(r, &q->scales, true)) || !check_scales(r) ||
	    !read_offsets(r))
		return false;
	put_rows(r, out);
	return true;
}

bool model_read_affine(const struct model *m, const struct model_tensor *t, const struct model_quants *q,
                       uint64_t offset, size_t bytes, void *out, struct error *err)
{
	uint64_t first = offset / t->row_bytes, n = (offset + bytes + t->row_bytes - 1) / t->row_bytes - first;
	bool whole = offset == first * t->row_bytes && bytes == n * t->row_bytes;
	struct rows r = { .part = m->file->part,
		          .t = t,
		          .q = q,
		          .first = q->first_row + first,
		          .n = n,
		          .cols = t->cols,
		          .quant = malloc(n * t->cols + 1),
		          .scale = malloc(n * q->groups * 4 + 4),
		          .offset = calloc(n * q->groups + 1, 2),
		          .raw = malloc(raw_bytes(t, q, n)),
		          .err = err };
	uint8_t *rows = whole ? out : malloc(n * t->row_bytes + 1);
	bool ok = n == 0 ||
	          (r.quant && r.scale && r.offset && r.raw && rows
	                   ? read_rows(&r, rows)
	                   : error_set(err, ERROR_MEMORY, "no memory for %" PRIu64 " rows of tensor %s", n, t->name));

	if (!whole) {
		if (ok && n)
			memcpy(out, rows + (offset - first * t->row_bytes), bytes);
		free(rows);
	}
	free(r.quant);
	free(r.scale);
	free(r.offset);
	free(r.raw);
	return ok;
}
