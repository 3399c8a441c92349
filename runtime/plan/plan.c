#include "runtime/plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "base/math_host.h"

/* Up to so many tokens weights are read once, by a wide tile, whatever is best for more. */
enum {
	WIDE_ONCE = 24,
	LAUNCHES_PER_LAYER = 40,
	LAUNCHES_OUTSIDE = 16,
	ARGS_MOST = 11,
	CUTS_MOST = 4 /* sorts of tiles that a matmul's tokens are cut into */
};

/* An op that turns inputs, whole: two that are the same write the same bytes. */
struct turn {
	struct key key;
	int64_t units;
	uint64_t arg[INTERLEAVE_ARGS];
};
_Static_assert(sizeof(struct turn) == sizeof(struct key) + 8 + 8 * INTERLEAVE_ARGS, "turns are compared as bytes");

struct builder {
	struct plan *p;
	const struct model_spec *spec;
	const struct plan_buffers *buf;
	const struct plan_cache *kv;
	const struct plan_options *opt;
	size_t launch_capacity, args_used, position_capacity;
	uint32_t n; /* tokens */
	/* The ops since the last barrier that wrote what the buffers of turned inputs hold. */
	struct turn turned[CUTS_MOST];
	unsigned n_turned;
};

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }
static uint64_t f32_slot(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

static struct key new_key(const struct builder *b, enum key_kind kind)
{
	struct key k;
	memset(&k, 0, sizeof k);
	k.kind = (uint8_t)kind;
	k.target = (uint8_t)b->opt->target->id;
	k.codegen = key_codegen(k.target);
	return k;
}

static uint32_t find_kernel(struct builder *b, const struct key *key)
{
	struct plan *p = b->p;
	for (size_t i = 0; i < p->n_kernels; i++) {
		const struct key *k = &p->kernel[i].key;
		if (k->rows == key->rows && k->k == key->k && k->tile_n == key->tile_n && key_equal(k, key))
			return (uint32_t)i;
	}
	assert(p->n_kernels < b->launch_capacity);
	p->kernel[p->n_kernels] = (struct plan_kernel){ .key = *key };
	return (uint32_t)p->n_kernels++;
}

/* What this machine was found to like, of the kernel itself or of the one it follows. A file may also name what there
 * never was. */
static uint32_t schedule_of(const struct plan_options *o, const struct key *key)
{
	struct tune_result found;

	if (!o->tune || key->kind != KEY_MATMUL)
		return 0;
	struct key k = *key, like = template_tuned_like(key);
	if (tune_find(o->tune, key, &found))
		k.schedule = found.key.schedule;
	else if (tune_find(o->tune, &like, &found))
		k.schedule = template_schedule_follow(key, &found.key);
	return k.schedule && !template_schedule_refusal(&k) && (!o->only || registry_ready(o->only, &k))
	               ? k.schedule
	               : 0;
}

/* Adds an op of units [begin, end). Returns its argument slots, all zero. */
static uint64_t *op(struct builder *b, const struct key *key, int64_t begin, int64_t end)
{
	struct plan *p = b->p;
	assert(p->n_ops < b->launch_capacity && template_args(key) <= ARGS_MOST);
	struct plan_op *l = &p->op[p->n_ops++];
	struct key scheduled = *key;
	scheduled.schedule = schedule_of(b->opt, key);
	*l = (struct plan_op){ .kernel = find_kernel(b, &scheduled),
		               .n_args = template_args(key),
		               .begin = begin,
		               .end = end,
		               .unit_cost = 1,
		               .arg = p->args + b->args_used };
	memset(l->arg, 0, ARGS_MOST * sizeof *l->arg);
	b->args_used += ARGS_MOST;
	return l->arg;
}

/* What comes next is another part of the model. */
static void next_part(struct builder *b) { b->p->section[b->p->n_sections++] = (uint32_t)b->p->n_ops; }

static struct plan_op *last_op(struct builder *b) { return &b->p->op[b->p->n_ops - 1]; }

static void wait_here(struct builder *b) { last_op(b)->barrier = true; }

/* The end of a stage: inputs may change. */
static void barrier(struct builder *b)
{
	wait_here(b);
	b->n_turned = 0;
}

static void position_slot(struct builder *b, uint64_t *slot)
{
	assert(b->p->n_positions < b->position_capacity);
	b->p->position[b->p->n_positions++] = slot;
}

static enum dtype activation_for(const struct plan_options *opt, enum dtype weight)
{
	return opt->f32_activations ? DTYPE_F32 : weight_default_activation(weight);
}

static bool wants_int8(const struct builder *b, enum dtype weight)
{
	return activation_for(b->opt, weight) == DTYPE_Q8_0;
}

/* An activation in both of its forms, n tokens from `token` on. */
struct input {
	const float *x;
	const int8_t *q;
	const struct activation_block *s;
};

struct matmul {
	const struct weights_matrix *w, *w2;
	const float *bias, *bias2;
	struct input in;
	float *out;
	int8_t *outq;
	struct activation_block *outs;
	uint32_t flags, tokens;
	enum key_act act;
};

/* Columns first, first + 1, ... as `tiles` tiles. flags: KEY_MMA, KEY_WIDE, or neither. */
struct tiles {
	uint32_t first, width, tiles, flags;
};

static struct turn turn_of(const struct builder *b, const struct matmul *m, enum dtype act, struct tiles t)
{
	uint64_t kp = numerics_pad(m->w->k);
	struct turn turn = { .key = new_key(b, KEY_INTERLEAVE), .units = (int64_t)(t.tiles * (kp / 32)) };

	turn.key.k = (uint32_t)m->w->k;
	turn.key.activation = key_type(act);
	turn.key.tile_n = t.width;
	turn.key.row_blocks = (uint8_t)template_wide_panel(b->opt->target, m->w->type, act, t.width);
	turn.key.flags = template_wide_interleave(b->opt->target, m->w->type, act, t.width);
	if (act == DTYPE_Q8_0) {
		turn.arg[INTERLEAVE_X] = address(m->in.q + t.first * kp);
		turn.arg[INTERLEAVE_XS] = address(m->in.s + t.first * (kp / 32));
		turn.arg[INTERLEAVE_OUT] = address(b->buf->turned_q + t.first * kp);
		turn.arg[INTERLEAVE_OUTS] = address(b->buf->turned_s + t.first * (kp / 32));
	} else {
		turn.arg[INTERLEAVE_X] = address(m->in.x + t.first * kp);
		turn.arg[INTERLEAVE_OUT] = address(b->buf->turned + t.first * kp);
	}
	return turn;
}

/* act: what in holds. F16 and BF16 lie where f32 else does, in half the bytes. */
static void matmul_launch(struct builder *b, const struct matmul *m, const struct input *in, enum dtype act,
                          struct tiles t)
{
	struct key key = new_key(b, KEY_MATMUL);
	uint64_t kp = numerics_pad(m->w->k), rp = numerics_pad(m->w->rows);

	key.weight = key_type(m->w->type);
	key.activation = key_type(act);
	key.rows = (uint32_t)m->w->rows;
	key.k = (uint32_t)m->w->k;
	key.tile_n = t.width;
	key.row_blocks = 1;
	key.numerics = act == DTYPE_F16 || act == DTYPE_BF16 ? NUMERICS_BOUNDED : NUMERICS_EXACT;
	key.act = (uint8_t)m->act;
	key.flags = t.flags | m->flags | (m->bias ? KEY_BIAS : 0) | (m->bias2 ? KEY_BIAS2 : 0);
	uint64_t *a = op(b, &key, 0, (int64_t)(rp / 32));
	last_op(b)->unit_cost = t.width * t.tiles;
	a[MATMUL_W] = address(m->w->packed);
	if (act == DTYPE_Q8_0) {
		a[MATMUL_X] = address(in->q + t.first * kp);
		a[MATMUL_XS] = address(in->s + t.first * (kp / 32));
	} else {
		a[MATMUL_X] = address(in->x) + t.first * kp * (act == DTYPE_F32 ? 4 : 2);
	}
	a[MATMUL_OUT] = address(m->out + t.first * rp);
	a[MATMUL_TILES] = t.tiles;
	a[MATMUL_BIAS] = address(m->bias);
	a[MATMUL_W2] = m->w2 ? address(m->w2->packed) : 0;
	a[MATMUL_BIAS2] = address(m->bias2);
	if (m->flags & KEY_QUANTISED_OUT) {
		a[MATMUL_OUTQ] = address(m->outq + t.first * rp);
		a[MATMUL_OUTS] = address(m->outs + t.first * (rp / 32));
	}
}

/* Columns from `first` on: tiles of a width, and a narrower one for the rest. Returns how many. */
static unsigned cut_columns(uint32_t first, uint32_t tokens, uint32_t width, uint32_t flags, struct tiles out[2])
{
	uint32_t tiles = tokens / width, rest = tokens % width;

	/* A rest of few tokens costs little less than a whole tile: then all are alike. */
	if (tiles && rest && rest < width / 3)
		width = (tokens + tiles) / (tiles + 1);
	if (width > tokens)
		width = tokens;
	tiles = tokens / width;
	out[0] = (struct tiles){ first, width, tiles, flags };
	out[1] = (struct tiles){ first + tiles * width, tokens % width, 1, flags };
	return tokens % width ? 2 : 1;
}

static bool is_there(const struct builder *b, const struct turn *turn, unsigned i)
{
	return i < b->n_turned && memcmp(turn, &b->turned[i], sizeof *turn) == 0;
}

/* Makes sure that the buffers of turned inputs hold what these ops write, which are of all tokens. Formats of weights
 * differ in what they want, and any tile may be the one by which they do: so ops are compared whole. One that was made
 * before has written the tokens it was to write then, and those before and behind it write others. */
static void prepare(struct builder *b, const struct turn turn[], unsigned n)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < n; i++)
		missing += !is_there(b, &turn[i], i);
	if (!missing)
		return;
	if (b->n_turned) /* somebody may be reading it still */
		wait_here(b);
	for (unsigned i = 0; i < n; i++)
		if (!is_there(b, &turn[i], i))
			memcpy(op(b, &turn[i].key, 0, turn[i].units), turn[i].arg, sizeof turn[i].arg);
	memcpy(b->turned, turn, n * sizeof *turn);
	b->n_turned = n;
	wait_here(b);
}

