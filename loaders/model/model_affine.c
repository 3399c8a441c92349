/* loaders/model/model_affine.c - quantised weights of safetensors that are several tensors: how these are found and
 * checked.
 *
 * Owns: the names, types and shapes of these tensors, and which type of ours holds their weights exactly. NAME.weight
 * is the matrix's name; columns are those of a row of it. MLX: NAME.weight, words of the quants of a row; NAME.scales
 * and NAME.biases, a number for each group of columns. A weight is scale * q + bias. Without biases scales are bytes,
 * and q is a number of FP4 or FP8. All experts' tensors may be one, which has a dimension more. compressed-tensors:
 * NAME.weight_packed or NAME.weight, NAME.weight_scale, perhaps NAME.weight_zero_point (integers of rows, eight in a
 * word) and NAME.weight_g_idx; scale * (q - zero). FP8: scale * number. NAME.weight_shape says again what the model
 * says. FP8 of others: NAME.weight and NAME.weight_scale_inv, which is a scale all the same. GPTQ, AWQ: NAME.qweight,
 * NAME.qzeros, NAME.scales, all of them transposed; BitNet: NAME.weight and NAME.weight_scale; GPTQ's NAME.g_idx is the
 * group of each column. model_affine_read.c makes blocks of them: what a larger group has is there again in each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"

enum { BLOCK_K = 32, NAME_CAP = 128 };

/* The descriptions that one request made room for. */
struct kept_quants {
	struct kept_quants *next;
	struct model_quants q[];
};

struct model_quants *model_keep_quants(struct model_file *f, size_t n, struct error *err)
{
	struct kept_quants *k = calloc(1, sizeof *k + n * sizeof *k->q);

	if (!k) {
		error_set(err, ERROR_MEMORY, "no memory to describe %zu quantised matrices", n);
		return NULL;
	}
	k->next = f->kept_quants;
	f->kept_quants = k;
	return k->q;
}

void model_free_quants(struct model_file *f)
{
	while (f->kept_quants) {
		struct kept_quants *next = f->kept_quants->next;
		free(f->kept_quants);
		f->kept_quants = next;
	}
}

/* ---- tensors by name */

/* One matrix whose tensors are looked for. */
struct binding {
	struct model_file *f;
	const char *name; /* NAME.weight */
	const struct found_tensor *quants;
	const struct affine_shape *shape;
	struct model_quants *q;
	struct error *err;
};

/* NAME with another end. */
static const char *beside_name(char out[NAME_CAP], const char *name, const char *end)
{
	snprintf(out, NAME_CAP, "%.*s%s", (int)(strlen(name) - strlen(".weight")), name, end);
	return out;
}

static bool ends_in_weight(const char *name)
{
	size_t n = strlen(name);
	return n > 7 && n < NAME_CAP - 16 && strcmp(name + n - 7, ".weight") == 0;
}

bool model_find_quants(const struct model_file *f, const char *name, struct found_tensor *out)
{
	char quants[NAME_CAP];
	const char *end = f->quants.form == QUANTS_PACKED ? ".weight_packed"
	                  : f->quants.form == QUANTS_GPTQ || f->quants.form == QUANTS_AWQ
	                          ? ".qweight"
	                          : NULL;

	return end && ends_in_weight(name) && model_find_tensor(f, beside_name(quants, name, end), out);
}

bool model_is_quants(const struct model_file *f, enum dtype type)
{
	return (f->quants.form == QUANTS_MLX && type == DTYPE_U32) ||
	       (f->quants.form == QUANTS_BYTES && type == DTYPE_I8) ||
	       (f->quants.form == QUANTS_FLOAT8 && type == DTYPE_F8_E4M3) ||
	       (f->quants.form == QUANTS_TERNARY && type == DTYPE_U8);
}

/* Experts' rows are one behind the other. */
static void flatten(const struct binding *b, struct found_tensor *t)
{
	if (!b->shape->experts || t->rank != 3 || t->dim[2] != b->shape->experts)
		return;
	t->dim[1] *= t->dim[2];
	t->dim[2] = 1;
	t->rank = 2;
}

