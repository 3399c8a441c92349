/* loaders/files/imatrix.c - see imatrix.h.
 *
 * The older form is little endian: the number of entries; of each the length of its name and the name, how often it was
 * added to, the number of values and the values, which are sums of means; then how many chunks of text there were.
 */
#include "loaders/files/imatrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf.h"

enum { MAX_NAME = 256, MIN_ENTRY = 4 + 1 + 4 + 4 + 4 };
static const char sums[] = ".in_sum2", counts[] = ".counts";

void imatrix_free(struct imatrix *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		free(m->entry[i].name);
		free(m->entry[i].mean);
	}
	free(m->entry);
	*m = (struct imatrix){ 0 };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct imatrix_entry *)a)->name, ((const struct imatrix_entry *)b)->name);
}

const struct imatrix_entry *imatrix_find(const struct imatrix *m, const char *name, uint64_t n)
{
	char text[MAX_NAME + 1];
	struct imatrix_entry key = { .name = text };

	if (n > MAX_NAME || m->n == 0)
		return NULL;
	memcpy(text, name, n);
	text[n] = 0;
	return bsearch(&key, m->entry, m->n, sizeof key, by_name);
}

static bool no_memory(const char *label, struct error *err)
{
	return error_set(err, ERROR_MEMORY, "%s: no memory for the importance matrix", label);
}

/* Room for another entry of this name; its values are all 0. The array has room for as many as were announced. */
static struct imatrix_entry *add(struct imatrix *m, const char *name, size_t n, uint64_t columns, uint64_t rows)
{
	struct imatrix_entry e = { .columns = columns, .rows = rows };

	e.name = strndup(name, n);
	e.mean = calloc(columns * rows, sizeof *e.mean);
	if (!e.name || !e.mean) {
		free(e.name);
		free(e.mean);
		return NULL;
	}
	m->entry[m->n] = e;
	return &m->entry[m->n++];
}

static bool is_usable(const struct imatrix_entry *e, const char *label, struct error *err)
{
	char name[100];

	for (uint64_t i = 0; i < e->columns * e->rows; i++)
		if (!(e->mean[i] >= 0 && e->mean[i] <= 3e38f))
			return error_set(
				err, ERROR_FORMAT,
				"%s: value %" PRIu64 " of entry %s is %g, expected a finite number of 0 or more", label,
				i, error_quote(name, sizeof name, e->name, strlen(e->name)), (double)e->mean[i]);
	return true;
}

static bool sort_entries(struct imatrix *m, const char *label, struct error *err)
{
	char name[100];

	if (m->n == 0)
		return error_set(err, ERROR_FORMAT, "%s: has no entries, expected an importance matrix", label);
	qsort(m->entry, m->n, sizeof *m->entry, by_name);
	for (uint32_t i = 1; i < m->n; i++)
		if (by_name(&m->entry[i - 1], &m->entry[i]) == 0)
			return error_set(err, ERROR_FORMAT, "%s: entry %s occurs more than once", label,
			                 error_quote(name, sizeof name, m->entry[i].name, strlen(m->entry[i].name)));
	return true;
}

/* ---- the GGUF form */

static bool ends_with(const struct gguf_str *s, const char *end)
{
	size_t n = strlen(end);

	return s->n > n && memcmp(s->p + s->n - n, end, n) == 0;
}

/* The counts of a tensor of sums: one for each of its rows. */
static const struct gguf_tensor *find_counts(const struct gguf *g, const struct gguf_tensor *t, struct error *err)
{
	char name[MAX_NAME], quoted[100];

	snprintf(name, sizeof name, "%.*s%s", (int)(t->name.n - (sizeof sums - 1)), t->name.p, counts);
	const struct gguf_tensor *c = gguf_find_tensor(g, name);
	if (c && t->type == DTYPE_F32 && c->type == DTYPE_F32 && t->ne[2] == 1 && t->ne[3] == 1 && t->bytes &&
	    c->bytes == t->ne[1] * sizeof(float))
		return c;
	error_set(err, ERROR_FORMAT,
	          "%s: tensor %s is no F32 matrix with a tensor of as many counts as it has rows, expected of an "
	          "importance matrix",
	          g->path, error_quote(quoted, sizeof quoted, t->name.p, t->name.n));
	return NULL;
}

static bool read_entry(struct imatrix *m, const struct gguf *g, const struct file *f, const struct gguf_tensor *t,
                       struct error *err)
{
	const struct gguf_tensor *c = find_counts(g, t, err);
	float *count = c ? malloc(c->bytes) : NULL;
	struct imatrix_entry *e = count ? add(m, t->name.p, t->name.n - (sizeof sums - 1), t->ne[0], t->ne[1]) : NULL;
	bool ok = e || (c && no_memory(g->path, err));

