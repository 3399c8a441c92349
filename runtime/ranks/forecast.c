/* runtime/ranks/forecast.c - see forecast.h. */
#include "runtime/ranks/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plan/cut_rows.h"
#include "runtime/plan/live.h"

/* Addresses that are never read: those of matrices, vectors, and a pass's memory. */
#define MATRICES_AT (UINT64_C(1) << 42)
#define VECTORS_AT (UINT64_C(1) << 47)
#define MEMORY_AT (UINT64_C(1) << 44)

struct forecasting {
	const struct model_spec *spec;
	const struct target *target;
	enum dtype kv;
	uint32_t context;
	struct cut_shares shares;
	struct weights weights;
	struct weights_entry *entry;
	size_t n;
	struct ranks_forecast *out;
};

bool ranks_count(const char *carrier, unsigned *ranks, struct error *err)
{
	const char *colon = strchr(carrier, ':');
	const bool known = strncmp(carrier, "fork:", 5) == 0 || strncmp(carrier, "mpi:", 4) == 0;
	char *end = NULL;
	const unsigned long n = known && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;

	*ranks = (unsigned)n;
	return (end && !*end && n >= 2 && n <= CARRIER_RANKS_MAX) ||
	       error_set(err, ERROR_ARGUMENT,
	                 "ranks: \"%.64s\" does not say how many there would be: expected fork:N or mpi:N, N from 2 "
	                 "to %d",
	                 carrier, CARRIER_RANKS_MAX);
}

static bool lay(struct forecasting *f, struct error *err)
{
	const size_t max = (size_t)f->spec->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE;

	if (!weights_allocate(&f->weights, f->spec, err))
		return false;
	if (!(f->entry = calloc(max, sizeof *f->entry)))
		return error_set(err, ERROR_MEMORY, "no memory for the list of %u layers' matrices", f->spec->layers);
	f->n = weights_list(f->entry, f->spec, &f->weights);
	if (!weights_check_types(f->entry, f->n, err))
		return false;
	weights_lay(f->entry, f->n, weight_layout_of(f->target));
	weights_point(&f->weights, f->spec, f->entry, f->n, (const uint8_t *)(uintptr_t)MATRICES_AT);
	weights_point_vectors(&f->weights, f->spec, (const float *)(uintptr_t)VECTORS_AT);
	return true;
}

/* ---- by rows */

static uint64_t cache_bytes(const struct forecasting *f, uint32_t layer)
{
	const uint64_t pages = (f->context + NUMERICS_CHUNK - 1) / NUMERICS_CHUNK;

	return plan_cache_bytes(f->kv, f->spec, layer) * pages;
}

static void add_rows(const struct forecasting *f, unsigned rank)
{
	const struct model_spec *s = f->spec;
	struct ranks_forecast *o = f->out;

	for (size_t i = 0; i < f->n; i++) {
		const struct weights_entry *e = &f->entry[i];
		const struct model_tensor *t = e->tensor;
		const struct cut_blocks kept = cut_share_kept(&f->shares, s, t, rank),
					read = cut_share_blocks(&f->shares, s, t, rank);
		const bool by_number = t == &s->input_embed || t == &s->pos_embed || t == &s->type_embed ||
		                       (t == &s->embed && !s->tied);
		o->weights[rank] += (kept.end - kept.first) * (t->experts ? t->experts : 1) * e->block_bytes;
		if (!by_number)
			o->token[rank] += (read.end - read.first) * (t->experts ? s->experts_used : 1) * e->block_bytes;
	}
	for (uint32_t i = 0; i < s->layers; i++) {
		const uint64_t heads = s->latent.rank ? 0 : model_sizes_of(s, i).kv_heads, bytes = cache_bytes(f, i);
		o->kv[rank] += !heads ? bytes
		                      : bytes / heads *
		                                (cut_share_begin(&f->shares, rank + 1, heads) -
		                                 cut_share_begin(&f->shares, rank, heads));
	}
}

static bool count_exchanges(struct forecasting *f, struct plan *p, const struct plan_buffers *b, struct error *err)
{
	const struct model_spec *s = f->spec;
	const struct cut_space space[] = {
		{ (uintptr_t)b->values, b->layout->bytes, false, false },
		{ (uintptr_t)b->logits, numerics_pad(s->vocab) * sizeof(float), true, false },
	};
	struct cut_rows *rows = cut_rows_open(p, s, &f->weights, &f->shares, space, 2, s->experts_used, err);

	for (size_t i = 0; rows && i < rows->n_exchanges; i++) {
		const struct cut_exchange *x = &rows->exchange[i];
		for (unsigned r = 0; r < f->shares.ranks; r++)
			*(x->to_first ? &f->out->logits : &f->out->exchanged) += x->bytes[r];
		f->out->exchanges += !x->to_first;
	}
	cut_rows_close(rows);
	return rows != NULL;
}

