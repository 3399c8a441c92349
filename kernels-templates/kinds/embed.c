/* kernels-templates/kinds/embed.c - rows of packed weights as f32: the token embedding.
 *
 * Owns: reading one lane of a row block. It uses each format's own f32 loads, started at the wanted row, and keeps lane
 * 0; the other lanes hold neighbours and are dropped (after the last row they are the buffer's slack). Where weights
 * lie by vectors, the waves of a group share the row's spans.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/formats/weight_vectors.h"

static void walk_lanes(struct ir *b, const struct weight_format *f, struct weight_stream *w, int64_t bytes)
{
	for (unsigned l = 0; l < WEIGHT_LANES; l++)
		if (f->lane_sizes >> l & 1)
			ir_set_a(b, w->at[l], ir_aaddi(b, w->at[l], bytes));
}

static void embed_row(struct ir *b, const struct weight_format *f, uint32_t kp, struct weight_stream *w, ir_a out)
{
	/* Enough k's in an iteration to make the loop's own work small. */
	uint32_t iteration_k = f->unit_k > 8 ? f->unit_k : 8;

	if (f->head_bytes)
		ir_loop(b, ir_sconst(b, kp / f->unit_k / f->head_units));
	ir_loop(b, ir_sconst(b, f->head_bytes ? f->head_units : kp / iteration_k));
	for (uint32_t k = 0; k < iteration_k; k += f->step) {
		ir_f v[WEIGHT_MAX_STEP];
		weight_load(f, b, w, (int32_t)(k / f->unit_k * f->unit_bytes), 0, k % f->unit_k / f->step, v);
		for (unsigned i = 0; i < f->step; i++)
			ir_fstore1(b, out, v[i], (int32_t)((k + i) * 4));
	}
	walk_lanes(b, f, w, (int64_t)(iteration_k / f->unit_k) * f->unit_bytes);
	ir_set_a(b, out, ir_aaddi(b, out, (int64_t)iteration_k * 4));
	ir_endloop(b);
	if (f->head_bytes) {
		walk_lanes(b, f, w, f->head_bytes);
		ir_set_a(b, w->head, ir_aaddi(b, w->head, (int64_t)f->head_units * f->unit_bytes + f->head_bytes));
		ir_endloop(b);
	}
}

/* ---- by vectors */

static ir_a row_out(struct ir *b, ir_a arg, ir_s unit, uint32_t kp)
{
	return ir_aadd(b, ir_aload(b, arg, EMBED_OUT * 8), ir_smuli(b, unit, (int64_t)kp * 4));
}

static void pick_row(struct ir *b, const struct weight_format *f, uint32_t kp, ir_a block, ir_s row, ir_a arg,
                     ir_s unit)
{
	struct weight_stream w = { .head = block };
	for (unsigned l = 0; l < WEIGHT_LANES; l++)
		if (f->lane_sizes >> l & 1)
			w.at[l] = ir_var_a(b, ir_aadd(b, ir_aaddi(b, block, f->head_bytes), ir_sshli(b, row, l)));
	if (f->head_bytes)
		w.head = ir_var_a(b, ir_aadd(b, block, ir_sshli(b, row, WEIGHT_LANE_2)));
	embed_row(b, f, kp, &w, ir_var_a(b, row_out(b, arg, unit, kp)));
}

/* ---- by vectors */

struct row_copy {
	struct ir *b;
	const struct weight_format *format;
	ir_a out;
	bool gives;
};

static void copy_unit(void *context, const struct weight_stream *w, unsigned index)
{
	const struct row_copy *c = context;
	const struct weight_format *f = c->format;

	for (unsigned k = 0; k < VECTORS_UNIT_K; k += f->step) {
		ir_f v[WEIGHT_MAX_STEP];
		weight_load(f, c->b, w, (int32_t)(k / f->unit_k * f->unit_bytes), 0, k % f->unit_k / f->step, v);
		for (unsigned i = 0; i < f->step; i++) {
			int32_t disp = (int32_t)((index * VECTORS_UNIT_K + k + i) * 4);
			if (c->gives)
				ir_fgive(c->b, c->out, v[i], disp, 1);
			else
				ir_fstore1(c->b, c->out, v[i], disp);
		}
	}
}

