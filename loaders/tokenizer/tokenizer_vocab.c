/* loaders/tokenizer/tokenizer_vocab.c - the vocabulary: texts to ids, pairs to merges, special tokens.
 *
 * Owns: the two hash tables, the sorted special tokens, and how a token turns into text. Tables are built in one pass
 * with no allocation per token; opening a vocabulary of 150 000 tokens is part of every start of the program, so
 * nothing here may touch a token twice without need. Never: trusts an id or a length that a file gave before it is
 * checked here.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Bits for each place of the table of merges, a power of two: few of those of pairs that do not merge are set, and all
 * of them together are small enough for the processor's caches. */
enum { MAY_BITS = 4 };

/* ---- hash of token texts */

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 29;
}

static uint64_t load8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, 8);
	return x;
}

/* Up to 8 bytes: the text itself, one to one given its length. Longer: a hash. */
static uint64_t text_key(const struct tokenizer *t, const char *p, size_t n)
{
	if (n >= 4 && n <= 8) {
		uint32_t a, b;
		memcpy(&a, p, 4);
		memcpy(&b, p + n - 4, 4);
		return a | (uint64_t)b << 32;
	}
	if (n < 4) {
		const unsigned char *u = (const unsigned char *)p;
		return n == 0 ? 0 : u[0] | (uint64_t)u[n / 2] << 8 | (uint64_t)u[n - 1] << 16;
	}
	uint64_t h = t->seed ^ n;
	for (size_t i = 0; i + 8 <= n; i += 8)
		h = mix(h ^ load8(p + i));
	return mix(h ^ load8(p + n - 8));
}

static uint64_t slot_of(const struct tokenizer *t, uint64_t key, uint32_t n)
{
	return mix(key ^ t->seed ^ ((uint64_t)n << 56 | n)) & t->slot_mask;
}

int32_t tok_find(const struct tokenizer *t, const char *p, size_t n)
{
	if (n == 0 || n > t->max_token)
		return -1;
	uint64_t key = text_key(t, p, n);
	for (uint64_t i = slot_of(t, key, (uint32_t)n);; i = (i + 1) & t->slot_mask) {
		const struct tok_slot *s = &t->slot[i];
		if (!s->id_plus_1)
			return -1;
		if (s->key == key && s->n == n && (n <= 8 || !memcmp(t->token[s->id_plus_1 - 1].p, p, n)))
			return (int32_t)(s->id_plus_1 - 1);
	}
}

/* The first of two tokens with the same text keeps it, but a normal token wins over the other types:
 * only normal tokens can be the result of a merge. */
static void slot_insert(struct tokenizer *t, size_t id)
{
	const char *p = t->token[id].p;
	uint32_t n = (uint32_t)t->token[id].n;
	uint64_t key = text_key(t, p, n);

	for (uint64_t i = slot_of(t, key, n);; i = (i + 1) & t->slot_mask) {
		struct tok_slot *s = &t->slot[i];
		if (!s->id_plus_1) {
			*s = (struct tok_slot){ key, n, (uint32_t)id + 1 };
			return;
		}
		uint32_t other = s->id_plus_1 - 1;
		if (s->key == key && s->n == n && (n <= 8 || !memcmp(t->token[other].p, p, n))) {
			if (t->type[other] != TOK_NORMAL && t->type[id] == TOK_NORMAL)
				s->id_plus_1 = (uint32_t)id + 1;
			return;
		}
	}
}

static uint64_t table_size(uint64_t count)
{
	uint64_t size = 16;

	while (size * 3 / 4 <= count)
		size *= 2;
	return size;
}

/* Zeroed memory in large pages where the system has them: with small ones a third of the time to open a
 * vocabulary goes into page faults. NULL when there is none. */
static void *table_alloc(struct tok_table *table, size_t bytes)
{
	size_t large = (size_t)2 << 20, slack = bytes >= large ? large : 0;
	char *p = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	*table = (struct tok_table){ p, bytes + slack };
	if (slack) {
		p += -(uintptr_t)p & (large - 1);
		madvise(p, bytes, MADV_HUGEPAGE); /* only advice: refused is as good */
	}
	return p;
}

void tok_table_free(struct tok_table *table)
{
	if (table->p)
		munmap(table->p, table->bytes);
}

