#include "server/tool_elements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/json_read.h"
#include "runtime/call_arguments.h"
#include "server/json_write.h"

/* A call being read. */
struct reading {
	enum tools_form form;
	char *name;
	json_t *arguments;
	struct call_arguments *types; /* NULL: nothing is known of its values */
};

/* value is given back. */
static char *spell(json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	json_decref(value);
	return text;
}

static void begin(struct reading *r, const char *name, size_t n, const char *schema)
{
	char *text = schema ? spell(json_text(name, n)) : NULL;

	r->name = strndup(name, n);
	r->arguments = json_object();
	r->types = text ? call_arguments_open(schema, text) : NULL;
	free(text);
}

/* JSON where it is some, else a text; `loose`: the line ends around it are not part of it. */
static json_t *value_of(const char *p, size_t n, bool loose, bool text)
{
	struct error e = { 0 };

	if (loose && n && p[0] == '\n') {
		p++;
		n--;
	}
	n -= loose && n && p[n - 1] == '\n';
	json_t *o = n && !text ? json_read(p, n, n, "a parameter", &e) : NULL;
	if (o && !json_not_finite(o))
		return o;
	json_decref(o);
	return json_text(p, n);
}

/* plain: the form says that it is a text. */
static void put(struct reading *r, const char *key, size_t n_key, const char *p, size_t n, bool plain)
{
	char *own = strndup(key, n_key), *text = r->types ? spell(json_text(key, n_key)) : NULL;
	const bool known = text && call_arguments_key(r->types, text);
	const bool wanted = known && call_arguments_wants_text(r->types);
	/* Where the schema is silent about it, line ends are as in other forms. */
	json_t *value = value_of(p, n, !plain && (!known || r->form == TOOLS_ELEMENTS), plain || wanted);

	free(text);
	text = known && value ? spell(json_incref(value)) : NULL;
	if (text)
		call_arguments_value(r->types, text);
	free(text);
	if (value && own)
		json_put(r->arguments, own, value);
	else
		json_decref(value);
	free(own);
}

/* The text between two marks from `at` on; false: they are not there. */
static bool between(const char *p, size_t n, size_t *at, const char *begin_mark, const char *end, const char **text,
                    size_t *length)
{
	const char *from = *at < n ? memmem(p + *at, n - *at, begin_mark, strlen(begin_mark)) : NULL;

	if (!from)
		return false;
	from += strlen(begin_mark);
	const char *to = memmem(from, (size_t)(p + n - from), end, strlen(end));
	if (!to)
		return false;
	*text = from;
	*length = (size_t)(to - from);
	*at = (size_t)(to - p) + strlen(end);
	return true;
}

/* <function=f><parameter=x>1</parameter></function> */
static bool read_functions(struct reading *r, const char *p, size_t n, const char *schema)
{
	const char *name, *key;
	size_t n_name, n_key, at = 0;

	if (!between(p, n, &at, "<function=", ">", &name, &n_name))
		return false;
	begin(r, name, n_name, schema);
	while (between(p, n, &at, "<parameter=", ">", &key, &n_key)) {
		const char *text = p + at, *end = memmem(text, n - at, "</parameter>", 12);
		if (!end)
			break;
		put(r, key, n_key, text, (size_t)(end - text), false);
		at = (size_t)(end - p) + 12;
	}
	return true;
}

/* Where all marks end in the same word, the text without it and without the mark behind the name; else NULL. */
static char *plain_keys(const char **p, size_t *n, const char *word)
{
	char *text = word && memmem(*p, *n, word, strlen(word)) ? malloc(*n + 1) : NULL;
	size_t length = word ? strlen(word) : 0, at = 0, sep = strlen("<tool_sep>");

	if (!text)
		return NULL;
	for (size_t i = 0; i < *n;) {
		if (*n - i >= length && memcmp(*p + i, word, length) == 0) {
			i += length;
			continue;
		}
		text[at++] = (*p)[i++];
		if (at >= sep && memcmp(text + at - sep, "<tool_sep>", sep) == 0)
			at -= sep;
	}
	*p = text;
	*n = at;
	return text;
}

static size_t skip_space(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] && strchr(" \t\r\n", p[i]))
		i++;
	return i;
}

/* <arg_key>x</arg_key><arg_value>1</arg_value>, behind the name. */
static bool read_keys(struct reading *r, const char *p, size_t n, const char *schema)
{
	const char *key, *value, *end = memmem(p, n, "<arg_key>", 9);
	size_t n_key, n_value, at = end ? (size_t)(end - p) : n, space = skip_space(p, at), n_name = at;
	char *plain = plain_keys(&p, &n, tools_rows[r->form].name);

	if (plain) { /* once more, without */
		bool ok = n && read_keys(r, p, n, schema);
		free(plain);
		return ok;
	}

	while (n_name > space && strchr(" \t\r\n", p[n_name - 1]))
		n_name--;
	if (n_name == space || memchr(p + space, '<', n_name - space) || memchr(p + space, '\n', n_name - space))
		return false;
	begin(r, p + space, n_name - space, schema);
	while (between(p, n, &at, "<arg_key>", "</arg_key>", &key, &n_key) &&
	       between(p, n, &at, "<arg_value>", "</arg_value>", &value, &n_value))
		put(r, key, n_key, value, n_value, false);
	return true;
}

/* f"> and <parameter name="x">1</parameter>, of which some say by an attribute whether the value is a text. */
static bool read_invoke(struct reading *r, const char *p, size_t n, const char *schema)
{
	static const char cdata[] = "<![CDATA[";
	const char *quote = memchr(p, '"', n), *element = tools_rows[r->form].name, *key, *more, *end;
	size_t n_key, n_more, at = quote ? (size_t)(quote - p) : 0;
	char open[40], close[40];

	if (!quote || quote == p || memchr(p, '<', at) || memchr(p, '\n', at))
		return false;
	begin(r, p, at, schema);
	snprintf(open, sizeof open, "<%s name=\"", element);
	snprintf(close, sizeof close, "</%s>", element);
	while (between(p, n, &at, open, "\"", &key, &n_key) && between(p, n, &at, "", ">", &more, &n_more) &&
	       (end = memmem(p + at, n - at, close, strlen(close)))) {
		const char *text = p + at;
		size_t length = (size_t)(end - text);
		bool plain = memmem(more, n_more, "string=\"true\"", 13) != NULL;
		if (r->form == TOOLS_PARAM && length > 11 && memcmp(text, cdata, 9) == 0 &&
		    memcmp(end - 3, "]]>", 3) == 0) {
			text += 9;
			length -= 12;
			plain = true;
		}
		put(r, key, n_key, text, length, plain);
		at = (size_t)(end - p) + strlen(close);
	}
	return true;
}

json_t *tool_elements(enum tools_form form, const char *p, size_t n, const char *schema, char **name)
{
	struct reading r = { .form = form };
	enum tools_body body = tools_rows[form].body;
	bool ok = body == BODY_FUNCTIONS ? read_functions(&r, p, n, schema)
	          : body == BODY_KEYS    ? read_keys(&r, p, n, schema)
	                                 : read_invoke(&r, p, n, schema);

	call_arguments_close(r.types);
	*name = r.name;
	if (ok && r.name && r.arguments)
		return r.arguments;
	json_decref(r.arguments);
	free(r.name);
	*name = NULL;
	return NULL;
}
