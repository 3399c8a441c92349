/* server/ollama/ollama_facts.c - what the files of a model say, for ollama's clients. */

#include "server/ollama/ollama_facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "answers/think.h"
#include "chat/chat.h"
#include "loaders/files/gguf.h"
#include "base/json_write.h"
#include "loaders/model/model_load.h"
#include "runtime/model/model.h"

/* ---- facts */

/* ollama's is a hash of what a model is made of; this one is of where it lies, how large it is and when it was written.
 */
static void make_digest(char out[65], const struct served *m, const struct stat *st)
{
	char facts[400];
	const int n =
		snprintf(facts, sizeof facts, "%s %s %lld %lld %lld %ld", m->name, m->file, (long long)st->st_size,
	                 (long long)st->st_mtim.tv_sec, (long long)st->st_mtim.tv_nsec, m->made ? m->created : 0);

	for (unsigned part = 0; part < 4; part++) {
		uint64_t hash = UINT64_C(0xcbf29ce484222325) + part;
		for (int i = 0; i < n && (size_t)i < sizeof facts - 1; i++)
			hash = (hash ^ (unsigned char)facts[i]) * UINT64_C(0x100000001b3);
		hash ^= hash >> 29;
		snprintf(out + 16 * part, 17, "%016llx", (unsigned long long)(hash * UINT64_C(0x9e3779b97f4a7c15)));
	}
}

