#include "server/api/prompt_tasks.h"

#include "server/engine/batcher.h"
#include "server/request/fields.h"

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

bool request_run(struct exchange *x, enum request_kind kind, request_fn run)
{
	json_t *body = request_read(x->body.p, x->body.n, kind, &x->refusal);

	if (!body)
		return false;
	const struct served *m = exchange_model_of(x, body);
	const bool ok = m && run(x, body, m);
	json_decref(body);
	return ok;
}

bool prompts_run(struct exchange *x, const json_t *body, const struct served *m, const char *field, size_t max,
                 prompts_fn run)
{
	struct prompts p = { .max = max, .context = (size_t)batcher_context(m->batcher) };
	const bool ok = prompts_read(&p, field, field_value(body, field), m->model, &x->refusal) && run(x, body, m, &p);

	prompts_free(&p);
	return ok;
}

bool prompt_tasks(struct task **tasks, unsigned *choices, const json_t *body, const struct served *m, struct prompts *p,
                  task_fn read, struct refusal *r)
{
	*choices = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct task *t = tasks[i] = task_open(m);
		if (!t)
			return no_memory(r);
		t->ids = p->list[i].ids;
		t->n_ids = p->list[i].n;
		p->list[i].ids = NULL;
		if (!task_read(t, body, m->model, batcher_context(m->batcher), r) || !read(t, body, m, r))
			return false;
		t->sampling.seed = tasks[0]->sampling.seed;
		t->first = *choices;
		*choices += t->choices;
	}
	return true;
}

bool model_embeds(const struct served *m, struct refusal *r)
{
	return m->pooling != JIT_POOL_RANK ||
	       refuse(r, 501, "model",
	              "%.100s ranks texts (/v1/rerank), and its files name no way to make a vector of one; --pooling "
	              "does.",
	              m->name);
}

bool model_pools(const struct served *m, struct refusal *r)
{
	return m->pooling != JIT_POOL_NONE ||
	       refuse(r, 400, "model",
	              "%.100s is served with --pooling none: POST /embedding gives a vector of each token, and this "
	              "endpoint has one of a text",
	              m->name);
}

struct task *prompt_texts(const struct served *m, struct prompts *p, struct refusal *r)
{
	struct task *t = task_open(m);

	if (!t || !task_set_texts(t, p->n)) {
		task_release(t);
		no_memory(r);
		return NULL;
	}
	for (size_t i = 0; i < p->n; i++) {
		t->texts[i] = (struct task_text){ p->list[i].ids, p->list[i].n, NULL };
		p->list[i].ids = NULL;
	}
	t->embeds = true;
	t->pooling = m->pooling;
	return t;
}
