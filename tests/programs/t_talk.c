/* tests/programs/t_talk.c - jitrun on a real (pseudo-)terminal. A long prompt shows how far it is. In a conversation,
 * Ctrl-C stops an answer and not the program, Ctrl-C before a message does no harm, and the end of the input ends it
 * well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <cmocka.h>

#include "programs/synth/synth.h"
#include "tests/support/pty.h"
#include "tests/support/shared.h"

static void start(struct pty *t, const char *template_path)
{
	char model[4096];

	source_path(model, "models/tale-q8_0.gguf");
	char *argv[] = {
		"./jitrun",
		model,
		"--template",
		(char *)(uintptr_t)template_path,
		"-n",
		"-1",
		"--ignore-eos",
		"--temp",
		"0.9",
		"--seed",
		"3",
		"-c",
		"200000",
		"--no-cache",
		"--quiet",
		"-t",
		"1",
		"--speculate",
		"off",
		NULL
	};
	assert_true(pty_start(t, 80, argv));
}

/* Before the line editor has taken the terminal over, the kernel would edit the line, and keys would mean other things.
 */
static size_t must_see_prompt(struct pty *t, size_t from)
{
	size_t at = pty_must_see(t, from, "> ");
	struct termios now;

	for (int ms = 0; ms < PTY_PATIENCE; ms += 10) {
		assert_int_equal(tcgetattr(t->fd, &now), 0);
		if (!(now.c_lflag & ICANON))
			break;
		usleep(10000);
	}
	return at;
}

static void write_template(char path[64])
{
	strcpy(path, "/tmp/t_talk-XXXXXX");
	int fd = mkstemp(path);
	static const char text[] = "{% for m in messages %}{{ m.content }} {% endfor %}";
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	close(fd);
}

static void test_interrupt(void **state)
{
	char path[64];
	struct pty t;

	write_template(path);
	start(&t, path);
	size_t at = must_see_prompt(&t, 0);
	pty_type(&t, "Once upon a time\r");
	at = pty_must_see(&t, at, "\n");
	while (t.n < at + 200) /* an answer is under way; the context is far from full */
		assert_true(pty_wait_for(&t, t.n, "e") > 0);
	pty_fill(&t); /* so that Ctrl-C falls into a write */
	pty_type(&t, "\x03");
	usleep(100000); /* before there is room again */
	at = pty_must_see(&t, at, "(stopped)");
	at = must_see_prompt(&t, at);
	pty_type(&t, "/save /dev/null\r");
	at = must_see_prompt(&t, at);
	pty_type(&t, "/exit\r");
	int status = pty_end(&t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	unlink(path);
}

static void test_end_of_input(void **state)
{
	char path[64];
	struct pty t;

	write_template(path);
	start(&t, path);
	must_see_prompt(&t, 0);
	pty_type(&t, "\x04");
	int status = pty_end(&t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	unlink(path);
}

/* A long prompt says how far it is, in lines no wider than the terminal, and Ctrl-C ends it between two passes. */
static void test_progress(void **state)
{
	enum { COLUMNS = 60 };
	char model[4096], ids[1200] = "1";
	char *argv[] = { "./jitrun", model, "--device", "ref", "--prompt-ids", ids,  "-n",  "1",
		         "--batch",  "8",   "-t",       "1",   "--no-cache",   "-c", "600", NULL };
	struct pty t;

	source_path(model, "models/tale-q8_0.gguf");
	for (size_t i = 0; i < 499; i++)
		strcat(ids, ",2");
	assert_true(pty_start(&t, COLUMNS, argv));
	size_t at = pty_must_see(&t, 0, " of 500 tokens [");
	at = pty_must_see(&t, at, "\rprompt ");
	pty_type(&t, "\x03");
	at = pty_must_see(&t, at, "stopped: interrupted");
	for (size_t i = 0, column = 0; i < at; i++) {
		column = t.text[i] == '\r' || t.text[i] == '\n' ? 0 : column + 1;
		assert_in_range(column, 0, COLUMNS);
	}
	int status = pty_end(&t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 130);
}

/* The header of a large model, and a hole where its weights are: loading takes long enough to be seen, and ends when
 * Ctrl-C asks for it, with a word and on a line of its own. */
static void test_interrupt_while_loading(void **state)
{
	char path[] = "/tmp/t_talk-XXXXXX.gguf";
	char *argv[] = { "./jitrun", path, "--prompt-ids", "1", "-n", "1", "-t", "1", "--no-cache", NULL };
	const struct model_shape *s = shape_find("qwen3-0.6b");
	const struct mixture *m = mixture_find("bf16");
	struct error err = { 0 };
	struct pty t;
	size_t n;
	int fd = mkstemps(path, 5);
	(void)state;

	uint8_t *header = synth_header(&n, s, m, &err);
	assert_true(fd >= 0 && header);
	assert_int_equal(write(fd, header, n), n);
	assert_int_equal(ftruncate(fd, (off_t)(n + synth_bytes(s, m) + (1 << 20))), 0);
	close(fd);
	free(header);
	assert_true(pty_start(&t, 60, argv));
	size_t at = pty_wait_for(&t, 0, "loading ");
	if (at) {
		pty_type(&t, "\x03");
		pty_must_see(&t, at, "\rjitrun: interrupted while loading.");
	} else if (strstr(t.text, "stopped: ") || strstr(t.text, "memory")) {
		printf("# skipped: it is loaded too soon here, or there is no room for it: %s\n", t.text);
	} else {
		fail_msg("it is not loaded: %s", t.text);
	}
	int status = pty_end(&t);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 130 || !at);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_interrupt), cmocka_unit_test(test_end_of_input),
		                            cmocka_unit_test(test_progress),
		                            cmocka_unit_test(test_interrupt_while_loading) };

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
