/* tests/server/t_models.c - several models: loaded when they are asked for, within a limit; the one that was not used
 * for the longest leaves, and none that is in use; what fails to load is told to who asked for it.
 *
 * The model that comes with the sources stands under several names. Its weights and a KV cache of 8 MiB take 14 MiB.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

static char folder[] = "/tmp/jitrun-models-XXXXXX";
static char second[100], third[100], broken[100];
static const char first_name[] = "tale-q8_0";

static int make_files(void **state)
{
	char model[1024], *whole;
	(void)state;

	assert_non_null(mkdtemp(folder));
	whole = realpath(source_path(model, "models/tale-q8_0.gguf"), NULL);
	assert_non_null(whole);
	snprintf(second, sizeof second, "%s/second.gguf", folder);
	snprintf(third, sizeof third, "%s/third.gguf", folder);
	snprintf(broken, sizeof broken, "%s/broken.gguf", folder);
	assert_int_equal(symlink(whole, second) | symlink(whole, third), 0);
	free(whole);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(second);
	unlink(third);
	unlink(broken);
	return rmdir(folder);
}

/* A number of /metrics; label NULL: it has none. */
static double number(const struct child *c, const char *name, const char *model)
{
	char line[200];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	if (model)
		snprintf(line, sizeof line, "\n%s{model=\"%s\"} ", name, model);
	else
		snprintf(line, sizeof line, "\n%s ", name);
	const char *at = strstr(a.body, line);
	if (!at)
		fail_msg("%s is not in %s", line, a.body);
	double value = atof(at + strlen(line));
	answer_free(&a);
	return value;
}

/* An answer is counted a moment after it was sent. */
static void expect(const struct child *c, const char *name, const char *model, int value)
{
	for (int i = 0; i < 500 && (int)number(c, name, model) < value; i++)
		usleep(2000);
	assert_int_equal((int)number(c, name, model), value);
}

static bool is_loaded(const struct child *c, const char *name)
{
	char path[300];

	snprintf(path, sizeof path, "/v1/models/%s", name);
	json_t *o = client_json(c, path, NULL, 200);
	const char *value = json_string_value(json_object_get(json_object_get(o, "status"), "value"));
	bool loaded = value && strcmp(value, "loaded") == 0;
	assert_int_equal((int)number(c, "jitserve_model_loaded", name), loaded);
	json_decref(o);
	return loaded;
}

/* An answer's texts and the probabilities of its tokens, as one text; free() it. */
static char *essence(const char *body)
{
	json_t *o = json_loads(body, 0, NULL);
	char *text = json_dumps(json_object_get(o, "choices"), JSON_SORT_KEYS);

	if (!text)
		fail_msg("no choices in %s", body);
	json_decref(o);
	return text;
}

/* name NULL: the request names none. */
static char *ask(const struct child *c, const char *name)
{
	char body[300], model[200] = "";

	if (name)
		snprintf(model, sizeof model, "\"model\":\"%s\",", name);
	snprintf(body, sizeof body, "{%s\"prompt\":\"The king\",\"max_tokens\":12,\"temperature\":0,\"logprobs\":2}",
	         model);
	struct answer a = client_ask(c, "/v1/completions", NULL, body);
	if (a.status != 200)
		fail_msg("%s: status %d: %s", name, a.status, a.body);
	char *text = essence(a.body);
	answer_free(&a);
	return text;
}

static void ask_and_compare(const struct child *c, const char *name, const char *expected)
{
	char *text = ask(c, name);

	assert_string_equal(text, expected);
	free(text);
}

/* Memory that is set aside, once the answer that came last has given back its own. Draft tokens, of which there are
 * more or fewer by what passes take, would make it larger. */
static double mapped_bytes(const struct child *c, const char *model)
{
	for (int i = 0; i < 1000 && number(c, "llamacpp:requests_processing", model) > 0; i++)
		usleep(2000);
	return number(c, "jitserve_mapped_bytes", NULL);
}

/* Two fit. The one that was not used for the longest leaves, and comes back with the same bits; nothing is left of it
 * meanwhile. */
