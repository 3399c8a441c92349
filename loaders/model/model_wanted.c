/* loaders/model/model_wanted.c - see model_wanted.h. */
#include "loaders/model/model_wanted.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_bind.h"

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static bool has(const struct model_wanted *w, const char *name)
{
	for (uint32_t i = w->n; i-- > 0;) /* others of the same tensor come just before */
		if (strcmp(w->tensor[i].name, name) == 0)
			return true;
	return false;
}

static bool add(struct model_wanted *w, const char *name, const struct wanted_shape *s, struct error *err)
{
	const uint64_t rows = s->all && !s->vector ? s->all : s->rows, cols = s->all && s->vector ? s->all : s->cols;
	const bool bias = ends_with(name, ".bias");
	struct wanted_tensor t = { .name = strdup(name),
		                   .kind = !s->vector ? WANTED_MATRIX
		                           : bias     ? WANTED_BIAS
		                                      : WANTED_NORM,
		                   .rank = s->vector ? 1 : 2,
		                   .dim = { s->vector ? cols : rows, cols } };

	if (s->transposed)
		t.dim[0] = cols, t.dim[1] = rows;
	if (w->n == w->room) {
		struct wanted_tensor *more = realloc(w->tensor, (w->room * 2 + 64) * sizeof *more);
		if (!more) {
			free(t.name);
			return error_set(err, ERROR_MEMORY, "no memory for a list of tensors");
		}
		w->tensor = more;
		w->room = w->room * 2 + 64;
	}
	w->tensor[w->n++] = t;
	return t.name || error_set(err, ERROR_MEMORY, "no memory for a list of tensors");
}

bool bind_wanted(struct binder *b, const char *name, const struct wanted_shape *s, struct model_tensor *out)
{
	struct model_wanted *w = b->f->wanted;
	const size_t row_bytes = (size_t)s->cols * sizeof(float);

	const bool known = ends_with(name, ".bias") || strstr(name, "norm") || strstr(name, "ln_");

	if (b->m->spec.experts)
		return error_set(b->err, ERROR_UNSUPPORTED, "%s: it has experts: such a model cannot be made yet",
		                 b->label);
	if (s->vector && (b->taps || b->flat || !known))
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: it has %s, which is neither a matrix, a norm nor a bias: such a model cannot be "
		                 "made yet",
		                 b->label, name);
	*out = (struct model_tensor){ .name = bind_keep_name(b->f, name),
		                      .type = DTYPE_F32,
		                      .rows = s->rows,
		                      .cols = s->cols,
		                      .row_bytes = row_bytes,
		                      .bytes = row_bytes * (size_t)s->rows };
	w->less_one = bind_plus_one(b);
	return has(w, name) || add(w, name, s, b->err);
}

/* Files without a tensor, and what config.json says. */
static bool open_empty(struct model *m, struct model_wanted *w, const void *config, uint64_t n, struct error *err)
{
	static const uint8_t none[] = { 2, 0, 0, 0, 0, 0, 0, 0, '{', '}' };

	if (!model_begin(m, MODEL_NO_TOKENIZER | MODEL_HEADER_ONLY, err))
		return false;
	struct model_file *f = m->file;
	f->format = MODEL_HF;
	f->wanted = w;
	f->part = calloc(1, sizeof *f->part);
	if (!f->part)
		return error_set(err, ERROR_MEMORY, "no memory for a model");
	f->n_parts = 1;
	file_memory(&f->part[0].file, none, sizeof none, "weights");
	file_memory(&f->config, config, n, "config.json");
	return model_parse_part(f, &f->part[0], err) && model_finish(m, err);
}

bool model_wanted_read(struct model_wanted *w, const void *config, uint64_t n, struct error *err)
{
	struct model m = { 0 };

	*w = (struct model_wanted){ 0 };
	const bool ok = open_empty(&m, w, config, n, err);
	model_close(&m);
	return ok;
}

void model_wanted_free(struct model_wanted *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		free(w->tensor[i].name);
	free(w->tensor);
	*w = (struct model_wanted){ 0 };
}
