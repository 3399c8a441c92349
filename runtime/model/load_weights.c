#include "runtime/model/load_weights.h"
#include "runtime/plan/cut.h"
#include "runtime/plan/cut_shares.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"

enum { SLICE_BYTES = 4 << 20, READ_BYTES = 256 << 10 };

/* One matrix to pack: where from, where to. */
struct job {
	const struct model_tensor *tensor;
	uint8_t *out;
	uint64_t blocks, block_bytes, stride;       /* stride: bytes from a block to the next */
	uint64_t experts;                           /* who have the blocks, as many each */
	uint64_t first, end;                        /* of an expert's, or of all: those that are wanted */
	uint64_t read_blocks;                       /* so many are read and packed at a time */
	uint64_t slice_blocks, slices, first_slice; /* work is handed out in slices */
	uint32_t head_dim;
};

struct packing {
	const struct model *model;
	struct device *device;
	enum weight_layout layout;
	struct job *job;
	size_t n_jobs;
	uint64_t slices;
	_Atomic uint64_t next, bytes_done;
	_Atomic int stop;
	atomic_flag failed; /* the first who fails writes err */
	struct error err;
	size_t buffer_bytes, block_bytes; /* of each worker: rows as they are read; behind them a packed block, where
	                                     the device takes only copies */
	uint64_t bytes_total;
	int (*progress)(void *, uint64_t, uint64_t);
	void *user;
};

/* Whether rows are found head by head. */
static bool by_heads(const struct model_tensor *t) { return t->rope_dims || t->head_rows; }

/* The same of rows that lie by heads of keys. */
static void rows_by_key(const struct model_tensor *t, uint64_t b0, uint64_t b1, uint64_t *first, uint64_t *end)
{
	uint64_t last = b1 * 32 < t->rows ? b1 * 32 : t->rows;

	*first = UINT64_MAX;
	*end = 0;
	for (uint64_t r = b0 * 32; r < last; r++) {
		uint64_t from = model_source_row(t, 0, r);
		*first = from < *first ? from : *first;
		*end = from >= *end ? from + 1 : *end;
	}
}

/* The rows of the file that blocks b0 to b1 are made of; whole heads where their rows change places. */
static void source_rows(const struct job *j, uint64_t b0, uint64_t b1, uint64_t *first, uint64_t *end)
{
	uint64_t rows = j->tensor->rows, together = by_heads(j->tensor) ? j->head_dim : 1, of = j->blocks / j->experts;

	if (j->experts > 1) { /* of one expert, whose last block may be part empty */
		uint64_t before = b0 / of * rows, last = (b1 - 1) % of * 32 + 32;
		*first = before + b0 % of * 32;
		*end = before + (last < rows ? last : rows);
		return;
	}

	if (j->tensor->by_key) {
		rows_by_key(j->tensor, b0, b1, first, end);
		return;
	}
	*first = b0 * 32 / together * together;
	*end = (b1 * 32 + together - 1) / together * together;
	if (*end > rows)
		*end = rows;
	if (j->tensor->head_rows) {
		*first = *first / together * j->tensor->head_rows;
		*end = *end / together * j->tensor->head_rows;
	}
}

/* So many blocks that their rows fill the buffer, and that no head is read twice if that can be. */
static void plan_reads(struct job *j, size_t *buffer_bytes)
{
	const struct model_tensor *t = j->tensor;
	if (t->heads) { /* a head at a time; transposed rows lie behind those that are read */
		size_t bytes = (t->transposed ? t->cols : t->own_rows) * t->row_bytes;
		bytes += t->transposed ? t->own_rows * t->cols * dtype_table[t->type].bytes : 0;
		j->read_blocks = (t->own_rows + 31) / 32;
		*buffer_bytes = bytes > *buffer_bytes ? bytes : *buffer_bytes;
		return;
	}
	if (t->by_key) { /* a block at a time */
		j->read_blocks = 1;
		for (uint64_t b = 0, first, end; b < j->blocks; b++) {
			rows_by_key(t, b, b + 1, &first, &end);
			*buffer_bytes = (end - first) * t->row_bytes > *buffer_bytes ? (end - first) * t->row_bytes
			                                                             : *buffer_bytes;
		}
		return;
	}
	if (t->transposed) { /* an expert, or all, at a time: a row's numbers lie far apart */
		size_t bytes = (size_t)t->rows * t->row_bytes;
		j->read_blocks = j->blocks / j->experts;
		*buffer_bytes = bytes > *buffer_bytes ? bytes : *buffer_bytes;
		return;
	}
	uint64_t unit = by_heads(t) ? (j->head_dim + 31) / 32 : 1,
		 at_once = model_rows_lie_apart(t) ? SLICE_BYTES : READ_BYTES,
		 fit = at_once / (32 * unit * t->row_bytes);
	uint64_t heads =
		by_heads(t) && j->head_dim % 32 ? 2 * (uint64_t)j->head_dim : 0; /* of which a part may be wanted */

	j->read_blocks = unit * (fit ? fit : 1);
	uint64_t rows = j->read_blocks * 32 + heads, bytes = (rows < t->rows ? rows : t->rows) * t->row_bytes;
	if (t->head_rows)
		bytes = bytes / j->head_dim * t->head_rows + t->head_rows * t->row_bytes;
	if (bytes > *buffer_bytes)
		*buffer_bytes = bytes;
}

