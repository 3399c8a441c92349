/* train/net.c - rows of tokens through a model and back. */
#include "train/net.h"

#include <stdlib.h>
#include <string.h>

#include "train/each.h"
#include "train/net_parts.h"

static bool is_cancelled(const struct net *n, struct error *err)
{
	return cancel_requested(n->cancel) && !cancel_error(err);
}

/* ---- forward */

static bool embed_row(const struct net *n, const struct net_row *row, struct error *err)
{
	const struct model_spec *s = &n->m->spec;

	for (uint32_t t = 0; t < n->o.tokens; t++) {
		float *to = n->stream + (size_t)t * s->hidden;
		if (n->embed_rows)
			memcpy(to, n->embed_rows + (size_t)row->ids[t] * s->hidden, s->hidden * sizeof *to);
		else if (!train_read_row(n->m, &s->embed, (uint64_t)row->ids[t], to, err))
			return false;
		const float *position =
			n->position_rows ? n->position_rows + (size_t)row->position[t] * s->hidden : NULL;
		for (uint32_t i = 0; position && i < s->hidden; i++)
			to[i] += position[i];
		for (uint32_t i = 0; s->embed_scale.given && i < s->hidden; i++)
			to[i] *= s->embed_scale.value;
	}
	return true;
}

/* Copies the cosines and sines of the positions, by which this layer rotates. */
static void copy_angles(const struct net *n, const struct net_row *row, uint32_t layer)
{
	const struct model_spec *s = &n->m->spec;
	const enum model_rotation which =
		s->layer_rotation ? (enum model_rotation)s->layer_rotation[layer] : ROTATION_MAIN;
	const size_t half = s->head_dim / 2;

	if (which == ROTATION_NONE)
		return;
	for (uint32_t t = 0; t < n->o.tokens; t++) {
		const float *from = n->angle[which] + (size_t)row->position[t] * half;
		memcpy(n->cosine + t * half, from, half * sizeof *from);
		memcpy(n->sine + t * half, from + n->o.tokens * half, half * sizeof *from);
	}
}

static uint64_t stream_size(const struct net *n) { return (uint64_t)n->o.tokens * n->m->spec.hidden; }

/* Binds what stays on the device, and lists what is copied: in[i] of those. */
static bool bind_inputs(const struct net *n, struct executable *x, uint32_t layer, const void **in, struct error *err)
{
	const struct net_class *c = &n->classes[n->class_of[layer]];
	const void *const copied[] = {
		[LAYER_STREAM] = n->stream + layer * stream_size(n),
		[LAYER_COS] = n->cosine,
		[LAYER_SIN] = n->sine,
		[LAYER_SEGMENT] = n->segment,
	};

	for (uint32_t i = 0; i < c->graph.inputs; i++) {
		const struct net_binding *p = &n->binding[layer][i];
		in[i] = p->buffer ? NULL : copied[c->graph.input[i].kind];
		if (p->buffer && !executable_bind(x, i, p->buffer, 0, err))
			return false;
	}
	return true;
}

/* Masks of dropout for a layer, each made where its input is bound. */
static bool fill_dropout(const struct net *n, uint32_t layer, uint64_t number, struct error *err)
{
	const struct net_class *c = &n->classes[n->class_of[layer]];
	const double keep = 1 - n->o.dropout;
	jit_error e = { 0 };

	for (uint32_t i = 0; i < c->graph.inputs; i++) {
		const struct layer_input *in = &c->graph.input[i];
		if (in->kind != LAYER_DROPOUT)
			continue;
		const uint64_t size = shape_elements(&in->shape);
		const uint64_t stream = (number * n->m->spec.layers + layer) * TENSOR_SLOTS + in->slot;
		for (uint64_t k = 0; k < size; k++)
			n->scratch[k] =
				number == NET_NO_DROPOUT ||
						net_uniform(n->o.seed ^ NET_DROPOUT_SEED, stream, k) < 2 * keep - 1
					? (float)(number == NET_NO_DROPOUT ? 1 : 1 / keep)
					: 0;
		if (jit_buffer_write(n->binding[layer][i].buffer, 0, n->scratch, size * sizeof(float), &e) != JIT_OK)
			return error_set(err, ERROR_DEVICE, "%s", e.message);
	}
	return true;
}

static bool go_forward(struct net *n, const struct net_row *row, uint64_t number, bool keep, struct error *err)
{
	const void *in[LAYER_INPUTS_MAX];
	void *out[1 + SPLIT_KEPT_MAX];

	memcpy(n->segment, row->segment, n->o.tokens * sizeof *n->segment);
	for (uint32_t l = 0; l < n->m->spec.layers; l++) {
		const struct net_class *c = &n->classes[n->class_of[l]];
		struct executable *x = keep ? c->keeping : c->forward;
		copy_angles(n, row, l);
		out[0] = n->stream + (l + 1) * stream_size(n);
		for (uint32_t k = 0; keep && k < c->n_kept; k++)
			out[1 + k] = n->kept[l] + c->kept[k];
		if (is_cancelled(n, err) || (n->o.dropout > 0 && !fill_dropout(n, l, number, err)) ||
		    !bind_inputs(n, x, l, in, err) || !executable_run(x, in, out, err))
			return false;
	}
	return true;
}

