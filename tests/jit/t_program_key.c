/* tests/jit/t_program_key.c - the keys of programs: the same for the same kernels in any order, another for all else;
 * and what a program's text says of itself, also when it was changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jit/compile.h"
#include "jit/program_key.h"
#include "kernels-templates/templates.h"

enum { N = 5 };

static struct key norm(uint32_t k)
{
	struct key key;

	memset(&key, 0, sizeof key);
	key.kind = KEY_NORM;
	key.k = k;
	key.target = TARGET_SM90;
	key.codegen = key_codegen(TARGET_SM90);
	return key;
}

static void test_order_is_of_no_account(void **state)
{
	struct key list[N], reversed[N + 1], a, b;
	struct error err = { 0 };
	char text[KEY_TEXT_MAX];
	size_t n;

	for (uint32_t i = 0; i < N; i++)
		reversed[N - 1 - i] = list[i] = norm(1024 + 32 * i);
	reversed[N] = reversed[0]; /* twice */
	assert_true(program_key(&a, list, N, &err));
	assert_true(program_key(&b, reversed, N + 1, &err));
	assert_true(key_equal(&a, &b));
	assert_int_equal(a.kind, KEY_PROGRAM);
	assert_true(key_parse(&b, key_text(&a, text, sizeof text)));
	assert_true(key_equal(&a, &b));
	const struct key *all = program_kernels(&a, &n);
	assert_int_equal(n, N);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(program_number(all, n, &list[i]), program_number(all, n, &reversed[N - 1 - i]));
	for (size_t i = 0; i < N; i++)
		assert_true(key_equal(&all[program_number(all, n, &list[i])], &list[i]));
	const struct key other = norm(7);
	assert_int_equal(program_number(all, n, &other), n);
}

static void test_others_differ(void **state)
{
	struct key list[N], a, b;
	struct error err = { 0 };
	size_t n;

	for (uint32_t i = 0; i < N; i++)
		list[i] = norm(2048 + 32 * i);
	assert_true(program_key(&a, list, N, &err));
	assert_true(program_key(&b, list, N - 1, &err));
	assert_false(key_equal(&a, &b));
	for (size_t byte = 0; byte < offsetof(struct key, codegen); byte++) {
		struct key was = list[2];
		((uint8_t *)&list[2])[byte] ^= 1;
		assert_true(program_key(&b, list, N, &err));
		assert_false(key_equal(&a, &b));
		list[2] = was;
	}
	b = a;
	b.heads++;
	assert_null(program_kernels(&b, &n));
	assert_int_equal(n, 0);
	assert_false(program_key(&b, list, 0, &err));
}

static void test_unknown_and_refused(void **state)
{
	struct key program = norm(64);
	struct object o;
	struct error err = { 0 };

	program.kind = KEY_PROGRAM;
	assert_false(compile_key(&o, &program, template_build, NULL, NULL, &err));
	assert_non_null(strstr(err.text, "it is not known of which kernels this program is made"));
	err = (struct error){ 0 };
	struct key x86 = norm(64);
	x86.target = TARGET_AVX2;
	x86.codegen = key_codegen(TARGET_AVX2);
	assert_true(program_key(&program, &x86, 1, &err));
	assert_false(compile_key(&o, &program, template_build, NULL, NULL, &err));
	assert_non_null(strstr(err.text, "target avx2 has no programs"));
}

/* A text with these comments in front. */
static struct object text_of(const char *text)
{
	struct object o = { .code = malloc(strlen(text) + 1), .code_bytes = (uint32_t)strlen(text) };

	assert_non_null(o.code);
	memcpy(o.code, text, strlen(text) + 1);
	return o;
}

static void test_text_says_what_it_is(void **state)
{
	struct error err = { 0 };
	struct object o = text_of(".version 8.0\n");
	struct key list[N], program, other;
	size_t n;

	for (uint32_t i = 0; i < N; i++)
		list[i] = norm(4096 + 32 * i);
	assert_true(program_key(&program, list, N, &err));
	assert_true(program_sign(&o, program_kernels(&program, &n), N, &err));
	assert_memory_equal(o.code + o.code_bytes - 13, ".version 8.0\n", 13);
	assert_true(program_learn(&o, &program));
	other = program;
	other.rows ^= 1;
	assert_false(program_learn(&o, &other));
	for (uint32_t i = 0; i < o.code_bytes - 13; i++) { /* a byte of the comments is wrong, or they end there */
		struct object cut = { .code = o.code, .code_bytes = i };
		o.code[i] ^= 4;
		assert_false(program_learn(&o, &program));
		o.code[i] ^= 4;
		assert_false(program_learn(&cut, &program));
	}
	object_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_is_of_no_account),
		cmocka_unit_test(test_others_differ),
		cmocka_unit_test(test_unknown_and_refused),
		cmocka_unit_test(test_text_says_what_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
