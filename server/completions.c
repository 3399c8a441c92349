/* server/completions.c - /v1/completions: texts that go on. */
#include <stdlib.h>
#include <string.h>

#include "server/endpoints.h"
#include "server/batcher.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/infill.h"
#include "server/openai.h"
#include "server/prompts.h"
#include "server/request_fields.h"
#include "server/server.h"

/* logprobs is a number here; some clients send true. */
static bool read_logprobs(int *out, const json_t *body, struct refusal *r)
{
	int64_t most = -1;

	if (json_is_boolean(field_value(body, "logprobs")))
		most = json_is_true(field_value(body, "logprobs")) ? 0 : -1;
	else if (!field_integer(body, "logprobs", 0, JIT_LOGPROBS_MOST, &most, r))
		return false;
	if (!field_integer(body, "n_probs", 0, JIT_LOGPROBS_MOST, &most, r))
		return false;
	*out = (int)most;
	return true;
}

/* A task for each prompt; their choices are numbered through. */
static bool open_tasks(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p,
                       struct task **tasks)
{
	unsigned choices = 0;

	for (size_t i = 0; i < p->n; i++) {
		tasks[i] = task_open(m);
		if (!tasks[i])
			return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
		struct task *t = tasks[i];
		t->ids = p->list[i].ids;
		t->n_ids = p->list[i].n;
		p->list[i].ids = NULL;
		const bool filled = json_string_length(field_value(body, "suffix")) > 0;
		if (!task_read(t, body, m->model, batcher_context(m->batcher), &x->refusal) ||
		    (filled && !infill_end(t, m->model, &x->refusal)) ||
		    !read_logprobs(&t->logprobs, body, &x->refusal) || !task_read_prompt_top(t, body, &x->refusal))
			return false;
		t->sampling.seed = tasks[0]->sampling.seed;
		t->first = choices;
		choices += t->choices;
	}
	return true;
}

/* The prompts stand before the answers; with log probabilities, those of their tokens stand before the answers', too.
 */
static bool read_echo(struct task **tasks, const struct prompts *p, const json_t *body, bool *echo, struct refusal *r)
{
	if (!field_flag(body, "echo", echo, r))
		return false;
	for (size_t i = 0; i < p->n; i++)
		tasks[i]->scores = tasks[i]->prompt_top >= 0 || (*echo && tasks[i]->logprobs >= 0);
	return true;
}

/* By the model's template, where that writes gaps. */
static bool fill_by_template(struct exchange *x, const struct served *m, struct prompt *p, const char *suffix)
{
	struct infill_text out = { 0 };
	const bool ok = infill_by_template(m, json_string_value(p->text), suffix, x->now, &out, &x->refusal);

	free(out.text);
	free(ok ? p->ids : out.ids);
	if (ok) {
		p->ids = out.ids;
		p->n = out.n_ids;
	}
	return ok;
}

static bool fill_one(struct exchange *x, const struct served *m, struct prompt *p, const int32_t *behind,
                     size_t n_behind)
{
	jit_error err = { 0 };
	struct infill o = { .suffix = behind, .n_suffix = n_behind, .most = SIZE_MAX };
	int32_t *before = NULL, *all = NULL;
	size_t n = 0;

	if (!p->text) {
		o.prefix = p->ids;
		o.n_prefix = p->n;
	} else if (models_go_on(m->model, json_string_value(p->text), true, &before, &o.n_prefix, &err)) {
		o.prefix = before;
	} else {
		return refuse_error(&x->refusal, "prompt", &err);
	}
	bool ok = infill_make(&o, m, "suffix", &all, &n, &x->refusal);
	free(before);
	if (!ok)
		return false;
	free(p->ids);
	p->ids = all;
	p->n = n;
	return true;
}

/* With a suffix the prompts stand before gaps. */
static bool fill_in(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p)
{
	jit_error err = { 0 };
	const char *suffix = NULL;
	int32_t *behind = NULL;
	size_t n_behind = 0;
	bool ok = true;

	if (!field_text(body, "suffix", &suffix, &x->refusal) || !suffix || !*suffix)
		return !x->refusal.status;
	if (field_value(body, "echo") && !json_is_false(field_value(body, "echo")))
		return refuse(&x->refusal, 400, "echo", "echo and suffix cannot both be given");
	if (!models_go_on(m->model, suffix, false, &behind, &n_behind, &err))
		return refuse_error(&x->refusal, "suffix", &err);
	const bool by_template =
		infill_in_template(m->template_text ? m->template_text : models_template(m->model, NULL));
	for (size_t i = 0; ok && i < p->n; i++)
		ok = by_template && p->list[i].text && json_string_length(p->list[i].text)
		             ? fill_by_template(x, m, &p->list[i], suffix)
		             : fill_one(x, m, &p->list[i], behind, n_behind);
	free(behind);
	return ok;
}

static bool begin(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p)
{
	struct task *tasks[PROMPTS_MOST] = { 0 };
	bool echo = false;

	bool ok = open_tasks(x, body, m, p, tasks) && read_echo(tasks, p, body, &echo, &x->refusal);
	struct openai_reply *o = ok ? openai_reply_open(x, m, tasks, (unsigned)p->n, body, false) : NULL;
	ok = o && openai_prompt_logprobs(o, &x->refusal);
	for (size_t i = 0; ok && echo && i < p->n; i++)
		ok = openai_echo(o, (unsigned)i, p->list[i].text, &x->refusal);
	if (o && !ok)
		reply_close(&o->base);
	ok = ok && generate(x, &o->base, m, tasks, p->n);
	for (size_t i = 0; i < p->n; i++)
		task_release(tasks[i]);
	return ok;
}

bool answer_completions(struct exchange *x)
{
	json_t *body = request_read(x->body.p, x->body.n, REQUEST_TEXT, &x->refusal);
	const char *name = NULL;
	struct prompts p = { 0 };

	if (!body)
		return false;
	const struct served *m = field_text(body, "model", &name, &x->refusal) ? exchange_model(x, name) : NULL;
	bool ok = m && prompts_read(&p, "prompt", field_value(body, "prompt"), m->model, &x->refusal) &&
	          fill_in(x, body, m, &p) && begin(x, body, m, &p);
	prompts_free(&p);
	json_decref(body);
	return ok;
}
