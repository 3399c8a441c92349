/* loaders/files/gguf_read.c - lookups and typed reads in a parsed GGUF file. See gguf.h.
 *
 * Values lie unaligned in the header and are copied out bytewise. Rule: a value of another type or out of range is
 * an error that names the key, the type and the value; it never becomes a default.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf_index.h"

const char *gguf_type_name(enum gguf_type type)
{
	static const char *const name[GGUF_TYPE_COUNT] = { "U8",   "I8",     "U16",   "I16", "U32", "I32", "F32",
		                                           "BOOL", "STRING", "ARRAY", "U64", "I64", "F64" };

	return name[type];
}

/* The order by name, for this g: the struct may have moved since it was parsed. */
static uint32_t find(struct names order, const struct gguf *g, const char *name)
{
	order.owner = g;
	return names_find(&order, name, strlen(name));
}

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key)
{
	const struct gguf_index *index = g->private;
	uint32_t i = find(index->kv, g, key);

	return i == NAMES_NONE ? NULL : &g->kv[i];
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
	const struct gguf_index *index = g->private;
	uint32_t i = find(index->tensor, g, name);

	return i == NAMES_NONE ? NULL : &g->tensor[i];
}

static bool is_integer(enum gguf_type t) { return t <= GGUF_I32 || t == GGUF_U64 || t == GGUF_I64; }

/* The integer at p; *huge when it is above INT64_MAX (then the bits are those of the unsigned value). */
static int64_t integer_at(enum gguf_type type, const uint8_t *p, bool *huge)
{
	union {
		uint8_t u8;
		int8_t i8;
		uint16_t u16;
		int16_t i16;
		uint32_t u32;
		int32_t i32;
		int64_t i64;
	} v = { 0 };

	*huge = false;
	switch (type) {
	case GGUF_U8:
	case GGUF_BOOL: memcpy(&v.u8, p, 1); return v.u8;
	case GGUF_I8: memcpy(&v.i8, p, 1); return v.i8;
	case GGUF_U16: memcpy(&v.u16, p, 2); return v.u16;
	case GGUF_I16: memcpy(&v.i16, p, 2); return v.i16;
	case GGUF_U32: memcpy(&v.u32, p, 4); return v.u32;
	case GGUF_I32: memcpy(&v.i32, p, 4); return v.i32;
	case GGUF_U64:
	case GGUF_I64:
		memcpy(&v.i64, p, 8);
		*huge = type == GGUF_U64 && v.i64 < 0;
		return v.i64;
	default: return 0;
	}
}

static bool wrong_type(const struct gguf *g, const char *key, const struct gguf_kv *kv, const char *expected,
                       struct error *err)
{
	return error_set(err, ERROR_FORMAT, "%s: key %s has type %s, expected %s", g->path, key,
	                 gguf_type_name(kv->type), expected);
}

bool gguf_u64(const struct gguf *g, const char *key, uint64_t *out, bool *found, struct error *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	bool huge;

	*found = kv != NULL;
	if (!kv)
		return true;
	if (!is_integer(kv->type))
		return wrong_type(g, key, kv, "an integer", err);
	int64_t v = integer_at(kv->type, kv->data, &huge);
	if (v < 0 && !huge)
		return error_set(err, ERROR_FORMAT, "%s: key %s is %" PRId64 ", expected 0 or more", g->path, key, v);
	*out = (uint64_t)v;
	return true;
}

bool gguf_f64(const struct gguf *g, const char *key, double *out, bool *found, struct error *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	*found = kv != NULL;
	if (!kv)
		return true;
	if (kv->type != GGUF_F32 && kv->type != GGUF_F64)
		return wrong_type(g, key, kv, "F32 or F64", err);
	*out = gguf_item_float(kv, 0);
	return true;
}

bool gguf_bool(const struct gguf *g, const char *key, bool *out, bool *found, struct error *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	*found = kv != NULL;
	if (!kv)
		return true;
	if (kv->type != GGUF_BOOL)
		return wrong_type(g, key, kv, "BOOL", err);
	*out = kv->data[0] != 0; /* read as a byte: a C bool holding 2 would be undefined */
	return true;
}

bool gguf_string(const struct gguf *g, const char *key, struct gguf_str *out, bool *found, struct error *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	*found = kv != NULL;
	if (!kv)
		return true;
	if (kv->type != GGUF_STRING)
		return wrong_type(g, key, kv, "STRING", err);
	*out = (struct gguf_str){ (const char *)kv->data, kv->bytes };
	return true;
}

bool gguf_strings(const struct gguf *g, const char *key, struct gguf_str **out, uint64_t *count, bool *found,
                  struct error *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	*found = kv != NULL;
	*out = NULL;
	*count = 0;
	if (!kv)
		return true;
	if (kv->type != GGUF_ARRAY || kv->item != GGUF_STRING)
		return wrong_type(g, key, kv, "an ARRAY of STRING", err);
	struct gguf_str *s = malloc(kv->count ? kv->count * sizeof *s : 1);
	if (!s)
		return error_set(err, ERROR_MEMORY, "%s: no memory for the %" PRIu64 " strings of key %s", g->path,
		                 kv->count, key);
	const uint8_t *p = kv->data;
	for (uint64_t i = 0; i < kv->count; i++) { /* the parse has walked these lengths */
		memcpy(&s[i].n, p, 8);
		s[i].p = (const char *)p + 8;
		p += 8 + s[i].n;
	}
	*out = s;
	*count = kv->count;
	return true;
}

int64_t gguf_item_int(const struct gguf_kv *a, uint64_t i)
{
	static const uint8_t size[GGUF_TYPE_COUNT] = {
		[GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_BOOL] = 1, [GGUF_U16] = 2, [GGUF_I16] = 2,
		[GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_U64] = 8,  [GGUF_I64] = 8
	};
	bool huge;
	int64_t v = integer_at(a->item, a->data + i * size[a->item], &huge);

	return huge ? INT64_MAX : v;
}

double gguf_item_float(const struct gguf_kv *a, uint64_t i)
{
	if (a->item == GGUF_F64) {
		double d;
		memcpy(&d, a->data + i * sizeof d, sizeof d);
		return d;
	}
	if (a->item == GGUF_F32) {
		float f;
		memcpy(&f, a->data + i * sizeof f, sizeof f);
		return (double)f;
	}
	return (double)gguf_item_int(a, i);
}
