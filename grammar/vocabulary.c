#include "grammar/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "grammar/easy.h"

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

/* class[p]: from byte p on, where a character begins, there are only whole ones of this class, `count` of them. */
static void find_easy(const char *text, uint32_t n, enum easy class[VOCABULARY_DEPTH + 1],
                      uint16_t count[VOCABULARY_DEPTH + 1])
{
	bool begins[VOCABULARY_DEPTH + 1] = { true };
	uint32_t code;

	for (uint32_t p = 0, length; p < n; p += length) {
		length = text_char(text + p, n - p, &code);
		if (!length)
			break;
		begins[p + length] = true;
	}
	class[n] = begins[n] ? EASY_CLASSES - 1 : EASY_NOT;
	count[n] = 0;
	for (uint32_t p = n; p-- > 0;) {
		uint32_t length = begins[p] ? text_char(text + p, n - p, &code) : 0;
		enum easy one = length ? easy_of(code) : EASY_NOT, rest = length ? class[p + length] : EASY_NOT;
		class[p] = one < rest ? one : rest;
		count[p] = length ? (uint16_t)(count[p + length] + 1) : 0;
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
				.token = i,
				.easy = EASY_CLASSES - 1
			};
		}
		v->node[path[depth - 1]].n_tokens++;
		v->token[i] = s->id;
		enum easy class[VOCABULARY_DEPTH + 1];
		uint16_t count[VOCABULARY_DEPTH + 1];
		find_easy(t->bytes + s->at, s->n, class, count);
		for (uint32_t d = 0; d < s->n; d++) {
			struct vocabulary_node *n = &v->node[path[d]];
			n->easy = class[d + 1] < n->easy ? (uint8_t) class[d + 1] : n->easy;
			if (n->height < count[d + 1])
				n->height = count[d + 1];
		}
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
