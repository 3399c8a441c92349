/* runtime/session/session_stats.c - what a session did: its counters, its report, its trace. */
#include "include/jitrun_cards.h"
#include "runtime/engine/report.h"
#include "runtime/session/session_draft.h"
#include "runtime/model/sized.h"

struct collect *session_collect(jit_session *s, struct error *err)
{
	if (!model_is_alone(s->model, "sums of what matrices read", err))
		return NULL;
	if (s->model->f32_activations)
		return collect_open(s->engine->stream, &s->model->file.spec, &s->model->weights, err);
	error_set(err, ERROR_ARGUMENT, "what matrices read is collected as f32, and the model's activations are int8");
	return NULL;
}

char *jit_session_report(jit_session *s, int json, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e)) {
		model_report(err, &e);
		return NULL;
	}
	struct report_background b = { .stalls = s->engine->stalls };
	if (s->engine->compile_ahead) {
		compile_ahead_drain(s->engine->compile_ahead);
		compile_ahead_count(s->engine->compile_ahead, &b.compile_ahead);
	}
	char *text = report_make(s->model, s->engine->profile, &b, json != 0, &e);

	model_report(err, &e);
	return text;
}

int jit_session_trace(jit_session *s, const char *path, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(s, &e) && NEEDED(path, &e))
		report_trace(s->engine->profile, path, &e);
	return model_report(err, &e);
}

static void count_kernels(const jit_session *s, jit_session_stats *out)
{
	struct registry_counters c = { 0 };
	struct cache_counters disk = { 0 };

	registry_count(s->model->registry, &c);
	if (s->model->cache)
		cache_count(s->model->cache, &disk);
	out->kernels = c.generated + c.from_disk + c.from_pack;
	out->kernels_generated = c.generated;
	out->kernels_from_cache = c.from_disk + c.from_pack;
	out->kernels_from_pack = c.from_pack;
	out->cache_damaged = disk.damaged;
	out->cache_unreadable = disk.failed;
	out->cache_store_failed = disk.store_failed;
	out->cache_evicted = disk.evicted;
	out->generate_seconds = 1e-9 * (double)c.generated_ns;
	out->code_bytes = c.code_bytes;
	out->kernel_stalls = s->engine->stalls;
	if (s->engine->compile_ahead) {
		struct compile_ahead_counters background;
		compile_ahead_count(s->engine->compile_ahead, &background);
		out->kernels_background = background.made;
	}
}

static void count_drafts(const jit_session *s, jit_session_stats *out)
{
	for (unsigned w = 1; w < SPECULATE_WIDTHS; w++) {
		out->speculation[w - 1].tokens = (int)speculate_tokens[w];
		out->speculation[w - 1].passes = s->speculate.passes[w];
		out->drafted += out->speculation[w - 1].drafted = s->speculate.drafted[w];
		out->accepted += out->speculation[w - 1].accepted = s->speculate.accepted[w];
	}
}

int jit_session_get_stats(const jit_session *s, jit_session_stats *out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e))
		return model_report(err, &e);
	jit_session_stats stats = {
		.prompt_tokens = s->prompt_tokens,
		.decode_tokens = s->decode_tokens,
		.prompt_seconds = s->prompt_seconds,
		.decode_seconds = s->decode_seconds,
		.kv_bytes = s->memory.kv_bytes + (s->member ? s->memory.held * s->memory.kv.page_bytes : 0),
		.threads = pool_threads(s->engine->pool),
		.context = (int)s->context,
		.decode_passes = s->decode_passes
	};

	count_kernels(s, &stats);
	count_drafts(s, &stats);
	SIZED_WRITE(jit_session_stats, out, &stats, &e);
	return model_report(err, &e);
}

int jit_session_get_draft_stats(const jit_session *s, jit_draft_stats *out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED(out, &e))
		return model_report(err, &e);
	const struct ask *a = &s->speculate.ask;
	const jit_draft_stats stats = {
		.requests = a->requests,
		.proposed = a->proposed,
		.used = a->used,
		.accepted = a->accepted,
		.seconds = a->seconds,
		.gain = speculate_gain(&s->speculate),
		.trouble = session_draft_trouble(s->draft)
	};

	SIZED_WRITE(jit_draft_stats, out, &stats, &e);
	return model_report(err, &e);
}

static jit_card_stats card_stats(const struct stream *stream)
{
	struct stream_counters c;

	stream->count(stream, &c);
	return (jit_card_stats){
		.launches = c.launches,
		.barriers = c.barriers,
		.instructions = c.instructions,
		.load_bytes = c.load_bytes,
		.load128_bytes = c.load128_bytes,
		.store_bytes = c.store_bytes,
		.scalar_bytes = c.scalar_bytes,
		.weight_bytes = c.weight_bytes,
		.cache_bytes = c.cache_bytes,
		.commands = c.commands
	};
}

int jit_session_get_card_stats(const jit_session *s, jit_card_stats *out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e))
		return model_report(err, &e);
	if (!s->engine->stream->count) {
		error_set(&e, ERROR_UNSUPPORTED, "the device %s counts nothing; simulated cards do",
		          s->model->device->facts.name);
	} else {
		const jit_card_stats stats = card_stats(s->engine->stream);
		SIZED_WRITE(jit_card_stats, out, &stats, &e);
	}
	return model_report(err, &e);
}