void ollama_facts_read(struct ollama_facts *f, const struct served *m, const jit_model *loaded)
{
	struct stat st = { 0 };

	*f = (struct ollama_facts){ .file = NULL };
	if (stat(m->path, &st) == 0)
		f->bytes = (uint64_t)st.st_size;
	if (m->made)
		ollama_time(f->modified, m->created, 0);
	else
		ollama_time(f->modified, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	make_digest(f->digest, m, &st);
	if (loaded) {
		f->file = &loaded->file;
		f->on_card = !loaded->device->facts.host_runs && !loaded->device->facts.interprets;
	} else if (model_open(&f->own, m->path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER | MODEL_CHAT_TEMPLATES,
	                      &f->why)) {
		f->file = &f->own;
	}
	if (f->file)
		f->bytes = f->file->file_bytes;
}

void ollama_facts_free(struct ollama_facts *f)
{
	if (f->file == &f->own)
		model_close(&f->own);
}

/* ---- details */

static void count(const struct model_tensor *t, uint64_t *parameters, uint64_t bytes[DTYPE_COUNT])
{
	const uint64_t n = t->bytes / dtype_table[t->type].bytes * dtype_table[t->type].block;

	*parameters += n;
	bytes[t->type] += t->bytes;
}

/* Of all tensors: their numbers, and the type that most bytes are of. */
static uint64_t parameters_of(const struct model *file, enum dtype *main_type)
{
	const struct model_spec *s = &file->spec;
	uint64_t n = 0, bytes[DTYPE_COUNT] = { 0 };

	count(&s->embed, &n, bytes);
	count(&s->final_norm, &n, bytes);
	count(&s->input_embed, &n, bytes);
	count(&s->input_proj, &n, bytes);
	count(&s->input_norm, &n, bytes);
	if (!s->tied)
		count(&s->lm_head, &n, bytes);
	for (uint32_t i = 0; i < s->layers; i++) {
		for (int k = 0; k < MATRIX_SLOTS; k++)
			count(&s->layer[i].matrix[k], &n, bytes);
		for (int k = 0; k < VECTOR_SLOTS; k++)
			count(&s->layer[i].vector[k], &n, bytes);
	}
	*main_type = (enum dtype)0;
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (bytes[t] > bytes[*main_type])
			*main_type = (enum dtype)t;
	return n;
}

static void print_size(char out[32], uint64_t n)
{
	const double x = (double)n;

	if (n >= 1000000000)
		snprintf(out, 32, n % 1000000000 ? "%.1fB" : "%.0fB", x / 1e9);
	else if (n >= 1000000)
		snprintf(out, 32, n % 1000000 ? "%.2fM" : "%.0fM", x / 1e6);
	else if (n >= 1000)
		snprintf(out, 32, "%.0fK", x / 1e3);
	else
		snprintf(out, 32, "%llu", (unsigned long long)n);
}

static const struct model_metadata *metadata_of(const struct model *file, const char *key)
{
	for (size_t i = 0; i < file->n_metadata; i++)
		if (strcmp(file->metadata[i].key, key) == 0)
			return &file->metadata[i];
	return NULL;
}

/* The mixture of types as general.file_type of a GGUF file names it, else the type of most weights. */
static void print_types(char out[32], const struct model *file, enum dtype main_type)
{
	static const char *const mixtures[] = {
#define MIXTURE(name, number, ...) [number] = #name,
#define NAMED(name, number) [number] = #name,
#include "base/mixtures.def"
#undef NAMED
#undef MIXTURE
	};
	const struct model_metadata *type = metadata_of(file, "general.file_type");
	const char *name = dtype_table[main_type].name;

	if (type && type->kind == METADATA_INTEGER && type->integer >= 0 &&
	    (size_t)type->integer < sizeof mixtures / sizeof *mixtures && mixtures[type->integer])
		name = mixtures[type->integer];
	snprintf(out, 32, "%s", name);
	for (char *c = out; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

static bool is_gguf(const struct model *file) { return metadata_of(file, "general.architecture") != NULL; }

json_t *ollama_details(const struct ollama_facts *f)
{
	json_t *o = json_object(), *families = json_array();
	const char *family = f->file ? f->file->spec.arch_name : "";
	char size[32] = "", types[32] = "";
	enum dtype main_type;

	if (f->file) {
		print_size(size, parameters_of(f->file, &main_type));
		print_types(types, f->file, main_type);
		json_add(families, json_text(family, strlen(family)));
	}
	json_put(o, "parent_model", json_string(""));
	json_put(o, "format", json_string(!f->file ? "" : is_gguf(f->file) ? "gguf" : "safetensors"));
	json_put(o, "family", json_text(family, strlen(family)));
	json_put(o, "families", families);
	json_put(o, "parameter_size", json_string(size));
	json_put(o, "quantization_level", json_string(types));
	return o;
}

/* ---- model_info */

static json_t *value_of(const struct model_metadata *v)
{
	switch (v->kind) {
	case METADATA_STRING: return json_text(v->text, v->n);
	case METADATA_INTEGER: return json_integer(v->integer);
	case METADATA_REAL: return json_number(v->real);
	case METADATA_BOOL: return json_boolean(v->integer);
	default: return json_null();
	}
}

static void put_missing(json_t *o, const char *arch, const char *key, uint64_t value)
{
	char name[200];

	snprintf(name, sizeof name, "%.120s.%s", arch, key);
	if (value && !json_object_get(o, name))
		json_put(o, name, json_integer((json_int_t)value));
}

static json_t *item_of(const struct gguf_kv *kv, uint64_t i)
{
	if (kv->item == GGUF_BOOL)
		return json_boolean(kv->data[i] != 0);
	if (kv->item == GGUF_F32 || kv->item == GGUF_F64)
		return json_number(gguf_item_float(kv, i));
	return json_integer((json_int_t)gguf_item_int(kv, i));
}

static json_t *array_of(const struct gguf *g, const struct gguf_kv *kv)
{
	json_t *list = json_array();
	struct gguf_str *texts = NULL;
	struct error ignored = { 0 };
	uint64_t n = 0;
	bool found = false;
	char key[200];

	if (kv->item == GGUF_STRING) {
		snprintf(key, sizeof key, "%.*s", (int)(kv->key.n < 199 ? kv->key.n : 199), kv->key.p);
		if (gguf_strings(g, key, &texts, &n, &found, &ignored) && found)
			for (uint64_t i = 0; i < n; i++)
				json_add(list, json_text(texts[i].p, texts[i].n));
		free(texts);
		return list;
	}
	for (uint64_t i = 0; kv->item != GGUF_ARRAY && i < kv->count; i++)
		json_add(list, item_of(kv, i));
	return list;
}

/* The arrays of a GGUF file, which are kept nowhere. */
static void put_arrays(json_t *o, const struct served *m)
{
	struct error ignored = { 0 };
	struct file file = { 0 };
	struct gguf g;
	char key[200];

	if (!file_open(&file, m->path, &ignored))
		return;
	if (gguf_open(&g, &file, true, &ignored)) {
		for (uint64_t i = 0; i < g.n_kv; i++) {
			snprintf(key, sizeof key, "%.*s", (int)(g.kv[i].key.n < 199 ? g.kv[i].key.n : 199),
			         g.kv[i].key.p);
			if (g.kv[i].type == GGUF_ARRAY && json_object_get(o, key))
				json_put(o, key, array_of(&g, &g.kv[i]));
		}
		gguf_free(&g);
	}
	file_close(&file);
}

/* Every key of the files, arrays as null unless they are wanted, and those that clients look for. */
json_t *ollama_info(const struct ollama_facts *f, const struct served *m, bool verbose)
{
	const struct model_spec *s = &f->file->spec;
	json_t *o = json_object();
	const char *arch = s->arch_name;
	enum dtype main_type;
	const uint64_t parameters = parameters_of(f->file, &main_type);

	for (size_t i = 0; i < f->file->n_metadata; i++) {
		const struct model_metadata *v = &f->file->metadata[i];
		if (strcmp(v->key, "tokenizer.chat_template") != 0)
			json_put(o, v->key, value_of(v));
	}
	json_put(o, "general.architecture", json_text(arch, strlen(arch)));
	if (!json_object_get(o, "general.parameter_count"))
		json_put(o, "general.parameter_count", json_integer((json_int_t)parameters));
	put_missing(o, arch, "context_length", s->context_train);
	put_missing(o, arch, "embedding_length", s->hidden);
	put_missing(o, arch, "block_count", s->layers);
	put_missing(o, arch, "feed_forward_length", s->ffn);
	put_missing(o, arch, "attention.head_count", s->heads);
	put_missing(o, arch, "attention.head_count_kv", s->kv_heads);
	put_missing(o, arch, "vocab_size", s->vocab);
	if (verbose)
		put_arrays(o, m);
	return o;
}

/* ---- its template */

const char *ollama_template(const struct ollama_facts *f, const struct served *m)
{
	const struct model_chat_template *t = model_find_chat_template(f->file, NULL);

	return m->template_text ? m->template_text : t ? t->text : "";
}

bool ollama_has_gaps(const struct ollama_facts *f)
{
	static const char *const keys[] = { "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
		                            "tokenizer.ggml.fim_mid_token_id" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!metadata_of(f->file, keys[i]))
			return false;
	return true;
}

/* All false: it is none in Go's language, or cannot be read. */
static struct chat_facts facts_of(const char *text)
{
	struct error ignored = { 0 };
	struct chat_facts f = { .go = false };
	struct chat_template *t = chat_template_is_go(text, strlen(text))
	                                  ? chat_template_parse(text, strlen(text), "the chat template", &ignored)
	                                  : NULL;

	if (t)
		f = chat_template_facts(t);
	chat_template_free(t);
	return f;
}

bool ollama_thinks_by_itself(const char *template_text) { return facts_of(template_text).thinks; }

bool ollama_knows_tools(const char *template_text)
{
	const struct chat_facts f = facts_of(template_text);

	return f.go ? f.tools : strstr(template_text, "tools") != NULL;
}

bool ollama_knows_gaps(const char *template_text) { return facts_of(template_text).suffix; }

bool ollama_can_think(const char *template_text)
{
	const struct chat_facts f = facts_of(template_text);

	static const char *const words[] = { "enable_thinking", "reasoning_effort", "reasoning_content", "thinking" };

	if (f.go)
		return f.think || f.thinks;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(template_text, words[i]))
			return true;
	for (size_t i = 0; i < THINK_MARKS; i++)
		if (strstr(template_text, think_mark(i)))
			return true;
	return false;
}
