/* tests/jit/t_cache.c - the disk cache against damage, other processes, sudden death and directories it must refuse.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zstd.h>
#include <cmocka.h>

#include "tests/jit/stored.h"
#include "tests/jit/cache_company_tests.h"

enum {
	VERSION = 4,
	AT_VERSION = 8,
	AT_RECORD_BYTES = 12,
	AT_RECORD = 16,
	AT_KEY = 16,
	AT_OFFSET = 64,
	AT_BODY_BYTES = 72,
	AT_CODE = 76,
	AT_POOL = 80,
	AT_ZERO = 92,
	AT_SUM = 104,
	AT_BODY = 112
};

/* Gives a forged entry a checksum that fits. */
static void seal(uint8_t *p, size_t n)
{
	uint64_t h = stored_sum(p + AT_BODY, n - AT_BODY, stored_sum(p + AT_RECORD, AT_SUM - AT_RECORD, VERSION));

	memcpy(p + AT_SUM, &h, 8);
}

struct cache *open_cache(void) { return stored_open(stored_dir, 0); }

/* --- ordinary life */

static void test_store_and_load(void **unused)
{
	struct cache *c = open_cache();

	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(stored_load(c, n), 0);
	assert_int_equal(stored_count(c).misses, 20);
	assert_int_equal(stored_count(c).damaged, 0);
	for (uint32_t n = 0; n < 20; n++)
		stored_store(c, n);
	cache_close(c);
	c = open_cache();
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(stored_load(c, n), 1);
	assert_int_equal(stored_load(c, 20), 0);
	assert_int_equal(stored_count(c).hits, 20);
	assert_int_equal(stored_count(c).misses, 1);
	assert_int_equal(stored_count(c).damaged, 0);
	assert_int_equal(stored_files(".jko"), 20);
	assert_int_equal(stored_files(".tmp"), 0);
	cache_close(c);
	cache_close(NULL);
}

static void test_makes_parents_for_the_owner_only(void **unused)
{
	char path[512];
	struct stat st;
	mode_t before = umask(0);

	snprintf(path, sizeof path, "%s/a//b/c/", stored_dir);
	struct cache *c = cache_open(path, NULL, NULL);
	umask(before);
	assert_non_null(c);
	cache_close(c);
	for (snprintf(path, sizeof path, "%s/a/b/c", stored_dir); strcmp(path, stored_dir); *strrchr(path, '/') = 0) {
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
	}
}

static void test_default_path(void **unused)
{
	static const char *const names[] = { "HOME", "XDG_CACHE_HOME", "JITRUN_CACHE" };
	char out[64], *before[3];

	for (int i = 0; i < 3; i++)
		before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
	setenv("JITRUN_CACHE", "/a:/b.jkp", 1);
	assert_true(cache_default_path(out, sizeof out));
	assert_string_equal(out, "/a:/b.jkp");
	setenv("JITRUN_CACHE", "", 1);
	setenv("HOME", "/h", 1);
	setenv("XDG_CACHE_HOME", "/x", 1);
	assert_true(cache_default_path(out, sizeof out));
	assert_string_equal(out, "/x/jitrun");
	setenv("XDG_CACHE_HOME", "relative", 1);
	assert_true(cache_default_path(out, sizeof out));
	assert_string_equal(out, "/h/.cache/jitrun");
	unsetenv("XDG_CACHE_HOME");
	assert_true(cache_default_path(out, sizeof out));
	assert_string_equal(out, "/h/.cache/jitrun");
	assert_false(cache_default_path(out, 8));
	setenv("HOME", "home", 1); /* nothing is made below the working directory */
	assert_false(cache_default_path(out, sizeof out));
	setenv("HOME", "", 1);
	assert_false(cache_default_path(out, sizeof out));
	unsetenv("HOME");
	assert_false(cache_default_path(out, sizeof out));
	for (int i = 0; i < 3; i++) {
		if (before[i])
			setenv(names[i], before[i], 1);
		else
			unsetenv(names[i]);
		free(before[i]);
	}
}

/* --- directories */

static void refused(const char *path, enum error_code code, const char *word)
{
	struct error err = { 0 };

	assert_null(cache_open(path, NULL, &err));
	assert_int_equal(err.code, code);
	if (!strstr(err.text, word) || !strstr(err.text, path))
		fail_msg("\"%s\" names neither %s nor \"%s\"", err.text, path, word);
}

