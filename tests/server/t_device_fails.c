/* tests/server/t_device_fails.c - a card that fails for good under jitserve: a fault, and a launch that never ends, of
 * a card of the fake driver for AMD's; the server that goes on without it, that ends, and that goes on on the CPU.
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

static char library[4096], folder[64];
static char own_model[128]; /* "": the one that comes with the sources */
static const char *inject, *patience;

static void use_fake_driver(void)
{
	const char *asan = getenv("ASAN_OPTIONS");
	char text[1024];

	snprintf(text, sizeof text, "%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "");
	setenv("ASAN_OPTIONS", text, 1);
	setenv("JITRUN_AMD_THUNK", "ioctl", 1);
	setenv("FAKE_KFD", "gfx1101 bar=small vram=16384 cus=4 kfd=18", 1);
	setenv("FAKE_KFD_INJECT", inject, 1);
	setenv("JITRUN_CARD_PATIENCE", patience, 1);
	snprintf(text, sizeof text, "%s/log", folder);
	setenv("FAKE_KFD_LOG", text, 1);
	snprintf(text, sizeof text, "%s/root", folder);
	setenv("FAKE_KFD_DIR", text, 1);
	setenv("LD_PRELOAD", library, 1);
}

static void begin(const char *what, const char *seconds)
{
	if (!realpath("tests/fake_kfd/.libs/fake_kfd.so", library)) {
		printf("# skipped: tests/fake_kfd/.libs/fake_kfd.so is not there\n");
		skip();
	}
	inject = what;
	patience = seconds;
	strcpy(folder, "/tmp/t_device_fails-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static const char question[] = "{\"model\":\"one\",\"prompt\":\"Once\",\"max_tokens\":6,\"temperature\":0}";

/* A number of a model; -1: it is not there. */
static int number(const struct child *c, const char *series, const char *model)
{
	char name[100];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	assert_int_equal(a.status, 200);
	snprintf(name, sizeof name, "\njitserve_%s{model=\"%s\"} ", series, model);
	const char *at = strstr(a.body, name);
	int value = at ? atoi(at + strlen(name)) : -1;
	answer_free(&a);
	return value;
}

static int gauge(const struct child *c, const char *model) { return number(c, "device_failed", model); }

static void expect(const struct child *c, const char *path, const char *body, int status, const char *says)
{
	struct answer a = client_ask(c, path, NULL, body);

	if (a.status != status || !strstr(a.body, says))
		fail_msg("%s: status %d, expected %d and \"%s\": %s", path, a.status, status, says, a.body);
	answer_free(&a);
}

static struct child start(const char *last, const char *value)
{
	char model[1024];
	const char *const arguments[] = {
		*own_model ? own_model : source_path(model, "models/tale-q8_0.gguf"),
		"--alias",
		"one",
		"--alias",
		"two",
		"--no-cache",
		"--device",
		"amd",
		"--context",
		"64",
		last,
		value,
		NULL
	};

	return child_start_prepared(arguments, use_fake_driver);
}

/* Asks until the card fails, at which the request that met it is told. */
static void ask_until_it_fails(const struct child *c, const char *says)
{
	for (int i = 0; i < 200; i++) {
		struct answer a = client_ask(c, "/v1/completions", NULL, question);
		int status = a.status;
		if (status == 503)
			assert_non_null(strstr(a.body, says));
		answer_free(&a);
		if (status == 503)
			return;
		assert_int_equal(status, 200);
	}
	fail_msg("the card never failed");
}

/* From then on every request says why, at once, and so does /readyz; the other model's has a queue of its own. */
static void check_failed(const char *what, const char *seconds, const char *says)
{
	begin(what, seconds);
	struct child c = start(NULL, NULL);
	expect(&c, "/readyz", NULL, 200, "{\"status\":\"ok\",\"devices\":[\"amd\"],\"lost\":[]}");
	assert_int_equal(gauge(&c, "one"), 0);
	ask_until_it_fails(&c, says);
	for (int i = 0; i < 3; i++) {
		expect(&c, "/v1/completions", question, 503, says);
		expect(&c, "/readyz", NULL, 503, says);
		expect(&c, "/health", NULL, 503, says);
	}
	expect(&c, "/v1/embeddings", "{\"model\":\"one\",\"input\":\"a\"}", 503, says);
	expect(&c, "/livez", NULL, 200, "ok");
	expect(&c, "/tokenize", "{\"model\":\"one\",\"content\":\"a\"}", 200, "tokens");
	assert_int_equal(gauge(&c, "one"), 1);
	assert_int_equal(gauge(&c, "two"), 0);
	assert_int_equal(number(&c, "moved_to_cpu", "one"), 0);
	/* the one that met it, and the next one where it came before the device was looked at */
	assert_in_range(number(&c, "answers_lost_total", "one"), 1, 2);
	assert_int_equal(number(&c, "answers_failed_total", "one"), number(&c, "answers_lost_total", "one"));
	assert_int_equal(child_stop(&c), 0);
	end();
}

/* Opening the model takes some 650 packets of the queue, so that the card fails soon after the server is ready. */
static void test_fault(void **state)
{
	(void)state;
	check_failed("fault=700", "60", "memory fault at");
}

static void test_wedge(void **state)
{
	(void)state;
	check_failed("destroy=60000 wedge=700", "2", "has worked on");
}

/* Both models have instances of the card of their own: what stops one's queue leaves the other's alone. */
static void test_other_model(void **state)
{
	(void)state;
	begin("fault=700", "60");
	struct child c = start(NULL, NULL);
	ask_until_it_fails(&c, "memory fault");
	expect(&c, "/v1/completions", "{\"model\":\"two\",\"prompt\":\"Once\",\"max_tokens\":2}", 200, "choices");
	expect(&c, "/v1/completions", question, 503, "memory fault");
	expect(&c, "/readyz", NULL, 503, "The model one");
	assert_int_equal(child_stop(&c), 0);
	end();
}

static void check_exit(const char *option, const char *value)
{
	begin("fault=700", "60");
	struct child c = start(option, value);
	ask_until_it_fails(&c, "memory fault");
	assert_int_equal(child_wait(&c), 3);
	end();
}

static void test_exit(void **state)
{
	(void)state;
	check_exit("--exit-on-device-failure", NULL);
	check_exit("--on-device-failure", "exit");
}

/* ---- on the CPU */

/* What does not depend on when it was asked: tokens and their logits as text, and, for the CPU, what --replay needs. To
 * be freed. */
static char *bits_of(const struct child *c, const char *model, bool cpu)
{
	char body[200], *text = NULL;

	snprintf(body, sizeof body,
	         "{\"model\":\"%s\",\"prompt\":\"Once\",\"max_tokens\":24,\"temperature\":0,\"seed\":1,\"logprobs\":5}",
	         model);
	struct answer a = client_ask(c, "/v1/completions", NULL, body);
	if (a.status == 200) {
		json_t *o = json_loads(a.body, 0, NULL);
		char *choices = json_dumps(json_object_get(o, "choices"), JSON_REAL_PRECISION(17));
		assert_non_null(strstr(choices, "top_logprobs"));
		assert_non_null(answer_field(&a, "X-Jitrun-Replay"));
		const char *replay = answer_field(&a, "X-Jitrun-Replay");
		const size_t n = strlen(choices) + strlen(replay) + 2;
		assert_non_null(text = malloc(n));
		snprintf(text, n, "%s %s", choices, replay);
		char *now = strstr(text, "; now="); /* the time alone may differ */
		assert_non_null(now);
		memmove(now, strchr(now + 1, ';'), strlen(strchr(now + 1, ';')) + 1);
		if (!cpu) /* weights lie in another order there, which the model's fingerprint says */
			strstr(text, " v=")[0] = 0;
		free(choices);
		json_decref(o);
	}
	answer_free(&a);
	return text;
}

static void expect_bits(const char *bits, const char *expected)
{
	size_t i = 0;

	while (bits[i] && bits[i] == expected[i])
		i++;
	if (bits[i] != expected[i])
		fail_msg("other bits from byte %zu on: \"%.60s\", expected \"%.60s\"", i, bits + i, expected + i);
}

/* Another server, which never had a card. */
static char *bits_of_cpu(void)
{
	char model[1024];
	const char *const arguments[] = {
		source_path(model, "models/tale-q8_0.gguf"), "--alias", "one", "--no-cache", "--context", "64", NULL
	};
	struct child c = child_start_without(arguments);
	char *bits = bits_of(&c, "one", true);

	assert_non_null(bits);
	assert_int_equal(child_stop(&c), 0);
	return bits;
}

static void check_lost(const struct child *c, const char *says)
{
	json_t *o = client_json(c, "/readyz", NULL, 200);
	const json_t *lost = json_array_get(json_object_get(o, "lost"), 0);

	assert_string_equal(json_string_value(json_object_get(o, "status")), "ok");
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "devices"), 0)), "cpu");
	assert_string_equal(json_string_value(json_object_get(lost, "model")), "one");
	assert_string_equal(json_string_value(json_object_get(lost, "device")), "cpu");
	assert_non_null(strstr(json_string_value(json_object_get(lost, "why")), says));
	json_decref(o);
}

