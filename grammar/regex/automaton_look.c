/* grammar/regex/automaton_look.c - expressions that look ahead: what the text behind a position must begin with, or
 * must not.
 *
 * Such a state is a set of threads, each of which is a way to read the text so far. A thread's NFA states must all be
 * satisfied by what follows: the one that reads the text, and one for each text that was looked ahead for. Beside them
 * stand all NFA states that a forbidden text may have reached. A thread dies when an NFA state of its own takes no
 * further byte, or when a forbidden text is whole.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex/automaton_parts.h"
#include "grammar/machine/effort.h"

/* Places of a thread, threads of a state, and the ways tried on one byte: beyond, the automaton has failed. */
enum { OWN_MAX = 64, FORBIDDEN_MAX = 4096, WORDS_MAX = 1 << 20, VISITED_MAX = 512, TRIES_MAX = 1 << 16 };

struct todo {
	uint32_t nfa_state, who;
};
/* One way to go on: what is still to be followed, and what was gathered. */
struct way {
	struct todo todo[OWN_MAX];
	unsigned n_todo, whos;
	uint32_t own[OWN_MAX];
	unsigned n_own;
	struct todo visited[VISITED_MAX];
	unsigned n_visited;
	uint32_t *forbidden;
	size_t n_forbidden;
};
struct looking {
	const struct nfa *p;
	struct threads *out;
	bool beginning;
	unsigned tries;
};

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Everything that a forbidden text's NFA state leads to without a byte. False: the text is whole, or there are too
 * many. */
static bool forbid(struct looking *l, struct way *w, uint32_t from)
{
	const struct nfa_state *p = &l->p->nfa_state[from];

	l->out->failed |= !effort_take(2 + w->n_forbidden / 8);
	for (size_t i = 0; i < w->n_forbidden; i++)
		if (w->forbidden[i] == from)
			return true;
	if (p->kind == NFA_DONE)
		return false;
	if (w->n_forbidden == FORBIDDEN_MAX) {
		l->out->failed = true;
		return false;
	}
	w->forbidden[w->n_forbidden++] = from;
	if (p->kind == NFA_SPLIT)
		return forbid(l, w, p->out) && forbid(l, w, p->other);
	return p->kind != NFA_BEGIN || !l->beginning || forbid(l, w, p->out);
}

static void put(struct threads *t, uint32_t word)
{
	void *words = t->word;

	if (t->n >= WORDS_MAX || !effort_array(&words, &t->room, t->n + 1, sizeof *t->word)) {
		t->failed = true;
		return;
	}
	t->word = words;
	t->word[t->n++] = word;
}

