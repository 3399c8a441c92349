/* tests/server/t_limits.c - limits on what clients may take: answers of a request, files of slots, and memory, which
 * large requests give back when they are over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"

static void expect(const struct child *c, const char *path, const char *body, int status, const char *says)
{
	struct answer a = client_ask(c, path, NULL, body);

	if (a.status != status || !strstr(a.body, says))
		fail_msg("%s %s: status %d, expected %d and \"%s\": %s", path, body, a.status, status, says, a.body);
	answer_free(&a);
}

static int number(const json_t *o, const char *key) { return (int)json_integer_value(json_object_get(o, key)); }

static const char *string(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

/* A request may have a shorter context than the server's 512, and no longer one. */
static void check_contexts(const struct child *c)
{
	static const char requested[] =
		"{\"prompt\":[1,300,17,9],\"temperature\":0,\"ignore_eos\":true,\"n_predict\":%d,"
		"\"%s\":%d}";
	static const char *const names[] = { "num_ctx", "n_ctx" };
	char body[300];

	for (int i = 0; i < 2; i++)
		for (int room = 4; room < 8; room++) {
			snprintf(body, sizeof body, requested, room % 2 ? -1 : 100, names[i], room);
			json_t *o = client_json(c, "/completion", body, 200);
			assert_int_equal(number(o, "tokens_predicted"), room - 4 + 1);
			assert_string_equal(string(o, "stop_type"), "limit");
			json_decref(o);
		}
	snprintf(body, sizeof body, requested, 2, "num_ctx", 100); /* what is less than that is as it was */
	json_t *o = client_json(c, "/completion", body, 200);
	assert_int_equal(number(o, "tokens_predicted"), 2);
	json_decref(o);
	for (int room = 3; room < 1000; room += 510) {
		snprintf(body, sizeof body, requested, 2, "num_ctx", room);
		o = client_json(c, "/completion", body, 400);
		json_t *e = json_object_get(o, "error");
		assert_string_equal(string(e, "type"), "exceed_context_size_error");
		assert_int_equal(number(e, "n_ctx"), room < 512 ? room : 512);
		json_decref(o);
	}
	for (int model = 0; model < 2; model++) {
		o = client_json(c, model ? "/props" : "/v1/models", NULL, 200);
		json_t *of = model ? json_object_get(o, "default_generation_settings")
		                   : json_object_get(json_array_get(json_object_get(o, "data"), 0), "meta");
		assert_int_equal(number(of, "n_ctx"), 512);
		json_decref(o);
	}
}

/* A list of texts is read up to the first one that is too long: of the next, which has a token that no model has,
 * nothing is said. */
static void check_lists(const struct child *c)
{
	static const struct {
		const char *path, *field;
	} forms[] = { { "/v1/completions", "prompt" },
		      { "/completion", "prompt" },
		      { "/v1/embeddings", "input" },
		      { "/embedding", "content" },
		      { "/api/embed", "truncate\":false,\"input" } };
	for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
		for (int n = 512; n < 514; n++) { /* 512 fit, and then the next one is read */
			char *body = malloc(8192), *at = body;
			assert_non_null(body);
			at += sprintf(at, "{\"%s\":[[1", forms[k].field);
			for (int i = 1; i < n; i++)
				at += sprintf(at, ",%d", 300 + i % 7);
			sprintf(at, "],[999999999]]}");
			expect(c, forms[k].path, body, 400,
			       n > 512 ? "exceeds the available context size" : "has token 999999999");
			free(body);
		}
}

/* ---- answers */

