/* tests/jit/branch_kernels.c - see branch_kernels.h. */
#include "tests/jit/branch_kernels.h"

#include <string.h>

static ir_s zero_or_one(struct ir *b, ir_c c) { return ir_ssel(b, c, ir_sconst(b, 1), ir_sconst(b, 0)); }

/* --- ifs and breaks */

struct vars {
	ir_s sum, n, limit, stop, mode;
	ir_i hits;
	ir_m on;
	ir_c seen;
};

static void add(struct ir *b, const struct vars *v, ir_s more)
{
	ir_set_s(b, v->sum, ir_sandi(b, ir_sadd(b, v->sum, more), INT32_MAX));
}

/* The loop inside the second part of an if: its break leaves that loop alone. */
static void build_innermost(struct ir *b, const struct vars *v, ir_s i, ir_s j)
{
	add(b, v, ir_sconst(b, 13));
	ir_s k = ir_loop(b, ir_sconst(b, 3));
	ir_break(b, ir_seq(b, k, v->mode));
	ir_if(b, ir_any(b, v->on));
	ir_set_i(b, v->hits, ir_isel(b, v->on, ir_iadd(b, v->hits, ir_iconst(b, 1)), v->hits));
	ir_endif(b);
	ir_set_m(b, v->on, ir_mor(b, v->on, ir_ieq(b, ir_ilane(b), ir_isplat(b, k))));
	ir_endloop(b);
	ir_if(b, ir_cnot(b, v->seen));
	add(b, v, ir_ssel(b, ir_slt(b, i, j), ir_sconst(b, 1), ir_sconst(b, 2)));
	ir_endif(b);
}

static void build_inner(struct ir *b, const struct vars *v, ir_s i)
{
	ir_s j = ir_loop(b, v->limit);
	add(b, v, ir_sadd(b, ir_smuli(b, v->sum, 3), ir_sadd(b, i, j)));
	ir_break(b, ir_seq(b, j, v->stop));
	ir_if(b, ir_slt(b, j, i));
	ir_if(b, ir_sle(b, v->mode, ir_sconst(b, 1)));
	add(b, v, ir_sconst(b, 7));
	ir_set_i(b, v->hits, ir_iadd(b, v->hits, ir_ilane(b)));
	ir_else(b);
	ir_break(b, ir_sle(b, v->mode, j));
	ir_set_c(b, v->seen, ir_cor(b, v->seen, ir_seq(b, j, ir_sconst(b, 1))));
	add(b, v, ir_sconst(b, 11));
	ir_endif(b);
	ir_else(b);
	build_innermost(b, v, i, j);
	ir_endif(b);
	ir_endloop(b);
}

void branch_build(struct ir *b)
{
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	const int32_t vector = (int32_t)b->lanes * 4;
	struct vars v = { .sum = ir_var_s(b, ir_sconst(b, 1)),
		          .n = ir_sload64(b, in, 0),
		          .limit = ir_sload64(b, in, 8),
		          .stop = ir_sload64(b, in, 16),
		          .mode = ir_sload64(b, in, 24) };

	v.hits = ir_var_i(b, ir_iconst(b, 0));
	v.on = ir_var_m(b, ir_ieq(b, ir_ilane(b), ir_iconst(b, 7)));
	v.seen = ir_var_c(b, ir_slt(b, v.mode, ir_sconst(b, 0)));
	ir_s rounds = ir_var_s(b, ir_sconst(b, 0)), i = ir_loop(b, v.n);
	build_inner(b, &v, i);
	ir_set_s(b, rounds, ir_saddi(b, i, 1));
	ir_if(b, ir_cand(b, v.seen, ir_slt(b, ir_sconst(b, 2), i)));
	add(b, &v, ir_sconst(b, 1000));
	ir_break(b, ir_sle(b, i, i));
	add(b, &v, ir_sconst(b, 5000)); /* nothing comes here */
	ir_endif(b);
	ir_if(b, ir_all(b, ir_mor(b, v.on, ir_igt(b, ir_ilane(b), ir_iconst(b, 1)))));
	add(b, &v, ir_sconst(b, 100));
	ir_else(b);
	ir_endif(b);
	ir_endloop(b);
	ir_fstore(b, out, ir_fbits(b, ir_isplat(b, v.sum)), 0, 0);
	ir_fstore(b, out, ir_fbits(b, v.hits), vector, 0);
	ir_fstore(b, out, ir_fbits(b, ir_isel(b, v.on, ir_iconst(b, 1), ir_iconst(b, 0))), 2 * vector, 0);
	ir_fstore(b, out, ir_fbits(b, ir_isplat(b, zero_or_one(b, v.seen))), 3 * vector, 0);
	ir_fstore(b, out, ir_fbits(b, ir_isplat(b, rounds)), 4 * vector, 0);
}