/* Who asks right after the failure waits for the CPU, and so does a server that nobody asks. */
static void check_moves(const char *what, const char *seconds, const char *says, bool asks)
{
	char *cpu = bits_of_cpu(), *before, *after;
	int tries = 0;

	begin(what, seconds);
	struct child c = start("--on-device-failure", "cpu");
	assert_non_null(before = bits_of(&c, "one", false));
	assert_memory_equal(before, cpu, strlen(before));
	expect(&c, "/readyz", NULL, 200, "\"devices\":[\"amd\"]");
	ask_until_it_fails(&c, says);
	for (bool ready = asks; !ready && tries < 600; tries++) {
		struct answer a = client_ask(&c, "/health", NULL, NULL);
		ready = a.status == 200;
		if (!ready)
			assert_non_null(strstr(a.body, says));
		answer_free(&a);
		usleep(100000);
	}
	assert_true(tries < 600);
	assert_non_null(after = bits_of(&c, "one", true));
	expect_bits(after, cpu);
	check_lost(&c, says);
	assert_int_equal(gauge(&c, "one"), 1);
	assert_int_equal(gauge(&c, "two"), 0);
	assert_int_equal(number(&c, "moved_to_cpu", "one"), 1);
	assert_int_equal(number(&c, "moved_to_cpu", "two"), 0);
	assert_int_equal(number(&c, "model_loads_total", "one"), 2);
	assert_int_equal(number(&c, "answers_lost_total", "one"), 1);
	assert_int_equal(number(&c, "answers_failed_total", "one"), 1);
	free(after);
	assert_non_null(after = bits_of(&c, "two", false));
	check_lost(&c, says);
	assert_int_equal(child_stop(&c), 0);
	free(after);
	free(before);
	free(cpu);
	end();
}