static bool find_beside(const struct binding *b, const char *end, struct found_tensor *out, struct expert_location *at)
{
	char beside[NAME_CAP];

	if (!model_find_tensor(b->f, beside_name(beside, b->name, end), out))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing, which %s needs",
		                 b->f->part[0].file.label, beside, b->name);
	b->f->used[out->entry] = true;
	flatten(b, out);
	*at = (struct expert_location){ out->part, out->offset };
	return true;
}

/* What is there, says nothing that is asked for, and changes nothing. */
static void pass(const struct binding *b, const char *end)
{
	struct found_tensor t;
	char beside[NAME_CAP];

	if (model_find_tensor(b->f, beside_name(beside, b->name, end), &t))
		b->f->used[t.entry] = true;
}

static bool check_number(const struct binding *b, const char *end, const struct found_tensor *t, bool f32)
{
	char beside[NAME_CAP];

	if (t->type == DTYPE_F16 || t->type == DTYPE_BF16 || (f32 && t->type == DTYPE_F32))
		return true;
	return error_set(b->err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, expected %sF16 or BF16", t->label,
	                 beside_name(beside, b->name, end), dtype_table[t->type].name, f32 ? "F32, " : "");
}

static bool check_shape(const struct binding *b, const char *end, const struct found_tensor *t, uint64_t rows,
                        uint64_t cols)
{
	char beside[NAME_CAP];

	if (t->rank == 2 && t->dim[1] == rows && t->dim[0] == cols)
		return true;
	return error_set(b->err, ERROR_FORMAT,
	                 "%s: tensor %s has shape (%" PRIu64 " x %" PRIu64 "), expected (%" PRIu64 " x %" PRIu64 ")",
	                 t->label, beside_name(beside, b->name, end), t->rank == 2 ? t->dim[1] : 0, t->dim[0], rows,
	                 cols);
}

static bool check_type(const struct binding *b, const char *end, const struct found_tensor *t, enum dtype type)
{
	char beside[NAME_CAP];

	return t->type == type ||
	       error_set(b->err, ERROR_FORMAT, "%s: tensor %s has type %s, expected %s", t->label,
	                 beside_name(beside, b->name, end), dtype_table[t->type].name, dtype_table[type].name);
}

/* Of a row that has so many scales. */
static bool take_groups(const struct binding *b, const char *end, const struct found_tensor *t, uint64_t groups)
{
	uint64_t cols = b->shape->cols, group = groups && cols % groups == 0 ? cols / groups : 0;
	char beside[NAME_CAP];

	if (group == 0 || group % BLOCK_K || group > UINT32_MAX)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " scales for %" PRIu64
		                 " columns, expected one for a multiple of 32",
		                 t->label, beside_name(beside, b->name, end), groups, cols);
	b->q->group = (uint32_t)group;
	b->q->groups = groups;
	return true;
}

static bool check_rows(const struct binding *b, const char *end, const struct found_tensor *t)
{
	char beside[NAME_CAP];

	return (t->rank == 2 && t->dim[1] == b->shape->all_rows) ||
	       error_set(b->err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64, t->label,
	                 beside_name(beside, b->name, end), t->rank == 2 ? t->dim[1] : 0, b->shape->all_rows);
}

/* ---- quants */

/* Words of a row, and the bits that they have for each column. */
static bool take_words(const struct binding *b, enum dtype type, const char *widths)
{
	const struct found_tensor *t = b->quants;
	uint64_t cols = b->shape->cols, words = t->dim[0];

	if (t->type != type)
		return error_set(b->err, ERROR_FORMAT, "%s: the quants of tensor %s have type %s, expected %s",
		                 t->label, b->name, dtype_table[t->type].name, dtype_table[type].name);
	if (t->rank != 2 || t->dim[1] != b->shape->all_rows)
		return error_set(b->err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64,
		                 t->label, b->name, t->rank == 2 ? t->dim[1] : 0, b->shape->all_rows);
	uint64_t bits = words < UINT64_MAX / 32 && cols && words * 32 % cols == 0 ? words * 32 / cols : 0;
	if (bits < 1 || bits > 8 || cols % BLOCK_K || !strchr(widths, '0' + (int)bits))
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " words in a row of %" PRIu64
		                 " columns, expected %s bits for each of a multiple of 32",
		                 t->label, b->name, words, cols, widths);
	b->q->bits = (uint8_t)bits;
	return true;
}

