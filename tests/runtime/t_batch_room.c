/* tests/runtime/t_batch_room.c - batches on cards that have little room left: refused at once where there is none for a
 * single page, and of use where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "runtime/model/model.h"
#include "tests/support/shared.h"

/* The device's own, and what it gives of memory for sessions. */
static void *(*alloc)(struct device *d, size_t bytes, enum device_memory what, struct error *err);
static size_t max;
static unsigned refused;

static void *alloc_little(struct device *d, size_t bytes, enum device_memory what, struct error *err)
{
	if (what == DEVICE_CACHE && bytes > max) {
		refused++;
		error_set(err, ERROR_MEMORY, "the driver has no room for %zu bytes", bytes);
		return NULL;
	}
	return alloc(d, bytes, what, err);
}

static jit_model *open_model(void)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = jit_model_open(
		source_path(path, "models/tale-q8_0.gguf"),
		&JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF, .device = "sim:gfx1101"), &err);

	if (!m)
		fail_msg("%s", err.message);
	alloc = m->device->alloc;
	m->device->alloc = alloc_little;
	return m;
}

static void test_none(void **state)
{
	jit_model *m = open_model();
	jit_error err = { 0 };
	(void)state;

	max = 1000;
	assert_null(jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 256, .tokens = 16), &err));
	assert_int_equal(err.code, JIT_ERROR_MEMORY);
	if (!strstr(err.message, "the first tokens of a session take"))
		fail_msg("%s", err.message);
	jit_model_close(m);
}

/* Pages are asked for one by one where there is no room for many at once. */
static void test_one(void **state)
{
	static const int32_t ids[] = { 1, 2, 3 };
	jit_model *m = open_model();
	jit_error err = { 0 };
	jit_session *ready;
	size_t n = 0;
	(void)state;

	max = 1000;
	assert_null(jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 256, .tokens = 16), &err));
	const char *last = err.message + strlen(err.message); /* the last number says how many it takes */
	while (last > err.message && !(last[-1] >= '0' && last[-1] <= '9'))
		last--;
	while (last > err.message && last[-1] >= '0' && last[-1] <= '9')
		last--;
	max = (size_t)strtoull(last, NULL, 10);
	assert_true(max > 1000);
	err = (jit_error){ 0 };
	refused = 0;
	jit_batch *b = jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 256, .tokens = 16), &err);
	if (!b)
		fail_msg("%s", err.message);
	jit_session *s = jit_batch_session(b, NULL, &err);
	assert_non_null(s);
	assert_int_equal(jit_session_submit(s, ids, 3, NULL, &err), JIT_OK);
	assert_int_equal(jit_batch_step(b, &ready, 1, &n, &err), JIT_OK);
	assert_int_equal(n, 1);
	assert_true(refused > 0);
	jit_session_close(s);
	jit_batch_close(b);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_none), cmocka_unit_test(test_one) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
