/* loaders/model/model.c - opens a model: opens and parses its files, merges their tensors into one catalog, has the
 * hyperparameters read and everything bound, opens the tokenizer. Owns all of it until model_close().
 *
 * Rule: what is opened is recorded in model_file at once, so that model_close() alone undoes a failure at any step.
 */
#include "loaders/model/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/model/model_load.h"
#include "loaders/tokenizer/tokenizer.h"

enum { MAX_KEPT_OPEN = 16 }; /* a model of more files opens each when it is read, however many there are */

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
	memset(out, 0, sizeof *out);
	out->label = p->file.label;
	out->entry = i;
	out->part = f->entry[i].part;
	if (p->format == MODEL_GGUF) {
		const struct gguf_tensor *t = &p->gguf.tensor[f->entry[i].tensor];
		out->type = t->type;
		out->rank = t->n_dims;
		out->bytes = t->bytes;
		memcpy(out->dim, t->ne, sizeof out->dim);
		out->offset = t->offset;
	} else {
		const struct safetensors_tensor *t = &p->st.tensor[f->entry[i].tensor];
		out->type = t->type;
		out->rank = t->rank;
		out->bytes = t->bytes;
		for (uint32_t d = 0; d < 4; d++)
			out->dim[d] = d < t->rank && t->rank <= 4 ? t->dim[t->rank - 1 - d] : 1;
		out->offset = t->offset;
	}
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
		return error_set(err, ERROR_MEMORY, "%s: no memory to index %" PRIu64 " tensors", f->part[0].file.label,
		                 total);
	for (uint32_t i = 0; i < f->n_parts; i++)
		for (uint32_t t = 0, n = part_tensors(&f->part[i]); t < n; t++)
			f->entry[f->n_entries++] = (struct catalog_entry){ i, t };
	if (!names_build(&f->names, f, f->n_entries, model_entry_name))
		return error_set(err, ERROR_MEMORY, "%s: no memory to index %" PRIu64 " tensors", f->part[0].file.label,
		                 total);
	uint32_t twice = names_duplicate(&f->names);
	if (twice == NAMES_NONE)
		return true;
	struct name_ref n = model_entry_name(f, twice);
	return error_set(err, ERROR_FORMAT, "%s: tensor %s occurs in more than one part",
	                 f->part[f->entry[twice].part].file.label, error_quote(text, sizeof text, n.p, n.n));
}

bool model_parse_part(const struct model_file *f, struct model_part *p, struct error *err)
{
	bool header_only = f->flags & MODEL_HEADER_ONLY;

	p->format = f->format;
	if (p->format == MODEL_GGUF)
		return gguf_open(&p->gguf, &p->file, header_only, err);
	return safetensors_open(&p->st, &p->file, header_only, err);
}

static bool open_part(struct model_file *f, const char *path, struct error *err)
{
	struct model_part *p = &f->part[f->n_parts++];

	return file_open(&p->file, path, err) && model_parse_part(f, p, err);
}

static bool open_parts(struct model_file *f, struct model_paths *paths, struct error *err)
{
	const uint32_t first = paths->n_parts;
	struct model_part *all;

	if (!(f->part = calloc(first, sizeof *f->part)))
		return error_set(err, ERROR_MEMORY, "no memory for a model of %" PRIu32 " files", paths->n_parts);
	if (!open_part(f, paths->part[0], err) ||
	    (f->format == MODEL_GGUF && !model_locate_parts(paths, &f->part[0].gguf, err)))
		return false;
	if (paths->n_parts > first) {
		if (!(all = realloc(f->part, paths->n_parts * sizeof *f->part)))
			return error_set(err, ERROR_MEMORY, "no memory for a model of %" PRIu32 " files",
			                 paths->n_parts);
		f->part = all;
		f->part[0].gguf.path = f->part[0].file.label; /* which has moved */
		memset(f->part + 1, 0, (paths->n_parts - 1) * sizeof *f->part);
	}
	for (uint32_t i = 0; i < paths->n_parts; i++) {
		if (i && !open_part(f, paths->part[i], err))
			return false;
		if (paths->n_parts > MAX_KEPT_OPEN)
			file_rest(&f->part[i].file);
	}
	return true;
}

static bool open_beside(struct file *f, const char *dir, const char *name, bool required, uint64_t max,
                        struct error *err)
{
	if (!required && !model_exists(dir, name))
		return true;
	char *path = model_join(dir, name, err);
	bool ok = path && file_open(f, path, err) && file_text(f, max, err);
	free(path);
	return ok;
}

