/* kernels-templates/formats/weight_vectors_load.c - the loads of a period of lane-contiguous weights, and of its
 * superblock headers. */
#include <assert.h>

#include "kernels-templates/formats/weight_vectors_period.h"

/* ---- loads */

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
	uint32_t at = number * 4, left = p->bytes - at, whole = p->bytes / VECTOR * VECTOR;
	int32_t disp = (int32_t)weight_vectors_offset(p->bytes, at, 0);

	if (at < whole)
		return load_sized(p->r, 4, disp);
	if (left >= 4)
		return load_sized(p->r, at - whole < (p->bytes & 8) ? 3 : 2, disp);
	ir_i low = load_sized(p->r, left >= 2 ? 1 : 0, disp);
	if (left != 3)
		return low;
	ir_i high = load_sized(p->r, 0, (int32_t)weight_vectors_offset(p->bytes, at + 2, 0));
	return ir_ior(p->r->b, low, ir_ishl(p->r->b, high, 16));
}

/* The words of the array's `bytes` bytes from byte `at` of the stream on, for all steps. */
static void load_array(struct period *p, unsigned i, uint32_t at, uint32_t bytes)
{
	p->vectors.array[i].skip = at % 4;
	p->vectors.array[i].n = 0;
	for (unsigned word = at / 4; bytes && word * 4 < at + bytes; word++) {
		assert(p->vectors.array[i].n < VECTORS_MAX_WORDS);
		if (!p->stream[word].r)
			p->stream[word] = load_word(p, word);
		p->vectors.array[i].word[p->vectors.array[i].n++] = p->stream[word];
	}
}

/* ---- heads: those of a period's first and last unit are loaded, and every unit takes one of them */

static void load_head(const struct weight_reader *r, ir_s unit, ir_i word[4])
{
	struct ir *b = r->b;
	unsigned bytes = weight_vectors_head(r->format);
	ir_s number = ir_sshri(b, unit, (int)__builtin_ctz(r->format->head_units));
	ir_a at = ir_aadd(b, r->heads, ir_smuli(b, number, bytes * LANES));

	for (unsigned i = 0; i < (bytes + 3) / 4; i++)
		word[i] = bytes == 2 ? ir_iload_u16(b, at, 0) : ir_iload_s(b, at, (int32_t)(i * 4), bytes);
}

void weight_vectors_numbers(struct ir *b, const ir_i word[4], ir_i out[4])
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
		weight_vectors_numbers(b, word[i], bytes[i]);
	bool aligned = p->r->span_units % f->head_units == 0;
	if (!aligned)
		p->in_head = ir_sandi(b, first, f->head_units - 1);
	for (unsigned i = 0; f->six && i < 4; i += 2)
		if (aligned)
			memcpy(p->vectors.array[0].word + i, bytes[0] + i, 2 * sizeof(ir_i));
		else
			take_eight(b, ir_isplat(b, p->in_head), bytes[0] + i, bytes[!p->one_head] + i,
			           p->vectors.array[0].word + i);
	p->vectors.array[0].n = f->six ? 4 : 0;
}

ir_i weight_vectors_unit_head(const struct period *p, ir_s before, unsigned u)
{
	struct ir *b = p->r->b;
	if (p->one_head || (p->step == p->units && u == 0))
		return p->head[0];
	ir_s from = p->step < p->units ? ir_sadd(b, p->in_head, before) : p->in_head;
	ir_m past = ir_igt(b, ir_isplat(b, from), ir_iconst(b, (int32_t)(p->r->format->head_units - 1 - u)));
	return ir_isel(b, past, p->head[1], p->head[0]);
}

uint32_t weight_vectors_unit_stream(const struct weight_format *f, unsigned i)
{
	return weight_vectors_stream(f, i, 1);
}

bool weight_vectors_steps_walk(const struct period *p, unsigned i, unsigned units)
{
	const struct weight_format *f = p->r->format;
	uint32_t step = p->step * weight_vectors_array_bytes(&f->array[i]);
	return !p->r->at_once && p->step < VECTORS_PERIOD_UNITS && step && step % VECTOR == 0 &&
	       units * weight_vectors_unit_stream(f, i) % VECTOR == 0;
}

/* The words of arrays that steps do not walk through. */
static void load_words(struct period *p)
{
	const struct weight_format *f = p->r->format;

	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > weight_vectors_first_array(f);)
		if (!p->walks[i])
			load_array(p, i, weight_vectors_stream(f, i, p->units),
			           p->units * weight_vectors_array_bytes(&f->array[i]));
}