static bool put_block(const struct packing *p, const struct job *j, uint64_t block, const void *const row[32],
                      uint8_t *buffer, struct error *err)
{
	bool in_place = p->device->facts.host_reaches;
	uint8_t *to = j->out + block * j->stride, *packed = in_place ? to : buffer + p->buffer_bytes;

	weight_pack_block(j->tensor->type, p->layout, packed, row, j->tensor->cols);
	return in_place || p->device->upload(p->device, to, packed, j->block_bytes, err);
}

/* A head's matrix, whose columns may be the file's rows. */
static bool pack_head(const struct packing *p, const struct job *j, uint64_t head, uint8_t *buffer, struct error *err)
{
	const struct model_tensor *t = j->tensor;
	size_t element = dtype_table[t->type].bytes, read = (t->transposed ? t->cols : t->own_rows) * t->row_bytes;
	size_t row_bytes = t->transposed ? t->cols * element : t->row_bytes;
	uint8_t *rows = t->transposed ? buffer + read : buffer;

	if (!model_read(p->model, t, (head * t->own_file_rows + t->own_first) * t->row_bytes, read, buffer, err))
		return false;
	for (uint64_t r = 0; t->transposed && r < t->own_rows; r++)
		for (uint64_t c = 0; c < t->cols; c++)
			memcpy(rows + r * row_bytes + c * element, buffer + c * t->row_bytes + r * element, element);
	for (uint64_t b = 0; b < j->read_blocks; b++) {
		const void *row[32];
		for (unsigned i = 0; i < 32; i++)
			row[i] = b * 32 + i < t->own_rows ? rows + (b * 32 + i) * row_bytes : NULL;
		if (!put_block(p, j, head * j->read_blocks + b, row, buffer, err))
			return false;
	}
	return true;
}

static bool pack_blocks(const struct packing *p, const struct job *j, uint64_t b0, uint64_t b1, uint8_t *buffer,
                        struct error *err)
{
	const struct model_tensor *t = j->tensor;
	uint64_t first, end;

	if (t->heads)
		return pack_head(p, j, b0 / j->read_blocks, buffer, err);
	source_rows(j, b0, b1, &first, &end);
	if (!model_read(p->model, t, first * t->row_bytes, (end - first) * t->row_bytes, buffer, err))
		return false;
	for (uint64_t b = b0; b < b1; b++) {
		const void *row[32];
		uint64_t of = j->blocks / j->experts, before = b / of * t->rows;
		for (unsigned i = 0; i < 32; i++) {
			uint64_t r = b % of * 32 + i;
			row[i] =
				r < t->rows
					? buffer + (before + model_source_row(t, j->head_dim, r) - first) * t->row_bytes
					: NULL;
		}
		if (!put_block(p, j, b, row, buffer, err))
			return false;
	}
	return true;
}

/* Of blocks *from to *to of the expert whose first one is `before`, those that are wanted; whole heads, and all where a
 * row's numbers lie far apart. False: there are none. */
static bool keep_wanted(const struct job *j, uint64_t before, uint64_t *from, uint64_t *to)
{
	const uint64_t first = before + j->first, end = before + j->end;

	if (*to <= first || *from >= end)
		return false;
	if (j->tensor->heads || j->tensor->transposed)
		return true;
	*from = *from < first ? first : *from;
	*to = *to > end ? end : *to;
	return true;
}

static bool pack_slice(const struct packing *p, const struct job *j, uint64_t slice, uint8_t *buffer, struct error *err)
{
	uint64_t b0 = slice * j->slice_blocks,
		 end = b0 + j->slice_blocks < j->blocks ? b0 + j->slice_blocks : j->blocks;

	for (uint64_t b = b0, next; b < end; b = next) {
		uint64_t of = j->blocks / j->experts, whole = b - b % of + of; /* not beyond its expert */
		next = b + j->read_blocks < end ? b + j->read_blocks : end;
		next = next < whole ? next : whole;
		uint64_t from = b, to = next;
		if (!keep_wanted(j, b - b % of, &from, &to))
			continue;
		if (!pack_blocks(p, j, from, to, buffer, err))
			return false;
	}
	return true;
}

