/* runtime/session/answer_marks.h - tokens that are marks of calls.
 *
 * Owns: which control tokens of a model, whose text is no part of what it says, its answers are read by all the same.
 */
#ifndef RUNTIME_ANSWER_MARKS_H
#define RUNTIME_ANSWER_MARKS_H

#include "answers/tool_forms.h"
#include "include/jitrun.h"

struct answer_marks {
	struct {
		int32_t id;
		const char *text;
	} mark[TOOLS_MARKS + TOOLS_FRAMES + TOOLS_TOKENS];
	unsigned n;
};

/* Of a form: those marks that are one token which has no text of its own. */
void answer_marks_find(struct answer_marks *all, const jit_model *model, enum tools_form form);
/* The mark that this token is; "": it is none. */
const char *answer_marks_text(const struct answer_marks *all, int32_t id);

#endif
