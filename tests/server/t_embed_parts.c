/* tests/server/t_embed_parts.c - long texts are embedded and ranked in parts: with the bits of the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/jitrun.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

enum { HIDDEN = 256, CONTEXT = 700 };

/* In one call, in a session of our own. */
static void whole(const int32_t *ids, size_t n, int pooling, float *out)
{
	char path[1024];
	jit_model *m =
		jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = CONTEXT), NULL) : NULL;

	assert_non_null(s);
	assert_int_equal(jit_session_embed(s, ids, n, &JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = 1), out,
	                                   HIDDEN, NULL),
	                 JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
}

static void check(const struct child *c, const int32_t *ids, size_t n, const float *expected)
{
	json_t *list = json_array(), *request;
	float got[HIDDEN];

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(ids[i]));
	request = json_pack("{s:o}", "input", list);
	char *body = json_dumps(request, 0);
	json_t *o = client_json(c, "/v1/embeddings", body, 200);
	const json_t *v = json_object_get(json_array_get(json_object_get(o, "data"), 0), "embedding");
	assert_int_equal(json_array_size(v), HIDDEN);
	for (size_t i = 0; i < HIDDEN; i++)
		got[i] = (float)json_number_value(json_array_get(v, i));
	assert_memory_equal(got, expected, sizeof got);
	json_decref(o);
	json_decref(request);
	free(body);
}

/* Passes of 1 ms are of few tokens each; those of a minute of nearly all. */
static void test_bits(void **state)
{
	static const char *const milliseconds[] = { "1", "60000" };
	static const size_t lengths[] = { 1, 63, 64, 65, 300, CONTEXT };
	int32_t ids[CONTEXT];
	float expected[HIDDEN];
	(void)state;

	for (int i = 0; i < CONTEXT; i++)
		ids[i] = 1 + (i * 37 + i * i) % 400;
	for (int k = 0; k < 4; k++) {
		const char *pooling = k % 2 ? "mean" : "last", *most = milliseconds[k / 2];
		const char *const arguments[] = { "--no-cache", "--no-replay",   "--context", "700", "--pooling",
			                          pooling,      "--max-pass-ms", most,        NULL };
		struct child c = child_start(arguments);
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			whole(ids, lengths[i], k % 2 ? JIT_POOL_MEAN : JIT_POOL_LAST, expected);
			check(&c, ids, lengths[i], expected);
		}
		assert_int_equal(child_stop(&c), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
