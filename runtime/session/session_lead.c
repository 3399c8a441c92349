/* runtime/session/session_lead.c - the part of a text that stands before what its grammar is about.
 *
 * A state is small and is made of the tokens alone: after a rewind the tokens are walked over again.
 */
#include "runtime/session/session_lead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers/think.h"
#include "base/array.h"

enum {
	PAIRS = THINK_MARKS / 2,
	SPACE_MAX = 4 /* bytes of white space behind the reasoning, beside what the grammar itself takes */
};

struct list {
	int32_t *ids;
	size_t n;
};

struct state {
	enum lead_phase phase;
	unsigned pair;  /* inside and behind: which marks */
	size_t matched; /* bytes of a mark that the text ends with */
	uint32_t may;   /* before: pairs of which `matched` bytes stand there; 0: none any more */
	bool plain;     /* before: the text may also be one without reasoning */
	size_t opened;  /* tokens of the fixed opening that stand there */
	size_t spaces;  /* bytes of white space behind the reasoning */
	bool reasoned;  /* which of both openings it is */
};

struct lead {
	const struct tokenizer *tokenizer;
	uint32_t vocab;
	struct state start, now;
	struct list first, behind;
	struct list beyond; /* tokens that may close the reasoning of beyond_of and have more than space behind it */
	size_t beyond_room;
	unsigned beyond_of;
	bool beyond_known;
	bool may_end;
};

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static size_t spaces_of(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && is_space(text[i]))
		i++;
	return i;
}

static const char *opening_mark(unsigned pair) { return think_mark(2 * pair); }
static const char *closing_mark(unsigned pair) { return think_mark(2 * pair + 1); }

static const char *spell(const struct lead *l, int32_t id, char scratch[256], size_t *n)
{
	*n = 0;
	return tokenizer_piece(l->tokenizer, id, false, true, scratch, n);
}

static bool copy(struct list *to, const int32_t *ids, size_t n)
{
	to->ids = malloc((n + 1) * sizeof *ids);
	to->n = to->ids ? n : 0;
	if (to->n)
		memcpy(to->ids, ids, n * sizeof *ids);
	return to->ids != NULL;
}

struct lead *lead_open(const struct tokenizer *t, uint32_t vocab, const struct session_lead *o, struct error *err)
{
	struct lead *l = calloc(1, sizeof *l);

	if (!l || !copy(&l->first, o->first, o->n_first) || !copy(&l->behind, o->behind, o->n_behind)) {
		lead_close(l);
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
		return NULL;
	}
	l->tokenizer = t;
	l->vocab = vocab;
	l->may_end = o->may_end;
	l->start.pair = o->pair;
	l->start.may = o->may;
	l->start.plain = true;
	l->start.phase = o->inside ? LEAD_INSIDE : o->may ? LEAD_BEFORE : o->n_first ? LEAD_OPENING : LEAD_BEHIND;
	l->now = l->start;
	return l;
}

void lead_close(struct lead *l)
{
	if (!l)
		return;
	free(l->first.ids);
	free(l->behind.ids);
	free(l->beyond.ids);
	free(l);
}

enum lead_phase lead_phase(const struct lead *l) { return l ? l->now.phase : LEAD_BEHIND; }

void lead_restart(struct lead *l, struct grammar *g)
{
	l->now = l->start;
	grammar_rewind(g, 0);
}

/* ---- the reasoning */

/* How much of the mark the text ends with, behind one more byte. */
static size_t match(const char *mark, size_t matched, char c)
{
	for (;;) {
		if (mark[matched] == c)
			return matched + 1;
		if (!matched)
			return 0;
		size_t shorter = matched - 1;
		while (shorter && memcmp(mark, mark + matched - shorter, shorter) != 0)
			shorter--;
		matched = shorter;
	}
}

/* Bytes of the text up to the end of the mark that closes the reasoning; n: it goes on, unless the phase has changed.
 */
static size_t walk_inside(struct state *s, const char *text, size_t n)
{
	const char *mark = closing_mark(s->pair);
	const size_t length = strlen(mark);

	for (size_t i = 0; i < n; i++) {
		s->matched = match(mark, s->matched, text[i]);
		if (s->matched == length) {
			s->phase = LEAD_SPACE;
			s->matched = s->spaces = s->opened = 0;
			s->reasoned = true;
			return i + 1;
		}
	}
	return n;
}

static bool refused(struct error *err)
{
	return error_set(err, ERROR_ARGUMENT, "the grammar does not allow this token here");
}

/* A token that is for the grammar, or a part of one, which rules about whole tokens do not see. */
static bool give(struct lead *l, struct grammar *g, uint32_t id, const char *text, size_t n, struct error *err)
{
	const struct grammar_token token = { id, text, n };

	if (!grammar_take(g, &token, err))
		return false;
	l->now.phase = LEAD_BEHIND;
	return true;
}

