/* kernels-templates/formats/weight_pieces.c - weights by pieces of 16 bytes (weight_pieces.h): packing them, and
 * loading them in a template. */
#include <assert.h>
#include <string.h>

#include "kernels-templates/formats/weight_pieces.h"

enum { PIECE = 16, LANES = 32 };

uint64_t weight_pieces_place(uint32_t bytes, uint32_t at, unsigned lane)
{
	uint32_t whole = bytes / PIECE * PIECE, base = whole * LANES;

	if (at < whole)
		return (uint64_t)at / PIECE * PIECE * LANES + lane * PIECE + at % PIECE;
	at -= whole;
	for (uint32_t size = PIECE / 2; size; size /= 2)
		if (bytes & size) {
			if (at < size)
				return base + lane * size + at;
			at -= size;
			base += size * LANES;
		}
	assert(!"a byte of the stream");
	return 0;
}

static uint32_t array_bytes(const struct weight_array *a) { return (uint32_t)a->lane * a->count; }

/* The first array of the stream: not one that heads keep. */
static unsigned first_array(const struct weight_format *f) { return f->six ? 1 : 0; }

uint64_t weight_pieces_bytes(const struct weight_format *f, uint64_t k)
{
	uint64_t units = k / PIECES_UNIT_K, heads = f->head_bytes ? units / f->head_units : 0;
	return units * weight_pieces_unit(f) + heads * weight_pieces_head(f) * LANES;
}

uint32_t weight_pieces_stream(const struct weight_format *f, unsigned number, unsigned units)
{
	uint32_t at = 0;
	for (unsigned i = number + 1; i < WEIGHT_MAX_ARRAYS; i++)
		at += units * array_bytes(&f->array[i]);
	return at;
}

/* ---- packing */

static void place_vector(uint8_t *period, uint32_t bytes, uint32_t at, const uint8_t *from, unsigned lane_bytes)
{
	/* Places of lanes are evenly apart. */
	uint8_t *to = period + weight_pieces_place(bytes, at, 0);
	uint64_t step = weight_pieces_place(bytes, at, 1) - weight_pieces_place(bytes, at, 0);

	for (unsigned lane = 0; lane < LANES; lane++, to += step, from += lane_bytes)
		if (lane_bytes == 4)
			memcpy(to, from, 4);
		else if (lane_bytes == 2)
			memcpy(to, from, 2);
		else
			*to = *from;
}

/* One unit, packed for CPUs, to its place in the row block. */
static void place_unit(const struct weight_format *f, uint8_t *dst, const uint8_t *from, uint64_t span_units,
                       uint64_t unit)
{
	uint64_t in_span = unit % span_units, first = in_span / PIECES_PERIOD_UNITS * PIECES_PERIOD_UNITS;
	unsigned n = (unsigned)(span_units - first < PIECES_PERIOD_UNITS ? span_units - first : PIECES_PERIOD_UNITS);
	uint8_t *period = dst + (unit - in_span + first) * weight_pieces_unit(f);
	uint32_t bytes = n * weight_pieces_lane(f);

	for (unsigned i = first_array(f); i < WEIGHT_MAX_ARRAYS; i++) {
		const struct weight_array *a = &f->array[i];
		uint32_t at = weight_pieces_stream(f, i, n) + (uint32_t)(in_span - first) * array_bytes(a);
		for (unsigned v = 0; v < a->count; v++)
			place_vector(period, bytes, at + v * a->lane, from + a->disp + v * a->lane * LANES, a->lane);
	}
}

static uint32_t packed_unit(const struct weight_format *f) { return PIECES_UNIT_K / f->unit_k * f->unit_bytes; }

/* The head's numbers of six bits of one lane; units: where the head's units lie. */
static void place_six(const struct weight_format *f, uint8_t *to, const uint8_t *units, unsigned lane)
{
	uint8_t n[2][8];

	for (unsigned u = 0; u < 8; u++)
		for (unsigned i = 0; i < 2; i++)
			n[i][u] = (uint8_t)((units[u * packed_unit(f) + i * LANES + lane] + f->six_bias) & 63);
	for (unsigned u = 0; u < 4; u++) {
		to[u] = (uint8_t)((n[0][u] & 15) | n[0][u + 4] << 4);
		to[4 + u] = (uint8_t)((n[1][u] & 15) | n[1][u + 4] << 4);
		to[8 + u] = (uint8_t)(n[0][u] >> 4 | n[0][u + 4] >> 4 << 2 | n[1][u] >> 4 << 4 | n[1][u + 4] >> 4 << 6);
	}
}