/* FP4 or FP8 with scales of a byte: powers of two for 32 columns, or FP8 without a sign for 16. */
static bool bind_mlx_floats(struct binding *b, const struct found_tensor *scales)
{
	const uint64_t cols = b->shape->cols, groups = scales->dim[0], group = groups ? cols / groups : 0;
	const bool halves = group == 16 && b->q->bits == 4 && cols % 64 == 0;
	char beside[NAME_CAP];

	if (!check_rows(b, ".scales", scales))
		return false;
	if (groups * group != cols || !(halves || group == 32) || (b->q->bits != 4 && b->q->bits != 8))
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " scales of a byte for %" PRIu64
		                 " columns of %d bits, expected one for 32 columns of 4 or 8 bits, or one for 16 of a "
		                 "multiple of 64 columns of 4 bits",
		                 scales->label, beside_name(beside, b->name, ".scales"), groups, cols, b->q->bits);
	b->q->group = (uint32_t)group;
	b->q->groups = groups;
	b->q->is_float = true;
	b->q->number = DTYPE_U8;
	return true;
}

/* MLX. */
static bool bind_mlx(struct binding *b)
{
	struct found_tensor scales, minima;

	if (!take_words(b, DTYPE_U32, "2, 3, 4, 5, 6 or 8") || !find_beside(b, ".scales", &scales, &b->q->scales))
		return false;
	if (scales.type == DTYPE_U8)
		return bind_mlx_floats(b, &scales);
	if (!check_number(b, ".scales", &scales, false) || !check_rows(b, ".scales", &scales) ||
	    !take_groups(b, ".scales", &scales, scales.dim[0]) || !find_beside(b, ".biases", &minima, &b->q->others))
		return false;
	if (minima.rank != 2 || minima.dim[0] != scales.dim[0] || minima.dim[1] != scales.dim[1] ||
	    minima.type != scales.type)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the biases of tensor %s differ from its scales in type or shape",
		                 b->quants->label, b->name);
	b->q->offset = OFFSET_MINIMA;
	b->q->number = scales.type;
	return true;
}

/* Zero points of compressed-tensors. */
static bool take_packed_zeros(struct binding *b)
{
	static const char end[] = ".weight_zero_point";
	struct found_tensor t;
	char beside[NAME_CAP];

	if (!model_find_tensor(b->f, beside_name(beside, b->name, end), &t) && b->f->quants.symmetric)
		return true;
	if (!find_beside(b, end, &t, &b->q->others) || !check_type(b, end, &t, DTYPE_I32) ||
	    !check_shape(b, end, &t, (b->shape->all_rows + 7) / 8, b->q->groups))
		return false;
	b->q->offset = OFFSET_ZEROS;
	return b->q->bits == 4 || error_set(b->err, ERROR_UNSUPPORTED,
	                                    "%s: tensor %s has zero points and %d bits, expected 4 bits, or none",
	                                    b->quants->label, b->name, b->q->bits);
}

/* The group of each column, which must be the usual one: checked when it is read. */
static bool take_order(struct binding *b, const char *end)
{
	struct found_tensor t;
	char beside[NAME_CAP];

	if (!model_find_tensor(b->f, beside_name(beside, b->name, end), &t))
		return true;
	if (!find_beside(b, end, &t, &b->q->order_of_columns) || !check_type(b, end, &t, DTYPE_I32))
		return false;
	b->q->has_order = true;
	return (t.rank == 1 && t.dim[0] == b->shape->cols) ||
	       error_set(b->err, ERROR_FORMAT,
	                 "%s: tensor %s has %" PRIu64 " numbers, expected one for each of %" PRIu64 " columns", t.label,
	                 beside, t.dim[0], b->shape->cols);
}

