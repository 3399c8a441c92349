/* tests/programs/t_typing.c - what a person types into a conversation on a (pseudo-)terminal is what the model is told:
 * letters of all alphabets, corrections, pastes, blocks, lines that Ctrl-C clears.
 *
 * The witness is the file that /save writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <signal.h>
#include <wctype.h>
#include <cmocka.h>

#include "tests/programs/typing.h"

/* Keys of one message, with what sends it; what was understood is compared. */
static void must_be(const char *keys, const char *want)
{
	struct pty t;

	start_with(&t, 80, NULL);
	size_t at = must_see_prompt(&t, 0);
	pty_type(&t, keys);
	at = pty_must_see(&t, at, "\n");
	at = must_see_prompt(&t, at);
	json_t *all = end(&t, at);
	assert_int_equal(users(all), 1);
	assert_string_equal(user_text(all, 0), want);
	json_decref(all);
}

static void test_letters(void **unused)
{
	must_be("Größe 日本 e\xcc\x81 🦙 ½ ñ\r", "Größe 日本 e\xcc\x81 🦙 ½ ñ");
	/* Backspace takes a character, not a byte. */
	must_be("ä\x7fö 日\x7f本 🦙\x7f! e\xcc\x81\x7f\r", "ö 本 ! e");
	/* to the left, to the beginning, to the end */
	must_be("日本\x1b[Dx\x01ß\x05€\r", "ß日x本€");
}

/* The environment that containers have, that ssh leaves, and those that say C. */
static void test_environments(void **unused)
{
	static const char *const lang[] = { NULL, "C", "POSIX", "xx_XX.UTF-8", "C.UTF-8", "en_US.ISO-8859-1" };

	unsetenv("LC_CTYPE");
	for (size_t i = 0; i < sizeof lang / sizeof *lang; i++)
		for (int all = 0; all < 2; all++) {
			unsetenv("LC_ALL");
			unsetenv("LANG");
			if (lang[i])
				setenv(all ? "LC_ALL" : "LANG", lang[i], 1);
			/* a terminal of Latin-1 is one where that locale is there */
			const bool latin = i == 5 && newlocale(LC_CTYPE_MASK, lang[i], NULL);
			if (!latin)
				must_be("Größe 日本 🦙\r", "Größe 日本 🦙");
			else
				must_be("Gr\xf6\xdf\x65\r", "Größe");
		}
	unsetenv("LC_ALL");
	unsetenv("LANG");
}

/* Characters of all planes that can be typed, in long lines; numbers of each kind are fewer when it must be quick. */
static void test_all_characters(void **unused)
{
	static char keys[1 << 16], want[1 << 16];
	const uint32_t step = getenv("JITRUN_TEST_QUICK") ? 37 : 5;
	struct pty t;
	size_t n = 0, messages = 0;
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);

	write_file(template, "{% for m in messages %}x{% endfor %}");
	start_with(&t, 200, NULL);
	size_t at = must_see_prompt(&t, 0);
	for (uint32_t c = 0xa0; c < 0x20000; c += c < 0x180 ? 1 : step) {
		if (!iswprint_l((wint_t)c, utf8) || (c >= 0xd800 && c < 0xe000))
			continue;
		int k = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		keys[n++] = (char)(k == 2 ? 0xc0 | c >> 6 : k == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
		while (--k)
			keys[n++] = (char)(0x80 | ((c >> 6 * (k - 1)) & 0x3f));
		if (n < 600)
			continue;
		keys[n] = 0;
		strcpy(want + messages++ * 1024, keys);
		strcpy(keys + n, "\r");
		for (size_t done = 0, part; keys[done]; done += part) { /* a line discipline holds 4096 bytes */
			part = strlen(keys + done) < 64 ? strlen(keys + done) : 64;
			assert_int_equal(write(t.fd, keys + done, part), part);
			usleep(1000);
		}
		n = 0;
		at = pty_must_see(&t, at, "\n");
		at = must_see_prompt(&t, at);
		if (messages == sizeof want / 1024)
			break;
	}
	freelocale(utf8);
	json_t *all = end(&t, at);
	assert_int_equal(users(all), messages);
	for (size_t i = 0; i < messages; i++)
		assert_string_equal(user_text(all, i), want + i * 1024);
	json_decref(all);
	write_file(template, usual_template);
}

