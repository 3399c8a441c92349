/* kernels-templates/matmul/matmul_stage.c - the input of a tile of several columns that a group of waves makes for
 * itself: from f32 in memory, awaited or not, to floats or int8 blocks in shared bytes, with a norm in between where
 * the key says so; or int8 blocks that are awaited. One column is staged by matmul_await.c and, where it is not
 * awaited, by kinds/norm.c.
 *
 * Owns: the staging of KEY_NORM_IN and KEY_AWAITED with several columns, on targets with many shared bytes. Norms have
 * chains, so a wave makes that of a column alone; int8 blocks are distributed to all waves by quads of 128 neighbours,
 * of which a lane has four. A column of int8 has whole quads, whose pads are +0.
 */
#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul.h"

enum {
	QUAD = 128,   /* elements */
	VECTORS = 32, /* of a column, whose loads stand side by side */
	BATCH = 4     /* the same, of a wave's quads */
};

struct stage {
	const struct matmul_group *g;
	struct ir *b;
	uint32_t k, columns;
	uint32_t vectors, stride; /* of a column: vectors in memory, elements in shared bytes */
	bool int8, norm, awaited;
	ir_a x, raw; /* the tile's, in memory; shared: its floats */
};

/* ---- floats to shared bytes */

static ir_f load(const struct stage *s, ir_a at, int32_t disp)
{
	return s->awaited ? ir_fawait(s->b, at, disp, 0) : ir_fload(s->b, at, disp, 0);
}

/* A loop over this wave's of n things, from its number on; returns the thing. */
static ir_s each_of(const struct stage *s, uint32_t n, unsigned at_once)
{
	struct ir *b = s->b;
	unsigned step = s->g->waves * at_once;
	ir_s left = ir_ssub(b, ir_sconst(b, n + step - 1), s->g->wave);

	return ir_sadd(b, ir_smuli(b, ir_loop(b, ir_sdivi(b, left, step)), step), s->g->wave);
}

/* Thing i behind the first one, of n; the last one instead of those behind it. */
static ir_s thing_at(const struct stage *s, ir_s first, unsigned i, uint32_t n)
{
	return ir_smin(s->b, ir_saddi(s->b, first, i * s->g->waves), ir_sconst(s->b, n - 1));
}

/* Where vector `thing` of all columns goes. */
static ir_a address_of(const struct stage *s, ir_s thing)
{
	struct ir *b = s->b;
	ir_a at = ir_aadd(b, s->raw, ir_sshli(b, thing, 7));

	if (s->stride == s->vectors * 32)
		return at;
	return ir_aadd(b, at, ir_smuli(b, ir_sdivi(b, thing, s->vectors), (s->stride - s->vectors * 32) * 4));
}

static void zero_pads(const struct stage *s, ir_a column)
{
	for (uint32_t v = s->vectors; v < s->stride / 32; v++)
		ir_fstore(s->b, column, ir_fconst(s->b, 0.0f), (int32_t)(v * 128), 0);
}

static void copy_all(const struct stage *s)
{
	enum { AT_ONCE = BATCH * 4 };
	struct ir *b = s->b;
	uint32_t n = s->columns * s->vectors;
	ir_f x[AT_ONCE];

	ir_s first = each_of(s, n, AT_ONCE);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		ir_s thing = thing_at(s, first, i, n);
		x[i] = load(s, ir_aadd(b, s->x, ir_sshli(b, thing, 7)), 0);
	}
	for (unsigned i = 0; i < AT_ONCE; i++) {
		ir_s left = ir_ssub(b, ir_sconst(b, (int64_t)n - i * s->g->waves), first);
		ir_loop(b, ir_smin(b, left, ir_sconst(b, 1)));
		ir_a to = address_of(s, ir_saddi(b, first, i * s->g->waves));
		ir_fstore(b, to, x[i], 0, 0);
		ir_endloop(b);
	}
	ir_endloop(b);
	if (s->stride == s->vectors * 32)
		return;
	ir_s column = each_of(s, s->columns, 1);
	zero_pads(s, ir_aadd(b, s->raw, ir_smuli(b, column, s->stride * 4)));
	ir_endloop(b);
}

