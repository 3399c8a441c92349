/* tests/server/t_text_server.c - servers of models that encode texts: vectors and scores with the bits that the library
 * gives, and everything that generates, refused. Skips, saying so, where the shared models are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun_texts.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

enum { HIDDEN = 64, TEXTS = 3 };

static char folder[2][40] = { "/tmp/t_text_server-a-XXXXXX", "/tmp/t_text_server-r-XXXXXX" };
static const char *const golden[] = { "enc-bert-a", "enc-bert-a-rank" };
static const char *const files[] = { "config.json", "model.safetensors" };
static const char tokenizer[] =
	"{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true},{\"id\":1,\"content\":\"[CLS]\","
	"\"special\":true},{\"id\":2,\"content\":\"[SEP]\",\"special\":true}],\"normalizer\":{\"type\":"
	"\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":"
	"\"BertProcessing\",\"sep\":[\"[SEP]\",2],\"cls\":[\"[CLS]\",1]},\"model\":{\"type\":\"WordPiece\","
	"\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"sea\":3,\"salt\":4,\"##y\":5,"
	"\"the\":6,\"is\":7,\"fox\":8,\"what\":9,\"?\":10}}}";
static const char *const texts[TEXTS] = { "The sea is salty", "fox", "What is the sea?" };
static bool there;

static int make(void **state)
{
	char from[1024], to[100];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_non_null(mkdtemp(folder[i]));
		for (int k = 0; k < 2; k++) {
			char name[100];
			snprintf(name, sizeof name, "golden-more/%s/%s", golden[i], files[k]);
			there = shared_path(from, name);
			if (!there)
				return 0;
			snprintf(to, sizeof to, "%s/%s", folder[i], files[k]);
			char whole[PATH_MAX];
			assert_non_null(realpath(from, whole));
			assert_int_equal(symlink(whole, to), 0);
		}
		snprintf(to, sizeof to, "%s/tokenizer.json", folder[i]);
		FILE *f = fopen(to, "w");
		assert_non_null(f);
		fputs(tokenizer, f);
		fclose(f);
	}
	return 0;
}

static int unmake(void **state)
{
	char name[100];

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++) {
			snprintf(name, sizeof name, "%s/%s", folder[i], files[k]);
			unlink(name);
		}
		snprintf(name, sizeof name, "%s/tokenizer.json", folder[i]);
		unlink(name);
		rmdir(folder[i]);
	}
	return 0;
}

static struct child start(int which, const char *option, const char *value)
{
	const char *const arguments[] = { "--no-cache",  "--alias", "usual", "--alias", "encoder",
		                          folder[which], option,    value,   NULL };

	return child_start(arguments);
}

struct opened {
	jit_model *m;
	jit_session *s;
};

static struct opened open_here(int which)
{
	struct opened o = { .m = jit_model_open(folder[which], NULL, NULL) };

	assert_non_null(o.m);
	assert_non_null(o.s = jit_session_open(o.m, NULL, NULL));
	return o;
}

static void close_here(struct opened *o)
{
	jit_session_close(o->s);
	jit_model_close(o->m);
}

static void vector_of(const struct opened *o, const char *text, int pooling, float out[HIDDEN])
{
	int32_t *ids = NULL;
	size_t n = 0;

	assert_int_equal(jit_model_tokenize(o->m, text, strlen(text), 1, 0, &ids, &n, NULL), JIT_OK);
	assert_int_equal(jit_session_embed(o->s, ids, n, &JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = 1),
	                                   out, HIDDEN, NULL),
	                 JIT_OK);
	free(ids);
}

/* Nine digits name a float. */
static void same_vector(const json_t *list, const float *want)
{
	assert_int_equal(json_array_size(list), HIDDEN);
	for (size_t i = 0; i < HIDDEN; i++)
		if ((float)json_number_value(json_array_get(list, i)) != want[i])
			fail_msg("number %zu is %.9g, expected %.9g", i, json_number_value(json_array_get(list, i)),
			         (double)want[i]);
}

#define THREE "\"input\": [\"The sea is salty\", \"fox\", \"What is the sea?\"]"

