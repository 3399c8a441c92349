/* server/talk/tool_choice.h - answers that must be a call of a tool.
 *
 * Owns: what tool_choice asks for, as a grammar over the tools' own schemas; what of these is not supported is refused.
 */
#ifndef SERVER_TOOL_CHOICE_H
#define SERVER_TOOL_CHOICE_H

#include "server/engine/task.h"

/* Behind task_read. *forced: the prompt opens a call, by the form of the model, and t->opened stands behind its mark.
 * False: refused. */
bool tool_choice_read(struct task *t, const json_t *body, const struct served *m, bool *forced, struct refusal *r);

#endif
