/* kernels-templates/formats/weight_pieces.c - reading lane-contiguous weights (weight_pieces.h) in a template.
 *
 * Owns: the walk over a span, period by period, and what a visitor finds in registers. The layout is
 * weight_pieces_pack.c's, the loads weight_pieces_load.c's.
 */
#include <assert.h>

#include "kernels-templates/formats/weight_pieces_period.h"

/* ---- what a turn holds */

/* The array whose vector begins at disp of a unit, and which vector it is. */
static unsigned find_array(const struct weight_format *f, int32_t disp, unsigned *vector)
{
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS; i++) {
		const struct weight_array *a = &f->array[i];
		uint32_t at = (uint32_t)disp - a->disp;
		if (a->count && (uint32_t)disp >= a->disp && at < weight_pieces_array_bytes(a) * LANES) {
			assert(at % (a->lane * LANES) == 0);
			*vector = at / (a->lane * LANES);
			return i;
		}
	}
	assert(false && "an array of the format");
	return 0;
}

/* The word that holds the vector's element; *at: the element's byte in it. */
static ir_i find_word(const struct weight_pieces *p, int32_t disp, unsigned *at)
{
	unsigned vector = 0, i = find_array(p->format, disp, &vector);
	const struct weight_array *a = &p->format->array[i];
	/* Numbers from heads lie unit by unit, eight bytes of each kind. */
	unsigned byte = i < weight_pieces_first_array(p->format)
	                        ? vector * 8 + p->unit
	                        : p->array[i].skip + (p->unit * a->count + vector) * a->lane;

	assert(byte / 4 < p->array[i].n);
	*at = byte % 4;
	return p->array[i].word[byte / 4];
}

ir_i weight_pieces_word(const struct weight_pieces *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	assert(at == 0);
	return word;
}

ir_f weight_pieces_half(struct ir *b, const struct weight_pieces *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	return ir_fhalf(b, word, at / 2);
}

ir_i weight_pieces_upper(struct ir *b, const struct weight_pieces *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	return at ? ir_iand(b, word, ir_iconst(b, (int32_t)0xffff0000)) : ir_ishl(b, word, 16);
}

ir_i weight_pieces_byte(struct ir *b, const struct weight_pieces *p, int32_t disp, bool is_signed)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	if (is_signed && p->format->six_bias)
		return ir_isub(b, weight_pieces_byte(b, p, disp, false), ir_iconst(b, p->format->six_bias));
	if (is_signed)
		return ir_isar(b, at < 3 ? ir_ishl(b, word, 24 - 8 * at) : word, 24);
	word = at ? ir_ishr(b, word, 8 * at) : word;
	return at < 3 ? ir_iand(b, word, ir_iconst(b, 255)) : word;
}

ir_f weight_pieces_head_half(struct ir *b, const struct weight_pieces *p, int32_t disp)
{
	return ir_fhalf(b, p->head, disp / (2 * LANES));
}

/* ---- the walk */

/* before: units of the period before this turn's; in use when there are several turns. */
static void visit_turn(struct period *p, const struct weight_visitor *v, ir_s before)
{
	struct weight_stream w = { .pieces = &p->pieces };
	struct weight_reader *r = p->r;
	const unsigned only = weight_pieces_first_array(r->format);

	if (r->take && p->turn < p->units && p->walks[only]) {
		const ir_a heads = r->heads; /* of the whole period, which are loaded already */
		const ir_s first = r->first;
		r->take(r->chunks, r);
		r->heads = heads;
		r->first = first;
		p->from[only] = r->at[4];
		weight_pieces_begin_turn(p);
		r->done(r->chunks);
	} else {
		weight_pieces_begin_turn(p);
	}
	for (unsigned u = 0; u < p->turn; u++) {
		p->pieces.unit = u;
		if (p->r->format->head_bytes)
			p->pieces.head = weight_pieces_unit_head(p, before, u);
		v->unit(v->context, &w, u);
	}
	v->walk(v->context, p->turn);
}

/* A period of several turns. */
static void visit_turns(struct period *p, const struct weight_visitor *v, ir_s turns)
{
	struct ir *b = p->r->b;
	ir_s number = ir_loop(b, turns);

	visit_turn(p, v, p->r->format->head_bytes && !p->one_head ? ir_smuli(b, number, p->turn) : number);
	weight_pieces_end_turn(p);
	ir_endloop(b);
}

static void move_on(struct weight_reader *r, ir_s bytes)
{
	if (r->take)
		return;
	for (unsigned i = 0; i < PIECES_SIZES; i++)
		if (i == 0 || r->at[i].r != r->at[i - 1].r)
			ir_set_a(r->b, r->at[i], ir_aadd(r->b, r->at[i], bytes));
}

