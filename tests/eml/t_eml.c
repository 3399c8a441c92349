/* tests/eml/t_eml.c - trees of eml(x, y): counts by size beside an enumeration that shares nothing with it, hashes, and
 * the search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eml/search.h"
#include "tests/eml/eml_tests.h"
#include "tests/support/shared.h"

static struct levels *levels_up_to(unsigned variables, unsigned size, bool extended, const char *device)
{
	jit_error err = { 0 };
	struct levels *l = levels_open(
		&(struct levels_options){
			.variables = variables, .extended = extended, .device = device, .cache = "", .threads = 2 },
		&err);

	if (!l)
		fail_msg("%s", err.message);
	while (l->size < size)
		if (!levels_next(l, &err))
			fail_msg("size %u: %s", l->size, err.message);
	return l;
}

/* ---- counts: own complex numbers of the C library, and all values compared with all */

enum { PLAIN_MAX = 2500 };
struct plain {
	double complex at[2];
	unsigned size;
};

static bool plain_make(const struct plain *a, const struct plain *b, struct plain *out)
{
	for (unsigned p = 0; p < 2; p++) {
		double complex x = a->at[p], y = b->at[p];
		if (fabs(creal(x)) > 12 || cabs(y) < 1e-11)
			return false;
		if (fabs(cimag(y)) < 1e-12 * fmax(1, cabs(y)))
			y = creal(y);
		/* + 0i, where conversion left it, is the side on which the angle of negative numbers is pi */
		out->at[p] = cexp(x) - (cimag(y) == 0 && creal(y) < 0 ? log(-creal(y)) + acos(-1) * I : clog(y));
	}
	return true;
}

static bool plain_same(const struct plain *a, const struct plain *b)
{
	for (unsigned p = 0; p < 2; p++)
		if (cabs(a->at[p] - b->at[p]) > 1e-10 * fmax(1e-2, cabs(a->at[p])))
			return false;
	return true;
}

static unsigned plain_count(unsigned variables, unsigned size, unsigned *of_size)
{
	static struct plain value[PLAIN_MAX];
	unsigned n = 0;

	memset(of_size, 0, (size + 1) * sizeof *of_size);
	value[n++] = (struct plain){ { 1, 1 }, 1 };
	for (unsigned p = 0; variables && p < 2; p++) {
		double at[2];
		levels_point(p, 0, at);
		value[n].at[p] = at[0];
		value[n].size = 1;
	}
	n += variables;
	of_size[1] = n;
	for (unsigned k = 3; k <= size; k += 2) {
		const unsigned before = n;
		for (unsigned i = 0; i < before; i++)
			for (unsigned j = 0; j < before; j++) {
				struct plain v = { .size = k };
				bool known =
					value[i].size + value[j].size + 1 != k || !plain_make(&value[i], &value[j], &v);
				for (unsigned m = 0; !known && m < n; m++)
					known = plain_same(&value[m], &v);
				if (!known) {
					assert_true(n < PLAIN_MAX);
					value[n++] = v;
					of_size[k]++;
				}
			}
	}
	return n;
}

static void test_plain_counts(void **state)
{
	for (unsigned variables = 0; variables < 2; variables++) {
		const unsigned size = variables ? (test_quick() ? 9 : 11) : 19;
		unsigned of_size[32];
		plain_count(variables, size, of_size);
		struct levels *l = levels_up_to(variables, size, false, "cpu");
		for (unsigned k = 1; k <= size; k += 2)
			if (levels_of(l, k)->count != of_size[k])
				fail_msg("%u variables, size %u: %u values, expected %u", variables, k,
				         levels_of(l, k)->count, of_size[k]);
		levels_close(l);
	}
}

/* An enumeration in C++ with keys of 32 bits, which was run once. */
static void test_known_counts(void **state)
{
	static const struct {
		unsigned variables, n, count[14];
	} known[] = {
		{ 0, 14, { 1, 1, 2, 4, 7, 18, 49, 132, 372, 1062, 3090, 9110, 27164, 81711 } },
		{ 1, 10, { 2, 4, 16, 70, 350, 1868, 10483, 60758, 362185, 2202915 } },
		{ 2, 7, { 3, 9, 54, 351, 2628, 20844, 173666 } },
	};

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
		const unsigned n = test_quick() ? (i == 0 ? 11 : i == 1 ? 8 : 6) : known[i].n;
		struct levels *l = levels_up_to(known[i].variables, 2 * n - 1, false, "cpu");
		for (unsigned k = 0; k < n; k++) {
			const double got = l->level[k].count, want = known[i].count[k];
			if (fabs(got - want) > 0.01 * want)
				fail_msg("%u variables, size %u: %.0f values, expected %.0f", known[i].variables,
				         2 * k + 1, got, want);
		}
		levels_close(l);
	}
}