/* What `m` reads, tile by tile. */
static void turn(struct builder *b, const struct matmul *m, enum dtype act, const struct tiles t[], unsigned n)
{
	struct turn turn[CUTS_MOST];

	for (unsigned i = 0; i < n; i++)
		turn[i] = turn_of(b, m, act, t[i]);
	prepare(b, turn, n);
}

/* The same of f32 inputs rounded to the weights' type. */
static void narrow(struct builder *b, const struct matmul *m, uint32_t tokens)
{
	struct turn turn = { .key = new_key(b, KEY_INTERLEAVE),
		             .units = (int64_t)(tokens * (numerics_pad(m->w->k) / 32)) };

	turn.key.activation = key_type(m->w->type);
	turn.key.numerics = NUMERICS_BOUNDED;
	turn.arg[INTERLEAVE_X] = address(m->in.x);
	turn.arg[INTERLEAVE_OUT] = address(b->buf->turned);
	prepare(b, &turn, 1);
}

/* The tokens that fill tiles of matrix products. Passes that give the logits of all tokens stay exact: that is how
 * guesses are judged, which must not change what is said. */
static unsigned cut_for_matrices(const struct plan_options *opt, enum plan_logits logits,
                                 const struct weights_matrix *w, uint32_t flags, uint32_t tokens, struct tiles out[2])
{
	uint32_t all = tokens / TEMPLATE_MMA_LEAST * TEMPLATE_MMA_LEAST, width = template_mma_tile_n(w->k, flags),
		 wide = all / width;
	unsigned n = 0;

	if (!all || opt->general ||
	    !template_mma(opt->target, w->type, activation_for(opt, w->type),
	                  opt->bounded && logits != PLAN_ALL_LOGITS))
		return 0;
	if (wide)
		out[n++] = (struct tiles){ 0, width, wide, KEY_MMA };
	if (all > wide * width)
		out[n++] = (struct tiles){ wide * width, TEMPLATE_MMA_LEAST, 1, KEY_MMA };
	return n;
}

