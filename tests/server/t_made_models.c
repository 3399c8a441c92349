/* tests/server/t_made_models.c - models that clients make of others: what is refused, many of them, and many clients at
 * the same time.
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
#include <unistd.h>

#include "tests/server/said_lines.h"
#include "tests/server/made_models.h"

/* ---- refusals */

static const struct {
	int status;
	const char *path, *body, *says;
} rows[] = {
	{ 400, "/api/create", "{\"from\":\"tale\"}", "model is missing" },
	{ 400, "/api/create", "{\"model\":\"x\"}", "from is missing" },
	{ 404, "/api/create", "{\"model\":\"x\",\"from\":\"nobody\"}", "model 'nobody' not found" },
	{ 400, "/api/create", "{\"model\":\"tale\",\"from\":\"tale\"}", "cannot be replaced" },
	{ 400, "/api/create", "{\"model\":\"tale:latest\",\"from\":\"tale\"}", "cannot be replaced" },
	{ 400, "/api/create", "{\"model\":\"../x\",\"from\":\"tale\"}", "model is \"../x\"" },
	{ 400, "/api/create", "{\"model\":\"a/b/c/d\",\"from\":\"tale\"}", "model is" },
	{ 400, "/api/create", "{\"model\":\"/x\",\"from\":\"tale\"}", "model is" },
	{ 400, "/api/create", "{\"model\":\"x:\",\"from\":\"tale\"}", "model is" },
	{ 400, "/api/create", "{\"model\":\"x%2F\",\"from\":\"tale\"}", "model is" },
	{ 400, "/api/create", "{\"model\":\"\",\"from\":\"tale\"}", "model is" },
	{ 400, "/api/create", "{\"model\":7,\"from\":\"tale\"}", "model is" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"files\":{\"a\":\"b\"}}", "files" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"adapters\":{\"a\":\"b\"}}", "adapters" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"quantize\":\"q4_0\"}", "quantize" },
	{ 400, "/api/create", "{\"model\":\"x\",\"modelfile\":\"FROM tale\"}", "modelfile" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"system\":7}", "system is" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"system\":\"a\\u0000b\"}", "system" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"license\":[7]}", "license has" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"messages\":[{\"role\":\"tool\",\"content\":\"\"}]}",
	  "messages[0]" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"messages\":[{\"role\":\"user\"}]}", "messages[0]" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"template\":\"/etc/passwd\"}", "template has" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"template\":\"{% for %}\"}", "template" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"template\":\"{{ if .System }}\"}", "template" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"From\":\"/x\"}}", "From" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"adapter\":\"/x\"}}", "adapter" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"nonesuch\":1}}", "nonesuch" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"temperature\":\"hot\"}}", "hot" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"temperature\":-1}}", "temp" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"temperature\":NaN}}",
	  "temperature" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"num_ctx\":1e99}}", "context" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"top_k\":{}}}", "top_k is" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":7}", "parameters is" },
	{ 400, "/api/create", "{\"model\":\"x\",\"from\":\"tale\",\"stream\":7}", "stream is" },
	{ 400, "/api/create", "7", "object" },
	{ 404, "/api/copy", "{\"source\":\"nobody\",\"destination\":\"x\"}", "not found" },
	{ 400, "/api/copy", "{\"source\":\"tale\"}", "destination is missing" },
	{ 400, "/api/copy", "{\"source\":\"tale\",\"destination\":\"..\"}", "destination is" },
	{ 400, "/api/copy", "{\"source\":\"tale\",\"destination\":\"tale\"}", "cannot be replaced" },
};

static void check_refused(int status, const char *path, const char *body, const char *says)
{
	struct answer a = client_ask(&server, path, NULL, body);
	json_t *o = json_loads(a.body ? a.body : "", 0, NULL);

	if (a.status != status || !strstr(text_at(o, "error"), says))
		fail_msg("%s %s: %d %s", path, body, a.status, a.body);
	assert_null(strstr(a.body, "secret %"));
	json_decref(o);
	answer_free(&a);
}

static void test_refusals(void **state)
{
	char reads[200];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_refused(rows[i].status, rows[i].path, rows[i].body, rows[i].says);
	snprintf(reads, sizeof reads, "{\"model\":\"x\",\"from\":\"tale\",\"parameters\":{\"TEMPLATE\":\"../%s\"}}",
	         secret);
	check_refused(400, "/api/create", reads, "TEMPLATE");
	char *body = malloc((2 << 20) + 200);
	int n = sprintf(body, "{\"model\":\"x\",\"from\":\"tale\",\"system\":\"");
	memset(body + n, 'a', 2 << 20);
	strcpy(body + n + (2 << 20), "\"}");
	json_decref(client_json(&server, "/api/create", body, 400));
	free(body);
	must_delete("tale", 403);
	must_delete("nobody", 404);
	assert_int_equal(files(), 0);
}

