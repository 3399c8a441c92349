/* kernels-templates/matmul/matmul_await.c - the input of a matmul that awaits it: from the words that others give to
 * shared bytes, floats or int8 blocks as they come, or with a norm in between where the key says so.
 *
 * Owns: KEY_AWAITED's staging of one column, and of int8 blocks. All words that a wave stages are asked for before the
 * first is looked at, and norm weights before those. A quad is 128 neighbouring words, which are four vectors, or a
 * vector of 16 bytes a lane; waves take quads in iteration, and the vectors after the last quad. Waves without work
 * load the last quad or vector again and discard it, so that all waves execute the same loads.
 */
#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul.h"

enum { QUAD = 128 /* words */, QUADS_MAX = 17 /* of a wave */, STRAIGHT = 2 /* quads whose code stands apart */ };

/* Neighbouring words: a column's floats, or the bytes or scales of int8 blocks. */
struct stage {
	const struct matmul_group *g;
	struct ir *b;
	uint32_t k, vectors, quads; /* of all words */
	unsigned iterations;        /* quads of every wave */
	unsigned mine;              /* that, and one more where some have one */
	unsigned rest;              /* vectors behind the quads */
	bool int8, norm;
	ir_a from, raw; /* shared: raw */
	ir_s wave;
	struct norm_scale scale;
	uint32_t first;             /* vector of a batch of blocks, */
	uint32_t column_vectors;    /* of which a column has so many, with COLUMN_PAD bytes behind them; 0: no pads */
	ir_f x[QUADS_MAX][4], left; /* this wave's: its quads', and its vector behind them */
	ir_f weight[QUADS_MAX][4], left_weight;
};

/* The number of this wave's quad i; of its vector behind the quads. */
static ir_s quad_number(const struct stage *s, unsigned i)
{
	struct ir *b = s->b;
	ir_s q = ir_saddi(b, s->wave, (int64_t)i * s->g->waves);

	return i < s->iterations ? q : ir_smin(b, q, ir_sconst(b, s->quads - 1));
}

static ir_s rest_number(const struct stage *s)
{
	return ir_saddi(s->b, ir_smin(s->b, s->wave, ir_sconst(s->b, s->rest - 1)), s->quads * 4);
}

/* Waves below n alone go through what follows. */
static void begin_some(const struct stage *s, unsigned n)
{
	struct ir *b = s->b;
	ir_s below = ir_ssub(b, ir_sconst(b, n), s->wave);

	ir_loop(b, ir_smin(b, below, ir_sconst(b, 1)));
}

static unsigned last_quads(const struct stage *s) { return s->quads % s->g->waves; }

/* A quad's words: of weights, of what is staged, or awaited. */
enum from { AWAITED, STORED };
static void load_quad(const struct stage *s, enum from from, ir_a x, ir_s number, bool vectors, ir_f out[4])
{
	struct ir *b = s->b;
	ir_a at = ir_aadd(b, x, ir_smuli(b, number, QUAD * 4));

	for (int i = 0; i < 4; i++)
		out[i] = from == AWAITED ? ir_fawait(b, at, i * 128, 0)
		         : vectors       ? ir_fbits(b, ir_iload_s(b, at, i * 4, 16))
		                         : ir_fload(b, at, i * 128, 0);
}

static void load_all(struct stage *s)
{
	struct ir *b = s->b;
	ir_a x = s->from, weight = s->norm ? matmul_group_arg(s->g, MATMUL_NORM) : x;
	ir_s number[QUADS_MAX], rest = { 0 };

	for (unsigned i = 0; i < s->mine; i++)
		number[i] = quad_number(s, i);
	if (s->rest)
		rest = ir_sshli(b, rest_number(s), 7);
	for (unsigned i = 0; s->norm && i < s->mine; i++)
		load_quad(s, STORED, weight, number[i], s->int8, s->weight[i]);
	if (s->norm && s->rest)
		s->left_weight = ir_fload(b, ir_aadd(b, weight, rest), 0, 0);
	for (unsigned i = 0; i < s->mine; i++)
		load_quad(s, AWAITED, x, number[i], false, s->x[i]);
	if (s->rest)
		s->left = ir_fawait(b, ir_aadd(b, x, rest), 0, 0);
}

