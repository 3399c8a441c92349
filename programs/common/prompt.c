#include "programs/common/prompt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Tokens are a few bytes long, some of spaces or dashes a hundred; a context that the session chooses has at most so
 * many positions. */
enum { BYTES_OF_TOKEN = 1024, CONTEXT = 4096, MAX_BYTES = 256 << 20 };

static bool refuse(jit_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool refuse(jit_error *err, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->message, sizeof err->message, format, ap);
	va_end(ap);
	err->code = code;
	return false;
}

size_t prompt_max(long context)
{
	long positions = context ? context : CONTEXT;

	return positions < MAX_BYTES / BYTES_OF_TOKEN ? (size_t)positions * BYTES_OF_TOKEN : MAX_BYTES;
}

size_t prompt_max_of_windows(void) { return MAX_BYTES; }

/* Up to one byte more than may be, which says that it is too much. */
static bool read_stream(struct prompt *p, FILE *f, size_t max)
{
	size_t capacity = 0;

	while (!ferror(f) && !feof(f) && p->n <= max) {
		if (p->n == capacity) {
			capacity = capacity ? 2 * capacity : 4096;
			char *more = realloc(p->text, capacity = capacity > max ? max + 1 : capacity);
			if (!more)
				return false;
			p->text = more;
		}
		p->n += fread(p->text + p->n, 1, capacity - p->n, f);
	}
	return !ferror(f);
}

/* Without the mark that editors put before a text. */
static bool take_coding(struct prompt *p, const char *name, jit_error *err)
{
	size_t mark;
	const char *other = text_coding(p->text, p->n, &mark);

	if (other)
		return refuse(err, JIT_ERROR_ARGUMENT,
		              "%.300s: is a text in %s, expected UTF-8: save it as that, or convert it with "
		              "iconv -f %s -t UTF-8",
		              name, other, other);
	if (mark)
		memmove(p->text, p->text + mark, p->n -= mark);
	return true;
}

bool prompt_read(struct prompt *p, const char *path, size_t max, jit_error *err)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	FILE *f = standard ? stdin : fopen(path, "rbe");
	bool ok = f && read_stream(p, f, max);

	if (!ok)
		refuse(err, JIT_ERROR_IO, "%.300s: cannot be read: %s", name, strerror(errno));
	else if (p->n > max)
		ok = refuse(err, JIT_ERROR_ARGUMENT,
		            "%.300s: the text goes on after %zu bytes, and at most so many are read; give a shorter "
		            "one, or for a longer prompt a larger context with -c",
		            name, max);
	else
		ok = take_coding(p, name, err);
	if (f && !standard)
		fclose(f);
	if (!ok) {
		free(p->text);
		p->text = NULL;
		p->n = 0;
	}
	return ok;
}

bool prompt_parse_ids(struct prompt *p, const char *list, jit_error *err)
{
	p->ids = malloc((strlen(list) / 2 + 1) * sizeof *p->ids);
	for (const char *at = list; p->ids;) {
		size_t digits = strspn(at, "0123456789");
		long v = digits && digits < 12 ? strtol(at, NULL, 10) : -1;
		if ((at[digits] && at[digits] != ',') || v < 0 || v > INT32_MAX)
			return refuse(err, JIT_ERROR_ARGUMENT,
			              "--prompt-ids: \"%.20s\" does not begin with a token id; expected digits with "
			              "commas between, as in 1,2,3",
			              at);
		p->ids[p->n_ids++] = (int32_t)v;
		if (!at[digits])
			return true;
		at += digits + 1;
	}
	return refuse(err, JIT_ERROR_MEMORY, "no memory for the token ids of the prompt");
}

bool prompt_fits(const struct prompt *p, int context, jit_error *err)
{
	if (p->n_ids <= (size_t)context)
		return true;
	return refuse(
		err, JIT_ERROR_CONTEXT,
		"the prompt has %zu tokens and the context holds %d; give a shorter one, or a larger context with -c",
		p->n_ids, context);
}

void prompt_free(struct prompt *p)
{
	free(p->text);
	free(p->ids);
}
