/* tests/runtime/adapter_sessions.h - models, adapters and sessions for tests of adapters; behind cmocka.h. What cannot
 * be opened fails the test. */
#ifndef TESTS_ADAPTER_SESSIONS_H
#define TESTS_ADAPTER_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/jitrun_adapters.h"

static inline jit_model *open_model(const char *path, const char *device, bool floats)
{
	jit_error err = { 0 };
	const jit_model_options o =
		JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .tune = JIT_TUNE_OFF, .f32_activations = floats);
	jit_model *m = jit_model_open(path, &o, &err);

	if (!m)
		fail_msg("%s: %s", path, err.message);
	return m;
}

static inline jit_adapter *open_adapter(jit_model *m, const char *path)
{
	jit_error err = { 0 };
	jit_adapter *a = jit_adapter_open(m, path, &err);

	if (!a)
		fail_msg("%s: %s", path, err.message);
	return a;
}

struct way {
	int threads, batch, kv;
};

static inline jit_session *open_session(jit_model *m, const struct way *w)
{
	jit_error err = { 0 };
	const jit_session_options o = JIT_SESSION_OPTIONS(.context = 512, .threads = w->threads, .batch = w->batch,
	                                                  .kv = w->kv, .speculate = JIT_SPECULATE_OFF);
	jit_session *s = jit_session_open(m, &o, &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static inline void use(jit_session *s, jit_adapter *const *a, const float *scale, size_t n)
{
	jit_error err = { 0 };

	if (jit_session_set_adapters(s, a, scale, n, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

static inline void feed(jit_session *s, const int32_t *ids, size_t n)
{
	jit_error err = { 0 };

	if (jit_session_rewind(s, 0, &err) != JIT_OK || jit_session_feed(s, ids, n, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

/* adapters_from.c: adapters that count from a token on. Returns how many tests failed. */
int run_from(void);
/* adapters_once.c: of the embedding and the output matrix. */
int run_once(void);
/* adapters_experts.c: of the matrices of experts. */
int run_experts(void);

#endif