/* A head and its units, packed for CPUs, to the head's place. */
static void place_head(const struct weight_format *f, uint8_t *to, const uint8_t *from)
{
	unsigned halves = f->head_bytes / LANES / 2, bytes = weight_pieces_head(f);

	memset(to, 0, (size_t)bytes * LANES);
	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned i = 0; i < halves; i++)
			memcpy(to + lane * bytes + i * 2, from + (i * LANES + lane) * 2, 2);
		if (f->six)
			place_six(f, to + lane * bytes + 4, from + f->head_bytes, lane);
	}
}

/* A stretch at a time is packed for CPUs on the stack, then laid where it belongs. */
void weight_pieces_pack(const struct weight_format *f, void *dst, const void *const row[32], uint64_t k)
{
	enum { STRETCH = NUMERICS_SEGMENT };
	static const uint8_t zeros[STRETCH * 4];
	const struct dtype_facts *facts = &dtype_table[f->type];
	uint64_t units = numerics_pad(k) / PIECES_UNIT_K, span_units = units / numerics_spans(k);
	uint8_t *heads = (uint8_t *)dst + units * weight_pieces_unit(f);
	_Alignas(64) uint8_t packed[STRETCH * LANES * 4];

	for (uint64_t at = 0; at < k; at += STRETCH) {
		const void *part[LANES];
		uint64_t n = k - at < STRETCH ? k - at : STRETCH;
		for (unsigned r = 0; r < LANES; r++)
			part[r] = row[r] ? (const void *)((const uint8_t *)row[r] + at / facts->block * facts->bytes)
			                 : zeros;
		f->pack(packed, part, n);
		if (f->head_bytes)
			place_head(f, heads + at / STRETCH * weight_pieces_head(f) * LANES, packed);
		for (uint64_t u = 0; u < numerics_pad(n) / PIECES_UNIT_K; u++)
			place_unit(f, dst, packed + f->head_bytes + u * packed_unit(f), span_units,
			           at / PIECES_UNIT_K + u);
	}
}

/* ---- what a turn holds */

/* The array whose vector begins at disp of a unit, and which vector it is. */
static unsigned find_array(const struct weight_format *f, int32_t disp, unsigned *vector)
{
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS; i++) {
		const struct weight_array *a = &f->array[i];
		uint32_t at = (uint32_t)disp - a->disp;
		if (a->count && (uint32_t)disp >= a->disp && at < array_bytes(a) * LANES) {
			assert(at % (a->lane * LANES) == 0);
			*vector = at / (a->lane * LANES);
			return i;
		}
	}
	assert(!"an array of the format");
	return 0;
}

/* The word that holds the vector's element; *at: the element's byte in it. */
static ir_i find_word(const struct weight_pieces *p, int32_t disp, unsigned *at)
{
	unsigned vector = 0, i = find_array(p->format, disp, &vector);
	const struct weight_array *a = &p->format->array[i];
	/* Numbers from heads lie unit by unit, eight bytes of each kind. */
	unsigned byte = i < first_array(p->format) ? vector * 8 + p->unit
	                                           : p->array[i].skip + (p->unit * a->count + vector) * a->lane;

	assert(byte / 4 < p->array[i].n);
	*at = byte % 4;
	return p->array[i].word[byte / 4];
}

ir_i weight_pieces_word(struct ir *b, const struct weight_pieces *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	assert(at == 0);
	(void)b;
	return word;
}