/* Devices and threads do not show, to the bit. */
static void test_devices(void **state)
{
	static const char *const device[] = { "ref", "sim:gfx1100" };
	struct levels *cpu = levels_up_to(1, 7, false, "cpu");
	jit_error err = { 0 };

	assert_true(levels_operands(cpu, levels_of(cpu, 7), &err));
	for (unsigned d = 0; d < 2; d++) {
		struct levels *l = levels_up_to(1, 7, false, device[d]);
		assert_true(levels_operands(l, levels_of(l, 7), &err));
		for (unsigned k = 1; k <= 7; k += 2) {
			const struct level *a = levels_of(cpu, k), *b = levels_of(l, k);
			const size_t bytes = (size_t)a->blocks * LEVELS_WIDTH * 2 * LEVELS_POINTS * sizeof(double);
			assert_int_equal(a->count, b->count);
			assert_memory_equal(a->left, b->left, a->count * sizeof *a->left);
			assert_memory_equal(a->right, b->right, a->count * sizeof *a->right);
			for (size_t i = 0; i < bytes / sizeof(double); i++) {
				/* which NaN a NaN is, is the machine's own affair */
				const double x = a->exp_value[i], y = b->exp_value[i];
				const double u = a->ln_value[i], v = b->ln_value[i];
				assert_true((isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0);
				assert_true((isnan(u) && isnan(v)) || memcmp(&u, &v, sizeof u) == 0);
			}
		}
		levels_close(l);
	}
	levels_close(cpu);
}

/* ---- hashes */

static void test_hash(void **state)
{
	double v[2 * LEVELS_POINTS] = { 1, 0, -2.5, 3, 0, -1e-3 }, w[2 * LEVELS_POINTS];
	uint64_t near;
	const uint64_t hash = levels_hash(v, &near);

	assert_true(hash != 0);
	for (unsigned k = 0; k < 2 * LEVELS_POINTS; k++) {
		memcpy(w, v, sizeof v);
		w[k] += 1e-15; /* what rounding leaves */
		assert_true(levels_hash(w, NULL) == hash);
		w[k] = v[k] + 1e-6;
		assert_true(levels_hash(w, NULL) != hash);
		w[k] = NAN;
		assert_true(levels_hash(w, NULL) == 0);
	}
	/* 1 + (n + 1/2) 2^-32 lies in the middle of two numbers of the grid: rounding takes either */
	v[0] = 1 + ldexp(3.5, -32) - 1e-13;
	const uint64_t below = levels_hash(v, &near);
	v[0] = 1 + ldexp(3.5, -32) + 1e-13;
	assert_true(near != 0 && levels_hash(v, NULL) == near && near != below);
	v[0] = 1 + ldexp(3.1, -32);
	levels_hash(v, &near);
	assert_true(near == 0);
}

static void test_seen(void **state)
{
	struct seen s = { .slots = 0 };

	assert_true(seen_find(&s, 7) == SEEN_NONE);
	for (uint32_t i = 1; i <= 50000; i++) {
		assert_true(seen_reserve(&s, s.n + 1));
		assert_true(seen_put(&s, i * UINT64_C(0x9e3779b97f4a7c15), i));
		assert_false(seen_put(&s, i * UINT64_C(0x9e3779b97f4a7c15), 1));
	}
	for (uint32_t i = 1; i <= 60000; i++)
		assert_int_equal(seen_find(&s, i * UINT64_C(0x9e3779b97f4a7c15)), i <= 50000 ? i : SEEN_NONE);
	seen_free(&s);
}

/* ---- the search: what an enumeration of that size has, it finds with smaller levels */

static void test_search(void **state)
{
	jit_error err = { 0 };
	struct levels *large = levels_up_to(1, test_quick() ? 13 : 15, false, "cpu"),
		      *small = levels_up_to(1, 7, false, "cpu");
	const struct level *v = levels_of(large, large->size);
	const unsigned step = v->count / (test_quick() ? 8 : 150);
	unsigned tried = 0;

	for (uint32_t i = 0; i < v->count; i += step) {
		struct expression tree = { .n = 0 }, found = { .n = 0 };
		struct search_report r;
		double target[2 * LEVELS_POINTS], high = 0;
		search_value_tree(large, v->first + i, &tree);
		assert_int_equal(expression_size(&tree, expression_root(&tree)), large->size);
		for (unsigned p = 0; p < LEVELS_POINTS; p++) {
			double at[2];
			levels_point(p, 0, at);
			const double complex x[2] = { at[0], 0 }, z = expression_value(&tree, x);
			target[2 * p] = creal(z);
			target[2 * p + 1] = cimag(z);
			high = fmax(high, cabs(z));
		}
		if (high > 1000) { /* too few digits are left of what such a value is made of */
			expression_free(&tree);
			continue;
		}
		tried++;
		if (!search_tree(small, target, large->size, &found, &r, &err))
			fail_msg("%s", err.message);
		if (r.size != large->size)
			fail_msg("value %u of size %u: found with size %u", i, large->size, r.size);
		expression_free(&found);
		/* no smaller one has it */
		assert_true(search_tree(small, target, large->size - 2, &found, &r, &err));
		assert_int_equal(r.size, 0);
		expression_free(&tree);
	}
	assert_true(tried > (test_quick() ? 6u : 100u));
	levels_close(large);
	levels_close(small);
}

/* -x and 1/x are smaller with extended reals (15 instead of 17). */
static void test_extended(void **state)
{
	for (unsigned extended = 0; extended < 2; extended++) {
		struct levels *l = levels_up_to(1, 13, extended, "cpu");
		for (unsigned which = 0; which < 2; which++) {
			struct expression found;
			struct search_report r;
			jit_error err = { 0 };
			double target[2 * LEVELS_POINTS] = { 0 };
			for (unsigned p = 0; p < LEVELS_POINTS; p++) {
				double at[2];
				levels_point(p, 0, at);
				target[2 * p] = which ? 1 / at[0] : -at[0];
			}
			assert_true(search_tree(l, target, 19, &found, &r, &err));
			assert_int_equal(r.size, extended ? 15 : 17);
			expression_free(&found);
		}
		levels_close(l);
	}
}

/* ---- expressions */

static const char *const names[] = { "x", "y", "q_1" };

static char *written(const struct expression *e, enum expression_form form)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	expression_write(e, names, form, f);
	fclose(f);
	return text;
}

