/* kernels-templates/formats/weight_unpack.c - weights of a row block unpacked in local memory (weight_unpack.h).
 *
 * Owns: numerics.h rule 4 for unpacked weights with VNNI; without it weight_quants.c reads the unpacked form as it
 * reads any other. Integers stay exact: 32 products of at most 255 * 128, and their correction, are far below 2^31.
 */
#include <stddef.h>

#include "kernels-templates/formats/weight_unpack.h"

enum { GROUPS = 8, LANES_BYTES = 32 * 4, SCALES = GROUPS * LANES_BYTES /* behind quants */ };

static int32_t vector_at(const struct ir *b, int32_t disp, unsigned v) { return disp + (int32_t)(v * b->lanes * 4); }

/* ---- read as a format */

static ir_i read_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return ir_iload(b, w->at[WEIGHT_LANE_4], vector_at(b, unit_disp + (int32_t)(g * LANES_BYTES), v));
}

static ir_f read_floats(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned half)
{
	return ir_fload(b, w->at[WEIGHT_LANE_4], vector_at(b, disp + (int32_t)(half * LANES_BYTES), v), 0);
}

static void read_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = read_floats(b, w, unit_disp + SCALES, v, half);
}

static void read_packed_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                              ir_f out[2])
{
	out[0] = ir_fload(b, w->head, vector_at(b, unit_disp, v), 0);
}

static void read_scale_minimum(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v,
                               unsigned half, ir_f out[2])
{
	out[0] = read_floats(b, w, unit_disp + SCALES, v, 0);
	out[1] = read_floats(b, w, unit_disp + SCALES + LANES_BYTES, v, 0);
}

static void read_scales_minima(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v,
                               unsigned half, ir_f out[2])
{
	out[0] = read_floats(b, w, unit_disp + SCALES, v, half);
	out[1] = read_floats(b, w, unit_disp + SCALES + 2 * LANES_BYTES, v, half);
}

bool weight_by_tiles(const struct weight_format *f, const struct target *target)
{
	return target->has_tiles && f->quants && !f->quants->halves;
}

void weight_unpacked_init(struct weight_unpacked *u, const struct weight_format *from, bool int8,
                          const struct target *target)
{
	const struct weight_quants *q = from->quants;
	int32_t halves = q->halves ? 2 : 1;

	*u = (struct weight_unpacked){ .from = from,
		                       .int8 = int8,
		                       .vnni = target->has_vnni,
		                       .tiles = int8 && weight_by_tiles(from, target),
		                       .many_registers = target->vector_regs >= 32,
		                       .chooses = target->has_bsel };
	if (!int8) {
		u->format = wf_f32;
		u->unit_bytes = NUMERICS_BLOCK * LANES_BYTES;
		return;
	}
	u->reads_packed = u->vnni && q->as_they_lie;
	u->scales = u->reads_packed ? 0 : SCALES;
	u->minima = u->scales + halves * LANES_BYTES;
	u->corrections = u->minima + (q->minimum ? halves * LANES_BYTES : 0);
	u->corrects = u->vnni && !u->tiles;
	u->unit_bytes = (uint32_t)(u->corrections + (u->corrects ? halves * LANES_BYTES : 0));
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS && from->array[i].count; i++)
		u->packed_quants = from->array[i].disp;
	u->quants = *q;
	u->quants.registers = q->is_wide || (q->offset && q->max > 15) ? 7 : 5;
	u->quants.pair = NULL;
	u->quants.bytes = u->reads_packed ? q->bytes : read_bytes;
	u->quants.scale = u->reads_packed ? read_packed_scale
	                  : !q->minimum   ? read_scale
	                  : q->halves     ? read_scales_minima
	                                  : read_scale_minimum;
	u->format = (struct weight_format){
		.type = from->type,
		.unit_k = NUMERICS_BLOCK,
		.unit_bytes = u->reads_packed ? from->unit_bytes : u->unit_bytes,
		.lane_sizes = 1 << WEIGHT_LANE_4,
		.step = 4,
		.quants = &u->quants
	};
}

/* ---- writing */

static void unpack_floats(const struct weight_unpacked *u, struct ir *b, const struct weight_stream *w, unsigned v,
                          ir_a to)
{
	ir_f k[WEIGHT_MAX_STEP];

	for (unsigned i = 0; i < NUMERICS_BLOCK; i++) {
		if (i % u->from->step == 0)
			weight_load(u->from, b, w, 0, v, i / u->from->step, k);
		ir_fstore(b, to, k[i % u->from->step], vector_at(b, (int32_t)(i * LANES_BYTES), v), 0);
	}
}

