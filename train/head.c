/* train/head.c - the head of a model, and the cross entropy of each token, as a graph of tensors. */
#include <stdio.h>

#include "graph/draw.h"
#include "train/layer.h"

struct head_cut head_cut_of(const struct model *m, uint64_t chunk)
{
	const uint64_t vocab = m->spec.vocab, hidden = m->spec.hidden;
	const uint64_t min = (vocab + HEAD_CHUNKS_MAX - 1) / HEAD_CHUNKS_MAX, max = chunk / hidden;
	const uint64_t rows = vocab * hidden <= chunk ? vocab : max > min ? max : min;

	return (struct head_cut){ rows, (uint32_t)((vocab + rows - 1) / rows) };
}

struct heading {
	struct draw d;
	const struct model_spec *s;
	const struct model_tensor *head;
	tensor_value x, target, sum, own;
	tensor_value logits[HEAD_CHUNKS_MAX];
	struct head_cut cut;
	uint32_t rows;
};

static tensor_value plus(struct draw *d, tensor_value sum, tensor_value x)
{
	return sum ? draw_binary(d, OP_add, sum, x) : x;
}

/* Logits of all chunks, and their greatest number, rounded up, so that no derivative is due for it. */
static tensor_value logits(struct heading *h, const tensor_value head[])
{
	struct draw *d = &h->d;
	tensor_value max = 0;

	for (uint32_t i = 0; i < h->cut.chunks; i++) {
		tensor_value x = draw_dot(d, h->x, layer_unpacked(d, head[i], h->head), 1, 1, 0);
		if (h->s->logit_scale.given)
			x = draw_with(d, OP_mul, x, (double)h->s->logit_scale.value);
		h->logits[i] = x = layer_bounded(d, x, &h->s->logit_cap);
		const tensor_value here = draw_reduce(d, OP_reduce_max, x, 2, true);
		max = max ? draw_binary(d, OP_max, max, here) : here;
	}
	return draw_unary(d, OP_ceil, max);
}

/* Adds a chunk's powers, and the logit of the target if it is there. */
static void add_chunk(struct heading *h, uint32_t i, tensor_value max)
{
	struct draw *d = &h->d;
	const tensor_value x = h->logits[i], power = draw_unary(d, OP_exp, draw_binary(d, OP_sub, x, max));
	const struct shape s = { 2, { h->rows, head_chunk_rows(&h->cut, h->s->vocab, i) } };
	tensor_value id = draw_iota(d, JIT_TYPE_I32, &s, 1);

	if (i)
		id = draw_with(d, OP_add, id, (double)(i * h->cut.rows));
	const tensor_value is = draw_binary(d, OP_eq, id, draw_expand(d, h->target, 1));
	h->sum = plus(d, h->sum, draw_reduce(d, OP_reduce_sum, power, 2, true));
	h->own = plus(d, h->own, draw_reduce(d, OP_reduce_sum, draw_select(d, is, x, draw_number(d, 0, x)), 2, true));
}

bool head_draw(struct tensor_graph *g, const struct model *m, const struct head_cut *cut, uint32_t rows, bool packed,
               struct error *err)
{
	const struct model_spec *s = &m->spec;
	const struct shape stream = { 2, { rows, s->hidden } }, each = { 1, { rows } }, hidden = { 1, { s->hidden } };
	struct heading h = {
		.d = { .g = g, .err = err }, .s = s, .head = head_tensor_of(m), .cut = *cut, .rows = rows
	};
	struct draw *d = &h.d;
	tensor_value head[HEAD_CHUNKS_MAX];

	tensor_graph_init(g);
	const tensor_value x = tensor_graph_input(g, "x", JIT_TYPE_F32, &stream, err);
	h.target = tensor_graph_input(g, "target", JIT_TYPE_I32, &each, err);
	tensor_value by = tensor_graph_input(g, "norm", JIT_TYPE_F32, &hidden, err);
	const tensor_value bias = tensor_graph_input(g, "norm_bias", JIT_TYPE_F32, &hidden, err);
	for (uint32_t i = 0; i < h.cut.chunks; i++) {
		const uint64_t n = head_chunk_rows(&h.cut, s->vocab, i);
		struct shape shape = { 2, { n, s->hidden } };
		char name[24];
		snprintf(name, sizeof name, "head.%u", i);
		head[i] = packed ? layer_matrix_input(d, name, head_tensor_of(m), n, &shape)
		                 : tensor_graph_input(g, name, JIT_TYPE_F32, &shape, err);
	}
	by = s->final_norm.plus_one ? draw_with(d, OP_add, by, 1) : by;
	h.x = layer_normed(d, s, x, by, s->norm_eps);
	if (s->final_norm_bias.bytes)
		h.x = draw_binary(d, OP_add, h.x, bias);
	const tensor_value max = logits(&h, head);
	for (uint32_t i = 0; i < h.cut.chunks; i++)
		add_chunk(&h, i, max);
	const tensor_value all = draw_binary(d, OP_add, draw_unary(d, OP_log, h.sum), max);
	const tensor_value loss = draw_squeeze(d, draw_binary(d, OP_sub, all, h.own), 1);
	return loss && tensor_graph_output(g, "loss", loss, err);
}
