/* tests/loaders/gguf_writer.c - see gguf_writer.h. Lack of memory ends the test program. */
#include "tests/loaders/gguf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bytes_put(struct bytes *b, const void *p, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = 2 * (b->n + n) + 64;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			abort();
	}
	if (n && p)
		memcpy(b->p + b->n, p, n);
	else if (n)
		memset(b->p + b->n, 0, n);
	b->n += n;
}

void bytes_forget(struct bytes *b)
{
	free(b->p);
	memset(b, 0, sizeof *b);
}

static void field(struct gguf_writer *w, struct bytes *b, unsigned bytes, const char *what)
{
	if ((w->n_fields & (w->n_fields - 1)) == 0) { /* a power of two, or 0: full */
		w->field = realloc(w->field, (w->n_fields ? 2 * w->n_fields : 1) * sizeof *w->field);
		if (!w->field)
			abort();
	}
	struct gguf_field *f = &w->field[w->n_fields++];
	*f = (struct gguf_field){ .at = b->n, .bytes = bytes };
	snprintf(f->what, sizeof f->what, "%s", what);
}

static void put_u32(struct gguf_writer *w, struct bytes *b, uint32_t v, const char *what)
{
	field(w, b, 4, what);
	bytes_put(b, &v, 4);
}

static void put_u64(struct gguf_writer *w, struct bytes *b, uint64_t v, const char *what)
{
	field(w, b, 8, what);
	bytes_put(b, &v, 8);
}

static void put_text(struct gguf_writer *w, struct bytes *b, const char *s, const char *what)
{
	put_u64(w, b, strlen(s), what);
	bytes_put(b, s, strlen(s));
}

static void put_key(struct gguf_writer *w, const char *key, enum gguf_type type)
{
	put_text(w, &w->kv, key, "key length");
	put_u32(w, &w->kv, type, "value type");
	w->n_kv++;
}

void gguf_writer_start(struct gguf_writer *w, uint32_t version, uint32_t alignment)
{
	*w = (struct gguf_writer){ .version = version, .alignment = alignment };
	bytes_put(&w->kv, "GGUF", 4);
	put_u32(w, &w->kv, version, "version");
	put_u64(w, &w->kv, 0, "tensor count");
	put_u64(w, &w->kv, 0, "key count");
	if (alignment != 32)
		gguf_write_u32(w, "general.alignment", alignment);
}

void gguf_write_scalar(struct gguf_writer *w, const char *key, enum gguf_type type, const void *value)
{
	static const unsigned size[GGUF_TYPE_COUNT] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

	put_key(w, key, type);
	if (size[type] >= 4)
		field(w, &w->kv, size[type], key);
	bytes_put(&w->kv, value, size[type]);
}

void gguf_write_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
	gguf_write_scalar(w, key, GGUF_U32, &value);
}

void gguf_write_f32(struct gguf_writer *w, const char *key, float value)
{
	gguf_write_scalar(w, key, GGUF_F32, &value);
}

void gguf_write_bool(struct gguf_writer *w, const char *key, bool value)
{
	uint8_t byte = value;

	gguf_write_scalar(w, key, GGUF_BOOL, &byte);
}

void gguf_write_string(struct gguf_writer *w, const char *key, const char *value)
{
	put_key(w, key, GGUF_STRING);
	put_text(w, &w->kv, value, "string length");
}

static void put_array(struct gguf_writer *w, enum gguf_type item, uint64_t count)
{
	put_u32(w, &w->kv, item, "element type");
	put_u64(w, &w->kv, count, "array length");
}

void gguf_write_strings(struct gguf_writer *w, const char *key, const char *const *value, uint64_t count)
{
	put_key(w, key, GGUF_ARRAY);
	put_array(w, GGUF_STRING, count);
	for (uint64_t i = 0; i < count; i++)
		put_text(w, &w->kv, value[i], "array string length");
}

void gguf_write_array(struct gguf_writer *w, const char *key, enum gguf_type item, uint64_t count, const void *items,
                      size_t bytes)
{
	put_key(w, key, GGUF_ARRAY);
	put_array(w, item, count);
	bytes_put(&w->kv, items, bytes);
}

void gguf_write_nested(struct gguf_writer *w, const char *key, unsigned depth, uint64_t outer, uint64_t inner)
{
	put_key(w, key, GGUF_ARRAY);
	for (unsigned d = 0; d + 2 < depth; d++)
		put_array(w, GGUF_ARRAY, 1);
	put_array(w, GGUF_ARRAY, outer);
	for (uint64_t i = 0; i < outer; i++) {
		put_array(w, GGUF_U8, inner);
		bytes_put(&w->kv, NULL, inner);
	}
}

static void pad(struct bytes *b, uint32_t alignment)
{
	if (b->n % alignment)
		bytes_put(b, NULL, alignment - b->n % alignment);
}

void gguf_write_tensor(struct gguf_writer *w, const char *name, enum dtype type, unsigned n_dims, const uint64_t *ne,
                       const void *data, size_t bytes)
{
	if (w->n_tensors++ == 0)
		w->first_info_field = w->n_fields;
	pad(&w->data, w->alignment);
	put_text(w, &w->info, name, "tensor name length");
	put_u32(w, &w->info, n_dims, "rank");
	for (unsigned d = 0; d < n_dims; d++)
		put_u64(w, &w->info, ne[d], "dimension");
	put_u32(w, &w->info, (uint32_t)dtype_table[type].gguf, "tensor type");
	put_u64(w, &w->info, w->data.n, "tensor offset");
	bytes_put(&w->data, data, bytes);
}

uint8_t *gguf_writer_finish(struct gguf_writer *w, size_t *n)
{
	struct bytes all = w->kv;

	if (w->n_tensors)
		for (size_t i = w->first_info_field; i < w->n_fields; i++)
			w->field[i].at += all.n;
	memset(&w->kv, 0, sizeof w->kv);
	bytes_put(&all, w->info.p, w->info.n);
	memcpy(all.p + 8, &w->n_tensors, 8);
	memcpy(all.p + 16, &w->n_kv, 8);
	if (w->n_tensors)
		pad(&all, w->alignment);
	bytes_put(&all, w->data.p, w->data.n);
	*n = all.n;
	return all.p;
}

void gguf_writer_free(struct gguf_writer *w)
{
	bytes_forget(&w->kv);
	bytes_forget(&w->info);
	bytes_forget(&w->data);
	free(w->field);
	memset(w, 0, sizeof *w);
}
