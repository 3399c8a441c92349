/* kernels-templates/matmul/matmul_schedule.c - the fields, their values, and who refuses which. */
#include "kernels-templates/matmul/matmul_schedule.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kernels-templates/matmul/matmul.h"

/* The values of a digit from 1 on, up to the first 0. */
enum { VALUES = 16, DIGIT_BITS = 4, DIGIT = 15 };
static const struct {
	const char *name;
	size_t member;
	uint32_t value[VALUES];
} fields[] = {
	{ "prefetch_level",
	  offsetof(struct matmul_schedule, prefetch_level),
	  { SCHEDULE_FIRST_LEVEL, SCHEDULE_SECOND_LEVEL, SCHEDULE_BOTH_LEVELS, SCHEDULE_NO_LEVEL } },
	{ "prefetch_distance",
	  offsetof(struct matmul_schedule, prefetch_distance),
	  { 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10 } },
	{ "unroll_k", offsetof(struct matmul_schedule, unroll_k), { 8, 16, 32, 64, 128, 256 } },
	{ "row_blocks", offsetof(struct matmul_schedule, row_blocks), { 1, 2 } },
	{ "tile_n", offsetof(struct matmul_schedule, tile_n), { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } },
	{ "k_block_bytes",
	  offsetof(struct matmul_schedule, k_block_bytes),
	  { 5 << 10, 9 << 10, 13 << 10, 18 << 10, 26 << 10, 36 << 10 } },
};
enum { LEVEL, DISTANCE, UNROLL, ROW_BLOCKS };
enum { TWO = 2 /* row blocks */, NEAREST = 1 /* 1 KiB */, NEAR_FLOATS = 2 /* 2 KiB */, NEAR_INT8 = 3 /* 4 KiB */ };
_Static_assert((int)TEMPLATE_SIDE_BY_SIDE == (int)TWO << (int)ROW_BLOCKS * DIGIT_BITS, "the row blocks' digit");
_Static_assert(sizeof fields / sizeof *fields == MATMUL_SCHEDULE_FIELDS && MATMUL_SCHEDULE_FIELDS * DIGIT_BITS <= 32,
               "a digit for each field");

/* Weights are asked for so far ahead: a few hundred nanoseconds of one core's share of memory. A stretch leaves room in
 * the first-level cache for inputs. */
enum {
	DISTANCE_USUAL = 8 << 10,
	STRETCH_USUAL = 18 << 10,
	UNROLL_MIN = 16,
	UNROLL_TIMES = 4,
	APART_MAX = 1 << 28,
	NARROW_COLUMNS = 16,
	NARROW_FLOATS = 8,
	SHORT_WIDE = 4 /* columns of int8 that memory's own prefetching serves as well */,
	MANY_REGISTERS = 9 /* of 16, for a product */
};

static uint32_t *member(struct matmul_schedule *s, unsigned field)
{
	return (uint32_t *)((char *)s + fields[field].member);
}
static unsigned digit(uint32_t schedule, unsigned field) { return schedule >> field * DIGIT_BITS & DIGIT; }
static uint32_t with_digit(uint32_t schedule, unsigned field, unsigned n)
{
	return (schedule & ~((uint32_t)DIGIT << field * DIGIT_BITS)) | (uint32_t)n << field * DIGIT_BITS;
}

/* ---- shapes */

struct matmul_shape matmul_shape(const struct key *key, const struct target *target)
{
	const unsigned element_k = weight_element_k(key_dtype(key->activation));
	struct matmul_shape s = {
		.format = weight_format_for(key_dtype(key->weight), key_dtype(key->activation)),
		.segment_k = NUMERICS_SEGMENT / element_k,
		.int8 = key->activation == key_type(DTYPE_Q8_0),
		.wide = key->flags & KEY_WIDE,
		.regs = target->vector_regs,
		.row_vectors = 32 / target->lanes,
		.columns = key->tile_n,
		.spans = numerics_spans(key->k),
		.matrices = key->flags & KEY_PAIR ? 2 : 1,
		.blocks = (uint32_t)(numerics_pad(key->rows) / 32)
	};

	s.span_k = (unsigned)(numerics_pad(key->k) / element_k / s.spans);
	s.aligned = s.format->head_bytes && s.span_k % (s.format->unit_k * s.format->head_units) == 0;
	return s;
}

