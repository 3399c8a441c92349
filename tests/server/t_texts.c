/* tests/server/t_texts.c - tokens and texts, what the server says of itself, completions in the form of llama.cpp's
 * server, numbers for Prometheus, and answers that are made again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/jitrun.h"
#include "tests/runtime/tiny_model.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static struct child server;

static int start(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--context", "512", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

static const char *text(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static json_int_t integer(const json_t *o, const char *name) { return json_integer_value(json_object_get(o, name)); }

static void test_tokens(void **state)
{
	static const char said[] = "Once upon a time, \\u00e9\\u4e2d \\ud83d\\ude00!";
	char body[400], *list;
	(void)state;

	snprintf(body, sizeof body, "{\"content\":\"%s\"}", said);
	json_t *o = client_json(&server, "/tokenize", body, 200), *tokens = json_object_get(o, "tokens");
	assert_true(json_array_size(tokens) > 5);
	list = json_dumps(tokens, JSON_COMPACT);
	snprintf(body, sizeof body, "{\"tokens\":%s}", list);
	free(list);
	json_t *back = client_json(&server, "/detokenize", body, 200);
	assert_string_equal(text(back, "content"), "Once upon a time, \xc3\xa9\xe4\xb8\xad \xf0\x9f\x98\x80!");
	json_decref(back);
	snprintf(body, sizeof body, "{\"content\":\"%s\",\"add_special\":true,\"with_pieces\":true}", said);
	json_t *parts = client_json(&server, "/tokenize", body, 200), *p, *all = json_object_get(parts, "tokens");
	assert_int_equal(json_array_size(all), json_array_size(tokens) + 1);
	size_t i;
	json_array_foreach(all, i, p)
	{
		assert_true(json_is_string(json_object_get(p, "piece")) || json_is_array(json_object_get(p, "piece")));
		if (i)
			assert_true(json_equal(json_object_get(p, "id"), json_array_get(tokens, i - 1)));
	}
	json_decref(parts);
	json_decref(o);
	json_decref(client_json(&server, "/detokenize", "{\"tokens\":[]}", 200));
	json_decref(client_json(&server, "/detokenize", "{}", 400));
	json_decref(client_json(&server, "/detokenize", "{\"tokens\":[99999]}", 400));
	json_decref(client_json(&server, "/tokenize", "{\"content\":7.5}", 400));
}

/* What a user writes stays text, whatever it spells. */
static void test_template(void **state)
{
	(void)state;
	json_t *o =
		client_json(&server, "/apply-template",
	                    "{\"messages\":[{\"role\":\"developer\",\"content\":\"Be brief.\"},{\"role\":\"user\","
	                    "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}",
	                    200);
	assert_string_equal(text(o, "prompt"),
	                    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\na\nb<|im_end|>\n"
	                    "<|im_start|>assistant\n");
	json_decref(o);
	o = client_json(
		&server, "/apply-template",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"So \"}]}",
		200);
	assert_string_equal(text(o, "prompt"), "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nSo ");
	json_decref(o);
}

static void test_properties(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/props", NULL, 200);
	assert_int_equal(integer(json_object_get(o, "default_generation_settings"), "n_ctx"), 512);
	assert_int_equal(integer(o, "total_slots"), 16);
	assert_non_null(strstr(text(o, "model_path"), "tale-q8_0.gguf"));
	json_decref(o);
	o = client_json(&server, "/slots", NULL, 200);
	assert_int_equal(json_array_size(o), 16);
	json_decref(o);
}

static void test_native(void **state)
{
	static const char body[] = "{\"prompt\":[1,\"Once upon\",300],\"n_predict\":6,\"temperature\":0,"
				   "\"return_tokens\":true,\"n_probs\":2%s}";
	char requested[300];
	(void)state;

	snprintf(requested, sizeof requested, body, "");
	json_t *o = client_json(&server, "/completion", requested, 200);
	assert_int_equal(integer(o, "tokens_predicted"), 6);
	assert_int_equal(json_array_size(json_object_get(o, "tokens")), 6);
	assert_int_equal(json_array_size(json_object_get(o, "completion_probabilities")), 6);
	assert_string_equal(text(o, "stop_type"), "limit");
	assert_true(json_is_object(json_object_get(o, "timings")));
	snprintf(requested, sizeof requested, body, ",\"stream\":true");
	struct answer a = client_ask(&server, "/completion", NULL, requested);
	char joined[1000] = "";
	bool stopped = false;
	for (const char *at = a.body; (at = strstr(at, "data: "));) {
		const char *end = strstr(at, "\n\n");
		assert_non_null(end);
		json_t *e = json_loadb(at + 6, (size_t)(end - at - 6), 0, NULL);
		assert_non_null(e);
		assert_false(stopped);
		strcat(joined, text(e, "content"));
		stopped = json_is_true(json_object_get(e, "stop"));
		json_decref(e);
		at = end;
	}
	assert_true(stopped);
	assert_string_equal(joined, text(o, "content"));
	answer_free(&a);
	json_decref(o);
}

