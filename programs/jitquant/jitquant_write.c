/* programs/jitquant/jitquant_write.c - writes the quantised file: its header at once, then tensor by tensor, some rows
 * at a time.
 *
 * The rows of a batch are shared out to threads; which thread makes a row changes nothing. At no time is there more in
 * memory than one batch. The file gets its name when all of it is on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memfile.h"
#include "jit/store/safefile.h"
#include "loaders/files/gguf_write.h"
#include "programs/jitquant/jitquant.h"
#include "programs/common/progress.h"
#include "quantise/quantise.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

enum { BATCH_BYTES = 8 << 20, SHARES = 256 };
static const char what[] = "the quantised model";

struct writing {
	const struct quant_plan *plan;
	bool (*stop)(void);
	struct safefile out;
	char quoted[256];
	struct pool *pool;
	struct progress bar;
	uint64_t read; /* bytes so far */
	struct error *err;
};

/* ---- a batch of rows */

struct batch {
	const struct quant_tensor *tensor;
	uint64_t first, rows, columns;
	uint32_t shares;
	uint8_t *in, *out;
	float *x;                   /* a row for each worker */
	double *v;                  /* the same, where adapters are merged */
	size_t in_bytes, out_bytes; /* of a row */
	_Atomic uint64_t bad;       /* the first row with a number that cannot be quantised, or UINT64_MAX */
};

static bool is_fit(const float *x, uint64_t n, float max)
{
	for (uint64_t i = 0; i < n; i++)
		if (!(__builtin_fabsf(x[i]) <= max))
			return false;
	return true;
}

/* An expert's own importances, if there are several and it was ever asked; NULL: all columns are the same. */
static const float *importance_of(const struct quant_tensor *t, uint64_t row)
{
	const struct imatrix_entry *e = t->importance;

	if (!e)
		return NULL;
	return e->mean + (e->rows > 1 ? row / t->from->ne[1] % e->rows * e->columns : 0);
}

static void read_row(const struct batch *b, uint64_t row, float *x, double *v)
{
	const struct quant_tensor *t = b->tensor;

	quantise_read(t->from->type, b->in + row * b->in_bytes, b->columns, x);
	if (t->merge)
		quant_merge_row(t->merge, b->first + row, x, v);
}

static void make_row(struct batch *b, uint64_t row, float *x, double *v)
{
	const struct quant_tensor *t = b->tensor;

	read_row(b, row, x, v);
	if (is_fit(x, b->columns, quantise_max(t->to))) {
		quantise_row(t->to, x, importance_of(t, b->first + row), b->columns, b->out + row * b->out_bytes);
		return;
	}
	uint64_t bad = atomic_load(&b->bad);
	while (row < bad && !atomic_compare_exchange_weak(&b->bad, &bad, row))
		;
}

static uint32_t open_batch(void *user, int worker, uint32_t stage) { return ((struct batch *)user)->shares; }

static void make_share(void *user, int worker, uint32_t stage, uint32_t share)
{
	struct batch *b = user;
	uint64_t from = b->rows * share / b->shares, to = b->rows * (share + 1) / b->shares;

	for (uint64_t row = from; row < to; row++)
		make_row(b, row, b->x + (uint64_t)worker * b->columns,
		         b->v ? b->v + (uint64_t)worker * b->columns : NULL);
}

static bool refuse_row(const struct writing *w, struct batch *b)
{
	const struct quant_tensor *t = b->tensor;
	uint64_t row = atomic_load(&b->bad), column = 0;
	float max = quantise_max(t->to);
	char name[100];

	read_row(b, row, b->x, b->v);
	while (column < b->columns - 1 && __builtin_fabsf(b->x[column]) <= max)
		column++;
	return error_set(w->err, ERROR_FORMAT,
	                 "%s: tensor %s has %g in row %" PRIu64 ", column %" PRIu64
	                 "; expected numbers of a magnitude of at most %g, the largest in %s",
	                 w->plan->gguf.path, error_quote(name, sizeof name, t->from->name.p, t->from->name.n),
	                 (double)b->x[column], b->first + row, column, (double)max, dtype_table[t->to].name);
}

/* ---- writing */

