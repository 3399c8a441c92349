/* server/completions/completions.c - /v1/completions: texts that go on. */
#include <stdlib.h>
#include <string.h>

#include "server/api/endpoints.h"
#include "server/engine/batcher.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/infill.h"
#include "server/completions/openai.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"

/* logprobs is a number here; some clients send true. */
static bool read_logprobs(int *out, const json_t *body, struct refusal *r)
{
	int64_t max = -1;

	if (json_is_boolean(field_value(body, "logprobs")))
		max = json_is_true(field_value(body, "logprobs")) ? 0 : -1;
	else if (!field_integer(body, "logprobs", 0, JIT_LOGPROBS_MOST, &max, r))
		return false;
	if (!field_integer(body, "n_probs", 0, JIT_LOGPROBS_MOST, &max, r))
		return false;
	*out = (int)max;
	return true;
}

static bool read_own(struct task *t, const json_t *body, const struct served *m, struct refusal *r)
{
	const bool filled = json_string_length(field_value(body, "suffix")) > 0;

	return (!filled || infill_end(t, m->model, r)) && read_logprobs(&t->logprobs, body, r) &&
	       task_read_prompt_top(t, body, r);
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
	struct infill o = { .suffix = behind, .n_suffix = n_behind, .max = SIZE_MAX };
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
	struct task *tasks[PROMPTS_MAX] = { 0 };
	unsigned choices;
	bool echo = false;

	if (!fill_in(x, body, m, p))
		return false;
	bool ok = prompt_tasks(tasks, &choices, body, m, p, read_own, &x->refusal) &&
	          read_echo(tasks, p, body, &echo, &x->refusal);
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

static bool run(struct exchange *x, json_t *body, const struct served *m)
{
	return prompts_run(x, body, m, "prompt", 0, begin);
}

bool answer_completions(struct exchange *x) { return request_run(x, REQUEST_TEXT, run); }
