/* runtime/plan/plan_dataflow.c - plans whose kernels await each other's results: which models have one, and where in
 * the region a value lies.
 *
 * Owns: plan_buffers.dataflow. Every value that an op gives has bytes of its own there, for a word there is written
 * once in a run. An op awaits when all that it reads of other ops is in there, and given; what has no awaited
 * form stands behind a barrier as ever, and may read there. An editor keeps that nothing in the region is written twice
 * and that nobody but ops that give write there (tests/runtime/t_dataflow.c).
 */
#include <assert.h>

#include "kernels-templates/signature.h"
#include "runtime/plan/lower.h"

enum { ROUND = 256 };

static uint64_t rounded(uint64_t bytes) { return (bytes + ROUND - 1) / ROUND * ROUND; }

static uint64_t floats_bytes(uint64_t width, uint32_t tokens)
{
	return rounded(tokens * numerics_pad(width) * sizeof(float));
}

/* The bytes of int8 blocks; those, and their scales behind them. */
static uint64_t int8_bytes(uint64_t width, uint32_t tokens) { return rounded(tokens * numerics_pad(width)); }

static uint64_t blocks_bytes(uint64_t width, uint32_t tokens)
{
	uint64_t q = int8_bytes(width, tokens);

	return q + rounded(q / 32 * sizeof(struct activation_block));
}

/* Floats or int8 blocks. */
static uint64_t either_bytes(uint64_t width, uint32_t tokens)
{
	uint64_t floats = floats_bytes(width, tokens), blocks = blocks_bytes(width, tokens);

	return floats > blocks ? floats : blocks;
}

/* What of a model's description has no form that awaits. */
static bool is_plain(const struct model_spec *s)
{
	bool attends = true;

	for (uint32_t i = 0; s->layer_mixer && i < s->layers; i++)
		attends = attends && plan_layer_attends(s, i);
	return attends && s->form == FORM_LLAMA && !s->encodes && !s->experts && !s->latent.rank && !s->parallel &&
	       !s->one_part && !s->layer_input && !s->head_weights && s->act != MODEL_XIELU && !s->attends_beside &&
	       !s->residual_scale.given && !s->embed_scale.given;
}

/* Of all layers; more would take too long to empty before each run. A barrier for each stage takes longer than this. */
enum { RECORDS_MAX = 128 << 20 };

static uint64_t records_bytes(const struct model_spec *s, uint64_t context)
{
	return rounded(plan_record_bytes(s, context));
}

static uint64_t layer_bytes(const struct model_spec *s, uint32_t layer, uint32_t n)
{
	const struct model_sizes z = model_sizes_of(s, layer);
	const uint64_t queries = (uint64_t)model_heads_of(s, layer) * z.head_dim,
		       keys = (uint64_t)z.kv_heads * z.head_dim, norm = n > 1 ? blocks_bytes(s->hidden, n) : 0;

	return 2 * norm + 2 * floats_bytes(s->hidden, n) + floats_bytes(queries, n) + 2 * floats_bytes(keys, n) +
	       either_bytes(queries, n) + either_bytes(s->ffn, n);
}

uint64_t plan_dataflow_bytes(const struct model_spec *s, uint64_t context, uint32_t tokens)
{
	const uint32_t n = tokens;
	const uint64_t norm = n > 1 ? blocks_bytes(s->hidden, n) : 0,
		       records = s->layers * n * records_bytes(s, context);
	uint64_t bytes = floats_bytes(s->hidden, n) + norm + records;

	for (uint32_t i = 0; i < s->layers; i++)
		bytes += layer_bytes(s, i, n);
	return is_plain(s) && records <= RECORDS_MAX ? bytes : 0;
}

