/* train/net_open.c - where the weights of a model that learns are, and which of them are trained. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "loaders/model/model_adapter.h"
#include "loaders/model/model_arch.h"
#include "train/each.h"
#include "train/net_parts.h"

/* ---- memory of the device */

static jit_buffer *open_bytes(struct net *n, uint64_t bytes, struct error *err)
{
	jit_error e = { 0 };
	jit_buffer *b = jit_buffer_open(n->compute, bytes + !bytes, &e);

	if (!b)
		error_set(err, ERROR_MEMORY, "%s", e.message);
	return b;
}

static jit_buffer *open_buffer(struct net *n, uint64_t floats, struct error *err)
{
	return open_bytes(n, floats * sizeof(float), err);
}

/* A tensor of the file, on the device; packed: as the file has it, else as floats. */
static jit_buffer *open_weight(struct net *n, const struct model_tensor *t, bool packed, struct error *err)
{
	const uint64_t size = train_rows(t) * (packed ? t->row_bytes : t->cols * sizeof(float));
	jit_buffer *b = open_bytes(n, size, err);
	void *at = b ? jit_buffer_memory(b) : NULL, *own = b && !at ? malloc(size + 1) : NULL;
	jit_error e = { 0 };
	bool ok = b && (at || own || error_set(err, ERROR_MEMORY, "there is no memory for %.100s", t->name));

	ok = ok && (packed ? train_read_packed(n->m, t, at ? at : own, err) : train_read(n->m, t, at ? at : own, err));
	if (ok && own && jit_buffer_write(b, 0, own, size, &e) != JIT_OK)
		ok = error_set(err, ERROR_DEVICE, "%s", e.message);
	free(own);
	if (ok)
		return b;
	jit_buffer_close(b);
	return NULL;
}

/* ---- what is trained */

static struct net_tensor *add_tensor(struct net *n, const char *name, uint32_t layer, uint32_t slot,
                                     enum layer_input_kind kind, const struct shape *s, jit_buffer *b,
                                     struct error *err)
{
	struct net_tensor *more = realloc(n->tensor, (n->tensors + (size_t)1) * sizeof *more);

	if (!more) {
		error_set(err, ERROR_MEMORY, "there is no memory for what is trained");
		return NULL;
	}
	n->tensor = more;
	struct net_tensor *t = &more[n->tensors++];
	*t = (struct net_tensor){ .name = strdup(name),
		                  .layer = layer,
		                  .slot = slot,
		                  .kind = kind,
		                  .shape = *s,
		                  .n = shape_elements(s),
		                  .buffer = b };
	t->gradient = calloc(t->n + 1, sizeof *t->gradient);
	t->mean = calloc(t->n + 1, sizeof *t->mean);
	t->square = calloc(t->n + 1, sizeof *t->square);
	t->value = b ? jit_buffer_memory(b) : NULL;
	if (b && !t->value) {
		jit_error e = { 0 };
		t->value = calloc(t->n + 1, sizeof *t->value);
		if (t->value && jit_buffer_read(b, 0, t->value, t->n * sizeof *t->value, &e) != JIT_OK)
			error_set(err, ERROR_DEVICE, "%s", e.message);
	}
	if (!t->name || !t->gradient || !t->mean || !t->square || !t->value)
		error_set(err, ERROR_MEMORY, "there is no memory for %.100s", name);
	return err->code == ERROR_NONE ? t : NULL;
}

/* "model.layers.0.self_attn.q_proj", without ".weight" or ".bias". Files of some families leave out what the names of
 * modules begin with, as GPT-2's "transformer.". */
static void name_of(const struct net *n, uint32_t layer, enum tensor_slot slot, char *out, size_t size)
{
	const struct model_tensor *t = train_tensor_of(n->m, layer, slot);
	const bool is_hf = strncmp(t->name, "blk.", 4) != 0;
	const struct arch_row *row = is_hf ? arch_of_hf(n->m->spec.arch_name) : NULL;
	struct model_location at;
	const char *layers = row && row->base && row->layers ? row->layers : NULL;

	if (layers && strncmp(t->name, layers, strlen(layers)) == 0)
		snprintf(out, size, "%s%s", row->base, t->name);
	else if (is_hf)
		snprintf(out, size, "%s", t->name);
	else if (model_location_of(n->m, false, layer, slot, &at)) {
		row = arch_of_gguf(n->m->spec.arch_name, strlen(n->m->spec.arch_name));
		snprintf(out, size, "%s%s", row && row->base ? row->base : "model.", at.name);
		return;
	} else
		snprintf(out, size, "model.layers.%u.%s", layer, train_slot_name(slot));
	char *dot = strrchr(out, '.');
	if (dot)
		*dot = 0;
}

