/* loaders/model/model_chat.c - the chat templates that a model's files hold.
 *
 * Owns: where they are looked for, and their copies. GGUF files have them as tokenizer.chat_template and
 * tokenizer.chat_template.NAME; directories as chat_template.jinja, else in tokenizer_config.json, else in
 * chat_template.json, as a text or as a list of names and texts; further ones as additional_chat_templates/NAME.jinja.
 * What is no such thing leaves the model as it is, and the reason is kept.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/model/model_load.h"

enum { MAX_TEMPLATES = 64, MAX_NAME = 64 };

static bool add(struct model *m, const char *name, size_t n_name, const char *text, size_t n, struct error *err)
{
	struct model_chat_template *all, *t;
	char *copy;

	if (m->n_chat_templates == MAX_TEMPLATES || n_name > MAX_NAME || n > MODEL_MAX_CHAT_TEMPLATE)
		return error_set(err, ERROR_FORMAT,
		                 "%s: a chat template has %zu bytes and a name of %zu, expected at most %d and %d, and "
		                 "at most %d of them",
		                 m->file->chat_label, n, n_name, MODEL_MAX_CHAT_TEMPLATE, MAX_NAME, MAX_TEMPLATES);
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

static bool from_json(struct model *m, const struct file *json, struct error *err)
{
	/* most of the time tokenizer_config.json is read for the tokenizer alone */
	if (!json->base || !memmem(json->base, json->size, "\"chat_template\"", 15))
		return true;
	m->file->chat_label = json->label;
	json_t *root = json_read(json->base, json->size, JSON_MAX_TOKENIZER, json->label, err);
	bool ok = root && from_value(m, json_object_get(root, "chat_template"), err);
	json_decref(root);
	return ok;
}

/* Names and texts alternately, a 0 behind each: what gather() makes of the files, and packed models hold. */
static bool from_named(struct model *m, const struct file *named, struct error *err)
{
	m->file->chat_label = named->label;
	if (!named->base)
		return true;
	for (const char *p = (const char *)named->base, *end = p + named->size; p < end;) {
		const char *text = memchr(p, 0, (size_t)(end - p));
		const char *last = text ? memchr(text + 1, 0, (size_t)(end - text - 1)) : NULL;
		if (!last)
			return error_set(err, ERROR_FORMAT, "%s: ends inside a chat template", named->label);
		if (!add(m, p, (size_t)(text - p), text + 1, (size_t)(last - text - 1), err))
			return false;
		p = last + 1;
	}
	return true;
}

static bool from_directory(struct model *m, struct error *err)
{
	struct model_file *f = m->file;

	f->chat_label = f->chat_jinja.label;
	if (f->chat_jinja.base && !add(m, "default", 7, (const char *)f->chat_jinja.base, f->chat_jinja.size, err))
		return false;
	for (int i = 0; i < 2 && !m->n_chat_templates; i++)
		if (!from_json(m, i ? &f->chat_json : &f->tokenizer_config, err))
			return false;
	return from_named(m, &f->chat_named, err);
}

/* ---- files in a directory of their own */

static const char folder[] = "additional_chat_templates/", ending[] = ".jinja";

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names of the files there, in order, whatever the file system's is; *n may be 0. */
static bool list(const char *dir, char *name[MAX_TEMPLATES], size_t *n, struct error *err)
{
	char label[200];
	DIR *d = opendir(dir);
	bool ok = true;

	*n = 0;
	if (!d && (errno == ENOENT || errno == ENOTDIR))
		return true;
	file_label(label, dir);
	if (!d)
		return error_set(err, ERROR_IO, "%s: the directory cannot be read: %s", label, strerror(errno));
	for (struct dirent *e = readdir(d); ok && e; e = readdir(d)) {
		size_t length = strlen(e->d_name);
		if (length < sizeof ending || strcmp(e->d_name + length - (sizeof ending - 1), ending) != 0)
			continue;
		if (*n == MAX_TEMPLATES)
			ok = error_set(err, ERROR_FORMAT, "%s: holds more than %d chat templates", label,
			               MAX_TEMPLATES);
		else if (!(name[(*n)++] = strdup(e->d_name)))
			ok = error_set(err, ERROR_MEMORY, "%s: no memory for the names of its files", label);
	}
	closedir(d);
	if (ok)
		qsort(name, *n, sizeof *name, by_bytes);
	return ok;
}

/* Puts the file's name, without its ending, and its text behind the *n bytes at *all. */
static bool gather(char **all, size_t *n, const char *dir, const char *name, struct error *err)
{
	const size_t length = strlen(name) - (sizeof ending - 1);
	char *path = model_join(dir, name, err), *more;
	struct file f = { 0 };
	bool ok = path && file_open(&f, path, err) && file_text(&f, MODEL_MAX_CHAT_TEMPLATE, err);

	if (ok && memchr(f.base, 0, f.size))
		ok = error_set(err, ERROR_FORMAT, "%s: holds a byte 0, expected a text", f.label);
	if (ok && !(more = realloc(*all, *n + length + f.size + 2)))
		ok = error_set(err, ERROR_MEMORY, "%s: no memory for a chat template", f.label);
	if (ok) {
		*all = more;
		memcpy(more + *n, name, length);
		more[*n + length] = 0;
		memcpy(more + *n + length + 1, f.base, f.size);
		more[*n + length + 1 + f.size] = 0;
		*n += length + f.size + 2;
	}
	file_close(&f);
	free(path);
	return ok;
}

bool model_open_named_templates(struct model_file *f, const char *dir, struct error *err)
{
	char *path = model_join(dir, folder, err), *name[MAX_TEMPLATES], *all = NULL;
	size_t n = 0, bytes = 0;
	bool ok = path && list(path, name, &n, err);

	for (size_t i = 0; i < n; i++) {
		ok = ok && gather(&all, &bytes, path, name[i], err);
		free(name[i]);
	}
	if (ok && bytes) {
		file_memory(&f->chat_named, all, bytes, path);
		f->chat_named_bytes = all;
	} else {
		free(all);
	}
	free(path);
	return ok;
}

/* ---- what is found */

void model_read_chat_templates(struct model *m)
{
	struct model_file *f = m->file;

	if ((f->flags & (MODEL_NO_TOKENIZER | MODEL_CHAT_TEMPLATES)) == MODEL_NO_TOKENIZER ||
	    m->chat_template_error.code)
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

bool model_refuse_chat_template(const struct model *m, const char *name, struct error *err)
{
	char names[200] = "none", quoted[80], one[40];
	size_t at = 0;

	for (uint32_t i = 0; i < m->n_chat_templates && at < sizeof names; i++) {
		const char *its = m->chat_template[i].name;
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
		                       error_quote(one, sizeof one, its, strlen(its)));
	}
	return error_set(err, ERROR_ARGUMENT, "the model's files have no chat template named \"%s\"; they have: %s",
	                 error_quote(quoted, sizeof quoted, name, strlen(name)), names);
}

void model_free_chat_templates(struct model *m)
{
	for (uint32_t i = 0; i < m->n_chat_templates; i++)
		free((void *)(uintptr_t)m->chat_template[i].name);
	free(m->chat_template);
}
