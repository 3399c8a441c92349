/* runtime/session/session_limits.c - what else bounds the choices of a session, beside its grammar.
 *
 * The state of a session is a walk over its own tokens: after a rewind it starts again, and comes to the same.
 */
#include "runtime/session/session_limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers/think.h"
#include "include/jitrun_grammar.h"
#include "runtime/model/model.h"
#include "runtime/session/session_state.h"

enum {
	PAIRS = THINK_MARKS / 2,
	TAIL = 4096,  /* bytes of a text that is not to be generated, at most */
	OPENING = 32, /* tokens of the prompt in which the mark that opens reasoning is looked for */
	CHARACTER = 4 /* tokens that a character may still take before the reasoning is closed within it */
};

struct list {
	int32_t *ids;
	size_t n;
};

struct session_limits {
	const jit_model *model;
	uint8_t *never; /* vocab: tokens that are not chosen; NULL: there are none */
	struct list *words;
	size_t n_words;
	char **texts;
	size_t n_texts, longest; /* bytes of the longest */
	int64_t min, budget;
	struct list ends;
	struct list closing[PAIRS]; /* what closes the reasoning, by the marks that opened it */
};

struct session_limited {
	const struct session_limits *limits;
	float *logits;
	size_t begin, known; /* the first token they hold for; tokens from there to `known` are walked over */
	size_t gone;         /* tokens they hold for that were taken out of the text */
	struct think think;
	int64_t inside;   /* tokens of reasoning among them */
	unsigned missing; /* bytes of a character that has begun */
	bool closes;      /* from closes_at on, these are the tokens: */
	size_t closes_at;
	const struct list *closing;
};

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "no memory for limits of tokens"); }

static const char *spell(const jit_model *m, int32_t id, bool special, char scratch[256], size_t *n)
{
	*n = 0;
	return m->file.tokenizer ? tokenizer_piece(m->file.tokenizer, id, false, special, scratch, n) : "";
}

/* ---- opening */

static bool copy_list(struct list *to, const int32_t *ids, size_t n)
{
	to->ids = malloc((n + 1) * sizeof *ids);
	to->n = to->ids ? n : 0;
	if (to->ids && n)
		memcpy(to->ids, ids, n * sizeof *ids);
	return to->ids != NULL;
}

static bool copy_texts(struct session_limits *l, const struct session_limits_options *o, struct error *err)
{
	l->texts = calloc(o->n_texts + 1, sizeof *l->texts);
	for (size_t i = 0; l->texts && i < o->n_texts; i++) {
		const size_t n = strlen(o->texts[i]);
		if (n == 0 || n > TAIL)
			return error_set(err, ERROR_ARGUMENT,
			                 "a text that is not to be generated has %zu bytes, "
			                 "expected 1 to %d",
			                 n, TAIL);
		if (!(l->texts[l->n_texts] = strdup(o->texts[i])))
			return no_memory(err);
		l->n_texts++;
		l->longest = n > l->longest ? n : l->longest;
	}
	return l->texts || no_memory(err);
}

static bool copy_words(struct session_limits *l, const struct session_limits_options *o, struct error *err)
{
	l->words = calloc(o->n_words + 1, sizeof *l->words);
	for (size_t i = 0; l->words && i < o->n_words; i++)
		if (o->words[i].n && !copy_list(&l->words[l->n_words++], o->words[i].ids, o->words[i].n))
			return no_memory(err);
	return l->words || no_memory(err);
}

/* Whether n bytes hold one of the texts. */
static bool holds_text(const struct session_limits *l, const char *bytes, size_t n)
{
	for (size_t i = 0; i < l->n_texts; i++)
		if (memmem(bytes, n, l->texts[i], strlen(l->texts[i])))
			return true;
	return false;
}

/* Tokens that the limits exclude wherever they stand. */
static bool find_never(struct session_limits *l, const struct session_limits_options *o, struct error *err)
{
	const uint32_t vocab = l->model->file.spec.vocab;
	char scratch[256];
	size_t n;

	if (!o->n_allowed && !o->n_texts)
		return true;
	if (!(l->never = calloc(vocab, 1)))
		return no_memory(err);
	if (o->n_allowed)
		memset(l->never, 1, vocab);
	for (size_t i = 0; i < o->n_allowed; i++)
		l->never[o->allowed[i]] = 0;
	for (uint32_t id = 0; l->n_texts && id < vocab; id++) {
		const char *text = spell(l->model, (int32_t)id, false, scratch, &n);
		l->never[id] |= holds_text(l, text, n);
	}
	return true;
}

/* Tokens of a text that stands behind others: some tokenizers put a space before the first one, and a line end takes
 * it. */