static uint32_t end_of(const struct tiles *t) { return t->first + t->width * t->tiles; }

/* How a matrix times so many tokens is done: those by matrices first. Few tokens share one tile, so that weights are
 * read once; a prompt's go through the widest there are. */
static unsigned cut_matmul(const struct plan_options *opt, enum plan_logits logits, const struct weights_matrix *w,
                           uint32_t flags, uint32_t tokens, struct tiles out[CUTS_MOST])
{
	enum dtype act = activation_for(opt, w->type);
	unsigned wide_from = template_wide_from(opt->target, w->type, act),
		 n = cut_for_matrices(opt, logits, w, flags, tokens, out);
	bool wide = wide_from && tokens >= wide_from && !opt->general;
	uint32_t width = opt->general ? 1
	                 : wide       ? template_wide_tile_n(opt->target, w->type, act)
	                              : template_tile_n(opt->target),
		 done = n ? end_of(&out[n - 1]) : 0;

	if (wide && tokens <= WIDE_ONCE)
		width = tokens;
	return done < tokens ? n + cut_columns(done, tokens - done, width, wide ? KEY_WIDE : 0, out + n) : n;
}

static void matmul(struct builder *b, const struct matmul *m)
{
	enum dtype act = activation_for(b->opt, m->w->type);
	const struct input turned = { b->buf->turned, b->buf->turned_q, b->buf->turned_s },
			   narrowed = { .x = b->buf->turned };
	bool floats = act == DTYPE_F32;
	struct tiles t[CUTS_MOST];
	unsigned n = cut_matmul(b->opt, b->p->logits, m->w, m->flags, m->tokens, t), i = 0, by_matrices = 0;

	while (by_matrices < n && t[by_matrices].flags == KEY_MMA)
		by_matrices++;
	if (by_matrices && floats)
		narrow(b, m, end_of(&t[by_matrices - 1]));
	for (; i < by_matrices; i++)
		matmul_launch(b, m, floats ? &narrowed : &m->in, floats ? m->w->type : act, t[i]);
	bool wide = i < n && t[i].flags == KEY_WIDE;
	if (wide)
		turn(b, m, act, t + i, n - i);
	for (; i < n; i++)
		matmul_launch(b, m, wide ? &turned : &m->in, act, t[i]);
}