/* What stands behind the closing mark in the same token. */
static bool take_rest(struct lead *l, struct grammar *g, const char *text, size_t n, struct error *err)
{
	const size_t space = spaces_of(text, n);
	struct error why = { 0 };

	if (space == n) {
		l->now.spaces += n;
		return true;
	}
	if (l->behind.n)
		return refused(err);
	return give(l, g, UINT32_MAX, text, n, &why) || give(l, g, UINT32_MAX, text + space, n - space, err);
}

static bool take_inside(struct lead *l, struct grammar *g, const char *text, size_t n, struct error *err)
{
	const size_t at = walk_inside(&l->now, text, n);

	return l->now.phase == LEAD_INSIDE || take_rest(l, g, text + at, n - at, err);
}

/* ---- the opening, and the grammar's first token */

static const struct list *opening(const struct lead *l) { return l->now.reasoned ? &l->behind : &l->first; }

static bool take_opening(struct lead *l, int32_t id, struct error *err)
{
	const struct list *list = opening(l);

	if (id != list->ids[l->now.opened])
		return refused(err);
	l->now.phase = ++l->now.opened < list->n ? LEAD_OPENING : LEAD_BEHIND;
	return true;
}

static bool take_space(struct lead *l, struct grammar *g, int32_t id, const char *text, size_t n,
                       const struct grammar_token *own, struct error *err)
{
	const size_t space = spaces_of(text, n);
	struct error why = { 0 };

	if (l->behind.n ? take_opening(l, id, &why) : own && give(l, g, own->id, own->text, own->n, &why))
		return true;
	if (why.code == ERROR_MEMORY || (!l->behind.n && !own))
		return why.code ? error_set(err, why.code, "%s", why.text) : true;
	if (l->now.spaces + space > SPACE_MAX || space == 0)
		return error_set(err, why.code, "%s", why.text);
	l->now.spaces += space;
	return space == n || (!l->behind.n && give(l, g, UINT32_MAX, text + space, n - space, err)) || refused(err);
}

/* ---- before: both ways at the same time */

/* Goes on in the text without reasoning. */
static bool take_plain(struct lead *l, struct grammar *g, int32_t id, const struct grammar_token *own,
                       struct error *err)
{
	struct state *s = &l->now;

	if (s->opened < l->first.n)
		return id == l->first.ids[s->opened] ? (s->opened++, true) : refused(err);
	return !own || grammar_take(g, own, err);
}

/* Goes on in the opening marks. The pair whose mark is whole, and *at bytes of the token belong to it; PAIRS: none. */
static unsigned walk_marks(struct state *s, const char *text, size_t n, size_t *at)
{
	uint32_t left = 0;

	for (unsigned i = 0; i < PAIRS; i++) {
		const char *mark = opening_mark(i) + (s->may >> i & 1 ? s->matched : 0);
		const size_t rest = strlen(mark);
		if (!(s->may >> i & 1) || memcmp(mark, text, n < rest ? n : rest) != 0)
			continue;
		if (n >= rest) {
			*at = rest;
			return i;
		}
		left |= 1U << i;
	}
	s->may = left;
	s->matched += n;
	return PAIRS;
}

static bool take_before(struct lead *l, struct grammar *g, int32_t id, const char *text, size_t n,
                        const struct grammar_token *own, struct error *err)
{
	struct state *s = &l->now;
	struct error why = { 0 };
	size_t at = 0;
	const unsigned pair = walk_marks(s, text, n, &at);

	if (pair < PAIRS) {
		*s = (struct state){ .phase = LEAD_INSIDE, .pair = pair };
		grammar_rewind(g, 0);
		return take_inside(l, g, text + at, n - at, err);
	}
	s->plain = s->plain && take_plain(l, g, id, own, &why);
	if (why.code == ERROR_MEMORY)
		return error_set(err, why.code, "%s", why.text);
	if (!s->plain && !s->may)
		return refused(err);
	if (!s->may)
		s->phase = s->opened < l->first.n ? LEAD_OPENING : LEAD_BEHIND;
	return true;
}

bool lead_take(struct lead *l, struct grammar *g, int32_t id, const struct grammar_token *own, struct error *err)
{
	char scratch[256];
	size_t n;
	const char *text = spell(l, id, scratch, &n);

	if (n == 0 || tokenizer_is_eog(l->tokenizer, id))
		return true;
	switch (l->now.phase) {
	case LEAD_BEFORE: return take_before(l, g, id, text, n, own, err);
	case LEAD_INSIDE: return take_inside(l, g, text, n, err);
	case LEAD_SPACE: return take_space(l, g, id, text, n, own, err);
	case LEAD_OPENING: return take_opening(l, id, err);
	case LEAD_BEHIND: break;
	}
	return true;
}

/* ---- what may follow */

bool lead_has_grammar(const struct lead *l)
{
	return l->now.phase == LEAD_BEHIND || (l->now.phase == LEAD_SPACE && !l->behind.n) ||
	       (l->now.phase == LEAD_BEFORE && l->now.plain && l->now.opened == l->first.n);
}

