/* tests/runtime/t_chat_render.c - jit_chat_render: which template and variables are taken, what is refused, and that
 * nothing a message holds becomes a special token. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

static jit_model *model;
static const char plain[] =
	"{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
	"{% if add_generation_prompt %}>{% endif %}{% if tools %}T{{ tools | length }}{% endif %}"
	"{{ mood }}{% if now is defined %}{% endif %}";

static int open_model(void **state)
{
	char path[4096];
	jit_error err = { 0 };

	source_path(path, "models/tale-q8_0.gguf");
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	return model ? 0 : -1;
}

static int close_model(void **state)
{
	jit_model_close(model);
	return 0;
}

static int rendered(jit_chat_options o, jit_chat *out, jit_error *err)
{
	*out = JIT_CHAT();
	*err = (jit_error){ 0 };
	return jit_chat_render(model, &o, out, err);
}

static void test_variables(void **state)
{
	jit_chat c;
	jit_error err;
	const char *messages = "[{\"role\":\"user\",\"content\":\"hi\"}]";

	assert_int_equal(rendered(JIT_CHAT_OPTIONS(.messages = messages, .template_text = plain), &c, &err), JIT_OK);
	assert_non_null(strstr(c.text, "user:hi;>"));
	assert_int_equal(strlen(c.text), c.n);
	int32_t *ids;
	size_t n;
	/* harmless text: the ids are those of the text as a whole */
	assert_int_equal(jit_model_tokenize(model, c.text, c.n, 0, 1, &ids, &n, &err), JIT_OK);
	assert_true(c.n_ids >= n && memcmp(c.ids + (c.n_ids - n), ids, n * sizeof *ids) == 0 && c.n_ids - n <= 1);
	free(ids);
	jit_chat_free(&c);
	assert_int_equal(rendered(JIT_CHAT_OPTIONS(.messages = messages, .tools = "[{}, {}]",
	                                           .variables = "{\"mood\": \"glad\"}", .template_text = plain,
	                                           .no_generation_prompt = 1),
	                          &c, &err),
	                 JIT_OK);
	assert_non_null(strstr(c.text, "user:hi;T2glad"));
	jit_chat_free(&c);
	assert_null(c.text);
}

/* Anything else would become a conversation without words. */
static void test_messages_are_objects(void **state)
{
	static const struct {
		const char *messages, *says;
	} rows[] = { { "{}", "messages is of type dict, expected a list of messages" },
		     { "null", "messages is of type NoneType, expected a list of messages" },
		     { "7", "messages is of type int, expected a list of messages" },
		     { "\"hi\"", "messages is of type str, expected a list of messages" },
		     { "[\"hi\"]", "messages[0] is of type str, expected an object" },
		     { "[[]]", "messages[0] is of type list, expected an object" },
		     { "[{}, {}, null]", "messages[2] is of type NoneType, expected an object" } };
	jit_chat c;
	jit_error err;
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_not_equal(rendered(JIT_CHAT_OPTIONS(.messages = rows[i].messages, .template_text = plain),
		                              &c, &err),
		                     JIT_OK);
		assert_non_null(strstr(err.message, rows[i].says));
	}
	assert_int_equal(rendered(JIT_CHAT_OPTIONS(.messages = "[]", .template_text = plain), &c, &err), JIT_OK);
	jit_chat_free(&c);
}

static void test_names(void **state)
{
	jit_chat c;
	jit_error err;
	jit_chat_options o = JIT_CHAT_OPTIONS(.messages = "[]", .template_name = "tool_use");
	(void)state;

	assert_int_equal(rendered(o, &c, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, "the model's files have no chat template named \"tool_use\"; they have: none");
	o.template_text = plain;
	assert_int_equal(rendered(o, &c, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, "jit_chat_options.template_name is \"tool_use\", expected NULL beside "
	                                 "template_text");
}

static void test_time(void **state)
{
	jit_chat c;
	jit_error err;
	jit_chat_options o = JIT_CHAT_OPTIONS(.messages = "[]", .template_text = "{{ strftime_now('%Y-%m-%d') }}");

	assert_int_not_equal(rendered(o, &c, &err), JIT_OK); /* without a time there is no such function */
	o.has_now = 1, o.now = 951782400;
	assert_int_equal(rendered(o, &c, &err), JIT_OK);
	assert_string_equal(c.text, "2000-02-29");
	jit_chat_free(&c);
}

/* Every text that is one special token as a template writes it is none as a message writes it. */
static void test_messages_are_text(void **state)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	unsigned specials = 0;

	assert_int_equal(jit_model_get_info(model, &info, &err), JIT_OK);
	static const char *const texts[] = { "<|endoftext|>", "<|im_start|>", "<|im_end|>",     "<s>",
		                             "</s>",          "<|eot_id|>",   "<|end_of_text|>" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int32_t *ids;
		size_t n;
		char messages[200], own[200];
		jit_chat c, t;
		assert_int_equal(jit_model_tokenize(model, texts[i], strlen(texts[i]), 0, 1, &ids, &n, &err), JIT_OK);
		bool special = n == 1 && jit_model_is_end(model, ids[0]);
		int32_t id = ids[0];
		free(ids);
		if (!special)
			continue;
		specials++;
		snprintf(messages, sizeof messages, "[{\"role\":\"user\",\"content\":\"a %s b\"}]", texts[i]);
		assert_int_equal(rendered(JIT_CHAT_OPTIONS(.messages = messages, .template_text = plain), &c, &err),
		                 JIT_OK);
		for (size_t k = 0; k < c.n_ids; k++)
			assert_int_not_equal(c.ids[k], id);
		snprintf(own, sizeof own, "x%sy", texts[i]);
		assert_int_equal(rendered(JIT_CHAT_OPTIONS(.messages = "[]", .template_text = own), &t, &err), JIT_OK);
		bool found = false;
		for (size_t k = 0; k < t.n_ids; k++)
			found |= t.ids[k] == id;
		assert_true(found);
		jit_chat_free(&c);
		jit_chat_free(&t);
	}
	assert_true(specials > 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *messages, *variables, *template_text, *says;
		int code;
	} rows[] = {
		{ NULL, NULL, plain, "messages is NULL", JIT_ERROR_ARGUMENT },
		{ "[", NULL, plain, "messages", 0 },
		{ "[]", NULL, NULL, "have no chat template", JIT_ERROR_UNSUPPORTED },
		{ "[]", "[]", plain, "variables is an array, expected an object", JIT_ERROR_ARGUMENT },
		{ "[]", "{", plain, "jit_chat_options.variables", 0 },
		{ "[]", "{\"messages\": 1}", plain, "has \"messages\", which is given by the library",
		  JIT_ERROR_ARGUMENT },
		{ "[]", NULL, "{% for %}", "line 1", 0 },
		{ "[]", NULL, "{{ raise_exception('never') }}", "never", 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		jit_chat c;
		jit_error err;
		int code = rendered(JIT_CHAT_OPTIONS(.messages = rows[i].messages, .variables = rows[i].variables,
		                                     .template_text = rows[i].template_text),
		                    &c, &err);
		if (code == JIT_OK || (rows[i].code && code != rows[i].code) || !strstr(err.message, rows[i].says))
			fail_msg("row %zu: %d, %s", i, code, err.message);
		assert_null(c.text);
		assert_null(c.ids);
	}
	jit_error err = { 0 };
	assert_int_equal(jit_chat_render(model, &(jit_chat_options){ .messages = "[]" }, &JIT_CHAT(), &err),
	                 JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "jit_chat_options"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_messages_are_objects),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_messages_are_text),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, open_model, close_model);
}
