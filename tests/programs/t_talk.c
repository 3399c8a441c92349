/* tests/programs/t_talk.c - a conversation on a real (pseudo-)terminal: Ctrl-C stops an answer and not the program,
 * Ctrl-C before a message does no harm, and the end of the input ends it well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/shared.h"

enum { MOST = 1 << 20, PATIENCE = 60000 /* ms */ };

struct talk {
	pid_t pid;
	int fd;
	char *text;
	size_t n;
};

static void start(struct talk *t, const char *template_path)
{
	char model[4096];

	source_path(model, "models/tale-q8_0.gguf");
	*t = (struct talk){ .fd = posix_openpt(O_RDWR | O_NOCTTY), .text = calloc(1, MOST + 1) };
	assert_true(t->fd >= 0 && t->text && grantpt(t->fd) == 0 && unlockpt(t->fd) == 0);
	t->pid = fork();
	if (t->pid == 0) {
		setsid(); /* what is opened next becomes its terminal, which turns Ctrl-C into a signal */
		int s = open(ptsname(t->fd), O_RDWR);
		for (int i = 0; i < 3; i++)
			dup2(s, i);
		close(t->fd);
		execl("./jitrun", "jitrun", model, "--template", template_path, "-n", "-1", "--ignore-eos", "--temp",
		      "0.9", "--seed", "3", "-c", "200000", "--no-cache", "--quiet", "-t", "1", "--speculate", "off",
		      (char *)NULL);
		_exit(99);
	}
	assert_true(t->pid > 0);
}

/* Reads until the text holds `what` behind `from`, or the other side is gone. Returns where it ends; 0: it never came.
 */
static size_t wait_for(struct talk *t, size_t from, const char *what)
{
	for (;;) {
		char *at = strstr(t->text + from, what);
		struct pollfd p = { .fd = t->fd, .events = POLLIN };
		ssize_t got;
		if (at)
			return (size_t)(at - t->text) + strlen(what);
		if (t->n == MOST || poll(&p, 1, PATIENCE) <= 0 || (got = read(t->fd, t->text + t->n, MOST - t->n)) <= 0)
			return 0;
		for (ssize_t i = 0; i < got; i++) /* a text of C, so that strstr sees all of it */
			t->text[t->n + (size_t)i] = t->text[t->n + (size_t)i] ? t->text[t->n + (size_t)i] : ' ';
		t->n += (size_t)got;
	}
}

static size_t must_see(struct talk *t, size_t from, const char *what)
{
	size_t at = wait_for(t, from, what);

	if (!at)
		fail_msg("\"%s\" did not come; the last was: %s", what, t->text + (t->n > 300 ? t->n - 300 : 0));
	return at;
}

/* Before the line editor has taken the terminal over, the kernel would edit the line, and keys would mean other things.
 */
static size_t must_see_prompt(struct talk *t, size_t from)
{
	size_t at = must_see(t, from, "> ");
	struct termios now;

	for (int ms = 0; ms < PATIENCE; ms += 10) {
		assert_int_equal(tcgetattr(t->fd, &now), 0);
		if (!(now.c_lflag & ICANON))
			break;
		usleep(10000);
	}
	return at;
}

static void type(const struct talk *t, const char *keys)
{
	assert_true(write(t->fd, keys, strlen(keys)) == (ssize_t)strlen(keys) || errno == EIO); /* it has ended */
}

/* Its exit status. A program that does not end is killed: the test fails instead of waiting for ever. */
static int end(struct talk *t)
{
	int status;

	wait_for(t, t->n, "\x01"); /* never: reads what is left */
	pid_t ended = 0;
	for (int ms = 0; ms < PATIENCE && (ended = waitpid(t->pid, &status, WNOHANG)) == 0; ms += 10)
		usleep(10000);
	if (ended != t->pid) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, &status, 0);
		fail_msg("the program did not end; its last text: %s", t->text + (t->n > 300 ? t->n - 300 : 0));
	}
	close(t->fd);
	free(t->text);
	return status;
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
	struct talk t;

	write_template(path);
	start(&t, path);
	size_t at = must_see_prompt(&t, 0);
	type(&t, "Once upon a time\r");
	at = must_see(&t, at, "\n");
	while (t.n < at + 200) /* an answer is under way; the context is far from full */
		assert_true(wait_for(&t, t.n, "e") > 0);
	type(&t, "\x03");
	at = must_see(&t, at, "(stopped)");
	at = must_see_prompt(&t, at);
	type(&t, "/save /dev/null\r");
	at = must_see_prompt(&t, at);
	type(&t, "/exit\r");
	int status = end(&t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	unlink(path);
}

static void test_end_of_input(void **state)
{
	char path[64];
	struct talk t;

	write_template(path);
	start(&t, path);
	must_see_prompt(&t, 0);
	type(&t, "\x04");
	int status = end(&t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_interrupt), cmocka_unit_test(test_end_of_input) };

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
