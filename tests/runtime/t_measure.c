/* tests/runtime/t_measure.c - what a model is said to need is what it takes: the sizes that are known from the header
 * alone, beside those of models and sessions that are open, for every weight format, on CPUs and on simulated cards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "kernels-templates/templates.h"
#include "runtime/device/load_weights.h"
#include "runtime/model.h"
#include "runtime/options.h"
#include "runtime/session.h"
#include "runtime/session_state.h"
#include "tests/runtime/mixed_model.h"
#include "tests/support/weight_types.h"

static void check_weights(const char *path, const char *device, const jit_model *m)
{
	struct error err = { 0 };
	struct weights w;
	struct model header;

	if (!model_open(&header, path, MODEL_HEADER_ONLY, &err) ||
	    !weights_measure(&w, &header.spec, m->device->facts.target, &err))
		fail_msg("%s: %s", device, err.text);
	assert_int_equal(w.arena_bytes, m->weights.arena_bytes);
	assert_int_equal(w.packed_bytes, m->weights.packed_bytes);
	assert_int_equal(w.token_bytes, m->weights.token_bytes);
	assert_int_equal(w.vectors_bytes, m->weights.vectors_bytes);
	weights_close(&w);
	model_close(&header);
}

static void check_session(jit_model *m, int context, int kv)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = context, .kv = kv, .threads = 1), &err);
	struct session_memory want = { .kv.type = options_kv_type(kv) };
	struct pass_memory pass = { 0 };

	if (!s)
		fail_msg("%s", err.message);
	uint32_t positions = context ? (uint32_t)context : session_usual_context(&m->file.spec);
	uint32_t tokens = session_usual_batch(m->target, positions);
	assert_int_equal(s->context, positions);
	tokens = tokens < SPECULATE_MOST ? SPECULATE_MOST : tokens;
	session_memory_measure(&want, &m->file.spec, tokens, positions);
	pass_memory_measure(&pass, &m->file.spec, tokens);
	assert_int_equal(want.kv_bytes, s->memory.kv_bytes);
	assert_int_equal(pass.buffers_bytes, s->engine->memory.buffers_bytes);
	assert_int_equal(pass.shared_bytes, s->engine->memory.shared_bytes);
	jit_session_close(s);
}

static void check_model(const struct mixed_types *types, const char *device)
{
	jit_error err = { 0 };
	char path[64];
	int fd = mixed_model(path, types);
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err);

	if (!m)
		fail_msg("%s: %s", device, err.message);
	check_weights(path, device, m);
	for (int kv = JIT_KV_F16; kv <= JIT_KV_Q8_0; kv++) {
		check_session(m, 0, kv);
		check_session(m, 1, kv);
		check_session(m, 777, kv);
	}
	jit_model_close(m);
	close(fd);
}

static void sizes_are_those_of_open_models(void **state)
{
	(void)state;
	enum dtype type[DTYPE_COUNT];

	for (unsigned i = 0, n = weight_types(type); i < n; i++) {
		const struct mixed_types types = mixed_pair(type[i], DTYPE_Q8_0);
		check_model(&types, "cpu");
		check_model(&types, "sim:gfx1100");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sizes_are_those_of_open_models) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
