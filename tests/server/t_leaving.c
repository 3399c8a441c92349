/* tests/server/t_leaving.c - a client that leaves while a grammar is at work for it: the search ends, whether the
 * grammar was made with the request or by the choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_grammar.h"
#include "server/engine/choice.h"
#include "server/engine/stream.h"
#include "tests/support/shared.h"

static struct served served;
static jit_batch *batch;

static int set_up(void **state)
{
	char path[1024];
	(void)state;

	served.model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 2), NULL);
	served.info = JIT_MODEL_INFO();
	served.sampling = JIT_SAMPLING(.temperature = 0.8f);
	if (!served.model || jit_model_get_info(served.model, &served.info, NULL) != JIT_OK)
		return 1;
	batch = jit_batch_open(served.model, &JIT_BATCH_OPTIONS(.threads = 2, .context = 128), NULL);
	return !batch;
}

static int tear_down(void **state)
{
	(void)state;
	jit_batch_close(batch);
	jit_model_close(served.model);
	return 0;
}

/* Until its next token can be chosen. */
static void compute(const jit_session *s)
{
	jit_session *ready = NULL;
	jit_error err = { 0 };
	size_t n = 0;

	while (n == 0 || ready != s)
		assert_int_equal(jit_batch_step(batch, &ready, 1, &n, &err), JIT_OK);
}

static void check(bool made, bool leaves)
{
	static const char schema[] =
		"{\"type\":\"string\",\"allOf\":[{\"pattern\":\"a.{2}$\"},{\"pattern\":\"b.{3}$\"}]}";
	static const int32_t prompt[] = { 5, 9, 17 };
	struct answer_stream *stream = stream_open(1, SIZE_MAX, false);
	struct task *t = task_open(&served);
	struct choice *c = NULL, **end;
	struct refusal r = { 0 };
	uint64_t steps = 60000000;
	jit_error err = { 0 };
	int32_t id;

	assert_true(stream && t);
	stream_hold(stream);
	t->stream = stream;
	t->ids = malloc(sizeof prompt);
	assert_non_null(t->ids);
	memcpy(t->ids, prompt, sizeof prompt);
	t->n_ids = 3;
	t->max = 10;
	t->choices = 1;
	assert_true(task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, schema, "json_schema", &r));
	assert_true(!made || task_make_grammars(t, served.model, &steps, &r));
	assert_true(choices_open(t, &c, &end));
	choice_begin(c, batch);
	assert_non_null(c->session);
	compute(c->session);
	assert_int_equal(jit_session_next(c->session, &id, &err), JIT_OK);
	compute(c->session);
	if (leaves)
		stream_cancel(stream);
	assert_int_equal(jit_session_next(c->session, &id, &err), leaves ? JIT_ERROR_CANCELLED : JIT_OK);
	choices_close(c);
	task_release(t);
	stream_leave(stream);
	stream_release(stream);
}

static void test_leaving(void **state)
{
	(void)state;
	for (int made = 0; made < 2; made++)
		for (int leaves = 0; leaves < 2; leaves++)
			check(made, leaves);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_leaving) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
