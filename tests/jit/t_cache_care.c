/* tests/jit/t_cache_care.c - a cache as a product: sources in order, packs among them, the limit and who goes first,
 * what is in use, listing, checking, export and import. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "kernels-templates/templates.h"
#include "tests/jit/stored.h"
#include "tests/jit/cache_care_check.h"

/* --- sources */

static void test_sources_in_order(void **unused)
{
	char path[1024], a[200], b[200], pack[200];
	unsigned from = 9;
	struct object o;

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(a, sizeof a, "%s/a", stored_dir);
	snprintf(b, sizeof b, "%s/b", stored_dir);
	snprintf(pack, sizeof pack, "%s/p.jkp", stored_dir);
	write_pack(pack, 0, 4);
	struct cache *c = stored_open(b, 0);
	stored_store(c, 3);
	stored_store(c, 4);
	cache_close(c);

	snprintf(path, sizeof path, "%s:%s:%s", pack, a, b);
	c = stored_open(path, 0);
	assert_int_equal(cache_source_count(c), 3);
	assert_string_equal(pack_source(c, 0).path, pack);
	assert_int_equal(pack_source(c, 0).kind, CACHE_PACK);
	assert_false(pack_source(c, 0).writable);
	assert_int_equal(pack_source(c, 1).kind, CACHE_DIRECTORY);
	assert_true(pack_source(c, 1).writable && pack_source(c, 2).writable);
	assert_string_equal(cache_directory(c), a);
	for (uint32_t n = 0; n < 6; n++)
		assert_int_equal(stored_load(c, n), n < 5);
	struct key k = stored_key(4);
	assert_true(cache_load(c, &k, &o, &from, NULL) == RECORD_FOUND);
	assert_int_equal(from, 2);
	object_free(&o);
	stored_store(c, 5);
	assert_int_equal(stored_load(c, 5), 1);
	assert_int_equal(pack_source(c, 0).count.hits, 4);
	assert_int_equal(pack_source(c, 0).count.misses, 4);
	assert_int_equal(pack_source(c, 1).count.hits, 1);
	assert_int_equal(pack_source(c, 1).count.misses, 3);
	assert_int_equal(pack_source(c, 1).count.stored, 1);
	assert_int_equal(pack_source(c, 2).count.hits, 2);
	assert_int_equal(pack_source(c, 2).count.misses, 1);
	assert_int_equal(pack_source(c, 2).count.stored, 0);
	struct cache_counters all = stored_count(c);
	assert_int_equal(all.hits, 7);
	assert_int_equal(all.misses, 1);
	assert_int_equal(all.stored, 1);
	assert_int_equal(all.damaged + all.store_failed + all.evicted, 0);
	cache_close(c);

	/* a pack alone: nothing can be stored, which is counted */
	c = stored_open(pack, 0);
	assert_null(cache_directory(c));
	stored_store(c, 9);
	assert_int_equal(stored_count(c).store_failed, 1);
	cache_close(c);
}

static void test_paths_that_are_refused(void **unused)
{
	static const struct {
		const char *format, *words;
		enum error_code code;
	} bad[] = {
		{ "", "empty", ERROR_ARGUMENT },
		{ "%s:", "empty", ERROR_ARGUMENT },
		{ ":%s", "empty", ERROR_ARGUMENT },
		{ "%s::%s", "empty", ERROR_ARGUMENT },
		{ "%s/none.jkp", "No such file", ERROR_IO },
		{ "%s:%s/none.jkp", "No such file", ERROR_IO },
		{ "%s/junk", "pack file", ERROR_FORMAT },
	};
	char path[1024], junk[200];

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(junk, sizeof junk, "%s/junk", stored_dir);
	stored_write_file(junk, (const uint8_t *)"junk", 4);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct error err = { 0 };
		const char *at = bad[i].format;
		size_t n = 0;
		for (; *at; at++)
			if (*at == '%' && *++at)
				n += (size_t)snprintf(path + n, sizeof path - n, "%s", stored_dir);
			else
				path[n++] = *at;
		path[n] = 0;
		assert_null(cache_open(path, NULL, &err));
		assert_int_equal(err.code, bad[i].code);
		if (!strstr(err.text, bad[i].words))
			fail_msg("%s: %s", path, err.text);
	}
	char many[CACHE_MAX_SOURCES * 200 + 200] = "";
	for (int i = 0; i <= CACHE_MAX_SOURCES; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), "%s%s", i ? ":" : "", stored_dir);
	struct error err = { 0 };
	assert_null(cache_open(many, NULL, &err));
	assert_int_equal(err.code, ERROR_ARGUMENT);
	*strrchr(many, ':') = 0;
	struct cache *c = cache_open(many, NULL, NULL);
	assert_non_null(c);
	cache_close(c);
}

