/* runtime/plan/weights.c - weights as a plan knows them: types, sizes, and which there are. */
#include "runtime/plan/weights.h"

#include <stdlib.h>
#include <string.h>

/* Gate and up of a layer whose gate has a factor are two kernels' (arch.c). */
static enum weights_pairing pairing_of(const struct model_spec *s, const struct model_layer *l,
                                       const struct model_tensor *t)
{
	const struct model_tensor *const pair[][2] = {
		{ &l->gate, &l->up }, { &l->expert_gate, &l->expert_up }, { &l->shared_gate, &l->shared_up }
	};

	for (size_t i = s->factors.ffn_gate != 0; i < sizeof pair / sizeof *pair; i++) {
		bool one = pair[i][0]->bytes && weights_gate_up_interleaved(pair[i][0]->type, pair[i][1]->type);
		if (one && (t == pair[i][0] || t == pair[i][1]))
			return t == pair[i][0] ? WEIGHTS_FIRST_OF_TWO : WEIGHTS_SECOND_OF_TWO;
	}
	return WEIGHTS_ALONE;
}

size_t weights_list(struct weights_entry *e, const struct model_spec *s, struct weights *w)
{
	size_t n = 0;

	if (!s->tied)
		e[n++] = (struct weights_entry){ .tensor = &s->embed, .matrix = &w->embed };
	if (s->layer_input) {
		e[n++] = (struct weights_entry){ .tensor = &s->input_embed, .matrix = &w->input_embed };
		e[n++] = (struct weights_entry){ .tensor = &s->input_proj, .matrix = &w->input_proj };
	}
	if (s->pos_embed.bytes)
		e[n++] = (struct weights_entry){ .tensor = &s->pos_embed, .matrix = &w->pos_embed };
	if (s->type_embed.bytes)
		e[n++] = (struct weights_entry){ .tensor = &s->type_embed, .matrix = &w->type_embed };
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_layer *l = &s->layer[i];
		struct weights_layer *wl = &w->layer[i];
		for (int k = 0; k < MATRIX_SLOTS; k++)
			if (l->matrix[k].bytes)
				e[n++] = (struct weights_entry){ .tensor = &l->matrix[k],
					                         .matrix = &wl->matrix[k],
					                         .pairing = pairing_of(s, l, &l->matrix[k]) };
	}
	e[n++] = (struct weights_entry){ .tensor = s->tied ? &s->embed : &s->lm_head, .matrix = &w->lm_head };
	return n;
}

uint32_t weights_layer_of(const struct model_spec *s, const struct model_tensor *t)
{
	uint32_t i = 0;

	while (i < s->layers && (t < s->layer[i].matrix || t >= s->layer[i].matrix + MATRIX_SLOTS))
		i++;
	return i;
}

size_t weights_keep_part(struct weights_entry *e, size_t n, const struct model_spec *s, const struct weights_part *part)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t layer = part ? weights_layer_of(s, e[i].tensor) : 0;
		if (part && (layer == s->layers ? !part->ends : layer < part->first || layer >= part->end))
			continue;
		e[kept++] = e[i];
	}
	return kept;
}

/* Each begins at a page. Two matrices of one kernel alternate block by block. */
uint64_t weights_lay(struct weights_entry *e, size_t n, enum weight_layout layout)
{
	enum { ALIGN = 4096 };
	uint64_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const struct model_tensor *t = e[i].tensor;
		uint64_t bytes;
		e[i].blocks = (t->rows / 32 + (t->rows % 32 != 0)) * (t->experts ? t->experts : 1);
		e[i].block_bytes = weight_block_bytes(t->type, layout, t->cols);
		e[i].stride = e[i].block_bytes * (e[i].pairing == WEIGHTS_ALONE ? 1 : 2);
		e[i].at = at + (e[i].pairing == WEIGHTS_SECOND_OF_TWO ? e[i].block_bytes : 0);
		if (e[i].pairing == WEIGHTS_FIRST_OF_TWO)
			continue;
		if (__builtin_mul_overflow(e[i].blocks, e[i].stride, &bytes) || bytes > INT64_MAX - ALIGN ||
		    at > INT64_MAX - ALIGN - bytes) /* a header alone can say so */
			return INT64_MAX;
		at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
	}
	return at;
}

