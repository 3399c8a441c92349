/* grammar/schema/json_value.c - values in a text that a machine has taken: equal ones have the same number however they
 * are written: 1 and 1.0, "a" and "\u0061", members in another order.
 *
 * The bytes of items that must differ are kept as a tree: each is a byte behind another.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"

enum { DEPTH_MAX = 200, NO_BYTE = 256 };

uint32_t value_root(struct json_machine *m)
{
	const uint32_t w[] = { 0, NO_BYTE };
	uint32_t root = interner_add(&m->values.bytes, w, 2, NULL);

	m->machine.failed |= root == 0;
	return root;
}

uint32_t value_byte(struct json_machine *m, uint32_t behind, uint8_t byte)
{
	const uint32_t w[] = { behind, byte };
	uint32_t next = interner_add(&m->values.bytes, w, 2, NULL);

	m->machine.failed |= next == 0;
	return next;
}

/* A text, and what of it is written in the one form that equal values share. */
struct plain {
	const uint8_t *p, *end;
	uint8_t *out;
	size_t n, room;
	bool failed; /* no memory, or nothing that can be compared: too deep, too many digits */
};

static void put(struct plain *t, const void *bytes, size_t n)
{
	void *out = t->out;

	if (t->failed || !effort_array(&out, &t->room, t->n + n, 1)) {
		t->failed = true;
		return;
	}
	t->out = out;
	memcpy(t->out + t->n, bytes, n);
	t->n += n;
}

static void put_byte(struct plain *t, uint8_t byte) { put(t, &byte, 1); }

static void skip(struct plain *t, const char *bytes)
{
	while (t->p < t->end && *t->p && strchr(bytes, *t->p))
		t->p++;
}

/* Behind the opening quote. */
static void put_string(struct plain *t)
{
	struct text_state s = { 0 };
	size_t at = t->n;
	uint32_t length = 0;
	uint8_t out[4];
	unsigned n;

	put_byte(t, 's');
	put(t, &length, sizeof length);
	while (t->p < t->end) {
		enum text_event e = text_step(&s, *t->p++, false, out, &n);
		if (e == TEXT_END || e == TEXT_DEAD)
			break;
		put(t, out, n);
		length += n;
	}
	if (!t->failed)
		memcpy(t->out + at + 1, &length, sizeof length);
}

static void put_number(struct plain *t)
{
	const uint8_t *from = t->p;
	struct decimal d;

	skip(t, "+-.0123456789eE");
	if (!decimal_read(&d, (const char *)from, (size_t)(t->p - from))) {
		t->failed = true;
		return;
	}
	put_byte(t, d.negative ? 'm' : 'n');
	put(t, &d.exponent, sizeof d.exponent);
	put_byte(t, d.n);
	put(t, d.digit, d.n);
}

static void put_value(struct plain *t, unsigned depth);

struct member_span {
	size_t name, value, end; /* where they begin in the text, and behind it */
};

static int compare(const uint8_t *p, size_t n, const uint8_t *q, size_t k)
{
	int c = memcmp(p, q, n < k ? n : k);

	return c ? c : n < k ? -1 : n > k;
}

static int by_name(const void *a, const void *b, void *user)
{
	const struct member_span *x = a, *y = b;
	const uint8_t *out = user;
	int c = compare(out + x->name, x->value - x->name, out + y->name, y->value - y->name);

	return c ? c : x->name < y->name ? -1 : 1;
}

/* Members by their names; of those with the same name the last one. */
static void sort_members(struct plain *t, struct member_span *member_span, size_t n, size_t from)
{
	struct plain sorted = { 0 };

	if (n < 2 || t->failed)
		return;
	qsort_r(member_span, n, sizeof *member_span, by_name, t->out);
	for (size_t i = 0; i < n; i++) {
		const struct member_span *a = &member_span[i], *b = &member_span[i + 1];
		if (i + 1 == n ||
		    compare(t->out + a->name, a->value - a->name, t->out + b->name, b->value - b->name) != 0)
			put(&sorted, t->out + a->name, a->end - a->name);
	}
	t->failed |= sorted.failed;
	if (!t->failed) {
		memcpy(t->out + from, sorted.out, sorted.n);
		t->n = from + sorted.n;
	}
	free(sorted.out);
}

