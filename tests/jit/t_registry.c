/* tests/jit/t_registry.c - the registry of kernels: one build for many callers, failures, and looking at it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <pthread.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/store/registry.h"
#include "tests/support/ordered.h"
#include "tests/jit/registry_check.h"

enum { THREADS = 8, MANY = 300 };

static void test_first_and_second_time(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct key key = make_key(5);
	enum kernel_source from = KERNEL_FROM_DISK;
	struct error err = { 0 };

	const struct kernel *k = registry_get(r, &key, &from, &err);
	if (!k)
		fail_msg("%s", err.text);
	assert_int_equal(from, KERNEL_GENERATED);
	assert_int_equal(k->source, KERNEL_GENERATED);
	assert_true(key_equal(&k->key, &key));
	assert_true(does_its_work(k));
	assert_ptr_equal(registry_get(r, &key, &from, NULL), k);
	assert_int_equal(from, KERNEL_FROM_MEMORY);
	assert_ptr_equal(registry_get(r, &key, NULL, NULL), k);
	assert_int_equal(builds, 1);
	struct registry_counters n = count_code(r);
	assert_int_equal(n.generated, 1);
	assert_int_equal(n.from_memory, 2);
	assert_int_equal(n.from_disk, 0);
	assert_int_equal(n.code_bytes, k->object.code_bytes);
	assert_int_equal(n.generated_ns, k->nanoseconds);
	registry_close(r);
	registry_close(NULL);
}

/* --- threads */

struct asker {
	pthread_t thread;
	struct registry *registry;
	uint32_t first, count;       /* keys first, first + 1, ... of MANY, going round */
	const struct kernel *kernel; /* the last one */
	unsigned failed, wrong;
	struct error err;
};

static void *ask(void *user)
{
	struct asker *a = user;

	callers++;
	for (uint32_t i = 0; i < a->count; i++) {
		struct key key = make_key((a->first + i) % MANY);
		struct error err = { 0 };
		a->kernel = registry_get(a->registry, &key, NULL, &err);
		if (!a->kernel) {
			a->failed++;
			a->err = err;
		} else if (!key_equal(&a->kernel->key, &key) || !does_its_work(a->kernel)) {
			a->wrong++;
		}
	}
	return NULL;
}

