/* tests/kernels/signature_draws.c - random launches of every kind of kernel, for signature_trial.h.
 *
 * Sizes are small and odd: rows and widths that fill no block, heads that fill no row. What no template does is refused
 * and drawn anew by the caller.
 */
#include <string.h>

#include "tests/kernels/signature_draws.h"

static const char *const targets[] = { "avx2",    "avx512vnni", "avx512bf16", "avx512amx", "gfx1030",
	                               "gfx1101", "gfx1201",    "sm80",       "sm90" };

/* ---- activations */

static void draw_interleave(struct trial *t)
{
	struct key *k = &t->key;
	static const enum dtype type[] = { DTYPE_F32, DTYPE_Q8_0, DTYPE_BF16, DTYPE_F16 };

	k->activation = key_type(type[trial_draw(4)]);
	t->tiles = between(1, 3);
	if (draws_floats(k) || k->activation == key_type(DTYPE_Q8_0) || t->target->has_dot2) {
		k->numerics = k->activation == key_type(DTYPE_BF16) ? NUMERICS_BOUNDED : NUMERICS_EXACT;
		k->k = between(1, 300);
		k->tile_n = between(1, TEMPLATE_MAX_WIDE);
		k->row_blocks = (uint8_t)between(1, k->tile_n);
		k->flags = k->activation == key_type(DTYPE_Q8_0) ? flag(KEY_UNSIGNED) : 0;
		t->units = (int64_t)(t->tiles * numerics_pad(k->k) / 32);
	} else {
		k->numerics = NUMERICS_BOUNDED;
		t->units = between(1, 12);
	}
}

static void draw_norm(struct trial *t)
{
	struct key *k = &t->key;

	k->k = between(1, 600);
	k->flags = flag(KEY_CENTRED) | one_of(flag(KEY_RESIDUAL), flag(KEY_QUANTISED_OUT));
	t->units = between(1, 4);
	if (sometimes()) {
		k->k = 16 * between(1, 10);
		k->heads = k->k % 32 ? 2 * between(1, 3) : between(1, 5);
		k->kv_heads = trial_draw(2);
		k->flags = k->k % 32 || k->kv_heads ? k->flags & KEY_CENTRED : k->flags;
		t->units = k->heads * between(1, 2);
	} else if (sometimes()) {
		k->flags = KEY_AWAITED | KEY_QUANTISED_OUT | flag(KEY_CENTRED);
		k->k = 128 * between(1, 8);
	} else if (k->flags & KEY_CENTRED) {
		k->flags |= flag(KEY_BIAS);
	}
}

static void draw_lines(struct trial *t) { t->units = between(1, 9); }

static void draw_scale(struct trial *t)
{
	static const uint32_t flags[] = { 0, KEY_RESIDUAL, KEY_CAP, KEY_PAIR, KEY_GATED };

	t->key.flags = flags[trial_draw(5)];
	draw_lines(t);
}

static void draw_gate(struct trial *t)
{
	t->key.flags = flag(KEY_SCALED);
	t->key.act = t->key.flags ? ACT_NONE : (uint8_t)between(1, KEY_ACT_COUNT - 1);
	draw_lines(t);
	if (t->key.flags || !flag(KEY_BY_HEAD))
		return;
	t->key.flags = KEY_BY_HEAD;
	t->key.heads = between(1, 5);
	t->key.head_dim = 32 * between(1, 3);
	t->columns = between(1, 3);
	t->units = (int64_t)(t->columns * t->key.heads * (t->key.head_dim / 32));
}

static void draw_layer_inputs(struct trial *t)
{
	t->key.k = between(1, 100);
	t->key.rows = between(1, 4);
	t->columns = between(1, 3);
	t->units = (int64_t)(t->columns * t->key.rows);
}

static void draw_embed(struct trial *t)
{
	draw_weights(t);
	t->key.activation = t->key.row_blocks = t->key.numerics = 0;
	t->key.flags = sometimes() ? KEY_AWAITED : 0;
	t->units = between(1, 5);
	t->rows = 1;
}

/* ---- experts */

static void draw_route(struct trial *t)
{
	struct key *k = &t->key;

	k->rows = sometimes() ? 32 * between(1, 3) : between(1, 100);
	k->heads = between(1, k->rows < 8 ? k->rows : 8);
	if (trial_draw(2)) {
		k->flags = KEY_SIGMOID | flag(KEY_NORMED) | flag(KEY_BIAS);
		k->flags |= k->flags & KEY_NORMED ? flag(KEY_SHARE_EPS) : 0;
	} else {
		k->flags = flag(KEY_OF_ALL);
	}
	if (sometimes()) {
		k->kv_heads = between(2, 4);
		k->rows = k->kv_heads * between(2, 20);
		k->k = between(1, k->kv_heads);
		k->heads = 2;
	} else {
		k->flags |= flag(KEY_SCALED) | flag(KEY_BIAS);
		k->flags = sometimes() ? KEY_GREATEST : k->flags;
	}
	t->units = between(1, 4);
}

