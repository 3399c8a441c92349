/* tests/jit/t_registry.c - kernels by key: single flight, failures, the disk behind it, many threads, what a kernel
 * does when called. */
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
#include <stdatomic.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "tests/support/ordered.h"

enum { THREADS = 8, MANY = 300 };

static _Atomic unsigned builds, inside, most_inside, callers;
static _Atomic bool fail_builds;
static _Atomic unsigned hold_until_callers; /* a build goes on once so many threads have begun to ask */
static _Atomic unsigned hold_until_builds;  /* a build goes on once so many have begun, or after a long time */

/* A kernel that stores the key's rows as f32 where its first argument points. */
static bool build(struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	unsigned now = ++inside, most = most_inside;

	while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
		;
	builds++;
	while (callers < hold_until_callers)
		usleep(100);
	for (int i = 0; i < 200000 && builds < hold_until_builds; i++)
		usleep(100);
	inside--;
	if (fail_builds)
		return error_set(err, ERROR_UNSUPPORTED, "rows %u cannot be done today", key->rows);
	ir_fstore1(ir, ir_aload(ir, ir_arg(ir), 0), ir_fconst(ir, (float)key->rows), 0);
	return true;
}

static struct key make_key(uint32_t n)
{
	struct key k;

	memset(&k, 0, sizeof k);
	k.kind = KEY_NORM;
	k.target = TARGET_AVX2;
	k.rows = n + 1;
	k.codegen = key_codegen_x86;
	return k;
}

static bool native(void) { return target_native(NULL) != NULL; }

static struct registry *open_registry(struct cache *cache)
{
	const struct registry_options opt = { .build = build, .cache = cache };
	struct registry *r = registry_open(&opt, NULL);

	assert_non_null(r);
	builds = inside = most_inside = callers = hold_until_callers = hold_until_builds = 0;
	fail_builds = false;
	return r;
}

static struct registry_counters count(struct registry *r)
{
	struct registry_counters n;

	registry_count(r, &n);
	return n;
}

/* Calls the kernel when this machine can. */
static bool does_its_work(const struct kernel *k)
{
	float out = -1;
	const uint64_t arg[1] = { (uint64_t)(uintptr_t)&out };

	if (!k->run)
		return !native();
	k->run(arg, 0, 1);
	return out == (float)k->key.rows;
}

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
	struct registry_counters n = count(r);
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
		assert_int_equal(count(r).generated, 1);
		assert_int_equal(count(r).from_memory, THREADS - 1);
		registry_close(r);
	}
}

