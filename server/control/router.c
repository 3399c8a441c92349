/* server/control/router.c - models that are opened, left, fetched and taken away by request, and who is told of it:
 * what clients of llama.cpp's server ask where it has several models. */
#include <stdlib.h>
#include <string.h>

#include "server/api/endpoints.h"
#include "server/control/fetch.h"
#include "server/request/fields.h"
#include "server/engine/loader.h"
#include "server/engine/model_events.h"
#include "server/engine/models.h"
#include "server/http/server.h"

static bool say_done(struct exchange *x) { return exchange_json(x, strdup("{\"success\":true}")); }

/* The value of `model` in the body, malloc'ed. NULL: refused. */
static char *name_of_body(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	const char *name = NULL;
	char *copy = NULL;

	if (body && field_text(body, "model", &name, &x->refusal)) {
		if (!name)
			refuse(&x->refusal, 400, "model", "model is missing, expected the name of a model");
		else if (!(copy = strdup(name)))
			refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
	json_decref(body);
	return copy;
}

/* Is answered when the model is there, or with the reason why not. */
bool answer_models_load(struct exchange *x)
{
	struct models *all = x->server->models;

	if (x->lease.state == LEASE_HELD)
		return say_done(x);
	char *name = name_of_body(x);
	struct served *m = name ? models_named(all, name) : NULL;
	if (name && !m)
		models_refuse(all, name, 404, &x->refusal);
	free(name);
	if (!m || !lease_take(&x->lease, all->loader, m))
		return false;
	return refuse(&x->refusal, 400, "model", "The model %.200s is loaded already.", m->name);
}

bool answer_models_unload(struct exchange *x)
{
	struct models *all = x->server->models;
	char *name = name_of_body(x);
	bool ok = false;

	if (name && !(ok = fetch_cancel(name))) {
		struct served *m = models_named(all, name);
		if (!m)
			models_refuse(all, name, 400, &x->refusal);
		else if (loader_stays(all->loader))
			refuse(&x->refusal, 400, "model",
			       "The model %.200s is computed by several ranks and stays as long as they run.", m->name);
		else if (!(ok = loader_unload(all->loader, m, true)))
			refuse(&x->refusal, 400, "model", "The model %.200s is not loaded.", m->name);
	}
	free(name);
	return ok && say_done(x);
}

/* Is answered when the program runs; listeners hear how far it is. */
bool answer_models_fetch(struct exchange *x)
{
	char *name = name_of_body(x);
	bool ok = name && fetch_allowed(x, name);

	if (ok && models_named(x->server->models, name))
		ok = refuse(&x->refusal, 400, "model", "The model %.200s is here already.", name);
	ok = ok && fetch_start(x, name, NULL, false);
	free(name);
	return ok && say_done(x);
}

/* Of those that clients made: files of others are their owner's. */
bool answer_models_remove(struct exchange *x)
{
	struct models *all = x->server->models;
	const char *name = exchange_argument(x, "model");

	if (!name || !*name)
		return refuse(&x->refusal, 400, "model", "model is missing, expected ?model=NAME behind the path");
	if (fetch_cancel(name))
		return say_done(x);
	struct served *m = models_named(all, name);
	if (!m)
		return models_refuse(all, name, 404, &x->refusal);
	if (!m->made)
		return refuse(&x->refusal, 403, "model",
		              "jitserve deletes no model's files; their owner does, with jitrun rm");
	return models_remove(all, m, &x->refusal) && say_done(x);
}

/* ---- /models/sse */

static void take(struct reply *r, const struct answer_event *item, const jit_logprob *top, const char *text)
{
	(void)top;
	if (item->kind == EVENT_TOKEN)
		bytes_add(&r->out, text, item->n_text);
}

static void end(struct reply *r) { (void)r; }

static void fail(struct reply *r, const struct refusal *why)
{
	(void)r;
	(void)why;
}

/* The stream is released by who closes the reply; its pointer is still the name that it is known by. */
static void close_reply(struct reply *r)
{
	model_events_leave(r->stream);
	free(r);
}

/* Events come from the moment on at which a client reads the first line, so that what it asks then is not older. */
bool answer_models_events(struct exchange *x)
{
	static const struct reply_kind kind = { take, end, fail, close_reply };
	static const char begins[] = ": events of models\n\n";
	enum { UNREAD_MAX = 256 << 10 };
	const size_t unread = (size_t)x->server->o.unread_bytes;
	const struct answer_event first = { .kind = EVENT_TOKEN, .id = -1, .n_text = sizeof begins - 1 };
	struct reply *r = calloc(1, sizeof *r);

	if (!r || !(r->stream = model_events_listen(unread < UNREAD_MAX ? unread : UNREAD_MAX))) {
		free(r);
		return refuse(&x->refusal, 503, NULL,
		              atomic_load(&x->server->state) == SERVER_STOPPING
		                      ? "The server is stopping."
		                      : "There is no memory for this request.");
	}
	stream_put(r->stream, &first, NULL, begins);
	r->kind = &kind;
	r->events = true;
	exchange_reads_no_models(x);
	x->reply = r;
	return true;
}
