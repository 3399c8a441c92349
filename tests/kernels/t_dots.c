/* tests/kernels/t_dots.c - products of int8 matrices in memory (idots): the interpreter and machine code against plain
 * loops. Where the processor has no tiles their instructions are simulated (tile_trap.h). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir_build.h"
#include "tests/kernels/kernel_run.h"

enum {
	MAX_ROWS = 16,
	K = 32,
	COLUMNS = 32,
	X_BYTES = MAX_ROWS * K,
	W_BYTES = K * COLUMNS,
	SUM_BYTES = MAX_ROWS * COLUMNS * 4,
	UNITS = 5
};

static uint64_t state = 1;

static uint8_t *random_bytes(size_t n)
{
	uint8_t *p = kernel_buffer(n, 0);
	for (size_t i = 0; i < n; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		/* now and then the ends of the range */
		p[i] = state >> 60 ? (uint8_t)(state >> 50) : state >> 59 & 1 ? 0x80 : 0x7f;
	}
	return p;
}

/* Weights as words of four k's: [k/4][column][k%4]. */
static void plain_dots(int32_t *sums, const uint8_t *x, const uint8_t *w, unsigned rows)
{
	for (unsigned r = 0; r < rows; r++)
		for (unsigned c = 0; c < COLUMNS; c++) {
			int32_t sum = 0;
			for (unsigned k = 0; k < K; k++)
				sum += (int8_t)x[r * K + k] * (int8_t)w[k / 4 * 128 + c * 4 + k % 4];
			sums[r * COLUMNS + c] = sum;
		}
}

static unsigned tile_ways(const struct kernel_way *out[])
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways), found = 0;

	for (unsigned i = 0; i < n; i++)
		if (ways[i].target.has_tiles)
			out[found++] = &ways[i];
	assert_true(found >= 1);
	return found;
}

/* Sums of every unit of x with the w beside it go to out; where `local`, through memory of the kernel's own. disp: in
 * front of what addresses say. */
static void build(struct ir *b, unsigned rows, unsigned rest, bool local, int32_t disp)
{
	ir_a arg = ir_arg(b), mine = { 0 };
	if (local)
		mine = ir_local(b, SUM_BYTES);
	ir_a x = ir_var_a(b, ir_aaddi(b, ir_aload(b, arg, 0), -disp)),
	     w = ir_var_a(b, ir_aaddi(b, ir_aload(b, arg, 8), -disp)), out = ir_var_a(b, ir_aload(b, arg, 16));
	ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	for (unsigned part = 0; part < (rest ? 2u : 1u); part++) {
		unsigned n = part ? rest : rows;
		ir_a left = ir_aaddi(b, x, disp + (int32_t)(part * rows * K)), right = ir_aaddi(b, w, disp);
		ir_a to = local ? mine : out;
		ir_idots(b, to, (int32_t)(part * rows * COLUMNS * 4), left, right, n);
	}
	for (unsigned i = 0; local && i < (rows + rest) * COLUMNS / b->lanes; i++)
		ir_fstore(b, out, ir_fload(b, mine, (int32_t)(i * b->lanes * 4), 0), (int32_t)(i * b->lanes * 4), 0);
	ir_set_a(b, x, ir_aaddi(b, x, X_BYTES));
	ir_set_a(b, w, ir_aaddi(b, w, W_BYTES));
	ir_set_a(b, out, ir_aaddi(b, out, SUM_BYTES));
	ir_endloop(b);
}

static void check(const struct kernel_way *way, unsigned rows, unsigned rest, bool local, int32_t disp)
{
	uint8_t *x = random_bytes(UNITS * X_BYTES), *w = random_bytes(UNITS * W_BYTES);
	uint8_t *got = kernel_buffer(UNITS * SUM_BYTES, 0x55), *expected = kernel_buffer(UNITS * SUM_BYTES, 0x55);
	const uint64_t arg[] = { (uintptr_t)x, (uintptr_t)w, (uintptr_t)got };
	struct kernel k;
	struct ir b;

	for (unsigned u = 0; u < UNITS; u++)
		plain_dots((int32_t *)(void *)(expected + u * SUM_BYTES), x + u * X_BYTES, w + u * W_BYTES,
		           rows + rest);
	ir_init(&b, way->target.lanes);
	build(&b, rows, rest, local, disp);
	kernel_open_ir(&k, way, &b);
	kernel_run(&k, arg, 0, UNITS);
	if (memcmp(got, expected, UNITS * SUM_BYTES) != 0)
		fail_msg("%s: %u and %u rows, %s, displaced by %d: other sums than the plain loop's", way->name, rows,
		         rest, local ? "local" : "global", disp);
	kernel_close(&k);
	ir_free(&b);
	free(x);
	free(w);
	free(got);
	free(expected);
}

static void test_sums(void **unused)
{
	const struct kernel_way *ways[KERNEL_MAX_WAYS];
	unsigned n = tile_ways(ways);

	for (unsigned i = 0; i < n; i++)
		for (unsigned rows = 1; rows <= MAX_ROWS; rows++)
			for (unsigned rest = 0; rest <= 2 && rows + rest <= MAX_ROWS; rest++) {
				check(ways[i], rows, rest, false, 0);
				check(ways[i], rows, rest, true, 4096);
				check(ways[i], rows, rest, false, -64); /* what the form has no room for */
				check(ways[i], rows, rest, true, 1 << 25);
			}
}

/* A kernel sets its tiles up once: there are enough for two numbers of rows. */
static void test_shapes(void **unused)
{
	struct error err = { 0 };
	struct object o;
	struct ir b;

	ir_init(&b, 16);
	ir_a arg = ir_arg(&b), x = ir_aload(&b, arg, 0), w = ir_aload(&b, arg, 8), out = ir_aload(&b, arg, 16);
	for (unsigned rows = 1; rows <= 3; rows++)
		ir_idots(&b, out, 0, x, w, rows);
	assert_false(compile_ir(&o, &b, target_find("avx512amx"), NULL, NULL, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "expected at most 2 numbers of rows"));
	ir_free(&b);
}

static void test_refusals(void **unused)
{
	static const char *const without[] = { "avx2", "avx512vnni", "gfx1030", "gfx1100" };
	static const unsigned rows[] = { 0, 17 };

	for (unsigned i = 0; i < sizeof without / sizeof without[0]; i++) {
		const struct target *t = target_find(without[i]);
		struct error err = { 0 };
		struct object o;
		struct ir b;
		ir_init(&b, t->lanes);
		ir_idots(&b, ir_aload(&b, ir_arg(&b), 0), 0, ir_aload(&b, ir_arg(&b), 8), ir_aload(&b, ir_arg(&b), 16),
		         4);
		assert_false(compile_ir(&o, &b, t, NULL, NULL, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "matrix operation idots"));
		ir_free(&b);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct error err = { 0 };
		struct ir b;
		ir_init(&b, 16);
		ir_a p = ir_aload(&b, ir_arg(&b), 0);
		ir_idots(&b, p, 0, p, p, rows[i]);
		assert_false(ir_verify(&b, &err));
		assert_non_null(strstr(err.text, "expected 1 to 16"));
		ir_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums), cmocka_unit_test(test_shapes),
		                            cmocka_unit_test(test_refusals) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
