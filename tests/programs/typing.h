/* tests/programs/typing.h - a conversation on a (pseudo-)terminal, whose messages are read back from the file that
 * /save writes. */
#ifndef TESTS_TYPING_H
#define TESTS_TYPING_H

#include <jansson.h>
#include <sys/stat.h>

#include "tests/support/pty.h"
#include "tests/support/shared.h"

static char dir[] = "/tmp/t_typing-XXXXXX", template[64], saved[64], state[64], history[100];

static const char usual_template[] = "{% for m in messages %}{{ m.content }} {% endfor %}";

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A conversation whose template holds the messages alone, and whose answers are a token long. */
static inline void start_with(struct pty *t, int columns, const char *more)
{
	char model[4096];
	char *argv[] = {
		"./jitrun",
		model,
		"--template",
		template,
		"-n",
		"1",
		"--temp",
		"0",
		"--no-cache",
		"-q",
		"-t",
		"1",
		"--tune",
		"off",
		"--speculate",
		"off",
		(char *)(uintptr_t)more,
		NULL
	};

	source_path(model, "models/tale-q8_0.gguf");
	assert_true(pty_start(t, columns, argv));
}

/* Before the line editor has taken the terminal over, the kernel would edit the line. */
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

/* Ends the conversation, and returns what it was. */
static inline json_t *end(struct pty *t, size_t at)
{
	char line[100];
	json_error_t e;

	unlink(saved);
	snprintf(line, sizeof line, "/save %s\r", saved);
	pty_type(t, line);
	at = pty_must_see(t, at, " written to ");
	must_see_prompt(t, at);
	pty_type(t, "/exit\r");
	int status = pty_end(t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	json_t *all = json_load_file(saved, 0, &e);
	if (!all)
		fail_msg("what was saved is no JSON: %s", e.text);
	return all;
}

static inline size_t users(const json_t *all)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(all); i++)
		n += strcmp(json_string_value(json_object_get(json_array_get(all, i), "role")), "user") == 0;
	return n;
}

static inline const char *user_text(const json_t *all, size_t which)
{
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *m = json_array_get(all, i);
		if (strcmp(json_string_value(json_object_get(m, "role")), "user") == 0 && which-- == 0)
			return json_string_value(json_object_get(m, "content"));
	}
	return "(there is no such message)";
}


static int typing_leave(void **unused)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

/* False: there is no line editor, or no place for files. */
static bool typing_begin(void)
{
#ifndef HAVE_LIBEDIT
	printf("# skipped: jitrun is built without its line editor\n");
	return false;
#endif
	if (!mkdtemp(dir))
		return false;
	snprintf(template, sizeof template, "%s/template", dir);
	snprintf(saved, sizeof saved, "%s/saved.json", dir);
	snprintf(state, sizeof state, "%s/state", dir);
	snprintf(history, sizeof history, "%s/jitrun/history", state);
	write_file(template, usual_template);
	signal(SIGPIPE, SIG_IGN);
	setenv("XDG_STATE_HOME", state, 1);
	setenv("TERM", "xterm", 1);
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	unsetenv("LANG");
	unsetenv("JITRUN_HISTORY");
	return true;
}

#endif