/* The job a slice belongs to: the last one whose first slice is not behind it. */
static const struct job *job_of(const struct packing *p, uint64_t slice)
{
	size_t lo = 0, hi = p->n_jobs;

	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;
		if (p->job[mid].first_slice <= slice)
			lo = mid;
		else
			hi = mid;
	}
	return &p->job[lo];
}

static void pack_failed(struct packing *p, const struct error *why)
{
	if (!atomic_flag_test_and_set(&p->failed))
		p->err = *why;
	atomic_store(&p->stop, 1);
}

static void pack_with(struct packing *p, uint8_t *buffer, int worker)
{
	struct error err = { 0 };

	while (!atomic_load(&p->stop)) {
		uint64_t s = atomic_fetch_add(&p->next, 1);
		if (s >= p->slices)
			return;
		const struct job *j = job_of(p, s);
		if (!pack_slice(p, j, s - j->first_slice, buffer, &err)) {
			pack_failed(p, &err);
			return;
		}
		uint64_t done = atomic_fetch_add(&p->bytes_done, j->slice_blocks * j->block_bytes) +
		                j->slice_blocks * j->block_bytes;
		if (worker == 0 && p->progress &&
		    p->progress(p->user, done < p->bytes_total ? done : p->bytes_total, p->bytes_total))
			atomic_store(&p->stop, 1);
	}
}

static void pack_worker(void *user, int worker, int workers)
{
	struct packing *p = user;
	uint8_t *buffer = malloc(p->buffer_bytes + p->block_bytes);
	struct error err = { 0 };
	(void)workers;

	if (buffer)
		pack_with(p, buffer, worker);
	else {
		error_set(&err, ERROR_MEMORY, "no memory for %zu bytes of weights on their way",
		          p->buffer_bytes + p->block_bytes);
		pack_failed(p, &err);
	}
	free(buffer);
}

/* What packing each matrix takes, and where it goes. */
static void assign_jobs(const struct weights *w, const struct model_spec *s, const struct weights_part *part,
                        struct packing *p, const struct weights_entry *e)
{
	p->bytes_total = 0;
	for (size_t i = 0; i < p->n_jobs; i++) {
		struct job *j = &p->job[i];
		*j = (struct job){ .tensor = e[i].tensor,
			           .out = w->arena + e[i].at,
			           .blocks = e[i].blocks,
			           .experts = e[i].tensor->experts ? e[i].tensor->experts : 1,
			           .block_bytes = e[i].block_bytes,
			           .stride = e[i].stride,
			           .head_dim = e[i].tensor->rope_head ? e[i].tensor->rope_head : s->head_dim };
		const uint64_t each = j->blocks / j->experts;
		const struct cut_blocks wanted =
			part && part->rows ? cut_share_kept(part->rows, s, e[i].tensor, part->rows->own)
					   : (struct cut_blocks){ 0, each };
		j->first = wanted.first;
		j->end = wanted.end;
		p->bytes_total += (wanted.end - wanted.first) * j->experts * j->block_bytes;
		plan_reads(j, &p->buffer_bytes);
		p->block_bytes = j->block_bytes > p->block_bytes ? j->block_bytes : p->block_bytes;
		j->slice_blocks = (SLICE_BYTES / j->block_bytes / j->read_blocks + 1) * j->read_blocks;
		j->slices = (j->blocks + j->slice_blocks - 1) / j->slice_blocks;
		j->first_slice = i ? p->job[i - 1].first_slice + p->job[i - 1].slices : 0;
		p->slices = j->first_slice + j->slices;
	}
}

uint8_t *weights_arena(struct device *d, const struct model_spec *s, enum weight_layout layout, size_t bytes,
                       struct error *err)
{
	struct cut_share *share = NULL;
	uint8_t *arena = NULL;
	size_t n;

	if (!d->alloc_shares)
		return d->alloc(d, bytes, DEVICE_WEIGHTS, err);
	if (cut_weights(s, layout, &share, &n, err))
		arena = d->alloc_shares(d, bytes, share, n, err);
	free(share);
	return arena;
}