/* Behind the opening brace. */
static void put_object(struct plain *t, unsigned depth)
{
	struct member_span *member_span = NULL;
	size_t n = 0, room = 0, from = t->n;

	for (skip(t, " \t\r\n,"); t->p < t->end && *t->p == '"' && !t->failed; skip(t, " \t\r\n,")) {
		void *spans = member_span;
		if (!effort_array(&spans, &room, n + 1, sizeof *member_span)) {
			t->failed = true;
			break;
		}
		member_span = spans;
		member_span[n].name = t->n;
		t->p++;
		put_string(t);
		member_span[n].value = t->n;
		skip(t, " \t\r\n:");
		put_value(t, depth + 1);
		member_span[n++].end = t->n;
	}
	sort_members(t, member_span, n, from);
	free(member_span);
	t->p += t->p < t->end; /* the closing brace */
	put_byte(t, '}');
}

static void put_array(struct plain *t, unsigned depth)
{
	for (skip(t, " \t\r\n,"); t->p < t->end && *t->p != ']' && !t->failed; skip(t, " \t\r\n,"))
		put_value(t, depth + 1);
	t->p += t->p < t->end;
	put_byte(t, ']');
}

static void put_value(struct plain *t, unsigned depth)
{
	uint8_t first;

	if (t->p == t->end || depth > DEPTH_MAX) {
		t->failed = true;
		return;
	}
	switch (first = *t->p) {
	case '"':
		t->p++;
		put_string(t);
		break;
	case '{':
		t->p++;
		put_byte(t, first);
		put_object(t, depth);
		break;
	case '[':
		t->p++;
		put_byte(t, first);
		put_array(t, depth);
		break;
	case 'n':
	case 'f':
	case 't':
		skip(t, "nulfasetr");
		put_byte(t, first == 'n' ? 'z' : first);
		break;
	default: put_number(t);
	}
}

/* The words of a value: what its form is written in, and how many bytes that are. */
static uint32_t keep(struct json_machine *m, const struct plain *t)
{
	size_t n = 1 + (t->n + 3) / 4;
	uint32_t *w = effort_calloc(n, sizeof *w), number = 0;

	if (w) {
		w[0] = (uint32_t)t->n;
		memcpy(w + 1, t->out, t->n);
		number = interner_add(&m->values.plain, w, n, NULL);
	}
	free(w);
	m->machine.failed |= number == 0;
	return number;
}

uint32_t value_between(struct json_machine *m, uint32_t from, uint32_t to)
{
	size_t n = 0;
	uint32_t number = 0;

	for (uint32_t at = to; at && at != from; at = interner_get(&m->values.bytes, at, NULL)[0])
		n++;
	effort_take(4 * n);
	uint8_t *text = effort_malloc(n + 1);
	if (!text) {
		m->machine.failed = true;
		return 0;
	}
	for (uint32_t at = to; n; at = interner_get(&m->values.bytes, at, NULL)[0])
		text[--n] = (uint8_t)interner_get(&m->values.bytes, at, NULL)[1];
	for (uint32_t at = to; at && at != from; at = interner_get(&m->values.bytes, at, NULL)[0])
		n++;
	struct plain t = { .p = text, .end = text + n };
	skip(&t, ", \t\r\n");
	put_value(&t, 0);
	if (!t.failed)
		number = keep(m, &t);
	free(t.out);
	free(text);
	return number;
}

uint8_t value_form(const struct json_machine *m, uint32_t number, const uint8_t **bytes, size_t *n)
{
	const uint32_t *w = interner_get(&m->values.plain, number, NULL);

	*bytes = (const uint8_t *)(w + 1);
	*n = w[0];
	return (*bytes)[0];
}

void values_clear(struct values *v)
{
	interner_clear(&v->bytes);
	interner_clear(&v->plain);
	interner_clear(&v->lists);
	interner_clear(&v->others);
	free(v->node);
}
