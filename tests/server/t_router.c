/* tests/server/t_router.c - models that come, are opened and leave by request, and who hears of it: clients that
 * listen, that leave, and that never read; models that are fetched while the server runs.
 *
 * The program that fetches is a script of this test's own, which writes into a cache of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/said_lines.h"
#include "tests/support/sanitized.h"

/* A repository in the cache, with a file of weights. */
static const char script[] =
	"#!/bin/sh\n"
	"[ \"$1 $2\" = '--json --' ] || exit 9\n"
	"name=${3#hf.co/}; name=${name%%:*}\n"
	"put() {\n"
	"\tat=$HF_HUB_CACHE/models--$(echo \"$name\" | sed 's,/,--,')/snapshots/0123\n"
	"\tmkdir -p \"$at\" && cp \"$TALE\" \"$at/$1\"\n"
	"}\n"
	"end() { echo '{\"status\":\"success\",\"path\":\"'\"$at/$1\"'\"}'; }\n"
	"echo '{\"status\":\"pulling manifest\"}'\n"
	"case $3 in\n"
	"*/good*) echo '{\"status\":\"pulling "
	"01\",\"digest\":\"sha256:01\",\"file\":\"a.gguf\",\"total\":9,\"completed\":9}'\n"
	"\tput tale-Q8_0.gguf; end tale-Q8_0.gguf ;;\n"
	"*/two*) put tale-Q4_K_M.gguf; put tale-Q8_0.gguf; end tale-Q8_0.gguf ;;\n"
	"*/aside) ln -sf \"$TALE\" \"$HF_HUB_CACHE/../aside.gguf\"\n"
	"\techo '{\"status\":\"success\",\"path\":\"'\"$HF_HUB_CACHE/../aside.gguf\"'\"}' ;;\n"
	"*/bad) echo '{\"error\":\"/home/a/b is full\"}'; exit 1 ;;\n"
	"*/slow) echo '{\"status\":\"pulling 01\",\"digest\":\"sha256:01\",\"total\":9,\"completed\":1}'; exec sleep "
	"100 ;;\n"
	"*/flood) i=0; while [ $i -lt 6000 ]; do i=$((i + 1))\n"
	"\techo '{\"status\":\"a\",\"file\":\"'$((i % "
	"64))'-of-a-file-with-a-long-name\",\"total\":9,\"completed\":9}'\n"
	"\tdone; put tale-Q8_0.gguf; end tale-Q8_0.gguf; echo '{\"error\":\"a\"}' ;;\n"
	"esac\n";
static char folder[] = "/tmp/jitrun-router-XXXXXX", program[64], hub[64];
static struct child server;

static int start(void **state)
{
	char path[1024], model[4096];
	(void)state;

	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof program, "%s/pull", folder);
	snprintf(hub, sizeof hub, "%s/hub", folder);
	FILE *f = fopen(program, "w");
	if (!f || fputs(script, f) < 0 || fclose(f) || chmod(program, 0700) || mkdir(hub, 0700))
		return 1;
	assert_non_null(realpath(source_path(path, "models/tale-q8_0.gguf"), model));
	setenv("HF_HUB_CACHE", hub, 1);
	setenv("TALE", model, 1);
	server = child_start_without((const char *[]){
		"--no-cache", "--pull-with", program, "--kv-memory", "8", "--threads", "1", "--no-replay",
		"--sse-ping-interval", "1", "--keep-alive", "1h", "--models-max", "8", "--max-unread", "64", NULL });
	return 0;
}

static int stop(void **state)
{
	char command[100];
	(void)state;

	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- listening */

struct listener {
	int fd;
	char said[1 << 18];
	size_t n, from; /* from: what was waited for ends there */
	bool ended;
};

static void send_get(int fd, const char *method)
{
	char text[100];

	snprintf(text, sizeof text, "%s /models/sse HTTP/1.1\r\nHost: localhost\r\n\r\n", method);
	client_send(fd, text, strlen(text));
}

static bool hear(struct listener *l)
{
	const ssize_t n = read(l->fd, l->said + l->n, sizeof l->said - l->n - 1);

	if (n > 0)
		l->n += (size_t)n;
	l->said[l->n] = 0;
	l->ended = n == 0 || (n < 0 && errno == ECONNRESET);
	return n > 0;
}

/* Until this is said behind what was heard last. */
static void await(struct listener *l, const char *words)
{
	const char *at;

	while (!(at = strstr(l->said + l->from, words)))
		if (!hear(l))
			fail_msg("nobody has said %s: %s", words, l->said + l->from);
	l->from = (size_t)(at - l->said) + strlen(words);
}

static struct listener *listen_to(const struct child *c)
{
	static const struct timeval patience = { .tv_sec = 30 };
	struct listener *l = calloc(1, sizeof *l);

	assert_non_null(l);
	l->fd = client_connect(c, false);
	setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	send_get(l->fd, "GET");
	await(l, "text/event-stream");
	await(l, ": events of models\n\n");
	return l;
}

static void leave(struct listener *l)
{
	close(l->fd);
	free(l);
}

/* ---- asking */

static json_t *post(const char *path, const char *name, int status)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\"}", name);
	return client_json(&server, path, body, status);
}