/* compressed-tensors' integers. */
static bool bind_integers(struct binding *b)
{
	struct found_tensor scales;
	bool bytes = b->f->quants.form == QUANTS_BYTES;

	if (bytes) {
		if (!check_shape(b, ".weight", b->quants, b->shape->all_rows, b->shape->cols))
			return false;
		b->q->bits = 8;
		b->q->is_signed = true;
	} else if (!take_words(b, DTYPE_I32, "4 or 8")) {
		return false;
	}
	if (!find_beside(b, ".weight_scale", &scales, &b->q->scales) ||
	    !check_number(b, ".weight_scale", &scales, false) || !check_rows(b, ".weight_scale", &scales) ||
	    !take_groups(b, ".weight_scale", &scales, scales.dim[0]))
		return false;
	b->q->number = scales.type;
	pass(b, ".weight_shape");
	pass(b, ".input_scale");
	return bytes || (take_packed_zeros(b) && take_order(b, ".weight_g_idx"));
}

/* A scale for the tensor, for each row, for each group of its columns, or for blocks. */
static bool take_float_scales(struct binding *b, const char *end, const struct found_tensor *t)
{
	uint64_t rows = b->shape->all_rows, cols = b->shape->cols;
	const uint32_t *block = b->f->quants.block;

	if (t->rank == 0 || (t->rank == 1 && t->dim[0] == 1)) {
		b->q->group_rows = rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
		return take_groups(b, end, t, 1);
	}
	if (!block[0])
		return check_rows(b, end, t) && take_groups(b, end, t, t->dim[0]);
	b->q->group_rows = block[0];
	b->q->group = block[1];
	b->q->groups = (cols + block[1] - 1) / block[1];
	return check_shape(b, end, t, (rows + block[0] - 1) / block[0], b->q->groups);
}

static bool bind_float8(struct binding *b)
{
	struct found_tensor scales;
	char beside[NAME_CAP];
	const char *end = ".weight_scale_inv";

	if (!check_shape(b, ".weight", b->quants, b->shape->all_rows, b->shape->cols))
		return false;
	if (b->shape->cols % BLOCK_K)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " columns of FP8, expected a multiple of 32",
		                 b->quants->label, b->name, b->shape->cols);
	if (!model_find_tensor(b->f, beside_name(beside, b->name, end), &scales))
		end = ".weight_scale";
	if (!find_beside(b, end, &scales, &b->q->scales) || !check_number(b, end, &scales, true) ||
	    !take_float_scales(b, end, &scales))
		return false;
	b->q->bits = 8;
	b->q->is_float = true;
	b->q->number = scales.type;
	pass(b, ".input_scale"); /* of activations, which stay as they are */
	pass(b, ".activation_scale");
	return true;
}

/* GPTQ and AWQ. */
static bool bind_words(struct binding *b)
{
	struct found_tensor scales, zeros;
	uint64_t rows = b->shape->all_rows, cols = b->shape->cols;
	const bool awq = b->f->quants.form == QUANTS_AWQ, bytes = b->f->quants.bits == 8;
	const unsigned each = bytes ? 4 : 8; /* integers of a word */

	b->q->order = awq ? QUANTS_BY_EIGHT_ROWS : QUANTS_BY_COLUMNS;
	b->q->bits = bytes ? 8 : 4;
	if (rows % 8 || cols % BLOCK_K)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " x %" PRIu64
		                 " weights, expected multiples of 8 rows and 32 columns",
		                 b->quants->label, b->name, rows, cols);
	if (!check_type(b, ".qweight", b->quants, DTYPE_I32) ||
	    !check_shape(b, ".qweight", b->quants, awq ? cols : cols / each, awq ? rows / 8 : rows) ||
	    !find_beside(b, ".scales", &scales, &b->q->scales) || !check_number(b, ".scales", &scales, false) ||
	    !take_groups(b, ".scales", &scales, scales.rank == 2 ? scales.dim[1] : 0) ||
	    !check_shape(b, ".scales", &scales, b->q->groups, rows) ||
	    !find_beside(b, ".qzeros", &zeros, &b->q->others) || !check_type(b, ".qzeros", &zeros, DTYPE_I32) ||
	    !check_shape(b, ".qzeros", &zeros, b->q->groups, rows / each))
		return false;
	b->q->number = scales.type;
	b->q->plus_one = b->f->quants.plus_one;
	b->q->check_half = b->f->quants.symmetric;
	b->q->offset = b->q->check_half ? OFFSET_HALF : OFFSET_ZEROS;
	return awq || take_order(b, ".g_idx");
}

