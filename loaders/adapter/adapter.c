/* loaders/adapter/adapter.c - what both kinds of adapters have in common: pairs of tensors, which of the model's
 * matrices they are for, and their numbers (adapter.h). */
#include "loaders/adapter/adapter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/floats.h"
#include "base/number.h"

/* ---- pairs */

struct adapter_pair *adapter_pair_of(struct adapter_file *f, const char *path, size_t n, struct error *err)
{
	void *all = f->pair;

	for (size_t i = f->n_pairs; i-- > 0;) /* a pair's tensors are neighbours in most files */
		if (strlen(f->pair[i].path) == n && memcmp(f->pair[i].path, path, n) == 0)
			return &f->pair[i];
	if (!array_grow(&all, &f->pairs_room, f->n_pairs + 1, sizeof *f->pair)) {
		error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
		return NULL;
	}
	f->pair = all;
	f->pair[f->n_pairs] = (struct adapter_pair){ .path = strndup(path, n), .scale = 1 };
	if (!f->pair[f->n_pairs].path) {
		error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
		return NULL;
	}
	return &f->pair[f->n_pairs++];
}

bool adapter_take(struct adapter_file *f, struct adapter_tensor *to, const struct adapter_tensor *t, struct error *err)
{
	if (t->type != DTYPE_F32 && t->type != DTYPE_F16 && t->type != DTYPE_BF16)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has type %s, expected F32, F16 or BF16 in an adapter", f->weights.label,
		                 t->name, dtype_table[t->type].name);
	if (to->name)
		return error_set(err, ERROR_FORMAT, "%s: tensors %s and %s are of the same module", f->weights.label,
		                 to->name, t->name);
	*to = *t;
	return true;
}

/* ---- matrices of the model */

/* Whether a module's path is that name, or ends in it behind a dot. */
static bool names(const char *path, const char *name)
{
	const size_t n = strlen(path), m = strlen(name);

	return n >= m && strcmp(path + n - m, name) == 0 && (n == m || path[n - m - 1] == '.');
}

struct adapter_pair *adapter_find_pair(const struct adapter_file *f, const char *name, size_t *hint)
{
	for (size_t i = 0; i < f->n_pairs; i++) {
		const size_t at = (*hint + i) % f->n_pairs;
		if (!names(f->pair[at].path, name))
			continue;
		*hint = at + 1;
		return &f->pair[at];
	}
	return NULL;
}

static struct adapter_pair *find_pair(const struct adapter_file *f, const char *name)
{
	return adapter_find_pair(f, name, &(size_t){ 0 });
}

static enum tensor_slot slot_of(enum matrix_slot m)
{
	static const enum tensor_slot slot[MATRIX_SLOTS] = {
#define X(name, ...) [MATRIX_##name] = SLOT_##name,
		MATRIX_SLOTS_EACH(X)
#undef X
	};
	return slot[m];
}

bool adapter_append_part(struct adapter_file *f, const struct adapter_part *p, size_t *room, struct error *err)
{
	void *all = f->part;

	if (!array_grow(&all, room, f->n_parts + 1, sizeof *f->part))
		return error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's matrices");
	f->part = all;
	f->part[f->n_parts++] = *p;
	return true;
}

static bool add_part(struct adapter_file *f, const struct adapter_part *p, size_t *room, struct error *err)
{
	f->pair[p->pair].used = true;
	return adapter_append_part(f, p, room, err);
}

/* Adds a part for each matrix of a layer that the files have a pair for. */
static bool match_layer(struct adapter_file *f, const struct model *m, uint32_t layer, size_t *room, struct error *err)
{
	for (int k = 0; k < MATRIX_SLOTS; k++) {
		struct adapter_part p = { .layer = layer, .slot = slot_of((enum matrix_slot)k) };
		struct adapter_pair *pair;
		if (!adapter_match_experts(f, m, layer, p.slot, room, err))
			return false;
		if (!model_location_of(m, f->is_gguf, layer, p.slot, &p.location) ||
		    !(pair = find_pair(f, p.location.name)) || pair->embeds)
			continue;
		p.pair = (uint32_t)(pair - f->pair);
		p.rows = p.location.order.rows;
		p.cols = p.location.order.cols;
		p.rank = pair->a.name ? (uint32_t)pair->a.rows : 1;
		if (!adapter_check_part(f, &p, err) || !add_part(f, &p, room, err))
			return false;
	}
	return true;
}

