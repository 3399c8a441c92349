/* loaders/tokenizer/tokenizer.c - the public face: encode, decode, stream, and the questions about one token.
 *
 * Owns: the way of a text through the stages (special tokens, normalising, words, merging), BOS and EOS,
 * and UTF-8 on the way out. Each call has working memory of its own, so an opened tokenizer is shared
 * freely. Never: lets a special token come out of plain text when the caller did not ask for it.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- the budget of a text */

bool tok_spend(struct tok_work *w, uint64_t steps)
{
	w->steps += steps;
	if (!w->max_steps || w->steps <= w->max_steps)
		return true;
	return error_set(w->err, ERROR_ARGUMENT,
	                 "the tokenizer takes more than %llu steps for this text, as no published one does",
	                 (unsigned long long)w->max_steps);
}

/* ---- special tokens in a text */

static bool is_word_char(const char *p, size_t n)
{
	int len = tok_char(p, n);

	if (len <= 0)
		return false;
	switch (utf8proc_category((utf8proc_int32_t)tok_decode((const unsigned char *)p, (unsigned)len))) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_MC:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_PC: return true;
	default: return false;
	}
}

static bool stands_alone(const char *p, size_t n, size_t from, size_t to)
{
	if (from > 0) {
		size_t before = tok_last_char(p, from);
		if (is_word_char(p + before, from - before))
			return false;
	}
	return to >= n || !is_word_char(p + to, n - to);
}

/* The special token that begins a text, or NULL; *skip: the bytes of a hidden one that may not be, and keeps others
 * from being found inside it. plain: which of the bytes are, or NULL. */
static const struct tok_special *special_here(const struct tok_special_set *set, const char *p, size_t n,
                                              const char *plain, struct tok_work *w, size_t *skip)
{
	bool parse_special = w->flags & TOKENIZE_SPECIAL;
	const struct tok_special *s = tok_special_at(set, p, n, parse_special || set->covers ? SIZE_MAX : 0, &w->steps),
				 *shorter;
	const char *hit = s && s->hidden && parse_special && plain ? memchr(plain, 1, s->n) : NULL;

	*skip = 1;
	if (!s || !s->hidden || (parse_special && !hit))
		return s;
	/* in front of the first plain byte there may be one all the same */
	shorter = hit ? tok_special_at(set, p, n, (size_t)(hit - plain), &w->steps) : NULL;
	if (shorter && (shorter->hidden || !set->covers))
		return shorter;
	if (set->covers)
		*skip = s->n;
	return NULL;
}

/* The first special token at or after `from`, with the spaces it swallows: [*begin, *end). NULL: none is left, or no
 * steps are. */
static const struct tok_special *next_special(const struct tok_special_set *set, const char *p, size_t n, size_t from,
                                              const char *plain, struct tok_work *w, size_t *begin, size_t *end)
{
	for (size_t i = from; set->n && i < n && (!w->max_steps || w->steps <= w->max_steps);) {
		const struct tok_special *s = NULL;
		size_t skip = 1;
		unsigned len;
		if (set->first[(unsigned char)p[i]])
			s = special_here(set, p + i, n - i, plain ? plain + i : NULL, w, &skip);
		if (!s) {
			i += skip;
			continue;
		}
		if (s->single_word && !stands_alone(p, n, i, i + s->n)) {
			i += s->n;
			continue;
		}
		*begin = i;
		*end = i + s->n;
		while (s->lstrip && (len = tok_space_before(p + from, *begin - from)) > 0)
			*begin -= len;
		while (s->rstrip && (len = tok_space_after(p + *end, n - *end)) > 0)
			*end += len;
		return s;
	}
	return NULL;
}

/* ---- encode */

/* w->text is normalised and holds no special token. */
static bool encode_words(const struct tokenizer *t, struct tok_work *w)
{
	if (!tok_pretokenize(t, w))
		return false;
	for (size_t i = 0; i < w->spans.n; i++) {
		const struct tok_span *s = &w->spans.p[i];
		bool ok = s->bad ? tok_byte(t, w, (unsigned char)w->text.p[s->at])
		                 : tok_word(t, w, w->text.p + s->at, s->n);
		if (!ok)
			return false;
	}
	return true;
}

/* What is normalised, and which of it is plain, for special tokens are looked for in it. */
static bool take_part(const struct tokenizer *t, struct tok_work *w, const char *p, size_t n, size_t at)
{
	w->text.n = w->text_plain.n = 0;
	w->plain = w->raw_plain && t->special[1].n;
	return tok_append(&w->text, p + at, n, w->err) &&
	       (!w->plain || tok_append(&w->text_plain, w->raw_plain + at, n, w->err)) && tok_normalise(t, w);
}

