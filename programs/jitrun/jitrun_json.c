/* programs/jitrun/jitrun_json.c - what --json and --json-stream print: docs/json.md says what is in it, and
 * docs/jitrun.schema.json in a form for programs.
 *
 * Owns: the members and their order. Every step says whether there was memory for it. A member that is added needs a
 * line in both documents; one that goes, or changes what it means, needs another version.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"

enum { VERSION = 1 };

struct number {
	const char *name;
	uint64_t value;
};

static bool set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value) == 0;
}

static bool set_numbers(json_t *object, const struct number *row, size_t n)
{
	bool ok = true;

	for (size_t i = 0; i < n; i++)
		ok = ok && set(object, row[i].name, json_integer((json_int_t)row[i].value));
	return ok;
}

static bool set_ids(json_t *object, const char *name, const int32_t *id, size_t n)
{
	json_t *list = json_array();
	bool ok = list != NULL;

	for (size_t i = 0; ok && i < n; i++)
		ok = json_array_append_new(list, json_integer(id[i])) == 0;
	return set(object, name, list) && ok;
}

static bool set_timings(json_t *object, const jit_model_info *info, const jit_session_stats *s, const struct run *r)
{
	const struct {
		const char *name;
		double value;
	} row[] = {
		{ "load_seconds", info->load_seconds },
		{ "first_token_seconds", r->first_token },
		{ "prompt_seconds", s->prompt_seconds },
		{ "decode_seconds", s->decode_seconds },
		{ "generate_seconds", s->generate_seconds },
		{ "prompt_tokens_per_second", jitrun_rate(s->prompt_tokens, s->prompt_seconds) },
		{ "decode_tokens_per_second", jitrun_rate(s->decode_tokens, s->decode_seconds) },
	};
	json_t *timings = json_object();
	bool ok = timings != NULL;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		ok = ok && set(timings, row[i].name, json_real(row[i].value));
	return set(object, "timings", timings) && ok;
}

/* For each width of a pass: how many there were, and what became of their draft tokens. */
static bool set_speculation(json_t *counters, const jit_session_stats *s)
{
	json_t *widths = json_object();
	bool ok = widths != NULL;

	for (size_t i = 0; i < sizeof s->speculation / sizeof *s->speculation; i++) {
		const struct number row[] = { { "passes", s->speculation[i].passes },
			                      { "drafted", s->speculation[i].drafted },
			                      { "accepted", s->speculation[i].accepted } };
		json_t *width = json_object();
		char name[16];
		snprintf(name, sizeof name, "%d", s->speculation[i].tokens);
		ok = set_numbers(width, row, sizeof row / sizeof *row) && ok;
		ok = set(widths, name, width) && ok;
	}
	return set(counters, "speculation", widths) && ok;
}

static bool set_draft(json_t *counters, const jit_session *session)
{
	jit_draft_stats d;

	if (!jitrun_draft_stats(session, &d))
		return true;
	const struct number row[] = {
		{ "requests", d.requests }, { "proposed", d.proposed }, { "used", d.used }, { "accepted", d.accepted }
	};
	json_t *draft = json_object();
	bool ok = set_numbers(draft, row, sizeof row / sizeof *row) && set(draft, "seconds", json_real(d.seconds)) &&
	          set(draft, "gain", json_real(d.gain)) &&
	          (!d.trouble || set(draft, "trouble", json_string(d.trouble)));
	return set(counters, "draft", draft) && ok;
}

static bool set_counters(json_t *object, const jit_model_info *info, const jit_session *session,
                         const jit_session_stats *s)
{
	const struct number work[] = {
		{ "kernels", s->kernels },
		{ "kernels_generated", s->kernels_generated },
		{ "kernels_from_cache", s->kernels_from_cache },
		{ "code_bytes", s->code_bytes },
		{ "weight_bytes", info->weight_bytes },
		{ "token_bytes", info->token_bytes },
		{ "kv_bytes", s->kv_bytes },
		{ "threads", (uint64_t)s->threads },
		{ "context", (uint64_t)s->context },
		{ "prompt_tokens", s->prompt_tokens },
		{ "decode_tokens", s->decode_tokens },
		{ "decode_passes", s->decode_passes },
		{ "drafted", s->drafted },
		{ "accepted", s->accepted },
	};
	const struct number cache[] = {
		{ "kernels_from_pack", s->kernels_from_pack },   { "kernels_background", s->kernels_background },
		{ "kernel_stalls", s->kernel_stalls },           { "cache_damaged", s->cache_damaged },
		{ "cache_store_failed", s->cache_store_failed }, { "cache_evicted", s->cache_evicted },
		{ "cache_unreadable", s->cache_unreadable },
	};
	json_t *counters = json_object();
	bool ok = set_numbers(counters, work, sizeof work / sizeof *work) && set_speculation(counters, s) &&
	          set_numbers(counters, cache, sizeof cache / sizeof *cache) && set_draft(counters, session);

	return set(object, "counters", counters) && ok;
}

/* A number as it was typed, not as it is in a float. */
static json_t *short_real(double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.7g", value);
	return json_real(strtod(text, NULL));
}

static bool set_sampling(json_t *object, const jit_model_info *info)
{
	const struct sampling_args *a = &opt.sampling;
	json_t *sampling = json_object();
	bool ok = set(sampling, "temperature", short_real(a->temperature)) &&
	          set(sampling, "top_k", json_integer(a->top_k)) && set(sampling, "top_p", short_real(a->top_p)) &&
	          set(sampling, "min_p", short_real(a->min_p)) &&
	          set(sampling, "repeat_penalty", short_real(a->repeat_penalty)) &&
	          set(sampling, "seed", json_integer(a->seed)) &&
	          set(sampling, "defaults", json_string(info->has_sampling ? "model" : "jitrun"));

	return set(object, "sampling", sampling) && ok;
}

