/* tests/server/t_soak.c - 64 clients at once, of which a tenth each leaves in the middle, reads slowly, or is hostile:
 * every other one is told what the server says to it alone, nothing grows, and a server that was killed starts again
 * and says the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/crowd.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"

/* GROWTH_KIB: what the allocator's own choices make of a few thousand requests. */
enum { CLIENTS = 64, WARM_UPS = 2, GROWTH_KIB = 4096 };

#define LINES "The king of the north went to the sea. "
#define PAGE LINES LINES LINES LINES LINES LINES LINES LINES
#define BOOK PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE PAGE

/* All families of endpoints, whole and as events, and all that keeps something of its own. The KV cache has room for
 * few of them at a time, so that answers are set back and computed again. */
static struct ask asks[] = {
	{ "/v1/completions", "{\"prompt\":\"Once upon a time\",\"max_tokens\":24,\"temperature\":0}", 0, NULL },
	{ "/v1/completions",
	  "{\"prompt\":\"The king\",\"max_tokens\":40,\"temperature\":0.9,\"seed\":7,\"stream\":true,\"logprobs\":3}",
	  0, NULL },
	{ "/v1/completions",
	  "{\"prompt\":\"A\",\"max_tokens\":30,\"n\":3,\"temperature\":1.2,\"seed\":1,\"stream\":true}", 0, NULL },
	{ "/v1/completions",
	  "{\"prompt\":\"" PAGE PAGE "\",\"max_tokens\":12,\"stream\":true,\"temperature\":0,\"stop\":[\" the\"]}", 0,
	  NULL },
	{ "/v1/completions",
	  "{\"prompt\":\"" PAGE "Then\",\"max_tokens\":60,\"stream\":true,\"seed\":3,\"repeat_penalty\":1.1,"
	  "\"dry_multiplier\":0.8,\"mirostat\":2}",
	  0, NULL },
	{ "/v1/chat/completions",
	  "{\"messages\":[{\"role\":\"user\",\"content\":\"Who is there?\"}],\"max_tokens\":32,\"seed\":5,"
	  "\"stream\":true,\"stream_options\":{\"include_usage\":true},\"logprobs\":true,\"top_logprobs\":2}",
	  0, NULL },
	{ "/v1/chat/completions",
	  "{\"messages\":[{\"role\":\"user\",\"content\":\"A name\"}],\"max_tokens\":24,\"seed\":2,\"response_format\":"
	  "{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"type\":\"object\",\"properties\":{\"name\":"
	  "{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},\"required\":[\"name\",\"age\"]}}}}",
	  0, NULL },
	{ "/completion",
	  "{\"prompt\":\"Yes or no?\",\"n_predict\":20,\"seed\":4,\"n_probs\":2,\"stream\":true,"
	  "\"grammar\":\"root ::= (\\\" yes\\\" | \\\" no\\\")+\"}",
	  0, NULL },
	{ "/v1/messages",
	  "{\"max_tokens\":24,\"temperature\":0,\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"The "
	  "sea\"}]}",
	  0, NULL },
	{ "/v1/responses", "{\"max_output_tokens\":24,\"temperature\":0,\"stream\":true,\"input\":\"The sea\"}", 0,
	  NULL },
	{ "/v1/embeddings", "{\"input\":[\"The king\",\"" LINES "\"]}", 0, NULL },
	{ "/tokenize", "{\"content\":\"" PAGE "\"}", 0, NULL },
	{ 0 },
};

