/* tests/server/lora_lists.c - lists of adapters, what is refused of them, and command lines (t_lora.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/lora_server.h"

/* Adapters without a name count for every request until scales are set. */
void test_lora_weights(void **state)
{
	char scaled[100];
	snprintf(scaled, sizeof scaled, "%s:0.5", lora_of[1]);
	const char *const args[] = { "--no-cache", "--context",     "256",  "--lora",
		                     lora_of[0],   "--lora-scaled", scaled, NULL };
	const char *const off[] = { "--no-cache", "--context",     "256",  "--lora",
		                    lora_of[0],   "--lora-scaled", scaled, "--lora-init-without-apply",
		                    NULL };
	struct child c = child_start(args);
	(void)state;

	json_t *o = lora_listed(&c),
	       *expected = json_pack("[{s:i,s:s,s:f,s:s,s:s},{s:i,s:s,s:f,s:s,s:s}]", "id", 0, "path", lora_of[0],
	                             "scale", 1.0, "task_name", "", "prompt_prefix", "", "id", 1, "path", lora_of[1],
	                             "scale", 0.5, "task_name", "", "prompt_prefix", "");
	assert_true(json_equal(o, expected));
	json_decref(o);
	json_decref(expected);
	/* the names of other servers' models are understood, as without adapters */
	char *both = lora_ask(&c, "The king", "\"model\":\"gpt-4\"");
	lora_same(lora_ask(&lora_server, "The king", "\"lora\":[{\"id\":0,\"scale\":1},{\"id\":1,\"scale\":0.5}]"),
	          both, "as at the start");
	o = client_json(&c, "/lora-adapters", "[{\"id\":1,\"scale\":2}]", 200);
	assert_true(json_is_true(json_object_get(o, "success")));
	json_decref(o);
	lora_same(lora_ask(&c, "The king", ""), lora_ask(&lora_server, "The king", "\"lora\":[{\"id\":1,\"scale\":2}]"),
	          "set");
	o = lora_listed(&c);
	assert_true(json_number_value(json_object_get(json_array_get(o, 0), "scale")) == 0 &&
	            json_number_value(json_object_get(json_array_get(o, 1), "scale")) == 2);
	json_decref(o);
	json_decref(client_json(&c, "/lora-adapters", "[]", 200));
	lora_same(lora_ask(&c, "The king", ""), lora_ask(&lora_server, "The king", ""), "none");
	json_decref(client_json(&c, "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"f0\"}", 403));
	json_decref(client_json(&c, "/v1/unload_lora_adapter", "{\"lora_name\":\"b\"}", 403));
	assert_int_equal(child_stop(&c), 0);
	c = child_start(off);
	lora_same(lora_ask(&c, "The king", ""), lora_ask(&lora_server, "The king", ""), "off");
	o = lora_listed(&c);
	assert_true(json_array_size(o) == 2 && json_number_value(json_object_get(json_array_get(o, 1), "scale")) == 0);
	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
}

void test_lora_models(void **state)
{
	struct answer a = client_ask(&lora_server, "/v1/models", NULL, NULL);
	json_t *o = json_loads(a.body, 0, NULL), *data = json_object_get(o, "data"), *one = json_array_get(data, 1 + 2);
	(void)state;

	assert_int_equal(json_array_size(data), 1 + LORA_ADAPTERS);
	assert_string_equal(json_string_value(json_object_get(one, "id")), "a2");
	assert_string_equal(json_string_value(json_object_get(one, "parent")), "tale-q8_0");
	assert_string_equal(json_string_value(json_object_get(one, "root")), lora_of[2]);
	json_decref(o);
	answer_free(&a);
	a = client_ask(&lora_server, "/v1/models/a3", NULL, NULL);
	o = json_loads(a.body, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(o, "id")), "a3");
	json_decref(o);
	answer_free(&a);
	/* every API's "model" */
	static const char *const others[][2] = {
		{ "/v1/chat/completions", "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
		                          "\"max_tokens\":8,\"temperature\":0}" },
		{ "/v1/responses", "{\"model\":\"%s\",\"input\":\"Hi\",\"max_output_tokens\":8,\"temperature\":0}" },
		{ "/v1/messages", "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_"
		                  "tokens\":8,\"temperature\":0}" },
		{ "/api/generate", "{\"model\":\"%s\",\"prompt\":\"Hi\",\"stream\":false,\"options\":{\"num_predict\":"
		                   "8,\"temperature\":0}}" },
		{ "/api/chat", "{\"model\":\"%s:latest\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
		               "\"stream\":false,\"options\":{\"num_predict\":8,\"temperature\":0}}" },
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const double before =
			lora_metric("jitserve_adapter_answers_total{model=\"tale-q8_0\",adapter=\"a7\"} ");
		char body[400];
		const char *at = strstr(others[i][1], "%s");
		snprintf(body, sizeof body, "%.*sa7%s", (int)(at - others[i][1]), others[i][1], at + 2);
		json_decref(client_json(&lora_server, others[i][0], body, 200));
		if (lora_metric("jitserve_adapter_answers_total{model=\"tale-q8_0\",adapter=\"a7\"} ") != before + 1)
			fail_msg("%s: its model is not the adapter", others[i][0]);
		snprintf(body, sizeof body, "%.*snobody%s", (int)(at - others[i][1]), others[i][1], at + 2);
		a = client_ask(&lora_server, others[i][0], NULL, body);
		if (a.status != 404)
			fail_msg("%s: a model that is not there: %d %s", others[i][0], a.status, a.body);
		answer_free(&a);
	}
}

