/* server/tool_calls.c - calls of tools in what a model says. */
#include "server/tool_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "loaders/json_read.h"
#include "server/json_write.h"

void tool_calls_begin(struct tool_calls *t, enum tools_form form, const char *opened)
{
	t->form = form;
	t->inside = opened != NULL;
	bytes_text(&t->held, opened ? opened : "");
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
static bool add_object(struct tool_calls *t, json_t *o)
{
	json_t *name = json_object_get(o, "name"), *arguments = json_object_get(o, "arguments");

	name = name ? name : json_object_get(o, "tool_name");
	arguments = arguments ? arguments : json_object_get(o, "parameters");
	if (!json_is_string(name) || !json_is_text(name))
		return false;
	if (json_is_string(arguments))
		return add(t, strdup(json_string_value(name)), strdup(json_string_value(arguments)));
	return (!arguments || json_is_object(arguments)) &&
	       add(t, strdup(json_string_value(name)), arguments ? json_write(json_incref(arguments)) : strdup("{}"));
}

static bool is_call(const json_t *o)
{
	const json_t *name = json_object_get(o, "name");

	return json_is_string(name ? name : json_object_get(o, "tool_name"));
}

/* A call, or an array of nothing but calls. */
static bool add_json(struct tool_calls *t, const char *p, size_t n)
{
	struct error e = { 0 };
	json_t *o = json_read(p, n, n, "a call", &e), *one;
	bool ok = json_is_array(o) ? json_array_size(o) > 0 : json_is_object(o) && add_object(t, o);
	size_t i;

	json_array_foreach(o, i, one) ok = ok && is_call(one);
	if (ok && json_is_array(o))
		json_array_foreach(o, i, one) ok = add_object(t, one) && ok;
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

/* <arg_key>x</arg_key><arg_value>1</arg_value>, behind the name. */
static bool add_keys(struct tool_calls *t, const char *p, size_t n)
{
	const char *key, *value, *end = memmem(p, n, "<arg_key>", 9);
	size_t n_key, n_value, at = end ? (size_t)(end - p) : n, space = skip_space(p, at), n_name = at;

	while (n_name > space && strchr(" \t\r\n", p[n_name - 1]))
		n_name--;
	if (n_name == space || memchr(p + space, '<', n_name - space) || memchr(p + space, '\n', n_name - space))
		return false;
	json_t *o = json_object();
	while (between(p, n, &at, "<arg_key>", "</arg_key>", &key, &n_key) &&
	       between(p, n, &at, "<arg_value>", "</arg_value>", &value, &n_value)) {
		char *own = strndup(key, n_key);
		if (own)
			json_put(o, own, value_of(value, n_value));
		free(own);
	}
	return add(t, strndup(p + space, n_name - space), json_write(o));
}

/* The name alone: functions.NAME:NUMBER is how some write it. */
static char *bare_name(const char *p, size_t n)
{
	size_t digits = 0;

	while (n && strchr(" \t\r\n", p[n - 1]))
		n--;
	while (digits < n && p[n - 1 - digits] >= '0' && p[n - 1 - digits] <= '9')
		digits++;
	if (digits && digits < n && p[n - 1 - digits] == ':')
		n -= digits + 1;
	if (n > 10 && memcmp(p, "functions.", 10) == 0) {
		p += 10;
		n -= 10;
	}
	return n ? strndup(p, n) : NULL;
}

/* A name, a mark and JSON. Some write what they call where the name is, and the name behind the mark, before a fence of
 * three backquotes. */
static bool add_named(struct tool_calls *t, const struct tools_row *row, const char *p, size_t n)
{
	const char *split = memmem(p, n, row->mark[2], strlen(row->mark[2]));
	const char *rest = split ? split + strlen(row->mark[2]) : p + n, *end = p + n;
	const char *open = memchr(rest, '{', (size_t)(end - rest)), *close = memrchr(rest, '}', (size_t)(end - rest));
	const char *fence = open ? memmem(rest, (size_t)(open - rest), "```", 3) : NULL;
	const char *from = fence ? rest : p, *to = fence ? fence : split;

	if (!split || !open || !close || close < open)
		return false;
	const char *more = row->mark[3] ? memmem(from, (size_t)(to - from), row->mark[3], strlen(row->mark[3])) : NULL;
	to = more ? more : to;
	from += skip_space(from, (size_t)(to - from));
	size_t length = (size_t)(close - open) + 1;
	struct error e = { 0 };
	json_t *o = json_read(open, length, length, "arguments", &e);
	char *name = json_is_object(o) ? bare_name(from, (size_t)(to - from)) : NULL;
	bool ok = name && add(t, name, json_write(json_incref(o)));
	json_decref(o);
	return ok;
}

static bool add_call(struct tool_calls *t, const char *p, size_t n)
{
	const struct tools_row *row = &tools_rows[t->form];
	size_t space = skip_space(p, n);

	if (row->body == BODY_NAMED)
		return add_named(t, row, p, n);
	if (space < n && (p[space] == '{' || p[space] == '['))
		return add_json(t, p, n);
	return (row->body == BODY_FUNCTIONS && add_elements(t, p, n)) || (row->body == BODY_KEYS && add_keys(t, p, n));
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

/* The first of the marks that matter here; NULL: there is none, and the last *held bytes may become one. */
static const char *find_mark(const struct tool_calls *t, size_t *at, size_t *held)
{
	const struct tools_row *row = &tools_rows[t->form];
	const char *const outside[] = { row->mark[0], row->mark[4], row->mark[5] };
	const char *const inside[] = { row->mark[1] ? row->mark[1] : row->mark[0], NULL, NULL };
	const char *const *marks = t->inside ? inside : outside, *found = NULL;

	*held = 0;
	for (int i = 0; i < 3 && t->held.n; i++) {
		if (!marks[i])
			continue;
		const char *p = memmem(t->held.p, t->held.n, marks[i], strlen(marks[i]));
		size_t k = partial(t->held.p, t->held.n, marks[i]);
		*held = k > *held ? k : *held;
		if (p && (!found || (size_t)(p - t->held.p) < *at)) {
			*at = (size_t)(p - t->held.p);
			found = marks[i];
		}
	}
	return found;
}

static void drop(struct bytes *b, size_t n)
{
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

/* Behind an opening mark: the call, or what turned out to be none. Models end their turn instead of closing the last
 * one. */
static bool take_inside(struct tool_calls *t, const char *mark, size_t n)
{
	const struct tools_row *row = &tools_rows[t->form];
	struct bytes *b = &t->held;
	size_t length = mark ? n : b->n;

	if (!add_call(t, b->p ? b->p : "", length)) {
		bytes_text(&t->text, row->mark[0]);
		bytes_add(&t->text, b->p, length);
		bytes_text(&t->text, mark && row->mark[1] ? mark : "");
	}
	drop(b, mark ? n + (row->mark[1] ? strlen(mark) : 0) : b->n);
	t->inside = false;
	return b->n > 0;
}

/* Takes out of what is held one text or one call. False: nothing more is known. */
static bool take_marked(struct tool_calls *t, bool ends)
{
	struct bytes *b = &t->held;
	size_t n = 0, held = 0;
	const char *mark = find_mark(t, &n, &held);

	if (t->inside)
		return (mark || ends) && take_inside(t, mark, n);
	if (!mark)
		n = ends ? b->n : b->n - held;
	/* Space before a call, and between two of them, is nobody's. */
	bool space = skip_space(b->p, n) == n;
	if (space && !mark && !t->begun && !ends)
		return false;
	space = space && (mark || t->n);
	t->begun = t->begun || !space;
	if (!space)
		bytes_add(&t->text, b->p, n);
	drop(b, mark ? n + strlen(mark) : n);
	t->inside = mark && mark == tools_rows[t->form].mark[0];
	return mark != NULL;
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
		while ((t->held.n || (!p && t->inside)) && take_marked(t, !p))
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
