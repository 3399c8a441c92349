/* tests/server/t_images.c - a server whose model sees: pictures in each API, what is refused of them, and that answers
 * have the same bits whatever else is computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/server/json_at.h"
#include "tests/server/odd_pictures.h"
#include "tests/support/seeing_folder.h"

enum { BODY = 1 << 18, PICTURES = 3, ASKS = 16 };

static char folder[] = "/tmp/t_images-XXXXXX", model[64], name[32];
static struct child server;
static char *picture[PICTURES]; /* in base64 */

static char *base64(const uint8_t *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = malloc(n / 3 * 4 + 8), *to = out;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t bits = 0;
		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (i + k < n ? p[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*to++ = i + k > n ? '=' : digits[bits >> (18 - 6 * k) & 63];
	}
	*to = 0;
	return out;
}

static struct child start(void)
{
	static const char *arguments[] = { model,         "--no-cache",   "--context",   "512",          "--threads",
		                           "2",           "--max-images", "3",           "--image-size", "1",
		                           "--image-dir", folder,         "--slot-save", folder,         NULL };

	return child_start_without(arguments);
}

static int begin(void **state)
{
	size_t n;
	(void)state;

	assert_non_null(mkdtemp(folder));
	snprintf(model, sizeof model, "%s/m-XXXXXX", folder);
	if (!seeing_folder(model, "see-qwen3vl-a", "<|image_pad|>", SEEING_TEMPLATE("<|image_pad|>"))) {
		rmdir(folder);
		printf("# skipped: there is no see-qwen3vl-a\n");
		exit(77);
	}
	snprintf(name, sizeof name, "%s", strrchr(model, '/') + 1);
	for (unsigned i = 0; i < PICTURES; i++) {
		uint8_t *bytes = seeing_picture("see-qwen3vl-a", i, &n);
		picture[i] = base64(bytes, n);
		if (i == 0) {
			char path[100];
			snprintf(path, sizeof path, "%s/a.png", folder);
			FILE *f = fopen(path, "wb");
			assert_true(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
		}
		free(bytes);
	}
	server = start();
	return 0;
}

static int end(void **state)
{
	char path[100];
	(void)state;

	snprintf(path, sizeof path, "%s/a.png", folder);
	unlink(path);
	seeing_remove(model);
	rmdir(folder);
	for (unsigned i = 0; i < PICTURES; i++)
		free(picture[i]);
	return child_stop(&server);
}

/* A conversation of one message with these parts. */
static char *chat_body(const char *parts)
{
	char *body = malloc(BODY);

	snprintf(body, BODY,
	         "{\"max_tokens\":8,\"temperature\":0,\"logprobs\":true,\"messages\":[{\"role\":\"user\",\"content\":[%"
	         "s]}]}",
	         parts);
	return body;
}

static char *url_part(const char *data)
{
	char *part = malloc(BODY);

	snprintf(part, BODY, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,%s\"}}", data);
	return part;
}

static json_t *chat(const char *parts, int status)
{
	char *body = chat_body(parts);
	json_t *o = client_json(&server, "/v1/chat/completions", body, status);

	free(body);
	return o;
}

/* The picture of that number, and a text. */
static json_t *ask(unsigned number, const char *text)
{
	char *part = url_part(picture[number]), *parts = malloc(BODY);

	snprintf(parts, BODY, "%s,{\"type\":\"text\",\"text\":\"%s\"}", part, text);
	json_t *o = chat(parts, 200);
	free(parts);
	free(part);
	return o;
}

/* What was said, with its log probabilities, and without what says when. */
static char *said(const json_t *o)
{
	char *text = json_dumps(at(o, "choices"), JSON_SORT_KEYS);

	assert_non_null(text);
	return text;
}

/* ---- the APIs */

static void same_text(const char *path, const char *body, const char *text_path, const char *count_path,
                      const json_t *wanted)
{
	json_t *o = client_json(&server, path, body, 200);

	if (strcmp(text_at(o, text_path), text_at(wanted, "choices/0/message/content")) != 0)
		fail_msg("%s: %s", path, text_at(o, text_path));
	json_int_t n = json_integer_value(at(o, count_path));
	if (strcmp(path, "/v1/messages") == 0)
		n += json_integer_value(at(o, "usage/cache_read_input_tokens"));
	assert_int_equal(n, json_integer_value(at(wanted, "usage/prompt_tokens")));
	json_decref(o);
}

static void test_apis(void **state)
{
	json_t *wanted = ask(0, "what"), *plain = chat("{\"type\":\"text\",\"text\":\"what\"}", 200);
	char *body = malloc(BODY);
	(void)state;

	/* 37 features of this picture, by the reference's own prompt */
	assert_true(json_integer_value(at(wanted, "usage/prompt_tokens")) >
	            json_integer_value(at(plain, "usage/prompt_tokens")) + 10);
	assert_string_not_equal(text_at(wanted, "choices/0/message/content"),
	                        text_at(plain, "choices/0/message/content"));
	snprintf(
		body, BODY,
		"{\"max_tokens\":8,\"temperature\":0,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\","
		"\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"%s\"}},"
		"{\"type\":\"text\",\"text\":\"what\"}]}]}",
		picture[0]);
	same_text("/v1/messages", body, "content/0/text", "usage/input_tokens", wanted);
	json_t *o = client_json(&server, "/v1/messages/count_tokens", body, 200);
	assert_int_equal(json_integer_value(at(o, "input_tokens")),
	                 json_integer_value(at(wanted, "usage/prompt_tokens")));
	json_decref(o);
	snprintf(body, BODY,
	         "{\"max_output_tokens\":8,\"temperature\":0,\"input\":[{\"role\":\"user\",\"content\":[{\"type\":"
	         "\"input_image\",\"detail\":\"auto\",\"image_url\":\"data:image/png;base64,%s\"},"
	         "{\"type\":\"input_text\",\"text\":\"what\"}]}]}",
	         picture[0]);
	same_text("/v1/responses", body, "output/0/content/0/text", "usage/input_tokens", wanted);
	snprintf(body, BODY,
	         "{\"stream\":false,\"options\":{\"num_predict\":8,\"temperature\":0},\"messages\":[{\"role\":\"user\","
	         "\"content\":\"what\",\"images\":[\"%s\"]}]}",
	         picture[0]);
	same_text("/api/chat", body, "message/content", "prompt_eval_count", wanted);
	snprintf(body, BODY,
	         "{\"stream\":false,\"options\":{\"num_predict\":8,\"temperature\":0},\"prompt\":\"what\","
	         "\"images\":[\"%s\"]}",
	         picture[0]);
	same_text("/api/generate", body, "response", "prompt_eval_count", wanted);
	/* a file that the operator allows, and the form that is a text alone */
	free(body);
	o = chat("{\"type\":\"image_url\",\"image_url\":\"file:///a.png\"},{\"type\":\"text\",\"text\":\"what\"}", 200);
	assert_string_equal(text_at(o, "choices/0/message/content"), text_at(wanted, "choices/0/message/content"));
	json_decref(o);
	/* what a tool has seen */
	body = malloc(BODY);
	json_int_t tokens[3];
	for (size_t i = 0; i < 3; i++) {
		snprintf(body, BODY, "%s%s%s", tool_pictures[i].before, picture[0], tool_pictures[i].behind);
		o = client_json(&server, tool_pictures[i].path, body, 200);
		tokens[i] = json_integer_value(at(o, tool_pictures[i].count));
		if (strcmp(tool_pictures[i].path, "/v1/messages") == 0)
			tokens[i] += json_integer_value(at(o, "usage/cache_read_input_tokens"));
		assert_int_equal(tokens[i], tokens[0]);
		json_decref(o);
	}
	free(body);
	json_decref(wanted);
	json_decref(plain);
}

static void test_told(void **state)
{
	json_t *o = client_json(&server, "/v1/models", NULL, 200);
	char body[100];
	(void)state;

	assert_string_equal(text_at(o, "data/0/architecture/input_modalities/1"), "image");
	json_decref(o);
	o = client_json(&server, "/props", NULL, 200);
	assert_true(json_is_true(at(o, "modalities/vision")));
	json_decref(o);
	snprintf(body, sizeof body, "{\"model\":\"%s\"}", name);
	o = client_json(&server, "/api/show", body, 200);
	assert_string_equal(text_at(o, "capabilities/0"), "vision");
	json_decref(o);
}

/* ---- what is refused */

static void refused(const char *path, const char *body, const char *why)
{
	struct answer a = client_ask(&server, path, NULL, body);

	if (a.status != 400 || !strstr(a.body, why))
		fail_msg("%.300s: status %d: %s, expected \"%s\"", body, a.status, a.body, why);
	answer_free(&a);
}

static void test_refused(void **state)
{
	char *body, *part = url_part(picture[0]), *many = malloc(BODY);
	(void)state;

	for (size_t i = 0; i < sizeof odd_parts / sizeof *odd_parts; i++) {
		body = chat_body(odd_parts[i].part);
		refused("/v1/chat/completions", body, odd_parts[i].why);
		free(body);
	}
	snprintf(many, BODY, "%s,%s,%s", part, part, part);
	json_decref(chat(many, 200));
	snprintf(many, BODY, "%s,%s,%s,%s", part, part, part, part);
	body = chat_body(many);
	refused("/v1/chat/completions", body, "more than 3 pictures (--max-images)");
	snprintf(body, BODY,
	         "{\"messages\":[{\"role\":\"system\",\"content\":[%s]},{\"role\":\"user\",\"content\":\"a\"}]}", part);
	refused("/v1/chat/completions", body, "neither the user's nor a tool's");
	snprintf(body, BODY, "{\"prompt_logprobs\":1,\"messages\":[{\"role\":\"user\",\"content\":[%s]}]}", part);
	refused("/v1/chat/completions", body, "prompt_logprobs");
	refused("/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":7}]}",
	        "images is an integer");
	refused("/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":[{}]}]}",
	        "images[0] is an object");
	refused("/api/generate", "{\"prompt\":\"a\",\"images\":[\"AA\"],\"raw\":true}", "images go with a prompt");
	refused("/api/generate", "{\"prompt\":\"a\",\"images\":[\"AA\"],\"suffix\":\"b\"}", "images go with a prompt");
	refused("/api/generate", "{\"prompt\":\"a\",\"images\":[\"AA\"],\"context\":[70]}", "images go with a prompt");
	refused("/api/generate", "{\"prompt\":\"a\",\"images\":[\"AA\"],\"template\":\"{{ .Prompt }}\"}",
	        "images go with a prompt");
	free(body);
	free(part);
	free(many);
}