/* ---- floats to shared bytes */

/* Where a vector goes, which is counted from the first one of the batch. */
static ir_a address_of(const struct stage *s, ir_s vector)
{
	struct ir *b = s->b;
	ir_s of_all = s->first ? ir_saddi(b, vector, s->first) : vector;
	ir_a to = ir_aadd(b, s->raw, ir_sshli(b, of_all, 7));

	if (!s->column_vectors)
		return to;
	return ir_aadd(b, to, ir_smuli(b, ir_sdivi(b, of_all, s->column_vectors), MATMUL_COLUMN_PAD));
}

static void store_quad(const struct stage *s, ir_s number, const ir_f x[4])
{
	struct ir *b = s->b;
	ir_s vector = ir_sshli(b, number, 2);
	const bool whole = s->column_vectors % 4 == 0 && s->first % 4 == 0; /* no column ends within a quad */
	ir_a to = address_of(s, vector);

	for (int i = 0; i < 4; i++)
		if (whole || !i)
			ir_fstore(b, to, x[i], i * 128, 0);
		else
			ir_fstore(b, address_of(s, ir_saddi(b, vector, i)), x[i], 0, 0);
}

static void store_all(const struct stage *s)
{
	struct ir *b = s->b;

	for (unsigned i = 0; i < s->mine; i++) {
		if (i == s->iterations)
			begin_some(s, last_quads(s));
		store_quad(s, ir_saddi(b, s->wave, (int64_t)i * s->g->waves), s->x[i]);
		if (i == s->iterations)
			ir_endloop(b);
	}
	if (!s->rest)
		return;
	begin_some(s, s->rest);
	ir_fstore(b, address_of(s, ir_saddi(b, s->wave, s->quads * 4)), s->left, 0, 0);
	ir_endloop(b);
}

/* ---- norms */

static ir_f normed(const struct stage *s, ir_f x, ir_f weight) { return norm_emit_element(s->b, &s->scale, x, weight); }

/* The pads of the last vector. */
static ir_f keep_pads(const struct stage *s, ir_f x)
{
	struct ir *b = s->b;

	if (s->k % 32 == 0)
		return x;
	ir_i first = ir_isplat(b, ir_sshli(b, ir_saddi(b, s->wave, s->quads * 4), 5));
	ir_m real = ir_igt(b, ir_isub(b, ir_iconst(b, (int32_t)s->k), first), ir_ilane(b));
	return ir_fsel(b, real, x, ir_fconst(b, 0.0f));
}

/* A column that ends inside a quad ends in one of the vectors behind the last whole quad (stage_of()). */
static void norm_floats(struct stage *s)
{
	struct ir *b = s->b;

	ir_barrier(b); /* all have read what is now to be overwritten */
	for (unsigned i = 0; i < s->mine; i++)
		for (unsigned j = 0; j < 4; j++)
			s->x[i][j] = normed(s, s->x[i][j], s->weight[i][j]);
	if (s->rest)
		s->left = keep_pads(s, normed(s, s->left, s->left_weight));
	store_all(s);
}

/* ---- int8 blocks */

void matmul_quantise_quad(const struct matmul_group *g, ir_s number, const ir_f x[4])
{
	struct ir *b = g->b;
	ir_f quants, word;

	quantise_emit_quad(b, x, &quants, &word);
	ir_fstore(b, ir_aadd(b, g->in, ir_smuli(b, number, QUAD)), quants, 0, 0);
	ir_fstore(b, ir_aadd(b, g->ins, ir_smuli(b, number, QUAD)), word, 0, 0);
}

/* This wave's quad i, or all from i on in iteration: they come from where all have been staged. */
static void finish_quad(const struct stage *s, ir_s number, const ir_f x[4], const ir_f weight[4])
{
	ir_f y[4];

	for (unsigned i = 0; i < 4; i++)
		y[i] = normed(s, x[i], weight[i]);
	matmul_quantise_quad(s->g, number, y);
}

