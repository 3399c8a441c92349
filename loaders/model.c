/* loaders/model.c - opens a model: maps and parses its files, merges their tensors into one catalog, has the
 * hyperparameters read and everything bound, opens the tokenizer. Owns all of it until model_close().
 *
 * Rule: what is opened is recorded in model_file at once, so that model_close() alone undoes a failure at any step.
 */
#include "loaders/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/model_load.h"
#include "loaders/tokenizer.h"

static uint32_t part_tensors(const struct model_part *p)
{
	return p->format == MODEL_GGUF ? (uint32_t)p->gguf.n_tensors : p->st.n_tensors;
}

struct name_ref model_entry_name(const void *file, uint32_t i)
{
	const struct model_file *f = file;
	const struct model_part *p = &f->part[f->entry[i].part];

	if (p->format == MODEL_HF)
		return p->st.tensor[f->entry[i].tensor].name;
	const struct gguf_str *n = &p->gguf.tensor[f->entry[i].tensor].name;
	return (struct name_ref){ n->p, n->n };
}

bool model_find_tensor(const struct model_file *f, const char *name, struct found_tensor *out)
{
	uint32_t i = names_find(&f->names, name, strlen(name));

	if (i == NAMES_NONE)
		return false;
	const struct model_part *p = &f->part[f->entry[i].part];
	uint64_t offset;
	memset(out, 0, sizeof *out);
	out->label = p->map.label;
	out->entry = i;
	if (p->format == MODEL_GGUF) {
		const struct gguf_tensor *t = &p->gguf.tensor[f->entry[i].tensor];
		out->type = t->type;
		out->rank = t->n_dims;
		out->bytes = t->bytes;
		memcpy(out->dim, t->ne, sizeof out->dim);
		offset = t->offset;
	} else {
		const struct safetensors_tensor *t = &p->st.tensor[f->entry[i].tensor];
		out->type = t->type;
		out->rank = t->rank;
		out->bytes = t->bytes;
		for (uint32_t d = 0; d < 4; d++)
			out->dim[d] = d < t->rank && t->rank <= 4 ? t->dim[t->rank - 1 - d] : 1;
		offset = t->offset;
	}
	out->data = f->flags & MODEL_HEADER_ONLY ? NULL : p->map.base + offset;
	return true;
}

static bool build_catalog(struct model_file *f, struct error *err)
{
	uint64_t total = 0;
	char text[100];

	for (uint32_t i = 0; i < f->n_parts; i++)
		total += part_tensors(&f->part[i]);
	f->entry = malloc(total ? total * sizeof *f->entry : 1);
	f->used = calloc(total ? total : 1, sizeof *f->used);
	if (!f->entry || !f->used || total > UINT32_MAX / 2)
		return error_set(err, ERROR_MEMORY, "%s: no memory to index %" PRIu64 " tensors", f->part[0].map.label, total);
	for (uint32_t i = 0; i < f->n_parts; i++)
		for (uint32_t t = 0, n = part_tensors(&f->part[i]); t < n; t++)
			f->entry[f->n_entries++] = (struct catalog_entry){ i, t };
	if (!names_build(&f->names, f, f->n_entries, model_entry_name))
		return error_set(err, ERROR_MEMORY, "%s: no memory to index %" PRIu64 " tensors", f->part[0].map.label, total);
	uint32_t twice = names_duplicate(&f->names);
	if (twice == NAMES_NONE)
		return true;
	struct name_ref n = model_entry_name(f, twice);
	return error_set(err, ERROR_FORMAT, "%s: tensor %s occurs in more than one part", f->part[f->entry[twice].part].map.label, error_quote(text, sizeof text, n.p, n.n));
}

static bool parse_part(const struct model_file *f, struct model_part *p, struct error *err)
{
	bool header_only = f->flags & MODEL_HEADER_ONLY;

	p->format = f->format;
	if (p->format == MODEL_GGUF)
		return gguf_parse(&p->gguf, p->map.base, p->map.size, p->map.label, header_only, err);
	return safetensors_parse(&p->st, p->map.base, p->map.size, p->map.label, header_only, err);
}

