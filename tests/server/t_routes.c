/* tests/server/t_routes.c - each route that llama.cpp's server and ollama have: done, or refused with a sentence, but
 * never nothing at all; and what a path is answered with.
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

static struct child server;

static int start(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--no-replay", "--alias", "tale", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

static struct answer send(const char *method, const char *path, const char *body)
{
	char text[1000];
	const int fd = client_connect(&server, false);

	snprintf(text, sizeof text,
	         "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", method,
	         path, body ? strlen(body) : 0, body ? body : "");
	client_send(fd, text, strlen(text));
	struct answer a = client_read(fd, 60);
	close(fd);
	return a;
}

#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]"

static const struct row {
	const char *method, *path, *body;
	int status;
	const char *says;
} rows[] = {
	/* llama.cpp's server */
	{ "GET", "/health", NULL, 200, "ok" },
	{ "GET", "/v1/health", NULL, 200, "ok" },
	{ "GET", "/metrics", NULL, 200, "jitserve_" },
	{ "GET", "/props", NULL, 200, "total_slots" },
	{ "POST", "/props", "{}", 501, "No property is changed" },
	{ "GET", "/models", NULL, 200, "tale" },
	{ "GET", "/v1/models", NULL, 200, "tale" },
	{ "GET", "/v1/models/tale", NULL, 200, "tale" },
	{ "GET", "/v1/models/none", NULL, 404, "There is no model" },
	{ "POST", "/completion", "{\"prompt\":\"a\",\"n_predict\":1}", 200, "content" },
	{ "POST", "/completions", "{\"prompt\":\"a\",\"n_predict\":1}", 200, "content" },
	{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":1}", 200, "choices" },
	{ "POST", "/chat/completions", "{" USER ",\"max_tokens\":1}", 200, "choices" },
	{ "POST", "/v1/chat/completions", "{" USER ",\"max_tokens\":1}", 200, "choices" },
	{ "POST", "/v1/chat/completions/control", "{\"id\":\"a\"}", 501, "reasoning_budget" },
	{ "POST", "/v1/responses", "{\"input\":\"a\",\"max_output_tokens\":1}", 200, "output" },
	{ "POST", "/responses", "{\"input\":\"a\",\"max_output_tokens\":1}", 200, "output" },
	{ "POST", "/v1/audio/transcriptions", "{}", 501, "hear" },
	{ "POST", "/audio/transcriptions", "{}", 501, "hear" },
	{ "POST", "/v1/messages", "{" USER ",\"max_tokens\":1}", 200, "content" },
	{ "POST", "/infill", "{\"input_prefix\":\"a\",\"input_suffix\":\"b\"}", 400, "gap" },
	{ "POST", "/embedding", "{\"content\":\"a\"}", 200, "embedding" },
	{ "POST", "/embeddings", "{\"input\":\"a\"}", 200, "embedding" },
	{ "POST", "/v1/embeddings", "{\"input\":\"a\"}", 200, "embedding" },
	{ "POST", "/rerank", "{\"query\":\"a\",\"documents\":[\"b\"]}", 501, "rank" },
	{ "POST", "/reranking", "{\"query\":\"a\",\"documents\":[\"b\"]}", 501, "rank" },
	{ "POST", "/v1/rerank", "{\"query\":\"a\",\"documents\":[\"b\"]}", 501, "rank" },
	{ "POST", "/v1/reranking", "{\"query\":\"a\",\"documents\":[\"b\"]}", 501, "rank" },
	{ "POST", "/tokenize", "{\"content\":\"a\"}", 200, "tokens" },
	{ "POST", "/detokenize", "{\"tokens\":[1]}", 200, "content" },
	{ "POST", "/apply-template", "{" USER "}", 200, "prompt" },
	{ "POST", "/chat/completions/input_tokens", "{" USER "}", 200, "input_tokens" },
	{ "POST", "/v1/chat/completions/input_tokens", "{" USER "}", 200, "input_tokens" },
	{ "POST", "/responses/input_tokens", "{\"input\":\"a\"}", 200, "input_tokens" },
	{ "POST", "/v1/responses/input_tokens", "{\"input\":\"a\"}", 200, "input_tokens" },
	{ "POST", "/v1/messages/count_tokens", "{" USER "}", 200, "input_tokens" },
	{ "GET", "/lora-adapters", NULL, 200, "[]" },
	{ "POST", "/lora-adapters", "[]", 200, "true" },
	{ "POST", "/lora-adapters", "[{\"id\":0,\"scale\":0.5}]", 400, "has none; --lora names some" },
	{ "POST", "/lora-adapters", "{}", 400, "expected an array" },
	{ "POST", "/lora-adapters", "[", 400, "the body" },
	{ "POST", "/lora-adapters", NULL, 400, "the body" },
	{ "POST", "/v1/load_lora_adapter", "{}", 403, "--lora-dir" },
	{ "POST", "/v1/unload_lora_adapter", "{}", 403, "--lora-dir" },
	{ "GET", "/slots", NULL, 200, "is_processing" },
	{ "POST", "/slots/0?action=erase", "{}", 501, "--slot-save" },
	{ "GET", "/v1/stream", NULL, 501, "goes on without its client" },
	{ "DELETE", "/v1/stream", NULL, 501, "goes on without its client" },
	{ "POST", "/v1/streams/lookup", "{}", 501, "goes on without its client" },
	{ "GET", "/tools", NULL, 501, "runs no tools" },
	{ "POST", "/tools", "{}", 501, "runs no tools" },
	{ "GET", "/cors-proxy", NULL, 501, "fetches nothing" },
	{ "POST", "/cors-proxy", "{}", 501, "fetches nothing" },
	/* ollama */
	{ "HEAD", "/", NULL, 200, "" },
	{ "POST", "/api/generate", "{\"prompt\":\"a\",\"options\":{\"num_predict\":1},\"stream\":false}", 200, "done" },
	{ "POST", "/api/chat", "{" USER ",\"options\":{\"num_predict\":1},\"stream\":false}", 200, "done" },
	{ "POST", "/api/create", "{\"model\":\"a\",\"from\":\"tale\"}", 403, "--presets-dir" },
	{ "HEAD", "/api/blobs/sha256:00", NULL, 404, "" },
	{ "POST", "/api/blobs/sha256:00", "a", 501, "keeps no blobs" },
	{ "GET", "/api/tags", NULL, 200, "tale" },
	{ "HEAD", "/api/tags", NULL, 200, "" },
	{ "POST", "/api/show", "{\"model\":\"tale\"}", 200, "capabilities" },
	{ "POST", "/api/copy", "{\"source\":\"tale\",\"destination\":\"a\"}", 403, "--presets-dir" },
	{ "DELETE", "/api/delete", "{\"model\":\"tale\"}", 403, "deletes no model" },
	{ "POST", "/api/pull", "{\"model\":\"a/b\"}", 403, "--pull-with" },
	{ "POST", "/api/push", "{\"model\":\"tale\"}", 403, "nowhere" },
	{ "POST", "/api/embed", "{\"input\":\"a\"}", 200, "embeddings" },
	{ "POST", "/api/embeddings", "{\"prompt\":\"a\"}", 200, "embedding" },
	{ "GET", "/api/ps", NULL, 200, "tale" },
	{ "GET", "/api/version", NULL, 200, "version" },
	{ "HEAD", "/api/version", NULL, 200, "" },
	{ "POST", "/api/me", "{}", 501, "no accounts" },
	{ "POST", "/api/signout", "{}", 501, "no accounts" },
	{ "POST", "/api/web_search", "{}", 501, "fetches nothing" },
	{ "POST", "/api/web_fetch", "{}", 501, "fetches nothing" },
	/* OpenAI */
	{ "POST", "/v1/audio/speech", "{}", 501, "speak" },
	{ "POST", "/v1/audio/translations", "{}", 501, "hear" },
	{ "POST", "/v1/images/generations", "{}", 501, "draw" },
	{ "POST", "/v1/images/edits", "{}", 501, "draw" },
	{ "POST", "/v1/moderations", "{}", 501, "conversation" },
};

