/* kernels-templates/matmul/matmul_group.c - who does what in a group of waves that share a matmul.
 *
 * Owns: the jobs and the barriers; not how a job is done. A job is one span of one matrix of one row block, with all
 * columns of a tile, and belongs to one wave; where a row block has fewer jobs than the group has waves, several row
 * blocks are done at once. Totals meet in shared bytes, [row block][span] [matrix][column][32], and after a barrier the
 * waves share what is left to do: a column of a row block each. An editor keeps both barriers, and that every wave runs
 * them: loops around them have the same count in all waves.
 */
#include "kernels-templates/matmul/matmul.h"

ir_a matmul_group_arg(const struct matmul_group *g, unsigned slot)
{
	return ir_aload(g->b, g->arg, (int32_t)(slot * 8));
}

/* The column tile's beginning, plus the head's and the span's; column_bytes: of one head. */
ir_a matmul_group_input(const struct matmul_group *g, const struct matmul_job *j, unsigned slot, int64_t column_bytes)
{
	struct ir *b = g->b;
	if (g->key->flags & (KEY_NORM_IN | KEY_AWAITED)) /* whose tile is there already */
		return ir_aadd(b, slot == MATMUL_X ? g->in : g->ins, ir_smuli(b, j->span, column_bytes / g->spans));
	unsigned heads = matmul_heads(g->key), columns = g->key->flags & KEY_EXPERTS ? 1 : g->key->tile_n;
	ir_a column = ir_aadd(b, matmul_group_arg(g, slot), ir_smuli(b, j->tile, columns * column_bytes * heads));
	if (g->key->flags & KEY_BY_HEAD)
		column = ir_aadd(b, column, ir_smuli(b, matmul_head(b, g->key, j->number), column_bytes));
	return ir_aadd(b, column, ir_smuli(b, j->span, column_bytes / g->spans));
}

/* A loop over this wave's share of n things, which are as many as `most` at most; returns the thing's number. */
static ir_s share(const struct matmul_group *g, ir_s n, unsigned most)
{
	struct ir *b = g->b;
	unsigned shift = (unsigned)__builtin_ctz(g->waves);

	if (most <= g->waves) {
		ir_loop(b, ir_smin(b, ir_ssub(b, n, g->wave), ir_sconst(b, 1)));
		return g->wave;
	}
	ir_s i = ir_loop(b, ir_sshri(b, ir_ssub(b, ir_saddi(b, n, g->waves - 1), g->wave), shift));
	return ir_sadd(b, ir_sshli(b, i, shift), g->wave);
}

struct matmul_job matmul_group_job(const struct matmul_group *g, ir_s base, ir_s tile, ir_s job)
{
	struct ir *b = g->b;
	struct matmul_job j = { .number = base, .span = job, .tile = tile, .expert = g->route.expert };

	if (g->together > 1) {
		j.number = ir_sadd(b, base, ir_sshri(b, job, __builtin_ctz(g->jobs)));
		j.span = ir_sandi(b, job, g->jobs - 1);
	}
	if (g->matrices > 1) {
		j.number = ir_sadd(b, ir_sshli(b, j.number, 1), ir_sandi(b, j.span, 1));
		j.span = ir_sshri(b, j.span, 1);
	}
	j.sums = ir_aadd(b, g->sums, ir_smuli(b, job, matmul_total_columns(g->key) * 128));
	return j;
}

static void do_job(const struct matmul_group *g, ir_s base, ir_s tile, ir_s job)
{
	struct matmul_job j = matmul_group_job(g, base, tile, job);

	g->job(g->context, &j);
}

/* Whether the last tile may have fewer columns, and begins earlier to be full. */
static bool may_be_short(const struct matmul_group *g)
{
	return g->target && template_floats(g->target, g->key) && template_floats_short(g->key->tile_n);
}