/* A matrix that the model has once. Where the output's is the embedding's, adding to one would change the other. */
static bool match_once(struct adapter_file *f, const struct model *m, enum adapter_target target, size_t *room,
                       struct error *err)
{
	static const char *const names_of[][2] = {
		[ADAPTER_EMBEDDING] = { "embed_tokens", "token_embd" }, [ADAPTER_OUTPUT] = { "lm_head", "output" }
	};
	const struct model_tensor *t = target == ADAPTER_OUTPUT && !m->spec.tied ? &m->spec.lm_head : &m->spec.embed;
	const char *name = names_of[target][f->is_gguf];
	struct adapter_pair *pair = find_pair(f, name);
	struct adapter_part p = { .target = target, .rows = t->rows, .cols = t->cols };

	if (!pair)
		return true;
	p.pair = (uint32_t)(pair - f->pair);
	p.rank = (uint32_t)adapter_rank_of(f, pair);
	p.location.all_rows = t->rows;
	snprintf(p.location.name, sizeof p.location.name, "%s", name);
	if (m->spec.tied && f->merges)
		return error_set(
			err, ERROR_UNSUPPORTED,
			"%s: tensor %s is of %s, and the model's output matrix is its embedding: nothing can be "
			"added to one of them",
			f->weights.label, pair->a.name, pair->path);
	if (target == ADAPTER_EMBEDDING && !pair->embeds)
		return true;
	if (target == ADAPTER_EMBEDDING && m->spec.tied && f->ties && !find_pair(f, "lm_head"))
		return error_set(
			err, ERROR_UNSUPPORTED,
			"%s: tensor %s is meant for the output matrix, too (ensure_weight_tying), and there is "
			"no pair of lm_head",
			f->weights.label, pair->a.name);
	if (pair->magnitude.name && (pair->embeds || !f->merges))
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s: magnitudes (DoRA) of %s are not done",
		                 f->weights.label, pair->magnitude.name, pair->path);
	if (pair->bias.name || pair->own_bias.name)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s: biases of %s are not done", f->weights.label,
		                 pair->bias.name ? pair->bias.name : pair->own_bias.name, pair->path);
	return (pair->embeds ? adapter_check_embedding(f, &p, err) : adapter_check_part(f, &p, err)) &&
	       add_part(f, &p, room, err);
}

bool adapter_take_whole(struct adapter_file *f, const struct adapter_whole *w, struct error *err)
{
	void *all = f->whole;
	bool ok = w->path && w->t.name && array_grow(&all, &f->whole_room, f->n_whole + 1, sizeof *f->whole);

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
	f->whole = all;
	if (ok && w->t.type != DTYPE_F32 && w->t.type != DTYPE_F16 && w->t.type != DTYPE_BF16)
		ok = error_set(err, ERROR_UNSUPPORTED,
		               "%s: tensor %s has type %s, expected F32, F16 or BF16 in an adapter", f->weights.label,
		               w->t.name, dtype_table[w->t.type].name);
	if (ok) {
		f->whole[f->n_whole++] = *w;
		return true;
	}
	free(w->path);
	free((char *)(uintptr_t)w->t.name);
	return false;
}

/* What of the embedding or the output is there whole, the model's own matrix among it. */
static bool match_whole(struct adapter_file *f, const struct model *m, bool output, size_t *room, struct error *err)
{
	const struct model_tensor *t = output && !m->spec.tied ? &m->spec.lm_head : &m->spec.embed;
	const char *name = output ? "lm_head" : "embed_tokens";

	for (size_t i = 0; i < f->n_whole; i++) {
		struct adapter_whole *w = &f->whole[i];
		struct adapter_part p = { .target = output ? ADAPTER_WHOLE_OUTPUT : ADAPTER_WHOLE_EMBEDDING,
			                  .pair = (uint32_t)i,
			                  .rows = t->rows,
			                  .cols = t->cols };
		if (!names(w->path, name))
			continue;
		if (w->t.rows != t->rows || w->t.cols != t->cols)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s is of %" PRIu64 " rows of %" PRIu64
			                 ", and the model has %" PRIu64 " of %" PRIu64
			                 ": a vocabulary of another size is not done",
			                 f->weights.label, w->t.name, w->t.rows, w->t.cols, t->rows, t->cols);
		w->used = true;
		if (w->is_base)
			continue;
		if (m->spec.tied && (f->merges || f->ties))
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s is of %s, and the model's output matrix is its embedding: "
			                 "neither can be replaced alone",
			                 f->weights.label, w->t.name, w->path);
		snprintf(p.location.name, sizeof p.location.name, "%s", name);
		if (!adapter_append_part(f, &p, room, err))
			return false;
	}
	return true;
}

