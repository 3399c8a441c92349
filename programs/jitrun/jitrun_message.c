/* programs/jitrun/jitrun_message.c - what is a message of a conversation: a line, several that end with backslashes, a
 * block between two times three quotes, which may stand behind /system, or what was pasted. See jitrun_parts.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/jitrun/line_editor.h"

enum { TURN_MAX = 1 << 22 };
static const char quotes[] = "\"\"\"";
enum { QUOTES = 3 };

struct text {
	char *p; /* NULL: no memory, or nothing so far */
	size_t n;
};

static bool add(struct text *t, const char *more, size_t n)
{
	char *p = realloc(t->p, t->n + n + 1);

	if (!p)
		return false;
	memcpy(p + t->n, more, n);
	t->p = p;
	t->n += n;
	t->p[t->n] = 0;
	return true;
}

static size_t without_blanks(const char *text, size_t n)
{
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		n--;
	return n;
}

/* Whether a line ends a block; *n: how much of it belongs to the text. */
static bool ends_block(const char *line, size_t *n)
{
	size_t end = without_blanks(line, *n);

	if (end < QUOTES || memcmp(line + end - QUOTES, quotes, QUOTES) != 0)
		return false;
	*n = end - QUOTES;
	return true;
}

/* A paste that begins with quotes is a block only where it ends as one: files of Python begin so, too. */
static bool begins_block(const char *line)
{
	size_t n = strlen(line) - (strncmp(line, quotes, QUOTES) == 0 ? QUOTES : 0);

	if (n == strlen(line))
		return false;
	if (!strchr(line, '\n'))
		return true;
	const char *rest = line + QUOTES, *next = strstr(rest, quotes);
	return ends_block(rest, &n) && next == rest + n;
}

/* Without the newlines that only set the quotes apart. */
static bool take_block(struct text *t, const char *first, enum line_outcome *how)
{
	size_t n = strlen(first + QUOTES);
	const size_t begun = t->n;
	bool over = ends_block(first + QUOTES, &n), ok;

	if (strchr(first, '\n')) {
		bool before = first[QUOTES] == '\n', after = n > before && first[QUOTES + n - 1] == '\n';
		return add(t, first + QUOTES + before, n - before - after);
	}
	ok = add(t, first + QUOTES, n);
	for (bool any = n > 0; ok && !over && t->n < TURN_MAX; any = true) {
		char *line = line_editor_read(". ", how);
		if (*how == LINE_OVER)
			*how = LINE_READ; /* then the end of the input is the block's */
		if (!line)
			return ok;
		n = strlen(line);
		over = ends_block(line, &n);
		if ((any || t->n > begun) && !(over && n == 0))
			ok = add(t, "\n", 1);
		ok = ok && add(t, line, n);
		free(line);
	}
	return ok;
}

/* Whether a text goes on in the next line; *n: how much of it is kept. Blanks behind the backslash cannot be seen. */
static bool goes_on(const struct text *t, size_t *n)
{
	const size_t end = without_blanks(t->p, t->n);

	if (!end || t->p[end - 1] != '\\')
		return false;
	*n = without_blanks(t->p, end - 1);
	return true;
}

/* A line, and those after it while they end with a backslash, which stands for the end of a line, as do blanks around
 * it. */
static bool take_lines(struct text *t, const char *first, enum line_outcome *how)
{
	bool ok = add(t, first, strlen(first));

	while (ok && t->n < TURN_MAX && goes_on(t, &t->n)) {
		char *line = line_editor_read(". ", how);
		ok = add(t, "\n", 1);
		if (*how == LINE_OVER)
			*how = LINE_READ;
		if (!line)
			return ok;
		ok = ok && add(t, line, strlen(line));
		free(line);
	}
	return ok;
}

/* Without a mark of the byte order, which editors put before a text that is then sent here as a file. */
static char *read_first(enum line_outcome *how)
{
	static bool begun;
	char *line = line_editor_read("> ", how);

	if (line && !begun && strncmp(line, "\xef\xbb\xbf", 3) == 0)
		memmove(line, line + 3, strlen(line + 3) + 1);
	begun = true;
	return line;
}

/* Where the text of a command that takes one begins; 0: it is no such command. */
static size_t text_of_command(const char *line)
{
	static const char *const commands[] = { "/system", "/set system" };

	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		size_t n = strlen(commands[i]);
		if (strncmp(line, commands[i], n) == 0 && (line[n] == ' ' || line[n] == '\t'))
			return n + strspn(line + n, " \t");
	}
	return 0;
}

static struct message read_message(enum line_outcome *how)
{
	struct message m = { 0 };
	struct text t = { 0 };
	char *first = read_first(how);

	if (!first)
		return m;
	const size_t before = text_of_command(first);
	const bool block = begins_block(first + before);
	m.is_text = block && !before;
	bool ok = add(&t, first, before) &&
	          (block ? take_block(&t, first + before, how) : take_lines(&t, first + before, how));
	free(first);
	if (!ok)
		jitrun_fail(&(jit_error){ .message = "no memory for the conversation", .code = JIT_ERROR_MEMORY });
	m.failed = !ok;
	if (ok && *how == LINE_READ) {
		m.text = t.p;
		return m;
	}
	free(t.p);
	return m;
}

struct message jitrun_next_message(void)
{
	enum line_outcome how = LINE_READ;

	for (bool twice = false;; twice = true) {
		struct message m = read_message(&how);
		if (m.failed || how == LINE_READ || how == LINE_OVER)
			return m;
		if (how == LINE_FAILED) {
			fprintf(stderr, "jitrun: standard input could not be read: %s.\n", strerror(errno));
			return (struct message){ .failed = true };
		}
		if (twice && how == LINE_EMPTIED)
			return (struct message){ 0 };
		if (how == LINE_EMPTIED)
			fprintf(stderr, "Ctrl-C once more ends the conversation, as Ctrl-D and /exit do.\n");
	}
}
