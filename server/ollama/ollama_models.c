/* server/ollama/ollama_models.c - which models there are, in the form of ollama's API, and what is not done with them.
 *
 * Owns: that a list opens no model: what it says is in the headers of files.
 */
#include "server/ollama/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/engine/loader.h"
#include "server/ollama/ollama_facts.h"
#include "server/http/server.h"

/* Whose API this is: clients ask for a version that has what they need. */
static const char api_version[] = "0.13.0";

bool answer_ollama_version(struct exchange *x)
{
	return exchange_json(x, json_write(json_pack("{s:s}", "version", api_version)));
}

void ollama_name(char out[208], const struct served *m)
{
	snprintf(out, 208, "%s%s", m->name, strchr(m->name, ':') ? "" : ":latest");
}

static void put_name(json_t *o, const struct served *m)
{
	char name[208];

	ollama_name(name, m);
	json_put(o, "name", json_text(name, strlen(name)));
	json_put(o, "model", json_text(name, strlen(name)));
}

/* Of one that was made, with whose model it is. */
static json_t *details_of(const struct models *all, const struct served *m, const struct ollama_facts *f)
{
	json_t *o = ollama_details(f), *made = m->made ? all->maker->told(m) : NULL,
	       *parent = json_object_get(made, "parent");

	if (parent)
		json_put(o, "parent_model", json_incref(parent));
	json_decref(made);
	return o;
}

bool answer_ollama_tags(struct exchange *x)
{
	struct models *all = x->server->models;
	json_t *o = json_object(), *list = json_array();

	models_refresh(all);
	for (size_t i = 0; i < all->n; i++) {
		const struct served *m = &all->list[i];
		if (m->gone)
			continue;
		struct ollama_facts f;
		json_t *one = json_object();
		ollama_facts_read(&f, m, NULL);
		put_name(one, m);
		json_put(one, "modified_at", json_string(f.modified));
		json_put(one, "size", json_integer((json_int_t)f.bytes));
		json_put(one, "digest", json_string(f.digest));
		json_put(one, "details", details_of(all, m, &f));
		json_add(list, one);
		ollama_facts_free(&f);
	}
	json_put(o, "models", list);
	return exchange_json(x, json_write(o));
}

/* When a model leaves, as ollama says it. */
static void print_end(char out[OLLAMA_TIME], double seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (seconds < 0 || seconds > 1e9)
		ollama_time(out, OLLAMA_FOR_GOOD, 0);
	else
		ollama_time(out, now.tv_sec + (int64_t)seconds, now.tv_nsec);
}

/* Of one that is in memory; NULL: it is not. */
static json_t *running(const struct models *all, struct served *m)
{
	struct lease held = { .peeks = true };
	struct model_status s;
	struct ollama_facts f;
	char end[OLLAMA_TIME];

	loader_status(all->loader, m, &s);
	if (!lease_take(&held, all->loader, m)) {
		lease_end(&held);
		return NULL;
	}
	ollama_facts_read(&f, m, m->model);
	json_t *o = json_object();
	put_name(o, m);
	json_put(o, "size", json_integer((json_int_t)s.info.weight_bytes));
	json_put(o, "digest", json_string(f.digest));
	json_put(o, "details", details_of(all, m, &f));
	print_end(end, s.expires);
	json_put(o, "expires_at", json_string(end));
	json_put(o, "size_vram", json_integer(f.on_card ? (json_int_t)s.info.weight_bytes : 0));
	json_put(o, "context_length", json_integer(s.context));
	ollama_facts_free(&f);
	lease_end(&held);
	return o;
}

bool answer_ollama_ps(struct exchange *x)
{
	const struct models *all = x->server->models;
	json_t *o = json_object(), *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		json_t *one = running(all, &all->list[i]);
		if (one)
			json_add(list, one);
	}
	json_put(o, "models", list);
	return exchange_json(x, json_write(o));
}

/* ---- what is not done */

bool answer_ollama_push(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);

	if (body && ollama_named(x, body, "model", "name"))
		refuse(&x->refusal, 403, NULL, "jitserve sends models nowhere");
	json_decref(body);
	return false;
}

bool answer_ollama_blob(struct exchange *x)
{
	return refuse(&x->refusal, 404, NULL, "There is no blob %.200s: jitserve keeps none", x->rest);
}

bool answer_ollama_put_blob(struct exchange *x)
{
	return refuse(&x->refusal, 501, NULL, "jitserve keeps no blobs; it serves the files that it was started with");
}