static void test_answers(void **state)
{
	static const char *const arguments[] = { "--max-answers", "4", "--max-answers-per-client", "6", "--context",
		                                 "512",           NULL };
	static const char more[] = "expected at most 4 (--max-answers)";
	struct child c = child_start(arguments);
	(void)state;

	expect(&c, "/v1/completions", "{\"prompt\":\"a\",\"n\":4,\"max_tokens\":1}", 200, "choices");
	expect(&c, "/v1/completions", "{\"prompt\":\"a\",\"n\":5,\"max_tokens\":1}", 400, more);
	expect(&c, "/v1/completions", "{\"prompt\":[\"a\",\"b\"],\"n\":2,\"max_tokens\":1}", 200, "choices");
	expect(&c, "/v1/completions", "{\"prompt\":[\"a\",\"b\",\"c\"],\"n\":2,\"max_tokens\":1}", 400, more);
	expect(&c, "/v1/chat/completions",
	       "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"n\":5,\"max_tokens\":1}", 400, more);
	check_contexts(&c);
	check_lists(&c);
	/* texts that are embedded are none */
	expect(&c, "/v1/embeddings", "{\"input\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]}", 200, "embedding");
	assert_int_equal(child_stop(&c), 0);
}

/* ---- files */

static char folder[] = "/tmp/t_limits-XXXXXX";

static void save(const struct child *c, const char *name, int status, const char *says)
{
	char body[100];

	snprintf(body, sizeof body, "{\"filename\":\"%s\"}", name);
	expect(c, "/slots/0?action=save", body, status, says);
}

static unsigned files_there(uint64_t *bytes)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned n = 0;

	*bytes = 0;
	assert_non_null(d);
	while ((e = readdir(d))) {
		struct stat st;
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode)) {
			n++;
			*bytes += (uint64_t)st.st_size;
		}
	}
	closedir(d);
	return n;
}

static struct child start_with_slot(const char *files, const char *mib)
{
	const char *const arguments[] = { "--slot-save", folder, "--slot-files", files, "--slot-files-mib", mib, NULL };
	struct child c = child_start(arguments);

	expect(&c, "/completion", "{\"prompt\":\"Once upon a time\",\"n_predict\":20,\"id_slot\":0,\"temperature\":0}",
	       200, "content");
	return c;
}

static void test_files(void **state)
{
	char command[100];
	uint64_t bytes;
	(void)state;

	assert_non_null(mkdtemp(folder));
	struct child c = start_with_slot("2", "0");
	save(&c, "a", 200, "n_written");
	save(&c, "b", 200, "n_written");
	save(&c, "c", 507, "2 files of saved slots already, and 2 may be there (--slot-files)");
	save(&c, "a", 200, "n_written");
	assert_int_equal(files_there(&bytes), 2);
	expect(&c, "/slots/0?action=restore", "{\"filename\":\"a\"}", 200, "n_restored");
	expect(&c, "/slots/0?action=restore", "{\"filename\":\"c\"}", 400, "");
	assert_int_equal(child_stop(&c), 0);

	/* A file of others counts, too: a MiB is full with it. */
	snprintf(command, sizeof command, "rm %s/a; truncate -s 1000000 %s/b", folder, folder);
	assert_int_equal(system(command), 0);
	c = start_with_slot("0", "1");
	save(&c, "a", 507, "and all may have 1048576 (--slot-files-mib)");
	assert_int_equal(files_there(&bytes), 1);
	assert_int_equal(bytes, 1000000);
	save(&c, "b", 200, "n_written");
	assert_int_equal(files_there(&bytes), 1);
	assert_int_equal(child_stop(&c), 0);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

/* ---- memory */

static long resident_mib(const struct child *c)
{
	char path[40], line[200];
	long kib = 0;

	snprintf(path, sizeof path, "/proc/%d/status", (int)c->pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	fclose(f);
	return kib >> 10;
}

enum { CLIENTS = 6, TEXTS = 200000 };
static char *large;

static void *send_large(void *user)
{
	struct answer a = client_ask(user, "/detokenize", NULL, large);

	assert_int_equal(a.status, 400);
	answer_free(&a);
	return NULL;
}

/* Many large bodies with many values, at the same time: what they took goes back to the system. */
static void test_memory(void **state)
{
	static const char *const arguments[] = { "--no-replay", NULL };
	struct child c = child_start(arguments);
	pthread_t client[CLIENTS];
	(void)state;

	large = malloc(TEXTS * 32 + 100);
	assert_non_null(large);
	size_t n = (size_t)sprintf(large, "{\"tokens\":[");
	for (int i = 0; i < TEXTS; i++)
		n += (size_t)sprintf(large + n, "{\"text\":\"%d\",\"b\":[%d]},", i, i % 10);
	strcpy(large + n, "0]}");
	long before = resident_mib(&c), max = 0, after = 0;
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&client[i], NULL, send_large, &c), 0);
	for (int i = 0; i < CLIENTS; i++) {
		long now = resident_mib(&c);
		max = now > max ? now : max;
		pthread_join(client[i], NULL);
	}
	for (int i = 0; i < 50; i++) {
		usleep(100000);
		after = resident_mib(&c);
		if (after < before + 60)
			break;
	}
	print_message("# resident, MiB: %ld, meanwhile %ld, then %ld\n", before, max, after);
	if (!SANITIZED)
		assert_true(after < before + 60);
	free(large);
	assert_int_equal(child_stop(&c), 0);
}

