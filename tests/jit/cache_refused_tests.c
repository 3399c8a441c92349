/* tests/jit/cache_refused_tests.c - a cache where the system refuses, the clock goes back, or others have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "kernels-templates/templates.h"
#include "tests/jit/stored.h"
#include "tests/jit/cache_refused_tests.h"

static void needs_root(void)
{
	if (geteuid() != 0) {
		print_message("only root can become another user or mount: skipped\n");
		skip();
	}
}

/* --- the system refuses */

static int no_descriptors_steps(void *user)
{
	struct error err = { 0 };
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	int spare = dup(0);

	stored_store(c, 2);
	const struct rlimit small = { (rlim_t)spare + 1, (rlim_t)spare + 1 };
	if (setrlimit(RLIMIT_NOFILE, &small))
		return 1;
	while (dup(0) >= 0)
		;
	if (stored_load(c, 0) != 0 || stored_load(c, 1) != 0)
		return 2;
	stored_store(c, 0);
	stored_store(c, 1);
	if (stored_count(c).store_failed != 2)
		return 3;
	if (cache_open(stored_dir, NULL, &err) || !strstr(err.text, "Too many open files"))
		return 4;
	close(spare);
	return stored_load(c, 0) == 1 ? 0 : 5;
}

static void test_no_file_descriptors(void **unused)
{
	struct cache *c = stored_open(stored_dir, 0);

	stored_store(c, 0);
	assert_int_equal(stored_in_child(no_descriptors_steps, NULL, false), 0);
	assert_int_equal(stored_load(c, 0), 1);
	assert_int_equal(stored_load(c, 1), 0);
	assert_int_equal(stored_files(".tmp"), 0);
	cache_close(c);
}

static int no_rights_steps(void *user)
{
	struct error err = { 0 };
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	char path[256];

	stored_store(c, 0);
	stored_store(c, 1);
	stored_entry_path(0, path);
	if (chmod(path, 0) || stored_load(c, 0) != 0 || stored_count(c).failed != 1 || stored_count(c).damaged != 0 ||
	    stored_load(c, 1) != 1)
		return 1;
	stored_store(c, 0);
	if (stored_load(c, 0) != 1)
		return 2;
	cache_close(c);
	if (chmod(stored_dir, 0300) || (c = cache_open(stored_dir, NULL, &err)) ||
	    !strstr(err.text, "Permission denied"))
		return 3;
	return chmod(stored_dir, 0700) != 0;
}

static void test_no_rights(void **unused)
{
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(stored_dir, STORED_OTHER_USER, STORED_OTHER_USER), 0);
	assert_int_equal(stored_in_child(no_rights_steps, NULL, geteuid() == 0), 0);
}

