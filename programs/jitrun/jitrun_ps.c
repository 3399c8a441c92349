/* programs/jitrun/jitrun_ps.c - jitrun ps: which models a jitserve on this machine, or on another, has in memory.
 *
 * Owns: one request over plain HTTP, and what is made of its answer. The answer is anybody's.
 */
#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/json_read.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"

enum { ANSWER_MAX = 16 << 20, SECONDS = 10, NAME_COLUMNS = 40 };

static struct option_program program = {
	.name = "jitrun ps",
	.usage = "[--json]",
	.purpose = "list the models that a running jitserve has in memory",
	.description = "Asks the jitserve at $JITRUN_HOST (127.0.0.1:8080), over plain HTTP, with the key in "
		       "$JITRUN_API_KEY where there is one. Exit status: 0 it answered, 1 none did.",
	.row = jitrun_command_rows,
	.n_rows = JITRUN_COMMAND_ROWS
};

/* "HOST:PORT", "http://HOST:PORT/", "[::1]:PORT", "HOST" and ":PORT". */
struct address {
	char host[256], port[8];
};

static bool read_address(struct address *a, const char *text, struct error *err)
{
	const char *at = strncmp(text, "http://", 7) == 0 ? text + 7 : text;
	size_t n = strcspn(at, "/");
	const char *end = at + n, *colon = memrchr(at, ':', n), *close = memchr(at, ']', n);

	*a = (struct address){ .host = "127.0.0.1", .port = "8080" };
	if (strstr(text, "://") && at == text)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "JITRUN_HOST is %.200s, expected HOST:PORT; HTTPS is not spoken", text);
	if (colon && (!close || colon > close)) {
		n = (size_t)(colon - at);
		size_t digits = (size_t)(end - colon - 1);
		if (!digits || digits > 5 || strspn(colon + 1, "0123456789") < digits)
			return error_set(err, ERROR_ARGUMENT, "JITRUN_HOST is %.200s, expected HOST:PORT", text);
		snprintf(a->port, sizeof a->port, "%.*s", (int)digits, colon + 1);
	}
	if (n && *at == '[' && close) {
		at++;
		n = (size_t)(close - at);
	}
	if (n >= sizeof a->host)
		return error_set(err, ERROR_ARGUMENT, "JITRUN_HOST is longer than names are");
	if (n)
		snprintf(a->host, sizeof a->host, "%.*s", (int)n, at);
	if (strcmp(a->host, "0.0.0.0") == 0) /* where it listens, and not where it is */
		strcpy(a->host, "127.0.0.1");
	return true;
}

static bool no_server(const struct address *a, const char *why, struct error *err)
{
	return error_set(err, ERROR_IO, "no jitserve answers at %s:%s (%s); JITRUN_HOST=HOST:PORT names another one",
	                 a->host, a->port, why);
}

/* A connection; -1: err. */
static int reach(const struct address *a, struct error *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const struct timeval max = { .tv_sec = SECONDS };
	struct addrinfo *list = NULL;
	int fd = -1, why = getaddrinfo(a->host, a->port, &hints, &list);

	if (why) {
		no_server(a, gai_strerror(why), err);
		return -1;
	}
	for (const struct addrinfo *i = list; i && fd < 0; i = i->ai_next) {
		fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC, i->ai_protocol);
		if (fd >= 0)
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &max, sizeof max);
		if (fd >= 0)
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &max, sizeof max);
		if (fd >= 0 && connect(fd, i->ai_addr, i->ai_addrlen) != 0) {
			no_server(a, strerror(errno), err);
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		no_server(a, "it has no address", err);
	return fd;
}

/* Everything until the other side ends; malloc'ed and 0-terminated. NULL: err. */
static char *exchange(int fd, const struct address *a, const char *request, size_t *n, struct error *err)
{
	char *text = malloc(ANSWER_MAX + 1);
	ssize_t got = 1;

	*n = 0;
	if (!text) {
		error_set(err, ERROR_MEMORY, "no memory for an answer");
		return NULL;
	}
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		got = -1;
	while (got > 0 && *n < ANSWER_MAX) {
		got = recv(fd, text + *n, ANSWER_MAX - *n, 0);
		*n += got > 0 ? (size_t)got : 0;
	}
	text[*n] = 0;
	if (got == 0)
		return text;
	no_server(a, got < 0 ? strerror(errno) : "its answer does not end", err);
	free(text);
	return NULL;
}