ir_s matmul_group_first(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;
	const unsigned n = g->key->flags & KEY_EXPERTS ? 1 : g->key->tile_n;
	ir_s first = n > 1 ? ir_smuli(b, tile, n) : tile;

	if (may_be_short(g)) {
		ir_s columns = ir_sload64(b, g->arg, MATMUL_COLUMNS * 8);
		first = ir_smin(b, first, ir_saddi(b, columns, -(int64_t)n));
	}
	return first;
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
	const unsigned n = g->key->tile_n, most = g->key->flags & (KEY_RESIDUAL | KEY_GATED) ? MATMUL_MOST_AT_ONCE
	                                                                                     : MATMUL_MOST_AT_ONCE / 2;
	unsigned at_once = n < most ? n : most;

	while (n % at_once)
		at_once--;
	return g->tile && !may_be_short(g) ? at_once : 1;
}

/* from: with AWAITED and RESIDUAL. */
static void finish_blocks(const struct matmul_group *g, ir_s base, ir_s tile, ir_s blocks, ir_f from)
{
	struct ir *b = g->b;
	const unsigned at_once = columns_at_once(g), columns = g->key->tile_n / at_once;
	ir_s first = matmul_group_first(g, tile), thing = share(g, ir_smuli(b, blocks, columns), g->together * columns),
	     in_group = thing, column = thing, block = base;
	ir_a sums = g->sums;

	if (g->together > 1) {
		in_group = ir_sdivi(b, thing, columns);
		column = ir_ssub(b, thing, ir_smuli(b, in_group, columns));
		block = ir_sadd(b, base, in_group);
		sums = ir_aadd(b, sums, ir_smuli(b, in_group, g->jobs * matmul_total_columns(g->key) * 128));
	}
	if (at_once > 1)
		column = ir_smuli(b, column, at_once);
	if (columns > 1) {
		sums = ir_aadd(b, sums, ir_sshli(b, column, 7));
		column = ir_sadd(b, first, column);
	} else {
		column = first;
	}
	if (may_be_short(g))
		loop_if_own(g, tile, column);
	if (g->key->flags & KEY_AWAITED && g->key->flags & KEY_RESIDUAL && !matmul_awaits_early(g))
		from = matmul_await_column(g, block, column);
	struct matmul_results r = {
		.b = b,
		.key = g->key,
		.arg = g->arg,
		.sums = sums,
		.spans = g->spans,
		.matrices = g->matrices,
		.columns = matmul_total_columns(g->key),
		.expert = g->route.expert,
		.from = from,
		.scratch = g->scratch
	};
	if (at_once > 1)
		matmul_finish_several(&r, at_once, block, column);
	else
		matmul_finish_column(&r, block, column);
	if (may_be_short(g))
		ir_endloop(b);
	ir_endloop(b);
}

/* ---- inputs that the group makes for itself */

static bool is_int8(const struct key *key) { return key->activation == key_type(DTYPE_Q8_0); }

static uint64_t input_bytes(enum dtype activation, uint64_t k, unsigned columns)
{
	return columns * numerics_pad(k) * (activation == DTYPE_Q8_0 ? 1 : 4);
}

static uint64_t scale_bytes(enum dtype activation, uint64_t k, unsigned columns)
{
	return activation == DTYPE_Q8_0 ? columns * numerics_pad(k) / 32 * sizeof(struct activation_block) : 0;
}

/* Beside the totals of as many jobs as there may be. */
static bool input_fits(const struct target *target, enum dtype activation, uint64_t k, unsigned columns)
{
	unsigned jobs = 2 * numerics_spans(k), totals = jobs < target->waves ? target->waves : jobs;

	return k <= TARGET_SHARED_BYTES &&
	       input_bytes(activation, k, columns) + scale_bytes(activation, k, columns) +
	                       (uint64_t)totals * columns * 128 <=
	               TARGET_SHARED_BYTES;
}

