#include "programs/common/preset.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/sampling_fields.h"
#include "loaders/files/file.h"
#include "base/json_read.h"
#include "programs/common/model_names.h"

enum { FILE_MAX = PRESET_BYTES, NAME_ROOM = PRESET_NAME };

/* ---- names */

static const struct {
	const char *other, *name;
} names[] = {
	{ "num-ctx", "context" },       { "n-ctx", "context" },        { "ctx-size", "context" },
	{ "num-predict", "n-predict" }, { "max-tokens", "n-predict" },
};

/* What a file may say that changes no text here. */
static const char *const passed[] = {
	"parent",     "license",          "requires", "description",       "num-thread", "num-batch", "num-gpu",
	"main-gpu",   "low-vram",         "use-mmap", "use-mlock",         "numa",       "f16-kv",    "num-keep",
	"vocab-only", "penalize-newline", "num-gqa",  "draft-num-predict", "parser",     "logits-all"
};

/* The options that a preset may set, beside the numbers of sampling. */
static const char *const known[] = { "samplers", "seed", "stop", "context", "n-predict" };

static bool is_in(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

void preset_name(char out[PRESET_NAME], const char *key)
{
	size_t n = 0;

	for (; key[n] && n + 1 < NAME_ROOM; n++)
		out[n] = (char)(key[n] == '_' ? '-' : tolower((unsigned char)key[n]));
	out[n] = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(out, names[i].other) == 0)
			snprintf(out, NAME_ROOM, "%s", names[i].name);
	const struct sampling_row *field = sampling_by_request(out);
	if (field)
		snprintf(out, NAME_ROOM, "%s", field->option);
}

/* ---- what a file says */

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "no memory for a preset"); }

static bool keep(char **to, const char *value, struct error *err)
{
	free(*to);
	*to = strdup(value);
	return *to || no_memory(err);
}

static bool is_role(const char *role, size_t n)
{
	static const char *const roles[] = { "system", "user", "assistant" };

	for (size_t i = 0; i < 3; i++)
		if (strlen(roles[i]) == n && memcmp(roles[i], role, n) == 0)
			return true;
	return false;
}

static bool add_message(struct preset *p, const char *role, size_t n, const char *text, struct error *err)
{
	if (!is_role(role, n))
		return error_set(err, ERROR_FORMAT, "%s: a message is of \"%.*s\", expected system, user or assistant",
		                 p->path, (int)n, role);
	if (!p->messages)
		p->messages = json_array();
	json_t *one = json_object(), *by = json_stringn(role, n), *content = json_string(text);
	const bool ok = json_object_set(one, "role", by) == 0 && json_object_set(one, "content", content) == 0 &&
	                json_array_append(p->messages, one) == 0;
	json_decref(one);
	json_decref(by);
	json_decref(content);
	return ok || error_set(err, ERROR_FORMAT, "%s: a message is no valid UTF-8", p->path);
}

/* Where a file is that a preset names: beside it, in the user's folder ("~/"), or anywhere. */
static void path_of(char out[4096], const struct preset *p, const char *name)
{
	const char *slash = strrchr(p->path, '/'), *home = getenv("HOME");

	if (strncmp(name, "~/", 2) == 0 && home && *home)
		snprintf(out, 4096, "%s%s", home, name + 1);
	else
		snprintf(out, 4096, "%.*s%s", *name != '/' && slash ? (int)(slash + 1 - p->path) : 0, p->path, name);
}

/* A file beside the preset, or the text itself. */
static bool take_template(struct preset *p, const char *value, struct error *err)
{
	char path[4096];
	struct stat st;

	if (strstr(value, "{%") || strstr(value, "{{"))
		return keep(&p->template, value, err);
	path_of(path, p, value);
	struct file file = { 0 };
	bool ok = stat(path, &st) == 0 && S_ISREG(st.st_mode)
	                  ? file_open(&file, path, err) && file_text(&file, FILE_MAX, err)
	                  : error_set(err, ERROR_IO, "%s: template is %.200s, which is no file beside it", p->path,
	                              value);
	if (ok) {
		free(p->template);
		p->template = strndup((const char *)file.base, file.size);
		ok = p->template || no_memory(err);
	}
	file_close(&file);
	return ok;
}

