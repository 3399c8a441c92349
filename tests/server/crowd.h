/* tests/server/crowd.h - many clients of one server at once, some of which behave badly.
 *
 * Behind cmocka.h. Owns: connections that one loop serves, and the judgement of every answer: what was said must be
 * what the server said to the same request when it was alone. What fails here fails the test.
 */
#ifndef TESTS_SERVER_CROWD_H
#define TESTS_SERVER_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/server/client.h"

/* How a client behaves. */
enum crowd_role {
	CROWD_HONEST,
	CROWD_LEAVING, /* is gone at some moment before the answer has ended */
	CROWD_SLOW,    /* reads some bytes now and then, or nothing until it was dropped */
	CROWD_HOSTILE, /* malformed, contradictory, too large, never finished */
	CROWD_ROLES
};

struct ask {
	const char *path, *body;
	int status;  /* that is expected; 0: 200 */
	char *alone; /* what is said to it, as said_in() has it; NULL: nothing to compare with */
};

struct crowd_numbers {
	unsigned long begun[CROWD_ROLES], ended[CROWD_ROLES];
	unsigned long dropped;        /* slow ones that the server cut off */
	double gap50, gap99, gap_max; /* seconds between events of one answer, of honest clients */
	size_t gaps;
};

struct crowd;

/* asks: of honest ones and all others; wrong: requests that are refused; huge: one whose events are more than a
 * connection holds. Each list ends with a path of NULL. A tenth of the clients each leaves, is slow, is hostile. */
struct crowd *crowd_open(const struct child *server, unsigned clients, const struct ask *asks, const struct ask *wrong,
                         const struct ask *huge);
/* All clients ask, one request after the other, for so many seconds. */
void crowd_run(struct crowd *c, double seconds);
/* Nobody asks anew, and all that was begun comes to its end; who waits for the server's patience to end leaves. */
void crowd_rest(struct crowd *c);
/* The server was ended: every connection must be. */
void crowd_abandon(struct crowd *c);
void crowd_get_numbers(struct crowd *c, struct crowd_numbers *out);
void crowd_close(struct crowd *c);

/* All that an answer says that must be the same every time: without names, times, and what was taken from a cache.
 * free() it. NULL: it is not JSON, or not whole. */
char *said_in(const struct answer *a);

#endif
