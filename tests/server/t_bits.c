/* tests/server/t_bits.c - answers that the server computes once more: their bits are the same, and other bits would be
 * counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/engine/bits.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static double number(const struct child *c, const char *name)
{
	char line[200];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	snprintf(line, sizeof line, "\n%s{model=\"tale-q8_0\"} ", name);
	const char *at = strstr(a.body, line);
	if (!at)
		fail_msg("%s is not in %s", name, a.body);
	double value = atof(at + strlen(line));
	answer_free(&a);
	return value;
}

/* Drafts, a beginning that is taken over, a grammar, an end that is chosen, a context that is full, several at once. */
static void test_server(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--check-bits", "1", "--context", "128", NULL };
	static const char *const bodies[] = {
		"{\"prompt\":\"one two three one two three one two three one\",\"max_tokens\":40,\"temperature\":0}",
		"{\"prompt\":\"one two three one two three one two a king\",\"max_tokens\":12,\"seed\":3}",
		("{\"prompt\":\"A king\",\"max_tokens\":30,\"response_format\":{\"type\":\"regex\","
		 "\"pattern\":\" was [a-z ]{9}\"}}"),
		"{\"prompt\":\"Once upon a time\",\"max_tokens\":400,\"ignore_eos\":true,\"seed\":9}",
		"{\"prompt\":\"The forest\",\"max_tokens\":1,\"seed\":9}",
		"{\"prompt\":[\"Once\",\"A bird\"],\"n\":2,\"max_tokens\":9,\"seed\":4}",
	};
	struct child c = child_start(arguments);
	(void)state;

	for (unsigned i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		json_decref(client_json(&c, "/v1/completions", bodies[i], 200));
		for (int k = 0; k < 1000 && number(&c, "jitserve_bits_checked_total") < i + 1; k++)
			usleep(20000);
		if (number(&c, "jitserve_bits_checked_total") < i + 1)
			fail_msg("%s is not checked", bodies[i]);
	}
	assert_true(number(&c, "jitserve_bits_wrong_total") <= 0);
	assert_int_equal(child_stop(&c), 0);
}

static void check(struct bits *b, const int32_t *ids, size_t n, size_t n_prompt, uint64_t sum, uint64_t wrong)
{
	uint64_t before = bits_checked(b);

	assert_true(bits_wants(b));
	bits_take(b, ids, n, n_prompt, sum, &(struct used_adapters){ 0 });
	assert_false(bits_wants(b)); /* one at a time */
	while (bits_pending(b))
		bits_step(b);
	assert_int_equal(bits_checked(b), before + 1);
	assert_int_equal(bits_wrong(b), wrong);
}

/* Rows of a session of our own are right; with one bit of one of them changed, or with a token missing, they are not.
 */
static void test_wrong(void **state)
{
	enum { N = 70, PROMPT = 50 };
	const jit_session_options o = JIT_SESSION_OPTIONS(.context = 128, .threads = 1);
	char path[1024];
	int32_t ids[N];
	uint64_t sum = 0, other = 0;
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m =
		jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
	jit_session *s = m ? jit_session_open(m, &o, NULL) : NULL;
	(void)state;

	assert_non_null(s);
	assert_int_equal(jit_model_get_info(m, &info, NULL), JIT_OK);
	size_t vocab = (size_t)info.vocab;
	float *row = malloc(vocab * sizeof *row);
	for (int i = 0; i < N; i++)
		ids[i] = 300 + i * 7;
	for (size_t at = PROMPT; at <= N; at++) {
		assert_int_equal(jit_session_feed(s, at == PROMPT ? ids : ids + at - 1, at == PROMPT ? PROMPT : 1,
		                                  NULL),
		                 JIT_OK);
		memcpy(row, jit_session_logits(s, NULL), vocab * sizeof *row);
		sum = bits_sum(sum, row, vocab);
		((uint8_t *)row)[vocab * 2] ^= at == PROMPT + 3;
		other = bits_sum(other, row, vocab);
	}
	struct bits *b = bits_open(m, &o, 1);
	check(b, ids, N, PROMPT, sum, 0);
	check(b, ids, N, PROMPT, other, 1);
	check(b, ids, N - 1, PROMPT, sum, 2);
	check(b, ids, N, PROMPT, sum, 2);
	bits_close(b);
	free(row);
	jit_session_close(s);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_server), cmocka_unit_test(test_wrong) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
