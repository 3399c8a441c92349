/* tests/kernels/recipe_keys.c - see recipe_keys.h. */
#include "tests/kernels/recipe_keys.h"

#include <stddef.h>

#include "kernels-templates/templates.h"

struct draws {
	uint64_t state;
	struct key key;
};

/* Functions that were there when t_recipe.c noted which keys are built; later ones would change the draws. */
enum { ACTS_DRAWN = ACT_GELU_ERF };

static uint32_t below(struct draws *d, uint32_t n)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(d->state >> 33) % n;
}

#define ONE_OF(d, list) (list)[below((d), sizeof(list) / sizeof *(list))]

static void draw_matrix(struct draws *d)
{
	static const uint8_t weights[] = { DTYPE_F32,  DTYPE_F16,  DTYPE_BF16,   DTYPE_Q8_0, DTYPE_Q8_0,
		                           DTYPE_Q4_0, DTYPE_Q5_1, DTYPE_Q2_K,   DTYPE_Q4_K, DTYPE_Q6_K,
		                           DTYPE_Q3_K, DTYPE_BF16, DTYPE_IQ4_XS, DTYPE_F16 };
	static const uint32_t rows[] = { 32, 32, 64, 96, 100, 128, 4096, 14336 },
			      widths[] = { 256, 256, 512, 768, 1024, 2048, 4096, 14336 };
	struct key *k = &d->key;
	const enum dtype weight = (enum dtype)ONE_OF(d, weights);

	k->kind = KEY_MATMUL;
	k->weight = key_type(weight);
	k->activation = key_type(below(d, 4) ? weight_default_activation(weight) : DTYPE_F32);
	k->rows = ONE_OF(d, rows);
	k->k = ONE_OF(d, widths);
	k->row_blocks = 1;
	if (weight == DTYPE_BF16 && !below(d, 4)) {
		k->activation = key_type(DTYPE_BF16);
		k->numerics = NUMERICS_BOUNDED;
	}
}

static void draw_epilogue(struct draws *d)
{
	static const uint32_t joins[] = { 0, 0, KEY_RESIDUAL, KEY_PAIR, KEY_GATED };
	struct key *k = &d->key;

	k->flags |= ONE_OF(d, joins) | (below(d, 2) ? KEY_BIAS : 0) | (below(d, 4) ? 0 : KEY_QUANTISED_OUT);
	if (k->flags & KEY_PAIR && below(d, 2))
		k->flags |= KEY_BIAS2;
	if (k->flags & (KEY_PAIR | KEY_GATED) || (!(k->flags & KEY_RESIDUAL) && !below(d, 4)))
		k->act = (uint8_t)(1 + below(d, ACTS_DRAWN - 1));
}

static void draw_plain(struct draws *d)
{
	static const uint32_t schedules[] = { 0, 0, 0, 1, 2, 0x10, 0x22, 0x400, 0x2000, 0x30000, 0x300000, 0x2021 };

	draw_epilogue(d);
	d->key.tile_n = 1 + below(d, 16);
	d->key.row_blocks = (uint8_t)(1 + below(d, 2));
	if (!below(d, 2))
		d->key.tile_n = 1;
	d->key.schedule = ONE_OF(d, schedules);
}

static void draw_side_by_side(struct draws *d)
{
	static const enum dtype floats[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16 };

	draw_plain(d);
	d->key.weight = key_type(ONE_OF(d, floats));
	d->key.activation = key_type(DTYPE_F32);
	d->key.numerics = NUMERICS_EXACT;
	d->key.tile_n = 2 + below(d, 15);
	d->key.row_blocks = 1;
	d->key.schedule = TEMPLATE_SIDE_BY_SIDE | 1u << below(d, 3);
	if (!below(d, 3))
		d->key.flags |= KEY_NORM_IN;
}

static void draw_wide(struct draws *d)
{
	draw_epilogue(d);
	d->key.flags |= KEY_WIDE;
	d->key.tile_n = 1 + below(d, 24);
	if (!below(d, 4))
		d->key.schedule = 1 + below(d, 4);
}

