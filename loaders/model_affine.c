/* loaders/model_affine.c - weights of four bits that are several tensors: as MLX writes them, and compressed-tensors.
 *
 * Owns: how these tensors are found and checked, and their reading as rows of blocks of one type. MLX: NAME.weight
 * holds 32-bit words, the quant of the lowest column in the lowest bits; NAME.scales and NAME.biases a number for each
 * group of columns. A weight is scale * q + bias. compressed-tensors: NAME.weight_packed and NAME.weight_scale, in the
 * same order; a weight is scale * (q - 8); and NAME.weight_shape, which says again what the model says. The types read
 * have blocks of 32 columns: what a larger group has is there again in each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model_load.h"

enum { BLOCK_K = 32, QUANT_BYTES = 16, NAME_CAP = 128 };

/* A tensor beside the quants, which has a number for each group. */
static bool find_beside(struct model_file *f, const char *name, const char *last, uint64_t rows,
                        struct found_tensor *out, struct error *err)
{
	size_t n = strlen(name) - strlen(".weight");
	char beside[NAME_CAP];

	snprintf(beside, sizeof beside, "%.*s%s", (int)n, name, last);
	if (!model_find_tensor(f, beside, out))
		return error_set(err, ERROR_FORMAT, "%s: the tensor %s is missing, which %s needs",
		                 f->part[0].file.label, beside, name);
	if (out->type != DTYPE_F16 && out->type != DTYPE_BF16)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, expected F16 or BF16", out->label,
		                 beside, dtype_table[out->type].name);
	if (out->rank != 2 || out->dim[1] != rows)
		return error_set(err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64, out->label,
		                 beside, out->rank == 2 ? out->dim[1] : 0, rows);
	f->used[out->entry] = true;
	return true;
}

bool model_find_packed(const struct model_file *f, const char *name, struct found_tensor *out)
{
	char packed[NAME_CAP];

	return f->quants == QUANTS_PACKED && snprintf(packed, sizeof packed, "%s_packed", name) < NAME_CAP &&
	       model_find_tensor(f, packed, out);
}

static bool check_quants(const struct model_file *f, const char *name, const struct found_tensor *quants,
                         const struct affine_shape *shape, struct error *err)
{
	size_t n = strlen(name);
	enum dtype type = f->quants == QUANTS_MLX ? DTYPE_U32 : DTYPE_I32;

	if (n < 8 || n >= NAME_CAP || strcmp(name + n - 7, ".weight") != 0)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is quantised, but its name does not end in .weight", quants->label,
		                 name);
	if (quants->type != type)
		return error_set(err, ERROR_FORMAT, "%s: the quants of tensor %s have type %s, expected %s",
		                 quants->label, name, dtype_table[quants->type].name, dtype_table[type].name);
	if (quants->rank != 2 || quants->dim[1] != shape->all_rows)
		return error_set(err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64,
		                 quants->label, name, quants->rank == 2 ? quants->dim[1] : 0, shape->all_rows);
	if (quants->dim[0] > UINT64_MAX / 8 || quants->dim[0] * 8 != shape->cols)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " words in a row, expected %" PRIu64
		                 ": quantised weights of safetensors must have 4 bits",
		                 quants->label, name, quants->dim[0], shape->cols / 8);
	return true;
}

/* Says nothing that the model does not say. */
static void pass_shape(struct model_file *f, const char *name)
{
	struct found_tensor t;
	char shape[NAME_CAP + 8];

	snprintf(shape, sizeof shape, "%s_shape", name);
	if (model_find_tensor(f, shape, &t))
		f->used[t.entry] = true;
}

bool model_bind_affine(struct model_file *f, const char *name, const struct found_tensor *quants,
                       const struct affine_shape *shape, struct model_tensor *out, struct error *err)
{
	struct found_tensor scales, minima = { 0 };
	bool symmetric = f->quants == QUANTS_PACKED;
	uint64_t cols = shape->cols, group = 0;

	if (!check_quants(f, name, quants, shape, err) ||
	    !find_beside(f, name, symmetric ? ".weight_scale" : ".scales", shape->all_rows, &scales, err) ||
	    (!symmetric && !find_beside(f, name, ".biases", shape->all_rows, &minima, err)))
		return false;
	if (scales.dim[0] && cols % scales.dim[0] == 0)
		group = cols / scales.dim[0];
	if (group == 0 || group % BLOCK_K || group > UINT32_MAX)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " scales for %" PRIu64
		                 " columns, expected one for a multiple of 32",
		                 quants->label, name, scales.dim[0], cols);
	if (!symmetric && (minima.dim[0] != scales.dim[0] || minima.type != scales.type))
		return error_set(err, ERROR_FORMAT,
		                 "%s: the biases of tensor %s differ from its scales in type or shape", quants->label,
		                 name);
	enum dtype type = scales.type == DTYPE_BF16 ? DTYPE_MLX4 : symmetric ? DTYPE_Q4_0 : DTYPE_Q4_1;
	uint64_t numbers = scales.dim[0] * 2 * shape->first_row, row_bytes = cols / BLOCK_K * dtype_table[type].bytes;
	*out = (struct model_tensor){
		.type = type,
		.rows = shape->rows,
		.cols = cols,
		.part = quants->part,
		.offset = quants->offset + shape->first_row * (cols / 2),
		.row_bytes = (size_t)row_bytes,
		.bytes = (size_t)(row_bytes * shape->rows),
		.group = (uint32_t)group,
		.symmetric = symmetric,
		.scales = { scales.part, scales.offset + numbers },
		.minima = { minima.part, minima.offset + numbers }
	};
	f->used[quants->entry] = true;
	if (symmetric)
		pass_shape(f, name);
	return true;
}

