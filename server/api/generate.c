/* server/api/generate.c - handing a request to the batcher. */
#include "server/api/generate.h"

#include "base/json_write.h"
#include "grammar/machine/effort.h"
#include "runtime/session/session.h"
#include "runtime/session/session_share.h"
#include "server/engine/batcher.h"
#include "server/engine/sight.h"
#include "server/api/replay.h"
#include "server/request/fields.h"
#include "server/http/server.h"

/* What a whole answer may take in memory before it is sent. */
enum { MAX_OF_WHOLE = 1 << 30 };
/* What the grammars of all choices may take together to be opened, of what one may. */
enum { GRAMMARS = 2 };

const struct served *exchange_model(struct exchange *x, const char *name)
{
	struct models *all = x->server->models;
	struct served *m = x->lease.state == LEASE_HELD ? x->lease.model : models_find(all, name, &x->refusal);

	return m && lease_take(&x->lease, all->loader, m) ? m : NULL;
}

/* By its name, or by a list. A name that was an adapter's when the model was found may be nobody's now. */
static bool choose_adapters(struct exchange *x, struct served *m, const char *name, const json_t *list)
{
	struct models *all = x->server->models;
	const bool named = name && m->adapters && served_adapters_has(m->adapters, name);
	const bool empty = !list || (json_is_array(list) && json_array_size(list) == 0);

	used_adapters_drop(&x->adapters);
	if (!m->adapters)
		return empty ||
		       refuse(&x->refusal, 400, "lora",
		              "lora is given, and the model %.200s has no adapters; --lora names some.", m->name);
	if (name && !named && served_adapters_are_named(m->adapters) && models_named(all, name) != m)
		return models_refuse(all, name, 404, &x->refusal);
	if (named && !empty)
		return refuse(&x->refusal, 400, "lora",
		              "lora is given, and model is the adapter %.199s: expected one of them", name);
	return served_adapters_choose(m->adapters, named ? name : NULL, named ? NULL : list, &x->adapters, &x->refusal);
}

const struct served *exchange_model_of(struct exchange *x, const json_t *body)
{
	const char *name = NULL;
	const struct served *m = field_text(body, "model", &name, &x->refusal) ? exchange_model(x, name) : NULL;

	return m && choose_adapters(x, x->lease.model, name, field_value(body, "lora")) ? m : NULL;
}

/* A request may have its text be shorter than a session's; then its answer ends where that is full. */
static bool fits(struct exchange *x, struct task *t, int context)
{
	size_t longest = 0, n, room = t->context ? (size_t)t->context : (size_t)context;

	for (size_t i = 0; i < task_texts(t); i++)
		longest = (n = task_text(t, i).n) > longest ? n : longest;
	if (room > (size_t)context) {
		refuse(&x->refusal, 400, NULL,
		       "The request asks for a context of %zu tokens, and the server's is %d; ask for less, or raise "
		       "--context.",
		       room, context);
		return refusal_of_tokens(&x->refusal, longest, context, "--context");
	}
	if (longest > room)
		return refuse_tokens(&x->refusal, longest, (int)room, t->context ? "num_ctx" : "--context");
	/* One token can follow a prompt that fills its context, as one of the session's. */
	int64_t max = (int64_t)(room - longest) + 1;
	if (t->context && !t->shifts && !t->embeds && (t->max < 0 || t->max > max))
		t->max = max;
	return true;
}

static bool has_slot(struct exchange *x, const struct task *t, unsigned slots)
{
	return t->slot < (int)slots ||
	       refuse(&x->refusal, 400, "id_slot", "id_slot is %d, expected -1 to %u", t->slot, slots - 1);
}

static bool may_ask(struct exchange *x, unsigned choices)
{
	return choices <= (unsigned)x->server->o.answers ||
	       refuse(&x->refusal, 400, "n",
	              "The request asks for %u answers, n to each prompt; expected at most %ld (--max-answers).",
	              choices, x->server->o.answers);
}

static bool take(const struct served *m, struct task *t, struct refusal *r)
{
	return t->shown.images ? sight_take(m->sight, t, r) : batcher_take(m->batcher, t, r);
}

/* They share steps and memory. */
static bool make_grammars(struct exchange *x, const struct served *m, struct task *const *tasks, size_t n,
                          unsigned choices)
{
	uint64_t steps = (uint64_t)GRAMMARS * SESSION_GRAMMAR_STEPS;
	bool ok = true;

	session_grammar_share(choices);
	for (size_t i = 0; i < n && ok; i++)
		ok = task_make_grammars(tasks[i], m->model, &steps, &x->refusal);
	session_grammar_share(1);
	return ok;
}

static bool begin(struct exchange *x, struct reply *r, const struct served *m, struct task *const *tasks, size_t n)
{
	unsigned choices = 0;

	/* The reply has kept parts of the request. */
	if (json_lacks())
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");

	for (size_t i = 0; i < n; i++) {
		tasks[i]->client = x->client;
		used_adapters_drop(&tasks[i]->adapters);
		used_adapters_copy(&tasks[i]->adapters, &x->adapters);
		if (!fits(x, tasks[i], batcher_context(m->batcher)))
			return false;
		if (!has_slot(x, tasks[i], batcher_parallel(m->batcher)))
			return false;
		choices += tasks[i]->choices;
	}
	if (!tasks[0]->embeds && !may_ask(x, choices))
		return false;
	if (!make_grammars(x, m, tasks, n, choices))
		return false;
	if (x->lane == LANE_QUICK && effort_bound_is_hit()) /* it is done once more where it may take longer */
		return false;
	r->stream = stream_open(choices, r->events ? (size_t)x->server->o.unread_bytes : MAX_OF_WHOLE, !r->events);
	if (!r->stream)
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	for (size_t i = 0; i < n; i++) {
		stream_hold(r->stream);
		tasks[i]->stream = r->stream;
	}
	if (!tasks[0]->action) /* a task that was taken is the engine's */
		replay_describe(x, m, tasks, n);
	for (size_t i = 0; i < n; i++)
		if (!take(m, tasks[i], &x->refusal)) {
			x->header[0] = 0;
			return false;
		}
	if (!tasks[0]->action)
		used_adapters_count(&x->adapters, choices);
	return true;
}

bool generate(struct exchange *x, struct reply *r, const struct served *m, struct task *const *tasks, size_t n)
{
	if (begin(x, r, m, tasks, n)) {
		x->reply = r;
		return true;
	}
	reply_close(r);
	return false;
}