static bool set(struct preset *p, const char *name, const char *value, struct error *err)
{
	if (p->n_set == PRESET_SETTINGS)
		return error_set(err, ERROR_FORMAT, "%s: has more than %d settings", p->path, PRESET_SETTINGS);
	p->set[p->n_set].name = strdup(name);
	p->set[p->n_set].value = strdup(value);
	p->n_set++;
	return (p->set[p->n_set - 1].name && p->set[p->n_set - 1].value) || no_memory(err);
}

static bool take(struct preset *p, const char *key, const char *value, struct error *err)
{
	char name[NAME_ROOM];

	preset_name(name, key);
	if (strcmp(name, "system") == 0)
		return keep(&p->system, value, err);
	if (strcmp(name, "from") == 0 || strcmp(name, "model") == 0)
		return p->from ? error_set(err, ERROR_FORMAT, "%s: names two models, \"%.200s\" and \"%.200s\"",
		                           p->path, p->from, value)
		               : keep(&p->from, value, err);
	if (strcmp(name, "template") == 0)
		return take_template(p, value, err);
	if (strcmp(name, "adapter") == 0 || strcmp(name, "lora") == 0) {
		char path[4096];
		path_of(path, p, value);
		return set(p, "lora", path, err);
	}
	if (strcmp(name, "message") == 0) {
		size_t n = strcspn(value, " \t");
		return add_message(p, value, n, value + n + strspn(value + n, " \t"), err);
	}
	if (strcmp(name, "renderer") == 0) { /* ollama's own code, and not the template, writes prompts */
		p->other_template = true;
		return true;
	}
	if (strcmp(name, "tfs-z") == 0) /* 1, the usual value of old files, is off */
		return strtod(value, NULL) == 1 ||
		       error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tfs_z is %.20s, expected 1 (off): there is no such sampler", p->path, value);
	if (is_in(passed, sizeof passed / sizeof *passed, name))
		return true;
	if (!sampling_by_option(name) && !is_in(known, sizeof known / sizeof *known, name))
		return error_set(err, ERROR_FORMAT, "%s: \"%.40s\" is nothing that a preset can say", p->path, key);
	return set(p, name, value, err);
}

/* ---- JSON */

/* Which values are lists: those that a Modelfile may say several times. */
static bool may_be_list(const char *name)
{
	static const char *const lists[] = { "stop", "messages", "license", "adapter", "lora" };

	return is_in(lists, sizeof lists / sizeof *lists, name);
}

static bool take_json(struct preset *p, const char *key, const json_t *v, struct error *err)
{
	const json_t *one;
	char number[64], name[NAME_ROOM];
	size_t i;

	preset_name(name, key);
	if ((json_is_array(v) && !may_be_list(name)) ||
	    (json_is_boolean(v) && !is_in(passed, sizeof passed / sizeof *passed, name)))
		return error_set(err, ERROR_FORMAT, "%s: \"%.40s\" is %s, expected a text or a number", p->path, key,
		                 json_is_array(v)  ? "a list"
		                 : json_is_true(v) ? "true"
		                                   : "false");
	if (json_is_array(v)) {
		json_array_foreach(v, i, one)
		{
			const char *role = json_string_value(json_object_get(one, "role")),
				   *text = json_string_value(json_object_get(one, "content"));
			if (strcmp(key, "messages") == 0 && role && text
			            ? !add_message(p, role, strlen(role), text, err)
			    : !json_is_string(one) || strcmp(key, "messages") == 0
			            ? !error_set(err, ERROR_FORMAT, "%s: \"%.40s\" is no list of texts", p->path, key)
			            : !take(p, key, json_string_value(one), err))
				return false;
		}
		return true;
	}
	if (json_is_integer(v))
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		snprintf(number, sizeof number, "%.17g", json_real_value(v));
	else
		snprintf(number, sizeof number, "%s", json_is_true(v) ? "1" : "0");
	if (json_is_object(v) || json_is_null(v))
		return json_is_null(v) ||
		       error_set(err, ERROR_FORMAT, "%s: \"%.40s\" is an object, expected a text or a number", p->path,
		                 key);
	return take(p, key, json_is_string(v) ? json_string_value(v) : number, err);
}

bool preset_say(struct preset *p, const char *key, const json_t *v, struct error *err)
{
	return take_json(p, key, v, err);
}

