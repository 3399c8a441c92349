/* kernels-templates/matmul/matmul_wave.c - matmul for groups of waves whose lanes each load 16 bytes of their own row
 * at a time.
 *
 * Owns: a job of a group (matmul_group.c). As in matmul.c a lane owns a row and k runs in time; every row's chain is as
 * numerics.h rules 3 to 5 say it. Weights go from memory to registers once; inputs come as broadcasts of neighbouring
 * words, which targets load into scalar registers many at a time.
 */
#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul.h"
#include "kernels-templates/formats/weight_vectors.h"

/* With more columns than WAVE_ALIKE_COLUMNS scalar registers are short: their inputs take all there are. */
enum { WAVE_ALIKE_COLUMNS = 8 };

/* The size of an iteration's code, in instructions of the IR; what a unit of 32 k's costs beside its columns: integers
 * that are bytes in memory, or are made bytes, floats, integers made floats; floats of a lane taken side by side. */
enum {
	WAVE_ITERATION_CODE = 720,
	WAVE_ITERATION_CODE_PARTS = 1440, /* of targets with parts, whose caches hold more code; not with that of others
	                                beside it, in one launch for a token */
	WAVE_UNIT_BYTES = 45,
	WAVE_UNIT_UNPACKED = 90,
	WAVE_UNIT_FLOATS = 60,
	WAVE_UNIT_MADE = 200,
	WAVE_FLOATS = 8
};

struct wave {
	struct matmul_group group;
	struct ir *b;
	const struct matmul_recipe *recipe;
	const struct target *target;
	unsigned columns;
	unsigned iteration_code; /* at most */
	struct matmul_ahead ahead;

	/* A job's own. */
	ir_a x, xs; /* walking */
	ir_f acc[TEMPLATE_MAX_COLUMNS], total[TEMPLATE_MAX_COLUMNS];
};

/* ---- a unit of 32 k's */

static struct weight_tile tile_of(const struct wave *m, const struct weight_stream *w)
{
	struct weight_tile t = {
		.vectors = 1, .columns = m->columns, .sums = WEIGHT_MAX_ACC, .w = *w, .x = m->x, .xs = m->xs
	};

	t.x_column = (int32_t)(m->recipe->column * (m->recipe->int8 ? 1u : 4u));
	t.x_step = 4;
	t.xs_column = (int32_t)(m->recipe->column / 32 * m->recipe->scales);
	t.xs_step = (int32_t)m->recipe->scales;
	for (unsigned c = 0; c < m->columns; c++)
		t.acc[c] = m->acc[c];
	return t;
}

/* WAVE_FLOATS weights, then column by column their inputs, which are neighbours. */
static void floats_unit(const struct wave *m, const struct weight_tile *t, unsigned index)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->recipe->format;

	for (unsigned k = 0; k < VECTORS_UNIT_K; k += WAVE_FLOATS) {
		ir_f w[WAVE_FLOATS], x[WAVE_FLOATS];
		for (unsigned i = 0; i < WAVE_FLOATS; i += f->step)
			weight_load(f, b, &t->w, (int32_t)((k + i) / f->unit_k * f->unit_bytes), 0,
			            (k + i) % f->unit_k / f->step, w + i);
		for (unsigned c = 0; c < m->columns; c++) {
			for (unsigned i = 0; i < WAVE_FLOATS; i++)
				x[i] = ir_fbcast(b, t->x, weight_input_disp(t, c, index * VECTORS_UNIT_K + k + i));
			for (unsigned i = 0; i < WAVE_FLOATS; i++)
				ir_set_f(b, t->acc[c], ir_ffma(b, w[i], x[i], t->acc[c]));
		}
	}
}

static void visit_unit(void *context, const struct weight_stream *w, unsigned index)
{
	const struct wave *m = context;
	struct weight_tile t = tile_of(m, w);

	if (m->recipe->int8)
		weight_dot_int8(m->recipe->format, m->b, &t, 0, index);
	else
		floats_unit(m, &t, index);
}

static void visit_walk(void *context, unsigned units)
{
	const struct wave *m = context;
	struct ir *b = m->b;

	ir_set_a(b, m->x, ir_aaddi(b, m->x, (int64_t)units * VECTORS_UNIT_K * (m->recipe->int8 ? 1 : 4)));
	if (m->recipe->int8)
		ir_set_a(b, m->xs, ir_aaddi(b, m->xs, (int64_t)units * m->recipe->scales));
}

/* Periods are the segments of float chains. */
static void begin_segment(void *context)
{
	const struct wave *m = context;
	for (unsigned c = 0; c < m->columns; c++)
		ir_set_f(m->b, m->acc[c], ir_fconst(m->b, 0.0f));
}

