/* tests/server/odd_server.c - a server that is asked odd things, and what each answer must be. */
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

#include "tests/server/odd_server.h"
#include "tests/support/fim_model.h"

static const char template[] =
	"{% if tools %}Say <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call> for one of {{ tools | tojson | "
	"length }}"
	"{% endif %}{% if enable_thinking is defined %}It thinks: {{ enable_thinking }}.{% endif %}{{ extra }}"
	"{% for d in documents %}{{ d.text }}{% endfor %}"
	"{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}<tool_call>{{ c.function | "
	"tojson }}"
	"</tool_call>{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}";

enum { TOLD_MAX = 200, CHECK_EVERY = 400 };

struct child odd_server;
static char folder[64];
static int line = -1; /* a connection that is kept */
int odd_fds;          /* open in the server before anything is sent */
size_t odd_sent;
static size_t of_status[600];
static unsigned wrong;
static double slowest;
static char slowest_what[300];

void odd_complain(const char *what, const struct answer *a, const char *why)
{
	if (wrong++ < TOLD_MAX)
		printf("        %s: %s: status %d, %.300s\n", what, why, a->status, a->body ? a->body : "nothing");
}

void odd_must_be_right(void)
{
	const unsigned n = wrong;

	wrong = 0;
	assert_int_equal(n, 0);
}

int odd_start(void **state)
{
	char template_path[100], model[100], slots[100], presets[100], pull[100];
	(void)state;

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(folder, sizeof folder, "t_odd_requests.%d", (int)getpid());
	snprintf(template_path, sizeof template_path, "%s/chat.jinja", folder);
	snprintf(model, sizeof model, "%s/tale.gguf", folder);
	snprintf(slots, sizeof slots, "%s/slots", folder);
	snprintf(presets, sizeof presets, "%s/presets", folder);
	snprintf(pull, sizeof pull, "%s/pull", folder);
	if (mkdir(folder, 0700) || mkdir(slots, 0700) || mkdir(presets, 0700))
		return 1;
	fim_model(model);
	FILE *f = fopen(template_path, "w"), *g = fopen(pull, "w");
	if (!f || fputs(template, f) < 0 || fclose(f))
		return 1;
	if (!g || fputs("#!/bin/sh\necho jitpull: nothing is asked here >&2; exit 1\n", g) < 0 || fclose(g) ||
	    chmod(pull, 0700))
		return 1;
	odd_server = child_start_without((const char *[]){
		model, "--no-cache", "--alias", "tale-rerank", "--template", template_path, "--slot-save", slots,
		"--parallel", "4", "--context", "512", "--presets-dir", presets, "--pull-with", pull, NULL });
	odd_fds = child_fds(&odd_server);
	return 0;
}

int odd_stop(void **state)
{
	char command[200];
	(void)state;

	odd_hang_up();
	printf("        %zu requests were sent: %zu answered with 200, %zu with 400, %zu with 404; the slowest took "
	       "%.1f s: "
	       "%s\n",
	       odd_sent, of_status[200], of_status[400], of_status[404], slowest, slowest_what);
	const int status = child_stop(&odd_server);
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command) || status || (test_full() && !getenv("JITRUN_TEST_PART") && odd_sent < 25000);
}

void odd_hang_up(void)
{
	if (line >= 0)
		close(line);
	line = -1;
}

/* ---- one request */

static struct answer send_on(int *fd, const char *head, const char *body, size_t n)
{
	struct answer a;

	for (unsigned tries = 0; tries < 2; tries++) {
		const bool fresh = *fd < 0;
		if (fresh)
			*fd = client_connect(&odd_server, false);
		client_send(*fd, head, strlen(head));
		client_send(*fd, body, n);
		a = client_read(*fd, ODD_SECONDS);
		const char *after = answer_field(&a, "Connection");
		if (a.closed || a.status == 0 || (after && strcmp(after, "close") == 0)) {
			close(*fd);
			*fd = -1;
		}
		if (a.status || fresh)
			break;
		answer_free(&a); /* the server had closed the old one */
	}
	return a;
}

struct answer odd_ask(const char *method, const char *path, const char *fields, const char *body, size_t n)
{
	char head[1200];

	snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n", method, path,
	         fields, n);
	odd_sent++;
	struct answer a = send_on(&line, head, body, n);
	of_status[a.status % 600]++;
	return a;
}

/* ---- what an answer must be */

/* A sentence of a refusal, in the form of any of the four APIs; *param: the field it names. */
static const char *sentence(const json_t *o, const char **param)
{
	const json_t *e = json_object_get(o, "error");
	const char *text = json_string_value(e);

	*param = json_string_value(json_object_get(e, "param"));
	if (!*param)
		*param = "";
	return text ? text : json_string_value(json_object_get(e, "message"));
}