static bool part_fits(const struct matmul_shape *s, unsigned sums_at_once, unsigned vectors, unsigned columns)
{
	/* Beside the accumulators: with int8 the integer sums side by side and the registers that make a product; with
	 * floats a few k's of weights and inputs. */
	unsigned max = s->regs < 32 ? 8 : 16;
	unsigned sums = vectors * columns <= sums_at_once ? vectors * columns : columns;
	unsigned beside = s->int8 ? sums + weight_int8_registers(s->format) : 0;
	return vectors * columns <= max && vectors * columns + beside <= s->regs;
}

struct matmul_parts matmul_parts(const struct matmul_shape *s, unsigned columns)
{
	struct matmul_parts p = {
		.vectors = s->int8 ? 1 : s->row_vectors, .columns = columns, .sums = s->regs < 32 ? 4 : 8
	};

	/* int8 spares work per column that shares a weight, so columns come first; floats are content with two. */
	while (p.columns > 1 && !part_fits(s, p.sums, p.vectors, p.columns))
		p.columns--;
	unsigned passes = (s->columns + p.columns - 1) / p.columns;
	p.columns = (s->columns + passes - 1) / passes;
	while (p.vectors * 2 <= s->row_vectors && part_fits(s, p.sums, p.vectors * 2, p.columns))
		p.vectors *= 2;
	return p;
}

/* A float chain ends with its segment; an int8 chain may be cut anywhere, or nowhere, so an even share of the span that
 * the first-level cache holds is taken where there is one. */
unsigned matmul_stretch(const struct matmul_shape *s, const struct matmul_schedule *c, const struct matmul_parts *p)
{
	const struct weight_format *f = s->format;
	unsigned whole = s->aligned ? f->unit_k * f->head_units : c->unroll_k;

	if (!s->int8)
		return s->segment_k;
	if (matmul_single_part(s, p))
		return s->span_k;
	unsigned max = c->k_block_bytes / f->unit_bytes * f->unit_k / NUMERICS_BLOCK * NUMERICS_BLOCK;
	for (unsigned n = max; n >= NUMERICS_SEGMENT / 2; n -= NUMERICS_BLOCK)
		if (s->span_k % n == 0 && n % whole == 0)
			return n;
	/* To count iterations as well as heads takes more registers than there are. */
	return f->head_bytes && !s->aligned ? s->span_k : NUMERICS_SEGMENT;
}

/* Of two row blocks side by side, registers hold the totals, or with int8 at least the integer sums, and what makes
 * them. */
static bool blocks_fit(const struct matmul_shape *s)
{
	return 2 * s->row_vectors + (s->int8 ? weight_int8_registers(s->format) : 2 * s->format->step + 2) <= s->regs;
}

bool matmul_accumulators_in_memory(const struct matmul_shape *s)
{
	return s->int8 && 2 * 2 * s->row_vectors + weight_int8_registers(s->format) + 1 > s->regs;
}

/* ---- what is usual, what is refused */

/* Passes with draft tokens come with 4, 8 and 16 columns; others are prompts, of which the short ones are rare and the
 * long ones wait for arithmetic. */
static bool guesses(const struct key *key) { return key->tile_n == 4 || key->tile_n == 8 || key->tile_n == 16; }

/* Passes of few tokens wait for memory almost as one token does, and prefetching into the first level alone does not
 * hide that. It suffices for floats that are not wide, and for wide int8 that is unpacked or without VNNI, which
 * waits for arithmetic. */
static bool waits_for_memory(const struct matmul_shape *s, const struct target *target)
{
	const bool lies = s->format->quants && s->format->quants->as_they_lie;

	if (target->prefetch_to_l2)
		return s->columns <= NARROW_COLUMNS;
	if (s->wide)
		return s->int8 ? target->has_vnni && lies && s->columns > SHORT_WIDE && s->columns <= NARROW_COLUMNS
		               : s->columns <= NARROW_FLOATS;
	return s->int8 && s->columns > 1;
}

