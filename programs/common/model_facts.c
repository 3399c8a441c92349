#include "programs/common/model_facts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/model/model_load.h"

/* cols: of a row, where the type's rows begin with a number for all of it. */
static void add_tensor(struct model_facts *f, enum dtype type, uint64_t bytes, uint64_t cols)
{
	const struct dtype_facts *facts = &dtype_table[type];
	uint64_t n =
		facts->row && cols ? bytes / dtype_row_bytes(type, cols) * cols : bytes / facts->bytes * facts->block;

	f->tensors++;
	f->parameters += n;
	f->type[type].tensors++;
	f->type[type].parameters += n;
	f->type[type].bytes += bytes;
}

static void take_text(char *out, size_t cap, const char *p, uint64_t n)
{
	size_t m = n < cap ? (size_t)n : cap - 1;

	memcpy(out, p, m);
	out[m] = 0;
}

/* ---- GGUF */

static void take_string(const struct gguf *g, const char *key, char *out, size_t cap)
{
	struct error ignored = { 0 };
	struct gguf_str s;
	bool found;

	if (gguf_string(g, key, &s, &found, &ignored) && found)
		take_text(out, cap, s.p, s.n);
}

static uint64_t take_number(const struct gguf *g, const char *architecture, const char *key)
{
	struct error ignored = { 0 };
	uint64_t n = 0;
	char name[160];
	bool found;

	snprintf(name, sizeof name, "%s.%s", architecture, key);
	return gguf_u64(g, name, &n, &found, &ignored) && found ? n : 0;
}

static void see_gguf(struct model_facts *f, const struct gguf *g, bool first)
{
	for (uint64_t i = 0; i < g->n_tensors; i++)
		add_tensor(f, g->tensor[i].type, g->tensor[i].bytes, g->tensor[i].ne[0]);
	if (!first)
		return;
	f->version = g->version;
	take_string(g, "general.architecture", f->architecture, sizeof f->architecture);
	take_string(g, "general.name", f->name, sizeof f->name);
	f->layers = take_number(g, f->architecture, "block_count");
	f->context = take_number(g, f->architecture, "context_length");
}

/* paths: of the first part, which leads to the others; else NULL. */
static bool read_gguf(struct model_facts *f, struct file *file, struct model_paths *paths, struct error *err)
{
	struct gguf g;

	if (!gguf_open(&g, file, true, err))
		return false;
	see_gguf(f, &g, paths != NULL);
	bool ok = !paths || model_locate_parts(paths, &g, err);
	gguf_free(&g);
	return ok;
}

/* ---- safetensors */

static bool read_safetensors(struct model_facts *f, struct file *file, struct error *err)
{
	struct safetensors st;

	if (!safetensors_open(&st, file, true, err))
		return false;
	for (uint32_t i = 0; i < st.n_tensors; i++)
		add_tensor(f, st.tensor[i].type, st.tensor[i].bytes, 0);
	safetensors_free(&st);
	return true;
}

/* A text beside the weights. NULL: err. */
static json_t *read_beside(const char *dir, const char *name, uint64_t max, struct error *err)
{
	struct file file = { 0 };
	char *path = model_join(dir, name, err);
	json_t *root = NULL;

	if (path && file_open(&file, path, err) && file_text(&file, max, err))
		root = json_read(file.base, file.size, max, file.label, err);
	file_close(&file);
	free(path);
	return root;
}

static uint64_t number_of(const json_t *object, const char *field)
{
	json_int_t n = json_integer_value(json_object_get(object, field));

	return n > 0 ? (uint64_t)n : 0;
}

static bool read_config(struct model_facts *f, const char *dir, struct error *err)
{
	json_t *root = read_beside(dir, "config.json", JSON_MAX_CONFIG, err);
	const json_t *text = json_object_get(root, "text_config");
	const char *kind = json_string_value(json_object_get(root, "model_type"));

	if (!root)
		return false;
	take_text(f->architecture, sizeof f->architecture, kind ? kind : "", kind ? strlen(kind) : 0);
	f->layers = number_of(json_is_object(text) ? text : root, "num_hidden_layers");
	f->context = number_of(json_is_object(text) ? text : root, "max_position_embeddings");
	json_decref(root);
	return true;
}

static bool find_shards(struct model_paths *paths, struct error *err)
{
	struct file index = { 0 };
	char *path = model_join(paths->dir, "model.safetensors.index.json", err);
	bool ok = path && file_open(&index, path, err) && file_text(&index, JSON_MAX_INDEX, err) &&
	          model_read_index(paths, &index, err);

	file_close(&index);
	free(path);
	return ok;
}

/* ---- both */

static bool read_part(struct model_facts *f, struct model_paths *paths, uint32_t i, struct error *err)
{
	struct file file = { 0 };

	if (!file_open(&file, paths->part[i], err))
		return false;
	f->files++;
	f->file_bytes += file.size;
	bool ok = paths->format == MODEL_GGUF ? read_gguf(f, &file, i ? NULL : paths, err)
	                                      : read_safetensors(f, &file, err);
	file_close(&file);
	return ok;
}

bool model_facts_read(struct model_facts *f, const char *path, struct error *err)
{
	struct model_paths paths;

	memset(f, 0, sizeof *f);
	if (!model_locate(&paths, path, err))
		return false;
	f->format = paths.format == MODEL_GGUF ? "GGUF" : "safetensors";
	bool ok = paths.format == MODEL_GGUF ||
	          ((!paths.sharded || find_shards(&paths, err)) && read_config(f, paths.dir, err));
	for (uint32_t i = 0; ok && i < paths.n_parts; i++)
		ok = read_part(f, &paths, i, err);
	model_paths_free(&paths);
	return ok;
}

static void add_used(struct model_facts *f, const struct model_tensor *t)
{
	if (t->bytes)
		add_tensor(f, t->type, t->bytes, t->cols);
}

void model_facts_of(struct model_facts *f, const struct model *m, const char *format)
{
	const struct model_spec *s = &m->spec;

	*f = (struct model_facts){ .format = format,
		                   .files = 1,
		                   .file_bytes = m->file_bytes,
		                   .layers = s->layers,
		                   .context = s->context_train };
	take_text(f->architecture, sizeof f->architecture, s->arch_name, strlen(s->arch_name));
	take_text(f->name, sizeof f->name, s->name ? s->name : "", s->name ? strlen(s->name) : 0);
	add_used(f, &s->embed);
	add_used(f, &s->final_norm);
	add_used(f, &s->final_norm_bias);
	add_used(f, &s->pos_embed);
	add_used(f, &s->type_embed);
	add_used(f, &s->embed_norm);
	add_used(f, &s->embed_norm_bias);
	add_used(f, &s->score_bias);
	add_used(f, &s->input_embed);
	add_used(f, &s->input_proj);
	add_used(f, &s->input_norm);
	if (!s->tied)
		add_used(f, &s->lm_head);
	for (uint32_t i = 0; i < s->layers; i++) {
		for (int k = 0; k < MATRIX_SLOTS; k++)
			add_used(f, &s->layer[i].matrix[k]);
		for (int k = 0; k < VECTOR_SLOTS; k++)
			add_used(f, &s->layer[i].vector[k]);
	}
}

enum dtype model_facts_main_type(const struct model_facts *f)
{
	int max = DTYPE_COUNT;

	for (int t = 0; t < DTYPE_COUNT; t++)
		if (f->type[t].bytes && (max == DTYPE_COUNT || f->type[t].bytes > f->type[max].bytes))
			max = t;
	return (enum dtype)max;
}