static void quantise_quads(struct stage *s)
{
	struct ir *b = s->b;
	ir_f x[QUADS_MAX][4], weight[QUADS_MAX][4];
	unsigned some = last_quads(s);

	for (unsigned i = 0; i < s->mine; i++)
		for (unsigned j = 0; j < 4; j++) {
			x[i][j] = ir_var_f(b, s->x[i][j]);
			weight[i][j] = ir_var_f(b, s->weight[i][j]);
		}
	ir_s n = ir_sconst(b, s->iterations);
	if (some) /* waves below it have one more */
		n = ir_saddi(b,
		             ir_smin(b, ir_smax(b, ir_ssub(b, ir_sconst(b, some), s->wave), ir_sconst(b, 0)),
		                     ir_sconst(b, 1)),
		             s->iterations);
	ir_s iteration = ir_loop(b, n);
	finish_quad(s, ir_sadd(b, s->wave, ir_smuli(b, iteration, s->g->waves)), x[0], weight[0]);
	for (unsigned i = 0; i + 1 < s->mine; i++)
		for (unsigned j = 0; j < 4; j++) {
			ir_set_f(b, x[i][j], x[i + 1][j]);
			ir_set_f(b, weight[i][j], weight[i + 1][j]);
		}
	ir_endloop(b);
}

static void quantise_apart(const struct stage *s)
{
	for (unsigned i = 0; i < s->mine; i++) {
		if (i == s->iterations)
			begin_some(s, last_quads(s));
		finish_quad(s, ir_saddi(s->b, s->wave, (int64_t)i * s->g->waves), s->x[i], s->weight[i]);
		if (i == s->iterations)
			ir_endloop(s->b);
	}
}

static void quantise_all(struct stage *s)
{
	struct ir *b = s->b;

	for (unsigned i = 0; i < s->mine; i++) /* by vectors now */
		load_quad(s, STORED, s->raw, quad_number(s, i), true, s->x[i]);
	if (s->mine > STRAIGHT)
		quantise_quads(s);
	else
		quantise_apart(s);
	if (!s->rest)
		return;
	begin_some(s, s->rest);
	ir_s number = ir_saddi(b, s->wave, s->quads * 4);
	ir_f y = normed(s, s->left, s->left_weight);
	ir_a q = ir_aadd(b, s->g->in, ir_sshli(b, number, 5)),
	     to = ir_aadd(b, s->g->ins, ir_smuli(b, number, MATMUL_MADE_BLOCK));
	quantise_emit_block(b, &y, q, 0, to, 0);
	ir_endloop(b);
}

/* ---- all of it */

uint32_t matmul_await_max(const struct target *target) { return QUADS_MAX * QUAD * target->waves; }

/* So many words from `from` on, and whole vectors of them. */
static struct stage stage_of(const struct matmul_group *g, uint32_t k, uint32_t vectors, ir_a from, ir_a raw)
{
	struct stage s = { .g = g, .b = g->b, .k = k, .vectors = vectors, .from = from, .raw = raw, .wave = g->wave };

	s.quads = k / QUAD;
	s.iterations = s.quads / g->waves;
	s.mine = s.iterations + (s.quads % g->waves != 0);
	s.rest = s.vectors - s.quads * 4;
	return s;
}

/* What is left behind whole vectors, by the first wave. */
static void copy_part(const struct stage *s)
{
	struct ir *b = s->b;
	unsigned lanes = s->k % 32;
	int64_t behind = (int64_t)s->vectors * 128;

	if (!lanes)
		return;
	begin_some(s, 1);
	ir_a from = ir_aaddi(b, s->from, behind), to = ir_aaddi(b, s->raw, behind + (int64_t)s->first * 128);
	ir_fstore(b, to, ir_fawait(b, from, 0, lanes), 0, lanes);
	ir_endloop(b);
}

/* As many words as the registers of a group hold. */
static uint32_t batch_words(const struct matmul_group *g) { return (QUADS_MAX - 1) * g->waves * QUAD; }

/* The words of all columns that a batch has, or what is left behind those before it. column_bytes: where columns have
 * pads. */
static struct stage batch_of(const struct matmul_group *g, uint32_t words, uint32_t number, unsigned slot, ir_a to,
                             uint32_t column_bytes)
{
	const uint32_t max = batch_words(g), first = number * max < words ? number * max : words,
		       n = words - first < max ? words - first : max;
	struct stage s = stage_of(g, n, n / 32, ir_aaddi(g->b, matmul_group_arg(g, slot), (int64_t)first * 4), to);

	s.first = first / 32;
	s.column_vectors = column_bytes / 128;
	return s;
}

