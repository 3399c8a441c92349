/* tests/eml/regress_tests.c - formulas of data: those of a list come back, from their values alone, and hold at rows
 * that were not seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eml/regress.h"
#include "tests/eml/eml_tests.h"
#include "tests/support/shared.h"

enum { ROWS = 100, MAX = 8 };
static const struct {
	const char *where, *variables, *formula;
	int quick;
} list[] = {
#define FORMULA(where, variables, formula, quick) { where, variables, formula, quick },
#include "tests/eml/formulas.def"
#undef FORMULA
};

static double drawn(uint64_t *seed, bool small)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	const double u = (double)((z ^ z >> 31) >> 11) * 0x1p-53;
	return small ? 0.1 + 0.8 * u : 1 + 4 * u;
}

static unsigned split(char *text, const char *names[MAX])
{
	unsigned n = 0;

	for (char *name = strtok(text, " "); name; name = strtok(NULL, " "))
		names[n++] = name;
	return n;
}

static void fill(const struct expression *e, const char *const *names, unsigned n, uint64_t seed, double *x, double *y)
{
	for (unsigned r = 0; r < ROWS; r++) {
		double complex at[MAX];
		for (unsigned v = 0; v < n; v++)
			at[v] = x[v * ROWS + r] = drawn(&seed, isupper((unsigned char)*names[v]));
		y[r] = creal(expression_value(e, at));
		assert_true(isfinite(y[r]));
	}
}

static bool recovers(unsigned i)
{
	static double x[MAX * ROWS], y[ROWS], new_x[MAX * ROWS], new_y[ROWS];
	struct expression e;
	struct error wrong = { 0 };
	jit_error err = { 0 };
	char text[100];
	const char *names[MAX];

	snprintf(text, sizeof text, "%s", list[i].variables);
	const unsigned n = split(text, names);
	if (!expression_read(&e, list[i].where, list[i].formula, names, n, &wrong))
		fail_msg("%s", wrong.text);
	fill(&e, names, n, i, x, y);
	fill(&e, names, n, i + 1000, new_x, new_y);
	const struct dataset d = { .rows = ROWS, .variables = n, .x = x, .y = y };
	const struct dataset unseen = { .rows = ROWS, .variables = n, .x = new_x, .y = new_y };
	struct front front;
	struct regress_report report;
	if (!regress(&d, &(struct regress_options){ .enough = 1e-9, .examined = 20000000, .cache = "", .threads = 2 },
	             &front, &report, &err))
		fail_msg("%s", err.message);
	const struct formula *best = &front.formula[front.n - 1];
	const bool fine = best->error <= 1e-9 && front_error(&unseen, &best->e) <= 1e-8;
	if (!fine || !test_quick()) {
		printf("# %s %s: error %.3g, ", fine ? "found" : "MISSED", list[i].where, best->error);
		expression_write(&best->e, names, EXPRESSION_TEXT, stdout);
		printf(" (size %zu of %zu), %llu functions\n", best->size, expression_size(&e, expression_root(&e)),
		       (unsigned long long)report.examined);
	}
	front_free(&front);
	expression_free(&e);
	return fine;
}

void test_formulas(void **state)
{
	unsigned missed = 0, tried = 0;

	for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
		/* a third of those that take seconds each; all of them at the full size */
		if (test_quick() && i % 3)
			continue;
		if (!list[i].quick && (test_quick() || (i % 3 && !test_is_set("JITRUN_TEST_FULL"))))
			continue;
		tried++;
		missed += !recovers(i);
	}
	if (missed)
		fail_msg("%u of %u formulas were missed", missed, tried);
}

/* Tidying keeps values, on expressions that are drawn at random. */
static uint32_t draw_expression(struct expression *e, uint64_t *seed, unsigned depth)
{
	static const enum operation ops[] = {
		OP_NEG, OP_EXP, OP_LN,  OP_SQRT, OP_SIN, OP_COS, OP_TANH, OP_ADD, OP_ADD,
		OP_SUB, OP_SUB, OP_MUL, OP_MUL,  OP_MUL, OP_DIV, OP_DIV,  OP_POW, OP_EML
	};
	const unsigned which = (unsigned)(drawn(seed, false) * 1e6);

	if (depth == 0 || which % 7 == 0) {
		const double n = (double)(which / 7 % 8) - 3.5; /* not 0, of which there are two */
		return which % 2 ? expression_variable(e, which / 2 % 2)
		                 : expression_number(e, which % 3 ? (n > 0 ? ceil(n) : floor(n)) : n / 8);
	}
	const enum operation op = ops[which / 7 % (sizeof ops / sizeof *ops)];
	const uint32_t a = draw_expression(e, seed, depth - 1);
	const uint32_t b = op == OP_POW                       ? expression_number(e, (double)(which % 5) - 1)
	                   : operation_form[op].operands == 2 ? draw_expression(e, seed, depth - 1)
	                                                      : 0;

	return expression_add(e, op, a, b);
}