ir_f weight_pieces_half(struct ir *b, const struct weight_pieces *p, int32_t disp)
{
	unsigned at = 0;
	ir_i word = find_word(p, disp, &at);
	return ir_fhalf(b, word, at / 2);
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

/* ---- loads */

/* A period on its way. */
struct period {
	struct weight_reader *r;
	unsigned units, turn;          /* turn: units of one */
	uint32_t bytes;                /* of the stream */
	bool walks[WEIGHT_MAX_ARRAYS]; /* each turn takes whole pieces of this array and loads them itself, from `from`,
	                                  unless all are to be loaded at once */
	ir_a from[WEIGHT_MAX_ARRAYS];
	ir_i stream[PIECES_PERIOD_UNITS * 32]; /* words loaded at the period's start, by number; r 0: none */
	struct weight_pieces pieces;
	bool one_head; /* spans begin with heads, so that a period has one */
	ir_i head[2];  /* the word of halves of the first unit's head, and of the last unit's */
	ir_s in_head;  /* the first unit's number in its head; in use unless one_head */
};

static ir_i load_sized(struct weight_reader *r, unsigned shift, int32_t disp)
{
	ir_a at = r->at[shift];
	switch (shift) {
	case 0: return ir_iload_u8(r->b, at, disp);
	case 1: return ir_iload_u16(r->b, at, disp);
	default: return ir_iload_s(r->b, at, disp, 1u << shift);
	}
}

/* Word `number` of the stream, whose last bytes may be fewer than four. */
static ir_i load_word(struct period *p, unsigned number)
{
	uint32_t at = number * 4, left = p->bytes - at, whole = p->bytes / PIECE * PIECE;
	int32_t disp = (int32_t)weight_pieces_place(p->bytes, at, 0);

	if (at < whole)
		return load_sized(p->r, 4, disp);
	if (left >= 4)
		return load_sized(p->r, at - whole < (p->bytes & 8) ? 3 : 2, disp);
	ir_i low = load_sized(p->r, left >= 2 ? 1 : 0, disp);
	if (left != 3)
		return low;
	ir_i high = load_sized(p->r, 0, (int32_t)weight_pieces_place(p->bytes, at + 2, 0));
	return ir_ior(p->r->b, low, ir_ishl(p->r->b, high, 16));
}

/* The words of the array's `bytes` bytes from byte `at` of the stream on, for all turns. */
static void load_array(struct period *p, unsigned i, uint32_t at, uint32_t bytes)
{
	p->pieces.array[i].skip = at % 4;
	p->pieces.array[i].n = 0;
	for (unsigned word = at / 4; bytes && word * 4 < at + bytes; word++) {
		assert(p->pieces.array[i].n < PIECES_MAX_WORDS);
		if (!p->stream[word].r)
			p->stream[word] = load_word(p, word);
		p->pieces.array[i].word[p->pieces.array[i].n++] = p->stream[word];
	}
}

/* ---- heads: those of a period's first and last unit are loaded, and every unit takes one of them */

static void load_head(const struct weight_reader *r, ir_s unit, ir_i word[4])
{
	struct ir *b = r->b;
	unsigned bytes = weight_pieces_head(r->format);
	ir_s number = ir_sshri(b, unit, (int)__builtin_ctz(r->format->head_units));
	ir_a at = ir_aadd(b, r->heads, ir_smuli(b, number, bytes * LANES));

	for (unsigned i = 0; i < (bytes + 3) / 4; i++)
		word[i] = bytes == 2 ? ir_iload_u16(b, at, 0) : ir_iload_s(b, at, (int32_t)(i * 4), bytes);
}

/* The head's numbers of six bits as bytes: eight of A, eight of B. */
static void make_bytes(struct ir *b, const ir_i word[4], ir_i out[4])
{
	ir_i low = ir_iconst(b, 0x0f0f0f0f), high = ir_iconst(b, 0x30303030);

	out[0] = ir_ior(b, ir_iand(b, word[1], low), ir_iand(b, ir_ishl(b, word[3], 4), high));
	out[1] = ir_ior(b, ir_iand(b, ir_ishr(b, word[1], 4), low), ir_iand(b, ir_ishl(b, word[3], 2), high));
	out[2] = ir_ior(b, ir_iand(b, word[2], low), ir_iand(b, word[3], high));
	out[3] = ir_ior(b, ir_iand(b, ir_ishr(b, word[2], 4), low), ir_iand(b, ir_ishr(b, word[3], 2), high));
}

/* Eight bytes from byte number `from`, 0..7, on, of the sixteen that begin with first and go on with next. */
static void take_eight(struct ir *b, ir_i from, const ir_i first[2], const ir_i next[2], ir_i out[2])
{
	ir_m lower = ir_igt(b, ir_iconst(b, 4), from);
	ir_i down = ir_ishl(b, ir_iand(b, from, ir_iconst(b, 3)), 3), up = ir_isub(b, ir_iconst(b, 32), down);
	ir_i x[3] = { ir_isel(b, lower, first[0], first[1]), ir_isel(b, lower, first[1], next[0]),
		      ir_isel(b, lower, next[0], next[1]) };

	for (unsigned i = 0; i < 2; i++)
		out[i] = ir_ior(b, ir_ishrv(b, x[i], down), ir_ishlv(b, x[i + 1], up));
}

/* first, last: numbers of the period's first and last unit in the row; last is in use when there are several. */
static void begin_heads(struct period *p, ir_s first, ir_s last)
{
	struct ir *b = p->r->b;
	const struct weight_format *f = p->r->format;
	ir_i word[2][4], bytes[2][4];

	p->one_head = p->units == 1 || p->r->span_units % f->head_units == 0;
	for (unsigned i = 0; i < (p->one_head ? 1u : 2u); i++) {
		load_head(p->r, i ? last : first, word[i]);
		p->head[i] = word[i][0];
	}
	for (unsigned i = 0; f->six && i < (p->one_head ? 1u : 2u); i++)
		make_bytes(b, word[i], bytes[i]);
	bool aligned = p->r->span_units % f->head_units == 0;
	if (!aligned)
		p->in_head = ir_sandi(b, first, f->head_units - 1);
	for (unsigned i = 0; f->six && i < 4; i += 2)
		if (aligned)
			memcpy(p->pieces.array[0].word + i, bytes[0] + i, 2 * sizeof(ir_i));
		else
			take_eight(b, ir_isplat(b, p->in_head), bytes[0] + i, bytes[!p->one_head] + i,
			           p->pieces.array[0].word + i);
	p->pieces.array[0].n = f->six ? 4 : 0;
}

/* before: units of the period before this turn's, where there are several; u: the unit in the turn. */
static ir_i unit_head(const struct period *p, ir_s before, unsigned u)
{
	struct ir *b = p->r->b;
	if (p->one_head || (p->turn == p->units && u == 0))
		return p->head[0];
	ir_s from = p->turn < p->units ? ir_sadd(b, p->in_head, before) : p->in_head;
	ir_m past = ir_igt(b, ir_isplat(b, from), ir_iconst(b, (int32_t)(p->r->format->head_units - 1 - u)));
	return ir_isel(b, past, p->head[1], p->head[0]);
}

/* The bytes of the stream before array i, for each unit. */
static uint32_t unit_stream(const struct weight_format *f, unsigned i) { return weight_pieces_stream(f, i, 1); }

/* Whether turns take whole pieces of array i in a period of so many units, so that they may load them themselves. */
static bool turns_walk(const struct period *p, unsigned i, unsigned units)
{
	const struct weight_format *f = p->r->format;
	uint32_t turn = p->turn * array_bytes(&f->array[i]);
	return !p->r->at_once && p->turn < PIECES_PERIOD_UNITS && turn && turn % PIECE == 0 &&
	       units * unit_stream(f, i) % PIECE == 0;
}

/* The words of arrays that turns do not walk through. */
static void load_words(struct period *p)
{
	const struct weight_format *f = p->r->format;

	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > first_array(f);)
		if (!p->walks[i])
			load_array(p, i, weight_pieces_stream(f, i, p->units), p->units * array_bytes(&f->array[i]));
}

