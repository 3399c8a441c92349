/* runtime/plan/plan_inputs.c - the steps of embeddings: the stream's tokens, and what layers get of each token's own.
 *
 * Owns: which kernels these are, and where they find and leave what they work on (PLAN_BUFFERS).
 */
#include "base/math_host.h"
#include "runtime/plan/plan_build.h"

static void embed(struct plan_builder *b, const struct weights_matrix *w, float *out)
{
	struct key key = plan_key(b, KEY_EMBED);

	key.weight = key_type(w->type);
	key.rows = (uint32_t)w->rows;
	key.k = (uint32_t)w->k;
	key.flags = b->handed ? KEY_AWAITED : 0;
	uint64_t *a = plan_add_op(b, &key, 0, b->n);
	a[EMBED_W] = plan_address(w->packed);
	a[EMBED_IDS] = plan_address(b->buf->ids);
	a[EMBED_OUT] = plan_address(out);
	plan_last_op(b)->serial = b->n == 1;
}

/* For all layers at once. */
static void layer_inputs(struct plan_builder *b, const struct weights *w)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *buf = b->buf;
	struct key key = plan_key(b, KEY_LAYER_INPUTS);

	embed(b, &w->input_embed, buf->input_e);
	struct activations in = step_input(b, NULL, plan_wants_int8(b, &w->input_proj));
	step_matmul(b, &(struct matmul){ .w = &w->input_proj, .in = in, .out = buf->input_x, .tokens = b->n });
	key.k = s->layer_input;
	key.rows = (uint32_t)(w->input_proj.rows / s->layer_input);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * key.rows);
	a[LAYER_INPUTS_X] = plan_address(buf->input_x);
	a[LAYER_INPUTS_E] = plan_address(buf->input_e);
	a[LAYER_INPUTS_WEIGHT] = plan_address(w->input_norm);
	a[LAYER_INPUTS_OUT] = plan_address(buf->inputs);
	a[LAYER_INPUTS_EPS] = plan_f32_slot(s->norm_eps * (float)s->hidden);
	a[LAYER_INPUTS_BY] = plan_f32_slot((float)math_host_sqrt((double)s->layer_input));
	a[LAYER_INPUTS_COLUMNS] = b->n;
}

void step_embed(struct plan_builder *b, const struct weights *w)
{
	const struct model_spec *s = b->spec;

	embed(b, &w->embed, b->buf->x);
	if (s->embed_scale.given)
		step_scale(b, b->buf->x, b->buf->x, b->n, s->hidden, plan_f32_slot(s->embed_scale.value), 0);
	if (s->layer_input)
		layer_inputs(b, w);
}

/* The gate's results times the layer's inputs, through a matrix into the stream. */
static void add_input(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	const struct model_spec *s = b->spec;
	struct activations in = step_input(b, NULL, plan_wants_int8(b, &l->input_gate)), gated = plan_gated(b);
	const float *inputs = b->buf->inputs + (uint64_t)layer * b->n * numerics_pad(s->layer_input);

	step_matmul(b,
	            &(struct matmul){
			    .w = &l->input_gate, .in = in, .out = gated.x, .tokens = b->n, .act = plan_act(s->act) });
	step_scale(b, gated.x, gated.x, b->n, s->layer_input, plan_address(inputs), KEY_PAIR);
	if (plan_wants_int8(b, &l->input_out))
		step_quantise(b, gated, s->layer_input);
	step_add_product(b, &l->input_out, NULL, gated, l->input_post_norm);
}

void step_layer_end(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	if (l->input_gate.packed)
		add_input(b, l, layer);
	if (l->layer_scale)
		step_scale(b, b->buf->x, b->buf->x, b->n, b->spec->hidden, plan_address(l->layer_scale), KEY_GATED);
}
