/* loaders/tokenizer/tokenizer_merge.c - one word becomes tokens: byte-pair merging.
 *
 * Owns: the first symbols of a word (bytes, characters, byte fallback, the unknown token) and the order
 * of merges: always the best pair of neighbours, the leftmost of equals. Symbols are a doubly linked list
 * in an array; candidate pairs sit in a queue and are checked when they come out, so a word of n
 * symbols takes O(n log n) whatever it holds. Never: merges by searching the word again.
 *
 * A long word is merged in stretches that the processor's caches can hold, each of which begins within the one before
 * it. Where both have the same token at the same place, the word's tokens are those of the first up to there, and those
 * of the second from there on. For no merge crosses the borders of that token in either of them; so as long as the
 * whole word is, left and right of it, as the stretches were at some time, its best pair is the best of one of them,
 * and the word goes on like that one. Where they share no token, longer stretches are tried, up to the whole word.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <string.h>

#define NO_SYMBOL UINT32_MAX

/* Symbols of a stretch, the bytes that it has in common with the one before it, and what both grow by. */
enum { STRETCH = 1024, COMMON = 64, GROWTH = 8 };

bool tok_emit(struct tok_work *w, int32_t id)
{
	if (w->n_id == w->id_cap && !tok_grow((void **)&w->id, &w->id_cap, w->n_id + 1, sizeof *w->id, w->err))
		return false;
	w->id[w->n_id++] = id;
	return true;
}

bool tok_byte(const struct tokenizer *t, struct tok_work *w, unsigned char byte)
{
	int32_t id = t->model == TOK_BYTE_LEVEL || t->byte_fallback ? t->byte_id[byte] : -1;

	if (id < 0)
		id = t->unknown;
	if (id < 0 && t->drop_unknown)
		return true;
	if (id < 0)
		return error_set(w->err, ERROR_ARGUMENT,
		                 "the text holds the byte 0x%02x, for which the vocabulary has neither a token "
		                 "nor an unknown token",
		                 byte);
	return tok_emit(w, id);
}

/* ---- candidates */

/* Whether symbol `left` and its right neighbour merge, with what priority and into what. */
static bool find_pair(const struct tokenizer *t, const struct tok_work *w, const char *word, uint32_t left,
                      struct tok_pair *out)
{
	const struct tok_symbol *a = &w->symbol[left], *b = &w->symbol[a->next];
	uint64_t priority;

	if (t->model == TOK_CHAR_SCORES) {
		int32_t id = tok_find(t, word + a->at, a->n + b->n);
		if (id < 0 || (t->type[id] != TOK_NORMAL && t->type[id] != TOK_USER))
			return false;
		priority = t->score_order[id];
		out->id = id;
	} else {
		const struct tok_merge *m = tok_merge_find(t, a->id, b->id);
		if (!m)
			return false;
		priority = m->rank_plus_1;
		out->id = m->result;
	}
	out->key = priority << 32 | left;
	out->n = a->n + b->n;
	return true;
}

static bool push_pair(const struct tokenizer *t, struct tok_work *w, const char *word, uint32_t left)
{
	struct tok_pair c;

	if (w->symbol[left].next == NO_SYMBOL)
		return true;
	/* looking for a text reads it: with tokens of any length that is not one step */
	if (t->model == TOK_CHAR_SCORES &&
	    !tok_spend(w, 1 + (w->symbol[left].n + w->symbol[w->symbol[left].next].n) / 8))
		return false;
	return !find_pair(t, w, word, left, &c) || tok_queue_push(t, w, &c);
}

static bool merge_all(const struct tokenizer *t, struct tok_work *w, const char *word, size_t n_symbols)
{
	struct tok_symbol *s = w->symbol;

	bool any = true;

	if (!tok_queue_begin(w, n_symbols))
		return false;
	for (size_t i = 0; i + 1 < n_symbols; i++)
		if (!push_pair(t, w, word, (uint32_t)i))
			return false;
	for (struct tok_pair c;;) {
		if (!tok_queue_pop(w, &c, &any))
			return false;
		if (!any)
			return true;
		const uint32_t left = (uint32_t)c.key, right = s[left].next;
		/* stale: a side is gone or has grown (neighbours touch, so the sum of lengths tells) */
		if (s[left].n == 0 || right == NO_SYMBOL || s[left].n + s[right].n != c.n)
			continue;
		s[left].n = c.n;
		s[left].id = c.id;
		s[left].next = s[right].next;
		s[right].n = 0;
		if (s[left].next != NO_SYMBOL)
			s[s[left].next].prev = left;
		if (s[left].prev != NO_SYMBOL && !push_pair(t, w, word, s[left].prev))
			return false;
		if (!push_pair(t, w, word, left))
			return false;
	}
}

/* ---- first symbols */

