/* tests/server/t_fetch.c - programs that fetch models and do not end as they should: that take no signal, close their
 * output, leave others behind or stay; what a server that stops does with them; names that none is given; and clients
 * that ask for one model at the same time, who share a program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/said_lines.h"

/* Each writes its number, which is that of its group, too. */
static const char script[] =
	"#!/bin/sh\n"
	"[ \"$1 $2\" = '--json --' ] || exit 9\n"
	"echo $$ >\"$HF_HUB_CACHE/$$\" && mv \"$HF_HUB_CACHE/$$\" \"$HF_HUB_CACHE/$(echo \"$3\" | tr / _)\"\n"
	"case $3 in\n"
	"*/quick) echo '{\"error\":\"none\"}' ;;\n"
	"*/stubborn) trap '' TERM; while :; do sleep 0.2; done ;;\n"
	"*/silent) exec >&-; exec sleep 100 ;;\n"
	"*/leaves) sleep 4 & ;;\n"
	"*/stays*) echo '{\"status\":\"success\"}'; exec sleep 100 ;;\n"
	"*/reads) cat; echo '{\"error\":\"no input\"}' ;;\n"
	"*/shared*) echo $$ >>\"$HF_HUB_CACHE/programs\"; echo '{\"status\":\"pulling manifest\"}'\n"
	"\tfor n in 1 2 3; do echo '{\"status\":\"pulling "
	"01\",\"digest\":\"sha256:01\",\"total\":9,\"completed\":'$n'}'; done\n"
	"\techo '{\"status\":\"pulling 02\",\"digest\":\"sha256:02\",\"total\":8,\"completed\":5}'\n"
	"\tuntil [ -e \"$HF_HUB_CACHE/go\" ]; do sleep 0.05; done\n"
	"\tcase $3 in *fails) echo '{\"error\":\"the disk is full\"}' ;; *) echo '{\"status\":\"success\"}' ;; esac "
	";;\n"
	"*/pipes) kill -PIPE $$; echo '{\"error\":\"PIPE was ignored\"}' ;;\n"
	"esac\n";
static char folder[] = "/tmp/jitrun-fetch-XXXXXX", program[64];
static struct child server;

static void begin(void)
{
	server = child_start_without((const char *[]){ "--no-cache", "--pull-with", program, "--threads", "1", NULL });
}

static int start(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof program, "%s/pull", folder);
	FILE *f = fopen(program, "w");
	if (!f || fputs(script, f) < 0 || fclose(f) || chmod(program, 0700))
		return 1;
	setenv("HF_HUB_CACHE", folder, 1);
	begin();
	return 0;
}

static int stop(void **state)
{
	char command[100];
	const int status = child_stop(&server);
	(void)state;

	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) || status;
}

static void must(const char *path, const char *name, int status)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"stream\":false}", name);
	json_decref(client_json(&server, path, body, status));
}

static bool is_fetched(const char *name)
{
	json_t *o = client_json(&server, "/models", NULL, 200), *one;
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(o, "data"), i, one) found |= strcmp(text_at(one, "id"), name) == 0;
	json_decref(o);
	return found;
}

/* The number that the program has written. */
static pid_t group_of(const char *name)
{
	char path[200];
	long pid = 0;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	*strchr(path + strlen(folder) + 1, '/') = '_';
	for (int i = 0; i < 1000 && pid == 0; i++, usleep(10000)) {
		FILE *f = fopen(path, "r");
		if (f && fscanf(f, "%ld", &pid) != 1)
			pid = 0;
		if (f)
			fclose(f);
	}
	assert_true(pid > 1);
	unlink(path);
	return (pid_t)pid;
}

/* The same, and it may be asked again. */
static pid_t group_of_running(const char *name)
{
	char path[200];
	const pid_t pid = group_of(name);

	snprintf(path, sizeof path, "%s/%s", folder, name);
	*strchr(path + strlen(folder) + 1, '/') = '_';
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%ld\n", (long)pid);
	fclose(f);
	return pid;
}

/* Neither it nor what it has started runs, and it was waited for. */
static void must_end(pid_t group)
{
	for (int i = 0; i < 1500; i++, usleep(10000))
		if (kill(-group, 0) < 0 && errno == ESRCH)
			return;
	kill(-group, SIGKILL);
	fail_msg("group %d still runs", (int)group);
}

