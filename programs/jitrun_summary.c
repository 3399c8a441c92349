/* programs/jitrun_summary.c - what jitrun says at the end: statistics, the JSON line, the report. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/json_read.h"
#include "programs/jitrun_parts.h"
#include "programs/output.h"

static double rate(uint64_t n, double seconds) { return seconds > 0 ? (double)n / seconds : 0; }

static const char *why_stopped(const struct run *r)
{
	return interrupted  ? "interrupted"
	       : r->ended   ? "end of text"
	       : r->stopped ? "stop text"
	       : r->full    ? "context full"
	                    : "length";
}

/* What a simulated card did; of others nothing is known. */
static void print_card(const struct run *r)
{
	jit_card_stats c = JIT_CARD_STATS();

	if (jit_session_get_card_stats(r->session, &c, NULL) != JIT_OK || !c.launches)
		return;
	fprintf(stderr,
	        "card    %8llu launches, %llu barriers, %.1f MiB loaded (%.0f %% by 128 bits; %.1f MiB of weights, "
	        "%.1f of the KV cache), %.1f MiB of scalars, %llu instructions\n",
	        (unsigned long long)c.launches, (unsigned long long)c.barriers, (double)c.load_bytes / 0x1p20,
	        100 * rate(c.load128_bytes, (double)c.load_bytes), (double)c.weight_bytes / 0x1p20,
	        (double)c.cache_bytes / 0x1p20, (double)c.scalar_bytes / 0x1p20, (unsigned long long)c.instructions);
}

/* The seed is told, so that a text can be had again. */
static void print_sampling(const jit_model_info *info)
{
	char how[400];

	if (opt.perplexity)
		return;
	sampling_args_describe(&opt.sampling, how, sizeof how);
	fprintf(stderr, "sampling %s (%s)\n", how,
	        info->has_sampling ? "defaults: the model's own" : "defaults: jitrun's");
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void print_speculation(const jit_session_stats *s)
{
	if (s->drafted)
		fprintf(stderr, "drafted %8llu token%s, %llu accepted (%.1f %%); %.2f tokens a pass\n",
		        (unsigned long long)s->drafted, plural(s->drafted), (unsigned long long)s->accepted,
		        100 * (double)s->accepted / (double)s->drafted,
		        (double)s->decode_tokens / (double)s->decode_passes);
}

/* What --verbose adds, before the lines that everybody sees. */
static void print_details(const struct run *r, const jit_model_info *info, const jit_session_stats *s)
{
	fprintf(stderr, "%s\n", info->description);
	fprintf(stderr, "load    %8.3f s   %.1f MiB of weights, %d thread%s\n", info->load_seconds,
	        (double)info->weight_bytes / 0x1p20, s->threads, plural((uint64_t)s->threads));
	fprintf(stderr, "kernels %8llu; %llu generated in %.1f ms; %llu cached, %llu of them packed; %.1f KiB\n",
	        (unsigned long long)s->kernels, (unsigned long long)s->kernels_generated, 1e3 * s->generate_seconds,
	        (unsigned long long)s->kernels_from_cache, (unsigned long long)s->kernels_from_pack,
	        (double)s->code_bytes / 1024);
	if (s->prompt_tokens)
		fprintf(stderr, "prompt  %8llu token%s in %.3f s, %.1f tokens/s\n",
		        (unsigned long long)s->prompt_tokens, plural(s->prompt_tokens), s->prompt_seconds,
		        rate(s->prompt_tokens, s->prompt_seconds));
	if (s->decode_tokens)
		fprintf(stderr, "decode  %8llu token%s in %.3f s, %.2f tokens/s, %.2f GB/s of weights\n",
		        (unsigned long long)s->decode_tokens, plural(s->decode_tokens), s->decode_seconds,
		        rate(s->decode_tokens, s->decode_seconds),
		        rate(s->decode_passes, s->decode_seconds) * (double)info->token_bytes / 1e9);
	print_speculation(s);
	print_card(r);
	print_sampling(info);
}

static void print_short(const char *before, double value, const char *unit)
{
	fprintf(stderr, "%s%.*f%s", before, value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
}

/* What was computed and how fast; of what was not, nothing is said. */
static void print_speed(const struct run *r, const jit_session_stats *s)
{
	fprintf(stderr, "%llu + %zu token%s", (unsigned long long)s->prompt_tokens, r->n_generated,
	        plural(r->n_generated));
	if (s->prompt_tokens)
		print_short("; prompt ", rate(s->prompt_tokens, s->prompt_seconds), " tokens/s");
	if (s->decode_tokens)
		print_short(", decode ", rate(s->decode_tokens, s->decode_seconds), " tokens/s");
	if (r->first_token > 0)
		print_short("; first after ", r->first_token, " s");
	fputc('\n', stderr);
}

/* Why it stopped, what would let it go on, and the seed with which it can be had again. */
static void print_end(const struct run *r, const jit_model_info *info, const jit_session_stats *s)
{
	fprintf(stderr, "stopped: %s", why_stopped(r));
	if (r->full && !interrupted)
		fprintf(stderr,
		        info->context_trained > s->context ? " (%d tokens; --context: up to %d)" : " (%d tokens)",
		        s->context, info->context_trained);
	else if (!interrupted && !r->ended && !r->stopped)
		fprintf(stderr, " (-n %ld)", opt.n);
	if (opt.sampling.temp > 0)
		fprintf(stderr, "; seed %ld", opt.sampling.seed);
	fputc('\n', stderr);
}

void jitrun_print_summary(const struct run *r, bool verbose)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats s = JIT_SESSION_STATS();

	jit_model_get_info(r->model, &info, NULL);
	jit_session_get_stats(r->session, &s, NULL);
	fputc('\n', stderr);
	if (verbose)
		print_details(r, &info, &s);
	print_speed(r, &s);
	print_end(r, &info, &s);
	if (s.cache_damaged || s.cache_store_failed)
		fprintf(stderr, "cache: %llu kernel%s damaged, %llu not stored%s\n",
		        (unsigned long long)s.cache_damaged, plural(s.cache_damaged),
		        (unsigned long long)s.cache_store_failed, opt.report ? "" : " (--report says why)");
}

/* ---- the JSON line: every step says whether there was memory for it */

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
		{ "prompt_tokens_per_second", rate(s->prompt_tokens, s->prompt_seconds) },
		{ "decode_tokens_per_second", rate(s->decode_tokens, s->decode_seconds) },
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

static bool set_counters(json_t *object, const jit_model_info *info, const jit_session_stats *s)
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
	};
	json_t *counters = json_object();
	bool ok = set_numbers(counters, work, sizeof work / sizeof *work) && set_speculation(counters, s) &&
	          set_numbers(counters, cache, sizeof cache / sizeof *cache);

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
	bool ok = set(sampling, "temperature", short_real(a->temp)) && set(sampling, "top_k", json_integer(a->top_k)) &&
	          set(sampling, "top_p", short_real(a->top_p)) && set(sampling, "min_p", short_real(a->min_p)) &&
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

