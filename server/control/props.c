/* server/control/props.c - /props and /slots: what the server is, and what it is at, as clients of llama.cpp's server
 * ask. */
#include <string.h>

#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/api/endpoints.h"
#include "server/engine/loader.h"
#include "server/engine/models.h"
#include "server/api/settings.h"
#include "server/completions/openai.h"
#include "server/http/server.h"

/* What a request means that says nothing. */
static json_t *defaults(const struct served *m)
{
	struct task *t = task_open(m);
	json_t *o = json_object(), *p = t ? task_settings(t) : NULL;

	if (p && !m->has_seed) /* each draws its own */
		json_put(p, "seed", json_integer(-1));
	json_put(o, "id", json_integer(0));
	json_put(o, "n_ctx", json_integer(batcher_context(m->batcher)));
	json_put(o, "params", p);
	task_release(t);
	return o;
}

/* The text of a key of the model's files; empty where it is not there. */
static json_t *metadata(const struct served *m, const char *key)
{
	jit_metadata d = JIT_METADATA();

	for (size_t i = 0; i < jit_model_metadata_count(m->model); i++) {
		d = JIT_METADATA();
		if (jit_model_metadata(m->model, i, &d, NULL) == JIT_OK && strcmp(d.key, key) == 0 && d.text)
			return json_text(d.text, d.n);
	}
	return json_string("");
}

static const struct served *model_of(struct exchange *x) { return exchange_model(x, exchange_argument(x, "model")); }

/* Whether it has several models, or looks for them: what llama.cpp's server calls a router. */
static bool is_router(const struct models *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += !all->list[i].made && !all->list[i].gone;
	return all->refresh || n > 1;
}

/* Of no model: none is loaded to answer for the server. What is none of a router is there for clients that expect it.
 */
static bool answer_router(struct exchange *x)
{
	const struct models *all = x->server->models;

	return exchange_json(
		x, json_write(json_pack("{s:s, s:I, s:b, s:s, s:s, s:{s:{}, s:i}, s:s, s:b}", "role", "router",
	                                "max_instances", (json_int_t)loader_max(all->loader), "models_autoload", 1,
	                                "model_alias", "jitserve", "model_path", "none", "default_generation_settings",
	                                "params", "n_ctx", 0, "build_info", openai_fingerprint(), "is_sleeping", 0)));
}

bool answer_props(struct exchange *x)
{
	const char *name = exchange_argument(x, "model");

	if ((!name || !*name) && is_router(x->server->models))
		return answer_router(x);
	const struct served *m = model_of(x);

	if (!m)
		return false;
	json_t *o = json_object(), *can = json_object();
	json_put(o, "default_generation_settings", defaults(m));
	json_put(o, "total_slots", json_integer(batcher_parallel(m->batcher)));
	json_put(o, "model_alias", json_text(m->name, strlen(m->name)));
	json_put(o, "model_path", json_text(m->path, strlen(m->path)));
	json_put(o, "chat_template",
	         m->template_text ? json_text(m->template_text, strlen(m->template_text))
	                          : metadata(m, "tokenizer.chat_template"));
	json_put(can, "vision", json_boolean(m->sight != NULL));
	json_put(can, "audio", json_false());
	json_put(o, "modalities", can);
	json_put(o, "build_info", json_string(openai_fingerprint()));
	json_put(o, "is_sleeping", json_false());
	return exchange_json(x, json_write(o));
}

/* There are no slots: answers share one memory. What is shown are places that are taken or free. Looking at them loads
 * no model: one that is not in memory has none. */
bool answer_slots(struct exchange *x)
{
	struct models *all = x->server->models;
	const struct served *m = models_find(all, exchange_argument(x, "model"), &x->refusal);
	const char *needed = exchange_argument(x, "fail_on_no_slot");
	struct model_status s;

	if (!m)
		return false;
	if (all->hides_slots)
		return refuse(&x->refusal, 501, NULL,
		              "/slots is not answered: the server was started with --no-slots.");
	loader_status(all->loader, m, &s);
	if (needed && strcmp(needed, "1") == 0 && s.parallel && s.numbers.running >= s.parallel)
		return refuse(&x->refusal, 503, NULL, "no slot available");
	json_t *list = json_array();
	for (unsigned i = 0; i < s.parallel; i++) {
		json_t *o = json_object();
		json_put(o, "id", json_integer(i));
		json_put(o, "n_ctx", json_integer(s.context));
		json_put(o, "speculative", json_true());
		json_put(o, "is_processing", json_boolean(i < s.numbers.running));
		json_add(list, o);
	}
	return exchange_json(x, json_write(list));
}