	ok = ok && file_read(f, t->offset, t->bytes, e->mean, err) && file_read(f, c->offset, c->bytes, count, err);
	for (uint64_t r = 0; ok && r < e->rows; r++)
		for (uint64_t i = 0; i < e->columns; i++)
			e->mean[r * e->columns + i] =
				count[r] > 0 ? (float)((double)e->mean[r * e->columns + i] / count[r]) : 0;
	free(count);
	return ok && is_usable(e, g->path, err);
}

static bool read_gguf(struct imatrix *m, struct file *f, struct error *err)
{
	uint64_t chunks = 0;
	struct gguf g = { 0 };
	bool found, ok = gguf_open(&g, f, false, err);

	if (ok && !(m->entry = calloc(g.n_tensors ? g.n_tensors : 1, sizeof *m->entry)))
		ok = no_memory(f->label, err);
	ok = ok && gguf_u64(&g, "imatrix.chunk_count", &chunks, &found, err);
	m->chunks = chunks <= UINT32_MAX ? (uint32_t)chunks : 0;
	for (uint64_t i = 0; ok && i < g.n_tensors; i++)
		if (ends_with(&g.tensor[i].name, sums))
			ok = read_entry(m, &g, f, &g.tensor[i], err);
	gguf_free(&g);
	return ok;
}

/* ---- the older form */

struct old {
	struct cursor c;
	const char *label;
	uint32_t number; /* of the entry */
};

static bool cut(struct old *o, const char *field)
{
	return error_set(o->c.err, ERROR_FORMAT, "%s: ends at byte %" PRIu64 " inside the %s of entry %" PRIu32,
	                 o->label, o->c.file->size, field, o->number);
}

static bool old_number(struct old *o, const char *field, uint64_t max, uint32_t *out)
{
	if (!cursor_u32(&o->c, out))
		return cut(o, field);
	if (*out == 0 || *out > max)
		return error_set(o->c.err, ERROR_FORMAT,
		                 "%s: the %s of entry %" PRIu32 " is %" PRIu32 ", expected 1 to %" PRIu64 "", o->label,
		                 field, o->number, *out, max);
	return true;
}

static bool old_entry(struct old *o, struct imatrix *m)
{
	uint32_t length, calls, values;

	if (!old_number(o, "length of the name", MAX_NAME, &length))
		return false;
	uint64_t name_at = o->c.at;
	if (!cursor_skip(&o->c, length))
		return cut(o, "name");
	if (!cursor_u32(&o->c, &calls))
		return cut(o, "number of calls");
	if (!old_number(o, "number of values", cursor_left(&o->c) / sizeof(float), &values))
		return false;
	uint64_t values_at = o->c.at;
	if (!cursor_skip(&o->c, (uint64_t)values * sizeof(float)))
		return cut(o, "values");
	const uint8_t *base = o->c.file->base;
	struct imatrix_entry *e = add(m, (const char *)base + name_at, length, values, 1);
	if (!e)
		return no_memory(o->label, o->c.err);
	memcpy(e->mean, base + values_at, (size_t)values * sizeof(float));
	for (uint32_t i = 0; i < values && calls > 0; i++)
		e->mean[i] = (float)((double)e->mean[i] / calls);
	return is_usable(e, o->label, o->c.err);
}

static bool read_old(struct imatrix *m, struct file *f, struct error *err)
{
	struct old o = { .c = { .file = f, .err = err }, .label = f->label };
	uint32_t n, chunks;

	if (!cursor_u32(&o.c, &n) || n == 0 || n > f->size / MIN_ENTRY)
		return error_set(err, ERROR_FORMAT,
		                 "%s: is no importance matrix: it begins neither with \"GGUF\" nor with a number of "
		                 "entries that its size can hold",
		                 f->label);
	if (!(m->entry = calloc(n, sizeof *m->entry)))
		return no_memory(f->label, err);
	for (o.number = 0; o.number < n; o.number++)
		if (!old_entry(&o, m))
			return false;
	if (cursor_u32(&o.c, &chunks)) /* the first versions end here */
		m->chunks = chunks;
	return true;
}

bool imatrix_read(struct imatrix *m, const char *path, struct error *err)
{
	struct file f = { 0 };
	struct error why = { 0 };

	*m = (struct imatrix){ 0 };
	if (!file_open(&f, path, err))
		return false;
	bool ok = file_reach(&f, f.size < 4 ? f.size : 4, &why);
	ok = ok && (f.have >= 4 && memcmp(f.base, "GGUF", 4) == 0 ? read_gguf(m, &f, &why) : read_old(m, &f, &why));
	ok = ok && sort_entries(m, f.label, &why);
	ok = file_verdict(&f, ok, &why, err);
	if (!ok)
		imatrix_free(m);
	file_close(&f);
	return ok;
}