/* Between the marks of a terminal everything is text. */
static void test_paste(void **unused)
{
	must_be("\x1b[200~one\rtwo\r\rfour\r\x1b[201~\r", "one\ntwo\n\nfour");
	must_be("\x1b[200~one\ntwo\r\nthree\x1b[201~\r", "one\ntwo\nthree");
	must_be("see: \x1b[200~日本\r/exit\r\"\"\"\r\x1b[31mred\x1b[0m\ttab\x1b[201~ ok\x7f.\r",
	        "see: 日本\n/exit\n\"\"\"\n\x1b[31mred\x1b[0m\ttab o.");
	/* two, and an empty one */
	must_be("\x1b[200~a\rb\x1b[201~\x1b[200~\x1b[201~+\x1b[200~c\x1b[201~\r", "a\nb+c");
	/* a path, and what begins as a block but is none */
	must_be("\x1b[200~/usr/bin/x: no\r/nor this\x1b[201~\r", "/usr/bin/x: no\n/nor this");
	must_be("\x1b[200~\"\"\"Doc.\"\"\"\rimport os\x1b[201~\r", "\"\"\"Doc.\"\"\"\nimport os");
	must_be("\x1b[200~\"\"\"\ra\rb\r\"\"\"\r\x1b[201~\r", "a\nb");
}

static void test_blocks(void **unused)
{
	must_be("\"\"\"a\rb\r\r c \"\"\" \r", "a\nb\n\n c ");
	must_be("\"\"\"\ra\rb\r\"\"\"\r", "a\nb");
	must_be("\"\"\"/help\"\"\"\r", "/help");
	must_be("\"\"\"\r\r\"\"\"x\r\"\"\"\r", "\n\"\"\"x");
	must_be("a \t\\\r  b\\\rc\r", "a\n  b\nc");
	must_be(" /exit\r", " /exit");
}