static void norm(struct builder *b, const float *x, const float *weight, bool int8, uint32_t tokens, float *out,
                 int8_t *outq, struct activation_block *outs)
{
	struct key key = new_key(b, KEY_NORM);
	key.k = b->spec->hidden;
	key.flags = int8 ? KEY_QUANTISED_OUT : 0;
	uint64_t *a = op(b, &key, 0, tokens);
	a[NORM_X] = address(x);
	a[NORM_WEIGHT] = address(weight);
	a[NORM_OUT] = address(out);
	a[NORM_EPS] = f32_slot(b->spec->norm_eps);
	a[NORM_OUTQ] = address(outq);
	a[NORM_OUTS] = address(outs);
	last_op(b)->serial = tokens == 1;
	barrier(b);
}

static void quantise(struct builder *b, const float *x, int8_t *q, struct activation_block *s, uint64_t k)
{
	struct key key = new_key(b, KEY_QUANTISE);
	uint64_t *a = op(b, &key, 0, (int64_t)(b->n * (numerics_pad(k) / 32)));
	a[QUANTISE_X] = address(x);
	a[QUANTISE_OUTQ] = address(q);
	a[QUANTISE_OUTS] = address(s);
	last_op(b)->serial = b->n == 1;
	barrier(b);
}

static void embed(struct builder *b, const struct weights *w)
{
	struct key key = new_key(b, KEY_EMBED);
	key.weight = key_type(w->embed.type);
	key.rows = (uint32_t)w->embed.rows;
	key.k = (uint32_t)w->embed.k;
	uint64_t *a = op(b, &key, 0, b->n);
	a[EMBED_W] = address(w->embed.packed);
	a[EMBED_IDS] = address(b->buf->ids);
	a[EMBED_OUT] = address(b->buf->x);
	last_op(b)->serial = b->n == 1;
	barrier(b);
}