static bool open_sharded(struct model_file *f, struct model_paths *paths, struct error *err)
{
	struct file index = { 0 };
	bool ok = open_beside(&index, paths->dir, "model.safetensors.index.json", true, JSON_MAX_INDEX, err);

	ok = ok && model_read_index(paths, &index, err) && open_parts(f, paths, err) && build_catalog(f, err);
	file_close(&index);
	return ok;
}

static bool open_tokenizer_files(struct model *m, const char *dir, struct error *err)
{
	struct model_file *f = m->file;

	if (open_beside(&f->tokenizer_json, dir, "tokenizer.json", false, JSON_MAX_TOKENIZER, &m->tokenizer_error))
		open_beside(&f->tokenizer_config, dir, "tokenizer_config.json", false, JSON_MAX_TOKENIZER,
		            &m->tokenizer_error);
	return open_beside(&f->generation_config, dir, "generation_config.json", false, JSON_MAX_CONFIG, err) &&
	       open_beside(&f->pooling_config, dir, "1_Pooling/config.json", false, JSON_MAX_CONFIG, err) &&
	       model_open_modules(m, dir, err);
}

static void open_chat_files(struct model *m, const char *dir)
{
	struct model_file *f = m->file;
	struct error *err = &m->chat_template_error;

	if (f->flags & MODEL_NO_TOKENIZER &&
	    !open_beside(&f->tokenizer_config, dir, "tokenizer_config.json", false, JSON_MAX_TOKENIZER, err))
		return;
	(void)(open_beside(&f->chat_jinja, dir, "chat_template.jinja", false, MODEL_MAX_CHAT_TEMPLATE, err) &&
	       open_beside(&f->chat_json, dir, "chat_template.json", false, JSON_MAX_TOKENIZER, err) &&
	       model_open_named_templates(f, dir, err));
}

static bool open_files(struct model *m, struct model_paths *paths, struct error *err)
{
	struct model_file *f = m->file;

	f->format = paths->format;
	if (f->format == MODEL_GGUF)
		return open_parts(f, paths, err) && model_check_split(f, err) && build_catalog(f, err);
	if (!open_beside(&f->config, paths->dir, "config.json", true, JSON_MAX_CONFIG, err))
		return false;
	if (!(f->flags & MODEL_NO_TOKENIZER) && !open_tokenizer_files(m, paths->dir, err))
		return false;
	if (!(f->flags & MODEL_NO_TOKENIZER) || f->flags & MODEL_CHAT_TEMPLATES)
		open_chat_files(m, paths->dir);
	return paths->sharded ? open_sharded(f, paths, err) : open_parts(f, paths, err) && build_catalog(f, err);
}

/* Hyperparameters, ranges, tensors: the same for every source of the bytes. */
static bool read_model(struct model *m, struct error *err)
{
	struct model_file *f = m->file;
	bool gguf = f->format == MODEL_GGUF;

	for (uint32_t i = 0; i < f->n_parts; i++)
		m->file_bytes += f->part[i].file.size;
	if (!(gguf ? model_read_gguf(m, err) : model_read_config(m, err)))
		return false;
	m->spec.arch_name = f->arch_name;
	m->spec.name = f->model_name;
	return model_read_pooling(m, err) && model_read_dense(m, err) &&
	       model_bind(m, gguf ? f->part[0].file.label : f->config.label, err);
}

static bool gguf_has_tokenizer(const struct gguf *g)
{
	static const char prefix[] = "tokenizer.ggml.";
	const struct gguf_kv *model = gguf_find(g, "tokenizer.ggml.model");

	if (model && model->type == GGUF_STRING &&
	    ((model->bytes == 4 && memcmp(model->data, "none", 4) == 0) ||
	     (model->bytes == 8 && memcmp(model->data, "no_vocab", 8) == 0)))
		return false;
	for (uint64_t i = 0; i < g->n_kv; i++)
		if (g->kv[i].key.n >= sizeof prefix - 1 && memcmp(g->kv[i].key.p, prefix, sizeof prefix - 1) == 0)
			return true;
	return false;
}

static struct tokenizer_text text_of(const struct file *file)
{
	return (struct tokenizer_text){ (const char *)file->base, file->size, file->label };
}

static void make_tokenizer(struct model *m)
{
	const struct model_file *f = m->file;

	if (f->flags & MODEL_NO_TOKENIZER || m->tokenizer_error.code)
		return;
	if (f->format == MODEL_GGUF && gguf_has_tokenizer(&f->part[0].gguf))
		m->tokenizer = tokenizer_from_gguf(&f->part[0].gguf, m->spec.vocab, &m->tokenizer_error);
	else if (f->format != MODEL_GGUF && f->tokenizer_json.base)
		m->tokenizer = tokenizer_from_json(text_of(&f->tokenizer_json), text_of(&f->tokenizer_config),
		                                   m->spec.vocab, &m->tokenizer_error);
}