static void check_vectors(const struct child *c, int pooling)
{
	struct opened o = open_here(0);
	json_t *data = client_json(c, "/v1/embeddings", "{\"model\": \"encoder\", " THREE "}", 200),
	       *other = client_json(c, "/api/embed", "{\"model\": \"encoder\", " THREE "}", 200),
	       *native = client_json(c, "/embedding", "{\"model\": \"encoder\", \"content\": \"fox\"}", 200);

	for (size_t i = 0; i < TEXTS; i++) {
		float want[HIDDEN];
		vector_of(&o, texts[i], pooling, want);
		same_vector(json_object_get(json_array_get(json_object_get(data, "data"), i), "embedding"), want);
		same_vector(json_array_get(json_object_get(other, "embeddings"), i), want);
		if (i == 1)
			same_vector(json_array_get(json_object_get(json_array_get(native, 0), "embedding"), 0), want);
	}
	json_decref(data);
	json_decref(other);
	json_decref(native);
	close_here(&o);
}

static void test_vectors(void **state)
{
	static const struct {
		const char *option, *value;
		int pooling;
	} rows[] = { { NULL, NULL, JIT_POOL_MEAN },
		     { "--pooling", "cls", JIT_POOL_CLS },
		     { "--pooling", "last", JIT_POOL_LAST } };

	(void)state;
	for (size_t i = 0; there && i < sizeof rows / sizeof *rows; i++) {
		struct child c = start(0, rows[i].option, rows[i].value);
		check_vectors(&c, rows[i].pooling);
		assert_int_equal(child_stop(&c), 0);
	}
}

/* Many texts of many lengths in one request, and one that is too long. */
static void test_many(void **state)
{
	static char body[200000];
	struct opened o;
	size_t at = 0;

	(void)state;
	if (!there)
		return;
	struct child c = start(0, NULL, NULL);
	at += (size_t)snprintf(body, sizeof body, "{\"model\": \"encoder\", \"input\": [\"the\"");
	for (int i = 1; i < 300; i++) {
		at += (size_t)snprintf(body + at, sizeof body - at, ",\"");
		for (int k = 0; k <= i % 60; k++)
			at += (size_t)snprintf(body + at, sizeof body - at, "%s ", (i + k) % 3 ? "salty" : "sea");
		at += (size_t)snprintf(body + at, sizeof body - at, "\"");
	}
	snprintf(body + at, sizeof body - at, "]}");
	json_t *sent = json_loads(body, 0, NULL), *data = client_json(&c, "/v1/embeddings", body, 200);
	o = open_here(0);
	for (size_t i = 0; i < 300; i += 37) {
		float want[HIDDEN];
		vector_of(&o, json_string_value(json_array_get(json_object_get(sent, "input"), i)), JIT_POOL_MEAN,
		          want);
		same_vector(json_object_get(json_array_get(json_object_get(data, "data"), i), "embedding"), want);
	}
	close_here(&o);
	json_decref(sent);
	json_decref(data);
	at = (size_t)snprintf(body, sizeof body, "{\"model\": \"encoder\", \"input\": [\"fox\", \"");
	for (int k = 0; k < 127; k++)
		at += (size_t)snprintf(body + at, sizeof body - at, "fox ");
	snprintf(body + at, sizeof body - at, "\"]}");
	json_t *why = client_json(&c, "/v1/embeddings", body, 400);
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(why, "error"), "message")),
	                       "129 tokens exceeds the available context size of 128 tokens"));
	json_decref(why);
	assert_int_equal(child_stop(&c), 0);
}

/* A vector of each token. */
static void test_tokens(void **state)
{
	(void)state;
	if (!there)
		return;
	struct child c = start(0, "--pooling", "none");
	struct opened o = open_here(0);
	json_t *all = client_json(&c, "/embedding",
	                          "{\"model\": \"encoder\", \"content\": [\"fox\", \"The sea is salty\"]}", 200);
	for (size_t i = 0; i < 2; i++) {
		const char *text = texts[1 - i];
		float want[100 * HIDDEN];
		int32_t *ids = NULL;
		size_t n = 0;
		assert_int_equal(jit_model_tokenize(o.m, text, strlen(text), 1, 0, &ids, &n, NULL), JIT_OK);
		assert_int_equal(jit_session_embed(o.s, ids, n, &JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE), want,
		                                   n * HIDDEN, NULL),
		                 JIT_OK);
		const json_t *rows = json_object_get(json_array_get(all, i), "embedding");
		assert_int_equal(json_array_size(rows), n);
		for (size_t k = 0; k < n; k++)
			same_vector(json_array_get(rows, k), want + k * HIDDEN);
		free(ids);
	}
	json_decref(all);
	close_here(&o);
	assert_int_equal(child_stop(&c), 0);
}

