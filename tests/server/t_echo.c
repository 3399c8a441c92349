/* tests/server/t_echo.c - prompts that stand before their answers, with the log probabilities of their tokens: as
 * evaluation harnesses ask for them, beside a session of our own that is fed one token after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun.h"
#include "runtime/session/session.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

#define TALE "Once upon a time, a na\\u00efve fox \\u65e5\\u672c sang \\ud83d\\ude00 to \\\"the\\\" king"
static const char tale[] = "Once upon a time, a na\xc3\xafve fox \xe6\x97\xa5\xe6\x9c\xac sang \xf0\x9f\x98\x80 to "
			   "\"the\" king";
enum { MAX = 400 };

static struct child server;
static jit_model *model;

static int start(void **state)
{
	static const char *const arguments[] = { "--parallel",    "4", "--no-cache", "--context", "4096",
		                                 "--max-pass-ms", "1", NULL };
	char path[1024];
	(void)state;

	server = child_start(arguments);
	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
	return model ? 0 : 1;
}

static int stop(void **state)
{
	(void)state;
	jit_model_close(model);
	return child_stop(&server);
}

static json_t *ask(const char *body) { return client_json(&server, "/v1/completions", body, 200); }

static const json_t *choice(const json_t *o, size_t i) { return json_array_get(json_object_get(o, "choices"), i); }

static const char *text_of(const json_t *o, size_t i)
{
	return json_string_value(json_object_get(choice(o, i), "text"));
}

static const json_t *list(const json_t *o, size_t i, const char *name)
{
	const json_t *l = json_object_get(json_object_get(choice(o, i), "logprobs"), name);

	assert_true(json_is_array(l));
	return l;
}

/* ---- numbers */

/* The logarithm of a softmax in double, and how many logits are greater. */
static double expected_of(const float *logits, int n, int32_t id, int *greater)
{
	double max = -INFINITY, sum = 0;

	*greater = 0;
	for (int i = 0; i < n; i++) {
		max = logits[i] > max ? (double)logits[i] : max;
		*greater += logits[i] > logits[id];
	}
	for (int i = 0; i < n; i++)
		sum += exp((double)logits[i] - max);
	return (double)logits[id] - max - log(sum);
}

/* Of the entry of a place: the number, and the likelier tokens from the first on. */
static void check_entry(const json_t *e, const float *logits, int n, size_t n_top)
{
	const json_t *top = json_object_get(e, "top_logprobs"), *t;
	const int32_t id = (int32_t)json_integer_value(json_object_get(e, "id"));
	int greater;
	size_t i;

	assert_float_equal(json_number_value(json_object_get(e, "logprob")), expected_of(logits, n, id, &greater),
	                   1e-4);
	assert_int_equal(json_array_size(top), n_top);
	json_array_foreach(top, i, t)
	{
		const int32_t other = (int32_t)json_integer_value(json_object_get(t, "id"));
		double number = expected_of(logits, n, other, &greater);
		assert_float_equal(json_number_value(json_object_get(t, "logprob")), number, 1e-4);
		assert_int_equal(greater, i);
	}
}

static void check_numbers(const json_t *content, size_t n_top)
{
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = MAX), NULL);
	jit_model_info info = JIT_MODEL_INFO();
	json_t *e;
	size_t i;

	assert_non_null(s);
	jit_model_get_info(model, &info, NULL);
	json_array_foreach(content, i, e)
	{
		const int32_t id = (int32_t)json_integer_value(json_object_get(e, "id"));
		if (i)
			check_entry(e, jit_session_logits(s, NULL), info.vocab, n_top);
		else
			assert_true(json_is_null(json_object_get(e, "logprob")));
		assert_int_equal(jit_session_feed(s, &id, 1, NULL), JIT_OK);
	}
	jit_session_close(s);
}