/* One part between special tokens of the raw text: n bytes at p + at. */
static bool encode_part(const struct tokenizer *t, struct tok_work *w, const char *p, size_t at, size_t n)
{
	const struct tok_special_set *set = &t->special[1];
	size_t from = 0, begin, end;

	if (n == 0)
		return true;
	w->at_start = at == 0;
	if (!take_part(t, w, p, n, at))
		return false;
	if (set->n == 0)
		return encode_words(t, w);
	struct tok_buf normal = w->text, plain = w->text_plain;
	w->text = w->normal;
	w->normal = normal;
	w->text_plain = w->normal_plain;
	w->normal_plain = plain;
	while (from < normal.n) {
		const struct tok_special *s =
			next_special(set, normal.p, normal.n, from, w->plain ? plain.p : NULL, w, &begin, &end);
		size_t stop = s ? begin : normal.n;
		if (!tok_spend(w, 1))
			return false;
		w->text.n = 0;
		w->at_start = at == 0 && from == 0;
		if (!tok_append(&w->text, normal.p + from, stop - from, w->err) || !encode_words(t, w) ||
		    (s && !tok_emit(w, s->id)))
			return false;
		from = s ? end : stop;
	}
	return true;
}

bool tok_encode_text(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n)
{
	bool around = w->flags & TOKENIZE_BOS_EOS, before = around || (w->flags & TOKENIZE_BEGIN);
	size_t from = 0, begin, end;

	if (n > INT32_MAX)
		return error_set(w->err, ERROR_ARGUMENT, "the text is %zu bytes long, at most %d are expected", n,
		                 INT32_MAX);
	for (unsigned i = 0; before && i < t->n_head; i++)
		if (!tok_emit(w, t->head[i]))
			return false;
	while (from < n) {
		const struct tok_special *s =
			next_special(&t->special[0], text, n, from, (const char *)w->raw_plain, w, &begin, &end);
		size_t stop = s ? begin : n;
		if (!tok_spend(w, 1) || !encode_part(t, w, text, from, stop - from) || (s && !tok_emit(w, s->id)))
			return false;
		from = s ? end : stop;
	}
	/* the text has begun with it by itself */
	if (before && !around && t->n_head && w->n_id > t->n_head && w->id[t->n_head] == t->head[0]) {
		w->n_id -= t->n_head;
		memmove(w->id, w->id + t->n_head, w->n_id * sizeof *w->id);
	}
	for (unsigned i = 0; around && i < t->n_tail; i++)
		if (!tok_emit(w, t->tail[i]))
			return false;
	return true;
}

void tok_work_free(struct tok_work *w)
{
	free(w->id);
	free(w->text.p);
	free(w->other.p);
	free(w->normal.p);
	free(w->text_plain.p);
	free(w->other_plain.p);
	free(w->normal_plain.p);
	free(w->spans.p);
	free(w->next.p);
	free(w->symbol);
	free(w->piece);
	tok_queue_free(&w->queue);
	free(w->way);
	pcre2_match_data_free(w->match);
	pcre2_match_context_free(w->limits);
}

static bool encode(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n, int32_t **ids,
                   size_t *n_ids)
{
	w->max_steps = TOK_STEPS_MORE + (uint64_t)TOK_STEPS_A_BYTE * n;
	bool ok = tok_encode_text(t, w, text, n);

	*ids = NULL;
	*n_ids = 0;
	if (ok && !w->id)
		ok = tok_grow((void **)&w->id, &w->id_cap, 1, sizeof *w->id, w->err);
	if (ok) {
		*ids = w->id;
		*n_ids = w->n_id;
		w->id = NULL;
	}
	tok_work_free(w);
	return ok;
}

bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, unsigned flags, int32_t **ids,
                      size_t *n_ids, struct error *err)
{
	struct tok_work w = { .flags = flags, .err = err };

	return encode(t, &w, text, n, ids, n_ids);
}

bool tokenizer_encode_marked(const struct tokenizer *t, const char *text, size_t n, const uint8_t *plain,
                             unsigned flags, int32_t **ids, size_t *n_ids, struct error *err)
{
	struct tok_work w = { .flags = flags, .raw_plain = plain, .err = err };

	return encode(t, &w, text, n, ids, n_ids);
}

/* ---- decode */

static int long_order(const void *key, const void *row)
{
	int32_t a = *(const int32_t *)key, b = ((const struct tok_long *)row)->id;

	return a < b ? -1 : a > b;
}

static bool is_hidden(const struct tokenizer *t, int32_t id)
{
	return t->type[id] == TOK_CONTROL || t->type[id] == TOK_UNKNOWN;
}

const char *tokenizer_piece(const struct tokenizer *t, int32_t id, bool first, bool special, char scratch[TOK_SCRATCH],
                            size_t *n)
{
	const char *p = scratch;

	*n = 0;
	if (id < 0 || (size_t)id >= t->n_token || (!special && is_hidden(t, id)))
		return p;
	if (t->token[id].n > TOK_SCRATCH) {
		const struct tok_long *l = bsearch(&id, t->longs, t->n_longs, sizeof *l, long_order);
		p = l->p;
		*n = l->n;
	} else {
		*n = tok_piece_write(t, id, scratch);
	}
	if (first && t->drop_first_space && *n && p[0] == ' ') {
		p++;
		--*n;
	}
	return p;
}