/* A tokenizer that does not work here leaves the model of use for token ids, so the reason is kept for the caller that
 * comes with text. Where memory or the system failed, the model has one all the same: it would be opened without, and
 * its texts would be empty. */
static bool open_tokenizer(struct model *m, struct error *err)
{
	const struct error *why[] = { &m->tokenizer_error, &m->chat_template_error };

	make_tokenizer(m);
	model_read_chat_templates(m);
	for (size_t i = 0; i < sizeof why / sizeof *why; i++)
		if (why[i]->code == ERROR_MEMORY || why[i]->code == ERROR_IO)
			return error_set(err, why[i]->code, "%s", why[i]->text);
	return !m->tokenizer || m->file->format == MODEL_GGUF || model_read_end_tokens(m, err);
}

static bool read_all(struct model *m, struct error *err)
{
	return read_model(m, err) && open_tokenizer(m, err) && model_read_sampling(m, err) &&
	       model_read_metadata(m, err);
}

bool model_begin(struct model *m, unsigned flags, struct error *err)
{
	memset(m, 0, sizeof *m);
	m->file = calloc(1, sizeof *m->file);
	if (!m->file)
		return error_set(err, ERROR_MEMORY, "no memory for a model");
	m->file->flags = flags;
	return true;
}

static void close_texts(struct model_file *f)
{
	file_close(&f->config);
	file_close(&f->tokenizer_json);
	file_close(&f->tokenizer_config);
	file_close(&f->generation_config);
	file_close(&f->pooling_config);
	file_close(&f->chat_jinja);
	file_close(&f->chat_json);
	file_close(&f->chat_named);
	free(f->chat_named_bytes);
	f->chat_named_bytes = NULL;
	file_close(&f->rope_factors);
	file_close(&f->rope_long_factors);
	file_close(&f->classifier_given);
	file_close(&f->dense_given);
}

/* The model is open: what is parsed is not needed again, and a header was all there was to read. */
static void let_go(struct model_file *f)
{
	if (!(f->flags & MODEL_KEEP_SOURCES))
		close_texts(f);
	for (uint32_t i = 0; f->flags & MODEL_HEADER_ONLY && i < f->n_parts; i++)
		file_rest(&f->part[i].file);
}

bool model_finish(struct model *m, struct error *err) { return build_catalog(m->file, err) && read_all(m, err); }

static bool open_path(struct model *out, const char *path, unsigned flags, struct error *err)
{
	struct model_paths paths;
	bool ok = model_begin(out, flags, err) && model_locate(&paths, path, err);

	if (ok) {
		ok = open_files(out, &paths, err);
		model_paths_free(&paths);
	}
	return ok;
}

bool model_open_files(struct model *out, const char *path, struct error *err)
{
	const bool ok = open_path(out, path, MODEL_NO_TOKENIZER, err);

	if (!ok)
		model_close(out);
	return ok;
}

bool model_open(struct model *out, const char *path, unsigned flags, struct error *err)
{
	const bool ok = open_path(out, path, flags, err) && read_all(out, err);

	if (ok)
		let_go(out->file);
	else
		model_close(out);
	return ok;
}

bool model_open_memory(struct model *out, const void *weights, uint64_t n, const void *config, uint64_t n_config,
                       unsigned flags, struct error *err)
{
	if (!model_begin(out, flags, err))
		return false;
	struct model_file *f = out->file;
	f->format = config ? MODEL_HF : MODEL_GGUF;
	f->part = calloc(1, sizeof *f->part);
	bool ok = f->part || error_set(err, ERROR_MEMORY, "no memory for a model");
	if (ok) {
		f->n_parts = 1;
		file_memory(&f->part[0].file, weights, n, "weights");
		file_memory(&f->config, config, n_config, "config.json");
		ok = model_parse_part(f, &f->part[0], err) && (f->format == MODEL_HF || model_check_split(f, err)) &&
		     model_finish(out, err);
	}
	if (ok)
		let_go(out->file);
	else
		model_close(out);
	return ok;
}

static void close_part(struct model_part *p)
{
	if (p->format == MODEL_GGUF)
		gguf_free(&p->gguf);
	else
		safetensors_free(&p->st);
	file_close(&p->file);
}

