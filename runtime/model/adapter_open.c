/* runtime/model/adapter_open.c - jit_adapter: an adapter's numbers from its files into the device's memory, and into
 * the tables of the model's matrices (adapters.h).
 *
 * Numbers are kept in 16 bits where all of a pair's are the same numbers then; so no bit of a result depends on it.
 */
#include "runtime/model/adapter_open.h"

#include <stdlib.h>
#include <string.h>

#include "jit/store/record.h"
#include "runtime/model/adapter_update.h"
#include "runtime/model/adapters_ranks.h"
#include "runtime/model/sized.h"

enum { ALIGN = 64, SLACK = 512 /* that kernels may read behind */ };

/* ---- updates */

static uint64_t take(uint64_t *used, uint64_t bytes)
{
	const uint64_t at = *used;

	*used += (bytes + SLACK + ALIGN - 1) / ALIGN * ALIGN;
	return at;
}

static const struct weights_matrix *matrix_for(const jit_model *m, const struct adapter_part *p)
{
	switch (p->target) {
	case ADAPTER_EMBEDDING: return &m->weights.embed;
	case ADAPTER_OUTPUT: return &m->weights.lm_head;
	case ADAPTER_WHOLE_OUTPUT: return &m->weights.head_whole;
	default: return &m->weights.layer[p->layer].matrix[update_matrix_slot(p->slot)];
	}
}

/* All of an output matrix, as the first one of a pair of that rank. */
static bool read_head(struct update *p, const struct adapter_file *f, const jit_model *m, uint64_t *used,
                      struct error *err)
{
	const struct adapter_part *part = p->part;

	if (m->weights.head_bias)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is a whole output matrix, and the model's has biases: that is not done",
		                 f->weights.label, f->whole[part->pair].t.name);

	if (!(p->a = malloc(part->rows * part->cols * sizeof *p->a)))
		return error_set(err, ERROR_MEMORY, "no memory for an output matrix of an adapter");
	if (!adapter_read_whole(f, part, 0, part->rows, p->a, err))
		return false;
	p->type = update_narrowest(p);
	p->rank = (uint32_t)(part->rows + ADAPT_RANKS - 1) / ADAPT_RANKS * ADAPT_RANKS;
	p->fact = (struct adapt_fact){ .rank = (int32_t)p->rank, .scale = 1, .type = (int32_t)p->type };
	p->at_a = p->at_b = take(used, p->rank * numerics_pad(part->cols) * update_element(p->type));
	return true;
}

static bool read_update(struct update *p, const struct adapter_file *f, const jit_model *m, uint64_t *used,
                        struct error *err)
{
	const struct adapter_part *part = p->part;

	p->matrix = matrix_for(m, part);
	if (part->target == ADAPTER_WHOLE_OUTPUT)
		return read_head(p, f, m, used, err);
	p->a = malloc(update_experts(p) * part->rank * part->cols * sizeof *p->a);
	p->b = malloc(update_experts(p) * part->rank * part->rows * sizeof *p->b);
	if (!p->a || !p->b)
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	if (!p->matrix->site)
		return error_set(err, ERROR_UNSUPPORTED, "%s: nothing can be added to %s here", f->weights.label,
		                 part->location.name);
	if (!adapter_read(f, part, p->a, p->b, err))
		return false;
	p->type = update_narrowest(p);
	p->rank = (part->rank + ADAPT_RANKS - 1) / ADAPT_RANKS * ADAPT_RANKS;
	p->fact = (struct adapt_fact){
		.rank = (int32_t)p->rank, .scale = (float)f->pair[part->pair].scale, .type = (int32_t)p->type
	};
	p->at_a = p->at_b =
		take(used, update_experts(p) * p->rank * numerics_pad(part->cols) * update_element(p->type));
	if (update_embeds(p))
		return true;
	if (!part->experts && !update_read_extras(p, f, m, err))
		return false;
	p->at_b = take(used, update_experts(p) * p->rank * numerics_pad(part->rows) * update_element(p->type) +
	                             (p->extra ? ADAPT_EXTRAS * numerics_pad(part->rows) * 4 : 0));
	return true;
}

/* ---- into the device's memory, and into the tables */

static bool fill_memory(jit_adapter *a, const struct update *update, size_t n, struct error *err)
{
	struct device *d = a->model->device;

	if (!a->bytes)
		return true; /* all of it is the host's */
	uint8_t *packed = calloc(1, a->bytes);
	bool ok = packed != NULL || error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");

	for (size_t i = 0; ok && i < n; i++) {
		update_pack(packed, &update[i]);
		const uint64_t position = update[i].part->layer + ((uint64_t)update[i].part->target << 32);
		a->key = record_checksum(&update[i].fact, sizeof update[i].fact, a->key + position);
		a->key = record_checksum(&update[i].part->slot, sizeof update[i].part->slot, a->key);
	}
	if (ok) {
		a->key = record_checksum(packed, a->bytes, a->key);
		ok = (a->memory = d->alloc(d, a->bytes, DEVICE_VECTORS, err)) != NULL &&
		     d->upload(d, a->memory, packed, a->bytes, err);
	}
	free(packed);
	return ok;
}