/* The quants of 32 columns: byte i takes those of i and, above it, of 16 + i. */
static void put_quants(uint8_t out[QUANT_BYTES], const uint8_t in[QUANT_BYTES])
{
	for (unsigned i = 0; i < QUANT_BYTES; i++) {
		unsigned low = in[i / 2] >> i % 2 * 4 & 15, high = in[8 + i / 2] >> i % 2 * 4 & 15;
		out[i] = (uint8_t)(low | high << 4);
	}
}

/* Eight times the number, with the sign turned, of a number that is the upper half of an f32: exact. */
static void put_offset(uint8_t out[2], const uint8_t scale[2])
{
	uint8_t bytes[4] = { 0, 0, scale[0], scale[1] };
	float f;

	memcpy(&f, bytes, 4);
	f *= -8;
	memcpy(bytes, &f, 4);
	memcpy(out, bytes + 2, 2);
}

/* A block from its quants, scale and minimum, which is NULL where there is none. */
static void put_block(uint8_t *out, enum dtype type, const uint8_t quants[QUANT_BYTES], const uint8_t *scale,
                      const uint8_t *minimum)
{
	memcpy(out, scale, 2);
	if (minimum)
		memcpy(out + 2, minimum, 2);
	else if (type == DTYPE_MLX4)
		put_offset(out + 2, scale);
	put_quants(out + (type == DTYPE_Q4_0 ? 2 : 4), quants);
}

/* Whole rows. The quants are read to the end of `out`; a block's are behind what is written before it is made. */
static bool read_rows(const struct model *m, const struct model_tensor *t, uint64_t first, uint64_t rows, uint8_t *out,
                      uint8_t *numbers, struct error *err)
{
	const struct model_part *part = m->file->part;
	uint64_t blocks = t->cols / BLOCK_K, groups = t->cols / t->group, all = rows * blocks,
		 bytes = rows * groups * 2;
	unsigned block_bytes = dtype_table[t->type].bytes;
	uint8_t *quants = out + all * (block_bytes - QUANT_BYTES), *minima = numbers + bytes;

	if (!file_read(&part[t->part].file, t->offset + first * (t->cols / 2), all * QUANT_BYTES, quants, err) ||
	    !file_read(&part[t->scales.part].file, t->scales.offset + first * groups * 2, bytes, numbers, err) ||
	    (!t->symmetric &&
	     !file_read(&part[t->minima.part].file, t->minima.offset + first * groups * 2, bytes, minima, err)))
		return false;
	for (uint64_t i = 0; i < all; i++) {
		uint8_t own[QUANT_BYTES];
		uint64_t at = (i / blocks * groups + i % blocks * BLOCK_K / t->group) * 2;
		memcpy(own, quants + i * QUANT_BYTES, QUANT_BYTES);
		put_block(out + i * block_bytes, t->type, own, numbers + at, t->symmetric ? NULL : minima + at);
	}
	return true;
}

bool model_read_affine(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes, void *out,
                       struct error *err)
{
	uint64_t first = offset / t->row_bytes, end = (offset + bytes + t->row_bytes - 1) / t->row_bytes;
	bool whole = offset == first * t->row_bytes && bytes == (end - first) * t->row_bytes;
	uint8_t *numbers = malloc((end - first) * (t->cols / t->group) * 4 + 1),
		*rows = whole ? out : malloc((end - first) * t->row_bytes);
	bool ok = numbers && rows ? read_rows(m, t, first, end - first, rows, numbers, err)
	                          : error_set(err, ERROR_MEMORY, "no memory for %" PRIu64 " rows of tensor %s",
	                                      end - first, t->name);

	if (!whole) {
		if (ok)
			memcpy(out, rows + (offset - first * t->row_bytes), bytes);
		free(rows);
	}
	free(numbers);
	return ok;
}
