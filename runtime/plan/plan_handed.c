/* runtime/plan/plan_handed.c - plans whose kernels hand over while they run: which models have one, and where in the
 * region what is handed over lies.
 *
 * Owns: plan_buffers.handed. Every layer has buffers of its own in it, one behind the other, for a word there is
 * written once in a run. An op awaits when all that it reads of other ops is in there, and given; what has no awaited
 * form stands behind a barrier as ever, and may read there. An editor keeps that nothing in the region is written twice
 * and that nobody but ops that give write there (tests/runtime/t_handed.c).
 */
#include "kernels-templates/signature.h"
#include "runtime/plan/lower.h"

enum { ROUND = 256 };

static uint64_t rounded(uint64_t bytes) { return (bytes + ROUND - 1) / ROUND * ROUND; }

static uint64_t width_bytes(const struct model_spec *s, enum plan_width width, uint32_t tokens)
{
	return rounded(plan_buffer_bytes(s, width, sizeof(float), tokens));
}

/* The bytes of int8 blocks; those, and their scales behind them. */
static uint64_t int8_bytes(const struct model_spec *s, enum plan_width width, uint32_t tokens)
{
	return rounded(plan_buffer_bytes(s, width, sizeof(int8_t), tokens));
}

static uint64_t blocks_bytes(const struct model_spec *s, enum plan_width width, uint32_t tokens)
{
	uint64_t q = int8_bytes(s, width, tokens);

	return q + rounded(q / 32 * sizeof(struct activation_block));
}

/* Floats or int8 blocks. */
static uint64_t either_bytes(const struct model_spec *s, enum plan_width width, uint32_t tokens)
{
	uint64_t floats = width_bytes(s, width, tokens), blocks = blocks_bytes(s, width, tokens);

	return floats > blocks ? floats : blocks;
}

/* What of a model's description has no form that awaits. */
static bool is_plain(const struct model_spec *s)
{
	bool attends = true;

	for (uint32_t i = 0; s->layer_mixer && i < s->layers; i++)
		attends = attends && plan_layer_attends(s, i);
	return attends && s->form == FORM_LLAMA && !s->experts && !s->latent.rank && !s->parallel && !s->one_part &&
	       !s->layer_input && !s->residual_scale.given && !s->embed_scale.given;
}

/* Of all layers; more would take too long to empty before each run. A barrier for each stage takes longer than this. */
enum { RECORDS_MOST = 128 << 20 };

static uint64_t records_bytes(const struct model_spec *s, uint64_t context)
{
	return rounded(plan_record_bytes(s, context));
}

uint64_t plan_handed_bytes(const struct model_spec *s, uint64_t context, uint32_t tokens)
{
	const uint32_t n = tokens;
	uint64_t norm = n > 1 ? blocks_bytes(s, PLAN_HIDDEN, n) : 0;
	uint64_t layer =
		2 * norm + 2 * width_bytes(s, PLAN_HIDDEN, n) + width_bytes(s, PLAN_QUERIES, n) +
		2 * width_bytes(s, PLAN_KEYS, n) + either_bytes(s, PLAN_MIXED, n) + either_bytes(s, PLAN_FFN, n);

	uint64_t records = s->layers * n * records_bytes(s, context);

	return is_plain(s) && records <= RECORDS_MOST
	               ? width_bytes(s, PLAN_HIDDEN, n) + norm + s->layers * layer + records
	               : 0;
}

uint32_t plan_handed_tokens(const struct model_spec *s, uint64_t context, uint32_t tokens)
{
	uint32_t n = tokens < PLAN_HANDED_MOST ? tokens : PLAN_HANDED_MOST;

	while (n > 1 && !plan_handed_bytes(s, context, n))
		n--;
	return n;
}

/* ---- whether */

/* From so many tokens on a product of matrices takes less time than dot products do. */
enum { MATRICES_FROM = 5 };

static bool is_awaited(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags, uint32_t tokens)
{
	const struct key key = plan_matmul_key(b->opt, w, flags | KEY_AWAITED, tokens);

	return !matmul_recipe(&key, b->opt->target).refusal;
}

/* What does not fit a group's shared bytes is done in two tiles, each of half an operand's columns. */
unsigned plan_handed_tiles(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags,
                           uint32_t tokens, struct plan_tiles out[2])
{
	enum { HALF = 8 };
	const bool by_matrices = tokens >= MATRICES_FROM && plan_widths_of(b->opt, w, flags, tokens, false).products;

	out[0] = (struct plan_tiles){ .width = tokens, .tiles = 1, .flags = by_matrices ? KEY_MMA : 0 };
	if (by_matrices && is_awaited(b, w, flags | KEY_MMA, tokens))
		return 1;
	if (by_matrices && tokens > HALF && is_awaited(b, w, flags | KEY_MMA, HALF)) {
		out[0].width = HALF;
		out[1] = (struct plan_tiles){ .first = HALF, .width = tokens - HALF, .tiles = 1, .flags = KEY_MMA };
		return 2;
	}
	out[0].flags = 0;
	return is_awaited(b, w, flags, tokens) ? 1 : 0;
}

static bool awaits(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags, uint32_t tokens)
{
	struct plan_tiles t[2];

	if (tokens > 1 && !plan_wants_int8(b, w)) /* floats of several tokens take less time by launches */
		return false;
	return plan_handed_tiles(b, w, flags, tokens, t) > 0;
}