static bool set_fact(const jit_adapter *a, const struct weights_site *site, const struct adapt_fact *fact,
                     struct error *err)
{
	struct device *d = a->model->device;

	return d->upload(d, site->facts + a->number * sizeof *fact, fact, sizeof *fact, err);
}

static bool fill_tables(jit_adapter *a, const struct update *update, size_t n, struct error *err)
{
	struct device *d = a->model->device;

	for (size_t i = 0; i < n; i++) {
		const struct weights_site *site = update[i].matrix->site;
		uint8_t *const down[] = { a->memory + update[i].at_a }, *const up[] = { a->memory + update[i].at_b };
		if (!device_upload_addresses(d, site->down + a->number * 8, down, 1, err) ||
		    !device_upload_addresses(d, site->up + a->number * 8, up, 1, err) ||
		    !set_fact(a, site, &update[i].fact, err))
			return false;
	}
	return true;
}

/* Its matrices are no longer, or from now on, among those that plans add to. */
static void count_users(const jit_adapter *a, int by)
{
	for (uint32_t i = 0; i < a->matrices; i++) {
		struct weights_site *site = (struct weights_site *)(uintptr_t)a->matrix[i]->site;
		atomic_fetch_add(&site->users, (uint32_t)by);
		if (a->scaled)
			atomic_fetch_add(&site->scaled, (uint32_t)by);
	}
	if (a->whole & ADAPTER_WHOLE_ROWS) {
		struct weights_site *site = (struct weights_site *)(uintptr_t)a->model->weights.embed.site;
		atomic_fetch_add(&site->whole, (uint32_t)by);
	}
	atomic_fetch_add(&a->model->adapters->version, 1);
}

/* a->number: the one that is wanted; ADAPTERS_MOST: any. */
static bool take_number(jit_adapter *a, struct error *err)
{
	struct adapters *all = a->model->adapters;
	unsigned i = a->number < ADAPTERS_MOST ? a->number : 0;

	pthread_mutex_lock(&all->lock);
	while (i < ADAPTERS_MOST && all->of[i] && a->number == ADAPTERS_MOST)
		i++;
	const bool is_free = i < ADAPTERS_MOST && !all->of[i];
	if (is_free)
		all->of[i] = a;
	pthread_mutex_unlock(&all->lock);
	a->number = is_free ? i : ADAPTERS_MOST;
	return is_free ||
	       error_set(err, ERROR_ARGUMENT, "the model has %d adapters, which is all it can have", ADAPTERS_MOST);
}

/* What the host looks up for each token. */
static bool keep_rows(jit_adapter *a, const struct update *p, struct error *err)
{
	const uint32_t rank = p->part->rank;

	a->embed.row = calloc(p->part->rows * p->rank, sizeof *a->embed.row);
	if (!a->embed.row)
		return error_set(err, ERROR_MEMORY, "no memory for the embedding of an adapter");
	a->embed.ranks = p->rank;
	a->embed.tokens = (uint32_t)p->part->rows;
	a->embed.scale = p->fact.scale;
	for (uint64_t t = 0; t < p->part->rows; t++)
		memcpy(a->embed.row + t * p->rank, p->b + t * rank, rank * sizeof(float));
	a->key = record_checksum(a->embed.row, p->part->rows * p->rank * sizeof(float), a->key);
	return true;
}

/* *n: how many there are for the device. */
static bool take_updates(jit_adapter *a, struct update *update, const struct adapter_file *f, size_t *n,
                         struct error *err)
{
	const struct adapters *all = a->model->adapters;
	uint64_t used = 0;

	for (size_t i = 0; i < f->n_parts; i++) {
		struct update *p = &update[*n];
		p->part = &f->part[i];
		if (p->part->target == ADAPTER_WHOLE_EMBEDDING) {
			if (!adapter_rows_open(a, f, p->part, err))
				return false;
			continue;
		}
		++*n;
		if (!read_update(p, f, a->model, &used, err) || (update_embeds(p) && !keep_rows(a, p, err)))
			return false;
		a->matrix[a->matrices++] = p->matrix;
		a->scaled |= p->extra != NULL;
		a->rank = p->part->rank > a->rank ? p->part->rank : a->rank;
		a->whole |= p->part->target == ADAPTER_WHOLE_OUTPUT ? ADAPTER_WHOLE_HEAD : 0;
		if (p->part->target == ADAPTER_LAYER && f->pair[p->part->pair].own_bias.name)
			a->whole |= ADAPTER_WHOLE_BIASES;
	}
	a->ranks = (a->rank + ADAPT_RANKS - 1) / ADAPT_RANKS * ADAPT_RANKS;
	a->bytes = used;
	if (a->ranks > all->ranks)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s: the adapter has rank %u, and the model was made ready for %u "
		                 "(jit_model_adapters)",
		                 f->weights.label, a->rank, all->ranks);
	return adapter_read_done(f, err);
}

