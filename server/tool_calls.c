/* server/tool_calls.c - calls of tools in what a model says. */
#include "server/tool_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "loaders/json_read.h"
#include "server/json_write.h"
#include "server/tool_elements.h"
#include "server/tool_values.h"

void tool_calls_begin(struct tool_calls *t, enum tools_form form, const char *opened, const char *schemas)
{
	t->form = form;
	t->schemas = schemas;
	t->inside = opened != NULL || tools_rows[form].opened;
	t->may_be_text = !opened && tools_rows[form].opened;
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

/* {NAME: {...}} */
static bool add_member(struct tool_calls *t, json_t *o)
{
	const char *name = json_object_iter_key(json_object_iter(o));
	json_t *arguments = name ? json_object_get(o, name) : NULL;

	return json_object_size(o) == 1 && json_is_object(arguments) && json_name_is_text(name) &&
	       add(t, strdup(name), json_write(json_incref(arguments)));
}

/* {"name": ..., "arguments" or "parameters": {...}}; arguments may also be JSON text of an object. False: it is no
 * call. */
static bool add_object(struct tool_calls *t, json_t *o)
{
	json_t *name = json_object_get(o, "name"), *arguments = json_object_get(o, "arguments");

	name = name ? name : json_object_get(o, "tool_name");
	arguments = arguments ? arguments : json_object_get(o, "parameters");
	if (t->form == TOOLS_PREFIX)
		return add_member(t, o);
	if (!json_is_string(name) || !json_is_text(name))
		return false;
	if (json_is_string(arguments))
		return add(t, strdup(json_string_value(name)), strdup(json_string_value(arguments)));
	return (!arguments || json_is_object(arguments)) &&
	       add(t, strdup(json_string_value(name)), arguments ? json_write(json_incref(arguments)) : strdup("{}"));
}

static bool is_call(const struct tool_calls *t, const json_t *o)
{
	if (t->form == TOOLS_PREFIX)
		return json_object_size(o) == 1;
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

	json_array_foreach(o, i, one) ok = ok && is_call(t, one);
	if (ok && json_is_array(o))
		json_array_foreach(o, i, one) ok = add_object(t, one) && ok;
	json_decref(o);
	return ok;
}

/* The name alone: functions.NAME:NUMBER is how some write it. */
static char *bare_name(const char *p, size_t n)
{
	size_t digits = 0, word = 0;

	while (word < n && !strchr(" \t\r\n<", p[word]))
		word++;
	size_t behind = word + skip_space(p + word, n - word);
	n = behind < n && p[behind] == '<' ? word : n; /* what else is told of it */
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
	const char *before =
		row->before_name ? memmem(from, (size_t)(to - from), row->before_name, strlen(row->before_name)) : NULL;
	from = before ? before + strlen(row->before_name) : from;
	from += skip_space(from, (size_t)(to - from));
	size_t length = (size_t)(close - open) + 1;
	struct error e = { 0 };
	json_t *o = json_read(open, length, length, "arguments", &e);
	char *name = json_is_object(o) ? bare_name(from, (size_t)(to - from)) : NULL;
	bool ok = name && add(t, name, json_write(json_incref(o)));
	json_decref(o);
	return ok;
}

/* Elements, by the schemas of the functions. */
static bool add_elements(struct tool_calls *t, const char *p, size_t n)
{
	char *name = NULL;
	json_t *arguments = tool_elements(t->form, p, n, t->schemas, &name);

	return arguments && add(t, name, json_write(arguments));
}

/* Calls as in Python, and nothing else. */
static bool add_python(struct tool_calls *t, const char *p, size_t n)
{
	size_t at = 0, had = t->n;
	char *name;
	json_t *arguments;

	while (tool_python_call(p, n, &at, &name, &arguments))
		add(t, name, json_write(arguments));
	return t->n > had;
}

static bool add_braces(struct tool_calls *t, const char *p, size_t n)
{
	const char *open = memchr(p, '{', n);
	json_t *o = open && open > p ? tool_braces(open, n - (size_t)(open - p)) : NULL;

	return o && add(t, strndup(p, (size_t)(open - p)), json_write(o));
}

static bool add_call(struct tool_calls *t, const char *p, size_t n)
{
	const struct tools_row *row = &tools_rows[t->form];
	size_t space = skip_space(p, n);

	if (row->body == BODY_NAMED)
		return add_named(t, row, p, n);
	if (row->body == BODY_INVOKE)
		return add_elements(t, p, n);
	if (row->body == BODY_PYTHON && !(space < n && p[space] == '[' && add_json(t, p, n)))
		return add_python(t, p, n);
	if (row->body == BODY_PYTHON)
		return true;
	if (row->body == BODY_BRACES)
		return add_braces(t, p, n);
	if (space < n && (p[space] == '{' || p[space] == '['))
		return add_json(t, p, n);
	return (row->body == BODY_FUNCTIONS || row->body == BODY_KEYS) && add_elements(t, p, n);
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
	const char *const outside[] = { row->mark[0],  row->mark[4],  row->mark[5], row->frame[0],
		                        row->frame[1], row->frame[2], row->frame[3] };
	const char *const inside[] = { row->mark[1] ? row->mark[1] : row->mark[0], NULL, NULL, NULL, NULL, NULL, NULL };
	const char *const *marks = t->inside ? inside : outside, *found = NULL;

	*held = 0;
	for (int i = 0; i < 7 && t->held.n; i++) {
		if (!marks[i])
			continue;
		const char *p = memmem(t->held.p, t->held.n, marks[i], strlen(marks[i]));
		size_t k = partial(t->held.p, t->held.n, marks[i]);
		*held = k > *held ? k : *held;
		size_t from = p ? (size_t)(p - t->held.p) : 0;
		/* Of two that begin together the longer one. */
		if (p && (!found || from < *at || (from == *at && strlen(marks[i]) > strlen(found)))) {
			*at = from;
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
		t->begun = true;
	} else {
		t->begun = false;
	}
	drop(b, mark ? n + (row->mark[1] ? strlen(mark) : 0) : b->n);
	t->inside = false;
	return b->n > 0;
}

/* Where the prompt has opened what may be a call or a text: whether that is known. A text is for "all". */
static bool begins_call(struct tool_calls *t, bool ends)
{
	char all[40];
	size_t n = (size_t)snprintf(all, sizeof all, "all%s", tools_rows[t->form].mark[2]);
	bool short_of = t->held.n < n;

	if (t->held.n && memcmp(t->held.p, all, short_of ? t->held.n : n) != 0) {
		t->may_be_text = false;
		return true;
	}
	if (short_of && !ends)
		return false;
	t->inside = t->may_be_text = false;
	t->begun = true;
	drop(&t->held, short_of ? t->held.n : n);
	return t->held.n > 0;
}

/* Takes out of what is held one text or one call. False: nothing more is known. */
static bool take_marked(struct tool_calls *t, bool ends)
{
	struct bytes *b = &t->held;
	size_t n = 0, held = 0;
	const char *mark = find_mark(t, &n, &held);

	if (t->inside && t->may_be_text)
		return begins_call(t, ends);
	if (t->inside)
		return (mark || ends) && take_inside(t, mark, n);
	if (!mark)
		n = ends ? b->n : b->n - held;
	/* Space before a call, and between two of them, is nobody's. */
	bool space = skip_space(b->p, n) == n;
	if (space && !mark && !t->begun && !ends)
		return false;
	space = space && !t->begun && (mark || t->n);
	t->begun = t->begun || !space;
	if (!space)
		bytes_add(&t->text, b->p, n);
	const struct tools_row *row = &tools_rows[t->form];
	t->begun = t->begun && !(mark && (mark == row->mark[4] || mark == row->mark[5]));
	drop(b, mark ? n + strlen(mark) : n);
	t->inside = mark && mark == tools_rows[t->form].mark[0];
	t->may_be_text = t->inside && tools_rows[t->form].opened;
	return mark != NULL;
}

/* JSON, also between lines of backquotes. */
static bool add_fenced(struct tool_calls *t, const char *p, size_t n)
{
	size_t from = skip_space(p, n), to = n;

	if (t->form == TOOLS_ANSWER && n - from > 3 && memcmp(p + from, "```", 3) == 0) {
		while (from < n && p[from] != '[' && p[from] != '{')
			from++;
		while (to > from && p[to - 1] != ']' && p[to - 1] != '}')
			to--;
	}
	return add_json(t, p + from, to - from);
}

static void take_bare(struct tool_calls *t, bool ends)
{
	struct bytes *b = &t->held;
	size_t space = b->n ? skip_space(b->p, b->n) : 0;

	if (!t->begun && space < b->n) {
		t->begun = true;
		t->inside = b->p[space] == '{' || (t->form == TOOLS_ANSWER && strchr("[`", b->p[space]));
	}
	if (t->inside && !ends)
		return;
	if ((t->inside && add_fenced(t, b->p, b->n)) || (b->n == 0))
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
	} else if (t->form == TOOLS_BARE || t->form == TOOLS_ANSWER) {
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
