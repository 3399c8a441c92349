/* kernels-templates/matmul/matmul_floats.c - weights that are floats times several columns of floats, on targets whose
 * launches have parts.
 *
 * Owns: a tile of such a matmul. A column's input comes from memory as a broadcast, which takes such a target as long
 * as four products of all its lanes. So a wave does several row blocks side by side, and each input serves all of them;
 * of a gate and its partner half of them are the partner's. Where so many would not fill a card, it does one or two. A
 * wave has one span, as in matmul_group.c, and its totals grow in the group's shared bytes, segment by segment: every
 * row's chain is as numerics.h rule 3 says it.
 */
#include "kernels-templates/emit/math.h"
#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/matmul/matmul.h"

enum {
	VECTOR = 16,           /* bytes of a row that a lane loads at once */
	ITERATION = 512,       /* products of an iteration at most, */
	ITERATION_WORDS = 32,  /* and words of its weights */
	WORDS = VECTOR / 4,    /* of a vector */
	AHEAD = 4,             /* iterations whose weights are on their way at most, */
	AHEAD_REGISTERS = 100, /* and registers that these and the sums take */
};

struct floats {
	struct matmul_group group;
	struct ir *b;
	const struct matmul_recipe *recipe;
	unsigned vector_k, vectors; /* k's of a vector; vectors of an iteration */
	unsigned ahead;             /* iterations, of which a span has a multiple */
	uint32_t span_vectors;

	/* A job's own. */
	ir_a w[MATMUL_SIDES], x;                    /* where the span begins */
	ir_i word[AHEAD][MATMUL_SIDES][2 * VECTOR]; /* variables: the weights of iterations, in iteration */
	ir_f acc[MATMUL_SIDES][TEMPLATE_MAX_COLUMNS];
};

/* ---- an iteration of some vectors */

static ir_f weight_at(const struct floats *m, const ir_i word[], unsigned k)
{
	struct ir *b = m->b;

	switch (m->recipe->format->type) {
	case DTYPE_F32: return ir_fbits(b, word[k]);
	case DTYPE_F16: return ir_fhalf(b, word[k / 2], k % 2);
	default:
		return ir_fbits(b, k % 2 ? ir_iand(b, word[k / 2], ir_iconst(b, (int32_t)0xffff0000))
		                         : ir_ishl(b, word[k / 2], 16));
	}
}

static int64_t iteration_bytes(const struct floats *m) { return (int64_t)m->vectors * VECTOR * 32; }

/* A side's words of an iteration, which begin at w + disp. */
static void load_iteration(const struct floats *m, ir_a w, int64_t disp, ir_i out[2 * VECTOR])
{
	for (unsigned i = 0; i < m->vectors * WORDS; i++)
		out[i] = ir_iload_s(m->b, w, (int32_t)(disp + i / WORDS * VECTOR * 32 + i % WORDS * 4), VECTOR);
}

/* By vectors, whose weights are floats meanwhile; column by column, whose inputs are neighbours. k0: the iteration's
 * first k, from x on. */
static void multiply(struct floats *m, ir_i word[MATMUL_SIDES][2 * VECTOR], ir_a x, unsigned k0)
{
	struct ir *b = m->b;

	for (unsigned first = 0; first < m->vectors * m->vector_k; first += m->vector_k) {
		ir_f w[MATMUL_SIDES][2 * WORDS], in[2 * WORDS];
		for (unsigned s = 0; s < m->recipe->sides; s++)
			for (unsigned k = 0; k < m->vector_k; k++)
				w[s][k] = weight_at(m, word[s], first + k);
		for (unsigned c = 0; c < m->recipe->columns; c++) {
			for (unsigned k = 0; k < m->vector_k; k++)
				in[k] = ir_fbcast(b, x, (int32_t)((c * m->group.kp + k0 + first + k) * 4));
			for (unsigned k = 0; k < m->vector_k; k++)
				for (unsigned s = 0; s < m->recipe->sides; s++)
					ir_set_f(b, m->acc[s][c], ir_ffma(b, w[s][k], in[k], m->acc[s][c]));
		}
	}
}

