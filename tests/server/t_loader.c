/* tests/server/t_loader.c - a model that is asked to leave while it is being opened, by an opener of this test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <unistd.h>

#include "server/loader.h"

static struct served one = { .path = "one", .name = "one", .file = "one" };
static struct models models = { .list = &one, .n = 1 };
static atomic_bool opening;

static bool open_for_ever(struct served *m, jit_error *err)
{
	atomic_store(&opening, true);
	while (loader_progress(models.loader, m, 1, 2))
		usleep(1000);
	err->code = JIT_ERROR_ARGUMENT;
	return false;
}

static uint64_t no_bytes(const struct served *m)
{
	(void)m;
	return 0;
}

static void test_gives_up(void **state)
{
	const struct loader_options o = {
		.open = open_for_ever, .estimate = no_bytes, .limit = UINT64_MAX, .keep = -1
	};
	struct lease lease = { 0 };
	struct refusal r = { 0 };
	struct error err = { 0 };
	(void)state;

	assert_non_null(models.loader = loader_open(&models, &o, &err));
	assert_true(loader_start(models.loader, &err));
	assert_false(loader_unload(models.loader, &one, true));
	assert_false(lease_take(&lease, models.loader, &one));
	assert_true(lease_await(&lease, &r));
	while (!atomic_load(&opening))
		usleep(1000);
	assert_false(loader_unload(models.loader, &one, false)); /* its answers are waited for */
	assert_true(loader_unload(models.loader, &one, true));
	enum lease_state is = LEASE_AWAITED;
	for (int i = 0; i < 10000 && is == LEASE_AWAITED; i++, usleep(1000))
		is = lease_settle(&lease);
	assert_int_equal(is, LEASE_FAILED);
	assert_int_equal(lease.refusal.status, 503);
	lease_end(&lease);
	loader_close(models.loader);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gives_up) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