static void rotate_and_store(struct builder *b, const struct weights_layer *l, const uint8_t *kcache,
                             const uint8_t *vcache)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *buf = b->buf;
	struct key key = new_key(b, KEY_ROPE);

	key.heads = s->heads;
	key.head_dim = s->head_dim;
	key.flags = l->q_norm ? KEY_QK_NORM : 0;
	uint64_t *a = op(b, &key, 0, (int64_t)b->n * s->heads);
	a[ROPE_IN] = address(buf->q);
	a[ROPE_OUT] = address(buf->qr);
	a[ROPE_COS] = address(buf->cos);
	a[ROPE_SIN] = address(buf->sin);
	a[ROPE_NORM] = address(l->q_norm);
	a[ROPE_EPS] = f32_slot(s->norm_eps);
	a[ROPE_SCALE] = f32_slot((float)(1.0 / math_host_sqrt((double)s->head_dim)));
	last_op(b)->fused_units = b->n == 1 ? s->heads / s->kv_heads : 0;

	uint32_t group = template_kv_store_tokens(b->opt->target);
	key = new_key(b, KEY_KV_STORE);
	key.kv_heads = s->kv_heads;
	key.head_dim = s->head_dim;
	key.kv = key_type(b->kv->type);
	key.flags = l->k_norm ? KEY_QK_NORM : 0;
	a = op(b, &key, 0, template_kv_store_units(b->opt->target, s->kv_heads, b->n));
	a[KV_STORE_K] = address(buf->k);
	a[KV_STORE_V] = address(buf->v);
	a[KV_STORE_KCACHE] = address(kcache);
	a[KV_STORE_VCACHE] = address(vcache);
	a[KV_STORE_COS] = address(buf->cos);
	a[KV_STORE_SIN] = address(buf->sin);
	a[KV_STORE_NORM] = address(l->k_norm);
	a[KV_STORE_EPS] = f32_slot(s->norm_eps);
	a[KV_STORE_CHUNK_BYTES] = b->kv->chunk_bytes;
	a[KV_STORE_COLUMNS] = b->n;
	position_slot(b, &a[KV_STORE_POS0]);
	last_op(b)->fused_units = b->n == 1;
	last_op(b)->unit_cost = b->n < group ? b->n : group;
	barrier(b);
}

static void attention(struct builder *b, uint32_t layer, const uint8_t *kcache, const uint8_t *vcache)
{
	const struct model_spec *s = b->spec;
	struct key key = new_key(b, KEY_ATTENTION);
	bool window = s->sliding_window && (!s->layer_is_sliding || s->layer_is_sliding[layer]);

	key.heads = s->heads;
	key.kv_heads = s->kv_heads;
	key.head_dim = s->head_dim;
	key.kv = key_type(b->kv->type);
	key.flags = window ? KEY_WINDOW : 0;
	key.tile_n = template_attention_tile_n(b->opt->target, s->heads, s->kv_heads, s->head_dim,
	                                       b->opt->general ? 1 : b->n);
	/* Tiles lie at multiples of their width, wherever the pass begins: there may be one more of them than tokens
	 * fill. */
	uint32_t tiles = key.tile_n > 1 ? (b->n + 2 * key.tile_n - 2) / key.tile_n : b->n;
	uint64_t *a = op(b, &key, 0, (int64_t)tiles * s->kv_heads);
	a[ATTENTION_Q] = address(b->buf->qr);
	a[ATTENTION_KCACHE] = address(kcache);
	a[ATTENTION_VCACHE] = address(vcache);
	a[ATTENTION_OUT] = address(b->buf->ao);
	a[ATTENTION_CHUNK_BYTES] = b->kv->chunk_bytes;
	a[ATTENTION_SLIDING] = s->sliding_window;
	a[ATTENTION_COLUMNS] = b->n;
	position_slot(b, &a[ATTENTION_POS0]);
	last_op(b)->uneven = b->n > 1;
	last_op(b)->fused_units =
		b->n == 1; /* a head of the cache, with its queries: written, then read by the same worker */
	barrier(b);
}

/* act(gate) * up into h, in one op when the matrices are alike. */
static void gate_and_up(struct builder *b, const struct weights_layer *l, enum key_act act)
{
	const struct plan_buffers *f = b->buf;
	uint32_t out = wants_int8(b, l->down.type) ? KEY_QUANTISED_OUT : 0;
	struct matmul m = { .w = &l->gate,
		            .bias = l->gate_bias,
		            .in = { f->xn, f->xnq, f->xns },
		            .out = f->h,
		            .outq = f->hq,
		            .outs = f->hs,
		            .tokens = b->n };

	if (weights_gate_up_interleaved(l->gate.type, l->up.type)) {
		m.w2 = &l->up;
		m.bias2 = l->up_bias;
		m.act = act;
		m.flags = KEY_PAIR | out;
		matmul(b, &m);
	} else {
		matmul(b, &m);
		wait_here(b); /* for the gate; the input stays, turned as it is */
		m.w = &l->up;
		m.bias = l->up_bias;
		m.act = act;
		m.flags = KEY_GATED | out;
		matmul(b, &m);
	}
	barrier(b);
}