/* A way is a thread: its NFA states and the forbidden ones, each sorted. States that only lead on are left out. */
static void keep(struct looking *l, struct way *w)
{
	size_t n = 0;
	uint32_t *sorted = effort_malloc((w->n_forbidden + 1) * sizeof *sorted);

	if (!sorted) {
		l->out->failed = true;
		return;
	}
	for (size_t i = 0; i < w->n_forbidden; i++) {
		const struct nfa_state *p = &l->p->nfa_state[w->forbidden[i]];
		if (p->live && p->kind != NFA_SPLIT && p->kind != NFA_BEGIN)
			sorted[n++] = w->forbidden[i];
	}
	qsort(sorted, n, sizeof *sorted, ascending);
	qsort(w->own, w->n_own, sizeof *w->own, ascending);
	put(l->out, w->n_own);
	for (unsigned i = 0; i < w->n_own; i++)
		put(l->out, w->own[i]);
	put(l->out, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		put(l->out, sorted[i]);
	free(sorted);
}

static bool follow_later(struct looking *l, struct way *w, uint32_t nfa_state, uint32_t who)
{
	if (w->n_todo == OWN_MAX) {
		l->out->failed = true;
		return false;
	}
	w->todo[w->n_todo++] = (struct todo){ nfa_state, who };
	return true;
}

/* Whether an NFA state was met before on this way. Met by another, it asks for the same and is satisfied with it; met
 * by the same, it goes round in a circle. */
enum met { MET_NOT, MET_OTHER, MET_SAME };
static enum met met_before(struct looking *l, struct way *w, struct todo t)
{
	effort_take(1 + w->n_visited / 8);
	for (unsigned i = 0; i < w->n_visited; i++)
		if (w->visited[i].nfa_state == t.nfa_state)
			return w->visited[i].who == t.who ? MET_SAME : MET_OTHER;
	if (w->n_visited == VISITED_MAX)
		l->out->failed = true;
	else
		w->visited[w->n_visited++] = t;
	return MET_NOT;
}

static void follow(struct looking *l, struct way *w);

/* Both ways from an NFA state; the first on a copy. */
static void fork_way(struct looking *l, struct way *w, const struct nfa_state *p, uint32_t who)
{
	struct way *copy = effort_malloc(sizeof *copy);
	uint32_t *forbidden = effort_malloc(FORBIDDEN_MAX * sizeof *forbidden);

	if (!copy || !forbidden) {
		l->out->failed = true;
	} else {
		memcpy(copy, w, sizeof *copy);
		memcpy(forbidden, w->forbidden, w->n_forbidden * sizeof *forbidden);
		copy->forbidden = forbidden;
		if (follow_later(l, copy, p->out, who))
			follow(l, copy);
		if (follow_later(l, w, p->other, who))
			follow(l, w);
	}
	free(forbidden);
	free(copy);
}

/* Goes along a way until each of its NFA states waits for a byte or for the end. */
static void follow(struct looking *l, struct way *w)
{
	if (++l->tries > TRIES_MAX || !effort_take(100 + w->n_forbidden / 8))
		l->out->failed = true;
	while (w->n_todo && !l->out->failed) {
		struct todo t = w->todo[--w->n_todo];
		const struct nfa_state *p = &l->p->nfa_state[t.nfa_state];
		enum met met = met_before(l, w, t);
		bool waits = p->kind == NFA_BYTES || p->kind == NFA_END || p->kind == NFA_MATCH;
		if ((!p->live && (waits || !l->beginning)) || met == MET_SAME)
			return;
		if (met == MET_OTHER || p->kind == NFA_DONE)
			continue;
		if (p->kind == NFA_SPLIT) {
			fork_way(l, w, p, t.who);
			return;
		}
		if (p->kind == NFA_BEGIN) {
			if (!l->beginning || !follow_later(l, w, p->out, t.who))
				return;
		} else if (p->kind == NFA_AHEAD) {
			if (!follow_later(l, w, p->out, t.who) || !follow_later(l, w, p->other, ++w->whos))
				return;
		} else if (p->kind == NFA_AHEAD_NOT) {
			if (!follow_later(l, w, p->out, t.who) || !forbid(l, w, p->other))
				return;
		} else if (w->n_own == OWN_MAX) {
			l->out->failed = true;
		} else {
			w->own[w->n_own++] = t.nfa_state;
		}
	}
	if (!l->out->failed)
		keep(l, w);
}

static size_t thread_words(const uint32_t *w) { return 2 + w[0] + w[1 + w[0]]; }

static int by_words(const void *a, const void *b)
{
	const uint32_t *x = *(const uint32_t *const *)a, *y = *(const uint32_t *const *)b;
	size_t n = thread_words(x), k = thread_words(y);
	int c = memcmp(x, y, (n < k ? n : k) * sizeof *x);

	return c ? c : n < k ? -1 : n > k;
}

/* In order, each once: so that equal states are equal words. */
static void settle(struct threads *t)
{
	size_t n = 0, at = 0;
	const uint32_t **thread = effort_malloc((t->n + 1) * sizeof *thread);
	uint32_t *sorted = effort_malloc((t->n + 1) * sizeof *sorted);

	if (thread && sorted) {
		for (size_t i = 0; i < t->n; i += thread_words(t->word + i))
			thread[n++] = t->word + i;
		if (n)
			qsort(thread, n, sizeof *thread, by_words);
		for (size_t i = 0; i < n; i++)
			if (!i || by_words(&thread[i - 1], &thread[i]) != 0) {
				memcpy(sorted + at, thread[i], thread_words(thread[i]) * sizeof *sorted);
				at += thread_words(thread[i]);
			}
		if (at)
			memcpy(t->word, sorted, at * sizeof *sorted);
		t->n = at;
	} else {
		t->failed = true;
	}
	free(thread);
	free(sorted);
}

void threads_begin(const struct nfa *p, struct threads *out)
{
	struct looking l = { .p = p, .out = out, .beginning = true };
	struct way *w = effort_calloc(1, sizeof *w);
	uint32_t *forbidden = effort_malloc(FORBIDDEN_MAX * sizeof *forbidden);

	out->n = 0;
	out->failed = !w || !forbidden;
	if (!out->failed) {
		w->forbidden = forbidden;
		follow_later(&l, w, p->entry, 0);
		follow(&l, w);
		if (!out->failed) /* else the last thread may be cut off */
			settle(out);
	}
	free(forbidden);
	free(w);
}

static bool takes(const struct nfa_state *p, uint8_t byte)
{
	return p->kind == NFA_BYTES && byte >= p->low && byte <= p->high;
}

/* A thread takes a byte. */
static void step(struct looking *l, struct way *w, const uint32_t *thread, uint8_t byte)
{
	const uint32_t *forbidden = thread + 2 + thread[0];

	w->n_todo = w->n_own = w->n_visited = 0;
	w->n_forbidden = 0;
	for (uint32_t i = 0; i < thread[0]; i++) {
		const struct nfa_state *p = &l->p->nfa_state[thread[1 + i]];
		if (!takes(p, byte) || !follow_later(l, w, p->out, i))
			return;
	}
	w->whos = thread[0];
	for (uint32_t i = 0; i < thread[1 + thread[0]]; i++) {
		const struct nfa_state *p = &l->p->nfa_state[forbidden[i]];
		if (takes(p, byte) && !forbid(l, w, p->out))
			return;
	}
	follow(l, w);
}

void threads_step(const struct nfa *p, const uint32_t *from, size_t n, uint8_t byte, struct threads *out)
{
	struct looking l = { .p = p, .out = out };
	struct way *w = effort_calloc(1, sizeof *w);
	uint32_t *forbidden = effort_malloc(FORBIDDEN_MAX * sizeof *forbidden);

	out->n = 0;
	out->failed = !w || !forbidden;
	for (size_t i = 0; i < n && !out->failed; i += thread_words(from + i)) {
		w->forbidden = forbidden;
		step(&l, w, from + i, byte);
	}
	if (!out->failed)
		settle(out);
	free(forbidden);
	free(w);
}

bool threads_accept(const struct nfa *p, const uint32_t *word, size_t n)
{
	for (size_t i = 0; i < n; i += thread_words(word + i)) {
		const uint32_t *own = word + i + 1, *forbidden = own + own[-1] + 1;
		bool ok = true;
		for (uint32_t k = 0; k < own[-1]; k++)
			ok = ok && p->nfa_state[own[k]].ends;
		for (uint32_t k = 0; k < forbidden[-1]; k++)
			ok = ok && !p->nfa_state[forbidden[k]].ends;
		if (ok)
			return true;
	}
	return false;
}
