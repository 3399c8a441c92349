/* tests/server/t_devices.c - jitserve on other devices than the CPU: the reference, simulated cards, and a card of a
 * fake driver for AMD's. Clients that ask at once have the answers of the CPU, with the same probabilities.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

static const struct question {
	const char *path, *body;
} questions[] = {
	{ "/v1/completions", "{\"prompt\":\"Once upon a time\",\"max_tokens\":5,\"temperature\":0,\"logprobs\":3}" },
	{ "/v1/completions", "{\"prompt\":\"The king said\",\"max_tokens\":6,\"temperature\":0.9,\"seed\":7,"
	                     "\"top_k\":20,\"min_p\":0,\"logprobs\":2}" },
	{ "/v1/completions", "{\"prompt\":\"Once upon a time there\",\"max_tokens\":4,\"seed\":3,\"logprobs\":1,"
	                     "\"response_format\":{\"type\":\"regex\",\"pattern\":\" was [a-z ]{2,9}\"}}" },
	{ "/v1/embeddings", "{\"input\":\"the king\"}" }
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static char *truth[QUESTIONS], folder[] = "/tmp/t_devices-XXXXXX";

/* What of an answer is the model's. */
static char *model_part(const struct answer *a)
{
	json_t *o = json_loads(a->body, 0, NULL), *part = json_object_get(o, "choices");

	if (!part)
		part = json_object_get(o, "data");
	if (a->status != 200 || !part)
		fail_msg("status %d: %s", a->status, a->body);
	char *text = json_dumps(part, JSON_SORT_KEYS);
	json_decref(o);
	return text;
}

static int ask_cpu(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	struct child c = child_start(arguments);
	(void)state;

	for (size_t i = 0; i < QUESTIONS; i++) {
		struct answer a = client_ask(&c, questions[i].path, NULL, questions[i].body);
		truth[i] = model_part(&a);
		answer_free(&a);
	}
	return child_stop(&c);
}

static int forget(void **state)
{
	(void)state;
	for (size_t i = 0; i < QUESTIONS; i++)
		free(truth[i]);
	return 0;
}

/* ---- clients */

struct client {
	pthread_t thread;
	const struct child *server;
	const struct question *question;
	struct answer answer;
};

static void *ask(void *user)
{
	struct client *c = user;

	c->answer = client_ask(c->server, c->question->path, NULL, c->question->body);
	return NULL;
}

static void check(const struct answer *a, size_t i, const char *device)
{
	char *text = model_part(a);

	if (strcmp(text, truth[i]) != 0)
		fail_msg("%s: question %zu has the answer %s, on the CPU %s", device, i, text, truth[i]);
	free(text);
}

/* All at once, and then again, when what begins alike is known. */
static void check_answers(struct child *server, const char *device)
{
	struct client c[QUESTIONS];

	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < QUESTIONS; i++) {
			c[i] = (struct client){ .server = server, .question = &questions[i] };
			assert_int_equal(pthread_create(&c[i].thread, NULL, ask, &c[i]), 0);
		}
		for (size_t i = 0; i < QUESTIONS; i++) {
			pthread_join(c[i].thread, NULL);
			check(&c[i].answer, i, device);
			answer_free(&c[i].answer);
		}
	}
}

static void check_device(const char *device, void (*prepare)(void))
{
	const char *const arguments[] = { "--no-cache", "--device", device, "--context", "64", NULL };
	struct child c = child_start_prepared(arguments, prepare);

	check_answers(&c, device);
	assert_int_equal(child_stop(&c), 0);
}

static void test_reference(void **state)
{
	(void)state;
	check_device("ref", NULL);
}

static void test_simulated_cards(void **state)
{
	(void)state;
	check_device("sim:gfx1100", NULL);
	if (!test_quick())
		check_device("sim:sm90", NULL);
}

/* ---- a card of AMD's */

static char library[4096];
static int card_mib;

