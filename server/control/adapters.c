/* server/control/adapters.c - adapters that are listed, weighed, loaded and unloaded by request: /lora-adapters as
 * llama.cpp's server has it, /v1/load_lora_adapter and /v1/unload_lora_adapter as vLLM has them.
 *
 * Owns: which files a client may name: those in the folder of --lora-dir, and none elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/engine/models.h"
#include "server/http/server.h"
#include "server/request/fields.h"

/* ---- /lora-adapters: of the model of ?model=, else of the first; it need not be in memory */

static struct served *model_of(struct exchange *x)
{
	return models_find(x->server->models, exchange_argument(x, "model"), &x->refusal);
}

bool answer_adapters(struct exchange *x)
{
	const struct served *m = model_of(x);

	return m && exchange_json(x, json_write(served_adapters_json(m->adapters)));
}

static bool set(struct exchange *x, const json_t *list)
{
	const struct served *m = model_of(x);

	if (!m)
		return false;
	if (!json_is_array(list))
		return refuse(&x->refusal, 400, NULL, "The body is %s, expected an array of adapters.",
		              json_kind(list));
	if (m->adapters)
		return served_adapters_set(m->adapters, list, &x->refusal);
	return json_array_size(list) == 0 ||
	       refuse(&x->refusal, 400, "id",
	              "%zu adapters are named, and the model %.199s has none; --lora names some.",
	              json_array_size(list), m->name);
}

bool answer_set_adapters(struct exchange *x)
{
	json_t *list = fields_json(x->body.p, x->body.n, &x->refusal);
	const bool ok = list && set(x, list);
	json_decref(list);
	return ok && exchange_json(x, strdup("{\"success\":true}"));
}

/* ---- loaded and unloaded */

/* What lists show, and JSON and metrics can hold without tricks. */
static bool is_name(const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 127)
			return false;
	return n && n < ADAPTER_NAME && name[0] != ' ' && name[n - 1] != ' ';
}

/* A name in the folder, alone or behind the folder's path. */
static bool find_file(const char *folder, const char *given, char out[ADAPTER_PATH])
{
	const size_t n = strlen(folder);
	const char *name = given;

	if (strncmp(given, folder, n) == 0 && given[n] == '/')
		name = given + n + strspn(given + n, "/");
	if (!is_name(name) || strpbrk(name, "/\\") || name[0] == '.')
		return false;
	return snprintf(out, ADAPTER_PATH, "%s/%s", folder, name) < ADAPTER_PATH;
}

static bool may(struct exchange *x)
{
	return x->server->o.lora_folder ||
	       refuse(&x->refusal, 403, NULL,
	              "This server loads no adapters by request: --lora-dir names a folder of them.");
}

/* The fields of a body. NULL: refused. */
static json_t *read_body(struct exchange *x, const char **name)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);

	if (!body || (field_text(body, "lora_name", name, &x->refusal) && *name && **name))
		return body;
	refuse(&x->refusal, 400, "lora_name", "lora_name is missing, expected the name of an adapter");
	json_decref(body);
	return NULL;
}

static bool say(struct exchange *x, const char *name, const char *what)
{
	char *text = malloc(ADAPTER_NAME + 80);

	if (text)
		snprintf(text, ADAPTER_NAME + 80, "Success: LoRA adapter '%s' %s successfully.", name, what);
	return exchange_text(x, "text/plain; charset=utf-8", text);
}

/* In place of the one of that name: it is unloaded before, and requests that have it keep it. */
static bool make_room(struct exchange *x, const json_t *body, const char *name)
{
	struct served *of = models_of_adapter(x->server->models, name);
	bool replaces = false;

	if (!field_flag(body, "load_inplace", &replaces, &x->refusal))
		return false;
	if (!of && models_named(x->server->models, name))
		return refuse(&x->refusal, 400, "lora_name", "lora_name is \"%.199s\", which is a model's name", name);
	if (!of)
		return true;
	if (!replaces)
		return refuse(&x->refusal, 400, "lora_name", "The lora adapter '%.199s' has already been loaded.",
		              name);
	return served_adapters_unload(of->adapters, name, &x->refusal);
}

static bool load(struct exchange *x, const json_t *body, const char *name)
{
	const char *given = NULL, *base = NULL;
	char path[ADAPTER_PATH];
	struct refusal *r = &x->refusal;

	if (!field_text(body, "lora_path", &given, r) || !field_text(body, "base_model_name", &base, r))
		return false;
	if (!given || !*given)
		return refuse(r, 400, "lora_path",
		              "lora_path is missing, expected a folder or file in that of --lora-dir");
	if (!is_name(name))
		return refuse(r, 400, "lora_name",
		              "lora_name is \"%.199s\", expected 1 to %d bytes without control "
		              "characters, nor blanks at its ends",
		              name, ADAPTER_NAME - 1);
	if (!find_file(x->server->o.lora_folder, given, path))
		return refuse(r, 400, "lora_path",
		              "lora_path is \"%.199s\", expected a name in the folder of --lora-dir", given);
	if (access(path, F_OK) != 0)
		return refuse(r, 404, "lora_path", "No adapter found for %.199s.", given);
	const struct served *m = exchange_model(x, base);
	return m && make_room(x, body, name) && served_adapters_load(m->adapters, m->model, name, path, given, r) &&
	       say(x, name, "added");
}

bool answer_load_adapter(struct exchange *x)
{
	const char *name = NULL;
	json_t *body = may(x) ? read_body(x, &name) : NULL;
	const bool ok = body && load(x, body, name);

	json_decref(body);
	return ok;
}

bool answer_unload_adapter(struct exchange *x)
{
	const char *name = NULL;
	json_t *body = may(x) ? read_body(x, &name) : NULL;
	const struct served *m = body ? models_of_adapter(x->server->models, name) : NULL;
	bool ok = m != NULL;

	if (body && !m)
		refuse(&x->refusal, 404, "lora_name", "The lora adapter '%.199s' cannot be found.", name);
	ok = ok && served_adapters_unload(m->adapters, name, &x->refusal) && say(x, name, "removed");
	json_decref(body);
	return ok;
}
