/* server/ollama/ollama_make.c - /api/create, /api/copy and /api/delete: models that clients make of others.
 *
 * Owns: what such a request may say, and what a model may be called. Who keeps them, the program says (models.h); where
 * it says nothing, none are made.
 */
#include "server/ollama/ollama.h"

#include <ctype.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/http/server.h"

enum { PART_MAX = 80, NAME_LENGTH_MAX = 180 };

struct served *ollama_named(struct exchange *x, const json_t *body, const char *field, const char *other)
{
	const char *name = NULL;

	if (!field_text(body, field, &name, &x->refusal) || (!name && !field_text(body, other, &name, &x->refusal)))
		return NULL;
	struct served *m = name ? models_named(x->server->models, name) : NULL;
	if (!name)
		refuse(&x->refusal, 400, field, "%s is missing, expected the name of a model", field);
	else if (!m)
		refuse(&x->refusal, 404, field, "model '%.200s' not found", name);
	return m;
}

/* ---- names */

static bool is_part(const char *p, size_t n)
{
	if (n == 0 || n > PART_MAX || !(isalnum((unsigned char)*p) || *p == '_'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && !strchr("._-", p[i]))
			return false;
	return true;
}

/* [HOST/][OWNER/]NAME[:TAG], as ollama has them; with its tag. False: it is none. */
static bool read_name(char out[208], const char *text)
{
	const size_t n = strlen(text);
	const char *at = text, *slash = strrchr(text, '/'), *colon = strchr(slash ? slash : text, ':');
	unsigned parts = 1;

	if (n > NAME_LENGTH_MAX)
		return false;
	for (const char *next; (next = strchr(at, '/')); at = next + 1)
		if (!is_part(at, (size_t)(next - at)) || ++parts > 3)
			return false;
	if (!is_part(at, colon ? (size_t)(colon - at) : strlen(at)) ||
	    (colon && !is_part(colon + 1, strlen(colon + 1))))
		return false;
	snprintf(out, 208, "%s%s", text, colon ? "" : ":latest");
	return true;
}

/* In the field, or in the other one. */
static bool read_new_name(char out[208], const json_t *body, const char *field, const char *other, struct refusal *r)
{
	const char *name = NULL;

	if (!field_text(body, field, &name, r) || (!name && !field_text(body, other, &name, r)))
		return false;
	if (!name)
		return refuse(r, 400, field, "%s is missing, expected a name for the model", field);
	if (strlen(name) > NAME_LENGTH_MAX)
		return refuse(r, 400, field, "%s has a name of %zu bytes, expected at most %d", field, strlen(name),
		              NAME_LENGTH_MAX);
	return read_name(out, name) ||
	       refuse(r, 400, field,
	              "%s is \"%.100s\", expected a name such as mario or me/mario:small: letters, digits, \"-\", "
	              "\"_\" and \".\", at most %d of them",
	              field, name, PART_MAX);
}

/* ---- what a request says */

/* Done elsewhere by files that a client uploads, or by programs of ollama's own. */
static bool refuse_others(const json_t *body, struct refusal *r)
{
	static const char *const names[][2] = {
		{ "files", "a model is made of one that is here, by from" },
		{ "adapters", "the server lays adapters over models by --lora and --lora-dir" },
		{ "quantize", "weights stay as they are; jitquant makes smaller ones" },
		{ "quantization", "weights stay as they are; jitquant makes smaller ones" },
		{ "modelfile", "send from, system, template, parameters and messages instead" },
		{ "path", "send from, system, template, parameters and messages instead" },
		{ "remote_host", "a model is made of one that is here" },
		{ "renderer", "conversations are written by the template" },
		{ "parser", "answers are read as the template says" },
		{ "info", "what is told of a model is in its files" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const json_t *v = field_value(body, names[i][0]);
		const bool empty = !v || (json_is_string(v) && json_string_length(v) == 0) ||
		                   (json_is_object(v) && json_object_size(v) == 0);
		if (!empty)
			return refuse(r, 400, names[i][0], "%s is not supported: %s", names[i][0], names[i][1]);
	}
	return true;
}

static bool read_text(json_t *said, const json_t *body, const char *name, struct refusal *r)
{
	const char *text = NULL;

	if (!field_text(body, name, &text, r))
		return false;
	if (text && *text)
		json_put(said, name, json_string(text));
	return true;
}

/* One that has no expression would be taken for the name of a file (preset.h). */
static bool read_template(json_t *said, const json_t *body, struct refusal *r)
{
	if (!read_text(said, body, "template", r))
		return false;
	const char *text = json_string_value(json_object_get(said, "template"));
	return !text || strstr(text, "{{") || strstr(text, "{%") ||
	       refuse(r, 400, "template", "template has neither {{ nor {%%, expected the text of a template");
}

static bool is_text(const json_t *v)
{
	return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

/* A text, or several. */
static bool read_license(json_t *said, const json_t *body, struct refusal *r)
{
	json_t *v = field_value(body, "license"), *one;
	size_t i;

	if (!v)
		return true;
	json_t *list = json_is_array(v) ? json_copied(v, false) : json_pack("[O]", v);
	json_array_foreach(list, i, one) if (!is_text(one))
		refuse(r, 400, "license", "license has %s, expected a text, or texts", json_kind(one));
	if (json_array_size(list))
		json_put(said, "license", json_incref(list));
	json_decref(list);
	return r->status == 0;
}

static bool read_messages(json_t *said, const json_t *body, struct refusal *r)
{
	static const char *const roles[] = { "system", "user", "assistant" };
	json_t *given = field_array(body, "messages", r), *list = json_array(), *one;
	size_t i;

	json_array_foreach(given, i, one)
	{
		const char *role = json_string_value(json_object_get(one, "role"));
		bool known = false;
		for (size_t k = 0; k < 3; k++)
			known |= role && strcmp(role, roles[k]) == 0;
		if (!known || !is_text(json_object_get(one, "content")))
			refuse(r, 400, "messages",
			       "messages[%zu] is no object with role (system, user or assistant) and content (a text)",
			       i);
		else if (json_array_size(json_object_get(one, "images")) ||
		         json_array_size(json_object_get(one, "tool_calls")))
			refuse(r, 400, "messages", "messages[%zu] has images or calls; only text is kept", i);
		else
			json_add(list,
			         json_pack("{s:s, s:O}", "role", role, "content", json_object_get(one, "content")));
	}
	if (json_array_size(list))
		json_put(said, "messages", json_incref(list));
	json_decref(list);
	return r->status == 0;
}

static bool read_parameters(json_t *said, const json_t *body, struct refusal *r)
{
	json_t *given = field_object(body, "parameters", r), *v, *one;
	const char *name;
	size_t i;

	json_object_foreach(given, name, v)
	{
		json_array_foreach(v, i, one) if (!is_text(one))
			refuse(r, 400, "parameters", "parameters: %.60s has %s, expected texts", name, json_kind(one));
		if (json_is_string(v) && !is_text(v))
			refuse(r, 400, "parameters", "parameters: %.60s has a NUL", name);
		else if (json_not_finite(v) || json_is_object(v))
			refuse(r, 400, "parameters", "parameters: %.60s is %s, expected a number, a text or texts",
			       name, json_kind(v));
	}
	if (given)
		json_put(said, "parameters", json_incref(given));
	return r->status == 0;
}

/* What the model has of its own. NULL: refused. */
static json_t *read_said(const json_t *body, struct refusal *r)
{
	json_t *said = json_object();

	if (refuse_others(body, r) && read_text(said, body, "system", r) && read_template(said, body, r) &&
	    read_license(said, body, r) && read_messages(said, body, r) && read_parameters(said, body, r)) {
		if (!json_lacks())
			return said;
		refuse(r, 503, NULL, "There is no memory for this request.");
	}
	json_decref(said);
	return NULL;
}

/* ---- what is asked */

/* Where a client may change nothing, that is said whatever it asks. NULL: refused. */
static const struct model_maker *maker_of(struct exchange *x)
{
	const struct model_maker *maker = x->server->models->maker;

	if (!maker)
		refuse(&x->refusal, 403, NULL, "This server makes no models: --presets-dir DIR lets it.");
	return maker;
}

static bool say_made(struct exchange *x, const char *from, bool stream)
{
	struct bytes b = { 0 };

	if (stream) {
		bytes_text(&b, "{\"status\":");
		char text[260];
		snprintf(text, sizeof text, "using the weights of %s", from);
		bytes_take(&b, json_write(json_string(text)));
		bytes_text(&b, "}\n{\"status\":\"writing manifest\"}\n");
	}
	bytes_text(&b, stream ? "{\"status\":\"success\"}\n" : "{\"status\":\"success\"}");
	bytes_add(&b, "", 1);
	if (!b.lost)
		return exchange_text(x, stream ? "application/x-ndjson" : "application/json; charset=utf-8", b.p);
	bytes_free(&b);
	return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
}

bool answer_ollama_create(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal), *said = NULL;
	const struct model_maker *maker = body ? maker_of(x) : NULL;
	struct served *from = NULL;
	char name[208];
	bool stream = true, ok = false;

	if (maker && field_flag(body, "stream", &stream, &x->refusal) &&
	    read_new_name(name, body, "model", "name", &x->refusal) && (said = read_said(body, &x->refusal)) &&
	    (from = ollama_named(x, body, "from", "from")))
		ok = maker->make(x->server->models, name, from, said, &x->refusal) && say_made(x, from->name, stream);
	json_decref(said);
	json_decref(body);
	return ok;
}

bool answer_ollama_copy(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal), *nothing = json_object();
	struct served *from = body ? ollama_named(x, body, "source", "source") : NULL;
	const struct model_maker *maker = from ? maker_of(x) : NULL;
	char name[208];
	bool ok = maker && read_new_name(name, body, "destination", "destination", &x->refusal) &&
	          maker->make(x->server->models, name, from, nothing, &x->refusal);

	json_decref(nothing);
	json_decref(body);
	return ok && exchange_text(x, "text/plain; charset=utf-8", strdup(""));
}

bool answer_ollama_delete(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	struct models *all = x->server->models;
	struct served *m = body ? ollama_named(x, body, "model", "name") : NULL;
	const bool ok = m && (m->made ? models_remove(all, m, &x->refusal)
	                              : refuse(&x->refusal, 403, NULL,
	                                       "jitserve deletes no model's files; its owner does, with jitrun rm"));

	json_decref(body);
	return ok && exchange_text(x, "text/plain; charset=utf-8", strdup(""));
}
