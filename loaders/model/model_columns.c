/* loaders/model/model_columns.c - experts' matrices and biases that do not lie row by row, as gpt-oss's safetensors
 * have them.
 *
 * Owns: how these tensors are found and checked, and their reading as rows. Rows of gate and up alternate in one
 * tensor. Floats lie column by column (NAME: experts, columns, rows). MXFP4 lies row by row, in two tensors:
 * NAME_blocks (experts, rows, blocks, 16 bytes, the lower column of two in the low bits) and NAME_scales, a byte for
 * each block. The type read has both together, and columns i and 16 + i of a block in one byte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_bind.h"

enum { BLOCK_K = 32, QUANT_BYTES = 16, BLOCK_BYTES = QUANT_BYTES + 1, READ_BYTES = 1 << 20 };

/* ---- which tensors they are */

/* The numbers of a tensor's shape, the slowest first. */
struct shape {
	uint32_t rank;
	uint64_t dim[4];
};

static const char *shape_text(char *out, size_t cap, const struct shape *s)
{
	size_t at = 0;

	for (uint32_t d = 0; d < s->rank && d < 4 && at < cap; d++)
		at += (size_t)snprintf(out + at, cap - at, "%s%" PRIu64, d ? " x " : "", s->dim[d]);
	return out;
}

static bool check_shape(struct binder *b, const char *name, const struct found_tensor *t, const struct shape *wanted)
{
	struct shape is = { .rank = t->rank };
	char text[2][100] = { "", "" };
	bool same = t->rank == wanted->rank;

	for (uint32_t d = 0; d < t->rank && t->rank <= 4; d++) {
		is.dim[d] = t->dim[t->rank - 1 - d];
		same = same && is.dim[d] == wanted->dim[d];
	}
	return same || error_set(b->err, ERROR_FORMAT,
	                         "%s: tensor %s has %" PRIu32 " dimensions (%s), expected %" PRIu32 ": (%s)", t->label,
	                         name, t->rank, shape_text(text[0], sizeof text[0], &is), wanted->rank,
	                         shape_text(text[1], sizeof text[1], wanted));
}

static void take(struct binder *b, const char *name, const struct found_tensor *t, struct model_tensor *out)
{
	out->name = bind_keep_name(b->f, name);
	out->part = t->part;
	out->offset = t->offset;
	b->f->used[t->entry] = true;
}

static bool bind_floats(struct binder *b, const char *name, const struct found_tensor *t, struct model_tensor *out)
{
	const struct shape shape = { 3, { out->experts, out->cols, out->own_file_rows } };

	if (!check_shape(b, name, t, &shape))
		return false;
	if (t->type != DTYPE_F32 && t->type != DTYPE_F16 && t->type != DTYPE_BF16)
		return error_set(b->err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, expected F32, F16 or BF16",
		                 t->label, name, dtype_table[t->type].name);
	take(b, name, t, out);
	out->type = t->type;
	out->transposed = true;
	out->row_bytes = (size_t)out->cols * dtype_table[t->type].bytes;
	return true;
}

static bool find_bytes(struct binder *b, const char *name, const struct shape *shape, struct found_tensor *t)
{
	if (!model_find_tensor(b->f, name, t))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	if (t->type != DTYPE_U8)
		return error_set(b->err, ERROR_FORMAT, "%s: tensor %s has type %s, expected U8", t->label, name,
		                 dtype_table[t->type].name);
	return check_shape(b, name, t, shape);
}

static bool bind_mxfp4(struct binder *b, const char *name, struct model_tensor *out)
{
	const struct shape blocks = { 4, { out->experts, out->own_file_rows, out->cols / BLOCK_K, QUANT_BYTES } },
			   scales = { 3, { out->experts, out->own_file_rows, out->cols / BLOCK_K } };
	struct found_tensor t, scale;
	char both[2][NAME_CAP + 8];

	snprintf(both[0], sizeof both[0], "%s_blocks", name);
	snprintf(both[1], sizeof both[1], "%s_scales", name);
	if (out->cols % BLOCK_K)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has %" PRIu64 " columns, expected a multiple of 32",
		                 b->f->part[0].file.label, both[0], out->cols);
	if (!find_bytes(b, both[0], &blocks, &t) || !find_bytes(b, both[1], &scales, &scale))
		return false;
	struct model_quants *q = model_keep_quants(b->f, 1, b->err);
	if (!q)
		return false;
	take(b, name, &t, out);
	b->f->used[scale.entry] = true;
	out->type = DTYPE_MXFP4;
	q->scales = (struct expert_location){ scale.part, scale.offset };
	out->quants = q;
	out->row_bytes = (size_t)(out->cols / BLOCK_K * BLOCK_BYTES);
	return true;
}

