/* programs/jitrun/line_editor.h - lines that a person types on a terminal, edited and with the lines of earlier
 * sessions; from anything else, lines as they come.
 *
 * Owns: the terminal's mode while a conversation runs, what Ctrl-C, Tab and a paste do there, and the file of earlier
 * lines. Text is UTF-8 whatever the terminal's character set is.
 */
#ifndef PROGRAMS_LINE_EDITOR_H
#define PROGRAMS_LINE_EDITOR_H

#include <stdbool.h>

enum line_outcome {
	LINE_READ,
	LINE_OVER,      /* the end of the input */
	LINE_CANCELLED, /* Ctrl-C with something typed */
	LINE_EMPTIED,   /* Ctrl-C with nothing typed */
	LINE_FAILED     /* errno says why */
};

/* Before anything else of it: how characters are spelled is the environment's affair, and UTF-8 where that says
 * nothing. Numbers, messages and the order of texts stay as they are. */
void line_editor_locale(void);

/* commands: what Tab completes at the beginning of a line, word by word, up to a NULL; those that begin alike stand
 * together. A word in capitals is anything, and FILE the name of a file, which is completed as well. history: whether
 * lines are kept for later sessions. */
void line_editor_begin(const char *const *commands, bool history);
/* Whether lines are kept from now on. Returns whether they are. */
bool line_editor_keep(bool on);
/* Gives the terminal back; without a line_editor_begin() nothing happens. */
void line_editor_end(void);
/* The same as far as a signal handler may. */
void line_editor_restore(void);

/* A line without its newline, malloc'ed; a paste keeps its newlines. NULL unless it is LINE_READ. */
char *line_editor_read(const char *prompt, enum line_outcome *how);
/* A whole message, which may be several lines: it can be had again with the arrow keys, in later sessions as well. */
void line_editor_remember(const char *message);

#endif