/* Numbers of matrices in the generator of first values. */
static uint32_t number_of(enum tensor_slot slot)
{
	static const uint8_t order[] = { SLOT_q,       SLOT_k,       SLOT_v,       SLOT_o,
		                         SLOT_gate,    SLOT_up,      SLOT_down,    SLOT_delta_qkv,
		                         SLOT_delta_z, SLOT_delta_b, SLOT_delta_a, SLOT_delta_out };
	uint32_t i = 0;

	/* A layer has one of these mixers, so that numbers of the delta rule's matrices are free in the others. */
	static const uint8_t same[][2] = { { SLOT_q_gate, SLOT_q },           { SLOT_scan_z, SLOT_delta_qkv },
		                           { SLOT_scan_out, SLOT_delta_z },   { SLOT_channel_x, SLOT_delta_qkv },
		                           { SLOT_channel_dt, SLOT_delta_z }, { SLOT_channel_steps, SLOT_delta_b },
		                           { SLOT_channel_out, SLOT_delta_a } };

	for (size_t k = 0; k < sizeof same / sizeof *same; k++)
		if (same[k][0] == slot) {
			slot = (enum tensor_slot)same[k][1];
			break;
		}
	while (i < sizeof order && order[i] != slot)
		i++;
	return i;
}

/* Of A: uniform numbers of variance 1 / (3 in). B is 0, so that a new adapter changes nothing. */
static void fill_first(const struct net *n, struct net_tensor *t)
{
	const uint64_t tensor = (uint64_t)16 * t->layer + number_of((enum tensor_slot)t->slot);
	const double scale = 1 / math_host_sqrt((double)t->shape.dim[1]);

	for (uint64_t i = 0; i < t->n; i++)
		t->value[i] = (float)(net_uniform(n->o.seed, tensor, i) * scale);
}

static bool add_adapter(struct net *n, uint32_t layer, uint32_t i, const struct layer_input *in, struct error *err)
{
	static const char *const suffix[] = {
		[LAYER_A] = ".lora_A.weight", [LAYER_B] = ".lora_B.weight", [LAYER_MAGNITUDE] = ".lora_magnitude_vector"
	};
	char name[512], base[400];
	jit_buffer *b = open_buffer(n, shape_elements(&in->shape), err);

	n->binding[layer][i].buffer = b;
	if (!b)
		return false;
	name_of(n, layer, in->slot, base, sizeof base);
	snprintf(name, sizeof name, "%s%s", base, suffix[in->kind]);
	struct net_tensor *t = add_tensor(n, name, layer, in->slot, in->kind, &in->shape, b, err);
	if (t) {
		n->binding[layer][i].tensor = n->tensors;
		t->by_file = train_group_of(n->m, layer, in->slot).by_file;
	}
	if (t && in->kind == LAYER_A)
		fill_first(n, t);
	return t != NULL;
}

static bool bind_input(struct net *n, uint32_t layer, uint32_t i, const struct layer_input *in, struct error *err)
{
	struct net_binding *p = &n->binding[layer][i];

	switch (in->kind) {
	case LAYER_STREAM:
	case LAYER_COS:
	case LAYER_SIN:
	case LAYER_SEGMENT: return true;
	case LAYER_WEIGHT: {
		const struct model_tensor *t = train_tensor_of(n->m, layer, in->slot);
		p->buffer = open_weight(n, t, in->packed, err);
		if (!p->buffer || !n->o.full)
			return p->buffer != NULL;
		const bool ok = add_tensor(n, t->name, layer, in->slot, in->kind, &in->shape, p->buffer, err);
		p->tensor = n->tensors;
		return ok;
	}
	case LAYER_NORM:
	case LAYER_DROPOUT: p->buffer = open_buffer(n, shape_elements(&in->shape), err); return p->buffer != NULL;
	default: return add_adapter(n, layer, i, in, err);
	}
}