struct state {
	int64_t sum, rounds;
	uint32_t hits[32], on, all;
	bool seen;
	unsigned lanes;
};

static void more(struct state *s, int64_t by) { s->sum = (s->sum + by) & INT32_MAX; }

static void expect_innermost(struct state *s, int64_t mode, int64_t i, int64_t j)
{
	more(s, 13);
	for (int k = 0; k < 3 && k != mode; k++) {
		for (unsigned l = 0; l < s->lanes; l++)
			s->hits[l] += s->on >> l & 1;
		s->on |= 1u << k;
	}
	if (!s->seen)
		more(s, i < j ? 1 : 2);
}

static void expect_inner(struct state *s, const int64_t in[BRANCH_NUMBERS], int64_t i)
{
	for (int64_t j = 0; j < in[1]; j++) {
		more(s, 3 * s->sum + i + j);
		if (j == in[2])
			return;
		if (j < i && in[3] <= 1) {
			more(s, 7);
			for (unsigned l = 0; l < s->lanes; l++)
				s->hits[l] += l;
		} else if (j < i) {
			if (in[3] <= j)
				return;
			s->seen |= j == 1;
			more(s, 11);
		} else {
			expect_innermost(s, in[3], i, j);
		}
	}
}

void branch_expect(const int64_t in[BRANCH_NUMBERS], unsigned lanes, uint32_t *out)
{
	struct state s = { .sum = 1, .on = 1 << 7, .seen = in[3] < 0, .lanes = lanes };

	for (int64_t i = 0; i < in[0]; i++) {
		expect_inner(&s, in, i);
		s.rounds = i + 1;
		if (s.seen && i > 2) {
			more(&s, 1000);
			break;
		}
		if ((s.on & 3) == 3)
			more(&s, 100);
	}
	for (unsigned l = 0; l < lanes; l++) {
		out[l] = (uint32_t)s.sum;
		out[lanes + l] = s.hits[l];
		out[2 * lanes + l] = s.on >> l & 1;
		out[3 * lanes + l] = s.seen;
		out[4 * lanes + l] = (uint32_t)s.rounds;
	}
}

/* --- waves */

void branch_build_waves(struct ir *b)
{
	const int32_t vector = (int32_t)b->lanes * 4;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8),
	     all = ir_shared(b, vector * (int32_t)b->waves);
	ir_s wave = ir_wave(b), next = ir_sandi(b, ir_saddi(b, wave, 1), b->waves - 1);
	ir_a mine = ir_aadd(b, all, ir_smuli(b, wave, vector)), theirs = ir_aadd(b, all, ir_smuli(b, next, vector));
	ir_i back = ir_ishl(b, ir_isub(b, ir_iconst(b, (int64_t)b->lanes - 1), ir_ilane(b)), 2),
	     x = ir_var_i(b, ir_iload(b, ir_aadd(b, in, ir_smuli(b, wave, vector)), 0));
	ir_c odd = ir_seq(b, ir_sandi(b, wave, 1), ir_sconst(b, 1));

	ir_s round = ir_loop(b, ir_sconst(b, 5));
	ir_if(b, odd); /* waves part here */
	ir_fstore(b, mine, ir_fbits(b, ir_iadd(b, x, ir_iconst(b, 1))), 0, 0);
	ir_else(b);
	ir_fstore(b, mine, ir_fbits(b, ir_ixor(b, x, ir_isplat(b, round))), 0, 0);
	ir_if(b, ir_seq(b, round, wave));
	ir_set_i(b, x, ir_igather(b, mine, back, 0)); /* what other lanes have just stored */
	ir_fstore(b, mine, ir_fbits(b, x), 0, 0);
	ir_endif(b);
	ir_endif(b);
	ir_break(b, ir_seq(b, round, ir_sconst(b, 3))); /* all of them at once */
	ir_if(b, ir_slt(b, round, ir_sconst(b, 2)));    /* for all alike, so a barrier may stand here */
	ir_barrier(b);
	ir_set_i(b, x, ir_iadd(b, x, ir_iload(b, theirs, 0)));
	ir_barrier(b);
	ir_else(b);
	ir_set_i(b, x, ir_iadd(b, x, ir_igather(b, mine, back, 0)));
	ir_endif(b);
	ir_endloop(b);
	ir_set_i(b, x, ir_ixor(b, x, ir_igather(b, mine, back, 0)));
	ir_if(b, odd); /* and on the other way nothing is stored */
	ir_fstore(b, mine, ir_fbits(b, x), 0, 0);
	ir_else(b);
	ir_endif(b);
	ir_set_i(b, x, ir_iadd(b, x, ir_igather(b, mine, back, 0)));
	ir_fstore(b, ir_aadd(b, out, ir_smuli(b, wave, vector)), ir_fbits(b, x), 0, 0);
}

