/* tests/programs/t_settings.c - what Tab completes in a conversation on a (pseudo-)terminal, and how lines are cut at
 * its width: after it was changed, and where that is switched off.
 *
 * What was completed is told by what the command then did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <cmocka.h>

#include "tests/programs/typing.h"

/* Keys, which must make jitrun print something; afterwards it asks for the next line. */
static size_t must_do(struct pty *t, size_t at, const char *keys, const char *want)
{
	pty_type(t, keys);
	at = pty_must_see(t, at, want);
	return must_see_prompt(t, at);
}

static void test_words(void **unused)
{
	struct pty t;

	start_with(&t, 80, NULL);
	size_t at = must_see_prompt(&t, 0);
	at = must_do(&t, at, "/show\t\tin\t\r", "info  parameters  template");
	at = must_do(&t, at, "/sho\t inf\t\r", "qwen3 6 layers");
	at = must_do(&t, at, "/se\tth\tl\t\r", "Reasoning: low.");
	at = must_do(&t, at, "/se\tte\t0.5\r", "temperature is 0.5.");
	at = must_do(&t, at, "/set wr\to\toff\r", "on  off");
	at = must_do(&t, at, "\r/set sy\tBe\tso.\r", "goes on.");
	at = must_do(&t, at, "/xy\tz\r", "/xyz is no command");
	at = must_do(&t, at, "/show nothing\t\r", "cannot be shown");
	json_t *all = end(&t, at);
	assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "content")), "Be\tso.");
	json_decref(all);
}

/* Names with blanks, of several alphabets, that begin alike, hidden ones, directories, and those at home. */
static void test_files(void **unused)
{
	static const char conversation[] = "[{\"role\": \"user\", \"content\": \"%s\"}]";
	static const char *const names[] = {
		"my notes.json",
		"Gr\xc3\xb6\xc3\x9f"
		"e.json",
		"Gr\xc3\xbc\xc3\x9f"
		"e.json",
		".hidden.json", "\xe6\x97\xa5\xe6\x9c\xac/x.json"
	};
	char path[200], text[200], keys[200];
	struct pty t;

	snprintf(path, sizeof path, "%s/\xe6\x97\xa5\xe6\x9c\xac", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		snprintf(text, sizeof text, conversation, names[i]);
		write_file(path, text);
	}
	setenv("HOME", dir, 1);
	start_with(&t, 200, NULL);
	size_t at = must_see_prompt(&t, 0);
	snprintf(keys, sizeof keys, "/load %s/my\t\r", dir);
	at = must_do(&t, at, keys, "user: my notes.json");
	at = must_do(&t, at, "/load ~/m\t\r", "user: my notes.json");
	/* what is alike ends before the letter that is not, though its first byte is the same */
	at = must_do(&t, at, "/lo\t~/G\t\xc3\xb6\t\r",
	             "user: Gr\xc3\xb6\xc3\x9f"
	             "e.json");
	pty_type(&t, "/load ~/G\t\t");
	at = pty_must_see(&t, at, "e.json  Gr");
	at = must_do(&t, at, "\xc3\xbc\t\r",
	             "user: Gr\xc3\xbc\xc3\x9f"
	             "e.json");
	at = must_do(&t, at, "/load ~/\xe6\x97\xa5\tx\t\r", "user: \xe6\x97\xa5\xe6\x9c\xac/x.json");
	at = must_do(&t, at, "/load ~/.h\t\r", "user: .hidden.json");
	at = must_do(&t, at, "/load ~/none\t\r", "No such file");
	at = must_do(&t, at, "/save ~/new file.json\r", "1 message written to ");
	at = must_do(&t, at, "/load ~/ne\t\r", "user: .hidden.json");
	json_decref(end(&t, at));
}

/* The longest line from some place on, in letters: what the prompt's template writes is ASCII. */
static size_t longest(const struct pty *t, size_t from, size_t to)
{
	size_t best = 0;

	for (size_t at = from, n = 0; at < to; at++) {
		n = t->text[at] == '\n' || t->text[at] == '\r' ? 0 : n + 1;
		best = n > best ? n : best;
	}
	return best;
}

static void test_width(void **unused)
{
	struct winsize narrow = { .ws_row = 24, .ws_col = 33 };
	struct pty t;

	unsetenv("COLUMNS");
	start_with(&t, 70, "--show-prompt");
	size_t at = must_see_prompt(&t, 0);
	at = must_do(&t, at, "/set system \"\"\"one two three four five six seven eight nine ten eleven\"\"\"\r",
	             "goes on");
	at = must_do(&t, at, "a\r", "six seven eight nine ten eleven a");
	assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &narrow), 0);
	size_t from = at = must_do(&t, at, "/clear\r", "stays");
	pty_type(&t, "b\r");
	at = pty_must_see(&t, at, "one two three four five six seven\r\neight");
	at = pty_must_see(&t, at, "b ");
	at = must_see_prompt(&t, at);
	assert_in_range(longest(&t, from + 10, at), 20, 33);
	at = must_do(&t, at, "/set wrap off\r", "off.");
	at = must_do(&t, at, "/clear\r", "stays");
	at = must_do(&t, at, "c\r", "six seven eight nine ten eleven c");
	at = must_do(&t, at, "/set wordwrap\r", "on.");
	at = must_do(&t, at, "/clear\r", "stays");
	at = must_do(&t, at, "d\r", "six seven\r\neight nine");
	json_decref(end(&t, at));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words), cmocka_unit_test(test_files),
		                            cmocka_unit_test(test_width) };

	return typing_begin() ? cmocka_run_group_tests(tests, NULL, typing_leave) : 77;
}