/* A model that cannot see. */
static void test_blind(void **state)
{
	struct child blind = child_start((const char *[]){ "--no-cache", "--context", "64", NULL }), seeing = server;
	char *part = url_part(picture[0]), *body = chat_body(part);
	(void)state;

	server = blind;
	refused("/v1/chat/completions", body, "cannot see");
	server = seeing;
	assert_int_equal(child_stop(&blind), 0);
	free(body);
	free(part);
}

/* Files cut short and with bytes changed: an answer, or a sentence. */
static void test_damaged(void **state)
{
	const int rounds = test_quick() ? 40 : 1000;
	uint64_t x = 88172645463325252;
	unsigned answered = 0;
	size_t n;
	(void)state;

	for (int i = 0; i < rounds; i++) {
		uint8_t *bytes = seeing_picture("see-qwen3vl-a", (unsigned)i % PICTURES, &n);
		for (int k = 0; k < 1 + i % 5; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			bytes[x % n] ^= (uint8_t)(x >> 40) | 1; /* what is not damaged would be kept for test_kept */
		}
		char *data = base64(bytes, i % 3 ? n : (size_t)(x >> 20) % n), *part = url_part(data),
		     *body = chat_body(part);
		struct answer a = client_ask(&server, "/v1/chat/completions", NULL, body);
		if (a.status != 200 && a.status != 400)
			fail_msg("round %d: status %d: %s", i, a.status, a.body);
		answered += a.status == 200;
		answer_free(&a);
		free(body);
		free(part);
		free(data);
		free(bytes);
	}
	printf("# %u of %d damaged pictures were answered\n", answered, rounds);
}