void branch_expect_waves(const uint32_t *in, unsigned waves, unsigned lanes, uint32_t *out)
{
	uint32_t shared[16][32], x[16][32];

	for (unsigned w = 0; w < waves; w++)
		memcpy(x[w], in + w * lanes, lanes * 4);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned w = 0; w < waves; w++) {
			for (unsigned l = 0; l < lanes; l++)
				shared[w][l] = w % 2 ? x[w][l] + 1 : x[w][l] ^ round;
			for (unsigned l = 0; l < lanes && w % 2 == 0 && round == w; l++)
				x[w][l] = shared[w][lanes - 1 - l];
			if (w % 2 == 0 && round == w)
				memcpy(shared[w], x[w], sizeof x[w]);
		}
		for (unsigned w = 0; w < waves && round < 3; w++)
			for (unsigned l = 0; l < lanes; l++)
				x[w][l] += round < 2 ? shared[(w + 1) % waves][l] : shared[w][lanes - 1 - l];
	}
	for (unsigned w = 0; w < waves; w++) {
		for (unsigned l = 0; l < lanes; l++)
			x[w][l] ^= shared[w][lanes - 1 - l];
		if (w % 2)
			memcpy(shared[w], x[w], sizeof x[w]);
		for (unsigned l = 0; l < lanes; l++)
			out[w * lanes + l] = x[w][l] + shared[w][lanes - 1 - l];
	}
}

/* --- a mask that changes between accesses which nothing else stands between; loads of neighbours by a mask */

void branch_build_changed_mask(struct ir *b)
{
	const int32_t vector = (int32_t)b->lanes * 4;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_i v = ir_iload(b, in, 0);
	ir_f bits = ir_fbits(b, v);
	ir_m odd = ir_ieq(b, ir_iand(b, ir_ilane(b), ir_iconst(b, 1)), ir_iconst(b, 1)), mask = ir_var_m(b, odd);

	ir_fstore(b, out, bits, 0, 0);
	ir_fstore(b, out, bits, vector, 0);
	ir_where(b, mask);
	ir_emit(b, IR_mnot, mask.r, mask.r, 0, 0, 0);
	ir_fstore(b, out, bits, 2 * vector, 0);
	ir_where(b, mask);
	ir_i word[4];
	for (int32_t k = 0; k < 4; k++) { /* which would be one load without the mask */
		word[k] = ir_iload_s(b, in, 4 * k, 16);
		ir_where(b, odd);
	}
	for (int32_t k = 0; k < 4; k++)
		ir_fstore(b, out, ir_fbits(b, word[k]), (3 + k) * vector, 0);
}

void branch_expect_changed_mask(const uint8_t *in, unsigned lanes, uint8_t *out)
{
	for (unsigned k = 0; k < 3 * lanes; k++)
		if (k < lanes || (k % 2 == 1) == (k < 2 * lanes))
			memcpy(out + 4 * k, in + k % lanes * 4, 4);
	for (unsigned k = 0; k < 4 * lanes; k++)
		memset(out + (3 * lanes + k) * 4, 0, 4);
	for (unsigned k = 0; k < 4; k++)
		for (unsigned l = 1; l < lanes; l += 2)
			memcpy(out + ((3 + k) * lanes + l) * 4, in + 16 * l + 4 * k, 4);
}

/* --- awaits */

void branch_build_awaits(struct ir *b)
{
	const int32_t vector = (int32_t)b->lanes * 4;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);

	ir_if(b, ir_seq(b, ir_begin(b), ir_sconst(b, 1)));
	ir_f first = ir_fawait(b, in, 0, 0);
	ir_loop(b, ir_sconst(b, 2));
	ir_fstore(b, out, first, 0, 0);
	ir_endloop(b);
	ir_endif(b);
	ir_fstore(b, out, ir_fawait(b, in, vector, 0), vector, 0);
}

void branch_expect_awaits(const uint8_t *in, unsigned lanes, int64_t t, uint8_t *out)
{
	if (t == 1)
		memcpy(out, in, lanes * 4u);
	memcpy(out + lanes * 4, in + lanes * 4, lanes * 4u);
}