static void must(const char *path, const char *name, int status, const char *says)
{
	json_t *o = post(path, name, status);
	char *text = json_dumps(o, JSON_COMPACT);

	if (!text || !strstr(text, says))
		fail_msg("%s %s: %s, expected %s", path, name, text, says);
	free(text);
	json_decref(o);
}

static void must_do(const char *path, const char *name) { must(path, name, 200, "{\"success\":true}"); }

static void must_answer(const char *name, int status)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"prompt\":\"The king\",\"max_tokens\":2}", name);
	json_decref(client_json(&server, "/v1/completions", body, status));
}

/* The status of a model in the list; "": it is not there. */
static void listed(char out[40], const char *name)
{
	json_t *o = client_json(&server, "/models", NULL, 200), *one;
	size_t i;

	out[0] = 0;
	json_array_foreach(json_object_get(o, "data"), i, one) if (strcmp(text_at(one, "id"), name) == 0)
		snprintf(out, 40, "%s", text_at(one, "status.value"));
	json_decref(o);
}

static void must_be(const char *name, const char *status)
{
	char is[40] = "";

	for (int i = 0; i < 1000; i++) {
		listed(is, name);
		if (strcmp(is, status) == 0)
			return;
		usleep(10000);
	}
	fail_msg("%s is \"%s\", expected \"%s\"", name, is, status);
}

/* Its status, and what is said. */
static int delete (const char *query, const char *says)
{
	char text[300];
	const int fd = client_connect(&server, false);

	snprintf(text, sizeof text, "DELETE /models%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", query);
	client_send(fd, text, strlen(text));
	struct answer a = client_read(fd, 30);
	const int status = a.status;
	if (!strstr(a.body ? a.body : "", says))
		fail_msg("DELETE %s: %s", query, a.body);
	answer_free(&a);
	close(fd);
	return status;
}

/* ---- the tests: the first ones have no model yet */

#define GOOD "owner/good/tale-Q8_0"

