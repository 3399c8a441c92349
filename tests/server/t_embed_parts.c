/* tests/server/t_embed_parts.c - long texts are embedded and ranked in parts: with the bits of the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "include/jitrun.h"
#include "tests/server/client.h"
#include "tests/support/rank_model.h"
#include "tests/support/shared.h"

enum { HIDDEN = 256, CONTEXT = 700, NARROW = 48 };

static char dense[] = "/tmp/t_embed_parts-XXXXXX";

/* In one call, in a session of our own. */
static void whole_of(const char *model, const int32_t *ids, size_t n, int pooling, float *out, size_t width)
{
	jit_model *m = jit_model_open(model, &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = CONTEXT), NULL) : NULL;

	assert_non_null(s);
	assert_int_equal(jit_session_embed(s, ids, n, &JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = 1), out,
	                                   width, NULL),
	                 JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
}

static void whole(const int32_t *ids, size_t n, int pooling, float *out)
{
	char path[1024];

	whole_of(source_path(path, "models/tale-q8_0.gguf"), ids, n, pooling, out, HIDDEN);
}

static void check(const struct child *c, const int32_t *ids, size_t n, const float *expected, size_t width,
                  const char *model)
{
	json_t *list = json_array(), *request;
	float got[HIDDEN];

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(ids[i]));
	request = json_pack("{s:s, s:o}", "model", model, "input", list);
	char *body = json_dumps(request, 0);
	json_t *o = client_json(c, "/v1/embeddings", body, 200);
	const json_t *v = json_object_get(json_array_get(json_object_get(o, "data"), 0), "embedding");
	assert_int_equal(json_array_size(v), width);
	for (size_t i = 0; i < width; i++)
		got[i] = (float)json_number_value(json_array_get(v, i));
	assert_memory_equal(got, expected, width * sizeof *got);
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
		const char *pooling = k % 2 ? "mean" : "last", *max = milliseconds[k / 2];
		const char *const arguments[] = { "--no-cache", "--no-replay",   "--context", "700", "--pooling",
			                          pooling,      "--max-pass-ms", max,         NULL };
		struct child c = child_start(arguments);
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			whole(ids, lengths[i], k % 2 ? JIT_POOL_MEAN : JIT_POOL_LAST, expected);
			check(&c, ids, lengths[i], expected, HIDDEN, "tale-q8_0");
		}
		assert_int_equal(child_stop(&c), 0);
	}
}

/* The first numbers of a vector, scaled to length 1, as `dimensions` of both APIs has them. */
static void check_shorter(struct child *c, const float *whole, int n)
{
	double squares = 0;
	char body[100];

	for (int i = 0; i < n; i++)
		squares += (double)whole[i] * (double)whole[i];
	snprintf(body, sizeof body, "{\"model\":\"narrow\",\"input\":\"a\",\"dimensions\":%d}", n);
	json_t *o = client_json(c, "/v1/embeddings", body, 200), *p = client_json(c, "/api/embed", body, 200);
	const json_t *a = json_object_get(json_array_get(json_object_get(o, "data"), 0), "embedding"),
		     *b = json_array_get(json_object_get(p, "embeddings"), 0);
	assert_int_equal(json_array_size(a), n);
	assert_int_equal(json_array_size(b), n);
	for (int i = 0; i < n; i++) {
		const float want = (float)((double)whole[i] / sqrt(squares));
		assert_true((float)json_number_value(json_array_get(a, (size_t)i)) == want);
		assert_true(fabs(json_number_value(json_array_get(b, (size_t)i)) - (double)want) < 1e-6);
	}
	json_decref(o);
	json_decref(p);
}

/* Dense layers behind pooling: shorter vectors, whose length is what `dimensions` may be at most. */
static void test_dense(void **state)
{
	static const char *const ways[] = { "mean", "cls", "last" };
	static const int pooling[] = { JIT_POOL_MEAN, JIT_POOL_CLS, JIT_POOL_LAST };
	static float weights[NARROW * HIDDEN];
	int32_t ids[CONTEXT];
	float expected[NARROW];
	char body[100];
	int fd = mkstemp(dense);
	(void)state;

	assert_true(fd >= 0 && close(fd) == 0);
	for (int i = 0; i < CONTEXT; i++)
		ids[i] = 1 + (i * 41 + i * i) % 400;
	for (int i = 0; i < NARROW * HIDDEN; i++)
		weights[i] = (float)((i * 37 + i / HIDDEN) % 101 - 50) / 500;
	rank_model_write(dense, &(struct rank_model){
					.tensor = { { "dense_2.weight", DTYPE_F32, 2, { HIDDEN, NARROW }, weights } },
					.pooling = 1 });
	for (int k = 0; k < 3; k++) {
		const char *const arguments[] = { "--no-cache", "--no-replay",   "--context", "700",     "--pooling",
			                          ways[k],      "--max-pass-ms", "1",         "--alias", "usual",
			                          "--alias",    "narrow",        dense,       NULL };
		struct child c = child_start(arguments);
		whole_of(dense, ids, CONTEXT, pooling[k], expected, NARROW);
		check(&c, ids, CONTEXT, expected, NARROW, "narrow");
		snprintf(body, sizeof body, "{\"model\":\"narrow\",\"input\":\"a\",\"dimensions\":%d}", NARROW);
		json_t *o = client_json(&c, "/v1/embeddings", body, 200);
		const json_t *all = json_object_get(json_array_get(json_object_get(o, "data"), 0), "embedding");
		for (size_t i = 0; i < NARROW; i++)
			expected[i] = (float)json_number_value(json_array_get(all, i));
		json_decref(o);
		for (int n = 1; n < NARROW; n += NARROW / 3)
			check_shorter(&c, expected, n);
		json_decref(client_json(&c, "/v1/embeddings",
		                        "{\"model\":\"narrow\",\"input\":\"a\",\"dimensions\":256}", 400));
		assert_int_equal(child_stop(&c), 0);
	}
	unlink(dense);
}

