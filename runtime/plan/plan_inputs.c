/* runtime/plan/plan_inputs.c - rules of embeddings: rows of a matrix, and what layers get of each token's own. */
#include "base/math_host.h"
#include "runtime/plan/lower.h"

/* Rows of a level of a picture's features. */
static const float *shown_rows(const struct plan_builder *b, uint32_t level)
{
	return b->buf->shown + (uint64_t)level * b->buf->tokens * numerics_pad(b->spec->hidden);
}

void lower_shown(struct plan_builder *b, const struct graph_node *n)
{
	if (b->opt->shows)
		plan_scale(b, shown_rows(b, n->rows), plan_floats(b, plan_added_to(b, n)), b->n, b->spec->hidden,
		           plan_f32_slot(1), KEY_RESIDUAL);
}

bool plan_is_shown(const struct plan_builder *b, graph_ref v)
{
	const struct graph_node *n = graph_producer(b->g, v);

	return b->opt->shows && n && n->kind == NODE_EMBED && n->rows == IDS_TOKENS &&
	       graph_matrix_of(b->g, n->in[IN_W]) == &b->w->embed;
}

void lower_embed(struct plan_builder *b, const struct graph_node *n)
{
	if (plan_is_shown(b, n->out[0])) {
		plan_scale(b, shown_rows(b, 0), plan_floats(b, n->out[0]), b->n, b->spec->hidden, plan_f32_slot(1), 0);
		return;
	}

	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);
	struct key key = plan_key(b, KEY_EMBED);

	key.weight = key_type(w->type);
	key.rows = (uint32_t)w->rows;
	key.k = (uint32_t)w->k;
	key.flags = plan_node_of(b, n)->awaited ? KEY_AWAITED : 0;
	uint64_t *a = plan_add_op(b, &key, 0, b->n);
	a[EMBED_W] = plan_address(w->packed);
	/* Which list of ids: that of the tokens, or of their types or positions behind it. */
	a[EMBED_IDS] = plan_address(n->rows ? b->buf->ids + (uint64_t)n->rows * b->buf->tokens : b->buf->ids);
	a[EMBED_OUT] = plan_address(plan_floats(b, n->out[0]));
	plan_last_op(b)->serial = b->n == 1;
}

/* For all layers at once. */
void lower_layer_inputs(struct plan_builder *b, const struct graph_node *n)
{
	struct key key = plan_key(b, KEY_LAYER_INPUTS);

	key.k = n->rows;
	key.rows = (uint32_t)(graph_value(b->g, n->in[IN_X])->width / n->rows);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * key.rows);
	a[LAYER_INPUTS_X] = plan_address(plan_floats(b, n->in[IN_X]));
	a[LAYER_INPUTS_E] = plan_address(plan_floats(b, n->in[IN_W2]));
	a[LAYER_INPUTS_WEIGHT] = plan_address(graph_vector_of(b->g, n->in[IN_W]));
	a[LAYER_INPUTS_OUT] = plan_address(plan_floats(b, n->out[0]));
	a[LAYER_INPUTS_EPS] = plan_f32_slot(n->number);
	a[LAYER_INPUTS_BY] = plan_f32_slot((float)math_host_sqrt((double)n->rows));
	a[LAYER_INPUTS_COLUMNS] = b->n;
}