/* n bytes of these, with what stands before and behind them. The caller frees it. */
static char *repeated(const char *before, const char *part, size_t n, const char *behind)
{
	const size_t length = strlen(part);
	char *text = malloc(strlen(before) + n * length + strlen(behind) + 1);

	assert_non_null(text);
	strcpy(text, before);
	char *at = text + strlen(before);
	for (size_t i = 0; i < n; i++, at += length)
		memcpy(at, part, length);
	strcpy(at, behind);
	return text;
}

/* Little text that would take much memory or time is refused, in a sentence. */
static void test_large(void **state)
{
	const struct {
		const char *path, *before, *part, *behind, *says;
		size_t n;
	} rows[] = {
		{ "/v1/completions", "{\"prompt\":\"x\",\"metadata\":[", "{},", "{}]}",
		  "the body: its values take more than 192 MiB of memory", 950000 },
		{ "/lora-adapters", "[", "{},", "{}]", "the body: its values take more than 192 MiB of memory",
		  950000 },
		{ "/tokenize", "{\"content\":\"", "abcdefgh", "\"}",
		  "content has a text of 4194312 bytes, expected at most 4194304", (4 << 20) / 8 + 1 },
		{ "/tokenize", "{\"content\":[\"a\",\"", "abcdefgh", "\"]}",
		  "content has a text of 4194305 bytes, expected at most 4194304", (4 << 20) / 8 },
		{ "/tokenize", "{\"with_pieces\":true,\"content\":[", "1,", "\"\"]}", NULL, 1000 },
		{ "/tokenize", "{\"with_pieces\":true,\"content\":\"", "a ", "\"}", "at most 262144 with with_pieces",
		  270000 },
		{ "/v1/completions", "{\"prompt\":\"", "abcdefgh", "\"}", "prompt has a text of 4194312 bytes",
		  (4 << 20) / 8 + 1 },
		{ "/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"", "abcdefgh", "\"}]}",
		  "messages has a text of ", (4 << 20) / 8 + 1 },
		{ "/api/generate", "{\"raw\":true,\"prompt\":\"", "abcdefgh", "\"}",
		  "prompt has a text of 4194312 bytes", (4 << 20) / 8 + 1 },
	};
	struct child c = child_start((const char *const[]){ "--no-replay", NULL });
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *body = repeated(rows[i].before, rows[i].part, rows[i].n, rows[i].behind);
		struct answer a = client_ask(&c, rows[i].path, NULL, body);
		const int status = rows[i].says ? 413 : 200;
		if (a.status != status || (rows[i].says && !strstr(a.body, rows[i].says)))
			fail_msg("row %zu: status %d, expected %d and \"%s\": %.300s", i, a.status, status,
			         rows[i].says ? rows[i].says : "", a.body);
		answer_free(&a);
		free(body);
	}
	/* Each member of a body is looked at. */
	char *body = malloc(40000);
	assert_non_null(body);
	size_t n = (size_t)sprintf(body, "{\"prompt\":\"x\"");
	for (unsigned i = 0; i < 1000; i++)
		n += (size_t)sprintf(body + n, ",\"k%u\":1", i);
	strcpy(body + n, "}");
	expect(&c, "/v1/completions", body, 413, "the body has 1001 members, expected at most 1000");
	free(body);
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers), cmocka_unit_test(test_files),
		                            cmocka_unit_test(test_memory), cmocka_unit_test(test_large) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
