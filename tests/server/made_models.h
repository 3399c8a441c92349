/* tests/server/made_models.h - for the tests of models that clients make: a server with a folder for them, and
 * requests.
 *
 * Behind cmocka.h and said_lines.h.
 */
#ifndef TESTS_SERVER_MADE_MODELS_H
#define TESTS_SERVER_MADE_MODELS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], secret[80];
static struct child server;

static inline struct child begin(void)
{
	return child_start(
		(const char *[]){ "--no-cache", "--alias", "tale", "--presets-dir", folder, "--kv-memory", "8", NULL });
}

static inline int start(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "made_models.%d", (int)getpid());
	snprintf(secret, sizeof secret, "%s.secret", folder);
	FILE *f = fopen(secret, "w");
	if (mkdir(folder, 0700) || !f || fputs("{% secret %}", f) < 0 || fclose(f))
		return 1;
	server = begin();
	return 0;
}

static inline int stop(void **state)
{
	char command[200];
	const int status = child_stop(&server);
	(void)state;

	snprintf(command, sizeof command, "rm -r %s %s", folder, secret);
	return system(command) || status;
}

/* Files in the folder, whatever they are called. */
static inline unsigned files(void)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static struct answer delete (const char *name)
{
	char text[500], body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\"}", name);
	snprintf(text, sizeof text, "DELETE /api/delete HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
	         strlen(body), body);
	const int fd = client_connect(&server, false);
	client_send(fd, text, strlen(text));
	struct answer a = client_read(fd, 20);
	close(fd);
	return a;
}

static inline void must_delete(const char *name, int status)
{
	struct answer a = delete (name);

	if (a.status != status)
		fail_msg("delete %s: %d %s", name, a.status, a.body);
	assert_true(status != 200 || a.n_body == 0);
	answer_free(&a);
}

static inline void make(const char *name, const char *more)
{
	char body[2000];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"stream\":false,%s}", name, more);
	json_t *o = client_json(&server, "/api/create", body, 200);
	assert_string_equal(text_at(o, "status"), "success");
	json_decref(o);
}

static inline json_t *show(const char *name)
{
	char body[300];

	snprintf(body, sizeof body, "{\"model\":\"%s\"}", name);
	return client_json(&server, "/api/show", body, 200);
}

/* What the model answers; of chat the messages, of all that more. */
static inline json_t *talk(const char *name, const char *messages, const char *more)
{
	char with[3000];

	snprintf(with, sizeof with, "\"model\":\"%s\",\"stream\":false,\"messages\":[%s]%s%s", name, messages,
	         *more ? "," : "", more);
	return ask(&server, "/api/chat", with, "");
}

static inline void check_same(const char *name, const char *messages, const char *more, const char *base_messages,
                              const char *base_more)
{
	json_t *a = talk(name, messages, more), *b = talk("tale", base_messages, base_more);

	assert_string_equal(text_at(a, "message.content"), text_at(b, "message.content"));
	assert_int_equal((int)number_at(a, "prompt_eval_count"), (int)number_at(b, "prompt_eval_count"));
	assert_int_equal((int)number_at(a, "eval_count"), (int)number_at(b, "eval_count"));
	json_decref(a);
	json_decref(b);
}

#define HI "{\"role\":\"user\",\"content\":\"Hi.\"}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"You are \\\"Mario\\\".\\nBe short.\"}"
#define BEGINS "{\"role\":\"user\",\"content\":\"Who?\"},{\"role\":\"assistant\",\"content\":\"Me.\"}"
#define MARIO \
	"\"from\":\"tale\",\"system\":\"You are \\\"Mario\\\".\\nBe short.\",\"license\":[\"MIT\",\"or else\"]," \
	"\"parameters\":{\"temperature\":0,\"num_predict\":12,\"stop\":[\"king\",\"sea\"],\"num_ctx\":300}," \
	"\"messages\":[" BEGINS "]"
#define AS_MARIO "\"options\":{\"temperature\":0,\"num_predict\":12,\"stop\":[\"king\",\"sea\"]}"


#endif
