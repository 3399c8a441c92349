/* tests/programs/t_typed_before.c - what was typed into a conversation can be had again in a later one, unless that is
 * not wanted, and nobody else can read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <cmocka.h>

#include "tests/programs/typing.h"

static void test_long_paste(void **unused)
{
	enum { LINES = 400 };
	static char want[LINES * 20], keys[64];
	struct pty t;
	size_t n = 0;

	start_with(&t, 80, NULL);
	must_see_prompt(&t, 0);
	pty_type(&t, "\x1b[200~");
	for (int i = 0; i < LINES; i++) {
		n += (size_t)sprintf(want + n, "%s%d ö", i ? "\n" : "", i);
		snprintf(keys, sizeof keys, "%s%d ö", i ? "\r" : "", i);
		pty_type(&t, keys);
		usleep(300);
	}
	pty_type(&t, "\x1b[201~\r");
	/* of that many tokens there is no room in the context, so it is answered by a sentence; but it is remembered */
	pty_type(&t, "/exit\r");
	int status = pty_end(&t);
	assert_true(WIFEXITED(status));
	FILE *f = fopen(history, "r");
	static char kept[2 * sizeof want];
	assert_non_null(f);
	kept[fread(kept, 1, sizeof kept - 1, f)] = 0;
	fclose(f);
	assert_non_null(strstr(kept, "0\\040ö\\0121\\040ö"));
	assert_non_null(strstr(kept, "398\\040ö\\012399\\040ö\n"));
}

static void talk(const char *keys, const char *option)
{
	struct pty t;

	start_with(&t, 80, option);
	must_see_prompt(&t, 0);
	pty_type(&t, keys);
	usleep(200000);
	pty_type(&t, "/exit\r");
	int status = pty_end(&t);
	assert_true(WIFEXITED(status));
}

static void must_recall(const char *keys, const char *want)
{
	struct pty t;

	start_with(&t, 80, NULL);
	size_t at = must_see_prompt(&t, 0);
	pty_type(&t, keys);
	at = pty_must_see(&t, at, "\n");
	at = must_see_prompt(&t, at);
	json_t *all = end(&t, at);
	assert_string_equal(user_text(all, 0), want);
	json_decref(all);
}