static struct matmul_schedule usual_schedule(const struct key *key, const struct target *target,
                                             const struct matmul_shape *s)
{
	struct matmul_schedule usual = { .prefetch_level = SCHEDULE_FIRST_LEVEL,
		                         .prefetch_distance = DISTANCE_USUAL,
		                         .unroll_k = s->format->unit_k > UNROLL_MIN ? s->format->unit_k : UNROLL_MIN,
		                         .row_blocks = 1,
		                         .k_block_bytes = STRETCH_USUAL };

	if (s->wide) {
		struct matmul_wide_shape w = matmul_wide_shape(key, target, STRETCH_USUAL);
		usual.tile_n = w.part_columns;
		usual.prefetch_level = w.whole                       ? SCHEDULE_SECOND_LEVEL
		                       : waits_for_memory(s, target) ? SCHEDULE_BOTH_LEVELS
		                                                     : SCHEDULE_FIRST_LEVEL;
	} else {
		usual.tile_n = matmul_parts(s, s->columns).columns;
		usual.prefetch_level = waits_for_memory(s, target) ? SCHEDULE_BOTH_LEVELS : SCHEDULE_FIRST_LEVEL;
	}
	return usual;
}

static const char *refuse_asking(const struct matmul_schedule *c, const struct matmul_schedule *usual, bool once)
{
	if (usual->prefetch_level == SCHEDULE_SECOND_LEVEL && !once && c->prefetch_level != usual->prefetch_level &&
	    c->prefetch_level != SCHEDULE_NO_LEVEL)
		return "row blocks that are unpacked as a whole must be prefetched into the second cache level";
	if (usual->prefetch_level != c->prefetch_level && c->prefetch_level == SCHEDULE_SECOND_LEVEL && !once)
		return "weights that are reused must be prefetched into the first cache level, or into both";
	if (c->prefetch_distance != usual->prefetch_distance &&
	    (c->prefetch_level == SCHEDULE_NO_LEVEL || (!once && c->prefetch_level != SCHEDULE_BOTH_LEVELS)))
		return "what is not prefetched has no distance";
	return NULL;
}

static const char *refuse_interleave(const struct matmul_shape *s, const struct matmul_schedule *c,
                                     const struct matmul_schedule *usual)
{
	const struct weight_format *f = s->format;

	if (c->unroll_k == usual->unroll_k)
		return NULL;
	if (s->wide)
		return "a wide tile's iterations have a fixed length";
	if (c->unroll_k % f->unit_k || s->segment_k % c->unroll_k || s->span_k % c->unroll_k)
		return "iterations are of whole units, and segments of whole iterations";
	if (f->head_bytes && !s->aligned)
		return "units are counted one by one where heads come in the middle of a span";
	return c->unroll_k > UNROLL_TIMES * usual->unroll_k || s->columns > 1
	               ? "iterations would be too long for the instruction cache"
	               : NULL;
}

static const char *refuse_blocks(const struct matmul_shape *s, const struct matmul_schedule *c,
                                 const struct matmul_parts *p)
{
	if (c->row_blocks == 1)
		return NULL;
	if (s->columns > 1 || p->vectors != s->row_vectors)
		return "only single columns take row blocks side by side";
	if (s->blocks < 2)
		return "there are not so many row blocks";
	if (weight_run_bytes(s->format, (uint64_t)s->span_k * s->spans) > APART_MAX)
		return "row blocks are too far apart";
	if (s->format->head_bytes && !s->aligned)
		return "units are counted in one row block where heads come in the middle of a span";
	return !blocks_fit(s) ? "registers do not hold the sums of so many row blocks" : NULL;
}

/* Of a tile in several parts. */
static const char *refuse_parts(const struct key *key, const struct target *target, const struct matmul_shape *s,
                                const struct matmul_schedule *c, const struct matmul_schedule *usual)
{
	unsigned parts = (s->columns + c->tile_n - 1) / c->tile_n, cut, cut_usual;

	if (c->tile_n != usual->tile_n &&
	    (s->wide || c->tile_n > usual->tile_n || (s->columns + parts - 1) / parts != c->tile_n))
		return "parts are even, no wider than registers allow, and those of wide tiles as wide as the panels "
		       "of their inputs";
	if (c->tile_n != usual->tile_n && s->int8 && s->regs < 32 && weight_int8_registers(s->format) >= MANY_REGISTERS)
		return "registers do not hold what weights that take many of them need in narrower parts";
	if (c->k_block_bytes == usual->k_block_bytes)
		return NULL;
	if (!s->int8)
		return "chains of floats end with their segments";
	if (s->wide) {
		cut = matmul_wide_shape(key, target, c->k_block_bytes).segment;
		cut_usual = matmul_wide_shape(key, target, usual->k_block_bytes).segment;
	} else {
		struct matmul_parts p = matmul_parts(s, c->tile_n);
		cut = matmul_stretch(s, c, &p);
		struct matmul_schedule as_usual = *c;
		as_usual.k_block_bytes = usual->k_block_bytes;
		cut_usual = matmul_stretch(s, &as_usual, &p);
	}
	return cut == cut_usual ? "stretches come out as they usually are" : NULL;
}

