/* loaders/model/model_metadata.c - what a model's files say of themselves, as a list of keys and values.
 *
 * Owns: the list. Of a GGUF file it has every key. Of a directory it has the members of config.json and, behind
 * "generation_config.", those of generation_config.json; members of an object in it are behind its name and a dot.
 *
 * Never: refuses a model for what it finds, or grows out of proportion to the files: a path of names longer than
 * MAX_PATH is left out, since each member below it would repeat it.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/model/model_load.h"

enum { MAX_PATH = 255 };

struct list {
	struct model *m;
	size_t room;
	struct error *err;
};

static bool add(struct list *l, struct model_metadata value, const char *key, size_t n_key, const char *text)
{
	struct model *m = l->m;

	if (m->n_metadata == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct model_metadata *all = realloc(m->metadata, room * sizeof *all);
		if (!all)
			return error_set(l->err, ERROR_MEMORY, "no memory for the model's metadata");
		m->metadata = all;
		l->room = room;
	}
	size_t n_text = text ? value.n : 0;
	char *copy = malloc(n_key + n_text + 2);
	if (!copy)
		return error_set(l->err, ERROR_MEMORY, "no memory for the model's metadata");
	memcpy(copy, key, n_key);
	copy[n_key] = 0;
	value.key = copy;
	value.text = text ? copy + n_key + 1 : NULL;
	if (text)
		memcpy(copy + n_key + 1, text, n_text);
	copy[n_key + 1 + n_text] = 0;
	m->metadata[m->n_metadata++] = value;
	return true;
}

/* ---- GGUF */

static enum metadata_kind kind_of_gguf(enum gguf_type t)
{
	return t == GGUF_STRING                 ? METADATA_STRING
	       : t == GGUF_BOOL                 ? METADATA_BOOL
	       : t == GGUF_F32 || t == GGUF_F64 ? METADATA_REAL
	       : t == GGUF_ARRAY                ? METADATA_ARRAY
	                                        : METADATA_INTEGER;
}

/* A number or a flag: item i of an array of that type, and of another value item 0. */
static struct model_metadata number_of_gguf(const struct gguf_kv *kv, enum gguf_type type, uint64_t i)
{
	struct model_metadata v = { .kind = kind_of_gguf(type), .item = METADATA_OTHER };

	if (v.kind == METADATA_BOOL) {
		v.integer = kv->data[i] != 0;
	} else if (v.kind == METADATA_REAL) {
		v.real = gguf_item_float(kv, i);
	} else {
		uint64_t bits = type == GGUF_U64 ? 0 : (uint64_t)gguf_item_int(kv, i);
		if (type == GGUF_U64)
			memcpy(&bits, kv->data + i * sizeof bits, sizeof bits);
		bool beyond = type == GGUF_U64 && bits > INT64_MAX;
		v.kind = beyond ? METADATA_REAL : METADATA_INTEGER;
		v.integer = beyond ? 0 : (int64_t)bits;
		v.real = beyond ? (double)bits : 0;
	}
	return v;
}

static struct model_metadata value_of_gguf(const struct gguf_kv *kv)
{
	struct model_metadata v = { .kind = kind_of_gguf(kv->type), .item = METADATA_OTHER };

	if (v.kind == METADATA_STRING) {
		v.n = kv->bytes;
	} else if (v.kind == METADATA_ARRAY) {
		v.item = kv->item == GGUF_ARRAY ? METADATA_OTHER : kind_of_gguf(kv->item);
		v.n = kv->count;
	} else {
		v = number_of_gguf(kv, kv->type, 0);
	}
	return v;
}

/* All texts of an array, with a 0 behind each, in one block behind their rows. */
static struct model_metadata *texts_of_gguf(const struct gguf_kv *kv)
{
	struct model_metadata *items = malloc(kv->count * (sizeof *items + 1) + kv->bytes);
	char *copy = (char *)(items + kv->count);
	const uint8_t *p = kv->data;

	for (uint64_t i = 0; items && i < kv->count; i++) {
		uint64_t n;
		memcpy(&n, p, sizeof n);
		items[i] = (struct model_metadata){
			.kind = METADATA_STRING, .item = METADATA_OTHER, .text = copy, .n = (size_t)n
		};
		memcpy(copy, p + sizeof n, n);
		copy[n] = 0;
		copy += n + 1;
		p += sizeof n + n;
	}
	return items;
}

/* Threads that ask first at the same time each make the texts, and one of them keeps its own. */
static bool text_of_gguf(struct model_metadata *v, const struct gguf_kv *kv, size_t i, struct model_metadata *out,
                         struct error *err)
{
	struct model_metadata *items = atomic_load(&v->items), *none = NULL;

	if (!items) {
		items = texts_of_gguf(kv);
		if (!items)
			return error_set(err, ERROR_MEMORY, "no memory for the %zu texts of %s", v->n, v->key);
		if (!atomic_compare_exchange_strong(&v->items, &none, items)) {
			free(items);
			items = none;
		}
	}
	*out = items[i];
	return true;
}

static bool from_gguf(struct list *l, const struct gguf *g)
{
	for (uint64_t i = 0; i < g->n_kv; i++) {
		const struct gguf_kv *kv = &g->kv[i];
		if (!add(l, value_of_gguf(kv), kv->key.p, kv->key.n,
		         kv->type == GGUF_STRING ? (const char *)kv->data : NULL))
			return false;
	}
	return true;
}

/* ---- JSON */