static void test_forms(void **state)
{
	static const struct {
		const char *in, *text, *c, *latex;
	} known[] = {
		{ "x", "x", "x", "x" },
		{ "-x^2", "-x^2", "-pow(x, 2.0)", "-x^{2}" },
		{ "(-x)^2", "(-x)^2", "pow(-x, 2.0)", "\\left(-x\\right)^{2}" },
		{ "2^3^x", "2^3^x", "pow(2.0, pow(3.0, x))", "2^{3^{x}}" },
		{ "x-(y-q_1)", "x - (y - q_1)", "x - (y - q_1)", "x - \\left(y - \\mathrm{q\\_1}\\right)" },
		{ "x/(y/2)*3", "x/(y/2)*3", "x/(y/2.0)*3.0", "\\frac{x}{\\frac{y}{2}} \\cdot 3" },
		{ "x/(y*2)", "x/(y*2)", "x/(y*2.0)", "\\frac{x}{y \\cdot 2}" },
		{ "log(x)+sqrt(y)", "ln(x) + sqrt(y)", "log(x) + sqrt(y)", "\\ln\\left(x\\right) + \\sqrt{y}" },
		{ "exp(-x)*1.5e-7", "exp(-x)*1.5e-07", "exp(-x)*1.5e-07", "e^{-x} \\cdot 1.5 \\cdot 10^{-7}" },
		{ "eml(1,x)", "eml(1, x)", "(exp(1.0) - log(x))", "\\operatorname{eml}\\left(1, x\\right)" },
		{ "(x+1)*(x-1)^0.5", "(x + 1)*(x - 1)^0.5", "(x + 1.0)*pow(x - 1.0, 0.5)",
		  "\\left(x + 1\\right) \\cdot \\left(x - 1\\right)^{0.5}" },
		{ "asin(pi*x)", "asin(pi*x)", "asin(3.141592653589793*x)", "\\arcsin\\left(\\pi \\cdot x\\right)" },
	};
	struct error err = { 0 };

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
		struct expression e, again;
		if (!expression_read(&e, "it", known[i].in, names, 3, &err))
			fail_msg("%s", err.text);
		char *form[3];
		for (unsigned k = 0; k < 3; k++)
			form[k] = written(&e, (enum expression_form)k);
		assert_string_equal(form[EXPRESSION_TEXT], known[i].text);
		assert_string_equal(form[EXPRESSION_C], known[i].c);
		assert_string_equal(form[EXPRESSION_LATEX], known[i].latex);
		assert_true(expression_read(&again, "it", form[EXPRESSION_TEXT], names, 3, &err));
		assert_true(expression_equal(&e, expression_root(&e), &again, expression_root(&again)));
		for (unsigned k = 0; k < 3; k++)
			free(form[k]);
		expression_free(&e);
		expression_free(&again);
	}
}

