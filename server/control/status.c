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

static bool refuse_failed(struct exchange *x, const struct served *m, const struct model_status *s)
{
	return refuse(&x->refusal, 503, NULL,
	              s->moves ? "The model %s is being opened on the CPU: %s"
	                       : "The model %s cannot be computed any more: %s",
	              m->name, s->lost[0] ? s->lost : s->failure.message);
}

static void add_once(json_t *list, const char *device)
{
	size_t i;
	json_t *one;

	json_array_foreach(list, i, one) if (strcmp(json_string_value(one), device) == 0) return;
	json_array_append_new(list, json_string(device));
}

/* Which devices compute the models that are in memory, and which models have lost theirs. False: one is computed by
 * none. */
static bool answer_devices(struct exchange *x)
{
	const struct models *all = x->server->models;
	json_t *devices = json_array(), *lost = json_array();
	bool ok = true;

	for (size_t i = 0; ok && i < all->n; i++) {
		const struct served *m = &all->list[i];
		struct model_status s;
		loader_status(all->loader, m, &s);
		if (s.failure.code || s.moves)
			ok = refuse_failed(x, m, &s);
		if (s.state == MODEL_LOADED)
			add_once(devices, s.device);
		if (s.state == MODEL_LOADED && s.lost[0])
			json_array_append_new(lost, json_pack("{s:s, s:s, s:s}", "model", m->name, "device", s.device,
			                                      "why", s.lost));
	}
	json_t *said = json_pack("{s:s, s:o, s:o}", "status", "ok", "devices", devices, "lost", lost);
	if (!ok) {
		json_decref(said);
		return false;
	}
	return exchange_json(x, json_write(said));
}

bool answer_health(struct exchange *x)
{
	struct server *s = x->server;
	int state = atomic_load(&s->state);

	if (state == SERVER_READY)
		return answer_devices(x);
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