uint64_t weights_arena_bytes(struct device *d, const struct model_spec *s, enum weight_layout layout, uint64_t bytes)
{
	struct cut_share *share = NULL;
	size_t n;

	if (d->alloc_shares && cut_weights(s, layout, &share, &n, NULL))
		bytes = d->share_bytes(d, bytes, share, n);
	free(share);
	return bytes;
}

static bool assign_matrices(struct weights *w, const struct model_spec *s, const struct weights_part *part,
                            struct packing *p, struct weights_entry *e, struct error *err)
{
	p->n_jobs = weights_list(e, s, w);
	if (!weights_check_types(e, p->n_jobs, err))
		return false;
	w->packed_bytes = weights_lay(e, p->n_jobs, p->layout);
	w->arena_bytes = w->packed_bytes + WEIGHTS_SLACK;
	if (!(w->arena = weights_arena(w->device, s, p->layout, w->arena_bytes, err)))
		return false;
	weights_point(w, s, e, p->n_jobs, w->arena);
	p->n_jobs = weights_keep_part(e, p->n_jobs, s, part);
	assign_jobs(w, s, part, p, e);
	return true;
}

static bool pack_matrices(struct weights *w, const struct model *m, const struct weights_part *part, struct pool *pool,
                          struct packing *p, struct error *err)
{
	const struct model_spec *s = &m->spec;
	struct weights_entry *e = calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e);

	p->job = calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *p->job);
	bool placed =
		e && p->job ? assign_matrices(w, s, part, p, e, err)
			    : error_set(err, ERROR_MEMORY, "no memory for the list of %u layers' matrices", s->layers);
	free(e);
	if (!placed)
		return false;
	pool_run(pool, pack_worker, p);
	if (p->err.code != ERROR_NONE)
		return error_set(err, p->err.code, "%s", p->err.text);
	/* Where other workers had all the slices, it is told here for the first time. */
	if (!atomic_load(&p->stop) && p->progress && p->progress(p->user, p->bytes_total, p->bytes_total))
		atomic_store(&p->stop, 1);
	return !atomic_load(&p->stop) || error_set(err, ERROR_ARGUMENT, "loading was stopped by the progress function");
}

/* Converted one after the other, they are copied to the device together. */
static bool convert_vectors(struct weights *w, const struct model *m, const struct weights_part *part,
                            struct error *err)
{
	struct device *d = w->device;
	uint64_t floats = weights_point_vectors(w, &m->spec, NULL);

	w->vectors_bytes = floats * sizeof(float) + WEIGHTS_VECTORS_SLACK;
	if (!(w->vectors = d->alloc(d, w->vectors_bytes, DEVICE_VECTORS, err)))
		return false;
	weights_point_vectors(w, &m->spec, w->vectors);
	void *raw = malloc(load_longest_vector(&m->spec));
	float *converted = calloc(floats, sizeof *converted);
	bool ok = (raw && converted) || error_set(err, ERROR_MEMORY, "no memory for %llu bytes of norms and biases",
	                                          (unsigned long long)(floats * sizeof(float)));
	ok = ok && load_convert_all(w, converted, raw, m, part, err) &&
	     d->upload(d, w->vectors, converted, floats * sizeof(float), err);
	free(raw);
	free(converted);
	return ok;
}

bool weights_measure(struct weights *w, const struct model_spec *s, const struct target *t, struct error *err)
{
	struct weights_layout l;

	if (!weights_layout(s, weight_layout_of(t), &l, err) || !weights_describe(w, s, err))
		return false;
	w->packed_bytes = l.matrix_bytes;
	w->token_bytes = l.token_bytes;
	w->arena_bytes = w->packed_bytes + WEIGHTS_SLACK;
	w->vectors_bytes = (size_t)l.vector_bytes + WEIGHTS_VECTORS_SLACK;
	return true;
}

static void release(struct weights *w)
{
	w->device->release(w->device, w->arena, w->arena_bytes);
	w->device->release(w->device, w->vectors, w->vectors_bytes);
}

bool weights_open(struct weights *w, const struct model *m, const struct weights_part *part, struct device *device,
                  struct pool *pool, int (*progress)(void *, uint64_t, uint64_t), void *user, struct error *err)
{
	struct packing p = { .model = m,
		             .device = device,
		             .layout = weight_layout_of(device->facts.target),
		             .progress = progress,
		             .user = user,
		             .failed = ATOMIC_FLAG_INIT };

	bool ok = weights_allocate(w, &m->spec, err);
	w->device = device;
	w->release = release;
	ok = ok && convert_vectors(w, m, part, err) && pack_matrices(w, m, part, pool, &p, err) &&
	     model_read_done(m, err);
	free(p.job);
	if (!ok)
		weights_close(w);
	return ok;
}