/* What steps shift through. */
static void make_variables(struct period *p)
{
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS; i++)
		for (unsigned n = 0; !p->walks[i] && n < p->vectors.array[i].n; n++)
			p->vectors.array[i].word[n] = ir_var_i(p->r->b, p->vectors.array[i].word[n]);
}

void weight_vectors_begin_period(struct period *p, ir_s first)
{
	struct ir *b = p->r->b;
	const struct weight_format *f = p->r->format;

	if (f->head_bytes)
		begin_heads(p, first,
		            p->units > 1 && p->r->span_units % f->head_units ? ir_saddi(b, first, p->units - 1)
		                                                             : first);
	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > weight_vectors_first_array(f);) {
		p->walks[i] = p->step < p->units && weight_vectors_steps_walk(p, i, p->units);
		if (p->walks[i])
			p->from[i] = ir_var_a(b, ir_aaddi(b, p->r->at[4],
			                                  p->units * weight_vectors_unit_stream(f, i) * LANES));
	}
	/* Loads first, then variables. */
	load_words(p);
	if (p->step < p->units)
		make_variables(p);
}

/* Loads the words of a period of `units` into the variables of p, when `there` is 1. */
static void load_into(struct period *p, unsigned units, ir_s there)
{
	struct ir *b = p->r->b;
	struct period q = *p;

	q.units = units;
	q.bytes = units * weight_vectors_lane(p->r->format);
	ir_loop(b, there);
	load_words(&q);
	for (unsigned i = weight_vectors_first_array(p->r->format); i < WEIGHT_MAX_ARRAYS; i++)
		for (unsigned n = 0; !p->walks[i] && n < q.vectors.array[i].n; n++)
			ir_set_i(b, p->vectors.array[i].word[n], q.vectors.array[i].word[n]);
	ir_endloop(b);
}

void weight_vectors_begin_either(struct period *p, ir_s is_whole, unsigned rest, ir_s units, ir_s first)
{
	struct ir *b = p->r->b;
	const struct weight_format *f = p->r->format;
	bool words = false;

	if (f->head_bytes)
		begin_heads(p, first, ir_saddi(b, ir_sadd(b, first, units), -1));
	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > weight_vectors_first_array(f);) {
		uint32_t before = weight_vectors_unit_stream(f, i) * LANES, at = weight_vectors_stream(f, i, p->units),
			 bytes = p->units * weight_vectors_array_bytes(&f->array[i]);
		p->walks[i] = weight_vectors_steps_walk(p, i, p->units);
		if (p->walks[i]) {
			p->from[i] =
				ir_var_a(b, before ? ir_aadd(b, p->r->at[4], ir_smuli(b, units, before)) : p->r->at[4]);
			continue;
		}
		p->vectors.array[i].skip = at % 4;
		p->vectors.array[i].n = bytes ? (at % 4 + bytes + 3) / 4 : 0;
		words |= bytes > 0;
		for (unsigned n = 0; n < p->vectors.array[i].n; n++)
			p->vectors.array[i].word[n] = ir_iconst(b, 0);
	}
	make_variables(p);
	if (words) {
		load_into(p, p->units, is_whole);
		load_into(p, rest, ir_ssub(b, ir_sconst(b, 1), is_whole));
	}
}

void weight_vectors_begin_step(struct period *p)
{
	for (unsigned i = WEIGHT_MAX_ARRAYS; i-- > weight_vectors_first_array(p->r->format);) {
		unsigned words = p->step * weight_vectors_array_bytes(&p->r->format->array[i]) / 4;
		if (!p->walks[i])
			continue;
		assert(words <= VECTORS_MAX_WORDS);
		p->vectors.array[i].skip = 0;
		p->vectors.array[i].n = words;
		for (unsigned n = 0; n < words; n++)
			p->vectors.array[i].word[n] =
				ir_iload_s(p->r->b, p->from[i], (int32_t)(n / 4 * VECTOR * LANES + n % 4 * 4), VECTOR);
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

void weight_vectors_end_step(struct period *p)
{
	struct ir *b = p->r->b;

	for (unsigned i = weight_vectors_first_array(p->r->format); i < WEIGHT_MAX_ARRAYS; i++) {
		unsigned bytes = p->step * weight_vectors_array_bytes(&p->r->format->array[i]);
		if (p->walks[i] && !p->r->take)
			ir_set_a(b, p->from[i], ir_aaddi(b, p->from[i], (int64_t)bytes * LANES));
		else if (bytes && !p->walks[i])
			shift_words(b, p->vectors.array[i].word, p->vectors.array[i].n, bytes);
	}
	for (unsigned i = 0; p->r->format->six && i < 4; i += 2)
		shift_words(b, p->vectors.array[0].word + i, 2, p->step);
}
