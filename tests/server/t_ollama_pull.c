/* tests/server/t_ollama_pull.c - models that another program fetches for a client: its lines go on, its failures are
 * the request's, and it ends with its client.
 *
 * The program here is a script of this test's own.
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

#include "runtime/host/system.h"
#include "tests/server/said_lines.h"

static const char script[] =
	"#!/bin/sh\n"
	"[ \"$1 $2\" = '--json --' ] || exit 9\n"
	"echo '{\"status\":\"pulling manifest\"}'\n"
	"case $3 in\n"
	"*/good) echo '{\"status\":\"pulling 0123\",\"digest\":\"sha256:0123\",\"total\":10,\"completed\":10}'\n"
	"\techo 'no JSON'; echo '{\"status\":\"success\",\"path\":\"/a/b\"}' ;;\n"
	"*/bad) echo '{\"error\":\"/home/a/b is full\"}'; exit 1 ;;\n"
	"*/dies) kill -9 $$ ;;\n"
	"*/slow) echo $$ >\"$0.pid\"; exec sleep 100 ;;\n"
	"esac\n";
static char script_path[64], pid_path[80];
static struct child server;

static int start(void **state)
{
	(void)state;
	snprintf(script_path, sizeof script_path, "./t_ollama_pull.%d", (int)getpid());
	snprintf(pid_path, sizeof pid_path, "%s.pid", script_path);
	FILE *f = fopen(script_path, "w");
	if (!f || fputs(script, f) < 0 || fclose(f) || chmod(script_path, 0700))
		return 1;
	server = child_start((const char *[]){
		"--no-cache", "--pull-with", script_path, "--stop-timeout", "1", "--sse-ping-interval", "1", "--device",
		"ref", "--threads", "1", "--parallel", "1", NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	unlink(script_path);
	unlink(pid_path);
	return 0;
}

static void test_lines(void **state)
{
	json_t *lines = ask_lines(&server, "/api/pull", "{\"model\":\"hf.co/owner/good\"}");
	(void)state;

	assert_int_equal(json_array_size(lines), 3);
	assert_string_equal(text_at(lines, "0.status"), "pulling manifest");
	assert_string_equal(text_at(lines, "1.digest"), "sha256:0123");
	assert_int_equal((int)number_at(lines, "1.completed"), 10);
	assert_string_equal(text_at(lines, "2.status"), "success");
	assert_null(at(lines, "2.path"));
	json_decref(lines);
	json_t *o = client_json(&server, "/api/pull", "{\"name\":\"owner/good\",\"stream\":false}", 200);
	assert_string_equal(text_at(o, "status"), "success");
	json_decref(o);
}

static void test_failures(void **state)
{
	json_t *lines = ask_lines(&server, "/api/pull", "{\"model\":\"owner/bad\"}");
	(void)state;

	assert_string_equal(text_at(lines, "1.error"), "b is full");
	json_decref(lines);
	json_t *o = client_json(&server, "/api/pull", "{\"model\":\"owner/dies\",\"stream\":false}", 502);
	assert_non_null(strstr(text_at(o, "error"), "status 137"));
	json_decref(o);
	json_decref(client_json(&server, "/api/pull", "{\"model\":\"llama3\"}", 400));
	json_decref(client_json(&server, "/api/pull", "{\"model\":\"-o/b\"}", 400));
	json_decref(client_json(&server, "/api/pull", "{\"model\":\"a/b\",\"insecure\":true}", 400));
	json_decref(client_json(&server, "/api/pull", "{}", 400));
	json_decref(client_json(&server, "/api/pull", "{\"model\":7}", 400));
	json_decref(client_json(&server, "/api/pull", "{\"model\":\"a/b\",\"stream\":7}", 400));
}

/* The connection of a request whose answer is not read yet. */
static int begin(const char *path, const char *body)
{
	char text[400];
	int fd = client_connect(&server, false);

	snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path,
	         strlen(body), body);
	client_send(fd, text, strlen(text));
	return fd;
}

/* Until the server has sent this. */
static void read_until(int fd, const char *words)
{
	char said[1 << 16];
	size_t n = 0;

	for (said[0] = 0; !strstr(said, words); said[n] = 0) {
		const ssize_t got = read(fd, said + n, sizeof said - n - 1);
		if (got <= 0)
			fail_msg("the server has not said %s: %s", words, said);
		n += (size_t)got;
	}
}

/* The process that a slow request runs. */
static pid_t slow_process(int *fd)
{
	int pid = 0;

	unlink(pid_path);
	*fd = begin("/api/pull", "{\"model\":\"owner/slow\"}");
	for (double end = system_seconds() + 20; pid == 0 && system_seconds() < end; usleep(10000)) {
		FILE *f = fopen(pid_path, "r");
		if (f && fscanf(f, "%d", &pid) != 1)
			pid = 0;
		if (f)
			fclose(f);
	}
	assert_true(pid > 0);
	return pid;
}

static void must_end(pid_t pid)
{
	for (double end = system_seconds() + 20; kill(pid, 0) == 0; usleep(10000))
		assert_true(system_seconds() < end);
	assert_int_equal(errno, ESRCH);
}

static void test_leaving(void **state)
{
	int fd;
	pid_t pid = slow_process(&fd);
	(void)state;

	read_until(fd, "{\"status\":\"waiting\"}\n");
	close(fd);
	must_end(pid);
}

#define LONG "{\"prompt\":\"A tale\",\"ignore_eos\":true}"

/* Where nothing comes for some time, there are lines all the same, each an object as all others. */
static void test_waiting(void **state)
{
	int first = begin("/api/generate", LONG), second;
	(void)state;

	/* The one slot is the first request's before the second one comes. */
	read_until(first, "\"done\":false}\n");
	second = begin("/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
	read_until(second, "\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n");
	close(first);
	close(second);
}

/* The last one: the server is asked to stop. */
static void test_stopping(void **state)
{
	int fd, talks = begin("/api/generate", LONG);
	pid_t pid = slow_process(&fd);
	(void)state;

	assert_int_equal(child_stop(&server), 0);
	must_end(pid);
	struct answer a = client_read(fd, 10);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body, "{\"error\":\"The server is stopping.\"}"));
	answer_free(&a);
	close(fd);
	/* So does an answer that had no time to end. */
	a = client_read(talks, 10);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body, "\"done\":false}\n{\"error\":\""));
	assert_null(strstr(a.body, "\"done\":true"));
	answer_free(&a);
	close(talks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),   cmocka_unit_test(test_failures), cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_waiting), cmocka_unit_test(test_stopping),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