static bool encode_behind(const jit_model *m, const char *text, struct list *out)
{
	const size_t length = strlen(text);
	char *whole = malloc(length + 2);
	int32_t *first = NULL;
	size_t n_first = 0;

	if (!whole)
		return false;
	whole[0] = '\n';
	memcpy(whole + 1, text, length + 1);
	bool ok = jit_model_tokenize(m, "\n", 1, 0, 0, &first, &n_first, NULL) == JIT_OK &&
	          jit_model_tokenize(m, whole, length + 1, 0, 1, &out->ids, &out->n, NULL) == JIT_OK;
	if (ok && out->n >= n_first && memcmp(out->ids, first, n_first * sizeof *first) == 0) {
		out->n -= n_first;
		memmove(out->ids, out->ids + n_first, out->n * sizeof *first);
	} else if (ok) {
		free(out->ids);
		out->ids = NULL;
		ok = jit_model_tokenize(m, text, length, 0, 1, &out->ids, &out->n, NULL) == JIT_OK;
	}
	free(first);
	free(whole);
	return ok;
}

static bool make_closings(struct session_limits *l, const char *message, struct error *err)
{
	const char *before = message ? message : "";

	for (size_t i = 0; l->budget >= 0 && i < PAIRS; i++) {
		const char *mark = think_mark(2 * i + 1);
		char *text = malloc(strlen(before) + strlen(mark) + 1);
		if (!text)
			return no_memory(err);
		strcat(strcpy(text, before), mark);
		bool ok = encode_behind(l->model, text, &l->closing[i]);
		free(text);
		if (!ok)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "the model's tokenizer cannot write what closes its reasoning");
	}
	return true;
}

static bool check_ids(const jit_model *m, const int32_t *ids, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (uint32_t)ids[i] >= m->file.spec.vocab)
			return error_set(err, ERROR_ARGUMENT, "token %zu is %d, which is not in 0..%u", i, ids[i],
			                 m->file.spec.vocab - 1);
	return true;
}

struct session_limits *session_limits_open(const jit_model *m, const struct session_limits_options *o,
                                           struct error *err)
{
	struct session_limits *l = calloc(1, sizeof *l);
	bool ok = l || no_memory(err);

	if (l) {
		l->model = m;
		l->min = o->min;
		l->budget = m->file.tokenizer ? o->budget : -1;
	}
	ok = ok && check_ids(m, o->allowed, o->n_allowed, err) && check_ids(m, o->ends, o->n_ends, err);
	for (size_t i = 0; ok && i < o->n_words; i++)
		ok = check_ids(m, o->words[i].ids, o->words[i].n, err);
	ok = ok && (copy_list(&l->ends, o->ends, o->n_ends) || no_memory(err)) && copy_texts(l, o, err) &&
	     copy_words(l, o, err) && find_never(l, o, err) && make_closings(l, o->message, err);
	if (ok)
		return l;
	session_limits_close(l);
	return NULL;
}

void session_limits_close(struct session_limits *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_words; i++)
		free(l->words[i].ids);
	for (size_t i = 0; i < l->n_texts; i++)
		free(l->texts[i]);
	for (size_t i = 0; i < PAIRS; i++)
		free(l->closing[i].ids);
	free(l->words);
	free(l->texts);
	free(l->ends.ids);
	free(l->never);
	free(l);
}

/* ---- a session's walk */

/* Whether the prompt opens the reasoning, its last tokens say. */
static bool begin_walk(jit_session *s, struct session_limited *w)
{
	const size_t from = w->begin > OPENING ? w->begin - OPENING : 0;
	char text[OPENING * 256], scratch[256];
	size_t n = 0;

	for (size_t i = from; w->limits->budget >= 0 && i < w->begin; i++) {
		size_t more;
		const char *piece = spell(s->model, s->ids[i], true, scratch, &more);
		more = more < sizeof scratch ? more : sizeof scratch;
		memcpy(text + n, piece, more);
		n += more;
	}
	think_begin(&w->think, text, n);
	w->known = w->begin;
	w->inside = 0;
	w->missing = 0;
	w->closes = false;
	return true;
}

static void count_bytes(struct session_limited *w, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];
		if ((c & 0xc0) == 0x80)
			w->missing -= w->missing > 0;
		else
			w->missing = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0;
	}
}

/* Goes over the tokens that were chosen since: whether the reasoning is to be closed is known then. */
static bool walk(jit_session *s, struct session_limited *w)
{
	const struct session_limits *l = w->limits;
	struct think_parts parts;
	char scratch[256];
	size_t n;

	if (l->budget < 0)
		return true;
	for (;; w->known++) {
		const bool thinks = w->think.state == THINK_INSIDE;
		if (thinks && !w->closes && w->inside >= l->budget &&
		    (!w->missing || w->inside >= l->budget + CHARACTER)) {
			w->closes = true;
			w->closes_at = w->known;
			w->closing = &l->closing[w->think.marks];
		}
		if (w->known >= s->length)
			return true;
		const char *text = spell(s->model, s->ids[w->known], true, scratch, &n);
		w->inside += thinks;
		count_bytes(w, text, n);
		if (!think_take(&w->think, text, n, &parts))
			return false;
	}
}

bool session_set_limits(jit_session *s, const struct session_limits *l, struct error *err)
{
	struct session_limited *w = l ? calloc(1, sizeof *w) : NULL;

	if (w)
		w->logits = malloc(s->model->file.spec.vocab * sizeof *w->logits);
	if (l && (!w || !w->logits)) {
		session_limited_close(w);
		return no_memory(err);
	}
	session_limited_close(s->limited);
	s->limited = w;
	if (!w)
		return true;
	w->limits = l;
	w->begin = s->length;
	return begin_walk(s, w) || no_memory(err);
}

