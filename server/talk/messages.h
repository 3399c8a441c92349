/* server/talk/messages.h - the messages of a request.
 *
 * Owns: the forms that clients give a message's content: a text, or parts, which become one text, in which marks stand
 * for pictures.
 */
#ifndef SERVER_MESSAGES_H
#define SERVER_MESSAGES_H

#include "server/talk/pictures.h"

/* The field messages, as an array whose messages have texts as contents. NULL: refused. */
json_t *messages_read(const json_t *body, const struct served *m, struct pictures *pictures, struct refusal *r);

#endif
