/* tests/server/t_slots.c - what answers have computed is taken over by others, saved and restored, also by a server
 * that begins after one that was killed; always with the bits of an answer that had all computed anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/tiny_model.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static char folder[] = "/tmp/jitrun-slots-XXXXXX";
static char tiny[100];

static int make_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(tiny, sizeof tiny, "%s-tiny", folder);
	assert_int_equal(mkdir(tiny, 0700), 0);
	tiny_write_hf(tiny, &tiny_min);
	return 0;
}

static void empty(const char *path)
{
	DIR *d = opendir(path);
	char name[400];

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlink(name);
	}
	closedir(d);
	rmdir(path);
}

static int remove_folder(void **state)
{
	(void)state;
	empty(folder);
	empty(tiny);
	return 0;
}

static json_int_t integer(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_integer(v))
		fail_msg("%s is missing", name);
	return json_integer_value(v);
}

#define BEGINNING "Once upon a time there was a king who had three sons, and the youngest of them"
static const char saved_prompt[] = BEGINNING " was called";
static const char next_prompt[] = BEGINNING " went into the forest";

/* An answer of llama.cpp's form with the probabilities of all tokens. */
static json_t *complete(const struct child *c, const char *prompt, int slot, const char *more)
{
	char body[1000];

	snprintf(body, sizeof body,
	         "{\"prompt\":\"%s\",\"n_predict\":24,\"seed\":5,\"temperature\":0.8,\"n_probs\":3,\"id_slot\":%d%s}",
	         prompt, slot, more);
	return client_json(c, "/completion", body, 200);
}

/* What must have the same bits: the text, and how likely each token was. */
static char *bits_of(const json_t *o)
{
	char *text = json_dumps(json_object_get(o, "completion_probabilities"), JSON_REAL_PRECISION(17));

	assert_true(text && strlen(text) > 100);
	return text;
}

static json_int_t cached(const json_t *o) { return integer(json_object_get(o, "timings"), "cache_n"); }

static json_t *act(const struct child *c, int slot, const char *action, const char *file, int status)
{
	char path[100], body[400];

	snprintf(path, sizeof path, "/slots/%d?action=%s", slot, action);
	snprintf(body, sizeof body, "{\"filename\":\"%s\"}", file ? file : "");
	return client_json(c, path, file ? body : "{}", status);
}

static void expect_refusal(const struct child *c, const char *path, const char *body, int status, const char *words)
{
	json_t *o = client_json(c, path, body, status);
	const char *message = json_string_value(json_object_get(json_object_get(o, "error"), "message"));

	if (!message || !strstr(message, words))
		fail_msg("%s: \"%s\" is not in: %s", path, words, message ? message : "nothing");
	assert_null(strstr(message, folder)); /* where files lie is told to nobody */
	json_decref(o);
}

/* The bits of an answer of a server that has computed nothing before. */
static char *computed_anew(const char *prompt)
{
	const char *const arguments[] = { "--no-cache", "--speculate", "off", "--parallel", "2", NULL };
	struct child c = child_start(arguments);
	json_t *o = complete(&c, prompt, -1, "");

	assert_int_equal(cached(o), 0);
	char *bits = bits_of(o);
	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
	return bits;
}

/* A prompt that begins as another did, and one that is the same. */
static void test_beginnings(void **state)
{
	const char *const arguments[] = { "--no-cache", "--parallel", "4", NULL };
	struct child c = child_start(arguments);
	char *bits = computed_anew(next_prompt);
	(void)state;

	json_t *o = complete(&c, saved_prompt, -1, "");
	assert_int_equal(cached(o), 0);
	json_decref(o);
	o = complete(&c, next_prompt, -1, "");
	json_int_t prompt = integer(o, "tokens_evaluated"), reused = cached(o);
	assert_true(reused >= 10 && reused < prompt - 1);
	char *got = bits_of(o);
	assert_string_equal(got, bits);
	free(got);
	json_decref(o);
	o = complete(&c, next_prompt, -1, "");
	assert_int_equal(cached(o), prompt - 1);
	got = bits_of(o);
	assert_string_equal(got, bits);
	free(got);
	json_decref(o);
	free(bits);
	assert_int_equal(child_stop(&c), 0);
}

