/* server/api/settings.c - what a task's tokens are chosen by, as JSON. */
#include "server/api/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "runtime/sampling/sampling.h"

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

json_t *task_settings(const struct task *t)
{
	const jit_sampling s = sampling_told(&t->sampling);
	const char *grammar = t->grammar_text ? t->grammar_text : "";
	json_t *o = json_object();

	json_put(o, "seed", json_integer((json_int_t)s.seed));
	put_numbers(o, &s);
	json_put(o, "samplers", names_of(s.samplers));
	json_put(o, "dry_sequence_breakers", texts(s.dry_breakers, (size_t)s.n_dry_breakers));
	json_put(o, "logit_bias", biases(t));
	json_put(o, "max_tokens", json_integer(t->max));
	json_put(o, "ignore_eos", json_boolean(t->ignore_end));
	json_put(o, "n_predict", json_integer(t->max));
	json_put(o, "stop", texts((const char *const *)t->stop, t->n_stop));
	json_put(o, "stop_token_ids", json_ids(t->ends, t->n_ends));
	json_put(o, "grammar", json_text(grammar, strlen(grammar)));
	if (t->limits_told && json_object_update(o, t->limits_told))
		json_put(o, "limits", NULL);
	return o;
}