static void test_numbers(void **state)
{
	(void)state;
	json_t *o = ask("{\"prompt\":\"" TALE "\",\"echo\":true,\"logprobs\":3,\"max_tokens\":5,\"temperature\":0}");
	const json_t *numbers = list(o, 0, "token_logprobs"), *content = list(o, 0, "content");
	const json_t *usage = json_object_get(o, "usage");
	size_t n = json_array_size(numbers);

	assert_int_equal(strncmp(text_of(o, 0), tale, strlen(tale)), 0);
	assert_true(json_is_null(json_array_get(numbers, 0)));
	assert_true(json_is_null(json_array_get(list(o, 0, "top_logprobs"), 0)));
	assert_int_equal(n, json_array_size(list(o, 0, "tokens")));
	assert_int_equal(n, json_array_size(list(o, 0, "top_logprobs")));
	assert_int_equal(n, json_array_size(list(o, 0, "text_offset")));
	assert_int_equal(n, json_array_size(content));
	assert_int_equal(n, json_integer_value(json_object_get(usage, "total_tokens")));
	assert_int_equal(5, json_integer_value(json_object_get(usage, "completion_tokens")));
	check_numbers(content, 3);
	for (size_t i = 1; i < n; i++)
		assert_true(
			json_equal(json_array_get(numbers, i), json_object_get(json_array_get(content, i), "logprob")));
	json_decref(o);
}

/* ---- lists side by side */

/* The byte at which a character begins. */
static size_t byte_of(const char *text, size_t character)
{
	size_t at = 0;

	for (size_t i = 0; text[at]; at++)
		if (((unsigned char)text[at] & 0xc0) != 0x80 && i++ == character)
			break;
	return at;
}

/* Each token is found where it is said to be, a part of a character at its beginning; likelier ones have a name each,
 * and the token is among them. */
static void test_paths(void **state)
{
	(void)state;
	json_t *o = ask("{\"prompt\":\"" TALE "\",\"echo\":true,\"logprobs\":200,\"max_tokens\":40,\"seed\":1}");
	const json_t *tokens = list(o, 0, "tokens"), *offsets = list(o, 0, "text_offset"), *v;
	const json_t *tops = list(o, 0, "top_logprobs"), *content = list(o, 0, "content");
	const char *text = text_of(o, 0);
	size_t i, parts = 0;

	json_array_foreach(tokens, i, v)
	{
		const char *token = json_string_value(v);
		const char *at = text + byte_of(text, (size_t)json_integer_value(json_array_get(offsets, i)));
		if (strncmp(token, "bytes:", 6) == 0)
			parts += (unsigned char)*at >= 0x80;
		else
			assert_int_equal(strncmp(at, token, strlen(token)), 0);
		if (i == 0)
			continue;
		const json_t *entry = json_array_get(content, i), *top = json_array_get(tops, i);
		assert_true(json_equal(json_object_get(top, token), json_object_get(entry, "logprob")));
		size_t n = json_object_size(top);
		assert_true(n == 200 || n == 201);
	}
	assert_int_equal(parts, 12);
	json_decref(o);
}

/* ---- forms */

/* Prompts of tokens, several of them, several answers of each, nothing or one token generated. */
static void test_as_harnesses_ask(void **state)
{
	(void)state;
	json_t *o = ask("{\"prompt\":\"Once upon a time\",\"echo\":true,\"logprobs\":1,\"max_tokens\":0}");
	const json_t *numbers = list(o, 0, "token_logprobs");
	json_t *ids = json_array(), *e;
	size_t i, n = json_array_size(numbers);

	assert_string_equal(text_of(o, 0), "Once upon a time");
	assert_string_equal(json_string_value(json_object_get(choice(o, 0), "finish_reason")), "length");
	json_array_foreach(list(o, 0, "content"), i, e) json_array_append(ids, json_object_get(e, "id"));
	json_t *short_ids = json_copy(ids);
	json_array_remove(short_ids, n - 1);
	json_t *request = json_pack("{s:[O, o], s:b, s:i, s:i, s:i, s:i}", "prompt", ids, short_ids, "echo", 1,
	                            "logprobs", 1, "max_tokens", 1, "n", 2, "temperature", 0);
	char *body = json_dumps(request, 0);
	json_t *several = ask(body);
	assert_int_equal(json_array_size(json_object_get(several, "choices")), 4);
	for (i = 0; i < 4; i++) {
		const json_t *own = list(several, i, "token_logprobs");
		size_t length = n - (i >= 2);
		assert_int_equal(json_array_size(own), length + 1);
		for (size_t k = 0; k < length; k++)
			assert_true(json_equal(json_array_get(own, k), json_array_get(numbers, k)));
		assert_int_equal(strncmp(text_of(several, i), "Once upon a time", i < 2 ? 16 : 11), 0);
	}
	free(body);
	json_decref(request);
	json_decref(several);
	json_decref(ids);
	json_decref(o);
}

