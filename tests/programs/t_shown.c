/* tests/programs/t_shown.c - pictures in a conversation on a (pseudo-)terminal: /image, paths that are typed, pasted or
 * dropped into a message, what is told of them, files of conversations, and what a model that cannot see says.
 *
 * Two witnesses: the file that /save writes, and jitrun with --image on the text that the template makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <cmocka.h>

#include "programs/common/output.h"
#include "tests/programs/typing.h"
#include "tests/support/seeing_folder.h"

#define MARK "<|image_pad|>"

static char model[] = "/tmp/t_shown-XXXXXX", first[100], second[100], broken[100];
static bool seeing;

static void start_seeing(struct pty *t, const char *option, const char *value)
{
	char *argv[] = {
		"./jitrun",
		model,
		"--chat",
		"-n",
		"4",
		"--temp",
		"0",
		"--kv-type",
		"f32",
		"--no-cache",
		"-q",
		"-t",
		"1",
		"-c",
		"1000",
		(char *)(uintptr_t)option,
		(char *)(uintptr_t)value,
		NULL
	};

	assert_true(pty_start(t, 200, argv));
}

static const json_t *content(const json_t *all, size_t message)
{
	return json_object_get(json_array_get(all, message), "content");
}

static const char *text_of(const json_t *all, size_t message, size_t part)
{
	const char *text = json_string_value(json_object_get(json_array_get(content(all, message), part), "text"));

	return text ? text : "(no text)";
}

/* The part is a picture of that file. */
static void is_picture(const json_t *all, size_t message, size_t part, const char *url_end)
{
	const json_t *p = json_array_get(content(all, message), part);
	const char *url = json_string_value(json_object_get(json_object_get(p, "image_url"), "url"));

	assert_string_equal(json_string_value(json_object_get(p, "type")), "image_url");
	assert_true(url && strncmp(url, "file:///", 8) == 0);
	assert_string_equal(url + strlen(url) - strlen(url_end), url_end);
}

/* What jitrun says behind a prompt with pictures, as messages have it. */
static json_t *said(const char *pictures, const char *prompt)
{
	char command[1000], bytes[1000];

	snprintf(command, sizeof command,
	         "./jitrun %s -n 4 --temp 0 --kv-type f32 --no-cache -q -t 1 -c 1000 %s --special --prompt '%s'", model,
	         pictures, prompt);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	const size_t n = fread(bytes, 1, sizeof bytes, f);
	assert_int_equal(pclose(f), 0);
	return output_string_n(bytes, n);
}

static size_t type(struct pty *t, size_t at, const char *line, const char *answer)
{
	pty_type(t, line);
	pty_type(t, "\r");
	at = pty_must_see(t, at, answer);
	return must_see_prompt(t, at);
}

/* Tab writes the name; the message behind it shows the picture. */
static void test_image(void **unused)
{
	char line[600], options[200];
	struct pty t;

	if (!seeing)
		skip();
	start_seeing(&t, NULL, NULL);
	size_t at = must_see_prompt(&t, 0);
	snprintf(line, sizeof line, "/im\t%.*s\t", (int)strlen(first) - 6, first);
	at = type(&t, at, line, "picture 1: ");
	at = type(&t, at, "/image", "for the next message");
	at = type(&t, at, "/show info", "0, and 1 for the next message");
	at = type(&t, at, "what", "\n");
	at = type(&t, at, "/show pictures", "tokens, encoded");
	/* as terminals write what is dropped on them: in quotes, with backslashes, as an address; and within a text */
	snprintf(line, sizeof line, "see '%s' and %s. Not `%s`", first, second, second);
	at = type(&t, at, line, "picture 3: ");
	json_t *all = end(&t, at);
	assert_int_equal(json_array_size(all), 4);
	assert_int_equal(json_array_size(content(all, 0)), 2);
	is_picture(all, 0, 0, "/a%20b.png");
	assert_string_equal(text_of(all, 0, 1), "what");
	assert_int_equal(json_array_size(content(all, 2)), 5);
	assert_string_equal(text_of(all, 2, 0), "see ");
	is_picture(all, 2, 1, "/a%20b.png");
	assert_string_equal(text_of(all, 2, 2), " and ");
	is_picture(all, 2, 3, "/c.png");
	snprintf(line, sizeof line, ". Not `%s`", second);
	assert_string_equal(text_of(all, 2, 4), line);
	snprintf(options, sizeof options, "--image '%s'", first);
	json_t *alone = said(options, "user:" MARK "what|assistant:");
	if (!json_equal(alone, content(all, 1)))
		fail_msg("\"%s\", expected \"%s\"", json_string_value(content(all, 1)), json_string_value(alone));
	json_decref(alone);

	/* read back in another process, with the pictures: the last answer is made again */
	start_seeing(&t, NULL, NULL);
	at = must_see_prompt(&t, 0);
	snprintf(line, sizeof line, "/load %s", saved);
	at = type(&t, at, line, "4 messages loaded");
	at = type(&t, at, "/regen", "\n");
	json_t *again = end(&t, at);
	assert_true(json_equal(all, again));
	json_decref(again);
	json_decref(all);
}