/* ---- outside of layers */

static bool add_outside(struct net *n, const struct model_tensor *t, uint32_t slot, jit_buffer *b, uint32_t *number,
                        struct error *err)
{
	struct shape s = { .rank = 1, .dim = { t->cols } };

	if (slot != NET_FINAL_NORM && slot != NET_NORM_BIAS)
		s = (struct shape){ .rank = 2, .dim = { t->rows, t->cols } };
	if (!add_tensor(n, t->name, NET_NO_LAYER, slot, LAYER_WEIGHT, &s, b, err))
		return false;
	*number = n->tensors;
	return true;
}

/* Embeddings of the positions that a row may have, as floats. */
static bool read_positions(struct net *n, struct error *err)
{
	const struct model_spec *s = &n->m->spec;
	bool ok = true;

	n->position_rows = malloc((uint64_t)n->o.tokens * s->hidden * sizeof *n->position_rows);
	if (!n->position_rows)
		return error_set(err, ERROR_MEMORY, "there is no memory for embeddings of %u positions", n->o.tokens);
	for (uint32_t i = 0; ok && i < n->o.tokens; i++)
		ok = train_read_row(n->m, &s->pos_embed, s->positions_from + (uint64_t)i,
		                    n->position_rows + (uint64_t)i * s->hidden, err);
	return ok;
}

static bool bind_outside(struct net *n, struct error *err)
{
	const struct model_spec *s = &n->m->spec;

	n->head_packed = net_head_is_packed(n);
	n->head = open_weight(n, head_tensor_of(n->m), n->head_packed, err);
	n->final_norm = n->head ? open_weight(n, &s->final_norm, false, err) : NULL;
	if (!n->final_norm ||
	    (s->final_norm_bias.bytes && !(n->norm_bias = open_weight(n, &s->final_norm_bias, false, err))))
		return false;
	if (!n->o.full)
		return !s->pos_embed.bytes || read_positions(n, err);
	if ((!s->tied && !(n->embed = open_weight(n, &s->embed, false, err))) ||
	    (s->pos_embed.bytes && !(n->positions = open_weight(n, &s->pos_embed, false, err))))
		return false;
	if (!add_outside(n, &s->embed, NET_EMBED, s->tied ? n->head : n->embed, &n->embed_tensor, err) ||
	    (n->positions && !add_outside(n, &s->pos_embed, NET_POSITIONS, n->positions, &n->position_tensor, err)) ||
	    !add_outside(n, &s->final_norm, NET_FINAL_NORM, n->final_norm, &n->norm_tensor, err) ||
	    (n->norm_bias &&
	     !add_outside(n, &s->final_norm_bias, NET_NORM_BIAS, n->norm_bias, &n->norm_bias_tensor, err)) ||
	    (!s->tied && !add_outside(n, &s->lm_head, NET_HEAD, n->head, &n->head_tensor, err)))
		return false;
	n->embed_rows = n->tensor[n->embed_tensor - 1].value;
	if (n->positions)
		n->position_rows = n->tensor[n->position_tensor - 1].value + (uint64_t)s->positions_from * s->hidden;
	if (s->tied)
		n->tied_gradient = calloc((uint64_t)s->vocab * s->hidden, sizeof *n->tied_gradient);
	return !s->tied || n->tied_gradient || error_set(err, ERROR_MEMORY, "there is no memory for gradients");
}

/* Row norms, which DoRA's magnitudes begin with: 1 / what the norms' graph gives while B is 0. */
static bool fill_magnitudes(struct net *n, struct error *err)
{
	jit_error e = { 0 };

	if (!net_begin(n, err))
		return false;
	for (uint32_t i = 0; i < n->tensors; i++) {
		struct net_tensor *t = &n->tensor[i];
		if (t->kind != LAYER_MAGNITUDE)
			continue;
		const struct net_class *c = &n->classes[n->class_of[t->layer]];
		for (uint32_t k = 0; k < c->graph.inputs; k++)
			if (c->graph.input[k].kind == LAYER_NORM &&
			    c->graph.input[k].slot == (enum tensor_slot)t->slot &&
			    jit_buffer_read(n->binding[t->layer][k].buffer, 0, t->value, t->n * sizeof *t->value, &e) !=
			            JIT_OK)
				return error_set(err, ERROR_DEVICE, "%s", e.message);
		for (uint64_t k = 0; k < t->n; k++)
			t->value[k] = 1 / t->value[k];
	}
	return true;
}

