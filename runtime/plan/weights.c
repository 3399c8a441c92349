/* runtime/plan/weights.c - weights as a plan knows them: types, sizes, and which there are. */
#include "runtime/plan/weights.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"

static enum weights_place place_of(const struct model_layer *l, const struct model_tensor *t)
{
	if (!weights_gate_up_interleaved(l->gate.type, l->up.type))
		return WEIGHTS_ALONE;
	return t == &l->gate ? WEIGHTS_FIRST_OF_TWO : t == &l->up ? WEIGHTS_SECOND_OF_TWO : WEIGHTS_ALONE;
}

size_t weights_list(struct weights_entry *e, const struct model_spec *s, struct weights *w)
{
	size_t n = 0;

	if (!s->tied)
		e[n++] = (struct weights_entry){ &s->embed, &w->embed, WEIGHTS_ALONE };
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_layer *l = &s->layer[i];
		struct weights_layer *wl = &w->layer[i];
		for (int k = 0; k < MATRIX_SLOTS; k++)
			if (l->matrix[k].bytes)
				e[n++] = (struct weights_entry){ &l->matrix[k], &wl->matrix[k],
					                         place_of(l, &l->matrix[k]) };
	}
	e[n++] = (struct weights_entry){ s->tied ? &s->embed : &s->lm_head, &w->lm_head, WEIGHTS_ALONE };
	return n;
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
	w->inv_freq = calloc(s->head_dim / 2, sizeof *w->inv_freq);
	return w->layer && w->inv_freq
	               ? true
	               : error_set(err, ERROR_MEMORY, "no memory for the weights of %u layers", s->layers);
}

/* What stands where a vector would: an address to tell from NULL. */
static const float somewhere[1];

static void describe_vectors(struct weights *w, const struct model_spec *s)
{
	w->final_norm = somewhere;
	for (uint32_t i = 0; i < s->layers; i++)
		for (int v = 0; v < VECTOR_SLOTS; v++)
			w->layer[i].vector[v] = s->layer[i].vector[v].bytes ? somewhere : NULL;
}

bool weights_describe(struct weights *w, const struct model_spec *s, struct error *err)
{
	bool ok = weights_allocate(w, s, err);
	struct weights_entry *e = ok ? calloc((size_t)s->layers * MATRIX_SLOTS + 2, sizeof *e) : NULL;

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
	free(w->inv_freq);
	free(w->layer);
	memset(w, 0, sizeof *w);
}
