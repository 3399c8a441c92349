/* tests/fuzz/fuzz_programs.c - arbitrary bytes as a command line, words between NULs; as two reports of jitbench suite,
 * with a NUL between; as the list of --prompt-ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/reports.h"
#include "programs/common/options.h"
#include "programs/common/prompt.h"
#include "tests/fuzz/fuzz.h"

static struct {
	const char *operand[3], *text, *file, *choice;
	struct option_list list, chosen;
	long number;
	double real;
	bool flag;
	struct option_about about;
} opt;

static const struct option_row rows[] = {
	{ "first", 0, OPTION_GROUP, 0, "First", 0, 0, 0 },
	{ "text", 't', OPTION_TEXT, "TEXT", "a text", 0, 0, &opt.text },
	{ "file", 'f', OPTION_FILE, "FILE", "a file", 0, 0, &opt.file },
	{ "choice", 'c', OPTION_CHOICE, "one|two|three", "a choice", 0, 0, &opt.choice },
	{ "list", 'l', OPTION_LIST, "TEXT", "several", 0, 0, &opt.list },
	{ "chosen", 0, OPTION_LIST, "x|y", "several choices", 0, 0, &opt.chosen },
	{ "number", 'n', OPTION_INT, "N", "a number", -5, 1000, &opt.number },
	{ "real", 'r', OPTION_FLOAT, "X", "a real number", 0, 2, &opt.real },
	{ "flag", 0, OPTION_FLAG, 0, "a flag", 0, 0, &opt.flag },
	OPTION_ABOUT(opt.about),
};

static FILE *quiet(void)
{
	static FILE *null;

	if (!null && !(null = fopen("/dev/null", "w")))
		abort();
	return null;
}

void fuzz_options(const uint8_t *p, size_t n)
{
	char *argv[40] = { (char *)(uintptr_t) "fuzz" }, *copy = malloc(n + 1);
	int argc = 1;
	FILE *said = stderr;

	if (!copy)
		return;
	if (n)
		memcpy(copy, p, n);
	copy[n] = 0;
	for (size_t at = 0; at < n && argc < 39; at += strlen(copy + at) + 1)
		argv[argc++] = copy + at;
	memset(&opt, 0, sizeof opt);
	struct option_program program = {
		.name = "fuzz",
		.usage = "[options]",
		.purpose = "try",
		.row = rows,
		.n_rows = sizeof rows / sizeof *rows,
		.operand = opt.operand,
		.max_operands = 3
	};
	stderr = quiet();
	bool ok = options_parse(&program, argc, argv);
	stderr = said;
	if (opt.number < -5 || opt.number > 1000 || !(opt.real >= 0 && opt.real <= 2) || opt.list.n > OPTION_LIST_MAX ||
	    program.n_operands > 3)
		abort();
	if (ok && opt.choice && strcmp(opt.choice, "one") && strcmp(opt.choice, "two") && strcmp(opt.choice, "three"))
		abort();
	free(copy);
}

void fuzz_reports(const uint8_t *p, size_t n)
{
	const uint8_t *cut = n ? memchr(p, 0, n) : NULL;
	size_t first = cut ? (size_t)(cut - p) : n;
	char a[300], b[300];
	int slower = 0;

	snprintf(a, sizeof a, "%s", fuzz_file(0, "a.json", p, first));
	snprintf(b, sizeof b, "%s", fuzz_file(1, "b.json", cut ? cut + 1 : p, cut ? n - first - 1 : n));
	for (int json = 0; json < 2; json++) {
		struct error err = { 0 };
		if (reports_compare(a, b, 0.1, json, quiet(), &slower, &err) == (err.code != ERROR_NONE) || slower < 0)
			abort();
	}
}

/* The same list read byte by byte: ids of at most 11 digits, a comma between two. Returns how many, or -1. */
static long ids_in(const char *text, int32_t *ids)
{
	long n = 0;

	for (;; text++) {
		int64_t id = 0;
		int digits = 0;
		for (; *text >= '0' && *text <= '9' && digits < 12; digits++)
			id = 10 * id + (*text++ - '0');
		if (!digits || digits > 11 || id > INT32_MAX || (*text && *text != ','))
			return -1;
		ids[n++] = (int32_t)id;
		if (!*text)
			return n;
	}
}

void fuzz_prompt_ids(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);
	int32_t *expected = malloc((n + 1) * sizeof *expected);
	struct prompt prompt = { 0 };
	jit_error err = { 0 };

	if (!text || !expected)
		abort();
	if (n)
		memcpy(text, p, n);
	text[n] = 0;
	long ids = ids_in(text, expected);
	bool ok = prompt_parse_ids(&prompt, text, &err);
	if (ok != (ids >= 0) ||
	    (ok && (prompt.n_ids != (size_t)ids || memcmp(prompt.ids, expected, (size_t)ids * sizeof *expected))))
		abort();
	if (!ok && (err.code == JIT_OK || !strstr(err.message, "--prompt-ids") ||
	            strlen(err.message) >= sizeof err.message - 1))
		abort();
	/* a context for them, and one too short */
	if (ok && (!prompt_fits(&prompt, (int)ids, &err) || prompt_fits(&prompt, (int)ids - 1, &err)))
		abort();
	prompt_free(&prompt);
	free(expected);
	free(text);
}
