/* tests/jit/t_functions_wide.c - functions of lanes of 64 bits, and of two arguments (ir_functions_wide.h,
 * ir_functions_narrow.h, ir_functions_integer.h): every kind of target against the interpreter, and the interpreter
 * against the C library's functions of long doubles, and against C's own integers.
 *
 * Arguments are drawn: of every exponent, near the ends of a function's range, near multiples of pi / 2, near 1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_functions_integer.h"
#include "jit/ir/ir_functions_narrow.h"
#include "jit/ir/lanes.h"
#include "tests/jit/every_target.h"
#include "tests/support/shared.h"

/* Two arguments of so many values each. */
enum { VALUES = RANDOM_IR_IN_BYTES / 16, SECOND = 8 * VALUES };
_Static_assert(LDBL_MANT_DIG >= 64, "what the judge has more than a double");

static const struct function {
	const char *name;
	ir_d (*one)(struct ir *b, ir_d x);
	ir_d (*two)(struct ir *b, ir_d x, ir_d y);
	long double (*exact)(long double x);
} functions[] = {
	{ "exp", ir_fn_exp_f64, NULL, expl },    { "log", ir_fn_log_f64, NULL, logl },
	{ "sin", ir_fn_sin_f64, NULL, sinl },    { "cos", ir_fn_cos_f64, NULL, cosl },
	{ "tanh", ir_fn_tanh_f64, NULL, tanhl }, { "erf", ir_fn_erf_f64, NULL, erfl },
	{ "pow", NULL, ir_fn_pow_f64, NULL },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void build(struct ir *b, const void *user)
{
	const struct function *f = user;
	const int32_t V = 8 * (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_s at = ir_smuli(b, ir_loop(b, ir_sconst(b, SECOND / V)), V);
	ir_a from = ir_aadd(b, in, at), to = ir_aadd(b, out, at);
	ir_d x = ir_dload(b, from, 0, 0), y = ir_dload(b, from, SECOND, 0);

	ir_dstore(b, to, f->one ? f->one(b, x) : f->two(b, x, y), 0, 0);
	ir_endloop(b);
}

static void build_narrow_pow(struct ir *b, const void *user)
{
	const int32_t V = 4 * (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_s at = ir_smuli(b, ir_loop(b, ir_sconst(b, SECOND / V)), V);
	ir_a from = ir_aadd(b, in, at), to = ir_aadd(b, out, at);
	ir_f x = ir_fload(b, from, 0, 0), y = ir_fload(b, from, SECOND, 0);

	(void)user;
	ir_fstore(b, to, ir_fn_pow_f32(b, x, y), 0, 0);
	ir_endloop(b);
}

/* --- arguments */

static uint64_t state = 1;
static uint64_t draw(void)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;

	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double unit(void) { return (double)(draw() >> 11) * 0x1p-53; }

static const double ends[] = {
	0.0,
	-0.0,
	1.0,
	-1.0,
	0.5,
	-0.5,
	2.0,
	-2.0,
	3.0,
	-3.0,
	INFINITY,
	-INFINITY,
	NAN,
	0x1p-1074,
	0x1p-1022,
	0x1.fffffffffffffp-1023,
	DBL_MAX,
	-DBL_MAX,
	709.782712893384,
	-745.1332191019411,
	709.79,
	-745.14,
	-708.4,
	1e300,
	0x1.6a09e667f3bcdp0,
	0x1.6a09e667f3bcdp-1,
	22.0,
	6.0,
	5.9,
	0x1p30,
	0x1p53,
	0x1.921fb54442d18p0
};
enum { ENDS = sizeof ends / sizeof *ends };

static double argument(void)
{
	const uint64_t bits = draw();

	switch (draw() % 8) {
	case 0: return ends[bits % ENDS];
	case 1: return bits_f64(f64_bits(ends[bits % ENDS]) + (uint64_t)((int64_t)(draw() % 9) - 4));
	case 2: return (unit() - 0.5) * 12;
	case 3: return (unit() - 0.5) * 1500;
	case 4: return 1 + (unit() - 0.5) * ldexp(1, -(int)(bits % 40));
	case 5: return (double)((long double)(int64_t)(bits >> (bits & 63)) * 1.57079632679489661923L);
	default: return bits_f64(bits);
	}
}

/* Powers that are whole, and such that the result is within range, too. */
static double exponent_for(double x)
{
	const double log = fabs(x) > 0 && !isinf(x) ? fabs(logb(x)) + 1 : 1;

	switch (draw() % 4) {
	case 0: return argument();
	case 1: return (double)((int64_t)(draw() % 65) - 32);
	case 2: return (unit() - 0.5) * 2200 / log;
	default: return trunc((unit() - 0.5) * 2200 / log);
	}
}

static void fill(double in[2 * VALUES])
{
	for (unsigned k = 0; k < VALUES; k++) {
		in[k] = argument();
		in[VALUES + k] = exponent_for(in[k]);
	}
}

/* --- against the C library */

static double units_off(double y, long double exact)
{
	int exponent;

	if (isnan(y) || isnan(exact))
		return isnan(y) && isnan(exact) ? 0 : INFINITY;
	if (isinf(y) ||
	    isinf((double)exact)) /* what rounds to infinity may be the greatest number, too, within two units */
		return y == (double)exact ? 0 : fabsl(exact) > DBL_MAX && fabs(y) == DBL_MAX ? 1 : INFINITY;
	if ((long double)y == exact)
		return !signbit(y) == !signbit(exact) ? 0 : INFINITY;
	frexpl(exact, &exponent);
	return (double)(fabsl((long double)y - exact) / ldexpl(1, exponent < -1021 ? -1074 : exponent - 53));
}

static void run_function(const struct function *f, const double in[2 * VALUES], struct random_ir_buffers *x)
{
	struct ir b;

	memcpy(x->in, in, sizeof x->in);
	ir_init(&b, 32);
	build(&b, f);
	assert_true(ir_verify(&b, NULL));
	ir_interp(&b, x->arg, 0, 1);
	ir_free(&b);
}

static void test_errors(void **unused)
{
	const unsigned rounds = test_quick() ? 40 : 4000;

	for (unsigned f = 0; f < FUNCTIONS; f++) {
		struct random_ir_buffers *x = random_ir_buffers_new(1);
		double worst = 0, in[2 * VALUES], at = 0;
		for (unsigned round = 0; round < rounds; round++) {
			fill(in);
			run_function(&functions[f], in, x);
			for (unsigned k = 0; k < VALUES; k++) {
				double y;
				memcpy(&y, x->out + 8 * k, 8);
				const long double exact =
					functions[f].one ? functions[f].exact((long double)in[k])
							 : powl((long double)in[k], (long double)in[VALUES + k]);
				const double error = units_off(y, exact);
				if (!(error <= 2))
					fail_msg("%s(%a, %a) is %a, expected %La: %f units", functions[f].name, in[k],
					         in[VALUES + k], y, exact, error);
				if (error > worst) {
					worst = error;
					at = in[k];
				}
			}
		}
		printf("# %s of doubles: at most %.3f units off, of %a\n", functions[f].name, worst, at);
		free(x);
	}
}

/* --- every target */

static void test_targets(void **unused)
{
	double in[2 * VALUES];

	for (unsigned f = 0; f < FUNCTIONS; f++) {
		fill(in);
		every_target_check(build, &functions[f], in, sizeof in, 1, EVERY_EXACT, functions[f].name);
	}
}

static void fill_narrow(float in[4 * VALUES])
{
	for (unsigned k = 0; k < 2 * VALUES; k++) {
		const double x = argument();
		in[k] = draw() & 1 ? (float)x : bits_f32((uint32_t)draw());
		in[2 * VALUES + k] = (float)exponent_for((double)in[k]) / (draw() & 1 ? 8.0f : 1.0f);
	}
}

static void test_narrow_pow(void **unused)
{
	float in[4 * VALUES];
	double worst = 0;

	fill_narrow(in);
	every_target_check(build_narrow_pow, NULL, in, sizeof in, 1, EVERY_EXACT, "pow of floats");
	for (unsigned round = 0; round < (test_quick() ? 40 : 4000); round++) {
		struct random_ir_buffers *x = random_ir_buffers_new(1);
		struct ir b;
		fill_narrow(in);
		memcpy(x->in, in, sizeof x->in);
		ir_init(&b, 16);
		build_narrow_pow(&b, NULL);
		ir_interp(&b, x->arg, 0, 1);
		for (unsigned k = 0; k < 2 * VALUES; k++) {
			float y;
			int exponent;
			memcpy(&y, x->out + 4 * k, 4);
			const double exact = pow((double)in[k], (double)in[2 * VALUES + k]);
			frexp(exact, &exponent);
			const double error =
				isnan(exact) || isinf((float)exact) || exact == 0
					? ((isnan(y) && isnan(exact)) ||
			                                   (y == (float)exact && !signbit(y) == !signbit(exact))
			                           ? 0
			                           : INFINITY)
					: fabs((double)y - exact) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
			if (!(error <= 1))
				fail_msg("pow(%a, %a) is %a, expected %a", (double)in[k], (double)in[2 * VALUES + k],
				         (double)y, exact);
			worst = error > worst ? error : worst;
		}
		ir_free(&b);
		free(x);
	}
	printf("# pow of floats: at most %.6f units off\n", worst);
}

/* --- pow as Annex F has it: what is not a number of the usual kind, in both arguments */

static void test_pow_ends(void **unused)
{
	static const double value[] = {
		0.0,
		-0.0,
		1.0,
		-1.0,
		0.5,
		-0.5,
		2.0,
		-2.0,
		3.0,
		-3.0,
		4.0,
		2.5,
		-2.5,
		INFINITY,
		-INFINITY,
		NAN,
		0x1p-1074,
		-0x1p-1074,
		DBL_MAX,
		-DBL_MAX,
		0x1p53,
		0x1p53 + 2,
		0x1.fffffffffffffp52,
		-0x1.fffffffffffffp52
	};
	enum { N = sizeof value / sizeof *value };
	struct random_ir_buffers *x = random_ir_buffers_new(1);
	double in[2 * VALUES];

	for (unsigned from = 0; from < N * N; from += VALUES) {
		for (unsigned k = 0; k < VALUES; k++) {
			in[k] = value[(from + k) / N % N];
			in[VALUES + k] = value[(from + k) % N];
		}
		run_function(&functions[FUNCTIONS - 1], in, x);
		for (unsigned k = 0; k < VALUES; k++) {
			double y;
			memcpy(&y, x->out + 8 * k, 8);
			const double exact = pow(in[k], in[VALUES + k]);
			if (!(units_off(y, (long double)exact) <= 2) || (!isnan(y) && !signbit(y) != !signbit(exact)))
				fail_msg("pow(%a, %a) is %a, expected %a", in[k], in[VALUES + k], y, exact);
		}
	}
	free(x);
}

/* --- integers */

static uint64_t div_u(uint64_t x, uint64_t y) { return y ? x / y : UINT64_MAX; }
static uint64_t rem_u(uint64_t x, uint64_t y) { return y ? x % y : x; }
static uint64_t div_i(uint64_t x, uint64_t y)
{
	return y == 0 ? UINT64_MAX : y == UINT64_MAX ? 0 - x : (uint64_t)((int64_t)x / (int64_t)y);
}
static uint64_t rem_i(uint64_t x, uint64_t y)
{
	return y == 0 ? x : y == UINT64_MAX ? 0 : (uint64_t)((int64_t)x % (int64_t)y);
}
__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;
static uint64_t high_u(uint64_t x, uint64_t y) { return (uint64_t)((wide_unsigned)x * y >> 64); }
static uint64_t high_i(uint64_t x, uint64_t y)
{
	return (uint64_t)((wide_unsigned)((wide_signed)(int64_t)x * (int64_t)y) >> 64);
}
static uint64_t ones(uint64_t x, uint64_t y) { return (uint64_t)__builtin_popcountll(x) + 0 * y; }
static uint64_t zeros(uint64_t x, uint64_t y) { return (x ? (uint64_t)__builtin_clzll(x) : 64) + 0 * y; }

static ir_l build_ones(struct ir *b, ir_l x, ir_l y) { return (void)y, ir_fn_ones_i64(b, x); }
static ir_l build_zeros(struct ir *b, ir_l x, ir_l y) { return (void)y, ir_fn_leading_zeros_i64(b, x); }

static const struct integer {
	const char *name;
	ir_l (*build)(struct ir *b, ir_l x, ir_l y);
	uint64_t (*exact)(uint64_t x, uint64_t y);
} integers[] = {
	{ "div_u64", ir_fn_div_u64, div_u },
	{ "rem_u64", ir_fn_rem_u64, rem_u },
	{ "div_i64", ir_fn_div_i64, div_i },
	{ "rem_i64", ir_fn_rem_i64, rem_i },
	{ "mul_high_u64", ir_fn_mul_high_u64, high_u },
	{ "mul_high_i64", ir_fn_mul_high_i64, high_i },
	{ "ones_i64", build_ones, ones },
	{ "leading_zeros_i64", build_zeros, zeros },
};
enum { INTEGERS = sizeof integers / sizeof *integers };

static void build_integer(struct ir *b, const void *user)
{
	const struct integer *f = user;
	const int32_t V = 8 * (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_s at = ir_smuli(b, ir_loop(b, ir_sconst(b, SECOND / V)), V);
	ir_a from = ir_aadd(b, in, at), to = ir_aadd(b, out, at);
	ir_l x = ir_lload(b, from, 0, 0), y = ir_lload(b, from, SECOND, 0);

	ir_lstore(b, to, f->build(b, x, y), 0, 0);
	ir_endloop(b);
}

/* Of every size, at the ends of ranges, and products with a little more or less, whose quotients are near a step. */
static void fill_integers(uint64_t in[2 * VALUES])
{
	for (unsigned k = 0; k < VALUES; k++) {
		uint64_t x = draw() >> (draw() & 63), y = draw() >> (draw() & 63);
		if (draw() & 1)
			x = UINT64_C(1) << (draw() & 63);
		if (!(draw() & 3))
			y = (UINT64_C(1) << (draw() & 63)) + draw() % 5 - 2;
		if (!(draw() & 3))
			x = 0 - x;
		if (!(draw() & 3))
			y = 0 - y;
		if (!(draw() & 3))
			x = y * (draw() >> (draw() & 63)) + draw() % 3 - 1;
		in[k] = k == 0 ? UINT64_C(1) << 63 : k < 4 ? UINT64_MAX : x;
		in[VALUES + k] = k == 0   ? UINT64_MAX
		                 : k == 1 ? 0
		                 : k == 2 ? UINT64_C(1) << 63
		                 : k == 3 ? UINT64_MAX - 1
		                          : y;
	}
}

static void test_integers(void **unused)
{
	uint64_t in[2 * VALUES];

	for (unsigned f = 0; f < INTEGERS; f++) {
		fill_integers(in);
		every_target_check(build_integer, &integers[f], in, sizeof in, 1, EVERY_EXACT, integers[f].name);
		for (unsigned round = 0; round < (test_quick() ? 100 : 4000); round++) {
			struct random_ir_buffers *x = random_ir_buffers_new(1);
			struct ir b;
			fill_integers(in);
			memcpy(x->in, in, sizeof x->in);
			ir_init(&b, 8);
			build_integer(&b, &integers[f]);
			ir_interp(&b, x->arg, 0, 1);
			for (unsigned k = 0; k < VALUES; k++) {
				uint64_t y;
				memcpy(&y, x->out + 8 * k, 8);
				const uint64_t exact = integers[f].exact(in[k], in[VALUES + k]);
				if (y != exact)
					fail_msg("%s(%llx, %llx) is %llx, expected %llx", integers[f].name,
					         (unsigned long long)in[k], (unsigned long long)in[VALUES + k],
					         (unsigned long long)y, (unsigned long long)exact);
			}
			ir_free(&b);
			free(x);
		}
	}
}

static int open_all(void **unused)
{
	every_target_open();
	return 0;
}

static int close_all(void **unused)
{
	every_target_close();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),   cmocka_unit_test(test_pow_ends), cmocka_unit_test(test_narrow_pow),
		cmocka_unit_test(test_integers), cmocka_unit_test(test_targets),
	};

	return cmocka_run_group_tests_name("t_functions_wide", tests, open_all, close_all);
}