static void draw_dispatch(struct trial *t)
{
	t->key.rows = between(1, 40);
	t->key.heads = between(1, 5);
	t->columns = between(1, 9);
	t->groups = t->columns * t->key.heads < t->key.rows ? t->columns * t->key.heads : t->key.rows;
	t->units = 1;
}

static void draw_scatter(struct trial *t)
{
	t->key.k = between(1, 200);
	t->key.heads = between(1, 4);
	t->key.activation = key_type(trial_draw(2) ? DTYPE_F32 : DTYPE_Q8_0);
	t->columns = between(1, 4);
	t->rows = t->columns * t->key.heads;
	t->units = (int64_t)t->columns;
}

static void draw_combine(struct trial *t)
{
	t->key.k = between(1, 200);
	t->key.heads = between(1, 4);
	t->key.flags = flag(KEY_SORTED) | flag(KEY_SIGMOID) | flag(KEY_RESIDUAL);
	t->columns = between(1, 4);
	t->rows = t->columns * t->key.heads;
	t->units = (int64_t)(t->columns * numerics_pad(t->key.k) / 32);
}

/* ---- heads */

static uint8_t cache_type(void)
{
	return key_type((const enum dtype[]){ DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 }[trial_draw(3)]);
}

static uint32_t head_size(void) { return one_of(2 * between(1, 50), 32 * between(1, 4)); }

static void draw_latent(struct key *k)
{
	k->flags = KEY_LATENT;
	k->k = 32 * between(1, 4);
	k->head_dim = k->k + 2 * between(1, 20);
}

static void draw_rope(struct trial *t)
{
	struct key *k = &t->key;

	k->heads = between(1, 5);
	k->head_dim = head_size();
	k->flags = flag(KEY_QK_NORM);
	k->flags |= k->flags ? flag(KEY_NORM_LAST) : 0;
	if (sometimes()) {
		k->flags = KEY_LATENT;
		k->k = between(1, 70);
		k->head_dim = 2 * between(1, 40);
		k->rows = 32 * between(1, 4);
	}
	t->units = k->heads * between(1, 3);
}

static void draw_kv_store(struct trial *t)
{
	struct key *k = &t->key;

	k->kv_heads = between(1, 3);
	k->head_dim = head_size();
	k->flags = flag(KEY_QK_NORM) | flag(KEY_VALUE_NORM);
	k->flags |= k->flags & KEY_QK_NORM ? flag(KEY_NORM_LAST) : 0;
	if (sometimes()) {
		draw_latent(k);
		k->kv_heads = 1;
	}
	k->kv = cache_type();
	t->columns = between(1, 40);
	t->position = trial_draw(300);
	t->units = template_kv_store_units(t->target, k->kv_heads, t->columns);
}

/* Where it rotates: one column, or in parts. */
static void draw_rotating(struct trial *t)
{
	struct key *k = &t->key;

	k->flags |= KEY_ROTATES | flag(KEY_QK_NORM) | flag(KEY_VALUE_NORM);
	k->flags |= k->flags & KEY_QK_NORM ? flag(KEY_NORM_LAST) : 0;
	k->head_dim = one_of(32 * between(1, 4), head_size());
	k->tile_n = 1;
	if (!trial_draw(3)) {
		k->flags |= k->head_dim % 32 ? 0 : flag(KEY_QUANTISED_OUT);
		return;
	}
	k->rows = 1u << between(1, 3);
	k->flags |= flag(KEY_AWAITED);
	t->columns = k->tile_n = one_of(1, between(2, 6));
	if (k->tile_n > 1 && t->target->block_bytes)
		k->row_blocks = (uint8_t)trial_draw(k->tile_n + 1);
}

static int64_t attention_units(const struct trial *t)
{
	const struct key *k = &t->key;
	const uint64_t n = k->tile_n > 1 ? k->tile_n : 1;

	if (k->row_blocks)
		return (int64_t)(n + k->row_blocks - 1) / k->row_blocks * k->kv_heads * k->rows;
	if (k->rows)
		return (int64_t)k->kv_heads * k->rows;
	return (int64_t)((t->position % n + t->columns + n - 1) / n * k->kv_heads);
}

static void draw_attention(struct trial *t)
{
	struct key *k = &t->key;

	k->kv_heads = between(1, 3);
	k->heads = k->kv_heads * between(1, 4);
	k->head_dim = head_size();
	k->flags = flag(KEY_WINDOW) | flag(KEY_SINKS) | flag(KEY_BIAS) | (sometimes() ? KEY_CAP : 0);
	t->columns = 1;
	t->position = trial_draw(400);
	t->window = between(1, 200);
	if (sometimes()) {
		draw_latent(k);
		t->columns = between(1, 3);
	} else if (t->target->waves > 1 && trial_draw(2)) {
		draw_rotating(t);
	} else if (sometimes()) {
		k->rows = 1u << between(1, 3);
	} else {
		k->tile_n = 1u << trial_draw(5);
		t->columns = between(1, 20);
		if (sometimes()) {
			k->flags |= KEY_BOTH;
			t->position = k->flags & KEY_WINDOW ? trial_draw(30) : t->columns + trial_draw(400);
			t->window = 2 * t->position + 1;
		}
	}
	if (k->flags & KEY_WINDOW && !(k->flags & (KEY_LATENT | KEY_BOTH)) && sometimes())
		k->k = (uint32_t)t->window;
	k->kv = cache_type();
	t->units = attention_units(t);
}

