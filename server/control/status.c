/* server/control/status.c - whether the server is there and ready, and what it serves. */
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/control/fetch.h"
#include "server/engine/loader.h"
#include "server/engine/models.h"
#include "server/http/server.h"

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

/* ---- one that is a model's adapter */

struct wanted_adapter {
	const struct models *all;
	const struct served *model;
	const char *name;
	json_t *found;
};

static void check_name(void *user, const struct served_adapter_told *a)
{
	struct wanted_adapter *q = user;
	const size_t n = strlen(a->name);

	if (!q->found && strncmp(a->name, q->name, n) == 0 && (!q->name[n] || strcmp(q->name + n, ":latest") == 0))
		q->found = model_adapter_json(q->all, q->model, a);
}

static bool answer_adapter_model(struct exchange *x, const struct served *m)
{
	struct wanted_adapter q = { .all = x->server->models, .model = m, .name = x->rest };

	served_adapters_each(m->adapters, check_name, &q);
	if (q.found)
		return exchange_json(x, json_write(q.found));
	return models_refuse(q.all, x->rest, 404, &x->refusal);
}

/* The one of this name; others stand for it only in requests. */
bool answer_model(struct exchange *x)
{
	struct models *all = x->server->models;
	const struct served *m = models_of_adapter(all, x->rest);

	if (m)
		return answer_adapter_model(x, m);
	m = models_named(all, x->rest);

	if (m)
		return exchange_json(x, json_write(model_json(all, m)));
	return models_refuse(all, x->rest, 404, &x->refusal);
}

bool answer_models(struct exchange *x)
{
	models_refresh(x->server->models);
	json_t *o = models_json(x->server->models);
	fetch_list(json_object_get(o, "data"));
	return exchange_json(x, json_write(o));
}
