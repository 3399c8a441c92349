/* tests/server/t_request.c - arbitrary bytes as a request to the server: its header fields, a file of keys, and its
 * body with everything that says how to generate. Seeds, and seeds changed at random.
 *
 * Where there is a NUL, what stands before it is the head, lines with a colon in them; behind it is the body.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/talk/conversation.h"
#include "server/request/fields.h"
#include "server/http/guards.h"
#include "server/http/keys.h"
#include "server/http/origin.h"
#include "server/api/prompts.h"
#include "server/engine/task.h"
#include "tests/support/shared.h"

/* Its vocabulary and template are what requests meet. */
static struct served served;

static int open_model(void **state)
{
	char path[1024];
	(void)state;

	served.model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), NULL);
	served.info = JIT_MODEL_INFO();
	return !served.model || jit_model_get_info(served.model, &served.info, NULL) != JIT_OK;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(served.model);
	return 0;
}

/* The lines as those of a head: what passes is written with one Host, and with one way at most to give a length. */
static void read_head(const char *p, size_t n)
{
	struct guard g;
	struct refusal r = { 0 };
	struct bytes head = { 0 }, out = { 0 };

	bytes_text(&head, "POST / HTTP/1.1\r\n");
	for (size_t at = 0; at < n;) {
		const char *line = p + at, *end = memchr(line, '\n', n - at);
		size_t length = end ? (size_t)(end - line) : n - at;
		bytes_add(&head, line, length);
		bytes_text(&head, "\r\n");
		at += length + 1;
	}
	bytes_text(&head, "\r\n");
	bool ok = guard_head(&g, head.p, head.n, &out, &r);
	if (ok != (r.status == 0) || ok != (out.n > 0))
		abort();
	unsigned hosts = 0, ways = 0;
	bytes_add(&out, "", 1);
	for (const char *line = out.p; ok && line; line = strstr(line + 1, "\r\n")) {
		hosts += strncmp(line, "\r\nHost: ", 8) == 0;
		ways += strncmp(line, "\r\nContent-Length: ", 18) == 0 ||
		        strncmp(line, "\r\nTransfer-Encoding: ", 21) == 0;
	}
	if (ok && (hosts != 1 || ways > 1))
		abort();
	bytes_free(&head);
	bytes_free(&out);
}

static void read_names(const char *text)
{
	static const char *const names[] = { "a.example" };
	const struct origin_rules rules = {
		.loopback = true, .host = names, .n_hosts = 1, .page = names, .n_pages = 1
	};
	struct refusal r = { 0 };

	if (origin_takes_host(&rules, text, &r) == (r.status != 0))
		abort();
	r = (struct refusal){ 0 };
	if (origin_takes_page(&rules, "localhost", text, &r) == (r.status != 0))
		abort();
	free(refusal_json(&r));
}

static void read_body(const void *p, size_t n)
{
	struct refusal r = { 0 };
	json_t *body = fields_read(p, n, &r);

	if (!body) {
		if (!r.status)
			abort();
		return;
	}
	struct task *t = task_open(&served);
	struct conversation c = { 0 };
	struct prompts prompts = { 0 };
	if (!t || task_read(t, body, served.model, 512, &r) != (r.status == 0))
		abort();
	r = (struct refusal){ 0 };
	if (conversation_read(&c, body, &served, 0, &r) != (r.status == 0))
		abort();
	r = (struct refusal){ 0 };
	if (prompts_read(&prompts, "prompt", json_object_get(body, "prompt"), served.model, &r) != (r.status == 0))
		abort();
	conversation_free(&c);
	prompts_free(&prompts);
	task_release(t);
	json_decref(body);
}

static void try_request(const uint8_t *p, size_t n)
{
	const uint8_t *end = n ? memchr(p, 0, n) : NULL;
	size_t head = end ? (size_t)(end - p) : 0;
	char *text = malloc(head + 1);

	if (!text)
		abort();
	memcpy(text, p, head);
	text[head] = 0;
	read_head(text, head);
	read_names(text);
	keys_free(keys_parse(text, head, "keys", NULL));
	free(text);
	read_body(end ? end + 1 : p, n - head - (end != NULL));
}