static void draw_merge(struct trial *t)
{
	struct key *k = &t->key;

	k->head_dim = head_size();
	k->kv_heads = between(1, 3);
	k->heads = k->kv_heads * between(1, 4);
	k->flags = flag(KEY_WINDOW) | flag(KEY_SINKS) | flag(KEY_AWAITED);
	k->flags |= k->head_dim % 32 ? 0 : flag(KEY_QUANTISED_OUT);
	t->position = trial_draw(2000);
	t->window = between(1, 900);
	k->tile_n = one_of(1, between(2, 6));
	t->columns = k->tile_n;
	t->units = (int64_t)(t->columns * k->heads * template_merge_units(k->head_dim));
}

/* ---- layers with a state */

static void draw_conv(struct trial *t)
{
	struct key *k = &t->key;

	k->k = 32 * between(1, 6);
	k->rows = between(2, CONV_MAX_TAPS);
	k->act = (uint8_t)one_of(0, between(1, KEY_ACT_COUNT - 1));
	k->flags = flag(KEY_GATED) | flag(KEY_BIAS);
	t->columns = between(1, 5);
	t->units = k->k / 32;
}

static void draw_state(struct trial *t, uint32_t flags)
{
	struct key *k = &t->key;

	k->kv_heads = between(1, 3);
	k->heads = k->kv_heads * 2 * between(1, 2);
	k->head_dim = 16 * between(1, 5);
	k->rows = 16 * between(1, 5);
	k->flags = flags;
	t->columns = between(1, 4);
	t->units = k->heads * template_value_blocks(k->rows);
}

static void draw_delta(struct trial *t)
{
	draw_state(t, flag(KEY_TILED) | flag(KEY_SCALED) | flag(KEY_SORTED) | flag(KEY_OF_ALL));
}
static void draw_scan(struct trial *t) { draw_state(t, 0); }

static void draw_channel(struct trial *t)
{
	t->key.k = 32 * between(1, 4);
	t->key.rows = one_of(16, between(1, 40));
	t->columns = between(1, 4);
	t->units = t->key.k / 32;
}

/* ---- adapters: as many tables' pages as fill_adapters() has adapters */

static void draw_adapt(struct trial *t)
{
	t->position = 300;
	t->columns = between(1, 20);
	t->groups = between(1, 3);
}

static void draw_adapt_down(struct trial *t)
{
	draw_adapt(t);
	t->key.k = between(1, 150);
	t->key.rows = one_of(32, 4 * between(1, 20));
	t->units = (int64_t)(t->groups * ADAPT_PARTS);
}

static void draw_adapt_up(struct trial *t)
{
	draw_adapt(t);
	t->key.k = one_of(32, 4 * between(1, 20));
	t->key.rows = between(1, 150);
	t->key.flags = flag(KEY_SCALED);
	t->units = (int64_t)(t->groups * (numerics_pad(t->key.rows) / 32));
}

void trial_draw_launch(struct trial *t, enum key_kind kind)
{
	static void (*const draw[KEY_KIND_COUNT])(struct trial *) = {
		[KEY_MATMUL] = draw_matmul,
		[KEY_NORM] = draw_norm,
		[KEY_ROPE] = draw_rope,
		[KEY_ATTENTION] = draw_attention,
		[KEY_QUANTISE] = draw_lines,
		[KEY_EMBED] = draw_embed,
		[KEY_KV_STORE] = draw_kv_store,
		[KEY_INTERLEAVE] = draw_interleave,
		[KEY_SCALE] = draw_scale,
		[KEY_CONV] = draw_conv,
		[KEY_DELTA] = draw_delta,
		[KEY_GATE] = draw_gate,
		[KEY_ROUTE] = draw_route,
		[KEY_DISPATCH] = draw_dispatch,
		[KEY_SCATTER] = draw_scatter,
		[KEY_COMBINE] = draw_combine,
		[KEY_LAYER_INPUTS] = draw_layer_inputs,
		[KEY_SCAN] = draw_scan,
		[KEY_CHANNEL] = draw_channel,
		[KEY_MERGE] = draw_merge,
		[KEY_ADAPT_DOWN] = draw_adapt_down,
		[KEY_ADAPT_UP] = draw_adapt_up,
	};

	memset(t, 0, sizeof *t);
	t->target = target_find(targets[trial_draw(sizeof targets / sizeof *targets)]);
	t->key.kind = (uint8_t)kind;
	t->key.target = (uint8_t)t->target->id;
	t->columns = 1;
	t->rows = t->matrices = 1;
	draw[kind](t);
}