static void test_damage_in_one_source_is_mended_by_the_next(void **unused)
{
	char path[1024], a[200], pack[200], entry[256];

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	snprintf(a, sizeof a, "%s", stored_dir);
	snprintf(pack, sizeof pack, "%s/p.jkp", stored_dir);
	write_pack(pack, 0, 3);
	struct cache *c = stored_open(a, 0);
	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, entry);
	flip_byte(entry, 130);
	snprintf(path, sizeof path, "%s:%s", a, pack);
	c = stored_open(path, 0);
	assert_int_equal(stored_load(c, 0), 1);
	assert_int_equal(pack_source(c, 0).count.damaged, 1);
	assert_int_equal(pack_source(c, 1).count.hits, 1);
	assert_int_equal(stored_count(c).misses, 0);
	cache_close(c);
}

/* A directory that is only looked at is not made, marked or locked. */
static void test_read_only(void **unused)
{
	const struct cache_options look = { .read_only = true };
	struct stat before, after;
	char entry[256];

	assert_null(cache_open(stored_dir, &look, NULL));
	assert_int_not_equal(access(stored_dir, F_OK), 0);
	struct cache *c = stored_open(stored_dir, 0);
	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, entry);
	stored_set_age(entry, 100000);
	assert_int_equal(stat(entry, &before), 0);
	c = cache_open(stored_dir, &look, NULL);
	assert_non_null(c);
	assert_int_equal(stored_load(c, 0), 1);
	stored_store(c, 1);
	assert_int_equal(stored_count(c).stored, 0);
	assert_int_equal(stat(entry, &after), 0);
	assert_int_equal(before.st_mtime, after.st_mtime);
	cache_close(c);
}

/* --- the limit */

static void test_the_oldest_go_first(void **unused)
{
	enum { N = 30 };
	struct cache *c = stored_open(stored_dir, 0);
	char entry[256];

	for (uint32_t n = 0; n < N; n++)
		stored_store(c, n);
	uint64_t bytes = size_of(c);
	cache_close(c);
	for (uint32_t n = 0; n < N; n++) {
		stored_entry_path(n, entry);
		stored_set_age(entry, 1000 + (n * 7 % N) * 1000);
	}
	/* used again, long before another process makes room: its age does not count any more */
	c = stored_open(stored_dir, 0);
	uint32_t oldest = 0;
	while (oldest * 7 % N != N - 1)
		oldest++;
	assert_int_equal(stored_load(c, oldest), 1);
	cache_close(c);

	c = stored_open(stored_dir, bytes / 2);
	stored_store(c, N);
	assert_true(size_of(c) <= bytes / 2);
	assert_true(stored_count(c).evicted > N / 3);
	assert_int_equal(stored_load(c, N), 1);
	assert_int_equal(stored_load(c, oldest), 1);
	/* those that are left are the youngest */
	bool gone = false;
	for (uint32_t age = 0; age < N - 1; age++)
		for (uint32_t n = 0; n < N; n++)
			if (n * 7 % N == age) {
				bool there = stored_load(c, n) == 1;
				assert_false(there && gone);
				gone = !there;
			}
	cache_close(c);
}