/* Every line is a comment or a number, no series has its help twice, and what was generated is counted. */
static void test_metrics(void **state)
{
	(void)state;
	json_decref(client_json(&server, "/v1/completions", "{\"prompt\":\"The\",\"max_tokens\":5}", 200));
	struct answer a = client_ask(&server, "/metrics", NULL, NULL);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(answer_field(&a, "Content-Type"), "text/plain; version=0.0.4"));
	char *rest, *copy = strdup(a.body);
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char name[200], number[100];
		if (strncmp(line, "# HELP ", 7) == 0) {
			snprintf(name, sizeof name, "\n%.*s ", (int)strcspn(line + 7, " ") + 7, line);
			const char *first = strstr(a.body - 0, name + 1);
			assert_null(strstr(first + 1, name));
		} else if (line[0] != '#') {
			assert_int_equal(sscanf(line, "%199s %99s", name, number), 2);
			char *end;
			strtod(number, &end);
			assert_int_equal(*end, 0);
		}
	}
	const char *at = strstr(a.body, "\nllamacpp:tokens_predicted_total{model=\"tale-q8_0\"} ");
	assert_true(at && atol(strchr(at + 1, '}') + 1) >= 5);
	free(copy);
	/* --no-cache: all code was generated here */
	at = strstr(a.body, "\njitserve_kernels_generated_total{model=\"tale-q8_0\"} ");
	assert_true(at && atol(strchr(at + 1, '}') + 1) >= 5);
	at = strstr(a.body, "\njitserve_code_bytes{model=\"tale-q8_0\"} ");
	assert_true(at && atol(strchr(at + 1, '}') + 1) >= 5000);
	answer_free(&a);
}

/* ---- several prompts, parts of answers, and what a token is called */

static void test_several(void **state)
{
	static const char one[] = "{\"prompt\":\"Once upon\",\"n_predict\":5,\"temperature\":0}";
	static const char many[] =
		"{\"prompt\":[\"A bird\",{\"prompt_string\":\"Once upon\"},[1,\"Once upon\"]],"
		"\"n_predict\":5,\"temperature\":0,\"response_fields\":[\"content\",\"index\","
		"\"generation_settings/n_predict\",\"nothing/here\"]}";
	json_t *alone = client_json(&server, "/completion", one, 200),
	       *o = client_json(&server, "/completion", many, 200);
	json_t *second = json_array_get(o, 1);
	(void)state;

	assert_int_equal(json_array_size(o), 3);
	assert_string_equal(text(second, "content"), text(alone, "content"));
	assert_string_not_equal(text(json_array_get(o, 0), "content"), text(alone, "content"));
	assert_int_equal(json_object_size(second), 3);
	assert_int_equal(integer(second, "index"), 1);
	assert_int_equal(integer(second, "generation_settings/n_predict"), 5);
	assert_int_equal(integer(json_object_get(alone, "generation_settings"), "top_k"), 40);
	json_decref(o);
	json_decref(alone);
	json_decref(client_json(&server, "/completion", "{\"prompt\":\"x\",\"response_fields\":[1]}", 400));
	json_decref(client_json(&server, "/completion", "{\"prompt\":{\"prompt_string\":7}}", 400));
	json_decref(client_json(&server, "/completion",
	                        "{\"prompt\":[{\"prompt_string\":\"a\",\"multimodal_data\":[1]}]}", 400));
}

