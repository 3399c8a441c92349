/* tests/loaders/file_random_tests.c - files that change at random moments while they are read. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "runtime/device/device.h"
#include "tests/support/shared.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/file_changes.h"

/* ---- what may happen to a file */

static void write_at(const char *path, off_t at, size_t n)
{
	static const char noise[4096] = { 1, 2, 3, -1, -1, -1 };
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	for (size_t k; fd >= 0 && n; n -= k, at += (off_t)k) {
		k = n < sizeof noise ? n : sizeof noise;
		if (pwrite(fd, noise, k, at) != (ssize_t)k)
			abort();
	}
	if (fd >= 0)
		close(fd);
}

/* Another file of that size takes the name. */
static void replace(const char *path, off_t size)
{
	char other[1200];

	snprintf(other, sizeof other, "%s.new", path);
	int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, size) != 0 || close(fd) != 0 || rename(other, path) != 0)
		abort();
}

void change_file(const char *path, enum change c)
{
	struct stat st;
	int ok = 0;

	if (stat(path, &st) != 0)
		return;
	switch (c) {
	case CUT_HALF: ok = truncate(path, st.st_size / 2); break;
	case CUT_ALL: ok = truncate(path, 0); break;
	case CUT_ONE: ok = truncate(path, st.st_size - 1); break;
	case LENGTHEN: write_at(path, st.st_size, 1000); break;
	case OVERWRITE: write_at(path, 0, (size_t)st.st_size); break;
	case TOUCH_ONE: write_at(path, st.st_size / 3, 1); break;
	case REPLACE: replace(path, st.st_size); break;
	case REMOVE: ok = unlink(path); break;
	default: break;
	}
	if (ok != 0)
		abort();
}

/* ---- at random moments */

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * below >> 32);
}

struct said {
	int status;
	char out[4096], err[4096];
};

static void read_back(const char *name, char text[4096])
{
	FILE *f = fopen(in_dir(name), "rb");

	text[f ? fread(text, 1, 4095, f) : 0] = 0;
	if (f)
		fclose(f);
}

static pid_t start(const char *name)
{
	const char *program = getenv("JITRUN_PROGRAM");
	char path[700], kernels[700];

	snprintf(path, sizeof path, "%s/%s", change_dir, name);
	snprintf(kernels, sizeof kernels, "%s/kernels", change_dir);
	pid_t child = fork();

	if (child == 0) {
		if (!freopen(in_dir("out"), "wb", stdout) || !freopen(in_dir("err"), "wb", stderr))
			_exit(126);
		execl(program ? program : "./jitrun", "jitrun", path, "--prompt-ids", "5,6,7", "-n", "4",
		      "--ignore-eos", "--temp", "0", "--print-ids", "-q", "--cache", kernels, (char *)NULL);
		_exit(127);
	}
	return child;
}

static struct said finish(pid_t child)
{
	struct said s;

	assert_int_equal(waitpid(child, &s.status, 0), child);
	read_back("out", s.out);
	read_back("err", s.err);
	return s;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_for(double seconds) { nanosleep(&(struct timespec){ 0, (long)(seconds * 1e9) }, NULL); }

/* Its own words, or one sentence. What was overwritten before the program came may be refused in any words, or be a
 * model all the same. */
static void check_said(const struct said *s, const struct said *whole, enum change c, double after)
{
	bool exited = WIFEXITED(s->status);

	if (!exited || (WEXITSTATUS(s->status) != 0 && WEXITSTATUS(s->status) != 1))
		fail_msg("%s after %.1f ms: %s %d: %s", change_name[c], after * 1e3, exited ? "exit status" : "signal",
		         exited ? WEXITSTATUS(s->status) : WTERMSIG(s->status), s->err);
	if (WEXITSTATUS(s->status) == 0 && c != OVERWRITE && c != TOUCH_ONE && strcmp(s->out, whole->out) != 0)
		fail_msg("%s after %.1f ms: said \"%s\", expected \"%s\"", change_name[c], after * 1e3, s->out,
		         whole->out);
	const char *newline = strchr(s->err, '\n');
	if (WEXITSTATUS(s->status) == 1 && (!newline || newline[1] || strncmp(s->err, "jitrun: ", 8) != 0 || *s->out))
		fail_msg("%s after %.1f ms: expected one sentence: \"%s\"", change_name[c], after * 1e3, s->err);
}

static void at_random(const char *name, uint8_t *p, size_t n, int runs)
{
	const struct kept file = { name, p, n };
	unsigned right = 0, changed = 0;

	put_back(&file);
	finish(start(name)); /* fills the cache of kernels */
	double begin = now();
	const struct said whole = finish(start(name));
	double takes = now() - begin;
	if (!WIFEXITED(whole.status) || WEXITSTATUS(whole.status) != 0 || !*whole.out)
		fail_msg("%s", whole.err);
	for (int i = 0; i < runs; i++) {
		enum change c = CUT_HALF + draw(CHANGES - CUT_HALF);
		double after = takes * draw(1000) / 1000;
		put_back(&file);
		pid_t child = start(name);
		pause_for(after);
		change_file(in_dir(name), c == REPLACE ? REMOVE : c); /* what a replacement holds is another matter */
		struct said s = finish(child);
		check_said(&s, &whole, c, after);
		right += WEXITSTATUS(s.status) == 0;
		changed += strstr(s.err, "changed while it was read") != NULL;
	}
	printf("# %s: %d runs of %.0f ms, %u right, %u saw the change\n", name, runs, takes * 1e3, right, changed);
}

static int how_many(void) { return test_quick() ? 12 : test_full() ? 1000 : 40; }

static void test_gguf_at_random(void **state)
{
	char path[1024];
	size_t n;
	uint8_t *p = file_bytes(source_path(path, "models/tale-q8_0.gguf"), &n);

	at_random("m.gguf", p, n, how_many());
	free(p);
}

static void test_safetensors_at_random(void **state)
{
	const struct tiny_model t = { "llama", 4, 256, 768, 4, 2, 64, 1000, DTYPE_BF16, .tied = true };
	char *config = tiny_config(&t);
	size_t n;
	uint8_t *p = tiny_safetensors(&t, &n);

	tiny_write(change_dir, "config.json", config, strlen(config));
	at_random("model.safetensors", p, n, how_many());
	free(p);
	free(config);
}

int file_random_tests(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
		TEST(test_gguf_at_random),
		TEST(test_safetensors_at_random),
	};

	return cmocka_run_group_tests_name("file_random_tests", tests, NULL, NULL);
}