static void test_refused_directories(void **unused)
{
	static const mode_t open_to_others[] = { 0770, 0707, 0720, 0702, 01777 };
	char path[512];

	assert_int_equal(mkdir(stored_dir, 0700), 0);
	for (size_t i = 0; i < sizeof open_to_others / sizeof open_to_others[0]; i++) {
		assert_int_equal(chmod(stored_dir, open_to_others[i]), 0);
		refused(stored_dir, ERROR_ARGUMENT, "mode");
	}
	assert_int_equal(chmod(stored_dir, 0755), 0);
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	assert_non_null(c);
	cache_close(c);
	snprintf(path, sizeof path, "%s/file", stored_dir);
	stored_write_file(path, (const uint8_t *)"x", 1);
	refused(path, ERROR_FORMAT, "damaged");
	snprintf(path, sizeof path, "%s/file/below", stored_dir);
	refused(path, ERROR_IO, "Not a directory");
	refused("", ERROR_ARGUMENT, "empty");
	if (geteuid() == 0) {
		assert_int_equal(chown(stored_dir, STORED_OTHER_USER, STORED_OTHER_USER), 0);
		refused(stored_dir, ERROR_ARGUMENT, "belongs to user 65534");
		assert_int_equal(chown(stored_dir, 0, 0), 0);
	} else {
		c = cache_open("/usr", NULL, NULL); /* root's is read */
		assert_non_null(c);
		assert_null(cache_directory(c));
		cache_close(c);
	}
}

/* Runs without the right to write: loads work, stores are counted. Returns the number of the step that failed. */
static int read_only_steps(void)
{
	struct cache *c = cache_open(stored_dir, NULL, NULL);

	if (!c)
		return 1;
	if (stored_load(c, 0) != 1 || stored_load(c, 1) != 0)
		return 2;
	stored_store(c, 0);
	stored_store(c, 1);
	struct cache_counters n = stored_count(c);
	if (n.stored != 0 || n.store_failed != 2 || n.damaged != 0)
		return 3;
	if (stored_load(c, 0) != 1)
		return 4;
	cache_close(c);
	return 0;
}

static void test_read_only_directory(void **unused)
{
	struct cache *c = open_cache();
	char path[256];
	int status;

	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, path);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, STORED_OTHER_USER, STORED_OTHER_USER), 0);
		assert_int_equal(chown(stored_dir, STORED_OTHER_USER, STORED_OTHER_USER), 0);
	}
	assert_int_equal(chmod(stored_dir, 0500), 0);
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 && (setgid(STORED_OTHER_USER) || setuid(STORED_OTHER_USER)))
			_exit(9);
		_exit(read_only_steps());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(chmod(stored_dir, 0700), 0);
}

/* No room: the write stops half way. The entry that was there stays, and nothing is left behind. */
static int full_disk_steps(void)
{
	const struct rlimit room = { 60, 60 };
	struct cache *c = cache_open(stored_dir, NULL, NULL);

	signal(SIGXFSZ, SIG_IGN);
	if (!c || setrlimit(RLIMIT_FSIZE, &room))
		return 1;
	stored_store(c, 0);
	stored_store(c, 1);
	struct cache_counters n = stored_count(c);
	return n.stored != 0 || n.store_failed != 2 ? 2 : stored_load(c, 0) != 1 ? 3 : stored_load(c, 1) != 0 ? 4 : 0;
}

static void test_full_disk(void **unused)
{
	struct cache *c = open_cache();
	int status;

	stored_store(c, 0);
	pid_t child = fork();
	if (child == 0)
		_exit(full_disk_steps());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(stored_files(".jko"), 1);
	assert_int_equal(stored_load(c, 0), 1);
	cache_close(c);
}

static void test_objects_out_of_range(void **unused)
{
	struct cache *c = open_cache();
	struct key k = stored_key(0);
	uint8_t byte = 0;
	const struct object empty = { .code = &byte }, pool = { .code = &byte, .code_bytes = 1, .pool_offset = 2 };
	const struct object huge = { .code = &byte, .code_bytes = (16 << 20) + 1 };
	const struct object *bad[] = { &empty, &pool, &huge };

	for (size_t i = 0; i < 3; i++)
		cache_store(c, &k, bad[i], NULL);
	assert_int_equal(stored_count(c).store_failed, 3);
	assert_int_equal(stored_files(".jko"), 0);
	cache_close(c);
}

/* --- damage */

