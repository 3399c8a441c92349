/* tests/server/t_device_fails.c - a card that fails for good under jitserve: a fault, and a launch that never ends, of
 * a card of the fake driver for AMD's.
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

/* The gauge of a model; -1: it is not there. */
static int gauge(const struct child *c, const char *model)
{
	char name[100];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	assert_int_equal(a.status, 200);
	snprintf(name, sizeof name, "\njitserve_device_failed{model=\"%s\"} ", model);
	const char *at = strstr(a.body, name);
	int value = at ? atoi(at + strlen(name)) : -1;
	answer_free(&a);
	return value;
}

static void expect(const struct child *c, const char *path, const char *body, int status, const char *says)
{
	struct answer a = client_ask(c, path, NULL, body);

	if (a.status != status || !strstr(a.body, says))
		fail_msg("%s: status %d, expected %d and \"%s\": %s", path, a.status, status, says, a.body);
	answer_free(&a);
}

static struct child start(const char *last)
{
	char model[1024];
	const char *const arguments[] = {
		source_path(model, "models/tale-q8_0.gguf"),
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
	struct child c = start(NULL);
	expect(&c, "/readyz", NULL, 200, "ok");
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
	struct child c = start(NULL);
	ask_until_it_fails(&c, "memory fault");
	expect(&c, "/v1/completions", "{\"model\":\"two\",\"prompt\":\"Once\",\"max_tokens\":2}", 200, "choices");
	expect(&c, "/v1/completions", question, 503, "memory fault");
	expect(&c, "/readyz", NULL, 503, "The model one");
	assert_int_equal(child_stop(&c), 0);
	end();
}

static void test_exit(void **state)
{
	(void)state;
	begin("fault=700", "60");
	struct child c = start("--exit-on-device-failure");
	ask_until_it_fails(&c, "memory fault");
	assert_int_equal(child_wait(&c), 3);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fault), cmocka_unit_test(test_wedge),
		                            cmocka_unit_test(test_other_model), cmocka_unit_test(test_exit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
