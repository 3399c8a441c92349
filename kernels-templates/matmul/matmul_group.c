/* kernels-templates/matmul/matmul_group.c - who does what in a group of waves that share a matmul.
 *
 * Owns: the jobs and the barriers; not how a job is done. A job is one span of one matrix of one row block, with all
 * columns of a tile, and belongs to one wave; where a row block has fewer jobs than the group has waves, several row
 * blocks are done at once. Totals meet in shared bytes, [row block][span] [matrix][column][32], and after a barrier the
 * waves share what is left to do: a column of a row block each. An editor keeps both barriers, and that every wave runs
 * them: loops around them have the same count in all waves.
 */
#include "kernels-templates/matmul/matmul.h"

struct matmul_group matmul_group_of(struct ir *b, const struct key *key, const struct target *target,
                                    const struct matmul_recipe *r, void *context)
{
	const uint32_t kp = (uint32_t)numerics_pad(key->k);

	return (struct matmul_group){
		.b = b,
		.key = key,
		.recipe = r,
		.waves = target->waves,
		.kp = kp,
		.span_units = kp / numerics_spans(key->k) / NUMERICS_BLOCK,
		.context = context
	};
}

/* A loop over this wave's share of n things, which are as many as `max` at most; returns the thing's number. */
static ir_s share(const struct matmul_group *g, ir_s n, unsigned max)
{
	struct ir *b = g->b;
	unsigned shift = (unsigned)__builtin_ctz(g->waves);

	if (max <= g->waves) {
		matmul_begin_below(b, g->wave, n);
		return g->wave;
	}
	ir_s i = ir_loop(b, ir_sshri(b, ir_ssub(b, ir_saddi(b, n, g->waves - 1), g->wave), shift));
	return ir_sadd(b, ir_sshli(b, i, shift), g->wave);
}

struct matmul_job matmul_group_job(const struct matmul_group *g, ir_s base, ir_s tile, ir_s job)
{
	struct ir *b = g->b;
	struct matmul_job j = { .number = base, .span = job, .tile = tile, .expert = g->route.expert };

	if (g->recipe->together > 1) {
		j.number = ir_sadd(b, base, ir_sshri(b, job, __builtin_ctz(g->jobs)));
		j.span = ir_sandi(b, job, g->jobs - 1);
	}
	if (g->recipe->matrices > 1) {
		j.number = ir_sadd(b, ir_sshli(b, j.number, 1), ir_sandi(b, j.span, 1));
		j.span = ir_sshri(b, j.span, 1);
	}
	j.sums = ir_aadd(b, g->sums, ir_smuli(b, job, (int64_t)g->recipe->columns * 128));
	return j;
}

static void do_job(const struct matmul_group *g, ir_s base, ir_s tile, ir_s job)
{
	struct matmul_job j = matmul_group_job(g, base, tile, job);

	g->job(g->context, &j);
}

/* Once for a column that the tile has to itself, else not at all. */
static void loop_if_own(const struct matmul_group *g, ir_s tile, ir_s column)
{
	struct ir *b = g->b;
	ir_s own = ir_saddi(b, ir_ssub(b, column, ir_smuli(b, tile, g->key->tile_n)), 1);

	own = ir_smin(b, own, ir_sconst(b, 1));
	ir_loop(b, ir_smax(b, own, ir_sconst(b, 0)));
}

/* Where tiles are large, several columns are done at once, and most where each waits for what it joins. They are all of
 * a narrow tile's, or a share of them that leaves no rest. */
static unsigned columns_at_once(const struct matmul_group *g)
{
	const unsigned n = g->key->tile_n,
		       max = g->recipe->epilogue & (KEY_RESIDUAL | KEY_GATED) ? MATMUL_MAX_AT_ONCE
	                                                                      : MATMUL_MAX_AT_ONCE / 2;
	unsigned at_once = n < max ? n : max;

	while (n % at_once)
		at_once--;
	return g->tile && !g->recipe->short_last ? at_once : 1;
}

