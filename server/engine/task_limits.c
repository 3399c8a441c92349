/* server/engine/task_limits.c - what bounds the choice of tokens beside a grammar, as requests ask for it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session_limits.h"
#include "server/request/fields.h"
#include "server/engine/task.h"

/* What is read of a request, until it is opened. */
struct reading {
	struct session_limits_options o;
	int32_t *allowed;
	struct session_tokens *words;
	const char **texts;
	int32_t vocab;
};

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* A list of tokens in an array; number: its place in `name`, -1: it is the field itself. */
static bool read_ids(const json_t *list, const char *name, long number, int32_t vocab, int32_t **ids, size_t *n,
                     struct refusal *r)
{
	json_t *one;
	size_t i;

	*ids = malloc((json_array_size(list) + 1) * sizeof **ids);
	if (!*ids)
		return no_memory(r);
	json_array_foreach(list, i, one)
	{
		const json_int_t id = json_integer_value(one);
		if (json_is_integer(one) && id >= 0 && id < vocab) {
			(*ids)[(*n)++] = (int32_t)id;
			continue;
		}
		return number < 0 ? refuse(r, 400, name, "%s[%zu] is no token, expected an integer from 0 to %d", name,
		                           i, vocab - 1)
		                  : refuse(r, 400, name, "%s[%ld][%zu] is no token, expected an integer from 0 to %d",
		                           name, number, i, vocab - 1);
	}
	return true;
}

static bool read_allowed(struct reading *w, const json_t *body, struct refusal *r)
{
	const json_t *list = field_array(body, "allowed_token_ids", r);

	if (r->status || !list)
		return r->status == 0;
	if (!read_ids(list, "allowed_token_ids", -1, w->vocab, &w->allowed, &w->o.n_allowed, r))
		return false;
	w->o.allowed = w->allowed;
	return true;
}

/* An array of the body and zeroed memory for one thing of `each` bytes for every element. *list NULL: there is no such
 * field. False: refused. */
static bool begin_list(const json_t *body, const char *name, const char *what, size_t each, const json_t **list,
                       void **memory, struct refusal *r)
{
	*list = field_array(body, name, r);
	if (r->status || !*list)
		return r->status == 0;
	if (json_array_size(*list) > TASK_MAX_STOPS)
		return refuse(r, 400, name, "%s has more than %d %s", name, TASK_MAX_STOPS, what);
	*memory = calloc(json_array_size(*list) + 1, each);
	return *memory || no_memory(r);
}

/* Sequences of tokens, as transformers has them. */
static bool read_sequences(struct reading *w, const json_t *body, struct refusal *r)
{
	static const char name[] = "bad_words_ids";
	const json_t *list;
	json_t *one;
	size_t i;

	if (!begin_list(body, name, "sequences", sizeof *w->words, &list, (void **)&w->words, r))
		return false;
	w->o.words = w->words;
	json_array_foreach(list, i, one)
	{
		struct session_tokens *word = &w->words[w->o.n_words++];
		int32_t *ids = NULL;
		if (!json_is_array(one) || json_array_size(one) == 0)
			return refuse(r, 400, name, "%s[%zu] is %s, expected an array of tokens", name, i,
			              json_is_array(one) ? "empty" : json_kind(one));
		bool ok = read_ids(one, name, (long)i, w->vocab, &ids, &word->n, r);
		word->ids = ids;
		if (!ok)
			return false;
	}
	return true;
}

static bool read_words(struct reading *w, const json_t *body, struct refusal *r)
{
	static const char name[] = "bad_words";
	const json_t *list;
	json_t *one;
	size_t i;

	if (!begin_list(body, name, "texts", sizeof *w->texts, &list, (void **)&w->texts, r))
		return false;
	w->o.texts = w->texts;
	json_array_foreach(list, i, one)
	{
		const char *text = json_string_value(one);
		if (!text || !*text || strlen(text) != json_string_length(one))
			return refuse(r, 400, name, "%s[%zu] is %s, expected a text that is not empty and has no NUL",
			              name, i,
			              !text   ? json_kind(one)
			              : *text ? "a text with NUL"
			                      : "an empty text");
		w->texts[w->o.n_texts++] = text;
	}
	return true;
}

static bool read_min(struct task *t, const json_t *body, struct refusal *r)
{
	const char *name = field_value(body, "min_tokens") ? "min_tokens" : "min_new_tokens";

	if (!field_integer(body, "min_new_tokens", 0, INT_MAX, &t->min, r) ||
	    !field_integer(body, "min_tokens", 0, INT_MAX, &t->min, r))
		return false;
	return t->max < 0 || t->min <= t->max ||
	       refuse(r, 400, name, "%s is %lld, and the answer may have %lld tokens", name, (long long)t->min,
	              (long long)t->max);
}