static void test_cancelled(void **state)
{
	static const char *const names[] = { "owner/stubborn", "owner/silent" };
	(void)state;

	for (int i = 0; i < 2; i++) {
		must("/models", names[i], 200);
		const pid_t group = group_of(names[i]);
		usleep(50000);
		must("/models/unload", names[i], 200);
		must_end(group);
		assert_false(is_fetched(names[i]));
	}
}

/* What it has left has its output for 4 seconds. */
static void test_left(void **state)
{
	(void)state;
	must("/models", "owner/leaves", 200);
	const pid_t group = group_of("owner/leaves");
	for (int i = 0; i < 200 && is_fetched("owner/leaves"); i++)
		usleep(10000);
	assert_false(is_fetched("owner/leaves"));
	assert_int_equal(kill(-group, 0), 0);
	must_end(group);
}

/* Those that have said all and stay count as long as they run. */
static void test_paths(void **state)
{
	static const char *const names[] = { "owner/stays1", "owner/stays2", "owner/stays3", "owner/stays4" };
	pid_t group[4];
	(void)state;

	for (int i = 0; i < 4; i++) {
		must("/api/pull", names[i], 200);
		group[i] = group_of(names[i]);
	}
	for (int i = 0; i < 4; i++)
		must_end(group[i]);
	usleep(200000);
	must("/api/pull", "owner/quick", 502);
	must_end(group_of("owner/quick"));
}

static void test_world(void **state)
{
	static const char *const names[] = { "owner/reads", "owner/pipes" };
	static const char *const says[] = { "no input", "status 141" };
	(void)state;

	for (int i = 0; i < 2; i++) {
		char body[100];
		snprintf(body, sizeof body, "{\"model\":\"%s\",\"stream\":false}", names[i]);
		json_t *o = client_json(&server, "/api/pull", body, 502);
		assert_non_null(strstr(text_at(o, "error"), says[i]));
		json_decref(o);
		must_end(group_of(names[i]));
	}
}

static void test_names(void **state)
{
	static const char *const names[] = {
		"a/../b",     "../b", "./b",  "a/..", "hf.co/../../b", "a/b\\n", "a/b\\u0000", "a\\tb/c", "a/b\\\\c",
		"a/b\\u007f", "-a/b", "--/b", "/b",   "/etc/b",        "a/",     "a"
	};
	static char body[1 << 18];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		must("/models", names[i], 400);
		must("/api/pull", names[i], 400);
	}
	/* longer than an argument may be */
	strcpy(body, "{\"model\":\"a/");
	memset(body + strlen(body), 'b', 200000);
	strcat(body, "\"}");
	json_decref(client_json(&server, "/models", body, 400));
}

/* ---- clients that ask for one model at the same time */

/* A request whose answer is not read yet. */
static int ask_for(const char *path, const char *name, bool streamed)
{
	char body[200], text[400];
	int fd = client_connect(&server, false);

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"stream\":%s}", name, streamed ? "true" : "false");
	snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path,
	         strlen(body), body);
	client_send(fd, text, strlen(text));
	return fd;
}

/* What the server has sent, up to these words. */
static void read_until(int fd, char said[static 1 << 14], const char *words)
{
	size_t n = 0;

	for (said[0] = 0; !strstr(said, words); said[n] = 0) {
		const ssize_t got = n < (1 << 14) - 1 ? read(fd, said + n, (1 << 14) - n - 1) : 0;
		if (got <= 0)
			fail_msg("the server has not said %s: %s", words, said);
		n += (size_t)got;
	}
}

static int times(const char *text, const char *words)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, words)); at++)
		n++;
	return n;
}

/* Programs that ran for the model since this was asked last. */
static int programs(void)
{
	char path[100], line[32];
	int n = 0;

	snprintf(path, sizeof path, "%s/programs", folder);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		n++;
	if (f)
		fclose(f);
	unlink(path);
	return n;
}

static void let_go(bool go)
{
	char path[100];

	snprintf(path, sizeof path, "%s/go", folder);
	FILE *f = go ? fopen(path, "w") : NULL;
	if (f)
		fclose(f);
	else
		unlink(path);
}