static void test_routes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct answer a = send(r->method, r->path, r->body);
		if (a.status != r->status || !strstr(a.body ? a.body : "", r->says))
			fail_msg("%s %s: status %d, expected %d and \"%s\": %s", r->method, r->path, a.status,
			         r->status, r->says, a.body);
		answer_free(&a);
	}
}

/* All methods of a path are told where another one is used. */
static void test_methods(void **state)
{
	static const struct {
		const char *path, *allow;
	} paths[] = {
		{ "/health", "GET, HEAD" },
		{ "/props", "GET, HEAD, POST" },
		{ "/v1/responses/a", "GET, HEAD, DELETE, POST" },
		{ "/lora-adapters", "GET, HEAD, POST" },
		{ "/v1/chat/completions", "POST" },
		{ "/api/delete", "DELETE" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct answer a = send("PUT", paths[i].path, NULL);
		const char *allow = answer_field(&a, "Allow");
		if (a.status != 405 || !allow || strcmp(allow, paths[i].allow) != 0)
			fail_msg("PUT %s: status %d, allowed: %s, expected %s", paths[i].path, a.status, allow,
			         paths[i].allow);
		answer_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_routes), cmocka_unit_test(test_methods) };

	return cmocka_run_group_tests(tests, start, stop);
}
