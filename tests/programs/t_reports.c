/* tests/programs/t_reports.c - two reports compared while there is no memory: each allocation fails, alone and with all
 * that follow. The comparison is the right one, or there is none and a sentence; nothing is written beyond a block,
 * behind each of which lies a page that nobody may touch.
 *
 * The linker leads the library's allocations through here (--wrap in Makefile.am), jansson is told of them. */
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

#include <jansson.h>

#include "bench/reports.h"
#include "tests/support/guarded.h"
#include "tests/support/shared.h"

static struct {
	bool armed, later;
	unsigned at, count;
} fault;

static bool fails(void)
{
	if (!fault.armed)
		return false;
	unsigned n = ++fault.count;
	return fault.at && (fault.later ? n >= fault.at : n == fault.at);
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }

/* jansson's blocks. Before what is handed out lies where its region is. */
static void *guarded_bytes(size_t n)
{
	size_t bytes = (n + 15) / 16 * 16;

	if (fails())
		return NULL;
	struct guarded g = guarded_open(bytes + sizeof g);
	uint8_t *p = g.region + g.size - bytes;
	memcpy(p - sizeof g, &g, sizeof g);
	return p;
}

static void guarded_free(void *p)
{
	struct guarded g;

	if (!p)
		return;
	memcpy(&g, (uint8_t *)p - sizeof g, sizeof g);
	guarded_close(&g);
}

/* Names whose ends lie where a buffer that doubles becomes too short. */
static void write_report(char path[64], const char *suffix)
{
	static const int lengths[] = { 14, 15, 30, 31, 62, 63 };
	int fd = mkstemp(strcpy(path, "/tmp/t_reports-XXXXXX"));
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	assert_non_null(f);
	fprintf(f, "{\"suite\": \"1\", \"version\": \"1\", \"target\": \"avx2\", \"threads\": 2, \"rows\": [");
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		fprintf(f, "%s{\"test\": \"%0*d\", \"microseconds\": 2.5%s, \"share\": 0.5, \"noisy\": \"\"}",
		        i ? ", " : "", lengths[i], (int)i, suffix);
	fprintf(f, "]}\n");
	assert_int_equal(fclose(f), 0);
}

static char a[64], b[64];

static bool compare(bool json, char **text, size_t *n, struct error *err)
{
	int slower = 0;
	FILE *out = open_memstream(text, n);

	assert_non_null(out);
	setvbuf(out, NULL, _IOFBF, 1 << 16);
	fault.count = 0;
	fault.armed = true;
	bool ok = reports_compare(a, b, 0.1, json, out, &slower, err);
	fault.armed = false;
	assert_int_equal(fclose(out), 0);
	return ok;
}

static void try_all(bool json, bool later)
{
	struct error err = { 0 };
	char *want, *got;
	size_t n, m;

	fault.at = 0;
	assert_true(compare(json, &want, &n, &err));
	unsigned calls = fault.count, refused = 0;
	fault.later = later;
	for (fault.at = 1; fault.at <= calls; fault.at++) {
		err = (struct error){ 0 };
		bool ok = compare(json, &got, &m, &err);
		if (!ok && strlen(err.text) < 16)
			fail_msg("allocation %u fails: \"%s\"", fault.at, err.text);
		/* what lacks a member for want of memory is told by output_end(), not here */
		if (ok && !json && (n != m || memcmp(want, got, n) != 0))
			fail_msg("allocation %u fails: \"%.300s\"", fault.at, got);
		refused += !ok;
		free(got);
	}
	printf("# %u allocations, %u refused\n", calls, refused);
	assert_true(refused > 20);
	free(want);
}

static void test_memory_is_short(void **unused)
{
	(void)unused;
	json_set_alloc_funcs(guarded_bytes, guarded_free);
	for (int way = 0; way < 4; way += test_quick() ? 3 : 1)
		try_all(way & 1, way & 2);
	json_set_alloc_funcs(malloc, free);
}

static int make_reports(void **unused)
{
	(void)unused;
	write_report(a, "");
	write_report(b, "1");
	return 0;
}

static int remove_reports(void **unused)
{
	(void)unused;
	return unlink(a) || unlink(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory_is_short) };

	return cmocka_run_group_tests(tests, make_reports, remove_reports);
}