/* On a plan of one token. */
static bool forecast_rows(struct forecasting *f, struct error *err)
{
	const struct plan_options opt = { .target = f->target };
	const struct plan_cache cache = { .type = f->kv };
	struct plan_layout layout;
	struct plan_buffers b = { .tokens = 1, .layout = &layout, .context = NUMERICS_CHUNK, .logit_tokens = 1 };
	struct plan p;

	for (unsigned r = 0; r < f->shares.ranks; r++)
		add_rows(f, r);
	if (!plan_layout_open(&layout, f->spec, &f->weights, &(struct plan_layout_options){ .tokens = 1 }, err))
		return false;
	b.ids = (int32_t *)(uintptr_t)MEMORY_AT;
	b.cos = (float *)(uintptr_t)(MEMORY_AT + plan_ids_bytes(1));
	b.sin = (float *)(uintptr_t)(MEMORY_AT + plan_ids_bytes(1) + plan_angles_bytes(f->spec, 1));
	b.values = (uint8_t *)(uintptr_t)(2 * MEMORY_AT);
	b.logits = (float *)(uintptr_t)(3 * MEMORY_AT);
	bool ok = plan_build(&p, f->spec, &f->weights, &b, &cache, 1, PLAN_LAST_LOGITS, &opt, err);
	if (ok) {
		ok = count_exchanges(f, &p, &b, err);
		plan_free(&p);
	}
	plan_layout_close(&layout);
	return ok;
}

/* ---- by layers */

static void forecast_layers(const struct forecasting *f)
{
	const struct model_spec *s = f->spec;
	struct ranks_forecast *o = f->out;

	for (unsigned r = 0; r < o->ranks; r++)
		for (uint32_t i = o->range[r].first; i < o->range[r].end; i++) {
			const struct split_bytes b = split_layer_bytes(s, i);
			o->weights[r] += b.all;
			o->token[r] += b.token;
			o->kv[r] += cache_bytes(f, i);
		}
	const struct split_bytes ends = split_ends_bytes(s);
	o->weights[0] += ends.all;
	o->token[0] += ends.token;
	o->exchanges = o->ranks;
	o->exchanged = o->ranks * numerics_pad(s->hidden) * sizeof(float);
}

bool ranks_forecast(const struct model_spec *s, const struct target *t, enum dtype kv, uint32_t context, unsigned ranks,
                    const char *split, struct ranks_forecast *out, struct error *err)
{
	struct forecasting f = { .spec = s, .target = t, .kv = kv, .context = context, .out = out };

	*out = (struct ranks_forecast){ .ranks = ranks };
	if (!split_rows(ranks, split, &out->by_rows, &f.shares, err))
		return false;
	if (out->by_rows && s->encodes)
		return error_set(err, ERROR_UNSUPPORTED, "split %.64s: not yet of models that encode texts", split);
	if (!out->by_rows && !split_layers(s, ranks, split, out->range, err))
		return false;
	const bool ok = lay(&f, err) && (!out->by_rows || forecast_rows(&f, err));
	if (ok && !out->by_rows)
		forecast_layers(&f);
	free(f.entry);
	weights_close(&f.weights);
	return ok;
}

/* ---- seconds */

static double largest(const uint64_t *of, unsigned n)
{
	uint64_t max = 0;

	for (unsigned r = 0; r < n; r++)
		max = of[r] > max ? of[r] : max;
	return (double)max;
}

static double sum(const uint64_t *of, unsigned n)
{
	double all = 0;

	for (unsigned r = 0; r < n; r++)
		all += (double)of[r];
	return all;
}

/* By rows a rank gets what it has not of each exchange; by layers it waits for all before it. */
double ranks_token_seconds(const struct ranks_forecast *f, const struct ranks_machine *m)
{
	const double wire = (double)f->exchanged * 8 / m->bits, hops = (double)f->exchanges * m->delay;

	return f->by_rows ? largest(f->token, f->ranks) / m->read + hops + wire * (f->ranks - 1) / f->ranks
	                  : sum(f->token, f->ranks) / m->read + hops + wire;
}

double ranks_filled_seconds(const struct ranks_forecast *f, const struct ranks_machine *m)
{
	const double wire = (double)f->exchanged * 8 / m->bits / f->ranks;

	return largest(f->token, f->ranks) / m->read + m->delay + wire;
}