static void ask_from_threads(struct registry *r, struct asker a[THREADS], uint32_t step, uint32_t keys)
{
	memset(a, 0, THREADS * sizeof *a);
	callers = 0;
	for (uint32_t i = 0; i < THREADS; i++) {
		a[i].registry = r;
		a[i].first = i * step;
		a[i].count = keys;
		assert_int_equal(pthread_create(&a[i].thread, NULL, ask, &a[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(a[i].thread, NULL), 0);
}

static void test_one_key_from_many_threads(void **unused)
{
	for (int round = 0; round < 20; round++) {
		struct registry *r = open_registry(NULL);
		struct asker a[THREADS];
		hold_until_callers = THREADS;
		ask_from_threads(r, a, 0, 1);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(a[i].failed + a[i].wrong, 0);
			assert_ptr_equal(a[i].kernel, a[0].kernel);
		}
		assert_int_equal(builds, 1);
		assert_int_equal(count_code(r).generated, 1);
		assert_int_equal(count_code(r).from_memory, THREADS - 1);
		registry_close(r);
	}
}

/* Different keys build_counted side by side: the builds wait for each other here. */
static void test_different_keys_build_at_once(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct asker a[THREADS];

	hold_until_builds = THREADS;
	ask_from_threads(r, a, 1, 1);
	assert_int_equal(builds, THREADS);
	assert_int_equal(max_inside, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(a[i].failed + a[i].wrong, 0);
	registry_close(r);
}

/* The table grows many times while others read it. */
static void test_many_keys_from_many_threads(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct asker a[THREADS];

	ask_from_threads(r, a, 37, 2 * MANY);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(a[i].failed + a[i].wrong, 0);
	assert_int_equal(builds, MANY);
	struct registry_counters n = count_code(r);
	assert_int_equal(n.generated, MANY);
	assert_int_equal(n.generated + n.from_memory, (uint64_t)THREADS * 2 * MANY);
	registry_close(r);
}

/* --- failures */

static void test_failures_reach_everyone_and_are_not_kept(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct asker a[THREADS];
	struct key key = make_key(0);

	for (int round = 0; round < 10; round++) {
		fail_builds = true;
		hold_until_callers = THREADS;
		ask_from_threads(r, a, 0, 1);
		for (int i = 0; i < THREADS; i++) {
			assert_null(a[i].kernel);
			assert_int_equal(a[i].err.code, ERROR_UNSUPPORTED);
			assert_non_null(strstr(a[i].err.text, "rows 1 cannot be done today"));
		}
	}
	assert_int_equal(count_code(r).generated, 0);
	unsigned before = builds;
	assert_null(registry_get(r, &key, NULL, NULL));
	assert_int_equal(builds, before + 1);
	fail_builds = false;
	const struct kernel *k = registry_get(r, &key, NULL, NULL);
	assert_non_null(k);
	assert_true(does_its_work(k));
	registry_close(r);
}

static void test_unusable_keys(void **unused)
{
	struct registry *r = open_registry(NULL);

	for (int i = 0; i < 5; i++) {
		struct key key = make_key(0);
		struct error err = { 0 };
		if (i == 0)
			key.codegen++;
		else if (i <= 2)
			key.kind = i == 1 ? KEY_NONE : KEY_KIND_COUNT;
		else
			key.target = i == 3 ? TARGET_NONE : TARGET_COUNT;
		assert_null(registry_get(r, &key, NULL, &err));
		assert_int_equal(err.code, ERROR_ARGUMENT);
	}
	assert_int_equal(builds, 0);
	registry_close(r);
}

/* --- looking at it */

static size_t lines_of(FILE *f, const char *word)
{
	char line[4096];
	size_t n = 0;

	rewind(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, word) != NULL;
	return n;
}

/* ---- users' kernels, which the builder with a context makes */

struct user {
	unsigned builds;
	const struct key *expected;
};

static bool build_user(void *context, struct ir *ir, const struct key *key, const struct target *target,
                       struct error *err)
{
	struct user *u = context;

	u->builds++;
	return key_equal(key, u->expected) ? build_counted(ir, key, target, err)
	                                   : error_set(err, ERROR_ARGUMENT, "another key");
}

static void name_user(void *context, const struct key *key, char out[OBJECT_NAME])
{
	const struct user *u = context;

	snprintf(out, OBJECT_NAME, "%s", key_equal(key, u->expected) ? "mine_1" : "another");
}

static void test_users_kernels(void **unused)
{
	const uint8_t id[KEY_USER_BYTES] = { 0xab, [KEY_USER_BYTES - 1] = 0x01 }, other[KEY_USER_BYTES] = { 0xab };
	char text[KEY_TEXT_MAX];
	struct key key, another, back;
	struct error err = { 0 };
	struct user u = { .expected = &key };
	const struct compile_builder builder = { .build = build_user, .name = name_user, .user = &u };
	struct registry *r =
		registry_open(&(struct registry_options){ .build = build_counted, .users = &builder }, &err);

	key_user(&key, id, make_key(1).target);
	key_user(&another, other, make_key(1).target);
	assert_true(key_same_user(&key, &key));
	assert_false(key_same_user(&key, &another));
	key_text(&key, text, sizeof text);
	assert_int_equal(strncmp(text, "user.ab0000000000000000000000000000000000000000000001.", 54), 0);
	assert_true(key_parse(&back, text) && key_equal(&back, &key));
	text[5] = 'A';
	assert_false(key_parse(&back, text));

	const struct kernel *k = registry_get(r, &key, NULL, &err);
	if (!k)
		fail_msg("%s", err.text);
	assert_true(does_its_work(k));
	assert_string_equal(k->object.name, "mine_1");
	assert_ptr_equal(registry_get(r, &key, NULL, NULL), k);
	assert_int_equal(u.builds, 1);
	assert_null(registry_get(r, &another, NULL, &err));
	assert_string_equal(err.text, "another key");
	registry_close(r);
}

static void test_dumps_come_even_from_a_full_cache(void **unused)
{
	struct cache *cache = cache_open(registry_dir, NULL, NULL);
	struct key key = make_key(3);

	for (int i = 0; i < 2; i++) {
		FILE *ir = tmpfile(), *as = tmpfile();
		assert_true(ir && as);
		const struct registry_options opt = {
			.build = build_counted, .cache = cache, .dump_ir = ir, .dump_asm = as
		};
		struct registry *r = registry_open(&opt, NULL);
		enum kernel_source from;
		assert_int_equal(registry_load(r, &key, 1), 0);
		assert_non_null(registry_get(r, &key, &from, NULL));
		assert_int_equal(from, KERNEL_GENERATED);
		assert_true(lines_of(ir, "fconst") >= 1);
		assert_true(lines_of(as, "norm.r4.avx2") >= 1);
		assert_true(lines_of(as, ".byte") >= 1);
		registry_close(r);
		fclose(ir);
		fclose(as);
	}
	cache_close(cache);
}

static void test_perf_map(void **unused)
{
	char path[64];
	const struct registry_options opt = { .build = build_counted, .perf_map = true };
	struct registry *r = registry_open(&opt, NULL);
	struct key key = make_key(3);

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	unlink(path);
	assert_non_null(registry_get(r, &key, NULL, NULL));
	FILE *f = fopen(path, "r");
	assert_true((f != NULL) == is_native());
	if (f) {
		assert_int_equal(lines_of(f, " norm.r4.avx2\n"), 1);
		fclose(f);
		unlink(path);
	}
	registry_close(r);
}

static void see(const struct kernel *k, void *user) { ordered_next(user, &k->key); }

static void test_each_in_order(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct ordered s = { 0 };

	registry_each(r, see, &s);
	assert_int_equal(s.n, 0);
	for (uint32_t n = 0; n < 100; n++) {
		struct key key = make_key(n * 7919 % 100);
		assert_non_null(registry_get(r, &key, NULL, NULL));
	}
	fail_builds = true;
	struct key key = make_key(100);
	assert_null(registry_get(r, &key, NULL, NULL));
	registry_each(r, see, &s);
	assert_int_equal(s.n, 100);
	registry_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_and_second_time),
		cmocka_unit_test(test_one_key_from_many_threads),
		cmocka_unit_test(test_different_keys_build_at_once),
		cmocka_unit_test(test_many_keys_from_many_threads),
		cmocka_unit_test(test_failures_reach_everyone_and_are_not_kept),
		cmocka_unit_test(test_unusable_keys),
		cmocka_unit_test(test_users_kernels),
		cmocka_unit_test_setup_teardown(test_dumps_come_even_from_a_full_cache, make_dir, remove_dir),
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_each_in_order),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += registry_disk_tests();
	return failed;
}
