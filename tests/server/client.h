/* tests/server/client.h - a server of the tests' own, and clients of it over raw sockets.
 *
 * Behind cmocka.h and tests/support/shared.h. What fails here fails the test.
 */
#ifndef TESTS_SERVER_CLIENT_H
#define TESTS_SERVER_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int port;
	int said; /* its standard error */
};

/* build/jitserve with the model that comes with the sources, on a free port; further arguments up to a NULL. Waits for
 * the ready message. */
struct child child_start(const char *const *arguments);
/* The same; prepare is called in the new process. */
/* The same without a model. */
struct child child_start_without(const char *const *arguments);
struct child child_start_prepared(const char *const *arguments, void (*prepare)(void));
/* SIGTERM. Its exit status. */
int child_stop(struct child *c);
/* Its exit status, once it ends by itself. */
int child_wait(struct child *c);
/* build/jitserve with a line of arguments, behind the model that comes with the sources where `model` says so, until it
 * ends: its exit status. said: all that it said, 0-terminated. */
int child_says(bool model, const char *arguments, char *said, size_t room);
/* Descriptors that it has open. */
int child_fds(const struct child *c);

struct answer {
	int status;        /* 0: the connection ended before there was one */
	char *head, *body; /* 0-terminated, chunks put together */
	size_t n_body;
	bool closed; /* the server ended the connection */
	double seconds;
};

/* A connection; little: the system shall keep little of what is not read. */
int client_connect(const struct child *c, bool little);
void client_send(int fd, const void *p, size_t n); /* as far as the server takes it */
/* Reads one answer; it may take so many seconds. */
struct answer client_read(int fd, double seconds);
/* The answer that n bytes begin with, behind which there is a 0. closed: nothing more comes. False: it is not whole
 * yet, and there is nothing to free. */
bool answer_parse(struct answer *a, const char *p, size_t n, bool closed);
void answer_free(struct answer *a);
/* The value of a header field, up to the end of its line: in a buffer of the thread. NULL: it is not there. */
const char *answer_field(const struct answer *a, const char *name);

/* A whole request on a connection of its own. fields: further header fields, each with its line end; NULL: none. body
 * NULL: GET. */
struct answer client_ask(const struct child *c, const char *path, const char *fields, const char *body);
/* The same, of which JSON and this status is expected. */
json_t *client_json(const struct child *c, const char *path, const char *body, int status);

#endif
