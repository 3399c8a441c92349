/* tests/jit/t_driver_code.c - the keys of code that a card's driver made: they say by whom, and are no text's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "jit/store/driver_code.h"
#include "jit/target.h"

static struct key text_key(enum target_id target)
{
	struct key k;

	memset(&k, 0, sizeof k);
	k.kind = KEY_NORM;
	k.k = 1024;
	k.target = (uint8_t)target;
	k.codegen = key_codegen(target);
	return k;
}

static void test_round_trip(void **state)
{
	static const enum target_id targets[] = { TARGET_SM80, TARGET_SM90 };

	for (unsigned t = 0; t < 2; t++)
		for (uint32_t capability = 80; capability < 256; capability += 5)
			for (uint32_t version = 12000; version < 60000; version += 1013) {
				struct driver_code by = { capability, version };
				const struct key text = text_key(targets[t]), key = driver_code_key(&text, by);
				struct key back = key;
				by = (struct driver_code){ 0 };
				assert_true(driver_code_is(&key, &by));
				assert_int_equal(by.capability, capability);
				assert_int_equal(by.version, version);
				back.codegen = text.codegen;
				assert_true(key_equal(&back, &text));
			}
}

/* Every driver has a key of its own, and none has the text's. */
static void test_what_is_none(void **state)
{
	const struct key text = text_key(TARGET_SM90);
	const struct driver_code by = { 90, 13000 };
	struct key other = driver_code_key(&text, by);

	assert_false(driver_code_is(&text, NULL));
	for (enum target_id t = TARGET_NONE; t < TARGET_COUNT; t++) {
		struct key key = text_key(t);
		assert_false(driver_code_is(&key, NULL));
		key.codegen = other.codegen;
		assert_int_equal(driver_code_is(&key, NULL), t >= TARGET_SM80 && t <= TARGET_SM90X8);
	}
	for (unsigned bit = 24; bit < 64; bit++) { /* made of the text of another version */
		struct key key = other;
		key.codegen ^= 1ull << bit;
		assert_false(driver_code_is(&key, NULL));
	}
	for (unsigned bit = 0; bit < 64; bit++) { /* nor is a text of another version taken for one of this */
		struct key key = text;
		key.codegen ^= 1ull << bit;
		assert_false(driver_code_is(&key, NULL));
	}
	assert_false(key_equal(&other, &(struct key){ 0 }));
	const struct driver_code others[] = { { 80, 13000 }, { 90, 13010 }, { 100, 12080 } };
	for (unsigned i = 0; i < 3; i++) {
		struct key key = driver_code_key(&text, others[i]);
		assert_false(key_equal(&key, &other));
		assert_false(driver_code_is_by(&key, &(struct driver_linker){ .by = by }));
		assert_true(driver_code_is_by(&key, &(struct driver_linker){ .by = others[i] }));
	}
	assert_false(driver_code_is_by(&other, NULL));
	assert_false(driver_code_is_by(&text, &(struct driver_linker){ .by = by }));
}

static void test_lists(void **state)
{
	const struct key a = text_key(TARGET_SM90), b = text_key(TARGET_AVX2);
	struct key list[] = { a, driver_code_key(&a, (struct driver_code){ 90, 13000 }), b,
		              driver_code_key(&a, (struct driver_code){ 80, 13000 }) };
	char text[DRIVER_CODE_TEXT_MAX];

	assert_int_equal(driver_code_count(list, 4), 2);
	assert_int_equal(driver_code_drop(list, 4), 2);
	assert_true(key_equal(&list[0], &a) && key_equal(&list[1], &b));
	assert_string_equal(driver_code_text((struct driver_code){ 121, 12080 }, text),
	                    "compute capability 12.1, CUDA 12.8");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip), cmocka_unit_test(test_what_is_none),
		                            cmocka_unit_test(test_lists) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
