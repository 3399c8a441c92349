/* programs/jitrun/jitrun_chat.h - what the parts of a conversation share: jitrun_chat.c, which holds it, jitrun_set.c
 * and jitrun_show.c, which change and show how it is held.
 */
#ifndef PROGRAMS_JITRUN_CHAT_H
#define PROGRAMS_JITRUN_CHAT_H

#include <jansson.h>

#include "programs/jitrun/jitrun_parts.h"

struct chat {
	struct run *run;
	json_t *messages;
	json_t *variables; /* of the template: whether and how much the model reasons; NULL: the template decides */
	bool over;
	bool failed; /* a message could not be read; it was said */
	bool stats;  /* behind each answer */
};

/* The text of the chat template in use. NULL: none can be told. */
const char *chat_template_of(const struct chat *c);
/* The system message at the beginning; NULL: none. */
const char *chat_system(const struct chat *c);
/* Puts it there, or takes it away where text is "", and leaves the other messages. False: no memory, which was said. */
bool chat_set_system(struct chat *c, const char *text);

/* What follows the command in its line, without blanks around it. */
void chat_command_set(struct chat *c, const char *rest);
void chat_command_show(struct chat *c, const char *rest);

/* " (did you mean /set wrap?)" of the nearest of n names; "" where none is near. A name ends at its first blank. */
const char *chat_near(char out[100], const char *before, const char *typed, size_t n_typed, const char *const *names,
                      size_t n);
/* One of on, true, yes, 1, or "": *out is true; off, false, no, 0: false. Otherwise returns false. */
bool chat_switch(const char *word, bool *out);

#endif
