/* runtime/model/adapters.c - see adapters.h; opening an adapter is adapter_open.c. */
#include "runtime/model/adapters.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "jit/store/record.h"
#include "runtime/model/adapter_open.h"
#include "runtime/model/adapters_ranks.h"
#include "runtime/model/sized.h"

enum { RANKS_USUAL = 256, RANKS_MAX = 1 << 14 };
enum { FACTS_BYTES = ADAPTERS_MOST * sizeof(struct adapt_fact), TABLE_BYTES = ADAPTERS_MOST * 8 };
enum { SITE_BYTES = FACTS_BYTES + 2 * TABLE_BYTES };

static pthread_mutex_t enabling = PTHREAD_MUTEX_INITIALIZER; /* of all models */

/* ---- the model's tables */

/* Whether there may be adapters of a matrix: it is one by itself, whose product is a node (runtime/plan/graph.h). */
static bool may_adapt(const struct weights_matrix *w, const struct model_tensor *t) { return w->packed && !t->heads; }

/* Number n of them. */
static void set_site(struct adapters *a, size_t n, struct weights_matrix *w)
{
	uint8_t *at = a->tables + n * SITE_BYTES;

	a->site[n] = (struct weights_site){
		.facts = at, .down = at + FACTS_BYTES, .up = at + FACTS_BYTES + TABLE_BYTES, .ranks = a->ranks
	};
	w->site = &a->site[n];
}

static size_t count_sites(jit_model *m, struct adapters *a)
{
	const struct model_spec *s = &m->file.spec;
	struct weights *all = &m->weights;
	struct weights_matrix *const once[] = { &all->embed, &all->lm_head, &all->head_whole };
	size_t n = 0;

	for (uint32_t i = 0; i < s->layers; i++)
		for (int k = 0; k < MATRIX_SLOTS; k++) {
			struct weights_matrix *w = &m->weights.layer[i].matrix[k];
			if (!may_adapt(w, &s->layer[i].matrix[k]))
				continue;
			if (a->site)
				set_site(a, n, w);
			n++;
		}
	all->head_whole = (struct weights_matrix){ .rows = all->lm_head.rows, .k = all->lm_head.k };
	for (int i = 0; i < 3; i++) {
		if (a->site)
			set_site(a, n, once[i]);
		n++;
	}
	return n;
}

static bool open_tables(jit_model *m, struct adapters *a, struct error *err)
{
	const size_t n = count_sites(m, a);

	if (m->file.spec.encodes)
		return error_set(err, ERROR_UNSUPPORTED, "models that encode texts take no adapters");
	if (m->device->alloc_shares)
		return error_set(err, ERROR_UNSUPPORTED, "adapters are not done on several cards together");
	if (m->sealed)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "a sealed model has no kernels for adapters, and may not generate them");
	a->tables_bytes = n * SITE_BYTES + 1;
	pthread_mutex_init(&a->lock, NULL);
	if (!(a->site = calloc(n + 1, sizeof *a->site)))
		return error_set(err, ERROR_MEMORY, "no memory for the tables of adapters");
	if (!(a->tables = m->device->alloc(m->device, a->tables_bytes, DEVICE_VECTORS, err)))
		return false;
	count_sites(m, a);
	return true;
}

static void free_tables(jit_model *m, struct adapters *a)
{
	if (a->tables)
		m->device->release(m->device, a->tables, a->tables_bytes);
	free(a->site);
	free(a);
}

static bool enable(jit_model *m, uint32_t ranks, struct error *err)
{
	struct adapters *a = calloc(1, sizeof *a);

	if (!a)
		return error_set(err, ERROR_MEMORY, "no memory for adapters");
	a->ranks = ranks;
	if (!open_tables(m, a, err) || !adapters_tell_enable(m, ranks, err)) {
		free_tables(m, a);
		return false;
	}
	atomic_store(&m->adapters, a);
	return true;
}

bool adapters_enable(jit_model *m, uint32_t ranks, struct error *err)
{
	pthread_mutex_lock(&enabling);
	const struct adapters *have = m->adapters;
	bool ok = have || enable(m, ranks ? ranks : RANKS_USUAL, err);
	pthread_mutex_unlock(&enabling);
	if (have && ranks && have->ranks != ranks)
		ok = error_set(err, ERROR_ARGUMENT, "ranks is %u, but the model's adapters have %u already", ranks,
		               have->ranks);
	return ok;
}

int jit_model_adapters(jit_model *m, int ranks, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(m, &e))
		return model_report(err, &e);
	if (ranks < 0 || ranks > RANKS_MAX || ranks % ADAPT_RANKS)
		error_set(&e, ERROR_ARGUMENT, "ranks is %d, expected a multiple of %d up to %d, or 0", ranks,
		          ADAPT_RANKS, RANKS_MAX);
	else
		adapters_enable(m, (uint32_t)ranks, &e);
	return model_report(err, &e);
}

void adapters_close(jit_model *m)
{
	struct adapters *a = m->adapters;

	if (!a)
		return;
	for (unsigned i = 0; i < ADAPTERS_MOST; i++)
		if (a->of[i])
			adapter_free(a->of[i]);
	pthread_mutex_destroy(&a->lock);
	free_tables(m, a);
	m->adapters = NULL;
}

uint64_t adapters_version(const jit_model *m)
{
	struct adapters *a = m->adapters;

	return a ? atomic_load(&a->version) : 0;
}

/* ---- what a session has */

