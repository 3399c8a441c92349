/* loaders/model/model_latent.c - latent attention's matrices by head.
 *
 * Owns: how files hold a matrix for each head. In GGUF and as MLX writes them, one tensor of three dimensions is for
 * keys and one for values; in other safetensors a tensor has a head's rows for keys, which are columns to us, then
 * those for values.
 */
#include <assert.h>
#include <inttypes.h>

#include "loaders/model/model_bind.h"

static bool check_shape(const struct found_tensor *t, const char *name, const uint64_t want[3], struct error *err)
{
	if (t->rank <= 4 && t->dim[0] == want[0] && t->dim[1] == want[1] && t->dim[2] == want[2] && t->dim[3] == 1)
		return true;
	return error_set(err, ERROR_FORMAT,
	                 "%s: tensor %s has shape (%" PRIu64 " x %" PRIu64 " x %" PRIu64 "), expected (%" PRIu64
	                 " x %" PRIu64 " x %" PRIu64 ") heads x rows x columns",
	                 t->label, name, t->dim[2], t->dim[1], t->dim[0], want[2], want[1], want[0]);
}

/* Quants of all heads' rows in one tensor, and their numbers in others. */
static bool bind_quants(struct binder *b, const char *name, const struct found_tensor *found, struct model_tensor *t)
{
	const uint64_t rows = (uint64_t)t->heads * t->own_file_rows;
	const struct affine_shape shape = { .rows = rows, .cols = t->cols, .all_rows = rows, .experts = t->heads };
	struct model_quants *q = model_keep_quants(b->f, 1, b->err);
	struct model_tensor all;

	if (!q || !model_bind_affine(b->f, name, found, &shape, &all, q, b->err))
		return false;
	t->quants = q;
	t->type = all.type;
	t->row_bytes = all.row_bytes;
	t->bytes = all.bytes;
	b->m->tensor_bytes += all.bytes;
	return true;
}

static bool bind_numbers(struct binder *b, const char *name, const struct found_tensor *found, bool apart,
                         struct model_tensor *t)
{
	const struct model_latent *l = &b->m->spec.latent;
	const uint64_t want[3] = { t->transposed ? l->rank : t->cols,
		                   apart ? t->own_file_rows : t->heads * (uint64_t)t->own_file_rows,
		                   apart ? t->heads : 1 };

	if (!check_shape(found, name, want, b->err) || !bind_check_type(b, name, found, false))
		return false;
	const struct dtype_facts *type = &dtype_table[found->type];
	if (t->transposed && type->block != 1)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has type %s, whose rows cannot become columns", found->label, name,
		                 type->name);
	t->type = found->type;
	t->bytes = (size_t)found->bytes;
	t->row_bytes = (size_t)dtype_row_bytes(found->type, want[0]);
	assert(t->row_bytes * t->heads * t->own_file_rows == found->bytes);
	b->m->tensor_bytes +=
		apart ? found->bytes : found->bytes / t->own_file_rows * (t->transposed ? l->rest : l->value);
	return true;
}

bool bind_by_head(struct binder *b, const char *name, bool keys, bool mlx, struct model_tensor *out)
{
	const struct model_latent *l = &b->m->spec.latent;
	const bool gguf = b->f->format == MODEL_GGUF, apart = gguf || mlx;
	struct model_tensor t = { .heads = b->m->spec.heads,
		                  .own_rows = keys ? l->rank : l->value,
		                  .cols = keys ? l->rest : l->rank,
		                  .own_file_rows = apart ? (keys ? l->rank : l->value) : l->rest + l->value,
		                  .own_first = apart || keys ? 0 : l->rest,
		                  .transposed = !apart && keys };
	struct found_tensor found;

	if (!model_find_tensor(b->f, name, &found))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing%s", b->f->part[0].file.label, name,
		                 gguf ? " (files from before April 2025 do not have it)" : "");
	if (!apart && model_is_quants(b->f, found.type))
		return error_set(
			b->err, ERROR_UNSUPPORTED,
			"%s: tensor %s is quantised with both matrices of each head in it, expected floats, or "
			"the tensors embed_q and unembed_out that MLX's converter makes of it",
			found.label, name);
	if (!(mlx && model_is_quants(b->f, found.type) ? bind_quants(b, name, &found, &t)
	                                               : bind_numbers(b, name, &found, apart, &t)))
		return false;
	t.name = bind_keep_name(b->f, name);
	t.rows = t.heads * (uint64_t)((t.own_rows + 31) / 32 * 32);
	t.part = found.part;
	t.offset = found.offset;
	b->f->used[found.entry] = true;
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
