/* loaders/adapter/adapter.c - what both kinds of adapters have in common: pairs of tensors, which of the model's
 * matrices they are for, and their numbers (adapter.h). */
#include "loaders/adapter/adapter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
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

static struct adapter_pair *find_pair(const struct adapter_file *f, const char *name)
{
	for (size_t i = 0; i < f->n_pairs; i++)
		if (names(f->pair[i].path, name))
			return &f->pair[i];
	return NULL;
}

static bool check_part(const struct adapter_file *f, const struct adapter_part *p, struct error *err)
{
	const struct adapter_tensor *a = &f->pair[p->pair].a, *b = &f->pair[p->pair].b;

	if (a->cols != p->cols)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " columns, expected %" PRIu64 ", as the model's %s has",
		                 f->weights.label, a->name, a->cols, p->cols, p->place.name);
	if (b->rows != p->place.all_rows)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " rows, expected %" PRIu64 ", as the model's %s has",
		                 f->weights.label, b->name, b->rows, p->place.all_rows, p->place.name);
	return true;
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

/* Adds a part for each matrix of a layer that the files have a pair for. */
static bool match_layer(struct adapter_file *f, const struct model *m, uint32_t layer, size_t *room, struct error *err)
{
	for (int k = 0; k < MATRIX_SLOTS; k++) {
		struct adapter_part p = { .layer = layer, .slot = slot_of((enum matrix_slot)k) };
		void *all = f->part;
		struct adapter_pair *pair;
		if (!model_place_of(m, f->is_gguf, layer, p.slot, &p.place) || !(pair = find_pair(f, p.place.name)))
			continue;
		p.pair = (uint32_t)(pair - f->pair);
		p.rows = p.place.order.rows;
		p.cols = p.place.order.cols;
		p.rank = (uint32_t)pair->a.rows;
		pair->used = true;
		if (!check_part(f, &p, err))
			return false;
		if (!array_grow(&all, room, f->n_parts + 1, sizeof *f->part))
			return error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's matrices");
		f->part = all;
		f->part[f->n_parts++] = p;
	}
	return true;
}

/* Every pair is whole, and of sizes that agree. */
static bool check_pairs(const struct adapter_file *f, struct error *err)
{
	if (f->n_pairs == 0)
		return error_set(err, ERROR_FORMAT, "%s: the adapter has no tensors", f->weights.label);
	for (size_t i = 0; i < f->n_pairs; i++) {
		const struct adapter_pair *p = &f->pair[i];
		if (!p->a.name || !p->b.name)
			return error_set(err, ERROR_FORMAT, "%s: tensor %s has no partner, expected both of %s",
			                 f->weights.label, p->a.name ? p->a.name : p->b.name, p->path);
		if (p->a.rows != p->b.cols)
			return error_set(err, ERROR_FORMAT,
			                 "%s: the rank of %s is %" PRIu64 ", but that of %s is %" PRIu64,
			                 f->weights.label, p->a.name, p->a.rows, p->b.name, p->b.cols);
		if (p->a.rows < 1 || p->a.rows > ADAPTER_MAX_RANK)
			return error_set(err, ERROR_UNSUPPORTED, "%s: the rank of %s is %" PRIu64 ", expected 1 to %d",
			                 f->weights.label, p->a.name, p->a.rows, ADAPTER_MAX_RANK);
	}
	return true;
}

static bool match(struct adapter_file *f, const struct model *m, struct error *err)
{
	size_t room = 0;

	if (m->spec.encodes)
		return error_set(err, ERROR_UNSUPPORTED, "%s: models that encode texts take no adapters",
		                 f->weights.label);
	if (!check_pairs(f, err))
		return false;
	for (uint32_t i = 0; i < m->spec.layers; i++)
		if (!match_layer(f, m, i, &room, err))
			return false;
	for (size_t i = 0; i < f->n_pairs; i++)
		if (!f->pair[i].used)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s is of the module %s, which the model does not have or to which "
			                 "nothing can be added here",
			                 f->weights.label, f->pair[i].a.name, f->pair[i].path);
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

bool adapter_open(struct adapter_file *f, const char *path, const struct model *m, struct error *err)
{
	*f = (struct adapter_file){ 0 };
	if (open_files(f, path, m, err) && match(f, m, err))
		return true;
	adapter_close(f);
	return false;
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
	}
	free(f->pair);
	free(f->part);
	free(f->invocation);
	file_close(&f->weights);
	file_close(&f->config);
	*f = (struct adapter_file){ 0 };
}

/* ---- numbers */

static void widen(float *out, const uint8_t *from, enum dtype type, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint16_t half;
		if (type == DTYPE_F32) {
			memcpy(&out[i], from + 4 * i, 4);
			continue;
		}
		memcpy(&half, from + 2 * i, 2);
		out[i] = type == DTYPE_F16 ? number_from_half(half) : number_from_bf16(half);
	}
}

/* All of a tensor's numbers, malloc'ed. NULL: err. */
static float *read_tensor(const struct adapter_file *f, const struct adapter_tensor *t, struct error *err)
{
	const uint64_t n = t->rows * t->cols;
	const size_t element = dtype_table[t->type].bytes;
	float *out = malloc((size_t)n * sizeof *out);
	uint8_t *raw = malloc((size_t)n * element);
	bool ok = out && raw;

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for the tensor %s of an adapter", t->name);
	ok = ok && file_read(&f->weights, t->offset, (size_t)n * element, raw, err);
	if (ok)
		widen(out, raw, t->type, n);
	free(raw);
	if (!ok)
		free(out);
	return ok ? out : NULL;
}

bool adapter_read(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b, struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->pair];
	float *first = read_tensor(f, &pair->a, err), *second = first ? read_tensor(f, &pair->b, err) : NULL;
	const size_t row = p->rank * sizeof *b;

	if (second) {
		memcpy(a, first, p->rank * p->cols * sizeof *a);
		for (uint64_t r = 0; r < p->rows; r++) {
			const uint64_t from = model_source_row(&p->place.order, p->place.head_dim, r);
			memcpy(b + r * p->rank, second + (p->place.first_row + from) * p->rank, row);
		}
	}
	free(first);
	free(second);
	return second != NULL;
}

bool adapter_read_done(const struct adapter_file *f, struct error *err) { return file_same(&f->weights, err); }