/* ---- norms: a column is one wave's */

/* Vector v of a column, of which the last one may have pads. */
static ir_f normed(const struct stage *s, const struct norm_scale *c, ir_f x, ir_f weight, bool last)
{
	struct ir *b = s->b;
	uint32_t real = s->k % 32;
	ir_f y = norm_emit_element(b, c, x, weight);

	if (!last || !real)
		return y;
	return ir_fsel(b, ir_igt(b, ir_iconst(b, (int32_t)real), ir_ilane(b)), y, ir_fconst(b, 0.0f));
}

/* n vectors, to shared bytes. */
static void copy_vectors(const struct stage *s, ir_a from, ir_a to, unsigned n)
{
	struct ir *b = s->b;
	ir_f x[VECTORS];

	for (unsigned i = 0; i < n; i++)
		x[i] = load(s, from, (int32_t)(i * 128));
	for (unsigned i = 0; i < n; i++)
		ir_fstore(b, to, x[i], (int32_t)(i * 128), 0);
}

static void copy_column(const struct stage *s, ir_a from, ir_a to)
{
	struct ir *b = s->b;
	uint32_t iterations = s->vectors / VECTORS;

	if (iterations > 1) {
		ir_s iteration = ir_loop(b, ir_sconst(b, iterations)), at = ir_smuli(b, iteration, VECTORS * 128);
		ir_a source = ir_aadd(b, from, at), target = ir_aadd(b, to, at);
		copy_vectors(s, source, target, VECTORS);
		ir_endloop(b);
	} else if (iterations) {
		copy_vectors(s, from, to, VECTORS);
	}
	if (s->vectors % VECTORS) {
		ir_a source = ir_aaddi(b, from, (int64_t)iterations * VECTORS * 128),
		     target = ir_aaddi(b, to, (int64_t)iterations * VECTORS * 128);
		copy_vectors(s, source, target, s->vectors % VECTORS);
	}
}

/* In place. */
static void load_weights(const struct stage *s, ir_a weight, unsigned n, ir_f w[VECTORS])
{
	for (unsigned i = 0; i < n; i++)
		w[i] = ir_fload(s->b, weight, (int32_t)(i * 128), 0);
}

static void norm_vectors(const struct stage *s, const struct norm_scale *c, ir_a x, const ir_f w[VECTORS], unsigned n,
                         bool last)
{
	struct ir *b = s->b;
	ir_f y[VECTORS];

	for (unsigned i = 0; i < n; i++)
		y[i] = ir_fload(b, x, (int32_t)(i * 128), 0);
	for (unsigned i = 0; i < n; i++)
		ir_fstore(b, x, normed(s, c, y[i], w[i], last && i + 1 == n), (int32_t)(i * 128), 0);
}

/* Vectors of a column behind those that are normed by iterations of VECTORS. */
static uint32_t iterations_of(const struct stage *s) { return (s->vectors - 1) / VECTORS; }
static uint32_t last_of(const struct stage *s) { return s->vectors - iterations_of(s) * VECTORS; }

/* last: the weights of its last vectors. */
static void norm_column(const struct stage *s, const struct norm_scale *c, ir_a x, ir_a weight,
                        const ir_f last[VECTORS])
{
	struct ir *b = s->b;
	ir_f w[VECTORS];

	if (iterations_of(s)) {
		ir_s iteration = ir_loop(b, ir_sconst(b, iterations_of(s))), at = ir_smuli(b, iteration, VECTORS * 128);
		ir_a target = ir_aadd(b, x, at), by = ir_aadd(b, weight, at);
		load_weights(s, by, VECTORS, w);
		norm_vectors(s, c, target, w, VECTORS, false);
		ir_endloop(b);
	}
	ir_a target = ir_aaddi(b, x, (int64_t)iterations_of(s) * VECTORS * 128);
	norm_vectors(s, c, target, last, last_of(s), true);
}