/* Characters completed by n more bytes; out has room for 3 bytes per byte fed or held. */
static size_t feed(struct utf8_stream *s, const unsigned char *p, size_t n, char *out)
{
	static const char bad[] = "\xef\xbf\xbd";
	size_t i = 0, made = 0;

	while (i < n) {
		if (s->n_held) {
			s->held[s->n_held++] = p[i++];
			int len = tok_char(s->held, s->n_held);
			if (len < 0)
				continue;
			if (len > 0) {
				memcpy(out + made, s->held, (size_t)len);
				made += (size_t)len;
			} else {
				memcpy(out + made, bad, 3);
				made += 3;
				i--; /* the newest byte did not belong to it */
			}
			s->n_held = 0;
			continue;
		}
		int len = tok_char(p + i, n - i);
		if (len > 0) {
			memcpy(out + made, p + i, (size_t)len);
			made += (size_t)len;
			i += (size_t)len;
			continue;
		}
		/* hold the first byte: the branch above finds how far the damage goes */
		if (tok_char(p + i, 1) < 0) {
			s->held[s->n_held++] = p[i++];
		} else {
			memcpy(out + made, bad, 3);
			made += 3;
			i++;
		}
	}
	return made;
}

static size_t stream_at(const struct tokenizer *t, struct utf8_stream *s, int32_t id, bool special, char **out,
                        size_t *cap, size_t at)
{
	char scratch[TOK_SCRATCH];
	size_t n;
	const char *p = tokenizer_piece(t, id, false, special, scratch, &n);

	if (n == 0)
		return 0;
	if (!tok_grow((void **)out, cap, at + 3 * (n + 4) + 1, 1, NULL))
		return (size_t)-1;
	if (!s->started && t->drop_first_space && p[0] == ' ') {
		p++;
		n--;
	}
	s->started = true;
	return feed(s, (const unsigned char *)p, n, *out + at);
}

size_t tokenizer_stream(const struct tokenizer *t, struct utf8_stream *s, int32_t id, bool special, char **out,
                        size_t *cap)
{
	return stream_at(t, s, id, special, out, cap, 0);
}

size_t tokenizer_stream_end(struct utf8_stream *s, char out[8])
{
	if (!s->n_held)
		return 0;
	s->n_held = 0;
	memcpy(out, "\xef\xbf\xbd", 3);
	return 3;
}

char *tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool special, size_t *n_out,
                       struct error *err)
{
	struct utf8_stream s = { 0 };
	char *out = NULL;
	size_t cap = 0, at = 0;

	*n_out = 0;
	for (size_t i = 0; i < n; i++) {
		size_t made = stream_at(t, &s, ids[i], special, &out, &cap, at);
		if (made == (size_t)-1)
			goto no_memory;
		at += made;
	}
	if (!tok_grow((void **)&out, &cap, at + 9, 1, NULL))
		goto no_memory;
	at += tokenizer_stream_end(&s, out + at);
	out[at] = 0;
	*n_out = at;
	return out;
no_memory:
	free(out);
	error_set(err, ERROR_MEMORY, "no memory for the text of %zu tokens", n);
	return NULL;
}

/* ---- the rest */

const char *tokenizer_kind(const struct tokenizer *t)
{
	static const char *const kind[] = { [TOK_BYTE_LEVEL] = "byte-level BPE",
		                            [TOK_CHAR_RANKS] = "BPE of characters, by ranks",
		                            [TOK_CHAR_SCORES] = "SentencePiece BPE, by scores",
		                            [TOK_WORD_PIECE] = "WordPiece",
		                            [TOK_UNIGRAM] = "SentencePiece Unigram" };
	return kind[t->model];
}

size_t tokenizer_size(const struct tokenizer *t) { return t->n_token; }
int32_t tokenizer_bos(const struct tokenizer *t) { return t->bos; }
int32_t tokenizer_eos(const struct tokenizer *t) { return t->eos; }
int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t n) { return tok_find(t, text, n); }

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id)
{
	for (unsigned i = 0; i < t->n_eog; i++)
		if (t->eog[i] == id)
			return true;
	return false;
}

bool tokenizer_add_eog(struct tokenizer *t, int32_t id, struct error *err)
{
	if (id < 0 || (size_t)id >= t->n_token)
		return error_set(err, ERROR_FORMAT, "the end-of-generation token is %d, the vocabulary has %zu tokens",
		                 id, t->n_token);
	tok_eog_add(t, id);
	return true;
}

void tokenizer_close(struct tokenizer *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->n_norm; i++)
		pcre2_code_free(t->norm[i].from_re);
	for (unsigned i = 0; i < t->n_pre; i++)
		pcre2_code_free(t->pre[i].re);
	for (size_t i = 0; i < t->n_longs; i++)
		free(t->longs[i].p);
	free(t->longs);
	free(t->special[0].row);
	free(t->special[1].row);
	free(t->score_order);
	free(t->score);
	tok_table_free(&t->merge_table);
	tok_table_free(&t->may_table);
	tok_table_free(&t->slot_table);
	free(t->type);
	free(t->token);
	free(t->arena);
	free(t);
}