bool bind_columns(struct binder *b, const char *name, const struct part_rows *part, struct model_tensor *out)
{
	struct found_tensor t;

	out->own_file_rows = (uint32_t)part->all;
	out->own_first = (uint32_t)(part->first / out->rows);
	return model_find_tensor(b->f, name, &t) ? bind_floats(b, name, &t, out) : bind_mxfp4(b, name, out);
}

/* Square ones do: so they are published. */
bool bind_lies_by_columns(const struct binder *b, const char *name, const struct part_rows *part,
                          const struct model_tensor *of)
{
	struct found_tensor t;

	return b->f->format == MODEL_HF && b->f->arch->experts_by_columns && model_find_tensor(b->f, name, &t) &&
	       t.rank == 3 && t.dim[0] == part->all && t.dim[1] == of->cols;
}

bool bind_by_columns(struct binder *b, const char *name, const struct part_rows *part, struct model_tensor *out)
{
	struct found_tensor t;

	out->own_file_rows = (uint32_t)part->all;
	out->own_first = (uint32_t)part->first;
	out->own_apart = true;
	return model_find_tensor(b->f, name, &t) && bind_floats(b, name, &t, out);
}

bool bind_transposed(struct binder *b, const char *name, uint32_t layer, const struct bind_slot_row *slot,
                     const struct part_rows *part, struct model_tensor *out)
{
	const uint64_t rows = model_width(&b->m->spec, layer, slot->rows),
		       cols = model_width(&b->m->spec, layer, slot->cols), all = part ? part->all : rows;
	const struct shape shape = { 2, { cols, all } };
	struct found_tensor t;

	if (!model_find_tensor(b->f, name, &t) && b->f->wanted)
		return bind_wanted(b, name, &(struct wanted_shape){ rows, cols, part ? part->all : 0, false, true },
		                   out);
	if (!model_find_tensor(b->f, name, &t))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	if (t.type != DTYPE_F32 && t.type != DTYPE_F16 && t.type != DTYPE_BF16)
		return error_set(b->err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, expected F32, F16 or BF16",
		                 t.label, name, dtype_table[t.type].name);
	if (!check_shape(b, name, &t, &shape))
		return false;
	*out = (struct model_tensor){
		.type = t.type,
		.rows = rows,
		.cols = cols,
		.own_file_rows = (uint32_t)all,
		.own_first = part ? (uint32_t)part->first : 0,
		.own_apart = true,
		.transposed = true,
		.row_bytes = (size_t)cols * dtype_table[t.type].bytes
	};
	out->bytes = (size_t)rows * out->row_bytes;
	take(b, name, &t, out);
	b->m->tensor_bytes += out->bytes;
	return true;
}

bool bind_expert_vectors(struct binder *b, const char *name, uint64_t cols, const struct part_rows *columns,
                         struct model_tensor *out)
{
	const uint64_t all = columns ? columns->all : cols;
	const struct shape shape = { 2, { b->m->spec.experts, all } };
	struct found_tensor t;

	if (!model_find_tensor(b->f, name, &t))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	if (!check_shape(b, name, &t, &shape) || !bind_check_type(b, name, &t, true))
		return false;
	*out = (struct model_tensor){
		.type = t.type,
		.rows = 1,
		.cols = cols,
		.experts = b->m->spec.experts,
		.own_file_rows = (uint32_t)all,
		.own_first = columns ? (uint32_t)(columns->first / cols) : 0,
		.row_bytes = (size_t)cols * dtype_table[t.type].bytes
	};
	out->bytes = out->experts * out->row_bytes;
	take(b, name, &t, out);
	b->m->tensor_bytes += out->bytes;
	return true;
}

/* ---- reading */

/* Some rows of an expert's matrix. */
struct span {
	uint64_t expert, first, end;
};

/* The floats of a vector are those of one column, a row each. */
static bool is_vector(const struct model_tensor *t) { return !t->transposed; }

