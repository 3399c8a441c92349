/* kernels-templates/matmul/matmul_finish.c - from the totals of a row block to what a matmul writes.
 *
 * Owns: the combining of spans and the epilogue (numerics.h rules 3 and 5). Knows nothing of how the totals came about.
 */
#include <math.h>

#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul.h"

static ir_f combine_spans(const struct matmul_results *m, ir_a sum, int32_t disp)
{
	ir_f t[NUMERICS_MAX_SPANS];

	for (unsigned i = 0; i < m->spans; i++)
		t[i] = ir_fload(m->b, sum, (int32_t)(i * matmul_span_bytes(m)) + disp, 0);
	for (unsigned n = m->spans; n > 1; n /= 2)
		for (unsigned i = 0; i < n / 2; i++)
			t[i] = ir_fadd(m->b, t[2 * i], t[2 * i + 1]);
	return t[0];
}

/* Where a column's results go and what joins them, all at the row block's first row. */
struct epilogue {
	ir_a sum, out, outq, outs, bias, bias2, greatest, added, added2;
};

/* The greatest of 32 results, one in each lane; +inf where one is not finite. */
static void keep_greatest(const struct matmul_results *m, const struct epilogue *e, ir_f y)
{
	struct ir *b = m->b;
	ir_f infinity = ir_fconst(b, INFINITY);
	ir_f max = ir_fsel(b, ir_flt(b, ir_fabs(b, y), infinity), y, infinity);

	for (unsigned by = 1; by < b->lanes; by *= 2)
		max = ir_fmax(b, max, ir_fxor(b, max, by));
	ir_fstore(b, e->greatest, max, 0, 1);
}

/* What adapters make of a product: a number is added, behind a product with another one where there are such, which
 * lie 32 of these, then 32 of those. */
static ir_f add_adapted(const struct matmul_results *m, ir_a added, int32_t row, ir_f y)
{
	struct ir *b = m->b;

	if (!(m->recipe->epilogue & KEY_SCALED))
		return ir_fadd(b, y, ir_fload(b, added, row, 0));
	ir_f number = ir_fload(b, added, row + 128, 0);
	return ir_ffma(b, y, ir_fload(b, added, row, 0), number);
}

/* Bytes of a column of these numbers. */
static int64_t added_bytes(const struct matmul_results *m)
{
	return (int64_t)matmul_out_width(m->key) * (m->recipe->epilogue & KEY_SCALED ? 8 : 4);
}

/* lanes: so many are stored; 0: all. old: what the destination holds, where it is loaded already. */
static ir_f finish_vector(const struct matmul_results *m, const struct epilogue *e, int32_t row, unsigned lanes,
                          const ir_f *old)
{
	struct ir *b = m->b;
	const uint32_t flags = m->recipe->epilogue;
	ir_f y = combine_spans(m, e->sum, row);

	if (flags & KEY_ADDED)
		y = add_adapted(m, e->added, row, y);
	if (flags & KEY_BIAS)
		y = ir_fadd(b, y, ir_fload(b, e->bias, row, 0));
	if (flags & KEY_PAIR) {
		/* Of the functions it takes the most registers: no second sum waits in one. */
		const bool early = m->key->act == ACT_GELU_ERF;
		if (early)
			y = math_act(b, ACT_GELU_ERF, y);
		ir_f second = combine_spans(m, e->sum, (int32_t)(m->columns * 128) + row);
		if (flags & KEY_ADDED)
			second = add_adapted(m, e->added2, row, second);
		if (flags & KEY_BIAS2)
			second = ir_fadd(b, second, ir_fload(b, e->bias2, row, 0));
		y = early ? ir_fmul(b, y, second) : math_gate(b, (enum key_act)m->key->act, y, second);
	}
	if (flags & KEY_GATED)
		y = math_gate(b, (enum key_act)m->key->act, old ? *old : ir_fload(b, e->out, row, 0), y);
	if (m->key->act && !(flags & (KEY_PAIR | KEY_GATED)))
		y = math_act(b, (enum key_act)m->key->act, y);
	if (flags & KEY_RESIDUAL)
		y = ir_fadd(b, m->recipe->awaited ? m->from : old ? *old : ir_fload(b, e->out, row, 0), y);
	if (m->recipe->awaited && !(flags & KEY_QUANTISED_OUT))
		ir_fgive(b, e->out, y, row, lanes);
	else if (!(m->recipe->awaited))
		ir_fstore(b, e->out, y, row, lanes);
	return y;
}