void session_limited_close(struct session_limited *w)
{
	if (!w)
		return;
	think_end(&w->think);
	free(w->logits);
	free(w);
}

void session_limits_rewind(jit_session *s, size_t n)
{
	struct session_limited *w = s->limited;

	if (n >= w->known)
		return;
	w->begin = n < w->begin ? n : w->begin;
	begin_walk(s, w);
}

void session_limits_shift(jit_session *s, const struct session_cut *cut)
{
	struct session_limited *w = s->limited;
	const size_t end = cut->keep + cut->n, from = w->begin > cut->keep ? w->begin : cut->keep;

	w->gone += from < end ? end - from : 0;
	w->begin = session_cut_position(cut, w->begin);
	w->known = session_cut_position(cut, w->known);
	w->closes_at = session_cut_position(cut, w->closes_at);
}

/* ---- choosing */

static void forbid_ends(const jit_session *s, struct session_limited *w)
{
	const struct session_limits *l = w->limits;

	for (uint32_t id = 0; s->model->file.tokenizer && id < s->model->file.spec.vocab; id++)
		if (tokenizer_is_eog(s->model->file.tokenizer, (int32_t)id))
			w->logits[id] = -INFINITY;
	for (size_t i = 0; i < l->ends.n; i++)
		w->logits[l->ends.ids[i]] = -INFINITY;
}

/* The last token of a word, where its others stand before. */
static void forbid_words(const jit_session *s, struct session_limited *w)
{
	for (size_t i = 0; i < w->limits->n_words; i++) {
		const struct list *word = &w->limits->words[i];
		const size_t before = word->n - 1;
		if (s->length - w->begin >= before &&
		    memcmp(s->ids + s->length - before, word->ids, before * sizeof *word->ids) == 0)
			w->logits[word->ids[before]] = -INFINITY;
	}
}

static void mask(const jit_session *s, struct session_limited *w, const float *logits)
{
	const struct session_limits *l = w->limits;
	const uint32_t vocab = s->model->file.spec.vocab;

	memcpy(w->logits, logits, vocab * sizeof *logits);
	for (uint32_t id = 0; l->never && id < vocab; id++)
		if (l->never[id])
			w->logits[id] = -INFINITY;
	if (s->length - w->begin + w->gone < (uint64_t)(l->min > 0 ? l->min : 0))
		forbid_ends(s, w);
	forbid_words(s, w);
}

/* The last bytes of the generated text, as many as a text that is not to be generated could begin with. */
static size_t tail_of(const jit_session *s, const struct session_limited *w, char tail[TAIL])
{
	const size_t max = w->limits->longest ? w->limits->longest - 1 : 0;
	char scratch[256];
	size_t have = 0;

	for (size_t i = s->length; i > w->begin && have < max; i--) {
		size_t n;
		const char *text = spell(s->model, s->ids[i - 1], false, scratch, &n);
		const size_t more = n < max - have ? n : max - have;
		memmove(tail + more, tail, have);
		memcpy(tail, text + n - more, more);
		have += more;
	}
	return have;
}

/* Whether a token completes one of the texts. */
static bool completes(const jit_session *s, const struct session_limits *l, const char *tail, size_t n, int32_t id)
{
	char text[TAIL + 256], scratch[256];
	size_t more;
	const char *piece = spell(s->model, id, false, scratch, &more);

	if (more > sizeof scratch) /* such a token was looked at alone */
		more = sizeof scratch;
	memcpy(text, tail, n);
	memcpy(text + n, piece, more);
	return holds_text(l, text, n + more);
}

static int32_t choose(jit_session *s, const float *logits)
{
	return sampling_choose_knowing(&s->sampling, logits, session_greatest(s, logits), s->ids, s->length);
}

bool session_limits_choose(jit_session *s, const float *logits, int32_t *id, struct error *err)
{
	struct session_limited *w = s->limited;
	char tail[TAIL];

	if (!walk(s, w))
		return no_memory(err);
	/* A grammar says itself what an answer holds, but not what the reasoning before it does. */
	const bool may_close = !s->grammar || session_grammar_reasons(s);
	if (w->closes && may_close && s->length - w->closes_at < w->closing->n) {
		choose(s, logits); /* for the samplers' state */
		*id = w->closing->ids[s->length - w->closes_at];
		sampling_took(&s->sampling, *id);
		return true;
	}
	mask(s, w, logits);
	const size_t n = tail_of(s, w, tail);
	while (sampling_any_left(&s->sampling, w->logits)) {
		*id = choose(s, w->logits);
		if (!w->limits->n_texts || !completes(s, w->limits, tail, n, *id))
			return true;
		w->logits[*id] = -INFINITY;
	}
	/* A text that is complete by its grammar ends here. */
	return error_set(err, jit_session_grammar_complete(s) == 1 ? ERROR_ARGUMENT : ERROR_UNSUPPORTED,
	                 "none of the tokens that the request allows can follow");
}
