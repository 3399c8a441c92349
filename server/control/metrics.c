/* server/control/metrics.c - /metrics: numbers for Prometheus, of each model and of the server.
 *
 * Owns: the names of the series, which do not change, and what each counts. The first ones have the names that
 * dashboards for llama.cpp's server know.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/system.h"
#include "server/api/endpoints.h"
#include "server/engine/loader.h"
#include "server/engine/models.h"
#include "server/http/server.h"

enum { WIDTHS = 16 };

/* What there is to tell of: models that are found by their names, each name once. */
struct told {
	const struct served *model;
	struct model_status s;
};
struct all_told {
	struct told *one;
	size_t n;
};

static void put_help(struct bytes *b, const char *name, const char *type, const char *help)
{
	bytes_print(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: what ends it is escaped. */
static void put_value(struct bytes *b, const char *value)
{
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			bytes_text(b, "\\");
		bytes_add(b, c, 1);
	}
}

static void put_name(struct bytes *b, const char *name, const char *model)
{
	bytes_print(b, "%s{model=\"", name);
	put_value(b, model);
	bytes_text(b, "\"");
}

static double seconds_of(const struct batcher_numbers *n, int which)
{
	const double seconds[] = { n->prompt_seconds, n->decode_seconds, n->batch.seconds, n->draft_seconds };

	return seconds[which];
}

static void put_reals(struct bytes *b, const struct all_told *all)
{
	static const struct {
		const char *name, *help;
	} rows[] = {
		{ "llamacpp:prompt_seconds_total", "Time from the beginning of an answer to its first token, summed." },
		{ "llamacpp:tokens_predicted_seconds_total", "Time from the first token to the last, summed." },
		{ "jitserve_pass_seconds_total", "Time spent in passes." },
		{ "jitserve_draft_model_seconds_total", "Time that the draft model took, summed." },
	};

	for (int i = 0; i < 4; i++) {
		put_help(b, rows[i].name, "counter", rows[i].help);
		for (size_t m = 0; m < all->n; m++) {
			put_name(b, rows[i].name, all->one[m].model->name);
			bytes_print(b, "} %.6f\n", seconds_of(&all->one[m].s.numbers, i));
		}
	}
}

#define N(field) offsetof(struct batcher_numbers, field)
static const struct {
	const char *name, *type, *help;
	size_t at;
} rows[] = {
	{ "llamacpp:prompt_tokens_total", "counter", "Tokens of prompts.", N(prompt_tokens) },
	{ "llamacpp:tokens_predicted_total", "counter", "Tokens generated.", N(generated_tokens) },
	{ "jitserve_prompt_tokens_reused_total", "counter", "Tokens of prompts that need not be computed.",
	  N(reused_tokens) },
	{ "jitserve_answers_started_total", "counter", "Answers that were begun.", N(started) },
	{ "jitserve_answers_ended_total", "counter", "Answers that came to their end.", N(ended) },
	{ "jitserve_answers_failed_total", "counter", "Answers that failed.", N(failed) },
	{ "jitserve_answers_lost_total", "counter", "Of these, answers under which the model's device failed.",
	  N(lost) },
	{ "jitserve_answers_cancelled_total", "counter", "Answers whose client left.", N(cancelled) },
	{ "jitserve_answers_dropped_total", "counter", "Answers whose client read too slowly.", N(dropped) },
	{ "jitserve_answers_refused_total", "counter", "Answers for which the queue was full.", N(refused) },
	{ "jitserve_draft_tokens_total", "counter", "Draft tokens computed.", N(drafted) },
	{ "jitserve_draft_tokens_accepted_total", "counter", "Draft tokens that were chosen.", N(accepted) },
	{ "jitserve_draft_model_requests_total", "counter", "Passes for which the draft model was requested.",
	  N(draft_requests) },
	{ "jitserve_draft_model_tokens_total", "counter", "Draft tokens that the draft model proposed.",
	  N(draft_proposed) },
	{ "jitserve_draft_model_tokens_accepted_total", "counter", "Draft tokens of the draft model that were chosen.",
	  N(draft_accepted) },
	{ "jitserve_passes_total", "counter", "Passes.", N(batch.passes) },
	{ "jitserve_pass_tokens_total", "counter", "Tokens of all passes.", N(batch.tokens) },
	{ "jitserve_set_back_total", "counter", "Answers that made room for others and were computed again.",
	  N(batch.set_back) },
	{ "jitserve_kv_pages", "gauge", "Pages of the KV cache that there is room for.", N(batch.pages) },
	{ "jitserve_kv_pages_used", "gauge", "Pages in use, those kept for later included.", N(batch.pages_used) },
	{ "jitserve_kv_pages_kept", "gauge", "Pages kept of answers that ended.", N(batch.pages_kept) },
	{ "jitserve_kv_pages_shared", "gauge", "Pages that several answers have, those kept for later included.",
	  N(batch.pages_shared) },
	{ "jitserve_bits_checked_total", "counter", "Answers computed again by --check-bits.", N(bits_checked) },
	{ "jitserve_bits_wrong_total", "counter", "Of these, answers with other bits: a fault.", N(bits_wrong) },
	{ "jitserve_kernels_generated_total", "counter", "Kernels that code was generated for.", N(kernels_generated) },
	{ "jitserve_kernels_cached_total", "counter", "Kernels read from the cache's folder.", N(kernels_cached) },
	{ "jitserve_kernels_packed_total", "counter", "Kernels taken from packs.", N(kernels_packed) },
	{ "jitserve_kernels_awaited_total", "counter", "Kernels that answers had to wait for.", N(kernels_awaited) },
	{ "jitserve_code_bytes", "gauge", "Generated code in memory.", N(code_bytes) },
	{ "jitserve_kv_bytes", "gauge", "Memory for the KV cache.", N(batch.kv_bytes) },
};

static void put_integers(struct bytes *b, const struct all_told *all)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put_help(b, rows[i].name, rows[i].type, rows[i].help);
		for (size_t m = 0; m < all->n; m++) {
			uint64_t value;
			memcpy(&value, (const char *)&all->one[m].s.numbers + rows[i].at, sizeof value);
			put_name(b, rows[i].name, all->one[m].model->name);
			bytes_print(b, "} %" PRIu64 "\n", value);
		}
	}
}

