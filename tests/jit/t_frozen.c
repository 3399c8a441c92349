/* tests/jit/t_frozen.c - a registry that is frozen: what it says of a kernel stays what it said before, and it loads
 * nothing, maps nothing and keeps nothing new; loads under way when it is frozen are waited for.
 *
 * The linker leads the library's calls of the system through here (--wrap in Makefile.am). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <sys/types.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "jit/store/cache.h"
#include "jit/store/registry.h"

enum { KEPT = 4, REQUESTED = 6 };

/* ---- calls that are counted, refused, or kept waiting */

static _Atomic bool refuse_pages, hold_reads, watched;
static _Atomic unsigned page_requests, memory_requests, reads_held;

int __real_mprotect(void *p, size_t n, int protection);
int __wrap_mprotect(void *p, size_t n, int protection);
int __wrap_mprotect(void *p, size_t n, int protection)
{
	page_requests++;
	if (!refuse_pages)
		return __real_mprotect(p, n, protection);
	errno = ENOMEM;
	return -1;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	memory_requests += watched;
	return __real_calloc(n, size);
}

static void hold(void)
{
	reads_held += hold_reads;
	while (hold_reads)
		usleep(100);
}

ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
	hold();
	return __real_pread(fd, p, n, at);
}

ssize_t __real_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at)
{
	hold();
	return __real_pread64(fd, p, n, at);
}

/* ---- a cache with some kernels, and a sealed registry on it */

static char dir[] = "/tmp/t_frozen-XXXXXX";
static struct key key[REQUESTED];
static struct cache *cache;
static struct registry *registry;

static bool build(struct ir *ir, const struct key *k, const struct target *target, struct error *err)
{
	(void)target, (void)err;
	ir_fstore1(ir, ir_aload(ir, ir_arg(ir), 0), ir_fconst(ir, (float)k->rows), 0);
	return true;
}

static void store(const struct key *k)
{
	struct cache *writer = cache_open(dir, NULL, NULL);
	struct object object;

	assert_true(compile_key(&object, k, build, NULL, NULL, NULL));
	assert_true(cache_store(writer, k, &object, NULL));
	object_free(&object);
	cache_close(writer);
}

static int open_sealed(void **unused)
{
	(void)unused;
	strcpy(dir + sizeof dir - 7, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	memset(key, 0, sizeof key);
	for (uint32_t i = 0; i < REQUESTED; i++) {
		key[i].kind = KEY_NORM;
		key[i].target = TARGET_AVX2;
		key[i].rows = i + 1;
		key[i].codegen = key_codegen_x86;
		if (i < KEPT)
			store(&key[i]);
	}
	cache = cache_open(dir, &(struct cache_options){ .read_only = true }, NULL);
	registry = registry_open(&(struct registry_options){ .build = build, .cache = cache, .sealed = true }, NULL);
	return cache && registry ? 0 : -1;
}

static int close_sealed(void **unused)
{
	char command[64];

	(void)unused;
	registry_close(registry);
	cache_close(cache);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

/* ---- the tests */

static void damage_entries(void)
{
	char command[160];

	snprintf(command, sizeof command,
	         "for f in %s/*.jko; do printf x | dd of=\"$f\" bs=1 seek=90 conv=notrunc 2>&1; done", dir);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	while (getc(f) != EOF)
		;
	assert_int_equal(pclose(f), 0);
}

/* A damaged kernel was refused as such. That it is whole by now changes neither the answer nor its reason. */
static void test_reason_stays(void **unused)
{
	struct error before = { 0 }, after = { 0 };

	(void)unused;
	damage_entries();
	assert_null(registry_get(registry, &key[0], NULL, &before));
	assert_non_null(strstr(before.text, "damaged"));
	store(&key[0]);
	registry_freeze(registry);
	assert_null(registry_get(registry, &key[0], NULL, &after));
	assert_int_equal(after.code, before.code);
	assert_string_equal(after.text, before.text);
}

/* Kernels for which there were no pages may be had while it is not frozen, and not once it is. */
static void test_no_pages_once_frozen(void **unused)
{
	struct error err = { 0 };

	(void)unused;
	if (!target_native(NULL))
		skip(); /* code that cannot run here needs no pages */
	refuse_pages = true;
	assert_int_equal(registry_load(registry, key, KEPT), 0);
	refuse_pages = false;
	assert_non_null(registry_get(registry, &key[0], NULL, NULL));
	registry_freeze(registry);
	page_requests = 0;
	for (uint32_t i = 1; i < KEPT; i++)
		assert_null(registry_get(registry, &key[i], NULL, &err));
	assert_non_null(strstr(err.text, "it is there now"));
	assert_non_null(registry_get(registry, &key[0], NULL, NULL));
	assert_int_equal(page_requests, 0);
}

/* What nobody had asked for is refused without a place being kept for it. */
static void test_nothing_new_is_kept(void **unused)
{
	(void)unused;
	assert_int_equal(registry_load(registry, key, KEPT), KEPT);
	registry_freeze(registry);
	assert_null(registry_get(registry, &key[KEPT], NULL, NULL)); /* lists what is kept */
	watched = true;
	memory_requests = 0;
	struct key other = key[KEPT + 1];
	for (uint32_t i = 0; i < 40; i++, other.rows++)
		assert_null(registry_get(registry, &other, NULL, NULL));
	watched = false;
	assert_int_equal(memory_requests, 0);
}

static _Atomic bool frozen;

static void *load_one(void *unused)
{
	registry_get(registry, &key[1], NULL, NULL);
	return unused;
}

static void *freeze(void *unused)
{
	registry_freeze(registry);
	frozen = true;
	return unused;
}

/* A thread is reading an entry: the registry is frozen when that is in memory, and not before. */
static void test_loads_are_waited_for(void **unused)
{
	pthread_t loader, freezer;

	(void)unused;
	frozen = false;
	reads_held = 0;
	hold_reads = true;
	assert_int_equal(pthread_create(&loader, NULL, load_one, NULL), 0);
	while (!reads_held)
		usleep(100);
	assert_int_equal(pthread_create(&freezer, NULL, freeze, NULL), 0);
	usleep(100000);
	bool early = frozen;
	hold_reads = false;
	assert_int_equal(pthread_join(freezer, NULL), 0);
	bool ready = registry_ready(registry, &key[1]);
	assert_int_equal(pthread_join(loader, NULL), 0);
	assert_false(early);
	assert_true(ready);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reason_stays, open_sealed, close_sealed),
		cmocka_unit_test_setup_teardown(test_no_pages_once_frozen, open_sealed, close_sealed),
		cmocka_unit_test_setup_teardown(test_nothing_new_is_kept, open_sealed, close_sealed),
		cmocka_unit_test_setup_teardown(test_loads_are_waited_for, open_sealed, close_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
