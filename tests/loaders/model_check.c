/* tests/loaders/model_check.c - see model_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_check.h"

struct opened open_hf(const struct tiny_model *t)
{
	struct opened o = { 0 };
	size_t n;

	o.weights = tiny_safetensors(t, &n);
	o.config = tiny_config(t);
	o.ok = model_open_memory(&o.m, o.weights, n, o.config, strlen(o.config), 0, &o.err);
	assert_int_equal(o.ok, o.err.code == ERROR_NONE);
	return o;
}

void close_it(struct opened *o)
{
	if (o->ok)
		model_close(&o->m);
	free(o->weights);
	free(o->config);
}
