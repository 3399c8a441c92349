/* tests/server/t_fetch_end.c - the last line of a program that fetches models, where the server's thread is held up
 * between a look at its output and one at the program itself: what was said in between counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/control/fetch.h"
#include "server/engine/models.h"
#include "server/http/server.h"

/* What ends while the thread is held up has ended before it goes on. */
enum { HELD_UP_MS = 300 };

static char program[] = "/tmp/jitrun-fetch-end-XXXXXX";
static atomic_int held_up, fetched;

int __real_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout);

/* Where there was nothing to read for a whole turn. */
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	const int ready = __real_poll(p, n, timeout);

	if (ready == 0 && timeout > 0) {
		held_up++;
		usleep(1000 * HELD_UP_MS);
	}
	return ready;
}

static int write_program(void **state)
{
	static const char script[] =
		"#!/bin/sh\n"
		"sleep 0.2\n"
		"case $3 in\n"
		"*/fails) echo '{\"error\":\"the disk is full\"}' ;;\n"
		"*/long) i=0; while [ $i -lt 900 ]; do echo '{\"status\":\"pulling\"}'; i=$((i + 1)); done\n"
		"\techo '{\"status\":\"success\"}' ;;\n"
		"*/leaves) echo '{\"status\":\"success\"}'; sleep 2 & ;;\n"
		"*/silent) ;;\n"
		"*) echo '{\"status\":\"success\"}' ;;\n"
		"esac\n";
	const int fd = mkstemp(program);
	(void)state;

	const bool ok = fd >= 0 && write(fd, script, sizeof script - 1) == sizeof script - 1 && fchmod(fd, 0700) == 0;
	return close(fd) || !ok;
}

static int remove_program(void **state)
{
	(void)state;
	return unlink(program);
}

static void note(struct models *all, const char *name, const char *path)
{
	(void)all;
	(void)name;
	(void)path;
	fetched++;
}

/* The last record of a fetch, and its text. */
static struct answer_event last_of(struct server *server, const char *name, char text[200])
{
	struct exchange x = { .server = server };
	struct answer_stream *s = stream_open(1, 1 << 20, true);
	const jit_logprob *top;
	struct answer_event r = { .kind = EVENT_IDLE };
	const char *said = "";

	assert_non_null(s);
	if (!fetch_start(&x, name, s, false))
		fail_msg("%s: %s", name, x.refusal.message);
	for (int i = 0; i < 2000 && !stream_take(s, &r, &top, &said); i++)
		usleep(10000);
	snprintf(text, 200, "%.*s", (int)r.n_text, said);
	stream_leave(s);
	stream_release(s);
	return r;
}

static void test_last_line(void **state)
{
	static const struct {
		const char *name, *says; /* NULL: it is fetched */
	} rows[] = { { "owner/works", NULL },
		     { "owner/fails", "the disk is full" },
		     { "owner/long", NULL },
		     { "owner/leaves", NULL },
		     { "owner/silent", "The program that fetches models ended with status 0." } };
	struct models models = { .fetched = note };
	struct server server = { .o.pull_with = program, .models = &models };
	char text[200];
	(void)state;

	atomic_store(&server.state, SERVER_READY);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int before = held_up, known = fetched;
		const struct answer_event r = last_of(&server, rows[i].name, text);
		if (r.kind != (rows[i].says ? EVENT_FAILED : EVENT_ENDED))
			fail_msg("%s: record %d, \"%s\"", rows[i].name, (int)r.kind, text);
		assert_string_equal(text, rows[i].says ? rows[i].says : "");
		assert_int_equal(fetched, known + !rows[i].says);
		assert_true(held_up > before);
	}
	fetch_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_last_line) };

	return cmocka_run_group_tests(tests, write_program, remove_program);
}
