/* runtime/session/session_grammar.c - a session whose choices keep to a grammar.
 *
 * Owns: the grammar's state beside the session's tokens, and the logits without what it forbids, from which the sampler
 * chooses. A model's tokens as a tree are made once, by the first session that needs them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "grammar/call/call.h"
#include "grammar/machine/effort.h"
#include "grammar/grammar.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session_grammar_parts.h"
#include "runtime/session/session_state.h"

enum { FORCED_MAX = 256 };

/* Tokens with the control tokens whose text is part of some marks. A model has mostly one such set. */
struct marked_vocabulary {
	char *marks;
	struct vocabulary *vocabulary;
};

enum { MARK_MIN = 3 /* bytes of a control token that may be part of a mark */ };

static const char *piece(void *user, uint32_t id, size_t *n)
{
	static _Thread_local char scratch[256];
	const struct spelling *s = user;
	const char *text = tokenizer_piece(s->tokenizer, (int32_t)id, false, false, scratch, n);

	if (*n || !s->marks || tokenizer_is_eog(s->tokenizer, (int32_t)id))
		return text;
	text = tokenizer_piece(s->tokenizer, (int32_t)id, false, true, scratch, n);
	if (*n < MARK_MIN || !memmem(s->marks, strlen(s->marks), text, *n))
		*n = 0;
	return text;
}

/* Two sessions may come at the same time: the second one's is given back. */
static const struct vocabulary *vocabulary_of(jit_model *m, struct error *err)
{
	struct vocabulary *v = atomic_load(&m->vocabulary), *none = NULL;
	struct spelling s = { .tokenizer = m->file.tokenizer };

	if (v)
		return v;
	if (!m->file.tokenizer) {
		error_set(err, ERROR_ARGUMENT, "the model has no tokenizer, and a grammar is about text");
		return NULL;
	}
	if (!(v = vocabulary_open(m->file.spec.vocab, piece, &s, err)))
		return NULL;
	if (!atomic_compare_exchange_strong(&m->vocabulary, &none, v)) {
		vocabulary_close(v);
		v = none;
	}
	return v;
}

static void marked_close(struct marked_vocabulary *v)
{
	if (!v)
		return;
	vocabulary_close(v->vocabulary);
	free(v->marks);
	free(v);
}

/* Whether any control token is part of the marks: without one, the common vocabulary does. */
static bool has_marks(const jit_model *m, const char *marks)
{
	struct spelling plain = { .tokenizer = m->file.tokenizer }, s = { plain.tokenizer, marks };
	const struct marked_vocabulary *known = atomic_load(&m->marked);
	bool any = known && strcmp(known->marks, marks) == 0;

	for (uint32_t id = 0; id < m->file.spec.vocab && !any; id++) {
		size_t n = 0, with = 0;
		piece(&plain, id, &n);
		any = !n && (piece(&s, id, &with), with > 0);
	}
	return any;
}

/* marks is taken over. *own: it is the caller's; else the model's. */
static const struct marked_vocabulary *marked_of(jit_model *m, char *marks, bool *own, struct error *err)
{
	struct marked_vocabulary *v = atomic_load(&m->marked), *none = NULL;
	struct spelling s = { .tokenizer = m->file.tokenizer, .marks = marks };

	*own = false;
	if (v && strcmp(v->marks, marks) == 0) {
		free(marks);
		return v;
	}
	if (!(v = calloc(1, sizeof *v))) {
		free(marks);
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
		return NULL;
	}
	v->marks = marks;
	v->vocabulary = vocabulary_open(m->file.spec.vocab, piece, &s, err);
	if (!v->vocabulary) {
		marked_close(v);
		return NULL;
	}
	*own = !atomic_compare_exchange_strong(&m->marked, &none, v);
	return v;
}

void session_grammar_forget(jit_model *m)
{
	vocabulary_close(atomic_load(&m->vocabulary));
	marked_close(atomic_load(&m->marked));
}

void session_grammar_close(struct session_grammar *g)
{
	if (!g)
		return;
	grammar_close(g->grammar);
	marked_close(g->own);
	lead_close(g->lead);
	free(g->logits);
	free(g->position);
	free(g->silent);
	free(g);
}

