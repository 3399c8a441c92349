/* server/native_parts.c - the parts of an answer in the form of llama.cpp's server. */
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "runtime/sampling/sampling.h"
#include "server/batcher.h"
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

static void put_numbers(json_t *o, const jit_sampling *s)
{
	static const enum sampling_field order[SAMPLING_FIELDS] = {
#define REQUEST(kinds, name, low, high, zero, at, what) at
#define SAMPLING_FIELD(type, field, library, command_line, request, ...) [request] = SAMPLING_##field,
#include "base/sampling.def"
#undef REQUEST
	};

	for (int i = 0; i < SAMPLING_FIELDS; i++) {
		const struct sampling_row *row = &sampling_rows[order[i]];
		const double value = sampling_value(s, order[i]);
		json_put(o, row->request, row->whole ? json_integer((json_int_t)value) : json_number(value));
	}
}

static json_t *texts(const char *const *list, size_t n)
{
	json_t *o = json_array();

	for (size_t i = 0; i < n; i++)
		json_add(o, json_text(list[i], strlen(list[i])));
	return o;
}

static json_t *names_of(const char *semicolons)
{
	json_t *o = json_array();

	for (const char *at = semicolons; *at; at += strspn(at, ";")) {
		const size_t n = strcspn(at, ";");
		json_add(o, json_text(at, n));
		at += n;
	}
	return o;
}

json_t *native_settings(const struct task *t)
{
	const jit_sampling s = sampling_told(&t->sampling);
	const char *grammar = t->grammar_text ? t->grammar_text : "";
	json_t *o = json_object();

	json_put(o, "seed", json_integer((json_int_t)s.seed));
	put_numbers(o, &s);
	json_put(o, "samplers", names_of(s.samplers));
	json_put(o, "dry_sequence_breakers", texts(s.dry_breakers, (size_t)s.n_dry_breakers));
	json_put(o, "logit_bias", biases(t));
	json_put(o, "max_tokens", json_integer(t->most));
	json_put(o, "ignore_eos", json_boolean(t->ignore_end));
	json_put(o, "n_predict", json_integer(t->most));
	json_put(o, "stop", texts((const char *const *)t->stop, t->n_stop));
	json_put(o, "stop_token_ids", json_ids(t->ends, t->n_ends));
	json_put(o, "grammar", json_text(grammar, strlen(grammar)));
	if (t->limits_told && json_object_update(o, t->limits_told))
		json_put(o, "limits", NULL);
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
