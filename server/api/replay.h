/* server/api/replay.h - answers that can be made again: what a client keeps to prove where a text came from.
 *
 * Owns: the header field X-Jitrun-Replay, which names everything beside the request that decides an answer's bits - the
 * model's fingerprint, numerics, type of the KV cache, context, time and seed, and a checksum of the tokens and the
 * sampling that the request meant under the server's options - and the way from it back to the answer.
 */
#ifndef SERVER_REPLAY_H
#define SERVER_REPLAY_H

#include <stdio.h>

#include "server/http/http.h"
#include "server/engine/models.h"
#include "server/engine/task.h"

struct server;

/* What makes an answer of n tasks what it is, into the exchange's header; nothing where the model has no fingerprint.
 */
void replay_describe(struct exchange *x, const struct served *m, struct task *const *t, size_t n);

/* The context that made the answer in such a file; 0: it does not say. */
long replay_context(const char *path);
/* A file: a JSON object with "path", "request" (the body that was sent), "replay" (the header field) and, if wanted,
 * "answer" (the body that came, not a stream). Opens the model, makes the answer again, and prints its
 * texts. False: it cannot be made again, or is another than the one in the file. */
bool replay_file(struct server *s, const char *path, FILE *out, struct error *err);

#endif
