/* kernels-templates/matmul/matmul_product.h - products of matrices, once for all kernels that multiply so: where a
 * product's operands lie, what it adds them to, and where a wave's totals go. Internal to matmul_mma*.c.
 */
#ifndef KERNELS_MATMUL_PRODUCT_H
#define KERNELS_MATMUL_PRODUCT_H

#include "kernels-templates/matmul/matmul.h"

enum {
	PRODUCT_ROWS = 32,
	PRODUCT_HALVES = PRODUCT_ROWS / IR_TILE,
	PRODUCT_PARTS = 4 /* of 16 columns, at most */,
	PRODUCT_WAITING = PRODUCT_HALVES * IR_TILE * IR_TILE * 4 /* bytes that the totals of a part take */
};

/* What each row or column has one of: a strip of 32 bytes, or a number. Those of tile number i of 16 rows or columns
 * begin at disp + 16 * i * step. */
struct product_operand {
	ir_a at;
	int32_t disp;
	uint32_t step;  /* bytes from one to the next */
	unsigned apart; /* from a strip's first vector of 16 bytes to its second one, in vectors; of swizzled strips the
	                   number of the first one; of rows' numbers 1: they are f16 */
};

/* The operands of a product: rows of weights, columns of activations. */
struct product_operands {
	struct product_operand rows, columns;
	struct product_operand row_scales, column_scales; /* int8 */
	struct product_operand row_minima, column_sums;   /* weights with minima; sums of columns, scaled */
};

/* A wave's sums: 32 rows by so many parts of 16 columns. */
struct matmul_product {
	struct ir *b;
	enum matmul_operands operands;
	bool int8, f16; /* not int8: F16, or else BF16 */
	bool minima;    /* are added with each product, where operands are shared */
	bool top;       /* of a part's columns the first half is there */
	unsigned parts;
	ir_t acc[PRODUCT_PARTS][PRODUCT_HALVES]; /* variables */
};

struct matmul_product matmul_product_of(struct ir *b, const struct matmul_recipe *r, unsigned parts);
void matmul_product_open(struct matmul_product *p);
void matmul_product_clear(const struct matmul_product *p);
void matmul_product_add(const struct matmul_product *p, const struct product_operands *o);
/* The same step by step: of a tile of rows, or of columns, its strips and its numbers; acc and the product of two,
 * whose scales are dx and dw. */
ir_o matmul_product_rows(const struct matmul_product *p, const struct product_operand *of, unsigned half);
ir_o matmul_product_columns(const struct matmul_product *p, const struct product_operand *of, unsigned part);
ir_t matmul_product_of_rows(const struct matmul_product *p, const struct product_operand *of, unsigned half);
ir_t matmul_product_of_columns(const struct matmul_product *p, const struct product_operand *of, unsigned part);
ir_t matmul_product_sum(const struct matmul_product *p, ir_o column, ir_o row, ir_t dx, ir_t dw, ir_t acc);

/* Weights whose quants become signed bytes on their way: of a unit of 32 rows, a row a lane, where its two vectors go,
 * and its scales and minima, of each half where these have their own. */
struct product_unpacked {
	ir_a quants, numbers;
	int32_t second; /* vector, behind the first */
	int32_t scales[2], minima[2];
};
void matmul_product_unpack(struct ir *b, const struct weight_quants *q, const struct weight_stream *w,
                           const struct product_unpacked *to);

/* Leaves the sums as f32 [column][row], `bytes` bytes from a column to the next. */
void matmul_product_store(const struct matmul_product *p, ir_a to, uint32_t bytes);
/* Sums that wait for others take PRODUCT_WAITING bytes a part. Leaves them there; adds those that wait. */
void matmul_product_put_by(const struct matmul_product *p, ir_a to, int32_t disp);
void matmul_product_join(const struct matmul_product *p, ir_a from, int32_t disp);

#endif