/* from: with AWAITED and RESIDUAL. */
static void finish_blocks(const struct matmul_group *g, ir_s base, ir_s tile, ir_s blocks, ir_f from)
{
	struct ir *b = g->b;
	const unsigned at_once = columns_at_once(g), columns = g->key->tile_n / at_once;
	ir_s first = matmul_group_first(g, tile),
	     thing = share(g, ir_smuli(b, blocks, columns), g->recipe->together * columns), in_group = thing,
	     column = thing, block = base;
	ir_a sums = g->sums;

	if (g->recipe->together > 1) {
		in_group = ir_sdivi(b, thing, columns);
		column = ir_ssub(b, thing, ir_smuli(b, in_group, columns));
		block = ir_sadd(b, base, in_group);
		sums = ir_aadd(b, sums, ir_smuli(b, in_group, g->jobs * (int64_t)g->recipe->columns * 128));
	}
	if (at_once > 1)
		column = ir_smuli(b, column, at_once);
	if (columns > 1) {
		sums = ir_aadd(b, sums, ir_sshli(b, column, 7));
		column = ir_sadd(b, first, column);
	} else {
		column = first;
	}
	if (g->recipe->short_last)
		loop_if_own(g, tile, column);
	if (g->recipe->awaited && g->recipe->epilogue & KEY_RESIDUAL && !matmul_awaits_early(g))
		from = matmul_await_column(g, block, column);
	struct matmul_results r = {
		.b = b,
		.key = g->key,
		.recipe = g->recipe,
		.arg = g->arg,
		.sums = sums,
		.spans = g->recipe->spans,
		.columns = g->recipe->columns,
		.expert = g->route.expert,
		.from = from,
		.scratch = g->scratch
	};
	if (at_once > 1)
		matmul_finish_several(&r, at_once, block, column);
	else
		matmul_finish_column(&r, block, column);
	if (g->recipe->short_last)
		ir_endloop(b);
	ir_endloop(b);
}

/* ---- inputs that the group makes for itself */

/* Where a tile's inputs lie in the group's shared bytes. */
static void make_input_room(struct matmul_group *g)
{
	const struct matmul_recipe *r = g->recipe;

	if (r->floats_bytes)
		g->floats = ir_shared(g->b, (int64_t)r->floats_bytes);
	g->in = r->in_bytes ? ir_shared(g->b, (int64_t)r->in_bytes) : g->floats;
	if (r->scales_bytes)
		g->ins = ir_shared(g->b, (int64_t)r->scales_bytes);
}

static void norm_tile(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;
	const struct key *key = g->key;

	if (g->recipe->source == MATMUL_STAGED) {
		matmul_stage_tile(g, tile);
		return;
	}
	ir_s first = matmul_group_first(g, tile);
	ir_a x = matmul_group_arg(g, MATMUL_X);
	x = ir_aadd(b, x, ir_smuli(b, first, (int64_t)(numerics_pad(key->k) * 4)));
	ir_a weight = matmul_group_arg(g, MATMUL_NORM);
	norm_emit_columns(b, &(struct norm_columns){
				     .k = key->k,
				     .columns = key->tile_n,
				     .quantised = g->recipe->int8,
				     .centred = g->recipe->centred,
				     .waves = g->waves,
				     .x = x,
				     .weight = weight,
				     .eps = ir_fbcast(b, g->arg, MATMUL_EPS * 8),
				     .out = g->in,
				     .outs = g->ins });
	ir_barrier(b);
}

/* ---- all row blocks */

/* A loop over the tiles; of parts over every so manieth, which the last iterations of all but the first may lack. */
static ir_s begin_tile(const struct matmul_group *g)
{
	struct ir *b = g->b;
	ir_s tiles = ir_sload64(b, g->arg, MATMUL_TILES * 8);

	if (!g->recipe->parts)
		return ir_loop(b, tiles);
	ir_s tile = ir_var_s(b, ir_part(b));
	ir_loop(b, tiles);
	matmul_begin_below(b, tile, tiles);
	return tile;
}

static void end_tile(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;

	ir_endloop(b);
	if (!g->recipe->parts)
		return;
	ir_set_s(b, tile, ir_sadd(b, tile, ir_parts(b)));
	ir_endloop(b);
}

void matmul_group_blocks(const struct matmul_group *g, ir_s *base, ir_s *end)
{
	struct ir *b = g->b;
	unsigned per_unit = g->key->row_blocks, all = matmul_head_blocks(g->key) * matmul_heads(g->key);

	*base = ir_var_s(b, ir_smuli(b, ir_begin(b), per_unit));
	*end = ir_smuli(b, ir_end(b), per_unit);
	if (all % per_unit)
		*end = ir_smax(b, ir_smin(b, *end, ir_sconst(b, all)), *base);
}

/* With a norm inside, it is made once for all row blocks of a tile; else weights are read once for all tiles. What is
 * awaited is one tile. */