static bool match(struct adapter_file *f, const struct model *m, struct error *err)
{
	size_t room = 0;

	if (m->spec.encodes)
		return error_set(err, ERROR_UNSUPPORTED, "%s: models that encode texts take no adapters",
		                 f->weights.label);
	if (!adapter_check_pairs(f, err))
		return false;
	for (uint32_t i = 0; i < m->spec.layers; i++)
		if (!match_layer(f, m, i, &room, err))
			return false;
	if (!match_once(f, m, ADAPTER_EMBEDDING, &room, err) || !match_once(f, m, ADAPTER_OUTPUT, &room, err) ||
	    !match_whole(f, m, false, &room, err) || !match_whole(f, m, true, &room, err) ||
	    (f->merges && !adapter_match_norms(f, m, &room, err)))
		return false;
	for (size_t i = 0; i < f->n_whole; i++)
		if (!f->whole[i].used)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s is a whole module, which is done of embed_tokens and lm_head "
			                 "alone",
			                 f->weights.label, f->whole[i].t.name);
	for (size_t i = 0; i < f->n_pairs; i++)
		if (!f->pair[i].used)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s is of the module %s, which the model does not have or to which "
			                 "nothing can be added here",
			                 f->weights.label,
			                 f->pair[i].a.name ? f->pair[i].a.name : f->pair[i].own_bias.name,
			                 f->pair[i].path);
	return true;
}

/* ---- opening and closing */

static bool ends_in(const char *path, const char *end)
{
	const size_t n = strlen(path), m = strlen(end);

	return n >= m && strcmp(path + n - m, end) == 0;
}

static bool open_files(struct adapter_file *f, const char *path, const struct model *m, struct error *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return adapter_open_peft(f, path, NULL, err);
	if (ends_in(path, ".safetensors"))
		return adapter_open_peft(f, NULL, path, err);
	f->is_gguf = true;
	return adapter_open_gguf(f, path, m, err);
}

static bool open_for(struct adapter_file *f, const char *path, const struct model *m, bool merges, struct error *err)
{
	*f = (struct adapter_file){ .merges = merges };
	if (open_files(f, path, m, err) && match(f, m, err))
		return true;
	adapter_close(f);
	return false;
}

bool adapter_open(struct adapter_file *f, const char *path, const struct model *m, struct error *err)
{
	return open_for(f, path, m, false, err);
}

bool adapter_open_to_merge(struct adapter_file *f, const char *path, const struct model *m, struct error *err)
{
	return open_for(f, path, m, true, err);
}

void adapter_close(struct adapter_file *f)
{
	if (f->is_gguf)
		gguf_free(&f->gguf);
	else
		safetensors_free(&f->st);
	for (size_t i = 0; i < f->n_pairs; i++) {
		free(f->pair[i].path);
		free((char *)(uintptr_t)f->pair[i].a.name);
		free((char *)(uintptr_t)f->pair[i].b.name);
		free((char *)(uintptr_t)f->pair[i].magnitude.name);
		free((char *)(uintptr_t)f->pair[i].bias.name);
		free((char *)(uintptr_t)f->pair[i].own_bias.name);
	}
	for (size_t i = 0; i < f->n_whole; i++) {
		free(f->whole[i].path);
		free((char *)(uintptr_t)f->whole[i].t.name);
	}
	free(f->whole);
	free(f->pair);
	free(f->part);
	free(f->invocation);
	file_close(&f->weights);
	file_close(&f->config);
	*f = (struct adapter_file){ 0 };
}

/* ---- numbers */