static bool add_symbol(struct tok_work *w, size_t *count, size_t at, size_t n, int32_t id)
{
	size_t i = *count;

	if (i == w->symbol_cap && !tok_grow((void **)&w->symbol, &w->symbol_cap, i + 1, sizeof *w->symbol, w->err))
		return false;
	w->symbol[i] = (struct tok_symbol){ i ? (uint32_t)i - 1 : NO_SYMBOL, NO_SYMBOL, (uint32_t)at, (uint32_t)n, id };
	if (i)
		w->symbol[i - 1].next = (uint32_t)i;
	*count = i + 1;
	return true;
}

static bool no_token(struct tok_work *w, const char *p, size_t n)
{
	char text[40];

	return error_set(w->err, ERROR_ARGUMENT,
	                 "the text holds \"%s\", for which the vocabulary has neither a token nor an unknown token",
	                 error_quote(text, sizeof text, p, n));
}

/* Whether text can become this token other than by its being looked for: a control token never comes out of plain text,
 * and the added tokens of a tokenizer.json are no part of its model. */
static bool is_text(const struct tokenizer *t, int32_t id)
{
	return t->type[id] == TOK_NORMAL || (t->type[id] == TOK_USER && !t->special[0].covers);
}

static bool has_byte_tokens(const struct tokenizer *t, const char *p, size_t n)
{
	if (!t->byte_fallback)
		return false;
	for (size_t i = 0; i < n; i++)
		if (t->byte_id[(unsigned char)p[i]] < 0)
			return false;
	return true;
}

/* What has no token: the unknown token, or nothing. Nothing is no symbol at all where gaps close, else one that never
 * merges. */
static bool add_unknown(const struct tokenizer *t, struct tok_work *w, size_t *count, const char *word, size_t at,
                        size_t n)
{
	if (t->unknown < 0 && t->drop_unknown)
		return t->gaps_close || add_symbol(w, count, at, n, -1);
	if (t->unknown < 0)
		return no_token(w, word + at, n);
	if (t->fuse_unknown && *count && w->symbol[*count - 1].id == t->unknown) {
		w->symbol[*count - 1].n += (uint32_t)n;
		return true;
	}
	return add_symbol(w, count, at, n, t->unknown);
}

/* A character is its token, else the tokens of its bytes, else unknown. When merging by score a
 * character that is no token yet may still be part of one, so it stays whole (id -1) until the end. */
static bool add_character(const struct tokenizer *t, struct tok_work *w, size_t *count, const char *word, size_t at,
                          size_t n)
{
	int32_t id = tok_find(t, word + at, n);

	if (id >= 0 && !is_text(t, id))
		id = -1;
	if (id >= 0 || t->model == TOK_CHAR_SCORES)
		return add_symbol(w, count, at, n, id);
	if (has_byte_tokens(t, word + at, n)) {
		for (size_t i = 0; i < n; i++)
			if (!add_symbol(w, count, at + i, 1, t->byte_id[(unsigned char)word[at + i]]))
				return false;
		return true;
	}
	return add_unknown(t, w, count, word, at, n);
}

/* Of the text from *from on, `max` symbols at most, of whole characters; then *from is where they end. */
static bool first_symbols(const struct tokenizer *t, struct tok_work *w, const char *word, size_t size, size_t max,
                          size_t *from, size_t *count)
{
	size_t i = *from;

	*count = 0;
	while (i < size) {
		const size_t before = *count;
		size_t n = 1;
		bool ok;
		if (t->model == TOK_BYTE_LEVEL) {
			int32_t id = t->byte_id[(unsigned char)word[i]];
			ok = id < 0 ? add_unknown(t, w, count, word, i, 1) : add_symbol(w, count, i, 1, id);
		} else {
			int len = tok_char(word + i, size - i);
			n = len > 0 ? (size_t)len : 1;
			ok = add_character(t, w, count, word, i, n);
		}
		if (!ok)
			return false;
		if (*count > max) {
			w->symbol[before - 1].next = NO_SYMBOL;
			*count = before;
			break;
		}
		i += n;
	}
	*from = i;
	return true;
}

/* ---- tokens */

static bool emit_symbol(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n)
{
	if (has_byte_tokens(t, p, n)) {
		for (size_t k = 0; k < n; k++)
			if (!tok_emit(w, t->byte_id[(unsigned char)p[k]]))
				return false;
		return true;
	}
	if (t->unknown >= 0)
		return tok_emit(w, t->unknown);
	return t->drop_unknown || no_token(w, p, n);
}

static bool emit_symbols(const struct tokenizer *t, struct tok_work *w, const char *word)
{
	for (uint32_t i = 0; i != NO_SYMBOL; i = w->symbol[i].next) {
		const struct tok_symbol *s = &w->symbol[i];
		if (!(s->id >= 0 ? tok_emit(w, s->id) : emit_symbol(t, w, word + s->at, s->n)))
			return false;
	}
	return true;
}

/* ---- stretches */

/* Where the next stretch begins: at a token that is `common` bytes or more before `end`, and at no byte within a
 * character. */
