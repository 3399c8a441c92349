/* tests/jit/t_functions.c - exp, log, tanh, sin, cos and erf of floats (ir_functions_narrow.h): every kind of target
 * against the interpreter, and the interpreter against the C library's functions of doubles, whose error is far below a
 * float's unit, and against the widest code of AVX2 and AVX-512 that runs here: at the full size of all floats, else of
 * one in 17 or 4099 and of the ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/interp.h"
#include "jit/ir/ir_functions_narrow.h"
#include "jit/ir/lanes.h"
#include "jit/store/execmem.h"
#include "jit/target.h"
#include "tests/jit/every_target.h"
#include "tests/support/shared.h"

enum { ARGUMENTS = RANDOM_IR_IN_BYTES / 4 };

static const struct function {
	const char *name;
	ir_f (*build)(struct ir *b, ir_f x);
	double (*exact)(double x);
} functions[] = { { "exp", ir_fn_exp_f32, exp }, { "log", ir_fn_log_f32, log }, { "tanh", ir_fn_tanh_f32, tanh },
	          { "sin", ir_fn_sin_f32, sin }, { "cos", ir_fn_cos_f32, cos }, { "erf", ir_fn_erf_f32, erf } };
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void build(struct ir *b, const void *user)
{
	const struct function *f = user;
	const int32_t V = 4 * (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_s at = ir_smuli(b, ir_loop(b, ir_sconst(b, RANDOM_IR_IN_BYTES / V)), V);

	ir_fstore(b, ir_aadd(b, out, at), f->build(b, ir_fload(b, ir_aadd(b, in, at), 0, 0)), 0, 0);
	ir_endloop(b);
}

/* From the ends of a function's range, around 0 and 1, and all over. */
static uint32_t argument(unsigned k)
{
	static const uint32_t ends[] = { 0x00000000, 0x3f800000, 0x7f800000, 0x42b17218, 0xc2aeac50, 0xc2cff1b5,
		                         0x41a00000, 0x39800000, 0x00800000, 0x3f3504f3, 0x7fc12345, 0x3fb504f3 };

	return k < 512 ? (ends[k / 32 % 12] + k % 16 - 8) ^ (k & 16 ? 0x80000000 : 0) : k * 2654435761u;
}

static void test_targets(void **unused)
{
	uint32_t in[ARGUMENTS];

	for (unsigned k = 0; k < ARGUMENTS; k++)
		in[k] = argument(k);
	for (unsigned f = 0; f < FUNCTIONS; f++)
		every_target_check(build, &functions[f], in, sizeof in, 1, EVERY_EXACT, functions[f].name);
}

