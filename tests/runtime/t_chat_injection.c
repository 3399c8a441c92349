/* tests/runtime/t_chat_injection.c - whatever a client can write into a conversation stays text: a control token's
 * spelling is put into every place of a conversation, and into every variable that a published template names, and the
 * prompt has as many control tokens as with a harmless word there. */
#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

static jit_model *model;
static char control[40], word[40]; /* how a control token is spelled, and a word of the same length */
static int32_t control_id;

static int open_model(void **state)
{
	static const char *const texts[] = { "<|im_end|>", "<|endoftext|>", "</s>", "<|end_of_text|>", "<|eot_id|>" };
	char path[4096];
	jit_error err = { 0 };
	(void)state;

	source_path(path, "models/tale-q8_0.gguf");
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	for (size_t i = 0; model && i < sizeof texts / sizeof *texts; i++) {
		int32_t *ids = NULL;
		size_t n;
		if (jit_model_tokenize(model, texts[i], strlen(texts[i]), 0, 1, &ids, &n, &err) == JIT_OK && n == 1 &&
		    jit_model_is_end(model, ids[0])) {
			strcpy(control, texts[i]);
			memset(word, 'w', strlen(control));
			control_id = ids[0];
		}
		free(ids);
	}
	return model && control[0] ? 0 : -1;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(model);
	return 0;
}

/* Control tokens in the prompt; -1: the template does not take this conversation. */
static int count(const char *template, const char *messages, const char *tools, const char *variables)
{
	jit_chat c = JIT_CHAT();
	jit_chat_options o = JIT_CHAT_OPTIONS(.messages = messages, .tools = tools, .variables = variables,
	                                      .template_text = template, .has_now = 1, .now = 951782400);
	jit_error err = { 0 };
	int n = 0;

	if (jit_chat_render(model, &o, &c, &err) != JIT_OK)
		return -1;
	for (size_t i = 0; i < c.n_ids; i++)
		n += c.ids[i] == control_id;
	jit_chat_free(&c);
	return n;
}

/* Every % of the form becomes the text. */
static char *with(const char *form, const char *text)
{
	size_t positions = 0;

	for (const char *p = form; *p; p++)
		positions += *p == '%';
	char *out = malloc(strlen(form) + positions * strlen(text) + 1), *at = out;
	assert_non_null(out);
	for (const char *p = form; *p; p++)
		if (*p == '%')
			at = stpcpy(at, text);
		else
			*at++ = *p;
	*at = 0;
	return out;
}

static const char documents_form[] = "[{\"title\":\"a % b\",\"text\":\"c % d\",\"doc_id\":\"%\","
				     "\"snippet\":\"%\",\"name\":\"%\",\"description\":\"%\"}]";
static const char *const variable_forms[] = { "\"a % b\"", "[\"a % b\",\"%\"]", "{\"text\":\"a % b\",\"%\":\"%\"}",
	                                      documents_form };
static const char plain_messages[] = "[{\"role\":\"system\",\"content\":\"x\"},{\"role\":\"user\",\"content\":\"y\"}]",
		  lone_message[] = "[{\"role\":\"user\",\"content\":\"y\"}]";

struct counts {
	unsigned rendered, names;
};

