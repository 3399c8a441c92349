#include "server/tool_values.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/json_read.h"
#include "server/bytes.h"
#include "server/json_write.h"

enum { DEPTH_MOST = 50 };
static const char quote_mark[] = "<|\"|>";
enum { QUOTE_BYTES = sizeof quote_mark - 1 };

struct reader {
	const char *p, *end;
	bool braces; /* Gemma's language; else Python's */
};

static bool at_text(const struct reader *r, const char *what)
{
	size_t n = strlen(what);

	return (size_t)(r->end - r->p) >= n && memcmp(r->p, what, n) == 0;
}

static void skip(struct reader *r, const char *bytes)
{
	while (r->p < r->end && *r->p && strchr(bytes, *r->p))
		r->p++;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '.';
}

/* Python's texts: 'a', "a", with the escapes that JSON has, too. */
static json_t *quoted(struct reader *r)
{
	static const char letters[] = "nrtbf", meant[] = "\n\r\t\b\f";
	char quote = *r->p++;
	struct bytes text = { 0 };
	json_t *o = NULL;

	while (r->p < r->end && *r->p != quote) {
		char c = *r->p++;
		const char *at = c == '\\' && r->p < r->end && *r->p ? strchr(letters, *r->p) : NULL;
		if (c == '\\' && r->p < r->end) {
			c = at ? meant[at - letters] : *r->p;
			r->p++;
		}
		bytes_add(&text, &c, 1);
	}
	if (r->p < r->end && !text.lost)
		o = json_text(text.p ? text.p : "", text.n);
	r->p += r->p < r->end;
	bytes_free(&text);
	return o;
}

static json_t *marked(struct reader *r)
{
	const char *from = r->p + QUOTE_BYTES, *to = memmem(from, (size_t)(r->end - from), quote_mark, QUOTE_BYTES);

	if (!to)
		return NULL;
	r->p = to + QUOTE_BYTES;
	return json_text(from, (size_t)(to - from));
}

/* True, None, numbers; else what stands there, as a text. */
static json_t *word(struct reader *r)
{
	static const struct {
		const char *text;
		int value;
	} words[] = { { "True", 1 }, { "true", 1 }, { "False", 0 }, { "false", 0 }, { "None", 2 }, { "null", 2 } };
	const char *from = r->p;
	struct error e = { 0 };

	while (r->p < r->end && !strchr(",)]}:", *r->p))
		r->p++;
	size_t n = (size_t)(r->p - from);
	while (n && strchr(" \t\r\n", from[n - 1]))
		n--;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].text) == n && memcmp(from, words[i].text, n) == 0)
			return words[i].value == 2 ? json_null() : json_boolean(words[i].value);
	json_t *o = n ? json_read(from, n, n, "a value", &e) : NULL;
	return o && json_is_number(o) ? o : (json_decref(o), n ? json_text(from, n) : NULL);
}

static json_t *value(struct reader *r, unsigned depth);

static json_t *list(struct reader *r, unsigned depth)
{
	json_t *o = json_array();

	r->p++;
	for (skip(r, " \t\r\n,"); r->p < r->end && *r->p != ']'; skip(r, " \t\r\n,")) {
		json_t *one = value(r, depth + 1);
		if (!one) {
			json_decref(o);
			return NULL;
		}
		json_add(o, one);
	}
	r->p += r->p < r->end;
	return o;
}

/* A key, without what stands around it; NULL: there is none. */
static char *key(struct reader *r)
{
	json_t *o = r->p < r->end && (*r->p == '"' || *r->p == '\'') ? quoted(r)
	            : at_text(r, quote_mark)                         ? marked(r)
	                                                             : NULL;
	const char *from = r->p;
	char *text = o ? strdup(json_string_value(o)) : NULL;

	json_decref(o);
	if (text)
		return text;
	while (r->p < r->end && is_name(*r->p))
		r->p++;
	return r->p > from ? strndup(from, (size_t)(r->p - from)) : NULL;
}

/* Members up to the closing byte, with `between` behind their names. */
static json_t *members(struct reader *r, char between, char close, unsigned depth)
{
	json_t *o = json_object();

	for (skip(r, " \t\r\n,"); r->p < r->end && *r->p != close; skip(r, " \t\r\n,")) {
		char *name = key(r);
		skip(r, " \t\r\n");
		bool ok = name && r->p < r->end && *r->p == between;
		r->p += ok;
		skip(r, " \t\r\n");
		json_t *one = ok ? value(r, depth + 1) : NULL;
		if (one)
			json_put(o, name, one);
		free(name);
		if (!one) {
			json_decref(o);
			return NULL;
		}
	}
	if (r->p == r->end) {
		json_decref(o);
		return NULL;
	}
	r->p++;
	return o;
}

static json_t *value(struct reader *r, unsigned depth)
{
	if (r->p == r->end || depth > DEPTH_MOST)
		return NULL;
	if (at_text(r, quote_mark))
		return marked(r);
	if (!r->braces && (*r->p == '"' || *r->p == '\''))
		return quoted(r);
	if (*r->p == '[')
		return list(r, depth);
	if (*r->p == '{') {
		r->p++;
		return members(r, ':', '}', depth);
	}
	return word(r);
}

bool tool_python_call(const char *p, size_t n, size_t *at, char **name, json_t **arguments)
{
	struct reader r = { .p = p + *at, .end = p + n };

	skip(&r, " \t\r\n,[]`");
	if (at_text(&r, "python\n"))
		r.p += 7;
	skip(&r, " \t\r\n,[`");
	const char *from = r.p;
	while (r.p < r.end && is_name(*r.p))
		r.p++;
	const char *to = r.p;
	if (to == from || r.p == r.end || *r.p != '(')
		return false;
	r.p++;
	*arguments = members(&r, '=', ')', 0);
	*name = *arguments ? strndup(from, (size_t)(to - from)) : NULL;
	if (!*name)
		json_decref(*arguments);
	*at = (size_t)(r.p - p);
	return *name != NULL;
}

json_t *tool_braces(const char *p, size_t n)
{
	struct reader r = { .p = p, .end = p + n, .braces = true };

	if (r.p == r.end || *r.p != '{')
		return NULL;
	r.p++;
	return members(&r, ':', '}', 0);
}