/* No byte lends from its neighbour: others are small. */
ir_i weight_signed_bytes(const struct weight_quants *q, struct ir *b, ir_i bytes)
{
	if (q->is_wide)
		return ir_ixor(b, bytes, ir_iconst(b, (int32_t)0x80808080));
	if (q->is_signed || !q->offset)
		return bytes;
	return ir_ixor(b, ir_iadd(b, bytes, ir_iconst(b, (128 - q->offset) * 0x01010101)),
	               ir_iconst(b, (int32_t)0x80808080));
}

void weight_unpack(const struct weight_unpacked *u, struct ir *b, const struct weight_stream *w, unsigned v, ir_a to)
{
	const struct weight_quants *q = u->from->quants;
	unsigned halves = q->halves ? 2 : 1;
	ir_f scale[2];

	if (!u->int8) {
		unpack_floats(u, b, w, v, to);
		return;
	}
	for (unsigned half = 0; half < halves; half++) {
		ir_i sum = { 0 };
		for (unsigned i = 0; i < GROUPS / halves; i++) {
			unsigned g = half * (GROUPS / 2) + i;
			ir_i bytes = q->bytes(b, w, 0, v, g);
			if (u->vnni)
				bytes = weight_signed_bytes(q, b, bytes);
			if (u->corrects)
				sum = ir_dot4u(b, ir_iconst(b, 0x01010101), bytes, i ? sum : ir_iconst(b, 0));
			if (!u->reads_packed)
				ir_fstore(b, to, ir_fbits(b, bytes), vector_at(b, (int32_t)(g * LANES_BYTES), v), 0);
		}
		int32_t at = vector_at(b, (int32_t)(half * LANES_BYTES), v);
		if (u->corrects)
			ir_fstore(b, to, ir_fbits(b, ir_ishl(b, ir_isub(b, ir_iconst(b, 0), sum), 7)),
			          u->corrections + at, 0);
		q->scale(b, w, 0, v, half, scale);
		ir_fstore(b, to, scale[0], u->scales + at, 0);
		if (q->minimum)
			ir_fstore(b, to, scale[1], u->minima + at, 0);
	}
}

/* ---- multiplying, with VNNI */

/* What the minimum of a part is multiplied with. */
static ir_f scaled_sum(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, unsigned c,
                       unsigned index, unsigned half)
{
	if (!u->quants.halves)
		return ir_fbcast(b, t->xs, weight_block_disp(t, c, index, offsetof(struct activation_block, d_sum)));
	ir_i sum =
		ir_ibcast(b, t->xs, weight_block_disp(t, c, index, offsetof(struct activation_block, sum) + half * 4));
	return ir_fmul(b, ir_fbcast(b, t->xs, weight_block_disp(t, c, index, offsetof(struct activation_block, d))),
	               ir_i2f(b, sum));
}

/* What a column, and what a row vector, contributes at the end of a part. */
struct column {
	ir_f d, sum;
	ir_i missing; /* of the integer sum, whose wide quants count from 128 */
};
struct scales {
	ir_f of[2];
};

static struct column load_column(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, unsigned c,
                                 unsigned index, unsigned half)
{
	struct column x = { .d = ir_fbcast(b, t->xs,
		                           weight_block_disp(t, c, index, offsetof(struct activation_block, d))) };
	if (u->quants.minimum)
		x.sum = scaled_sum(u, b, t, c, index, half);
	if (u->quants.is_wide) {
		size_t sums = offsetof(struct activation_block, sum);
		x.missing = ir_ishl(b,
		                    ir_iadd(b, ir_ibcast(b, t->xs, weight_block_disp(t, c, index, sums)),
		                            ir_ibcast(b, t->xs, weight_block_disp(t, c, index, sums + 4))),
		                    7);
	}
	return x;
}

static void add_to_chain(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, unsigned v,
                         unsigned c, ir_i sum, const struct scales *s, const struct column *x)
{
	ir_f whole = ir_i2f(b, u->quants.is_wide ? ir_iadd(b, sum, x->missing) : sum),
	     both = ir_fmul(b, s->of[0], x->d);

	weight_add_product(b, t, v, c, both, whole);
	if (u->quants.minimum)
		weight_add_product(b, t, v, c, s->of[1], x->sum);
}