/* n of a tensor's numbers, from that one on. False: err. */
static bool read_numbers(const struct adapter_file *f, const struct adapter_tensor *t, uint64_t first, uint64_t n,
                         float *out, struct error *err)
{
	const size_t element = dtype_table[t->type].bytes;
	uint8_t *raw = malloc((size_t)n * element + 1);
	const bool ok = raw ? file_read(&f->weights, t->offset + first * element, (size_t)n * element, raw, err)
	                    : error_set(err, ERROR_MEMORY, "no memory for the tensor %s of an adapter", t->name);

	if (ok)
		floats_read(out, raw, t->type, n);
	free(raw);
	return ok;
}

float *adapter_read_tensor(const struct adapter_file *f, const struct adapter_tensor *t, struct error *err)
{
	const uint64_t n = t->rows * t->cols * (t->experts ? t->experts : 1);
	float *out = malloc((size_t)n * sizeof *out);
	const bool ok = out ? read_numbers(f, t, 0, n, out, err)
	                    : error_set(err, ERROR_MEMORY, "no memory for the tensor %s of an adapter", t->name);

	if (!ok)
		free(out);
	return ok ? out : NULL;
}

bool adapter_read_whole(const struct adapter_file *f, const struct adapter_part *p, uint64_t first, uint64_t n,
                        float *out, struct error *err)
{
	return read_numbers(f, &f->whole[p->pair].t, first * p->cols, n * p->cols, out, err);
}

/* Where the file has a row of B. */
static uint64_t row_of(const struct adapter_part *p, uint64_t r)
{
	return p->target == ADAPTER_LAYER
	               ? p->location.first_row + model_source_row(&p->location.order, p->location.head_dim, r)
	               : r;
}

/* from: rows of cols; to: cols of rows. */
static void transpose(float *to, const float *from, uint64_t rows, uint64_t cols)
{
	for (uint64_t i = 0; i < rows; i++)
		for (uint64_t j = 0; j < cols; j++)
			to[j * rows + i] = from[i * cols + j];
}

static bool read_rows(const struct adapter_file *f, const struct adapter_part *p, const struct adapter_tensor *t,
                      float *out, struct error *err)
{
	float *all = adapter_read_tensor(f, t, err);

	for (uint64_t r = 0; all && r < p->rows; r++)
		out[r] = all[row_of(p, r)];
	free(all);
	return all != NULL;
}

bool adapter_read_magnitude(const struct adapter_file *f, const struct adapter_part *p, float *out, struct error *err)
{
	return read_rows(f, p, &f->pair[p->pair].magnitude, out, err);
}

bool adapter_read_bias(const struct adapter_file *f, const struct adapter_part *p, float *out, struct error *err)
{
	return read_rows(f, p, &f->pair[p->pair].bias, out, err);
}

bool adapter_read_own_bias(const struct adapter_file *f, const struct adapter_part *p, float *out, struct error *err)
{
	return read_rows(f, p, &f->pair[p->pair].own_bias, out, err);
}

bool adapter_read(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b, struct error *err)
{
	if (p->experts)
		return adapter_read_experts(f, p, a, b, err);
	const struct adapter_pair *pair = &f->pair[p->pair];
	if (!pair->a.name) { /* a bias alone */
		memset(a, 0, p->rank * p->cols * sizeof *a);
		memset(b, 0, p->rank * p->rows * sizeof *b);
		return true;
	}
	float *first = adapter_read_tensor(f, &pair->a, err),
	      *second = first ? adapter_read_tensor(f, &pair->b, err) : NULL;
	const size_t row = p->rank * sizeof *b;

	if (second && pair->embeds) {
		transpose(a, second, p->cols, p->rank);
		if (f->is_gguf)
			memcpy(b, first, p->rows * row);
		else
			transpose(b, first, p->rank, p->rows);
	} else if (second) {
		memcpy(a, first, p->rank * p->cols * sizeof *a);
		for (uint64_t r = 0; r < p->rows; r++) {
			memcpy(b + r * p->rank, second + row_of(p, r) * p->rank, row);
		}
	}
	free(first);
	free(second);
	return second != NULL;
}

bool adapter_read_done(const struct adapter_file *f, struct error *err) { return file_same(&f->weights, err); }
