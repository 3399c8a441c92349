/* loaders/model/model_gguf_fields.c - typed reads of GGUF keys (model_gguf_fields.h). */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *gguf_key(struct gguf_reader *r, const char *suffix)
{
	snprintf(r->key, sizeof r->key, "%s.%s", r->row->gguf, suffix);
	const struct gguf_kv *kv = gguf_find(r->g, r->key);
	if (kv)
		r->read[kv - r->g->kv] = true;
	return r->key;
}

bool gguf_missing(struct gguf_reader *r)
{
	return error_set(r->err, ERROR_FORMAT, "%s: the key %s is missing", r->g->path, r->key);
}

/* A value per layer is accepted when all are equal. Replaces the array by its one value. */
static bool same_in_all_layers(struct gguf_reader *r, const struct gguf_kv *kv, uint64_t *out)
{
	if (kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 || kv->item == GGUF_F64 ||
	    kv->item == GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: the array of key %s does not hold integers", r->g->path,
		                 r->key);
	if (kv->count == 0 || kv->count != r->m->spec.layers + (uint64_t)r->m->file->later_layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the array of key %s has %" PRIu64 " values, expected one for each of the %" PRIu32
		                 " layers",
		                 r->g->path, r->key, kv->count, r->m->spec.layers + r->m->file->later_layers);
	int64_t first = gguf_item_int(kv, 0);
	for (uint64_t i = 1; i < r->m->spec.layers; i++)
		if (gguf_item_int(kv, i) != first)
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: key %s is %" PRId64 " in layer 0 and %" PRId64 " in layer %" PRIu64
			                 "; layers of different sizes are not supported",
			                 r->g->path, r->key, first, gguf_item_int(kv, i), i);
	*out = first < 0 ? UINT64_MAX : (uint64_t)first;
	return true;
}

bool gguf_get_u32(struct gguf_reader *r, const char *suffix, enum presence presence, uint32_t *out)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, suffix));
	uint64_t value = 0;
	bool found;

	if (!kv)
		return presence == OPTIONAL || gguf_missing(r);
	if (kv->type == GGUF_ARRAY ? !same_in_all_layers(r, kv, &value)
	                           : !gguf_u64(r->g, r->key, &value, &found, r->err))
		return false;
	if (value > UINT32_MAX)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is %" PRIu64 ", expected 0 to 4294967295",
		                 r->g->path, r->key, value);
	*out = (uint32_t)value;
	return true;
}

bool gguf_get_f64(struct gguf_reader *r, const char *suffix, enum presence presence, double *out)
{
	bool found;

	if (!gguf_f64(r->g, gguf_key(r, suffix), out, &found, r->err))
		return false;
	return found || presence == OPTIONAL || gguf_missing(r);
}

bool gguf_str_is(const struct gguf_str *s, const char *word)
{
	return s->n == strlen(word) && memcmp(s->p, word, s->n) == 0;
}