static void put_pictures(struct bytes *b, const struct all_told *all)
{
	static const struct {
		const char *name, *type, *help;
	} of_pictures[] = {
		{ "jitserve_images_encoded_total", "counter", "Pictures encoded." },
		{ "jitserve_images_reused_total", "counter", "Pictures whose features were kept." },
		{ "jitserve_image_seconds_total", "counter", "Time spent encoding pictures." },
		{ "jitserve_images_kept", "gauge", "Pictures whose features are kept." },
		{ "jitserve_image_kept_bytes", "gauge", "Memory of features that are kept." },
		{ "jitserve_image_requests_waiting", "gauge", "Requests that wait until their pictures are encoded." },
	};

	for (int i = 0; i < 6; i++) {
		put_help(b, of_pictures[i].name, of_pictures[i].type, of_pictures[i].help);
		for (size_t m = 0; m < all->n; m++) {
			const struct sight_numbers *n = &all->one[m].s.seen;
			const double value[] = { (double)n->encoded, (double)n->reused,     n->seconds,
				                 (double)n->kept,    (double)n->kept_bytes, (double)n->waiting };
			put_name(b, of_pictures[i].name, all->one[m].model->name);
			bytes_print(b, i == 2 ? "} %.6f\n" : "} %.0f\n", value[i]);
		}
	}
}

static void put_gauges(struct bytes *b, const struct all_told *all)
{
	put_help(b, "llamacpp:requests_processing", "gauge", "Answers being computed.");
	for (size_t m = 0; m < all->n; m++) {
		put_name(b, "llamacpp:requests_processing", all->one[m].model->name);
		bytes_print(b, "} %u\n", all->one[m].s.numbers.running);
	}
	put_help(b, "llamacpp:requests_deferred", "gauge", "Answers that wait.");
	for (size_t m = 0; m < all->n; m++) {
		put_name(b, "llamacpp:requests_deferred", all->one[m].model->name);
		bytes_print(b, "} %u\n", all->one[m].s.numbers.waiting);
	}
}