/* The entry now on disk is a counted miss, and the next store heals it. */
static void is_damage(struct cache *c, uint32_t n, const char *what, size_t where)
{
	struct cache_counters before = stored_count(c);
	int got = stored_load(c, n);
	struct cache_counters after = stored_count(c);

	if (got != 0 || after.damaged != before.damaged + 1 || after.misses != before.misses + 1 ||
	    after.hits != before.hits)
		fail_msg("%s at %zu: load gave %d", what, where, got);
}

static void test_flipped_bits_and_cuts(void **unused)
{
	static uint8_t good[1 << 16], bad[1 << 16];
	struct cache *c = open_cache();
	char path[256];

	stored_store(c, 7);
	stored_entry_path(7, path);
	size_t n = stored_read_file(path, good, sizeof good);
	assert_true(n > AT_BODY + 8);
	for (size_t i = 0; i < n; i++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(bad, good, n);
			bad[i] ^= (uint8_t)(1 << bit);
			stored_write_file(path, bad, n);
			is_damage(c, 7, "a flipped bit", i);
		}
	for (size_t cut = 0; cut < n; cut++) {
		stored_write_file(path, good, cut);
		is_damage(c, 7, "a cut", cut);
	}
	memcpy(bad, good, n);
	bad[n] = 0;
	stored_write_file(path, bad, n + 1);
	is_damage(c, 7, "a byte more", n);
	stored_store(c, 7);
	assert_int_equal(stored_load(c, 7), 1);
	assert_int_equal(stored_read_file(path, bad, sizeof bad), n);
	assert_memory_equal(good, bad, n);
	cache_close(c);
}

static void test_entries_of_others(void **unused)
{
	static uint8_t bytes[1 << 16];
	struct cache *c = open_cache();
	char mine[256], theirs[256], other[512];

	stored_store(c, 1);
	stored_store(c, 2);
	stored_entry_path(1, mine);
	stored_entry_path(2, theirs);
	size_t n = stored_read_file(theirs, bytes, sizeof bytes);
	stored_write_file(mine, bytes, n);
	is_damage(c, 1, "another key's entry", 0);
	stored_store(c, 1);
	assert_int_equal(stored_load(c, 1), 1);

	assert_int_equal(chmod(mine, 0666), 0);
	is_damage(c, 1, "an entry others may write", 0);
	if (geteuid() == 0) {
		assert_int_equal(chmod(mine, 0600), 0);
		assert_int_equal(chown(mine, STORED_OTHER_USER, STORED_OTHER_USER), 0);
		is_damage(c, 1, "an entry of another user", 0);
	}
	assert_int_equal(unlink(mine), 0);
	snprintf(other, sizeof other, "%s/elsewhere", stored_dir);
	assert_int_equal(rename(theirs, other), 0);
	assert_int_equal(symlink("elsewhere", theirs), 0);
	is_damage(c, 2, "a link", 0);
	stored_store(c, 2);
	assert_int_equal(stored_load(c, 2), 1);

	assert_int_equal(mkdir(mine, 0700), 0);
	is_damage(c, 1, "a directory", 0);
	uint64_t failed = stored_count(c).store_failed;
	stored_store(c, 1);
	assert_int_equal(stored_count(c).store_failed, failed + 1);
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(rmdir(mine), 0);
	assert_int_equal(mkfifo(mine, 0600), 0);
	is_damage(c, 1, "a pipe", 0);
	stored_store(c, 1);
	assert_int_equal(stored_load(c, 1), 1);
	cache_close(c);
}

/* Entries whose checksum fits and whose fields lie. */
static void test_forged_fields(void **unused)
{
	static const struct {
		size_t at;
		uint32_t value;
	} lies[] = {
		{ 0, 0x74696a },
		{ AT_VERSION, 0 },
		{ AT_VERSION, VERSION - 1 },
		{ AT_VERSION, VERSION + 1 },
		{ AT_VERSION, UINT32_MAX },
		{ AT_RECORD_BYTES, 88 },
		{ AT_RECORD_BYTES, 0 },
		{ AT_CODE, 0 },
		{ AT_CODE, 39 },
		{ AT_CODE, 41 },
		{ AT_CODE, (16 << 20) + 1 },
		{ AT_CODE, UINT32_MAX },
		{ AT_POOL, 41 },
		{ AT_POOL, UINT32_MAX },
		{ AT_BODY_BYTES, 0 },
		{ AT_BODY_BYTES, 1 },
		{ AT_BODY_BYTES, UINT32_MAX },
		{ AT_ZERO, 1 },
		{ AT_OFFSET, 0 },
		{ AT_OFFSET, 113 },
		{ AT_OFFSET + 4, 1 },
		{ AT_KEY, 1 },
		{ AT_KEY + 40, 43 },
		{ AT_BODY, 0 },
		{ AT_BODY + 4, UINT32_MAX },
	};
	static uint8_t good[1 << 16], bad[1 << 16];
	struct cache *c = open_cache();
	char path[256];

	stored_store(c, 0);
	stored_entry_path(0, path);
	size_t n = stored_read_file(path, good, sizeof good);
	memcpy(bad, good, n);
	seal(bad, n);
	assert_memory_equal(good, bad, n);
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		memcpy(bad, good, n);
		memcpy(bad + lies[i].at, &lies[i].value, 4);
		seal(bad, n);
		stored_write_file(path, bad, n);
		is_damage(c, 0, "a lie", lies[i].at);
	}
	cache_close(c);
}

