/* programs/jiteml/jiteml_fit.c - formulas of data. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eml/regress.h"
#include "programs/common/output.h"
#include "programs/jiteml/jiteml.h"
#include "programs/jiteml/jiteml_data.h"

/* Operations by name, in the order of their codes. */
static const char *const operation_name[16] = { "+",   "-",  "",     "*",   "/",   "",     "^",      "",
	                                        "exp", "ln", "sqrt", "sin", "cos", "tanh", "square", "inverse" };

/* The bits of --operations. False: an error was printed. */
static bool read_operations(uint32_t *codes)
{
	const char *at = jiteml.operations;
	char sentence[200], quoted[60];

	*codes = 0;
	while (at && *at) {
		const size_t n = strcspn(at, ",");
		unsigned c = 0;
		while (c < 16 &&
		       (!*operation_name[c] || strlen(operation_name[c]) != n || memcmp(operation_name[c], at, n) != 0))
			c++;
		if (c == 16) {
			snprintf(sentence, sizeof sentence,
			         "--operations: %s: expected some of +,-,*,/,^,exp,ln,sqrt,sin,cos,tanh,square,inverse",
			         error_quote(quoted, sizeof quoted, at, n));
			jiteml_wrong(sentence);
			return false;
		}
		/* those with two orders have a code for each */
		*codes |= 1u << c | (c == 1 ? 1u << 2 : c == 4 ? 1u << 5 : c == 6 ? 1u << 7 : 0);
		at += n + (at[n] == ',');
	}
	return true;
}

static char *formed(const struct expression *e, const char *const *names)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return NULL;
	jiteml_write(e, names, f);
	fclose(f);
	return text;
}

static void print_formula(const struct formula *v, const char *const *names, const char *target)
{
	char *text = formed(&v->e, names);

	if (jiteml.json) {
		json_t *line = json_object();
		json_object_set_new(line, "size", json_integer((json_int_t)v->size));
		json_object_set_new(line, "error", output_real(v->error));
		json_object_set_new(line, "formula", text ? output_string(text) : json_null());
		json_dumpf(line, stdout, output_json_flags(stdout) | JSON_COMPACT);
		putchar('\n');
		json_decref(line);
	} else if (jiteml.quiet) {
		printf("%s = %s\n", target, text ? text : "");
	} else {
		printf("size %2zu  error %-9.3g %s = %s\n", v->size, v->error, target, text ? text : "");
	}
	free(text);
}

/* For gnuplot: sizes, errors, formulas. */
static bool write_front(const struct front *f, const char *const *names)
{
	FILE *out = fopen(jiteml.front, "w");
	char sentence[300], quoted[200];

	for (unsigned i = 0; out && i < f->n; i++) {
		char *text = formed(&f->formula[i].e, names);
		fprintf(out, "%zu %.17g \"%s\"\n", f->formula[i].size, f->formula[i].error, text ? text : "");
		free(text);
	}
	if (out && !(ferror(out) | fclose(out)))
		return true;
	snprintf(sentence, sizeof sentence, "%s: cannot be written: %s",
	         error_quote(quoted, sizeof quoted, jiteml.front, strlen(jiteml.front)), strerror(errno));
	jiteml_fail(sentence);
	return false;
}

static int fit(const struct numbers *d, uint32_t codes)
{
	const struct dataset set = {
		.rows = d->rows, .variables = d->columns - 1, .x = d->value, .y = d->value + (d->columns - 1) * d->rows
	};
	const char *names[NUMBERS_COLUMNS];
	struct front front;
	struct regress_report report;
	jit_error err = { 0 };
	struct timespec begun, ended;

	for (unsigned c = 0; c < d->columns; c++)
		names[c] = d->name[c];
	clock_gettime(CLOCK_MONOTONIC, &begun);
	const struct regress_options o = {
		.codes = codes,
		.examined = (uint64_t)jiteml.examined * 1000000,
		.terms = (unsigned)jiteml.terms,
		.no_constants = jiteml.no_constants,
		.enough = jiteml.enough,
		.device = jiteml.device,
		.cache = jiteml.cache,
		.threads = (int)jiteml.threads,
		.cancel = jiteml_cancel
	};
	if (!regress(&set, &o, &front, &report, &err))
		return jiteml_fail_error(&err);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	for (unsigned i = jiteml.quiet && front.n ? front.n - 1 : 0; i < front.n; i++)
		print_formula(&front.formula[i], names, names[d->columns - 1]);
	if (!jiteml.quiet && !jiteml.json)
		printf("%" PRIu64 " functions looked at, %" PRIu64 " formulas fitted, %.2f s\n", report.examined,
		       report.fitted,
		       (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-9);
	const bool exact = front.n && front.formula[front.n - 1].error <= jiteml.enough;
	const bool written = !jiteml.front || write_front(&front, names);
	front_free(&front);
	return !written ? JITEML_FAILED : exact ? JITEML_DONE : JITEML_NOT_FOUND;
}

int jiteml_fit(void)
{
	struct numbers d = { .rows = 0 };
	struct error err = { 0 };
	uint32_t codes;
	int status = JITEML_FAILED;

	if (!jiteml.operand[0] == !jiteml.sequence)
		return jiteml_wrong("a file of data is needed, or --sequence");
	if (!read_operations(&codes))
		return JITEML_USAGE;
	const bool fine = jiteml.sequence ? numbers_read_sequence(&d, jiteml.sequence, (unsigned)jiteml.lags, &err)
	                                  : numbers_read(&d, jiteml.operand[0], &err);
	if (!fine || (jiteml.target &&
	              !numbers_target(&d, jiteml.sequence ? "--sequence" : jiteml.operand[0], jiteml.target, &err)))
		jiteml_fail(err.text);
	else
		status = fit(&d, codes);
	numbers_free(&d);
	return status;
}
