/* server/http/framing.h - where requests begin and end in the bytes of a connection.
 *
 * Owns: the state between two reads, wherever the bytes are cut. What comes out is what guards.h writes of heads, and
 * bodies as they are, or in chunks without anything beside their bytes. Behind what is refused, and behind the last
 * request of a connection, nothing comes out any more.
 */
#ifndef SERVER_FRAMING_H
#define SERVER_FRAMING_H

#include "server/http/guards.h"

enum framing_state {
	FRAMING_HEAD,
	FRAMING_LENGTH,   /* a body of so many bytes */
	FRAMING_SIZE,     /* the line before a chunk */
	FRAMING_DATA,     /* a chunk */
	FRAMING_DATA_END, /* the line end behind it */
	FRAMING_TRAILER,
	FRAMING_OVER
};

/* All 0 at first. */
struct framing {
	enum framing_state state;
	struct bytes text; /* of a head, a line or a trailer, as far as it has come */
	size_t line;       /* where its last line begins */
	bool blank;        /* an empty line came before the head */
	struct guard guard;
	uint64_t left; /* bytes of the body or the chunk */
};

/* Takes n bytes. What the HTTP library is handed is added to out. */
void framing_take(struct framing *f, const char *p, size_t n, struct bytes *out);
void framing_free(struct framing *f);

#endif