/* As many iterations as are on their way, whose first one is `number` times so many. Words are loaded again as soon as
 * they have served; at the span's end the last ones once more. */
static void do_iterations(struct floats *m, ir_s number)
{
	struct ir *b = m->b;
	const unsigned iteration_k = m->vectors * m->vector_k, all = m->span_vectors / m->vectors / m->ahead;
	ir_a x = ir_aadd(b, m->x, ir_smuli(b, number, m->ahead * iteration_k * 4));
	ir_s next = ir_smin(b, ir_saddi(b, number, 1), ir_sconst(b, all - 1)),
	     at = ir_smuli(b, next, m->ahead * iteration_bytes(m));
	ir_a w[MATMUL_SIDES];

	for (unsigned s = 0; s < m->recipe->sides; s++)
		w[s] = ir_aadd(b, m->w[s], at);
	for (unsigned iteration = 0; iteration < m->ahead; iteration++) {
		multiply(m, m->word[iteration], x, iteration * iteration_k);
		for (unsigned s = 0; s < m->recipe->sides; s++) {
			ir_i word[2 * VECTOR];
			load_iteration(m, w[s], iteration * iteration_bytes(m), word);
			for (unsigned i = 0; i < m->vectors * WORDS; i++)
				ir_set_i(b, m->word[iteration][s][i], word[i]);
		}
	}
}

/* ---- a span */

/* [row block][span][matrix][column][32] */
static ir_a sum_of(const struct floats *m, ir_a sums, unsigned side)
{
	const unsigned row = side / m->recipe->matrices, matrix = side % m->recipe->matrices;

	return ir_aaddi(m->b, sums,
	                (int64_t)(row * m->recipe->spans * m->recipe->matrices + matrix) * m->recipe->columns * 128);
}

static void clear(const struct floats *m)
{
	for (unsigned s = 0; s < m->recipe->sides; s++)
		for (unsigned c = 0; c < m->recipe->columns; c++)
			ir_set_f(m->b, m->acc[s][c], ir_fconst(m->b, 0.0f));
}

/* To the totals, which before the first segment are +0. */
static void add_segment(const struct floats *m, ir_a sums, bool first)
{
	struct ir *b = m->b;

	for (unsigned s = 0; s < m->recipe->sides; s++) {
		ir_a at = sum_of(m, sums, s);
		for (unsigned c = 0; c < m->recipe->columns; c++) {
			const int32_t disp = (int32_t)(c * 128);
			ir_f total = first ? ir_fconst(b, 0.0f) : ir_fload(b, at, disp, 0);
			ir_fstore(b, at, ir_fadd(b, total, m->acc[s][c]), disp, 0);
		}
	}
}

static void zero_totals(const struct floats *m, ir_a sums)
{
	for (unsigned s = 0; s < m->recipe->sides; s++) {
		ir_a at = sum_of(m, sums, s);
		for (unsigned c = 0; c < m->recipe->columns; c++)
			ir_fstore(m->b, at, ir_fconst(m->b, 0.0f), (int32_t)(c * 128), 0);
	}
}

static void begin_span(struct floats *m)
{
	struct ir *b = m->b;

	for (unsigned s = 0; s < m->recipe->sides; s++) /* in the order in which they lie */
		for (unsigned iteration = 0; iteration < m->ahead; iteration++)
			load_iteration(m, m->w[s], iteration * iteration_bytes(m), m->word[iteration][s]);
	for (unsigned s = 0; s < m->recipe->sides; s++) {
		for (unsigned iteration = 0; iteration < m->ahead; iteration++)
			for (unsigned i = 0; i < m->vectors * WORDS; i++)
				m->word[iteration][s][i] = ir_var_i(b, m->word[iteration][s][i]);
		for (unsigned c = 0; c < m->recipe->columns; c++)
			m->acc[s][c] = ir_var_f(b, ir_fconst(b, 0.0f));
	}
}