static unsigned kind_of(int of)
{
	const int kind = of & ~JIT_GRAMMAR_ADDITIONAL;
	const unsigned how = of & JIT_GRAMMAR_ADDITIONAL ? WRITE_ADDITIONAL : 0;

	return how | (kind == JIT_GRAMMAR_REGEX  ? GRAMMAR_REGEX
	              : kind == JIT_GRAMMAR_GBNF ? GRAMMAR_GBNF
	              : kind == JIT_GRAMMAR_CALL ? GRAMMAR_CALL
	              : kind == JIT_GRAMMAR_LARK ? GRAMMAR_LARK
	                                         : GRAMMAR_SCHEMA);
}

/* What must follow in few tokens, as models mostly write it. */
static uint32_t guess(void *user, int32_t *ids, uint32_t max)
{
	struct session_grammar *g = user;
	char text[FORCED_MAX];
	uint32_t found = 0;

	if (lead_phase(g->lead) != LEAD_BEHIND)
		return lead_guess(g->lead, ids, max);
	size_t n = grammar_forced(g->grammar, text, sizeof text), at = 0, bytes;
	for (; found < max && at < n; at += bytes) {
		ids[found] = (int32_t)vocabulary_longest(g->vocabulary, text + at, n - at, &bytes);
		if (!bytes)
			break;
		found++;
	}
	return found;
}

/* Whether a token is one for the grammar; its text goes to *text. End tokens are none, and others that say nothing,
 * unless rules speak of them. */
static bool token_of(struct session_grammar *g, int32_t id, struct grammar_token *t)
{
	t->id = (uint32_t)id;
	t->text = piece(&g->spelling, t->id, &t->n);
	return t->n || (grammar_is_of_tokens(g->grammar) && !tokenizer_is_eog(g->spelling.tokenizer, id));
}

static uint32_t fit(void *user, const int32_t *ids, uint32_t n)
{
	struct session_grammar *g = user;
	struct grammar_token token[SPECULATE_MAX];
	char text[FORCED_MAX] = "";
	size_t n_text = 0;
	uint32_t given = 0;

	if (lead_phase(g->lead) != LEAD_BEHIND)
		return lead_fit(g->lead, ids, n);
	for (; given < n && given < SPECULATE_MAX; given++) {
		struct grammar_token *t = &token[given];
		if (!token_of(g, ids[given], t) || t->n > sizeof text - n_text)
			break;
		memcpy(text + n_text, t->text, t->n);
		t->text = text + n_text;
		n_text += t->n;
	}
	return (uint32_t)grammar_fitting(g->grammar, token, given);
}

/* ---- rules that speak of whole tokens */

static uint32_t named(void *user, const char *text, size_t n)
{
	struct session_grammar *g = user;
	struct error ignored = { 0 };
	int32_t *ids = NULL;
	size_t n_ids = 0;
	uint32_t id = UINT32_MAX;

	if (tokenizer_encode(g->spelling.tokenizer, text, n, TOKENIZE_SPECIAL, &ids, &n_ids, &ignored) && n_ids == 1)
		id = (uint32_t)ids[0];
	free(ids);
	return id;
}

/* Those that end texts are no part of one, and half a character would be none. */
static bool takes(void *user, uint32_t id)
{
	struct session_grammar *g = user;
	char scratch[256];
	size_t n = 0;
	uint32_t code;

	if (id >= g->tokens.n_ids || tokenizer_is_eog(g->spelling.tokenizer, (int32_t)id))
		return false;
	const char *text = tokenizer_piece(g->spelling.tokenizer, (int32_t)id, false, true, scratch, &n);
	if (n == 0)
		return false;
	for (unsigned length; n; text += length, n -= length)
		if (!(length = text_char(text, n, &code)) || code == 0)
			return false;
	return true;
}

/* The tokens that a grammar is about. */
static bool set_vocabulary(struct session_grammar *g, jit_model *m, int kind, const char *text, size_t n,
                           struct error *err)
{
	char *marks =
		(kind & ~JIT_GRAMMAR_ADDITIONAL) == JIT_GRAMMAR_CALL && m->file.tokenizer ? call_marks(text, n) : NULL;
	const struct marked_vocabulary *marked;
	bool own;