static bool put(struct writing *w, const void *bytes, size_t n)
{
	for (const uint8_t *p = bytes; n;) {
		ssize_t r = safefile_may_grow_by(w->out.fd, n) ? write(w->out.fd, p, n) : -1;
		if (r < 0 && errno == EINTR && !w->stop())
			continue;
		if (r <= 0)
			return safefile_failed(SAFEFILE_WRITE, what, w->quoted, w->err);
		p += r;
		n -= (size_t)r;
	}
	return true;
}

static bool put_zeros(struct writing *w, uint64_t n)
{
	static const uint8_t zeros[4096];
	bool ok = true;

	for (; ok && n; n -= n < sizeof zeros ? n : sizeof zeros)
		ok = put(w, zeros, n < sizeof zeros ? n : sizeof zeros);
	return ok;
}

static bool more(struct writing *w, uint64_t bytes)
{
	w->read += bytes;
	progress_show(&w->bar, w->read, w->plan->bytes_before);
	return !w->stop() || error_set(w->err, ERROR_CANCELLED, "%s: interrupted", w->quoted);
}

static bool make_batch(struct writing *w, struct batch *b, uint64_t first, uint64_t rows)
{
	const struct gguf_tensor *t = b->tensor->from;
	struct pool_work work = { .stages = 1, .open = open_batch, .share = make_share, .user = b };

	b->first = first;
	b->rows = rows;
	b->shares = rows < SHARES ? (uint32_t)rows : SHARES;
	atomic_store(&b->bad, UINT64_MAX);
	if (!file_read(&w->plan->file, t->offset + first * b->in_bytes, rows * b->in_bytes, b->in, w->err))
		return false;
	pool_work(w->pool, &work);
	if (atomic_load(&b->bad) != UINT64_MAX)
		return refuse_row(w, b);
	return put(w, b->out, rows * b->out_bytes) && more(w, rows * b->in_bytes);
}

static bool quantise_tensor(struct writing *w, const struct quant_tensor *t)
{
	const struct dtype_facts *from = &dtype_table[t->from->type];
	uint64_t columns = t->from->ne[0], rows = columns ? t->from->bytes / from->bytes / columns : 0;
	struct batch b = { .tensor = t, .columns = columns };
	bool ok = true;

	b.in_bytes = columns * from->bytes;
	b.out_bytes = dtype_row_bytes(t->to, columns);
	uint64_t at_once = b.in_bytes < BATCH_BYTES && b.in_bytes ? BATCH_BYTES / b.in_bytes : 1;
	at_once = at_once < rows ? at_once : rows;
	b.in = malloc(at_once * b.in_bytes + 1);
	b.out = malloc(at_once * b.out_bytes + 1);
	b.x = malloc((size_t)pool_threads(w->pool) * columns * sizeof *b.x + 1);
	b.v = t->merge ? malloc((size_t)pool_threads(w->pool) * columns * sizeof *b.v + 1) : NULL;
	if (!b.in || !b.out || !b.x || (t->merge && !b.v))
		ok = error_set(w->err, ERROR_MEMORY, "no memory for %" PRIu64 " rows of %" PRIu64 " numbers", at_once,
		               columns);
	for (uint64_t row = 0; ok && row < rows; row += at_once)
		ok = make_batch(w, &b, row, at_once < rows - row ? at_once : rows - row);
	free(b.in);
	free(b.out);
	free(b.x);
	free(b.v);
	return ok;
}

static bool copy_tensor(struct writing *w, const struct gguf_tensor *t)
{
	size_t room = t->bytes < BATCH_BYTES ? t->bytes : BATCH_BYTES;
	uint8_t *bytes = malloc(room + 1);
	bool ok = bytes || error_set(w->err, ERROR_MEMORY, "no memory for %zu bytes of a tensor", room);

	for (uint64_t at = 0; ok && at < t->bytes; at += room) {
		size_t n = t->bytes - at < room ? t->bytes - at : room;
		ok = file_read(&w->plan->file, t->offset + at, n, bytes, w->err) && put(w, bytes, n) && more(w, n);
	}
	free(bytes);
	return ok;
}

/* ---- the header */

static bool key_is(const struct gguf_kv *kv, const char *key)
{
	return kv->key.n == strlen(key) && memcmp(kv->key.p, key, kv->key.n) == 0;
}