/* Whether no part of it is 0 or infinite: what is divided by 0 depends on the sign of that. */
static bool is_plain(struct expression *e, const double complex *x)
{
	const size_t n = e->n;
	bool plain = true;

	for (e->n = 1; e->n <= n && plain; e->n++) {
		const double size = cabs(expression_value(e, x));
		plain = isfinite(size) && size > 0;
	}
	e->n = n;
	return plain;
}

void test_tidy(void **state)
{
	static const struct {
		const char *from, *to;
	} known[] = {
		{ "x + 0*y", "x" },    { "1*x/1", "x" },      { "3*(2*x)", "6*x" },
		{ "x + x", "2*x" },    { "x*x*x", "x^3" },    { "2 + x + 3", "x + 5" },
		{ "x - -y", "x + y" }, { "-(-x)", "x" },      { "x*(1/y)", "x/y" },
		{ "1/(1/x)", "x" },    { "exp(ln(x))", "x" }, { "exp(x)^2", "exp(2*x)" },
		{ "x^-1", "1/x" },     { "sqrt(x)^2", "x" },  { "-x*-y", "x*y" },
		{ "x - x", "0" },      { "1/3*x", "x/3" },    { "sqrt(2)*sqrt(4)", "2*sqrt(2)" },
	};
	const char *const names[] = { "x", "y" };
	uint64_t seed = 7;

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
		struct expression e, want;
		struct error err = { 0 };
		assert_true(expression_read(&e, "from", known[i].from, names, 2, &err));
		assert_true(expression_read(&want, "to", known[i].to, names, 2, &err));
		expression_tidy(&e);
		if (!expression_equal(&e, expression_root(&e), &want, expression_root(&want))) {
			expression_write(&e, names, EXPRESSION_TEXT, stdout);
			fail_msg("%s does not become %s", known[i].from, known[i].to);
		}
		expression_free(&e);
		expression_free(&want);
	}
	for (unsigned i = 0; i < (test_quick() ? 2000u : 50000u); i++) {
		struct expression e = { .n = 0 }, tidy = { .n = 0 };
		double complex x[2] = { drawn(&seed, false), drawn(&seed, true) };
		draw_expression(&e, &seed, 5);
		expression_copy(&tidy, &e, expression_root(&e), NULL);
		expression_tidy(&tidy);
		/* moved by little, it shows how much rounding may have changed it */
		const double complex at = expression_value(&e, x), now = expression_value(&tidy, x);
		x[0] *= 1 + 1e-9;
		x[1] *= 1 - 1e-9;
		const double complex near = expression_value(&e, x);
		const double size = cabs(at), move = cabs(near - at);
		x[0] /= 1 + 1e-9;
		x[1] /= 1 - 1e-9;
		if (is_plain(&e, x) && size < 1e6 && move < 1e-5 * size && fabs(cimag(at)) == 0 &&
		    isfinite(cabs(now)) && cabs(now - at) > 1e-6 * size + 1e-9) {
			expression_write(&e, names, EXPRESSION_TEXT, stdout);
			printf(" = %.17g\n", creal(at));
			expression_write(&tidy, names, EXPRESSION_TEXT, stdout);
			printf(" = %.17g\n", creal(now));
			fail_msg("tidying changed the value of number %u", i);
		}
		expression_free(&e);
		expression_free(&tidy);
	}
}