/* Ctrl-C clears a line, or all lines of a message; twice with nothing typed it ends the conversation. */
static void test_interrupt(void **unused)
{
	static const char *const begun[] = { "half a li\xc3\xb1",    "two\\\rlines",    "\"\"\"\rof a block", "/exi",
		                             "\x1b[200~of a\rpaste", "日本\x1b[D\x1b[D" };
	struct pty t;
	int status;

	for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
		start_with(&t, 80, NULL);
		size_t at = must_see_prompt(&t, 0);
		pty_type(&t, begun[i]);
		usleep(100000);
		pty_type(&t, "\x03");
		at = pty_must_see(&t, at, "^C");
		at = must_see_prompt(&t, at);
		pty_type(&t, "whole\r");
		at = pty_must_see(&t, at, "\n");
		at = must_see_prompt(&t, at);
		/* alone it does nothing, nor does it when a message was sent in between */
		pty_type(&t, "\x03");
		at = pty_must_see(&t, at, "once more");
		at = must_see_prompt(&t, at);
		json_t *all = end(&t, at);
		assert_int_equal(users(all), 1);
		assert_string_equal(user_text(all, 0), "whole");
		json_decref(all);
	}
	for (int typed = 0; typed < 2; typed++) {
		start_with(&t, 80, NULL);
		size_t at = must_see_prompt(&t, 0);
		if (typed)
			pty_type(&t, "half");
		usleep(100000);
		pty_type(&t, "\x03");
		at = pty_must_see(&t, at, "^C");
		must_see_prompt(&t, at);
		pty_type(&t, "\x03");
		status = pty_end(&t);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* Whatever ends it, the terminal marks pastes no longer and is in the mode it was in. */
static void test_given_back(void **unused)
{
	static const int by[] = { 0, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
		struct termios before, after;
		struct pty t;
		start_with(&t, 80, NULL);
		assert_int_equal(tcgetattr(t.fd, &before), 0);
		int keep = open(ptsname(t.fd), O_RDWR | O_NOCTTY);
		size_t at = must_see_prompt(&t, 0);
		assert_non_null(strstr(t.text, "\x1b[?2004h"));
		if (by[i])
			kill(t.pid, by[i]);
		else
			pty_type(&t, "\x04");
		pty_must_see(&t, at, "\x1b[?2004l");
		for (int ms = 0; ms < PTY_PATIENCE; ms += 10) {
			assert_int_equal(tcgetattr(t.fd, &after), 0);
			if (after.c_lflag & ICANON)
				break;
			usleep(10000);
		}
		assert_int_equal(after.c_lflag, before.c_lflag);
		close(keep);
		int status = pty_end(&t);
		assert_true(by[i] ? WIFSIGNALED(status) && WTERMSIG(status) == by[i] : WIFEXITED(status));
	}
}

static void test_commands(void **unused)
{
	static const char *const ends[] = { "/bye\r", "/quit\r", "/exit\r", "/ex\t\r", "/b\t\r" };
	struct pty t;
	size_t at;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		start_with(&t, 80, NULL);
		must_see_prompt(&t, 0);
		pty_type(&t, ends[i]);
		int status = pty_end(&t);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	start_with(&t, 80, NULL);
	at = must_see_prompt(&t, 0);
	pty_type(&t, "/?\r");
	at = pty_must_see(&t, at, "/regen");
	at = must_see_prompt(&t, at);
	pty_type(&t, "/s\t");
	at = pty_must_see(&t, at, "/system  /save  /stats  /set  /show");
	pty_type(&t, "y\tBe brief.\r"); /* with the blank */
	at = pty_must_see(&t, at, "with this system message.");
	at = must_see_prompt(&t, at);
	pty_type(&t, "a\tb\r");
	at = pty_must_see(&t, at, "\n");
	at = must_see_prompt(&t, at);
	json_t *all = end(&t, at);
	assert_int_equal(json_array_size(all), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "content")), "Be brief.");
	assert_string_equal(user_text(all, 0), "a\tb");
	json_decref(all);

	char line[100];
	start_with(&t, 60, NULL);
	at = must_see_prompt(&t, 0);
	snprintf(line, sizeof line, "/load %.*s\t\r", (int)strlen(saved) - 2, saved);
	pty_type(&t, line);
	at = pty_must_see(&t, at, "3 messages loaded from ");
	at = pty_must_see(&t, at, "system: Be brief.");
	at = pty_must_see(&t, at, "user: a");
	at = must_see_prompt(&t, at);
	pty_type(&t, "/clear\r");
	at = pty_must_see(&t, at, "the system message stays");
	at = must_see_prompt(&t, at);
	pty_type(&t, "/system\r");
	at = pty_must_see(&t, at, "without a system message.");
	at = must_see_prompt(&t, at);
	all = end(&t, at);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
}

/* What is counted until the first token is the computing, not the typing. */
static void test_first_token(void **unused)
{
	struct pty t;

	start_with(&t, 80, NULL);
	size_t at = must_see_prompt(&t, 0);
	usleep(1500000);
	pty_type(&t, "x\r");
	at = pty_must_see(&t, at, "\n");
	at = must_see_prompt(&t, at);
	pty_type(&t, "/stats\r");
	at = pty_must_see(&t, at, "first after ");
	must_see_prompt(&t, at);
	assert_true(strtod(t.text + at, NULL) < 1.4);
	json_decref(end(&t, at));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_letters),        cmocka_unit_test(test_environments),
		                            cmocka_unit_test(test_all_characters), cmocka_unit_test(test_paste),
		                            cmocka_unit_test(test_blocks),         cmocka_unit_test(test_interrupt),
		                            cmocka_unit_test(test_given_back),     cmocka_unit_test(test_commands),
		                            cmocka_unit_test(test_first_token) };

	return typing_begin() ? cmocka_run_group_tests(tests, NULL, typing_leave) : 77;
}