static bool open_parts(struct model_file *f, const struct model_paths *paths, struct error *err)
{
	f->part = calloc(paths->n_parts, sizeof *f->part);
	if (!f->part)
		return error_set(err, ERROR_MEMORY, "no memory for a model of %" PRIu32 " files", paths->n_parts);
	for (uint32_t i = 0; i < paths->n_parts; i++) {
		struct model_part *p = &f->part[f->n_parts++];
		if (!mapped_open(&p->map, paths->part[i], err) || !parse_part(f, p, err))
			return false;
	}
	return true;
}

static bool open_beside(struct mapped *m, const char *dir, const char *name, bool required, struct error *err)
{
	if (!required && !model_exists(dir, name))
		return true;
	char *path = model_join(dir, name, err);
	bool ok = path && mapped_open(m, path, err);
	free(path);
	return ok;
}

static bool open_sharded(struct model_file *f, struct model_paths *paths, struct error *err)
{
	struct mapped index;
	char *path = model_join(paths->dir, "model.safetensors.index.json", err);
	bool ok = path && mapped_open(&index, path, err);

	free(path);
	if (!ok)
		return false;
	ok = model_read_index(paths, &index, err) && open_parts(f, paths, err) && build_catalog(f, err) && model_check_index(f, paths, &index, err);
	mapped_close(&index);
	return ok;
}

static bool open_files(struct model_file *f, struct model_paths *paths, struct error *err)
{
	f->format = paths->format;
	if (f->format == MODEL_GGUF)
		return open_parts(f, paths, err) && model_check_split(f, err) && build_catalog(f, err);
	if (!open_beside(&f->config, paths->dir, "config.json", true, err))
		return false;
	if (!(f->flags & MODEL_NO_TOKENIZER) && (!open_beside(&f->tokenizer_json, paths->dir, "tokenizer.json", false, err) ||
	                                         !open_beside(&f->tokenizer_config, paths->dir, "tokenizer_config.json", false, err) ||
	                                         !open_beside(&f->generation_config, paths->dir, "generation_config.json", false, err)))
		return false;
	return paths->sharded ? open_sharded(f, paths, err) : open_parts(f, paths, err) && build_catalog(f, err);
}

/* Hyperparameters, ranges, tensors: the same for every source of the bytes. */
static bool read_model(struct model *m, struct error *err)
{
	struct model_file *f = m->file;
	bool gguf = f->format == MODEL_GGUF;

	for (uint32_t i = 0; i < f->n_parts; i++)
		m->file_bytes += f->part[i].map.size;
	if (!(gguf ? model_read_gguf(m, err) : model_read_config(m, err)))
		return false;
	m->spec.arch_name = f->arch_name;
	m->spec.name = f->model_name;
	return model_bind(m, gguf ? f->part[0].map.label : f->config.label, err);
}

static bool gguf_has_tokenizer(const struct gguf *g)
{
	static const char prefix[] = "tokenizer.ggml.";
	const struct gguf_kv *model = gguf_find(g, "tokenizer.ggml.model");

	if (model && model->type == GGUF_STRING && ((model->bytes == 4 && memcmp(model->data, "none", 4) == 0) ||
	                                            (model->bytes == 8 && memcmp(model->data, "no_vocab", 8) == 0)))
		return false;
	for (uint64_t i = 0; i < g->n_kv; i++)
		if (g->kv[i].key.n >= sizeof prefix - 1 && memcmp(g->kv[i].key.p, prefix, sizeof prefix - 1) == 0)
			return true;
	return false;
}

static struct tokenizer_text text_of(const struct mapped *file)
{
	return (struct tokenizer_text){ (const char *)file->base, file->size, file->label };
}

static bool open_tokenizer(struct model *m, struct error *err)
{
	const struct model_file *f = m->file;

	if (f->flags & MODEL_NO_TOKENIZER)
		return true;
	if (f->format == MODEL_GGUF) {
		if (!gguf_has_tokenizer(&f->part[0].gguf))
			return true;
		m->tokenizer = tokenizer_from_gguf(&f->part[0].gguf, m->spec.vocab, err);
		return m->tokenizer != NULL;
	}
	if (!f->tokenizer_json.base)
		return true;
	m->tokenizer = tokenizer_from_json(text_of(&f->tokenizer_json), text_of(&f->tokenizer_config), m->spec.vocab, err);
	return m->tokenizer != NULL && model_read_end_tokens(m, err);
}

