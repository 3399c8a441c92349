/* server/engine/task.c - what the batcher is asked to generate. */
#include "server/engine/task.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/bytes.h"
#include "include/jitrun_tokens.h"
#include "runtime/sampling/dry.h"
#include "runtime/sampling/sampling.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"
#include "runtime/sampling/stop.h"
#include "server/engine/sight.h"
#include "server/request/fields.h"

struct task *task_open(const struct served *m)
{
	struct task *t = calloc(1, sizeof *t);
	uint64_t seed = 0;

	if (!t)
		return NULL;
	t->references = 1;
	t->max = m->max;
	t->logprobs = -1;
	t->slot = -1;
	t->prompt_top = -1;
	t->budget = m->has_budget ? m->budget : -1;
	t->budget_message = m->budget_message ? strdup(m->budget_message) : NULL;
	t->choices = 1;
	t->sampling = m->sampling;
	for (unsigned i = 0; i < m->n_stop; i++)
		if ((t->stop[t->n_stop] = strdup(m->stop[i])))
			t->n_stop++;
	t->kept_stops = t->n_stop;
	t->additional = m->additional;
	if (m->has_seed)
		return t;
	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
		seed = (uint64_t)(uintptr_t)t;
	t->sampling.seed = seed >> 33; /* a seed that any client can read and send back */
	return t;
}

void task_hold(struct task *t) { __atomic_add_fetch(&t->references, 1, __ATOMIC_RELAXED); }

void task_release(struct task *t)
{
	if (!t || __atomic_sub_fetch(&t->references, 1, __ATOMIC_ACQ_REL))
		return;
	if (t->stream)
		stream_release(t->stream);
	used_adapters_drop(&t->adapters);
	for (size_t i = 0; i < t->n_breakers; i++)
		free(t->breakers[i]);
	for (size_t i = 0; i < t->n_stop; i++)
		free(t->stop[i]);
	for (size_t i = 0; t->texts && i < t->n_texts; i++) {
		free(t->texts[i].ids);
		free(t->texts[i].types);
	}
	free(t->texts);
	free(t->ids);
	prompt_close(&t->shown);
	if (t->sight)
		sight_forget(t->sight, t->pixels);
	free(t->ends);
	free(t->bias);
	free(t->samplers);
	free(t->opened);
	free(t->functions);
	for (unsigned i = 0; t->grammars && i < t->choices; i++)
		session_grammar_close(t->grammars[i]);
	free(t->grammars);
	free(t->grammar_text);
	json_decref(t->grammar_paths);
	json_decref(t->warnings);
	free(t->begins.ids);
	free(t->continues.ids);
	session_limits_close(t->limits);
	free(t->budget_message);
	json_decref(t->limits_told);
	free(t->file);
	free(t);
}

size_t task_texts(const struct task *t) { return t->texts ? t->n_texts : 1; }

struct task_text task_text(const struct task *t, size_t i)
{
	return t->texts ? t->texts[i] : (struct task_text){ t->ids, t->n_ids, NULL };
}

bool task_set_texts(struct task *t, size_t n)
{
	t->texts = calloc(n + 1, sizeof *t->texts);
	t->n_texts = t->texts ? n : 0;
	return t->texts != NULL;
}

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* ---- numbers */

static bool read_number(jit_sampling *s, enum sampling_field f, const char *name, const json_t *body, struct refusal *r)
{
	const struct sampling_row *row = &sampling_rows[f];
	double value = sampling_value(s, f);
	int64_t whole = (int64_t)value;

	if (row->whole ? !field_integer(body, name, (int64_t)row->request_low, (int64_t)row->request_high, &whole, r)
	               : !field_number(body, name, row->request_low, row->request_high, &value, r))
		return false;
	sampling_put(s, f, row->whole ? (double)whole : value);
	return true;
}

static bool read_numbers(jit_sampling *s, const json_t *body, struct refusal *r)
{
	for (size_t i = 0; i < n_sampling_aliases; i++)
		if (!read_number(s, sampling_aliases[i].field, sampling_aliases[i].name, body, r))
			return false;
	for (int i = 0; i < SAMPLING_FIELDS; i++)
		if (!read_number(s, (enum sampling_field)i, sampling_rows[i].request, body, r))
			return false;
	return true;
}