/* Numbers inside, from bad starts: beside those that made the data. */
void test_constants(void **state)
{
	static const struct {
		const char *made, *from;
	} known[] = {
		{ "2.5*sin(1.3*x + 0.4) + 0.7", "1*sin(1.1*x + 0) + 0" },
		{ "3*exp(-0.7*x) + 1", "1*exp(-0.1*x) + 0" },
		{ "5*x/(x + 2.25)", "1*x/(x + 1.5)" },
		{ "1.5*tanh(2*x - 3)^2 - ln(x + 0.5)", "1.2*tanh(1.5*x - 2.5)^2 - ln(x + 0.8)" },
		{ "sqrt(x + 0.3)*cos(0.25*x) + tan(0.1*x)", "sqrt(x + 0.5)*cos(0.5*x) + tan(0.2*x)" },
		{ "x^2.5 + 0.5/x", "x^2.2 + 1.5/x" },
	};
	const char *const names[] = { "x" };
	static double x[ROWS], y[ROWS];
	jit_error err = { 0 };
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .threads = 1), &err);

	assert_non_null(c);
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
		struct expression made, e;
		struct error wrong = { 0 };
		assert_true(expression_read(&made, "made", known[i].made, names, 1, &wrong));
		assert_true(expression_read(&e, "from", known[i].from, names, 1, &wrong));
		fill(&made, names, 1, i, x, y);
		const struct dataset d = { .rows = ROWS, .variables = 1, .x = x, .y = y };
		assert_true(front_error(&d, &e) > 0.01);
		if (!constants_fit(c, &d, &e, 60, &err))
			fail_msg("%s: %s", known[i].from, err.message);
		if (!(front_error(&d, &e) < 1e-9))
			fail_msg("%s: error %.3g", known[i].from, front_error(&d, &e));
		expression_free(&made);
		expression_free(&e);
	}
	jit_compute_close(c);
}

/* The front: no formula is worse than a smaller one, and numbers become short. */
void test_front(void **state)
{
	static double x[ROWS], y[ROWS];
	const char *const names[] = { "x" };
	const struct dataset d = { .rows = ROWS, .variables = 1, .x = x, .y = y };
	struct front f = { .data = &d };
	static const struct {
		const char *text;
		bool takes;
		unsigned n;
	} step[] = { { "x", true, 1 },       { "x", false, 1 },
		     { "2*x", true, 2 },     { "ln(x - 9)", false, 2 },
		     { "x^2", true, 2 },     { "x^2 + sin(x)", false, 2 },
		     { "1.5*x^2", true, 3 }, { "0.333333333*3*1.57079632679*x^2", true, 3 } };

	for (unsigned r = 0; r < ROWS; r++) {
		x[r] = 1 + 0.04 * r;
		y[r] = acos(-1) / 2 * x[r] * x[r];
	}
	for (unsigned i = 0; i < sizeof step / sizeof *step; i++) {
		struct expression e;
		struct error err = { 0 };
		assert_true(expression_read(&e, "step", step[i].text, names, 1, &err));
		if (front_add(&f, &e) != step[i].takes || f.n != step[i].n)
			fail_msg("%s: %u formulas, expected %u", step[i].text, f.n, step[i].n);
		for (unsigned k = 1; k < f.n; k++)
			assert_true(f.formula[k].size > f.formula[k - 1].size &&
			            f.formula[k].error < f.formula[k - 1].error);
		expression_free(&e);
	}
	front_shorten(&f);
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	expression_write(&f.formula[f.n - 1].e, names, EXPRESSION_TEXT, out);
	fclose(out);
	assert_string_equal(text, "pi*x^2/2");
	assert_true(f.formula[f.n - 1].error < 1e-14);
	free(text);
	front_free(&f);
}

/* Numbers that no small divisor makes whole become decimals of few places, where the error stays. */
void test_decimals(void **state)
{
	static double x[ROWS], y[ROWS];
	const char *const names[] = { "x" };
	const struct dataset d = { .rows = ROWS, .variables = 1, .x = x, .y = y };
	static const struct {
		double number;
		const char *fitted, *text;
	} trial[] = { { 9.81, "9.810000000000006*x", "9.81*x" },
		      { 0.002907, "0.00290700000000001*x", "0.002907*x" },
		      { 1.2345678912, "1.2345678912*x", "1.2345678912*x" } };

	for (unsigned i = 0; i < sizeof trial / sizeof *trial; i++) {
		struct front f = { .data = &d };
		struct expression e;
		struct error err = { 0 };
		char *text = NULL;
		size_t n;
		for (unsigned r = 0; r < ROWS; r++) {
			x[r] = 1 + 0.04 * r;
			y[r] = trial[i].number * x[r];
		}
		assert_true(expression_read(&e, "fitted", trial[i].fitted, names, 1, &err));
		assert_true(front_add(&f, &e));
		expression_free(&e);
		front_shorten(&f);
		FILE *out = open_memstream(&text, &n);
		expression_write(&f.formula[0].e, names, EXPRESSION_TEXT, out);
		fclose(out);
		assert_string_equal(text, trial[i].text);
		free(text);
		front_free(&f);
	}
}
