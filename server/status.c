/* server/status.c - whether the server is there and ready, and what it serves. */
#include <stdlib.h>
#include <string.h>

#include "loaders/json_write.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/loader.h"
#include "server/models.h"
#include "server/server.h"

bool answer_live(struct exchange *x) { return exchange_json(x, strdup("{\"status\":\"ok\"}")); }

/* No model's device has failed for good. */
static bool has_devices(struct exchange *x)
{
	const struct models *all = x->server->models;

	for (size_t i = 0; i < all->n; i++) {
		struct model_status s;
		loader_status(all->loader, &all->list[i], &s);
		if (s.failure.code)
			return refuse(&x->refusal, 503, NULL, "The model %s cannot be computed any more: %s",
			              all->list[i].name, s.failure.message);
	}
	return true;
}

bool answer_health(struct exchange *x)
{
	struct server *s = x->server;
	int state = atomic_load(&s->state);

	if (state == SERVER_READY)
		return has_devices(x) && exchange_json(x, strdup("{\"status\":\"ok\"}"));
	if (state == SERVER_STOPPING)
		return refuse(&x->refusal, 503, NULL, "The server is stopping.");
	uint64_t done = atomic_load(&s->loaded), all = atomic_load(&s->to_load);
	return refuse(&x->refusal, 503, NULL, "Loading model: %d %%",
	              all ? (int)(100.0 * (double)done / (double)all) : 0);
}

/* The one of this name; others stand for it only in requests. */
bool answer_model(struct exchange *x)
{
	struct models *all = x->server->models;
	const struct served *m = models_named(all, x->rest);

	if (m)
		return exchange_json(x, json_write(model_json(all, m)));
	return refuse(&x->refusal, 404, "model", "There is no model \"%s\" here; /v1/models has those that are.",
	              x->rest);
}

bool answer_models(struct exchange *x)
{
	models_look(x->server->models);
	return exchange_json(x, json_write(models_json(x->server->models)));
}

/* ---- to be loaded and to leave, as llama.cpp's server with several models is asked */

/* NULL: refused. */
static struct served *model_of_body(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	const char *name = NULL;
	struct served *m = NULL;

	if (body && field_text(body, "model", &name, &x->refusal)) {
		m = name ? models_named(x->server->models, name) : NULL;
		if (!name)
			refuse(&x->refusal, 400, "model", "model is missing, expected the name of a model");
		else if (!m)
			refuse(&x->refusal, 404, "model",
			       "There is no model \"%.200s\" here; /v1/models has those that are.", name);
	}
	json_decref(body);
	return m;
}

/* Is answered when the model is there, or with the reason why not. */
bool answer_models_load(struct exchange *x)
{
	struct served *m = x->lease.state == LEASE_HELD ? x->lease.model : model_of_body(x);

	if (!m)
		return false;
	if (x->lease.state == LEASE_HELD)
		return exchange_json(x, strdup("{\"success\":true}"));
	if (!lease_take(&x->lease, x->server->models->loader, m))
		return false;
	return refuse(&x->refusal, 400, "model", "The model %.200s is loaded already.", m->name);
}

bool answer_models_unload(struct exchange *x)
{
	struct served *m = model_of_body(x);

	if (!m)
		return false;
	return loader_unload(x->server->models->loader, m)
	               ? exchange_json(x, strdup("{\"success\":true}"))
	               : refuse(&x->refusal, 400, "model", "The model %.200s is not loaded.", m->name);
}
