#include "programs/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/text.h"

static bool said;
/* What there was no memory for is missing: a member of JSON, or a row of a table. Nobody who adds them one by one
 * looks. */
static _Atomic bool memory_short;

static void *json_bytes(size_t n)
{
	void *p = malloc(n);

	if (!p)
		memory_short = true;
	return p;
}

void output_begin(void)
{
	json_set_alloc_funcs(json_bytes, free);
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) !=
		                                      fd) /* the wrong way round: using it fails, as it would have */
			return;
}

/* What a stream could not write is gone, and errno with it, when a later write finds nothing left to do. */
bool output_written(const char **why)
{
	bool failed = ferror(stdout) != 0;

	*why = failed ? "a write failed" : NULL;
	if (fflush(stdout) != 0)
		*why = strerror(errno);
	if (*why)
		said = true;
	return *why == NULL;
}

void output_memory_told(void) { memory_short = false; }

int output_end(const char *program, int status, int failed)
{
	const char *why;
	bool quiet = said;
	bool ok = output_written(&why);

	if (memory_short && status != failed) {
		fprintf(stderr, "%s: no memory for all of the output, of which a part may have been printed.\n",
		        program);
		return failed;
	}
	if (fclose(stdout) != 0 && ok) {
		ok = false;
		why = strerror(errno);
	}
	if (ok)
		return status;
	if (!quiet && status != failed) /* then a failure was told already */
		fprintf(stderr, "%s: standard output could not be written: %s.\n", program, why);
	return status ? status : failed;
}

bool output_is_plain(uint32_t code) { return !text_is_control(code) || code == '\n' || code == '\t'; }

bool output_text(FILE *out, const char *text, size_t n, bool terminal)
{
	if (!terminal)
		return !n || fwrite(text, 1, n, out) == n; /* no text may have no memory */
	for (size_t i = 0, length; i < n; i += length ? length : 1) {
		uint32_t code;
		length = text_char(text + i, n - i, &code);
		bool plain = length && output_is_plain(code);
		if (fwrite(plain ? text + i : OUTPUT_SHOWN, 1, plain ? length : sizeof OUTPUT_SHOWN - 1, out) == 0)
			return false;
	}
	return true;
}

bool output_can_replace(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[4096] = ".";

	if (slash && (size_t)(slash - path) < sizeof folder)
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	/* Nothing is made to find out: what cannot be taken away again would be left behind. */
	return access(folder, W_OK | X_OK) == 0;
}

bool output_can_write(const char *path, const char **why)
{
	if (access(path, F_OK) == 0) {
		/* A pipe that nobody reads yet is no failure, and must not be waited for. */
		int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		*why = strerror(errno);
		return fd >= 0 || errno == ENXIO;
	}
	if (output_can_replace(path))
		return true;
	*why = strerror(errno);
	return false;
}

int output_known_columns(FILE *out)
{
	enum { MAX = 1000 };
	const char *given = getenv("COLUMNS");
	char *end;
	long n = given ? strtol(given, &end, 10) : 0;
	struct winsize size;

	if (n <= 0 || *end)
		n = isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
	return n <= 0 ? 0 : n > MAX ? MAX : (int)n;
}

int output_columns(FILE *out)
{
	enum { USUAL = 80, MIN = 40 };
	int n = output_known_columns(out);

	return n == 0 ? USUAL : n < MIN ? MIN : n;
}

/* Bytes of the characters that fit, and of them those before the last space, if there is one. */
static size_t fitting(const char *text, int columns)
{
	size_t n = 0, space = 0;

	for (int used = 0; text[n];) {
		uint32_t code = 0;
		size_t length = text_char(text + n, strlen(text + n), &code);
		int width = length ? utf8proc_charwidth((utf8proc_int32_t)code) : 1;
		if (used + width > columns)
			return space ? space : n ? n : 1;
		if (text[n] == ' ' && text[n + 1] != ' ')
			space = n + 1;
		used += width;
		n += length ? length : 1;
	}
	return n;
}

void output_line(FILE *out, const char *line, int indent)
{
	const int columns = output_columns(out);

	if (!isatty(fileno(out))) {
		fprintf(out, "%s\n", line);
		return;
	}
	/* The spaces that the first words stand behind are a column of the list, and no place to cut. */
	for (int at = 0; *line; at = indent < columns / 2 ? indent : columns / 2) {
		size_t head = at ? 0 : strspn(line, " "), n = head + fitting(line + head, columns - at - (int)head);
		size_t end = n;
		while (end > 0 && line[end - 1] == ' ' && line[n])
			end--;
		fprintf(out, "%*s%.*s\n", at, "", (int)end, line);
		line += n;
	}
}

void output_beginning(FILE *out, const char *text, size_t n, int indent)
{
	const int columns = output_columns(out) - indent;
	size_t at = 0, length, cut = 0;
	int used = 0;

	for (; at < n; at += length ? length : 1) {
		uint32_t code = 0;
		length = text_char(text + at, n - at, &code);
		int width = length && output_is_plain(code) ? utf8proc_charwidth((utf8proc_int32_t)code) : 1;
		if (code == '\n' || code == '\t' || used + width > columns)
			break;
		used += width;
		cut = used + 3 <= columns ? at + (length ? length : 1) : cut;
	}
	output_text(out, text, at < n ? cut : n, true);
	fputs(at < n ? "...\n" : "\n", out);
}

void output_lines(FILE *out, int indent, const char *format, ...)
{
	va_list ap;
	char *text = NULL, *next;

	va_start(ap, format);
	int n = vasprintf(&text, format, ap);
	va_end(ap);
	memory_short |= n < 0;
	for (char *line = n > 0 ? text : NULL; line && *line; line = next) {
		char *end = strchrnul(line, '\n');
		next = end + (*end != 0);
		*end = 0;
		if (*line)
			output_line(out, line, indent);
		else
			fputc('\n', out);
	}
	free(n < 0 ? NULL : text);
}

json_t *output_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *output_string(const char *bytes) { return output_string_n(bytes, strlen(bytes)); }

json_t *output_string_n(const char *bytes, size_t n)
{
	char quoted[4096];
	json_t *o = json_stringn(bytes, n);

	return o ? o : json_string(error_quote(quoted, sizeof quoted, bytes, n));
}

size_t output_json_flags(FILE *out)
{
	return JSON_COMPACT | JSON_PRESERVE_ORDER | (isatty(fileno(out)) ? (size_t)JSON_ENSURE_ASCII : 0);
}