static const float *point_vector(uint64_t *used, const struct model_tensor *t, const float *there)
{
	const float *here = t->bytes && there ? there + *used : NULL;

	*used += t->bytes ? numerics_pad(t->cols) * (t->experts ? t->experts : 1) : 0;
	return here;
}

uint64_t weights_point_vectors(struct weights *w, const struct model_spec *s, const float *there)
{
	uint64_t used = 0;

#define X(name) w->name = point_vector(&used, &s->name, there);
	WEIGHTS_VECTORS_EACH(X)
#undef X
	const uint64_t biases = weights_bias_count(s);
	w->score_bias = biases && there ? there + used : NULL;
	used += numerics_pad(biases);
	for (uint32_t i = 0; i < s->layers; i++)
		for (int v = 0; v < VECTOR_SLOTS; v++)
			w->layer[i].vector[v] = point_vector(&used, &s->layer[i].vector[v], there);
	return used;
}

void weights_point(struct weights *w, const struct model_spec *s, const struct weights_entry *e, size_t n,
                   const uint8_t *arena)
{
	w->token_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		const struct model_tensor *t = e[i].tensor;
		*e[i].matrix = (struct weights_matrix){
			.type = t->type, .rows = t->rows, .k = t->cols, .packed = arena ? arena + e[i].at : NULL
		};
		if (t != &s->input_embed && (t != &s->embed || s->tied))
			w->token_bytes += e[i].blocks / (t->experts ? t->experts : 1) *
			                  (t->experts ? s->experts_used : 1) * e[i].block_bytes;
	}
	if (s->tied)
		w->embed = w->lm_head;
}

/* The loaders let through what is computed with; this is where the two would be seen to differ. */
bool weights_check_types(const struct weights_entry *e, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		if (!weight_supported(e[i].tensor->type))
			return error_set(err, ERROR_UNSUPPORTED,
			                 "tensor %s has type %s, which no kernel multiplies with", e[i].tensor->name,
			                 dtype_table[e[i].tensor->type].name);
	return true;
}

bool weights_allocate(struct weights *w, const struct model_spec *s, struct error *err)
{
	memset(w, 0, sizeof *w);
	w->layer = calloc(s->layers, sizeof *w->layer);
	return w->layer ? true : error_set(err, ERROR_MEMORY, "no memory for the weights of %u layers", s->layers);
}

/* What stands where a vector would: an address to tell from NULL. */
static const float somewhere[1];

static void describe_vectors(struct weights *w, const struct model_spec *s)
{
#define X(name) w->name = s->name.bytes ? somewhere : NULL;
	WEIGHTS_VECTORS_EACH(X)
#undef X
	w->score_bias = weights_bias_count(s) ? somewhere : NULL;
	for (uint32_t i = 0; i < s->layers; i++)
		for (int v = 0; v < VECTOR_SLOTS; v++)
			w->layer[i].vector[v] = s->layer[i].vector[v].bytes ? somewhere : NULL;
}

bool weights_describe(struct weights *w, const struct model_spec *s, struct error *err)
{
	bool ok = weights_allocate(w, s, err);
	struct weights_entry *e = ok ? calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e) : NULL;

	if (ok && !e)
		ok = error_set(err, ERROR_MEMORY, "no memory for the list of %u layers' matrices", s->layers);
	if (ok) {
		size_t n = weights_list(e, s, w);
		ok = weights_check_types(e, n, err);
		for (size_t i = 0; i < n; i++)
			*e[i].matrix = (struct weights_matrix){ .type = e[i].tensor->type,
				                                .rows = e[i].tensor->rows,
				                                .k = e[i].tensor->cols,
				                                .packed = (const uint8_t *)somewhere };
		if (s->tied)
			w->embed = w->lm_head;
		describe_vectors(w, s);
	}
	free(e);
	if (!ok)
		weights_close(w);
	return ok;
}

void weights_close(struct weights *w)
{
	if (w->release)
		w->release(w);
	free(w->layer);
	memset(w, 0, sizeof *w);
}