int jitrun_print_json(const struct run *r)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats s = JIT_SESSION_STATS();
	json_t *o = json_object();
	const int32_t *ids = jit_session_ids(r->session);

	jit_model_get_info(r->model, &info, NULL);
	jit_session_get_stats(r->session, &s, NULL);
	bool ok = set(o, "model", json_string(info.description)) && set_ids(o, "prompt_ids", ids, r->n_prompt) &&
	          set_ids(o, "ids", ids + r->n_prompt, r->n_generated) &&
	          set(o, "text", json_stringn(r->text ? r->text : "", r->n_text)) &&
	          set(o, "stopped", json_string(why_stopped(r))) && set_timings(o, &info, &s, r) &&
	          set_sampling(o, &info) && set_counters(o, &info, &s) && (!opt.report || set_report(o, r));
	char *text = ok ? json_dumps(o, output_json_flags(stdout) | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(o);
	if (!text)
		return jitrun_fail(&(jit_error){ .message = "the JSON line could not be made: no memory" });
	puts(text);
	free(text);
	return 0;
}

int jitrun_report(const struct run *r)
{
	jit_error err = { 0 };

	if (opt.report && !opt.json) {
		char *text = jit_session_report(r->session, 0, &err);
		if (!text)
			return jitrun_fail(&err);
		bool written = fputs(text, stderr) >= 0 && fflush(stderr) == 0;
		free(text);
		if (!written)
			return 1;
	}
	return opt.trace && jit_session_trace(r->session, opt.trace, &err) != JIT_OK ? jitrun_fail(&err) : 0;
}
