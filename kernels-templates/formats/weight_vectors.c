/* kernels-templates/formats/weight_vectors.c - reading lane-contiguous weights (weight_vectors.h) in a template.
 *
 * Owns: the walk over a span, period by period, and what a visitor finds in registers. The layout is
 * weight_vectors_pack.c's, the loads weight_vectors_load.c's.
 */
#include <assert.h>

#include "kernels-templates/formats/weight_vectors_period.h"

/* ---- what a step holds */

/* The array whose vector begins at disp of a unit, and which vector it is. */
static unsigned find_array(const struct weight_format *f, int32_t disp, unsigned *vector)
{
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS; i++) {
		const struct weight_array *a = &f->array[i];
		uint32_t at = (uint32_t)disp - a->disp;
		if (a->count && (uint32_t)disp >= a->disp && at < weight_vectors_array_bytes(a) * LANES) {
			assert(at % (a->lane * LANES) == 0);
			*vector = at / (a->lane * LANES);
			return i;
		}
	}
	assert(false && "an array of the format");
	return 0;
}

/* The word that holds the vector's element; *at: the element's byte in it. */
static ir_i find_word(const struct weight_vectors *p, int32_t disp, unsigned *at)
{
	unsigned vector = 0, i = find_array(p->format, disp, &vector);
	const struct weight_array *a = &p->format->array[i];
	/* Numbers from heads lie unit by unit, eight bytes of each kind. */
	unsigned byte = i < weight_vectors_first_array(p->format)
	                        ? vector * 8 + p->unit
	                        : p->array[i].skip + (p->unit * a->count + vector) * a->lane;

	assert(byte / 4 < p->array[i].n);
	*at = byte % 4;
	return p->array[i].word[byte / 4];
}

ir_i weight_vectors_word(const struct weight_vectors *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	assert(at == 0);
	return word;
}

ir_f weight_vectors_half(struct ir *b, const struct weight_vectors *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	return ir_fhalf(b, word, at / 2);
}

ir_i weight_vectors_upper(struct ir *b, const struct weight_vectors *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	return at ? ir_iand(b, word, ir_iconst(b, (int32_t)0xffff0000)) : ir_ishl(b, word, 16);
}

ir_i weight_vectors_byte(struct ir *b, const struct weight_vectors *p, int32_t disp, bool is_signed)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	if (is_signed && p->format->six_bias)
		return ir_isub(b, weight_vectors_byte(b, p, disp, false), ir_iconst(b, p->format->six_bias));
	if (is_signed)
		return ir_isar(b, at < 3 ? ir_ishl(b, word, 24 - 8 * at) : word, 24);
	word = at ? ir_ishr(b, word, 8 * at) : word;
	return at < 3 ? ir_iand(b, word, ir_iconst(b, 255)) : word;
}

ir_f weight_vectors_head_half(struct ir *b, const struct weight_vectors *p, int32_t disp)
{
	return ir_fhalf(b, p->head, disp / (2 * LANES));
}

/* ---- the walk */

/* before: units of the period before this step's; in use when there are several steps. */
static void visit_step(struct period *p, const struct weight_visitor *v, ir_s before)
{
	struct weight_stream w = { .contiguous = &p->vectors };
	struct weight_reader *r = p->r;
	const unsigned only = weight_vectors_first_array(r->format);

	if (r->take && p->step < p->units && p->walks[only]) {
		const ir_a heads = r->heads; /* of the whole period, which are loaded already */
		const ir_s first = r->first;
		r->take(r->chunks, r);
		r->heads = heads;
		r->first = first;
		p->from[only] = r->at[4];
		weight_vectors_begin_step(p);
		r->done(r->chunks);
	} else {
		weight_vectors_begin_step(p);
	}
	for (unsigned u = 0; u < p->step; u++) {
		p->vectors.unit = u;
		if (p->r->format->head_bytes)
			p->vectors.head = weight_vectors_unit_head(p, before, u);
		v->unit(v->context, &w, u);
	}
	v->walk(v->context, p->step);
}

/* A period of several steps. */
static void visit_steps(struct period *p, const struct weight_visitor *v, ir_s steps)
{
	struct ir *b = p->r->b;
	ir_s number = ir_loop(b, steps);

	visit_step(p, v, p->r->format->head_bytes && !p->one_head ? ir_smuli(b, number, p->step) : number);
	weight_vectors_end_step(p);
	ir_endloop(b);
}

static void move_on(struct weight_reader *r, ir_s bytes)
{
	if (r->take)
		return;
	for (unsigned i = 0; i < VECTORS_SIZES; i++)
		if (i == 0 || r->at[i].r != r->at[i - 1].r)
			ir_set_a(r->b, r->at[i], ir_aadd(r->b, r->at[i], bytes));
}

/* Cut into steps. */
static struct period period_of(struct weight_reader *r, unsigned units)
{
	struct period p = { .r = r,
		            .units = units,
		            .step = units,
		            .bytes = units * weight_vectors_lane(r->format),
		            .vectors.format = r->format };

	if (units > r->max_units)
		for (p.step = r->max_units; units % p.step;)
			p.step--;
	return p;
}

