/* server/tool_calls.c - calls of tools in what a model says. */
#include "server/tool_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "loaders/json_read.h"
#include "server/json_write.h"

static const char opening[] = "<tool_call>", closing[] = "</tool_call>";

enum tools_form tools_form_of(const char *text)
{
	if (!text || strstr(text, "<function="))
		return text ? TOOLS_ELEMENTS : TOOLS_TAGGED;
	if (strstr(text, opening))
		return TOOLS_TAGGED;
	return strstr(text, "\"parameters\"") ? TOOLS_BARE : TOOLS_TAGGED;
}

/* Takes both over. */
static bool add(struct tool_calls *t, char *name, char *arguments)
{
	if (name && arguments && array_grow((void **)&t->call, &t->capacity, t->n + 1, sizeof *t->call)) {
		t->call[t->n++] = (struct tool_call){ name, arguments };
		return true;
	}
	t->lost = true;
	free(name);
	free(arguments);
	return true;
}

static size_t skip_space(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && strchr(" \t\r\n", p[i]) && p[i])
		i++;
	return i;
}

/* {"name": ..., "arguments" or "parameters": {...}}; arguments may also be JSON text of an object. False: it is no
 * call. */
static bool add_json(struct tool_calls *t, const char *p, size_t n)
{
	struct error e = { 0 };
	json_t *o = json_read(p, n, n, "a call", &e);
	json_t *name = json_object_get(o, "name"), *arguments = json_object_get(o, "arguments");
	bool ok = false;

	if (!arguments)
		arguments = json_object_get(o, "parameters");
	if (json_is_string(name) && json_is_text(name) && (!arguments || json_is_object(arguments)))
		ok = add(t, strdup(json_string_value(name)),
		         arguments ? json_write(json_incref(arguments)) : strdup("{}"));
	else if (json_is_string(name) && json_is_text(name) && json_is_string(arguments))
		ok = add(t, strdup(json_string_value(name)), strdup(json_string_value(arguments)));
	json_decref(o);
	return ok;
}

/* The text between two marks from `at` on; false: they are not there. */
static bool between(const char *p, size_t n, size_t *at, const char *begin, const char *end, const char **text,
                    size_t *length)
{
	const char *from = *at < n ? memmem(p + *at, n - *at, begin, strlen(begin)) : NULL;

	if (!from)
		return false;
	from += strlen(begin);
	const char *to = memmem(from, (size_t)(p + n - from), end, strlen(end));
	if (!to)
		return false;
	*text = from;
	*length = (size_t)(to - from);
	*at = (size_t)(to - p) + strlen(end);
	return true;
}

/* A parameter's value: JSON where it is some, else a text without the line ends around it. */
static json_t *value_of(const char *p, size_t n)
{
	struct error e = { 0 };

	if (n && p[0] == '\n') {
		p++;
		n--;
	}
	n -= n && p[n - 1] == '\n';
	json_t *o = n ? json_read(p, n, n, "a parameter", &e) : NULL;
	return o && !json_not_finite(o) ? o : json_text(p, n);
}

static bool add_elements(struct tool_calls *t, const char *p, size_t n)
{
	const char *name, *key, *text;
	size_t n_name, n_key, n_text, at = 0;

	if (!between(p, n, &at, "<function=", ">", &name, &n_name))
		return false;
	json_t *o = json_object();
	while (between(p, n, &at, "<parameter=", ">", &key, &n_key)) {
		const char *end = memmem(p + at, n - at, "</parameter>", 12);
		if (!end)
			break;
		char *own = strndup(key, n_key);
		text = p + at;
		n_text = (size_t)(end - text);
		if (own)
			json_put(o, own, value_of(text, n_text));
		free(own);
		at = (size_t)(end - p) + 12;
	}
	return add(t, strndup(name, n_name), json_write(o));
}

static bool add_call(struct tool_calls *t, const char *p, size_t n)
{
	size_t space = skip_space(p, n);

	if (space < n && p[space] == '{')
		return add_json(t, p, n);
	return t->form == TOOLS_ELEMENTS && add_elements(t, p, n);
}

/* How many bytes at the end of p may be the beginning of a mark. */
static size_t partial(const char *p, size_t n, const char *mark)
{
	size_t most = strlen(mark) - 1;

	for (size_t k = n < most ? n : most; k; k--)
		if (memcmp(p + n - k, mark, k) == 0)
			return k;
	return 0;
}

static void drop(struct bytes *b, size_t n)
{
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

/* Takes out of what is held one text or one call. False: nothing more is known. */
static bool take_tagged(struct tool_calls *t, bool ends)
{
	struct bytes *b = &t->held;
	const char *mark = t->inside ? closing : opening;
	const char *at = b->n ? memmem(b->p, b->n, mark, strlen(mark)) : NULL;
	size_t n = at ? (size_t)(at - b->p) : 0;

	if (t->inside && !at && !ends)
		return false;
	if (t->inside) {
		/* Models end their turn instead of closing the last one. */
		size_t length = at ? n : b->n;
		if (!add_call(t, b->p ? b->p : "", length)) {
			bytes_text(&t->text, opening);
			bytes_add(&t->text, b->p, length);
			bytes_text(&t->text, at ? closing : "");
		}
		drop(b, at ? n + strlen(closing) : b->n);
		t->inside = false;
		return b->n > 0;
	}
	if (!at)
		n = ends ? b->n : b->n - partial(b->p, b->n, opening);
	/* Space before a call, and between two of them, is nobody's. */
	bool space = (at || t->n) && skip_space(b->p, n) == n;
	if (!space)
		bytes_add(&t->text, b->p, n);
	drop(b, at ? n + strlen(opening) : n);
	t->inside = at != NULL;
	return at != NULL;
}

static void take_bare(struct tool_calls *t, bool ends)
{
	struct bytes *b = &t->held;
	size_t space = b->n ? skip_space(b->p, b->n) : 0;

	if (!t->begun && space < b->n) {
		t->begun = true;
		t->inside = b->p[space] == '{';
	}
	if (t->inside && !ends)
		return;
	if ((t->inside && add_json(t, b->p, b->n)) || (b->n == 0))
		b->n = 0;
	else if (t->begun || ends) {
		bytes_add(&t->text, b->p, b->n);
		b->n = 0;
	}
}

void tool_calls_take(struct tool_calls *t, const char *p, size_t n)
{
	bytes_clear(&t->text);
	if (p)
		bytes_add(&t->held, p, n);
	if (t->form == TOOLS_NONE) {
		bytes_add(&t->text, t->held.p, t->held.n);
		bytes_clear(&t->held);
	} else if (t->form == TOOLS_BARE) {
		take_bare(t, !p);
	} else {
		while ((t->held.n || (!p && t->inside)) && take_tagged(t, !p))
			;
	}
	t->lost = t->lost || t->held.lost || t->text.lost;
}

void tool_calls_free(struct tool_calls *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->call[i].name);
		free(t->call[i].arguments);
	}
	free(t->call);
	bytes_free(&t->held);
	bytes_free(&t->text);
	*t = (struct tool_calls){ 0 };
}