/* Paths with blanks before the backslash, of file: addresses, and at the beginning of a line, where commands are. */
static void test_forms(void **unused)
{
	static const struct {
		const char *before, *name, *after, *url, *text;
	} forms[] = {
		{ "", "/a\\ b.png", " what?", "/a%20b.png", "what?" },
		{ "file://", "/a%20b.png", " what?", "/a%20b.png", "what?" },
		{ "\"", "/a b.png", "\" what?", "/a%20b.png", "what?" },
		{ "", "/c.png", "", "/c.png", NULL },
	};
	char line[300];

	for (size_t i = 0; seeing && i < sizeof forms / sizeof *forms; i++) {
		struct pty t;
		start_seeing(&t, NULL, NULL);
		size_t at = must_see_prompt(&t, 0);
		snprintf(line, sizeof line, "%s%s%s%s", forms[i].before, dir, forms[i].name, forms[i].after);
		at = type(&t, at, line, "picture 1: ");
		json_t *all = end(&t, at);
		is_picture(all, 0, 0, forms[i].url);
		assert_int_equal(json_array_size(content(all, 0)), forms[i].text ? 2 : 1);
		if (forms[i].text)
			assert_string_equal(text_of(all, 0, 1), forms[i].text);
		json_decref(all);
	}
}

/* What cannot be shown is said, and not sent. --image is for the first message, and /clear forgets it. */
static void test_refused(void **unused)
{
	char line[300];
	struct pty t;

	if (!seeing)
		skip();
	start_seeing(&t, "--image", second);
	size_t at = must_see_prompt(&t, 0);
	at = type(&t, at, "/image", "for the next message");
	at = type(&t, at, "/clear", "begins anew");
	at = type(&t, at, "/image", "There are no pictures");
	at = type(&t, at, "/image /nowhere/d.png", "No such file");
	snprintf(line, sizeof line, "/image %s", broken);
	at = type(&t, at, line, "is no picture");
	snprintf(line, sizeof line, "what is %s ?", broken);
	at = type(&t, at, line, "is no picture");
	at = type(&t, at, "/nowhere/d.png", "is no command");
	snprintf(line, sizeof line, "where is /nowhere/d.png or x%s", second);
	at = type(&t, at, line, "\n");
	json_t *all = end(&t, at);
	assert_int_equal(users(all), 1);
	assert_string_equal(user_text(all, 0), line);
	json_decref(all);
}

static void test_blind(void **unused)
{
	char line[300];
	struct pty t;

	start_with(&t, 200, NULL);
	size_t at = must_see_prompt(&t, 0);
	snprintf(line, sizeof line, "/image %s", broken);
	at = type(&t, at, line, "takes no pictures");
	at = type(&t, at, "/show pictures", "takes no pictures");
	at = type(&t, at, "/show info", "none: it has no image encoder");
	snprintf(line, sizeof line, "see %s", broken);
	at = type(&t, at, line, "is sent as text");
	json_t *all = end(&t, at);
	assert_string_equal(user_text(all, 0), line);
	json_decref(all);
	write_file(saved, "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"file:///"
	                  "a.png\"}}]}]");
	start_with(&t, 200, NULL);
	at = must_see_prompt(&t, 0);
	snprintf(line, sizeof line, "/load %s", saved);
	at = type(&t, at, line, "was not loaded");
	write_file(saved,
	           "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"http://a\"}}]}]");
	at = type(&t, at, line, "file: URLs");
	all = end(&t, at);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
}

static void put(char path[100], const char *name, const uint8_t *bytes, size_t n)
{
	snprintf(path, 100, "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
		abort();
}

static int leave(void **unused)
{
	if (seeing)
		seeing_remove(model);
	return typing_leave(unused);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_image), cmocka_unit_test(test_forms),
		                            cmocka_unit_test(test_refused), cmocka_unit_test(test_blind) };

	if (!typing_begin())
		return 77;
	seeing = seeing_folder(model, "see-qwen3vl-a", MARK, SEEING_TEMPLATE(MARK));
	if (!seeing)
		printf("# there is no see-qwen3vl-a: models that see are left out\n");
	for (unsigned i = 0; seeing && i < 2; i++) {
		size_t n;
		uint8_t *bytes = seeing_picture("see-qwen3vl-a", i, &n);
		put(i ? second : first, i ? "c.png" : "a b.png", bytes, n);
		free(bytes);
	}
	put(broken, "broken.png", (const uint8_t *)"none", 4);
	return cmocka_run_group_tests(tests, NULL, leave);
}