static void norm_all(const struct stage *s)
{
	struct ir *b = s->b;
	ir_a weight = matmul_group_arg(s->g, MATMUL_NORM);
	ir_f eps = ir_fbcast(b, s->g->arg, MATMUL_EPS * 8), last[VECTORS];
	ir_s column = each_of(s, s->columns, 1);
	ir_a from = ir_aadd(b, s->x, ir_smuli(b, column, (int64_t)s->vectors * 128)),
	     to = ir_aadd(b, s->raw, ir_smuli(b, column, (int64_t)s->stride * 4)),
	     behind = ir_aaddi(b, weight, (int64_t)iterations_of(s) * VECTORS * 128);

	load_weights(s, behind, last_of(s), last); /* before what is awaited */
	copy_column(s, from, to);
	const struct norm_scale c = norm_emit_scale(
		b, &(struct norm_columns){
			   .k = s->k, .centred = s->g->recipe->centred, .waves = s->g->waves, .x = to, .eps = eps });
	norm_column(s, &c, to, weight, last);
	zero_pads(s, to);
	ir_endloop(b);
}

/* ---- int8 blocks */

/* Loops are short: code that is run once for an input takes longer to fetch than to run. */
static void quantise_raw(const struct stage *s, uint32_t n)
{
	struct ir *b = s->b;
	ir_f x[4];

	ir_s number = each_of(s, n, 1);
	ir_a at = ir_aadd(b, s->raw, ir_smuli(b, number, QUAD * 4));
	for (int i = 0; i < 4; i++)
		x[i] = ir_fbits(b, ir_iload_s(b, at, i * 4, 16));
	matmul_quantise_quad(s->g, number, x);
	ir_endloop(b);
}

/* ---- all of it */

/* 16 bytes a lane, and what is left by the first wave. */
static void zero_bytes(const struct stage *s, ir_a from, uint32_t bytes)
{
	enum { STEP = 512 };
	struct ir *b = s->b;
	ir_f zero = ir_fconst(b, 0.0f);
	ir_s number = each_of(s, bytes / STEP, 1);
	ir_a to = ir_aadd(b, from, ir_smuli(b, number, STEP));

	for (int i = 0; i < 4; i++)
		ir_fstore_s(b, to, zero, i * 4, 0, 16);
	ir_endloop(b);
	if (bytes % STEP == 0)
		return;
	each_of(s, 1, 1);
	for (uint32_t at = bytes / STEP * STEP; at < bytes; at += 128)
		ir_fstore(b, from, zero, (int32_t)at, bytes - at < 128 ? (bytes - at) / 4 : 0);
	ir_endloop(b);
}

void matmul_stage_no_columns(const struct matmul_group *g)
{
	const struct matmul_recipe *r = g->recipe;
	const uint32_t tile = g->key->tile_n, column = (uint32_t)r->column,
		       scales = (uint32_t)(r->scales_bytes / r->columns), none = r->columns - tile;
	const struct stage s = { .g = g, .b = g->b };

	if (!none)
		return;
	zero_bytes(&s, ir_aaddi(g->b, g->in, (int64_t)tile * column), none * column);
	zero_bytes(&s, ir_aaddi(g->b, g->ins, (int64_t)tile * scales), none * scales);
}

void matmul_stage_tile(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;
	const struct key *key = g->key;
	const struct matmul_recipe *r = g->recipe;
	if (r->blocks) {
		matmul_await_blocks(g);
		return;
	}
	struct stage s = { .g = g,
		           .b = b,
		           .k = key->k,
		           .columns = key->tile_n,
		           .vectors = (uint32_t)numerics_pad(key->k) / 32,
		           .stride = (uint32_t)r->column,
		           .int8 = r->int8,
		           .norm = r->normed,
		           .awaited = r->awaited,
		           .raw = g->floats };

	ir_s first = matmul_group_first(g, tile);
	s.x = matmul_group_arg(g, MATMUL_X);
	s.x = ir_aadd(b, s.x, ir_smuli(b, first, (int64_t)s.vectors * 128));
	if (s.norm)
		norm_all(&s);
	else
		copy_all(&s);
	if (s.int8) {
		ir_barrier(b);
		quantise_raw(&s, s.columns * (s.stride / QUAD));
	}
	ir_barrier(b);
}
