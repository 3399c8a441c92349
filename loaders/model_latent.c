/* loaders/model_latent.c - latent attention's matrices by head.
 *
 * Owns: how files hold a matrix for each head. In GGUF one tensor of three dimensions is for keys and one for values;
 * in safetensors a tensor has a head's rows for keys, which are columns to us, then those for values.
 */
#include <assert.h>
#include <inttypes.h>

#include "loaders/model_bind.h"

static bool check_shape(const struct found_tensor *t, const char *name, const uint64_t want[3], struct error *err)
{
	if (t->rank <= 4 && t->dim[0] == want[0] && t->dim[1] == want[1] && t->dim[2] == want[2] && t->dim[3] == 1)
		return true;
	return error_set(err, ERROR_FORMAT,
	                 "%s: tensor %s has shape (%" PRIu64 " x %" PRIu64 " x %" PRIu64 "), expected (%" PRIu64
	                 " x %" PRIu64 " x %" PRIu64 ") heads x rows x columns",
	                 t->label, name, t->dim[2], t->dim[1], t->dim[0], want[2], want[1], want[0]);
}

bool bind_by_head(struct binder *b, const char *name, bool keys, struct model_tensor *out)
{
	struct model *m = b->m;
	const struct model_latent *l = &m->spec.latent;
	struct model_file *f = b->f;
	uint32_t heads = m->spec.heads;
	bool gguf = f->format == MODEL_GGUF;
	struct model_tensor t = { .heads = heads,
		                  .own_rows = keys ? l->rank : l->value,
		                  .cols = keys ? l->rest : l->rank,
		                  .own_file_rows = gguf ? (keys ? l->rank : l->value) : l->rest + l->value,
		                  .own_first = gguf || keys ? 0 : l->rest,
		                  .transposed = !gguf && keys };
	uint64_t want[3] = { t.transposed ? l->rank : t.cols,
		             gguf ? t.own_file_rows : heads * (uint64_t)t.own_file_rows, gguf ? heads : 1 };
	struct found_tensor found;

	if (!model_find_tensor(f, name, &found))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing%s", f->part[0].file.label, name,
		                 gguf ? " (files from before April 2025 do not have it)" : "");
	if (!check_shape(&found, name, want, b->err) || !bind_check_type(b, name, &found, false))
		return false;
	const struct dtype_facts *type = &dtype_table[found.type];
	if (t.transposed && type->block != 1)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has type %s, whose rows cannot become columns", found.label, name,
		                 type->name);
	t.name = bind_keep_name(f, name);
	t.type = found.type;
	t.rows = heads * (uint64_t)((t.own_rows + 31) / 32 * 32);
	t.part = found.part;
	t.offset = found.offset;
	t.bytes = (size_t)found.bytes;
	t.row_bytes = (size_t)(want[0] / type->block * type->bytes);
	assert(t.row_bytes * heads * t.own_file_rows == found.bytes);
	m->tensor_bytes += gguf ? found.bytes : found.bytes / t.own_file_rows * (keys ? l->rest : l->value);
	f->used[found.entry] = true;
	*out = t;
	return true;
}

void model_note_latent(const struct model_spec *s, bool row, bool pairs, struct model_tensor *t)
{
	t->rope_head = row ? s->latent.rank + s->latent.rotating : s->head_dim;
	t->rope_skip = row ? s->latent.rank : s->latent.rest;
	t->rope_pairs = pairs;
	t->rope_dims = pairs ? s->latent.rotating : 0;
}