static bool read_json(struct preset *p, const struct file *f, struct error *err)
{
	json_t *o = json_read(f->base, f->size, FILE_MAX, p->path, err), *v;
	const char *key;
	bool ok = o && (json_is_object(o) || json_is_array(o) ||
	                error_set(err, ERROR_FORMAT, "%s: is no JSON object", p->path));

	if (ok && json_is_array(o))
		ok = take_json(p, "messages", o, err);
	else if (ok)
		json_object_foreach(o, key, v)
		{
			if (!take_json(p, key, v, err)) {
				ok = false;
				break;
			}
		}
	json_decref(o);
	return ok;
}

/* ---- lines */

/* A value, which may be quoted and, by three of them, go over several lines. *at is behind it then. */
static char *read_value(const struct preset *p, char **at, struct error *err)
{
	char *from = *at, *end;

	if (strncmp(from, "\"\"\"", 3) == 0) {
		from += 3;
		end = strstr(from, "\"\"\"");
		if (!end) {
			error_set(err, ERROR_FORMAT, "%s: a text that begins with \"\"\" does not end", p->path);
			return NULL;
		}
		*end = 0;
		*at = end + 3 + strcspn(end + 3, "\n");
		return from;
	}
	end = from + strcspn(from, "\n");
	*at = end + (*end != 0);
	*end = 0;
	while (end > from && isspace((unsigned char)end[-1]))
		*--end = 0;
	if (end - from >= 2 && from[0] == '"' && end[-1] == '"') {
		end[-1] = 0;
		from++;
	}
	return from;
}

/* "name = value", or a word of a Modelfile with its value; PARAMETER has a name before that. */
static bool read_line(struct preset *p, char **at, struct error *err)
{
	char *key = *at, *end = key + strcspn(key, " \t=\n"), *value = end + strspn(end, " \t");
	char name[NAME_ROOM];

	snprintf(name, sizeof name, "%.*s", (int)(end - key), key);
	if (*value == '=') {
		value++;
		value += strspn(value, " \t");
	} else if (strcasecmp(name, "parameter") == 0) {
		end = value + strcspn(value, " \t\n");
		snprintf(name, sizeof name, "%.*s", (int)(end - value), value);
		value = end + strspn(end, " \t");
	}
	if (!*value || *value == '\n')
		return error_set(err, ERROR_FORMAT, "%s: \"%.40s\" has no value", p->path, name);
	*at = value;
	if (strcasecmp(name, "message") == 0 && *value != '"') { /* its text may be quoted behind the role */
		const size_t n = strcspn(value, " \t\n");
		*at = value + n + strspn(value + n, " \t");
		const char *said = read_value(p, at, err);
		return said && add_message(p, value, n, said, err);
	}
	const char *text = read_value(p, at, err);
	return text && take(p, name, text, err);
}

static bool read_lines(struct preset *p, char *at, struct error *err)
{
	bool ok = true;

	for (at += strspn(at, " \t\r\n"); ok && *at; at += strspn(at, " \t\r\n"))
		if (*at == '#' || *at == ';' || *at == '[')
			at += strcspn(at, "\n");
		else
			ok = read_line(p, &at, err);
	return ok;
}

/* Penalties that look at no token, as ollama means a window of 0; an option's 0 would be the usual window. */
static bool end_penalties(struct preset *p, struct error *err)
{
	static const char *const off[][2] = { { "repeat-penalty", "1" },
		                              { "presence-penalty", "0" },
		                              { "frequency-penalty", "0" },
		                              { "repeat-last-n", "1" } };
	bool none = false;
	char *end;

	for (unsigned i = 0; i < p->n_set; i++)
		if (strcmp(p->set[i].name, "repeat-last-n") == 0)
			none = strtod(p->set[i].value, &end) == 0 && end != p->set[i].value && !*end;
	for (unsigned i = 0; i < p->n_set && none; i++)
		for (size_t k = 0; k < sizeof off / sizeof *off; k++)
			if (strcmp(p->set[i].name, off[k][0]) == 0 && !keep(&p->set[i].value, off[k][1], err))
				return false;
	return true;
}

/* ---- files */

