/* tests/server/t_lora.c - adapters in a server: requests with different ones in the same passes have the bits that each
 * has alone and that the library gives, nothing is shared between adapters, and they come and go while requests run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun_adapters.h"
#include "tests/server/lora_server.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

enum { ASKS = 16 };

/* ---- one pass */

static void more_of(int i, char out[120])
{
	static const char *const lists[] = { "\"lora\":[{\"id\":6,\"scale\":0.5},{\"id\":1,\"scale\":-0.75}]",
		                             "\"lora\":[]", "\"lora\":[{\"id\":2}]", "\"model\":\"tale-q8_0\"" };

	if (i < 12)
		snprintf(out, 120, "\"model\":\"a%d\"", i % LORA_ADAPTERS);
	else
		snprintf(out, 120, "%s", lists[i - 12]);
}

/* The prompts differ in length, so that tiles of columns do not fall together. */
static void prompt_of(int i, char out[200])
{
	size_t n = 0;

	for (int k = 0; k <= i % 5 * 3; k++)
		n += (size_t)snprintf(out + n, 200 - n, "%sOnce a %s", k ? " " : "", i & 1 ? "king" : "fox");
}

/* All at once, to a server of as many places; then one at a time, to another that has computed nothing else. */
static void test_mixed(void **state)
{
	struct child alone = child_start(lora_arguments((const char *[]){ "--parallel", "1", NULL }));
	char *together[ASKS], body[600], head[200], prompt[200], more[120], *text;
	int fd[ASKS];
	(void)state;

	for (int i = 0; i < ASKS; i++)
		fd[i] = client_connect(&lora_server, false);
	for (int i = 0; i < ASKS; i++) {
		prompt_of(i, prompt);
		more_of(i, more);
		lora_body(body, prompt, more);
		const int n = snprintf(head, sizeof head,
		                       "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
		                       strlen(body));
		client_send(fd[i], head, (size_t)n);
		client_send(fd[i], body, strlen(body));
	}
	for (int i = 0; i < ASKS; i++) {
		struct answer a = client_read(fd[i], 60);
		json_t *o = json_loads(a.body, 0, NULL);
		if (a.status != 200 || !o)
			fail_msg("%d: status %d: %s", i, a.status, a.body);
		together[i] = lora_bits(o);
		answer_free(&a);
		close(fd[i]);
	}
	const double wide = lora_metric("jitserve_pass_width_bucket{model=\"tale-q8_0\",le=\"+Inf\"} ") -
	                    lora_metric("jitserve_pass_width_bucket{model=\"tale-q8_0\",le=\"8\"} ");
	if (wide < 3)
		fail_msg("%g passes had more than 8 answers", wide);
	for (int i = 0; i < ASKS; i++) {
		prompt_of(i, prompt);
		more_of(i, more);
		text = lora_ask(&alone, prompt, more);
		lora_same(together[i], text, more);
	}
	assert_true(lora_metric("jitserve_adapter_answers_total{model=\"tale-q8_0\",adapter=\"a6\"} ") == 2);
	assert_int_equal(child_stop(&alone), 0);
}

/* A preset's adapters count where a request says nothing, with the scales that it gives them; those of a request count
 * instead. */
static void test_preset(void **state)
{
	char path[200], text[1400], model[1024];
	static const char usual[] = "\"lora\":[{\"id\":1,\"scale\":0.5},{\"id\":4,\"scale\":1}]";
	(void)state;

	source_path(model, "models/tale-q8_0.gguf");
	char *real = realpath(model, NULL);
	assert_non_null(real);
	const int n = snprintf(text, sizeof text, "FROM %s\nADAPTER f1:0.5\nADAPTER f4\n", real);
	free(real);
	lora_put(lora_dir, "Modelfile", text, (size_t)n);
	snprintf(path, sizeof path, "%s/Modelfile", lora_dir);
	struct child c = child_start_without((const char *[]){ path, "--no-cache", "--context", "256", NULL });
	lora_same(lora_ask(&lora_server, "Once a fox", usual), lora_ask(&c, "Once a fox", ""), "a preset");
	lora_same(lora_ask(&lora_server, "Once a fox", "\"lora\":[]"), lora_ask(&c, "Once a fox", "\"lora\":[]"),
	          "none");
	assert_int_equal(child_stop(&c), 0);
	unlink(path);
}