/* In a jit_sampling 0 stands for what is usual; in a request it is 0: as good as that is the least of numbers. */
static void mean_zero(jit_sampling *s, enum sampling_field f, const json_t *body)
{
	if (sampling_rows[f].zero_is_min && sampling_value(s, f) <= 0 && field_value(body, sampling_rows[f].request))
		sampling_put(s, f, 1e-30);
}

static bool mean_zeros(jit_sampling *s, const json_t *body, int context, struct refusal *r)
{
	const json_t *window = field_value(body, "repeat_last_n"), *dry = field_value(body, "dry_penalty_last_n");

	if (s->adaptive_target < 0) /* off, as llama.cpp has it */
		s->adaptive_target = 0;
	else
		mean_zero(s, SAMPLING_adaptive_target, body);
	for (int i = 0; i < SAMPLING_FIELDS; i++)
		if (i != SAMPLING_adaptive_target)
			mean_zero(s, (enum sampling_field)i, body);
	s->top_p = s->top_p > 1 ? 1 : s->top_p;
	s->typical_p = s->typical_p > 1 ? 1 : s->typical_p;
	s->top_k = s->top_k < 0 ? 0 : s->top_k;
	/* vLLM's penalty looks at the whole text. */
	if (field_value(body, "repetition_penalty") && !field_value(body, "repeat_penalty") && !window)
		s->repeat_window = context;
	if (window && s->repeat_window == 0) {
		s->repeat_penalty = 1;
		s->presence_penalty = s->frequency_penalty = 0;
	}
	if (s->repeat_window < 0)
		s->repeat_window = context;
	if (dry && s->dry_window == 0)
		s->dry_multiplier = 0;
	if (field_value(body, "dry_base") && s->dry_base < 1)
		s->dry_base = 1.75f;
	return !field_value(body, "dry_allowed_length") || s->dry_allowed_length > 0 || s->dry_multiplier <= 0 ||
	       refuse(r, 400, "dry_allowed_length", "dry_allowed_length is 0, expected at least 1");
}

/* ---- lists */

/* What texts a field may have. */
struct texts_max {
	const char *name;
	size_t n, bytes; /* of them, and of each */
};
static const struct texts_max stops_max = { "stop", TASK_MAX_STOPS, STOP_BYTES },
			      breakers_max = { "dry_sequence_breakers", DRY_BREAKERS, DRY_BREAKER_BYTES };

static bool add_text(char **list, size_t *n, const json_t *v, const struct texts_max *max, struct refusal *r)
{
	const char *name = max->name;

	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return refuse(r, 400, name, "%s has something that is no text", name);
	if (json_string_length(v) == 0)
		return true;
	if (*n == max->n)
		return refuse(r, 400, name, "%s has more than %zu texts", name, max->n);
	if (json_string_length(v) > max->bytes)
		return refuse(r, 400, name, "%s has a text of %zu bytes, expected at most %zu", name,
		              json_string_length(v), max->bytes);
	list[*n] = strdup(json_string_value(v));
	return list[(*n)++] || no_memory(r);
}

/* A text or an array of texts. */
static bool read_texts(char **list, size_t *n, const json_t *body, const struct texts_max *max, struct refusal *r)
{
	const json_t *v = field_value(body, max->name), *one;
	size_t i;

	if (!v || json_is_string(v))
		return !v || add_text(list, n, v, max, r);
	if (!json_is_array(v))
		return refuse(r, 400, max->name, "%s is neither a text nor an array of texts", max->name);
	json_array_foreach(v, i, one)
	{
		if (!add_text(list, n, one, max, r)) {
			*n -= *n && !list[*n - 1];
			return false;
		}
	}
	return true;
}

static bool add_bias(struct task *t, int64_t id, const json_t *value, const jit_model *model, struct refusal *r)
{
	jit_model_info info = JIT_MODEL_INFO();
	double bias = json_is_false(value) ? -INFINITY : json_number_value(value);

	jit_model_get_info(model, &info, NULL);
	if (id < 0 || id >= info.vocab)
		return refuse(r, 400, "logit_bias", "logit_bias has token %lld, expected 0 to %d", (long long)id,
		              info.vocab - 1);
	if (!json_is_number(value) && !json_is_false(value))
		return refuse(r, 400, "logit_bias", "logit_bias of token %lld is no number", (long long)id);
	if (!array_grow((void **)&t->bias, &t->bias_capacity, t->n_bias + 1, sizeof *t->bias))
		return no_memory(r);
	t->bias[t->n_bias++] = (jit_logit_bias){ (int32_t)id, (float)bias };
	return true;
}