/* --pooling none: the rows of all tokens as the library gives them, from POST /embedding alone. */
static void test_tokens(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--context",     "700", "--pooling",
		                                 "none",       "--max-pass-ms", "1",   NULL };
	static const char text[] = "Once upon a time there was a ship that sailed and sailed.";
	static const char *const refused[] = { "/v1/embeddings", "/embeddings", "/api/embed" };
	struct child c = child_start(arguments);
	char path[1024], body[300];
	jit_error err = { 0 };
	jit_model *m =
		jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = CONTEXT), &err) : NULL;
	int32_t *ids = NULL;
	size_t n = 0;
	(void)state;

	assert_non_null(s);
	assert_int_equal(jit_model_tokenize(m, text, strlen(text), 1, 0, &ids, &n, &err), JIT_OK);
	float *rows = calloc(n * HIDDEN, sizeof *rows);
	assert_int_equal(jit_session_embed(s, ids, n, &JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE), rows,
	                                   n * HIDDEN, &err),
	                 JIT_OK);
	for (int k = 0; k < 2; k++) {
		snprintf(body, sizeof body, "{\"%s\":[\"a\",\"%s\"]}", k ? "input" : "content", text);
		json_t *o = client_json(&c, "/embedding", body, 200);
		assert_int_equal(json_array_size(o), 2);
		const json_t *list = json_object_get(json_array_get(o, 1), "embedding");
		assert_int_equal(json_array_size(list), n);
		for (size_t i = 0; i < n * HIDDEN; i++) {
			const json_t *row = json_array_get(list, i / HIDDEN);
			assert_int_equal(json_array_size(row), HIDDEN);
			const float got = (float)json_number_value(json_array_get(row, i % HIDDEN));
			assert_memory_equal(&got, &rows[i], sizeof got);
		}
		json_decref(o);
	}
	for (int k = 0; k < 3; k++) {
		json_t *o = client_json(&c, refused[k], "{\"input\":\"a\"}", 400);
		char *why = json_dumps(o, 0);
		assert_non_null(strstr(why, "--pooling none: POST /embedding gives a vector of each token"));
		free(why);
		json_decref(o);
	}
	json_decref(client_json(&c, "/embedding", "{\"input\":\"a\",\"encoding_format\":\"base64\"}", 400));
	json_decref(client_json(&c, "/embedding", "{\"input\":\"a\",\"dimensions\":8}", 400));
	assert_int_equal(child_stop(&c), 0);
	free(rows);
	free(ids);
	jit_session_close(s);
	jit_model_close(m);
}

/* ---- many texts in one request */

static char *body_of(size_t n, const char *more)
{
	static const char *const texts[] = { "a", "The king", "Once upon a time there was a ship.", "42", "b" };
	char *body = calloc(1, n * 50 + 200);

	assert_non_null(body);
	char *at = body + sprintf(body, "{%s\"input\":[", more);
	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "%s\"%s\"", i ? "," : "", texts[i % 5]);
	strcpy(at, "]}");
	return body;
}

/* As many as OpenAI's API takes, each with the bits that it has alone; one more is refused. */
static void test_many(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	struct child c = child_start(arguments);
	const json_t *own[5];
	char *body = body_of(5, "");
	json_t *alone = client_json(&c, "/v1/embeddings", body, 200), *o;
	(void)state;

	for (size_t i = 0; i < 5; i++)
		own[i] = json_object_get(json_array_get(json_object_get(alone, "data"), i), "embedding");
	free(body);
	body = body_of(2048, "");
	o = client_json(&c, "/v1/embeddings", body, 200);
	assert_int_equal(json_array_size(json_object_get(o, "data")), 2048);
	for (size_t i = 0; i < 2048; i++) {
		const json_t *one = json_array_get(json_object_get(o, "data"), i);
		assert_int_equal(json_integer_value(json_object_get(one, "index")), i);
		assert_true(json_equal(json_object_get(one, "embedding"), own[i % 5]));
	}
	free(body);
	json_decref(o);
	json_decref(alone);
	body = body_of(2049, "");
	o = client_json(&c, "/v1/embeddings", body, 400);
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "error"), "param")), "input");
	free(body);
	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
}

/* Who asks for one text does not wait for all of another request. */
static void test_alternating(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--parallel", "4", NULL };
	struct child c = child_start(arguments);
	char *body = body_of(2048, ""), head[200];
	int fd = client_connect(&c, false);
	(void)state;

	snprintf(head, sizeof head, "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
	         strlen(body));
	client_send(fd, head, strlen(head));
	client_send(fd, body, strlen(body));
	/* Until it has begun. */
	for (bool begun = false; !begun;) {
		struct answer a = client_ask(&c, "/metrics", NULL, NULL);
		begun = strstr(a.body, "requests_processing{model=\"tale-q8_0\"} 1") != NULL;
		answer_free(&a);
	}
	json_decref(client_json(&c, "/v1/embeddings", "{\"input\":\"The king\"}", 200));
	char first;
	assert_int_equal(recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT), -1);
	struct answer a = client_read(fd, 60);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	close(fd);
	free(body);
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits), cmocka_unit_test(test_dense),
		                            cmocka_unit_test(test_tokens), cmocka_unit_test(test_many),
		                            cmocka_unit_test(test_alternating) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