/* Draft tokens are computed, some come true, and the text stays what it is. */
static void test_speculation(void **state)
{
	static const char body[] =
		"{\"prompt\":\"one two three four five six seven eight one two three four five six seven eight "
		"one two three four five six\",\"n_predict\":60,\"temperature\":0,\"ignore_eos\":true}";
	char *text[2];
	(void)state;

	for (int i = 0; i < 2; i++) {
		const char *const arguments[] = { "--no-cache", "--speculate", i ? "8" : "off", NULL };
		struct child c = child_start(arguments);
		json_t *o = client_json(&c, "/completion", body, 200);
		const json_t *t = json_object_get(o, "timings");
		text[i] = strdup(json_string_value(json_object_get(o, "content")));
		if (i) {
			assert_true(integer(t, "draft_n") > 0);
			assert_true(integer(t, "draft_n_accepted") > 0);
		}
		json_decref(o);
		assert_int_equal(child_stop(&c), 0);
	}
	assert_string_equal(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}

/* Saved, restored elsewhere, erased: what is computed, and what is not. */
static void test_save(void **state)
{
	const char *const arguments[] = { "--no-cache", "--parallel", "4", "--slot-save", folder, NULL };
	struct child c = child_start(arguments);
	char *bits = computed_anew(next_prompt);
	(void)state;

	json_t *o = complete(&c, saved_prompt, 2, "");
	assert_int_equal(integer(o, "id_slot"), 2);
	json_int_t prompt = integer(o, "tokens_evaluated"), tokens = prompt + integer(o, "tokens_predicted") - 1;
	json_decref(o);
	o = act(&c, 2, "save", "a.bin", 200);
	assert_int_equal(integer(o, "n_saved"), tokens);
	assert_true(integer(o, "n_written") > 1000 && integer(o, "id_slot") == 2);
	json_decref(o);
	o = act(&c, 2, "erase", NULL, 200);
	assert_int_equal(integer(o, "n_erased"), tokens);
	json_decref(o);
	o = complete(&c, saved_prompt, 2, "");
	assert_int_equal(cached(o), 0);
	json_decref(o);
	json_decref(act(&c, 2, "erase", NULL, 200));
	o = act(&c, 1, "restore", "a.bin", 200);
	assert_int_equal(integer(o, "n_restored"), tokens);
	json_decref(o);
	o = complete(&c, next_prompt, 1, "");
	assert_true(cached(o) >= 10);
	char *got = bits_of(o);
	assert_string_equal(got, bits);
	json_decref(o);
	free(got);
	free(bits);
	assert_int_equal(child_stop(&c), 0);
}

/* A server that is killed, also while it saves, leaves whole files: a new one goes on with the same bits. */
static void test_killed(void **state)
{
	const char *const arguments[] = { "--no-cache", "--parallel", "4", "--slot-save", folder, NULL };
	char *bits = computed_anew(next_prompt);
	int rounds = test_quick() ? 2 : 6, status;
	(void)state;

	for (int i = 0; i < rounds; i++) {
		struct child c = child_start(arguments);
		if (i) {
			json_t *o = act(&c, 0, "restore", "k.bin", 200);
			assert_true(integer(o, "n_restored") > 20);
			json_decref(o);
			o = complete(&c, next_prompt, 0, "");
			assert_true(cached(o) >= 10);
			char *got = bits_of(o);
			assert_string_equal(got, bits);
			free(got);
			json_decref(o);
		}
		json_decref(complete(&c, saved_prompt, 3, ""));
		json_decref(act(&c, 3, "save", "k.bin", 200));
		int fd = client_connect(&c, false);
		static const char again[] = "POST /slots/3?action=save HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
					    "20\r\n\r\n{\"filename\":\"k.bin\"}";
		client_send(fd, again, sizeof again - 1);
		usleep((useconds_t)(i * 300));
		kill(c.pid, SIGKILL);
		assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
		close(c.said);
		close(fd);
	}
	free(bits);
}

static void damage(const char *name)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "?", 1, 3000), 1);
	close(fd);
}

static void test_refused(void **state)
{
	static const char *const names[] = { "",   "..",       "../x", "/etc/passwd", "a/b", "a\\\\b",
		                             ".x", "x\\u0001", "a:b",  "x.",          " x",  "\\ud800" };
	const char *const arguments[] = { tiny,         "--alias", "tale",        "--alias", "tiny", "--no-cache",
		                          "--parallel", "2",       "--slot-save", folder,    NULL };
	struct child c = child_start(arguments);
	char body[300], name[260];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(body, sizeof body, "{\"filename\":\"%s\"}", names[i]);
		expect_refusal(&c, "/slots/0?action=save", body, 400,
		               i + 1 == sizeof names / sizeof *names ? "" : "filename");
		expect_refusal(&c, "/slots/0?action=restore", body, 400, "");
	}
	memset(name, 'n', 201);
	name[201] = 0;
	snprintf(body, sizeof body, "{\"filename\":\"%s\"}", name);
	expect_refusal(&c, "/slots/0?action=save", body, 400, "without a path");
	expect_refusal(&c, "/slots/0?action=save", "{}", 400, "filename is missing");
	expect_refusal(&c, "/slots/0?action=save", "{\"filename\":\"x\"}", 400, "holds nothing");
	expect_refusal(&c, "/slots/0?action=restore", "{\"filename\":\"x\"}", 400, "cannot be opened");
	json_t *refused = client_json(&c, "/slots/0?action=restore", "{\"filename\":\"x\"}", 400);
	assert_string_equal(json_string_value(json_object_get(json_object_get(refused, "error"), "param")), "filename");
	json_decref(refused);
	expect_refusal(&c, "/slots/0?action=dance", "{}", 400, "dance, expected save, restore or erase");
	expect_refusal(&c, "/slots/0", "{}", 400, "action is missing");
	expect_refusal(&c, "/slots/2?action=erase", "{}", 400, "expected 0 to 1");
	expect_refusal(&c, "/slots/x?action=erase", "{}", 400, "expected 0 to 1");
	expect_refusal(&c, "/completion", "{\"prompt\":\"x\",\"id_slot\":2}", 400, "id_slot");
	json_decref(complete(&c, saved_prompt, 0, ""));
	json_decref(act(&c, 0, "save", "other.bin", 200));
	expect_refusal(&c, "/slots/0?action=restore&model=tiny", "{\"filename\":\"other.bin\"}", 400, "other.bin");
	damage("other.bin");
	expect_refusal(&c, "/slots/0?action=restore", "{\"filename\":\"other.bin\"}", 400, "checksum");
	json_decref(complete(&c, saved_prompt, 0, ""));
	assert_int_equal(child_stop(&c), 0);
	const char *const without[] = { "--no-cache", NULL };
	c = child_start(without);
	expect_refusal(&c, "/slots/0?action=save", "{\"filename\":\"x\"}", 501, "--slot-save");
	assert_int_equal(child_stop(&c), 0);
}

