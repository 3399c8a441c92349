/* tests/programs/t_bandwidth.c - what is read to measure the memory's bandwidth is more than the caches hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "programs/jitrun/bandwidth.h"
#include "runtime/host/system.h"

#define MIB(n) ((uint64_t)(n) << 20)

static void test_bytes(void **state)
{
	static const struct {
		uint64_t caches, available, bytes;
	} rows[] = { { 0, MIB(16384), MIB(256) },          { MIB(32), MIB(16384), MIB(256) },
		     { MIB(64), MIB(16384), MIB(256) },    { MIB(65), MIB(16384), MIB(260) },
		     { MIB(300), MIB(131072), MIB(1200) }, { MIB(300), UINT64_MAX, MIB(1200) },
		     { MIB(300), MIB(2048), MIB(512) },    { MIB(32), MIB(512), MIB(128) },
		     { UINT64_MAX, MIB(512), MIB(128) },   { MIB(32), 0, MIB(4) } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (bandwidth_bytes(rows[i].caches, rows[i].available) != rows[i].bytes)
			fail_msg("row %zu: %llu MiB", i,
			         (unsigned long long)bandwidth_bytes(rows[i].caches, rows[i].available) >> 20);
}

/* The caches farthest from the cores are no smaller than one of the second level; of the third, some systems say what
 * is elsewhere in the host, too. */
static void test_caches(void **state)
{
	long last = sysconf(_SC_LEVEL2_CACHE_SIZE);
	uint64_t caches = system_cache_bytes();

	if (!caches || last <= 0)
		skip();
	assert_true(caches >= (uint64_t)last);
	assert_true(caches < MIB(65536));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_caches) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