/* Beside a folder of models, which is looked at again and again: what was deleted stays so. */
static void test_beside_a_folder(void **state)
{
	char models[80], command[1400], path[1024];
	const struct child own = server;
	(void)state;

	snprintf(models, sizeof models, "%s.models", folder);
	snprintf(command, sizeof command, "mkdir %s && cp %s %s", models, source_path(path, "models/tale-q8_0.gguf"),
	         models);
	assert_int_equal(system(command), 0);
	server = child_start_without((const char *[]){
		"--models-dir", models, "--presets-dir", folder, "--kv-memory", "8", "--no-cache", NULL });
	make("mario", "\"from\":\"tale-q8_0\"");
	json_decref(talk("mario", HI, "\"max_tokens\":3"));
	must_delete("mario", 200);
	for (int i = 0; i < 2; i++) {
		json_t *list = client_json(&server, "/v1/models", NULL, 200);
		assert_int_equal(json_array_size(at(list, "data")), 1);
		json_decref(list);
	}
	must_delete("mario", 404);
	assert_int_equal(child_stop(&server), 0);
	snprintf(command, sizeof command, "rm -r %s", models);
	assert_int_equal(system(command), 0);
	server = own;
}

/* ---- many at once */

/* More than there are entries for, one after the other. */
static void test_again_and_again(void **state)
{
	char name[40], more[100];
	(void)state;

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "model-%d", i);
		snprintf(more, sizeof more, "\"from\":\"tale\",\"system\":\"Number %d.\"", i);
		make(name, more);
		if (i % 60 == 59) {
			snprintf(more, sizeof more, "{\"role\":\"system\",\"content\":\"Number %d.\"}," HI, i);
			check_same(name, HI, "\"seed\":3,\"max_tokens\":6", more, "\"seed\":3,\"max_tokens\":6");
		}
		must_delete(name, 200);
	}
	assert_int_equal(files(), 0);
}

/* The entries are used up at last, which is said. */
static void test_too_many(void **state)
{
	char name[40], body[100];
	int made = 0, status = 200;
	(void)state;

	for (; status == 200 && made < 200; made += status == 200) {
		snprintf(body, sizeof body, "{\"model\":\"model-%d\",\"from\":\"tale\"}", made);
		struct answer a = client_ask(&server, "/api/create", NULL, body);
		status = a.status;
		answer_free(&a);
	}
	assert_int_equal(status, 503);
	assert_true(made > 120 && made < 128);
	for (int i = 0; i < made; i++) {
		snprintf(name, sizeof name, "model-%d", i);
		must_delete(name, 200);
	}
	make("mario", MARIO);
	check_same("mario", HI, "", SYSTEM "," BEGINS "," HI, AS_MARIO);
	must_delete("mario", 200);
}

/* Four clients on three names: every status is one that a lone client could get, answers are whole, and in the end the
 * list and the folder agree. */
static void *meddle(void *user)
{
	unsigned dice = (unsigned)(uintptr_t)user, wrong = 0;
	char body[300];

	for (int i = 0; i < (test_quick() ? 40 : 300); i++) {
		dice = dice * 1664525u + 1013904223u;
		const unsigned what = dice >> 28, name = (dice >> 20) % 3, other = (dice >> 16) % 3;
		struct answer a;
		if (what < 5) {
			snprintf(body, sizeof body, "{\"model\":\"m%u\",\"from\":\"tale\",\"system\":\"%u\"}", name,
			         dice);
			a = client_ask(&server, "/api/create", NULL, body);
			wrong += a.status != 200;
		} else if (what < 7) {
			snprintf(body, sizeof body, "{\"source\":\"m%u\",\"destination\":\"m%u\"}", other, name);
			a = client_ask(&server, "/api/copy", NULL, body);
			wrong += a.status != 200 && a.status != 404;
		} else if (what < 9) {
			snprintf(body, sizeof body, "m%u", name);
			a = delete (body);
			wrong += a.status != 200 && a.status != 404;
		} else if (what < 11) {
			snprintf(body, sizeof body, "{\"model\":\"m%u\"}", name);
			a = client_ask(&server, "/api/show", NULL, body);
			wrong += a.status != 200 && a.status != 404;
		} else if (what < 13) {
			a = client_ask(&server, what == 11 ? "/api/tags" : "/v1/models", NULL, NULL);
			wrong += a.status != 200;
		} else {
			snprintf(body, sizeof body,
			         "{\"model\":\"m%u\",\"prompt\":\"Hi\",\"stream\":false,\"max_tokens\":3}", name);
			a = client_ask(&server, "/api/generate", NULL, body);
			wrong += a.status != 200 && a.status != 404;
		}
		if (wrong)
			printf("# %u: %d %s\n", what, a.status, a.body);
		answer_free(&a);
		if (wrong)
			break;
	}
	return (void *)(uintptr_t)wrong;
}

static void test_together(void **state)
{
	enum { CLIENTS = 4 };
	pthread_t thread[CLIENTS];
	(void)state;

	for (uintptr_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, meddle, (void *)(i + 1)), 0);
	for (int i = 0; i < CLIENTS; i++) {
		void *wrong;
		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	json_t *list = client_json(&server, "/v1/models", NULL, 200);
	assert_int_equal(json_array_size(at(list, "data")), files() + 1);
	json_decref(list);
	for (char name[] = "m0"; name[1] < '3'; name[1]++) {
		struct answer a = delete (name);
		answer_free(&a);
	}
	assert_int_equal(files(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),        cmocka_unit_test(test_beside_a_folder),
		cmocka_unit_test(test_together),        cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_again_and_again),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