/* ---- the loss, some tokens at a time */

static bool bind_head(const struct net *n, struct executable *head, struct error *err)
{
	const struct model_tensor *t = head_tensor_of(n->m);
	const uint64_t row = n->head_packed ? t->row_bytes : t->cols * sizeof(float);
	/* A bias that is not read still needs memory of its size. */
	bool ok = executable_bind(head, HEAD_NORM, n->final_norm, 0, err) &&
	          executable_bind(head, HEAD_NORM_BIAS, n->norm_bias ? n->norm_bias : n->final_norm, 0, err);

	for (uint32_t i = 0; ok && i < n->cut.chunks; i++)
		ok = executable_bind(head, HEAD_MATRIX + i, n->head, i * n->cut.rows * row, err);
	return ok;
}

/* gradient: of the stream behind the last layer, NULL: none is due. */
static bool run_head(struct net *n, const struct net_row *row, uint32_t first, float weight, float *gradient,
                     double *loss, struct error *err)
{
	const struct model_spec *s = &n->m->spec;
	const float *x = n->stream + s->layers * stream_size(n) + (size_t)first * s->hidden;
	int32_t *target = n->head_target;
	float *counts = n->head_counts, *each = n->head_loss_of;
	struct executable *head = gradient ? n->head_back : n->head_loss;
	float *matrix = n->scratch, *norm = n->scratch + (uint64_t)s->vocab * s->hidden, *bias = norm + s->hidden;
	bool any = false;

	for (uint32_t i = 0; i < n->head_rows; i++) {
		const bool is = first + i < n->o.tokens && row->counts[first + i];
		target[i] = is ? row->target[first + i] : 0;
		counts[i] = is ? weight : 0;
		any = any || is;
	}
	if (!any)
		return true;
	const void *in[HEAD_MATRIX + HEAD_CHUNKS_MAX + 1] = { [HEAD_X] = x, [HEAD_TARGET] = target };
	void *out[4 + HEAD_CHUNKS_MAX] = { each, gradient, n->norm_tensor ? norm : NULL,
		                           n->norm_bias_tensor ? bias : NULL };
	in[HEAD_MATRIX + n->cut.chunks] = counts;
	for (uint32_t i = 0; i < n->cut.chunks; i++)
		out[4 + i] = n->head_tensor || n->embed_tensor ? matrix + i * n->cut.rows * s->hidden : NULL;
	if (!bind_head(n, head, err) || !executable_run(head, in, out, err))
		return false;
	for (uint32_t i = 0; i < n->head_rows && first + i < n->o.tokens; i++)
		*loss += row->counts[first + i] ? (double)each[i] : 0;
	if (gradient && n->norm_tensor)
		each_add(n->pool, n->tensor[n->norm_tensor - 1].gradient, norm, s->hidden);
	if (gradient && n->norm_bias_tensor)
		each_add(n->pool, n->tensor[n->norm_bias_tensor - 1].gradient, bias, s->hidden);
	if (gradient && (n->head_tensor || n->embed_tensor))
		each_add(n->pool, n->head_tensor ? n->tensor[n->head_tensor - 1].gradient : n->tied_gradient, matrix,
		         (uint64_t)s->vocab * s->hidden);
	return true;
}

static bool go_through_head(struct net *n, const struct net_row *row, float weight, float *gradient, double *loss,
                            struct error *err)
{
	for (uint32_t first = 0; first < n->o.tokens; first += n->head_rows)
		if (is_cancelled(n, err) ||
		    !run_head(n, row, first, weight, gradient ? gradient + (size_t)first * n->m->spec.hidden : NULL,
		              loss, err))
			return false;
	return true;
}

/* ---- back */

/* The layer's gradients are added to those of its tensors; `gradient` of the stream behind it becomes that before it.
 */
static bool back_layer(struct net *n, uint32_t l, float *gradient, struct error *err)
{
	const struct net_class *c = &n->classes[n->class_of[l]];
	const void *in[LAYER_INPUTS_MAX + 1 + SPLIT_KEPT_MAX];
	void *out[LAYER_INPUTS_MAX] = { gradient };
	float *at = n->scratch;
	uint32_t outs = 1;

	if (!bind_inputs(n, c->backward, l, in, err))
		return false;
	in[c->graph.inputs] = gradient;
	for (uint32_t k = 0; k < c->n_kept; k++)
		in[c->graph.inputs + 1 + k] = n->kept[l] + c->kept[k];
	for (uint32_t i = 0; i < c->graph.inputs; i++)
		if (n->binding[l][i].tensor) {
			out[outs++] = at;
			at += n->tensor[n->binding[l][i].tensor - 1].n;
		}
	if (!executable_run(c->backward, in, out, err))
		return false;
	outs = 1;
	for (uint32_t i = 0; i < c->graph.inputs; i++)
		if (n->binding[l][i].tensor) {
			struct net_tensor *t = &n->tensor[n->binding[l][i].tensor - 1];
			each_add(n->pool, t->gradient, out[outs++], t->n);
		}
	return true;
}