static void end_segment(void *context)
{
	const struct wave *m = context;
	for (unsigned c = 0; c < m->columns; c++)
		ir_set_f(m->b, m->total[c], ir_fadd(m->b, m->total[c], m->acc[c]));
}

/* ---- a job */

static unsigned unit_code(const struct wave *m)
{
	const struct weight_quants *q = m->recipe->format->quants;
	if (m->recipe->int8)
		return q->as_they_lie ? WAVE_UNIT_BYTES : WAVE_UNIT_UNPACKED;
	return q || m->recipe->format->unit_k == VECTORS_UNIT_K ? WAVE_UNIT_MADE : WAVE_UNIT_FLOATS;
}

/* As many units as code of a bearable size does; with int8 two at least, so that all arrays come by vectors. */
static unsigned interleave_units(const struct wave *m)
{
	unsigned min = m->recipe->int8 ? 2 : 1;
	unsigned code = unit_code(m) + m->columns * (m->recipe->int8 ? 22 : 2 * VECTORS_UNIT_K),
		 n = weight_vectors_fit(m->recipe->format);
	while (n > min && n * code > m->iteration_code)
		n /= 2;
	return n;
}

static struct weight_reader reader_of(const struct wave *m)
{
	/* One column leaves registers for a period, and has no other work to do while its next part comes. */
	const bool at_once =
		m->recipe->int8 && m->columns == 1 && weight_vectors_fit(m->recipe->format) == VECTORS_PERIOD_UNITS;

	return (struct weight_reader){ .b = m->b,
		                       .format = m->recipe->format,
		                       .span_units = m->group.span_units,
		                       .max_units = interleave_units(m),
		                       .at_once = at_once,
		                       .rest_apart = m->columns > WAVE_ALIKE_COLUMNS };
}

static void do_job(void *context, const struct matmul_job *j)
{
	struct wave *m = context;
	const struct matmul_group *g = &m->group;
	struct ir *b = m->b;
	struct weight_reader r = reader_of(m);
	const struct weight_visitor v = { .context = m,
		                          .begin = m->recipe->int8 ? NULL : begin_segment,
		                          .end = m->recipe->int8 ? NULL : end_segment,
		                          .unit = visit_unit,
		                          .walk = visit_walk };
	ir_a from = matmul_group_weights(g, j);

	matmul_group_heads(g, j, from, &r);
	r.at[0] = ir_var_a(b, ir_aadd(b, from,
	                              ir_smuli(b, j->span,
	                                       (int64_t)m->group.span_units * weight_vectors_unit(m->recipe->format))));
	for (unsigned i = 1; i < VECTORS_SIZES; i++)
		r.at[i] = r.at[0];
	matmul_ahead_set(&m->ahead, &r);
	m->x = ir_var_a(b, matmul_group_input(g, j, MATMUL_X, (int64_t)m->group.kp * (m->recipe->int8 ? 1 : 4)));
	if (m->recipe->int8)
		m->xs = ir_var_a(b, matmul_group_input(g, j, MATMUL_XS, (int64_t)m->group.kp / 32 * m->recipe->scales));
	for (unsigned c = 0; c < m->columns; c++) {
		m->acc[c] = ir_var_f(b, ir_fconst(b, 0.0f));
		m->total[c] = m->recipe->int8 ? m->acc[c] : ir_var_f(b, ir_fconst(b, 0.0f));
	}
	matmul_ahead_read(&m->ahead, &r, &v);
	for (unsigned c = 0; c < m->columns; c++)
		ir_fstore(b, j->sums, m->total[c], (int32_t)(c * 128), 0);
}

static void ask(void *context)
{
	struct wave *m = context;
	struct weight_reader r = reader_of(m);

	matmul_ahead_open(&m->ahead, &m->group, m->recipe->block_bytes, m->target, &r);
}

static void narrow(void *context, unsigned columns)
{
	struct wave *m = context;
	m->columns = columns;
}

void matmul_wave_build(struct ir *b, const struct key *key, const struct target *target, const struct matmul_recipe *r)
{
	struct wave m = {
		.group = matmul_group_of(b, key, target, r, &m),
		.b = b,
		.recipe = r,
		.target = target,
		.columns = key->tile_n,
		.iteration_code = target->has_parts && !r->awaited ? WAVE_ITERATION_CODE_PARTS : WAVE_ITERATION_CODE
	};

	m.group.job = do_job;
	m.group.narrow = narrow;
	m.group.ask = target->block_bytes ? ask : NULL;
	matmul_group_build(&m.group);
}