static bool set_report(json_t *object, const struct run *r)
{
	char *report = jit_session_report(r->session, 1, NULL);
	bool ok = report && set(object, "report", json_read(report, strlen(report), UINT64_MAX, "the report", NULL));

	free(report);
	return ok;
}

static bool failed(jit_error *err)
{
	*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "the JSON line could not be made: no memory" };
	return false;
}

/* Prints the object, unless ok is false, and gives it back. */
static bool print_line(json_t *o, bool ok, jit_error *err)
{
	char *text = ok ? json_dumps(o, output_json_flags(stdout) | JSON_REAL_PRECISION(15)) : NULL;

	json_decref(o);
	if (!text)
		return failed(err);
	puts(text);
	free(text);
	return true;
}

/* ---- log probabilities */

/* All of a float, and no more. */
static json_t *float_real(float value)
{
	char text[32];

	snprintf(text, sizeof text, "%.9g", (double)value);
	return json_real(strtod(text, NULL));
}

static bool set_top(json_t *object, const jit_logprob *top, size_t n)
{
	json_t *list = json_array();
	bool ok = list != NULL;

	for (size_t i = 0; ok && i < n; i++) {
		json_t *one = json_object();
		ok = set(one, "id", json_integer(top[i].id)) && set(one, "logprob", float_real(top[i].logprob));
		ok = json_array_append_new(list, one) == 0 && ok;
	}
	return set(object, "top", list) && ok;
}

/* Of the token that was chosen last. */
static bool set_logprobs(json_t *object, const struct run *r, jit_error *err)
{
	jit_logprob top[JIT_LOGPROBS_MOST];
	size_t n = opt.logprobs > 0 ? (size_t)opt.logprobs : 0;
	float chosen;

	if (jit_session_logprobs(r->session, &chosen, top, n, err) != JIT_OK)
		return false;
	return (set(object, "logprob", float_real(chosen)) && (opt.logprobs < 0 || set_top(object, top, n))) ||
	       failed(err);
}

/* ---- tokens, as they come */

/* Of reasoning there is nothing as a rule, and then nothing is said. */
static bool set_reasoning(json_t *object, const char *text, size_t n)
{
	return n == 0 || strcmp(opt.think, "hide") == 0 || set(object, "reasoning", json_stringn(text, n));
}

static bool print_token(const struct run *r, int32_t id, const struct think_parts *text, jit_error *err)
{
	json_t *o = json_object();
	bool ok = set(o, "type", json_string(id < 0 ? "rest" : "token")) &&
	          (id < 0 || set(o, "id", json_integer(id))) &&
	          set(o, "text", json_stringn(text->answer ? text->answer : "", text->n_answer)) &&
	          set_reasoning(o, text->reasoning, text->n_reasoning);

	if (ok && id >= 0 && !set_logprobs(o, r, err)) {
		json_decref(o);
		return false;
	}
	return print_line(o, ok, err);
}

static bool keep_logprobs(struct run *r, int32_t id, jit_error *err)
{
	json_t *o = json_object();

	r->logprobs = r->logprobs ? r->logprobs : json_array();
	if (!set(o, "id", json_integer(id))) {
		json_decref(o);
		return failed(err);
	}
	if (!set_logprobs(o, r, err)) {
		json_decref(o);
		return false;
	}
	return json_array_append_new(r->logprobs, o) == 0 || failed(err);
}

bool jitrun_json_token(struct run *r, int32_t id, const struct think_parts *text, jit_error *err)
{
	if (opt.json_stream)
		return (id < 0 && text->n_answer + text->n_reasoning == 0) || print_token(r, id, text, err);
	return id < 0 || opt.logprobs < 0 || keep_logprobs(r, id, err);
}

/* ---- the run */

int jitrun_print_json(const struct run *r)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats s = JIT_SESSION_STATS();
	json_t *o = json_object();
	jit_error err = { 0 };
	const int32_t *ids = jit_session_ids(r->session);

	jit_model_get_info(r->model, &info, NULL);
	jit_session_get_stats(r->session, &s, NULL);
	bool ok = set(o, "type", json_string("run")) && set(o, "version", json_integer(VERSION)) &&
	          set(o, "model", json_string(info.description)) && set_ids(o, "prompt_ids", ids, r->n_prompt) &&
	          set_ids(o, "ids", ids + r->n_prompt, r->n_generated) &&
	          set(o, "text", json_stringn(r->text ? r->text : "", r->n_text)) &&
	          set_reasoning(o, r->reasoning, r->n_reasoning) &&
	          (!r->logprobs || json_object_set(o, "logprobs", r->logprobs) == 0) &&
	          set(o, "stopped", json_string(jitrun_why_stopped(r))) && set_timings(o, &info, &s, r) &&
	          set_sampling(o, &info) && set_counters(o, &info, r->session, &s) && (!opt.report || set_report(o, r));
	return print_line(o, ok, &err) ? 0 : jitrun_fail(&err);
}

int jitrun_print_perplexity(const struct perplexity *x)
{
	json_t *o = json_object();
	jit_error err = { 0 };
	bool ok = set(o, "type", json_string("perplexity")) && set(o, "version", json_integer(VERSION)) &&
	          set(o, "perplexity", x->scored ? output_real(x->perplexity) : json_null()) &&
	          set(o, "tokens", json_integer((json_int_t)x->tokens)) &&
	          set(o, "windows", json_integer((json_int_t)x->windows)) &&
	          set(o, "scored", json_integer((json_int_t)x->scored)) &&
	          set(o, "context", json_integer((json_int_t)opt.context));

	return print_line(o, ok, &err) ? 0 : jitrun_fail(&err);
}