bool net_bind_all(struct net *n, struct error *err)
{
	n->binding = calloc(n->m->spec.layers, sizeof *n->binding);
	if (!n->binding)
		return error_set(err, ERROR_MEMORY, "there is no memory for %u layers", n->m->spec.layers);
	for (uint32_t l = 0; l < n->m->spec.layers; l++) {
		const struct layer_graph *g = &n->classes[n->class_of[l]].graph;
		for (uint32_t i = 0; i < g->inputs; i++)
			if (!bind_input(n, l, i, &g->input[i], err))
				return false;
	}
	return bind_outside(n, err) &&
	       (n->tensors || error_set(err, ERROR_ARGUMENT, "targets: the model has none of these matrices"));
}

/* ---- opening */

static uint64_t largest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static bool fill_angles(struct net *n)
{
	const uint32_t half = n->m->spec.head_dim / 2;
	const size_t size = (size_t)n->o.tokens * half;

	for (int which = 0; which < ROTATION_NONE; which++) {
		if (!n->rope.inv_freq[which])
			continue;
		n->angle[which] = malloc((2 * size + 1) * sizeof *n->angle[which]);
		if (!n->angle[which])
			return false;
		rope_rows(n->angle[which], n->angle[which] + size, n->rope.inv_freq[which], half,
		          n->rope.rotated[which], n->rope.factor[which], 0, n->o.tokens);
	}
	return true;
}

static bool open_kept(struct net *n, struct error *err)
{
	n->kept = n->o.keep ? calloc(n->m->spec.layers, sizeof *n->kept) : NULL;
	for (uint32_t l = 0; n->kept && l < n->m->spec.layers; l++)
		if (!(n->kept[l] = malloc(n->classes[n->class_of[l]].kept_bytes + 1)))
			break;
	return !n->o.keep || (n->kept && n->kept[n->m->spec.layers - 1]) ||
	       error_set(err, ERROR_MEMORY, "there is no memory to keep what gradients need");
}

/* Room for the sums of each_squares(). */
static bool open_squares(struct net *n, struct error *err)
{
	uint64_t max = 0;

	for (uint32_t i = 0; i < n->tensors; i++)
		max = largest(max, each_parts(n->tensor[i].n));
	n->squares = malloc((max + 1) * sizeof *n->squares);
	return n->squares || error_set(err, ERROR_MEMORY, "there is no memory for norms of gradients");
}

static bool open_memory(struct net *n, struct error *err)
{
	const struct model_spec *s = &n->m->spec;
	const uint64_t tokens = n->o.tokens + (uint64_t)n->head_rows, stream = tokens * s->hidden;
	uint64_t scratch = largest(tokens * largest(s->hidden, s->ffn), (uint64_t)s->heads * s->head_dim * tokens);

	for (uint32_t l = 0; l < s->layers; l++) {
		uint64_t sum = 0;
		for (uint32_t i = 0; i < n->tensors; i++)
			sum += n->tensor[i].layer == l ? n->tensor[i].n : 0;
		scratch = largest(scratch, sum);
		for (uint32_t i = 0; i < n->classes[n->class_of[l]].graph.inputs; i++)
			if (n->classes[n->class_of[l]].graph.input[i].kind == LAYER_DROPOUT)
				scratch = largest(scratch,
				                  shape_elements(&n->classes[n->class_of[l]].graph.input[i].shape));
		for (uint32_t i = 0, all = 0; i < n->classes[n->class_of[l]].graph.inputs; i++)
			if (n->classes[n->class_of[l]].graph.input[i].kind == LAYER_NORM)
				scratch = largest(scratch,
				                  all +=
				                  (uint32_t)n->classes[n->class_of[l]].graph.input[i].shape.dim[0]);
	}
	if (n->o.full)
		scratch = largest(scratch, (uint64_t)s->vocab * s->hidden + 2 * (uint64_t)s->hidden);
	n->stream = calloc((s->layers + (uint64_t)2) * stream, sizeof *n->stream);
	n->cosine = calloc(tokens * s->head_dim, sizeof *n->cosine);
	n->sine = calloc(tokens * s->head_dim, sizeof *n->sine);
	n->segment = calloc(tokens, sizeof *n->segment);
	n->head_target = calloc(n->head_rows, sizeof *n->head_target);
	n->head_counts = calloc(n->head_rows, sizeof *n->head_counts);
	n->head_loss_of = calloc(n->head_rows, sizeof *n->head_loss_of);
	n->scratch = calloc(scratch + 1, sizeof *n->scratch);
	return (n->stream && n->cosine && n->sine && n->segment && n->scratch && n->head_target && n->head_counts &&
	        n->head_loss_of && fill_angles(n)) ||
	       error_set(err, ERROR_MEMORY, "there is no memory for rows of %u tokens", n->o.tokens);
}

