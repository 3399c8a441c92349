/* tests/jit/t_execmem.c - code in pages: it runs, cannot be written, and no page of the process is writable and
 * executable. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/store/execmem.h"

/* mov eax, imm32; ret */
static size_t write_code(uint8_t *p, uint32_t value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
	return 6;
}

/* Permissions of the mapping that holds p ("r-xp"); asserts on the way that no mapping of the process is writable and
 * executable. */
static void permissions(const void *p, char out[5])
{
	char line[1024];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	out[0] = 0;
	while (fgets(line, sizeof line, f)) {
		unsigned long from, to;
		char mode[5];
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3)
			continue;
		if (mode[1] == 'w' && mode[2] == 'x')
			fail_msg("writable and executable: %s", line);
		if ((unsigned long)p >= from && (unsigned long)p < to)
			memcpy(out, mode, 5);
	}
	fclose(f);
}

static void test_runs_and_stays(void **unused)
{
	enum { COUNT = 40, SIZE = 9000 };
	static uint8_t code[SIZE];
	void *page[COUNT];
	char mode[5];

	for (uint32_t i = 0; i < COUNT; i++) {
		size_t n = write_code(code, 1000 + i);
		page[i] = execmem_map(code, i % 2 ? SIZE : n, NULL);
		assert_non_null(page[i]);
		assert_int_equal((uintptr_t)page[i] % 4096, 0);
	}
	memset(code, 0xcc, sizeof code); /* the pages hold a copy */
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t (*run)(void) = (uint32_t(*)(void))(uintptr_t)page[i];
		assert_int_equal(run(), 1000 + i);
		permissions(page[i], mode);
		assert_string_equal(mode, "r-xp");
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		execmem_unmap(page[i], i % 2 ? SIZE : 6);
		permissions(page[i], mode);
		assert_string_not_equal(mode, "r-xp");
	}
	execmem_unmap(NULL, 0);
}

static void test_writing_is_refused(void **unused)
{
	uint8_t code[8];
	void *mapped = execmem_map(code, write_code(code, 7), NULL);
	volatile uint8_t *p = mapped;
	int status;

	assert_non_null(mapped);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		p[1] = 8;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	execmem_unmap(mapped, 6);
}

/* Pieces that were put at once lie side by side in pages nobody can write, and what is put later is elsewhere. */
static void test_at_once(void **unused)
{
	enum { BLOCKS = 300 };
	static uint8_t code[BLOCKS][400];
	struct execmem_block block[BLOCKS];
	struct execmem *m = execmem_open(NULL);
	char mode[5];

	assert_non_null(m);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < BLOCKS; i++) {
			write_code(code[i], (uint32_t)round * 1000 + i);
			block[i] = (struct execmem_block){ .code = code[i], .n = 6 + i % 390 };
		}
		assert_true(execmem_put_all(m, block, BLOCKS, NULL));
		for (uint32_t i = 0; i < BLOCKS; i++) {
			assert_int_equal((uintptr_t)block[i].at % 64, 0);
			assert_memory_equal(block[i].at, code[i], block[i].n);
			assert_int_equal(((uint32_t(*)(void))(uintptr_t)block[i].at)(), (uint32_t)round * 1000 + i);
			assert_true(i == 0 || (uint8_t *)block[i].at ==
			                              (uint8_t *)block[i - 1].at + (block[i - 1].n + 63) / 64 * 64);
		}
		permissions(block[0].at, mode);
		assert_string_equal(mode, "r-xp");
		permissions(block[BLOCKS - 1].at, mode);
		assert_string_equal(mode, "r-xp");
	}
	execmem_close(m);
}

struct adder {
	pthread_t thread;
	struct execmem *memory;
	uint32_t first;
	void *page[200];
};

static void *add(void *user)
{
	struct adder *a = user;
	static const size_t sizes[] = { 6, 4096, 4097, 9000, 200000 };

	for (uint32_t i = 0; i < 200; i++) {
		uint8_t *code = calloc(1, 200000);
		if (!code)
			return NULL;
		write_code(code, a->first + i);
		a->page[i] = execmem_put(a->memory, code, sizes[i % 37 ? i % 4 : 4], NULL);
		free(code);
	}
	return NULL;
}

/* Pieces from several threads, of which some need more than is had at a time: each has pages of its own, and never was
 * one writable and executable. */
