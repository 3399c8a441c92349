/* programs/jitrun/jitrun_chat.h - what the parts of a conversation share: jitrun_chat.c, which holds it,
 * jitrun_pictures.c and jitrun_saved.c, by which pictures and files come into it, jitrun_set.c and jitrun_show.c, which
 * change and show how it is held.
 */
#ifndef PROGRAMS_JITRUN_CHAT_H
#define PROGRAMS_JITRUN_CHAT_H

#include <jansson.h>

#include "programs/jitrun/jitrun_parts.h"

struct chat_picture {
	char *path; /* absolute */
	jit_image *image;
};

struct chat {
	struct run *run;
	json_t *messages;
	struct chat_picture
		*picture; /* first those of the messages, in their order; the others wait for the next one */
	size_t n_pictures, picture_room;
	jit_prompt *prompt; /* the conversation as it was rendered last; NULL: it had no pictures */
	json_t *variables;  /* of the template: whether and how much the model reasons; NULL: the template decides */
	bool over;
	bool failed; /* a message could not be read; an error was printed */
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
void chat_command_save(struct chat *c, const char *given);
void chat_command_load(struct chat *c, const char *given);
void chat_command_image(struct chat *c, const char *given);

/* One sentence on stderr; false. */
bool chat_fail(const jit_error *e);
bool chat_no_memory(void);

/* A path in which ~ is the user's own directory. malloc'ed; NULL: no memory. */
char *chat_at_home(const char *path);

/* ---- jitrun_pictures.c */

/* The file's picture is shown with the next message. False: an error was printed. */
bool chat_pictures_add(struct chat *c, const char *path);
/* A user's message: a text, or a list in which pictures that wait come first, and those whose files the text names
 * stand in their places. NULL: an error was printed. */
json_t *chat_pictures_content(struct chat *c, const char *text, size_t n);
/* Whether a line begins with the path of a picture, and not with a command. */
bool chat_pictures_begin(const char *line);
/* How many pictures the messages have. */
size_t chat_pictures_shown(const struct chat *c);
/* Those that no message has are forgotten, and all. */
void chat_pictures_trim(struct chat *c);
void chat_pictures_forget(struct chat *c);
/* Those of other messages take their places. False: an error was printed, and nothing has changed. */
bool chat_pictures_load(struct chat *c, const json_t *messages);
/* The file: URL of a part that is a picture. NULL: it is none, or has another URL. */
const char *chat_picture_url(const json_t *part);
/* The messages with their pictures; tokens behind them; and the way into the session. */
jit_prompt *chat_pictures_prompt(struct chat *c, const jit_chat_options *o, jit_error *err);
bool chat_pictures_go_on(struct chat *c, const int32_t *ids, size_t n);
bool chat_pictures_feed(struct chat *c, jit_error *err);
/* Each in a row, or one sentence. */
void chat_pictures_list(const struct chat *c);

/* " (did you mean /set wrap?)" of the nearest of n names; "" where none is near. A name ends at its first blank. */
const char *chat_near(char out[100], const char *before, const char *typed, size_t n_typed, const char *const *names,
                      size_t n);
/* One of on, true, yes, 1, or "": *out is true; off, false, no, 0: false. Otherwise returns false. */
bool chat_switch(const char *word, bool *out);

#endif
