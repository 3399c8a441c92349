/* runtime/model/adapter_open.c - jit_adapter: an adapter's numbers from its files into the device's memory, and into
 * the tables of the model's matrices (adapters.h).
 *
 * Numbers are kept in 16 bits where all of a pair's are the same numbers then; so no bit of a result depends on it.
 */
#include "runtime/model/adapter_open.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "jit/store/record.h"
#include "kernels-templates/formats/weight_format.h"
#include "loaders/adapter/adapter.h"
#include "runtime/model/sized.h"

enum { ALIGN = 64, SLACK = 512 /* that kernels may read behind */ };

/* One matrix of the model, on its way. */
struct piece {
	const struct adapter_part *part;
	const struct weights_matrix *matrix;
	float *a, *b, *extra; /* extra: [ADAPT_EXTRAS][padded rows]; NULL: none */
	enum adapt_type type;
	uint32_t rank;       /* a multiple of ADAPT_RANKS */
	uint64_t at_a, at_b; /* in the adapter's memory */
	struct adapt_fact fact;
};

/* ---- numbers */

static bool is_bf16(float x) { return number_bits(number_from_bf16(number_to_bf16(x))) == number_bits(x); }
static bool is_f16(float x) { return number_bits(number_from_half(number_to_half(x))) == number_bits(x); }

static bool all(const float *x, uint64_t n, bool (*is)(float))
{
	for (uint64_t i = 0; i < n; i++)
		if (!is(x[i]))
			return false;
	return true;
}

static enum adapt_type narrowest(const struct piece *p)
{
	const uint64_t n = p->part->rank * p->part->cols, m = p->part->rank * p->part->rows;

	if (all(p->a, n, is_bf16) && all(p->b, m, is_bf16))
		return ADAPT_BF16;
	return all(p->a, n, is_f16) && all(p->b, m, is_f16) ? ADAPT_F16 : ADAPT_F32;
}

static size_t element(enum adapt_type type) { return type == ADAPT_F32 ? 4 : 2; }

static void put(uint8_t *to, enum adapt_type type, uint64_t i, float x)
{
	const uint16_t half = type == ADAPT_F16 ? number_to_half(x) : number_to_bf16(x);

	if (type == ADAPT_F32)
		memcpy(to + 4 * i, &x, 4);
	else
		memcpy(to + 2 * i, &half, 2);
}

/* [rank][kp(cols)] and [row block][rank][32], pads +0. */
static void pack(uint8_t *to, const struct piece *p)
{
	const struct adapter_part *part = p->part;
	const uint64_t kp = numerics_pad(part->cols);

	for (uint32_t j = 0; j < part->rank; j++)
		for (uint64_t i = 0; i < part->cols; i++)
			put(to + p->at_a, p->type, j * kp + i, p->a[j * part->cols + i]);
	for (uint64_t r = 0; r < part->rows; r++)
		for (uint32_t j = 0; j < part->rank; j++)
			put(to + p->at_b, p->type, (r / 32 * p->rank + j) * 32 + r % 32, p->b[r * part->rank + j]);
	uint8_t *const extras = to + p->at_b + p->rank * numerics_pad(part->rows) * element(p->type);
	for (uint64_t r = 0; p->extra && r < numerics_pad(part->rows); r++)
		for (unsigned e = 0; e < ADAPT_EXTRAS; e++)
			put(extras, ADAPT_F32, (r / 32 * ADAPT_EXTRAS + e) * 32 + r % 32,
			    p->extra[e * numerics_pad(part->rows) + r]);
}

static uint64_t take(uint64_t *used, uint64_t bytes)
{
	const uint64_t at = *used;

	*used += (bytes + SLACK + ALIGN - 1) / ALIGN * ALIGN;
	return at;
}

static enum matrix_slot matrix_of(enum tensor_slot slot)
{
	static const enum matrix_slot of[TENSOR_SLOTS] = {
#define X(name, ...) [SLOT_##name] = MATRIX_##name,
		MATRIX_SLOTS_EACH(X)
#undef X
	};
	return of[slot];
}

/* ---- magnitudes and biases */

/* A row of W, as it lies in the model's file. */
static bool read_row(const jit_model *m, const struct model_tensor *t, uint64_t row, uint8_t *raw, float *out,
                     struct error *err)
{
	const uint64_t at = model_source_row(t, m->file.spec.head_dim, row) * t->row_bytes;

	if (!model_read(&m->file, t, at, t->row_bytes, raw, err))
		return false;
	weight_format_find(t->type)->to_f32(out, raw, t->cols);
	return true;
}

/* What a row's squared norm is by the user's scale: of w and s * b A, with `turned` A by columns, and gram A times
 * itself. */