static void back_embed(struct net *n, const struct net_row *row, const float *gradient)
{
	const struct model_spec *s = &n->m->spec;
	const float scale = s->embed_scale.given ? s->embed_scale.value : 1;

	for (uint32_t t = 0; t < n->o.tokens; t++) {
		float *to = n->tensor[n->embed_tensor - 1].gradient + (size_t)row->ids[t] * s->hidden;
		for (uint32_t i = 0; i < s->hidden; i++)
			to[i] += gradient[(size_t)t * s->hidden + i] * scale;
		float *at = n->position_tensor ? n->tensor[n->position_tensor - 1].gradient +
		                                         (s->positions_from + (size_t)row->position[t]) * s->hidden
		                               : NULL;
		for (uint32_t i = 0; at && i < s->hidden; i++)
			at[i] += gradient[(size_t)t * s->hidden + i] * scale;
	}
}

static bool go_back(struct net *n, const struct net_row *row, float *gradient, struct error *err)
{
	for (uint32_t l = n->m->spec.layers; l-- > 0;) {
		copy_angles(n, row, l);
		if (is_cancelled(n, err) || !back_layer(n, l, gradient, err))
			return false;
	}
	if (n->embed_tensor)
		back_embed(n, row, gradient);
	return true;
}

bool net_row(struct net *n, const struct net_row *row, float weight, uint64_t number, double *loss, struct error *err)
{
	float *gradient = n->stream + (n->m->spec.layers + (uint64_t)1) * stream_size(n);

	*loss = 0;
	if (!embed_row(n, row, err) ||
	    !go_forward(n, row, weight != 0 ? number : NET_NO_DROPOUT, weight != 0 && n->o.keep, err))
		return false;
	if (weight == 0)
		return go_through_head(n, row, 0, NULL, loss, err);
	memset(gradient, 0, stream_size(n) * sizeof *gradient);
	return go_through_head(n, row, weight, gradient, loss, err) && go_back(n, row, gradient, err);
}

/* ---- steps */

static bool run_norms(struct net *n, uint32_t l, struct error *err)
{
	const struct net_class *c = &n->classes[n->class_of[l]];
	const void *in[LAYER_INPUTS_MAX] = { NULL };
	void *out[LAYER_INPUTS_MAX];
	float *at = n->scratch;
	jit_error e = { 0 };

	for (uint32_t i = 0; i < c->norm_inputs; i++)
		if (!executable_bind(c->norms, i, n->binding[l][c->norm_input[i]].buffer, 0, err))
			return false;
	for (uint32_t i = 0; i < c->norm_outputs; i++) {
		out[i] = at;
		at += shape_elements(&c->graph.input[c->norm_of[i]].shape);
	}
	if (!executable_run(c->norms, in, out, err))
		return false;
	for (uint32_t i = 0; i < c->norm_outputs; i++)
		if (jit_buffer_write(n->binding[l][c->norm_of[i]].buffer, 0, out[i],
		                     shape_elements(&c->graph.input[c->norm_of[i]].shape) * sizeof(float), &e) !=
		    JIT_OK)
			return error_set(err, ERROR_DEVICE, "%s", e.message);
	return true;
}

bool net_begin(struct net *n, struct error *err)
{
	jit_error e = { 0 };

	for (uint32_t i = 0; i < n->tensors; i++) {
		struct net_tensor *t = &n->tensor[i];
		each_zero(n->pool, t->gradient, t->n);
		if (t->value != jit_buffer_memory(t->buffer) &&
		    jit_buffer_write(t->buffer, 0, t->value, t->n * sizeof *t->value, &e) != JIT_OK)
			return error_set(err, ERROR_DEVICE, "%s", e.message);
	}
	if (n->tied_gradient)
		each_zero(n->pool, n->tied_gradient, (uint64_t)n->m->spec.vocab * n->m->spec.hidden);
	for (uint32_t l = 0; n->o.adapters.dora && l < n->m->spec.layers; l++)
		if (!run_norms(n, l, err))
			return false;
	return true;
}

void net_end(struct net *n)
{
	if (n->tied_gradient)
		each_add(n->pool, n->tensor[n->embed_tensor - 1].gradient, n->tied_gradient,
		         (uint64_t)n->m->spec.vocab * n->m->spec.hidden);
}

double net_uniform(uint64_t seed, uint64_t tensor, uint64_t element)
{
	uint64_t z = (tensor << 32) + element + seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53 * 2 - 1;
}