static void test_history(void **unused)
{
	struct stat st;

	unlink(history);
	umask(0);
	talk("Größe 🦙\r", NULL);
	assert_int_equal(stat(history, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	must_recall("\x1b[A\x1b[A\r", "Größe 🦙");
	/* a message of several lines is one */
	unlink(history);
	talk("\x1b[200~eins\rzwei \\x\x1b[201~\r", NULL);
	must_recall("\x1b[A\x1b[A\r", "eins\nzwei \\x");
	/* not wanted, in two ways: nothing is written or shown */
	unlink(history);
	talk("secret\r", "--no-history");
	assert_int_equal(access(history, F_OK), -1);
	setenv("JITRUN_HISTORY", "", 1);
	talk("secret\r", NULL);
	assert_int_equal(access(history, F_OK), -1);
	/* another place, and a file that is something else stays as it is */
	setenv("JITRUN_HISTORY", saved, 1);
	write_file(saved, "my own notes\n");
	talk("more\r", NULL);
	char text[100] = "";
	FILE *f = fopen(saved, "r");
	assert_non_null(fgets(text, sizeof text, f));
	assert_string_equal(text, "my own notes\n");
	assert_null(fgets(text, sizeof text, f));
	fclose(f);
	unsetenv("JITRUN_HISTORY");
	/* a directory that cannot be written is no reason not to talk */
	setenv("XDG_STATE_HOME", "/proc/none", 1);
	talk("x\r", NULL);
	setenv("XDG_STATE_HOME", state, 1);
	umask(022);
}

static void test_long_history(void **unused)
{
	FILE *f;
	int lines = 0;
	struct stat st;

	talk("x\r", NULL);
	f = fopen(history, "a");
	for (int i = 0; i < 3000; i++)
		fprintf(f, "line\\040%d\n", i);
	fclose(f);
	must_recall("\x1b[A\r", "line 2999");
	f = fopen(history, "r");
	for (int c; (c = fgetc(f)) != EOF;)
		lines += c == '\n';
	fclose(f);
	assert_in_range(lines, 1000, 1010);
	assert_int_equal(stat(history, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Lines of the file, each whole. */
static int lines_with(const char *text)
{
	static char line[1 << 17];
	FILE *f = fopen(history, "r");
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		n += strncmp(line, text, strlen(text)) == 0 && strchr(line, '\n') == line + strlen(text);
	fclose(f);
	return n;
}

/* Several conversations at once: long messages, while each that begins has a file to shorten. */
static void test_together(void **unused)
{
	enum { TALKS = 3, MESSAGES = 4, LETTERS = 3000 };
	static char word[TALKS][LETTERS + 30];
	struct pty t[TALKS];
	size_t at[TALKS];
	FILE *f;

	unlink(history);
	setenv("JITRUN_HISTORY", history, 1);
	write_file(history, "_HiStOrY_V2_\n");
	f = fopen(history, "a");
	for (int i = 0; i < 3000; i++)
		fprintf(f, "line\\040%d\n", i);
	fclose(f);
	for (int i = 0; i < TALKS; i++)
		start_with(&t[i], 80, NULL);
	for (int i = 0; i < TALKS; i++)
		at[i] = must_see_prompt(&t[i], 0);
	for (int k = 0; k < MESSAGES; k++) {
		for (int i = 0; i < TALKS; i++) {
			int n = snprintf(word[i], sizeof word[i], "/load %d-%d-", i, k);
			memset(word[i] + n, 'a' + i, LETTERS);
			strcpy(word[i] + n + LETTERS, "\r");
			pty_type(&t[i], word[i]);
		}
		for (int i = 0; i < TALKS; i++) {
			at[i] = pty_must_see(&t[i], at[i], "cannot be");
			at[i] = must_see_prompt(&t[i], at[i]);
		}
	}
	for (int i = 0; i < TALKS; i++) {
		pty_type(&t[i], "/exit\r");
		assert_true(WIFEXITED(pty_end(&t[i])));
	}
	for (int i = 0; i < TALKS; i++)
		for (int k = 0; k < MESSAGES; k++) {
			int n = snprintf(word[i], sizeof word[i], "/load\\040%d-%d-", i, k);
			memset(word[i] + n, 'a' + i, LETTERS);
			word[i][n + LETTERS] = 0;
			assert_int_equal(lines_with(word[i]), 1);
		}
	assert_int_equal(lines_with("_HiStOrY_V2_"), 1);
	unsetenv("JITRUN_HISTORY");
}

/* A line is not written while another program writes, and to the file that is there afterwards. */
static void test_lock(void **unused)
{
	struct pty t;
	char other[120];

	unlink(history);
	talk("first\r", NULL);
	start_with(&t, 80, NULL);
	size_t at = must_see_prompt(&t, 0);
	int fd = open(history, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pty_type(&t, "/system second\r");
	usleep(200000);
	assert_int_equal(lines_with("/system\\040second"), 0);
	snprintf(other, sizeof other, "%s.new", history);
	write_file(other, "_HiStOrY_V2_\nkept\ntorn");
	assert_int_equal(rename(other, history), 0);
	close(fd);
	at = pty_must_see(&t, at, "with this system message.");
	must_see_prompt(&t, at);
	pty_type(&t, "/exit\r");
	assert_true(WIFEXITED(pty_end(&t)));
	assert_int_equal(lines_with("kept"), 1);
	assert_int_equal(lines_with("torn"), 1);
	assert_int_equal(lines_with("/system\\040second"), 1);
	/* one that never ends is not waited for */
	fd = open(history, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	talk("/system third\r", NULL);
	close(fd);
	assert_int_equal(lines_with("/system\\040third"), 1);
}

/* Switched off and on in the conversation. */
static void test_switched(void **unused)
{
	unlink(history);
	talk("/set history off\rsecret\r\x1b[A\r/set history on\ropen\r", NULL);
	assert_int_equal(lines_with("secret"), 0);
	assert_int_equal(lines_with("open"), 1);
	unlink(history);
	talk("/set history on\rsecret\r", "--no-history");
	assert_int_equal(access(history, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_long_paste),   cmocka_unit_test(test_history),
		                            cmocka_unit_test(test_long_history), cmocka_unit_test(test_together),
		                            cmocka_unit_test(test_lock),         cmocka_unit_test(test_switched) };

	return typing_begin() ? cmocka_run_group_tests(tests, NULL, typing_leave) : 77;
}
