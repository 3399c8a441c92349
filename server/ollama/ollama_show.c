/* server/ollama/ollama_show.c - /api/show: what a model is and can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/completions/infill.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_facts.h"
#include "server/http/server.h"

static json_t *capabilities(const struct ollama_facts *f, const struct served *m, const jit_model *loaded,
                            const char *template_text)
{
	json_t *list = json_array();

	if (m->sees)
		json_add(list, json_string("vision"));
	if (f->file->pooling != POOLING_NOT_SAID && f->file->pooling != POOLING_RANK)
		json_add(list, json_string("embedding"));
	if (f->file->pooling != POOLING_RANK && !f->file->spec.encodes)
		json_add(list, json_string("completion"));
	if (ollama_knows_tools(template_text))
		json_add(list, json_string("tools"));
	if (ollama_can_think(template_text))
		json_add(list, json_string("thinking"));
	if (ollama_knows_gaps(template_text) || (loaded ? infill_is_known(loaded) : ollama_has_gaps(f)))
		json_add(list, json_string("insert"));
	return list;
}

/* ---- models that were made */

/* A line for each value. Texts that are no numbers are quoted, as a Modelfile has them. */
static void put_values(struct bytes *b, const char *begin, const char *name, const json_t *v)
{
	const json_t *one;
	size_t i;

	json_array_foreach(v, i, one) put_values(b, begin, name, one);
	if (json_is_array(v))
		return;
	const char *text = json_string_value(v);
	char *end = NULL;
	const bool number = text && *text && (strtod(text, &end), !*end);
	char *spelled = number ? strdup(text) : json_spell(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	bytes_print(b, "%s%s%s ", b->n ? "\n" : "", begin, name);
	bytes_text(b, spelled ? spelled : "");
	b->lost = b->lost || !spelled;
	free(spelled);
}

static void put_parameters(struct bytes *b, const char *begin, const json_t *made)
{
	json_t *v;
	const char *name;

	json_object_foreach(json_object_get(made, "parameters"), name, v) put_values(b, begin, name, v);
}

static void put_block(struct bytes *b, const char *word, const char *text)
{
	const char *quotes = strchr(text, '\n') || strchr(text, '"') ? "\"\"\"" : "\"";

	bytes_print(b, "\n%s %s", word, quotes);
	bytes_text(b, text);
	bytes_text(b, quotes);
}

/* Several are told one after the other. */
static json_t *license_of(const json_t *made)
{
	struct bytes b = { 0 };
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(made, "license"), i, one)
	{
		bytes_text(&b, i ? "\n" : "");
		bytes_add(&b, json_string_value(one), json_string_length(one));
	}
	json_t *text = b.n ? json_text(b.p, b.n) : NULL;
	bytes_free(&b);
	return text;
}

/* The words of a Modelfile that make it again. */
static void put_made(struct bytes *b, const json_t *made)
{
	const char *system = json_string_value(json_object_get(made, "system"));
	const json_t *one;
	size_t i;

	if (system)
		put_block(b, "SYSTEM", system);
	put_parameters(b, "PARAMETER ", made);
	json_array_foreach(json_object_get(made, "messages"), i, one)
	{
		char word[40];
		snprintf(word, sizeof word, "MESSAGE %.20s", json_string_value(json_object_get(one, "role")));
		put_block(b, word, json_string_value(json_object_get(one, "content")));
	}
	json_array_foreach(json_object_get(made, "license"), i, one) put_block(b, "LICENSE", json_string_value(one));
	bytes_text(b, "\n");
}

static void tell_made(json_t *o, const json_t *made)
{
	json_t *system = json_object_get(made, "system"), *messages = json_object_get(made, "messages"),
	       *license = license_of(made);

	if (system)
		json_put(o, "system", json_incref(system));
	if (messages)
		json_put(o, "messages", json_incref(messages));
	if (license)
		json_put(o, "license", license);
}

/* How tokens are chosen where a request says nothing, and how long its context is: what a model was made with, else
 * known once it was loaded. */
static json_t *parameters(const struct served *m, const jit_model *loaded, const json_t *made)
{
	struct bytes b = { 0 };

	if (made) {
		put_parameters(&b, "", made);
	} else if (loaded) {
		bytes_print(&b, "num_ctx %d\ntemperature %g\ntop_k %d\ntop_p %g\nmin_p %g", batcher_context(m->batcher),
		            (double)m->sampling.temperature, m->sampling.top_k, (double)m->sampling.top_p,
		            (double)m->sampling.min_p);
		if (m->sampling.repeat_penalty > 0 && m->sampling.repeat_penalty != 1)
			bytes_print(&b, "\nrepeat_penalty %g", (double)m->sampling.repeat_penalty);
	}
	json_t *text = json_text(b.n ? b.p : "", b.n);
	bytes_free(&b);
	return text;
}

static bool show(struct exchange *x, const struct served *m, const struct ollama_facts *f, const jit_model *loaded,
                 bool verbose)
{
	json_t *o = json_object(), *made = m->made ? x->server->models->maker->told(m) : NULL;
	const char *own = json_string_value(json_object_get(made, "template")),
		   *parent = json_string_value(json_object_get(made, "parent")),
		   *text = own ? own : ollama_template(f, m);
	struct bytes file = { 0 };

	bytes_print(&file, "# Made by jitserve from what the model's files say.\nFROM %s\nTEMPLATE \"\"\"%s\"\"\"",
	            parent ? parent : m->name, text);
	put_made(&file, made);
	json_put(o, "modelfile", json_text(file.n ? file.p : "", file.n));
	bytes_free(&file);
	json_put(o, "parameters", parameters(m, loaded, made));
	json_put(o, "template", json_text(text, strlen(text)));
	json_t *details = ollama_details(f);
	if (parent)
		json_put(details, "parent_model", json_text(parent, strlen(parent)));
	json_put(o, "details", details);
	tell_made(o, made);
	json_put(o, "model_info", ollama_info(f, m, verbose));
	json_put(o, "capabilities", capabilities(f, m, loaded, text));
	json_put(o, "modified_at", json_string(f->modified));
	json_decref(made); /* whose template this was */
	return exchange_json(x, json_write(o));
}

/* Of a model that is in memory what is there, else the headers of its files; formats that have no headers of their own
 * are loaded. */
static bool answer(struct exchange *x, struct served *m, bool verbose)
{
	struct ollama_facts f;
	const jit_model *loaded = NULL;

	x->lease.peeks = true;
	if (lease_take(&x->lease, x->server->models->loader, m))
		loaded = m->model;
	ollama_facts_read(&f, m, loaded);
	if (!f.file && !loaded) /* the lease is wanted: it is called again */
		return false;
	if (!loaded)
		lease_end(&x->lease);
	const bool ok = f.file ? show(x, m, &f, loaded, verbose) : refuse(&x->refusal, 400, "model", "%s", f.why.text);
	ollama_facts_free(&f);
	return ok;
}

bool answer_ollama_show(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	const char *name = NULL;
	bool verbose = false, ok = false;

	if (body && (!field_text(body, "model", &name, &x->refusal) ||
	             (!name && !field_text(body, "name", &name, &x->refusal)) ||
	             !field_flag(body, "verbose", &verbose, &x->refusal)))
		name = NULL;
	if (body && !name)
		refuse(&x->refusal, 400, "model", "model is missing, expected the name of a model");
	struct served *m = name ? models_named(x->server->models, name) : NULL;
	if (name && !m)
		refuse(&x->refusal, 404, "model", "model '%.200s' not found", name);
	if (m)
		ok = answer(x, m, verbose);
	json_decref(body);
	return ok;
}