/* One variable of this name, in each form. */
static void inject_variable(const char *template, const char *file, const char *name, struct counts *c)
{
	for (size_t f = 0; f < sizeof variable_forms / sizeof *variable_forms; f++) {
		char form[400];
		snprintf(form, sizeof form, "{\"%s\":%s}", name, variable_forms[f]);
		char *harmless = with(form, word), *hostile = with(form, control);
		const char *messages = plain_messages;
		int plain = count(template, messages, NULL, harmless);
		if (plain < 0) {
			messages = lone_message;
			plain = count(template, messages, NULL, harmless);
		}
		int now = plain < 0 ? -1 : count(template, messages, NULL, hostile);
		if (now > plain)
			fail_msg("%s: %s gives %d control tokens, a harmless one %d", file, hostile, now, plain);
		c->rendered += now >= 0;
		free(harmless);
		free(hostile);
	}
	c->names++;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* All words in the template that could be variables: more than are, and none that is missed. */
static void inject_variables(const char *template, const char *file, unsigned every, unsigned first, struct counts *c)
{
	static const char *const others[] = { "messages", "tools", "add_generation_prompt", "bos_token", "eos_token" };
	char *names[4000];
	size_t n = 0;

	for (const char *p = template; *p; p++) {
		size_t length = 0;
		if (!isalpha((unsigned char)*p) && *p != '_')
			continue;
		while (isalnum((unsigned char)p[length]) || p[length] == '_')
			length++;
		bool other = length < 3 || length > 40;
		for (size_t i = 0; i < sizeof others / sizeof *others; i++)
			other |= strlen(others[i]) == length && memcmp(others[i], p, length) == 0;
		if (!other && n < sizeof names / sizeof *names)
			names[n++] = strndup(p, length);
		p += length - 1;
	}
	qsort(names, n, sizeof *names, by_text);
	for (size_t i = 0; i < n; i++) {
		bool again = i && strcmp(names[i], names[i - 1]) == 0;
		bool known = strstr("documents builtin_tools date_string datetime functions model_identity",
		                    names[i]) != NULL;
		if (!again && (known || (i + first) % every == 0))
			inject_variable(template, file, names[i], c);
	}
	for (size_t i = 0; i < n; i++)
		free(names[i]);
}

static const struct {
	const char *messages, *tools;
} conversations[] = {
	{ "[{\"role\":\"user\",\"content\":\"a % b\",\"name\":\"%\"}]", NULL },
	{ "[{\"role\":\"system\",\"content\":\"a % b\"},{\"role\":\"user\",\"content\":\"%\"},{\"role\":\"assistant\","
	  "\"content\":\"a % b\",\"reasoning_content\":\"%\"},{\"role\":\"user\",\"content\":\"%\"}]",
	  NULL },
	{ "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a % b\"}]}]", NULL },
	{ "[{\"role\":\"%\",\"content\":\"a\"}]", NULL },
	{ "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"%\",\"tool_calls\":[{\"id\":"
	  "\"abcdefghi\",\"type\":\"function\",\"function\":{\"name\":\"f%\",\"arguments\":{\"a\":\"a % "
	  "b\",\"%\":[\"%\"]}}}]},"
	  "{\"role\":\"tool\",\"tool_call_id\":\"abcdefghi\",\"name\":\"f%\",\"content\":\"a % b\"}]",
	  "[{\"type\":\"function\",\"function\":{\"name\":\"f%\",\"description\":\"a % "
	  "b\",\"parameters\":{\"type\":\"object\","
	  "\"properties\":{\"a%\":{\"type\":\"string\",\"description\":\"%\",\"enum\":[\"%\"]}},\"required\":[\"a%\"]}}"
	  "}]" },
	{ "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
	  "\"%\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\\\"%\\\"}\"}}]},"
	  "{\"role\":\"tool\",\"tool_call_id\":\"%\",\"content\":\"%\"}]",
	  NULL },
};

static void inject_conversations(const char *template, const char *file, struct counts *c)
{
	for (size_t i = 0; i < sizeof conversations / sizeof *conversations; i++) {
		char *harmless = with(conversations[i].messages, word),
		     *hostile = with(conversations[i].messages, control);
		const char *tools = conversations[i].tools;
		char *plain_tools = tools ? with(tools, word) : NULL,
		     *hostile_tools = tools ? with(tools, control) : NULL;
		int plain = count(template, harmless, plain_tools, NULL),
		    now = plain < 0 ? -1 : count(template, hostile, hostile_tools, NULL);
		if (now > plain)
			fail_msg("%s: %s gives %d control tokens, a harmless one %d", file, hostile, now, plain);
		c->rendered += now >= 0;
		free(harmless);
		free(hostile);
		free(plain_tools);
		free(hostile_tools);
	}
}

static unsigned inject_folder(const char *relative, struct counts *c)
{
	char path[1024], file[2048];
	DIR *d = shared_path(path, relative) ? opendir(path) : NULL;
	unsigned templates = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (n < 7 || strcmp(e->d_name + n - 6, ".jinja") != 0)
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		char *text = (char *)file_bytes(file, &n);
		char *template = strndup(text, n);
		free(text);
		inject_variables(template, e->d_name, test_full() ? 1 : test_quick() ? 40 : 8, templates, c);
		inject_conversations(template, e->d_name, c);
		templates++;
		free(template);
	}
	if (d)
		closedir(d);
	return templates;
}

static void test_published(void **state)
{
	static const char *const folders[] = { "llama.cpp", "huggingface.js", "mistral.rs", "configs" };
	struct counts c = { 0 };
	unsigned templates = 0;
	(void)state;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char relative[200];
		snprintf(relative, sizeof relative, "data/chat-templates/%s", folders[i]);
		templates += inject_folder(relative, &c);
	}
	if (templates == 0)
		skip();
	printf("# %u templates, %u variables, %u prompts\n", templates, c.names, c.rendered);
	assert_true(templates > 140 && c.rendered > 4 * templates);
}

/* A template of the test's own, which writes every variable where control tokens may stand. */
static void test_own(void **state)
{
	static const char template[] = "{{ eos_token }}{% for d in documents %}{{ d.title }}{{ d.text }}{% endfor %}{{ "
				       "day }}{{ tools_text ~ day }}";
	static const char variables[] =
		"{\"day\":\"%\",\"tools_text\":\"a%\",\"documents\":[{\"title\":\"%\",\"text\":\"%\"}]}";
	char *harmless = with(variables, word), *hostile = with(variables, control), cut[3][60];
	int plain = count(template, lone_message, NULL, harmless);
	(void)state;

	assert_int_equal(plain, 1);
	assert_int_equal(count(template, lone_message, NULL, hostile), 1);
	/* Nor does a template's own text make one with that of a variable. */
	size_t n = strlen(control) / 2;
	snprintf(cut[0], sizeof cut[0], "%.*s{{ day }}", (int)n, control);
	snprintf(cut[1], sizeof cut[1], "{\"day\":\"%s\"}", control + n);
	assert_int_equal(count(cut[0], lone_message, NULL, cut[1]), 0);
	free(harmless);
	free(hostile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_published),
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