static enum metadata_kind kind_of_json(const json_t *v)
{
	return json_not_finite(v)   ? METADATA_REAL
	       : json_is_string(v)  ? METADATA_STRING
	       : json_is_integer(v) ? METADATA_INTEGER
	       : json_is_real(v)    ? METADATA_REAL
	       : json_is_boolean(v) ? METADATA_BOOL
	       : json_is_array(v)   ? METADATA_ARRAY
	       : json_is_null(v)    ? METADATA_NULL
	                            : METADATA_OTHER;
}

static enum metadata_kind kind_of_items(const json_t *list)
{
	enum metadata_kind kind = METADATA_OTHER;
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (i && kind_of_json(one) != kind)
			return METADATA_OTHER;
		kind = kind_of_json(one);
	}
	return kind == METADATA_ARRAY ? METADATA_OTHER : kind;
}

static double real_of(const json_t *v)
{
	const char *word = json_not_finite(v);

	return !word          ? json_real_value(v)
	       : *word == 'N' ? (double)NAN
	       : *word == '-' ? -(double)INFINITY
	                      : (double)INFINITY;
}

static bool from_value(struct list *l, char path[MAX_PATH + 1], size_t n, json_t *v);

static bool from_object(struct list *l, char path[MAX_PATH + 1], size_t n, json_t *object)
{
	const char *name;
	json_t *v;
	bool ok = true;

	json_object_foreach(object, name, v)
	{
		size_t more = strlen(name);
		if (n + (n > 0) + more > MAX_PATH)
			continue;
		if (n)
			path[n] = '.';
		memcpy(path + n + (n > 0), name, more);
		ok = ok && from_value(l, path, n + (n > 0) + more, v);
	}
	return ok;
}

static struct model_metadata value_of_json(const json_t *v)
{
	struct model_metadata out = { .kind = kind_of_json(v), .item = METADATA_OTHER };

	switch (out.kind) {
	case METADATA_STRING: out.n = json_string_length(v); break;
	case METADATA_INTEGER: out.integer = json_integer_value(v); break;
	case METADATA_REAL: out.real = real_of(v); break;
	case METADATA_BOOL: out.integer = json_is_true(v); break;
	case METADATA_ARRAY:
		out.item = kind_of_items(v);
		out.n = json_array_size(v);
		break;
	case METADATA_OTHER:
	case METADATA_NULL: break;
	}
	return out;
}

/* The items of an array, in one block with their texts; NULL: there are none, or no memory. */
static struct model_metadata *items_of_json(const json_t *list)
{
	const json_t *one;
	size_t i, bytes = 0;

	json_array_foreach(list, i, one) bytes += json_string_length(one) + 1;
	struct model_metadata *items = bytes ? malloc(json_array_size(list) * sizeof *items + bytes) : NULL;
	char *copy = items ? (char *)(items + json_array_size(list)) : NULL;
	for (i = 0; items && i < json_array_size(list); i++) {
		one = json_array_get(list, i);
		items[i] = value_of_json(one);
		if (items[i].kind != METADATA_STRING)
			continue;
		memcpy(copy, json_string_value(one), items[i].n);
		copy[items[i].n] = 0;
		items[i].text = copy;
		copy += items[i].n + 1;
	}
	return items;
}

static bool from_value(struct list *l, char path[MAX_PATH + 1], size_t n, json_t *v)
{
	struct model_metadata out = value_of_json(v);

	if (out.kind == METADATA_OTHER)
		return from_object(l, path, n, v);
	if (out.kind == METADATA_ARRAY && out.n) {
		struct model_metadata *items = items_of_json(v);
		if (!items)
			return error_set(l->err, ERROR_MEMORY, "no memory for the model's metadata");
		atomic_init(&out.items, items);
	}
	if (add(l, out, path, n, out.kind == METADATA_STRING ? json_string_value(v) : NULL))
		return true;
	free(out.items);
	return false;
}

static bool from_file(struct list *l, const struct file *f, const char *before)
{
	char path[MAX_PATH + 1];
	struct error unused = { 0 };
	json_t *root = f->base ? json_read(f->base, f->size, JSON_MAX_CONFIG, f->label, &unused) : NULL;
	bool ok = true;

	if (f->base && !root && unused.code == ERROR_MEMORY)
		ok = error_set(l->err, unused.code, "%s", unused.text);
	memcpy(path, before, strlen(before));
	if (json_is_object(root))
		ok = from_object(l, path, strlen(before), root);
	json_decref(root);
	return ok;
}

bool model_read_metadata(struct model *m, struct error *err)
{
	const struct model_file *f = m->file;
	struct list l = { .m = m, .err = err };

	if (f->format == MODEL_GGUF)
		return from_gguf(&l, &f->part[0].gguf);
	return from_file(&l, &f->config, "") && from_file(&l, &f->generation_config, "generation_config");
}

bool model_metadata_item(const struct model *m, size_t number, size_t i, struct model_metadata *out, struct error *err)
{
	struct model_metadata *v = &m->metadata[number];
	const struct model_file *f = m->file;

	if (f->format != MODEL_GGUF) {
		*out = v->items[i];
		return true;
	}
	const struct gguf_kv *kv = &f->part[0].gguf.kv[number];
	if (kv->item == GGUF_STRING)
		return text_of_gguf(v, kv, i, out, err);
	*out = kv->item == GGUF_ARRAY ? (struct model_metadata){ .kind = METADATA_ARRAY, .item = METADATA_OTHER }
	                              : number_of_gguf(kv, kv->item, i);
	return true;
}

void model_free_metadata(struct model *m)
{
	for (size_t i = 0; i < m->n_metadata; i++) {
		free((void *)(uintptr_t)m->metadata[i].key);
		free(m->metadata[i].items);
	}
	free(m->metadata);
}
