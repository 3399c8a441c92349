/* loaders/model_affine.c - weights as MLX writes them: a matrix is three tensors, quants, scales and minima ("biases").
 *
 * Owns: how the three are found and checked, and their reading as rows of blocks of one type. NAME.weight holds 32-bit
 * words, the quant of the lowest column in the lowest bits; NAME.scales and NAME.biases a number for each group of 32,
 * 64 or 128 columns. A weight is scale * q + minimum. The type read has blocks of 32 columns: a larger group's two
 * numbers are there again in each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model_load.h"

enum { BLOCK_K = 32, BLOCK_BYTES = 20, QUANT_BYTES = 16, NAME_CAP = 128 };

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

bool model_bind_affine(struct model_file *f, const char *name, const struct found_tensor *quants,
                       const struct affine_shape *shape, struct model_tensor *out, struct error *err)
{
	struct found_tensor scales, minima;
	uint64_t cols = shape->cols, group = 0;
	size_t n = strlen(name);

	if (n < 8 || n >= NAME_CAP || strcmp(name + n - 7, ".weight") != 0)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has type U32, but its name does not end in .weight", quants->label,
		                 name);
	if (quants->rank != 2 || quants->dim[1] != shape->all_rows)
		return error_set(err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64,
		                 quants->label, name, quants->rank == 2 ? quants->dim[1] : 0, shape->all_rows);
	if (quants->dim[0] > UINT64_MAX / 8 || quants->dim[0] * 8 != cols)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " words in a row, expected %" PRIu64
		                 ": weights of 4 bits alone are multiplied as MLX writes them",
		                 quants->label, name, quants->dim[0], cols / 8);
	if (!find_beside(f, name, ".scales", shape->all_rows, &scales, err) ||
	    !find_beside(f, name, ".biases", shape->all_rows, &minima, err))
		return false;
	if (scales.dim[0] && cols % scales.dim[0] == 0)
		group = cols / scales.dim[0];
	if (group != 32 && group != 64 && group != 128)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " scales for %" PRIu64
		                 " columns, expected one for 32, 64 or 128",
		                 quants->label, name, scales.dim[0], cols);
	if (minima.dim[0] != scales.dim[0] || minima.type != scales.type)
		return error_set(err, ERROR_FORMAT,
		                 "%s: the biases of tensor %s differ from its scales in type or shape", quants->label,
		                 name);
	uint64_t numbers = scales.dim[0] * 2 * shape->first_row;
	*out = (struct model_tensor){
		.type = scales.type == DTYPE_F16 ? DTYPE_Q4_1 : DTYPE_MLX4,
		.rows = shape->rows,
		.cols = cols,
		.part = quants->part,
		.offset = quants->offset + shape->first_row * (cols / 2),
		.row_bytes = (size_t)(cols / BLOCK_K * BLOCK_BYTES),
		.bytes = (size_t)(cols / BLOCK_K * BLOCK_BYTES * shape->rows),
		.group = (uint32_t)group,
		.scales = { scales.part, scales.offset + numbers },
		.minima = { minima.part, minima.offset + numbers }
	};
	f->used[quants->entry] = true;
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

/* Whole rows. The quants are read to the end of `out`; a block's are behind what is written before it is made. */
static bool read_rows(const struct model *m, const struct model_tensor *t, uint64_t first, uint64_t rows, uint8_t *out,
                      uint8_t *numbers, struct error *err)
{
	const struct model_part *part = m->file->part;
	uint64_t blocks = t->cols / BLOCK_K, groups = t->cols / t->group, all = rows * blocks;
	uint8_t *quants = out + all * (BLOCK_BYTES - QUANT_BYTES), *minima = numbers + rows * groups * 2;

	if (!file_read(&part[t->part].file, t->offset + first * (t->cols / 2), all * QUANT_BYTES, quants, err) ||
	    !file_read(&part[t->scales.part].file, t->scales.offset + first * groups * 2, rows * groups * 2, numbers,
	               err) ||
	    !file_read(&part[t->minima.part].file, t->minima.offset + first * groups * 2, rows * groups * 2, minima,
	               err))
		return false;
	for (uint64_t i = 0; i < all; i++) {
		uint8_t own[QUANT_BYTES], *to = out + i * BLOCK_BYTES;
		uint64_t at = i / blocks * groups + i % blocks * BLOCK_K / t->group;
		memcpy(own, quants + i * QUANT_BYTES, QUANT_BYTES);
		memcpy(to, numbers + at * 2, 2);
		memcpy(to + 2, minima + at * 2, 2);
		put_quants(to + 4, own);
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