/* Cut into turns. */
static struct period period_of(struct weight_reader *r, unsigned units)
{
	struct period p = { .r = r,
		            .units = units,
		            .turn = units,
		            .bytes = units * weight_pieces_lane(r->format),
		            .pieces.format = r->format };

	if (units > r->max_units)
		for (p.turn = r->max_units; units % p.turn;)
			p.turn--;
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
	weight_pieces_begin_period(&p, first);
	if (takes)
		r->done(r->chunks);
	if (p.turn < units)
		visit_turns(&p, v, ir_sconst(b, units / p.turn));
	else
		visit_turn(&p, v, first);
	if (v->end)
		v->end(v->context);
	move_on(r, ir_sconst(b, units * weight_pieces_unit(r->format)));
}

/* Whole periods and the rest of `units` behind them go through the same code when the same turns do for both. */
static bool rest_is_alike(struct weight_reader *r, unsigned units)
{
	const struct weight_format *f = r->format;
	struct period p = period_of(r, PIECES_PERIOD_UNITS);

	for (unsigned i = weight_pieces_first_array(f); i < WEIGHT_MAX_ARRAYS; i++)
		if (weight_pieces_turns_walk(&p, i, PIECES_PERIOD_UNITS) != weight_pieces_turns_walk(&p, i, units) ||
		    (PIECES_PERIOD_UNITS - units) * weight_pieces_unit_stream(f, i) % 4)
			return false;
	return p.turn < PIECES_PERIOD_UNITS && units % p.turn == 0;
}

/* `whole` periods and a rest of `rest` units: what is not alike in them is a number in a register. */
static void visit_alike(struct weight_reader *r, const struct weight_visitor *v, unsigned whole, unsigned rest)
{
	struct ir *b = r->b;
	struct period p = period_of(r, PIECES_PERIOD_UNITS);
	ir_s number = ir_loop(b, ir_sconst(b, whole + 1)),
	     is_whole = ir_smin(b, ir_ssub(b, ir_sconst(b, whole), number), ir_sconst(b, 1));
	ir_s turns = ir_saddi(b, ir_smuli(b, is_whole, (PIECES_PERIOD_UNITS - rest) / p.turn), rest / p.turn),
	     units = ir_smuli(b, turns, p.turn);

	if (v->begin)
		v->begin(v->context);
	weight_pieces_begin_either(&p, is_whole, rest, units,
	                           r->format->head_bytes ? ir_sadd(b, r->first, ir_sshli(b, number, 3)) : number);
	visit_turns(&p, v, turns);
	if (v->end)
		v->end(v->context);
	move_on(r, ir_smuli(b, units, weight_pieces_unit(r->format)));
	ir_endloop(b);
}

unsigned weight_pieces_fit(const struct weight_format *f)
{
	unsigned n = PIECES_PERIOD_UNITS;
	while (n > 1 && n * weight_pieces_lane(f) > PIECES_MAX_WORDS * 4)
		n /= 2;
	return n;
}

unsigned weight_pieces_chunk(struct weight_reader *r)
{
	const struct weight_format *f = r->format;
	const unsigned units = r->span_units < PIECES_PERIOD_UNITS ? r->span_units : PIECES_PERIOD_UNITS,
		       last = WEIGHT_MAX_ARRAYS - 1, only = weight_pieces_first_array(f);
	struct period p = period_of(r, units);
	bool alone = true;

	for (unsigned i = only + 1; i <= last; i++)
		alone = alone && !f->array[i].count;
	if (r->span_units % units == 0 && (p.turn == units || r->at_once))
		return units;
	if (alone && r->span_units % p.turn == 0 && weight_pieces_turns_walk(&p, only, units))
		return p.turn;
	return 0;
}

void weight_pieces_read(struct weight_reader *r, const struct weight_visitor *v)
{
	struct ir *b = r->b;
	unsigned whole = r->span_units / PIECES_PERIOD_UNITS, rest = r->span_units % PIECES_PERIOD_UNITS;
	ir_s number = { 0 };

	/* Words loaded only where they are there are moved once more, into what turns shift through: too many for whole
	 * periods. */
	struct weight_reader by_turns = *r;
	by_turns.at_once = false;
	if (whole && rest && !r->rest_apart && rest_is_alike(&by_turns, rest)) {
		visit_alike(&by_turns, v, whole, rest);
		return;
	}
	if (whole > 1)
		number = ir_loop(b, ir_sconst(b, whole));
	if (whole) {
		bool moves = whole > 1 && r->format->head_bytes;
		visit_period(r, v, PIECES_PERIOD_UNITS,
		             moves ? ir_sadd(b, r->first, ir_sshli(b, number, 3)) : r->first);
	}
	if (whole > 1)
		ir_endloop(b);
	if (rest)
		visit_period(r, v, rest,
		             whole && r->format->head_bytes ? ir_saddi(b, r->first, whole * PIECES_PERIOD_UNITS)
		                                            : r->first);
}