static void norm_of(const struct piece *p, uint64_t row, const float *w, const double *turned, const double *gram,
                    double scale)
{
	const uint32_t rank = p->part->rank;
	const uint64_t rp = numerics_pad(p->part->rows);
	const float *b = p->b + row * rank;
	double own = 0, cross = 0, square = 0, by[ADAPTER_MAX_RANK] = { 0 };

	for (uint64_t i = 0; i < p->part->cols; i++) {
		const double x = (double)w[i];
		own += x * x;
		for (uint32_t j = 0; j < rank; j++)
			by[j] += turned[i * rank + j] * x;
	}
	for (uint32_t j = 0; j < rank; j++) {
		cross += (double)b[j] * by[j];
		for (uint32_t k = 0; k < rank; k++)
			square += (double)b[j] * (double)b[k] * gram[j * rank + k];
	}
	if (own == 0 && square == 0) { /* nothing has no direction */
		p->extra[ADAPT_MAGNITUDE * rp + row] = 1;
		own = 1;
	}
	p->extra[ADAPT_NORM * rp + row] = (float)own;
	p->extra[ADAPT_NORM_BY * rp + row] = (float)(2 * scale * cross);
	p->extra[ADAPT_NORM_SQUARE * rp + row] = (float)(scale * scale * square);
}

static void turn_first(const struct piece *p, double *turned, double *gram)
{
	const uint32_t rank = p->part->rank;

	for (uint64_t i = 0; i < p->part->cols; i++)
		for (uint32_t j = 0; j < rank; j++)
			turned[i * rank + j] = (double)p->a[j * p->part->cols + i];
	for (uint64_t i = 0; i < p->part->cols; i++)
		for (uint32_t j = 0; j < rank; j++)
			for (uint32_t k = 0; k < rank; k++)
				gram[j * rank + k] += turned[i * rank + j] * turned[i * rank + k];
}

static bool fill_norms(const struct piece *p, const jit_model *m, double scale, struct error *err)
{
	const struct adapter_part *part = p->part;
	const struct model_tensor *t = &m->file.spec.layer[part->layer].matrix[matrix_of(part->slot)];
	double *turned = calloc(part->cols * part->rank + 1, sizeof *turned),
	       *gram = calloc((size_t)part->rank * part->rank + 1, sizeof *gram);
	float *w = malloc(part->cols * sizeof *w);
	uint8_t *raw = malloc(t->row_bytes + (size_t)1);
	bool ok = (turned && gram && w && raw) || error_set(err, ERROR_MEMORY, "no memory for norms of rows");

	if (ok)
		turn_first(p, turned, gram);
	for (uint64_t r = 0; ok && r < part->rows; r++) {
		ok = read_row(m, t, r, raw, w, err);
		if (ok)
			norm_of(p, r, w, turned, gram, scale);
	}
	free(turned);
	free(gram);
	free(w);
	free(raw);
	return ok;
}

/* The vectors behind its second matrix. Pads have the magnitude and the norm 1. */
static bool read_extras(struct piece *p, const struct adapter_file *f, const jit_model *m, struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->part->pair];
	const uint64_t rp = numerics_pad(p->part->rows);

	if (!pair->magnitude.name && !pair->bias.name)
		return true;
	if (!(p->extra = calloc(ADAPT_EXTRAS * rp, sizeof *p->extra)))
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	for (uint64_t r = 0; r < rp; r++)
		p->extra[ADAPT_MAGNITUDE * rp + r] = p->extra[ADAPT_NORM * rp + r] = 1;
	p->fact.extras = (pair->magnitude.name ? ADAPT_DORA : 0) | (pair->bias.name ? ADAPT_BIAS : 0);
	if (pair->magnitude.name && (!adapter_read_magnitude(f, p->part, p->extra + ADAPT_MAGNITUDE * rp, err) ||
	                             !fill_norms(p, m, (double)p->fact.scale, err)))
		return false;
	return !pair->bias.name || adapter_read_bias(f, p->part, p->extra + ADAPT_BIASES * rp, err);
}

static bool read_piece(struct piece *p, const struct adapter_file *f, const jit_model *m, uint64_t *used,
                       struct error *err)
{
	const struct adapter_part *part = p->part;

	p->matrix = &m->weights.layer[part->layer].matrix[matrix_of(part->slot)];
	p->a = malloc(part->rank * part->cols * sizeof *p->a);
	p->b = malloc(part->rank * part->rows * sizeof *p->b);
	if (!p->a || !p->b)
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	if (!p->matrix->site)
		return error_set(err, ERROR_UNSUPPORTED, "%s: nothing can be added to %s here", f->weights.label,
		                 part->place.name);
	if (!adapter_read(f, part, p->a, p->b, err))
		return false;
	p->type = narrowest(p);
	p->rank = (part->rank + ADAPT_RANKS - 1) / ADAPT_RANKS * ADAPT_RANKS;
	p->fact = (struct adapt_fact){
		.rank = (int32_t)p->rank, .scale = (float)f->pair[part->pair].scale, .type = (int32_t)p->type
	};
	p->at_a = take(used, p->rank * numerics_pad(part->cols) * element(p->type));
	if (!read_extras(p, f, m, err))
		return false;
	p->at_b = take(used, p->rank * numerics_pad(part->rows) * element(p->type) +
	                             (p->extra ? ADAPT_EXTRAS * numerics_pad(part->rows) * 4 : 0));
	return true;
}