void matmul_await_blocks(const struct matmul_group *g)
{
	const bool pads = g->recipe->engine == MATMUL_PRODUCTS;
	const uint32_t kp = (uint32_t)numerics_pad(g->key->k), words = g->key->tile_n * kp / 4;

	for (uint32_t i = 0; i * batch_words(g) < words; i++) { /* scales are half as many */
		struct stage q = batch_of(g, words, i, MATMUL_X, g->in, pads ? kp : 0),
			     scales = batch_of(g, words / 2, i, MATMUL_XS, g->ins, pads ? kp / 2 : 0);
		load_all(&q);
		load_all(&scales);
		store_all(&q);
		store_all(&scales);
		copy_part(&q);
		copy_part(&scales);
	}
	if (pads)
		matmul_stage_no_columns(g);
	ir_barrier(g->b);
}

/* Floats as they are, with the pads. */
static void await_floats(const struct matmul_group *g)
{
	const uint32_t words = (uint32_t)numerics_pad(g->key->k);

	for (uint32_t i = 0; i * batch_words(g) < words; i++) {
		struct stage s = batch_of(g, words, i, MATMUL_X, g->floats, 0);
		load_all(&s);
		store_all(&s);
	}
	ir_barrier(g->b);
}

void matmul_await_stage(struct matmul_group *g)
{
	struct ir *b = g->b;
	const struct key *key = g->key;
	if (g->recipe->blocks) {
		matmul_await_blocks(g);
		return;
	}
	if (!g->recipe->normed && key->k > QUADS_MAX * QUAD * g->waves) {
		await_floats(g);
		return;
	}
	struct stage s =
		stage_of(g, key->k, (uint32_t)numerics_pad(key->k) / 32, matmul_group_arg(g, MATMUL_X), g->floats);

	s.int8 = g->recipe->int8;
	s.norm = g->recipe->normed;
	ir_f eps = { 0 };
	if (s.norm)
		eps = ir_fbcast(b, g->arg, MATMUL_EPS * 8);
	load_all(&s);
	store_all(&s);
	if (s.norm) {
		ir_barrier(b);
		s.scale = norm_emit_scale(b, &(struct norm_columns){ .k = key->k,
		                                                     .centred = g->recipe->centred,
		                                                     .waves = g->waves,
		                                                     .x = s.raw,
		                                                     .eps = eps });
	}
	if (s.int8)
		quantise_all(&s);
	else if (s.norm)
		norm_floats(&s);
	ir_barrier(b);
}

bool matmul_awaits_early(const struct matmul_group *g) { return g->recipe->together * g->key->tile_n <= g->waves; }

ir_f matmul_await_from(const struct matmul_group *g, ir_s base, ir_s blocks)
{
	struct ir *b = g->b;
	const unsigned columns = g->key->tile_n;
	ir_s block = base;

	if (columns > 1) { /* this wave's column of its row block, or the last one's */
		ir_s in_group = ir_sdivi(b, g->wave, columns);
		ir_s column = ir_ssub(b, g->wave, ir_smuli(b, in_group, columns));
		block = ir_sadd(b, base, ir_smin(b, in_group, ir_saddi(b, blocks, -1)));
		return matmul_await_column(g, block, column);
	}
	if (g->recipe->together > 1) {
		ir_s last = ir_saddi(b, blocks, -1);
		block = ir_sadd(b, base, ir_smin(b, g->wave, last));
	}
	return ir_fawait(b, ir_aadd(b, matmul_group_arg(g, MATMUL_FROM), ir_sshli(b, block, 7)), 0, 0);
}

ir_f matmul_await_column(const struct matmul_group *g, ir_s block, ir_s column)
{
	struct ir *b = g->b;
	ir_a from = ir_aadd(b, matmul_group_arg(g, MATMUL_FROM), ir_sshli(b, block, 7)),
	     at = ir_aadd(b, from, ir_smuli(b, column, (int64_t)matmul_out_width(g->key) * 4));

	return ir_fawait(b, at, 0, 0);
}