static void test_room(void **state)
{
	const char *const arguments[] = { second, third,        "--memory-limit", "32",  "--kv-memory",
		                          "8",    "--no-cache", "--speculate",    "off", NULL };
	struct child c = child_start(arguments);
	double mapped[6];
	(void)state;

	assert_true(is_loaded(&c, first_name) && !is_loaded(&c, "second") && !is_loaded(&c, "third"));
	char *text = ask(&c, NULL);
	ask_and_compare(&c, "second", text);
	assert_true(is_loaded(&c, first_name) && is_loaded(&c, "second"));
	ask_and_compare(&c, first_name, text);
	int fds = child_fds(&c);
	ask_and_compare(&c, "third", text);
	assert_true(is_loaded(&c, first_name) && !is_loaded(&c, "second") && is_loaded(&c, "third"));
	assert_true(number(&c, "jitserve_model_bytes", "second") <= 0);
	assert_true(number(&c, "jitserve_model_bytes", first_name) + number(&c, "jitserve_model_bytes", "third") <=
	            32 << 20);
	for (int i = 0; i < 6; i++) {
		ask_and_compare(&c, "second", text);
		ask_and_compare(&c, "third", text);
		ask_and_compare(&c, first_name, text);
		mapped[i] = mapped_bytes(&c, first_name);
		assert_true(mapped[i] > 0 && (i < 2 || mapped[i] == mapped[1]));
	}
	for (int i = 0; i < 200 && child_fds(&c) > fds; i++)
		usleep(20000);
	assert_true(child_fds(&c) <= fds);
	assert_int_equal((int)number(&c, "jitserve_model_loads_total", "second"), 7);
	expect(&c, "jitserve_answers_ended_total", "second", 7);
	free(text);
	assert_int_equal(child_stop(&c), 0);
}

/* Where one fits, the memory of the next one is all that there is. */
static void test_memory(void **state)
{
	const char *const arguments[] = { second,       "--memory-limit", "16",  "--kv-memory", "8",
		                          "--no-cache", "--speculate",    "off", NULL };
	struct child c = child_start(arguments);
	(void)state;

	char *text = ask(&c, NULL);
	double before = mapped_bytes(&c, first_name);
	ask_and_compare(&c, "second", text);
	assert_true(before > 0 && mapped_bytes(&c, "second") == before);
	free(text);
	assert_int_equal(child_stop(&c), 0);
}

struct asking {
	const struct child *c;
	const char *name;
	char *text;
	pthread_t thread;
};

static void *ask_aside(void *user)
{
	struct asking *a = user;

	a->text = ask(a->c, a->name);
	return NULL;
}

/* Many ask for a model that is not there: it is loaded once. */
static void test_at_once(void **state)
{
	enum { CLIENTS = 8 };
	const char *const arguments[] = { second, "--kv-memory", "8", "--no-cache", NULL };
	struct child c = child_start(arguments);
	struct asking a[CLIENTS];
	(void)state;

	char *text = ask(&c, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		a[i] = (struct asking){ .c = &c, .name = "second" };
		assert_int_equal(pthread_create(&a[i].thread, NULL, ask_aside, &a[i]), 0);
	}
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(a[i].thread, NULL);
		assert_string_equal(a[i].text, text);
		free(a[i].text);
	}
	assert_int_equal((int)number(&c, "jitserve_model_loads_total", "second"), 1);
	free(text);
	assert_int_equal(child_stop(&c), 0);
}

static int begin(const struct child *c, const char *name, int choices)
{
	char text[1000], body[300];
	int fd = client_connect(c, false);

	snprintf(body, sizeof body,
	         "{\"model\":\"%s\",\"prompt\":\"The\",\"max_tokens\":900,\"ignore_eos\":true,\"temperature\":0,\"n\":%"
	         "d}",
	         name, choices);
	snprintf(text, sizeof text, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
	         strlen(body), body);
	client_send(fd, text, strlen(text));
	return fd;
}

static void expect_running(const struct child *c, const char *name)
{
	for (int i = 0; i < 1000 && number(c, "llamacpp:requests_processing", name) <= 0; i++)
		usleep(2000);
}

static char *read_essence(int fd)
{
	struct answer a = client_read(fd, 120);

	assert_int_equal(a.status, 200);
	char *text = essence(a.body);
	answer_free(&a);
	close(fd);
	return text;
}

/* Where one alone fits, another model waits until the answer that runs is whole; what comes meanwhile for the first one
 * waits behind it, and is answered, too. Who leaves while waiting is not loaded for. */