static void finish_column(const struct matmul_results *m, const struct epilogue *e)
{
	ir_f y[MATH_MAX_PARTS];

	for (unsigned v = 0; v < math_parts(m->b); v++)
		y[v] = finish_vector(m, e, (int32_t)(v * m->b->lanes * 4), 0, NULL);
	if (m->recipe->epilogue & KEY_QUANTISED_OUT && m->recipe->awaited)
		quantise_give_block(m->b, y[0], e->outq, e->outs, m->scratch);
	else if (m->recipe->epilogue & KEY_QUANTISED_OUT)
		quantise_emit_block(m->b, y, e->outq, 0, e->outs, 0);
	if (m->recipe->epilogue & KEY_GREATEST)
		keep_greatest(m, e, y[0]);
}

/* `rows` of the row block's: behind a head's last row the next head's begin. */
static void finish_rows(const struct matmul_results *m, const struct epilogue *e, unsigned rows)
{
	unsigned lanes = m->b->lanes;

	for (unsigned at = 0; at < rows; at += lanes)
		finish_vector(m, e, (int32_t)(at * 4), rows - at < lanes ? rows - at : 0, NULL);
}

/* By head: a head's last row block may be a part of one. */
static void finish_head_column(const struct matmul_results *m, const struct epilogue *e, ir_s block)
{
	struct ir *b = m->b;
	unsigned blocks = matmul_head_blocks(m->key), rest = m->key->rows % 32;

	if (blocks == 1 || !rest) {
		finish_rows(m, e, rest ? rest : 32);
		return;
	}
	ir_s in_head = ir_ssub(b, block, ir_smuli(b, matmul_head(b, m->key, block), blocks));
	ir_s last = ir_sdivi(b, ir_saddi(b, in_head, 1), blocks); /* 1 or 0 */
	ir_loop(b, last);
	finish_rows(m, e, rest);
	ir_endloop(b);
	ir_loop(b, ir_ssub(b, ir_sconst(b, 1), last));
	finish_rows(m, e, 32);
	ir_endloop(b);
}

/* The row block in column `number * columns` of a buffer with column_bytes a column. */
static ir_a locate(const struct matmul_results *m, unsigned slot, ir_s number, unsigned columns, int64_t column_bytes,
                   ir_s row)
{
	struct ir *b = m->b;
	return ir_var_a(b,
	                ir_aadd(b, ir_aadd(b, matmul_arg(b, m->arg, slot), ir_smuli(b, number, columns * column_bytes)),
	                        row));
}

static struct epilogue find_results(const struct matmul_results *m, ir_s block, ir_s number, unsigned columns)
{
	struct ir *b = m->b;
	const uint32_t flags = m->recipe->epilogue;
	int64_t width = (int64_t)matmul_out_width(m->key);
	ir_s row = ir_sshli(b, block, 7);
	if (m->recipe->source == MATMUL_FROM_HEADS) /* which a head's number of row blocks says, not that of its rows */
		row = ir_sadd(b, row,
		              ir_smuli(b, matmul_head(b, m->key, block),
		                       4 * ((int64_t)m->key->head_dim - 32 * matmul_head_blocks(m->key))));
	struct epilogue e = { .sum = ir_var_a(b, m->sums),
		              .out = locate(m, MATMUL_OUT, number, columns, width * 4, row) };

	if (flags & KEY_QUANTISED_OUT) {
		e.outq = locate(m, MATMUL_OUTQ, number, columns, width, ir_sshli(b, block, 5));
		e.outs = locate(m, MATMUL_OUTS, number, columns, width / 2, ir_sshli(b, block, 4));
	}
	const ir_s added = flags & KEY_SCALED ? ir_sshli(b, row, 1) : row;
	if (flags & KEY_ADDED)
		e.added = locate(m, MATMUL_ADDED, number, columns, added_bytes(m), added);
	if (flags & KEY_ADDED && flags & KEY_PAIR)
		e.added2 = locate(m, MATMUL_ADDED2, number, columns, added_bytes(m), added);
	if (flags & KEY_GREATEST)
		e.greatest = locate(m, MATMUL_GREATEST, number, 1, (int64_t)matmul_head_blocks(m->key) * 4,
		                    ir_sshli(b, block, 2));
	if (m->recipe->source == MATMUL_FROM_ROUTES)
		row = ir_sadd(b, row, ir_smuli(b, m->expert, width * 4));
	if (flags & KEY_BIAS)
		e.bias = ir_aadd(b, matmul_arg(b, m->arg, MATMUL_BIAS), row);
	if (flags & KEY_BIAS2)
		e.bias2 = ir_aadd(b, matmul_arg(b, m->arg, MATMUL_BIAS2), row);
	return e;
}

