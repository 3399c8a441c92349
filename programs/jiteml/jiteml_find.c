/* programs/jiteml/jiteml_find.c - trees by size, and the smallest ones for expressions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eml/search.h"
#include "programs/common/output.h"
#include "programs/jiteml/jiteml.h"

static struct levels *open_levels(unsigned variables, jit_error *err)
{
	return levels_open(&(struct levels_options){ .variables = variables,
	                                             .extended = jiteml.extended,
	                                             .cap = jiteml.cap,
	                                             .device = jiteml.device,
	                                             .cache = jiteml.cache,
	                                             .threads = (int)jiteml.threads,
	                                             .cancel = jiteml_cancel },
	                   err);
}

static unsigned usual_size(unsigned variables)
{
	static const unsigned of[LEVELS_VARIABLES + 1] = { 21, 15, 13 };
	const unsigned size = jiteml.size ? (unsigned)jiteml.size : of[variables];

	return size - !(size & 1); /* trees have odd sizes */
}

static void print_level(const struct levels *l, const struct level *v)
{
	const double rate = v->kernel_seconds > 0 ? (double)v->pairs / v->kernel_seconds : NAN;
	json_t *line;

	if (!jiteml.json) {
		printf("size %2u: %" PRIu64 " trees, %" PRIu32 " new values, %.3f s", levels_size(l, v), v->pairs,
		       v->count, v->seconds);
		printf(isnan(rate) ? "\n" : " (%.3g million trees in a processor second of kernels)\n", rate * 1e-6);
		return;
	}
	line = json_object();
	json_object_set_new(line, "size", json_integer(levels_size(l, v)));
	json_object_set_new(line, "trees", json_integer((json_int_t)v->pairs));
	json_object_set_new(line, "values", json_integer(v->count));
	json_object_set_new(line, "seconds", output_real(v->seconds));
	json_object_set_new(line, "processor_seconds", output_real(v->processor_seconds));
	json_object_set_new(line, "kernel_seconds", output_real(v->kernel_seconds));
	json_dumpf(line, stdout, output_json_flags(stdout) | JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

int jiteml_enumerate(void)
{
	jit_error err = { 0 };
	const unsigned variables = jiteml.variables < 0 ? 1 : (unsigned)jiteml.variables, max = usual_size(variables);
	struct levels *l = open_levels(variables, &err);
	bool fine = l != NULL;

	while (fine && l->size < max && !jit_cancel_get(jiteml_cancel)) {
		fine = levels_next(l, &err);
		if (fine)
			print_level(l, levels_of(l, l->size));
		fflush(stdout);
	}
	levels_close(l);
	if (!fine)
		return jiteml_fail_error(&err);
	if (!jit_cancel_get(jiteml_cancel))
		return JITEML_DONE;
	jiteml_fail("interrupted");
	return JITEML_INTERRUPTED;
}

/* ---- one expression */

static unsigned variables_of(const struct expression *e)
{
	unsigned n = 0;

	for (size_t i = 0; i < e->n; i++)
		if (e->node[i].op == OP_VARIABLE && e->node[i].a >= n)
			n = e->node[i].a + 1;
	return n;
}

static bool target_of(const struct expression *e, double target[2 * LEVELS_POINTS], const char *text)
{
	char sentence[160], quoted[100];

	for (unsigned p = 0; p < LEVELS_POINTS; p++) {
		double complex x[LEVELS_VARIABLES];
		for (unsigned k = 0; k < LEVELS_VARIABLES; k++) {
			double at[2];
			levels_point(p, k, at);
			x[k] = complex_of(at[0], at[1]);
		}
		const double complex v = expression_value(e, x);
		target[2 * p] = creal(v);
		target[2 * p + 1] = cimag(v);
		if (isfinite(creal(v)) && isfinite(cimag(v)))
			continue;
		snprintf(sentence, sizeof sentence, "%s has no value at x = %.4g, y = %.4g",
		         error_quote(quoted, sizeof quoted, text, strlen(text)), creal(x[0]), creal(x[1]));
		jiteml_fail(sentence);
		return false;
	}
	return true;
}

static void write_rpn(const struct expression *e, const char *const *names, uint32_t at, FILE *out)
{
	const struct node *n = &e->node[at];
	const unsigned operands = operation_form[n->op].operands;

	if (operands > 0)
		write_rpn(e, names, n->a, out);
	if (operands > 1)
		write_rpn(e, names, n->b, out);
	if (n->op == OP_NUMBER)
		fprintf(out, "%.17g ", n->number);
	else
		fprintf(out, "%s ", n->op == OP_VARIABLE ? names[n->a] : operation_form[n->op].text);
}

void jiteml_write(const struct expression *e, const char *const *names, FILE *out)
{
	if (strcmp(jiteml.form, "gnuplot") == 0)
		jiteml_draw(e, names, out);
	else if (strcmp(jiteml.form, "rpn") == 0)
		write_rpn(e, names, expression_root(e), out);
	else
		expression_write(e, names,
		                 *jiteml.form == 'c'   ? EXPRESSION_C
		                 : *jiteml.form == 'l' ? EXPRESSION_LATEX
		                                       : EXPRESSION_TEXT,
		                 out);
}

static void print_found(const char *text, const struct expression *tree, const struct search_report *r,
                        const struct jiteml_proof *proof, double seconds)
{
	char *formed = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&formed, &bytes);

	if (f && r->size)
		jiteml_write(tree, jiteml_names, f);
	if (f)
		fclose(f);
	if (jiteml.json) {
		json_t *line = json_object();
		json_object_set_new(line, "expression", output_string(text));
		json_object_set_new(line, "size", r->size ? json_integer(r->size) : json_null());
		json_object_set_new(line, "tree", r->size && formed ? output_string(formed) : json_null());
		json_object_set_new(line, "lookups", json_integer((json_int_t)r->lookups));
		json_object_set_new(line, "seconds", output_real(seconds));
		if (r->size && proof->done) {
			json_object_set_new(line, "proved", json_boolean(proof->equal == proof->points));
			json_object_set_new(line, "digits", output_real(proof->digits));
		}
		json_dumpf(line, stdout, output_json_flags(stdout) | JSON_COMPACT);
		putchar('\n');
		json_decref(line);
	} else if (!r->size) {
		printf("%s: no tree was found (%" PRIu64 " lookups, %.2f s)\n", text, r->lookups, seconds);
	} else {
		printf("%s: size %u: %s\n", text, r->size, formed ? formed : "");
		if (!jiteml.quiet) {
			printf("  ");
			jiteml_print_proof(proof, stdout);
			printf("; %" PRIu64 " lookups, %.2f s\n", r->lookups, seconds);
		}
	}
	free(formed);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* With levels that are there. */
static int find_in(struct levels *l, const struct expression *e, const char *text, unsigned max)
{
	double target[2 * LEVELS_POINTS];
	struct expression tree = { .n = 0 };
	struct search_report r;
	struct jiteml_proof proof = { .done = false };
	jit_error err = { 0 };
	const double begun = now();

	if (!target_of(e, target, text))
		return JITEML_FAILED;
	if (!search_tree(l, target, max, &tree, &r, &err))
		return jiteml_fail_error(&err);
	if (r.size)
		jiteml_prove_equal(&tree, e, jiteml.extended, &proof);
	print_found(text, &tree, &r, &proof, now() - begun);
	fflush(stdout);
	expression_free(&tree);
	return r.size && (!proof.done || proof.equal == proof.points) ? JITEML_DONE : JITEML_NOT_FOUND;
}

static struct levels *levels_up_to(unsigned variables, unsigned size, jit_error *err)
{
	struct levels *l = open_levels(variables, err);

	while (l && l->size < size)
		if (!levels_next(l, err)) {
			levels_close(l);
			return NULL;
		}
	return l;
}

int jiteml_find(void)
{
	struct expression e = { .n = 0 };
	jit_error err = { 0 };
	int status = JITEML_FAILED;

	if (!jiteml_read(&e, "the expression", jiteml.operand[0]))
		return JITEML_FAILED;
	const unsigned variables = variables_of(&e), size = usual_size(variables);
	const unsigned max = jiteml.max ? (unsigned)jiteml.max : size + 10;
	struct levels *l = levels_up_to(variables, size < max ? size : max - !(max & 1), &err);
	if (l)
		status = find_in(l, &e, jiteml.operand[0], max);
	else
		status = jiteml_fail_error(&err);
	levels_close(l);
	expression_free(&e);
	return status;
}

/* ---- those of a pocket calculator */

static const char *const of_one[] = { "e",     "0",  "-1",  "2",   "e - 1", "exp(x)", "ln(x)",  "e - x",  "x - 1",
	                              "1 - x", "-x", "1/x", "x^2", "x + 1", "2*x",    "-ln(x)", "exp(-x)" };
static const char *const of_two[] = { "x - y", "x + y", "x*y", "x/y" };

static int find_all(const char *const *text, unsigned n, unsigned variables)
{
	jit_error err = { 0 };
	const unsigned size = usual_size(variables), max = jiteml.max ? (unsigned)jiteml.max : size + 6;
	struct levels *l = levels_up_to(variables, size, &err);
	int status = l ? JITEML_DONE : jiteml_fail_error(&err);

	for (unsigned i = 0; l && i < n && !jit_cancel_get(jiteml_cancel); i++) {
		struct expression e;
		const int one =
			jiteml_read(&e, "an expression", text[i]) ? find_in(l, &e, text[i], max) : JITEML_FAILED;
		status = one != JITEML_DONE ? one : status;
		expression_free(&e);
	}
	levels_close(l);
	return status;
}

int jiteml_identities(void)
{
	const int one = find_all(of_one, sizeof of_one / sizeof *of_one, 1);
	const int two = one == JITEML_DONE ? find_all(of_two, sizeof of_two / sizeof *of_two, 2) : one;

	return one != JITEML_DONE ? one : two;
}

/* ---- as it is */

int jiteml_show(void)
{
	struct expression e = { .n = 0 };

	if (!jiteml_read(&e, "the expression", jiteml.operand[0]))
		return JITEML_FAILED;
	jiteml_write(&e, jiteml_names, stdout);
	putchar('\n');
	expression_free(&e);
	return JITEML_DONE;
}