uint32_t plan_dataflow_tokens(const struct model_spec *s, uint64_t context, uint32_t tokens)
{
	uint32_t n = tokens < PLAN_DATAFLOW_MAX ? tokens : PLAN_DATAFLOW_MAX;

	while (n > 1 && !plan_dataflow_bytes(s, context, n))
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
unsigned plan_dataflow_tiles(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags,
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
	return plan_dataflow_tiles(b, w, flags, tokens, t) > 0;
}

static bool layer_awaits(const struct plan_builder *b, const struct weights_layer *l)
{
	uint32_t norm = b->n > 1 ? 0 : KEY_NORM_IN, pair = l->gate.packed ? norm | KEY_PAIR : norm, n = b->n;

	return l->q.packed && l->k.packed && l->v.packed && l->o.packed && l->up.packed && l->down.packed &&
	       l->attn_norm && l->ffn_norm && !l->q_gate.packed && !l->head_gate.packed && !l->attn_sub_norm &&
	       !l->q_row_norm && !l->k_row_norm && !l->router.packed && !l->attn_post_norm && !l->ffn_post_norm &&
	       !l->input_gate.packed && !l->layer_scale &&
	       (!l->gate.packed || weights_gate_up_interleaved(l->gate.type, l->up.type)) &&
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
	uint64_t bytes = plan_dataflow_bytes(b->spec, b->buf->context, b->n);

	return b->buf->dataflow && bytes && bytes <= b->buf->dataflow_room;
}

bool plan_hands(const struct plan_builder *b)
{
	const struct weights *w = b->w;
	const bool several = b->n > 1;
	bool all = b->opt->dataflow && !b->opt->adapts && b->n <= PLAN_DATAFLOW_MAX && b->opt->target->lane_bytes &&
	           is_plain(b->spec) && has_room(b) && awaits(b, &w->lm_head, several ? 0 : KEY_NORM_IN, b->n) &&
	           (!several || (!b->opt->general && rows_are_one(b) && b->p->logits != PLAN_ALL_NORMED &&
	                         template_norm_awaits(b->opt->target, b->spec->hidden)));

	for (uint32_t i = 0; all && i < b->spec->layers; i++)
		all = layer_awaits(b, &w->layer[i]) && (!several || plan_attends_several(b, i));
	return all;
}

/* ---- where */

static uint8_t *fresh(struct plan_builder *b, uint64_t bytes)
{
	uint8_t *at = b->buf->dataflow + b->dataflow_used;

	b->dataflow_used += bytes;
	assert(b->dataflow_used <= b->buf->dataflow_room);
	return at;
}

static void give_blocks(struct plan_builder *b, graph_ref v)
{
	const uint64_t width = graph_value(b->g, v)->width;
	uint8_t *at = fresh(b, blocks_bytes(width, b->n));

	b->of[v].given[FORM_INT8] = at;
	b->of[v].given[FORM_SCALES] = at + int8_bytes(width, b->n);
}

static void give_floats(struct plan_builder *b, graph_ref v)
{
	b->of[v].given[FORM_FLOATS] = fresh(b, floats_bytes(graph_value(b->g, v)->width, b->n));
}

/* Attention leaves records, which are merged; else it has no form that gives. */
static void give_attended(struct plan_builder *b, graph_ref v, const struct graph_node *n)
{
	const struct plan_attention a = plan_attention_of(b, n);

	if (!plan_merges(b, a))
		return;
	if (plan_quantises_inside(b, a))
		give_blocks(b, v);
	else
		give_floats(b, v);
	b->of[v].records = fresh(b, b->n * records_bytes(b->spec, b->buf->context));
}

void plan_dataflow_put(struct plan_builder *b, graph_ref v)
{
	const struct graph_node *n = graph_producer(b->g, v);

	if (!plan_node_of(b, n)->awaited)
		return;
	switch ((enum graph_kind)n->kind) {
	case NODE_EMBED:
	case NODE_ADD: give_floats(b, v); break;
	case NODE_MATMUL: (b->of[v].int8 ? give_blocks : give_floats)(b, v); break;
	case NODE_HEAD:
	case NODE_NORM:
		if (b->n > 1 && (n->kind == NODE_NORM || v == n->out[1]))
			give_blocks(b, v);
		break;
	case NODE_ATTEND: give_attended(b, v, n); break;
	default: break;
	}
}

/* ---- who waits for himself */

static bool in_region(const struct plan *p, uint64_t address)
{
	return address - plan_address(p->dataflow) < p->dataflow_bytes;
}

/* All that it awaits. */
static bool reads_given(const struct plan *p, const struct plan_op *op)
{
	const struct key *key = &p->kernel[op->kernel].key;

	for (uint32_t slot = 0; slot < op->n_args; slot++) {
		const uint32_t access = kernel_use(key, slot).access;
		if (access & KERNEL_READ && access & KERNEL_DATAFLOW && !in_region(p, op->arg[slot]))
			return false;
	}
	return true;
}

void plan_dataflow_end(struct plan_builder *b)
{
	struct plan *p = b->p;

	if (!b->dataflow_used)
		return;
	p->dataflow = b->buf->dataflow;
	p->dataflow_bytes = b->dataflow_used;
	p->dataflow_room = b->buf->dataflow_room;
	for (size_t i = 0; i < p->n_ops; i++)
		p->op[i].awaits = p->kernel[p->op[i].kernel].key.flags & KEY_AWAITED && reads_given(p, &p->op[i]);
}
