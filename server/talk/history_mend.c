/* server/talk/history_mend.c - arguments of earlier calls that are no JSON: what a model wrote that was cut off, or in
 * Python's way, becomes the object that it was going to be. */
#include <string.h>

#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "server/talk/history.h"

enum { DEPTH_MAX = 200 };

struct mend {
	struct bytes out;
	char close[DEPTH_MAX]; /* what closes the values around */
	unsigned depth;
	char quote; /* of the text that we are in; 0: none */
	bool escaped, lost;
};

static void in_text(struct mend *m, char c)
{
	if (m->escaped) {
		m->escaped = false;
		bytes_text(&m->out, c == '\'' ? "" : "\\");
		bytes_add(&m->out, &c, 1);
	} else if (c == '\\') {
		m->escaped = true;
	} else if (c == m->quote) {
		m->quote = 0;
		bytes_text(&m->out, "\"");
	} else if (c == '"') {
		bytes_text(&m->out, "\\\"");
	} else if ((unsigned char)c < ' ') {
		bytes_text(&m->out, c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : " ");
	} else {
		bytes_add(&m->out, &c, 1);
	}
}

/* Python's words where a value stands; bytes of it, 0: none. */
static size_t python_word(struct mend *m, const char *p, size_t n)
{
	static const char *const words[][2] = { { "True", "true" }, { "False", "false" }, { "None", "null" } };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t length = strlen(words[i][0]);
		if (n >= length && memcmp(p, words[i][0], length) == 0) {
			bytes_text(&m->out, words[i][1]);
			return length;
		}
	}
	return 0;
}

/* Up to where the object ends. */
static void take(struct mend *m, const char *p, size_t n)
{
	for (size_t i = 0; i < n && !m->lost; i++) {
		size_t word = m->quote ? 0 : python_word(m, p + i, n - i);
		if (m->quote) {
			in_text(m, p[i]);
		} else if (word) {
			i += word - 1;
		} else if (p[i] == '"' || p[i] == '\'') {
			m->quote = p[i];
			bytes_text(&m->out, "\"");
		} else {
			if (p[i] == '{' || p[i] == '[') {
				m->lost = m->depth == DEPTH_MAX;
				if (!m->lost)
					m->close[m->depth++] = p[i] == '{' ? '}' : ']';
			} else if ((p[i] == '}' || p[i] == ']') && m->depth) {
				m->depth--;
			}
			bytes_add(&m->out, p + i, 1);
			if (m->depth == 0)
				return;
		}
	}
}

/* What was read, without what stands behind the first `keep` bytes, with all that is open closed. */
static json_t *closed(const struct mend *m, size_t keep, const char *missing)
{
	struct bytes all = { 0 };

	bytes_add(&all, m->out.p, keep);
	bytes_text(&all, missing);
	for (unsigned i = m->depth; i; i--)
		bytes_add(&all, &m->close[i - 1], 1);
	json_t *o = all.lost ? NULL : json_read_plain(all.p, all.n);
	bytes_free(&all);
	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

json_t *history_mend(const char *text, size_t n)
{
	static const char *const missing[] = { "", "null", ":null", "e0", "0" };
	struct mend m = { 0 };
	json_t *o = NULL;
	size_t from = 0;

	while (from < n && strchr(" \t\r\n", text[from]) && text[from])
		from++;
	if (from < n && text[from] == '{')
		take(&m, text + from, n - from);
	if (m.quote)
		bytes_text(&m.out, "\"");
	size_t end = m.out.n;
	while (end && strchr(" \t\r\n,", m.out.p[end - 1]))
		end--;
	for (size_t i = 0; !o && end && !m.lost && i < sizeof missing / sizeof *missing; i++)
		o = closed(&m, end, missing[i]);
	/* A word that was cut off goes with its key, back to the comma or the bracket before. */
	while (!o && end && !m.lost && m.depth && !m.quote && !strchr("{[,", m.out.p[end - 1]))
		end--;
	while (end && m.out.p && strchr(" \t\r\n,", m.out.p[end - 1]))
		end--;
	if (!o && end && !m.lost)
		o = closed(&m, end, "");
	bytes_free(&m.out);
	if (o)
		return o;
	o = json_object();
	json_put(o, "arguments", json_text(text, n));
	return o;
}
