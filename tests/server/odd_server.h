/* tests/server/odd_server.h - a server that is asked odd things, and what each answer must be.
 *
 * Behind cmocka.h.
 */
#ifndef TESTS_SERVER_ODD_SERVER_H
#define TESTS_SERVER_ODD_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/server/client.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"

#define ODD_JSON "Content-Type: application/json\r\n"

/* Most requests take a thousandth of this. */
#if SANITIZED
enum { ODD_SECONDS = 100 };
#else
enum { ODD_SECONDS = 20 };
#endif

extern struct child odd_server;
extern size_t odd_sent;
extern int odd_fds; /* open in the server before anything was sent */

int odd_start(void **state);
/* Says how many requests were sent; less than 25 000 at the full size are a failure. */
int odd_stop(void **state);

/* On a connection that is kept. fields: of the head, each with its line end. */
struct answer odd_ask(const char *method, const char *path, const char *fields, const char *body, size_t n);
void odd_hang_up(void);
/* path: of the member that is odd, "messages[0].content", of which a refusal has a name; NULL: the request is as a
 * whole. a is freed. */
void odd_judge(const char *what, struct answer *a, const char *path, const char *body, size_t n);
/* All that is wrong is told, one line each, before a test fails. */
void odd_complain(const char *what, const struct answer *a, const char *why);
void odd_must_be_right(void);
/* The same request has the same answer, whatever came between; maybe: after some hundred others. */
void odd_check_as_ever(void);
void odd_maybe_check(void);

/* Which of many numbered requests are sent: one of so many, by the size of the test. */
struct odd_strides {
	unsigned quick, usual, sanitized, full;
};
bool odd_is_mine(const struct odd_strides *s, size_t number);

/* odd_heads.c: any method, path, query and content type. */
void odd_heads(void **state);
/* odd_lengths.c: what is very long. */
void odd_lengths(void **state);
void odd_histories(void **state);

#endif
