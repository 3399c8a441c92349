#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/jit/stored.h"

char stored_dir[128];
static char base[] = "/tmp/t_stored-XXXXXX";

int stored_make_base(void **unused)
{
	strcpy(base + strlen(base) - 6, "XXXXXX");
	/* others may pass through: some tests give up their rights */
	return mkdtemp(base) && chmod(base, 0755) == 0 ? 0 : -1;
}

int stored_remove_base(void **unused)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf '%s'", base);
	return system(command);
}

int stored_fresh(void **unused)
{
	static unsigned number;

	snprintf(stored_dir, sizeof stored_dir, "%s/%u", base, number++);
	return 0;
}

struct key stored_key(uint32_t n)
{
	struct key k;

	memset(&k, 0, sizeof k);
	k.kind = KEY_MATMUL;
	k.target = TARGET_AVX2;
	k.rows = n + 1;
	k.k = 256;
	k.codegen = 42;
	return k;
}

struct object stored_object(uint32_t n)
{
	struct object o = { .code_bytes = 40 + n % 7 * 1000,
		            .pool_offset = 30,
		            .frame_bytes = 64 + n,
		            .shared_bytes = 3 * n,
		            .vector_regs = (uint16_t)(n + 1),
		            .scalar_regs = (uint16_t)(n + 2),
		            .mask_regs = (uint16_t)(n + 3),
		            .cooperative = n & 1 };
	uint32_t state = n + 1;

	o.code = malloc(o.code_bytes);
	assert_non_null(o.code);
	for (uint32_t i = 0; i < o.code_bytes; i++) {
		state = state * 1664525 + 1013904223;
		o.code[i] = (uint8_t)(state >> 24 & 0x1f);
	}
	return o;
}

bool stored_same(const struct object *a, const struct object *b)
{
	return a->code_bytes == b->code_bytes && a->pool_offset == b->pool_offset && a->frame_bytes == b->frame_bytes &&
	       a->shared_bytes == b->shared_bytes && a->vector_regs == b->vector_regs &&
	       a->scalar_regs == b->scalar_regs && a->mask_regs == b->mask_regs && a->cooperative == b->cooperative &&
	       memcmp(a->code, b->code, a->code_bytes) == 0;
}

void stored_store(struct cache *c, uint32_t n)
{
	struct key k = stored_key(n);
	struct object o = stored_object(n);

	cache_store(c, &k, &o, NULL);
	object_free(&o);
}

int stored_load(struct cache *c, uint32_t n)
{
	struct key k = stored_key(n);
	struct object o = stored_object(n), got = { 0 };
	int answer = 0;

	if (cache_load(c, &k, &got, NULL, NULL) == RECORD_FOUND) {
		answer = stored_same(&o, &got) ? 1 : -1;
		object_free(&got);
	}
	object_free(&o);
	return answer;
}

struct cache_counters stored_count(const struct cache *c)
{
	struct cache_counters n;

	cache_count(c, &n);
	return n;
}

struct cache *stored_open(const char *path, uint64_t limit)
{
	struct error err = { 0 };
	struct cache *c = cache_open(path, &(struct cache_options){ .limit_bytes = limit }, &err);

	if (!c)
		fail_msg("%s", err.text);
	return c;
}

void stored_entry_path(uint32_t n, char out[256])
{
	struct key k = stored_key(n);

	snprintf(out, 256, "%s/%016llx.jko", stored_dir, (unsigned long long)key_hash(&k));
}

size_t stored_read_file(const char *path, uint8_t *out, size_t cap)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	size_t n = fread(out, 1, cap, f);
	assert_true(n < cap);
	fclose(f);
	return n;
}

void stored_write_file(const char *path, const uint8_t *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

unsigned stored_files(const char *suffix)
{
	DIR *d = opendir(stored_dir);
	unsigned n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		size_t a = strlen(e->d_name), b = strlen(suffix);
		n += a > b && strcmp(e->d_name + a - b, suffix) == 0;
	}
	closedir(d);
	return n;
}

void stored_set_age(const char *path, long seconds)
{
	const struct timespec then = { time(NULL) - seconds, 0 }, both[2] = { then, then };

	assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
}

int stored_in_child(int (*steps)(void *), void *user, bool as_other)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (as_other && (setgid(STORED_OTHER_USER) || setuid(STORED_OTHER_USER)))
			_exit(99);
		_exit(steps(user));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}
