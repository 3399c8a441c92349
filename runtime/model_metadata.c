/* runtime/model_metadata.c - jit_model_metadata: what the model's files say of themselves. */
#include "runtime/model.h"
#include "runtime/sized.h"

_Static_assert((int)METADATA_STRING == JIT_METADATA_STRING && (int)METADATA_OTHER == JIT_METADATA_OTHER &&
                       (int)METADATA_ARRAY == JIT_METADATA_ARRAY && (int)METADATA_BOOL == JIT_METADATA_BOOL,
               "kinds are those of the loaders");

size_t jit_model_metadata_count(const jit_model *m) { return m ? m->file.n_metadata : 0; }

int jit_model_metadata(const jit_model *m, size_t number, jit_metadata *out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(m, &e))
		return model_report(err, &e);
	if (number >= m->file.n_metadata) {
		error_set(&e, ERROR_ARGUMENT, "there is no metadata %zu; expected a number less than %zu", number,
		          m->file.n_metadata);
	} else {
		const struct model_metadata *v = &m->file.metadata[number];
		const jit_metadata own = { .key = v->key,
			                   .kind = (int)v->kind,
			                   .item_kind = (int)v->item,
			                   .integer = v->integer,
			                   .real = v->real,
			                   .text = v->text,
			                   .n = v->n };
		SIZED_WRITE(jit_metadata, out, &own, &e);
	}
	return model_report(err, &e);
}
