/* tests/runtime/t_sampling_options.c - what the options of a chain of samplers may be, the text of an order among them,
 * and the sentence that refuses others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/sampling/chain.h"

enum { VOCAB = 500, CONTEXT = 300 };

static uint32_t draw(uint32_t n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- orders */

static void test_orders(void **state)
{
	static const char *const names[SAMPLERS] = { "penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
		                                     "top_p",     "min_p", "xtc",         "temperature" };
	struct sampler_order o;
	struct error err = { 0 };
	(void)state;

	assert_true(sampler_order_parse(&o, sampler_order_usual, &err));
	assert_int_equal(o.n, SAMPLERS);
	for (int i = 0; i < SAMPLERS; i++)
		assert_int_equal(o.sampler[i], i);
	for (unsigned run = 0; run < 500; run++) { /* any of them in any order */
		char text[200] = "";
		int at[SAMPLERS], n = 1 + (int)draw(SAMPLERS);
		for (int i = 0; i < SAMPLERS; i++)
			at[i] = i;
		for (int i = 0; i < n; i++) {
			int j = i + (int)draw((uint32_t)(SAMPLERS - i)), x = at[i];
			at[i] = at[j];
			at[j] = x;
			strcat(strcat(text, i ? ";" : ""), names[at[i]]);
		}
		assert_true(sampler_order_parse(&o, text, &err));
		assert_int_equal(o.n, n);
		for (int i = 0; i < n; i++)
			assert_int_equal(o.sampler[i], at[i]);
	}
}

static void test_wrong_orders(void **state)
{
#define USUAL "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "samplers: name 1 is empty; names with ; between are expected, such as " USUAL },
		{ "top_k;", "samplers: name 2 is empty; names with ; between are expected, such as " USUAL },
		{ "top_k;;min_p", "samplers: name 2 is empty; names with ; between are expected, such as " USUAL },
		{ "top_k;top-p", "samplers: \"top-p\" is none of " USUAL },
		{ "top_k, top_p", "samplers: \"top_k, top_p\" is none of " USUAL },
		{ "Top_k", "samplers: \"Top_k\" is none of " USUAL },
		{ "top", "samplers: \"top\" is none of " USUAL },
		{ "dry;top_k;dry", "samplers: dry stands there twice" },
		{ "\033[31m", "samplers: \"\\x1b[31m\" is none of " USUAL },
	};
	struct sampler_order o;
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct error err = { 0 };
		assert_false(sampler_order_parse(&o, wrong[i].text, &err));
		assert_string_equal(err.text, wrong[i].why);
		struct chain_options options = chain_usual;
		options.samplers = wrong[i].text;
		err = (struct error){ 0 };
		assert_null(chain_open(&options, VOCAB, CONTEXT, (struct chain_pieces){ 0 }, &err));
		assert_string_equal(err.text, wrong[i].why);
	}
}

/* ---- options */

/* name: what the message begins with; low, high: just outside the range. */
#define REAL(field, low, high) \
	{ \
#field, offsetof(struct chain_options, field), true, low, high \
	}
#define INTEGER(field, low, high) \
	{ \
#field, offsetof(struct chain_options, field), false, low, high \
	}
static const struct field {
	const char *name;
	size_t offset;
	bool real;
	double low, high;
} fields[] = {
	REAL(temperature, -INFINITY, INFINITY),
	REAL(dynatemp_range, -0.1, INFINITY),
	REAL(dynatemp_exponent, -1, INFINITY),
	REAL(top_p, -0.01, 1.01),
	REAL(typical_p, -1, 1.01),
	REAL(min_p, -0.01, 1.5),
	REAL(top_n_sigma, -INFINITY, INFINITY),
	REAL(xtc_probability, -0.1, 1.1),
	REAL(xtc_threshold, -0.1, 1.1),
	REAL(repeat_penalty, 0, INFINITY),
	REAL(frequency_penalty, -INFINITY, INFINITY),
	REAL(presence_penalty, -INFINITY, INFINITY),
	REAL(dry_multiplier, -0.5, INFINITY),
	REAL(dry_base, 0.99, INFINITY),
	REAL(mirostat_tau, -1, INFINITY),
	REAL(mirostat_eta, -1, INFINITY),
	REAL(adaptive_target, -INFINITY, 1.01),
	REAL(adaptive_decay, -0.01, 1),
	INTEGER(repeat_window, -2, 0),
	INTEGER(dry_allowed_length, -1, 0),
	INTEGER(dry_window, -2, 0),
	INTEGER(n_dry_breakers, -1, DRY_BREAKERS + 1),
	INTEGER(mirostat, -1, 3),
	INTEGER(min_keep, -1, 0),
	INTEGER(n_logit_bias, -1, 0),
};