/* What turns shift through. */
static void make_variables(struct period *p)
{
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS; i++)
		for (unsigned n = 0; !p->walks[i] && n < p->pieces.array[i].n; n++)
			p->pieces.array[i].word[n] = ir_var_i(p->r->b, p->pieces.array[i].word[n]);
}

/* first: number of the period's first unit in the row, in use when there are heads. */
static void begin_period(struct period *p, ir_s first)
{
	struct ir *b = p->r->b;
	const struct weight_format *f = p->r->format;

	if (f->head_bytes)
		begin_heads(p, first,
		            p->units > 1 && p->r->span_units % f->head_units ? ir_saddi(b, first, p->units - 1)
		                                                             : first);
	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > first_array(f);) {
		p->walks[i] = p->turn < p->units && turns_walk(p, i, p->units);
		if (p->walks[i])
			p->from[i] = ir_var_a(b, ir_aaddi(b, p->r->at[4], p->units * unit_stream(f, i) * LANES));
	}
	/* Loads first, then variables. */
	load_words(p);
	if (p->turn < p->units)
		make_variables(p);
}

/* Loads the words of a period of `units` into the variables of p, when `there` is 1. */
static void load_into(struct period *p, unsigned units, ir_s there)
{
	struct ir *b = p->r->b;
	struct period q = *p;

	q.units = units;
	q.bytes = units * weight_pieces_lane(p->r->format);
	ir_loop(b, there);
	load_words(&q);
	for (unsigned i = first_array(p->r->format); i < WEIGHT_MAX_ARRAYS; i++)
		for (unsigned n = 0; !p->walks[i] && n < q.pieces.array[i].n; n++)
			ir_set_i(b, p->pieces.array[i].word[n], q.pieces.array[i].word[n]);
	ir_endloop(b);
}

/* The same for a period of which the kernel knows only when it runs whether it is whole or the last one, of `rest`;
 * units: how many it has. */
