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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"

static char dir[32];

static int make_directory(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/jitrun-chat-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	tiny_write_hf(dir, &tiny_min);
	return 0;
}

static void drop(const char *name)
{
	char path[300];

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

/* What lies in a directory, once as it is and once as a packed model has it. */
static void open_both_ways(void (*judge)(const struct model *m))
{
	struct error err = { 0 };
	struct model m, again;
	size_t n;

	if (!model_open(&m, dir, MODEL_KEEP_SOURCES, &err))
		fail_msg("%s", err.text);
	judge(&m);
	struct model_source *s = model_sources(&m, &n, &err);
	assert_non_null(s);
	if (!model_open_sources(&again, s, n, "packed", 0, &err))
		fail_msg("%s", err.text);
	judge(&again);
	model_close(&again);
	free(s);
	model_close(&m);
	if (!model_open(&m, dir, MODEL_NO_TOKENIZER | MODEL_CHAT_TEMPLATES | MODEL_HEADER_ONLY, &err))
		fail_msg("%s", err.text);
	judge(&m);
	model_close(&m);
	if (!model_open(&m, dir, MODEL_NO_TOKENIZER, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m.n_chat_templates, 0);
	model_close(&m);
}

static void write_text(const char *name, const char *text) { tiny_write(dir, name, text, strlen(text)); }

static void has_json(const struct model *m)
{
	check(m, NULL, "of json");
	check(m, "rag", "r");
	assert_int_equal(m->n_chat_templates, 2);
}

static void has_config(const struct model *m)
{
	check(m, NULL, "of config");
	assert_int_equal(m->n_chat_templates, 1);
}

static void has_named(const struct model *m)
{
	check(m, NULL, "usual");
	check(m, "a", "1st\n");
	check(m, "tool_use", "tools");
	check(m, "no", NULL);
	assert_int_equal(m->n_chat_templates, 3);
	assert_string_equal(m->chat_template[1].name, "a");
}

static void test_other_files(void **state)
{
	static const char *const names[] = { "tool_use.jinja", "a.jinja", "README.md", ".jinja" };
	char path[200];
	(void)state;

	write_text("chat_template.json", "{\"chat_template\": [{\"name\": \"default\", \"template\": \"of json\"}, "
	                                 "{\"name\": \"rag\", \"template\": \"r\"}]}");
	open_both_ways(has_json);
	write_text("tokenizer_config.json", "{\"chat_template\": \"of config\"}");
	open_both_ways(has_config);
	drop("tokenizer_config.json");
	write_text("chat_template.jinja", "usual");
	snprintf(path, sizeof path, "%s/additional_chat_templates", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_text("additional_chat_templates/tool_use.jinja", "tools");
	write_text("additional_chat_templates/a.jinja", "1st\n");
	write_text("additional_chat_templates/README.md", "no template");
	write_text("additional_chat_templates/.jinja", "no name");
	open_both_ways(has_named);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "additional_chat_templates/%s", names[i]);
		drop(path);
	}
	drop("chat_template.jinja");
	drop("chat_template.json");
	snprintf(path, sizeof path, "%s/additional_chat_templates", dir);
	assert_int_equal(rmdir(path), 0);
}

/* What a packed model holds of them is as hostile as any file. */
static void test_cut_names(void **state)
{
	static const char bytes[] = "a\0text\0b\0more";
	struct error err = { 0 };
	struct model m;
	size_t n;
	(void)state;

	if (!model_open(&m, dir, MODEL_KEEP_SOURCES, &err))
		fail_msg("%s", err.text);
	struct model_source *s = model_sources(&m, &n, &err);
	assert_non_null(s);
	s = realloc(s, (n + 1) * sizeof *s);
	assert_non_null(s);
	for (size_t length = 1; length <= sizeof bytes; length++) {
		struct model cut;
		s[n] = (struct model_source){ MODEL_SOURCE_NAMED_TEMPLATES, bytes, length };
		if (!model_open_sources(&cut, s, n + 1, "packed", 0, &err))
			fail_msg("%s", err.text);
		assert_int_equal(cut.n_chat_templates, length >= sizeof bytes ? 2 : length >= 7 ? 1 : 0);
		assert_int_equal(strcmp(cut.chat_template_error.text, "packed: ends inside a chat template") == 0,
		                 length != 7 && length != sizeof bytes);
		model_close(&cut);
	}
	free(s);
	model_close(&m);
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_directory), cmocka_unit_test(test_other_files),
		                            cmocka_unit_test(test_cut_names), cmocka_unit_test(test_large),
		                            cmocka_unit_test(test_gguf) };

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
