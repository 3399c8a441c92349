/* bench/masks_main.c - how long it takes to read schemas, and to say which tokens can come next.
 *
 * gzip -dc SCHEMAS.jsonl.gz | build/bench/masks TOKENIZER.json: each line has "schema" and "tests", of which those with
 * "valid": true have "data". Their texts are written token by token, the longest first, as models do. With --grammar
 * they are held to its rules.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "grammar/grammar.h"
#include "loaders/files/file.h"
#include "base/json_read.h"
#include "loaders/tokenizer/tokenizer.h"
#include "programs/common/options.h"
#include "programs/common/output.h"
#include "include/jitrun.h"

static struct {
	const char *grammar;
	long every;
	struct option_about about;
} opt = { .every = 1 };

static const struct option_row rows[] = {
	{ .name = "every",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "take one schema of so many (1)",
	  .low = 1,
	  .high = 1000000,
	  .target = &opt.every },
	{ .name = "grammar",
	  .kind = OPTION_TEXT,
	  .value = "FILE",
	  .help = "rules that all texts are held to, instead of their schemas",
	  .target = &opt.grammar },
	OPTION_ABOUT(opt.about),
};

/* Of this processor alone: others may compute beside it. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct times {
	double *of;
	size_t n, room;
};

static bool note(struct times *t, double seconds)
{
	void *of = t->of;

	if (!array_grow(&of, &t->room, t->n + 1, sizeof *t->of))
		return false;
	t->of = of;
	t->of[t->n++] = 1e6 * seconds;
	return true;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_times(const char *what, struct times *t)
{
	double sum = 0;

	if (t->n == 0)
		return;
	for (size_t i = 0; i < t->n; i++)
		sum += t->of[i];
	qsort(t->of, t->n, sizeof *t->of, by_size);
	printf("%s: %zu; microseconds: p50 %.1f, p99 %.1f, p99.9 %.1f, most %.1f, mean %.1f\n", what, t->n,
	       t->of[t->n / 2], t->of[t->n * 99 / 100], t->of[t->n * 999 / 1000], t->of[t->n - 1], sum / (double)t->n);
}

struct work {
	const struct vocabulary *v;
	struct file rules; /* nothing: the schemas */
	struct times compile, mask;
	unsigned schemas, refused, texts, left; /* left: texts that the grammar does not take to their end */
};

static char scratch[256];
static const char *piece(void *user, uint32_t id, size_t *n)
{
	return tokenizer_piece(user, (int32_t)id, false, false, scratch, n);
}

static bool take_text(struct work *w, struct grammar *g, const char *text, struct error *err)
{
	size_t n = strlen(text), bytes = 1;
	bool ends = false, ok = true;

	grammar_rewind(g, 0);
	w->texts++;
	while (n && bytes) {
		double began = seconds();
		if (!grammar_allowed(g, &ends, err) || !note(&w->mask, seconds() - began))
			return false;
		uint32_t id = vocabulary_longest(w->v, text, n, &bytes);
		if (!bytes || !grammar_take(g, &(struct grammar_token){ id, text, bytes }, err))
			break;
		text += bytes;
		n -= bytes;
	}
	ok = n == 0 && grammar_allowed(g, &ends, err) && ends;
	w->left += !ok;
	*err = (struct error){ 0 };
	return true;
}

static bool take_line(struct work *w, const json_t *line, struct error *err)
{
	char *schema = json_dumps(json_object_get(line, "schema"), JSON_ENCODE_ANY);
	struct error why = { 0 };
	json_t *test;
	size_t i;
	bool ok = schema != NULL;

	double began = seconds();
	struct grammar *g = NULL;
	if (ok && w->rules.size)
		g = grammar_open(w->v, GRAMMAR_GBNF, (const char *)w->rules.base, w->rules.size, NULL, &why);
	else if (ok)
		g = grammar_open(w->v, GRAMMAR_SCHEMA, schema, strlen(schema), NULL, &why);
	ok = ok && note(&w->compile, seconds() - began);
	w->schemas++;
	w->refused += g == NULL;
	json_array_foreach(json_object_get(line, "tests"), i, test)
	{
		char *text = json_dumps(json_object_get(test, "data"), JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		if (g && text && ok && json_is_true(json_object_get(test, "valid")))
			ok = take_text(w, g, text, err);
		free(text);
	}
	grammar_close(g);
	free(schema);
	return ok || error_set(err, ERROR_MEMORY, "no memory for a schema");
}

static bool take_lines(struct work *w, struct error *err)
{
	char *line = NULL;
	size_t room = 0;
	bool ok = true;

	for (long i = 0; ok && getline(&line, &room, stdin) > 0; i++) {
		json_t *one = i % opt.every ? NULL : json_read(line, strlen(line), UINT64_MAX, "the schemas", NULL);
		ok = !one || take_line(w, one, err);
		json_decref(one);
	}
	free(line);
	return ok;
}

static struct tokenizer *read_tokenizer(const char *path, struct error *err)
{
	json_error_t why;
	json_t *root = json_load_file(path, 0, &why);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	struct tokenizer *t = NULL;

	if (text)
		t = tokenizer_from_json((struct tokenizer_text){ text, strlen(text), path },
		                        (struct tokenizer_text){ 0 }, 0, err);
	else
		error_set(err, ERROR_ARGUMENT, "%s: %s", path, root ? "no memory" : why.text);
	free(text);
	json_decref(root);
	return t;
}

static int run(int argc, char **argv)
{
	const char *path = NULL;
	struct option_program program = {
		.name = "masks",
		.usage = "[options] TOKENIZER.json < SCHEMAS.jsonl",
		.purpose = "time the reading of schemas and masks of tokens",
		.row = rows,
		.n_rows = sizeof rows / sizeof *rows,
		.operand = &path,
		.max_operands = 1
	};
	struct error err = { 0 };
	int status = 2;

	if (!options_parse(&program, argc, argv) || options_about(&program, &opt.about, jit_version(), &status))
		return status;
	if (!path) {
		fprintf(stderr, "masks: name one tokenizer.json\n");
		return 2;
	}
	struct tokenizer *t = read_tokenizer(path, &err);
	struct vocabulary *v = t ? vocabulary_open((uint32_t)tokenizer_size(t), piece, t, &err) : NULL;
	struct work w = { .v = v };
	bool ok = v && (!opt.grammar || (file_open(&w.rules, opt.grammar, &err) && file_text(&w.rules, 1 << 20, &err)));
	ok = ok && take_lines(&w, &err);
	if (ok) {
		printf("%zu tokens; %u schemas, %u refused; %u valid texts, %u not taken\n", tokenizer_size(t),
		       w.schemas, w.refused, w.texts, w.left);
		print_times("schemas", &w.compile);
		print_times("masks", &w.mask);
	} else {
		fprintf(stderr, "masks: %s\n", err.text);
	}
	free(w.compile.of);
	free(w.mask.of);
	file_close(&w.rules);
	vocabulary_close(v);
	tokenizer_close(t);
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("masks", run(argc, argv), 1);
}