static void begin_either(struct period *p, ir_s is_whole, unsigned rest, ir_s units, ir_s first)
{
	struct ir *b = p->r->b;
	const struct weight_format *f = p->r->format;
	bool words = false;

	if (f->head_bytes)
		begin_heads(p, first, ir_saddi(b, ir_sadd(b, first, units), -1));
	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > first_array(f);) {
		uint32_t before = unit_stream(f, i) * LANES, at = weight_pieces_stream(f, i, p->units),
			 bytes = p->units * array_bytes(&f->array[i]);
		p->walks[i] = turns_walk(p, i, p->units);
		if (p->walks[i]) {
			p->from[i] =
				ir_var_a(b, before ? ir_aadd(b, p->r->at[4], ir_smuli(b, units, before)) : p->r->at[4]);
			continue;
		}
		p->pieces.array[i].skip = at % 4;
		p->pieces.array[i].n = bytes ? (at % 4 + bytes + 3) / 4 : 0;
		words |= bytes > 0;
		for (unsigned n = 0; n < p->pieces.array[i].n; n++)
			p->pieces.array[i].word[n] = ir_iconst(b, 0);
	}
	make_variables(p);
	if (words) {
		load_into(p, p->units, is_whole);
		load_into(p, rest, ir_ssub(b, ir_sconst(b, 1), is_whole));
	}
}

static void begin_turn(struct period *p)
{
	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > first_array(p->r->format);) {
		unsigned words = p->turn * array_bytes(&p->r->format->array[i]) / 4;
		if (!p->walks[i])
			continue;
		assert(words <= PIECES_MAX_WORDS);
		p->pieces.array[i].skip = 0;
		p->pieces.array[i].n = words;
		for (unsigned n = 0; n < words; n++)
			p->pieces.array[i].word[n] =
				ir_iload_s(p->r->b, p->from[i], (int32_t)(n / 4 * PIECE * LANES + n % 4 * 4), PIECE);
	}
}

/* n words move down by `bytes` bytes. */
static void shift_words(struct ir *b, ir_i word[], unsigned n, unsigned bytes)
{
	unsigned bits = bytes % 4 * 8;

	for (unsigned to = 0; to + bytes / 4 < n; to++) {
		ir_i low = word[to + bytes / 4];
		if (!bits) {
			ir_set_i(b, word[to], low);
			continue;
		}
		ir_i moved = ir_ishr(b, low, bits);
		if (to + bytes / 4 + 1 < n)
			moved = ir_ior(b, moved, ir_ishl(b, word[to + bytes / 4 + 1], 32 - bits));
		ir_set_i(b, word[to], moved);
	}
}

static void end_turn(struct period *p)
{
	struct ir *b = p->r->b;

	for (unsigned i = first_array(p->r->format); i < WEIGHT_MAX_ARRAYS; i++) {
		unsigned bytes = p->turn * array_bytes(&p->r->format->array[i]);
		if (p->walks[i])
			ir_set_a(b, p->from[i], ir_aaddi(b, p->from[i], (int64_t)bytes * LANES));
		else if (bytes)
			shift_words(b, p->pieces.array[i].word, p->pieces.array[i].n, bytes);
	}
	for (unsigned i = 0; p->r->format->six && i < 4; i += 2)
		shift_words(b, p->pieces.array[0].word + i, 2, p->turn);
}

/* ---- the walk */

/* before: units of the period before this turn's; in use when there are several turns. */
static void visit_turn(struct period *p, const struct weight_visitor *v, ir_s before)
{
	struct weight_stream w = { .pieces = &p->pieces };

	begin_turn(p);
	for (unsigned u = 0; u < p->turn; u++) {
		p->pieces.unit = u;
		if (p->r->format->head_bytes)
			p->pieces.head = unit_head(p, before, u);
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
	end_turn(p);
	ir_endloop(b);
}

static void move_on(struct weight_reader *r, ir_s bytes)
{
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

	if (units > r->most_units)
		for (p.turn = r->most_units; units % p.turn;)
			p.turn--;
	return p;
}

/* first: number of the period's first unit in the row, in use when there are heads. */
static void visit_period(struct weight_reader *r, const struct weight_visitor *v, unsigned units, ir_s first)
{
	struct ir *b = r->b;
	struct period p = period_of(r, units);

	if (v->begin)
		v->begin(v->context);
	begin_period(&p, first);
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

	for (unsigned i = first_array(f); i < WEIGHT_MAX_ARRAYS; i++)
		if (turns_walk(&p, i, PIECES_PERIOD_UNITS) != turns_walk(&p, i, units) ||
		    (PIECES_PERIOD_UNITS - units) * unit_stream(f, i) % 4)
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
	begin_either(&p, is_whole, rest, units,
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
