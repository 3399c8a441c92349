/* tests/jit/registry_disk_tests.c - the registry with a disk behind it: a cache directory, a pack, and many kernels at
 * once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "tests/jit/registry_check.h"

/* --- the disk */

int make_dir(void **unused)
{
	strcpy(registry_dir + strlen(registry_dir) - 6, "XXXXXX");
	return mkdtemp(registry_dir) ? 0 : -1;
}

int remove_dir(void **unused)
{
	DIR *d = opendir(registry_dir);

	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	return rmdir(registry_dir);
}

/* Flips one byte of every entry. */
static void damage_entries(void)
{
	DIR *d = opendir(registry_dir);
	unsigned char byte;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (!strstr(e->d_name, ".jko"))
			continue;
		int fd = openat(dirfd(d), e->d_name, O_RDWR);
		assert_true(fd >= 0);
		assert_int_equal(pread(fd, &byte, 1, 90), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, 90), 1);
		close(fd);
	}
	closedir(d);
}

static void ask_from_disk(enum kernel_source expected, const struct kernel *like)
{
	struct cache *cache = cache_open(registry_dir, NULL, NULL);
	struct registry *r = open_registry(cache);
	struct key key = make_key(3);
	enum kernel_source from;
	struct cache_counters n;

	const struct kernel *k = registry_get(r, &key, &from, NULL);
	assert_non_null(k);
	assert_int_equal(from, expected);
	assert_int_equal(k->source, expected);
	assert_int_equal(builds, expected == KERNEL_GENERATED);
	assert_int_equal(count_code(r).from_disk, expected == KERNEL_FROM_DISK);
	assert_true(does_its_work(k));
	assert_int_equal(k->object.code_bytes, like->object.code_bytes);
	assert_int_equal(k->object.pool_offset, like->object.pool_offset);
	assert_int_equal(k->object.frame_bytes, like->object.frame_bytes);
	assert_memory_equal(k->object.code, like->object.code, k->object.code_bytes);
	cache_count(cache, &n);
	assert_int_equal(n.stored, expected == KERNEL_GENERATED);
	registry_close(r);
	cache_close(cache);
}

static void test_disk_behind_it(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct key key = make_key(3);
	const struct kernel *like = registry_get(r, &key, NULL, NULL);

	assert_non_null(like);
	ask_from_disk(KERNEL_GENERATED, like);
	ask_from_disk(KERNEL_FROM_DISK, like);
	damage_entries();
	ask_from_disk(KERNEL_GENERATED, like);
	ask_from_disk(KERNEL_FROM_DISK, like);
	registry_close(r);
}