static void use_fake_driver(void)
{
	const char *asan = getenv("ASAN_OPTIONS");
	char text[1024];

	/* The library is there before a sanitizer's, which does not like that. */
	snprintf(text, sizeof text, "%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "");
	setenv("ASAN_OPTIONS", text, 1);
	setenv("JITRUN_AMD_THUNK", "ioctl", 1); /* libhsakmt keeps some memory until the end */
	snprintf(text, sizeof text, "gfx1101 bar=small vram=%d cus=4 kfd=18", card_mib);
	setenv("FAKE_KFD", text, 1);
	setenv("FAKE_KFD_INJECT", "", 1);
	setenv("JITRUN_CARD_PATIENCE", "60", 1); /* simulated launches take long */
	snprintf(text, sizeof text, "%s/log", folder);
	setenv("FAKE_KFD_LOG", text, 1);
	snprintf(text, sizeof text, "%s/root", folder);
	setenv("FAKE_KFD_DIR", text, 1);
	setenv("LD_PRELOAD", library, 1);
}

static void begin_card(int mib)
{
	if (!realpath("tests/fake_kfd/.libs/fake_kfd.so", library)) {
		printf("# skipped: tests/fake_kfd/.libs/fake_kfd.so is not there\n");
		skip();
	}
	card_mib = mib;
	strcpy(folder, "/tmp/t_devices-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

/* The driver says what it objects to, and what was left behind. */
static void end_card(void)
{
	char command[128], path[128];

	snprintf(path, sizeof path, "%s/log", folder);
	if (access(path, F_OK) == 0) {
		size_t n;
		uint8_t *log = file_bytes(path, &n);
		fail_msg("the fake driver objects: %.*s", (int)n, (const char *)log);
	}
	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static void test_fake_card(void **state)
{
	(void)state;
	begin_card(16384);
	check_device("amd", use_fake_driver);
	end_card();
}

static void ask_model(const struct child *c, const char *name, char **text)
{
	char body[200];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"prompt\":\"Once\",\"max_tokens\":2,\"temperature\":0}", name);
	struct answer a = client_ask(c, "/v1/completions", NULL, body);
	char *got = model_part(&a);
	answer_free(&a);
	if (*text)
		assert_string_equal(got, *text);
	free(*text);
	*text = got;
}

/* How often the first of two models was loaded on a card of that size, when it is asked, then the other one, then
 * again. */
static int loads_on_card(int mib, char **text)
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
		NULL
	};

	begin_card(mib);
	struct child c = child_start_prepared(arguments, use_fake_driver);
	ask_model(&c, "one", text);
	ask_model(&c, "two", text);
	ask_model(&c, "one", text);
	struct answer a = client_ask(&c, "/metrics", NULL, NULL);
	const char *at = strstr(a.body, "\njitserve_model_loads_total{model=\"one\"} ");
	int loads = at ? atoi(strchr(at, '}') + 1) : 0;
	answer_free(&a);
	assert_int_equal(child_stop(&c), 0);
	end_card();
	return loads;
}

/* On the largest of these cards both models have room. On a smaller one the driver has none for the second, and the
 * first one leaves for it: the answers are the same. */
static void test_small_card(void **state)
{
	char *text = NULL;
	int mib = 112, loads = 0;
	(void)state;

	if (!test_mine(1))
		skip();
	assert_int_equal(loads_on_card(mib, &text), 1);
	while (loads < 2 && (mib -= 8) >= 80)
		loads = loads_on_card(mib, &text);
	free(text);
	assert_int_equal(loads, 2);
}

/* ---- devices that are not there */

static void test_refused(void **state)
{
	static const struct {
		const char *device, *says;
	} rows[] = { { "toaster", "toaster" },
		     { "sim:gfx999", "gfx999" },
		     { "sim:", "sim:" },
		     { "sim:gfx1100 --numerics bounded", "must be exact there" } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char arguments[100], said[2048];
		snprintf(arguments, sizeof arguments, "--port 0 --device %s", rows[i].device);
		assert_true(child_says(true, arguments, said, sizeof said) > 0);
		if (!*said || !strstr(said, rows[i].says) || strchr(said, '\n') != said + strlen(said) - 1)
			fail_msg("--device %s: %s", rows[i].device, said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reference), cmocka_unit_test(test_simulated_cards),
		                            cmocka_unit_test(test_fake_card), cmocka_unit_test(test_small_card),
		                            cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, ask_cpu, forget);
}