static float score_of(const struct opened *o, const char *first, const char *second)
{
	const char *pair[2] = { first, second };
	const size_t sizes[2] = { strlen(first), strlen(second) };
	int32_t *ids = NULL, *types = NULL;
	size_t n = 0;
	float score = 0;

	assert_int_equal(jit_model_tokenize_pair(o->m, pair, sizes, 0, &ids, &types, &n, NULL), JIT_OK);
	const jit_embedding_text text = { ids, types, n };
	assert_int_equal(jit_session_embed_texts(o->s, &text, 1, &JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_RANK),
	                                         &score, 1, NULL),
	                 JIT_OK);
	assert_int_equal(types[n - 1], 1);
	free(ids);
	free(types);
	return score;
}

static void test_scores(void **state)
{
	json_t *one;
	size_t i;

	(void)state;
	if (!there)
		return;
	struct child c = start(1, NULL, NULL);
	struct opened o = open_here(1);
	json_t *answer = client_json(&c, "/v1/rerank",
	                             "{\"model\": \"encoder\", \"query\": \"what is the sea\", \"documents\": "
	                             "[\"The sea is salty\", \"fox\", \"What is the sea?\"]}",
	                             200),
	       *pairs = client_json(
		       &c, "/v1/score",
		       "{\"model\": \"encoder\", \"text_1\": \"fox\", \"text_2\": [\"the sea\", \"salt\"]}", 200);

	assert_int_equal(json_array_size(json_object_get(answer, "results")), TEXTS);
	json_array_foreach(json_object_get(answer, "results"), i, one)
	{
		const char *text = texts[json_integer_value(json_object_get(one, "index"))];
		assert_true((float)json_number_value(json_object_get(one, "relevance_score")) ==
		            score_of(&o, "what is the sea", text));
	}
	one = json_array_get(json_object_get(pairs, "data"), 1);
	assert_true((float)json_number_value(json_object_get(one, "score")) == score_of(&o, "fox", "salt"));
	json_decref(answer);
	json_decref(pairs);
	json_decref(client_json(&c, "/v1/embeddings", "{\"model\": \"encoder\", \"input\": \"fox\"}", 501));
	json_decref(client_json(&c, "/v1/rerank",
	                        "{\"model\": \"encoder\", \"query\": \"a\", \"documents\": [\"b\"], \"instruction\": "
	                        "\"c\"}",
	                        400));
	close_here(&o);
	assert_int_equal(child_stop(&c), 0);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *path, *body;
	} rows[] = {
		{ "/v1/completions", "{\"model\": \"encoder\", \"prompt\": \"fox\"}" },
		{ "/completion", "{\"model\": \"encoder\", \"prompt\": \"fox\"}" },
		{ "/v1/chat/completions",
		  "{\"model\": \"encoder\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}]}" },
		{ "/api/generate", "{\"model\": \"encoder\", \"prompt\": \"fox\"}" },
		{ "/v1/rerank", "{\"model\": \"encoder\", \"query\": \"a\", \"documents\": [\"b\"]}" },
	};

	(void)state;
	if (!there)
		return;
	struct child c = start(0, NULL, NULL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *answer = client_json(&c, rows[i].path, rows[i].body, 501);
		char *text = json_dumps(answer, 0);
		if (!strstr(text, i < 4 ? "The model encodes texts and generates none" : "has no classifier"))
			fail_msg("%s says %s", rows[i].path, text);
		free(text);
		json_decref(answer);
	}
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors), cmocka_unit_test(test_tokens),   cmocka_unit_test(test_many),
		cmocka_unit_test(test_scores),  cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