static void emit_group(const struct matmul_group *g)
{
	struct ir *b = g->b;
	const bool awaited = g->recipe->awaited, normed = g->recipe->normed && !awaited;
	ir_s tile = awaited ? ir_sconst(b, 0) : (ir_s){ 0 };
	ir_f from = { 0 };
	if (normed) {
		tile = begin_tile(g);
		norm_tile(g, tile);
	}
	ir_s base, end;
	matmul_group_blocks(g, &base, &end);
	ir_s left = ir_ssub(b, end, base);
	ir_loop(b, g->recipe->together > 1
	                   ? ir_sdivi(b, ir_saddi(b, left, g->recipe->together - 1), g->recipe->together)
	                   : left);
	if (!normed && !awaited)
		tile = begin_tile(g);
	ir_s blocks = g->recipe->together > 1 ? ir_smin(b, ir_ssub(b, end, base), ir_sconst(b, g->recipe->together))
	                                      : ir_sconst(b, 1);
	if (awaited && g->recipe->epilogue & KEY_RESIDUAL && matmul_awaits_early(g))
		from = matmul_await_from(g, base, blocks);
	if (g->tile) {
		g->tile(g->context, base, blocks, tile);
	} else {
		do_job(g, base, tile, share(g, ir_smuli(b, blocks, g->jobs), g->recipe->together * g->jobs));
		ir_endloop(b);
	}
	ir_barrier(b);
	finish_blocks(g, base, tile, blocks, from);
	ir_barrier(b);
	if (!normed && !awaited)
		end_tile(g, tile);
	ir_set_s(b, base, ir_saddi(b, base, g->recipe->together));
	ir_endloop(b);
	if (normed)
		end_tile(g, tile);
}

/* ---- weights chosen by data */

/* One row block, and columns of the route from `done` on. */
static void route_tile(const struct matmul_group *g, ir_s block, ir_s done)
{
	struct ir *b = g->b;
	ir_s one = ir_sconst(b, 1), in = ir_sadd(b, g->route.in, done), out = ir_sadd(b, g->route.out, done);

	do_job(g, block, in, share(g, ir_sconst(b, g->jobs), g->jobs));
	ir_endloop(b);
	ir_barrier(b);
	finish_blocks(g, block, out, one, (ir_f){ 0 });
	ir_barrier(b);
}

static void route_tiles(const struct matmul_group *g, ir_s block)
{
	struct ir *b = g->b;
	ir_s done = ir_var_s(b, ir_sconst(b, 0));

	for (unsigned width = g->key->tile_n; width >= 1; width /= 2) {
		struct key key = *g->key;
		struct matmul_recipe recipe = *g->recipe;
		struct matmul_group narrow = *g;
		key.tile_n = recipe.columns = width;
		narrow.key = &key;
		narrow.recipe = &recipe;
		g->narrow(g->context, width);
		matmul_route_tiles(b, g->key, &g->route, width);
		route_tile(&narrow, block, done);
		ir_set_s(b, done, ir_saddi(b, done, width));
		ir_endloop(b);
	}
}

static void emit_routes(struct matmul_group *g)
{
	struct ir *b = g->b;
	unsigned blocks = (unsigned)numerics_pad(g->key->rows) / 32;
	ir_s begin = ir_begin(b), unit = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	ir_s number = ir_sdivi(b, unit, blocks), block = ir_ssub(b, unit, ir_smuli(b, number, blocks));

	g->route = matmul_route_load(b, g->key, matmul_group_arg(g, MATMUL_ROUTES), number);
	if (g->key->tile_n == 1)
		route_tile(g, block, ir_sconst(b, 0));
	else
		route_tiles(g, block);
	ir_endloop(b);
}

void matmul_group_build(struct matmul_group *g)
{
	const struct matmul_recipe *r = g->recipe;
	struct ir *b = g->b;

	g->jobs = r->spans * r->matrices;
	g->arg = ir_arg(b);
	const int64_t totals = (int64_t)r->together * g->jobs * r->columns * 128;
	g->sums = ir_shared(b, totals > g->room ? totals : g->room);
	g->wave = ir_wave(b);
	if (r->awaited && r->epilogue & KEY_QUANTISED_OUT)
		g->scratch = ir_local(b, 32);
	if (matmul_makes_input(r))
		make_input_room(g);
	if (r->awaited && g->ask)
		g->ask(g->context);
	if (r->source == MATMUL_AWAITED)
		matmul_await_stage(g);
	else if (r->awaited)
		matmul_stage_tile(g, ir_sconst(b, 0));
	if (r->source == MATMUL_FROM_ROUTES)
		emit_routes(g);
	else
		emit_group(g);
}