const char *matmul_schedule(const struct key *key, const struct target *target, struct matmul_schedule *out)
{
	if (key->schedule >> MATMUL_SCHEDULE_FIELDS * DIGIT_BITS)
		return "a schedule has not so many fields";
	struct matmul_shape s = matmul_shape(key, target);
	const struct matmul_schedule usual = usual_schedule(key, target, &s);
	*out = usual;
	for (unsigned i = 0; i < MATMUL_SCHEDULE_FIELDS; i++) {
		unsigned n = digit(key->schedule, i);
		if (n && !fields[i].value[n - 1])
			return "a field of the schedule has no such value";
		if (n && fields[i].value[n - 1] == *member(out, i))
			return "usual values of a schedule are written as 0";
		if (n)
			*member(out, i) = fields[i].value[n - 1];
	}
	if (!key->schedule)
		return NULL;
	if (key->flags & KEY_EXPERTS && key->tile_n > 1)
		return "groups of columns whose weights are chosen by data are multiplied in one way";
	struct matmul_parts p = matmul_parts(&s, s.wide ? 1 : out->tile_n);
	const char *why = refuse_asking(out, &usual, matmul_once(&s, &p));
	why = why ? why : refuse_interleave(&s, out, &usual);
	why = why ? why : s.wide && out->row_blocks > 1 ? "wide tiles have one row block" : refuse_blocks(&s, out, &p);
	return why ? why : refuse_parts(key, target, &s, out, &usual);
}

struct matmul_schedule matmul_usual_schedule(const struct key *key, const struct target *target)
{
	const struct matmul_shape s = matmul_shape(key, target);

	return usual_schedule(key, target, &s);
}

/* ---- lists */

static struct matmul_recipe recipe_of(const struct key *key) { return matmul_recipe(key, &target_table[key->target]); }

/* Whether the recipe has a schedule. */
static bool by_lanes(const struct matmul_recipe *r)
{
	return !r->refusal && (r->engine == MATMUL_LANES || r->engine == MATMUL_LANES_WIDE);
}

const char *matmul_schedule_refusal(const struct key *key) { return recipe_of(key).refusal; }

static unsigned add_if_legal(const struct key *key, uint32_t schedule, uint32_t out[], unsigned n)
{
	struct key k = *key;

	k.schedule = schedule;
	if (matmul_schedule_refusal(&k))
		return n;
	out[n] = schedule;
	return n + 1;
}

/* Of keys that matmul_shape() knows: weights are little but loaded. */
static bool as_they_lie(const struct key *key)
{
	const struct weight_format *f = weight_format_find(key_dtype(key->weight));
	return key->activation != key_type(DTYPE_Q8_0) || (f->quants && f->quants->as_they_lie);
}

unsigned matmul_schedules(const struct key *key, uint32_t out[])
{
	unsigned n = 1;
	const enum matmul_engine engine = recipe_of(key).engine;
	bool once = key->tile_n == 1 && engine == MATMUL_LANES;

	out[0] = engine == MATMUL_SIDE_BY_SIDE ? key->schedule : 0;
	if (engine != MATMUL_LANES && engine != MATMUL_LANES_WIDE)
		return 1;
	for (unsigned level = SCHEDULE_FIRST_LEVEL; level <= SCHEDULE_BOTH_LEVELS; level++)
		if (guesses(key) || once)
			n = add_if_legal(key, with_digit(0, LEVEL, level), out, n);
	if (!once)
		return n;
	/* Where memory answers soon, nearer weights: floats are through with them sooner. Where the processor fetches
	 * ahead well by itself, what it has fetched already. */
	n = add_if_legal(key,
	                 with_digit(0, DISTANCE, key->activation == key_type(DTYPE_Q8_0) ? NEAR_INT8 : NEAR_FLOATS),
	                 out, n);
	n = add_if_legal(key, with_digit(0, DISTANCE, NEAREST), out, n);
	/* Where a core waits for few lines at a time, two streams keep more of memory busy: from near into the first
	 * level for weights that take long to unpack, and as usual for others. */
	if (target_table[key->target].prefetch_to_l2) {
		n = add_if_legal(key, with_digit(0, ROW_BLOCKS, TWO), out, n);
		n = add_if_legal(
			key,
			with_digit(with_digit(with_digit(0, LEVEL, SCHEDULE_FIRST_LEVEL), DISTANCE, NEAR_FLOATS),
		                   ROW_BLOCKS, TWO),
			out, n);
	}
	/* Where it does so best for two streams, and told nothing. Formats that are unpacked gain hardly more by that
	 * than from 1 KiB. */
	return as_they_lie(key)
	               ? add_if_legal(key, with_digit(with_digit(0, LEVEL, SCHEDULE_NO_LEVEL), ROW_BLOCKS, TWO), out, n)
	               : n;
}

