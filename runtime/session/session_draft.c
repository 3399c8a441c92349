#include "runtime/session/session_draft.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/host/system.h"
#include "runtime/session/logits.h"

enum { PIECE = 256, USUAL = 2 }; /* tokens read at once; tokens that each asking reads anyhow */

struct session_draft {
	jit_session *own;
	/* Its tokens are the text's first `head`, and those `shift` behind theirs. */
	uint32_t head, shift;
	uint32_t vocab;       /* tokens that both models have */
	struct error trouble; /* code 0: none */
};

/* ---- which models go together */

static bool is_none(enum tok_type type, const char *text) { return !text || type == TOK_UNUSED; }

/* Tokens that only one of them has do no harm: files are padded differently. */
static bool same_tokens(const struct tokenizer *a, const struct tokenizer *b, struct error *err)
{
	size_t na = tokenizer_size(a), nb = tokenizer_size(b), n_a, n_b;
	const char *ta, *tb;

	if (strcmp(tokenizer_kind(a), tokenizer_kind(b)) != 0)
		return error_set(err, ERROR_ARGUMENT,
		                 "the draft model has another vocabulary: its tokenizer is %s, and the model's is %s",
		                 tokenizer_kind(b), tokenizer_kind(a));
	for (int32_t id = 0; (size_t)id < na && (size_t)id < nb; id++) {
		enum tok_type of_a = tokenizer_type(a, id, &ta, &n_a), of_b = tokenizer_type(b, id, &tb, &n_b);
		if (is_none(of_a, ta) || is_none(of_b, tb) || (n_a == n_b && memcmp(ta, tb, n_a) == 0))
			continue;
		return error_set(err, ERROR_ARGUMENT,
		                 "the draft model has another vocabulary: its token %d is \"%.*s\", and the model's is "
		                 "\"%.*s\"",
		                 id, (int)(n_b < 40 ? n_b : 40), tb, (int)(n_a < 40 ? n_a : 40), ta);
	}
	return true;
}

/* Its context has room for tokens that it proposes behind as many that it has read. */
static bool take_sizes(jit_draft_options *o, uint32_t trained, uint32_t context, struct error *err)
{
	if (!o->context)
		o->context = (int)(trained && trained < context ? trained : context);
	const int max = o->context > 1 ? o->context / 2 : 1;
	if (o->max > max)
		return error_set(err, ERROR_ARGUMENT,
		                 "max: %d tokens are more than half of the draft model's context of %d", o->max,
		                 o->context);
	if (!o->max)
		o->max = max < ASK_MAX ? max : ASK_MAX;
	return o->min <= o->max ||
	       error_set(err, ERROR_ARGUMENT, "min: %d is not in 0..%d, which `max` is", o->min, o->max);
}

bool session_draft_check(const jit_model *m, jit_draft_options *o, uint32_t context, struct error *err)
{
	const struct model *a = &m->file, *b = &o->model->file;

	if (b->spec.encodes)
		return error_set(err, ERROR_ARGUMENT, "the draft model (%s) encodes texts, and generates none",
		                 o->model->description);
	if (a->spec.encodes)
		return error_set(err, ERROR_ARGUMENT, "the model (%s) encodes texts: no draft model can help it",
		                 m->description);
	if (!take_sizes(o, b->spec.context_train, context, err))
		return false;
	if (a->tokenizer && b->tokenizer)
		return same_tokens(a->tokenizer, b->tokenizer, err);
	return a->spec.vocab == b->spec.vocab ||
	       error_set(err, ERROR_ARGUMENT,
	                 "the draft model has another vocabulary: of %u tokens, and the model's is of %u",
	                 b->spec.vocab, a->spec.vocab);
}

struct ask_options session_draft_asks(const jit_draft_options *o)
{
	return (struct ask_options){ true, (uint32_t)o->max, (uint32_t)o->min, o->min_p };
}

bool session_draft_open(jit_session *s, jit_session *own, struct error *err)
{
	struct session_draft *d = calloc(1, sizeof *d);
	const uint32_t vocab = s->model->file.spec.vocab;

	if (!d) {
		jit_session_close(own);
		return error_set(err, ERROR_MEMORY, "no memory for a draft model's session");
	}
	d->own = own;
	d->vocab = own->model->file.spec.vocab < vocab ? own->model->file.spec.vocab : vocab;
	s->draft = d;
	for (uint32_t n = 1; own->engine->compile_ahead && n <= USUAL; n++)
		if (!compile_ahead_ready(own->engine->compile_ahead, n, PLAN_LAST_LOGITS))
			compile_ahead_request(own->engine->compile_ahead, n, PLAN_LAST_LOGITS, false);
	return true;
}

void session_draft_close(struct session_draft *d)
{
	if (d)
		jit_session_close(d->own);
	free(d);
}

void session_draft_sampling(jit_session *s, const jit_sampling *p)
{
	if (s->draft)
		sampling_set(&s->draft->own->sampling, p, s->draft->own->context, &(struct error){ 0 });
}

const char *session_draft_trouble(const struct session_draft *d)
{
	return d && d->trouble.code ? d->trouble.text : NULL;
}

/* ---- what it has read */

static uint32_t text_position(const struct session_draft *d, size_t own)
{
	return (uint32_t)own + (own < d->head ? 0 : d->shift);
}