/* Sound in every other way, but the code unpacks to nothing, or to more than code may be. */
static void test_forged_sizes(void **unused)
{
	static const uint32_t sizes[] = { 0, (16 << 20) + 1, 64 << 20,
		                          1 }; /* the last one is good: the forgery is sound */
	static uint8_t header[AT_BODY], bad[1 << 16];
	struct cache *c = open_cache();
	struct key k = stored_key(0);
	struct object got;
	char path[256];

	stored_store(c, 0);
	stored_entry_path(0, path);
	assert_true(stored_read_file(path, bad, sizeof bad) > sizeof header);
	memcpy(header, bad, sizeof header);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		uint8_t *zeros = calloc(1, sizes[i] + 1);
		assert_non_null(zeros);
		uint32_t body = (uint32_t)ZSTD_compress(bad + AT_BODY, sizeof bad - AT_BODY, zeros, sizes[i], 3);
		assert_false(ZSTD_isError(body));
		free(zeros);
		memcpy(bad, header, sizeof header);
		memcpy(bad + AT_CODE, &sizes[i], 4);
		memset(bad + AT_POOL, 0, 4);
		memcpy(bad + AT_BODY_BYTES, &body, 4);
		seal(bad, AT_BODY + body);
		stored_write_file(path, bad, AT_BODY + body);
		if (sizes[i] != 1)
			is_damage(c, 0, "a size out of range", sizes[i]);
	}
	assert_true(cache_load(c, &k, &got, NULL, NULL) == RECORD_FOUND);
	assert_int_equal(got.code_bytes, 1);
	free(got.code);
	cache_close(c);
}

/* A hole of 64 MiB in place of an entry is not read into memory. */
static void test_oversized_entry(void **unused)
{
	struct cache *c = open_cache();
	char path[256];

	stored_store(c, 0);
	stored_entry_path(0, path);
	assert_int_equal(truncate(path, 64 << 20), 0);
	is_damage(c, 0, "a huge file", 0);
	cache_close(c);
}

/* The names of users' kernels are kept, and nothing that a terminal obeys is one. */
static void test_names(void **unused)
{
	static const char *const names[] = { "",    "a",       "saxpy_2", "Abcdefghijklmnopqrstuvwxyz01234",
		                             "a b", "\033[2J", "a.b" };
	uint8_t record[RECORD_BYTES], code[40] = { 1, 2, 3 };
	const struct key key = { 0 };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct object o = { .code = code, .code_bytes = sizeof code, .pool_offset = 30 }, back = { 0 };
		snprintf(o.name, sizeof o.name, "%s", names[i]);
		uint8_t *body = record_pack(record, &key, &o, 104, NULL);
		assert_int_equal(record_unpack(&back, record, body), i < 4 ? RECORD_FOUND : RECORD_DAMAGED);
		assert_string_equal(back.name, i < 4 ? names[i] : "");
		object_free(&back);
		free(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_names),
		T(test_store_and_load),
		T(test_makes_parents_for_the_owner_only),
		T(test_default_path),
		T(test_refused_directories),
		T(test_read_only_directory),
		T(test_full_disk),
		T(test_objects_out_of_range),
		T(test_flipped_bits_and_cuts),
		T(test_entries_of_others),
		T(test_forged_fields),
		T(test_forged_sizes),
		T(test_oversized_entry)
	};
	int failed = cmocka_run_group_tests(tests, stored_make_base, stored_remove_base);

	failed += cache_company_tests();
	return failed;
}
