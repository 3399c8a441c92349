/* loaders/tokenizer/tokenizer_pieces.c - words into tokens without merges: WordPiece, which takes the longest token
 * each time, and Unigram, which takes the tokens whose scores add up to most.
 *
 * Owns: both, as HF's tokenizers do them, ties included. A word of n characters takes as many look-ups as it has pairs
 * of a first and a last character that the longest token has room for, and each is counted.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <string.h>

/* ---- WordPiece */

static size_t characters(const char *p, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; count++) {
		const int len = tok_char(p + i, n - i);
		i += len > 0 ? (size_t)len : 1;
	}
	return count;
}

/* The longest token that begins the n bytes at p, with the vocabulary's mark in front; *len: how many it takes. */
static int32_t longest(const struct tokenizer *t, struct tok_work *w, const struct tok_mark *mark, const char *p,
                       size_t n, size_t *len)
{
	char text[TOK_MAX_PIECE + TOK_MARK_BYTES];
	const size_t max = t->max_token > mark->n ? t->max_token - mark->n : 0;

	memcpy(text, mark->p, mark->n);
	/* the mark of a piece that begins a word is none where the text itself has it within one */
	if (mark == &t->inner && t->begin.n && n >= t->begin.n && !memcmp(p, t->begin.p, t->begin.n))
		return -1;
	for (size_t k = n < max ? n : max; k > 0; k = tok_last_char(p, k)) {
		if (k > TOK_MAX_PIECE || !tok_spend(w, 1 + k / 8))
			continue;
		memcpy(text + mark->n, p, k);
		const int32_t id = tok_find(t, text, mark->n + k);
		if (id < 0)
			continue;
		*len = k;
		return id;
	}
	return -1;
}

bool tok_word_piece(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n)
{
	const size_t before = w->n_id;
	size_t len = 0;

	if (characters(p, n) > t->max_characters)
		return tok_emit(w, t->unknown);
	for (size_t at = 0; at < n; at += len) {
		const int32_t id = longest(t, w, at ? &t->inner : &t->begin, p + at, n - at, &len);
		if (w->err->code)
			return false;
		if (id < 0) { /* the whole word then is unknown */
			w->n_id = before;
			return tok_emit(w, t->unknown);
		}
		if (!tok_emit(w, id))
			return false;
	}
	return true;
}

/* ---- Unigram */

/* The best way to where a character begins, or the text ends. */
struct tok_way {
	double score;
	uint32_t from;
	int32_t id; /* of the token that ends there; -1: none does */
};

/* Tries a token from `at` on. */
static void try_token(struct tok_way *way, size_t at, size_t end, int32_t id, double score)
{
	struct tok_way *to = &way[end];

	if (to->id >= 0 && way[at].score + score <= to->score)
		return;
	*to = (struct tok_way){ way[at].score + score, (uint32_t)at, id };
}

static bool find_ways(const struct tokenizer *t, struct tok_work *w, struct tok_way *way, const char *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		const int len = tok_char(p + at, n - at);
		const size_t one = len > 0 ? (size_t)len : 1;
		bool single = false;
		for (size_t end = at + one; end <= n && end - at <= t->max_token;) {
			const int32_t id = tok_find(t, p + at, end - at);
			if (!tok_spend(w, 1 + (end - at) / 8))
				return false;
			if (id >= 0 && (t->type[id] == TOK_NORMAL || t->type[id] == TOK_USER)) {
				try_token(way, at, end, id, t->score[id]);
				single |= end - at == one;
			}
			if (end == n)
				break;
			const int next = tok_char(p + end, n - end);
			end += next > 0 ? (size_t)next : 1;
		}
		if (!single)
			try_token(way, at, at + one, t->unknown, t->unknown_score);
		at += one;
	}
	return true;
}

/* From the end to the beginning; what is unknown next to each other is one. */
static bool emit_ways(const struct tokenizer *t, struct tok_work *w, const struct tok_way *way, size_t n)
{
	const size_t first = w->n_id;

	for (size_t at = n; at > 0; at = way[at].from) {
		const bool again = w->n_id > first && w->id[w->n_id - 1] == t->unknown;
		if (way[at].id == t->unknown && again)
			continue;
		if (!tok_emit(w, way[at].id))
			return false;
	}
	for (size_t a = first, b = w->n_id; a + 1 < b; a++) {
		const int32_t id = w->id[--b];
		w->id[b] = w->id[a];
		w->id[a] = id;
	}
	return true;
}

bool tok_unigram(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n)
{
	if (t->unknown < 0)
		return error_set(w->err, ERROR_ARGUMENT, "the vocabulary has no unknown token, which its kind needs");
	if (!tok_grow((void **)&w->way, &w->way_cap, n + 1, sizeof(struct tok_way), w->err))
		return false;
	struct tok_way *way = w->way;
	for (size_t i = 0; i <= n; i++)
		way[i] = (struct tok_way){ .id = -1 };
	return find_ways(t, w, way, p, n) && emit_ways(t, w, way, n);
}

/* ---- back to text */

/* What transformers writes without the space before it. */
static bool joins(const char *p, size_t n)
{
	static const char *const begins[] = { ".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re" };
	size_t i = 0;

	while (i < sizeof begins / sizeof *begins &&
	       (n < strlen(begins[i]) || memcmp(p, begins[i], strlen(begins[i])) != 0))
		i++;
	return i < sizeof begins / sizeof *begins;
}

size_t tok_write_word_piece(const struct tokenizer *t, const struct gguf_str *s, char *out)
{
	const struct tok_mark *mark = &t->inner;
	const bool inner = mark->n ? s->n > mark->n && memcmp(s->p, mark->p, mark->n) == 0
	                           : s->n < t->begin.n || memcmp(s->p, t->begin.p, t->begin.n) != 0;
	const size_t skip = inner ? mark->n : t->begin.n;
	/* An id that no entry has is nothing, at no address. */
	const bool space = !inner && !(t->cleans_up && s->n > skip && joins(s->p + skip, s->n - skip));

	out[0] = ' ';
	if (s->n > skip)
		memcpy(out + space, s->p + skip, s->n - skip);
	return s->n - skip + space;
}