static void layer(struct builder *b, const struct weights *w, uint32_t i)
{
	const struct weights_layer *l = &w->layer[i];
	const struct plan_buffers *f = b->buf;
	const uint8_t *kcache = b->kv->base + i * b->kv->layer_bytes, *vcache = kcache + b->kv->k_bytes;
	const struct input xn = { f->xn, f->xnq, f->xns }, ao = { f->ao, f->aoq, f->aos }, h = { f->h, f->hq, f->hs };
	uint32_t n = b->n;

	norm(b, f->x, l->attn_norm, wants_int8(b, l->q.type) || wants_int8(b, l->k.type) || wants_int8(b, l->v.type), n,
	     f->xn, f->xnq, f->xns);
	matmul(b, &(struct matmul){ .w = &l->q, .bias = l->q_bias, .in = xn, .out = f->q, .tokens = n });
	matmul(b, &(struct matmul){ .w = &l->k, .bias = l->k_bias, .in = xn, .out = f->k, .tokens = n });
	matmul(b, &(struct matmul){ .w = &l->v, .bias = l->v_bias, .in = xn, .out = f->v, .tokens = n });
	barrier(b);
	rotate_and_store(b, l, kcache, vcache);
	attention(b, i, kcache, vcache);
	if (wants_int8(b, l->o.type))
		quantise(b, f->ao, f->aoq, f->aos, l->o.k);
	matmul(b, &(struct matmul){
			  .w = &l->o, .bias = l->o_bias, .in = ao, .out = f->x, .flags = KEY_RESIDUAL, .tokens = n });
	barrier(b);
	norm(b, f->x, l->ffn_norm, wants_int8(b, l->gate.type) || wants_int8(b, l->up.type), n, f->xn, f->xnq, f->xns);
	gate_and_up(b, l, ACT_SILU);
	matmul(b,
	       &(struct matmul){
		       .w = &l->down, .bias = l->down_bias, .in = h, .out = f->x, .flags = KEY_RESIDUAL, .tokens = n });
	barrier(b);
}

static void logits(struct builder *b, const struct weights *w, enum plan_logits which)
{
	const struct plan_buffers *f = b->buf;
	uint32_t n = which == PLAN_ALL_LOGITS ? b->n : 1, first = b->n - n;

	assert(n <= f->logit_tokens);
	norm(b, f->x + first * numerics_pad(b->spec->hidden), w->final_norm, wants_int8(b, w->lm_head.type), n, f->xn,
	     f->xnq, f->xns);
	matmul(b, &(struct matmul){ .w = &w->lm_head, .in = { f->xn, f->xnq, f->xns }, .out = f->logits, .tokens = n });
	barrier(b);
}

/* Where a worker may go on only when all have come so far. */
static void cut_stages(struct plan *p)
{
	p->stage[0] = 0;
	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *l = &p->op[i];
		bool last = i + 1 == p->n_ops, chained = !last && l->fused_units && l[1].fused_units;
		if (last || (l->barrier && !chained))
			p->stage[++p->n_stages] = (uint32_t)(i + 1);
	}
}

/* The lists, but for the kernels, which the tuner makes longer, in one chunk; none of it cleared: entries are, when
 * they come into use. */
static bool make_room(struct builder *b)
{
	struct plan *p = b->p;
	size_t n = b->launch_capacity, layers = b->spec->layers;

	p->kernel = malloc(n * sizeof *p->kernel);
	p->op = malloc(n * (sizeof *p->op + ARGS_MOST * sizeof *p->args) + b->position_capacity * sizeof *p->position +
	               (layers + 3) * sizeof *p->section + (n + 1) * sizeof *p->stage);
	if (!p->kernel || !p->op)
		return false;
	p->args = (uint64_t *)(p->op + n);
	p->position = (uint64_t **)(p->args + n * ARGS_MOST);
	p->section = (uint32_t *)(p->position + b->position_capacity);
	p->stage = p->section + layers + 3;
	return true;
}

