/* bench/reports.c - two reports of jitbench suite, row by row. See reports.h. */
#include "bench/reports.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json_file.h"
#include "programs/common/output.h"

enum { REPORT_MAX = 1 << 24 };

static json_t *read_report(const char *path, struct error *err)
{
	char label[200];
	json_t *o = json_file_read(path, REPORT_MAX, err);

	if (!o || (json_is_string(json_object_get(o, "suite")) && json_is_array(json_object_get(o, "rows"))))
		return o;
	error_set(err, ERROR_FORMAT, "%s: is no report of jitbench suite -o json",
	          error_quote(label, sizeof label, path, strlen(path)));
	json_decref(o);
	return NULL;
}

static const json_t *find_row(const json_t *report, const char *test)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "test"));
		if (name && test && strcmp(name, test) == 0)
			return row;
	}
	return NULL;
}

static double number(const json_t *row, const char *name) { return json_number_value(json_object_get(row, name)); }

static bool believed(const json_t *row)
{
	const char *noisy = json_string_value(json_object_get(row, "noisy"));

	return row && noisy && !noisy[0] && number(row, "microseconds") > 0 && number(row, "share") > 0;
}

struct comparison {
	int same, faster, slower, left_out;
	json_t *rows;
};

/* The share is compared: a machine that was busier in one of the runs had lower peaks as well. */
static void compare_row(struct comparison *c, const json_t *a, const json_t *b, double threshold, bool json, FILE *out)
{
	const char *test = json_string_value(json_object_get(a, "test"));
	char quoted[100];

	if (!test || !believed(a) || !believed(b)) {
		c->left_out++;
		return;
	}
	double time = number(b, "microseconds") / number(a, "microseconds"),
	       share = number(b, "share") / number(a, "share");
	const char *verdict = share < 1 - threshold ? "slower" : share > 1 / (1 - threshold) ? "faster" : "";
	c->slower += verdict[0] == 's';
	c->faster += verdict[0] == 'f';
	c->same += !verdict[0];
	if (json)
		json_array_append_new(c->rows, json_pack("{s:o, s:o, s:o, s:s}", "test", output_string(test),
		                                         "time_ratio", output_real(time), "share_ratio",
		                                         output_real(share), "verdict", verdict));
	else
		output_lines(out, 4, "| %-52s | %11.2f | %11.2f | %6.3f | %6.3f | %-6s |\n",
		             error_quote(quoted, sizeof quoted, test, strlen(test)), number(a, "microseconds"),
		             number(b, "microseconds"), time, share, verdict);
}

/* What a report says of itself, as sentences show the bytes of files. */
static const char *word(char *out, unsigned cap, const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? error_quote(out, cap, text, strlen(text)) : "?";
}

static void say_report(FILE *out, const char *letter, const char *path, const json_t *o)
{
	char version[60], target[60], quoted[200];

	output_lines(out, 4, "%s: %s, jitrun %s, %s, %d threads%s", letter,
	             error_quote(quoted, sizeof quoted, path, strlen(path)),
	             word(version, sizeof version, o, "version"), word(target, sizeof target, o, "target"),
	             (int)json_integer_value(json_object_get(o, "threads")), *letter == 'A' ? "\n" : "\n\n");
}

bool reports_compare(const char *path_a, const char *path_b, double threshold, bool json, FILE *out, int *slower,
                     struct error *err)
{
	json_t *a = read_report(path_a, err), *b = a ? read_report(path_b, err) : NULL, *row;
	struct comparison c = { .rows = json_array() };
	size_t i;

	if (b && !json) {
		say_report(out, "A", path_a, a);
		say_report(out, "B", path_b, b);
		output_lines(
			out, 4, "%s",
			"| operation                                            |        A us |        B us |   time | "
			" "
			"share | B is   |\n"
			"| ---------------------------------------------------- | ----------: | ----------: | -----: | "
			"-----: | ------ |\n");
	}
	if (b)
		json_array_foreach(json_object_get(a, "rows"), i, row)
			compare_row(&c, row, find_row(b, json_string_value(json_object_get(row, "test"))), threshold,
		                    json, out);
	if (b && json) {
		json_t *o = json_pack("{s:f, s:i, s:i, s:i, s:i, s:O}", "threshold", threshold, "same", c.same,
		                      "faster", c.faster, "slower", c.slower, "left_out", c.left_out, "rows", c.rows);
		json_dumpf(o, out,
		           JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6) |
		                   (output_json_flags(out) & JSON_ENSURE_ASCII));
		fputc('\n', out);
		json_decref(o);
	} else if (b) {
		output_lines(
			out, 4,
			"\n%d rows within %.3g %%, %d faster, %d slower; %d left out, noisy in one of the reports or "
			"not in both\n",
			c.same, 100 * threshold, c.faster, c.slower, c.left_out);
	}
	if (b && c.same + c.faster + c.slower == 0) {
		error_set(err, ERROR_FORMAT, "%s and %s have no row in common that both could measure", path_a, path_b);
		json_decref(b);
		b = NULL;
	}
	*slower = c.slower;
	bool ok = b != NULL;
	json_decref(c.rows);
	json_decref(a);
	json_decref(b);
	return ok;
}
