/* loaders/model_chat.c - the chat templates that a model's files hold.
 *
 * Owns: where they are looked for, and their copies. GGUF files have them as tokenizer.chat_template and
 * tokenizer.chat_template.NAME; directories as chat_template.jinja, and else in tokenizer_config.json, as a text or as
 * a list of names and texts. What is no such thing leaves the model as it is, and the reason is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/json_read.h"
#include "loaders/model_load.h"

enum { MOST_TEMPLATES = 64, MOST_NAME = 64 };

static bool add(struct model *m, const char *name, size_t n_name, const char *text, size_t n, struct error *err)
{
	struct model_chat_template *all, *t;
	char *copy;

	if (m->n_chat_templates == MOST_TEMPLATES || n_name > MOST_NAME || n > MODEL_MAX_CHAT_TEMPLATE)
		return error_set(err, ERROR_FORMAT,
		                 "%s: a chat template has %zu bytes and a name of %zu, expected at most %d and %d, and "
		                 "at most %d of them",
		                 m->file->chat_label, n, n_name, MODEL_MAX_CHAT_TEMPLATE, MOST_NAME, MOST_TEMPLATES);
	all = realloc(m->chat_template, (m->n_chat_templates + 1) * sizeof *all);
	copy = malloc(n_name + n + 2);
	if (all)
		m->chat_template = all;
	if (!all || !copy) {
		free(copy);
		return error_set(err, ERROR_MEMORY, "%s: no memory for a chat template", m->file->chat_label);
	}
	t = &all[m->n_chat_templates++];
	*t = (struct model_chat_template){ copy, copy + n_name + 1, n };
	memcpy(copy, name, n_name);
	copy[n_name] = 0;
	memcpy(copy + n_name + 1, text, n);
	copy[n_name + 1 + n] = 0;
	return true;
}

static bool from_gguf(struct model *m, const struct gguf *g, struct error *err)
{
	static const char key[] = "tokenizer.chat_template";
	const size_t n = sizeof key - 1;
	char quoted[80];

	m->file->chat_label = g->path;
	for (uint64_t i = 0; i < g->n_kv; i++) {
		const struct gguf_kv *kv = &g->kv[i];
		bool named = kv->key.n > n + 1 && kv->key.p[n] == '.';
		if (kv->key.n < n || memcmp(kv->key.p, key, n) != 0 || (kv->key.n != n && !named))
			continue;
		if (kv->type != GGUF_STRING)
			return error_set(err, ERROR_FORMAT, "%s: %s is no string", g->path,
			                 error_quote(quoted, sizeof quoted, kv->key.p, kv->key.n));
		if (!add(m, named ? kv->key.p + n + 1 : "default", named ? kv->key.n - n - 1 : 7,
		         (const char *)kv->data, kv->bytes, err))
			return false;
	}
	return true;
}

static bool refuse(const struct model *m, const json_t *found, struct error *err)
{
	return error_set(err, ERROR_FORMAT,
	                 "%s: chat_template is %s, expected a string or a list of objects with name and template",
	                 m->file->chat_label, json_kind(found));
}

static bool from_value(struct model *m, const json_t *value, struct error *err)
{
	const json_t *one;
	size_t i;

	if (!value || json_is_null(value))
		return true;
	if (json_is_text(value))
		return add(m, "default", 7, json_string_value(value), json_string_length(value), err);
	if (!json_is_array(value))
		return refuse(m, value, err);
	json_array_foreach(value, i, one)
	{
		const json_t *name = json_object_get(one, "name"), *text = json_object_get(one, "template");
		if (!json_is_text(name) || !json_is_text(text))
			return refuse(m, json_is_text(name) ? text : one, err);
		if (!add(m, json_string_value(name), json_string_length(name), json_string_value(text),
		         json_string_length(text), err))
			return false;
	}
	return true;
}

static bool from_directory(struct model *m, struct error *err)
{
	struct model_file *f = m->file;
	const struct file *config = &f->tokenizer_config;

	if (f->chat_jinja.base) {
		f->chat_label = f->chat_jinja.label;
		return add(m, "default", 7, (const char *)f->chat_jinja.base, f->chat_jinja.size, err);
	}
	/* most of the time this file is read for the tokenizer alone */
	if (!config->base || !memmem(config->base, config->size, "\"chat_template\"", 15))
		return true;
	f->chat_label = config->label;
	json_t *root = json_read(config->base, config->size, JSON_MAX_TOKENIZER, config->label, err);
	bool ok = root && from_value(m, json_object_get(root, "chat_template"), err);
	json_decref(root);
	return ok;
}

void model_read_chat_templates(struct model *m)
{
	struct model_file *f = m->file;

	if (f->flags & MODEL_NO_TOKENIZER || m->chat_template_error.code)
		return;
	if (f->format == MODEL_GGUF)
		from_gguf(m, &f->part[0].gguf, &m->chat_template_error);
	else
		from_directory(m, &m->chat_template_error);
}

const struct model_chat_template *model_find_chat_template(const struct model *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_chat_templates; i++)
		if (strcmp(m->chat_template[i].name, name ? name : "default") == 0)
			return &m->chat_template[i];
	return NULL;
}

void model_free_chat_templates(struct model *m)
{
	for (uint32_t i = 0; i < m->n_chat_templates; i++)
		free((void *)(uintptr_t)m->chat_template[i].name);
	free(m->chat_template);
}
