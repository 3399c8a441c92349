/* kernels-templates/matmul/matmul_product.c - products of matrices: matmul_product.h.
 *
 * Owns: what is multiplied and added, and in which order: numerics.h rule 4 of int8 blocks, rule 13 of floats. Knows
 * nothing of how the operands came to where they lie.
 */
#include "kernels-templates/matmul/matmul_product.h"

#include "kernels-templates/formats/weight_unpack.h"

struct matmul_product matmul_product_of(struct ir *b, const struct matmul_recipe *r, unsigned parts)
{
	return (struct matmul_product){
		.b = b,
		.operands = r->operands,
		.int8 = r->int8,
		.f16 = r->format->type == DTYPE_F16,
		.minima = r->operands == MATMUL_SHARED && r->unpacks && r->format->quants->minimum,
		.top = r->awaited && r->columns <= MATMUL_HALF_TILE,
		.parts = parts
	};
}

/* ---- operands */

static int32_t disp_of(const struct product_operand *of, unsigned tile)
{
	return of->disp + (int32_t)(tile * IR_TILE * of->step);
}

ir_o matmul_product_rows(const struct matmul_product *p, const struct product_operand *of, unsigned half)
{
	return ir_oload(p->b, of->at, disp_of(of, half), of->step, of->apart);
}

ir_o matmul_product_columns(const struct matmul_product *p, const struct product_operand *of, unsigned part)
{
	if (p->operands == MATMUL_RING)
		return ir_oload_swizzled(p->b, of->at, disp_of(of, part), of->apart);
	return (p->top ? ir_oload_top : ir_oload)(p->b, of->at, disp_of(of, part), of->step, of->apart);
}

ir_t matmul_product_of_rows(const struct matmul_product *p, const struct product_operand *of, unsigned half)
{
	return (of->apart ? ir_tload_h : ir_tload)(p->b, of->at, disp_of(of, half), 0, of->step);
}

ir_t matmul_product_of_columns(const struct matmul_product *p, const struct product_operand *of, unsigned part)
{
	return (p->top ? ir_tload_top : ir_tload)(p->b, of->at, disp_of(of, part), of->step, 0);
}

void matmul_product_unpack(struct ir *b, const struct weight_quants *q, const struct weight_stream *w,
                           const struct product_unpacked *to)
{
	ir_f scale[2];

	for (unsigned g = 0; g < 8; g++) {
		ir_i bytes = weight_signed_bytes(q, b, q->bytes(b, w, 0, 0, g));
		ir_fstore_s(b, to->quants, ir_fbits(b, bytes), (g < 4 ? 0 : to->second) + (int32_t)(g % 4 * 4), 0,
		            IR_VECTOR_BYTES);
	}
	for (unsigned half = 0; half < (q->halves ? 2u : 1u); half++) {
		q->scale(b, w, 0, 0, half, scale);
		ir_fstore(b, to->numbers, scale[0], to->scales[half], 0);
		if (q->minimum)
			ir_fstore(b, to->numbers, scale[1], to->minima[half], 0);
	}
}

/* ---- sums */

void matmul_product_open(struct matmul_product *p)
{
	for (unsigned i = 0; i < p->parts; i++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++)
			p->acc[i][h] = ir_var_t(p->b, ir_tconst(p->b, 0));
}

void matmul_product_clear(const struct matmul_product *p)
{
	for (unsigned i = 0; i < p->parts; i++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++)
			ir_set_t(p->b, p->acc[i][h], ir_tconst(p->b, 0));
}

/* Scales are multiplied while the integer product is under way, but where each wave loads them itself: they may come
 * after it. */
ir_t matmul_product_sum(const struct matmul_product *p, ir_o column, ir_o row, ir_t dx, ir_t dw, ir_t acc)
{
	struct ir *b = p->b;

	if (!p->int8)
		return p->f16 ? ir_tdot_f16(b, column, row, acc) : ir_tdot_bf16(b, column, row, acc);
	ir_t sum = ir_tdot_i8(b, column, row, ir_tconst(b, 0));
	if (p->operands == MATMUL_DIRECT)
		return ir_tfma(b, ir_tmul(b, dw, dx), ir_ti2f(b, sum), acc);
	ir_t by = ir_tmul(b, dw, dx);
	return ir_tfma(b, by, ir_ti2f(b, sum), acc);
}

void matmul_product_add(const struct matmul_product *p, const struct product_operands *o)
{
	ir_o row[PRODUCT_HALVES];
	ir_t dw[PRODUCT_HALVES] = { 0 }, mw[PRODUCT_HALVES] = { 0 }, dx = { 0 }, sx = { 0 };

	for (unsigned h = 0; h < PRODUCT_HALVES; h++) {
		row[h] = matmul_product_rows(p, &o->rows, h);
		if (p->int8)
			dw[h] = matmul_product_of_rows(p, &o->row_scales, h);
		if (p->minima)
			mw[h] = matmul_product_of_rows(p, &o->row_minima, h);
	}
	for (unsigned i = 0; i < p->parts; i++) {
		ir_o column = matmul_product_columns(p, &o->columns, i);
		if (p->int8)
			dx = matmul_product_of_columns(p, &o->column_scales, i);
		if (p->minima)
			sx = matmul_product_of_columns(p, &o->column_sums, i);
		for (unsigned h = 0; h < PRODUCT_HALVES; h++) {
			const ir_t acc = p->acc[i][h];
			ir_set_t(p->b, acc, matmul_product_sum(p, column, row[h], dx, dw[h], acc));
			if (p->minima)
				ir_set_t(p->b, acc, ir_tfma(p->b, mw[h], sx, acc));
		}
	}
}

/* ---- totals */

void matmul_product_store(const struct matmul_product *p, ir_a to, uint32_t bytes)
{
	for (unsigned i = 0; i < p->parts; i++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++)
			(p->top ? ir_tstore_top : ir_tstore)(
				p->b, to, p->acc[i][h], (int32_t)(i * IR_TILE * bytes + h * IR_TILE * 4), bytes, 4);
}

/* Tile by tile, in more banks than rows of all would take. */
enum { WAITING_ROW = IR_TILE * 4 };

static int32_t waiting_at(unsigned part, unsigned half)
{
	return (int32_t)((part * PRODUCT_HALVES + half) * IR_TILE * WAITING_ROW);
}

void matmul_product_put_by(const struct matmul_product *p, ir_a to, int32_t disp)
{
	for (unsigned i = 0; i < p->parts; i++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++)
			ir_tstore(p->b, to, p->acc[i][h], disp + waiting_at(i, h), WAITING_ROW, 4);
}

void matmul_product_join(const struct matmul_product *p, ir_a from, int32_t disp)
{
	struct ir *b = p->b;

	for (unsigned i = 0; i < p->parts; i++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++) {
			ir_t first = ir_tload(b, from, disp + waiting_at(i, h), WAITING_ROW, 4);
			ir_set_t(b, p->acc[i][h], ir_tfma(b, p->acc[i][h], ir_tconst(b, 1), first));
		}
}