/* BitNet: -1, 0 and 1, and one scale. */
static bool bind_ternary(struct binding *b)
{
	enum { COLUMNS = 256 };
	static const char end[] = ".weight_scale";
	const uint64_t rows = b->shape->all_rows, cols = b->shape->cols;
	struct found_tensor scale;
	char beside[NAME_CAP];

	if (rows % 4 || cols % COLUMNS || rows > UINT32_MAX)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " x %" PRIu64
		                 " ternary weights, expected multiples of 4 rows and %d columns",
		                 b->quants->label, b->name, rows, cols, COLUMNS);
	if (!check_shape(b, ".weight", b->quants, rows / 4, cols) || !find_beside(b, end, &scale, &b->q->scales) ||
	    !check_number(b, end, &scale, true))
		return false;
	b->q->order = QUANTS_BY_QUARTERS;
	b->q->bits = 2;
	b->q->number = scale.type;
	b->q->group_rows = (uint32_t)rows;
	b->q->group = (uint32_t)cols;
	b->q->groups = 1;
	return scale.rank == 0 || (scale.rank == 1 && scale.dim[0] == 1) ||
	       error_set(b->err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " numbers, expected one", scale.label,
	                 beside_name(beside, b->name, end), scale.dim[0]);
}

/* The type that holds such weights exactly. */
static enum dtype block_type(const struct model_quants *q)
{
	bool half = q->number == DTYPE_F16;

	if (q->order == QUANTS_BY_QUARTERS)
		return DTYPE_TQ2_0;
	if (q->is_float && q->bits == 4)
		return q->group == 16 ? DTYPE_NVFP4 : DTYPE_MXFP4;
	if (q->is_float)
		return DTYPE_FP8;
	if (q->offset == OFFSET_ZEROS)
		return half ? DTYPE_AWQ4 : DTYPE_AWQ4_BF16;
	if (q->offset == OFFSET_HALF)
		return q->bits == 4 ? half ? DTYPE_Q4_0 : DTYPE_MLX4 : half ? DTYPE_Q8_0 : DTYPE_MLX8;
	if (q->bits <= 4)
		return half ? DTYPE_Q4_1 : DTYPE_MLX4;
	return half ? q->bits == 5 ? DTYPE_Q5_1 : DTYPE_MLX8_F16 : DTYPE_MLX8;
}

bool model_bind_affine(struct model_file *f, const char *name, const struct found_tensor *quants,
                       const struct affine_shape *shape, struct model_tensor *out, struct model_quants *q,
                       struct error *err)
{
	struct found_tensor rows = *quants;
	struct binding b = { .f = f, .name = name, .quants = &rows, .shape = shape, .q = q, .err = err };
	static bool (*const bind[])(struct binding *) = {
		[QUANTS_MLX] = bind_mlx,        [QUANTS_PACKED] = bind_integers, [QUANTS_BYTES] = bind_integers,
		[QUANTS_FLOAT8] = bind_float8,  [QUANTS_GPTQ] = bind_words,      [QUANTS_AWQ] = bind_words,
		[QUANTS_TERNARY] = bind_ternary
	};

	if (!ends_in_weight(name))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is quantised, but its name does not end in .weight", quants->label,
		                 name);
	*q = (struct model_quants){ .group_rows = 1,
		                    .all_rows = shape->all_rows,
		                    .first_row = shape->first_row,
		                    .quants = { quants->part, quants->offset } };
	flatten(&b, &rows);
	if (!bind[f->quants.form](&b))
		return false;
	enum dtype type = block_type(q);
	uint64_t row_bytes = dtype_row_bytes(type, shape->cols);
	*out = (struct model_tensor){
		.type = type,
		.rows = shape->rows,
		.cols = shape->cols,
		.part = quants->part,
		.offset = quants->offset,
		.row_bytes = (size_t)row_bytes,
		.bytes = (size_t)(row_bytes * shape->rows)
	};
	f->used[quants->entry] = true;
	return true;
}