	g->spelling.tokenizer = m->file.tokenizer;
	if (!marks || !has_marks(m, marks)) {
		free(marks);
		g->vocabulary = vocabulary_of(m, err);
		return g->vocabulary != NULL;
	}
	if (!(marked = marked_of(m, marks, &own, err)))
		return false;
	g->own = own ? (struct marked_vocabulary *)(uintptr_t)marked : NULL;
	g->vocabulary = marked->vocabulary;
	g->spelling.marks = marked->marks;
	return true;
}

struct session_grammar *session_grammar_open(jit_model *m, int kind, const char *text, size_t n, uint64_t *steps,
                                             struct error *err)
{
	struct session_grammar *g = calloc(1, sizeof *g);

	if (g && set_vocabulary(g, m, kind, text, n, err)) {
		g->logits = malloc(m->file.spec.vocab * sizeof *g->logits);
		g->tokens = (struct machine_tokens){ g, m->file.spec.vocab, named, takes };
		g->grammar = grammar_open_within(g->vocabulary, kind_of(kind), text, n, &g->tokens, steps, err);
		g->rules = (struct speculate_rules){ .user = g, .guess = guess, .fit = fit };
	}
	if (g && g->logits && g->grammar)
		return g;
	error_set(err, ERROR_MEMORY, "no memory for a grammar");
	session_grammar_close(g);
	return NULL;
}

static bool cancelled(void *user)
{
	const struct session_grammar *g = user;

	return (g->session && cancel_any(&g->session->cancel)) || (g->gone && g->gone(g->user));
}

void session_grammar_give(jit_session *s, struct session_grammar *g)
{
	session_grammar_close(s->grammar);
	s->grammar = g;
	s->speculate.rules = g ? &g->rules : NULL;
	if (g) {
		g->session = s;
		grammar_watch(g->grammar, cancelled, g);
	}
}

void session_grammar_watch(jit_session *s, bool (*gone)(void *user), void *user)
{
	s->grammar->gone = gone;
	s->grammar->user = user;
}