/* ---- bits */

/* Turns of one conversation keep what pictures were made of, and other pictures are others. */
static void test_kept(void **state)
{
	json_t *first = ask(1, "Say what is in this picture."), *again = ask(1, "Say what is in this picture."),
	       *other = ask(2, "Say what is in this picture.");
	char *x = said(first), *y = said(again), *z = said(other);
	(void)state;

	assert_string_equal(x, y);
	assert_string_not_equal(x, z);
	const json_int_t prompt = json_integer_value(at(again, "usage/prompt_tokens"));
	assert_int_equal(json_integer_value(at(again, "usage/prompt_tokens_details/cached_tokens")), prompt - 1);
	assert_in_range(json_integer_value(at(other, "usage/prompt_tokens_details/cached_tokens")), 0, 5);
	free(x);
	free(y);
	free(z);
	json_decref(first);
	json_decref(again);
	json_decref(other);
}

static char *body_of(int i)
{
	char *part = url_part(picture[i / 2 % PICTURES]), *parts = malloc(BODY), *body;

	if (i % 2)
		snprintf(parts, BODY, "{\"type\":\"text\",\"text\":\"once %d\"}", i);
	else
		snprintf(parts, BODY, "{\"type\":\"text\",\"text\":\"look %d\"},%s", i, part);
	body = chat_body(parts);
	free(parts);
	free(part);
	return body;
}