/* Whole matrices have no scale, and there is one of each. */
static bool check_whole(const jit_adapter *a, size_t i, float scale, unsigned *whole, struct error *err)
{
	if (!a->whole || scale == 0)
		return true;
	const bool biases = a->whole == ADAPTER_WHOLE_BIASES, both = (*whole & a->whole) == ADAPTER_WHOLE_BIASES;
	if (scale != 1)
		return error_set(err, ERROR_ARGUMENT, "adapter %zu has %s, and its scale is %g, expected 1", i,
		                 biases ? "biases in place of the model's (bias)" : "whole modules (modules_to_save)",
		                 (double)scale);
	if (*whole & a->whole)
		return error_set(err, ERROR_ARGUMENT, "adapter %zu has %s that another one has, too", i,
		                 both ? "biases in place of the model's (bias)" : "a whole module (modules_to_save)");
	*whole |= a->whole;
	return true;
}

static bool check_chosen(const jit_model *m, jit_adapter *const *adapters, const float *scales, size_t n,
                         struct error *err)
{
	uint64_t ranks = 0;
	unsigned whole = 0;

	if (n > ADAPTERS_TOGETHER)
		return error_set(err, ERROR_ARGUMENT, "%zu adapters are too many, expected at most %d together", n,
		                 ADAPTERS_TOGETHER);
	for (size_t i = 0; i < n; i++) {
		if (!adapters[i] || adapters[i]->model != m)
			return error_set(err, ERROR_ARGUMENT, "adapter %zu is %s", i,
			                 adapters[i] ? "one of another model" : "NULL");
		if (scales && !isfinite(scales[i]))
			return error_set(err, ERROR_ARGUMENT, "scale %zu is %g, expected a finite number", i,
			                 (double)scales[i]);
		if (!check_whole(adapters[i], i, scales ? scales[i] : 1, &whole, err))
			return false;
		ranks += adapters[i]->ranks;
	}
	if (n && ranks > m->adapters->ranks)
		return error_set(err, ERROR_ARGUMENT,
		                 "the adapters have ranks of %llu together, and the model was made ready for %u "
		                 "(jit_model_adapters)",
		                 (unsigned long long)ranks, m->adapters->ranks);
	return true;
}

static void hold(jit_adapter *a) { atomic_fetch_add(&a->holders, 1); }

bool adapters_choose(struct adapters_chosen *c, const jit_model *m, jit_adapter *const *adapters, const float *scales,
                     size_t n, struct error *err)
{
	*c = (struct adapters_chosen){ 0 };
	if (!check_chosen(m, adapters, scales, n, err))
		return false;
	for (size_t i = 0; i < n; i++) {
		const float scale = scales ? scales[i] : 1;
		if (scale == 0)
			continue;
		const uint64_t number[] = { adapters[i]->key, c->set, c->n };
		c->of[c->n].adapter = adapters[i];
		c->of[c->n++].scale = scale;
		c->set = record_checksum(&scale, sizeof scale, record_checksum(number, sizeof number, 1)) | 1ull << 63;
		hold(adapters[i]);
	}
	adapters_begin(c, 0);
	return true;
}

void adapters_begin(struct adapters_chosen *c, uint64_t from)
{
	c->from = c->n ? from : 0;
	c->root = c->from ? 0 : c->set;
	c->key = c->from ? record_checksum(&c->from, sizeof c->from, c->set) | 1ull << 63 : c->set;
}

bool adapters_always_count(const struct adapters_chosen *c, struct error *err)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->of[i].adapter->n_invocation)
			return error_set(err, ERROR_ARGUMENT,
			                 "adapter %u counts from its invocation tokens on alone: "
			                 "jit_session_set_adapters_from says where they are",
			                 i);
	return true;
}

void adapters_copy(struct adapters_chosen *to, const struct adapters_chosen *from)
{
	*to = *from;
	for (uint32_t i = 0; i < to->n; i++)
		hold(to->of[i].adapter);
}

void adapters_drop(struct adapters_chosen *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		adapter_release(c->of[i].adapter);
	*c = (struct adapters_chosen){ 0 };
}

void adapters_set(struct adapt_set *out, const struct adapters_chosen *c)
{
	*out = (struct adapt_set){ .n = (int32_t)c->n };
	for (uint32_t i = 0; i < c->n; i++) {
		out->of[i].adapter = (int32_t)c->of[i].adapter->number;
		out->of[i].scale = c->of[i].scale;
	}
}

static void read_row(const jit_adapter *a, float scale, int32_t id, float *out)
{
	const bool known = id >= 0 && (uint32_t)id < a->embed.tokens;

	for (uint32_t j = 0; j < a->embed.ranks; j++)
		out[j] = known ? a->embed.row[(size_t)id * a->embed.ranks + j] * scale : 0;
}

void adapters_read_rows(const struct adapters_chosen *c, const int32_t *ids, uint32_t n, float *out, uint64_t stride)
{
	for (uint32_t i = 0; i < n; i++) {
		float *to = out + i * stride;
		for (uint32_t k = 0; k < c->n; k++) {
			const jit_adapter *a = c->of[k].adapter;
			const float scale = c->of[k].scale * a->embed.scale;
			read_row(a, scale, ids[i], to);
			to += a->embed.ranks;
		}
	}
}

void adapters_read_whole(const struct adapters_chosen *c, const int32_t *ids, uint32_t n, float *factor, float *row,
                         uint64_t stride)
{
	for (uint64_t i = 0; i < n * stride; i++) {
		factor[i] = 1;
		row[i] = -0.0f;
	}
	for (uint32_t k = 0; k < c->n; k++)
		for (uint32_t i = 0; i < n; i++)
			if (adapter_rows_get(c->of[k].adapter, ids[i], row + i * stride))
				memset(factor + i * stride, 0, stride * sizeof *factor);
}