static void test_in_use(void **state)
{
	const char *const arguments[] = {
		second, third, "--memory-limit", "16", "--kv-memory", "8", "--no-cache", NULL
	};
	enum { LONG = 16 };
	struct child c = child_start(arguments);
	(void)state;

	char *text = ask(&c, NULL), *whole = read_essence(begin(&c, first_name, LONG));
	int running = begin(&c, first_name, LONG);
	expect_running(&c, first_name);
	int gone = begin(&c, "third", 1);
	struct asking other = { .c = &c, .name = "second" }, again = { .c = &c, .name = first_name };
	assert_int_equal(pthread_create(&other.thread, NULL, ask_aside, &other), 0);
	close(gone);
	assert_true(number(&c, "llamacpp:requests_processing", first_name) > 0); /* else nothing was tried */
	assert_int_equal((int)number(&c, "jitserve_model_loads_total", "second"), 0);
	assert_int_equal(pthread_create(&again.thread, NULL, ask_aside, &again), 0);
	char *after = read_essence(running);
	assert_string_equal(after, whole);
	pthread_join(other.thread, NULL);
	pthread_join(again.thread, NULL);
	assert_string_equal(other.text, text);
	assert_string_equal(again.text, text);
	assert_int_equal((int)number(&c, "jitserve_model_loads_total", "second"), 1);
	assert_int_equal((int)number(&c, "jitserve_model_loads_total", "third"), 0);
	free(text);
	free(whole);
	free(after);
	free(other.text);
	free(again.text);
	assert_int_equal(child_stop(&c), 0);
}

/* Who reads an answer drop by drop, when it is complete long ago, keeps its model from leaving no longer than
 * --read-timeout. */
static void test_slow_reader(void **state)
{
	const char *const arguments[] = {
		second,       "--memory-limit", "16", "--kv-memory", "8", "--max-unread", "1000000",
		"--no-cache", "--read-timeout", "4",  NULL
	};
	static const char body[] =
		"{\"prompt\":\"The\",\"max_tokens\":900,\"ignore_eos\":true,\"n\":16,\"logprobs\":5,\"stream\":true}";
	char text[1000], drops[32768];
	(void)state;

	if (test_quick())
		skip();
	struct child c = child_start(arguments);
	struct asking other = { .c = &c, .name = "second" };
	int fd = client_connect(&c, false), room = sizeof drops;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
	snprintf(text, sizeof text, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
	         sizeof body - 1, body);
	client_send(fd, text, strlen(text));
	expect_running(&c, first_name);
	assert_int_equal(pthread_create(&other.thread, NULL, ask_aside, &other), 0);
	for (int i = 0; i < 1200 && number(&c, "jitserve_model_loads_total", "second") <= 0; i++) {
		recv(fd, drops, sizeof drops, MSG_DONTWAIT);
		usleep(50000);
	}
	assert_int_equal((int)number(&c, "jitserve_model_loads_total", "second"), 1);
	close(fd);
	pthread_join(other.thread, NULL);
	free(other.text);
	assert_int_equal(child_stop(&c), 0);
}

/* Asked to stop while one waits for a model: it is told, and the server ends. */
static void test_stop(void **state)
{
	const char *const arguments[] = { second, "--memory-limit", "16", "--kv-memory", "8", "--stop-timeout",
		                          "0",    "--no-cache",     NULL };
	struct child c = child_start(arguments);
	(void)state;

	int running = begin(&c, first_name, 16);
	expect_running(&c, first_name);
	int waiting = begin(&c, "second", 1);
	assert_true(number(&c, "llamacpp:requests_processing", first_name) > 0); /* else nothing was tried */
	assert_int_equal(kill(c.pid, SIGTERM), 0);
	for (int i = 0; i < 2; i++) {
		struct answer a = client_read(i ? waiting : running, 60);
		assert_int_equal(a.status, 503);
		answer_free(&a);
		close(i ? waiting : running);
	}
	assert_int_equal(child_wait(&c), 0);
}

static void copy_to_broken(size_t max)
{
	char model[1024];
	size_t n;
	uint8_t *p = file_bytes(source_path(model, "models/tale-q8_0.gguf"), &n);
	FILE *f = fopen(broken, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n < max ? n : max, f), n < max ? n : max);
	assert_int_equal(fclose(f), 0);
	free(p);
}

static void expect_refusal(const struct child *c, const char *name, int status, const char *words)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}",
	         name);
	json_t *o = client_json(c, "/v1/chat/completions", body, status);
	const char *message = json_string_value(json_object_get(json_object_get(o, "error"), "message"));
	if (!message || !strstr(message, words))
		fail_msg("%s is not in: %s", words, message ? message : "nothing");
	json_decref(o);
}

