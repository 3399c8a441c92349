/* tests/server/t_folder.c - the models of a folder: those that are there and those that come, by their names; opened
 * when they are asked for, closed when nobody asks any more, and when that is asked for, but none that answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

static char folder[] = "/tmp/jitrun-folder-XXXXXX", model[4096];

static const char *in_folder(char out[200], const char *name)
{
	snprintf(out, 200, "%s/%s", folder, name);
	return out;
}

static void put(const char *name)
{
	char path[200];

	if (symlink(model, in_folder(path, name)))
		fail_msg("%s", path);
}

static int make_folder(void **state)
{
	char path[1024];
	(void)state;

	assert_non_null(mkdtemp(folder));
	assert_non_null(realpath(source_path(path, "models/tale-q8_0.gguf"), model));
	assert_int_equal(mkdir(in_folder(path, "sub"), 0700), 0);
	put("one.gguf");
	put("sub/two.gguf");
	put("mmproj-one.gguf");
	put("big-00001-of-00002.gguf");
	put("big-00002-of-00002.gguf");
	FILE *f = fopen(in_folder(path, "half.gguf"), "w");
	assert_non_null(f);
	fputs("GGUF", f);
	fclose(f);
	return 0;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "one.gguf",  "mmproj-one.gguf",         "big-00001-of-00002.gguf",
		                             "half.gguf", "big-00002-of-00002.gguf", "sub/two.gguf",
		                             "late.gguf" };
	char path[200];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(in_folder(path, names[i]));
	rmdir(in_folder(path, "sub"));
	return rmdir(folder);
}

/* "unloaded"; "": it is not listed. */
static void status_of(const struct child *c, const char *name, char out[20])
{
	json_t *o = client_json(c, "/models", NULL, 200), *one;
	size_t i;

	out[0] = 0;
	json_array_foreach(json_object_get(o, "data"), i, one)
	{
		json_t *status = json_object_get(one, "status");
		if (strcmp(json_string_value(json_object_get(one, "id")), name) == 0)
			snprintf(out, 20, "%s", json_string_value(json_object_get(status, "value")));
	}
	json_decref(o);
}

/* Within some seconds. */
static void becomes(const struct child *c, const char *name, const char *status)
{
	char is[20] = "";

	for (int i = 0; i < 500; i++) {
		status_of(c, name, is);
		if (strcmp(is, status) == 0)
			return;
		usleep(20000);
	}
	fail_msg("%s is %s, expected %s", name, is, status);
}

static void is(const struct child *c, const char *name, const char *status)
{
	char now[20];

	status_of(c, name, now);
	if (strcmp(now, status) != 0)
		fail_msg("%s is \"%s\", expected \"%s\"", name, now, status);
}

static void ask(const struct child *c, const char *name, int status)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"prompt\":\"The king\",\"max_tokens\":4}", name);
	json_decref(client_json(c, "/v1/completions", body, status));
}

static void command(const struct child *c, const char *path, const char *name, int status)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\"}", name);
	json_t *o = client_json(c, path, body, status);
	assert_int_equal(json_is_true(json_object_get(o, "success")), status == 200);
	json_decref(o);
}

/* What the model takes, in its parts: the cache has something, or has not. */
static void check_bytes(const struct child *c, const char *name, bool loaded, bool cached)
{
	static const char *const names[] = { "bytes", "weight_bytes", "kv_bytes", "reserved_bytes" };
	json_int_t v[4] = { 0 };
	char path[300];

	snprintf(path, sizeof path, "/v1/models/%s", name);
	json_t *o = client_json(c, path, NULL, 200), *s = json_object_get(o, "status");
	for (int i = 0; i < 4; i++)
		v[i] = json_integer_value(json_object_get(s, names[i]));
	assert_true(v[0] == v[1] + v[2] && v[3] >= v[0]);
	assert_int_equal(v[1] > 0, loaded);
	assert_int_equal(v[2] > 0, cached);
	assert_true(loaded ? v[3] - v[1] <= 8 << 20 && v[3] - v[1] > 1 << 20 : v[3] == 0); /* --kv-memory 8 */
	assert_int_equal(json_array_size(json_object_get(json_object_get(o, "architecture"), "input_modalities")), 1);
	assert_true(json_is_array(json_object_get(o, "aliases")) && json_is_array(json_object_get(o, "tags")));
	json_decref(o);
}