static bool begin(struct model *m, unsigned flags, struct error *err)
{
	memset(m, 0, sizeof *m);
	m->file = calloc(1, sizeof *m->file);
	if (!m->file)
		return error_set(err, ERROR_MEMORY, "no memory for a model");
	m->file->flags = flags;
	return true;
}

bool model_open(struct model *out, const char *path, unsigned flags, struct error *err)
{
	struct model_paths paths;

	if (!begin(out, flags, err))
		return false;
	bool ok = model_locate(&paths, path, err);
	if (ok) {
		ok = open_files(out->file, &paths, err) && read_model(out, err) && open_tokenizer(out, err);
		model_paths_free(&paths);
	}
	if (!ok)
		model_close(out);
	return ok;
}

bool model_open_memory(struct model *out, const void *weights, uint64_t n, const void *config, uint64_t n_config, unsigned flags, struct error *err)
{
	if (!begin(out, flags, err))
		return false;
	struct model_file *f = out->file;
	f->format = config ? MODEL_HF : MODEL_GGUF;
	f->part = calloc(1, sizeof *f->part);
	bool ok = f->part || error_set(err, ERROR_MEMORY, "no memory for a model");
	if (ok) {
		f->n_parts = 1;
		mapped_borrow(&f->part[0].map, weights, n, "weights");
		mapped_borrow(&f->config, config, n_config, "config.json");
		ok = parse_part(f, &f->part[0], err) && (f->format == MODEL_HF || model_check_split(f, err)) && build_catalog(f, err) && read_model(out, err) &&
		     open_tokenizer(out, err);
	}
	if (!ok)
		model_close(out);
	return ok;
}

static void close_part(struct model_part *p)
{
	if (p->format == MODEL_GGUF)
		gguf_free(&p->gguf);
	else
		safetensors_free(&p->st);
	mapped_close(&p->map);
}

void model_close(struct model *m)
{
	struct model_file *f = m->file;

	if (m->tokenizer)
		tokenizer_close(m->tokenizer);
	free(m->spec.layer);
	if (f) {
		for (uint32_t i = 0; i < f->n_parts; i++)
			close_part(&f->part[i]);
		mapped_close(&f->config);
		mapped_close(&f->tokenizer_json);
		mapped_close(&f->tokenizer_config);
		mapped_close(&f->generation_config);
		names_free(&f->names);
		free(f->part);
		free(f->entry);
		free(f->used);
		free(f->strings);
		free(f->model_name);
		free(f->arch_name);
		free(f->freq_factors);
		free(f->layer_is_sliding);
		free(f);
	}
	memset(m, 0, sizeof *m);
}

void model_drop_pages(const struct model *m, const struct model_tensor *t, size_t offset, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (!t->data || offset > t->bytes || bytes > t->bytes - offset)
		return;
	uintptr_t first = ((uintptr_t)t->data + offset + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)t->data + offset + bytes) & ~(page - 1);
	/* memory that was not mapped here would lose its content */
	for (uint32_t i = 0; i < m->file->n_parts; i++) {
		const struct mapped *map = &m->file->part[i].map;
		if (first < end && map->owned && first >= (uintptr_t)map->base && end <= (uintptr_t)map->base + map->size)
			madvise((void *)first, end - first, MADV_DONTNEED);
	}
}

void model_describe(const struct model *m, char *out, size_t cap)
{
	const struct model_spec *s = &m->spec;
	uint64_t bytes[DTYPE_COUNT] = { 0 };
	int most = (int)s->embed.type;

	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_layer *l = &s->layer[i];
		const struct model_tensor *const t[] = { &l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down };
		for (size_t k = 0; k < sizeof t / sizeof *t; k++)
			bytes[t[k]->type] += t[k]->bytes;
	}
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (bytes[t] > bytes[most])
			most = t;
	snprintf(out, cap, "%s %" PRIu32 " layers, hidden %" PRIu32 ", %s", s->arch_name, s->layers, s->hidden, dtype_table[most].name);
}
