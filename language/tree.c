/* language/tree.c - the memory of trees, and messages. */
#include "language/tree.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(16) char bytes[];
};

enum { CHUNK = 64 << 10 };

void *jk_arena_take(struct arena *a, size_t bytes)
{
	bytes = (bytes + 15) & ~(size_t)15;
	if (!a->chunk || bytes > a->left) {
		const size_t size = bytes > CHUNK ? bytes : CHUNK;
		struct arena_chunk *c = calloc(1, sizeof *c + size);
		if (!c)
			longjmp(*a->out, 1);
		c->next = a->chunk;
		a->chunk = c;
		a->left = size;
	}
	a->left -= bytes;
	return a->chunk->bytes + a->left;
}

void jk_arena_free(struct arena *a)
{
	while (a->chunk) {
		struct arena_chunk *next = a->chunk->next;
		free(a->chunk);
		a->chunk = next;
	}
	a->left = 0;
}

void jk_message_add(struct jk_messages *m, struct source_location at, const char *format, ...)
{
	char text[sizeof m->message[0].text * 2];
	va_list ap;

	if (m->n == JK_MAX_MESSAGES)
		return;
	/* one place is wrong in one way: what follows from it is not told again */
	if (m->n && at.line && m->message[m->n - 1].line == at.line && m->message[m->n - 1].column == at.column)
		return;
	struct jk_message *to = &m->message[m->n++];
	to->line = at.line;
	to->column = at.column;
	va_start(ap, format);
	const int n = vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	error_quote(to->text, sizeof to->text, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* The line that begins at text, where the caret stands below the column's character. */
static void print_line(const char *text, size_t bytes, unsigned column, FILE *out)
{
	enum { WIDTH = 400 };
	char quoted[4 * WIDTH + 8];
	size_t n = 0;

	while (n < bytes && text[n] != '\n' && text[n] != '\r')
		n++;
	if (n > WIDTH || column > n + 1)
		return;
	for (size_t k = 0; k < n; k++) /* what is no plain character would move the caret */
		if ((text[k] & 0x80 || (unsigned char)text[k] < ' ') && text[k] != '\t') {
			fprintf(out, "%s\n", error_quote(quoted, sizeof quoted, text, n));
			return;
		}
	fprintf(out, "%.*s\n", (int)n, text);
	for (unsigned k = 0; k + 1 < column; k++)
		fputc(k < n && text[k] == '\t' ? '\t' : ' ', out);
	fputs("^\n", out);
}

void jk_print_messages(const char *name, const char *text, size_t bytes, const struct jk_messages *messages, FILE *out)
{
	char quoted[300];

	error_quote(quoted, sizeof quoted, name, strlen(name));
	for (size_t k = 0; k < messages->n; k++) {
		const struct jk_message *m = &messages->message[k];
		size_t at = 0;
		if (!m->line) {
			fprintf(out, "%s: %s\n", quoted, m->text);
			continue;
		}
		fprintf(out, "%s:%u:%u: %s\n", quoted, m->line, m->column, m->text);
		for (unsigned line = 1; line < m->line && at < bytes; at++)
			line += text[at] == '\n';
		print_line(text + at, bytes - at, m->column, out);
	}
	if (messages->n == JK_MAX_MESSAGES)
		fprintf(out, "%s: there may be more messages; these are the first %d\n", quoted, JK_MAX_MESSAGES);
}