void model_close(struct model *m)
{
	struct model_file *f = m->file;

	if (m->tokenizer)
		tokenizer_close(m->tokenizer);
	model_free_chat_templates(m);
	model_free_metadata(m);
	model_free_sampling(m);
	free(m->spec.layer);
	if (f) {
		for (uint32_t i = 0; i < f->n_parts; i++)
			close_part(&f->part[i]);
		close_texts(f);
		names_free(&f->names);
		free(f->part);
		free(f->entry);
		free(f->used);
		free(f->strings);
		free(f->model_name);
		free(f->arch_name);
		float *const numbers[] = { f->freq_factors, f->long_factors, f->classifier, f->xielu, f->taps_times };
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			free(numbers[i]);
		free(f->dense);
		void *const lists[] = { f->layer_is_sliding, f->locations,    f->extents,     f->layer_rotation,
			                f->layer_mixer,      f->layer_routes, f->layer_sizes, f->layer_heads };
		for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
			free(lists[i]);
		model_free_quants(f);
		free(f);
	}
	memset(m, 0, sizeof *m);
}

bool model_read_found(const struct model_file *f, const struct found_tensor *t, size_t n, void *out, struct error *err)
{
	return file_read(&f->part[t->part].file, t->offset, n, out, err);
}

bool model_same_found(const struct model_file *f, const struct found_tensor *a, const struct found_tensor *b,
                      bool *same, struct error *err)
{
	uint8_t x[1 << 15], y[sizeof x];

	*same = a->bytes == b->bytes;
	for (uint64_t at = 0; *same && at < a->bytes; at += sizeof x) {
		size_t n = a->bytes - at < sizeof x ? (size_t)(a->bytes - at) : sizeof x;
		if (!file_read(&f->part[a->part].file, a->offset + at, n, x, err) ||
		    !file_read(&f->part[b->part].file, b->offset + at, n, y, err))
			return false;
		*same = memcmp(x, y, n) == 0;
	}
	return true;
}

/* Expert by expert. */
static bool read_experts(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes,
                         uint8_t *out, struct error *err)
{
	uint64_t each = t->rows * t->row_bytes;

	while (bytes) {
		uint64_t e = offset / each, at = offset % each;
		size_t n = bytes < each - at ? bytes : (size_t)(each - at);
		if (t->quants) {
			if (!model_read_affine(m, t, &t->quants[e], at, n, out, err))
				return false;
			offset += n;
			out += n;
			bytes -= n;
			continue;
		}
		uint32_t part = t->location ? t->location[e].part : t->part;
		uint64_t from = t->location ? t->location[e].offset : t->offset + e * t->expert_stride;
		if (!file_read(&m->file->part[part].file, from + at, n, out, err))
			return false;
		offset += n;
		out += n;
		bytes -= n;
	}
	return true;
}

bool model_read(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes, void *out,
                struct error *err)
{
	const struct file *f = &m->file->part[t->part].file;

	assert(offset <= t->bytes && bytes <= t->bytes - offset);
	if (m->file->flags & MODEL_HEADER_ONLY)
		return error_set(err, ERROR_ARGUMENT, "%s: tensor %s cannot be read, only the header was opened",
		                 f->label, t->name);
	return t->own_file_rows && (t->experts || t->own_apart) ? model_read_columns(m, t, offset, bytes, out, err)
	       : t->experts                                     ? read_experts(m, t, offset, bytes, out, err)
	       : t->extent                                      ? model_read_extents(m, t, offset, bytes, out, err)
	       : t->quants ? model_read_affine(m, t, t->quants, offset, bytes, out, err)
	                   : file_read(f, t->offset + offset, bytes, out, err);
}

bool model_read_done(const struct model *m, struct error *err)
{
	bool ok = true;

	for (uint32_t i = 0; i < m->file->n_parts; i++) {
		ok = ok && file_same(&m->file->part[i].file, err);
		file_rest(&m->file->part[i].file);
	}
	return ok;
}

void model_describe(const struct model *m, char *out, size_t cap)
{
	const struct model_spec *s = &m->spec;
	uint64_t bytes[DTYPE_COUNT] = { 0 };
	int max = (int)s->embed.type;

	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_layer *l = &s->layer[i];
		for (int k = 0; k < MATRIX_SLOTS; k++)
			bytes[l->matrix[k].type] += l->matrix[k].bytes;
	}
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (bytes[t] > bytes[max])
			max = t;
	snprintf(out, cap, "%s %" PRIu32 " layers, hidden %" PRIu32 ", %s", s->arch_name, s->layers, s->hidden,
	         dtype_table[max].name);
}