/* By all the names that it has; -1: the reasoning is as long as the model makes it. */
static bool read_budget(struct task *t, const json_t *body, struct refusal *r)
{
	static const char *const names[] = { "thinking_budget", "thinking_budget_tokens", "thinking_token_budget",
		                             "reasoning_budget", "reasoning_budget_tokens" };
	json_t *thinking = field_value(body, "thinking"), *reasoning = field_value(body, "reasoning");
	const char *message = NULL;

	if (json_is_object(thinking) && !field_integer(thinking, "budget_tokens", 0, INT_MAX, &t->budget, r))
		return refuse_within(r, "thinking");
	if (json_is_object(reasoning) && !field_integer(reasoning, "max_tokens", 0, INT_MAX, &t->budget, r))
		return refuse_within(r, "reasoning");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!field_integer(body, names[i], -1, INT_MAX, &t->budget, r))
			return false;
	if (!field_text(body, "reasoning_budget_message", &message, r))
		return false;
	if (message && strlen(message) > 4096)
		return refuse(r, 400, "reasoning_budget_message",
		              "reasoning_budget_message has %zu bytes, expected at most 4096", strlen(message));
	if (!message)
		return true;
	free(t->budget_message);
	t->budget_message = strdup(message);
	return t->budget_message || no_memory(r);
}

/* Kept with the request's meaning: which tokens follow is told by it. */
static void tell(struct task *t, const json_t *body)
{
	static const char *const names[] = { "allowed_token_ids", "bad_words", "bad_words_ids" };
	json_t *v;

	t->limits_told = json_object();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if ((v = field_value(body, names[i])))
			json_put(t->limits_told, names[i], json_incref(v));
	if (t->min)
		json_put(t->limits_told, "min_tokens", json_integer(t->min));
	if (t->keeps_stop)
		json_put(t->limits_told, "include_stop_str_in_output", json_true());
	if (t->budget >= 0)
		json_put(t->limits_told, "reasoning_budget", json_integer(t->budget));
	if (t->budget >= 0 && t->budget_message)
		json_put(t->limits_told, "reasoning_budget_message", json_string(t->budget_message));
}

static bool open_limits(struct task *t, struct reading *w, const jit_model *model, struct refusal *r)
{
	struct error err = { 0 };

	w->o.min = t->min;
	w->o.ends = t->ends;
	w->o.n_ends = t->n_ends;
	w->o.budget = t->budget;
	w->o.message = t->budget_message;
	if (!w->o.n_allowed && !w->o.n_words && !w->o.n_texts && t->min <= 0 && t->budget < 0)
		return true;
	t->limits = session_limits_open(model, &w->o, &err);
	return t->limits ||
	       refuse(r, err.code == ERROR_MEMORY ? 503 : 400, w->o.n_texts ? "bad_words" : NULL, "%s", err.text);
}

bool task_read_limits(struct task *t, const json_t *body, const jit_model *model, struct refusal *r)
{
	jit_model_info info = JIT_MODEL_INFO();
	struct reading w = { 0 };
	bool kept = false;

	jit_model_get_info(model, &info, NULL);
	w.vocab = info.vocab;
	bool ok = read_allowed(&w, body, r) && read_sequences(&w, body, r) && read_words(&w, body, r) &&
	          read_min(t, body, r) && read_budget(t, body, r) && field_flag(body, "no_stop_trim", &kept, r) &&
	          field_flag(body, "include_stop_str_in_output", &kept, r);
	t->keeps_stop = kept;
	ok = ok && open_limits(t, &w, model, r);
	if (ok)
		tell(t, body);
	for (size_t i = 0; i < w.o.n_words; i++)
		free((int32_t *)(uintptr_t)w.words[i].ids);
	free(w.allowed);
	free(w.words);
	free(w.texts);
	return ok;
}

bool task_blame_dead_end(const struct task *t, char param[80], char why[512])
{
	static const char *const limits[] = { "allowed_token_ids", "bad_words", "bad_words_ids", "min_tokens" };
	const char *name[3 + sizeof limits / sizeof *limits];
	size_t n = 0, at = 0;

	if (t->grammar != JIT_GRAMMAR_NONE && t->grammar_field)
		name[n++] = t->grammar_field;
	if (t->biased)
		name[n++] = "logit_bias";
	if (t->ignore_end)
		name[n++] = "ignore_eos";
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (json_object_get(t->limits_told, limits[i]))
			name[n++] = limits[i];
	for (size_t i = 0; i < n && at < 512; i++)
		at += (size_t)snprintf(why + at, 512 - at, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ", name[i]);
	if (n && at < 512)
		snprintf(why + at, 512 - at, " leave%s no token that may follow here", n > 1 ? "" : "s");
	snprintf(param, 80, "%s", n ? name[0] : "");
	return n > 0;
}

bool task_read_prompt_top(struct task *t, const json_t *body, struct refusal *r)
{
	int64_t top = -1;

	if (!field_integer(body, "prompt_logprobs", 0, JIT_LOGPROBS_MOST, &top, r))
		return false;
	t->prompt_top = (int)top;
	return true;
}
