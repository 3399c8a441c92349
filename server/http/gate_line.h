/* server/http/gate_line.h - one connection of the gate: bytes from a client to the HTTP library, and back.
 *
 * Owns: both sockets, what is on its way between them, and the order of the end: what the library said is sent, then
 * the client is told that nothing more comes, and what it still sends is read for a moment, so that the system does not
 * take the answer back for it.
 */
#ifndef SERVER_GATE_LINE_H
#define SERVER_GATE_LINE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "server/http/framing.h"
#include "server/http/tls.h"

struct line {
	int client, inner;
	struct tls_line *tls; /* NULL: not encrypted */
	struct framing framing;
	struct bytes in, out;           /* on their way to the library, and to the client */
	bool client_ended, inner_ended; /* nothing more comes from there */
	bool in_closed, out_closed;     /* and nothing more goes there */
	double ends;                    /* until when the client may go by itself; 0: that is not yet so */
};

enum line_state { LINE_WAITS, LINE_MOVES, LINE_OVER };

/* A connection in the gate's list. */
struct gated {
	struct gated *before, *next, *later; /* later: of those that have ended */
	struct gate *gate;
	unsigned holders;  /* the gate's thread, and the library */
	atomic_bool taken; /* the library has begun with it */
	bool over, moves;
	struct sockaddr_storage address;
	struct line line;
};

/* Both sockets are the line's in any case. False: no memory. */
bool line_open(struct line *l, int client, int inner, struct tls *tls);
/* As much as goes without waiting, once in each direction. MOVES: there may be more. */
enum line_state line_move(struct line *l);
/* Whether only the client's end is waited for, and for too long. */
bool line_lingers(const struct line *l, double now);
/* Nothing more is carried, and both ends are told; the client's socket stays open. */
void line_end(struct line *l);
void line_close(struct line *l);

#endif
