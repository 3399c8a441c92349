#include "runtime/sampling/stop.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model.h"

/* One text, and how much of its beginning the bytes so far end with (Knuth, Morris, Pratt). */
struct stop_text {
	size_t n, seen;
	uint32_t *shorter; /* of the first i + 1 bytes: the longest end, not all of them, that is a beginning too */
	char *bytes;
};

struct stop {
	struct stop_text *text;
	size_t n_texts;
	int found;
	char *held; /* what was given last, then what is held back */
	size_t given, n, room;
};

static void find_shorter(struct stop_text *t)
{
	uint32_t m = 0;

	t->shorter[0] = 0;
	for (size_t i = 1; i < t->n; i++) {
		while (m && t->bytes[i] != t->bytes[m])
			m = t->shorter[m - 1];
		m += t->bytes[i] == t->bytes[m];
		t->shorter[i] = m;
	}
}

/* Whether the byte completes the text. */
static bool step(struct stop_text *t, char byte)
{
	while (t->seen && byte != t->bytes[t->seen])
		t->seen = t->shorter[t->seen - 1];
	t->seen += byte == t->bytes[t->seen];
	return t->seen == t->n;
}

static bool open_texts(struct stop *s, const char *const *texts, size_t n)
{
	s->text = calloc(n, sizeof *s->text);
	for (; s->text && s->n_texts < n; s->n_texts++) {
		struct stop_text *t = &s->text[s->n_texts];
		t->n = strlen(texts[s->n_texts]);
		t->bytes = strdup(texts[s->n_texts]);
		t->shorter = malloc(t->n * sizeof *t->shorter);
		if (!t->bytes || !t->shorter) {
			free(t->bytes);
			free(t->shorter);
			return false;
		}
		find_shorter(t);
	}
	return s->text != NULL;
}

_Static_assert((int)STOP_TEXTS == (int)MODEL_STOP_TEXTS && (int)STOP_BYTES == (int)MODEL_STOP_BYTES,
               "what a model may name can be looked for");

static bool check_texts(const char *const *texts, size_t n, struct error *err)
{
	if (n == 0 || n > STOP_TEXTS)
		return error_set(err, ERROR_ARGUMENT, "stop: %zu texts are not 1..%d", n, STOP_TEXTS);
	for (size_t i = 0; i < n; i++) {
		if (!texts[i])
			return error_set(err, ERROR_ARGUMENT, "stop: text %zu is NULL", i);
		size_t bytes = strlen(texts[i]);
		if (bytes == 0 || bytes > STOP_BYTES)
			return error_set(err, ERROR_ARGUMENT, "stop: text %zu has %zu bytes, not 1..%d", i, bytes,
			                 STOP_BYTES);
	}
	return true;
}

struct stop *stop_open(const char *const *texts, size_t n, struct error *err)
{
	if (!check_texts(texts, n, err))
		return NULL;
	struct stop *s = calloc(1, sizeof *s);
	if (!s || !open_texts(s, texts, n) || !(s->held = malloc(1))) {
		stop_close(s);
		error_set(err, ERROR_MEMORY, "no memory for %zu stop texts", n);
		return NULL;
	}
	s->found = -1;
	s->room = 1;
	return s;
}

void stop_close(struct stop *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_texts; i++) {
		free(s->text[i].bytes);
		free(s->text[i].shorter);
	}
	free(s->text);
	free(s->held);
	free(s);
}

static bool make_room(struct stop *s, size_t more)
{
	size_t need = s->n - s->given + more, room = s->room;

	while (room < need)
		room *= 2;
	char *held = room > s->room ? realloc(s->held, room) : s->held;
	if (!held)
		return false;
	s->held = held;
	s->room = room;
	return true;
}

/* What was given last goes. */
static void forget_given(struct stop *s)
{
	s->n -= s->given;
	memmove(s->held, s->held + s->given, s->n);
	s->given = 0;
}

static const char *give(struct stop *s, size_t n, size_t *out)
{
	s->given = *out = n;
	return s->held;
}

/* All automata take the byte. The length of the longest text that ends with it, or 0; *max: the longest beginning of
 * one that does. */
static size_t step_all(struct stop *s, char byte, size_t *max)
{
	size_t ended = 0;

	*max = 0;
	for (size_t i = 0; i < s->n_texts; i++) {
		struct stop_text *t = &s->text[i];
		if (step(t, byte) && t->n > ended) {
			ended = t->n;
			s->found = (int)i;
		}
		*max = t->seen > *max ? t->seen : *max;
	}
	return ended;
}

const char *stop_take(struct stop *s, const char *bytes, size_t n, size_t *out)
{
	size_t max = 0;

	*out = 0;
	if (s->found >= 0)
		return s->held;
	if (n > SIZE_MAX / 4 || !make_room(s, n))
		return NULL;
	forget_given(s);
	for (size_t i = 0; i < s->n_texts; i++)
		max = s->text[i].seen > max ? s->text[i].seen : max;
	for (size_t i = 0; i < n; i++) {
		s->held[s->n++] = bytes[i];
		size_t ended = step_all(s, bytes[i], &max);
		if (ended) {
			s->n -= ended;
			return give(s, s->n, out);
		}
	}
	return give(s, s->n - max, out);
}

const char *stop_rest(struct stop *s, const char *bytes, size_t n, size_t *out)
{
	const char *given = stop_take(s, bytes, n, out);

	if (!given || s->found >= 0)
		return given;
	for (size_t i = 0; i < s->n_texts; i++)
		s->text[i].seen = 0;
	return give(s, s->n, out);
}

int stop_found(const struct stop *s) { return s->found; }

void stop_again(struct stop *s)
{
	for (size_t i = 0; i < s->n_texts; i++)
		s->text[i].seen = 0;
	s->found = -1;
	s->n = s->given = 0;
}