/* The library's own sessions choose the same tokens. */
static void test_library(void **state)
{
	char path[1024];
	jit_error err = { 0 };
	int32_t *ids = NULL, id;
	size_t n = 0;
	jit_model *m =
		jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	(void)state;

	assert_non_null(m);
	for (int i = 0; i < 3; i++) {
		jit_adapter *a = jit_adapter_open(m, lora_of[i], &err);
		jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .sampling = NULL), &err);
		assert_true(a && s);
		char body[300];
		snprintf(body, sizeof body,
		         "{\"prompt\":\"The forest\",\"n_predict\":%d,\"temperature\":0,\"return_tokens\":true,"
		         "\"lora\":[{\"id\":%d,\"scale\":0.8}]}",
		         LORA_TOKENS, i);
		json_t *o = client_json(&lora_server, "/completion", body, 200), *tokens = json_object_get(o, "tokens");
		assert_int_equal(jit_session_set_adapters(s, &a, (const float[]){ 0.8f }, 1, &err), JIT_OK);
		assert_int_equal(jit_model_tokenize(m, "The forest", 10, 1, 1, &ids, &n, &err), JIT_OK);
		assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_OK);
		free(ids);
		assert_true(json_array_size(tokens) > 3);
		for (size_t k = 0; k < json_array_size(tokens); k++) {
			assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
			assert_int_equal(json_integer_value(json_array_get(tokens, k)), id);
		}
		json_decref(o);
		jit_session_close(s);
		jit_adapter_close(a);
	}
	jit_model_close(m);
}

/* ---- what is shared */

static json_int_t cached(const char *prompt, const char *more, char **bits)
{
	char body[600];

	lora_body(body, prompt, more);
	json_t *o = client_json(&lora_server, "/completion", body, 200);
	const json_int_t n = json_integer_value(json_object_get(json_object_get(o, "timings"), "cache_n"));
	*bits = lora_bits(o);
	return n;
}

static void test_prefix(void **state)
{
	static const char *const ways[] = { "\"model\":\"a0\"", "\"lora\":[{\"id\":0,\"scale\":0.5}]",
		                            "\"model\":\"a1\"", "",
		                            "\"lora\":[{\"id\":0,\"scale\":1},{\"id\":1,\"scale\":1}]" };
	static const char prompt[] =
		"There was a mill by the river, and in it lived a miller with his daughter and a cat.";
	char *first[5], *again;
	(void)state;

	for (int i = 0; i < 5; i++)
		if (cached(prompt, ways[i], &first[i]) > 1) /* all texts begin with the same token */
			fail_msg("%s took over what others computed", ways[i]);
	for (int i = 0; i < 5; i++) {
		if (cached(prompt, ways[i], &again) < 8)
			fail_msg("%s took nothing over of its own", ways[i]);
		lora_same(again, strdup(first[i]), ways[i]);
		if (i)
			lora_other(strdup(first[i]), strdup(first[i - 1]), ways[i]);
	}
	for (int i = 0; i < 5; i++)
		free(first[i]);
}

static void act(int slot, const char *action, const char *more, int status, const char *words)
{
	char path[100], body[300];

	snprintf(path, sizeof path, "/slots/%d?action=%s", slot, action);
	snprintf(body, sizeof body, "{\"filename\":\"kept\"%s%s}", *more ? "," : "", more);
	if (status == 200)
		json_decref(client_json(&lora_server, path, body, 200));
	else
		lora_refused(path, body, status, words);
}

/* What a slot held belongs to the adapters it was computed with. */
static void test_slots(void **state)
{
	static const char with[] = "\"model\":\"a4\",\"id_slot\":0",
			  prompt[] = "A bird sang in the old tree all day long";
	char *bits = lora_ask(&lora_server, prompt, with), *again;
	(void)state;

	act(0, "save", "", 200, NULL);
	act(1, "restore", "", 400, "or the adapters");
	act(1, "restore", "\"model\":\"a5\"", 400, "or the adapters");
	act(1, "restore", "\"lora\":[{\"id\":4,\"scale\":0.5}]", 400, "or the adapters");
	act(1, "restore", "\"model\":\"a4\"", 200, NULL);
	act(1, "save", "", 200, NULL); /* as it was restored */
	act(1, "restore", "\"lora\":[{\"id\":4,\"scale\":1}]", 200, NULL);
	act(0, "erase", "", 200, NULL);
	if (cached(prompt, with, &again) > 1)
		fail_msg("what was erased is there");
	lora_same(again, bits, "an answer behind all that");
}

