/* tests/jit/t_pack.c - pack files: what comes back, the same bytes always, damage of every byte and at every length,
 * files that must be refused.
 *
 * The layout constants below are written down a second time on purpose: a change of layout that forgets the version
 * fails here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "tests/support/ordered.h"
#include "tests/jit/stored.h"
#include "tests/jit/pack_check.h"

/* --- ordinary life */

static void test_written_and_read(void **unused)
{
	static const size_t counts[] = { 0, 1, 2, 3, 7, MAX };
	struct error err = { 0 };
	char path[256];

	make_items(MAX);
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		snprintf(path, sizeof path, "%s/%zu.jkp", stored_dir, i);
		if (!pack_write(path, pack_items, counts[i], &err))
			fail_msg("%s", err.text);
		struct pack *p = pack_open(path, &err);
		if (!p || !pack_verify(p, &err))
			fail_msg("%s", err.text);
		assert_int_equal(pack_count(p), counts[i]);
		check_found(p, counts[i]);
		pack_close(p);
	}
	assert_int_equal(stored_files(".tmp"), 0);
	pack_close(NULL);
	free_items(MAX);
}

static bool see(const struct pack_entry *e, void *user)
{
	struct seen *s = user;

	ordered_next(&s->keys, &e->key);
	assert_null(e->object.code);
	assert_true(e->stored_bytes > RECORD);
	return s->keys.n != s->stop;
}

static void test_in_order_of_text(void **unused)
{
	size_t n;
	struct seen all = { 0 }, some = { .stop = 5 };

	make_items(MAX);
	uint8_t *bytes = bytes_of(MAX, &n);
	struct pack *p = pack_open_memory(bytes, n, "memory", NULL);
	assert_non_null(p);
	pack_each(p, see, &all);
	assert_int_equal(all.keys.n, MAX);
	pack_each(p, see, &some);
	assert_int_equal(some.keys.n, 5);
	pack_close(p);
	free(bytes);
	free_items(MAX);
}

/* The layout as jit/store/pack.h tells it, read by other code. */
static void test_layout(void **unused)
{
	size_t n, at = HEADER + 3 * RECORD + 8 * 4;

	make_items(3);
	uint8_t *p = bytes_of(3, &n);
	assert_memory_equal(p, "jitr\npk", 8);
	assert_int_equal(get32(p + AT_VERSION), VERSION);
	assert_int_equal(get32(p + AT_RECORD_BYTES), RECORD);
	assert_int_equal(get32(p + AT_RECORDS), 3);
	assert_int_equal(get32(p + AT_SLOTS), 8);
	assert_int_equal(get64(p + AT_BYTES), n);
	assert_int_equal(get64(p + AT_ZERO) | get64(p + AT_ZERO + 8), 0);
	for (uint32_t i = 0; i < 3; i++) {
		const uint8_t *r = p + HEADER + i * RECORD;
		struct key k = stored_key(i);
		assert_memory_equal(r, &k, sizeof k);
		assert_int_equal(get64(r + IN_OFFSET), at);
		assert_int_equal(get32(r + IN_CODE), 40 + i * 1000);
		assert_int_equal(get32(r + IN_POOL), 30);
		assert_int_equal(get32(r + IN_POOL + 4), 64 + i);
		assert_int_equal(get32(r + IN_POOL + 8), 3 * i);
		assert_int_equal(get32(r + IN_ZERO), 0);
		assert_int_equal(get64(r + IN_ZERO + 4), (uint64_t)(i + 1) | (uint64_t)(i + 2) << 16 |
		                                                 (uint64_t)(i + 3) << 32 | (uint64_t)(i & 1) << 48);
		at += get32(r + IN_BODY);
	}
	assert_int_equal(at, n);
	uint8_t *again = malloc(n);
	assert_non_null(again);
	memcpy(again, p, n);
	seal(again, n, 3);
	assert_memory_equal(p, again, n);
	free(again);
	free(p);
	free_items(3);
}

/* --- the same bytes */

static void test_same_bytes_in_any_order_folder_and_time(void **unused)
{
	static uint8_t a[1 << 20], b[1 << 20];
	char one[256], two[300];
	size_t n, m;

	make_items(MAX);
	uint8_t *forward = bytes_of(MAX, &n);
	for (size_t i = 0; i < MAX / 2; i++) {
		struct pack_item swapped = pack_items[i];
		pack_items[i] = pack_items[MAX - 1 - i];
		pack_items[MAX - 1 - i] = swapped;
	}
	uint8_t *backward = bytes_of(MAX, &m);
	assert_int_equal(n, m);
	assert_memory_equal(forward, backward, n);

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(one, sizeof one, "%s/one.jkp", stored_dir);
	snprintf(two, sizeof two, "%s/elsewhere/another-name", stored_dir);
	*strrchr(two, '/') = 0;
	assert_int_equal(mkdir(two, 0700), 0);
	two[strlen(two)] = '/';
	assert_true(pack_write(one, pack_items, MAX, NULL));
	assert_true(pack_write(two, pack_items, MAX, NULL));
	assert_int_equal(stored_read_file(one, a, sizeof a), n);
	assert_int_equal(stored_read_file(two, b, sizeof b), n);
	assert_memory_equal(a, forward, n);
	assert_memory_equal(b, forward, n);
	free(forward);
	free(backward);
	free_items(MAX);
}

static void test_one_key_twice(void **unused)
{
	struct error err = { 0 };
	size_t n, m;

	make_items(4);
	uint8_t *once = bytes_of(3, &n);
	object_free(&pack_items[3].object);
	pack_items[3] = (struct pack_item){ stored_key(1), stored_object(1) };
	uint8_t *twice = bytes_of(4, &m);
	assert_int_equal(n, m);
	assert_memory_equal(once, twice, n);
	free(once);
	free(twice);
	pack_items[3].object.code[5] ^= 1;
	assert_null(pack_bytes(pack_items, 4, &n, &err));
	assert_int_equal(err.code, ERROR_ARGUMENT);
	assert_non_null(strstr(err.text, "matmul.2x256.avx2"));
	pack_items[3].object.code[5] ^= 1;
	pack_items[3].object.cooperative ^= 1;
	assert_null(pack_bytes(pack_items, 4, &n, NULL));

	/* one text, two code generators: two objects */
	pack_items[3].key.codegen++;
	uint8_t *both = bytes_of(4, &n);
	struct pack *p = pack_open_memory(both, n, "memory", NULL);
	assert_non_null(p);
	assert_true(pack_verify(p, NULL));
	check_found(p, 3);
	assert_int_equal(pack_count(p), 4);
	pack_close(p);
	free(both);

	struct object good = pack_items[3].object;
	pack_items[3].object.code_bytes = 0;
	assert_null(pack_bytes(pack_items, 4, &n, NULL));
	pack_items[3].object = good;
	free_items(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_written_and_read), T(test_in_order_of_text),
		T(test_layout),           T(test_same_bytes_in_any_order_folder_and_time),
		T(test_one_key_twice),
	};
	int failed = cmocka_run_group_tests(tests, stored_make_base, stored_remove_base);

	failed += pack_damage_tests();
	return failed;
}
