/* tests/kernels/signature_draws_matmul.c - random matmuls of every sort, for signature_trial.h. */
#include "kernels-templates/matmul/recipe.h"
#include "tests/kernels/signature_draws.h"
#include "tests/support/weight_types.h"
#include "tests/support/widths.h"

/* A width that the weights' blocks divide. */
static uint32_t width_for(enum dtype type)
{
	const uint32_t block = dtype_table[type].block;

	return block == 1 ? between(1, 400) : block * between(1, block > 32 ? 3 : 12);
}

void draw_weights(struct trial *t)
{
	enum dtype types[DTYPE_COUNT];
	struct key *k = &t->key;
	enum dtype type = types[trial_draw(weight_types_all(types))];

	if (sometimes())
		type = (const enum dtype[]){ DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0 }[trial_draw(4)];
	k->weight = key_type(type);
	k->activation = key_type(trial_draw(2) ? weight_default_activation(type) : DTYPE_F32);
	k->k = width_for(type);
	k->rows = between(1, 130);
	k->row_blocks = 1;
	if (widths_dot2(t->target, type) && trial_draw(2)) {
		k->activation = key_type(DTYPE_BF16);
		k->numerics = NUMERICS_BOUNDED;
	}
}

static void draw_epilogue(struct trial *t)
{
	struct key *k = &t->key;
	static const uint32_t of_destination[] = { 0, KEY_RESIDUAL, KEY_PAIR, KEY_GATED };

	k->flags |= of_destination[trial_draw(4)] | flag(KEY_BIAS) | (sometimes() ? KEY_QUANTISED_OUT : 0) |
	            (k->rows % 4 == 1 ? KEY_ADDED | (k->rows % 8 == 1 ? KEY_SCALED : 0) : 0);
	if (k->flags & KEY_PAIR)
		k->flags |= flag(KEY_BIAS2);
	if (k->flags & (KEY_PAIR | KEY_GATED) || (!(k->flags & KEY_RESIDUAL) && sometimes()))
		k->act = (uint8_t)between(1, KEY_ACT_COUNT - 1);
}

static void set_tiles(struct trial *t, uint32_t tiles)
{
	t->tiles = tiles;
	t->columns = (uint64_t)tiles * t->key.tile_n;
}

static void draw_plain(struct trial *t)
{
	struct key *k = &t->key;
	uint32_t schedule[TEMPLATE_SCHEDULES_MAX];

	k->tile_n = between(1, widths_plain(t->target));
	k->row_blocks = (uint8_t)between(1, 2);
	draw_epilogue(t);
	k->schedule = schedule[trial_draw(template_schedules(k, schedule))];
	set_tiles(t, between(1, 3));
	if (!draws_floats(k) || !trial_draw(2))
		return;
	const uint32_t tokens = between(2, 40);
	k->row_blocks = 1;
	const struct matmul_widths widths = matmul_widths(k, t->target, tokens);
	k->tile_n = widths.side_by_side;
	k->schedule = widths.side_by_side ? widths.schedule : k->schedule;
	if (!k->tile_n)
		return;
	set_tiles(t, (tokens + k->tile_n - 1) / k->tile_n);
	if (matmul_recipe(k, t->target).short_last && tokens >= k->tile_n)
		t->columns = tokens;
}

static void draw_wide(struct trial *t)
{
	t->key.flags |= KEY_WIDE;
	t->key.tile_n = between(1, TEMPLATE_MAX_WIDE);
	draw_epilogue(t);
	set_tiles(t, between(1, 3));
}

static void draw_mma(struct trial *t)
{
	struct key *k = &t->key;
	const enum dtype type = key_dtype(k->weight);
	static const uint32_t width[] = { 16, 32, 64, 128 };

	k->flags |= KEY_MMA;
	k->tile_n = width[trial_draw(4)];
	if (draws_floats(k) && (type == DTYPE_F16 || type == DTYPE_BF16)) {
		k->activation = key_type(type);
		k->numerics = NUMERICS_BOUNDED;
	}
	draw_epilogue(t);
	set_tiles(t, between(1, 2));
}

static uint64_t blocks_of(const struct key *k) { return numerics_pad(k->rows) / 32; }

static void draw_experts(struct trial *t)
{
	struct key *k = &t->key;

	k->flags |= KEY_EXPERTS;
	k->tile_n = 1u << trial_draw(4);
	draw_epilogue(t);
	k->flags &= ~(uint32_t)KEY_RESIDUAL;
	t->matrices = between(1, 4);
	if (k->tile_n == 1) {
		const uint32_t tokens = between(1, 3);
		k->heads = between(1, 4);
		k->kv_heads = one_of(1, k->heads);
		t->rows = tokens * k->heads;
		t->units = (int64_t)(t->rows * blocks_of(k));
	} else {
		t->rows = between(1, 20);
		t->groups = between(1, 4);
		t->units = (int64_t)(t->groups * blocks_of(k));
	}
	t->columns = t->rows;
}

static void draw_by_head(struct trial *t)
{
	struct key *k = &t->key;

	k->flags |= KEY_BY_HEAD;
	k->heads = between(1, 4);
	k->head_dim = k->rows + trial_draw(40);
	k->tile_n = between(1, widths_plain(t->target));
	set_tiles(t, between(1, 2));
}

static void draw_norm_in(struct trial *t)
{
	t->key.flags |= KEY_NORM_IN | flag(KEY_CENTRED);
	t->key.tile_n = between(1, 8);
	draw_epilogue(t);
	set_tiles(t, between(1, 2));
}

static void draw_awaited(struct trial *t)
{
	struct key *k = &t->key;

	k->flags |= KEY_AWAITED | (sometimes() ? KEY_NORM_IN | flag(KEY_CENTRED) : 0) | (sometimes() ? KEY_MMA : 0);
	k->tile_n = one_of(1, k->flags & KEY_MMA ? one_of(8, 16) : between(2, 8));
	k->k = (k->k + 255) / 256 * 256;
	draw_epilogue(t);
	set_tiles(t, 1);
}

static void draw_greatest(struct trial *t)
{
	struct key *k = &t->key;

	k->rows = 32 * between(1, 4);
	k->flags |= KEY_GREATEST | flag(KEY_BIAS) | (sometimes() ? KEY_NORM_IN : 0) | (sometimes() ? KEY_AWAITED : 0);
	k->tile_n = between(1, 4);
	set_tiles(t, k->flags & KEY_AWAITED ? 1 : between(1, 2));
}

void draw_matmul(struct trial *t)
{
	static void (*const sort[])(
		struct trial *) = { draw_plain,   draw_plain,   draw_wide,    draw_mma,     draw_experts,
		                    draw_by_head, draw_norm_in, draw_awaited, draw_greatest };
	const struct key *k = &t->key;

	draw_weights(t);
	sort[trial_draw(sizeof sort / sizeof *sort)](t);
	if (!t->units)
		t->units = (int64_t)((blocks_of(k) * (k->flags & KEY_BY_HEAD ? k->heads : 1) + k->row_blocks - 1) /
		                     k->row_blocks);
}