static void free_updates(struct update *update, size_t n)
{
	for (size_t i = 0; update && i < n; i++) {
		free(update[i].a);
		free(update[i].b);
		free(update[i].extra);
	}
	free(update);
}

static bool take_invocation(jit_adapter *a, const struct adapter_file *f, struct error *err)
{
	const size_t bytes = f->n_invocation * sizeof *a->invocation;

	if (!bytes)
		return true;
	if (!(a->invocation = malloc(bytes)))
		return error_set(err, ERROR_MEMORY, "no memory for an adapter's invocation tokens");
	memcpy(a->invocation, f->invocation, bytes);
	a->n_invocation = f->n_invocation;
	a->key = record_checksum(a->invocation, bytes, a->key);
	return true;
}

static bool load(jit_adapter *a, const struct adapter_file *f, struct error *err)
{
	struct update *update = calloc(f->n_parts + 1, sizeof *update);
	size_t n = 0;
	bool ok = update && (a->matrix = calloc(f->n_parts + 1, sizeof *a->matrix));

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for an adapter");
	ok = ok && take_invocation(a, f, err) && take_updates(a, update, f, &n, err) && take_number(a, err) &&
	     fill_memory(a, update, n, err) && fill_tables(a, update, n, err);
	free_updates(update, f->n_parts);
	return ok;
}

/* What a later one with its number lacks must be missing. */
static void clear_facts(const jit_adapter *a)
{
	static const struct adapt_fact nothing;
	struct error ignored = { 0 };

	for (uint32_t i = 0; i < a->matrices; i++)
		set_fact(a, a->matrix[i]->site, &nothing, &ignored);
}

/* From here on plans add to its matrices, on all ranks or on none. */
static bool begin_use(jit_adapter *a, const char *path, struct error *err)
{
	struct ranks *r = a->model->ranks;

	if (r)
		ranks_begin(r);
	const bool ok = adapter_tell_open(a, path, err);
	if (ok)
		count_users(a, 1);
	else
		clear_facts(a);
	if (r)
		ranks_end(r);
	return ok;
}

jit_adapter *adapter_load(jit_model *m, const char *path, unsigned number, struct error *err)
{
	jit_adapter *a = calloc(1, sizeof *a);
	struct adapter_file f;
	bool ok = a != NULL || error_set(err, ERROR_MEMORY, "no memory for an adapter");

	if (ok && (ok = adapter_open(&f, path, &m->file, err))) {
		*a = (jit_adapter){ .model = m, .number = number, .holders = 1 };
		ok = load(a, &f, err) && begin_use(a, path, err);
		adapter_close(&f);
	}
	if (!ok && a) {
		a->model = m;
		adapter_free(a);
	}
	return ok ? a : NULL;
}

jit_adapter *jit_adapter_open(jit_model *m, const char *path, jit_error *err)
{
	struct error e = { 0 };
	jit_adapter *a = NULL;

	if (NEEDED(m, &e) && NEEDED(path, &e) && adapters_enable(m, 0, &e))
		a = adapter_load(m, path, ADAPTERS_MOST, &e);
	model_report(err, &e);
	return a;
}

/* ---- the end of it */

void adapter_free(jit_adapter *a)
{
	struct device *d = a->model->device;
	struct adapters *all = a->model->adapters;

	if (a->memory)
		d->release(d, a->memory, a->bytes);
	if (all && a->number < ADAPTERS_MOST) {
		pthread_mutex_lock(&all->lock);
		if (all->of[a->number] == a)
			all->of[a->number] = NULL;
		pthread_mutex_unlock(&all->lock);
	}
	free(a->invocation);
	free(a->embed.row);
	free(a->rows.row);
	free(a->matrix);
	free(a);
}

/* Behind its last holder no session computes with it. */
static void leave(jit_adapter *a)
{
	struct ranks *r = a->model->ranks;

	if (r)
		ranks_begin(r);
	adapter_tell_close(a);
	clear_facts(a);
	count_users(a, -1);
	if (r)
		ranks_end(r);
	adapter_free(a);
}

void adapter_release(jit_adapter *a)
{
	if (atomic_fetch_sub(&a->holders, 1) == 1)
		leave(a);
}

void jit_adapter_close(jit_adapter *a)
{
	if (a)
		adapter_release(a);
}

int jit_adapter_get_info(const jit_adapter *a, jit_adapter_info *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(a, &e) && NEEDED(out, &e)) {
		const jit_adapter_info own = { .rank = (int)a->rank,
			                       .matrices = (int)a->matrices,
			                       .bytes = a->bytes,
			                       .fingerprint = a->key,
			                       .invocation = a->n_invocation };
		SIZED_WRITE(jit_adapter_info, out, &own, &e);
	}
	return model_report(err, &e);
}

size_t jit_adapter_begins(const jit_adapter *a, const int32_t *ids, size_t n)
{
	const size_t m = a ? a->n_invocation : 0;

	if (!a || (n && !ids))
		return n;
	for (size_t i = n; m && i >= m; i--)
		if (memcmp(ids + i - m, a->invocation, m * sizeof *ids) == 0)
			return i - m;
	return m ? n : 0;
}