static void refuse(const struct field *f, double value)
{
	struct chain_options o = chain_usual;
	struct error err = { 0 };
	char number[40];

	if (f->real)
		memcpy((char *)&o + f->offset, &(float){ (float)value }, sizeof(float));
	else
		memcpy((char *)&o + f->offset, &(int32_t){ (int32_t)value }, sizeof(int32_t));
	snprintf(number, sizeof number, ": %.9g is not ", (double)(float)value);
	assert_null(chain_open(&o, VOCAB, CONTEXT, (struct chain_pieces){ 0 }, &err));
	if (strncmp(err.text, f->name, strlen(f->name)) != 0 || !strstr(err.text, number) || err.code != ERROR_ARGUMENT)
		fail_msg("%s = %g: %s", f->name, value, err.text);
}

static void test_options(void **state)
{
	struct error err = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		refuse(&fields[i], fields[i].low);
		if (fields[i].real || fields[i].high > 0)
			refuse(&fields[i], fields[i].high);
		if (fields[i].real) {
			refuse(&fields[i], (double)NAN);
			refuse(&fields[i], (double)INFINITY);
			refuse(&fields[i], -(double)INFINITY);
		}
	}
	struct chain *c = chain_open(&chain_usual, VOCAB, CONTEXT, (struct chain_pieces){ 0 }, &err);
	assert_non_null(c);
	chain_close(c);
}

static void refuse_options(const struct chain_options *o, const char *why)
{
	struct error err = { 0 };

	assert_false(chain_options_check(o, VOCAB, &err));
	assert_string_equal(err.text, why);
}

static void test_lists(void **state)
{
	struct chain_options o = chain_usual;
	char longest[DRY_BREAKER_BYTES + 2];
	const char *breakers[] = { "a", longest };
	jit_logit_bias bias[] = { { 0, 1 }, { 499, -INFINITY } };
	struct error err = { 0 };
	(void)state;

	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	o.n_logit_bias = 2;
	refuse_options(&o, "n_logit_bias: there are 2, but logit_bias is NULL");
	o.logit_bias = bias;
	assert_true(chain_options_check(&o, VOCAB, &err));
	bias[1].id = 500;
	refuse_options(&o, "logit_bias: entry 1 is for token 500, which is not in 0..499");
	bias[1] = (jit_logit_bias){ 3, INFINITY };
	refuse_options(&o, "logit_bias: entry 1, for token 3, is inf, neither a finite number nor -inf");
	bias[1].bias = NAN;
	refuse_options(&o, "logit_bias: entry 1, for token 3, is nan, neither a finite number nor -inf");
	o = chain_usual;
	o.n_dry_breakers = 2;
	refuse_options(&o, "n_dry_breakers: there are 2, but dry_breakers is NULL");
	o.dry_breakers = breakers;
	refuse_options(&o, "dry_breakers: text 1 has 65 bytes, not 1..64");
	longest[0] = 0;
	refuse_options(&o, "dry_breakers: text 1 has 0 bytes, not 1..64");
	breakers[0] = NULL;
	refuse_options(&o, "dry_breakers: text 0 is NULL");
	o = chain_usual;
	o.mirostat = 2;
	o.adaptive_target = 0.25f;
	refuse_options(&o, "adaptive_target: 0.25 cannot be aimed at with mirostat: 2, which draws tokens its own way");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_orders), cmocka_unit_test(test_wrong_orders),
		                            cmocka_unit_test(test_options), cmocka_unit_test(test_lists) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