#define LAST "\"total\":8,\"completed\":5"

/* Who comes late is told what others know already, each file as it is now; and hears the end with them, also when the
 * first one has gone. */
static void test_shared(void **state)
{
	static const struct {
		const char *name, *end;
		int status;
	} cases[] = { { "owner/shared", "{\"status\":\"success\"}", 200 },
		      { "owner/shared-fails", "{\"error\":\"the disk is full\"}", 502 } };
	char said[1 << 14], other[100];
	(void)state;

	for (int i = 0; i < 2; i++) {
		let_go(false);
		int one = ask_for("/api/pull", cases[i].name, true);
		read_until(one, said, LAST);
		assert_int_equal(times(said, "sha256:01"), 3);
		snprintf(other, sizeof other, "hf.co/%s:latest", cases[i].name);
		int two = ask_for("/api/pull", other, true), whole = ask_for("/api/pull", cases[i].name, false);
		read_until(two, said, LAST);
		assert_int_equal(times(said, "pulling manifest"), 1);
		assert_int_equal(times(said, "sha256:01"), 1);
		assert_int_equal(times(said, "\"completed\":3"), 1);
		must("/models", other, 400);
		close(one);
		usleep(300000); /* longer than the server takes to see that */
		let_go(true);
		read_until(two, said, cases[i].end);
		close(two);
		struct answer a = client_read(whole, 10);
		assert_int_equal(a.status, cases[i].status);
		assert_non_null(strstr(a.body, cases[i].end));
		answer_free(&a);
		close(whole);
		must_end(group_of(cases[i].name));
		assert_int_equal(programs(), 1);
	}
}

/* The program ends with the last of its clients, unless it was begun without one; then all hear that it was ended. */
static void test_left_by_all(void **state)
{
	char said[1 << 14];
	(void)state;

	let_go(false);
	int fd[3];
	for (int i = 0; i < 3; i++)
		read_until(fd[i] = ask_for("/api/pull", "owner/shared", true), said, LAST);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kill(-group_of_running("owner/shared"), 0), 0);
		close(fd[i]);
		usleep(300000);
	}
	must_end(group_of("owner/shared"));
	must("/models", "owner/shared", 200);
	read_until(fd[0] = ask_for("/api/pull", "owner/shared", true), said, LAST);
	read_until(fd[1] = ask_for("/api/pull", "owner/shared", true), said, LAST);
	close(fd[0]);
	usleep(300000);
	assert_true(is_fetched("owner/shared"));
	must("/models/unload", "owner/shared", 200);
	read_until(fd[1], said, "{\"error\":\"It was asked to stop.\"}");
	close(fd[1]);
	must_end(group_of("owner/shared"));
	assert_int_equal(programs(), 2);
}

/* Twenty at once: one program, and all hear its end. */
static void test_crowd(void **state)
{
	enum { CLIENTS = 20 };
	char said[1 << 14];
	int fd[CLIENTS];
	(void)state;

	let_go(false);
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = ask_for("/api/pull", "owner/shared", true);
	for (int i = 0; i < CLIENTS; i++)
		read_until(fd[i], said, LAST);
	let_go(true);
	for (int i = 0; i < CLIENTS; i++) {
		read_until(fd[i], said, "{\"status\":\"success\"}");
		close(fd[i]);
	}
	must_end(group_of("owner/shared"));
	assert_int_equal(programs(), 1);
}

/* A server that stops leaves nothing behind. */
static void test_stop(void **state)
{
	(void)state;
	must("/models", "owner/stubborn", 200);
	must("/models", "owner/silent", 200);
	const pid_t groups[] = { group_of("owner/stubborn"), group_of("owner/silent") };
	usleep(50000);
	assert_int_equal(child_stop(&server), 0);
	for (int i = 0; i < 2; i++)
		must_end(groups[i]);
	begin();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cancelled),   cmocka_unit_test(test_left),  cmocka_unit_test(test_paths),
		cmocka_unit_test(test_world),       cmocka_unit_test(test_names), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_left_by_all), cmocka_unit_test(test_crowd), cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