static void test_limit_holds_while_storing(void **unused)
{
	const uint64_t limit = 40000;
	struct cache *c = stored_open(stored_dir, limit), *other = stored_open(stored_dir, limit);

	/* nothing is held: what is stored by one who has closed can go */
	for (uint32_t n = 0; n < 300; n++) {
		if (n % 10 == 0) {
			cache_close(c);
			c = stored_open(stored_dir, limit);
		}
		stored_store(c, n);
		assert_int_equal(stored_load(c, n), 1);
		assert_true(size_of(other) <= limit + 8000); /* the ten that are in use may be more */
	}
	cache_close(c);
	cache_close(other);
}

/* What another process uses stays, whatever its age; when that process is killed it may go. */
static void test_in_use(void **unused)
{
	struct cache *c = stored_open(stored_dir, 0);
	struct cache_gc gone;
	int ready[2];
	char byte, entry[256];

	for (uint32_t n = 0; n < 10; n++)
		stored_store(c, n);
	cache_close(c);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct cache *mine = cache_open(stored_dir, NULL, NULL);
		for (uint32_t n = 0; n < 3; n++)
			if (stored_load(mine, n) != 1)
				_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (uint32_t n = 0; n < 10; n++) {
		stored_entry_path(n, entry);
		stored_set_age(entry, n < 3 ? 1000000 : 10);
	}
	c = stored_open(stored_dir, 1);
	stored_store(c, 20);
	assert_int_equal(stored_count(c).evicted, 7);
	assert_true(cache_gc(c, 0, &gone, NULL));
	assert_int_equal(gone.removed, 0);
	assert_int_equal(gone.in_use, 4); /* the child's three, and one's own */
	assert_int_equal(gone.entries, 4);
	for (uint32_t n = 0; n < 10; n++)
		assert_int_equal(stored_load(c, n), n < 3);
	cache_close(c);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
	c = stored_open(stored_dir, 0);
	assert_true(cache_gc(c, 0, &gone, NULL));
	assert_int_equal(gone.removed, 4);
	assert_int_equal(gone.in_use, 0);
	assert_int_equal(stored_files(".jko"), 0);
	cache_close(c);
}

/* What was loaded at once is in use as a whole, though it was stored in another order, and what lies between is not. */
static void test_in_use_at_once(void **unused)
{
	enum { STORED = 300, LOADED = 200 };
	struct cache *c = stored_open(stored_dir, 0);
	struct key key[LOADED];
	const struct key *want[LOADED];
	struct object object[LOADED];
	enum record_answer answer[LOADED];
	unsigned source[LOADED];
	struct cache_gc gone;

	for (uint32_t n = 0; n < STORED; n++)
		stored_store(c, n * 7 % STORED);
	cache_close(c);
	struct cache *user = stored_open(stored_dir, 0);
	for (uint32_t n = 0; n < LOADED; n++) {
		key[n] = stored_key(n + n / 2); /* two of three */
		want[n] = &key[n];
	}
	cache_load_all(user, want, LOADED, object, answer, source);
	for (uint32_t n = 0; n < LOADED; n++) {
		struct object like = stored_object(n + n / 2);
		assert_true(object[n].code && source[n] == 0 && stored_same(&object[n], &like));
		object_free(&like);
		object_free(&object[n]);
	}
	assert_int_equal(stored_count(user).hits, LOADED);
	c = stored_open(stored_dir, 0);
	assert_true(cache_gc(c, 0, &gone, NULL));
	assert_int_equal(gone.in_use, LOADED);
	assert_int_equal(gone.removed, STORED - LOADED);
	cache_close(user);
	assert_true(cache_gc(c, 0, &gone, NULL));
	assert_int_equal(gone.removed, LOADED);
	cache_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_sources_in_order),
		T(test_paths_that_are_refused),
		T(test_damage_in_one_source_is_mended_by_the_next),
		T(test_read_only),
		T(test_the_oldest_go_first),
		T(test_limit_holds_while_storing),
		T(test_in_use),
		T(test_in_use_at_once),
	};
	int failed = cmocka_run_group_tests(tests, stored_make_base, stored_remove_base);

	failed += cache_upkeep_tests();
	return failed;
}
