/* tests/server/t_kept_responses.c - which responses are forgotten: the oldest, beyond a number, bytes or time; and
 * those that went on from a forgotten one still go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/system.h"
#include "server/responses/response_store.h"
#include "tests/server/client.h"
#include "tests/server/json_at.h"

#define PATH "/v1/responses"
#define SHORT "\"temperature\":0,\"max_output_tokens\":4,"

/* ---- the store itself */

static void put(struct response_store *s, uint64_t owner, const char *id, size_t bytes)
{
	char *text = calloc(1, bytes + 1);
	json_t *items = json_array(), *response = json_object();

	assert_non_null(text);
	memset(text, 'a', bytes);
	json_array_append_new(items, json_string(text));
	json_object_set_new(response, "id", json_string(id));
	response_store_put(s, owner, id, response, items);
	json_decref(items);
	json_decref(response);
	free(text);
}

static bool has(struct response_store *s, uint64_t owner, const char *id)
{
	json_t *o = response_store_get(s, owner, id), *items = response_store_items(s, owner, id);

	assert_true(!o == !items);
	assert_true(!o || strcmp(text_at(o, "id"), id) == 0);
	json_decref(o);
	json_decref(items);
	return o != NULL;
}

static void test_bytes(void **state)
{
	struct response_store *s = response_store_open(100, 10000, 1000);
	(void)state;

	put(s, 1, "a", 4000);
	put(s, 1, "b", 4000);
	assert_true(has(s, 1, "a") && has(s, 1, "b"));
	assert_true(has(s, 1, "a")); /* asked for last */
	put(s, 1, "c", 4000);
	assert_true(has(s, 1, "a") && !has(s, 1, "b") && has(s, 1, "c"));
	put(s, 1, "d", 9500); /* as much as several */
	assert_true(!has(s, 1, "a") && !has(s, 1, "c") && has(s, 1, "d"));
	put(s, 1, "e", 10001); /* has no room, and takes none from others */
	assert_true(!has(s, 1, "e") && has(s, 1, "d"));
	assert_true(!has(s, 2, "d") && !response_store_drop(s, 2, "d") && response_store_drop(s, 1, "d"));
	for (int i = 0; i < 50; i++) /* what was dropped is counted no more */
		put(s, 1, i % 2 ? "f" : "g", 4000);
	assert_true(has(s, 1, "f") && has(s, 1, "g"));
	response_store_close(s);
}

static void test_time(void **state)
{
	struct response_store *s = response_store_open(100, 10000, 1.5);
	const struct timespec second = { .tv_sec = 1 }, two = { .tv_sec = 2 };
	(void)state;

	put(s, 1, "a", 10);
	put(s, 1, "b", 10);
	nanosleep(&second, NULL);
	/* A machine with much else to do may have slept for longer. */
	const double before = system_seconds();
	const bool used = has(s, 1, "a");
	nanosleep(&second, NULL);
	assert_false(has(s, 1, "b"));
	const bool still = has(s, 1, "a"); /* it was asked for a second ago */
	assert_true(used ? still || system_seconds() - before > 1.4 : !still);
	nanosleep(&two, NULL);
	assert_false(has(s, 1, "a"));
	response_store_close(s);
	s = response_store_open(100, 10000, 1000);
	put(s, 1, "a", 10);
	assert_true(has(s, 1, "a"));
	response_store_close(s);
}

static void test_number(void **state)
{
	struct response_store *s = response_store_open(2, 1 << 20, 1000);
	(void)state;

	put(s, 1, "a", 10);
	put(s, 1, "b", 10);
	put(s, 1, "c", 10);
	assert_true(!has(s, 1, "a") && has(s, 1, "b") && has(s, 1, "c"));
	response_store_close(s);
	s = response_store_open(0, 1 << 20, 1000);
	put(s, 1, "a", 10);
	assert_false(has(s, 1, "a"));
	response_store_close(s);
}

/* ---- the server's options */

static void ask(const struct child *c, const char *previous, size_t bytes, char id[100])
{
	char *body = malloc(bytes + 500), *at = body;

	assert_non_null(body);
	at += sprintf(at, "{" SHORT "\"input\":[{\"type\":\"web_search_call\",\"id\":\"");
	memset(at, 'a', bytes); /* the model is told nothing of it */
	at += bytes;
	at += sprintf(at, "\"},{\"role\":\"user\",\"content\":\"Go\"}]");
	sprintf(at, *previous ? ",\"previous_response_id\":\"%s\"}" : "}", previous);
	json_t *o = client_json(c, PATH, body, 200);
	snprintf(id, 100, "%s", text_at(o, "id"));
	json_decref(o);
	free(body);
}

static void must_be(const struct child *c, const char *id, bool kept)
{
	char path[200];

	snprintf(path, sizeof path, PATH "/%.99s", id);
	json_decref(client_json(c, path, NULL, kept ? 200 : 404));
}

static void test_options(void **state)
{
	char a[100], b[100], d[100], e[100], f[100], body[300];
	struct child c = child_start(
		(const char *[]){ "--no-cache", "--keep-responses", "2", "--keep-responses-memory", "1", NULL });
	(void)state;

	ask(&c, "", 1, a);
	ask(&c, a, 1, b);
	ask(&c, b, 1, d);
	must_be(&c, a, false);
	ask(&c, b, 1, e); /* what b goes on from is gone, and b has all of it */
	must_be(&c, e, true);
	snprintf(body, sizeof body, "{\"input\":\"a\",\"previous_response_id\":\"%s\"}", a);
	/* With one model any name is understood, and told again. */
	json_t *named =
		client_json(&c, PATH, "{\"model\":\"a/b:c\",\"input\":\"A\",\"max_output_tokens\":1,\"store\":false}",
	                    200);
	assert_string_equal(text_at(named, "model"), "a/b:c");
	json_decref(named);
	json_t *o = client_json(&c, PATH, body, 400);
	assert_string_equal(text_at(o, "error/code"), "previous_response_not_found");
	assert_string_equal(text_at(o, "error/param"), "previous_response_id");
	assert_non_null(strstr(text_at(o, "error/message"), a));
	json_decref(o);
	/* in a mebibyte */
	ask(&c, "", 600000, a);
	must_be(&c, a, true);
	ask(&c, "", 600000, b);
	must_be(&c, b, true);
	must_be(&c, a, false);
	ask(&c, "", 1100000, f); /* is answered, and not kept */
	must_be(&c, f, false);
	must_be(&c, b, true);
	assert_int_equal(child_stop(&c), 0);
	c = child_start((const char *[]){ "--no-cache", "--keep-responses-time", "0", NULL });
	ask(&c, "", 1, a);
	must_be(&c, a, false);
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_time),
		                            cmocka_unit_test(test_number), cmocka_unit_test(test_options) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