/* A text as a key stands for its tokens, and false bans them. */
static void test_bias_of_text(void **state)
{
	static const char requested[] = "{\"prompt\":\"Once upon\",\"n_predict\":1,\"temperature\":0%s}";
	char body[400], word[100];
	(void)state;

	snprintf(body, sizeof body, requested, "");
	json_t *o = client_json(&server, "/completion", body, 200);
	snprintf(word, sizeof word, ",\"logit_bias\":{\"%s\":false}", text(o, "content"));
	snprintf(body, sizeof body, requested, word);
	json_t *without = client_json(&server, "/completion", body, 200);
	assert_string_not_equal(text(o, "content"), text(without, "content"));
	json_t *list = json_object_get(json_object_get(without, "generation_settings"), "logit_bias");
	assert_int_equal(json_array_size(list), 1);
	assert_true(json_is_null(json_object_get(json_array_get(list, 0), "bias")));
	json_decref(o);
	json_decref(without);
}

/* How long a prompt is, before it is asked and when it is refused. */
static void test_counts(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--context", "16", NULL };
	static const char chat[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"A tale, please, of a bird and "
				   "a fish.\"}]}";
	struct child own = child_start(arguments);
	json_t *o = client_json(&own, "/v1/chat/completions/input_tokens", chat, 200);
	json_t *no = client_json(&own, "/v1/chat/completions", chat, 400), *e = json_object_get(no, "error");
	(void)state;

	assert_true(integer(o, "input_tokens") > 16);
	assert_int_equal(integer(e, "n_prompt_tokens"), integer(o, "input_tokens"));
	assert_int_equal(integer(e, "n_ctx"), 16);
	json_decref(o);
	json_decref(no);
	assert_int_equal(child_stop(&own), 0);
}

/* ---- embeddings */

static size_t sextet(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return c == '=' ? 0 : (size_t)(strchr(digits, c) - digits);
}

/* As numbers and in base64 the bits of a session of our own. */
static void test_embeddings(void **state)
{
	enum { HIDDEN = 256 };
	static const int32_t ids[] = { 1, 300, 17, 9 };
	char path[1024];
	float expected[HIDDEN], got[HIDDEN];
	jit_model *m =
		jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
	jit_session *s = m ? jit_session_open(m, NULL, NULL) : NULL;
	(void)state;

	assert_non_null(s);
	assert_int_equal(jit_session_embed(s, ids, 4, &JIT_EMBEDDING_OPTIONS(.normalise = 1), expected, HIDDEN, NULL),
	                 JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	json_t *o = client_json(&server, "/v1/embeddings", "{\"input\":[[1,300,17,9],\"Once upon\"]}", 200);
	assert_int_equal(json_array_size(json_object_get(o, "data")), 2);
	const json_t *v = json_object_get(json_array_get(json_object_get(o, "data"), 0), "embedding");
	assert_int_equal(json_array_size(v), HIDDEN);
	for (size_t i = 0; i < HIDDEN; i++)
		got[i] = (float)json_number_value(json_array_get(v, i));
	assert_memory_equal(got, expected, sizeof got);
	assert_true(integer(json_object_get(o, "usage"), "prompt_tokens") > 4);
	json_decref(o);
	o = client_json(&server, "/v1/embeddings", "{\"input\":[1,300,17,9],\"encoding_format\":\"base64\"}", 200);
	const char *coded = text(json_array_get(json_object_get(o, "data"), 0), "embedding");
	unsigned char bytes[HIDDEN * 4 + 4];
	assert_int_equal(strlen(coded), (sizeof got + 2) / 3 * 4);
	for (size_t i = 0, at = 0; coded[i]; i += 4, at += 3) {
		size_t bits = sextet(coded[i]) << 18 | sextet(coded[i + 1]) << 12 | sextet(coded[i + 2]) << 6 |
		              sextet(coded[i + 3]);
		bytes[at] = (unsigned char)(bits >> 16);
		bytes[at + 1] = (unsigned char)(bits >> 8);
		bytes[at + 2] = (unsigned char)bits;
	}
	assert_memory_equal(bytes, expected, sizeof got);
	json_decref(o);
	json_decref(client_json(&server, "/v1/embeddings", "{}", 400));
	json_decref(client_json(&server, "/v1/embeddings", "{\"input\":\"\",\"dimensions\":100000}", 400));
}

/* The first number of the embedding of three tokens that a server of its own gives, of this model. */
static double embedding_of(const char *model, const char *option, const char *value)
{
	const char *const arguments[] = { "--no-cache", "--alias", "usual", model, option, value, NULL };
	struct child c = child_start(arguments);
	json_t *o = client_json(&c, "/v1/embeddings", "{\"model\":\"pooled\",\"input\":[1,2,3]}", 200);
	const json_t *v = json_object_get(json_array_get(json_object_get(o, "data"), 0), "embedding");
	double first = json_number_value(json_array_get(v, 0));

	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
	return first;
}

/* Without --pooling a model's embeddings are what its files say. */
static void test_pooling(void **state)
{
	static const char says[] = "{\"pooling_mode_mean_tokens\": true}";
	char dir[] = "/tmp/jitrun-pooled-XXXXXX", model[64], beside[100];
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(model, sizeof model, "%s/pooled", dir);
	snprintf(beside, sizeof beside, "%s/1_Pooling", model);
	assert_int_equal(mkdir(model, 0700) | mkdir(beside, 0700), 0);
	tiny_write_hf(model, &tiny_min);
	double unsaid = embedding_of(model, NULL, NULL);
	tiny_write(beside, "config.json", says, sizeof says - 1);
	double own = embedding_of(model, NULL, NULL), last = embedding_of(model, "--pooling", "last"),
	       mean = embedding_of(model, "--pooling", "mean");
	assert_true(own == mean && unsaid == last && mean != last);
	unlink(strcat(beside, "/config.json"));
	rmdir(dirname(beside));
	snprintf(beside, sizeof beside, "%s/config.json", model);
	unlink(beside);
	snprintf(beside, sizeof beside, "%s/model.safetensors", model);
	unlink(beside);
	rmdir(model);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- answers made again */

static char kept[] = "/tmp/jitrun-replay-XXXXXX";

static void keep(const char *path, const json_t *request, const char *header, const json_t *answer)
{
	json_t *o =
		json_pack("{s:s, s:O, s:s, s:O}", "path", path, "request", request, "replay", header, "answer", answer);

	assert_non_null(o);
	assert_int_equal(json_dump_file(o, kept, 0), 0);
	json_decref(o);
}

/* Runs jitserve --replay; its status. said: its output, both kinds. */
static int replay(const char *more, char said[4000])
{
	char arguments[1000];

	snprintf(arguments, sizeof arguments, "--no-cache --context 512 %s --replay %s", more, kept);
	return child_says(true, arguments, said, 4000);
}

static void test_replay(void **state)
{
	static const char body[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"A tale, please.\"}],\"max_tokens\":30,"
		"\"temperature\":0.9}";
	static const char template[] = "{{ messages[0].content }}!";
	char said[4000], own[] = "/tmp/jitrun-template-XXXXXX", option[64];
	int fd = mkstemp(kept);
	(void)state;

	assert_true(fd >= 0);
	close(fd);
	struct answer a = client_ask(&server, "/v1/chat/completions", NULL, body);
	assert_int_equal(a.status, 200);
	char *header = strdup(answer_field(&a, "X-Jitrun-Replay"));
	json_t *answer = json_loads(a.body, 0, NULL), *request = json_loads(body, 0, NULL);
	json_t *message = json_object_get(json_array_get(json_object_get(answer, "choices"), 0), "message");
	keep("/v1/chat/completions", request, header, answer);
	assert_int_equal(replay("", said), 0);
	assert_int_equal(strncmp(said, text(message, "content"), strlen(text(message, "content"))), 0);
	/* in the context that made it, unless another is asked for */
	assert_int_equal(replay("--context 0", said), 0);
	assert_int_equal(replay("--context 500", said), 1);
	assert_non_null(strstr(said, "was made with context 512, and here is context 500"));
	/* with any number of threads and draft tokens; not with another type of the cache */
	assert_int_equal(replay("--threads 1 --speculate off", said), 0);
	assert_int_equal(replay("--kv-type q8_0", said), 1);
	assert_non_null(strstr(said, "was made with kv f16, and here is kv q8_0"));
	/* nor with options that change what the request means */
	assert_int_equal(replay("--top-k 3", said), 1);
	assert_non_null(strstr(said, "the request means other tokens or another sampling here"));
	fd = mkstemp(own);
	assert_true(fd >= 0 && write(fd, template, sizeof template - 1) == sizeof template - 1);
	close(fd);
	snprintf(option, sizeof option, "--template %s", own);
	assert_int_equal(replay(option, said), 1);
	assert_non_null(strstr(said, "the request means other tokens or another sampling here"));
	unlink(own);
	json_object_set_new(message, "content", json_string("Something else."));
	keep("/v1/chat/completions", request, header, answer);
	assert_int_equal(replay("", said), 1);
	assert_non_null(strstr(said, "is another than the one that was kept"));
	keep("/v1/nothing", request, header, answer);
	assert_int_equal(replay("", said), 1);
	unlink(kept);
	free(header);
	json_decref(answer);
	json_decref(request);
	answer_free(&a);
}

/* The same for other forms of answers: its text, and that another text is noticed. */
static void test_replay_of(const char *path, const char *body, const char *list)
{
	char said[4000];

	assert_int_equal(close(mkstemp(strcpy(kept, "/tmp/jitrun-kept-XXXXXX"))), 0);
	struct answer a = { 0 };
	json_t *answer = NULL, *request = json_loads(body, 0, NULL), *o = NULL;
	/* Each answer has a seed of its own, and few of them end at once. */
	for (unsigned tries = 0; !o || strlen(text(o, "text")) <= 8; tries++) {
		json_decref(answer);
		answer_free(&a);
		a = client_ask(&server, path, NULL, body);
		assert_true(a.status == 200 && tries < 20);
		answer = json_loads(a.body, 0, NULL);
		o = json_array_get(json_object_get(answer, list), json_array_size(json_object_get(answer, list)) - 1);
		o = json_object_get(o, "content") ? json_array_get(json_object_get(o, "content"), 0) : o;
	}
	char *header = strdup(answer_field(&a, "X-Jitrun-Replay"));
	keep(path, request, header, answer);
	assert_int_equal(replay("", said), 0);
	assert_non_null(strstr(said, text(o, "text")));
	json_object_set_new(o, "text", json_string("Something else."));
	keep(path, request, header, answer);
	assert_int_equal(replay("", said), 1);
	unlink(kept);
	free(header);
	json_decref(answer);
	json_decref(request);
	answer_free(&a);
}

static void test_replays(void **state)
{
	(void)state;

	test_replay_of("/v1/messages", "{\"messages\":[{\"role\":\"user\",\"content\":\"A tale.\"}],\"max_tokens\":12}",
	               "content");
	test_replay_of("/v1/responses", "{\"input\":\"A tale.\",\"max_output_tokens\":16}", "output");
}

static void test_ranking(void **state)
{
	(void)state;

	json_decref(client_json(&server, "/v1/rerank", "{\"query\":\"a\",\"documents\":[\"b\"]}", 501));
}

/* Options of the program stand where a request says nothing, and nowhere else. */
static void test_defaults(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--context", "512",    "-n", "6",
		                                 "--temp",     "1.5",       "--seed", "77", NULL };
	static const char prompt[] = "{\"prompt\":\"Once upon a time\"}",
			  other[] = "{\"prompt\":\"Once upon a time\",\"n_predict\":9,\"seed\":78}";
	struct child own = child_start(arguments);
	json_t *a = client_json(&own, "/completion", prompt, 200), *b = client_json(&own, "/completion", prompt, 200);
	json_t *c = client_json(&own, "/completion", other, 200), *of_c = json_object_get(c, "generation_settings");
	json_t *of_a = json_object_get(a, "generation_settings");
	(void)state;

	assert_int_equal(integer(a, "tokens_predicted"), 6);
	assert_string_equal(text(a, "content"), text(b, "content"));
	assert_int_equal(integer(of_a, "seed"), 77);
	assert_float_equal(json_number_value(json_object_get(of_a, "temperature")), 1.5, 1e-6);
	assert_int_equal(integer(c, "tokens_predicted"), 9);
	assert_int_equal(integer(of_c, "seed"), 78);
	assert_string_not_equal(text(a, "content"), text(c, "content"));
	json_decref(a);
	json_decref(b);
	json_decref(c);
	assert_int_equal(child_stop(&own), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),       cmocka_unit_test(test_template), cmocka_unit_test(test_properties),
		cmocka_unit_test(test_native),       cmocka_unit_test(test_metrics),  cmocka_unit_test(test_replay),
		cmocka_unit_test(test_embeddings),   cmocka_unit_test(test_pooling),  cmocka_unit_test(test_ranking),
		cmocka_unit_test(test_replays),      cmocka_unit_test(test_defaults), cmocka_unit_test(test_several),
		cmocka_unit_test(test_bias_of_text), cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
