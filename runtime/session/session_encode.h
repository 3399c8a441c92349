/* runtime/session/session_encode.h - texts through a model that encodes: whole, and several in a pass. */
#ifndef RUNTIME_SESSION_ENCODE_H
#define RUNTIME_SESSION_ENCODE_H

#include "runtime/session/pooling.h"
#include "runtime/session/session.h"

/* The embeddings of n texts, one behind the other; p is open, and the texts have tokens. The session stays empty. */
int session_encode(jit_session *s, const jit_embedding_text *texts, size_t n, struct pooling *p, float *out,
                   jit_error *err);
/* The sentence that a model of this kind generates nothing. Returns false. */
bool session_refuse_to_generate(struct error *err);

#endif