static void do_span(struct floats *m, ir_a sums)
{
	struct ir *b = m->b;
	const unsigned all = m->span_vectors / m->vectors / m->ahead,
		       segment = NUMERICS_SEGMENT / (m->ahead * m->vectors * m->vector_k),
		       segments = (all + segment - 1) / segment;

	begin_span(m);
	if (segments == 1) {
		do_iterations(m, ir_loop(b, ir_sconst(b, all)));
		ir_endloop(b);
		add_segment(m, sums, true);
		return;
	}
	zero_totals(m, sums);
	ir_s before = ir_smuli(b, ir_loop(b, ir_sconst(b, segments)), segment),
	     left = ir_smin(b, ir_ssub(b, ir_sconst(b, all), before), ir_sconst(b, segment));
	clear(m);
	do_iterations(m, ir_sadd(b, before, ir_loop(b, left)));
	ir_endloop(b);
	add_segment(m, sums, false);
	ir_endloop(b);
}

/* ---- a tile */

/* Where the span of a column tile's inputs begins. */
static ir_a input_of(const struct floats *m, ir_s tile, ir_s span)
{
	struct ir *b = m->b;
	const int64_t column = (int64_t)m->group.kp * 4;
	ir_a x = m->group.in;

	if (!matmul_makes_input(m->recipe)) {
		ir_s first = matmul_group_first(&m->group, tile);
		x = matmul_group_arg(&m->group, MATMUL_X);
		x = ir_aadd(b, x, ir_smuli(b, first, column));
	}
	return ir_aadd(b, x, ir_smuli(b, span, column / m->recipe->spans));
}

/* A wave has one span of `rows` row blocks. Where there are fewer, the last one stands for those behind it, whose
 * totals nobody reads. */
static void do_tile(void *context, ir_s base, ir_s blocks, ir_s tile)
{
	struct floats *m = context;
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	const unsigned rows = m->recipe->sides / m->recipe->matrices;
	ir_s set = ir_sshri(b, g->wave, __builtin_ctz(m->recipe->spans)),
	     span = ir_sandi(b, g->wave, m->recipe->spans - 1), first = ir_smuli(b, set, rows),
	     last = ir_saddi(b, blocks, -1);
	ir_a w = matmul_group_arg(g, MATMUL_W);

	w = ir_aadd(b, w, ir_smuli(b, span, m->span_vectors * (int64_t)VECTOR * 32));
	ir_loop(b, ir_smax(b, ir_smin(b, ir_ssub(b, blocks, first), ir_sconst(b, 1)), ir_sconst(b, 0)));
	for (unsigned s = 0; s < m->recipe->sides; s++) {
		ir_s row = ir_smin(b, ir_saddi(b, first, s / m->recipe->matrices), last), block = ir_sadd(b, base, row),
		     number = ir_saddi(b, ir_smuli(b, block, m->recipe->matrices), s % m->recipe->matrices);
		m->w[s] = ir_aadd(b, w, ir_smuli(b, number, m->recipe->block_bytes));
	}
	m->x = input_of(m, tile, span);
	ir_s job = ir_sadd(b, ir_smuli(b, first, m->recipe->spans), span);
	do_span(m, ir_aadd(b, g->sums, ir_smuli(b, job, (int64_t)m->recipe->matrices * m->recipe->columns * 128)));
	ir_endloop(b);
}

void matmul_floats_build(struct ir *b, const struct key *key, const struct target *target,
                         const struct matmul_recipe *r)
{
	struct floats m = { .group = matmul_group_of(b, key, target, r, &m), .b = b, .recipe = r };

	m.group.tile = do_tile;
	m.vector_k = r->format->type == DTYPE_F32 ? WORDS : 2 * WORDS;
	m.span_vectors = m.group.kp / r->spans / m.vector_k;
	m.vectors = VECTORS_UNIT_K / m.vector_k;
	while (m.vectors > 1 && (m.vectors * m.vector_k * r->sides * r->columns > ITERATION ||
	                         m.vectors * r->sides * WORDS > ITERATION_WORDS))
		m.vectors /= 2;
	m.ahead = AHEAD;
	while (m.ahead > 1 && (m.span_vectors / m.vectors % m.ahead ||
	                       m.ahead * r->sides * m.vectors * WORDS + r->sides * r->columns > AHEAD_REGISTERS))
		m.ahead /= 2;
	matmul_group_build(&m.group);
}