static void test_names(void **state)
{
	const char *const arguments[] = { "--models-dir", folder,       "--kv-memory", "8", "--keep-alive",
		                          "1h",           "--no-cache", "--no-replay", NULL };
	struct child c = child_start_without(arguments);
	char path[200], of[200];
	(void)state;

	is(&c, "one", "unloaded");
	is(&c, "sub/two", "unloaded");
	is(&c, "mmproj-one", "");
	is(&c, "half", "");
	check_bytes(&c, "one", false, false);
	command(&c, "/models/load", "one", 200);
	check_bytes(&c, "one", true, false);
	ask(&c, "one", 200);
	is(&c, "one", "loaded");
	check_bytes(&c, "one", true, true);
	is(&c, "sub/two", "unloaded");
	ask(&c, "sub/two", 200);
	ask(&c, "two", 200); /* the file's name is understood */
	is(&c, "one", "loaded");
	ask(&c, "none", 404);
	json_decref(client_json(&c, "/v1/models/one", NULL, 200));
	/* what comes is there at once, what goes is not found any more */
	ask(&c, "late", 404);
	put("late.gguf");
	ask(&c, "late", 200);
	is(&c, "late", "loaded");
	unlink(in_folder(path, "late.gguf"));
	is(&c, "late", "");
	ask(&c, "late", 404);
	put("late.gguf");
	is(&c, "late", "loaded");
	/* a file that was not whole */
	rename(in_folder(path, "one.gguf"), in_folder(of, "half.gguf"));
	is(&c, "one", "");
	ask(&c, "half", 200);
	rename(of, path);
	assert_int_equal(child_stop(&c), 0);
}

static void test_requests(void **state)
{
	const char *const arguments[] = { "--models-dir", folder, "--kv-memory", "8", "--models-max", "1",
		                          "--keep-alive", "-1",   "--no-cache",  NULL };
	struct child c = child_start_without(arguments);
	(void)state;

	command(&c, "/models/load", "one", 200);
	is(&c, "one", "loaded");
	command(&c, "/models/load", "one", 400);
	command(&c, "/models/load", "none", 404);
	json_decref(client_json(&c, "/models/load", "{}", 400));
	json_decref(client_json(&c, "/models/load", "{\"model\":7}", 400));
	command(&c, "/models/load", "big", 200);
	/* one at a time */
	ask(&c, "sub/two", 200);
	is(&c, "sub/two", "loaded");
	is(&c, "one", "unloaded");
	command(&c, "/models/unload", "sub/two", 200);
	becomes(&c, "sub/two", "unloaded");
	command(&c, "/models/unload", "sub/two", 400);
	command(&c, "/models/unload", "none", 400);
	json_decref(client_json(&c, "/models/unload", "{\"model\":null}", 400));
	ask(&c, "sub/two", 200);
	assert_int_equal(child_stop(&c), 0);
}

static void *ask_long(void *user)
{
	json_t *o =
		client_json(user, "/v1/completions",
	                    "{\"model\":\"one\",\"prompt\":\"The king\",\"max_tokens\":900,\"ignore_eos\":true}", 200);
	json_t *choice = json_array_get(json_object_get(o, "choices"), 0);

	assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")), "length");
	json_decref(o);
	return NULL;
}

/* An answer that runs is finished, although the model was asked to leave, and another one is answered after it. */
static void test_leaves_after_answers(void **state)
{
	const char *const arguments[] = { "--models-dir", folder, "--kv-memory", "8",
		                          "--keep-alive", "0",    "--no-cache",  NULL };
	struct child c = child_start_without(arguments);
	pthread_t thread;
	(void)state;

	ask(&c, "one", 200);
	becomes(&c, "one", "unloaded");
	command(&c, "/models/load", "one", 200);
	becomes(&c, "one", "unloaded");
	assert_int_equal(pthread_create(&thread, NULL, ask_long, &c), 0);
	becomes(&c, "one", "loaded");
	struct answer a = client_ask(&c, "/models/unload", NULL, "{\"model\":\"one\"}");
	answer_free(&a);
	ask(&c, "one", 200);
	pthread_join(thread, NULL);
	becomes(&c, "one", "unloaded");
	assert_int_equal(child_stop(&c), 0);
}

static void test_idle(void **state)
{
	const char *const arguments[] = { "--models-dir", folder,  "--kv-memory", "8",
		                          "--keep-alive", "300ms", "--no-cache",  NULL };
	struct child c = child_start(arguments);
	(void)state;

	is(&c, "tale-q8_0", "loaded");
	becomes(&c, "tale-q8_0", "unloaded");
	ask(&c, "one", 200);
	is(&c, "one", "loaded");
	becomes(&c, "one", "unloaded");
	ask(&c, "tale-q8_0", 200);
	assert_int_equal(child_stop(&c), 0);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *arguments, *says;
		int status;
	} wrong[] = { { "--models-dir /nonesuch", "--models-dir is /nonesuch, which is no folder that can be read", 1 },
		      { "--models-dir /tmp --keep-alive 5q", "--keep-alive: expected seconds", 2 },
		      { "--models-dir /tmp --models-max 1000", "--models-max: \"1000\" is not", 2 } };
	char said[4000];
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		int status = child_says(false, wrong[i].arguments, said, sizeof said);
		if (status != wrong[i].status || !strstr(said, wrong[i].says))
			fail_msg("%s: status %d: %s", wrong[i].arguments, status, said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_requests),
		                            cmocka_unit_test(test_leaves_after_answers), cmocka_unit_test(test_idle),
		                            cmocka_unit_test(test_wrong) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