/* No room on the disk: an error, the file that was there is still there, and nothing else lies beside it. */
static void limit_files(void)
{
	const struct rlimit r = { 4096, 4096 };

	setrlimit(RLIMIT_FSIZE, &r);
}

static void test_no_room(void **state)
{
	const char *const arguments[] = { "--no-cache", "--parallel", "2", "--slot-save", folder, NULL };
	struct child c = child_start(arguments);
	struct stat before, after;
	char path[200];
	(void)state;

	snprintf(path, sizeof path, "%s/full.bin", folder);
	json_decref(complete(&c, saved_prompt, 0, ""));
	json_decref(act(&c, 0, "save", "full.bin", 200));
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(child_stop(&c), 0);
	c = child_start_prepared(arguments, limit_files);
	json_decref(complete(&c, next_prompt, 0, ""));
	expect_refusal(&c, "/slots/0?action=save", "{\"filename\":\"full.bin\"}", 500, "full.bin");
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
	json_decref(act(&c, 0, "restore", "full.bin", 200));
	assert_int_equal(child_stop(&c), 0);
}

/* ---- how many answers are computed */

/* So many of two places are taken, within some seconds. */
static void await_busy(const struct child *c, unsigned busy)
{
	for (int i = 0; i < 1000; i++, usleep(10000)) {
		json_t *list = client_json(c, "/slots", NULL, 200), *one;
		unsigned n = 0;
		size_t k;
		assert_int_equal(json_array_size(list), 2);
		json_array_foreach(list, k, one) n += json_is_true(json_object_get(one, "is_processing"));
		json_decref(list);
		if (n == busy)
			return;
	}
	fail_msg("%u places are not taken", busy);
}

static void test_busy(void **state)
{
	static const char body[] = "{\"prompt\":\"The king\",\"n_predict\":-1,\"ignore_eos\":true,\"stream\":true}";
	static const char *const arguments[] = { "--no-cache", "--parallel", "2", "--device",
		                                 "ref",        "--threads",  "1", NULL };
	struct child c = child_start(arguments);
	char request[300];
	int fd[2];
	(void)state;

	snprintf(request, sizeof request,
	         "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", sizeof body - 1,
	         body);
	await_busy(&c, 0);
	for (unsigned i = 0; i < 2; i++) {
		json_decref(client_json(&c, "/slots?fail_on_no_slot=1", NULL, 200));
		fd[i] = client_connect(&c, false);
		client_send(fd[i], request, strlen(request));
		await_busy(&c, i + 1);
	}
	expect_refusal(&c, "/slots?fail_on_no_slot=1", NULL, 503, "no slot available");
	json_decref(client_json(&c, "/slots?fail_on_no_slot=0", NULL, 200));
	close(fd[0]);
	await_busy(&c, 1);
	json_decref(client_json(&c, "/slots?fail_on_no_slot=1", NULL, 200));
	close(fd[1]);
	await_busy(&c, 0);
	assert_int_equal(child_stop(&c), 0);
}

/* Without a seed of the server's own each request draws one. */
static void test_told_seed(void **state)
{
	static const char *const with[] = { "--no-cache", "--seed", "7", NULL }, *const without[] = {
		"--no-cache", NULL
	};
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct child c = child_start(i ? with : without);
		json_t *o = client_json(&c, "/props", NULL, 200);
		const json_t *settings = json_object_get(json_object_get(o, "default_generation_settings"), "params");
		assert_int_equal(integer(settings, "seed"), i ? 7 : -1);
		json_decref(o);
		assert_int_equal(child_stop(&c), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beginnings), cmocka_unit_test(test_speculation), cmocka_unit_test(test_save),
		cmocka_unit_test(test_killed),     cmocka_unit_test(test_refused),     cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_busy),       cmocka_unit_test(test_told_seed),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
