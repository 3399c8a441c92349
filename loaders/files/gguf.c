/* loaders/files/gguf.c - walks a GGUF file once and indexes it. See gguf.h.
 *
 * The walk reads through a cursor, which copies the file's first bytes as far as the walk gets. So nothing outside the
 * file is ever touched, and nothing is looked at twice that could differ the second time. Both index arrays are sized
 * by a count from the file. It is compared first with the bytes that are left and with the limits below, so that no
 * allocation is more than twice the file. Typed reads of what was indexed are in gguf_read.c.
 *
 * Rule: a new check is one sentence naming the file, the key or tensor, the value found and the value expected.
 */
#include "loaders/files/gguf_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/file.h"
#include "loaders/files/file_kind.h"

enum {
	MAX_KEYS = 1 << 16,    /* real files have some dozens */
	MAX_TENSORS = 1 << 17, /* the largest mixtures of experts have some ten thousand */
	MAX_NAME = 64,         /* the format's limit for a tensor's name */
	MAX_KEY = 65535,       /* the format's limit for a key */
	MAX_NESTING = 8,
	MIN_KEY_BYTES = 8 + 1 + 4 + 1,
	MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,
	ALWAYS_INDEXED = 64, /* so many items are indexed in the smallest file */
	MAX_ALIGNMENT = 1 << 24
};

