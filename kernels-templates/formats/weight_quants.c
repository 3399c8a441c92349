/* kernels-templates/formats/weight_quants.c - weights given as bytes and scales, in a template: as f32, and times int8
 * activations.
 *
 * Owns: the order of the operations of numerics.h rule 4 for every format that fills a struct weight_quants. Integers
 * stay exact: quants that are unsigned and at most 63 have two products in 16 bits, and as many such pairs are added in
 * 16 bits as surely fit; others are added in 32. Where weights are read by vectors, the target has dot4, which takes
 * all quants as they are.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/weight_vectors.h"

enum { GROUPS = 8, MAX_BATCH = 2, MIN_SUMS = 8 };

/* ---- as f32 */

static void load_quants(const struct weight_quants *q, struct ir *b, const struct weight_stream *w, int32_t unit_disp,
                        unsigned v, unsigned g, ir_f out[])
{
	ir_f own[2], *scale = w->contiguous ? w->contiguous->scale : own;

	/* What is in registers is not made again by every group. */
	if (!w->contiguous || g % (q->halves ? 4 : 8) == 0)
		q->scale(b, w, unit_disp, v, q->halves ? g / 4 : 0, scale);
	ir_i bytes = q->bytes(b, w, unit_disp, v, g);
	for (unsigned i = 0; i < 4; i++) {
		ir_i quant;
		if (q->is_signed) {
			quant = ir_isar(b, i < 3 ? ir_ishl(b, bytes, 24 - 8 * i) : bytes, 24);
		} else {
			quant = i ? ir_ishr(b, bytes, 8 * i) : bytes;
			quant = i < 3 ? ir_iand(b, quant, ir_iconst(b, 255)) : quant;
			quant = q->offset ? ir_isub(b, quant, ir_iconst(b, q->offset)) : quant;
		}
		out[i] = q->minimum ? ir_ffma(b, scale[0], ir_i2f(b, quant), scale[1])
		                    : ir_fmul(b, scale[0], ir_i2f(b, quant));
	}
}

void weight_load(const struct weight_format *f, struct ir *b, const struct weight_stream *w, int32_t unit_disp,
                 unsigned v, unsigned index, ir_f out[])
{
	if (f->load && !(w->contiguous && f->quants))
		f->load(b, w, unit_disp, v, index, out);
	else
		load_quants(f->quants, b, w, unit_disp, v, index, out);
}

/* ---- times int8 */

bool weight_has_int8(const struct weight_format *f) { return f->dot_int8 || f->quants; }

/* Pairs of products that may be added in 16 bits. */
static unsigned pairs_that_fit(const struct weight_quants *q) { return (unsigned)(32767 / (2 * 127 * q->max)); }

unsigned weight_int8_registers(const struct weight_format *f) { return f->quants ? f->quants->registers : 4; }

/* One unit of one tile on its way. */
struct dot {
	struct ir *b;
	const struct weight_quants *q;
	const struct weight_tile *t;
	int32_t unit_disp;
	unsigned index;    /* of the unit in x and xs */
	unsigned first, n; /* row vectors */
	unsigned half;
	ir_i sum[WEIGHT_MAX_ACC]; /* [vector][column] */
};

static ir_i load_input(const struct dot *d, unsigned c, unsigned g)
{
	return ir_ibcast(d->b, d->t->x, weight_input_disp(d->t, c, d->index * GROUPS + g));
}

static int32_t block_disp(const struct dot *d, unsigned c, size_t member)
{
	return weight_block_disp(d->t, c, d->index, member);
}

/* The i-th group to be done: both groups of a word together where a unit is one sum, since they share the word. */
static unsigned group_at(const struct dot *d, unsigned i) { return d->q->halves ? d->half * 4 + i : i / 2 + i % 2 * 4; }

/* VNNI takes unsigned bytes only: signed quants are then counted from -128. dot4 takes signed ones only: of wide quants
 * 128 is taken off. */
static int offset_of(const struct dot *d)
{
	return d->q->is_signed && d->t->has_vnni ? 128 : d->q->is_wide && !d->t->has_vnni ? -128 : d->q->offset;
}