/* first: number of the period's first unit in the row, in use when there are heads. */
static void visit_period(struct weight_reader *r, const struct weight_visitor *v, unsigned units, ir_s first)
{
	struct ir *b = r->b;
	struct period p = period_of(r, units);
	const bool takes = r->take && units == r->chunk_units;
	const ir_s of_span = r->first;

	if (v->begin)
		v->begin(v->context);
	if (takes) {
		r->first = first;
		r->take(r->chunks, r);
		first = r->first;
		r->first = of_span;
	}
	weight_vectors_begin_period(&p, first);
	if (takes)
		r->done(r->chunks);
	if (p.step < units)
		visit_steps(&p, v, ir_sconst(b, units / p.step));
	else
		visit_step(&p, v, first);
	if (v->end)
		v->end(v->context);
	move_on(r, ir_sconst(b, units * weight_vectors_unit(r->format)));
}

/* Whole periods and the rest of `units` behind them go through the same code when the same steps do for both. */
static bool rest_is_alike(struct weight_reader *r, unsigned units)
{
	const struct weight_format *f = r->format;
	struct period p = period_of(r, VECTORS_PERIOD_UNITS);

	for (unsigned i = weight_vectors_first_array(f); i < WEIGHT_MAX_ARRAYS; i++)
		if (weight_vectors_steps_walk(&p, i, VECTORS_PERIOD_UNITS) != weight_vectors_steps_walk(&p, i, units) ||
		    (VECTORS_PERIOD_UNITS - units) * weight_vectors_unit_stream(f, i) % 4)
			return false;
	return p.step < VECTORS_PERIOD_UNITS && units % p.step == 0;
}

/* `whole` periods and a rest of `rest` units: what is not alike in them is a number in a register. */
static void visit_alike(struct weight_reader *r, const struct weight_visitor *v, unsigned whole, unsigned rest)
{
	struct ir *b = r->b;
	struct period p = period_of(r, VECTORS_PERIOD_UNITS);
	ir_s number = ir_loop(b, ir_sconst(b, whole + 1)),
	     is_whole = ir_smin(b, ir_ssub(b, ir_sconst(b, whole), number), ir_sconst(b, 1));
	ir_s steps = ir_saddi(b, ir_smuli(b, is_whole, (VECTORS_PERIOD_UNITS - rest) / p.step), rest / p.step),
	     units = ir_smuli(b, steps, p.step);

	if (v->begin)
		v->begin(v->context);
	weight_vectors_begin_either(&p, is_whole, rest, units,
	                            r->format->head_bytes ? ir_sadd(b, r->first, ir_sshli(b, number, 3)) : number);
	visit_steps(&p, v, steps);
	if (v->end)
		v->end(v->context);
	move_on(r, ir_smuli(b, units, weight_vectors_unit(r->format)));
	ir_endloop(b);
}

unsigned weight_vectors_fit(const struct weight_format *f)
{
	unsigned n = VECTORS_PERIOD_UNITS;
	while (n > 1 && n * weight_vectors_lane(f) > VECTORS_MAX_WORDS * 4)
		n /= 2;
	return n;
}

unsigned weight_vectors_chunk(struct weight_reader *r)
{
	const struct weight_format *f = r->format;
	const unsigned units = r->span_units < VECTORS_PERIOD_UNITS ? r->span_units : VECTORS_PERIOD_UNITS,
		       last = WEIGHT_MAX_ARRAYS - 1, only = weight_vectors_first_array(f);
	struct period p = period_of(r, units);
	bool alone = true;

	for (unsigned i = only + 1; i <= last; i++)
		alone = alone && !f->array[i].count;
	if (r->span_units % units == 0 && (p.step == units || r->at_once))
		return units;
	if (alone && r->span_units % p.step == 0 && weight_vectors_steps_walk(&p, only, units))
		return p.step;
	return 0;
}

void weight_vectors_read(struct weight_reader *r, const struct weight_visitor *v)
{
	struct ir *b = r->b;
	unsigned whole = r->span_units / VECTORS_PERIOD_UNITS, rest = r->span_units % VECTORS_PERIOD_UNITS;
	ir_s number = { 0 };

	/* Words loaded only where they are there are moved once more, into what steps shift through: too many for whole
	 * periods. */
	struct weight_reader by_steps = *r;
	by_steps.at_once = false;
	if (whole && rest && !r->rest_apart && rest_is_alike(&by_steps, rest)) {
		visit_alike(&by_steps, v, whole, rest);
		return;
	}
	if (whole > 1)
		number = ir_loop(b, ir_sconst(b, whole));
	if (whole) {
		bool moves = whole > 1 && r->format->head_bytes;
		visit_period(r, v, VECTORS_PERIOD_UNITS,
		             moves ? ir_sadd(b, r->first, ir_sshli(b, number, 3)) : r->first);
	}
	if (whole > 1)
		ir_endloop(b);
	if (rest)
		visit_period(r, v, rest,
		             whole && r->format->head_bytes ? ir_saddi(b, r->first, whole * VECTORS_PERIOD_UNITS)
		                                            : r->first);
}