static void test_fetch(void **state)
{
	struct listener *l = listen_to(&server);
	(void)state;

	must_answer("hf.co/owner/good", 404);
	must_do("/models", "hf.co/owner/good:Q8_0");
	await(l, "data: {\"model\":\"hf.co/owner/good:Q8_0\",\"event\":\"model_status\",\"data\":"
	         "{\"status\":\"downloading\"}}\n\n");
	await(l, "\"event\":\"download_progress\",\"data\":{\"progress\":{\"a.gguf\":{\"done\":9,\"total\":9}}}}\n\n");
	await(l, "data: {\"model\":\"*\",\"event\":\"models_reload\"}\n\n");
	await(l, "data: {\"model\":\"hf.co/owner/good:Q8_0\",\"event\":\"download_finished\"}\n\n");
	must_be(GOOD, "unloaded");
	static const char *const names[] = {
		"hf.co/owner/good:Q8_0", "owner/good", "hf.co/owner/good", GOOD, "good:q8_0", "tale-Q8_0",
		"OWNER/GOOD:latest"
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		must_answer(names[i], 200);
	must_answer("hf.co/owner/good:Q4_0", 404);
	must_answer("hf.co/owner/other", 404);
	must("/models", "hf.co/owner/good", 400, "is here already");
	must("/models", "good", 400, "OWNER/NAME");
	must("/models", "-o/b", 400, "OWNER/NAME");
	json_decref(client_json(&server, "/models", "{}", 400));
	json_decref(client_json(&server, "/models", "{\"model\":7}", 400));
	json_decref(client_json(&server, "/models", "{\"model\":\"\"}", 400));
	leave(l);
}

/* As ollama's clients do it; and a name that fits two files is that of the file that was loaded. */
static void test_pull(void **state)
{
	json_t *lines = ask_lines(&server, "/api/pull", "{\"model\":\"hf.co/owner/two\"}");
	(void)state;

	/* A slow machine may be told in between that it waits. */
	assert_string_equal(text_at(json_array_get(lines, json_array_size(lines) - 1), "status"), "success");
	assert_true(json_array_size(lines) > 1);
	json_decref(lines);
	must_be("owner/two/tale-Q4_K_M", "unloaded");
	/* Of the server itself, as llama.cpp's has it: nothing is loaded for it. */
	json_t *props = client_json(&server, "/props", NULL, 200);
	assert_string_equal(text_at(props, "role"), "router");
	assert_int_equal(json_integer_value(json_object_get(props, "max_instances")), 8);
	assert_true(json_is_true(json_object_get(props, "models_autoload")));
	json_decref(props);
	must_be("owner/two/tale-Q4_K_M", "unloaded");
	must_be("owner/two/tale-Q8_0", "unloaded");
	props = client_json(&server, "/props?model=owner/two/tale-Q4_K_M", NULL, 200);
	assert_null(json_object_get(props, "role"));
	assert_non_null(json_object_get(props, "total_slots"));
	json_decref(props);
	must_be("owner/two/tale-Q4_K_M", "loaded");
	must_answer("hf.co/owner/two:Q4_K_M", 200);
	must_be("owner/two/tale-Q8_0", "unloaded");
	must_be("owner/two/tale-Q4_K_M", "loaded");
	must_answer("hf.co/owner/two", 200);
	must_be("owner/two/tale-Q8_0", "loaded");
	must_answer("owner/two", 200); /* which is the same name */
	json_decref(client_json(&server, "/api/show", "{\"model\":\"hf.co/owner/two:Q8_0\"}", 200));
	/* it may lie anywhere */
	json_decref(client_json(&server, "/api/pull", "{\"model\":\"owner/aside\",\"stream\":false}", 200));
	must_answer("owner/aside", 200);
	/* what others put into the cache is there, and goes */
	char from[200], to[200];
	snprintf(from, sizeof from, "%s/models--owner--two/snapshots/0123/tale-Q4_K_M.gguf", hub);
	snprintf(to, sizeof to, "%s/models--owner--two/snapshots/0123/tale-Q5_0.gguf", hub);
	assert_int_equal(rename(from, to), 0);
	must_answer("owner/two:Q5_0", 200);
	must_be("owner/two/tale-Q4_K_M", "");
	must_answer("owner/two:Q4_K_M", 404);
}

static void test_fetch_fails(void **state)
{
	struct listener *l = listen_to(&server);
	(void)state;

	must_do("/models", "owner/bad");
	await(l, "{\"model\":\"owner/bad\",\"event\":\"download_failed\",\"data\":{\"message\":\"b is full\"}}\n\n");
	must_do("/models", "owner/slow");
	must_be("owner/slow", "downloading");
	must("/models", "owner/slow", 400, "fetched already");
	must("/models", "hf.co/owner/slow", 400, "fetched already");
	must("/models", "https://www.huggingface.co/Owner/Slow/", 400, "fetched already");
	must("/models", "owner/slow:latest", 400, "fetched already");
	must_do("/models/unload", "hf.co/owner/slow");
	await(l, "{\"model\":\"owner/slow\",\"event\":\"download_failed\"");
	must_be("owner/slow", "");
	must_do("/models", "owner/slow");
	must_be("owner/slow", "downloading");
	assert_int_equal(delete ("?model=owner/slow", "true"), 200);
	must_be("owner/slow", "");
	assert_int_equal(delete ("?model=none", "There is no model"), 404);
	assert_int_equal(delete ("?model=owner%2Fgood", "jitrun rm"), 403);
	assert_int_equal(delete ("", "model is missing"), 400);
	leave(l);
}

static void test_load(void **state)
{
	struct listener *l = listen_to(&server);
	(void)state;

	must("/models/load", "none", 404, "There is no model");
	must("/models/unload", "none", 400, "There is no model");
	must_be(GOOD, "loaded");
	must("/models/load", GOOD, 400, "loaded already");
	for (int i = 0; i < 3; i++) {
		must_do("/models/unload", i ? "owner/good" : GOOD);
		await(l, "data: {\"model\":\"" GOOD "\",\"event\":\"status_change\",\"data\":"
		         "{\"status\":\"unloaded\",\"exit_code\":0}}\n\n");
		must("/models/unload", GOOD, 400, "not loaded");
		must_do("/models/load", GOOD);
		await(l, "data: {\"model\":\"" GOOD
		         "\",\"event\":\"model_status\",\"data\":{\"status\":\"loading\"}}\n\n");
		await(l, "\"event\":\"status_change\",\"data\":{\"status\":\"loading\",\"progress\":{\"stages\":"
		         "[\"text_model\"],\"current\":\"text_model\",\"value\":1.0}}}\n\n");
		await(l, "\"event\":\"status_change\",\"data\":{\"status\":\"loaded\",\"info\":{\"meta\":{");
	}
	leave(l);
}

/* One that is no model any more. */
static void test_load_fails(void **state)
{
	char path[200];
	(void)state;

	snprintf(path, sizeof path, "%s/models--owner--two/snapshots/0123/tale-Q8_0.gguf", hub);
	must_do("/models/unload", "owner/two/tale-Q8_0");
	must_be("owner/two/tale-Q8_0", "unloaded");
	assert_int_equal(unlink(path), 0);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("GGUF", f);
	fclose(f);
	struct listener *l = listen_to(&server);
	json_decref(post("/models/load", "owner/two/tale-Q8_0", 500));
	await(l, "\"status\":\"loading\"");
	await(l, "\"status\":\"unloaded\",\"exit_code\":1");
	leave(l);
}

static void test_many_and_leaving(void **state)
{
	enum { MANY = 60 };
	struct listener *l[MANY];
	const int fds = child_fds(&server);
	int head = client_connect(&server, false);
	(void)state;

	for (int i = 0; i < MANY; i++)
		l[i] = listen_to(&server);
	for (int i = 0; i < MANY; i += 2) {
		close(l[i]->fd);
		l[i]->fd = -1;
	}
	must_do("/models/unload", GOOD);
	must_do("/models/load", GOOD);
	for (int i = 0; i < MANY; i++) {
		if (l[i]->fd >= 0) {
			await(l[i], "\"status\":\"loaded\"");
			await(l[i], ": alive\n\n"); /* and then nothing for some time */
		}
		leave(l[i]);
	}
	/* who asks for the head alone has no stream */
	send_get(head, "HEAD");
	send_get(head, "HEAD");
	struct listener h = { .fd = head };
	await(&h, "200 OK");
	await(&h, "200 OK");
	close(head);
	/* without another request, which would wake the HTTP library's threads */
	for (int i = 0; i < 1000 && child_fds(&server) > fds; i++)
		usleep(10000);
	if (child_fds(&server) > fds)
		fail_msg("%d descriptors became %d", fds, child_fds(&server));
}

static long resident_kib(void)
{
	char path[40], line[200];
	long kib = -1;

	snprintf(path, sizeof path, "/proc/%d/status", (int)server.pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* 6 000 events of 4 KB for one who reads nothing of them, beside one who does. */
static void test_never_reads(void **state)
{
	enum { ROOM_KIB = 12 << 10 };
	const int deaf = client_connect(&server, true);
	char byte[4096];
	ssize_t n;
	size_t all = 0;
	(void)state;

	send_get(deaf, "GET");
	assert_int_equal(recv(deaf, byte, 1, 0), 1);
	const long before = resident_kib();
	json_decref(client_json(&server, "/api/pull", "{\"model\":\"owner/flood\",\"stream\":false}", 200));
	const long after = resident_kib();
	if (!SANITIZED && after > before + ROOM_KIB)
		fail_msg("%ld KiB became %ld", before, after);
	/* It was dropped: what was on its way is there, and no end of the stream. */
	while ((n = recv(deaf, byte, sizeof byte, 0)) > 0)
		all += (size_t)n;
	assert_true(all < 4 << 20);
	close(deaf);
	must_answer("owner/flood", 200);
}

static void test_stop(void **state)
{
	struct listener *l = listen_to(&server);
	const double begun = now();
	(void)state;

	assert_int_equal(child_stop(&server), 0);
	assert_true(now() - begun < 8); /* nobody waits for those who listen */
	while (hear(l))
		;
	assert_true(l->ended);
	assert_non_null(strstr(l->said, "\r\n0\r\n\r\n"));
	leave(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {

		cmocka_unit_test(test_fetch),       cmocka_unit_test(test_pull),
		cmocka_unit_test(test_fetch_fails), cmocka_unit_test(test_load),
		cmocka_unit_test(test_load_fails),  cmocka_unit_test(test_many_and_leaving),
		cmocka_unit_test(test_never_reads), cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