/* A token that the draft model lacks is another one to it. */
static int32_t known_id(const struct session_draft *d, int32_t id) { return (uint32_t)id < d->vocab ? id : 0; }

/* How many of its tokens are those of the text. */
static uint32_t same_so_far(const struct session_draft *d, const jit_session *s)
{
	const jit_session *own = d->own;
	uint32_t n = 0;

	while (n < own->length && text_position(d, n) < s->length &&
	       own->ids[n] == known_id(d, s->ids[text_position(d, n)]))
		n++;
	return n;
}

/* Begins anew with the last n tokens, or all. */
static void begin(struct session_draft *d, const jit_session *s, uint32_t n)
{
	const struct tokenizer *t = s->model->file.tokenizer;

	d->head = d->shift = 0;
	if (n < s->length) {
		d->head = t && s->ids[0] == tokenizer_bos(t);
		d->shift = (uint32_t)s->length - n - d->head;
	}
	jit_session_rewind(d->own, 0, NULL);
	d->own->sampling.gone = s->sampling.gone + d->shift;
}

/* Where it goes on: behind as much of the text as it has read, unless there is too much left, or it may read more. */
static uint32_t find_start(struct session_draft *d, const jit_session *s)
{
	const uint32_t affords = speculate_affords(&s->speculate), room = d->own->context - s->speculate.ask.o.max;
	const uint32_t half = d->own->context / 2, fits = half < room ? half : room - 1, max = fits ? fits : 1;
	const uint32_t n = affords < max ? affords : max;
	uint32_t same = same_so_far(d, s), has = (uint32_t)s->length - d->shift;

	if (has > room || has - same > (affords > USUAL ? affords : USUAL) || !same) {
		begin(d, s, n);
		return 0;
	}
	if (d->shift && n / 2 > 2 * has) {
		begin(d, s, n / 2);
		return 0;
	}
	return same;
}

/* Whether the kernels are there by which it would read n tokens; or waits for them. */
static bool can_read(const jit_session *own, uint32_t n, bool wait)
{
	struct compile_ahead *c = own->engine->compile_ahead;
	const uint32_t rest = n % PIECE ? n % PIECE : PIECE;
	const uint32_t sizes[] = { 1, rest, n > PIECE ? PIECE : rest };
	bool ready = true;

	for (size_t i = 0; c && i < sizeof sizes / sizeof *sizes; i++) {
		if (compile_ahead_ready(c, sizes[i], PLAN_LAST_LOGITS))
			continue;
		compile_ahead_request(c, sizes[i], PLAN_LAST_LOGITS, false);
		if (wait)
			compile_ahead_wait(c, sizes[i], PLAN_LAST_LOGITS);
		ready = compile_ahead_ready(c, sizes[i], PLAN_LAST_LOGITS) && ready;
	}
	return ready;
}

/* The text up to its end. *read: tokens of it that were not read yet. */
static bool read_text(struct session_draft *d, jit_session *s, uint32_t *read, jit_error *err)
{
	int32_t ids[PIECE];
	const uint32_t same = find_start(d, s), all = (uint32_t)s->length - d->shift;

	*read = all - same;
	if (!can_read(d->own, *read ? *read : 1, s->speculate.mode == SPECULATE_FIXED))
		return false;
	jit_session_rewind(d->own, *read ? same : same - 1, NULL);
	for (uint32_t at = (uint32_t)d->own->length, n; at < all; at += n) {
		for (n = 0; n < PIECE && at + n < all; n++)
			ids[n] = known_id(d, s->ids[text_position(d, at + n)]);
		if (cancel_any(&s->cancel) || jit_session_feed(d->own, ids, n, err) != JIT_OK)
			return false;
	}
	return true;
}

/* ---- what it proposes */

/* Chooses one, from logits that are there or are computed now. False: none, or none that the model has. */
static bool choose(struct session_draft *d, int32_t *id, float *likely, jit_error *err)
{
	const float *logits = jit_session_logits(d->own, err);

	if (!logits || jit_session_next(d->own, id, err) != JIT_OK)
		return false;
	*likely = logits_likely(logits, session_greatest(d->own, logits), d->own->model->file.spec.vocab, *id);
	return (uint32_t)*id < d->vocab;
}

static void note_trouble(struct session_draft *d, const jit_error *e)
{
	if (e->code && e->code != JIT_ERROR_CANCELLED && !d->trouble.code)
		error_set(&d->trouble, ERROR_ARGUMENT, "%s", e->message);
}

void session_draft(jit_session *s, uint32_t room)
{
	struct session_draft *d = s->draft;
	jit_error e = { 0 };
	uint32_t read;
	int32_t id;
	float likely;

	if (!d || d->trouble.code || !speculate_wants(&s->speculate, (uint32_t)s->length, room, NULL))
		return;
	const double start = system_seconds();
	if (!read_text(d, s, &read, &e)) {
		speculate_not_requested(&s->speculate);
		note_trouble(d, &e);
		return;
	}
	const double before = read > USUAL ? system_seconds() : start;
	while (!cancel_any(&s->cancel) && choose(d, &id, &likely, &e) && speculate_offer(&s->speculate, id, likely))
		;
	note_trouble(d, &e);
	speculate_offered(&s->speculate, system_seconds() - before, read > USUAL ? read : 0, before - start);
}