static const struct ask wrong[] = {
	{ "/v1/completions", "{\"prompt\":\"The", 400, NULL },
	{ "/v1/completions", "[1,2]", 400, NULL },
	{ "/v1/completions", "{\"prompt\":{\"a\":[]},\"max_tokens\":4}", 400, NULL },
	{ "/v1/completions", "{\"prompt\":[999999999],\"max_tokens\":4}", 400, NULL },
	{ "/v1/completions", "{\"prompt\":\"The \xff\xfe king\",\"max_tokens\":4}", 400, NULL },
	{ "/v1/completions", "{\"prompt\":\"A\",\"n\":100000}", 400, NULL },
	{ "/v1/completions", "{\"prompt\":\"A\",\"temperature\":\"hot\"}", 400, NULL },
	{ "/v1/completions", "{\"prompt\":\"" BOOK "\"}", 400, NULL },
	{ "/v1/completions", "{\"prompt\":\"A\",\"grammar\":\"root ::= root root\"}", 400, NULL },
	{ "/v1/chat/completions", "{\"messages\":[{\"role\":\"user\"}]}", 400, NULL },
	{ "/v1/chat/completions",
	  "{\"messages\":[{\"role\":\"user\",\"content\":\"A\"}],\"response_format\":{\"type\":\"regex\",\"pattern\":"
	  "\"(a\"}}",
	  400, NULL },
	{ "/v1/chat/completions", "{\"messages\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 400, NULL },
	{ "/v1/messages", "{\"messages\":7}", 400, NULL },
	{ "/v1/responses", "{\"input\":\"A\",\"previous_response_id\":\"x\"}", 400, NULL },
	{ "/v1/embeddings", "{\"input\":{}}", 400, NULL },
	{ 0 },
};

/* Each event has some kilobytes. */
static const struct ask huge = {
	"/v1/completions",
	"{\"prompt\":\"The\",\"max_tokens\":800,\"ignore_eos\":true,\"stream\":true,\"logprobs\":20,\"n\":1}", 0, NULL
};

static const char *const arguments[] = { "--parallel", "16", "--kv-memory",    "4", "--max-unread", "32",
	                                 "--max-body", "1",  "--read-timeout", "2", "--no-cache",   NULL };

/* What each request is answered with when there is no other. Again: what it was must be said again. */
static void ask_alone(const struct child *server)
{
	for (struct ask *a = asks; a->path; a++) {
		struct answer got = client_ask(server, a->path, NULL, a->body);
		char *said = said_in(&got);
		if (got.status != 200 || !said)
			fail_msg("%s %s: status %d: %s", a->path, a->body, got.status, got.body);
		if (a->alone)
			assert_string_equal(said, a->alone);
		free(a->alone);
		a->alone = said;
		answer_free(&got);
	}
}

static void forget(void)
{
	for (struct ask *a = asks; a->path; a++) {
		free(a->alone);
		a->alone = NULL;
	}
}

/* ---- what a server takes */

static double number(const struct child *c, const char *name)
{
	char line[200];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	snprintf(line, sizeof line, "\n%s", name);
	const char *at = strstr(a.body, line);
	if (!at)
		fail_msg("%s is not in %s", name, a.body);
	double value = atof(at + strcspn(at + 1, " ") + 2);
	answer_free(&a);
	return value;
}

static long resident_kib(const struct child *c)
{
	char path[64], line[200];
	long kib = -1;

	snprintf(path, sizeof path, "/proc/%d/status", (int)c->pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld kB", &kib) == 1)
			break;
	fclose(f);
	assert_true(kib > 0);
	return kib;
}

/* Nobody asks: waits until the server has noticed, and expects it to hold nothing. */
static void check_idle(const struct child *c, int fds)
{
	bool idle = false;

	for (int i = 0; i < 1000 && !idle; i++) {
		idle = number(c, "jitserve_requests_open") <= 1 && number(c, "llamacpp:requests_processing") <= 0 &&
		       number(c, "llamacpp:requests_deferred") <= 0;
		usleep(20000);
		idle = idle && child_fds(c) <= fds;
	}
	if (!idle)
		fail_msg("%.0f requests, %.0f answers, %.0f waiting, %d descriptors, expected at most %d",
		         number(c, "jitserve_requests_open") - 1, number(c, "llamacpp:requests_processing"),
		         number(c, "llamacpp:requests_deferred"), child_fds(c), fds);
	double ended = number(c, "jitserve_answers_ended_total") + number(c, "jitserve_answers_cancelled_total") +
	               number(c, "jitserve_answers_dropped_total") + number(c, "jitserve_answers_failed_total");
	assert_true(number(c, "jitserve_answers_started_total") <= ended);
}

/* ---- the tests */

static double seconds_of_round(void) { return test_full() ? 60 : test_quick() ? 1 : 2; }

static void tell(struct crowd *all, const struct child *server, const long *kib, int rounds)
{
	struct crowd_numbers n;

	crowd_get_numbers(all, &n);
	printf("# answered: %lu; left: %lu; slow: %lu, of them dropped: %lu; hostile: %lu; set back: %.0f\n",
	       n.ended[CROWD_HONEST], n.ended[CROWD_LEAVING], n.ended[CROWD_SLOW], n.dropped, n.ended[CROWD_HOSTILE],
	       number(server, "jitserve_set_back_total"));
	printf("# time between tokens: p50 %.1f ms, p99 %.1f ms, most %.1f ms, of %zu\n", 1e3 * n.gap50, 1e3 * n.gap99,
	       1e3 * n.gap_max, n.gaps);
	printf("# resident, KiB:");
	for (int i = 0; i < rounds; i++)
		printf(" %ld", kib[i]);
	printf("\n");
	assert_true(!test_full() || n.dropped > 0);
	for (int i = 0; i < CROWD_ROLES; i++) {
		assert_true(n.ended[i] > 0);
		assert_int_equal(n.ended[i], n.begun[i]);
	}
}

static void test_crowd(void **state)
{
	enum { ROUNDS = 10 };
	int rounds = test_full() ? ROUNDS : WARM_UPS + 1;
	long kib[ROUNDS];
	struct child server = child_start(arguments);
	(void)state;

	ask_alone(&server);
	ask_alone(&server);
	int fds = child_fds(&server);
	struct crowd *all = crowd_open(&server, CLIENTS, asks, wrong, &huge);
	for (int i = 0; i < rounds; i++) {
		crowd_run(all, seconds_of_round());
		crowd_rest(all);
		check_idle(&server, fds);
		kib[i] = resident_kib(&server);
	}
	tell(all, &server, kib, rounds);
	/* Sanitizers keep what was freed; AddressSanitizer says itself what was not when the server ends. */
	if (!SANITIZED)
		assert_true(kib[rounds - 1] - kib[WARM_UPS - 1] < GROWTH_KIB);
	ask_alone(&server);
	crowd_close(all);
	assert_int_equal(child_stop(&server), 0);
	forget();
}

/* kill -9 while all ask, and while the cache of kernels is being written. */
static void test_killed(void **state)
{
	char cache[] = "/tmp/jitrun-soak-XXXXXX", command[200];
	const char *args[] = { "--parallel", "16", "--max-unread", "32", "--max-body", "1", "--cache", cache, NULL };
	(void)state;

	assert_non_null(mkdtemp(cache));
	for (int i = 0; i < 3; i++) {
		struct child server = child_start(args);
		int status;
		if (i < 2) {
			if (i)
				ask_alone(&server);
			struct crowd *all = crowd_open(&server, CLIENTS, asks, wrong, &huge);
			crowd_run(all, i ? 0.3 : 0.05);
			kill(server.pid, SIGKILL);
			waitpid(server.pid, &status, 0);
			close(server.said);
			crowd_abandon(all);
			crowd_close(all);
		} else {
			ask_alone(&server);
			assert_int_equal(child_stop(&server), 0);
		}
	}
	snprintf(command, sizeof command, "./jitwarm verify --cache %s >/dev/null 2>&1", cache);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "rm -rf %s", cache);
	assert_int_equal(system(command), 0);
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_crowd), cmocka_unit_test(test_killed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
