/* tests/jit/t_rdna_objects.c - every code object that the tests before this one ran on simulated cards, read by another
 * disassembler and assembled again.
 *
 * Owns: the directory where the simulator kept them, $JITRUN_SIM_KEEP; what was read whole is removed from it.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/jit/rdna_disassembler.h"

enum { AT_ONCE = 200, NAME = 48 };

struct kept {
	char (*name)[NAME];
	size_t n, capacity;
};

static void find_kept(struct kept *k, const char *dir)
{
	DIR *d = opendir(dir);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (strncmp(e->d_name, "gfx", 3) != 0 || strlen(e->d_name) >= NAME)
			continue;
		if (k->n == k->capacity) {
			k->capacity = 2 * k->capacity + 1024;
			k->name = realloc(k->name, k->capacity * sizeof *k->name);
			assert_non_null(k->name);
		}
		strcpy(k->name[k->n++], e->d_name);
	}
	closedir(d);
	qsort(k->name, k->n, sizeof *k->name, (int (*)(const void *, const void *))strcmp);
}

static bool is_of(const struct kept *k, size_t i, const char *target)
{
	size_t n = strlen(target);
	return i < k->n && strncmp(k->name[i], target, n) == 0 && k->name[i][n] == '-';
}

/* The files of one target, which lie side by side in the sorted list. Returns how many. */
static size_t check_target(const struct kept *k, size_t first, const char *dir, const char *tool)
{
	struct rdna_words w = { 0 };
	char target[NAME], *files = malloc(AT_ONCE * (strlen(dir) + NAME + 4)), path[1024];
	size_t end = first;

	assert_non_null(files);
	snprintf(target, sizeof target, "%.*s", (int)strcspn(k->name[first], "-"), k->name[first]);
	while (is_of(k, end, target)) {
		char *at = files;
		for (unsigned i = 0; i < AT_ONCE && is_of(k, end, target); i++, end++)
			at += sprintf(at, "'%s/%s' ", dir, k->name[end]);
		rdna_disassemble(&w, tool, files);
	}
	rdna_assemble_back(&w, target);
	for (size_t i = first; i < end; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, k->name[i]);
		unlink(path);
	}
	printf("# %s: %zu code objects, %llu instructions, %zu different ones\n", target, end - first,
	       (unsigned long long)w.met, w.n);
	rdna_words_clear(&w);
	free(files);
	return end - first;
}

static void test_kept(void **state)
{
	(void)state;
	const char *tool = rdna_disassembler(), *dir = getenv("JITRUN_SIM_KEEP");
	struct kept k = { 0 };

	if (!dir || !*dir) {
		printf("# skipped: JITRUN_SIM_KEEP names no directory where earlier tests left their code objects\n");
		skip();
	}
	find_kept(&k, dir);
	assert_true(k.n > 0);
	for (size_t i = 0; i < k.n;)
		i += check_target(&k, i, dir, tool);
	free(k.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kept) };

	return cmocka_run_group_tests_name("rdna_objects", tests, NULL, NULL);
}