/* key NULL: a whole preset; else the file is the value of that. */
static bool read_file(struct preset *p, const char *path, const char *key, struct error *err)
{
	struct file f = { 0 };
	bool ok = file_open(&f, path, err) && file_text(&f, FILE_MAX, err);
	char *text = ok ? strndup((const char *)f.base, f.size) : NULL;

	if (ok && !text)
		ok = no_memory(err);
	if (ok && strlen(text) != f.size)
		ok = error_set(err, ERROR_FORMAT, "%s: is no text: it has a byte 0", path);
	if (ok && key)
		ok = take(p, key, text, err);
	else if (ok)
		ok = strchr("{[", text[strspn(text, " \t\r\n")]) && text[strspn(text, " \t\r\n")] && strstr(text, "\"")
		             ? read_json(p, &f, err)
		             : read_lines(p, text, err);
	ok = ok && end_penalties(p, err);
	if (!key && p->other_template) {
		free(p->template);
		p->template = NULL;
	}
	free(text);
	file_close(&f);
	return ok;
}

bool preset_is(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	return strcasecmp(name, "Modelfile") == 0 || (n > 7 && strcmp(name + n - 7, ".preset") == 0) ||
	       (n > 10 && strcasecmp(name + n - 10, ".modelfile") == 0);
}

bool preset_read(struct preset *p, const char *path, struct error *err)
{
	*p = (struct preset){ .path = strdup(path) };
	return p->path ? read_file(p, path, NULL, err) : no_memory(err);
}

/* A blob of ollama's store, by the kind of its layer. */
static bool read_layers(struct preset *p, const char *manifest, struct error *err)
{
	static const struct {
		const char *kind, *key;
	} kinds[] = { { "template", "template" }, { "system", "system" }, { "params", NULL }, { "messages", NULL } };
	struct store_layer layer[16];
	size_t n = store_layers(manifest, layer, 16);
	const bool rendered = store_renders(manifest);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
			if (strcmp(layer[i].kind, kinds[k].kind) != 0)
				continue;
			if (rendered && k == 0)
				p->other_template = true;
			else if (!read_file(p, layer[i].path, kinds[k].key, err))
				return false;
		}
	return true;
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* "FILE.gguf.preset", "FILE.preset", or in a folder "FOLDER/model.preset" */
static bool find_beside(char out[4096], const char *model)
{
	size_t n = strlen(model);
	struct stat st;
	bool folder = stat(model, &st) == 0 && S_ISDIR(st.st_mode);

	while (folder && n > 1 && model[n - 1] == '/')
		n--;
	snprintf(out, 4096, "%.*s%s", (int)n, model, folder ? "/model.preset" : ".preset");
	if (!is_file(out) && !folder)
		snprintf(out, 4096, "%.*s.preset", (int)model_name_stem(model), model);
	return is_file(out);
}

bool preset_find(struct preset *p, const char *model, const char *manifest, struct error *err)
{
	char beside[4096];

	*p = (struct preset){ 0 };
	if (find_beside(beside, model))
		return preset_read(p, beside, err);
	if (!manifest)
		return true;
	p->path = strdup(manifest);
	return p->path ? read_layers(p, manifest, err) : no_memory(err);
}

/* "FROM ./model.gguf" is beside the file, "FROM ~/model.gguf" in the user's folder; "FROM qwen3:0.6b" is a name. */
static bool take_model(struct preset *p, struct model_named *m, struct error *err)
{
	char beside[4096];
	const char *from = p->from;
	struct stat st;

	if (!from)
		return error_set(err, ERROR_FORMAT, "%s: names no model: FROM or model is missing", p->path);
	path_of(beside, p, from);
	if (strncmp(from, "~/", 2) == 0 || stat(beside, &st) == 0)
		from = beside;
	model_named_free(m);
	return model_named(m, from, err);
}

bool preset_open(struct preset *p, struct model_named *m, struct error *err)
{
	if (m->name || !preset_is(m->path) || !is_file(m->path))
		return preset_find(p, m->path, m->manifest, err);
	return preset_read(p, m->path, err) && take_model(p, m, err);
}

void preset_free(struct preset *p)
{
	for (unsigned i = 0; i < p->n_set; i++) {
		free(p->set[i].name);
		free(p->set[i].value);
	}
	free(p->path);
	free(p->from);
	free(p->system);
	free(p->template);
	json_decref(p->messages);
	*p = (struct preset){ 0 };
}