/* What cannot be loaded is the error of who asked for it, each time; others are answered, and once the file is whole it
 * is loaded. */
static void test_failures(void **state)
{
	const char *const arguments[] = {
		broken, second, "--memory-limit", "32", "--kv-memory", "8", "--no-cache", NULL
	};
	(void)state;

	copy_to_broken(100000);
	struct child c = child_start(arguments);
	char *text = ask(&c, NULL);
	expect_refusal(&c, "broken", 500, "broken.gguf");
	expect_refusal(&c, "broken", 500, "broken.gguf");
	expect_refusal(&c, "nobody", 404, "nobody");
	json_t *o = client_json(&c, "/v1/models/broken", NULL, 200);
	assert_true(json_is_true(json_object_get(json_object_get(o, "status"), "failed")));
	json_decref(o);
	ask_and_compare(&c, NULL, text);
	ask_and_compare(&c, "second", text);
	copy_to_broken(SIZE_MAX);
	ask_and_compare(&c, "broken", text);
	o = client_json(&c, "/v1/models/broken", NULL, 200);
	assert_true(json_is_false(json_object_get(json_object_get(o, "status"), "failed")));
	json_decref(o);
	free(text);
	assert_int_equal(child_stop(&c), 0);
}

/* Exit status and standard error of a server that does not come to be ready. */
static void expect_no_start(const char *arguments, int status, const char *words)
{
	char all[1000], said[2000];

	snprintf(all, sizeof all, "%s --port 0 --no-cache", arguments);
	assert_int_equal(child_says(true, all, said, sizeof said), status);
	if (!strstr(said, words))
		fail_msg("%s is not in: %s", words, said);
}

static void test_start(void **state)
{
	char text[300];
	(void)state;

	expect_no_start("/nowhere/model.gguf", 1, "/nowhere/model.gguf: cannot be opened");
	expect_no_start("--memory-limit 10 --kv-memory 8", 1, "--memory-limit lets all models have 10 MiB");
	snprintf(text, sizeof text, "%s --alias one --alias one", second);
	expect_no_start(text, 1, "two models are called one");
}

/* By alias, by the file's name; the first one where none is named. */
static void test_names(void **state)
{
	const char *const arguments[] = { second,        "--alias", "one",        "--alias", "two",
		                          "--kv-memory", "8",       "--no-cache", NULL };
	struct child c = child_start(arguments);
	(void)state;

	char *text = ask(&c, "two");
	ask_and_compare(&c, "second", text);
	ask_and_compare(&c, "one", text);
	ask_and_compare(&c, first_name, text);
	ask_and_compare(&c, NULL, text);
	expect_refusal(&c, "Two", 404, "Two");
	expect(&c, "jitserve_answers_ended_total", "one", 3);
	expect(&c, "jitserve_answers_ended_total", "two", 2);
	free(text);
	assert_int_equal(child_stop(&c), 0);
}

/* Kernels of a pack, none generated: the text that a server gives that generates its own. */
static void test_sealed(void **state)
{
	char pack[200], command[2000], model[1024];
	const char *const arguments[] = { "--cache", pack, "--sealed", NULL };
	const char *const usual[] = { "--no-cache", NULL };
	(void)state;

	snprintf(pack, sizeof pack, "%s/kernels.jkp", folder);
	snprintf(command, sizeof command, "./jitwarm %s --target x86 --out %s >/dev/null 2>&1",
	         source_path(model, "models/tale-q8_0.gguf"), pack);
	assert_int_equal(system(command), 0);
	struct child c = child_start(usual);
	char *text = ask(&c, NULL);
	assert_int_equal(child_stop(&c), 0);
	c = child_start(arguments);
	ask_and_compare(&c, NULL, text);
	free(text);
	int fd = begin(&c, first_name, 12);
	free(read_essence(fd));
	assert_true(number(&c, "jitserve_kernels_packed_total", "tale-q8_0") > 0);
	assert_true(number(&c, "jitserve_kernels_generated_total", "tale-q8_0") <= 0);
	assert_int_equal(child_stop(&c), 0);
	unlink(pack);
	expect_no_start("--sealed", 1, "sealed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),     cmocka_unit_test(test_memory), cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_in_use),   cmocka_unit_test(test_stop),   cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_failures), cmocka_unit_test(test_start),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_sealed),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
