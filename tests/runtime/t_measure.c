/* tests/runtime/t_measure.c - what a model is said to need is what it takes: the sizes that are known from the header
 * alone, beside those of models and sessions that are open, for every weight format, on CPUs and on simulated cards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "kernels-templates/templates.h"
#include "runtime/model/load_weights.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/session/session.h"
#include "runtime/session/session_state.h"
#include "tests/runtime/mixed_model.h"
#include "tests/support/shared.h"
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
	uint32_t positions = context ? (uint32_t)context : s->context;
	uint32_t tokens = session_usual_batch(m->target, positions);
	if (!context)
		assert_int_equal(positions, session_usual_context(&m->file.spec, options_kv_type(kv), UINT64_MAX));
	assert_int_equal(s->context, positions);
	tokens = tokens < SPECULATE_MAX ? SPECULATE_MAX : tokens;
	session_memory_measure(&want, &m->file.spec, tokens, positions);
	assert_true(pass_memory_measure(&pass, &m->file.spec, &(struct plan_layout_options){ .tokens = tokens }, NULL));
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

/* What is taken where nobody asks for a size: what the model was trained for, and of that what there is room for. */
static void the_usual_context_is_bounded_by_memory(void **state)
{
	enum { TRAINED = 40960 };
	struct model m;
	struct error err = { 0 };
	char path[1024];
	(void)state;

	assert_true(model_open(&m, source_path(path, "models/tale-q8_0.gguf"), 0, &err));
	struct model_spec s = m.spec;
	struct session_memory of = { .kv.type = DTYPE_F16 };
	assert_int_equal(session_usual_context(&s, DTYPE_F16, 0), s.context_train);
	s.context_train = TRAINED;
	assert_int_equal(session_usual_context(&s, DTYPE_F16, UINT64_MAX), TRAINED);
	assert_int_equal(session_usual_context(&s, DTYPE_F16, 0), 4096);
	session_memory_measure(&of, &s, 512, TRAINED);
	assert_int_equal(session_usual_context(&s, DTYPE_F16, of.kv_bytes), TRAINED);
	for (unsigned i = 1; i < 100; i++) {
		uint64_t memory = of.kv_bytes / 100 * i;
		uint32_t n = session_usual_context(&s, DTYPE_F16, memory);
		struct session_memory fits = { .kv.type = DTYPE_F16 }, more = { .kv.type = DTYPE_F16 };
		session_memory_measure(&fits, &s, 512, n);
		session_memory_measure(&more, &s, 512, n + 128);
		assert_true(n >= 4096 && n < TRAINED && n % 128 == 0);
		assert_true(n == 4096 || fits.kv_bytes <= memory);
		assert_true(more.kv_bytes > memory);
	}
	s.context_train = 0;
	assert_int_equal(session_usual_context(&s, DTYPE_F16, UINT64_MAX), 4096);
	s.context_train = TRAINED; /* factors of rotation do not depend on memory */
	s.rope.scaling = ROPE_LONG;
	s.rope.original_context = 8192;
	assert_int_equal(session_usual_context(&s, DTYPE_F16, UINT64_MAX), 8192);
	model_close(&m);
}

static uint64_t resident(void)
{
	unsigned long all = 0, here = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%lu %lu", &all, &here) != 2)
		skip();
	fclose(f);
	return (uint64_t)here * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A long context that is not used takes no memory, and changes no bit. */
static void a_long_context_takes_no_memory(void **state)
{
	enum { LONG = 1 << 20, N = 20 };
	static const int32_t ids[] = { 1, 300, 17, 9 };
	char path[1024];
	jit_error err = { 0 };
	float *logits[2];
	(void)state;

	for (int i = 0; i < 2; i++) {
		jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
		                              &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), &err);
		assert_non_null(m);
		m->file.spec.context_train = i ? LONG : 1024;
		uint64_t before = resident();
		jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.threads = 1), &err);
		if (!s)
			fail_msg("%s", err.message);
		assert_true(i ? s->context > 4096 : s->context == 1024);
		assert_int_equal(jit_session_feed(s, ids, 4, &err), JIT_OK);
		size_t n = (size_t)m->file.spec.vocab;
		logits[i] = malloc(n * sizeof(float));
		assert_non_null(logits[i]);
		memcpy(logits[i], jit_session_logits(s, &err), n * sizeof(float));
		assert_true(resident() < before + (48 << 20));
		jit_session_close(s);
		jit_model_close(m);
		if (i)
			assert_memory_equal(logits[0], logits[1], n * sizeof(float));
	}
	free(logits[0]);
	free(logits[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sizes_are_those_of_open_models),
		                            cmocka_unit_test(the_usual_context_is_bounded_by_memory),
		                            cmocka_unit_test(a_long_context_takes_no_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
