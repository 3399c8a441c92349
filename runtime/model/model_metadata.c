/* runtime/model/model_metadata.c - jit_model_metadata: what the model's files say of themselves. */
#include <string.h>

#include "include/jitrun_tokens.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

_Static_assert((int)METADATA_STRING == JIT_METADATA_STRING && (int)METADATA_OTHER == JIT_METADATA_OTHER &&
                       (int)METADATA_ARRAY == JIT_METADATA_ARRAY && (int)METADATA_BOOL == JIT_METADATA_BOOL,
               "kinds are those of the loaders");

size_t jit_model_metadata_count(const jit_model *m) { return m ? m->file.n_metadata : 0; }

static bool check_number(const jit_model *m, size_t number, struct error *e)
{
	return number < m->file.n_metadata ||
	       error_set(e, ERROR_ARGUMENT, "there is no metadata %zu; expected a number less than %zu", number,
	                 m->file.n_metadata);
}

static void write_value(jit_metadata *out, const struct model_metadata *v, const char *key, struct error *e)
{
	const jit_metadata own = { .key = key,
		                   .kind = (int)v->kind,
		                   .item_kind = (int)v->item,
		                   .integer = v->integer,
		                   .real = v->real,
		                   .text = v->text,
		                   .n = v->n };

	SIZED_WRITE(jit_metadata, out, &own, e);
}

int jit_model_metadata(const jit_model *m, size_t number, jit_metadata *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(m, &e) && check_number(m, number, &e))
		write_value(out, &m->file.metadata[number], m->file.metadata[number].key, &e);
	return model_report(err, &e);
}

int64_t jit_model_metadata_find(const jit_model *m, const char *key)
{
	for (size_t i = 0; m && key && i < m->file.n_metadata; i++)
		if (strcmp(m->file.metadata[i].key, key) == 0)
			return (int64_t)i;
	return -1;
}

static bool check_item(const jit_model *m, size_t number, size_t item, struct error *e)
{
	if (!check_number(m, number, e))
		return false;
	const struct model_metadata *v = &m->file.metadata[number];
	if (v->kind != METADATA_ARRAY)
		return error_set(e, ERROR_ARGUMENT, "metadata %zu, %s, is no array", number, v->key);
	if (item >= v->n)
		return error_set(e, ERROR_ARGUMENT,
		                 "metadata %zu, %s, has no item %zu; expected a number less than %zu", number, v->key,
		                 item, v->n);
	return true;
}

int jit_model_metadata_item(const jit_model *m, size_t number, size_t item, jit_metadata *out, jit_error *err)
{
	struct error e = { 0 };
	struct model_metadata v;

	if (NEEDED(m, &e) && check_item(m, number, item, &e) && model_metadata_item(&m->file, number, item, &v, &e))
		write_value(out, &v, m->file.metadata[number].key, &e);
	return model_report(err, &e);
}
