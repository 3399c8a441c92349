/* runtime/plan/plan_tiles.c - how the tokens of a matmul are cut into tiles, and which widths that gives.
 *
 * Owns: the choice between products of matrices, wide tiles and narrow ones. Which widths are good is for the templates
 * to say (kernels-templates/templates.h).
 */
#include <assert.h>

#include "runtime/plan/lower.h"

enum dtype plan_activation(const struct plan_options *opt, enum dtype weight)
{
	return opt->f32_activations ? DTYPE_F32 : weight_default_activation(weight);
}

static struct key key_of(const struct plan_options *opt, const struct weights_matrix *w, enum dtype act, uint32_t flags,
                         uint32_t columns)
{
	return (struct key){
		.kind = KEY_MATMUL,
		.target = (uint8_t)opt->target->id,
		.weight = key_type(w->type),
		.activation = key_type(act),
		.numerics = act == DTYPE_BF16 ? NUMERICS_BOUNDED : NUMERICS_EXACT,
		.row_blocks = 1,
		.act = flags & (KEY_PAIR | KEY_GATED) ? ACT_SILU : ACT_NONE,
		.rows = (uint32_t)w->rows,
		.k = (uint32_t)w->k,
		.tile_n = columns,
		.flags = flags
	};
}

/* In pairs of BF16, where there are such kernels. */
enum dtype plan_matmul_activation(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags)
{
	const enum dtype act = plan_activation(opt, w->type);
	const struct key pairs = key_of(opt, w, DTYPE_BF16, 0, 1);

	return opt->bounded && act == DTYPE_F32 && !(flags & KEY_BY_HEAD) && !matmul_recipe(&pairs, opt->target).refusal
	               ? DTYPE_BF16
	               : act;
}

struct key plan_matmul_key(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags,
                           uint32_t columns)
{
	return key_of(opt, w, plan_matmul_activation(opt, w, flags), flags, columns);
}

struct matmul_widths plan_widths_of(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags,
                                    uint32_t columns, bool bounded)
{
	struct key key = plan_matmul_key(opt, w, flags, columns);

	key.numerics = bounded ? NUMERICS_BOUNDED : NUMERICS_EXACT;
	return matmul_widths(&key, opt->target, columns);
}

/* So many tiles of int8 are alike, of one op, which reads and unpacks weights once; another op's would do so again.
 * Products of matrices are better in whole tiles. */
enum { ALIKE_MAX = 2 };

static uint32_t alike(const struct plan_options *opt, enum dtype act, bool wide)
{
	return wide && act == DTYPE_Q8_0 && !opt->target->has_tiles ? ALIKE_MAX : 0;
}

/* Columns from `first` on: tiles of a width, and a narrower one for the rest; up to `same` tiles are of one width.
 * Returns how many. */
static unsigned cut_columns(uint32_t first, uint32_t tokens, uint32_t width, uint32_t same, uint32_t flags,
                            struct plan_tiles out[2])
{
	uint32_t tiles = tokens / width, rest = tokens % width;

	/* A rest of few tokens costs little less than a whole tile: then all are alike. */
	if (tiles && rest && (rest < width / 3 || tiles < same))
		width = (tokens + tiles) / (tiles + 1);
	if (width > tokens)
		width = tokens;
	tiles = tokens / width;
	out[0] = (struct plan_tiles){ .first = first, .width = width, .tiles = tiles, .flags = flags };
	out[1] = (struct plan_tiles){
		.first = first + tiles * width, .width = tokens % width, .tiles = 1, .flags = flags
	};
	return tokens % width ? 2 : 1;
}

/* The tokens that fill tiles of matrix products. Passes that give the logits of all tokens stay exact: that is how
 * draft tokens are judged, which must not change what is said. */
static unsigned cut_for_matrices(const struct plan_options *opt, const struct matmul_widths *widths, uint32_t flags,
                                 uint32_t tokens, struct plan_tiles out[PLAN_CUTS_MAX - 2])
{
	uint32_t all = tokens / TEMPLATE_MMA_MIN * TEMPLATE_MMA_MIN, width = widths->products, narrow = widths->narrow,
		 done = 0;
	unsigned n = 0;

	if (!all || opt->general || flags & KEY_BY_HEAD || !width)
		return 0;
	for (uint32_t min = width < TEMPLATE_MMA_SHARED ? width : TEMPLATE_MMA_SHARED; width >= min; width /= 2)
		if (all - done >= width) {
			out[n++] = (struct plan_tiles){
				.first = done, .width = width, .tiles = (all - done) / width, .flags = KEY_MMA
			};
			done += (all - done) / width * width;
		}
	if ((all - done) % narrow)
		narrow = TEMPLATE_MMA_MIN;
	if (all > done)
		out[n++] = (struct plan_tiles){
			.first = done, .width = narrow, .tiles = (all - done) / narrow, .flags = KEY_MMA
		};
	return n;
}

