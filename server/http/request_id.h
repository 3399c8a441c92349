/* server/http/request_id.h - the name that a request has in its answer, by which a client speaks of it. */
#ifndef SERVER_REQUEST_ID_H
#define SERVER_REQUEST_ID_H

enum { REQUEST_ID = 32 };

/* "req_" and random digits. */
void request_id_make(char id[REQUEST_ID]);

#endif
