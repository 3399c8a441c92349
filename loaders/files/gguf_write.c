#include "loaders/files/gguf_write.h"

#include <string.h>

enum { VERSION = 3, COUNTS_AT = 8 };

void gguf_put_raw(struct gguf_out *o, const void *bytes, size_t n) { fwrite(bytes, 1, n, o->f); }

static void put_u32(struct gguf_out *o, uint32_t v) { gguf_put_raw(o, &v, sizeof v); }
static void put_u64(struct gguf_out *o, uint64_t v) { gguf_put_raw(o, &v, sizeof v); }

void gguf_put_text(struct gguf_out *o, const char *text, uint64_t n)
{
	put_u64(o, n);
	gguf_put_raw(o, text, n);
}

void gguf_put_begin(struct gguf_out *o, FILE *f, uint64_t alignment)
{
	*o = (struct gguf_out){ .f = f, .alignment = alignment };
	gguf_put_raw(o, "GGUF", 4);
	put_u32(o, VERSION);
	put_u64(o, 0);
	put_u64(o, 0);
}

void gguf_put_key(struct gguf_out *o, const char *key, enum gguf_type type)
{
	gguf_put_text(o, key, strlen(key));
	put_u32(o, type);
	o->keys++;
}

void gguf_put_array(struct gguf_out *o, const char *key, enum gguf_type item, uint64_t count)
{
	gguf_put_key(o, key, GGUF_ARRAY);
	put_u32(o, item);
	put_u64(o, count);
}

void gguf_put_u32(struct gguf_out *o, const char *key, uint32_t value)
{
	gguf_put_key(o, key, GGUF_U32);
	put_u32(o, value);
}

void gguf_put_f32(struct gguf_out *o, const char *key, float value)
{
	gguf_put_key(o, key, GGUF_F32);
	gguf_put_raw(o, &value, sizeof value);
}

void gguf_put_string(struct gguf_out *o, const char *key, const char *value)
{
	gguf_put_key(o, key, GGUF_STRING);
	gguf_put_text(o, value, strlen(value));
}

void gguf_put_copy(struct gguf_out *o, const struct gguf_kv *kv)
{
	gguf_put_text(o, kv->key.p, kv->key.n);
	put_u32(o, kv->type);
	o->keys++;
	if (kv->type == GGUF_STRING)
		put_u64(o, kv->bytes);
	if (kv->type == GGUF_ARRAY) {
		put_u32(o, kv->item);
		put_u64(o, kv->count);
	}
	gguf_put_raw(o, kv->data, kv->bytes);
}

uint64_t gguf_put_padding(const struct gguf_out *o, uint64_t n)
{
	return (o->alignment - n % o->alignment) % o->alignment;
}

void gguf_put_tensor(struct gguf_out *o, struct gguf_str name, enum dtype type, uint32_t n_dims, const uint64_t *ne)
{
	uint64_t bytes = 0;

	gguf_put_text(o, name.p, name.n);
	put_u32(o, n_dims);
	for (uint32_t d = 0; d < n_dims; d++) {
		put_u64(o, ne[d]);
		bytes = d ? bytes * ne[d] : dtype_row_bytes(type, ne[d]);
	}
	put_u32(o, (uint32_t)dtype_table[type].gguf);
	put_u64(o, o->data);
	o->tensors++;
	o->data += bytes + gguf_put_padding(o, bytes);
}

bool gguf_put_end(struct gguf_out *o)
{
	static const char zeros[64];
	long end = ftell(o->f);

	for (uint64_t left = gguf_put_padding(o, (uint64_t)end); left;) {
		uint64_t n = left < sizeof zeros ? left : sizeof zeros;
		gguf_put_raw(o, zeros, n);
		left -= n;
	}
	end = ftell(o->f);
	if (end < 0 || fseek(o->f, COUNTS_AT, SEEK_SET) != 0)
		return false;
	put_u64(o, o->tensors);
	put_u64(o, o->keys);
	return fseek(o->f, end, SEEK_SET) == 0;
}