static void test_refusals(void **state)
{
	static const char *const bad[][2] = {
		{ "", "column 1: the end: expected a number, a name or (" },
		{ "x +", "column 4: the end: expected a number, a name or (" },
		{ "x y", "column 3: y: expected an operator or the end" },
		{ "z", "column 1: z: expected a variable, a constant or a function that is known" },
		{ "sin x", "column 5: x: expected ( behind a function's name" },
		{ "eml(1)", "column 6: ): expected a comma, and the second operand" },
		{ "(x", "column 3: the end: expected an operator or )" },
		{ "1e999", "column 1: 1e999: expected a number below 1.8e308" },
		{ "x\x01", "column 2: \\x01: expected an operator or the end" },
	};
	char deep[5000];
	struct expression e;

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = { 0 };
		assert_false(expression_read(&e, "it", bad[i][0], names, 3, &err));
		if (strcmp(err.text + 4, bad[i][1]) != 0)
			fail_msg("said: %s; expected: it: %s", err.text, bad[i][1]);
	}
	memset(deep, '(', 1000);
	deep[1000] = 0;
	struct error err = { 0 };
	assert_false(expression_read(&e, "it", deep, names, 3, &err));
	assert_non_null(strstr(err.text, "at most 200 parts inside of one another"));
	for (unsigned i = 0; i < 4998; i += 2)
		memcpy(deep + i, "1+", 2);
	deep[4997] = 0;
	err = (struct error){ 0 };
	assert_false(expression_read(&e, "it", deep, names, 3, &err));
	assert_non_null(strstr(err.text, "more than 800 operators inside of one another"));
}

/* Beside the C library's functions of real numbers. */
static void test_values(void **state)
{
	static const char *const text[] = {
		"x + y*2 - x/y",
		"exp(x) - ln(y)",
		"eml(x, y)",
		"sqrt(x*y)",
		"sin(x)*cos(y)",
		"tan(x) + tanh(y)",
		"asin(x/9) + acos(y/9) + atan(x)",
		"sinh(x) - cosh(y)",
		"x^y",
		"x^-3",
		"pi*e^x",
		"-x"
	};
	const double x = 1.3, y = 2.4;
	const double want[] = {
		x + y * 2 - x / y,
		exp(x) - log(y),
		exp(x) - log(y),
		sqrt(x * y),
		sin(x) * cos(y),
		tan(x) + tanh(y),
		asin(x / 9) + acos(y / 9) + atan(x),
		sinh(x) - cosh(y),
		pow(x, y),
		pow(x, -3),
		acos(-1) * exp(x),
		-x
	};

	for (unsigned i = 0; i < sizeof text / sizeof *text; i++) {
		struct expression e;
		struct error err = { 0 };
		assert_true(expression_read(&e, "it", text[i], names, 2, &err));
		const double complex v = expression_value(&e, (double complex[]){ x, y });
		if (!(fabs(creal(v) - want[i]) < 1e-13 * fmax(1, fabs(want[i])) && fabs(cimag(v)) < 1e-13))
			fail_msg("%s is %.17g + %.17g i, expected %.17g", text[i], creal(v), cimag(v), want[i]);
		expression_free(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_counts), cmocka_unit_test(test_known_counts),
		cmocka_unit_test(test_devices),      cmocka_unit_test(test_hash),
		cmocka_unit_test(test_seen),         cmocka_unit_test(test_search),
		cmocka_unit_test(test_extended),     cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refusals),     cmocka_unit_test(test_values),
		cmocka_unit_test(test_tidy),         cmocka_unit_test(test_constants),
		cmocka_unit_test(test_front),        cmocka_unit_test(test_decimals),
		cmocka_unit_test(test_formulas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