/* Elements that a group may make for itself; staged (matmul_stage.c), where int8 blocks cost less. At twice as many
 * they take as long as the stage that they save. */
enum { NORM_FLOATS_MOST = 4096, NORM_BLOCKS_MOST = 2048, STAGED_FLOATS_MOST = 16384, STAGED_BLOCKS_MOST = 4096 };

bool template_norm_inside(const struct target *target, enum dtype activation, uint64_t k, unsigned columns)
{
	const struct key key = {
		.flags = KEY_NORM_IN, .activation = key_type(activation), .k = (uint32_t)k, .tile_n = (uint16_t)columns
	};
	const bool int8 = activation == DTYPE_Q8_0;

	if (!target->lane_bytes || target->waves < 2 || columns > TEMPLATE_MAX_COLUMNS || k > UINT32_MAX)
		return false;
	if (matmul_stages(&key, target))
		return columns * numerics_pad(k) <= (int8 ? STAGED_BLOCKS_MOST : STAGED_FLOATS_MOST) &&
		       !matmul_refuse_stage(&key, target);
	return columns * numerics_pad(k) <= (int8 ? NORM_BLOCKS_MOST : NORM_FLOATS_MOST) &&
	       input_fits(target, activation, k, columns);
}

bool template_greatest(const struct target *target, uint64_t rows)
{
	return target->lane_bytes && target->waves > 1 && rows % 32 == 0;
}

const char *matmul_refuse_norm(const struct key *key, const struct target *target)
{
	if (!(key->flags & KEY_NORM_IN))
		return key->flags & KEY_CENTRED ? "without a norm there is no mean to subtract" : NULL;
	if (key->flags & KEY_AWAITED)
		return NULL; /* which does it its own way */
	if (!target->lane_bytes || target->waves < 2 || key->flags & (KEY_WIDE | KEY_MMA | KEY_BY_HEAD | KEY_EXPERTS))
		return "norms are made inside by groups of waves, for plain tiles";
	if (matmul_stages(key, target))
		return matmul_refuse_stage(key, target);
	return key->activation && input_fits(target, key_dtype(key->activation), key->k, key->tile_n)
	               ? NULL
	               : "the norm of a tile does not fit the shared bytes of a group";
}

static void make_input_room(struct matmul_group *g)
{
	const enum dtype activation = key_dtype(g->key->activation);

	g->in = ir_shared(g->b, (int64_t)input_bytes(activation, g->key->k, g->key->tile_n));
	if (is_int8(g->key))
		g->ins = ir_shared(g->b, (int64_t)scale_bytes(activation, g->key->k, g->key->tile_n));
}

static void norm_tile(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;
	const struct key *key = g->key;

	if (g->stages) {
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
				     .quantised = is_int8(key),
				     .centred = key->flags & KEY_CENTRED,
				     .waves = g->waves,
				     .x = x,
				     .weight = weight,
				     .eps = ir_fbcast(b, g->arg, MATMUL_EPS * 8),
				     .out = g->in,
				     .outs = g->ins });
	ir_barrier(b);
}

/* ---- all row blocks */

/* A loop over the tiles; of parts over every so manieth, which the last turns of all but the first may lack. */
static ir_s begin_tile(const struct matmul_group *g)
{
	struct ir *b = g->b;
	ir_s tiles = ir_sload64(b, g->arg, MATMUL_TILES * 8);

	if (!g->parts)
		return ir_loop(b, tiles);
	ir_s tile = ir_var_s(b, ir_part(b));
	ir_loop(b, tiles);
	ir_loop(b, ir_smin(b, ir_ssub(b, tiles, tile), ir_sconst(b, 1)));
	return tile;
}