/* How many units of a float's last place y is away from what it should be. */
static double units(float y, double exact)
{
	int exponent;

	if (isnan(y) || isnan(exact))
		return isnan(y) && isnan(exact) ? 0 : INFINITY;
	if (isinf(y) || isinf((float)exact))
		return y == (float)exact ? 0 : INFINITY;
	if ((double)y == exact)
		return 0;
	frexp(exact, &exponent);
	return fabs((double)y - exact) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

/* Machine code of this CPU: of AVX2, and of AVX-512 where it has that. */
typedef void (*native_fn)(const uint64_t *arg, int64_t begin, int64_t end);
enum { NATIVES = 2 };
struct native {
	void *code;
	size_t bytes;
	native_fn run;
};

static void make_natives(struct native *n, const struct function *f)
{
	static const enum target_id ids[NATIVES] = { TARGET_AVX2, TARGET_AVX512 };
	const struct target_cpu cpu = target_this_cpu();
	struct error err = { 0 };

	for (unsigned k = 0; k < NATIVES; k++) {
		const struct target *t = &target_table[ids[k]];
		struct object o;
		struct ir b;
		n[k] = (struct native){ 0 };
		if (!target_runs(&cpu, t, NULL))
			continue;
		ir_init(&b, t->lanes);
		build(&b, f);
		if (!compile_ir(&o, &b, t, NULL, NULL, &err) || !(n[k].code = execmem_map(o.code, o.code_bytes, &err)))
			fail_msg("%s", err.text);
		n[k].bytes = o.code_bytes;
		memcpy(&n[k].run, &n[k].code, sizeof n[k].run);
		object_free(&o);
		ir_free(&b);
	}
}

static void free_natives(struct native *n)
{
	for (unsigned k = 0; k < NATIVES; k++)
		if (n[k].code)
			execmem_unmap(n[k].code, n[k].bytes);
}

/* With the arguments of x and what the interpreter made of them. */
static void check_natives(const struct native *n, struct random_ir_buffers *x, const struct function *f)
{
	uint32_t want[ARGUMENTS], got;

	memcpy(want, x->out, sizeof want);
	for (unsigned k = 0; k < NATIVES; k++) {
		if (!n[k].code)
			continue;
		memset(x->out, 0x55, sizeof want);
		n[k].run(x->arg, 0, 1);
		if (!memcmp(want, x->out, sizeof want))
			continue;
		for (unsigned i = 0; i < ARGUMENTS; i++) {
			float a;
			memcpy(&a, x->in + 4 * i, 4);
			memcpy(&got, x->out + 4 * i, 4);
			if (got != want[i])
				fail_msg("%s of %s, %a: %08x, expected %08x", f->name, k ? "AVX-512" : "AVX2",
				         (double)a, got, want[i]);
		}
	}
}

static double worst_of(const struct interp_program *p, void *frame, struct random_ir_buffers *x,
                       const struct function *f)
{
	double worst = 0;

	assert_int_equal(interp_run(p, frame, x->arg, 0, 1), INTERP_DONE);
	for (unsigned k = 0; k < ARGUMENTS; k++) {
		float a, y;
		memcpy(&a, x->in + 4 * k, 4);
		memcpy(&y, x->out + 4 * k, 4);
		const double error = units(y, f->exact((double)a));
		if (!(error <= 1))
			fail_msg("%s(%a) is %a, expected %a", f->name, (double)a, (double)y, f->exact((double)a));
		worst = error > worst ? error : worst;
	}
	return worst;
}

static void test_errors(void **unused)
{
	const uint64_t step = test_full() ? 1 : test_quick() ? 4099 : 17;
	struct random_ir_buffers *x = random_ir_buffers_new(1);

	for (unsigned f = 0; f < FUNCTIONS; f++) {
		struct ir b;
		double worst = 0;
		struct native native[NATIVES];
		make_natives(native, &functions[f]);
		ir_init(&b, 32);
		build(&b, &functions[f]);
		struct interp_program *p = interp_compile(&b);
		void *frame = aligned_alloc(64, (interp_frame_bytes(p) + 63) & ~(size_t)63);
		assert_non_null(frame);
		for (uint64_t u = 0; u <= UINT32_MAX; u += ARGUMENTS * step) {
			if (!test_mine((unsigned)(u / (ARGUMENTS * step) % 1024)) ||
			    !test_in_part(u / (ARGUMENTS * step)))
				continue;
			for (uint64_t k = 0; k < ARGUMENTS; k++) {
				const uint32_t bits = u ? (uint32_t)(u + k * step) : argument((unsigned)k);
				memcpy(x->in + 4 * k, &bits, 4);
			}
			const double error = worst_of(p, frame, x, &functions[f]);
			worst = error > worst ? error : worst;
			check_natives(native, x, &functions[f]);
		}
		free_natives(native);
		printf("# %s: at most %.6f units off\n", functions[f].name, worst);
		free(frame);
		interp_free(p);
		ir_free(&b);
	}
	free(x);
}

static int open_all(void **state)
{
	every_target_open();
	return 0;
}

static int close_all(void **state)
{
	every_target_close();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_targets), cmocka_unit_test(test_errors) };

	return cmocka_run_group_tests(tests, open_all, close_all);
}