static const uint8_t scalar_bytes[GGUF_TYPE_COUNT] = {
	[GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
	[GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8
};

struct parser {
	struct gguf *g;
	struct cursor c;
	bool header_only;
	struct error *err;
	const char *what; /* "key" or "tensor": what is being read, for messages */
	uint64_t number;  /* and which one, from 0 */
};

#define FORMAT_ERROR(p, ...) error_set((p)->err, ERROR_FORMAT, __VA_ARGS__)

static bool cut(struct parser *p, const char *field)
{
	return FORMAT_ERROR(p, "%s: ends at byte %" PRIu64 " inside the %s of %s %" PRIu64, p->g->path, p->g->size,
	                    field, p->what, p->number);
}

static const uint8_t *here(const struct parser *p) { return p->c.file->base + p->c.at; }

static bool read_string(struct parser *p, const char *field, uint64_t max, struct gguf_str *out)
{
	uint64_t n;

	if (!cursor_u64(&p->c, &n))
		return cut(p, field);
	if (n > cursor_left(&p->c))
		return FORMAT_ERROR(p,
		                    "%s: the %s of %s %" PRIu64 " has length %" PRIu64 ", but only %" PRIu64
		                    " bytes are left in the file",
		                    p->g->path, field, p->what, p->number, n, cursor_left(&p->c));
	if (n > max)
		return FORMAT_ERROR(p, "%s: the %s of %s %" PRIu64 " has length %" PRIu64 ", expected at most %" PRIu64,
		                    p->g->path, field, p->what, p->number, n, max);
	out->p = (const char *)here(p);
	out->n = n;
	return cursor_skip(&p->c, n);
}

static bool read_type(struct parser *p, const char *of, const struct gguf_str *key, enum gguf_type *out)
{
	char name[100];
	uint32_t type;

	if (!cursor_u32(&p->c, &type))
		return cut(p, "type");
	if (type >= GGUF_TYPE_COUNT)
		return FORMAT_ERROR(p, "%s: %s of key %s is %" PRIu32 ", expected 0 to %d", p->g->path, of,
		                    error_quote(name, sizeof name, key->p, key->n), type, GGUF_TYPE_COUNT - 1);
	*out = (enum gguf_type)type;
	return true;
}

static bool array_too_long(struct parser *p, const struct gguf_kv *kv, uint64_t count)
{
	char name[100];

	return FORMAT_ERROR(p,
	                    "%s: the array of key %s has %" PRIu64 " elements, more than the %" PRIu64
	                    " bytes left in the file can hold",
	                    p->g->path, error_quote(name, sizeof name, kv->key.p, kv->key.n), count,
	                    cursor_left(&p->c));
}

static bool walk_array(struct parser *p, const struct gguf_kv *kv, enum gguf_type item, uint64_t count, unsigned depth)
{
	unsigned min = item == GGUF_STRING ? 8 : item == GGUF_ARRAY ? 12 : scalar_bytes[item];
	struct gguf_str s;

	if (count > cursor_left(&p->c) / min)
		return array_too_long(p, kv, count);
	if (item != GGUF_STRING && item != GGUF_ARRAY)
		return cursor_skip(&p->c, count * min);
	for (uint64_t i = 0; i < count; i++) {
		enum gguf_type inner;
		uint64_t n;

		if (item == GGUF_STRING) {
			if (!read_string(p, "array string", UINT64_MAX, &s))
				return false;
			continue;
		}
		if (depth == MAX_NESTING)
			return FORMAT_ERROR(p, "%s: the value of key %" PRIu64 " nests arrays more than %d deep",
			                    p->g->path, p->number, MAX_NESTING);
		if (!read_type(p, "the element type of an array", &kv->key, &inner))
			return false;
		if (!cursor_u64(&p->c, &n))
			return cut(p, "array");
		if (!walk_array(p, kv, inner, n, depth + 1))
			return false;
	}
	return true;
}

static bool read_value(struct parser *p, struct gguf_kv *kv)
{
	struct gguf_str s;

	kv->count = 1;
	kv->item = kv->type;
	if (kv->type == GGUF_STRING) {
		if (!read_string(p, "value", UINT64_MAX, &s))
			return false;
		kv->data = (const uint8_t *)s.p;
		kv->bytes = s.n;
		return true;
	}
	if (kv->type == GGUF_ARRAY) {
		if (!read_type(p, "the element type of the array", &kv->key, &kv->item))
			return false;
		if (!cursor_u64(&p->c, &kv->count))
			return cut(p, "array length");
		kv->data = here(p);
		uint64_t start = p->c.at;
		if (!walk_array(p, kv, kv->item, kv->count, 1))
			return false;
		kv->bytes = p->c.at - start;
		return true;
	}
	kv->data = here(p);
	kv->bytes = scalar_bytes[kv->type];
	return cursor_skip(&p->c, kv->bytes) || cut(p, "value");
}

static bool read_key(struct parser *p, struct gguf_kv *kv)
{
	if (!read_string(p, "name", MAX_KEY, &kv->key))
		return false;
	if (kv->key.n == 0)
		return FORMAT_ERROR(p, "%s: key %" PRIu64 " has an empty name", p->g->path, p->number);
	return read_type(p, "the type", &kv->key, &kv->type) && read_value(p, kv);
}

static bool dtype_of(uint32_t number, enum dtype *out)
{
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (dtype_table[t].gguf >= 0 && (uint32_t)dtype_table[t].gguf == number) {
			*out = (enum dtype)t;
			return true;
		}
	return false;
}

/* ne[] and type -> bytes, every product checked. */
static bool tensor_bytes(struct parser *p, struct gguf_tensor *t, const char *name)
{
	const struct dtype_facts *f = &dtype_table[t->type];
	uint64_t elements = 1, bytes;

	for (unsigned d = 0; d < 4; d++) {
		if (t->ne[d] > INT64_MAX)
			return FORMAT_ERROR(p, "%s: dimension %u of tensor %s is %" PRIu64 ", expected below 2^63",
			                    p->g->path, d, name, t->ne[d]);
		/* a dimension of 0 must not hide that the others overflow */
		if (__builtin_mul_overflow(elements, t->ne[d] ? t->ne[d] : 1, &elements) || elements > INT64_MAX)
			return FORMAT_ERROR(p,
			                    "%s: the dimensions of tensor %s (%" PRIu64 " x %" PRIu64 " x %" PRIu64
			                    " x %" PRIu64 ") have more than 2^63 elements",
			                    p->g->path, name, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
	}
	if (t->ne[0] % f->block)
		return FORMAT_ERROR(
			p, "%s: a row of tensor %s has %" PRIu64 " elements, expected a multiple of %u for type %s",
			p->g->path, name, t->ne[0], f->block, f->name);
	const uint64_t heads = t->ne[0] ? elements / t->ne[0] * f->row : 0; /* of all rows */
	if (__builtin_mul_overflow(elements / f->block, (uint64_t)f->bytes, &bytes) ||
	    __builtin_add_overflow(bytes, heads, &bytes))
		return FORMAT_ERROR(p, "%s: tensor %s of %" PRIu64 " elements of type %s has more than 2^64 bytes",
		                    p->g->path, name, elements, f->name);
	t->bytes = t->ne[0] && t->ne[1] && t->ne[2] && t->ne[3] ? bytes : 0;
	return true;
}

static bool read_tensor(struct parser *p, struct gguf_tensor *t)
{
	char name[100];
	uint32_t type;

	if (!read_string(p, "name", MAX_NAME, &t->name))
		return false;
	if (t->name.n == 0)
		return FORMAT_ERROR(p, "%s: tensor %" PRIu64 " has an empty name", p->g->path, p->number);
	error_quote(name, sizeof name, t->name.p, t->name.n);
	if (!cursor_u32(&p->c, &t->n_dims))
		return cut(p, "rank");
	if (t->n_dims < 1 || t->n_dims > 4)
		return FORMAT_ERROR(p, "%s: tensor %s has %" PRIu32 " dimensions, expected 1 to 4", p->g->path, name,
		                    t->n_dims);
	for (unsigned d = 0; d < 4; d++) {
		t->ne[d] = 1;
		if (d < t->n_dims && !cursor_u64(&p->c, &t->ne[d]))
			return cut(p, "dimensions");
	}
	if (!cursor_u32(&p->c, &type) || !cursor_u64(&p->c, &t->offset))
		return cut(p, "type and offset");
	if (!dtype_of(type, &t->type))
		return FORMAT_ERROR(p, "%s: tensor %s has type number %" PRIu32 ", which is no known type", p->g->path,
		                    name, type);
	return tensor_bytes(p, t, name);
}

/* May an array of `count` items, described by at least `least` bytes each, be allocated? */
static bool may_index(const struct parser *p, uint64_t count, uint64_t max, uint64_t min, uint64_t item_bytes)
{
	return count <= max && count <= cursor_left(&p->c) / min &&
	       (count <= ALWAYS_INDEXED || count <= 2 * p->g->size / item_bytes);
}

static bool read_header(struct parser *p)
{
	struct gguf *g = p->g;
	char magic[24];
	uint64_t n = g->size < 4 ? g->size : 4;

	if (!cursor_skip(&p->c, n))
		return false;
	if (n < 4 || memcmp(p->c.file->base, "GGUF", 4) != 0) {
		FORMAT_ERROR(p, "%s: begins with \"%s\", expected \"GGUF\"", g->path,
		             error_quote(magic, sizeof magic, p->c.file->base, n));
		file_say_kind(p->c.file, p->err);
		return false;
	}
	if (!cursor_u32(&p->c, &g->version))
		return FORMAT_ERROR(p, "%s: has %" PRIu64 " bytes, too few for a GGUF header", g->path, g->size);
	if (g->version != 0 && (g->version & 0xffff) == 0)
		return error_set(p->err, ERROR_UNSUPPORTED,
		                 "%s: GGUF version is 0x%08" PRIx32 ": a big-endian file, expected little-endian",
		                 g->path, g->version);
	if (g->version != 2 && g->version != 3)
		return error_set(p->err, ERROR_UNSUPPORTED, "%s: GGUF version is %" PRIu32 ", expected 2 or 3", g->path,
		                 g->version);
	if (!cursor_u64(&p->c, &g->n_tensors) || !cursor_u64(&p->c, &g->n_kv))
		return FORMAT_ERROR(p, "%s: has %" PRIu64 " bytes, too few for a GGUF header", g->path, g->size);
	if (!may_index(p, g->n_tensors, MAX_TENSORS, MIN_TENSOR_BYTES, sizeof *g->tensor))
		return FORMAT_ERROR(p,
		                    "%s: the number of tensors is %" PRIu64
		                    ", expected at most %d, and no more than the %" PRIu64
		                    " bytes that follow can describe",
		                    g->path, g->n_tensors, MAX_TENSORS, cursor_left(&p->c));
	if (!may_index(p, g->n_kv, MAX_KEYS, MIN_KEY_BYTES, sizeof *g->kv))
		return FORMAT_ERROR(p,
		                    "%s: the number of keys is %" PRIu64
		                    ", expected at most %d, and no more than the %" PRIu64
		                    " bytes that follow can describe",
		                    g->path, g->n_kv, MAX_KEYS, cursor_left(&p->c));
	return true;
}

static struct name_ref key_name(const void *owner, uint32_t i)
{
	const struct gguf *g = owner;

	return (struct name_ref){ g->kv[i].key.p, g->kv[i].key.n };
}

static struct name_ref tensor_name(const void *owner, uint32_t i)
{
	const struct gguf *g = owner;

	return (struct name_ref){ g->tensor[i].name.p, g->tensor[i].name.n };
}

static bool no_memory(struct parser *p, const char *what, uint64_t count)
{
	return error_set(p->err, ERROR_MEMORY, "%s: no memory to index %" PRIu64 " %s", p->g->path, count, what);
}

static bool read_keys(struct parser *p)
{
	struct gguf *g = p->g;
	struct gguf_index *index = g->private;
	char name[100];

	p->what = "key";
	g->kv = calloc(g->n_kv ? g->n_kv : 1, sizeof *g->kv);
	if (!g->kv)
		return no_memory(p, "keys", g->n_kv);
	for (p->number = 0; p->number < g->n_kv; p->number++)
		if (!read_key(p, &g->kv[p->number]))
			return false;
	if (!names_build(&index->kv, g, (uint32_t)g->n_kv, key_name))
		return no_memory(p, "keys", g->n_kv);
	uint32_t twice = names_duplicate(&index->kv);
	if (twice != NAMES_NONE)
		return FORMAT_ERROR(p, "%s: key %s occurs more than once", g->path,
		                    error_quote(name, sizeof name, g->kv[twice].key.p, g->kv[twice].key.n));
	return true;
}

static bool read_alignment(struct parser *p)
{
	struct gguf *g = p->g;
	const struct gguf_kv *kv = gguf_find(g, "general.alignment");
	uint32_t value;

	g->alignment = 32;
	if (!kv)
		return true;
	if (kv->type != GGUF_U32)
		return FORMAT_ERROR(p, "%s: key general.alignment has type %s, expected U32", g->path,
		                    gguf_type_name(kv->type));
	memcpy(&value, kv->data, sizeof value);
	if (value == 0 || (value & (value - 1)) || value > MAX_ALIGNMENT)
		return FORMAT_ERROR(p,
		                    "%s: key general.alignment is %" PRIu32 ", expected a power of two of at most %d",
		                    g->path, value, MAX_ALIGNMENT);
	g->alignment = value;
	return true;
}

static bool read_tensors(struct parser *p)
{
	struct gguf *g = p->g;
	struct gguf_index *index = g->private;
	char name[100];

	p->what = "tensor";
	g->tensor = calloc(g->n_tensors ? g->n_tensors : 1, sizeof *g->tensor);
	if (!g->tensor)
		return no_memory(p, "tensors", g->n_tensors);
	for (p->number = 0; p->number < g->n_tensors; p->number++)
		if (!read_tensor(p, &g->tensor[p->number]))
			return false;
	if (!names_build(&index->tensor, g, (uint32_t)g->n_tensors, tensor_name))
		return no_memory(p, "tensors", g->n_tensors);
	uint32_t twice = names_duplicate(&index->tensor);
	if (twice != NAMES_NONE)
		return FORMAT_ERROR(p, "%s: tensor %s occurs more than once", g->path,
		                    error_quote(name, sizeof name, g->tensor[twice].name.p, g->tensor[twice].name.n));
	return true;
}

static bool check_tensor_range(struct parser *p, struct gguf_tensor *t)
{
	struct gguf *g = p->g;
	uint64_t end;
	char name[100];

	error_quote(name, sizeof name, t->name.p, t->name.n);
	if (t->offset % g->alignment)
		return FORMAT_ERROR(
			p, "%s: the offset of tensor %s is %" PRIu64 ", expected a multiple of the alignment %" PRIu64,
			g->path, name, t->offset, g->alignment);
	if (__builtin_add_overflow(t->offset, g->data_start, &end) || __builtin_add_overflow(end, t->bytes, &end) ||
	    end > INT64_MAX)
		return FORMAT_ERROR(p, "%s: tensor %s with offset %" PRIu64 " and %" PRIu64 " bytes ends beyond 2^63",
		                    g->path, name, t->offset, t->bytes);
	if (end > g->size && t->bytes && !p->header_only)
		return FORMAT_ERROR(p,
		                    "%s: tensor %s ends at byte %" PRIu64 ", but the file has %" PRIu64
		                    " bytes (is it complete?)",
		                    g->path, name, end, g->size);
	t->offset += g->data_start;
	return true;
}

static int by_offset(const void *a, const void *b, void *context)
{
	const struct gguf_tensor *t = context, *x = &t[*(const uint32_t *)a], *y = &t[*(const uint32_t *)b];

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool check_overlap(struct parser *p)
{
	struct gguf *g = p->g;
	char name[100], other[100];
	uint32_t *order = malloc(g->n_tensors * sizeof *order);
	bool ok = true;

	if (!order)
		return no_memory(p, "tensors", g->n_tensors);
	for (uint32_t i = 0; i < g->n_tensors; i++)
		order[i] = i;
	qsort_r(order, g->n_tensors, sizeof *order, by_offset, g->tensor);
	for (uint32_t i = 1; i < g->n_tensors && ok; i++) {
		const struct gguf_tensor *a = &g->tensor[order[i - 1]], *b = &g->tensor[order[i]];
		if (a->offset + a->bytes > b->offset)
			ok = FORMAT_ERROR(p,
			                  "%s: tensor %s begins at byte %" PRIu64
			                  ", inside tensor %s, which ends at byte %" PRIu64,
			                  g->path, error_quote(name, sizeof name, b->name.p, b->name.n), b->offset,
			                  error_quote(other, sizeof other, a->name.p, a->name.n), a->offset + a->bytes);
	}
	free(order);
	return ok;
}

static bool check_tensor_ranges(struct parser *p)
{
	struct gguf *g = p->g;

	g->data_start = (p->c.at + g->alignment - 1) & ~(g->alignment - 1);
	for (uint64_t i = 0; i < g->n_tensors; i++)
		if (!check_tensor_range(p, &g->tensor[i]))
			return false;
	return g->n_tensors < 2 || check_overlap(p);
}

static bool parse(struct gguf *g, struct file *f, const char *path, bool header_only, struct error *err)
{
	struct parser p = { .g = g, .c = { f, 0, err }, .header_only = header_only, .err = err };

	memset(g, 0, sizeof *g);
	g->size = f->size;
	g->path = path;
	g->private = calloc(1, sizeof(struct gguf_index));
	if (!g->private)
		return no_memory(&p, "tensors", 0);
	if (read_header(&p) && read_keys(&p) && read_alignment(&p) && read_tensors(&p) && check_tensor_ranges(&p)) {
		g->header_bytes = p.c.at;
		file_trim(f, p.c.at);
		return true;
	}
	gguf_free(g);
	return false;
}

bool gguf_open(struct gguf *g, struct file *f, bool header_only, struct error *err)
{
	struct error why = { 0 };
	bool ok = parse(g, f, f->label, header_only, &why);

	if (file_verdict(f, ok, &why, err))
		return true;
	if (ok)
		gguf_free(g);
	return false;
}

bool gguf_parse(struct gguf *g, const uint8_t *base, uint64_t n, const char *path, bool header_only, struct error *err)
{
	struct file f;

	file_memory(&f, base, n, path);
	return parse(g, &f, path, header_only, err);
}

void gguf_free(struct gguf *g)
{
	struct gguf_index *index = g->private;

	if (index) {
		names_free(&index->kv);
		names_free(&index->tensor);
	}
	free(index);
	free(g->kv);
	free(g->tensor);
	memset(g, 0, sizeof *g);
}