static bool has_word(const char *text, const char *word, size_t n)
{
	for (const char *at = text; n && (at = strstr(at, word)) != NULL; at++)
		if (strlen(at) >= n)
			return true;
	return false;
}

/* Whether one of the names of "messages[0].content" is in a text. */
static bool names_one_of(const char *path, const char *text)
{
	char name[100];

	while (*path) {
		const size_t n = strcspn(path, ".[]");
		if (n && n < sizeof name && !strchr("0123456789", *path)) {
			memcpy(name, path, n);
			name[n] = 0;
			if (has_word(text, name, n))
				return true;
		}
		path += n + (path[n] != 0);
	}
	return false;
}

/* Whether a text names a member of the request, which is not the one that was made odd but does not go with it. */
static bool names_another(const json_t *request, const char *param)
{
	const size_t n = strcspn(param, ".[");
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)request, key, v)
	{
		if (n && strlen(key) == n && strncmp(key, param, n) == 0)
			return true;
	}
	return false;
}

/* Sentences about all of a request, in which no field has a part. */
static bool is_of_the_whole(const char *text)
{
	return strstr(text, "context size of ") || strstr(text, "prompt is too long") ||
	       strstr(text, "is not valid JSON") || strstr(text, "The slot holds nothing");
}

static void check_refusal(const char *what, const struct answer *a, const char *path, const char *body, size_t n)
{
	json_t *o = json_loads(a->body, 0, NULL), *request = json_loadb(body, n, JSON_ALLOW_NUL, NULL);
	const char *param, *text = sentence(o, &param);
	char cwd[1024];

	if (!text || strlen(text) < 8)
		odd_complain(what, a, "no sentence");
	else if (strlen(text) > 1200)
		odd_complain(what, a, "a long sentence");
	else if (getcwd(cwd, sizeof cwd) && (strstr(text, cwd) || strstr(text, folder)))
		odd_complain(what, a, "a path of the server");
	else if (a->status == 400 && path && request && !is_of_the_whole(text) && !names_one_of(path, text) &&
	         !names_one_of(path, param) && !names_another(request, param))
		odd_complain(what, a, "no name of the field");
	json_decref(o);
	json_decref(request);
}

/* path: of the member that is odd; NULL: the request is as a whole. a is freed. */
void odd_judge(const char *what, struct answer *a, const char *path, const char *body, size_t n)
{
	const char *type = answer_field(a, "Content-Type");
	const bool events = type && (strstr(type, "text/event-stream") || strstr(type, "x-ndjson"));

	if (a->seconds > slowest) {
		slowest = a->seconds;
		snprintf(slowest_what, sizeof slowest_what, "%s", what);
	}
	if (a->status == 0)
		odd_complain(what, a, "no answer");
	else if (a->status >= 500 && a->status != 501)
		odd_complain(what, a, "the server's fault");
	else if (a->status >= 400)
		check_refusal(what, a, path, body, n);
	else if (events && (strstr(a->body, "\"code\":500") || strstr(a->body, "api_error")))
		odd_complain(what, a, "the server's fault in a stream");
	answer_free(a);
}

/* The same request, the same answer, whatever came between. */
void odd_check_as_ever(void)
{
	static const char body[] = "{\"prompt\":\"A tale\",\"temperature\":0,\"n_predict\":8,\"n_probs\":1}";
	static char *first;
	struct answer a = odd_ask("POST", "/completion", ODD_JSON, body, sizeof body - 1);
	json_t *o = a.status == 200 ? json_loads(a.body, 0, NULL) : NULL, *part = json_object();

	if (!o)
		fail_msg("after %zu requests: status %d, %.300s", odd_sent, a.status, a.body ? a.body : "nothing");
	json_object_set(part, "content", json_object_get(o, "content"));
	json_object_set(part, "probabilities", json_object_get(o, "completion_probabilities"));
	char *text = json_dumps(part, JSON_SORT_KEYS);
	assert_non_null(text);
	if (!first)
		first = text;
	else if (strcmp(first, text) != 0)
		fail_msg("after %zu requests: %s and not %s", odd_sent, text, first);
	if (text != first)
		free(text);
	json_decref(part);
	json_decref(o);
	answer_free(&a);
}

void odd_maybe_check(void)
{
	static size_t last;

	if (odd_sent >= last + CHECK_EVERY || last == 0) {
		odd_check_as_ever();
		last = odd_sent;
	}
}

bool odd_is_mine(const struct odd_strides *s, size_t number)
{
	const unsigned full =
#if SANITIZED
		s->sanitized;
#else
		s->full;
#endif
	const unsigned stride = test_full() ? full : test_quick() ? s->quick : s->usual;
	static uint64_t part;
	/* Spread, so that no value and no place is left out for good. */
	return ((uint64_t)number * 2654435761u % 4294967291u) % stride == 0 && test_in_part(part++);
}