struct net *net_open(const struct model *m, jit_compute *compute, const struct jit_cancel *cancel,
                     const struct net_options *o, struct error *err)
{
	struct net *n = calloc(1, sizeof *n);

	if (!n) {
		error_set(err, ERROR_MEMORY, "there is no memory to train with");
		return NULL;
	}
	n->o = *o;
	n->m = m;
	n->compute = compute;
	n->cancel = cancel;
	if (m->spec.pos_embed.bytes && o->tokens > m->spec.pos_embed.rows - m->spec.positions_from) {
		error_set(err, ERROR_ARGUMENT,
		          "context: %u is more than the %u positions that the model has embeddings for", o->tokens,
		          (uint32_t)m->spec.pos_embed.rows - m->spec.positions_from);
		net_close(n);
		return NULL;
	}
	jit_compute_info info = JIT_COMPUTE_INFO();
	jit_compute_get_info(compute, &info, NULL);
	n->pool = pool_open(info.threads > 0 ? info.threads : 1, err);
	if (n->pool && rope_open(&n->rope, &m->spec, o->tokens, err) && net_draw_all(n, err) && net_bind_all(n, err) &&
	    open_memory(n, err) && open_squares(n, err) && open_kept(n, err) &&
	    (!o->adapters.dora || fill_magnitudes(n, err)))
		return n;
	net_close(n);
	return NULL;
}

static void close_tensor(struct net_tensor *t)
{
	free(t->name);
	free(t->gradient);
	free(t->mean);
	free(t->square);
	if (t->buffer && t->value != jit_buffer_memory(t->buffer))
		free(t->value);
}

void net_close(struct net *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; i < n->n_classes; i++) {
		layer_graph_free(&n->classes[i].graph);
		executable_close(n->classes[i].forward);
		executable_close(n->classes[i].backward);
		executable_close(n->classes[i].keeping);
		executable_close(n->classes[i].norms);
	}
	executable_close(n->head_loss);
	executable_close(n->head_back);
	for (uint32_t i = 0; i < n->tensors; i++)
		close_tensor(&n->tensor[i]);
	for (uint32_t l = 0; n->binding && l < n->m->spec.layers; l++)
		for (uint32_t i = 0; i < LAYER_INPUTS_MAX; i++)
			jit_buffer_close(n->binding[l][i].buffer);
	jit_buffer_close(n->memory);
	jit_buffer_close(n->final_norm);
	jit_buffer_close(n->norm_bias);
	if (!n->positions)
		free(n->position_rows);
	jit_buffer_close(n->positions);
	jit_buffer_close(n->head);
	jit_buffer_close(n->embed);
	for (int which = 0; which < ROTATION_NONE; which++)
		free(n->angle[which]);
	for (uint32_t l = 0; n->kept && l < n->m->spec.layers; l++)
		free(n->kept[l]);
	free(n->kept);
	rope_close(&n->rope);
	free(n->classes);
	free(n->class_of);
	free(n->binding);
	free(n->tensor);
	free(n->tied_gradient);
	free(n->stream);
	free(n->cosine);
	free(n->sine);
	free(n->segment);
	free(n->head_target);
	free(n->head_counts);
	free(n->head_loss_of);
	free(n->scratch);
	free(n->squares);
	pool_close(n->pool);
	free(n);
}