static ir_i unit_bytes(const struct dot *d, unsigned v, unsigned g)
{
	ir_i bytes = d->q->bytes(d->b, &d->t->w, d->unit_disp, d->t->first_vector + d->first + v, g);
	bool swapped = d->t->has_vnni ? d->q->is_signed : d->q->is_wide;
	return swapped ? ir_ixor(d->b, bytes, ir_iconst(d->b, (int32_t)0x80808080)) : bytes;
}

/* Small quants come in pairs of groups, which are added in 16 bits; others have a magnitude each, so one at a time,
 * and so where VNNI adds nothing in 16 bits and registers are few. */
static bool are_small(const struct weight_quants *q) { return !q->is_signed && !q->is_wide; }

static unsigned batch_of(const struct dot *d)
{
	bool small = d->t->sums < MIN_SUMS;

	return !are_small(d->q) || (d->t->has_vnni && small) ? 1 : MAX_BATCH;
}

/* A batch of groups of one row vector, times one column, into its sum. narrow: the sum is of 16-bit halves. */
static void add_batch(struct dot *d, ir_i *sum, const ir_i bytes[], const ir_i x[], bool first, bool narrow)
{
	struct ir *b = d->b;

	if (!are_small(d->q) || d->t->has_vnni) {
		for (unsigned i = 0; i < batch_of(d); i++) {
			ir_i before = first && i == 0 ? ir_iconst(b, 0) : *sum;
			*sum = d->t->has_vnni ? ir_dot4u(b, bytes[i], x[i], before)
			                      : ir_dot4(b, bytes[i], x[i], before);
		}
		return;
	}
	ir_i pairs = ir_dot2b(b, bytes[0], x[0]);
	if (narrow && !first)
		pairs = ir_iadd_16(b, *sum, pairs);
	pairs = ir_iadd_16(b, pairs, ir_dot2b(b, bytes[1], x[1]));
	*sum = narrow ? pairs : ir_dot2h(b, pairs, ir_iconst(b, 0x00010001), first ? ir_iconst(b, 0) : *sum);
}

/* The integer sums of the unit, or of its half. An input serves every row vector of one column. */
static void sum_groups(struct dot *d)
{
	struct ir *b = d->b;
	unsigned groups = d->q->halves ? GROUPS / 2 : GROUPS, columns = d->t->columns;
	bool narrow = are_small(d->q) && !d->t->has_vnni && pairs_that_fit(d->q) >= groups;
	unsigned batch = batch_of(d);
	ir_i bytes[MAX_BATCH], x[MAX_BATCH];

	for (unsigned i = 0; i < groups; i += batch)
		for (unsigned v = 0; v < d->n; v++) {
			for (unsigned j = 0; j < batch; j++)
				bytes[j] = unit_bytes(d, v, group_at(d, i + j));
			for (unsigned c = 0; c < columns; c++) {
				for (unsigned j = 0; (v == 0 || columns > 1) && j < batch; j++)
					x[j] = load_input(d, c, group_at(d, i + j));
				add_batch(d, &d->sum[v * columns + c], bytes, x, i == 0, narrow);
			}
		}
	for (unsigned i = 0; narrow && i < d->n * columns; i++)
		d->sum[i] = ir_dot2h(b, d->sum[i], ir_iconst(b, 0x00010001), ir_iconst(b, 0));
}

/* The same with dot4, one column after the other: its inputs are neighbours, so that one load reads them all. */
static void sum_columns(struct dot *d)
{
	struct ir *b = d->b;
	unsigned groups = d->q->halves ? GROUPS / 2 : GROUPS, first = d->half * GROUPS / 2;
	ir_i bytes[GROUPS], x[GROUPS];

	for (unsigned g = 0; g < groups; g++)
		bytes[g] = unit_bytes(d, 0, first + g);
	for (unsigned c = 0; c < d->t->columns; c++) {
		for (unsigned g = 0; g < groups; g++)
			x[g] = load_input(d, c, first + g);
		for (unsigned g = 0; g < groups; g++)
			d->sum[c] = ir_dot4(b, bytes[g], x[g], g ? d->sum[c] : ir_iconst(b, 0));
	}
}

