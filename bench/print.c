#include "bench/print.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/output.h"

/* Four significant digits: what repetitions spread says how many of them mean something. */
static const char *digits(char *out, size_t size, double v)
{
	snprintf(out, size, "%.*f", v < 0.1 ? 4 : v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0, v);
	return out;
}

/* 80 columns in all, so that a table is one on any terminal. */
#define ROW "| %-24s | %2s | %10s | %6s | %-14s | %5s |\n"

static void markdown_row(const struct row *r)
{
	char value[64], spread[16] = "", share[16] = "", number[32], name[96], threads[16];

	snprintf(name, sizeof name, r->count ? "%s (%ld)" : "%s", r->test, r->count);
	snprintf(threads, sizeof threads, "%d", r->threads);
	snprintf(value, sizeof value, "%s%s %s", r->noisy[0] ? "~" : "", digits(number, sizeof number, r->value.median),
	         r->unit);
	if (r->value.min < r->value.greatest)
		snprintf(spread, sizeof spread, "%.*f %%", r->value.spread < 0.0995, 100 * r->value.spread);
	if (r->work > 0)
		snprintf(share, sizeof share, "%.*f %%", r->share < 0.0995, 100 * r->share);
	printf(ROW, name, threads, value, spread, r->work > 0 ? r->limit_name : "", share);
}

static void csv_text(const char *s, bool last)
{
	putchar('"');
	for (; *s; s++)
		fputs(*s == '"' ? "\"\"" : (char[]){ *s, 0 }, stdout);
	fputs(last ? "\"\n" : "\",", stdout);
}

/* The fields of a row, once for every format but the table. count: what was measured, kernels or repetitions. */
static json_t *fields(const struct printer *p, const struct row *r)
{
	json_t *o = json_pack("{s:s,s:s,s:I,s:I,s:s,s:s,s:s,s:i,s:s,s:i,s:i,s:i,s:s,s:i}", "model_filename",
	                      p->filename, "model_type", p->type, "model_size", (json_int_t)p->size, "model_n_params",
	                      (json_int_t)p->parameters, "isa", p->isa, "type_kv", p->type_kv, "numerics", p->numerics,
	                      "n_threads", r->threads, "test", r->test, "n_prompt", (int)r->n_prompt, "n_gen",
	                      (int)r->n_gen, "n_depth", (int)r->depth, "unit", r->unit, "count",
	                      (int)(r->count ? r->count : r->repetitions));
	const struct {
		const char *name;
		double value;
		bool there;
	} number[] = {
		{ "avg_ts", r->value.mean, true },         { "stddev_ts", r->value.deviation, true },
		{ "median", r->value.median, true },       { "least", r->value.min, true },
		{ "greatest", r->value.greatest, true },   { "work", r->work, r->work > 0 },
		{ "limit", r->limit.median, r->work > 0 }, { "share", r->share, r->work > 0 },
	};

	for (size_t i = 0; o && i < sizeof number / sizeof *number; i++)
		json_object_set_new(o, number[i].name,
		                    number[i].there && !r->noisy[0] ? output_real(number[i].value) : json_null());
	if (o) {
		json_object_set_new(o, "limit_name", json_string(r->limit_name ? r->limit_name : ""));
		json_object_set_new(o, "noisy", json_string(r->noisy));
	}
	return o;
}

static void csv_line(json_t *o, bool names, bool noisy)
{
	size_t left = json_object_size(o);
	const char *key;
	json_t *value;
	char number[40];

	json_object_foreach(o, key, value)
	{
		snprintf(number, sizeof number, json_is_integer(value) ? "%.0f" : "%.9g", json_number_value(value));
		csv_text(names                   ? key
		         : json_is_string(value) ? json_string_value(value)
		         : json_is_null(value)   ? (noisy ? "noisy" : "")
		                                 : number,
		         --left == 0);
	}
}

void print_begin(struct printer *p)
{
	if (p->format == PRINT_MARKDOWN) {
		printf("%s; ", p->type);
		if (p->size) /* not of a header alone */
			printf("%.1f MiB, %.2f M parameters; ", (double)p->size / 0x1p20, p->parameters / 1e6);
		printf("%s, KV cache %s, numerics %s\n\n", p->isa, p->type_kv, p->numerics);
		printf(ROW, "test", "t", "median", "spread", "share of", "");
		puts("| ------------------------ | -: | ---------: | -----: | -------------- | ----: |");
	} else if (p->format == PRINT_JSON) {
		putchar('[');
	}
}

void print_row(struct printer *p, const struct row *r)
{
	json_t *o = p->format == PRINT_MARKDOWN ? NULL : fields(p, r);

	if (p->format == PRINT_MARKDOWN) {
		markdown_row(r);
	} else if (p->format == PRINT_CSV) {
		if (p->rows == 0)
			csv_line(o, true, false);
		csv_line(o, false, r->noisy[0] != 0);
	} else {
		char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
		fputs(p->format == PRINT_JSONL ? "" : p->rows ? ",\n" : "\n", stdout);
		fputs(text ? text : "{}", stdout);
		fputs(p->format == PRINT_JSONL ? "\n" : "", stdout);
		free(text);
	}
	json_decref(o);
	p->rows++;
	fflush(stdout);
}

void print_end(struct printer *p)
{
	if (p->format == PRINT_JSON)
		puts("\n]");
	fflush(stdout);
}
