#include "programs/common/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/text.h"
#include "programs/common/output.h"

/* The bytes of the first character, which is valid, and the columns it takes. */
static unsigned character(const char *text, unsigned *columns)
{
	uint32_t code = 0;
	unsigned n = text_char(text, strlen(text), &code);
	int width = utf8proc_charwidth((utf8proc_int32_t)code);

	*columns = width > 0 ? (unsigned)width : 0;
	return n ? n : 1;
}

static unsigned word_columns(const char *text, size_t n)
{
	unsigned sum = 0, one;

	for (size_t i = 0; i < n; sum += one)
		i += character(text + i, &one);
	return sum;
}

static void wrap(FILE *out, const char *text)
{
	const unsigned columns = (unsigned)output_columns(out), max = columns < FACTS_WIDTH ? columns : FACTS_WIDTH;
	unsigned at = FACTS_NAME;

	while (*text) {
		size_t n = strcspn(text, " ");
		unsigned width = word_columns(text, n);
		if (at > FACTS_NAME && at + 1 + width > max) {
			fprintf(out, "\n%*s", FACTS_NAME, "");
			at = FACTS_NAME;
		} else if (at > FACTS_NAME) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += width;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

void facts_row(FILE *out, const char *name, const char *format, ...)
{
	char text[FACTS_QUOTED], quoted[FACTS_QUOTED];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	fprintf(out, "%-*s", FACTS_NAME, name);
	wrap(out, error_quote(quoted, sizeof quoted, text, strlen(text)));
}

const char *facts_cell(char *out, size_t cap, const char *text, unsigned columns)
{
	char quoted[FACTS_QUOTED];
	const char *from = error_quote(quoted, sizeof quoted, text, strlen(text));
	unsigned total = word_columns(from, strlen(from)), used = 0, width;
	unsigned room = total > columns && columns > 3 ? columns - 3 : columns;
	size_t at = 0;

	for (unsigned n; *from; from += n, at += n, used += width) {
		n = character(from, &width);
		if (used + width > room || at + n + columns - used + 4 > cap)
			break;
		memcpy(out + at, from, n);
	}
	for (unsigned dots = *from ? 3 : 0; dots && used < columns && at + 1 < cap; dots--, used++)
		out[at++] = '.';
	for (; used < columns && at + 1 < cap; used++)
		out[at++] = ' ';
	out[at] = 0;
	return out;
}

static const char *in_units(char out[FACTS_SIZE], double value, double step, const char *const unit[], unsigned last)
{
	unsigned u = 0;

	for (; value >= step - step / 2000 && u < last; u++)
		value /= step;
	snprintf(out, FACTS_SIZE, "%.*f %s", u && value < 100 ? 1 : 0, value, unit[u]);
	return out;
}

const char *facts_size(char out[FACTS_SIZE], uint64_t bytes)
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

	return in_units(out, (double)bytes, 1024, unit, 6);
}

const char *facts_count(char out[FACTS_SIZE], uint64_t n)
{
	static const char *const unit[] = { "", "thousand", "million", "billion", "trillion" };

	if (n < 10000)
		snprintf(out, FACTS_SIZE, "%" PRIu64, n);
	else
		in_units(out, (double)n, 1000, unit, 4);
	return out;
}
