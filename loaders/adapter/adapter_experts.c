/* loaders/adapter/adapter_experts.c - pairs for the matrices of experts: one for each expert, as in adapters of PEFT,
 * or one whose tensors have all experts' one behind the other, as in GGUF files (adapter.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/adapter/adapter.h"

/* The name with the expert's number in the place of its star. */
static void name_of(char out[MODEL_LOCATION_NAME + 16], const char *name, uint32_t expert)
{
	const char *star = strchr(name, '*');

	if (star)
		snprintf(out, MODEL_LOCATION_NAME + 16, "%.*s%" PRIu32 "%s", (int)(star - name), name, expert,
		         star + 1);
	else
		snprintf(out, MODEL_LOCATION_NAME + 16, "%s", name);
}

static bool check_pair(const struct adapter_file *f, const struct adapter_part *p, const struct adapter_pair *pair,
                       struct error *err)
{
	struct adapter_part one = *p;

	one.pair = (uint32_t)(pair - f->pair);
	one.experts = f->is_gguf ? p->experts : 0;
	if (pair->magnitude.name || pair->bias.name || pair->own_bias.name)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s: %s of experts are not done", f->weights.label,
		                 pair->magnitude.name ? pair->magnitude.name
		                 : pair->bias.name    ? pair->bias.name
		                                      : pair->own_bias.name,
		                 pair->magnitude.name ? "magnitudes (DoRA)" : "biases");
	if (p->rank && pair->scale != f->pair[p->pair].scale) /* ranks may differ, and alphas with them */
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: %s has scale %g and %s %g: experts of a layer with several scales are not done",
		                 f->weights.label, f->pair[p->pair].path, f->pair[p->pair].scale, pair->path,
		                 pair->scale);
	return adapter_check_part(f, &one, err);
}

bool adapter_match_experts(struct adapter_file *f, const struct model *m, uint32_t layer, enum tensor_slot slot,
                           size_t *room, struct error *err)
{
	struct adapter_part p = { .layer = layer, .slot = slot };
	size_t hint = 0;
	bool found = false;

	if (!f->merges && !adapter_match_parameter(f, m, layer, slot, room, &found, err))
		return false;
	if (found || f->merges || !model_experts_location_of(m, f->is_gguf, layer, slot, &p.location))
		return true;
	p.rows = p.location.order.rows;
	p.cols = p.location.order.cols;
	p.experts = m->spec.experts;
	for (uint32_t e = 0; e < (f->is_gguf ? 1 : p.experts); e++) {
		char name[MODEL_LOCATION_NAME + 16];
		name_of(name, p.location.name, e);
		struct adapter_pair *pair = adapter_find_pair(f, name, &hint);
		if (!pair || pair->embeds)
			continue;
		if (!check_pair(f, &p, pair, err))
			return false;
		pair->used = true;
		p.pair = p.rank ? p.pair : (uint32_t)(pair - f->pair);
		p.rank = pair->a.rows > p.rank ? (uint32_t)pair->a.rows : p.rank;
	}
	return !p.rank || adapter_append_part(f, &p, room, err);
}

/* One expert's pair, at its place. */
static bool read_pair(const struct adapter_file *f, const struct adapter_part *p, const struct adapter_pair *pair,
                      float *a, float *b, struct error *err)
{
	const size_t rank = pair->a.rows;
	float *first = adapter_read_tensor(f, &pair->a, err),
	      *second = first ? adapter_read_tensor(f, &pair->b, err) : NULL;

	if (second)
		memcpy(a, first, rank * p->cols * sizeof *a * (f->is_gguf ? p->experts : 1));
	for (uint64_t r = 0; second && r < p->rows * (f->is_gguf ? p->experts : 1); r++)
		memcpy(b + r * p->rank, second + r * rank, rank * sizeof *b);
	free(first);
	free(second);
	return second != NULL;
}

bool adapter_read_experts(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b,
                          struct error *err)
{
	const uint64_t one_a = p->rank * p->cols, one_b = p->rank * p->rows;
	size_t hint = p->pair;

	if (f->pair[p->pair].parameter)
		return adapter_read_parameter(f, p, a, b, err);
	if (f->is_gguf)
		return read_pair(f, p, &f->pair[p->pair], a, b, err);
	memset(a, 0, one_a * p->experts * sizeof *a);
	memset(b, 0, one_b * p->experts * sizeof *b);
	for (uint32_t e = 0; e < p->experts; e++) {
		char name[MODEL_LOCATION_NAME + 16];
		name_of(name, p->location.name, e);
		const struct adapter_pair *pair = adapter_find_pair(f, name, &hint);
		if (pair && !read_pair(f, p, pair, a + e * one_a, b + e * one_b, err))
			return false;
	}
	return true;
}