/* ---- into the device's memory, and into the tables */

static bool fill_memory(jit_adapter *a, const struct piece *piece, size_t n, struct error *err)
{
	struct device *d = a->model->device;
	uint8_t *packed = calloc(1, a->bytes);
	bool ok = packed != NULL || error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");

	for (size_t i = 0; ok && i < n; i++) {
		pack(packed, &piece[i]);
		a->key = record_checksum(&piece[i].fact, sizeof piece[i].fact, a->key + piece[i].part->layer);
		a->key = record_checksum(&piece[i].part->slot, sizeof piece[i].part->slot, a->key);
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

static bool fill_tables(jit_adapter *a, const struct piece *piece, size_t n, struct error *err)
{
	struct device *d = a->model->device;

	for (size_t i = 0; i < n; i++) {
		const struct weights_site *site = piece[i].matrix->site;
		uint8_t *const down[] = { a->memory + piece[i].at_a }, *const up[] = { a->memory + piece[i].at_b };
		if (!device_upload_addresses(d, site->down + a->number * 8, down, 1, err) ||
		    !device_upload_addresses(d, site->up + a->number * 8, up, 1, err) ||
		    !set_fact(a, site, &piece[i].fact, err))
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
	atomic_fetch_add(&a->model->adapters->version, 1);
}

static bool take_number(jit_adapter *a, struct error *err)
{
	struct adapters *all = a->model->adapters;
	unsigned i = 0;

	pthread_mutex_lock(&all->lock);
	while (i < ADAPTERS_MOST && all->of[i])
		i++;
	if (i < ADAPTERS_MOST)
		all->of[i] = a;
	pthread_mutex_unlock(&all->lock);
	a->number = i;
	return i < ADAPTERS_MOST ||
	       error_set(err, ERROR_ARGUMENT, "the model has %d adapters, which is all it can have", ADAPTERS_MOST);
}

static bool take_pieces(jit_adapter *a, struct piece *piece, const struct adapter_file *f, struct error *err)
{
	const struct adapters *all = a->model->adapters;
	uint64_t used = 0;

	for (size_t i = 0; i < f->n_parts; i++) {
		piece[i].part = &f->part[i];
		if (!read_piece(&piece[i], f, a->model, &used, err))
			return false;
		a->matrix[a->matrices++] = piece[i].matrix;
		a->scaled |= piece[i].extra != NULL;
		a->rank = f->part[i].rank > a->rank ? f->part[i].rank : a->rank;
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

static void free_pieces(struct piece *piece, size_t n)
{
	for (size_t i = 0; piece && i < n; i++) {
		free(piece[i].a);
		free(piece[i].b);
		free(piece[i].extra);
	}
	free(piece);
}

static bool load(jit_adapter *a, const struct adapter_file *f, struct error *err)
{
	struct piece *piece = calloc(f->n_parts + 1, sizeof *piece);
	bool ok = piece && (a->matrix = calloc(f->n_parts + 1, sizeof *a->matrix));

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for an adapter");
	if (ok && f->n_invocation)
		ok = error_set(err, ERROR_UNSUPPORTED,
		               "%s: alora_invocation_tokens is set: adapters that begin behind certain tokens are not "
		               "done",
		               f->weights.label);
	ok = ok && take_pieces(a, piece, f, err) && take_number(a, err) && fill_memory(a, piece, f->n_parts, err) &&
	     fill_tables(a, piece, f->n_parts, err);
	free_pieces(piece, f->n_parts);
	return ok;
}

jit_adapter *jit_adapter_open(jit_model *m, const char *path, jit_error *err)
{
	struct error e = { 0 };
	struct adapter_file f;
	jit_adapter *a = NEEDED(m, &e) && NEEDED(path, &e) ? calloc(1, sizeof *a) : NULL;

	if (!a)
		error_set(&e, ERROR_MEMORY, "no memory for an adapter");
	if (a && adapters_enable(m, 0, &e) && adapter_open(&f, path, &m->file, &e)) {
		*a = (jit_adapter){ .model = m, .number = ADAPTERS_MOST, .holders = 1 };
		if (load(a, &f, &e))
			count_users(a, 1);
		adapter_close(&f);
	}
	if (a && e.code != ERROR_NONE) {
		a->model = m;
		adapter_free(a);
		a = NULL;
	}
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
	free(a->matrix);
	free(a);
}

/* Behind its last holder no session computes with it; what a new one with its number lacks must be missing. */
static void leave(jit_adapter *a)
{
	static const struct adapt_fact nothing;
	struct error ignored = { 0 };

	for (uint32_t i = 0; i < a->matrices; i++)
		set_fact(a, a->matrix[i]->site, &nothing, &ignored);
	count_users(a, -1);
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
		const jit_adapter_info own = {
			.rank = (int)a->rank, .matrices = (int)a->matrices, .bytes = a->bytes, .fingerprint = a->key
		};
		SIZED_WRITE(jit_adapter_info, out, &own, &e);
	}
	return model_report(err, &e);
}