static void test_without_numbers(void **state)
{
	(void)state;
	json_t *o = ask("{\"prompt\":[\"Hi\",\"The king\"],\"echo\":true,\"max_tokens\":4}");

	assert_int_equal(strncmp(text_of(o, 0), "Hi", 2), 0);
	assert_int_equal(strncmp(text_of(o, 1), "The king", 8), 0);
	assert_true(json_is_null(json_object_get(choice(o, 0), "logprobs")));
	json_decref(o);
	o = ask("{\"prompt\":\"Hi\",\"echo\":false,\"max_tokens\":4,\"logprobs\":0}");
	assert_int_equal(json_array_size(list(o, 0, "tokens")), 4);
	assert_int_equal(json_integer_value(json_array_get(list(o, 0, "text_offset"), 0)), 0);
	json_decref(o);
}

/* A stream's parts put together are the whole answer. */
static void test_stream(void **state)
{
#define SAME "{\"prompt\":\"" TALE "\",\"echo\":true,\"logprobs\":2,\"max_tokens\":9,\"seed\":3,\"n\":2"
	static const char *const names[] = { "tokens", "token_logprobs", "top_logprobs", "text_offset", "content" };
	json_t *whole = ask(SAME "}"), *parts[2][5], *o;
	struct answer a = client_ask(&server, "/v1/completions", NULL, SAME ",\"stream\":true}");
	char *text[2] = { calloc(1, 4096), calloc(1, 4096) };
	(void)state;

	for (size_t i = 0; i < 10; i++)
		parts[i / 5][i % 5] = json_array();
	for (const char *at = a.body; (at = strstr(at, "data: {")); json_decref(o)) {
		at += 6;
		assert_non_null(o = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL));
		const json_t *c = choice(o, 0), *l = json_object_get(c, "logprobs");
		size_t i = (size_t)json_integer_value(json_object_get(c, "index"));
		strcat(text[i], json_string_value(json_object_get(c, "text")));
		for (size_t k = 0; k < 5; k++)
			json_array_extend(parts[i][k], json_object_get(l, names[k]));
	}
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(text[i], text_of(whole, i));
		for (size_t k = 0; k < 5; k++) {
			assert_true(json_equal(parts[i][k], list(whole, i, names[k])));
			json_decref(parts[i][k]);
		}
		free(text[i]);
	}
	json_decref(whole);
	answer_free(&a);
}

/* Who leaves while its prompt is scored leaves nobody waiting. */
static void test_leaving(void **state)
{
	(void)state;
	static char body[16384] = "{\"n\":3,\"echo\":true,\"logprobs\":1,\"max_tokens\":9,\"prompt\":\"";

	for (int i = 0; i < 700; i++)
		strcat(body, "The king. ");
	strcat(body, "\"}");
	for (int i = 0; i < 6; i++) {
		char head[200];
		int fd = client_connect(&server, false);
		snprintf(head, sizeof head,
		         "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
		         strlen(body));
		client_send(fd, head, strlen(head));
		client_send(fd, body, strlen(body));
		usleep(10000 * (unsigned)i);
		close(fd);
	}
	json_decref(ask("{\"prompt\":\"Hi\",\"echo\":true,\"logprobs\":1,\"max_tokens\":1}"));
	for (int i = 0;; i++) {
		struct answer a = client_ask(&server, "/metrics", NULL, NULL);
		const bool idle = strstr(a.body, "llamacpp:requests_processing{model=\"tale-q8_0\"} 0\n") &&
		                  strstr(a.body, "llamacpp:requests_deferred{model=\"tale-q8_0\"} 0\n");
		answer_free(&a);
		if (idle)
			break;
		assert_true(i < 200);
		usleep(50000);
	}
}