/* What n halves' sums begin with, which their offset makes, `placed` bits to the left. The activations' sums are words
 * that fit their lower halves. */
static ir_i corrections(const struct dot *d, unsigned first, unsigned n, unsigned placed)
{
	struct ir *b = d->b;
	ir_i sum = ir_iconst(b, 0);

	for (unsigned half = first; d->q->offset && half < first + n; half++) {
		ir_i times = ir_iconst(b, -(d->q->offset << placed) & 0xffff);
		sum = ir_dot2h(b, times,
		               ir_ibcast(b, d->t->xs,
		                         block_disp(d, 0, offsetof(struct activation_block, sum) + half * 4)),
		               sum);
	}
	return sum;
}

/* One column: a group, and the one four groups on that shares its words. What the others sum to is placed as their
 * quants are, and is moved to where it belongs: before the rest is added to it where a unit is one sum, which is
 * low[]. */
static void sum_pairs(const struct dot *d, ir_i low[], ir_i high[])
{
	struct ir *b = d->b;
	const struct weight_quants *q = d->q;
	enum { PAIRS = GROUPS / 2 };
	ir_i bytes[WEIGHT_HEAD_VECTORS][PAIRS][2], x[GROUPS];
	ir_i start = q->halves ? corrections(d, 0, 1, 0) : ir_iconst(b, 0),
	     start_high = corrections(d, q->halves ? 1 : 0, q->halves ? 1 : 2, q->placed);

	for (unsigned g = 0; g < PAIRS; g++) {
		x[g] = load_input(d, 0, g);
		x[g + PAIRS] = load_input(d, 0, g + PAIRS);
		for (unsigned v = 0; v < d->n; v++) {
			q->pair(b, &d->t->w, d->unit_disp, d->t->first_vector + d->first + v, g, bytes[v][g]);
			high[v] = ir_dot4u(b, bytes[v][g][1], x[g + PAIRS], g ? high[v] : start_high);
			if (q->halves)
				low[v] = ir_dot4u(b, bytes[v][g][0], x[g], g ? low[v] : start);
		}
	}
	for (unsigned v = 0; v < d->n; v++)
		high[v] = ir_isar(b, high[v], q->placed);
	for (unsigned g = 0; !q->halves && g < PAIRS; g++)
		for (unsigned v = 0; v < d->n; v++)
			low[v] = ir_dot4u(b, bytes[v][g][0], x[g], g ? low[v] : high[v]);
}

/* What a column contributes at the end of a unit: its scale, the offset (without its sign) times its sum, its scaled
 * sum. */
struct column {
	ir_f d, d_sum;
	ir_i offset;
};

static struct column load_column(const struct dot *d, unsigned c)
{
	struct ir *b = d->b;
	const struct weight_quants *q = d->q;
	size_t sums = offsetof(struct activation_block, sum);
	struct column column = { .d = ir_fbcast(b, d->t->xs, block_disp(d, c, offsetof(struct activation_block, d))) };

	if (q->minimum && q->halves)
		column.d_sum =
			ir_fmul(b, column.d, ir_i2f(b, ir_ibcast(b, d->t->xs, block_disp(d, c, sums + d->half * 4))));
	else if (q->minimum)
		column.d_sum = ir_fbcast(b, d->t->xs, block_disp(d, c, offsetof(struct activation_block, d_sum)));
	unsigned offset = d->t->by_pairs ? 0 : (unsigned)abs(offset_of(d));
	if (offset) {
		ir_i sum = ir_ibcast(b, d->t->xs, block_disp(d, c, sums + d->half * 4));
		if (!q->halves)
			sum = ir_iadd(b, sum, ir_ibcast(b, d->t->xs, block_disp(d, c, sums + 4)));
		bool power = (offset & (offset - 1)) == 0;
		column.offset =
			power ? ir_ishl(b, sum, __builtin_ctz(offset)) : ir_imul(b, sum, ir_iconst(b, (int32_t)offset));
	}
	return column;
}