/* Whether a token can close the reasoning, from some place in the mark on, and has more than space behind it. */
static bool goes_beyond(const char *mark, const char *text, size_t n)
{
	const size_t length = strlen(mark);

	for (size_t k = 0; k < length; k++) { /* so much of the mark stands before the token */
		const size_t rest = length - k;
		if (rest < n && memcmp(mark + k, text, rest) == 0 && spaces_of(text + rest, n - rest) < n - rest)
			return true;
	}
	const char *at = memmem(text, n, mark, length);
	return at && spaces_of(at + length, n - length - (size_t)(at - text)) < n - length - (size_t)(at - text);
}

static bool find_beyond(struct lead *l)
{
	char scratch[256];

	if (l->beyond_known && l->beyond_of == l->now.pair)
		return true;
	l->beyond.n = 0;
	for (uint32_t id = 0; id < l->vocab; id++) {
		size_t n;
		void *all = l->beyond.ids;
		const char *text = spell(l, (int32_t)id, scratch, &n);
		if (!goes_beyond(closing_mark(l->now.pair), text, n))
			continue;
		if (!array_grow(&all, &l->beyond_room, l->beyond.n + 1, sizeof *l->beyond.ids))
			return false;
		l->beyond.ids = all;
		l->beyond.ids[l->beyond.n++] = (int32_t)id;
	}
	l->beyond_of = l->now.pair;
	l->beyond_known = true;
	return true;
}

/* All of the vocabulary but what ends an answer, and what would go on behind the mark with a text that the grammar was
 * not asked about. */
static bool allow_inside(struct lead *l, const float *logits, float *out)
{
	char scratch[256];

	if (!find_beyond(l))
		return false;
	memcpy(out, logits, l->vocab * sizeof *out);
	for (uint32_t id = 0; id < l->vocab && !l->may_end; id++)
		if (tokenizer_is_eog(l->tokenizer, (int32_t)id))
			out[id] = -INFINITY;
	for (size_t i = 0; i < l->beyond.n; i++) {
		struct state s = l->now;
		size_t n;
		const char *text = spell(l, l->beyond.ids[i], scratch, &n);
		const size_t at = walk_inside(&s, text, n);
		if (s.phase != LEAD_INSIDE && spaces_of(text + at, n - at) < n - at)
			out[l->beyond.ids[i]] = -INFINITY;
	}
	return true;
}

/* Whether a token goes on in a mark that opens reasoning, with nothing but space behind it. */
static bool goes_on(const struct lead *l, const char *text, size_t n)
{
	struct state s = l->now;
	size_t at = n;
	const unsigned pair = walk_marks(&s, text, n, &at);

	return pair < PAIRS ? spaces_of(text + at, n - at) == n - at : s.may != 0;
}

static bool is_allowed(const struct lead *l, const char *text, size_t n)
{
	return l->now.phase == LEAD_BEFORE ? goes_on(l, text, n)
	                                   : spaces_of(text, n) == n && l->now.spaces + n <= SPACE_MAX;
}

bool lead_allow(struct lead *l, const float *logits, float *out, bool *any)
{
	const struct state *s = &l->now;
	const struct list *list = opening(l);
	char scratch[256];

	if (s->phase == LEAD_INSIDE) {
		*any = true;
		return allow_inside(l, logits, out);
	}
	const bool opens = s->opened < list->n && (s->phase != LEAD_BEFORE || s->plain);
	if (opens)
		out[list->ids[s->opened]] = logits[list->ids[s->opened]];
	*any |= opens;
	for (uint32_t id = 0; id < l->vocab && (s->phase == LEAD_BEFORE || s->phase == LEAD_SPACE); id++) {
		size_t n;
		const char *text = spell(l, (int32_t)id, scratch, &n);
		if (!n || tokenizer_is_eog(l->tokenizer, (int32_t)id) || !is_allowed(l, text, n))
			continue;
		out[id] = logits[id];
		*any = true;
	}
	return true;
}

/* ---- for drafts */

uint32_t lead_guess(const struct lead *l, int32_t *ids, uint32_t max)
{
	const struct list *list = opening(l);
	uint32_t n = 0;

	for (size_t i = l->now.opened; l->now.phase == LEAD_OPENING && i < list->n && n < max; i++)
		ids[n++] = list->ids[i];
	return n;
}

uint32_t lead_fit(const struct lead *l, const int32_t *ids, uint32_t n)
{
	const struct list *list = opening(l);
	struct state s = l->now;
	char scratch[256];
	uint32_t i = 0;

	if (s.phase == LEAD_OPENING)
		while (i < n && s.opened + i < list->n && ids[i] == list->ids[s.opened + i])
			i++;
	for (; s.phase == LEAD_INSIDE && i < n && !tokenizer_is_eog(l->tokenizer, ids[i]); i++) {
		size_t bytes;
		const char *text = spell(l, ids[i], scratch, &bytes);
		walk_inside(&s, text, bytes);
	}
	return i;
}