/* Eight with pictures beside eight with texts, at once; then each alone. */
static void test_together(void **state)
{
	char *together[ASKS], head[200];
	int fd[ASKS];
	(void)state;

	for (int i = 0; i < ASKS; i++) {
		char *body = body_of(i);
		fd[i] = client_connect(&server, false);
		const int n =
			snprintf(head, sizeof head,
		                 "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
		                 strlen(body));
		client_send(fd[i], head, (size_t)n);
		client_send(fd[i], body, strlen(body));
		free(body);
	}
	for (int i = 0; i < ASKS; i++) {
		struct answer a = client_read(fd[i], 60);
		json_t *o = json_loads(a.body, 0, NULL);
		if (a.status != 200 || !o)
			fail_msg("%d: status %d: %s", i, a.status, a.body);
		together[i] = said(o);
		json_decref(o);
		answer_free(&a);
		close(fd[i]);
	}
	for (int i = 0; i < ASKS; i++) {
		char *body = body_of(i);
		json_t *o = client_json(&server, "/v1/chat/completions", body, 200);
		char *alone = said(o);
		assert_string_equal(together[i], alone);
		free(together[i]);
		free(alone);
		free(body);
		json_decref(o);
	}
}

/* A number of /metrics of this server's model. */
static double metric(const char *series)
{
	struct answer a = client_ask(&server, "/metrics", NULL, NULL);
	char start[200];

	snprintf(start, sizeof start, "\n%s{model=\"%s\"} ", series, name);
	const char *found = strstr(a.body, start);
	if (!found)
		fail_msg("there is no %s", series);
	const double value = strtod(found + strlen(start), NULL);
	answer_free(&a);
	return value;
}

/* Each picture is encoded once, and then found. */
static void test_metrics(void **state)
{
	const struct child other = server;
	(void)state;

	server = start();
	assert_true(metric("jitserve_images_encoded_total") == 0 && metric("jitserve_image_seconds_total") == 0);
	json_decref(ask(0, "a"));
	json_decref(ask(1, "a"));
	const double seconds = metric("jitserve_image_seconds_total"), bytes = metric("jitserve_image_kept_bytes");
	assert_true(seconds > 0 && seconds < 60 && bytes > 0);
	json_decref(ask(0, "b"));
	assert_true(metric("jitserve_images_encoded_total") == 2 && metric("jitserve_images_reused_total") == 1);
	assert_true(metric("jitserve_images_kept") == 2 && metric("jitserve_image_requests_waiting") == 0);
	assert_true(metric("jitserve_image_seconds_total") == seconds && metric("jitserve_image_kept_bytes") == bytes);
	assert_int_equal(child_stop(&server), 0);
	server = other;
}

/* A slot whose answer had a picture: saved, forgotten, read back and found again by the picture's pixels, also by
 * another server. */
static void test_slots(void **state)
{
	static const char file[] = "{\"filename\":\"kept\"}";
	json_t *first = ask(1, "Say it once more."), *o;
	const json_int_t prompt = json_integer_value(at(first, "usage/prompt_tokens"));
	char *x = said(first), path[100], *y;
	(void)state;

	o = client_json(&server, "/slots/0?action=save", file, 200);
	assert_true(json_integer_value(at(o, "n_saved")) >= prompt);
	json_decref(o);
	json_decref(client_json(&server, "/slots/0?action=erase", "{}", 200));
	for (int i = 0; i < 2; i++) {
		const struct child other = server;
		if (i)
			server = start();
		o = client_json(&server, "/slots/0?action=restore", file, 200);
		assert_true(json_integer_value(at(o, "n_restored")) >= prompt);
		json_decref(o);
		o = ask(1, "Say it once more.");
		y = said(o);
		assert_string_equal(x, y);
		assert_int_equal(json_integer_value(at(o, "usage/prompt_tokens_details/cached_tokens")), prompt - 1);
		json_decref(o);
		free(y);
		/* what was restored is saved again, with its pictures */
		json_decref(client_json(&server, "/slots/0?action=save", file, 200));
		if (i) {
			assert_int_equal(child_stop(&server), 0);
			server = other;
		}
	}
	snprintf(path, sizeof path, "%s/kept", folder);
	assert_int_equal(unlink(path), 0);
	free(x);
	json_decref(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apis),    cmocka_unit_test(test_told),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_kept),  cmocka_unit_test(test_together),
		cmocka_unit_test(test_blind),   cmocka_unit_test(test_slots), cmocka_unit_test(test_metrics),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