/* All that the file says, but for what is about its own types, and of whom it was a part. */
static bool is_kept(const struct gguf_kv *kv)
{
	return !key_is(kv, "general.file_type") && !key_is(kv, "general.quantization_version") &&
	       !(kv->key.n > 6 && memcmp(kv->key.p, "split.", 6) == 0) &&
	       !(kv->key.n > 17 && memcmp(kv->key.p, "quantize.imatrix.", 17) == 0);
}

static void put_imatrix_keys(struct gguf_out *o, const struct quant_plan *p)
{
	const char *slash = quant.imatrix ? strrchr(quant.imatrix, '/') : NULL;

	if (!quant.imatrix)
		return;
	gguf_put_string(o, "quantize.imatrix.file", slash ? slash + 1 : quant.imatrix);
	gguf_put_u32(o, "quantize.imatrix.entries_count", p->imatrix.n);
	if (p->imatrix.chunks)
		gguf_put_u32(o, "quantize.imatrix.chunks_count", p->imatrix.chunks);
}

static uint8_t *make_header(const struct writing *w, struct gguf_out *o, size_t *n)
{
	enum { QUANTISATION_VERSION = 2 };
	const struct quant_plan *p = w->plan;
	struct memfile f;

	if (memfile_open(&f)) {
		gguf_put_begin(o, f.out, p->gguf.alignment);
		for (uint64_t i = 0; i < p->gguf.n_kv; i++)
			if (is_kept(&p->gguf.kv[i]))
				gguf_put_copy(o, &p->gguf.kv[i]);
		gguf_put_u32(o, "general.quantization_version", QUANTISATION_VERSION);
		gguf_put_u32(o, "general.file_type", p->file_type);
		put_imatrix_keys(o, p);
		for (uint64_t i = 0; i < p->gguf.n_tensors; i++)
			gguf_put_tensor(o, p->tensor[i].from->name, p->tensor[i].to, p->tensor[i].from->n_dims,
			                p->tensor[i].from->ne);
		gguf_put_end(o);
	}
	uint8_t *bytes = (uint8_t *)memfile_take(&f, n);
	if (!bytes)
		error_set(w->err, ERROR_MEMORY, "no memory for the header of %s", w->quoted);
	return bytes;
}

/* ---- the file */

/* Where the system can say at once that there is no room, it does. */
static bool reserve(struct writing *w, uint64_t bytes)
{
	if (bytes > INT64_MAX || !safefile_may_grow_to(bytes))
		return safefile_failed(SAFEFILE_WRITE, what, w->quoted, w->err);
	if (fallocate(w->out.fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) && (errno == ENOSPC || errno == EFBIG))
		return safefile_failed(SAFEFILE_WRITE, what, w->quoted, w->err);
	return true;
}

static bool write_all(struct writing *w)
{
	const struct quant_plan *p = w->plan;
	struct gguf_out o;
	size_t n;
	uint8_t *header = make_header(w, &o, &n);
	bool ok = header && reserve(w, n + o.data) && put(w, header, n);

	free(header);
	progress_begin(&w->bar, "quantising", NULL, !quant.quiet);
	for (uint64_t i = 0; ok && i < p->gguf.n_tensors; i++) {
		const struct quant_tensor *t = &p->tensor[i];
		ok = (t->to == t->from->type && !t->merge ? copy_tensor(w, t->from) : quantise_tensor(w, t)) &&
		     put_zeros(w, gguf_put_padding(&o, t->bytes));
	}
	progress_end(&w->bar);
	return ok && file_same(&p->file, w->err);
}

bool quant_write(const struct quant_plan *p, bool (*stop)(void), struct error *err)
{
	struct writing w = { .plan = p, .stop = stop, .err = err };
	const char *name;
	int dir = safefile_directory(quant.out, what, &name, w.quoted, err);
	bool ok = dir >= 0 && (w.pool = pool_open(quant.threads ? (int)quant.threads : system_default_threads(), err));

	if (ok) {
		safefile_sweep(dir, name);
		enum safefile_step step = safefile_begin(&w.out, dir, name, 0666);
		ok = !step || safefile_failed(step, what, w.quoted, err);
		if (ok && (ok = write_all(&w)) && (step = safefile_commit(&w.out)))
			ok = safefile_failed(step, what, w.quoted, err);
		else if (!step && !ok)
			safefile_abandon(&w.out);
	}
	pool_close(w.pool);
	if (dir >= 0)
		close(dir);
	return ok;
}
