/* tests/loaders/t_model_chat.c - the chat templates of a model's files: where they may lie, which comes first, and what
 * is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "loaders/model_load.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"

static char dir[64];

static int make_directory(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/jitrun-chat-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	tiny_write_hf(dir, &tiny_least);
	return 0;
}

static void drop(const char *name)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	unlink(path);
}

static int remove_directory(void **state)
{
	(void)state;
	drop("config.json");
	drop("model.safetensors");
	return rmdir(dir);
}

/* Opens the directory with these two files in it; NULL: without. */
static void open_with(struct model *m, const char *config, const char *jinja)
{
	struct error err = { 0 };

	if (config)
		tiny_write(dir, "tokenizer_config.json", config, strlen(config));
	if (jinja)
		tiny_write(dir, "chat_template.jinja", jinja, strlen(jinja));
	if (!model_open(m, dir, 0, &err))
		fail_msg("%s", err.text);
	drop("tokenizer_config.json");
	drop("chat_template.jinja");
}

static void check(const struct model *m, const char *name, const char *text)
{
	const struct model_chat_template *t = model_find_chat_template(m, name);

	if (!text) {
		assert_null(t);
		return;
	}
	assert_non_null(t);
	assert_string_equal(t->text, text);
	assert_int_equal(t->n, strlen(text));
}

static void test_directory(void **state)
{
	static const struct {
		const char *config, *jinja, *usual, *tools, *says;
	} rows[] = {
		{ NULL, NULL, NULL, NULL, NULL },
		{ "{\"bos_token\": \"<s>\"}", NULL, NULL, NULL, NULL },
		{ "{\"chat_template\": null}", NULL, NULL, NULL, NULL },
		{ "{\"chat_template\": \"{{ \\u00e9 }}\\n\"}", NULL, "{{ \xc3\xa9 }}\n", NULL, NULL },
		{ NULL, "{{ a }}", "{{ a }}", NULL, NULL },
		{ "{\"chat_template\": \"b\"}", "{{ a }}", "{{ a }}", NULL, NULL },
		{ "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, {\"name\": \"default\", "
		  "\"template\": \"d\"}]}",
		  NULL, "d", "t", NULL },
		{ "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}]}", NULL, NULL, "t", NULL },
		{ "{\"chat_template\": []}", NULL, NULL, NULL, NULL },
		{ "{\"chat_template\": 7}", NULL, NULL, NULL,
		  "chat_template is an integer, expected a string or a list of objects with name and template" },
		{ "{\"chat_template\": [\"d\"]}", NULL, NULL, NULL, "chat_template is a string, expected" },
		{ "{\"chat_template\": [{\"name\": \"a\"}]}", NULL, NULL, NULL, "chat_template is absent, expected" },
		{ "{\"chat_template\": \"\\ud800\"}", NULL, NULL, NULL,
		  "chat_template is a string with half a surrogate pair, expected" },
		{ "{\"chat_template\": ", NULL, NULL, NULL, "tokenizer_config.json: is not valid JSON" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct model m;
		open_with(&m, rows[i].config, rows[i].jinja);
		check(&m, NULL, rows[i].usual);
		check(&m, "tool_use", rows[i].tools);
		if (rows[i].says ? !strstr(m.chat_template_error.text, rows[i].says) : m.chat_template_error.code)
			fail_msg("%s: expected \"%s\", found \"%s\"", rows[i].config, rows[i].says ? rows[i].says : "",
			         m.chat_template_error.text);
		model_close(&m);
	}
}

static void test_large(void **state)
{
	char *text = malloc(MODEL_MAX_CHAT_TEMPLATE + 2);
	struct model m;
	(void)state;

	assert_non_null(text);
	memset(text, 'a', MODEL_MAX_CHAT_TEMPLATE + 1);
	text[MODEL_MAX_CHAT_TEMPLATE + 1] = 0;
	open_with(&m, NULL, text);
	assert_int_equal(m.n_chat_templates, 0);
	assert_non_null(strstr(m.chat_template_error.text, "chat_template.jinja"));
	model_close(&m);
	text[MODEL_MAX_CHAT_TEMPLATE] = 0;
	open_with(&m, NULL, text);
	check(&m, NULL, text);
	model_close(&m);
	free(text);
}

static void read_gguf(struct model *m, struct model_file *f, struct model_part *part, struct gguf_writer *w,
                      uint8_t **bytes)
{
	struct error err = { 0 };
	size_t n;

	*bytes = gguf_writer_finish(w, &n);
	*part = (struct model_part){ .format = MODEL_GGUF };
	*f = (struct model_file){ .format = MODEL_GGUF, .part = part, .n_parts = 1 };
	*m = (struct model){ .file = f };
	if (!gguf_parse(&part->gguf, *bytes, n, "test.gguf", true, &err))
		fail_msg("%s", err.text);
	model_read_chat_templates(m);
}

static void test_gguf(void **state)
{
	struct model m;
	struct model_file f;
	struct model_part part;
	struct gguf_writer w;
	uint8_t *bytes;
	(void)state;

	for (int kind = 0; kind < 2; kind++) {
		gguf_writer_start(&w, 3, 32);
		gguf_write_string(&w, "tokenizer.chat_template.tool_use", "tools");
		gguf_write_string(&w, "tokenizer.chat_templates", "no such key");
		if (kind)
			gguf_write_u32(&w, "tokenizer.chat_template", 7);
		else
			gguf_write_string(&w, "tokenizer.chat_template", "usual");
		read_gguf(&m, &f, &part, &w, &bytes);
		check(&m, NULL, kind ? NULL : "usual");
		check(&m, "tool_use", "tools");
		check(&m, "s", NULL);
		assert_string_equal(m.chat_template_error.text,
		                    kind ? "test.gguf: tokenizer.chat_template is no string" : "");
		model_free_chat_templates(&m);
		gguf_free(&part.gguf);
		gguf_writer_free(&w);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_directory), cmocka_unit_test(test_large),
		                            cmocka_unit_test(test_gguf) };

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