/* A pack before a directory: what it has is from it, what it lacks goes to the directory. */
static void test_pack_behind_it(void **unused)
{
	char path[256], pack[128];
	struct pack_item item[2] = { 0 };
	enum kernel_source from;
	struct error err = { 0 };

	snprintf(pack, sizeof pack, "%s/kernels.jkp", registry_dir);
	for (uint32_t n = 0; n < 2; n++) {
		item[n].key = make_key(n);
		assert_true(compile_key(&item[n].object, &item[n].key, build_counted, NULL, NULL, NULL));
	}
	if (!pack_write(pack, item, 2, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof path, "%s:%s", pack, registry_dir);
	static const enum kernel_source expected[2][3] = { { KERNEL_FROM_PACK, KERNEL_FROM_PACK, KERNEL_GENERATED },
		                                           { KERNEL_FROM_PACK, KERNEL_FROM_PACK, KERNEL_FROM_DISK } };
	for (int round = 0; round < 2; round++) {
		struct cache *cache = cache_open(path, NULL, &err);
		assert_non_null(cache);
		struct registry *r = open_registry(cache);
		for (uint32_t n = 0; n < 3; n++) {
			struct key key = make_key(n);
			const struct kernel *k = registry_get(r, &key, &from, NULL);
			assert_non_null(k);
			assert_int_equal(from, expected[round][n]);
			assert_int_equal(k->source, from);
			assert_true(does_its_work(k));
			assert_non_null(registry_get(r, &key, &from, NULL));
			assert_int_equal(from, KERNEL_FROM_MEMORY);
		}
		assert_int_equal(builds, round == 0);
		assert_int_equal(count_code(r).from_pack, 2);
		assert_int_equal(count_code(r).generated, round == 0);
		assert_int_equal(count_code(r).from_disk, round == 1);
		assert_int_equal(count_code(r).from_memory, 3);
		registry_close(r);
		cache_close(cache);
	}
	assert_string_equal(kernel_source_name(KERNEL_FROM_PACK), "pack");
	object_free(&item[0].object);
	object_free(&item[1].object);
}

/* --- many from the cache at once */

enum { KEPT = 40, REQUESTED = 50, LOADERS = 6 };

static void make_keys(struct key *key, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		key[i] = make_key(i);
}

/* The first KEPT of the keys into the cache. */
static void keep_some(const struct key *key)
{
	struct cache *cache = cache_open(registry_dir, NULL, NULL);
	struct registry *r = open_registry(cache);

	assert_int_equal(registry_load(r, key, KEPT), 0);
	for (uint32_t i = 0; i < KEPT; i++)
		assert_non_null(registry_get(r, &key[i], NULL, NULL));
	assert_int_equal(builds, KEPT);
	registry_close(r);
	cache_close(cache);
}

/* What is kept comes, each once; what is not is asked for once, and made by who wants it. */
static void test_many_at_once(void **unused)
{
	struct key key[REQUESTED];
	struct cache_counters n;
	enum kernel_source from;

	make_keys(key, REQUESTED);
	keep_some(key);
	struct cache *cache = cache_open(registry_dir, NULL, NULL);
	struct registry *r = open_registry(cache);
	assert_int_equal(registry_load(r, key, 0), 0);
	assert_non_null(registry_get(r, &key[7], &from, NULL));
	assert_int_equal(from, KERNEL_FROM_DISK);
	assert_int_equal(registry_load(r, key, REQUESTED), KEPT - 1);
	assert_int_equal(registry_load(r, key, KEPT), 0);
	for (uint32_t i = 0; i < REQUESTED; i++) {
		assert_int_equal(registry_ready(r, &key[i]), i < KEPT);
		const struct kernel *k = registry_get(r, &key[i], &from, NULL);
		assert_non_null(k);
		assert_int_equal(from, i < KEPT ? KERNEL_FROM_MEMORY : KERNEL_GENERATED);
		assert_int_equal(k->source, i < KEPT ? KERNEL_FROM_DISK : KERNEL_GENERATED);
		assert_true(does_its_work(k));
	}
	assert_int_equal(builds, REQUESTED - KEPT);
	assert_int_equal(count_code(r).from_disk, KEPT);
	cache_count(cache, &n);
	assert_int_equal(n.hits, KEPT);
	assert_int_equal(n.misses, REQUESTED - KEPT);
	assert_int_equal(n.stored, REQUESTED - KEPT);
	registry_close(r);
	cache_close(cache);
}

/* What is damaged is made anew, and a key of another code generator is passed over. */
static void test_many_with_trouble(void **unused)
{
	struct key key[KEPT + 1];
	struct cache_counters n;

	make_keys(key, KEPT);
	keep_some(key);
	damage_entries();
	key[KEPT] = key[0];
	key[KEPT].codegen++;
	struct cache *cache = cache_open(registry_dir, NULL, NULL);
	struct registry *r = open_registry(cache);
	assert_int_equal(registry_load(r, key, KEPT + 1), 0);
	cache_count(cache, &n);
	assert_int_equal(n.damaged, KEPT);
	for (uint32_t i = 0; i < KEPT; i++)
		assert_true(does_its_work(registry_get(r, &key[i], NULL, NULL)));
	assert_int_equal(builds, KEPT);
	assert_null(registry_get(r, &key[KEPT], NULL, NULL));
	registry_close(r);
	cache_close(cache);
}

/* Sealed: what was not there is refused, and is looked for again by the next who asks. */
static void test_many_sealed(void **unused)
{
	struct key key[REQUESTED];
	struct error err = { 0 };

	make_keys(key, REQUESTED);
	keep_some(key);
	struct cache *cache = cache_open(registry_dir, &(struct cache_options){ .read_only = true }, NULL),
		     *writer = cache_open(registry_dir, NULL, NULL);
	struct registry *r =
		registry_open(&(struct registry_options){ .build = build_counted, .cache = cache, .sealed = true },
	                      NULL);
	assert_int_equal(registry_load(r, key, REQUESTED), KEPT);
	assert_null(registry_get(r, &key[KEPT], NULL, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	struct object object;
	assert_true(compile_key(&object, &key[KEPT], build_counted, NULL, NULL, NULL));
	cache_store(writer, &key[KEPT], &object, NULL);
	object_free(&object);
	assert_true(does_its_work(registry_get(r, &key[KEPT], NULL, NULL)));
	registry_close(r);
	cache_close(writer);
	cache_close(cache);
}

/* Frozen: what is in memory is given; nothing else is loaded, though it is kept, had been asked for before or comes to
 * be kept. */
static void test_frozen(void **unused)
{
	struct key key[REQUESTED];
	struct error err = { 0 }, again = { 0 }, late = { 0 };

	make_keys(key, REQUESTED);
	keep_some(key);
	struct cache *cache = cache_open(registry_dir, &(struct cache_options){ .read_only = true }, NULL),
		     *writer = cache_open(registry_dir, NULL, NULL);
	struct registry *r =
		registry_open(&(struct registry_options){ .build = build_counted, .cache = cache, .sealed = true },
	                      NULL);
	assert_int_equal(registry_load(r, key, KEPT - 1), KEPT - 1);
	assert_null(registry_get(r, &key[KEPT], NULL, &err));
	uint64_t loaded = count_code(r).from_disk;
	registry_freeze(r);
	struct object object;
	assert_true(compile_key(&object, &key[KEPT], build_counted, NULL, NULL, NULL));
	assert_true(cache_store(writer, &key[KEPT], &object, NULL));
	object_free(&object);
	assert_null(registry_get(r, &key[KEPT], NULL, &again));
	assert_string_equal(again.text, err.text);
	assert_int_equal(registry_load(r, key, REQUESTED), 0);
	assert_null(registry_get(r, &key[KEPT - 1], NULL, &late)); /* nobody had asked for it */
	assert_int_equal(late.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(late.text, "it is there now"));
	assert_null(registry_get(r, &key[REQUESTED - 1], NULL, NULL));
	for (uint32_t i = 0; i < KEPT - 1; i++)
		assert_true(does_its_work(registry_get(r, &key[i], NULL, NULL)));
	assert_int_equal(count_code(r).from_disk, loaded);
	assert_int_equal(count_code(r).generated, 0);
	registry_close(r);
	cache_close(writer);
	cache_close(cache);
}

struct loader {
	pthread_t thread;
	struct registry *registry;
	const struct key *key;
	uint32_t first;
	size_t loaded;
	bool good;
};

static void *load_some(void *user)
{
	struct loader *l = user;

	l->loaded = registry_load(l->registry, l->key + l->first, REQUESTED - l->first);
	l->good = true;
	for (uint32_t i = 0; i < REQUESTED; i++) {
		const struct kernel *k = registry_get(l->registry, &l->key[(i + 7 * l->first) % REQUESTED], NULL, NULL);
		l->good = l->good && k && does_its_work(k);
	}
	return NULL;
}

/* Threads that load what others load and ask for what others are loading. */
static void test_many_from_many_threads(void **unused)
{
	struct key key[REQUESTED];
	struct loader l[LOADERS] = { 0 };

	make_keys(key, REQUESTED);
	keep_some(key);
	for (int round = 0; round < 20; round++) {
		struct cache *cache = cache_open(registry_dir, &(struct cache_options){ .read_only = true }, NULL);
		struct registry *r = open_registry(cache);
		for (uint32_t t = 0; t < LOADERS; t++) {
			l[t] = (struct loader){ .registry = r, .key = key, .first = 3 * t };
			assert_int_equal(pthread_create(&l[t].thread, NULL, load_some, &l[t]), 0);
		}
		for (uint32_t t = 0; t < LOADERS; t++) {
			assert_int_equal(pthread_join(l[t].thread, NULL), 0);
			assert_true(l[t].good);
		}
		assert_int_equal(builds, REQUESTED - KEPT);
		assert_int_equal(count_code(r).from_disk, KEPT);
		registry_close(r);
		cache_close(cache);
	}
}

int registry_disk_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_disk_behind_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_pack_behind_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_at_once, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_with_trouble, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_sealed, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_frozen, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_from_many_threads, make_dir, remove_dir),
	};

	return cmocka_run_group_tests_name("registry_disk_tests", tests, NULL, NULL);
}
