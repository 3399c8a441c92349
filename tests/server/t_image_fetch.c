/* tests/server/t_image_fetch.c - pictures that requests name by http and https addresses: which are allowed, the
 * program that fetches them, and what becomes of a request when it fails, hangs, or says too much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/server/json_at.h"
#include "tests/support/seeing_folder.h"

enum { BODY = 1 << 12 };

static char folder[] = "/tmp/t_image_fetch-XXXXXX", model[64], program[64], log_path[64];
static struct child server;

/* It gets --print, --quiet, --print-kib KIB, -- and the address. */
static const char script[] =
	"#!/bin/sh\n"
	"cd \"${0%/*}\"\n"
	"echo \"$*\" >>log\n"
	"case $6 in\n"
	"*/a.png*) cat a.png ;;\n"
	"*/none) echo 'jitpull: pics.example answers with status 404.' >&2; exit 1 ;;\n"
	"*/mute) exit 7 ;;\n"
	"*/empty) ;;\n"
	"*/text) echo this is no picture ;;\n"
	"*/slow) echo $$ >>slow; exec sleep 1000 ;;\n"
	"*/endless) exec cat /dev/zero ;;\n"
	"esac\n";

static int begin(void **state)
{
	static const char *arguments[] = {
		model,
		"--no-cache",
		"--context",
		"512",
		"--threads",
		"2",
		"--max-images",
		"4",
		"--image-hosts",
		"pics.example, *.wide.example,other.example:81",
		"--image-with",
		program,
		NULL
	};
	char path[100];
	size_t n;
	(void)state;

	assert_non_null(mkdtemp(folder));
	snprintf(model, sizeof model, "%s/m-XXXXXX", folder);
	if (!seeing_folder(model, "see-qwen3vl-a", "<|image_pad|>", SEEING_TEMPLATE("<|image_pad|>"))) {
		rmdir(folder);
		printf("# skipped: there is no see-qwen3vl-a\n");
		exit(77);
	}
	uint8_t *bytes = seeing_picture("see-qwen3vl-a", 0, &n);
	snprintf(path, sizeof path, "%s/a.png", folder);
	FILE *f = fopen(path, "wb");
	assert_true(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
	free(bytes);
	snprintf(program, sizeof program, "%s/fetch", folder);
	f = fopen(program, "w");
	assert_true(f && fputs(script, f) >= 0 && fclose(f) == 0 && chmod(program, 0700) == 0);
	snprintf(log_path, sizeof log_path, "%s/log", folder);
	server = child_start_without(arguments);
	return 0;
}

static int end(void **state)
{
	char command[100];
	(void)state;

	snprintf(command, sizeof command, "rm -rf %s", folder);
	const int status = child_stop(&server);
	return system(command) || status;
}

static char *body_of(const char *path, const char *first, const char *second)
{
	char *body = malloc(BODY), parts[2][BODY / 4];
	const char *urls[] = { first, second };

	for (int i = 0; i < 2; i++)
		snprintf(parts[i], sizeof parts[i],
		         strncmp(path, "/v1/messages", 12) == 0
		                 ? ",{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"%s\"}}"
		         : strcmp(path, "/v1/responses") == 0
		                 ? ",{\"type\":\"input_image\",\"image_url\":\"%s\"}"
		                 : ",{\"type\":\"image_url\",\"image_url\":{\"url\":\"%s\"}}",
		         urls[i] ? urls[i] : "");
	snprintf(body, BODY,
	         "{\"%s\":4,\"temperature\":0,\"%s\":[{\"role\":\"user\",\"content\":[{\"type\":\"%stext\","
	         "\"text\":\"what\"}%s%s]}]}",
	         strcmp(path, "/v1/responses") == 0 ? "max_output_tokens" : "max_tokens",
	         strcmp(path, "/v1/responses") == 0 ? "input" : "messages",
	         strcmp(path, "/v1/responses") == 0 ? "input_" : "", parts[0], second ? parts[1] : "");
	return body;
}

static json_t *ask(const char *path, const char *first, const char *second, int status)
{
	char *body = body_of(path, first, second);
	json_t *o = client_json(&server, path, body, status);

	free(body);
	return o;
}

static unsigned runs(void)
{
	char line[4000];
	unsigned n = 0;
	FILE *f = fopen(log_path, "r");

	while (f && fgets(line, sizeof line, f))
		n++;
	if (f)
		fclose(f);
	return n;
}

/* In each API the same answer; each address is fetched once for a request. */
static void test_fetched(void **state)
{
	char line[300] = "";
	(void)state;

	json_t *o = ask("/v1/chat/completions", "https://pics.example/a.png", NULL, 200);
	const char *wanted = text_at(o, "choices/0/message/content");
	assert_int_equal(runs(), 1);
	FILE *f = fopen(log_path, "r");
	assert_true(f && fgets(line, sizeof line, f));
	fclose(f);
	assert_string_equal(line, "--print --quiet --print-kib 65536 -- https://pics.example/a.png\n");
	json_t *m = ask("/v1/messages", "HTTP://Pics.Example:8080/a.png?size=1", NULL, 200),
	       *r = ask("/v1/responses", "http://a.b.wide.example/a.png#x", NULL, 200),
	       *two = ask("/v1/chat/completions", "http://other.example:81/a.png", "http://other.example:81/a.png",
	                  200);
	assert_string_equal(text_at(m, "content/0/text"), wanted);
	assert_string_equal(text_at(r, "output/0/content/0/text"), wanted);
	assert_true(json_integer_value(at(two, "usage/prompt_tokens")) >
	            json_integer_value(at(o, "usage/prompt_tokens")));
	assert_int_equal(runs(), 4);
	json_decref(two);
	two = ask("/v1/messages/count_tokens", "https://pics.example/a.png", NULL, 200);
	assert_int_equal(json_integer_value(at(two, "input_tokens")), json_integer_value(at(o, "usage/prompt_tokens")));
	json_decref(two);
	json_decref(m);
	json_decref(r);
	json_decref(o);
}

static const struct {
	const char *url, *why;
} refusals[] = {
	{ "https://evil.example/a.png", "--image-hosts" },
	{ "https://pics.example.evil.example/a.png", "--image-hosts" },
	{ "https://evil.example/?https://pics.example/a.png", "--image-hosts" },
	{ "https://pics.example@evil.example/a.png", "--image-hosts" },
	{ "https://evil.example#@pics.example/a.png", "--image-hosts" },
	{ "https://evil.example\\\\@pics.example/a.png", "--image-hosts" },
	{ "http://wide.example/a.png", "--image-hosts" },
	{ "http://xwide.example/a.png", "--image-hosts" },
	{ "http://other.example/a.png", "--image-hosts" },
	{ "http://other.example:8181/a.png", "--image-hosts" },
	{ "http:///a.png", "--image-hosts" },
	{ "http:a.png", "--image-hosts" },
	{ "https://pics.example/none", "pics.example could not be fetched: pics.example answers with status 404" },
	{ "https://pics.example/mute", "the program failed" },
	{ "https://pics.example/empty", "without data" },
	{ "https://pics.example/text", "is no picture" },
	{ "https://pics.example/endless", "it is too large" },
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const unsigned before = runs();
		char *body = body_of("/v1/chat/completions", refusals[i].url, NULL);
		struct answer a = client_ask(&server, "/v1/chat/completions", NULL, body);
		if (a.status != 400 || !strstr(a.body, refusals[i].why))
			fail_msg("%s: status %d: %s", refusals[i].url, a.status, a.body);
		assert_int_equal(runs() > before, strncmp(refusals[i].url, "https://pics.example/", 21) == 0);
		answer_free(&a);
		free(body);
	}
}