/* Embeddings have adapters as well, and what one text left is no other adapter's. */
static void test_embeddings(void **state)
{
	static const char *const bodies[] = { "{\"input\":\"A mill\"}", "{\"input\":\"A mill\",\"model\":\"a0\"}",
		                              "{\"input\":\"A mill\",\"lora\":[{\"id\":0,\"scale\":0.5}]}" };
	char *text[2][3];
	(void)state;

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < 3; i++) {
			json_t *o = client_json(&lora_server, "/v1/embeddings", bodies[k ? 2 - i : i], 200);
			text[k][k ? 2 - i : i] = json_dumps(json_object_get(o, "data"), JSON_REAL_PRECISION(17));
			json_decref(o);
		}
	for (int i = 1; i < 3; i++)
		lora_other(strdup(text[0][i]), strdup(text[0][i - 1]), bodies[i]);
	for (int i = 0; i < 3; i++)
		lora_same(text[0][i], text[1][i], bodies[i]);
}

/* ---- they come and go */

static void load(const char *name, int i, const char *more)
{
	char body[200];

	snprintf(body, sizeof body, "{\"lora_name\":\"%s\",\"lora_path\":\"f%d\"%s}", name, i, more);
	struct answer a = client_ask(&lora_server, "/v1/load_lora_adapter", NULL, body);
	if (a.status != 200 || !strstr(a.body, "Success: LoRA adapter '") || !strstr(a.body, "added successfully."))
		fail_msg("%s: %d %s", body, a.status, a.body);
	answer_free(&a);
}

static void unload(const char *name)
{
	char body[200];

	snprintf(body, sizeof body, "{\"lora_name\":\"%s\"}", name);
	struct answer a = client_ask(&lora_server, "/v1/unload_lora_adapter", NULL, body);
	if (a.status != 200 || !strstr(a.body, "removed successfully."))
		fail_msg("%s: %d %s", body, a.status, a.body);
	answer_free(&a);
}

/* Long answers go on with an adapter that was unloaded, and others of its name come meanwhile. */
static void test_unload(void **state)
{
	enum { LONG = 6, ROUNDS = 8 };
	static const char form[] = "{\"prompt\":\"%d times\",\"n_predict\":120,\"ignore_eos\":true,\"temperature\":0,"
				   "\"n_probs\":1,\"cache_prompt\":true,\"model\":\"%s\"}";
	char body[300], head[200], *expected[LONG];
	int fd[LONG];
	(void)state;

	load("late", 5, "");
	lora_refused("/v1/load_lora_adapter", "{\"lora_name\":\"late\",\"lora_path\":\"f5\"}", 400,
	             "The lora adapter 'late' has already been loaded.");
	lora_same(lora_ask(&lora_server, "The king", "\"model\":\"late\""),
	          lora_ask(&lora_server, "The king", "\"model\":\"a5\""), "late");
	for (int i = 0; i < LONG; i++) {
		snprintf(body, sizeof body, form, i, "a5");
		expected[i] = lora_bits(client_json(&lora_server, "/completion", body, 200));
		fd[i] = client_connect(&lora_server, false);
	}
	for (int i = 0; i < LONG; i++) {
		snprintf(body, sizeof body, form, i, "late");
		const int n = snprintf(head, sizeof head,
		                       "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
		                       strlen(body));
		client_send(fd[i], head, (size_t)n);
		client_send(fd[i], body, strlen(body));
	}
	while (lora_metric("llamacpp:requests_processing{model=\"tale-q8_0\"} ") < LONG)
		usleep(200);
	unload("late");
	lora_refused("/completion", "{\"prompt\":\"A\",\"model\":\"late\"}", 404, "There is no model \"late\"");
	for (int i = 0; i < ROUNDS; i++) {
		load("late", i % 2 ? 6 : 7, i > 4 ? ",\"load_inplace\":true" : "");
		lora_same(lora_ask(&lora_server, "The king", "\"model\":\"late\""),
		          lora_ask(&lora_server, "The king", i % 2 ? "\"model\":\"a6\"" : "\"model\":\"a7\""),
		          "the next of that name");
		if (i < 4)
			unload("late");
	}
	for (int i = 0; i < LONG; i++) {
		struct answer a = client_read(fd[i], 60);
		json_t *o = json_loads(a.body, 0, NULL);
		if (a.status != 200 || !o)
			fail_msg("%d: status %d: %s", i, a.status, a.body);
		lora_same(lora_bits(o), expected[i], "an answer whose adapter was unloaded");
		answer_free(&a);
		close(fd[i]);
	}
	/* what its slot held cannot be computed again */
	free(lora_ask(&lora_server, "A goose", "\"model\":\"late\",\"id_slot\":3"));
	unload("late");
	act(3, "save", "", 400, "has been unloaded since");
	json_t *o = lora_listed(&lora_server);
	assert_int_equal(json_array_size(o), LORA_ADAPTERS);
	json_decref(o);
}