/* {"15043": -1, "text": -1} or [[15043, -1], ["text", false]]: the tokens of a text, each. */
static bool add_bias_of(struct task *t, const json_t *key, const json_t *value, const jit_model *model,
                        struct refusal *r)
{
	int32_t *ids = NULL;
	size_t n = 0;
	jit_error err = { 0 };
	bool ok = true;

	if (json_is_integer(key))
		return add_bias(t, json_integer_value(key), value, model, r);
	if (!json_is_string(key))
		return refuse(r, 400, "logit_bias",
		              "logit_bias has a pair that begins with neither a token nor a text");
	if (jit_model_tokenize(model, json_string_value(key), json_string_length(key), 0, 0, &ids, &n, &err) != JIT_OK)
		return refuse_error(r, "logit_bias", &err);
	for (size_t i = 0; ok && i < n; i++)
		ok = add_bias(t, ids[i], value, model, r);
	free(ids);
	return ok;
}

static bool read_bias(struct task *t, const json_t *body, const jit_model *model, struct refusal *r)
{
	json_t *v = field_value(body, "logit_bias"), *value;
	const char *name;
	size_t i;

	if (v && !json_is_object(v) && !json_is_array(v))
		return refuse(r, 400, "logit_bias", "logit_bias is neither an object nor an array");
	t->biased = v != NULL;
	json_object_foreach(v, name, value)
	{
		char *end;
		long long id = strtoll(name, &end, 10);
		bool text = *end || end == name;
		json_t *key = text ? json_string(name) : json_integer(id);
		bool ok = key ? add_bias_of(t, key, value, model, r) : no_memory(r);
		json_decref(key);
		if (!ok)
			return false;
	}
	json_array_foreach(v, i, value)
	{
		if (!json_is_array(value) || json_array_size(value) != 2)
			return refuse(r, 400, "logit_bias", "logit_bias has something that is no pair");
		if (!add_bias_of(t, json_array_get(value, 0), json_array_get(value, 1), model, r))
			return false;
	}
	return true;
}

bool task_ban_ends(struct task *t, const jit_model *model, struct refusal *r)
{
	jit_model_info info = JIT_MODEL_INFO();

	jit_model_get_info(model, &info, NULL);
	for (int32_t id = 0; id < info.vocab; id++) {
		if (!jit_model_is_end(model, id))
			continue;
		if (!array_grow((void **)&t->bias, &t->bias_capacity, t->n_bias + 1, sizeof *t->bias))
			return no_memory(r);
		t->bias[t->n_bias++] = (jit_logit_bias){ id, -INFINITY };
	}
	t->ignore_end = true;
	return true;
}

/* Names of samplers: an array, or one text with semicolons between. */
static bool read_samplers(struct task *t, const json_t *body, struct refusal *r)
{
	const json_t *v = field_value(body, "samplers"), *one;
	struct bytes names = { 0 };
	struct sampler_order order;
	struct error e = { 0 };
	size_t i;

	if (!v)
		return true;
	if (!json_is_array(v) && !json_is_string(v))
		return refuse(r, 400, "samplers", "samplers is neither an array of names nor a text");
	if (json_is_string(v))
		bytes_text(&names, json_string_value(v));
	json_array_foreach(v, i, one)
	{
		bytes_text(&names, i ? ";" : "");
		bytes_text(&names, json_is_string(one) ? json_string_value(one) : "?");
	}
	bytes_add(&names, "", 1);
	t->samplers = names.lost ? NULL : names.p;
	if (names.lost)
		bytes_free(&names);
	if (!t->samplers)
		return no_memory(r);
	return sampler_order_parse(&order, t->samplers, &e) || refuse(r, 400, "samplers", "%s", e.text);
}

/* Tokens that end an answer, beside the model's own. */
static bool read_ends(struct task *t, const json_t *body, const jit_model *model, struct refusal *r)
{
	json_t *v = field_array(body, "stop_token_ids", r), *one;
	jit_model_info info = JIT_MODEL_INFO();
	size_t i;

	if (json_array_size(v) > TASK_MAX_STOPS)
		return refuse(r, 400, "stop_token_ids", "stop_token_ids has more than %d tokens", TASK_MAX_STOPS);
	jit_model_get_info(model, &info, NULL);
	if (v && !(t->ends = calloc(json_array_size(v) + 1, sizeof *t->ends)))
		return no_memory(r);
	json_array_foreach(v, i, one)
	{
		const json_int_t id = json_integer_value(one);
		if (!json_is_integer(one) || id < 0 || id >= info.vocab)
			return refuse(r, 400, "stop_token_ids",
			              "stop_token_ids[%zu] is no token, expected an integer from 0 to %d", i,
			              info.vocab - 1);
		t->ends[t->n_ends++] = (int32_t)id;
	}
	return r->status == 0;
}

