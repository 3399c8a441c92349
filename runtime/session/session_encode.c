/* runtime/session/session_encode.c - texts through a model that encodes.
 *
 * Owns: which texts share a pass. A token sees all of its text, so that a text is in one pass, from position 0 of pages
 * that are its alone; as many texts follow each other there as find room, whatever their lengths. Nothing of a pass is
 * read by the next one.
 */
#include "runtime/session/session_encode.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"
#include "runtime/plan/graph.h"
#include "runtime/plan/rope.h"
#include "runtime/session/session_state.h"

enum { TEXTS_MAX = 256 /* of a pass */ };

struct encoding {
	jit_session *s;
	struct pooling *pooling;
	const jit_embedding_text *texts;
	float *rows;
	struct plan_span span[TEXTS_MAX];
	struct plan_sequence at[TEXTS_MAX];
	uint32_t spans, tokens;
};

bool session_refuse_to_generate(struct error *err)
{
	return error_set(err, ERROR_UNSUPPORTED,
	                 "the model encodes texts and generates none: jit_session_embed() gives what it makes of them");
}

static uint32_t pages_of(size_t tokens) { return (uint32_t)((tokens + NUMERICS_CHUNK - 1) / NUMERICS_CHUNK); }

/* The texts from number `first` on that are the next pass; returns the number of the one behind them. */
static size_t take_texts(struct encoding *e, size_t first, size_t n)
{
	const jit_session *s = e->s;
	uint32_t pages = 0;
	size_t i = first;

	e->spans = e->tokens = 0;
	for (; i < n && e->spans < TEXTS_MAX; i++) {
		const uint32_t tokens = (uint32_t)e->texts[i].n;
		if (e->spans && (e->tokens + tokens > s->engine->batch || pages + pages_of(tokens) > s->memory.chunks))
			break;
		e->span[e->spans++] = (struct plan_span){ e->tokens, tokens, tokens };
		e->tokens += tokens;
		pages += pages_of(tokens);
	}
	return i;
}

static struct plan *find_plan(struct encoding *e, struct error *err)
{
	struct engine *g = e->s->engine;

	return e->spans == 1 ? engine_find_plan(g, e->tokens, 0, PLAN_ALL_NORMED, PROFILE_PROMPT, err)
	                     : engine_find_joint(g, e->span, e->spans, true, err);
}

/* The lists and tables of a pass, and where each text has its pages. */
static bool fill_in(struct encoding *e, size_t first, struct error *err)
{
	jit_session *s = e->s;
	const struct plan_buffers *buf = &s->engine->memory.buf;
	const struct model_spec *spec = &s->model->file.spec;
	const void *pages, *unused;
	uint32_t page = 0;

	if (!session_memory_tables(&s->memory, &pages, &unused, err))
		return false;
	for (uint32_t i = 0; i < e->spans; page += pages_of(e->span[i++].tokens)) {
		const jit_embedding_text *t = &e->texts[first + i];
		const uint32_t at = e->span[i].first, n = e->span[i].tokens;
		memcpy(buf->ids + at, t->ids, n * sizeof *t->ids);
		plan_fill_positions(buf, spec, at, 0, n);
		for (uint32_t k = 0; k < n; k++) {
			buf->ids[(size_t)IDS_TYPES * buf->tokens + at + k] =
				spec->token_types && t->types ? t->types[k] : 0;
		}
		rope_fill(&s->engine->rope, buf->cos, buf->sin, buf->tokens, at, 0, n);
		e->at[i] = (struct plan_sequence){ .pages = (const uint8_t *)pages + page * sizeof(uint64_t) };
	}
	return true;
}

static bool take_rows(struct encoding *e, size_t first, float **out, struct error *err)
{
	struct device *d = e->s->model->device;
	const uint64_t stride = numerics_pad(e->pooling->hidden);

	if (!d->read(d, e->rows, plan_normed(&e->s->engine->memory.buf), e->tokens * stride * sizeof *e->rows, err))
		return false;
	for (uint32_t i = 0; i < e->spans; i++) {
		const struct plan_span *span = &e->span[i];
		pooling_begin(e->pooling, span->tokens, *out);
		for (uint32_t k = 0; k < span->tokens; k++) {
			const float *row = e->rows + (span->first + k) * stride;
			if (!pooling_check_row(e->pooling, row, k, e->texts[first + i].ids[k], err))
				return false;
			pooling_row(e->pooling, k, row);
		}
		if (!pooling_end(e->pooling, err))
			return false;
		*out += pooling_floats(e->pooling, span->tokens);
	}
	return true;
}

static bool run(struct encoding *e, size_t first, float **out, struct error *err)
{
	jit_session *s = e->s;
	struct plan *p = find_plan(e, err);

	if (!p || !fill_in(e, first, err))
		return false;
	return engine_run(s->engine, p, e->at, PROFILE_PROMPT, &s->cancel, err) && take_rows(e, first, out, err);
}

static bool encode_all(struct encoding *e, size_t n, float *out, struct error *err)
{
	jit_session *s = e->s;
	const double start = system_seconds();

	for (size_t first = 0, next; first < n; first = next) {
		if (cancel_any(&s->cancel))
			return cancel_error(err);
		next = take_texts(e, first, n);
		if (!run(e, first, &out, err))
			return false;
		s->prompt_tokens += e->tokens;
	}
	s->prompt_seconds += system_seconds() - start;
	return true;
}

/* Ids, and types where the model has such. */
static int check_texts(const jit_session *s, const jit_embedding_text *texts, size_t n, jit_error *err)
{
	const uint32_t types = s->model->file.spec.token_types;
	struct error e = { 0 };
	int status = JIT_OK;

	for (size_t i = 0; status == JIT_OK && i < n; i++) {
		status = session_check_ids(s, texts[i].ids, texts[i].n, err);
		for (size_t k = 0; types && texts[i].types && k < texts[i].n && status == JIT_OK; k++)
			if (texts[i].types[k] < 0 || (uint32_t)texts[i].types[k] >= types) {
				error_set(&e, ERROR_ARGUMENT,
				          "the type of token %zu of text %zu is %d, which is not in 0..%u", k, i,
				          texts[i].types[k], types - 1);
				status = model_report(err, &e);
			}
	}
	return status;
}

int session_encode(jit_session *s, const jit_embedding_text *texts, size_t n, struct pooling *p, float *out,
                   jit_error *err)
{
	struct encoding *e = calloc(1, sizeof *e);
	struct error why = { 0 };
	int status = check_texts(s, texts, n, err);

	if (status != JIT_OK) {
		free(e);
		return status;
	}
	if (e) {
		*e = (struct encoding){ .s = s, .pooling = p, .texts = texts };
		e->rows = malloc(s->engine->tokens * numerics_pad(p->hidden) * sizeof *e->rows);
	}
	if (!e || !e->rows)
		error_set(&why, ERROR_MEMORY, "no memory for the rows of %u tokens", s->engine->tokens);
	else
		encode_all(e, n, out, &why);
	free(e ? e->rows : NULL);
	free(e);
	return session_report(s, err, &why);
}