/* ---- an answer that is made again */

static void keep_answer(const char *file, const char *more)
{
	char body[600];

	lora_body(body, "Once upon a time", more);
	struct answer a = client_ask(&lora_server, "/completion", NULL, body);
	json_t *o = json_pack("{s:s,s:o,s:s,s:o}", "path", "/completion", "request", json_loads(body, 0, NULL),
	                      "replay", answer_field(&a, "X-Jitrun-Replay"), "answer", json_loads(a.body, 0, NULL));
	assert_true(a.status == 200 && o);
	assert_int_equal(json_dump_file(o, file, 0), 0);
	json_decref(o);
	answer_free(&a);
}

static void replay(const char *file, const char *adapters, int status, const char *words)
{
	char line[600], said[4000];

	snprintf(line, sizeof line, "--no-cache --context 256 --replay %s %s", file, adapters);
	const int got = child_says(true, line, said, sizeof said);
	if (got != status || (words && !strstr(said, words)))
		fail_msg("%s: status %d: %s", line, got, said);
}

/* By the adapters themselves: their numbers and names may be others. */
static void test_replay(void **state)
{
	char file[100], options[300];
	(void)state;

	snprintf(file, sizeof file, "%s/kept", lora_dir);
	keep_answer(file, "\"model\":\"a1\"");
	snprintf(options, sizeof options, "--lora %s --lora other=%s", lora_of[0], lora_of[1]);
	replay(file, options, 0, NULL);
	snprintf(options, sizeof options, "--lora a1=%s", lora_of[0]);
	replay(file, options, 1, "no --lora here is that one");
	replay(file, "", 1, "no --lora here is that one");
	keep_answer(file, "\"lora\":[{\"id\":0,\"scale\":0.25},{\"id\":2,\"scale\":1}]");
	snprintf(options, sizeof options, "--lora %s --lora-scaled %s:3", lora_of[0], lora_of[2]);
	replay(file, options, 0, NULL);
	keep_answer(file, "");
	replay(file, options, 0, NULL); /* none, though they would count */
}

/* The name of the last adapter that was unloaded is unknown from then on, and does not mean the only model. */
static void test_last_unloaded(void **state)
{
	struct child c = child_start((const char *[]){ "--no-cache", "--lora-dir", lora_dir, NULL });
	const struct {
		const char *path, *body;
		int status;
	} steps[] = {
		{ "/completion", "{\"prompt\":\"A\",\"n_predict\":1,\"model\":\"any\"}", 200 },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"last\",\"lora_path\":\"f0\"}", 200 },
		{ "/completion", "{\"prompt\":\"A\",\"n_predict\":1,\"model\":\"last\"}", 200 },
		{ "/v1/unload_lora_adapter", "{\"lora_name\":\"last\"}", 200 },
		{ "/completion", "{\"prompt\":\"A\",\"n_predict\":1,\"model\":\"last\"}", 404 },
		{ "/tokenize", "{\"content\":\"A\",\"model\":\"last\"}", 404 },
		{ "/completion", "{\"prompt\":\"A\",\"n_predict\":1,\"model\":\"tale-q8_0\"}", 200 },
		{ "/completion", "{\"prompt\":\"A\",\"n_predict\":1}", 200 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct answer a = client_ask(&c, steps[i].path, NULL, steps[i].body);
		if (a.status != steps[i].status)
			fail_msg("step %zu: status %d, expected %d: %s", i, a.status, steps[i].status, a.body);
		answer_free(&a);
	}
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed),        cmocka_unit_test(test_preset),
		cmocka_unit_test(test_library),      cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_slots),        cmocka_unit_test(test_embeddings),
		cmocka_unit_test(test_lora_weights), cmocka_unit_test(test_lora_models),
		cmocka_unit_test(test_lora_refused), cmocka_unit_test(test_unload),
		cmocka_unit_test(test_replay),       cmocka_unit_test(test_lora_options),
		cmocka_unit_test(test_lora_invoked), cmocka_unit_test(test_last_unloaded),
	};

	return cmocka_run_group_tests(tests, lora_begin, lora_end);
}