static void test_moves_after_fault(void **state)
{
	(void)state;
	check_moves("fault=900", "60", "memory fault at", true);
}

static void test_moves_after_wedge(void **state)
{
	(void)state;
	check_moves("destroy=60000 wedge=900", "2", "has worked on", false);
}

/* A card that is there no more: the model that is opened after that finds so, and the CPU computes it as well. */
static void test_opened_later(void **state)
{
	char *bits, *cpu = bits_of_cpu();

	(void)state;
	begin("unplug=700", "60");
	struct child c = start("--on-device-failure", "cpu");
	ask_until_it_fails(&c, "is not there any more");
	assert_non_null(bits = bits_of(&c, "two", false));
	assert_memory_equal(bits, cpu, strlen(bits));
	free(bits);
	assert_non_null(bits = bits_of(&c, "one", true));
	expect_bits(bits, cpu);
	expect(&c, "/readyz", NULL, 200, "\"devices\":[\"cpu\"]");
	expect(&c, "/readyz", NULL, 200, "\"model\":\"two\",\"device\":\"cpu\"");
	assert_int_equal(number(&c, "moved_to_cpu", "one"), 1);
	assert_int_equal(number(&c, "moved_to_cpu", "two"), 1);
	assert_int_equal(child_stop(&c), 0);
	free(bits);
	free(cpu);
	end();
}

/* The CPU cannot open it either, and then can: the second model, whose file is the test's own. */
static void test_no_way_out(void **state)
{
	static const char asks[] = "{\"model\":\"two\",\"prompt\":\"Once\",\"max_tokens\":2}";
	char command[2300], model[1024], away[160];
	int status = 200;

	(void)state;
	begin("fault=1450", "60");
	snprintf(own_model, sizeof own_model, "%s/own.gguf", folder);
	snprintf(away, sizeof away, "%s/away.gguf", folder);
	snprintf(command, sizeof command, "cp '%s' %s", source_path(model, "models/tale-q8_0.gguf"), own_model);
	assert_int_equal(system(command), 0);
	struct child c = start("--on-device-failure", "cpu");
	expect(&c, "/v1/completions", asks, 200, "choices");
	assert_int_equal(rename(own_model, away), 0);
	for (int i = 0; status == 200 && i < 200; i++) {
		struct answer a = client_ask(&c, "/v1/completions", NULL, asks);
		status = a.status;
		answer_free(&a);
	}
	assert_int_equal(status, 503);
	expect(&c, "/v1/completions", asks, 500, "cannot be opened");
	for (int i = 0; i < 3; i++)
		expect(&c, "/readyz", NULL, 503, "The model two cannot be computed any more: ");
	assert_int_equal(gauge(&c, "two"), 1);
	assert_int_equal(number(&c, "moved_to_cpu", "two"), 0);
	assert_int_equal(rename(away, own_model), 0);
	expect(&c, "/v1/completions", asks, 200, "choices");
	expect(&c, "/readyz", NULL, 200, "\"model\":\"two\",\"device\":\"cpu\",\"why\":");
	assert_int_equal(number(&c, "moved_to_cpu", "two"), 1);
	assert_int_equal(child_stop(&c), 0);
	*own_model = 0;
	end();
}

/* Options that do not go together. */
static void test_refused(void **state)
{
	static const struct {
		const char *options, *says;
	} rows[] = {
		{ "--on-device-failure gpu", "--on-device-failure" },
		{ "--on-device-failure cpu --exit-on-device-failure", "goes without --exit-on-device-failure" },
		{ "--on-device-failure cpu --ranks fork:2", "goes without --ranks" },
		{ "--on-device-failure cpu --numerics bounded", "--numerics exact" },
	};
	char said[2000];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(child_says(true, rows[i].options, said, sizeof said), 2);
		assert_non_null(strstr(said, rows[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_wedge),
		cmocka_unit_test(test_other_model),
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_moves_after_fault),
		cmocka_unit_test(test_moves_after_wedge),
		cmocka_unit_test(test_opened_later),
		cmocka_unit_test(test_no_way_out),
		cmocka_unit_test(test_refused)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