uint64_t plan_buffer_bytes(const struct model_spec *s, enum plan_width width, size_t element, uint32_t tokens)
{
	uint64_t hidden = numerics_pad(s->hidden), queries = numerics_pad((uint64_t)s->heads * s->head_dim),
		 keys = numerics_pad((uint64_t)s->kv_heads * s->head_dim), ffn = numerics_pad(s->ffn),
		 widest = hidden > queries ? hidden : queries;
	const uint64_t elements[] = {
		[PLAN_ONE] = 1,
		[PLAN_ANGLES] = s->head_dim / 2,
		[PLAN_HIDDEN] = hidden,
		[PLAN_QUERIES] = queries,
		[PLAN_KEYS] = keys,
		[PLAN_FFN] = ffn,
		[PLAN_WIDEST] = widest > ffn ? widest : ffn
	};

	return tokens * (element == sizeof(struct activation_block) ? elements[width] / 32 : elements[width]) * element;
}

bool plan_build(struct plan *p, const struct model_spec *spec, const struct weights *w,
                const struct plan_buffers *buffers, const struct plan_cache *kv, uint32_t tokens,
                enum plan_logits which, const struct plan_options *opt, struct error *err)
{
	struct builder b = { .p = p, .spec = spec, .buf = buffers, .kv = kv, .opt = opt, .n = tokens };

	assert(tokens >= 1 && tokens <= buffers->tokens);
	memset(p, 0, sizeof *p);
	p->tokens = tokens;
	p->logits = which;
	b.launch_capacity = (size_t)spec->layers * LAUNCHES_PER_LAYER + LAUNCHES_OUTSIDE;
	b.position_capacity = (size_t)spec->layers * 2;
	if (!make_room(&b)) {
		plan_free(p);
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %u layers", spec->layers);
	}
	next_part(&b);
	embed(&b, w);
	for (uint32_t i = 0; i < spec->layers; i++) {
		next_part(&b);
		layer(&b, w, i);
	}
	if (which != PLAN_NO_LOGITS) {
		next_part(&b);
		logits(&b, w, which);
	}
	p->section[p->n_sections] = (uint32_t)p->n_ops;
	p->n_args = b.args_used;
	cut_stages(p);
	return true;
}

bool plan_outline(struct plan *p, const struct model_spec *spec, const struct weights *w, enum dtype kv,
                  uint32_t tokens, enum plan_logits logits, const struct plan_options *opt, struct error *err)
{
	static struct activation_block nothing;
	void *there = &nothing; /* all operands at one address, which is one's own */
	const struct plan_buffers buffers = {
		.tokens = UINT32_MAX,
		.logits = there,
		.logit_tokens = UINT32_MAX,
#define X(type, name, width, memory) .name = there,
		PLAN_BUFFERS(X)
#undef X
	};
	const struct plan_cache cache = { .type = kv, .base = there };

	return plan_build(p, spec, w, &buffers, &cache, tokens, logits, opt, err);
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

static bool note_matmul(struct plan_widths *seen, const struct weights_matrix *w, uint32_t tokens,
                        const struct plan_options *opt)
{
	struct tiles t[CUTS_MOST];
	bool is_new = false;

	for (unsigned n = cut_matmul(opt, PLAN_LAST_LOGITS, w, 0, tokens, t), i = 0; i < n; i++)
		is_new |= note(&seen->matmul[w->type][t[i].flags == KEY_WIDE], t[i].width);
	return is_new;
}

bool plan_has_new_widths(struct plan_widths *seen, const struct model_spec *spec, const struct weights *w,
                         uint32_t tokens, const struct plan_options *opt)
{
	bool is_new = false, done[DTYPE_COUNT] = { false };

	if (opt->target->has_mma) /* those ask for a matrix's size, too */
		return true;
	for (uint32_t i = 0; i < spec->layers; i++) {
		const struct weights_layer *l = &w->layer[i];
		for (int m = 0; m < MATRIX_SLOTS; m++) {
			if (!l->matrix[m].packed || done[l->matrix[m].type])
				continue;
			done[l->matrix[m].type] = true;
			is_new |= note_matmul(seen, &l->matrix[m], tokens, opt);
		}
	}
	return note(&seen->attention,
	            template_attention_tile_n(opt->target, spec->heads, spec->kv_heads, spec->head_dim, tokens)) ||
	       is_new;
}

void plan_set_position(struct plan *p, uint64_t position)
{
	for (size_t i = 0; i < p->n_positions; i++)
		*p->position[i] = position;
}

void plan_free(struct plan *p)
{
	free(p->kernel);
	free(p->op); /* and all that lies behind */
	memset(p, 0, sizeof *p);
}