static void draw_matrices(struct draws *d)
{
	static const uint32_t widths[] = { 16, 32, 64, 64, 128, 128 };
	struct key *k = &d->key;
	const enum dtype weight = key_dtype(k->weight);

	draw_epilogue(d);
	k->flags |= KEY_MMA;
	k->tile_n = ONE_OF(d, widths);
	if (weight == DTYPE_F16 || weight == DTYPE_BF16) {
		k->activation = k->weight;
		k->numerics = NUMERICS_BOUNDED;
	}
}

static void draw_routes(struct draws *d)
{
	struct key *k = &d->key;

	draw_epilogue(d);
	k->flags = (k->flags & ~(uint32_t)KEY_RESIDUAL) | KEY_EXPERTS;
	k->tile_n = 1u << below(d, 4);
	if (k->tile_n > 1)
		return;
	k->heads = 1 + below(d, 8);
	k->kv_heads = below(d, 2) ? 1 : k->heads;
}

static void draw_by_head(struct draws *d)
{
	d->key.flags |= KEY_BY_HEAD;
	d->key.heads = 1 + below(d, 16);
	d->key.head_dim = d->key.rows + below(d, 2) * 32;
	d->key.tile_n = 1 + below(d, 16);
}

static void draw_normed(struct draws *d)
{
	draw_epilogue(d);
	d->key.flags |= KEY_NORM_IN | (below(d, 3) ? 0 : KEY_CENTRED);
	d->key.tile_n = below(d, 2) ? 1 : 1 + below(d, 16);
}

static void draw_awaited(struct draws *d)
{
	draw_epilogue(d);
	d->key.flags |= KEY_AWAITED | (below(d, 2) ? KEY_NORM_IN : 0) | (below(d, 3) ? 0 : KEY_MMA);
	d->key.flags &= ~(uint32_t)KEY_GATED;
	d->key.tile_n = below(d, 2) ? 1 : 1 + below(d, 16);
	if (!(d->key.flags & KEY_PAIR) && below(d, 4))
		d->key.act = 0;
}

static void draw_greatest(struct draws *d)
{
	d->key.flags |= KEY_GREATEST | (below(d, 2) ? KEY_BIAS : 0) | (below(d, 3) ? 0 : KEY_NORM_IN) |
	                (below(d, 3) ? 0 : KEY_AWAITED);
	d->key.tile_n = below(d, 2) ? 1 : 1 + below(d, 16);
}

/* One field that may not suit the others. */
static void spoil(struct draws *d)
{
	static const uint32_t sizes[] = { 0, 1, 20, 96, 300, 1u << 20, 1u << 27 }, tiles[] = { 0, 3, 17, 25, 48, 129 };
	static const uint8_t types[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0, DTYPE_Q4_K };
	struct key *k = &d->key;

	switch (below(d, 12)) {
	case 0: k->rows = ONE_OF(d, sizes); break;
	case 1: k->k = ONE_OF(d, sizes); break;
	case 2: k->tile_n = ONE_OF(d, tiles); break;
	case 3: k->weight = below(d, 4) ? key_type((enum dtype)ONE_OF(d, types)) : 0; break;
	case 4: k->activation = below(d, 4) ? key_type((enum dtype)ONE_OF(d, types)) : 0; break;
	case 5: k->numerics ^= 1; break;
	case 6: k->row_blocks = (uint8_t)below(d, 4); break;
	case 7:
		k->act = (uint8_t)below(d, ACTS_DRAWN + 1);
		k->act = k->act == ACTS_DRAWN ? KEY_ACT_COUNT : k->act; /* none of that number */
		break;
	case 8: k->heads = below(d, 3); break;
	case 9: k->schedule = 1u << below(d, 32); break;
	default: k->flags ^= 1u << below(d, 31); break;
	}
}

struct key recipe_key(uint32_t n)
{
	static void (*const sort[])(
		struct draws *) = { draw_plain,   draw_side_by_side, draw_wide,    draw_matrices, draw_routes,
		                    draw_by_head, draw_normed,       draw_awaited, draw_greatest };
	struct draws d = { .state = n };

	for (int i = 0; i < 4; i++)
		below(&d, 2);
	draw_matrix(&d);
	sort[n % (sizeof sort / sizeof *sort)](&d);
	if (!below(&d, 3))
		spoil(&d);
	return d.key;
}