/* ---- bytes */

/* The bytes of all tokens, and those of the likelier ones by /detokenize, are of the text and not of what stands for
 * them: a grammar has the model say characters that are several tokens each. */
static void check_bytes(const char *path, const char *body, const char *expected)
{
	json_t *o = client_json(&server, path, body, 200), *e, *byte;
	const json_t *c = choice(o, 0), *l = json_object_get(c ? json_object_get(c, "logprobs") : NULL, "content");
	char text[200];
	size_t i, k, n = 0, replaced = 0;

	if (!l)
		l = json_object_get(o, "completion_probabilities");
	assert_true(json_array_size(l) > 0);
	json_array_foreach(l, i, e)
	{
		json_array_foreach(json_object_get(e, "bytes"), k, byte)
		{
			assert_true(n < sizeof text - 1);
			text[n++] = (char)json_integer_value(byte);
		}
		replaced += strcmp(json_string_value(json_object_get(e, "token")), "\xef\xbf\xbd") == 0;
	}
	text[n] = 0;
	assert_string_equal(text, expected);
	assert_true(replaced >= 4); /* a part's text cannot be told otherwise */
	json_decref(o);
}

static void test_bytes(void **state)
{
	(void)state;
#define SAY "\"grammar\":\"root ::= \\\"\\ud83d\\ude00\\u00ef\\\"\",\"temperature\":0"
	static const char said[] = "\xf0\x9f\x98\x80\xc3\xaf";

	check_bytes("/v1/chat/completions",
	            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"logprobs\":true," SAY "}", said);
	check_bytes("/v1/completions", "{\"prompt\":\"x\",\"logprobs\":0," SAY "}", said);
	check_bytes("/completion", "{\"prompt\":\"x\",\"n_probs\":2," SAY "}", said);
	check_bytes("/completion", "{\"prompt\":\"x\",\"n_probs\":2,\"post_sampling_probs\":true," SAY "}", said);
	json_t *o = client_json(&server, "/tokenize",
	                        "{\"content\":\"x\\ud83d\\ude00\",\"with_pieces\":true,\"add_special\":true}", 200);
	char *text = json_dumps(o, JSON_COMPACT);
	assert_non_null(strstr(text, "\"piece\":[240]"));
	assert_non_null(strstr(text, "\"piece\":[128]"));
	assert_non_null(strstr(text, "\"piece\":\"<|begin_of_text|>\""));
	free(text);
	json_decref(o);
}

/* ---- the library's function */

static void test_library(void **state)
{
	(void)state;
	int32_t *ids = NULL;
	size_t n = 0;
	float plain[64], logprob[64];
	jit_logprob top[64][4];
	jit_error err = { 0 };
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = 64), NULL);

	assert_int_equal(jit_model_tokenize(model, tale, strlen(tale), 1, 0, &ids, &n, NULL), JIT_OK);
	assert_true(s && n < 60);
	assert_int_equal(jit_session_score(s, ids, n, plain, &err), JIT_OK);
	for (size_t cut = 0; cut < n; cut += 7) {
		assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
		assert_int_equal(session_score_top(s, ids, cut, logprob, top[0], 4, &err), JIT_OK);
		assert_int_equal(session_score_top(s, ids + cut, n - cut, logprob + cut, top[cut], 4, &err), JIT_OK);
		assert_memory_equal(logprob, plain, n * sizeof *plain);
		assert_int_equal(top[0][3].id, -1);
		for (size_t i = 1; i < n; i++)
			assert_true(top[i][0].logprob >= top[i][3].logprob && top[i][3].id >= 0);
	}
	assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
	assert_int_equal(session_score_top(s, ids, n, NULL, NULL, 0, &err), JIT_OK);
	jit_session_close(s);
	free(ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_as_harnesses_ask),
		cmocka_unit_test(test_without_numbers),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