bool task_ends_at(const struct task *t, int32_t id)
{
	for (size_t i = 0; i < t->n_ends; i++)
		if (t->ends[i] == id)
			return true;
	return false;
}

/* ---- all of it */

static bool read_seed(struct task *t, const json_t *body, struct refusal *r)
{
	int64_t seed = -1;

	if (!field_integer(body, "seed", -1, INT64_MAX, &seed, r))
		return false;
	if (seed >= 0)
		t->sampling.seed = (uint64_t)seed;
	return true;
}

/* Only events have a place for what is told of a prompt on the way. */
static bool read_telling(struct task *t, const json_t *body, struct refusal *r)
{
	bool stream = false;

	if (!field_flag(body, "stream", &stream, r) || !field_flag(body, "return_progress", &t->progress, r) ||
	    !field_flag(body, "timings_per_token", &t->timings, r))
		return false;
	t->progress = t->progress && stream;
	return true;
}

static bool read_lengths(struct task *t, const json_t *body, struct refusal *r)
{
	int64_t choices = 1, slot = -1;
	bool ignore = false;

	if (!field_integer(body, "max_new_tokens", -1, INT_MAX, &t->max, r) ||
	    !field_integer(body, "n_predict", -1, INT_MAX, &t->max, r) ||
	    !field_integer(body, "max_tokens", -1, INT_MAX, &t->max, r) ||
	    !field_integer(body, "max_completion_tokens", -1, INT_MAX, &t->max, r) ||
	    !field_integer(body, "n_ctx", 0, INT_MAX, &t->context, r) ||
	    !field_integer(body, "num_ctx", 0, INT_MAX, &t->context, r) ||
	    !field_integer(body, "n_cmpl", 1, TASK_MAX_CHOICES, &choices, r) ||
	    !field_integer(body, "n", 1, TASK_MAX_CHOICES, &choices, r) ||
	    !field_flag(body, "ignore_eos", &ignore, r) || !field_integer(body, "id_slot", -1, SLOTS_MAX - 1, &slot, r))
		return false;
	t->slot = (int)slot;
	t->choices = (unsigned)choices;
	t->ignore_end = ignore;
	return true;
}

/* Where a request names none, the model's own texts end its answers, and are told by their names as well. */
static bool read_stop(struct task *t, const json_t *body, const jit_model *model, struct refusal *r)
{
	const char *text;

	if (field_value(body, "stop")) /* instead of those that are kept with the model */
		while (t->kept_stops)
			free(t->stop[--t->kept_stops]), t->n_stop--;
	if (!read_texts(t->stop, &t->n_stop, body, &stops_max, r))
		return false;
	if (t->n_stop)
		return true;
	while (t->n_stop < TASK_MAX_STOPS && (text = jit_model_stop(model, t->n_stop))) {
		if (!(t->stop[t->n_stop] = strdup(text)))
			return no_memory(r);
		t->n_stop++;
	}
	return true;
}

bool task_read(struct task *t, const json_t *body, const jit_model *model, int context, struct refusal *r)
{
	if (!read_numbers(&t->sampling, body, r) || !read_seed(t, body, r) || !read_lengths(t, body, r) ||
	    !read_telling(t, body, r) || !read_stop(t, body, model, r) ||
	    !read_texts(t->breakers, &t->n_breakers, body, &breakers_max, r) || !read_bias(t, body, model, r) ||
	    !read_samplers(t, body, r) || !read_ends(t, body, model, r) || !task_read_grammar(t, body, r) ||
	    !mean_zeros(&t->sampling, body, context, r))
		return false;
	if ((t->ignore_end && !task_ban_ends(t, model, r)) || !task_read_limits(t, body, model, r))
		return false;
	t->sampling.logit_bias = t->bias;
	t->sampling.n_logit_bias = (int)t->n_bias;
	if (t->samplers)
		t->sampling.samplers = t->samplers;
	if (field_value(body, "dry_sequence_breakers")) {
		t->sampling.dry_breakers = (const char *const *)t->breakers;
		t->sampling.n_dry_breakers = (int)t->n_breakers;
	}
	return true;
}