static void find_byte_tokens(struct tokenizer *t)
{
	static const char digit[] = "0123456789ABCDEF";

	for (unsigned b = 0; b < 256; b++) {
		char text[8];
		unsigned n;
		if (t->model == TOK_BYTE_LEVEL) {
			n = tokenizer_spell_byte(b, text);
		} else {
			memcpy(text, "<0x", 3);
			text[3] = digit[b >> 4];
			text[4] = digit[b & 15];
			text[5] = '>';
			n = 6;
		}
		t->byte_id[b] = tok_find(t, text, n);
	}
}

struct tokenizer *tok_new(struct error *err)
{
	struct tokenizer *t = calloc(1, sizeof *t);
	struct timespec now;

	if (!t) {
		error_set(err, ERROR_MEMORY, "no memory for a tokenizer");
		return NULL;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	t->seed = mix((uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32 ^ (uint64_t)(uintptr_t)t);
	t->bos = t->eos = t->unknown = -1;
	memset(t->role, 0xff, sizeof t->role);
	return t;
}

bool tok_index(struct tokenizer *t, const char *where, struct error *err)
{
	uint64_t size = table_size(t->n_token);

	t->slot = table_alloc(&t->slot_table, size * sizeof *t->slot);
	if (!t->slot)
		return error_set(err, ERROR_MEMORY, "%s: no memory for a table of %zu tokens", where, t->n_token);
	t->slot_mask = size - 1;
	for (size_t i = 0; i < t->n_token; i++) {
		if (t->token[i].n > TOK_MAX_TOKEN_BYTES)
			return error_set(err, ERROR_FORMAT, "%s: token %zu is %llu bytes long, at most %d are expected",
			                 where, i, (unsigned long long)t->token[i].n, TOK_MAX_TOKEN_BYTES);
		if (t->token[i].n > t->max_token)
			t->max_token = (uint32_t)t->token[i].n;
		if (t->token[i].n)
			slot_insert(t, i);
	}
	find_byte_tokens(t);
	return true;
}

/* ---- merges */

static uint64_t pair_hash(const struct tokenizer *t, uint64_t pair) { return mix(pair ^ t->seed); }

/* Upper bits: the lower ones say where the pair is in its table. */
static uint64_t may_bit(const struct tokenizer *t, uint64_t hash) { return hash >> 32 & t->may_mask; }

const struct tok_merge *tok_merge_find(const struct tokenizer *t, int32_t left, int32_t right)
{
	if (left < 0 || right < 0 || !t->merge)
		return NULL;
	const uint64_t pair = (uint64_t)left << 32 | (uint32_t)right, hash = pair_hash(t, pair), bit = may_bit(t, hash);
	if (!(t->may_merge[bit / 64] >> bit % 64 & 1))
		return NULL;
	for (uint64_t i = hash & t->merge_mask;; i = (i + 1) & t->merge_mask) {
		const struct tok_merge *m = &t->merge[i];
		if (!m->rank_plus_1)
			return NULL;
		if (m->pair == pair)
			return m;
	}
}

bool tok_merges_begin(struct tok_merger *m, struct tokenizer *t, uint64_t count, const char *where, struct error *err)
{
	*m = (struct tok_merger){ .t = t, .where = where, .last = -1 };
	if (count > UINT32_MAX / 4)
		return error_set(err, ERROR_FORMAT, "%s: %llu merges are more than fit", where,
		                 (unsigned long long)count);
	uint64_t size = table_size(count);
	m->joined = malloc((size_t)t->max_token + 1);
	t->merge = table_alloc(&t->merge_table, size * sizeof *t->merge);
	t->merge_mask = size - 1;
	t->may_merge = table_alloc(&t->may_table, size * MAY_BITS / 8);
	t->may_mask = size * MAY_BITS - 1;
	if (!m->joined || !t->merge || !t->may_merge)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %llu merges", where, (unsigned long long)count);
	return true;
}

static bool merge_refused(struct tok_merger *m, const char *what, const char *p, size_t n, struct error *err)
{
	char text[80];

	if (m->lenient) {
		m->rank++;
		return true;
	}
	return error_set(err, ERROR_FORMAT, "%s: merge %u %s \"%s\", which is no token of the vocabulary", m->where,
	                 m->rank, what, error_quote(text, sizeof text, p, n));
}

bool tok_merges_add(struct tok_merger *m, const char *a, size_t na, const char *b, size_t nb, struct error *err)
{
	struct tokenizer *t = m->t;
	int32_t left = tok_find(t, a, na), right = tok_find(t, b, nb), result = m->last + 1;

	if (left < 0)
		return merge_refused(m, "begins with", a, na, err);
	if (right < 0)
		return merge_refused(m, "ends with", b, nb, err);
	/* merges mostly come in the order of the tokens they make: look at the next token before searching */
	if (m->last < 0 || (size_t)result >= t->n_token || t->token[result].n != na + nb ||
	    memcmp(t->token[result].p, a, na) || memcmp(t->token[result].p + na, b, nb)) {
		result = -1;
		if (na + nb <= t->max_token) {
			memcpy(m->joined, a, na);
			memcpy(m->joined + na, b, nb);
			result = tok_find(t, m->joined, na + nb);
		}
		if (result < 0)
			return merge_refused(m, "makes a token out of the one it begins with and", b, nb, err);
	}
	m->last = result;
	uint64_t pair = (uint64_t)left << 32 | (uint32_t)right;
	const uint64_t hash = pair_hash(t, pair), bit = may_bit(t, hash);
	uint64_t i = hash & t->merge_mask;
	while (t->merge[i].rank_plus_1 && t->merge[i].pair != pair)
		i = (i + 1) & t->merge_mask;
	if (!t->merge[i].rank_plus_1) /* of two equal merges the first counts */
		t->merge[i] = (struct tok_merge){ pair, m->rank + 1, result };
	t->may_merge[bit / 64] |= (uint64_t)1 << bit % 64;
	m->rank++;
	return true;
}

void tok_merges_end(struct tok_merger *m)
{
	free(m->joined);
	m->joined = NULL;
}

/* ---- special tokens */

static int special_order(const void *x, const void *y)
{
	const struct tok_special *a = x, *b = y;
	int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	if (c)
		return c;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

bool tok_special_sort(struct tok_special_set *s, const char *where, struct error *err)
{
	memset(s->first, 0, sizeof s->first);
	for (size_t i = 0; i < s->n; i++) {
		if (s->row[i].n == 0 || s->row[i].n > TOK_MAX_SPECIAL_BYTES)
			return error_set(err, ERROR_FORMAT, "%s: special token %d is %u bytes long, expected 1 to %d",
			                 where, s->row[i].id, s->row[i].n, TOK_MAX_SPECIAL_BYTES);
		s->first[(unsigned char)s->row[i].p[0]] = true;
	}
	if (s->n)
		qsort(s->row, s->n, sizeof *s->row, special_order);
	return true;
}

/* First row in [lo, hi) whose byte at depth is not below c; shorter rows count as below. */
static size_t special_bound(const struct tok_special_set *s, size_t lo, size_t hi, size_t depth, int c)
{
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int have = s->row[mid].n > depth ? (unsigned char)s->row[mid].p[depth] : -1;
		if (have < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct tok_special *tok_special_at(const struct tok_special_set *s, const char *p, size_t n, size_t hidden,
                                         uint64_t *steps)
{
	const struct tok_special *best = NULL;
	size_t lo = 0, hi = s->n;

	for (size_t depth = 0; depth < n && lo < hi;) {
		int c = (unsigned char)p[depth];
		lo = special_bound(s, lo, hi, depth, c);
		hi = special_bound(s, lo, hi, depth, c + 1);
		depth++;
		++*steps;
		for (size_t i = lo; i < hi && s->row[i].n == depth; i++, ++*steps)
			if (depth <= hidden || !s->row[i].hidden) {
				best = &s->row[i];
				break;
			}
	}
	return best;
}

/* ---- tokens to text */

/* False when a character spells no byte: such a token stands for itself. */
static bool bytes_of_spelling(const struct gguf_str *s, char *out, size_t *n_out)
{
	size_t n = 0;

	for (uint64_t i = 0; i < s->n;) {
		int len = tok_char(s->p + i, s->n - i);
		int byte = len > 0 ? tok_char_byte(tok_decode((const unsigned char *)s->p + i, (unsigned)len)) : -1;
		if (byte < 0)
			return false;
		out[n++] = (char)byte;
		i += (unsigned)len;
	}
	*n_out = n;
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	                              : -1;
}

static bool byte_of_name(const struct gguf_str *s, char *out)
{
	if (s->n != 6 || memcmp(s->p, "<0x", 3) || s->p[5] != '>' || hex_digit(s->p[3]) < 0 || hex_digit(s->p[4]) < 0)
		return false;
	*out = (char)(hex_digit(s->p[3]) << 4 | hex_digit(s->p[4]));
	return true;
}

size_t tok_piece_write(const struct tokenizer *t, int32_t id, char *out)
{
	const struct gguf_str *s = &t->token[id];
	bool spelt = t->type[id] == TOK_NORMAL || t->type[id] == TOK_UNUSED;
	size_t n;

	if (t->model == TOK_BYTE_LEVEL && spelt && bytes_of_spelling(s, out, &n))
		return n;
	if (t->type[id] == TOK_BYTE && byte_of_name(s, out))
		return 1;
	if (t->model == TOK_WORD_PIECE && spelt)
		return tok_write_word_piece(t, s, out);
	if (!t->space_mark || !(spelt || t->type[id] == TOK_USER)) {
		if (s->n)
			memcpy(out, s->p, s->n);
		return s->n;
	}
	n = 0;
	for (uint64_t i = 0; i < s->n;) {
		if (s->n - i >= 3 && !memcmp(s->p + i, "\xe2\x96\x81", 3)) {
			out[n++] = ' ';
			i += 3;
		} else {
			out[n++] = s->p[i++];
		}
	}
	return n;
}

/* ---- finishing */

void tok_eog_add(struct tokenizer *t, int32_t id)
{
	if (id < 0 || (size_t)id >= t->n_token || tokenizer_is_eog(t, id) || t->n_eog == TOK_MAX_EOG)
		return;
	t->eog[t->n_eog++] = id;
}

static bool has_control(const struct tokenizer *t, const char *text)
{
	const int32_t id = tok_find(t, text, strlen(text));

	return id >= 0 && t->type[id] != TOK_NORMAL;
}

static void add_known_ends(struct tokenizer *t)
{
	/* Messages of gpt-oss end so: an answer goes on behind its reasoning. */
	const bool has_messages = has_control(t, "<|return|>") && has_control(t, "<|call|>");

	static const char *const end[] = {
		"<|eot_id|>",      "<|eom_id|>",    "<|im_end|>",
		"<|end|>",         "<end_of_turn>", "<|endoftext|>",
		"<|end_of_text|>", "</s>",          "<|EOT|>",
		"<|end_of_turn|>", "<|return|>",    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"
	};

	for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
		int32_t id = tok_find(t, end[i], strlen(end[i]));
		if (has_messages && strcmp(end[i], "<|end|>") == 0)
			continue;
		/* a normal token of that text is text: code may contain it */
		if (id >= 0 && t->type[id] != TOK_NORMAL)
			tok_eog_add(t, id);
	}
}

static bool decode_long_tokens(struct tokenizer *t, struct error *err)
{
	size_t n = 0;

	if (t->max_token <= TOK_SCRATCH)
		return true;
	for (size_t i = 0; i < t->n_token; i++)
		n += t->token[i].n > TOK_SCRATCH;
	t->longs = calloc(n, sizeof *t->longs);
	if (!t->longs)
		return error_set(err, ERROR_MEMORY, "no memory for %zu long tokens", n);
	for (size_t i = 0; i < t->n_token; i++) {
		if (t->token[i].n <= TOK_SCRATCH)
			continue;
		struct tok_long *l = &t->longs[t->n_longs];
		l->p = malloc(t->token[i].n);
		if (!l->p)
			return error_set(err, ERROR_MEMORY, "no memory for a token of %llu bytes",
			                 (unsigned long long)t->token[i].n);
		l->id = (int32_t)i;
		l->n = tok_piece_write(t, (int32_t)i, l->p);
		t->n_longs++;
	}
	return true;
}

/* Words may be cut before "▁" when no token has one after something else. */
static bool marks_begin_tokens(const struct tokenizer *t)
{
	for (size_t i = 0; i < t->n_token; i++) {
		const struct gguf_str *s = &t->token[i];
		uint64_t at = 0;

		while (s->n - at >= 3 && !memcmp(s->p + at, "\xe2\x96\x81", 3))
			at += 3;
		if (s->n - at >= 3 && memmem(s->p + at, s->n - at, "\xe2\x96\x81", 3))
			return false;
	}
	return true;
}

bool tok_finish(struct tokenizer *t, struct error *err)
{
	/* "▁" must be a token, so that a run of unknown characters ends there too */
	t->cut_at_marks = t->model != TOK_BYTE_LEVEL && !t->whole_words && tok_find(t, "\xe2\x96\x81", 3) >= 0 &&
	                  marks_begin_tokens(t);
	tok_eog_add(t, t->eos);
	add_known_ends(t);
	tok_roles_finish(t);
	return decode_long_tokens(t, err);
}
