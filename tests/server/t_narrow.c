/* tests/server/t_narrow.c - jitserve --batch N: however few tokens a pass has, every answer comes, and it is the one
 * that passes of the usual width give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

enum { CLIENTS = 5 };

/* Prompts by their number of tokens; one is longer than any of these passes. */
static const unsigned lengths[CLIENTS] = { 9, 16, 3, 12, 37 };

/* Asks for an answer with the probabilities of its tokens, on a connection of its own; returns that. */
static int ask(const struct child *c, unsigned number)
{
	char body[1000], request[1400];
	int fd = client_connect(c, false), at = snprintf(body, sizeof body, "{\"prompt\":[");

	for (unsigned i = 0; i < lengths[number]; i++)
		at += snprintf(body + at, sizeof body - (size_t)at, "%s%u", i ? "," : "",
		               300 + (i * 7 + 13 * number) % 600);
	snprintf(body + at, sizeof body - (size_t)at,
	         "],\"n_predict\":6,\"seed\":%u,\"temperature\":0.8,\"n_probs\":3,\"ignore_eos\":true}", number);
	snprintf(request, sizeof request,
	         "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
	client_send(fd, request, strlen(request));
	return fd;
}

/* What must have the same bits: how likely each token was, and which it is. */
static char *bits_of(int fd, const char *batch)
{
	struct answer a = client_read(fd, 60);

	if (a.status != 200)
		fail_msg("--batch %s: %d %s", batch, a.status, a.body ? a.body : "no answer");
	json_t *o = json_loads(a.body, 0, NULL);
	char *text = json_dumps(json_object_get(o, "completion_probabilities"), JSON_REAL_PRECISION(17));
	assert_non_null(text);
	assert_true(strlen(text) > 100);
	json_decref(o);
	answer_free(&a);
	close(fd);
	return text;
}

/* All at once. */
static void ask_all(const char *batch, char *bits[CLIENTS])
{
	const char *const arguments[] = { "--no-cache", "--parallel", "5", "--threads", "1", "--batch", batch, NULL };
	struct child c = child_start(arguments);
	int fd[CLIENTS];

	for (unsigned i = 0; i < CLIENTS; i++)
		fd[i] = ask(&c, i);
	for (unsigned i = 0; i < CLIENTS; i++)
		bits[i] = bits_of(fd[i], batch);
	assert_int_equal(child_stop(&c), 0);
}

static void narrow_passes_give_whole_answers(void **state)
{
	char *usual[CLIENTS], *bits[CLIENTS], batch[16];
	(void)state;

	ask_all("0", usual);
	for (int n = 1; n <= 17; n += test_quick() && n > 1 ? 5 : 1) {
		snprintf(batch, sizeof batch, "%d", n);
		ask_all(batch, bits);
		for (int i = 0; i < CLIENTS; i++) {
			assert_string_equal(bits[i], usual[i]);
			free(bits[i]);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		free(usual[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(narrow_passes_give_whole_answers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
