/* tests/faults/ask.h - the client of a server that t_faults runs: it asks what a scene says, one request after the
 * other, and then has the server stop. */
#ifndef TESTS_FAULTS_ASK_H
#define TESTS_FAULTS_ASK_H

#include <stdbool.h>

enum { ASK_MAX = 3 };

/* A request: a path, a line end, and a body. */
struct ask {
	const char *request[ASK_MAX];
};

/* In a process that is about to become the server: hands it a socket as a service manager does, and begins another
 * process, which nothing fails in. What that is answered goes to `out`: of each request the value of X-Jitrun-Replay
 * and the body, or instead of it what begins with ASK_REFUSED where the server told an error, or ended the connection
 * without a byte. False: it cannot be. */
#define ASK_REFUSED "# refused: "
bool ask_begin(const struct ask *a, int out);

#endif