void matmul_finish_column(const struct matmul_results *m, ir_s block, ir_s column)
{
	struct epilogue e = find_results(m, block, column, 1);
	if (m->recipe->source == MATMUL_FROM_HEADS)
		finish_head_column(m, &e, block);
	else
		finish_column(m, &e);
}

void matmul_finish_several(const struct matmul_results *m, unsigned n, ir_s block, ir_s column)
{
	struct ir *b = m->b;
	const int64_t width = (int64_t)matmul_out_width(m->key);
	const bool reads = m->recipe->epilogue & (KEY_RESIDUAL | KEY_GATED);
	struct epilogue first = find_results(m, block, column, 1), e[MATMUL_MAX_AT_ONCE];
	ir_f old[MATMUL_MAX_AT_ONCE] = { 0 }, y[MATMUL_MAX_AT_ONCE];
	ir_a q[MATMUL_MAX_AT_ONCE], s[MATMUL_MAX_AT_ONCE];

	for (unsigned i = 0; i < n; i++) {
		e[i] = first;
		e[i].sum = ir_aaddi(b, first.sum, i * 128);
		e[i].out = ir_aaddi(b, first.out, i * width * 4);
		if (reads)
			old[i] = ir_fload(b, e[i].out, 0, 0);
		if (m->recipe->epilogue & KEY_ADDED)
			e[i].added = ir_aaddi(b, first.added, i * added_bytes(m));
		if (m->recipe->epilogue & KEY_ADDED && m->recipe->epilogue & KEY_PAIR)
			e[i].added2 = ir_aaddi(b, first.added2, i * added_bytes(m));
		if (m->recipe->epilogue & KEY_QUANTISED_OUT) {
			q[i] = ir_aaddi(b, first.outq, i * width);
			s[i] = ir_aaddi(b, first.outs, i * width / 2);
		}
		if (m->recipe->epilogue & KEY_GREATEST)
			e[i].greatest = ir_aaddi(b, first.greatest, (int64_t)i * matmul_head_blocks(m->key) * 4);
	}
	for (unsigned i = 0; i < n; i++)
		y[i] = finish_vector(m, &e[i], 0, 0, reads ? &old[i] : NULL);
	if (m->recipe->epilogue & KEY_QUANTISED_OUT)
		quantise_emit_several(b, n, y, q, s);
	for (unsigned i = 0; i < n && m->recipe->epilogue & KEY_GREATEST; i++)
		keep_greatest(m, &e[i], y[i]);
}

void matmul_finish(const struct matmul_results *m, ir_s block, ir_s tile)
{
	struct ir *b = m->b;
	const uint32_t flags = m->recipe->epilogue;
	int64_t width = (int64_t)matmul_out_width(m->key);
	struct epilogue e = find_results(m, block, tile, m->recipe->source == MATMUL_FROM_ROUTES ? 1 : m->columns);

	if (m->columns > 1)
		ir_loop(b, ir_sconst(b, m->columns));
	if (m->recipe->source == MATMUL_FROM_HEADS)
		finish_head_column(m, &e, block);
	else
		finish_column(m, &e);
	if (m->columns > 1) {
		matmul_walk(b, e.sum, 128);
		matmul_walk(b, e.out, width * 4);
		if (flags & KEY_ADDED)
			matmul_walk(b, e.added, added_bytes(m));
		if (flags & KEY_ADDED && flags & KEY_PAIR)
			matmul_walk(b, e.added2, added_bytes(m));
		if (flags & KEY_QUANTISED_OUT) {
			matmul_walk(b, e.outq, width);
			matmul_walk(b, e.outs, width / 2);
		}
		ir_endloop(b);
	}
}
