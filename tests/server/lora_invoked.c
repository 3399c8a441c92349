/* tests/server/lora_invoked.c - an adapter that counts from its invocation tokens on, in a server (t_lora.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/jitrun_adapters.h"
#include "tests/server/lora_server.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

static const char beginning[] = "There was a mill by the river, and in it lived a miller with his daughter and a cat.",
		  words[] = " the golden bird";

static jit_model *model;
static jit_adapter *adapter;

static int32_t *tokens_of(const char *text, bool whole, size_t *n)
{
	int32_t *ids = NULL;

	assert_int_equal(jit_model_tokenize(model, text, strlen(text), whole, 1, &ids, n, NULL), JIT_OK);
	return ids;
}

static void make_adapter(char folder[700])
{
	char config[300], path[1024];
	size_t n, at;

	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
	assert_non_null(model);
	int32_t *ids = tokens_of(words, false, &n);
	at = (size_t)snprintf(config, sizeof config, ", \"lora_alpha\": 8, \"alora_invocation_tokens\": [");
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(config + at, sizeof config - at, "%s%d", i ? ", " : "", ids[i]);
	snprintf(config + at, sizeof config - at, "]");
	free(ids);
	snprintf(folder, 700, "%s/invoked", lora_dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	lora_folder(folder, &(struct lora_written){ lora_tale, 14, 4, 0.12f, 77, config, NULL });
	adapter = jit_adapter_open(model, folder, NULL);
	assert_non_null(adapter);
}

/* The tokens of an answer are those that the library chooses. */
static void compare_with_library(const struct child *c, const char *prompt, bool invoked)
{
	size_t n;
	int32_t *ids = tokens_of(prompt, true, &n), id;
	const size_t from = jit_adapter_begins(adapter, ids, n);
	char body[400];

	snprintf(body, sizeof body,
	         "{\"prompt\":\"%s\",\"n_predict\":12,\"temperature\":0,\"return_tokens\":true,\"model\":\"inv\"}",
	         prompt);
	json_t *o = client_json(c, "/completion", body, 200), *tokens = json_object_get(o, "tokens");
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = 256), NULL);
	assert_true(s && (from < n) == invoked);
	assert_int_equal(jit_session_set_adapters_from(s, &adapter, NULL, invoked, from, NULL), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids, n, NULL), JIT_OK);
	assert_true(json_array_size(tokens) > 3);
	for (size_t k = 0; k < json_array_size(tokens); k++) {
		assert_int_equal(jit_session_next(s, &id, NULL), JIT_OK);
		assert_int_equal(json_integer_value(json_array_get(tokens, k)), id);
	}
	free(ids);
	json_decref(o);
	jit_session_close(s);
}

static json_int_t cached(const struct child *c, const char *prompt, const char *name)
{
	char body[600], more[60];

	snprintf(more, sizeof more, "\"model\":\"%s\"", name);
	lora_body(body, prompt, more);
	json_t *o = client_json(c, "/completion", body, 200);
	const json_int_t n = json_integer_value(json_object_get(json_object_get(o, "timings"), "cache_n"));
	json_decref(o);
	return n;
}

static void refused(const struct child *c, const char *path, const char *body, const char *says)
{
	json_t *o = client_json(c, path, body, 400);
	const char *message = json_string_value(json_object_get(json_object_get(o, "error"), "message"));

	if (!message || !strstr(message, says))
		fail_msg("%s %s: \"%s\" is not in: %s", path, body, says, message ? message : "nothing");
	json_decref(o);
}

void test_lora_invoked(void **state)
{
	static const char *const files[] = { "adapter_model.safetensors", "adapter_config.json" };
	char folder[700], option[800], path[800], prompt[300];
	(void)state;

	make_adapter(folder);
	snprintf(option, sizeof option, "inv=%s", folder);
	struct child c =
		child_start(lora_arguments((const char *[]){ "--lora", option, "--slot-save", lora_dir, NULL }));
	snprintf(prompt, sizeof prompt, "%s%s", beginning, words);
	compare_with_library(&c, prompt, true);
	compare_with_library(&c, beginning, false);
	lora_same(lora_ask(&c, beginning, "\"model\":\"inv\""), lora_ask(&lora_server, beginning, "\"lora\":[]"),
	          "a prompt that does not invoke");
	lora_other(lora_ask(&c, prompt, "\"model\":\"inv\""), lora_ask(&lora_server, prompt, "\"lora\":[]"),
	           "a prompt that does");
	snprintf(prompt, sizeof prompt, "Far away. %s%s", beginning, words);
	if (cached(&c, prompt, "tale-q8_0") > 1)
		fail_msg("nobody had asked that before");
	const json_int_t before = cached(&c, prompt, "inv"), again = cached(&c, prompt, "inv");
	if (before < 8 || again <= before)
		fail_msg("%d tokens of the model's own were taken over, then %d", (int)before, (int)again);
	refused(&c, "/completion", "{\"prompt\":\"A\",\"lora\":[{\"id\":0,\"scale\":1},{\"id\":8,\"scale\":1}]}",
	        "goes with no other one");
	json_decref(client_json(&c, "/v1/embeddings", "{\"input\":\"A mill\",\"model\":\"inv\"}", 200));
	lora_body(path, "A goose", "\"model\":\"inv\",\"id_slot\":1");
	json_decref(client_json(&c, "/completion", path, 200));
	refused(&c, "/slots/1?action=save", "{\"filename\":\"kept\"}", "begins at its invocation tokens");
	refused(&c, "/slots/0?action=restore", "{\"filename\":\"kept\",\"model\":\"inv\"}",
	        "begins at its invocation tokens");
	assert_int_equal(child_stop(&c), 0);
	jit_adapter_close(adapter);
	jit_model_close(model);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}