/* While a program hangs, others are answered; when its client leaves, it is ended. */
static void test_slow(void **state)
{
	char head[200], path[100], line[40] = "";
	char *body = body_of("/v1/chat/completions", "https://pics.example/slow", NULL);
	(void)state;

	const int fd = client_connect(&server, false),
		  n = snprintf(head, sizeof head,
	                       "POST /v1/chat/completions HTTP/1.1\r\nHost: "
	                       "localhost\r\nContent-Length: %zu\r\n\r\n",
	                       strlen(body));
	client_send(fd, head, (size_t)n);
	client_send(fd, body, strlen(body));
	free(body);
	snprintf(path, sizeof path, "%s/slow", folder);
	FILE *f = NULL;
	for (int i = 0; i < 1000 && !(f && fgets(line, sizeof line, f)); i++) {
		usleep(10000);
		if (f)
			fclose(f);
		f = fopen(path, "r");
	}
	assert_non_null(f);
	fclose(f);
	for (int i = 0; i < 8; i++)
		json_decref(ask("/v1/chat/completions", "https://pics.example/a.png", NULL, 200));
	close(fd);
	snprintf(path, sizeof path, "/proc/%ld", strtol(line, NULL, 10));
	for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++)
		usleep(10000);
	assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fetched), cmocka_unit_test(test_refused),
		                            cmocka_unit_test(test_slow) };

	return cmocka_run_group_tests(tests, begin, end);
}