static void add_to_chain(const struct dot *d, unsigned v, unsigned c, const ir_f scale[2], const struct column *x)
{
	struct ir *b = d->b;
	ir_i sum = d->sum[v * d->t->columns + c];
	int offset = d->t->by_pairs ? 0 : offset_of(d);
	sum = offset > 0 ? ir_isub(b, sum, x->offset) : offset < 0 ? ir_iadd(b, sum, x->offset) : sum;
	ir_f both = ir_fmul(b, scale[0], x->d), whole = ir_i2f(b, sum);

	weight_add_product(b, d->t, d->first + v, c, both, whole);
	if (d->q->minimum)
		weight_add_product(b, d->t, d->first + v, c, scale[1], x->d_sum);
}

static void add_unit(const struct dot *d)
{
	struct column x = { 0 };
	ir_f scale[2];

	for (unsigned v = 0; v < d->n; v++) {
		d->q->scale(d->b, &d->t->w, d->unit_disp, d->t->first_vector + d->first + v, d->half, scale);
		for (unsigned c = 0; c < d->t->columns; c++) {
			if (v == 0 || d->t->columns > 1)
				x = load_column(d, c);
			add_to_chain(d, v, c, scale, &x);
		}
	}
}

static void dot_pairs(struct dot *d)
{
	ir_i sum[2][WEIGHT_HEAD_VECTORS];

	d->n = d->t->w.second_offset ? d->t->w.vectors : d->t->vectors;
	for (d->first = 0; d->first < d->t->vectors; d->first += d->n) {
		sum_pairs(d, sum[0], sum[1]);
		for (d->half = 0; d->half < (d->q->halves ? 2u : 1u); d->half++) {
			memcpy(d->sum, sum[d->half], d->n * sizeof *d->sum);
			add_unit(d);
		}
	}
}

bool weight_has_pairs(const struct weight_format *f) { return !f->dot_int8 && f->quants && f->quants->pair; }

void weight_dot_int8(const struct weight_format *f, struct ir *b, const struct weight_tile *t, int32_t unit_disp,
                     unsigned index)
{
	if (f->dot_int8 && !t->w.contiguous) {
		f->dot_int8(b, t, unit_disp, index);
		return;
	}
	assert(f->unit_k == NUMERICS_BLOCK &&
	       (!are_small(f->quants) || t->w.contiguous || pairs_that_fit(f->quants) >= MAX_BATCH));
	struct dot d = { .b = b, .q = f->quants, .t = t, .unit_disp = unit_disp, .index = index };
	if (t->by_pairs) {
		dot_pairs(&d);
		return;
	}
	/* Row vectors side by side when registers hold their sums: weights are then read in the order of memory. */
	d.n = weight_vectors_at_once(t);
	for (d.first = 0; d.first < t->vectors; d.first += d.n)
		for (d.half = 0; d.half < (f->quants->halves ? 2u : 1u); d.half++) {
			(t->w.contiguous ? sum_columns : sum_groups)(&d);
			add_unit(&d);
		}
}

/* ---- vectors */

static int32_t vector_disp(const struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v,
                           unsigned lane_bytes)
{
	unsigned block = w->second_offset ? v / w->vectors : 0;

	return disp + (int32_t)block * w->second_offset + (int32_t)((v - block * w->vectors) * b->lanes * lane_bytes);
}

ir_i weight_word(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned n)
{
	disp = vector_disp(b, w, disp + (int32_t)n * 128, v, 4);
	return w->contiguous ? weight_vectors_word(w->contiguous, disp) : ir_iload(b, w->at[WEIGHT_LANE_4], disp);
}

ir_i weight_bits(struct ir *b, ir_i word, int by, uint8_t mask)
{
	ir_i at = by > 0 ? ir_ishr(b, word, by) : by < 0 ? ir_ishl(b, word, -by) : word;
	return ir_iand(b, at, ir_iconst(b, (int32_t)(mask * 0x01010101u)));
}

ir_i weight_nibbles(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, disp, v, g % 4), g < 4 ? 0 : 4, 15);
}

void weight_nibble_pair(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned g, ir_i out[2])
{
	for (unsigned i = 0; i < 2; i++)
		out[i] =
			ir_iand(b, weight_word(b, w, disp, v, g), ir_iconst(b, (int32_t)(i ? 0xf0f0f0f0 : 0x0f0f0f0f)));
}