/* Loads are what there are most of: with registers to spare a column's numbers are loaded once for all row vectors. */
static void add_part(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, int32_t unit_disp,
                     unsigned index, unsigned half, const ir_i sum[])
{
	struct scales scale[WEIGHT_MAX_ACC];

	for (unsigned v = 0; u->many_registers && v < t->vectors; v++)
		u->quants.scale(b, &t->w, unit_disp, t->first_vector + v, half, scale[v].of);
	for (unsigned c = 0; u->many_registers && c < t->columns; c++) {
		struct column x = load_column(u, b, t, c, index, half);
		for (unsigned v = 0; v < t->vectors; v++)
			add_to_chain(u, b, t, v, c, sum[v * t->columns + c], &scale[v], &x);
	}
	for (unsigned v = 0; !u->many_registers && v < t->vectors; v++) {
		u->quants.scale(b, &t->w, unit_disp, t->first_vector + v, half, scale[v].of);
		for (unsigned c = 0; c < t->columns; c++) {
			struct column x = load_column(u, b, t, c, index, half);
			add_to_chain(u, b, t, v, c, sum[v * t->columns + c], &scale[v], &x);
		}
	}
}

/* An input serves every row vector, a weight every column. */
static void dot_part(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, int32_t unit_disp,
                     unsigned index, unsigned half)
{
	unsigned groups = u->quants.halves ? GROUPS / 2 : GROUPS;
	ir_i sum[WEIGHT_MAX_ACC], w[WEIGHT_MAX_ACC];

	for (unsigned v = 0; v < t->vectors; v++) {
		int32_t at =
			vector_at(b, unit_disp + u->corrections + (int32_t)(half * LANES_BYTES), t->first_vector + v);
		for (unsigned c = 0; c < t->columns; c++)
			sum[v * t->columns + c] =
				c ? sum[v * t->columns]
				  : ir_iload(b, u->reads_packed ? t->w.head : t->w.at[WEIGHT_LANE_4], at);
	}
	for (unsigned i = 0; i < groups; i++) {
		unsigned g = half * (GROUPS / 2) + i;
		for (unsigned v = 0; v < t->vectors; v++)
			w[v] = u->quants.bytes(b, &t->w, unit_disp, t->first_vector + v, g);
		for (unsigned c = 0; c < t->columns; c++) {
			ir_i x = ir_ibcast(b, t->x, weight_input_disp(t, c, index * GROUPS + g));
			for (unsigned v = 0; v < t->vectors; v++)
				sum[v * t->columns + c] = ir_dot4u(b, x, w[v], sum[v * t->columns + c]);
		}
	}
	add_part(u, b, t, unit_disp, index, half, sum);
}

void weight_unpacked_dot(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, int32_t unit_disp,
                         unsigned index)
{
	if (!u->vnni) {
		weight_dot_int8(&u->format, b, t, unit_disp, index);
		return;
	}
	for (unsigned half = 0; half < (u->quants.halves ? 2u : 1u); half++)
		dot_part(u, b, t, unit_disp, index, half);
}

/* ---- multiplying, by tiles */

void weight_unpacked_products(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t,
                              unsigned index, ir_a sums, int32_t disp)
{
	int64_t unit = u->reads_packed ? (int64_t)index * u->format.unit_bytes + u->packed_quants
	                               : (int64_t)index * u->unit_bytes;
	ir_a x = ir_aaddi(b, t->x, (int64_t)index * t->columns * NUMERICS_BLOCK),
	     w = ir_aaddi(b, t->w.at[WEIGHT_LANE_4], unit);

	ir_idots(b, sums, disp, x, w, t->columns);
}

void weight_unpacked_add(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, unsigned index,
                         ir_a sums, int32_t disp)
{
	ir_i sum[WEIGHT_MAX_ACC];

	for (unsigned c = 0; c < t->columns; c++)
		for (unsigned v = 0; v < t->vectors; v++)
			sum[v * t->columns + c] =
				ir_iload(b, sums, vector_at(b, disp + (int32_t)(c * LANES_BYTES), t->first_vector + v));
	add_part(u, b, t, (int32_t)(index * u->unit_bytes), index, 0, sum);
}
