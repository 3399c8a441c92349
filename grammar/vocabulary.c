#include "grammar/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "grammar/machine/easy.h"

struct spelled {
	uint32_t id, at;
	uint32_t n;
};
struct texts {
	struct spelled *one;
	uint32_t n;
	char *bytes;
	size_t n_bytes, room;
};

static int by_text(const void *a, const void *b, void *bytes)
{
	const struct spelled *x = a, *y = b;
	const char *p = bytes;
	int c = memcmp(p + x->at, p + y->at, x->n < y->n ? x->n : y->n);

	if (c || x->n != y->n)
		return c ? c : x->n < y->n ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

static bool spell_all(struct texts *t, uint32_t n_ids, vocabulary_piece *piece, void *user)
{
	if (!(t->one = malloc((n_ids + 1) * sizeof *t->one)))
		return false;
	for (uint32_t id = 0; id < n_ids; id++) {
		size_t n = 0;
		const char *text = piece(user, id, &n);
		void *bytes = t->bytes;
		if (n == 0 || n > VOCABULARY_DEPTH)
			continue;
		if (t->n_bytes + n > UINT32_MAX || !array_grow(&bytes, &t->room, t->n_bytes + n, 1))
			return false;
		t->bytes = bytes;
		memcpy(t->bytes + t->n_bytes, text, n);
		t->one[t->n++] = (struct spelled){ id, (uint32_t)t->n_bytes, (uint32_t)n };
		t->n_bytes += n;
	}
	qsort_r(t->one, t->n, sizeof *t->one, by_text, t->bytes);
	return true;
}

/* Whether bytes are the beginning of a character, and not all of it. */
static bool begins_character(const uint8_t *p, uint32_t n)
{
	const uint32_t length = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	const uint8_t low = p[0] == 0xe0   ? 0xa0
	                    : p[0] == 0xf0 ? 0x90
	                                   : 0x80,
		      high = p[0] == 0xed   ? 0x9f
	                     : p[0] == 0xf4 ? 0x8f
	                                    : 0xbf;
	bool ok = n < length && (n < 2 || (p[1] >= low && p[1] <= high));

	for (uint32_t i = 2; i < n && ok; i++)
		ok = p[i] >= 0x80 && p[i] <= 0xbf;
	return ok;
}

/* Of each position where a character begins: of which class all are from there on, how many they are. */
struct characters {
	bool begins[VOCABULARY_DEPTH + 1];
	enum easy class[VOCABULARY_DEPTH + 1];
	uint16_t count[VOCABULARY_DEPTH + 1];
};

static void find_easy(const char *text, uint32_t n, struct characters *c)
{
	uint32_t p = 0, length, code;

	memset(c->begins, 0, n + 1);
	for (c->begins[0] = true; p < n && (length = text_char(text + p, n - p, &code)) != 0; p += length)
		c->begins[p + length] = true;
	const bool cut = p < n && begins_character((const uint8_t *)text + p, n - p);
	c->class[n] = c->begins[n] ? EASY_CLASSES - 1 : EASY_NOT;
	c->count[n] = 0;
	for (uint32_t at = n; at-- > 0;) {
		const bool last = at == p && cut;
		length = c->begins[at] && !last ? text_char(text + at, n - at, &code) : 0;
		enum easy one = length ? easy_of(code) : EASY_NOT, rest = length ? c->class[at + length] : EASY_NOT;
		c->class[at] = last ? EASY_ANY : one < rest ? one : rest;
		c->count[at] = last ? 1 : length ? (uint16_t)(c->count[at + length] + 1) : 0;
	}
}

/* What a token tells of the nodes that it goes through. */
static void note_easy(struct vocabulary *v, const uint32_t *path, const char *text, uint32_t n)
{
	struct characters c;

	find_easy(text, n, &c);
	for (uint32_t d = 0, begin = 0; d < n; d++) {
		struct vocabulary_node *node = &v->node[path[d]];
		begin = c.begins[d + 1] ? d + 1 : c.begins[d] ? d : begin;
		node->into = (uint8_t)(d + 1 - begin < 4 ? d + 1 - begin : 0);
		enum easy class = d + 1 - begin < 4 ? c.class[begin] : EASY_NOT;
		node->easy = class < node->easy ? (uint8_t) class : node->easy;
		if (node->height < c.count[begin])
			node->height = c.count[begin];
	}
}

static void make_nodes(struct vocabulary *v, const struct texts *t)
{
	uint32_t path[VOCABULARY_DEPTH], depth = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct spelled *s = &t->one[i], *before = i ? s - 1 : s;
		uint32_t same = 0;
		while (i && same < s->n && same < before->n && t->bytes[s->at + same] == t->bytes[before->at + same])
			same++;
		while (depth > same)
			v->node[path[--depth]].behind = v->n_nodes;
		for (; depth < s->n; depth++) {
			path[depth] = v->n_nodes;
			v->node[v->n_nodes++] = (struct vocabulary_node){
				.byte = (uint8_t)t->bytes[s->at + depth],
				.depth = (uint16_t)depth,
				.above = path[depth ? depth - 1 : 0],
				.token = i,
				.easy = EASY_CLASSES - 1
			};
		}
		v->node[path[depth - 1]].n_tokens++;
		v->token[i] = s->id;
		note_easy(v, path, t->bytes + s->at, s->n);
	}
	while (depth)
		v->node[path[--depth]].behind = v->n_nodes;
	v->n_tokens = t->n;
}

struct vocabulary *vocabulary_open(uint32_t n_ids, vocabulary_piece *piece, void *user, struct error *err)
{
	struct vocabulary *v = calloc(1, sizeof *v);
	struct texts t = { 0 };
	bool ok = v && spell_all(&t, n_ids, piece, user);

	if (ok) {
		v->n_ids = n_ids;
		v->node = malloc((t.n_bytes + 1) * sizeof *v->node);
		v->token = malloc((t.n + 1) * sizeof *v->token);
		ok = v->node && v->token;
	}
	if (ok)
		make_nodes(v, &t);
	free(t.one);
	free(t.bytes);
	if (ok)
		return v;
	error_set(err, ERROR_MEMORY, "no memory for the texts of %u tokens", n_ids);
	vocabulary_close(v);
	return NULL;
}

uint32_t vocabulary_longest(const struct vocabulary *v, const char *text, size_t n, size_t *bytes)
{
	uint32_t id = 0, i = 0, end = v->n_nodes;

	*bytes = 0;
	for (size_t depth = 0; i < end && depth < n;) {
		const struct vocabulary_node *node = &v->node[i];
		if (node->byte != (uint8_t)text[depth]) {
			i = node->behind;
			continue;
		}
		depth++;
		end = node->behind;
		i++;
		if (node->n_tokens) {
			id = v->token[node->token];
			*bytes = depth;
		}
	}
	return id;
}

void vocabulary_close(struct vocabulary *v)
{
	if (!v)
		return;
	free(v->node);
	free(v->token);
	free(v);
}