ir_i weight_five_bytes(struct ir *b, const struct weight_stream *w, int32_t bits, unsigned v, unsigned g)
{
	if (w->contiguous || w->chooses) {
		ir_i two[2];
		weight_five_pair(b, w, bits, v, g % 4, two);
		return g < 4 ? two[0] : ir_ishr(b, two[1], WEIGHT_FIVES_PLACED);
	}
	ir_i nibbles = weight_bits(b, weight_word(b, w, bits + WEIGHT_FIVES_BITS, v, g % 4), 0, g < 4 ? 0x0f : 0xf0);
	ir_i fifths = weight_bits(b, weight_word(b, w, bits, v, 0), (int)weight_bit_of(g) - (g < 4 ? 4 : 3),
	                          g < 4 ? 0x10 : 0x08);
	ir_i both = ir_ior(b, nibbles, fifths);
	return g < 4 ? both : ir_ishr(b, both, WEIGHT_FIVES_PLACED);
}

/* The bits beside the nibbles are 4, of the first group, and 3. */
void weight_five_pair(struct ir *b, const struct weight_stream *w, int32_t bits, unsigned v, unsigned g, ir_i out[2])
{
	ir_i fifths = weight_bits(b, weight_word(b, w, bits, v, 0), (int)weight_bit_of(g) - 4, 0x18),
	     low = ir_iconst(b, 0x0f0f0f0f);

	out[1] = ir_ibsel(b, low, fifths, weight_word(b, w, bits + WEIGHT_FIVES_BITS, v, g));
	out[0] = ir_ibsel(b, low, weight_word(b, w, bits + WEIGHT_FIVES_BITS, v, g), fifths);
}

ir_f weight_float(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	return w->contiguous ? ir_fbits(b, weight_word(b, w, disp, v, 0))
	                     : ir_fload(b, w->at[WEIGHT_LANE_4], vector_disp(b, w, disp, v, 4), 0);
}

ir_f weight_half(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	disp = vector_disp(b, w, disp, v, 2);
	return w->contiguous ? weight_vectors_half(b, w->contiguous, disp) : ir_fload_h(b, w->at[WEIGHT_LANE_2], disp);
}

ir_f weight_upper_half(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	disp = vector_disp(b, w, disp, v, 2);
	return ir_fbits(b, w->contiguous ? weight_vectors_upper(b, w->contiguous, disp)
	                                 : ir_ishl(b, ir_iload_u16(b, w->at[WEIGHT_LANE_2], disp), 16));
}

ir_f weight_head_half(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	if (w->in_registers)
		return w->in_registers->half[disp / (32 * 2)][v];
	disp = vector_disp(b, w, disp, v, 2);
	return w->contiguous ? weight_vectors_head_half(b, w->contiguous, disp) : ir_fload_h(b, w->head, disp);
}

ir_f weight_head_float(struct ir *b, const struct weight_stream *w, unsigned v)
{
	if (w->in_registers)
		return w->in_registers->half[0][v];
	if (w->contiguous)
		return ir_fbits(b, w->contiguous->head);
	ir_i low = ir_iload_u16(b, w->head, vector_disp(b, w, 0, v, 2)),
	     high = ir_iload_u16(b, w->head, vector_disp(b, w, 64, v, 2));
	return ir_fbits(b, ir_ior(b, low, ir_ishl(b, high, 16)));
}

ir_i weight_byte(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	disp = vector_disp(b, w, disp, v, 1);
	return w->contiguous ? weight_vectors_byte(b, w->contiguous, disp, false)
	                     : ir_iload_u8(b, w->at[WEIGHT_LANE_1], disp);
}

ir_f weight_u8(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	return ir_i2f(b, weight_byte(b, w, disp, v));
}

ir_f weight_s8(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v)
{
	disp = vector_disp(b, w, disp, v, 1);
	return ir_i2f(b, w->contiguous ? weight_vectors_byte(b, w->contiguous, disp, true)
	                               : ir_iload_s8(b, w->at[WEIGHT_LANE_1], disp));
}