static void test_many_together(void **unused)
{
	struct adder a[4] = { 0 };
	char mode[5];

	a[0].memory = execmem_open(NULL);
	assert_non_null(a[0].memory);
	for (uint32_t t = 0; t < 4; t++) {
		a[t].memory = a[0].memory;
		a[t].first = 1000 * t;
		assert_int_equal(pthread_create(&a[t].thread, NULL, add, &a[t]), 0);
	}
	for (uint32_t t = 0; t < 4; t++)
		assert_int_equal(pthread_join(a[t].thread, NULL), 0);
	for (uint32_t t = 0; t < 4; t++)
		for (uint32_t i = 0; i < 200; i++) {
			assert_non_null(a[t].page[i]);
			assert_int_equal((uintptr_t)a[t].page[i] % 4096, 0);
			assert_int_equal(((uint32_t(*)(void))(uintptr_t)a[t].page[i])(), 1000 * t + i);
			if (i % 20 == 0) {
				permissions(a[t].page[i], mode);
				assert_string_equal(mode, "r-xp");
			}
		}
	struct error err = { 0 };
	uint8_t code[8] = { 0xc3 };
	const struct execmem_block huge[2] = { { .code = code, .n = 1 }, { .code = code, .n = SIZE_MAX - 100 } };
	assert_false(execmem_put_all(a[0].memory, (struct execmem_block[]){ huge[0], huge[1] }, 2, &err));
	assert_int_equal(err.code, ERROR_MEMORY);
	assert_true(execmem_put_all(a[0].memory, NULL, 0, NULL));
	assert_null(execmem_put(a[0].memory, code, SIZE_MAX / 2, &err));
	assert_int_equal(err.code, ERROR_MEMORY);
	execmem_close(a[0].memory);
	permissions(a[0].page[0], mode);
	assert_string_not_equal(mode, "r-xp");
	execmem_close(NULL);
}

static void test_no_memory(void **unused)
{
	uint8_t code[8] = { 0xc3 };
	struct error err = { 0 };

	assert_null(execmem_map(code, SIZE_MAX / 2, &err));
	assert_int_equal(err.code, ERROR_MEMORY);
	assert_non_null(strstr(err.text, "generated code"));
}

static void test_perf_map(void **unused)
{
	char path[64], text[512] = "", expected[512];

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	unlink(path);
	execmem_perf_map((void *)0x1000, 0x20, "norm.k8.avx2");
	execmem_perf_map((void *)0xabc000, 0x300, "rope.d64.avx2");
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof text - 1, f);
	text[n] = 0;
	fclose(f);
	snprintf(expected, sizeof expected, "1000 20 norm.k8.avx2\nabc000 300 rope.d64.avx2\n");
	assert_string_equal(text, expected);
	assert_int_equal(unlink(path), 0);

	/* a link laid there by someone else is not followed */
	char dir[] = "/tmp/t_execmem-XXXXXX", victim[64];
	struct stat st;
	assert_non_null(mkdtemp(dir));
	snprintf(victim, sizeof victim, "%s/victim", dir);
	assert_int_equal(symlink(victim, path), 0);
	execmem_perf_map((void *)0x1000, 0x20, "norm.k8.avx2");
	assert_int_equal(unlink(path), 0);
	assert_int_not_equal(stat(victim, &st), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void expect_map_refused(const char *says)
{
	struct error err = { 0 };

	assert_false(execmem_perf_map_open(&err));
	if (!strstr(err.text, says) || !strstr(err.text, "/tmp/perf-"))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

/* What lies there under this name and is not this user's own plain file is left alone, and nobody waits for it. */
static void test_perf_map_refused(void **unused)
{
	char path[64], other[80];
	struct error err = { 0 };
	struct stat st;

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	snprintf(other, sizeof other, "%s.other", path);
	unlink(path);
	assert_true(execmem_perf_map_open(&err));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(link(path, other), 0);
	alarm(20);
	expect_map_refused("has 2 names");
	execmem_perf_map((void *)0x1000, 0x20, "norm.k8.avx2");
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_false(execmem_perf_map_written());
	assert_int_equal(unlink(other), 0);
	assert_int_equal(chmod(path, 0622), 0);
	expect_map_refused("has mode 0622");
	if (geteuid() == 0) {
		assert_int_equal(chmod(path, 0600), 0);
		assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
		struct error why = { 0 };
		assert_false(execmem_perf_map_open(&why)); /* the kernel itself may refuse to open it */
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	expect_map_refused("symbolic link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_map_refused("FIFO");
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	expect_map_refused("is no regular file");
	execmem_perf_map((void *)0x1000, 0x20, "norm.k8.avx2");
	close(reader);
	alarm(0);
	assert_int_equal(unlink(path), 0);
}

/* Where the system forbids pages that were written to be executed, the sentence names what works without them. */
static void test_forbidden(void **state)
{
	enum { SET_MDWE = 65, REFUSE_GAIN = 1, NOT_HERE = 77 };
	static const uint8_t code[] = { 0xc3 };
	int status;
	pid_t pid = fork();
	(void)state;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct error one = { 0 }, many = { 0 };
		struct execmem *m = execmem_open(&one);
		if (!m || prctl(SET_MDWE, REFUSE_GAIN, 0, 0, 0))
			_exit(NOT_HERE);
		bool refused = !execmem_map(code, sizeof code, &one) && !execmem_put(m, code, sizeof code, &many);
		static const char way[] = "PR_SET_MDWE, MemoryDenyWriteExecute, SELinux), --device ref computes";
		_exit(!(refused && strstr(one.text, way) && strstr(many.text, way)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NOT_HERE)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_and_stays),   cmocka_unit_test(test_writing_is_refused),
		cmocka_unit_test(test_at_once),          cmocka_unit_test(test_many_together),
		cmocka_unit_test(test_no_memory),        cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_perf_map_refused), cmocka_unit_test(test_forbidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