unsigned matmul_schedules_near(const struct key *key, unsigned field, uint32_t out[])
{
	unsigned n = 0, own = digit(key->schedule, field);

	for (unsigned i = 0; i < VALUES && (i == 0 || fields[field].value[i - 1]); i++) {
		uint32_t schedule = with_digit(key->schedule, field, i);
		unsigned before = n;
		if (i == own)
			continue;
		n = add_if_legal(key, schedule, out, n);
		if (n == before && field == LEVEL &&
		    digit(schedule, DISTANCE)) /* where nothing is asked for ahead there is no distance to keep */
			n = add_if_legal(key, with_digit(schedule, DISTANCE, 0), out, n);
	}
	return n;
}

uint32_t matmul_schedule_follow(const struct key *key, const struct key *one)
{
	const struct matmul_recipe r = recipe_of(one);
	const uint32_t level = r.schedule.prefetch_level;
	uint32_t both[1];

	if (!by_lanes(&r) || (level != SCHEDULE_SECOND_LEVEL && level != SCHEDULE_BOTH_LEVELS))
		return 0;
	return guesses(key) && add_if_legal(key, with_digit(0, LEVEL, SCHEDULE_BOTH_LEVELS), both, 0) ? both[0] : 0;
}

/* ---- words */

const char *matmul_schedule_field(const struct key *key, unsigned field, uint32_t *value)
{
	struct matmul_recipe r = recipe_of(key);

	assert(field < MATMUL_SCHEDULE_FIELDS);
	if (!by_lanes(&r))
		return NULL;
	*value = *member(&r.schedule, field);
	return fields[field].name;
}

char *matmul_schedule_name(const struct key *key, char *out, size_t cap)
{
	static const char *const levels[] = {
		NULL, "weights prefetched into the first cache level", "weights prefetched into the second cache level",
		"weights prefetched into the second cache level, then the first", "weights are not prefetched"
	};
	const struct matmul_recipe r = recipe_of(key);
	const struct matmul_schedule s = r.schedule;
	char ahead[32] = "", part[80] = "", unroll[32] = "", stretch[48] = "";

	if (r.engine == MATMUL_SIDE_BY_SIDE) {
		snprintf(out, cap, "%u row block%s a wave", r.sides, r.sides > 1 ? "s side by side" : "");
		return out;
	}
	if (!by_lanes(&r)) {
		snprintf(out, cap, "the usual way");
		return out;
	}
	struct matmul_shape shape = matmul_shape(key, &target_table[key->target]);
	struct matmul_parts p = matmul_parts(&shape, s.tile_n);
	if (matmul_once(&shape, &p) ? s.prefetch_level != SCHEDULE_NO_LEVEL : s.prefetch_level == SCHEDULE_BOTH_LEVELS)
		snprintf(ahead, sizeof ahead, ", %u KiB ahead", s.prefetch_distance >> 10);
	if (digit(key->schedule, 2))
		snprintf(unroll, sizeof unroll, ", %u k's an iteration", s.unroll_k);
	if (digit(key->schedule, 4))
		snprintf(part, sizeof part, ", %u column%s side by side", s.tile_n, s.tile_n > 1 ? "s" : "");
	if (digit(key->schedule, 5))
		snprintf(stretch, sizeof stretch, ", stretches of %u KiB", s.k_block_bytes >> 10);
	snprintf(out, cap, "%s%s%s%s%s%s", levels[s.prefetch_level], ahead, unroll,
	         s.row_blocks > 1 ? ", 2 row blocks side by side" : "", part, stretch);
	return out;
}