static void end_tile(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;

	ir_endloop(b);
	if (!g->parts)
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
	const bool awaited = g->key->flags & KEY_AWAITED, normed = g->key->flags & KEY_NORM_IN && !awaited;
	ir_s tile = awaited ? ir_sconst(b, 0) : (ir_s){ 0 };
	ir_f from = { 0 };
	if (normed) {
		tile = begin_tile(g);
		norm_tile(g, tile);
	}
	ir_s base, end;
	matmul_group_blocks(g, &base, &end);
	ir_s left = ir_ssub(b, end, base);
	ir_loop(b, g->together > 1 ? ir_sdivi(b, ir_saddi(b, left, g->together - 1), g->together) : left);
	if (!normed && !awaited)
		tile = begin_tile(g);
	ir_s blocks = g->together > 1 ? ir_smin(b, ir_ssub(b, end, base), ir_sconst(b, g->together)) : ir_sconst(b, 1);
	if (awaited && g->key->flags & KEY_RESIDUAL && matmul_awaits_early(g))
		from = matmul_await_from(g, base, blocks);
	if (g->tile) {
		g->tile(g->context, base, blocks, tile);
	} else {
		do_job(g, base, tile, share(g, ir_smuli(b, blocks, g->jobs), g->together * g->jobs));
		ir_endloop(b);
	}
	ir_barrier(b);
	finish_blocks(g, base, tile, blocks, from);
	ir_barrier(b);
	if (!normed && !awaited)
		end_tile(g, tile);
	ir_set_s(b, base, ir_saddi(b, base, g->together));
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
		struct matmul_group narrow = *g;
		key.tile_n = width;
		narrow.key = &key;
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

/* target: where a key has tiles of all waves. */
static unsigned together_of(const struct target *target, const struct key *key, unsigned waves)
{
	unsigned matrices = key->flags & KEY_PAIR ? 2 : 1, jobs = numerics_spans(key->k) * matrices;

	if (target && template_floats(target, key))
		return matmul_floats_together(target, key);
	if (key->flags & KEY_MMA && key->tile_n >= TEMPLATE_MMA_SHARED)
		return matmul_mma_shape(target, key).row_blocks / matrices;
	return jobs < waves ? waves / jobs : 1;
}

void matmul_group_build(struct matmul_group *g)
{
	const bool experts = g->key->flags & KEY_EXPERTS;
	struct ir *b = g->b;

	g->spans = g->tile ? g->spans : numerics_spans(g->key->k);
	g->matrices = g->key->flags & KEY_PAIR ? 2 : 1;
	g->jobs = g->spans * g->matrices;
	g->together = experts ? 1 : together_of(g->target, g->key, g->waves);
	g->arg = ir_arg(b);
	const int64_t totals = (int64_t)g->together * g->jobs * matmul_total_columns(g->key) * 128;
	g->sums = ir_shared(b, totals > g->room ? totals : g->room);
	g->wave = ir_wave(b);
	if (g->key->flags & KEY_AWAITED && g->key->flags & KEY_QUANTISED_OUT)
		g->scratch = ir_local(b, 32);
	if (g->stages) {
		matmul_stage_room(g);
		if (g->key->flags & KEY_AWAITED) {
			if (g->ask)
				g->ask(g->context);
			matmul_stage_tile(g, ir_sconst(b, 0));
		}
	} else if (g->key->flags & KEY_AWAITED) {
		matmul_await_room(g);
		if (g->ask)
			g->ask(g->context);
		matmul_await_stage(g);
	} else if (g->key->flags & KEY_NORM_IN) {
		make_input_room(g);
	}
	if (experts)
		emit_routes(g);
	else
		emit_group(g);
}

/* Few columns are one tile, but of floats. */
bool template_matmul_parts(const struct target *target, const struct key *key)
{
	return template_floats(target, key) || (target->has_parts && key->kind == KEY_MATMUL && key->tile_n > 8 &&
	                                        !(key->flags & (KEY_EXPERTS | KEY_NORM_IN | KEY_AWAITED)));
}

unsigned template_matmul_together(const struct target *target, const struct key *key)
{
	return together_of(target, key, target->waves);
}
