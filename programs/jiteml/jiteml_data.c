#include "programs/jiteml/jiteml_data.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "programs/common/array.h"

void numbers_free(struct numbers *d)
{
	free(d->value);
	*d = (struct numbers){ .rows = 0 };
}

/* ---- text */

struct reader {
	const char *what, *at, *end, *line_end;
	double *cell; /* rows, one after the other */
	size_t cells, capacity, line;
	struct numbers *d;
	struct error *err;
};

static bool is_between(char c) { return c == ',' || c == ';' || c == '\t' || c == ' ' || c == '\r'; }

/* The next cell of the line; n 0: there is none. An empty cell between commas is one of no bytes, at a comma. */
static const char *next_cell(struct reader *t, size_t *n)
{
	const char *from;

	while (t->at < t->line_end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r'))
		t->at++;
	from = t->at;
	while (t->at < t->line_end && !is_between(*t->at))
		t->at++;
	*n = (size_t)(t->at - from);
	while (t->at < t->line_end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r'))
		t->at++;
	if (t->at < t->line_end && (*t->at == ',' || *t->at == ';'))
		t->at++;
	return from;
}

static bool as_number(const char *cell, size_t n, double *v)
{
	char text[64], *end;

	if (n == 0 || n >= sizeof text || !memchr("+-.0123456789", *cell, 13) || memchr(cell, 0, n))
		return false;
	memcpy(text, cell, n);
	text[n] = 0;
	if (strpbrk(text, "xXnN"))
		return false;
	*v = strtod(text, &end);
	return !*end && isfinite(*v);
}

static bool take_name(struct reader *t, const char *cell, size_t n)
{
	char quoted[60], *out;

	if (n >= 2 && *cell == '"' && cell[n - 1] == '"') {
		cell++;
		n -= 2;
	}
	bool fine = n > 0 && n < NUMBERS_NAME && !isdigit((unsigned char)*cell);
	for (size_t i = 0; fine && i < n; i++)
		fine = isalnum((unsigned char)cell[i]) || cell[i] == '_';
	if (!fine)
		return error_set(t->err, ERROR_FORMAT,
		                 "%s: line %zu: %s is no name: expected letters, digits and _, fewer than %d", t->what,
		                 t->line, error_quote(quoted, sizeof quoted, cell, n), NUMBERS_NAME);
	if (t->d->columns == NUMBERS_COLUMNS)
		return error_set(t->err, ERROR_UNSUPPORTED, "%s: more than %d columns", t->what, NUMBERS_COLUMNS);
	out = t->d->name[t->d->columns++];
	memcpy(out, cell, n);
	out[n] = 0;
	for (unsigned i = 0; i + 1 < t->d->columns; i++)
		if (strcmp(t->d->name[i], out) == 0)
			return error_set(t->err, ERROR_FORMAT, "%s: two columns have the name %s", t->what, out);
	return true;
}

/* A line of names, where the first cell is no number. */
static bool take_names(struct reader *t)
{
	while (t->at < t->line_end) {
		size_t n;
		const char *cell = next_cell(t, &n);
		if (!take_name(t, cell, n))
			return false;
	}
	return true;
}

static bool take_row(struct reader *t)
{
	unsigned columns = 0;

	while (t->at < t->line_end) {
		size_t n;
		double v;
		char quoted[60];
		const char *cell = next_cell(t, &n);
		if (!as_number(cell, n, &v))
			return error_set(t->err, ERROR_FORMAT, "%s: line %zu, column %u: %s: expected a finite number",
			                 t->what, t->line, columns + 1,
			                 n ? error_quote(quoted, sizeof quoted, cell, n) : "nothing");
		if (++columns > NUMBERS_COLUMNS)
			return error_set(t->err, ERROR_UNSUPPORTED, "%s: more than %d columns", t->what,
			                 NUMBERS_COLUMNS);
		if (!array_grow((void **)&t->cell, &t->capacity, t->cells + 1, sizeof *t->cell))
			return error_set(t->err, ERROR_MEMORY, "%s: there is no memory for its numbers", t->what);
		t->cell[t->cells++] = v;
	}
	if (t->d->columns == 0)
		t->d->columns = columns;
	if (columns != t->d->columns)
		return error_set(t->err, ERROR_FORMAT, "%s: line %zu has %u columns, expected %u", t->what, t->line,
		                 columns, t->d->columns);
	return ++t->d->rows <= NUMBERS_ROWS ||
	       error_set(t->err, ERROR_UNSUPPORTED, "%s: more than %d rows", t->what, NUMBERS_ROWS);
}

static void usual_names(struct numbers *d)
{
	for (unsigned c = 0; c + 1 < d->columns; c++)
		snprintf(d->name[c], NUMBERS_NAME, d->columns == 2 ? "x" : "x%u", c + 1);
	if (d->columns)
		snprintf(d->name[d->columns - 1], NUMBERS_NAME, "y");
}

/* By columns, and whether there is something to learn. */
static bool finish(struct numbers *d, const char *what, const double *cell, struct error *err)
{
	if (d->columns < 2)
		return error_set(err, ERROR_FORMAT,
		                 "%s: %u columns: expected two at least, of which the last one is the target", what,
		                 d->columns);
	if (d->rows < 3)
		return error_set(err, ERROR_FORMAT, "%s: %zu rows: expected three at least", what, d->rows);
	if (!(d->value = malloc(d->rows * d->columns * sizeof *d->value)))
		return error_set(err, ERROR_MEMORY, "%s: there is no memory for its numbers", what);
	for (size_t r = 0; r < d->rows; r++)
		for (unsigned c = 0; c < d->columns; c++)
			d->value[c * d->rows + r] = cell[r * d->columns + c];
	return true;
}

bool numbers_read_csv(struct numbers *d, const char *what, const char *text, size_t n, struct error *err)
{
	struct reader t = { .what = what, .at = text, .end = text + n, .d = d, .err = err };
	bool fine = true, names = false;

	*d = (struct numbers){ .rows = 0 };
	while (fine && t.at < t.end) {
		const char *newline = memchr(t.at, '\n', (size_t)(t.end - t.at));
		const char *begin = t.at;
		double v;
		size_t cell;
		t.line++;
		t.line_end = newline ? newline : t.end;
		while (t.line_end > t.at && is_between(t.line_end[-1]) && t.line_end[-1] != ',' &&
		       t.line_end[-1] != ';')
			t.line_end--;
		const char *first = next_cell(&t, &cell);
		t.at = begin;
		if (t.line_end > begin && *first != '#') {
			if (d->rows == 0 && !names && cell && !as_number(first, cell, &v) &&
			    !memchr("+-.", *first, 3) && !isdigit((unsigned char)*first)) {
				names = true;
				fine = take_names(&t);
			} else {
				fine = take_row(&t);
			}
		}
		t.at = newline ? newline + 1 : t.end;
	}
	if (fine && !names)
		usual_names(d);
	fine = fine && finish(d, what, t.cell, err);
	free(t.cell);
	if (!fine)
		numbers_free(d);
	return fine;
}

/* ---- arrays */

bool numbers_read_npy(struct numbers *d, const char *what, const uint8_t *file, size_t n, struct error *err)
{
	struct npy a;
	double *cell = NULL;
	bool fine;

	*d = (struct numbers){ .rows = 0 };
	if (!npy_read_header(&a, what, file, n, err))
		return false;
	if (a.dims != 2)
		return error_set(err, ERROR_FORMAT, "%s: %u dimensions: expected two, rows and columns", what, a.dims);
	if (a.bytes > n - a.data)
		return error_set(err, ERROR_FORMAT, "%s: its header says %llu bytes of elements, and it has %zu", what,
		                 (unsigned long long)a.bytes, n - a.data);
	if (a.extent[0] > NUMBERS_ROWS || a.extent[1] > NUMBERS_COLUMNS)
		return error_set(err, ERROR_UNSUPPORTED, "%s: %llu rows of %llu columns: expected at most %d of %d",
		                 what, (unsigned long long)a.extent[0], (unsigned long long)a.extent[1], NUMBERS_ROWS,
		                 NUMBERS_COLUMNS);
	const int type = array_type_of_npy(a.type);
	if (type < 0)
		return error_set(err, ERROR_UNSUPPORTED, "%s: elements %s: expected integers or floats", what, a.type);
	d->rows = (size_t)a.extent[0];
	d->columns = (unsigned)a.extent[1];
	cell = malloc((size_t)(a.elements ? a.elements : 1) * sizeof *cell);
	fine = cell || error_set(err, ERROR_MEMORY, "%s: there is no memory for its numbers", what);
	for (size_t i = 0; fine && i < a.elements; i++)
		fine = isfinite(cell[i] = array_number(type, file + a.data + i * array_type_bytes(type))) ||
		       error_set(err, ERROR_FORMAT, "%s: row %zu, column %zu is no finite number", what,
		                 i / d->columns + 1, i % d->columns + 1);
	usual_names(d);
	fine = fine && finish(d, what, cell, err);
	free(cell);
	if (!fine)
		numbers_free(d);
	return fine;
}

bool numbers_read(struct numbers *d, const char *path, struct error *err)
{
	FILE *f = fopen(path, "rb");
	char *bytes = NULL;
	size_t n = 0, capacity = 0, got = 1;
	bool fine = f != NULL;

	*d = (struct numbers){ .rows = 0 };
	while (fine && got) {
		fine = array_grow((void **)&bytes, &capacity, n + (1 << 16), 1);
		got = fine ? fread(bytes + n, 1, capacity - n, f) : 0;
		n += got;
	}
	if (!fine && f)
		error_set(err, ERROR_MEMORY, "%s: there is no memory for it", path);
	if (!f || ferror(f))
		fine = error_set(err, ERROR_IO, "%s: cannot be read: %s", path, strerror(errno));
	if (f)
		fclose(f);
	if (fine)
		fine = n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0
		               ? numbers_read_npy(d, path, (const uint8_t *)bytes, n, err)
		               : numbers_read_csv(d, path, bytes, n, err);
	free(bytes);
	return fine;
}

/* ---- sequences */

bool numbers_read_sequence(struct numbers *d, const char *text, unsigned lags, struct error *err)
{
	double *v = NULL, *cell = NULL;
	size_t n = 0, capacity = 0;
	bool fine = true;

	*d = (struct numbers){ .rows = 0 };
	while (fine && *(text += strspn(text, ", \t\n"))) {
		const size_t length = strcspn(text, ", \t\n");
		char quoted[60];
		fine = array_grow((void **)&v, &capacity, n + 1, sizeof *v) ||
		       error_set(err, ERROR_MEMORY, "--sequence: there is no memory for its numbers");
		fine = fine && (as_number(text, length, &v[n]) ||
		                error_set(err, ERROR_FORMAT, "--sequence: %s: expected numbers with commas between",
		                          error_quote(quoted, sizeof quoted, text, length)));
		text += length;
		n++;
	}
	if (fine && n < lags + 4)
		fine = error_set(err, ERROR_FORMAT, "--sequence: %zu numbers: expected %u at least", n, lags + 4);
	d->rows = fine ? n - lags : 0;
	d->columns = lags + 2;
	cell = fine ? malloc(d->rows * d->columns * sizeof *cell) : NULL;
	if (fine && !cell)
		fine = error_set(err, ERROR_MEMORY, "--sequence: there is no memory for its numbers");
	for (size_t r = 0; fine && r < d->rows; r++) {
		double *row = cell + r * d->columns;
		*row++ = (double)(r + lags + 1);
		for (unsigned k = 1; k <= lags; k++)
			*row++ = v[r + lags - k];
		*row = v[r + lags];
	}
	snprintf(d->name[0], NUMBERS_NAME, "n");
	for (unsigned k = 1; k <= lags; k++)
		snprintf(d->name[k], NUMBERS_NAME, "a%u", k);
	snprintf(d->name[lags + 1], NUMBERS_NAME, "a");
	fine = fine && finish(d, "--sequence", cell, err);
	free(v);
	free(cell);
	if (!fine)
		numbers_free(d);
	return fine;
}

bool numbers_target(struct numbers *d, const char *what, const char *name, struct error *err)
{
	const unsigned last = d->columns - 1;
	char quoted[60], kept[NUMBERS_NAME];
	unsigned c = 0;

	while (c < d->columns && strcmp(d->name[c], name) != 0)
		c++;
	if (c == d->columns)
		return error_set(err, ERROR_ARGUMENT, "%s has no column %s", what,
		                 error_quote(quoted, sizeof quoted, name, strlen(name)));
	for (size_t r = 0; r < d->rows; r++) {
		const double v = d->value[c * d->rows + r];
		d->value[c * d->rows + r] = d->value[last * d->rows + r];
		d->value[last * d->rows + r] = v;
	}
	memcpy(kept, d->name[c], NUMBERS_NAME);
	memcpy(d->name[c], d->name[last], NUMBERS_NAME);
	memcpy(d->name[last], kept, NUMBERS_NAME);
	return true;
}
