/* server/http/waiting.h - requests that cannot be answered yet: their handler is at work on another thread, their model
 * is being loaded, or pictures that they name by addresses are fetched. Meanwhile the connection sleeps; then the
 * handler is called again.
 */
#ifndef SERVER_WAITING_H
#define SERVER_WAITING_H

#include "server/http/http.h"
#include "server/http/watch.h"

enum waiting { WAITING_SLEEPS, WAITING_OVER, WAITING_HANDLED, WAITING_GONE, WAITING_REFUSED };

/* How a connection sleeps, and who watches it. */
struct sleeper {
	void (*sleep)(void *user), (*wake)(void *user); /* user: the exchange */
	struct watched *watched;
};

/* The handler is to be called. WAITING_HANDLED: it was, and x->handled is what it returned. */
enum waiting waiting_hand_over(struct exchange *x, const struct sleeper *s);
/* The handler has returned false. WAITING_REFUSED: it means that, or there is nothing to wait for. */
enum waiting waiting_begin(struct exchange *x, const struct sleeper *s);
/* It was woken. */
enum waiting waiting_go_on(struct exchange *x, const struct sleeper *s);
/* It is over: the client may have left before the library asked for what a handler had made. */
void waiting_leave(struct exchange *x);

#endif