/* Tiles with row blocks side by side, for the first of so many tokens or all of them; none of width 0: they are not
 * done so. */
static struct plan_tiles floats_tiles(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags,
                                      uint32_t first, uint32_t tokens)
{
	const struct matmul_widths widths = plan_widths_of(opt, w, flags, tokens, false);
	struct plan_tiles t = { .first = first, .width = widths.side_by_side, .schedule = widths.schedule };

	if (!t.width)
		return t;
	struct key key = plan_matmul_key(opt, w, flags, t.width);
	key.schedule = t.schedule;
	t.tiles = tokens / t.width;
	if (matmul_recipe(&key, opt->target).short_last && tokens % t.width)
		t.missing = ++t.tiles * t.width - tokens;
	return t;
}

/* Of floats on cards. Returns how many sorts; 0: they are not done so. */
static unsigned cut_floats(const struct plan_options *opt, enum dtype act, const struct weights_matrix *w,
                           uint32_t flags, uint32_t first, uint32_t tokens, struct plan_tiles out[2])
{
	const uint32_t end = first + tokens;

	if (act != DTYPE_F32 || opt->general || flags & KEY_BY_HEAD)
		return 0;
	out[0] = floats_tiles(opt, w, flags, first, tokens);
	if (!out[0].width || plan_tiles_end(&out[0]) == end)
		return out[0].width ? 1 : 0;
	const uint32_t rest = end - plan_tiles_end(&out[0]);
	out[1] = floats_tiles(opt, w, flags, end - rest, rest);
	if (!out[1].width)
		out[1] = (struct plan_tiles){ .first = end - rest, .width = rest, .tiles = 1 };
	return 2;
}

/* A prompt's tokens go through the widest tiles there are. */
unsigned plan_cut_matmul(const struct plan_options *opt, enum plan_logits logits, const struct weights_matrix *w,
                         uint32_t flags, uint32_t tokens, struct plan_tiles out[PLAN_CUTS_MAX])
{
	enum dtype act = plan_matmul_activation(opt, w, flags);
	const struct matmul_widths widths =
		plan_widths_of(opt, w, flags, tokens, opt->bounded && logits != PLAN_ALL_LOGITS);
	unsigned n = cut_for_matrices(opt, &widths, flags, tokens, out);
	bool wide = widths.wide_from && tokens >= widths.wide_from && !opt->general && !(flags & KEY_BY_HEAD);
	uint32_t done = n ? plan_tiles_end(&out[n - 1]) : 0,
		 width = opt->general ? 1
	                 : wide       ? widths.wide
	                              : widths.plain;
	unsigned floats = done < tokens ? cut_floats(opt, act, w, flags, done, tokens - done, out + n) : 0;

	if (done == tokens || floats)
		return n + floats;
	return n + cut_columns(done, tokens - done, width, alike(opt, act, wide), wide ? KEY_WIDE : 0, out + n);
}

/* Whether there is such a kernel with a norm inside, and that costs every group less than another stage does. At twice
 * as many elements it takes as long as the stage that it saves. */
static bool norm_pays(const struct key *plain)
{
	enum { FLOATS_MAX = 4096, BLOCKS_MAX = 2048, STAGED_FLOATS_MAX = 16384, STAGED_BLOCKS_MAX = 4096 };
	struct key key = *plain;

	key.flags |= KEY_NORM_IN;
	const struct matmul_recipe r = matmul_recipe(&key, &target_table[key.target]);
	const bool staged = r.source == MATMUL_STAGED;
	const uint64_t max = r.int8 ? staged ? STAGED_BLOCKS_MAX : BLOCKS_MAX : staged ? STAGED_FLOATS_MAX : FLOATS_MAX;

	return !r.refusal && key.tile_n * numerics_pad(key.k) <= max;
}

bool plan_norm_inside(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags, uint32_t tokens,
                      bool awaited)
{
	struct plan_tiles t[PLAN_CUTS_MAX];

	if (awaited) /* several tokens' norm is an op, which makes it once for all who read it */
		return b->n == 1;
	if (plan_cut_matmul(b->opt, b->p->logits, w, flags, tokens, t) > 1 || t[0].flags)
		return false;
	struct key key = plan_matmul_key(b->opt, w, flags,
	                                 b->opt->general || tokens <= TEMPLATE_MAX_COLUMNS ? t[0].width : tokens);
	return norm_pays(&key);
}

