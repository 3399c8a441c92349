/* loaders/model/model_affine.h - quantised weights of safetensors, whose quants and scales are tensors of their own;
 * private to loaders/model/model*.c.
 */
#ifndef LOADERS_MODEL_AFFINE_H
#define LOADERS_MODEL_AFFINE_H

#include "loaders/model/model.h"

struct found_tensor;
struct model_file;

/* What config.json says that matrices are. */
enum quants_form {
	QUANTS_WHOLE, /* one tensor each */
	QUANTS_MLX,
	QUANTS_PACKED, /* of compressed-tensors: integers of 4 or 8 bits in words */
	QUANTS_BYTES,  /* of compressed-tensors: signed bytes */
	QUANTS_FLOAT8, /* of compressed-tensors, and as DeepSeek and Qwen write FP8 */
	QUANTS_GPTQ,
	QUANTS_AWQ,
	QUANTS_TERNARY /* BitNet's */
};
struct quants_config {
	enum quants_form form;
	bool symmetric;    /* GPTQ: zero points are the middle */
	bool plus_one;     /* GPTQ: they are stored less one */
	uint8_t bits;      /* GPTQ, where there are not 4 */
	uint32_t block[2]; /* FLOAT8: rows and columns that share a scale; 0: the tensor's shape says it */
};

/* The order in which quants lie: a row's one after the other, the first in the lowest bits; words of eight columns of a
 * row, or of four, row beside row; words of eight rows of a column, column after column, in AWQ's order; bytes of four
 * rows, each a quarter of the rows behind the one before it. */
enum quants_order { QUANTS_IN_ROWS, QUANTS_BY_COLUMNS, QUANTS_BY_EIGHT_ROWS, QUANTS_BY_QUARTERS };
/* What the numbers count from: half of 2^bits; a number that is added; a small integer. */
enum quants_offset { OFFSET_HALF, OFFSET_MINIMA, OFFSET_ZEROS };

/* How the tensors of a matrix lie. A scale is that of `group` columns and group_rows rows. */
struct model_quants {
	enum quants_order order;
	enum quants_offset offset;
	enum dtype number; /* of scales and minima */
	uint8_t bits;
	bool is_float, is_signed;
	bool plus_one;                        /* of zero points */
	bool check_half;                      /* zero points are there, and must be half of 2^bits */
	uint32_t group, group_rows;           /* a multiple of 32; at least 1 */
	uint64_t groups, all_rows, first_row; /* in a row; in the tensors; of the rows that are meant */
	struct expert_location quants, scales, others, order_of_columns; /* others: minima or zero points */
	bool has_order;
};

/* The rows that are meant of `all_rows` in the tensors; these have a dimension more where they hold experts, 0: they
 * do not. */
struct affine_shape {
	uint64_t rows, cols, first_row, all_rows;
	uint32_t experts;
};
/* The quants of a matrix that has no tensor of this name; false: there are none. */
bool model_find_quants(const struct model_file *f, const char *name, struct found_tensor *out);
/* Whether a tensor of this type, and of a matrix's name, is its quants. */
bool model_is_quants(const struct model_file *f, enum dtype type);
/* Fills all of `out` but its name; *q, which out does not point to yet. */
bool model_bind_affine(struct model_file *f, const char *name, const struct found_tensor *quants,
                       const struct affine_shape *shape, struct model_tensor *out, struct model_quants *q,
                       struct error *err);
/* The bits of a scale as F16; false: that would be another number, or one with fewer bits. model_ternary.c */
bool ternary_scale(uint32_t f32, uint32_t *f16);
/* A block of TQ2_0: of each 128 columns byte i has, from its low bits on, columns i, 32 + i, 64 + i and 96 + i. */
void ternary_put(uint8_t *out, const uint8_t quant[256], uint32_t scale);
/* Room for n descriptions, which lives as long as the file. */
struct model_quants *model_keep_quants(struct model_file *f, size_t n, struct error *err);
void model_free_quants(struct model_file *f);
/* As model_read() does, of rows of blocks that the type of `t` has. */
bool model_read_affine(const struct model *m, const struct model_tensor *t, const struct model_quants *q,
                       uint64_t offset, size_t bytes, void *out, struct error *err);

#endif