static void copy_walk(void *context, unsigned units)
{
	const struct row_copy *c = context;
	ir_set_a(c->b, c->out, ir_aaddi(c->b, c->out, (int64_t)units * VECTORS_UNIT_K * 4));
}

/* Span `span` of the row in lane `row` of the row block at `block`, to c->out. */
static void copy_span(const struct row_copy *to, uint32_t kp, unsigned spans, ir_a block, ir_s row, ir_s span)
{
	enum { ITERATION = 2 };
	struct row_copy c = *to;
	struct ir *b = c.b;
	const struct weight_format *f = c.format;
	struct weight_reader r = {
		.b = b, .format = f, .span_units = kp / spans / VECTORS_UNIT_K, .max_units = ITERATION
	};
	const struct weight_visitor v = { .context = &c, .unit = copy_unit, .walk = copy_walk };
	ir_a from = ir_aadd(b, block, ir_smuli(b, span, (int64_t)r.span_units * weight_vectors_unit(f)));

	for (unsigned i = 0; i < VECTORS_SIZES; i++)
		r.at[i] = ir_var_a(b, ir_aadd(b, from, ir_sshli(b, row, i)));
	if (f->head_bytes) {
		ir_a heads = ir_aaddi(b, block, (int64_t)(kp / VECTORS_UNIT_K) * weight_vectors_unit(f));
		r.heads = ir_aadd(b, heads, ir_smuli(b, row, weight_vectors_head(f)));
		r.first = ir_smuli(b, span, r.span_units);
	}
	c.out = ir_var_a(b, ir_aadd(b, to->out, ir_smuli(b, span, kp / spans * 4)));
	weight_vectors_read(&r, &v);
}

static void copy_row(const struct row_copy *to, const struct target *target, uint32_t kp, ir_a block, ir_s row)
{
	struct ir *b = to->b;
	unsigned spans = numerics_spans(kp), shift = (unsigned)__builtin_ctz(target->waves);
	ir_s wave = ir_wave(b);
	ir_s i = ir_loop(b, ir_sshri(b, ir_ssub(b, ir_sconst(b, spans + target->waves - 1), wave), shift));
	copy_span(to, kp, spans, block, row, ir_sadd(b, ir_sshli(b, i, shift), wave));
	ir_endloop(b);
}

bool embed_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const struct weight_format *f = key->weight ? weight_format_find(key_dtype(key->weight)) : NULL;
	uint32_t kp = (uint32_t)numerics_pad(key->k);

	if (!f)
		return build_refuse(key, err, "this weight format is not computed with");
	if (key->flags & KEY_AWAITED && !target->lane_bytes)
		return build_refuse(key, err, "rows are given by groups of waves");
	int64_t block_bytes = (int64_t)(target->lane_bytes ? weight_vectors_bytes(f, kp) : weight_run_bytes(f, kp));
	if (key->k == 0 || key->k % dtype_table[f->type].block != 0 || block_bytes > INT32_MAX)
		return build_refuse(key, err,
		                    "k must be positive, not too large, and a multiple of the weights' block");

	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s unit = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	ir_s id = ir_sload32(b, ir_aadd(b, ir_aload(b, arg, EMBED_IDS * 8), ir_sshli(b, unit, 2)), 0);
	ir_a block = ir_aadd(b, ir_aload(b, arg, EMBED_W * 8), ir_smuli(b, ir_sshri(b, id, 5), block_bytes));
	ir_s row = ir_sandi(b, id, 31);
	if (target->lane_bytes)
		copy_row(&(struct row_copy){ b, f, row_out(b, arg, unit, kp), key->flags & KEY_AWAITED }, target, kp,
		         block, row);
	else
		pick_row(b, f, kp, block, row, arg, unit);
	ir_endloop(b);
	return true;
}
