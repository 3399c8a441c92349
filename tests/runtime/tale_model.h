/* tests/runtime/tale_model.h - the small trained model that tests of batches open once for all; behind cmocka.h. */
#ifndef TESTS_RUNTIME_TALE_MODEL_H
#define TESTS_RUNTIME_TALE_MODEL_H

#include "include/jitrun.h"
#include "tests/support/shared.h"

static jit_model *model;
static int vocab;

static inline void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

/* Set-up and tear-down of the group. */
static inline int open_model(void **state)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                       &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
	assert_non_null(model);
	must(jit_model_get_info(model, &info, &err), &err);
	vocab = info.vocab;
	return 0;
}

static inline int close_model(void **state)
{
	jit_model_close(model);
	return 0;
}

#endif