static size_t stretch_begin(const struct tokenizer *t, const struct tok_work *w, const char *word, size_t end,
                            size_t common)
{
	size_t i = w->n_piece ? w->n_piece - 1 : 0;

	while (i > 0 && (end - w->piece[i].at < common ||
	                 (t->model != TOK_BYTE_LEVEL && ((unsigned char)word[w->piece[i].at] & 0xc0) == 0x80)))
		i--;
	return i;
}

/* The first token from piece *i on that is one of the stretch, too: its symbol. */
static uint32_t find_common(const struct tok_work *w, size_t *i)
{
	uint32_t k = 0;

	while (*i < w->n_piece && k != NO_SYMBOL) {
		const struct tok_piece *p = &w->piece[*i];
		const struct tok_symbol *s = &w->symbol[k];
		if (p->at == s->at && p->n == s->n)
			return k;
		if (p->at + p->n <= s->at + s->n)
			++*i;
		else
			k = s->next;
	}
	return NO_SYMBOL;
}

static bool add_pieces(struct tok_work *w, uint32_t from)
{
	for (uint32_t k = from; k != NO_SYMBOL; k = w->symbol[k].next) {
		const struct tok_symbol *s = &w->symbol[k];
		if (w->n_piece == w->piece_cap &&
		    !tok_grow((void **)&w->piece, &w->piece_cap, w->n_piece + 1, sizeof *w->piece, w->err))
			return false;
		w->piece[w->n_piece++] = (struct tok_piece){ s->at, s->n, s->id };
	}
	return true;
}

/* A stretch was merged that ends at `end`; *taken: the tokens that were there before it go on with it. */
static bool join(struct tok_work *w, size_t begin, bool *taken)
{
	size_t i = begin;
	const uint32_t k = find_common(w, &i);

	*taken = k != NO_SYMBOL || begin == 0;
	if (!*taken)
		return true;
	w->n_piece = k != NO_SYMBOL ? i : 0;
	return add_pieces(w, k != NO_SYMBOL ? k : 0);
}

/* The symbols of the first stretch, which ends at `end`, are merged. */
static bool merge_stretches(const struct tokenizer *t, struct tok_work *w, const char *word, size_t n, size_t end)
{
	size_t max = STRETCH, common = COMMON, count;

	w->n_piece = 0;
	if (!add_pieces(w, 0))
		return false;
	while (end < n) {
		const size_t begin = stretch_begin(t, w, word, end, common);
		size_t to = w->piece[begin].at;
		bool taken = false;
		if (!first_symbols(t, w, word, n, max, &to, &count) || !merge_all(t, w, word, count))
			return false;
		if (to > end && !join(w, begin, &taken))
			return false;
		if (taken) {
			end = to;
		} else {
			max *= GROWTH;
			common *= GROWTH;
		}
	}
	for (size_t i = 0; i < w->n_piece; i++) {
		const struct tok_piece *p = &w->piece[i];
		if (!(p->id >= 0 ? tok_emit(w, p->id) : emit_symbol(t, w, word + p->at, p->n)))
			return false;
	}
	return true;
}

/* ---- words */

/* The id of the whole word, or -1. Byte-level words are spelt first. */
static int32_t find_word(const struct tokenizer *t, const char *p, size_t n)
{
	char spelt[2 * TOK_SCRATCH];
	unsigned at = 0;

	if (t->model != TOK_BYTE_LEVEL)
		return tok_find(t, p, n);
	if (n > TOK_SCRATCH)
		return -1;
	for (size_t i = 0; i < n; i++)
		at += tokenizer_spell_byte((unsigned char)p[i], spelt + at);
	return tok_find(t, spelt, at);
}

static size_t newlines_at(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] == '\n')
		i++;
	return i;
}

static bool merge_word(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n)
{
	size_t count, end = 0;

	if (t->whole_words || (t->whole_newlines && newlines_at(p, n) == n)) {
		int32_t id = find_word(t, p, n);
		if (id >= 0 && is_text(t, id))
			return tok_emit(w, id);
	}
	if (!first_symbols(t, w, p, n, STRETCH, &end, &count) || (count && !merge_all(t, w, p, count)))
		return false;
	if (end < n)
		return merge_stretches(t, w, p, n, end);
	return count == 0 || emit_symbols(t, w, p);
}

bool tok_word(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n)
{
	static const char mark[] = "\xe2\x96\x81";

	if (t->model == TOK_WORD_PIECE)
		return n == 0 || tok_word_piece(t, w, p, n);
	if (t->model == TOK_UNIGRAM)
		return n == 0 || tok_unigram(t, w, p, n);
	if (!t->cut_at_marks)
		return n == 0 || merge_word(t, w, p, n);
	while (n) {
		/* up to the next mark that follows something else */
		size_t end = 0;
		while (n - end >= 3 && !memcmp(p + end, mark, 3))
			end += 3;
		const char *next = n > end ? memmem(p + end, n - end, mark, 3) : NULL;
		end = next ? (size_t)(next - p) : n;
		if (!merge_word(t, w, p, end))
			return false;
		p += end;
		n -= end;
	}
	return true;
}