bool plan_keeps_greatest(const struct model_spec *s, const struct target *target)
{
	const struct key key = { .kind = KEY_MATMUL,
		                 .weight = key_type(DTYPE_F32),
		                 .activation = key_type(DTYPE_F32),
		                 .row_blocks = 1,
		                 .rows = s->vocab,
		                 .k = NUMERICS_BLOCK,
		                 .tile_n = 1,
		                 .flags = KEY_GREATEST };

	return !s->logit_scale.given && !s->logit_cap.given && !matmul_recipe(&key, target).refusal;
}

/* ---- what does not depend on how many tokens there are need not be looked at again */

/* Notes a width in a set; whether it was not there. */
static bool note(uint64_t *set, uint32_t width)
{
	uint64_t bit = 1ull << width;
	bool is_new = !(*set & bit);

	assert(width < 64);
	*set |= bit;
	return is_new;
}

/* inside: the pass may have norms inside. */
static bool note_matmul(struct plan_widths *seen, const struct weights_matrix *w, uint32_t flags, uint32_t tokens,
                        const struct plan_options *opt, bool inside)
{
	struct plan_tiles t[PLAN_CUTS_MAX];
	bool is_new = false;

	for (unsigned n = plan_cut_matmul(opt, PLAN_LAST_LOGITS, w, flags, tokens, t), i = 0; i < n; i++)
		is_new |= note(&seen->matmul[w->type][t[i].flags == KEY_WIDE ? 1 : inside ? 2 : 0], t[i].width);
	return is_new;
}

/* Layers of other sizes have widths of their own, which grow at other numbers of tokens. */
static bool note_attention(struct plan_widths *seen, const struct model_spec *spec, uint32_t layer, uint32_t tokens,
                           const struct plan_options *opt)
{
	const struct model_sizes z = model_sizes_of(spec, layer);
	const uint32_t heads = model_heads_of(spec, layer);
	uint32_t k = 0, width = spec->latent.rank /* whose kernels know of one column, and of several */
	                                ? tokens > 1
	                                : template_attention_tile_n(opt->target, heads, z.kv_heads, z.head_dim, tokens);

	while (k < PLAN_SIZES_MAX && seen->of[k].head_dim &&
	       (seen->of[k].head_dim != z.head_dim || seen->of[k].kv_heads != z.kv_heads || seen->of[k].heads != heads))
		k++;
	if (k == PLAN_SIZES_MAX)
		return true;
	seen->of[k].head_dim = z.head_dim;
	seen->of[k].kv_heads = z.kv_heads;
	seen->of[k].heads = heads;
	return note(&seen->attention[k], width);
}

uint32_t plan_route_width(const struct plan_options *opt)
{
	const struct weights_matrix any = { .type = DTYPE_F32, .rows = 32, .k = 32 };

	return plan_widths_of(opt, &any, 0, 1, false).routes;
}

bool plan_has_new_widths(struct plan_widths *seen, const struct model_spec *spec, const struct weights *w,
                         uint32_t tokens, const struct plan_options *opt)
{
	bool is_new = false, done[DTYPE_COUNT][2] = { { false } };

	if (opt->target->has_mma) /* those ask for a matrix's size, too */
		return true;
	for (uint32_t i = 0; i < spec->layers; i++) {
		const struct weights_layer *l = &w->layer[i];
		for (int m = 0; m < MATRIX_SLOTS; m++) {
			bool by_head = m == MATRIX_k_b || m == MATRIX_v_b, *it = &done[l->matrix[m].type][by_head];
			if (!l->matrix[m].packed || *it)
				continue;
			*it = true;
			struct key key = plan_matmul_key(opt, &l->matrix[m], 0, opt->general ? 1 : tokens);
			key.k = spec->hidden;
			bool inside = norm_pays(&key);
			is_new |= note_matmul(seen, &l->matrix[m], by_head ? KEY_BY_HEAD : 0, tokens, opt, inside);
		}
	}
	/* Tiles of experts are powers of two, up to one. */
	for (uint32_t width = 1; spec->experts && width <= plan_route_width(opt); width *= 2)
		is_new |= tokens >= width && !opt->general && note(&seen->experts, width);
	for (uint32_t i = 0; i < spec->layers; i++)
		is_new |= note_attention(seen, spec, i, tokens, opt);
	return is_new;
}
