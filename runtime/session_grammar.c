/* runtime/session_grammar.c - a session whose choices keep to a grammar.
 *
 * Owns: the grammar's state beside the session's tokens, and the logits without what it forbids, from which the sampler
 * chooses. A model's tokens as a tree are made once, by whoever needs them first.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "grammar/grammar.h"
#include "runtime/jitrun_grammar.h"
#include "runtime/session_state.h"

enum { FORCED_MOST = 256 };

struct session_grammar {
	struct grammar *grammar;
	const struct vocabulary *vocabulary;
	const struct tokenizer *tokenizer;
	struct speculate_rules rules; /* for drafts */
	float *logits;                /* of the whole vocabulary */
	size_t *position;             /* of the tokens taken, in the session */
	size_t room;
};

static const char *piece(void *user, uint32_t id, size_t *n)
{
	static _Thread_local char scratch[256];

	return tokenizer_piece(user, (int32_t)id, false, false, scratch, n);
}

/* Two sessions may come at the same time: the second one's is given back. */
static const struct vocabulary *vocabulary_of(jit_model *m, struct error *err)
{
	struct vocabulary *v = atomic_load(&m->vocabulary), *none = NULL;

	if (v)
		return v;
	if (!m->file.tokenizer) {
		error_set(err, ERROR_ARGUMENT, "the model has no tokenizer, and a grammar is about text");
		return NULL;
	}
	if (!(v = vocabulary_open(m->file.spec.vocab, piece, m->file.tokenizer, err)))
		return NULL;
	if (!atomic_compare_exchange_strong(&m->vocabulary, &none, v)) {
		vocabulary_close(v);
		v = none;
	}
	return v;
}

void session_grammar_close(struct session_grammar *g)
{
	if (!g)
		return;
	grammar_close(g->grammar);
	free(g->logits);
	free(g->position);
	free(g);
}

static enum grammar_kind kind_of(int kind)
{
	return kind == JIT_GRAMMAR_REGEX ? GRAMMAR_REGEX : kind == JIT_GRAMMAR_GBNF ? GRAMMAR_GBNF : GRAMMAR_SCHEMA;
}

/* What must follow in few tokens, as models mostly write it. */
static uint32_t guess(void *user, int32_t *ids, uint32_t most)
{
	struct session_grammar *g = user;
	char text[FORCED_MOST];
	size_t n = grammar_forced(g->grammar, text, sizeof text), at = 0, bytes;
	uint32_t found = 0;

	for (; found < most && at < n; at += bytes) {
		ids[found] = (int32_t)vocabulary_longest(g->vocabulary, text + at, n - at, &bytes);
		if (!bytes)
			break;
		found++;
	}
	return found;
}

static uint32_t fit(void *user, const int32_t *ids, uint32_t n)
{
	struct session_grammar *g = user;
	char text[FORCED_MOST] = "";
	size_t bytes, end[SPECULATE_MOST], n_text = 0;
	uint32_t given = 0, fits = 0;

	for (; given < n && given < SPECULATE_MOST; given++) {
		const char *p = piece((void *)(uintptr_t)g->tokenizer, (uint32_t)ids[given], &bytes);
		if (!bytes || bytes > sizeof text - n_text)
			break;
		memcpy(text + n_text, p, bytes);
		end[given] = n_text += bytes;
	}
	n_text = grammar_fitting(g->grammar, text, n_text);
	while (fits < given && end[fits] <= n_text)
		fits++;
	return fits;
}

static struct session_grammar *open_grammar(jit_model *m, int kind, const char *text, size_t n, struct error *err)
{
	const struct vocabulary *v = vocabulary_of(m, err);
	struct session_grammar *g = v ? calloc(1, sizeof *g) : NULL;

	if (g) {
		g->logits = malloc(m->file.spec.vocab * sizeof *g->logits);
		g->grammar = grammar_open(v, kind_of(kind), text, n, err);
		g->vocabulary = v;
		g->tokenizer = m->file.tokenizer;
		g->rules = (struct speculate_rules){ .user = g, .guess = guess, .fit = fit };
	}
	if (g && g->logits && g->grammar)
		return g;
	error_set(err, ERROR_MEMORY, "no memory for a grammar");
	session_grammar_close(g);
	return NULL;
}

