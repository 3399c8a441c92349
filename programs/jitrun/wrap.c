/* programs/jitrun/wrap.c - cuts lines between words. See wrap.h. */
#include "programs/jitrun/wrap.h"

#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "programs/common/output.h"

enum { TAB = 8, CHARACTER = 4 };

void wrap_begin(struct wrap *w, FILE *out, bool terminal) { *w = (struct wrap){ .out = out, .terminal = terminal }; }

static int width_of(uint32_t code) { return utf8proc_charwidth((utf8proc_int32_t)code); }

/* The column behind some text that begins in a column of a terminal, which goes on in the next line by itself. */
static int column_after(const char *text, size_t n, int column, int columns)
{
	for (size_t i = 0, length; i < n; i += length ? length : 1) {
		uint32_t code = 0;
		length = text_char(text + i, n - i, &code);
		int width = code == '\t' ? TAB - column % TAB : length ? width_of(code) : 1;
		column = column + width > columns ? width : column + width;
	}
	return column;
}

static int columns_of(const char *text, size_t n, int column)
{
	return column_after(text, n, column, 1 << 20) - column;
}

static bool put(const struct wrap *w, const char *text, size_t n)
{
	if (n == 0)
		return true;
	if (w->dim)
		fputs("\33[2m", w->out);
	bool ok = fwrite(text, 1, n, w->out) == n;
	if (w->dim)
		fputs("\33[0m", w->out);
	return ok;
}

bool wrap_flush(struct wrap *w)
{
	const int columns = w->columns;
	const char *from = w->held;
	size_t n = w->n;
	bool ok = true;

	if (columns && !w->within && w->column && w->column + columns_of(from, n, w->column) > columns) {
		from += w->n_blanks; /* the end of the line stands for them */
		n -= w->n_blanks;
		if (n)
			ok = fputc('\n', w->out) != EOF;
		w->column = n ? 0 : w->column;
	}
	if (columns)
		w->column = column_after(from, n, w->column, columns);
	w->n = w->n_blanks = 0;
	return put(w, from, n) && ok;
}

/* Ends a word before what comes next. */
static bool end_word(struct wrap *w)
{
	bool ok = w->n > w->n_blanks || w->within ? wrap_flush(w) : true;

	w->within = false;
	return ok;
}

static bool take_letter(struct wrap *w)
{
	if (w->within || (w->column && w->column + columns_of(w->held, w->n, w->column) <= w->columns))
		return true;
	bool ok = w->column == 0 || wrap_flush(w);
	return w->within = true, ok;
}

/* A character as it is shown. */
static bool take(struct wrap *w, const char *c, size_t n, uint32_t code)
{
	const int width = width_of(code);
	const bool blank = code == ' ' || code == '\t', alone = blank || code == '\n' || width > 1;
	bool ok = w->n + n <= sizeof w->held || wrap_flush(w);

	ok = (alone ? end_word(w) : true) && ok;
	if (code == '\n') {
		ok = wrap_flush(w) && put(w, c, n) && ok;
		w->column = 0;
		return ok;
	}
	if (width == 0 && w->n == 0) /* it belongs to the character before it */
		return put(w, c, n) && ok;
	memcpy(w->held + w->n, c, n);
	w->n += n;
	w->n_blanks = blank ? w->n : w->n_blanks;
	return (blank ? true : width > 1 ? wrap_flush(w) : take_letter(w)) && ok;
}

bool wrap_text(struct wrap *w, const char *text, size_t n, bool dim)
{
	bool ok = dim == w->dim || wrap_flush(w);

	w->dim = dim;
	w->columns = w->terminal && !w->uncut ? output_known_columns(w->out) : 0; /* which may change at any time */
	if (!w->terminal)
		return output_text(w->out, text, n, false) && ok;
	for (size_t i = 0, length; i < n; i += length ? length : 1) {
		uint32_t code = 0;
		length = text_char(text + i, n - i, &code);
		bool plain = length && output_is_plain(code);
		ok = (plain ? take(w, text + i, length, code)
		            : take(w, OUTPUT_SHOWN, sizeof OUTPUT_SHOWN - 1, OUTPUT_SHOWN_CODE)) &&
		     ok;
	}
	return (w->within || !w->columns ? wrap_flush(w) : true) && ok;
}