/* width[i] counts passes of 2^(i-1) + 1 to 2^i sessions. */
static void put_widths(struct bytes *b, const struct all_told *all)
{
	put_help(b, "jitserve_pass_width", "histogram", "Passes by the number of answers they compute.");
	for (size_t m = 0; m < all->n; m++) {
		uint64_t sum = 0;
		for (int i = 0; i < WIDTHS; i++) {
			sum += all->one[m].s.numbers.batch.width[i];
			put_name(b, "jitserve_pass_width_bucket", all->one[m].model->name);
			bytes_print(b, ",le=\"%d\"} %" PRIu64 "\n", 1 << i, sum);
		}
		put_name(b, "jitserve_pass_width_bucket", all->one[m].model->name);
		bytes_print(b, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
		put_name(b, "jitserve_pass_width_count", all->one[m].model->name);
		bytes_print(b, "} %" PRIu64 "\n", sum);
		put_name(b, "jitserve_pass_width_sum", all->one[m].model->name);
		bytes_print(b, "} %" PRIu64 "\n", all->one[m].s.numbers.batch.tokens);
	}
}

/* Which models are in memory, and what they take there. */
static void put_models(struct bytes *b, const struct all_told *all)
{
	static const struct {
		const char *name, *type, *help;
	} of_models[] = {
		{ "jitserve_model_loaded", "gauge", "1 for models that are in memory." },
		{ "jitserve_model_bytes", "gauge", "Memory that a model may take, with its KV cache." },
		{ "jitserve_model_loads_total", "counter", "How often a model was loaded." },
		{ "jitserve_device_failed", "gauge", "1 for models whose device has failed for good." },
		{ "jitserve_moved_to_cpu", "gauge", "1 for models that the CPU computes, as their device has failed." },
	};

	for (int i = 0; i < 5; i++) {
		put_help(b, of_models[i].name, of_models[i].type, of_models[i].help);
		for (size_t m = 0; m < all->n; m++) {
			const struct model_status *s = &all->one[m].s;
			const uint64_t value[] = { s->state == MODEL_LOADED, s->bytes, s->loads,
				                   s->failure.code != JIT_OK || s->lost[0],
				                   s->state == MODEL_LOADED && s->lost[0] && !s->moves };
			put_name(b, of_models[i].name, all->one[m].model->name);
			bytes_print(b, "} %" PRIu64 "\n", value[i]);
		}
	}
	put_help(b, "jitserve_mapped_bytes", "gauge", "Memory set aside for weights, KV caches and passes.");
	bytes_print(b, "jitserve_mapped_bytes %" PRIu64 "\n", system_mapped_bytes());
}

/* How often each adapter with a name was asked for. */
struct adapter_series {
	struct bytes *out;
	const struct served *model;
};

static void put_adapter(void *user, const struct served_adapter_told *a)
{
	const struct adapter_series *s = user;

	put_name(s->out, "jitserve_adapter_answers_total", s->model->name);
	bytes_text(s->out, ",adapter=\"");
	put_value(s->out, a->name);
	bytes_print(s->out, "\"} %" PRIu64 "\n", a->answers);
}

static void put_adapters(struct bytes *b, const struct all_told *all)
{
	put_help(b, "jitserve_adapter_answers_total", "counter", "Answers with an adapter, since it was loaded.");
	for (size_t m = 0; m < all->n; m++) {
		struct adapter_series s = { b, all->one[m].model };
		if (s.model->adapters)
			served_adapters_each(s.model->adapters, put_adapter, &s);
	}
}

/* One that was replaced, or whose file has gone, may have its name in common with another. */
static void read_models(struct all_told *all, const struct models *models)
{
	for (size_t m = 0; m < models->n; m++) {
		struct told *t = &all->one[all->n];
		if (models->list[m].gone)
			continue;
		t->model = &models->list[m];
		loader_status(models->loader, &models->list[m], &t->s);
		all->n++;
	}
}

bool answer_metrics(struct exchange *x)
{
	/* There may be more of them at any moment. */
	struct all_told all = { .one = calloc(MODELS_MAX, sizeof *all.one) };

	if (!all.one)
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	read_models(&all, x->server->models);
	put_models(&x->answer, &all);
	put_integers(&x->answer, &all);
	put_reals(&x->answer, &all);
	put_gauges(&x->answer, &all);
	put_widths(&x->answer, &all);
	put_adapters(&x->answer, &all);
	put_pictures(&x->answer, &all);
	free(all.one);
	put_help(&x->answer, "jitserve_requests_open", "gauge", "Requests being read or answered.");
	bytes_print(&x->answer, "jitserve_requests_open %d\n", atomic_load(&x->server->requests));
	x->type = "text/plain; version=0.0.4; charset=utf-8";
	x->answered = true;
	return true;
}