int jit_session_set_grammar(jit_session *s, int kind, const char *text, size_t n, jit_error *err)
{
	struct error e = { 0 };
	struct session_grammar *g = NULL;

	if (kind < JIT_GRAMMAR_NONE || kind > JIT_GRAMMAR_GBNF)
		error_set(&e, ERROR_ARGUMENT, "kind is %d, expected one of enum JIT_GRAMMAR_NONE to JIT_GRAMMAR_GBNF",
		          kind);
	else if (kind != JIT_GRAMMAR_NONE && !text)
		error_set(&e, ERROR_ARGUMENT, "text is NULL, expected a grammar");
	else if (kind == JIT_GRAMMAR_NONE || (g = open_grammar(s->model, kind, text, n, &e))) {
		session_grammar_close(s->grammar);
		s->grammar = g;
		s->speculate.rules = g ? &g->rules : NULL;
	}
	return model_report(err, &e);
}

int jit_session_grammar_complete(jit_session *s)
{
	struct error e = { 0 };
	bool ends = false;

	if (!s->grammar || !grammar_allowed(s->grammar->grammar, &ends, &e))
		return -1;
	return ends;
}

/* Most words of bits are all zeros or all ones. */
static bool copy_allowed(float *to, const float *from, uint32_t n, uint32_t bits)
{
	if (bits == UINT32_MAX && n == 32) {
		memcpy(to, from, 32 * sizeof *to);
		return true;
	}
	for (uint32_t i = 0; i < n; i++)
		to[i] = -INFINITY;
	for (uint32_t left = bits; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);
		to[i] = from[i];
	}
	return bits != 0;
}

const float *session_grammar_logits(jit_session *s, const float *logits, struct error *err)
{
	struct session_grammar *g = s->grammar;
	const uint32_t vocab = s->model->file.spec.vocab;
	bool ends = false, any = false;
	const uint32_t *bits = grammar_allowed(g->grammar, &ends, err);

	if (!bits)
		return NULL;
	for (uint32_t from = 0; from < vocab; from += 32)
		any |= copy_allowed(g->logits + from, logits + from, vocab - from < 32 ? vocab - from : 32,
		                    bits[from / 32]);
	for (uint32_t id = 0; ends && id < vocab; id++)
		if (tokenizer_is_eog(s->model->file.tokenizer, (int32_t)id)) {
			g->logits[id] = logits[id];
			any = true;
		}
	if (any)
		return g->logits;
	error_set(err, ERROR_ARGUMENT,
	          ends ? "the text is complete by its grammar, and the model has no token that ends it"
	               : "no token of this model can follow by the grammar");
	return NULL;
}

bool session_grammar_take(jit_session *s, const int32_t *ids, size_t n, struct error *err)
{
	struct session_grammar *g = s->grammar;
	const size_t before = grammar_taken(g->grammar);
	void *all = g->position;
	bool ok = array_grow(&all, &g->room, before + n, sizeof *g->position) ||
	          error_set(err, ERROR_MEMORY, "no memory for a grammar");

	g->position = all;
	for (size_t i = 0; i < n && ok; i++) {
		size_t bytes;
		const char *text = piece(s->model->file.tokenizer, (uint32_t)ids[i], &bytes);
		if (bytes == 0)
			continue; /* end tokens, and others that say nothing */
		g->position[grammar_taken(g->grammar)] = s->length + i;
		ok = grammar_take(g->grammar, text, bytes, err);
	}
	if (!ok)
		grammar_rewind(g->grammar, before);
	return ok;
}

void session_grammar_rewind(jit_session *s, size_t n)
{
	struct session_grammar *g = s->grammar;
	size_t taken = grammar_taken(g->grammar);

	while (taken && g->position[taken - 1] >= n)
		taken--;
	grammar_rewind(g->grammar, taken);
}