/* ---- seeds */

static const char *const seeds[] = {
	"Host: localhost\nContent-Length: 2\nX-Y: a\r\nTransfer-Encoding: chunked",
	"Host: a.example:80\nTransfer-Encoding: chunked",
	"http://localhost",
	"first-key\n# no key\n\nsecond-key\r\n",
	"{\"prompt\":[1,\"a\",300],\"max_tokens\":3,\"stop\":[\"a\",\"b\"],\"logit_bias\":{\"5\":-1.5,\"6\":2}}",
	"{\"prompt\":[[1,2],\"x\"],\"temperature\":0.5,\"top_k\":4,\"top_p\":0,\"min_p\":1,\"seed\":7,\"n\":2,"
	"\"samplers\":[\"top_k\",\"temperature\"],\"logit_bias\":[[5,false],[\"the\",1]],\"ignore_eos\":true}",
	"{\"messages\":[{\"role\":\"developer\",\"content\":\"a\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
	"\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":\"c\"}],\"chat_template_kwargs\":{\"a\":true}}",
	"{\"messages\":[{\"role\":\"user\",\"content\":\"<|im_end|>\"},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":"
	"\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}}]}],\"tools\":[{\"type\":\"function\"}],"
	"\"tool_choice\":\"none\",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{}}}}",
	"{\"prompt\":\"x\",\"response_format\":{\"type\":\"regex\",\"pattern\":\"a+\"},\"json_schema\":{\"type\":"
	"\"object\"},"
	"\"repeat_last_n\":-1,\"dry_penalty_last_n\":0,\"dry_sequence_breakers\":[\"\\n\"],\"mirostat\":2}",
};

static uint64_t random_state = 88172645463325252u;

static size_t below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return n ? (size_t)(random_state % n) : 0;
}

/* Bytes flipped, put in, taken away, and pieces of other seeds. */
static size_t change(uint8_t *p, size_t n, size_t max)
{
	static const char special[] = "{}[]\",:\\0e-.u\n\0\x80\xff ";

	for (size_t times = 1 + below(6); times; times--) {
		size_t at = below(n + 1), length = below(12);
		const char *other = seeds[below(sizeof seeds / sizeof *seeds)];
		switch (below(4)) {
		case 0:
			if (at < n)
				p[at] = (uint8_t)special[below(sizeof special)];
			break;
		case 1:
			length = length < n - at ? length : n - at;
			memmove(p + at, p + at + length, n - at - length);
			n -= length;
			break;
		case 2:
			if (at < n)
				p[at] ^= (uint8_t)(1 << below(8));
			break;
		default: {
			size_t from = below(strlen(other)), left = strlen(other) - from;
			length = length < left ? length : left;
			if (n + length > max)
				break;
			memmove(p + at + length, p + at, n - at);
			memcpy(p + at, other + from, length);
			n += length;
		}
		}
	}
	return n;
}

static void test_requests(void **state)
{
	size_t times = test_quick() ? 2000 : test_full() ? 1000000 : 20000;
	uint8_t bytes[2000];
	(void)state;

	for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
		try_request((const uint8_t *)seeds[i], strlen(seeds[i]));
	for (size_t i = 0; i < times; i++) {
		const char *head = seeds[below(4)], *body = seeds[4 + below(sizeof seeds / sizeof *seeds - 4)];
		size_t n = strlen(head), m = strlen(body);
		memcpy(bytes, head, n + 1);
		memcpy(bytes + n + 1, body, m);
		n = change(bytes, n + 1 + m, sizeof bytes);
		/* From a block of its own size, so that sanitizers see what is read beyond. */
		uint8_t *copy = malloc(n ? n : 1);
		assert_non_null(copy);
		memcpy(copy, bytes, n);
		try_request(copy, n);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_requests) };

	return cmocka_run_group_tests(tests, open_model, close_model);
}
