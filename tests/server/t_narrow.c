/* tests/server/t_narrow.c - what must not change an answer of jitserve. --batch N: however few tokens a pass has, every
 * answer comes, and it is the one that passes of the usual width give. --draft MODEL: whatever a draft model proposes.
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
	         "],\"n_predict\":12,\"seed\":%u,\"temperature\":0.8,\"n_probs\":3,\"ignore_eos\":true}", number);
	snprintf(request, sizeof request,
	         "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
	client_send(fd, request, strlen(request));
	return fd;
}

static json_int_t drafted; /* tokens of draft models, as the answers count them */

/* What must have the same bits: how likely each token was, and which it is. */
static char *bits_of(int fd, const char *what)
{
	struct answer a = client_read(fd, 60);

	if (a.status != 200)
		fail_msg("%s: %d %s", what, a.status, a.body ? a.body : "no answer");
	json_t *o = json_loads(a.body, 0, NULL);
	const json_t *timings = json_object_get(o, "timings");
	const json_int_t n = json_integer_value(json_object_get(timings, "draft_model_n"));
	drafted += n;
	assert_true(json_integer_value(json_object_get(timings, "draft_model_n_accepted")) <= n);
	if (json_object_get(timings, "draft_model_n"))
		assert_true(json_number_value(json_object_get(timings, "draft_model_ms")) > 0 &&
		            json_object_get(timings, "draft_model_gain"));
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

static double metric(const struct child *c, const char *name)
{
	char line[200];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	snprintf(line, sizeof line, "\n%s{model=\"tale-q8_0\"} ", name);
	const char *at = strstr(a.body, line);
	if (!at)
		fail_msg("%s is not in %s", name, a.body);
	const double value = atof(at + strlen(line));
	answer_free(&a);
	return value;
}

/* One client after the other, and all at once; the draft model is the model itself, with a cache of other numbers. */
static void check_draft(char *const usual[CLIENTS], const char *const *arguments, bool proposes)
{
	struct child c = child_start(arguments);
	int fd[CLIENTS];

	drafted = 0;
	for (unsigned i = 0; i < 2 * CLIENTS; i++) {
		char *bits = bits_of(ask(&c, i % CLIENTS), "--draft");
		assert_string_equal(bits, usual[i % CLIENTS]);
		free(bits);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		fd[i] = ask(&c, i);
	for (unsigned i = 0; i < CLIENTS; i++) {
		char *bits = bits_of(fd[i], "--draft");
		assert_string_equal(bits, usual[i]);
		free(bits);
	}
	const double tokens = metric(&c, "jitserve_draft_model_tokens_total");
	assert_true(tokens >= 0 && (json_int_t)tokens == drafted);
	assert_true(metric(&c, "jitserve_draft_model_tokens_accepted_total") <= tokens);
	assert_true(metric(&c, "jitserve_draft_model_seconds_total") >= 0);
	if (proposes) {
		assert_true(tokens > 0 && metric(&c, "jitserve_draft_model_requests_total") > 0);
		assert_true(metric(&c, "jitserve_draft_model_tokens_accepted_total") > 0);
		assert_true(metric(&c, "jitserve_draft_model_seconds_total") > 0);
	}
	assert_int_equal(child_stop(&c), 0);
}

static void draft_models_change_nothing(void **state)
{
	char *usual[CLIENTS], path[1024];
	(void)state;

	source_path(path, "models/tale-q8_0.gguf");
	ask_all("0", usual);
	const char *const fixed[] = {
		"--no-cache", "--parallel",
		"5",          "--threads",
		"1",          "--speculate",
		"4",          "-md",
		path,         "--draft-device",
		"cpu",        "--draft-kv-type",
		"q8_0",       "--draft-context",
		"128",        "--draft-max",
		"6",          "--draft-min",
		"2",          "--draft-p-min",
		"0.001",      NULL
	};
	const char *const measured[] = { "--no-cache", "--parallel", "5", "--threads", "1", "--draft", path, NULL };
	check_draft(usual, fixed, true);
	check_draft(usual, measured, false);
	for (int i = 0; i < CLIENTS; i++)
		free(usual[i]);
}

static void draft_models_are_refused(void **state)
{
	static const struct {
		bool model;
		const char *arguments, *says;
	} rows[] = {
		{ true, "--draft 16", "--draft MODEL takes a model; --draft-max N says how many" },
		{ true, "--draft-max 3", "--draft-max, --draft-min and --draft-p-min go with --draft MODEL" },
		{ true, "--draft none.gguf --speculate off", "--draft goes without --speculate off" },
		{ true, "--draft /none.gguf", "--draft: /none.gguf" },
		{ false, "--models-dir . --draft none.gguf", "--draft needs a MODEL on the command line" },
		{ true, "--ranks fork:2 --draft none.gguf", "--draft goes without --ranks" },
	};
	char said[4096];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int status = child_says(rows[i].model, rows[i].arguments, said, sizeof said);
		if (status == 0 || !strstr(said, rows[i].says))
			fail_msg("%s: status %d, expected \"%s\": %s", rows[i].arguments, status, rows[i].says, said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(narrow_passes_give_whole_answers),
		                            cmocka_unit_test(draft_models_change_nothing),
		                            cmocka_unit_test(draft_models_are_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
