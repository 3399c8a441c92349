#include "optimise/state_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash(const char *text, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
	return h;
}

void state_write_reals(FILE *f, const char *field, const double *x, size_t n)
{
	fputs(field, f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, " %a", x[i]);
	putc('\n', f);
}
void state_write_count(FILE *f, const char *field, uint64_t x) { fprintf(f, "%s %" PRIu64 "\n", field, x); }
void state_write_draw(FILE *f, const struct random_stream *d)
{
	state_write_count(f, "seed-high", d->seed >> 32);
	state_write_count(f, "seed-low", d->seed & UINT32_MAX);
	state_write_count(f, "drawn", d->drawn);
}
void state_write_sum(FILE *f, const char *text, size_t n) { fprintf(f, "sum %016" PRIx64 "\n", hash(text, n)); }

enum { SUM_BYTES = 4 + 16 + 1 };

static void fail(struct state_reader *r, const char *what)
{
	if (!r->failed)
		error_set(r->err, ERROR_FORMAT, "%s:%d: %s", r->name, r->line, what);
	r->failed = true;
}

struct state_reader state_reader_open(const char *text, size_t n, const char *name, struct error *err)
{
	struct state_reader r = { .text = text, .end = text, .name = name, .line = 1, .err = err };
	char sum[SUM_BYTES + 1];

	if (n < SUM_BYTES) {
		fail(&r, "expected a saved state; the file is too short");
		return r;
	}
	snprintf(sum, sizeof sum, "sum %016" PRIx64 "\n", hash(text, n - SUM_BYTES));
	if (memcmp(sum, text + n - SUM_BYTES, SUM_BYTES) != 0)
		fail(&r, "this is no saved state, or one that was cut or changed: its last line does not fit the rest");
	else
		r.end = text + n - SUM_BYTES;
	return r;
}

/* Behind "field"; the values end at *end, with a newline there. NULL: it is not there. */
static const char *begin(struct state_reader *r, const char *field, const char **end)
{
	const size_t n = strlen(field);
	const char *line = r->text;
	char what[160];

	if (r->failed)
		return NULL;
	*end = memchr(line, '\n', (size_t)(r->end - line));
	if (*end && (size_t)(*end - line) > n && memcmp(line, field, n) == 0 && line[n] == ' ')
		return line + n;
	snprintf(what, sizeof what, "the field \"%s\" is expected here", field);
	fail(r, what);
	return NULL;
}

void state_read_reals(struct state_reader *r, const char *field, double *x, size_t n, bool finite)
{
	const char *end, *at = begin(r, field, &end);
	char what[160];
	size_t i = 0;

	memset(x, 0, n * sizeof *x);
	for (; at && i < n && at < end; i++) {
		char number[40], *rest;
		const char *stop = memchr(at + 1, ' ', (size_t)(end - at - 1));
		const size_t length = (size_t)((stop ? stop : end) - at - 1);
		if (*at != ' ' || length == 0 || length >= sizeof number)
			break;
		memcpy(number, at + 1, length);
		number[length] = 0;
		x[i] = strtod(number, &rest);
		if (*rest || rest == number || isnan(x[i]) || (finite && !isfinite(x[i])))
			break;
		at += length + 1;
	}
	if (at && (i < n || at < end)) {
		snprintf(what, sizeof what, "the field \"%s\": expected %zu numbers; number %zu is none", field, n,
		         i + 1);
		fail(r, what);
		memset(x, 0, n * sizeof *x);
	}
	if (at && !r->failed) {
		r->text = end + 1;
		r->line++;
	}
}

uint64_t state_read_count(struct state_reader *r, const char *field, uint64_t low, uint64_t high)
{
	const char *end, *at = begin(r, field, &end);
	char what[160];
	uint64_t x = 0;
	bool right = at && end > at + 1 && end - at <= 20;

	for (at = right ? at + 1 : at; right && at < end; at++) {
		right = *at >= '0' && *at <= '9' && x <= (UINT64_MAX - 9) / 10;
		x = x * 10 + (uint64_t)(*at - '0');
	}
	if (right && x >= low && x <= high) {
		r->text = end + 1;
		r->line++;
		return x;
	}
	snprintf(what, sizeof what, "the field \"%s\": expected a number from %" PRIu64 " to %" PRIu64, field, low,
	         high);
	fail(r, what);
	return low;
}

struct random_stream state_read_draw(struct state_reader *r)
{
	struct random_stream d = { .seed = state_read_count(r, "seed-high", 0, UINT32_MAX) << 32 };

	d.seed |= state_read_count(r, "seed-low", 0, UINT32_MAX);
	d.drawn = state_read_count(r, "drawn", 0, INT64_MAX);
	return d;
}

bool state_reader_close(struct state_reader *r)
{
	if (r->text != r->end)
		fail(r, "the last line is expected here");
	return !r->failed;
}
