/* tests/jit/cache_company_tests.c - a cache directory with company: processes and threads that write, are killed, or
 * live on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <dirent.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "tests/jit/stored.h"
#include "tests/jit/cache_company_tests.h"

enum { SHARED_KEYS = 6 };

static void store_rounds(unsigned rounds)
{
	struct cache *c = cache_open(stored_dir, NULL, NULL);

	if (!c)
		_exit(1);
	for (unsigned i = 0; i < rounds; i++)
		for (uint32_t n = 0; n < SHARED_KEYS; n++) {
			stored_store(c, n);
			if (stored_load(c, n) != 1)
				_exit(2);
		}
	struct cache_counters done = stored_count(c);
	_exit(done.store_failed || done.damaged || done.stored != rounds * SHARED_KEYS ? 3 : 0);
}

static void test_two_processes(void **unused)
{
	struct cache *c = open_cache();
	pid_t child[2];
	int status, running = 2;

	for (int i = 0; i < 2; i++)
		if ((child[i] = fork()) == 0)
			store_rounds(15);
	while (running) {
		for (uint32_t n = 0; n < SHARED_KEYS; n++)
			assert_true(stored_load(c, n) >= 0);
		for (int i = 0; i < 2; i++)
			if (child[i] && waitpid(child[i], &status, WNOHANG) == child[i]) {
				assert_true(WIFEXITED(status));
				assert_int_equal(WEXITSTATUS(status), 0);
				child[i] = 0;
				running--;
			}
	}
	for (uint32_t n = 0; n < SHARED_KEYS; n++)
		assert_int_equal(stored_load(c, n), 1);
	assert_int_equal(stored_count(c).damaged, 0);
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(stored_files(".jko"), SHARED_KEYS);
	cache_close(c);
}

static void *thread_rounds(void *cache)
{
	intptr_t wrong = 0;

	for (unsigned i = 0; i < 5; i++)
		for (uint32_t n = 0; n < SHARED_KEYS; n++) {
			stored_store(cache, n);
			wrong += stored_load(cache, n) != 1;
		}
	return (void *)wrong;
}

static void test_threads(void **unused)
{
	struct cache *c = open_cache();
	pthread_t thread[4];
	void *wrong;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, thread_rounds, c), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(stored_count(c).stored, 4 * 5 * SHARED_KEYS);
	assert_int_equal(stored_count(c).hits, 4 * 5 * SHARED_KEYS);
	assert_int_equal(stored_count(c).damaged + stored_count(c).store_failed, 0);
	cache_close(c);
}

static void age_temporaries(void)
{
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	DIR *d = opendir(stored_dir);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".tmp"))
			assert_int_equal(utimensat(dirfd(d), e->d_name, old, 0), 0);
	closedir(d);
}

static void store_one(void)
{
	struct cache *c = open_cache();

	stored_store(c, 0);
	cache_close(c);
}

/* Writers killed at any moment leave old entries, new ones or none, and temporary files that a later writer removes. */
static void test_killed_writers(void **unused)
{
	struct cache *c = open_cache();
	char path[256];

	for (unsigned round = 0; round < 40; round++) {
		int ready[2];
		char byte;
		assert_int_equal(pipe(ready), 0);
		pid_t child = fork();
		if (child == 0) {
			struct cache *mine = cache_open(stored_dir, NULL, NULL);
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
			for (uint32_t n = 0;; n = (n + 1) % SHARED_KEYS)
				stored_store(mine, n);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		usleep(round * 97 % 2000);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(ready[0]);
		close(ready[1]);
		for (uint32_t n = 0; n < SHARED_KEYS; n++)
			assert_true(stored_load(c, n) >= 0);
		if (round % 8 == 7)
			for (uint32_t n = 0; n < SHARED_KEYS; n++) {
				stored_entry_path(n, path);
				unlink(path);
			}
	}
	assert_int_equal(stored_count(c).damaged, 0);

	stored_entry_path(0, path);
	strcat(path, "-1-0-0.tmp");
	stored_write_file(path, (const uint8_t *)"half", 4);
	unsigned left = stored_files(".tmp");
	store_one();
	assert_int_equal(stored_files(".tmp"), left); /* young: its writer may be alive */
	age_temporaries();
	store_one();
	assert_int_equal(stored_files(".tmp"), 0);
	cache_close(c);
}

static void write_and_wait(const char *path, size_t bytes, int ready)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || ftruncate(fd, (off_t)bytes) || write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* What a writer at work has written counts for the limit, and is left alone however old it is; once it was killed, its
 * file goes. */
static void test_living_and_dead_writers(void **unused)
{
	enum { ENTRIES = 8, LIMIT = 1 << 20 };
	struct cache_leftovers left;
	struct cache_gc gone;
	uint64_t bytes, entries;
	char path[300], x;
	int ready[2];

	struct cache *c = stored_open(stored_dir, LIMIT);
	for (uint32_t n = 0; n < ENTRIES; n++)
		stored_store(c, n);
	assert_int_equal(stored_count(c).evicted, 0);
	cache_close(c);
	snprintf(path, sizeof path, "%s/.x-1-2-3.tmp", stored_dir);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		write_and_wait(path, LIMIT, ready[1]);
	assert_int_equal(read(ready[0], &x, 1), 1);
	stored_set_age(path, 100000);

	c = stored_open(stored_dir, LIMIT);
	stored_store(c, ENTRIES);
	assert_int_equal(stored_files(".tmp"), 1);
	assert_int_equal(stored_count(c).evicted, ENTRIES); /* all but the one this cache holds */
	assert_true(cache_size(c, true, &bytes, &entries, &left, NULL));
	assert_true(left.files == 1 && left.abandoned == 0 && left.bytes == LIMIT && entries == 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(cache_size(c, true, &bytes, &entries, &left, NULL));
	assert_true(left.files == 1 && left.abandoned == 1);
	assert_true(cache_gc(c, LIMIT, &gone, NULL));
	assert_int_equal(gone.entries, 1);
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(stored_load(c, ENTRIES), 1);
	cache_close(c);
	close(ready[0]);
	close(ready[1]);
}

int cache_company_tests(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_two_processes),
		T(test_threads),
		T(test_killed_writers),
		T(test_living_and_dead_writers),
	};

	return cmocka_run_group_tests_name("cache_company_tests", tests, stored_make_base, stored_remove_base);
}