/* The JSON behind the head of a response. NULL: err. */
static json_t *read_answer(const char *text, size_t n, const struct address *a, struct error *err)
{
	const char *body = strstr(text, "\r\n\r\n");
	int status = 0;

	if (!body || sscanf(text, "HTTP/1.%*d %d", &status) != 1) {
		no_server(a, "what answers speaks no HTTP", err);
		return NULL;
	}
	body += 4;
	if (status == 401) {
		error_set(err, ERROR_IO, "the server at %s:%s wants a key: give it in JITRUN_API_KEY", a->host,
		          a->port);
		return NULL;
	}
	json_t *o = status == 200 ? json_read(body, n - (size_t)(body - text), ANSWER_MAX, "the answer", err) : NULL;
	if (!o)
		error_set(err, ERROR_IO, "the server at %s:%s answers /v1/models with status %d", a->host, a->port,
		          status);
	return o;
}

static json_t *ask(struct error *err)
{
	const char *where = getenv("JITRUN_HOST"), *key = getenv("JITRUN_API_KEY");
	char request[2048], authority[600] = "";
	struct address a;
	size_t n;

	if (!read_address(&a, where && *where ? where : "127.0.0.1:8080", err))
		return NULL;
	int fd = reach(&a, err);
	if (fd < 0)
		return NULL;
	if (key && strlen(key) < 500 && !strpbrk(key, "\r\n"))
		snprintf(authority, sizeof authority, "Authorization: Bearer %s\r\n", key);
	snprintf(request, sizeof request, "GET /v1/models HTTP/1.0\r\nHost: %s%s%s:%s\r\n%sConnection: close\r\n\r\n",
	         strchr(a.host, ':') ? "[" : "", a.host, strchr(a.host, ':') ? "]" : "", a.port, authority);
	char *text = exchange(fd, &a, request, &n, err);
	json_t *o = text ? read_answer(text, n, &a, err) : NULL;
	close(fd);
	free(text);
	return o;
}

/* Those that are in memory, or on their way there. */
static json_t *running(const json_t *answer)
{
	json_t *list = json_array();
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "data"), i, one)
	{
		const json_t *status = json_object_get(one, "status");
		const char *value = json_string_value(json_object_get(status, "value")),
			   *name = json_string_value(json_object_get(one, "id"));
		if (!name || !value || strcmp(value, "unloaded") == 0)
			continue;
		json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "name", name, "state", value, "bytes",
		                                      json_integer_value(json_object_get(status, "bytes")), "context",
		                                      json_integer_value(json_object_get(one, "max_model_len"))));
	}
	return list;
}

static void print_row(const json_t *one)
{
	char name[400], size[FACTS_SIZE], state[64];

	printf("%s %s %9s",
	       facts_cell(name, sizeof name, json_string_value(json_object_get(one, "name")), NAME_COLUMNS),
	       facts_cell(state, sizeof state, json_string_value(json_object_get(one, "state")), 8),
	       facts_size(size, (uint64_t)json_integer_value(json_object_get(one, "bytes"))));
	printf("  context %lld\n", (long long)json_integer_value(json_object_get(one, "context")));
}

int jitrun_ps(int argc, char **argv)
{
	struct error err = { 0 };
	int status = EXIT_USAGE;
	const json_t *one;
	size_t i;

	if (!options_parse(&program, argc, argv) ||
	    options_about(&program, &jitrun_command.about, jit_version(), &status))
		return status;
	json_t *answer = ask(&err), *list = answer ? running(answer) : NULL;
	json_decref(answer);
	if (!list)
		return jitrun_fail_with(&err);
	if (jitrun_command.json) {
		json_dumpf(list, stdout, output_json_flags(stdout));
		putchar('\n');
	}
	json_array_foreach(list, i, one) if (!jitrun_command.json) print_row(one);
	if (!jitrun_command.json && json_array_size(list) == 0)
		fprintf(stderr, "The server has no model in memory.\n");
	json_decref(list);
	return 0;
}