void test_lora_refused(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
		const char *words;
	} rows[] = {
		{ "/completion", "{\"prompt\":\"A\",\"lora\":7}", 400, "lora is no array" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[7]}", 400, "lora[0] is no object" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[{\"id\":8,\"scale\":1}]}", 400,
		  "lora[0].id is 8, which is no adapter's" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[{\"scale\":1}]}", 400, "lora[0].id is -1" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[{\"id\":-1,\"scale\":1}]}", 400, "lora.id is -1" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[{\"id\":0.5,\"scale\":1}]}", 400, "lora.id" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[{\"id\":0,\"scale\":\"1\"}]}", 400, "lora.scale" },
		{ "/completion", "{\"prompt\":\"A\",\"lora\":[{\"id\":0,\"scale\":1e30}]}", 400, "lora.scale" },
		{ "/completion", "{\"prompt\":\"A\",\"model\":\"a0\",\"lora\":[{\"id\":1,\"scale\":1}]}", 400,
		  "expected one of them" },
		{ "/completion", "{\"prompt\":\"A\",\"model\":\"a9\"}", 404, "There is no model \"a9\"" },
		{ "/completion", "{\"prompt\":\"A\",\"lora_path\":\"a0\"}", 400, "lora_path is not supported" },
		{ "/lora-adapters", "{}", 400, "expected an array" },
		{ "/lora-adapters", "[{\"id\":77,\"scale\":1}]", 400, "lora[0].id is 77" },
		{ "/lora-adapters", "[{\"id\":0,\"scale\":true}]", 400, "lora.scale" },
		{ "/v1/load_lora_adapter", "{}", 400, "lora_name is missing" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\"}", 400, "lora_path is missing" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":3,\"lora_path\":\"f0\"}", 400, "lora_name" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"../f0\"}", 400,
		  "expected a name in the folder" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"/etc/passwd\"}", 400,
		  "expected a name in the folder" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"..\"}", 400,
		  "expected a name in the folder" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"none\"}", 404,
		  "No adapter found for none" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"a0\",\"lora_path\":\"f0\"}", 400,
		  "has already been loaded" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"tale-q8_0\",\"lora_path\":\"f0\"}", 400,
		  "a model's name" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\\u0007\",\"lora_path\":\"f0\"}", 400,
		  "control characters" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"f0\",\"base_model_name\":\"x\"}", 404,
		  "no model \"x\"" },
		{ "/v1/load_lora_adapter", "{\"lora_name\":\"b\",\"lora_path\":\"f0\",\"load_inplace\":3}", 400,
		  "load_inplace" },
		{ "/v1/unload_lora_adapter", "{\"lora_name\":\"none\"}", 404, "cannot be found" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		lora_refused(rows[i].path, rows[i].body, rows[i].status, rows[i].words);
}

/* ---- command lines */

void test_lora_options(void **state)
{
	char line[600], said[4000];
	(void)state;

	const struct {
		const char *form, *words;
	} rows[] = {
		{ "--lora x=%s/none", "cannot be opened" },
		{ "--lora tale-q8_0=%s/f0", "a model or an adapter called tale-q8_0" },
		{ "--lora x=%s/f0 --lora x=f1", "called x already" },
		{ "--lora-scaled %s/f0", "expected FILE:SCALE" },
		{ "--lora-modules %s/f0", "expected NAME=FILE" },
		{ "--lora-modules '{\"name\":\"x\"}'", "expected an object with name and path" },
		{ "--lora-modules '{\"name\":\"x\",\"path\":\"%s/f0\",\"base_model_name\":\"y\"}'",
		  "no model is called so" },
		{ "--max-lora-rank 2 --lora %s/f0", "expected a multiple of 4" },
		{ "--lora-dir %s/none", "--lora-dir" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(line, sizeof line, "--no-cache --port 0 ");
		const size_t n = strlen(line);
		const char *at = strstr(rows[i].form, "%s");
		if (at)
			snprintf(line + n, sizeof line - n, "%.*s%s%s", (int)(at - rows[i].form), rows[i].form,
			         lora_dir, at + 2);
		else
			snprintf(line + n, sizeof line - n, "%s", rows[i].form);
		const int status = child_says(true, line, said, sizeof said);
		if (status == 0 || !strstr(said, rows[i].words))
			fail_msg("%s: status %d: %s", line, status, said);
	}
}
