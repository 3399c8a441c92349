/* server/native_parts.c - the parts of an answer in the form of llama.cpp's server. */
#include <stdlib.h>
#include <string.h>

#include "server/batcher.h"
#include "server/json_write.h"
#include "server/native.h"
#include "server/openai.h"

static const char *stop_type(enum end_reason reason)
{
	switch (reason) {
	case END_TOKEN:
	case END_GRAMMAR: return "eos";
	case END_STOP_TEXT: return "word";
	case END_LENGTH: return "limit";
	case END_CANCELLED: break;
	}
	return "none";
}

static json_t *biases(const struct task *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_bias; i++) {
		json_t *one = json_object();
		json_put(one, "token", json_integer(t->bias[i].id));
		json_put(one, "bias", json_number((double)t->bias[i].bias));
		json_add(list, one);
	}
	return list;
}

json_t *native_settings(const struct task *t)
{
	const jit_sampling *s = &t->sampling;
	json_t *o = json_object(), *stop = json_array();

	for (size_t i = 0; i < t->n_stop; i++)
		json_add(stop, json_text(t->stop[i], strlen(t->stop[i])));
	json_put(o, "seed", json_integer((json_int_t)s->seed));
	json_put(o, "temperature", json_number((double)s->temperature));
	json_put(o, "top_k", json_integer(s->top_k));
	json_put(o, "top_p", json_number((double)s->top_p));
	json_put(o, "min_p", json_number((double)s->min_p));
	json_put(o, "repeat_penalty", json_number((double)s->repeat_penalty));
	json_put(o, "typical_p", json_number((double)s->typical_p));
	json_put(o, "top_n_sigma", json_number((double)s->top_n_sigma));
	json_put(o, "repeat_last_n", json_integer(s->repeat_window));
	json_put(o, "presence_penalty", json_number((double)s->presence_penalty));
	json_put(o, "frequency_penalty", json_number((double)s->frequency_penalty));
	json_put(o, "dynatemp_range", json_number((double)s->dynatemp_range));
	json_put(o, "dynatemp_exponent", json_number((double)s->dynatemp_exponent));
	json_put(o, "xtc_probability", json_number((double)s->xtc_probability));
	json_put(o, "xtc_threshold", json_number((double)s->xtc_threshold));
	json_put(o, "dry_multiplier", json_number((double)s->dry_multiplier));
	json_put(o, "dry_base", json_number((double)s->dry_base));
	json_put(o, "dry_allowed_length", json_integer(s->dry_allowed_length));
	json_put(o, "dry_penalty_last_n", json_integer(s->dry_window));
	json_put(o, "mirostat", json_integer(s->mirostat));
	json_put(o, "mirostat_tau", json_number((double)s->mirostat_tau));
	json_put(o, "mirostat_eta", json_number((double)s->mirostat_eta));
	json_put(o, "min_keep", json_integer(s->min_keep));
	json_put(o, "logit_bias", biases(t));
	json_put(o, "adaptive_target", json_integer(-1)); /* off: there is no such sampler */
	json_put(o, "adaptive_decay", json_integer(0));
	json_put(o, "max_tokens", json_integer(t->most));
	json_put(o, "ignore_eos", json_boolean(t->ignore_end));
	json_put(o, "n_predict", json_integer(t->most));
	json_put(o, "stop", stop);
	return o;
}

/* The prompt as the model reads it, with its special tokens. */
static json_t *prompt_of(const struct served *m, const struct task *t)
{
	size_t n = 0;
	char *text = models_text(m->model, t->ids, t->n_ids, &n);
	json_t *o = text ? json_text(text, n) : NULL;

	free(text);
	return o;
}

void native_put_end(json_t *j, const struct served *m, const struct task *t, const struct native_end *e)
{
	const char *word = e->reason == END_STOP_TEXT && e->stop >= 0 ? t->stop[e->stop] : "";
	uint64_t all = e->numbers->prompt + e->numbers->generated;
	bool full = e->reason == END_LENGTH && all >= (uint64_t)batcher_context(m->batcher);

	json_put(j, "model", json_text(m->name, strlen(m->name)));
	json_put(j, "generation_settings", native_settings(t));
	json_put(j, "prompt", prompt_of(m, t));
	json_put(j, "has_new_line", json_boolean(e->n && memchr(e->text, '\n', e->n)));
	json_put(j, "truncated", json_boolean(full));
	json_put(j, "stop_type", json_string(stop_type(e->reason)));
	json_put(j, "stopping_word", json_text(word, strlen(word)));
	json_put(j, "tokens_cached", json_integer((json_int_t)all));
	json_put(j, "timings", openai_timings(e->numbers));
}

json_t *native_whole(const struct served *m, const struct task *t, const struct native_end *e)
{
	json_t *j = json_object();

	json_put(j, "content", json_text(e->text, e->n));
	json_put(j, "stop", json_true());
	json_put(j, "tokens_predicted", json_integer((json_int_t)e->numbers->generated));
	json_put(j, "tokens_evaluated", json_integer((json_int_t)e->numbers->prompt));
	native_put_end(j, m, t, e);
	return j;
}