static bool read_floats(const struct model *m, const struct model_tensor *t, const struct span *s, uint8_t *out,
                        struct error *err)
{
	const size_t element = dtype_table[t->type].bytes, row_bytes = is_vector(t) ? element : t->row_bytes;
	const uint64_t rows = is_vector(t) ? t->cols : t->rows, cols = is_vector(t) ? 1 : t->cols;
	const uint64_t step = t->own_apart ? 1 : t->own_file_rows / rows, first = is_vector(t) ? 0 : s->first,
		       end = is_vector(t) ? rows : s->end;
	const bool sparse = (end - first) * 8 < rows; /* of each column of the file, these alone are read */
	const uint64_t from = sparse ? first * step + (t->own_apart ? t->own_first : 0) : 0,
		       n = sparse ? (end - first) * step : t->own_file_rows,
		       max = sparse ? 1 : READ_BYTES / (n * element) + 1, at_once = max < cols ? max : cols;
	uint8_t *raw = malloc(at_once * n * element);
	bool ok = raw || error_set(err, ERROR_MEMORY, "no memory for a part of tensor %s", t->name);

	for (uint64_t c = 0, many; ok && c < cols; c += many) {
		many = at_once < cols - c ? at_once : cols - c;
		uint64_t at = ((s->expert * cols + c) * t->own_file_rows + from) * element;
		ok = file_read(&m->file->part[t->part].file, t->offset + at, many * n * element, raw, err);
		for (uint64_t j = 0; ok && j < many; j++)
			for (uint64_t r = first; r < end; r++)
				memcpy(out + (r - first) * row_bytes + (c + j) * element,
				       raw + (j * n + r * step + t->own_first - from) * element, element);
	}
	free(raw);
	return ok;
}

/* Byte i takes the quants of columns i and, above it, of 16 + i. */
static void put_block(uint8_t *out, const uint8_t in[QUANT_BYTES], uint8_t scale)
{
	*out++ = scale;
	for (unsigned i = 0; i < QUANT_BYTES; i++) {
		unsigned low = in[i / 2] >> i % 2 * 4 & 15, high = in[8 + i / 2] >> i % 2 * 4 & 15;
		out[i] = (uint8_t)(low | high << 4);
	}
}

static bool read_mxfp4(const struct model *m, const struct model_tensor *t, const struct span *s, uint8_t *out,
                       struct error *err)
{
	const struct model_part *part = m->file->part;
	const uint64_t blocks = t->cols / BLOCK_K, step = t->own_file_rows / t->rows, rows = (s->end - s->first) * step,
		       before = (s->expert * t->own_file_rows + s->first * step) * blocks;
	uint8_t *quants = malloc(rows * blocks * BLOCK_BYTES),
		*scales = quants ? quants + rows * blocks * QUANT_BYTES : NULL;
	bool ok = quants || error_set(err, ERROR_MEMORY, "no memory for %" PRIu64 " rows of tensor %s", rows, t->name);

	ok = ok &&
	     file_read(&part[t->part].file, t->offset + before * QUANT_BYTES, rows * blocks * QUANT_BYTES, quants,
	               err) &&
	     file_read(&part[t->quants->scales.part].file, t->quants->scales.offset + before, rows * blocks, scales,
	               err);
	for (uint64_t r = t->own_first; ok && r < rows; r += step)
		for (uint64_t i = r * blocks; i < (r + 1) * blocks; i++, out += BLOCK_BYTES)
			put_block(out, quants + i * QUANT_BYTES, scales[i]);
	free(quants);
	return ok;
}

/* Of one expert; any bytes of its rows. */
static bool read_part(const struct model *m, const struct model_tensor *t, uint64_t expert, uint64_t offset,
                      size_t bytes, uint8_t *out, struct error *err)
{
	const struct span s = { expert, offset / t->row_bytes, (offset + bytes + t->row_bytes - 1) / t->row_bytes };
	const size_t all = (size_t)(s.end - s.first) * t->row_bytes;
	uint8_t *rows = all == bytes ? out : malloc(all);
	bool ok = rows || error_set(err, ERROR_MEMORY, "no memory for %zu bytes of tensor %s", all, t->name);

	ok = ok && (t->quants ? read_mxfp4 : read_floats)(m, t, &s, rows, err);
	if (ok && rows != out)
		memcpy(out, rows + (offset - s.first * t->row_bytes), bytes);
	if (rows != out)
		free(rows);
	return ok;
}

bool model_read_columns(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes, void *out,
                        struct error *err)
{
	const uint64_t each = t->rows * t->row_bytes;
	uint8_t *to = out;

	for (size_t n; bytes; offset += n, to += n, bytes -= n) {
		n = bytes < each - offset % each ? bytes : (size_t)(each - offset % each);
		if (!read_part(m, t, offset / each, offset % each, n, to, err))
			return false;
	}
	return true;
}