static bool layer_awaits(const struct plan_builder *b, const struct weights_layer *l)
{
	uint32_t norm = b->n > 1 ? 0 : KEY_NORM_IN, pair = l->gate.packed ? norm | KEY_PAIR : norm, n = b->n;

	return l->q.packed && l->k.packed && l->v.packed && l->o.packed && l->up.packed && l->down.packed &&
	       l->attn_norm && l->ffn_norm && !l->q_gate.packed && !l->q_row_norm && !l->k_row_norm &&
	       !l->router.packed && !l->attn_post_norm && !l->ffn_post_norm && !l->input_gate.packed &&
	       !l->layer_scale && (!l->gate.packed || weights_gate_up_interleaved(l->gate.type, l->up.type)) &&
	       awaits(b, &l->q, norm, n) && awaits(b, &l->k, norm, n) && awaits(b, &l->v, norm, n) &&
	       awaits(b, &l->up, pair, n) && awaits(b, &l->o, KEY_RESIDUAL, n) && awaits(b, &l->down, KEY_RESIDUAL, n);
}

/* Rows whose logits are wanted that stand apart would have their norms behind a barrier. */
static bool rows_are_one(const struct plan_builder *b)
{
	uint32_t runs = 0;

	for (uint32_t i = 0; i < b->spans; i++)
		runs += b->span[i].rows && (!i || b->span[i].rows < b->span[i].tokens || !b->span[i - 1].rows);
	return runs <= 1;
}

static bool has_room(const struct plan_builder *b)
{
	uint64_t bytes = plan_handed_bytes(b->spec, b->buf->context, b->n);

	return b->buf->handed && bytes && bytes <= b->buf->handed_room;
}

bool plan_hands(const struct plan_builder *b, const struct weights *w)
{
	const bool several = b->n > 1;
	bool all = b->opt->handed && b->n <= PLAN_HANDED_MOST && b->opt->target->lane_bytes && is_plain(b->spec) &&
	           has_room(b) && awaits(b, &w->lm_head, several ? 0 : KEY_NORM_IN, b->n) &&
	           (!several || (!b->opt->general && rows_are_one(b) && b->p->logits != PLAN_ALL_NORMED &&
	                         template_norm_awaits(b->opt->target, b->spec->hidden)));

	for (uint32_t i = 0; all && i < b->spec->layers; i++)
		all = layer_awaits(b, &w->layer[i]) && (!several || plan_attends_several(b, &w->layer[i], i));
	return all;
}

/* ---- where */

static float *fresh(struct plan_builder *b, enum plan_width width)
{
	uint64_t at = b->handed_used;

	b->handed_used += width_bytes(b->spec, width, b->n);
	return (float *)(void *)(b->own.handed + at);
}

static void fresh_blocks(struct plan_builder *b, enum plan_width width, int8_t **q, struct activation_block **s)
{
	uint8_t *at = b->own.handed + b->handed_used;

	b->handed_used += blocks_bytes(b->spec, width, b->n);
	*q = (int8_t *)at;
	*s = (struct activation_block *)(void *)(at + int8_bytes(b->spec, width, b->n));
}

void plan_handed_begin(struct plan_builder *b)
{
	b->own = b->plain = *b->buf;
	b->buf = &b->own;
	b->handed = true;
	b->own.x = fresh(b, PLAN_HIDDEN);
}

void plan_handed_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	if (!b->handed)
		return;
	const bool mixed = plan_merges(b, layer), quantised = plan_quantises_inside(b, l, layer);

	b->own.q = fresh(b, PLAN_QUERIES);
	b->own.k = fresh(b, PLAN_KEYS);
	b->own.v = fresh(b, PLAN_KEYS);
	if (plan_wants_int8(b, &l->down))
		fresh_blocks(b, PLAN_FFN, &b->own.hq, &b->own.hs);
	else
		b->own.h = fresh(b, PLAN_FFN);
	b->own.ao = b->plain.ao;
	b->own.aoq = b->plain.aoq;
	b->own.aos = b->plain.aos;
	b->own.records = b->plain.records;
	if (mixed && quantised)
		fresh_blocks(b, PLAN_MIXED, &b->own.aoq, &b->own.aos);
	else if (mixed)
		b->own.ao = fresh(b, PLAN_MIXED);
	if (mixed) {
		b->own.records = b->own.handed + b->handed_used;
		b->handed_used += b->n * records_bytes(b->spec, b->own.context);
	}
}

void plan_handed_norm(struct plan_builder *b)
{
	if (b->handed)
		fresh_blocks(b, PLAN_HIDDEN, &b->own.xnq, &b->own.xns);
}

float *plan_next_stream(struct plan_builder *b)
{
	if (b->handed)
		b->own.x = fresh(b, PLAN_HIDDEN);
	return b->own.x;
}

/* ---- who waits for himself */

static bool in_region(const struct plan *p, uint64_t address)
{
	return address - plan_address(p->handed) < p->handed_bytes;
}

/* All that it awaits. */
static bool reads_given(const struct plan *p, const struct plan_op *op)
{
	const struct key *key = &p->kernel[op->kernel].key;

	for (uint32_t slot = 0; slot < op->n_args; slot++) {
		const uint32_t access = kernel_use(key, slot).access;
		if (access & KERNEL_READ && access & KERNEL_HANDED && !in_region(p, op->arg[slot]))
			return false;
	}
	return true;
}

void plan_handed_end(struct plan_builder *b)
{
	struct plan *p = b->p;

	if (!b->handed)
		return;
	p->handed = b->own.handed;
	p->handed_bytes = b->handed_used;
	p->handed_room = b->own.handed_room;
	for (size_t i = 0; i < p->n_ops; i++)
		p->op[i].awaits = p->kernel[p->op[i].kernel].key.flags & KEY_AWAITED && reads_given(p, &p->op[i]);
}