/* A mount namespace of its own, in which nothing is seen outside. */
static bool may_mount(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int full_disk_steps(void *user)
{
	uint32_t n = 0, last;
	struct cache_gc gone;

	if (!may_mount() || mount("none", stored_dir, "tmpfs", 0, "size=64k,mode=0700"))
		return NOT_POSSIBLE;
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	for (; n < 1000 && stored_count(c).store_failed < 3; n++)
		stored_store(c, n);
	if (n == 1000 || stored_files(".tmp") != 0)
		return 1;
	for (last = 0; last < n - 3; last++)
		if (stored_load(c, last) < 0)
			return 2;
	if (stored_load(c, 0) != 1 || stored_count(c).damaged != 0)
		return 3;
	stored_store(c, 0); /* no room for the new one: the old one stays */
	if (stored_load(c, 0) != 1)
		return 4;
	cache_close(c);
	c = cache_open(stored_dir, NULL, NULL);
	if (!cache_gc(c, 8000, &gone, NULL) || !gone.removed)
		return 5;
	stored_store(c, 2000);
	return stored_load(c, 2000) == 1 ? 0 : 6;
}

static void test_full_file_system(void **unused)
{
	needs_root();
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	int got = stored_in_child(full_disk_steps, NULL, false);
	if (got == NOT_POSSIBLE) {
		print_message("no file system can be mounted here: skipped\n");
		skip();
	}
	assert_int_equal(got, 0);
}

static int read_only_steps(void *user)
{
	struct cache_gc gone;
	struct error err = { 0 };

	if (!may_mount() || mount(stored_dir, stored_dir, NULL, MS_BIND, NULL) ||
	    mount(NULL, stored_dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		return NOT_POSSIBLE;
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	if (!c || cache_directory(c) || stored_load(c, 0) != 1 || stored_load(c, 1) != 0)
		return 1;
	stored_store(c, 1);
	if (stored_count(c).store_failed != 1 || stored_load(c, 0) != 1 || !cache_gc(c, 0, &gone, NULL) || gone.removed)
		return 2;
	char path[300];
	snprintf(path, sizeof path, "%s/x.jkp", stored_dir);
	const struct pack_item item = { stored_key(0), stored_object(0) };
	return pack_write(path, &item, 1, &err) || !strstr(err.text, "Read-only file system") ? 3 : 0;
}

static void test_read_only_file_system(void **unused)
{
	needs_root();
	struct cache *c = stored_open(stored_dir, 0);
	char path[256];
	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, path);
	stored_set_age(path, 1000000); /* to be marked as used, which cannot be */
	int got = stored_in_child(read_only_steps, NULL, false);
	if (got == NOT_POSSIBLE) {
		print_message("no file system can be mounted here: skipped\n");
		skip();
	}
	assert_int_equal(got, 0);
}

/* --- the clock goes back */

static void test_clock_goes_back(void **unused)
{
	const long year = 365 * 86400;
	struct cache *c = stored_open(stored_dir, 0);
	struct stat st;
	char path[256];

	for (uint32_t n = 0; n < 4; n++) {
		stored_store(c, n);
		stored_entry_path(n, path);
		stored_set_age(path, n == 3 ? 100 : -year);
	}
	cache_close(c);
	c = stored_open(stored_dir, 0);
	assert_int_equal(stored_load(c, 0), 1); /* used since: it has today's time again */
	stored_entry_path(0, path);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_mtime, time(NULL) - 60, time(NULL) + 60);
	cache_close(c);

	snprintf(path, sizeof path, "%s/x-1-1-1.tmp", stored_dir);
	stored_write_file(path, (const uint8_t *)"half", 4);
	stored_set_age(path, -year);
	struct cache_gc gone;
	uint64_t bytes, entries;
	c = stored_open(stored_dir, 0);
	assert_true(cache_size(c, true, &bytes, &entries, NULL, NULL));
	assert_int_equal(entries, 4);
	assert_true(cache_gc(c, bytes - 1, &gone, NULL)); /* one that was not used since the clock went back */
	assert_int_equal(gone.removed, 1);
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(stored_load(c, 0), 1);
	assert_int_equal(stored_load(c, 3), 1);
	assert_int_equal(stored_load(c, 1) + stored_load(c, 2), 1);
	cache_close(c);
}

/* --- other versions */

static bool see_trouble(const struct cache_item *item, void *user)
{
	const char **trouble = user;

	*trouble = item->trouble;
	return true;
}

static void test_other_versions(void **unused)
{
	static uint8_t good[1 << 16], other[1 << 16];
	const uint32_t versions[] = { 0, 1, 2, 3, VERSION + 1, 1000, UINT32_MAX };
	char path[256], pack[300];
	uint64_t n;

	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		struct cache *c = stored_open(stored_dir, 0);
		struct error err = { 0 };
		const char *trouble = NULL;
		stored_store(c, 0);
		stored_entry_path(0, path);
		size_t bytes = stored_read_file(path, good, sizeof good);
		memcpy(other, good, bytes);
		memcpy(other + AT_VERSION, &versions[i], 4);
		stored_write_file(path, other, bytes);
		assert_int_equal(stored_load(c, 0), 0);
		assert_int_equal(stored_count(c).damaged, 1);
		assert_true(cache_each(c, see_trouble, &trouble, NULL));
		assert_non_null(trouble);
		assert_non_null(strstr(trouble, "version"));
		stored_store(c, 0);
		assert_int_equal(stored_load(c, 0), 1);

		snprintf(pack, sizeof pack, "%s/v.jkp", stored_dir);
		assert_true(cache_export(c, pack, NULL, NULL, &n, NULL));
		bytes = stored_read_file(pack, other, sizeof other);
		memcpy(other + AT_VERSION, &versions[i], 4);
		stored_write_file(pack, other, bytes);
		assert_null(pack_open(pack, &err));
		assert_int_equal(err.code, ERROR_FORMAT);
		assert_non_null(strstr(err.text, "another version"));
		cache_close(c);
	}
}

/* --- other users */

static int refused_steps(void *user)
{
	struct error err = { 0 };

	return cache_open(user, NULL, &err)           ? 1
	       : err.code != ERROR_ARGUMENT           ? 2
	       : !strstr(err.text, "belongs to user") ? 3
	                                              : 0;
}

static int reads_roots_steps(void *user)
{
	struct cache *c = cache_open(user, NULL, NULL);

	if (!c || cache_directory(c))
		return 1;
	if (stored_load(c, 0) != 1 || stored_load(c, 1) != 0)
		return 2;
	stored_store(c, 1);
	return stored_count(c).stored ? 3 : 0;
}

static void test_other_users(void **unused)
{
	char path[256], pack[300];
	const struct pack_item item = { stored_key(0), stored_object(0) };

	needs_root();
	struct cache *c = stored_open(stored_dir, 0);
	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, path);
	snprintf(pack, sizeof pack, "%s/p.jkp", stored_dir);
	assert_true(pack_write(pack, &item, 1, NULL));

	assert_int_equal(stored_in_child(reads_roots_steps, pack, true), 1); /* the directory is closed to others */
	assert_int_equal(chmod(stored_dir, 0755), 0);
	assert_int_equal(stored_in_child(reads_roots_steps, pack, true), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(stored_in_child(reads_roots_steps, stored_dir, true), 0);
	assert_int_equal(chmod(pack, 0664), 0);
	assert_null(cache_open(pack, NULL, NULL));

	/* what another user owns is good for nobody else, not even root */
	assert_int_equal(chmod(pack, 0644), 0);
	assert_int_equal(chown(pack, STORED_OTHER_USER, STORED_OTHER_USER), 0);
	assert_int_equal(refused_steps(pack), 0);
	assert_int_equal(stored_in_child(reads_roots_steps, pack, true), 0);
	assert_int_equal(chown(pack, 12345, 12345), 0);
	assert_int_equal(stored_in_child(refused_steps, pack, true), 0);
	assert_int_equal(chown(stored_dir, 12345, 12345), 0);
	assert_int_equal(refused_steps(stored_dir), 0);
	assert_int_equal(stored_in_child(refused_steps, stored_dir, true), 0);
	assert_int_equal(chown(stored_dir, 0, 0), 0);
	object_free(&(struct object){ .code = item.object.code });
}

int cache_refused_tests(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_no_file_descriptors),   T(test_no_rights),       T(test_full_file_system),
		T(test_read_only_file_system), T(test_clock_goes_back), T(test_other_versions),
		T(test_other_users),
	};

	return cmocka_run_group_tests_name("cache_refused_tests", tests, stored_make_base, stored_remove_base);
}
