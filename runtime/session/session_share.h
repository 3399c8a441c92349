/* runtime/session/session_share.h - grammars of one request, which share what one may keep. */
#ifndef RUNTIME_SESSION_SHARE_H
#define RUNTIME_SESSION_SHARE_H

/* What session_grammar_open() opens on this thread from now on is one of n grammars that share the memory of one. 0, 1:
 * it shares with none. */
void session_grammar_share(unsigned n);

#endif