int jit_session_grammar_complete(jit_session *s)
{
	struct error e = { 0 };
	bool ends = false;

	if (!s || !s->grammar || !grammar_allowed(s->grammar->grammar, &ends, &e))
		return -1;
	return ends && (!s->grammar->lead || lead_has_grammar(s->grammar->lead));
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

/* Where the text is free, tokens that are no text of it may come, too. */
static bool allow_silent(struct session_grammar *g, const float *logits, struct error *err)
{
	const struct vocabulary *v = g->vocabulary;
	const uint32_t vocab = g->tokens.n_ids;

	if (!grammar_is_free(g->grammar))
		return true;
	if (!g->silent) {
		if (!(g->silent = calloc(vocab / 32 + 1, sizeof *g->silent)))
			return error_set(err, ERROR_MEMORY, "no memory for a grammar");
		memset(g->silent, 0xff, (vocab / 32 + 1) * sizeof *g->silent);
		for (uint32_t i = 0; i < v->n_tokens; i++)
			g->silent[v->token[i] / 32] &= ~(1u << v->token[i] % 32);
	}
	for (uint32_t from = 0; from < vocab; from += 32)
		for (uint32_t left = g->silent[from / 32]; left; left &= left - 1) {
			const uint32_t id = from + (uint32_t)__builtin_ctz(left);
			if (id < vocab)
				g->logits[id] = logits[id];
		}
	return true;
}

/* What the grammar allows, as its part of the text has begun or may begin here. */
static bool allow_grammar(struct session_grammar *g, const float *logits, bool *any, bool *ends, struct error *err)
{
	const uint32_t vocab = g->tokens.n_ids;
	if (g->why.code != ERROR_NONE) {
		*err = g->why;
		g->why = (struct error){ 0 };
		return false;
	}
	const uint32_t *bits = grammar_allowed(g->grammar, ends, err);
	if (!bits)
		return false;
	for (uint32_t from = 0; from < vocab; from += 32)
		*any |= copy_allowed(g->logits + from, logits + from, vocab - from < 32 ? vocab - from : 32,
		                     bits[from / 32]);
	for (uint32_t id = 0; *ends && id < vocab; id++)
		if (tokenizer_is_eog(g->spelling.tokenizer, (int32_t)id)) {
			g->logits[id] = logits[id];
			*any = true;
		}
	return allow_silent(g, logits, err);
}

const float *session_grammar_logits(jit_session *s, const float *logits, struct error *err)
{
	struct session_grammar *g = s->grammar;
	const bool leads = lead_phase(g->lead) != LEAD_BEHIND;
	bool ends = false, any = false;

	if (g->lost) {
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
		return NULL;
	}
	for (uint32_t id = 0; leads && id < g->tokens.n_ids; id++)
		g->logits[id] = -INFINITY;
	if ((!leads || lead_has_grammar(g->lead)) && !allow_grammar(g, logits, &any, &ends, err))
		return NULL;
	if (leads && !lead_allow(g->lead, logits, g->logits, &any)) {
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
		return NULL;
	}
	if (any)
		return g->logits;
	error_set(err, ERROR_ARGUMENT,
	          ends ? "the text is complete by its grammar, and the model has no token that ends it"
	               : "no token of this model can follow by the grammar");
	return NULL;
}

/* A token that stands at this position. */
static bool take_one(struct session_grammar *g, int32_t id, size_t position, struct error *err)
{
	const size_t taken = grammar_taken(g->grammar);
	struct grammar_token token;
	const bool is_one = token_of(g, id, &token);

	g->position[taken] = position;
	if (lead_phase(g->lead) != LEAD_BEHIND) {
		g->led = position + 1;
		return lead_take(g->lead, g->grammar, id, is_one ? &token : NULL, err);
	}
	return !is_one || grammar_take(g->grammar, &token, err);
}

/* At the position n of the session, as its tokens lead there. */
static void walk_again(jit_session *s, size_t n)
{
	struct session_grammar *g = s->grammar;
	struct error ignored = { 0 };

	lead_restart(g->lead, g->grammar);
	for (size_t i = g->begin; i < n && !g->lost; i++)
		g->lost = !take_one(g, s->ids[i], i, &ignored);
}

bool session_grammar_take(jit_session *s, const int32_t *ids, size_t n, struct error *err)
{
	struct session_grammar *g = s->grammar;
	const size_t before = grammar_taken(g->grammar);
	const bool led = lead_phase(g->lead) != LEAD_BEHIND;
	void *all = g->position;
	bool ok = array_grow(&all, &g->room, before + n, sizeof *g->position) ||
	          error_set(err, ERROR_MEMORY, "no memory for a grammar");

	g->position = all;
	for (size_t i = 0; i < n && ok; i++)
		ok = take_one(g, ids[i], s->length + i, err);
	if (!ok && led)
		walk_again(s, s->length);
	else if (!ok)
		grammar_rewind(g->grammar, before);
	return ok;
}

void session_grammar_rewind(jit_session *s, size_t n)
{
	struct session_grammar *g = s->grammar;
	size_t taken = grammar_taken(g->grammar);

	if (g->lead && (lead_phase(g->lead) != LEAD_BEHIND || n < g->led)) {
		g->begin = g->begin < n ? g->begin : n;
		walk_again(s, n);
		return;
	}
	while (taken && g->position[taken - 1] >= n)
		taken--;
	grammar_rewind(g->grammar, taken);
}

/* Its state stays: it has taken those tokens. */
void session_grammar_shift(struct session_grammar *g, const struct session_cut *cut)
{
	for (size_t i = 0; i < grammar_taken(g->grammar); i++)
		g->position[i] = session_cut_position(cut, g->position[i]);
	g->begin = session_cut_position(cut, g->begin);
	g->led = session_cut_position(cut, g->led);
}

bool session_grammar_lead(jit_session *s, const struct session_lead *lead, struct error *err)
{
	struct session_grammar *g = s->grammar;

	if (!lead->inside && !lead->may && !lead->n_first)
		return true;
	g->begin = s->length;
	g->lead = lead_open(g->spelling.tokenizer, g->tokens.n_ids, lead, err);
	return g->lead != NULL;
}

bool session_grammar_reasons(const jit_session *s) { return lead_phase(s->grammar->lead) == LEAD_INSIDE; }