/* Different keys build side by side: the builds wait for each other here. */
static void test_different_keys_build_at_once(void **unused)
{
	struct registry *r = open_registry(NULL);
	struct asker a[THREADS];

	hold_until_builds = THREADS;
	ask_from_threads(r, a, 1, 1);
	assert_int_equal(builds, THREADS);
	assert_int_equal(most_inside, THREADS);
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
	struct registry_counters n = count(r);
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
	assert_int_equal(count(r).generated, 0);
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

/* --- the disk */

static char dir[] = "/tmp/t_registry-XXXXXX";

static int make_dir(void **unused)
{
	strcpy(dir + sizeof dir - 7, "XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **unused)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	return rmdir(dir);
}

/* Flips one byte of every entry. */
static void damage_entries(void)
{
	DIR *d = opendir(dir);
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
	struct cache *cache = cache_open(dir, NULL, NULL);
	struct registry *r = open_registry(cache);
	struct key key = make_key(3);
	enum kernel_source from;
	struct cache_counters n;

	const struct kernel *k = registry_get(r, &key, &from, NULL);
	assert_non_null(k);
	assert_int_equal(from, expected);
	assert_int_equal(k->source, expected);
	assert_int_equal(builds, expected == KERNEL_GENERATED);
	assert_int_equal(count(r).from_disk, expected == KERNEL_FROM_DISK);
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

	snprintf(pack, sizeof pack, "%s/kernels.jkp", dir);
	for (uint32_t n = 0; n < 2; n++) {
		item[n].key = make_key(n);
		assert_true(compile_key(&item[n].object, &item[n].key, build, NULL, NULL, NULL));
	}
	if (!pack_write(pack, item, 2, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof path, "%s:%s", pack, dir);
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
		assert_int_equal(count(r).from_pack, 2);
		assert_int_equal(count(r).generated, round == 0);
		assert_int_equal(count(r).from_disk, round == 1);
		assert_int_equal(count(r).from_memory, 3);
		registry_close(r);
		cache_close(cache);
	}
	assert_string_equal(kernel_source_name(KERNEL_FROM_PACK), "pack");
	object_free(&item[0].object);
	object_free(&item[1].object);
}

/* --- many from the cache at once */

enum { KEPT = 40, ASKED = 50, LOADERS = 6 };

static void make_keys(struct key *key, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		key[i] = make_key(i);
}

/* The first KEPT of the keys into the cache. */
static void keep_some(const struct key *key)
{
	struct cache *cache = cache_open(dir, NULL, NULL);
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
	struct key key[ASKED];
	struct cache_counters n;
	enum kernel_source from;

	make_keys(key, ASKED);
	keep_some(key);
	struct cache *cache = cache_open(dir, NULL, NULL);
	struct registry *r = open_registry(cache);
	assert_int_equal(registry_load(r, key, 0), 0);
	assert_non_null(registry_get(r, &key[7], &from, NULL));
	assert_int_equal(from, KERNEL_FROM_DISK);
	assert_int_equal(registry_load(r, key, ASKED), KEPT - 1);
	assert_int_equal(registry_load(r, key, KEPT), 0);
	for (uint32_t i = 0; i < ASKED; i++) {
		assert_int_equal(registry_ready(r, &key[i]), i < KEPT);
		const struct kernel *k = registry_get(r, &key[i], &from, NULL);
		assert_non_null(k);
		assert_int_equal(from, i < KEPT ? KERNEL_FROM_MEMORY : KERNEL_GENERATED);
		assert_int_equal(k->source, i < KEPT ? KERNEL_FROM_DISK : KERNEL_GENERATED);
		assert_true(does_its_work(k));
	}
	assert_int_equal(builds, ASKED - KEPT);
	assert_int_equal(count(r).from_disk, KEPT);
	cache_count(cache, &n);
	assert_int_equal(n.hits, KEPT);
	assert_int_equal(n.misses, ASKED - KEPT);
	assert_int_equal(n.stored, ASKED - KEPT);
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
	struct cache *cache = cache_open(dir, NULL, NULL);
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
	struct key key[ASKED];
	struct error err = { 0 };

	make_keys(key, ASKED);
	keep_some(key);
	struct cache *cache = cache_open(dir, &(struct cache_options){ .read_only = true }, NULL),
		     *writer = cache_open(dir, NULL, NULL);
	struct registry *r =
		registry_open(&(struct registry_options){ .build = build, .cache = cache, .sealed = true }, NULL);
	assert_int_equal(registry_load(r, key, ASKED), KEPT);
	assert_null(registry_get(r, &key[KEPT], NULL, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	struct object object;
	assert_true(compile_key(&object, &key[KEPT], build, NULL, NULL, NULL));
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
	struct key key[ASKED];
	struct error err = { 0 }, again = { 0 }, late = { 0 };

	make_keys(key, ASKED);
	keep_some(key);
	struct cache *cache = cache_open(dir, &(struct cache_options){ .read_only = true }, NULL),
		     *writer = cache_open(dir, NULL, NULL);
	struct registry *r =
		registry_open(&(struct registry_options){ .build = build, .cache = cache, .sealed = true }, NULL);
	assert_int_equal(registry_load(r, key, KEPT - 1), KEPT - 1);
	assert_null(registry_get(r, &key[KEPT], NULL, &err));
	uint64_t loaded = count(r).from_disk;
	registry_freeze(r);
	struct object object;
	assert_true(compile_key(&object, &key[KEPT], build, NULL, NULL, NULL));
	assert_true(cache_store(writer, &key[KEPT], &object, NULL));
	object_free(&object);
	assert_null(registry_get(r, &key[KEPT], NULL, &again));
	assert_string_equal(again.text, err.text);
	assert_int_equal(registry_load(r, key, ASKED), 0);
	assert_null(registry_get(r, &key[KEPT - 1], NULL, &late)); /* nobody had asked for it */
	assert_int_equal(late.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(late.text, "it is there now"));
	assert_null(registry_get(r, &key[ASKED - 1], NULL, NULL));
	for (uint32_t i = 0; i < KEPT - 1; i++)
		assert_true(does_its_work(registry_get(r, &key[i], NULL, NULL)));
	assert_int_equal(count(r).from_disk, loaded);
	assert_int_equal(count(r).generated, 0);
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

	l->loaded = registry_load(l->registry, l->key + l->first, ASKED - l->first);
	l->good = true;
	for (uint32_t i = 0; i < ASKED; i++) {
		const struct kernel *k = registry_get(l->registry, &l->key[(i + 7 * l->first) % ASKED], NULL, NULL);
		l->good = l->good && k && does_its_work(k);
	}
	return NULL;
}

/* Threads that load what others load and ask for what others are loading. */
static void test_many_from_many_threads(void **unused)
{
	struct key key[ASKED];
	struct loader l[LOADERS] = { 0 };

	make_keys(key, ASKED);
	keep_some(key);
	for (int round = 0; round < 20; round++) {
		struct cache *cache = cache_open(dir, &(struct cache_options){ .read_only = true }, NULL);
		struct registry *r = open_registry(cache);
		for (uint32_t t = 0; t < LOADERS; t++) {
			l[t] = (struct loader){ .registry = r, .key = key, .first = 3 * t };
			assert_int_equal(pthread_create(&l[t].thread, NULL, load_some, &l[t]), 0);
		}
		for (uint32_t t = 0; t < LOADERS; t++) {
			assert_int_equal(pthread_join(l[t].thread, NULL), 0);
			assert_true(l[t].good);
		}
		assert_int_equal(builds, ASKED - KEPT);
		assert_int_equal(count(r).from_disk, KEPT);
		registry_close(r);
		cache_close(cache);
	}
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

static void test_dumps_come_even_from_a_full_cache(void **unused)
{
	struct cache *cache = cache_open(dir, NULL, NULL);
	struct key key = make_key(3);

	for (int i = 0; i < 2; i++) {
		FILE *ir = tmpfile(), *as = tmpfile();
		assert_true(ir && as);
		const struct registry_options opt = { .build = build, .cache = cache, .dump_ir = ir, .dump_asm = as };
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
	const struct registry_options opt = { .build = build, .perf_map = true };
	struct registry *r = registry_open(&opt, NULL);
	struct key key = make_key(3);

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	unlink(path);
	assert_non_null(registry_get(r, &key, NULL, NULL));
	FILE *f = fopen(path, "r");
	assert_true((f != NULL) == native());
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
		cmocka_unit_test_setup_teardown(test_disk_behind_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_pack_behind_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_dumps_come_even_from_a_full_cache, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_at_once, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_with_trouble, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_sealed, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_frozen, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_many_from_many_threads, make_dir, remove_dir),
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_each_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
