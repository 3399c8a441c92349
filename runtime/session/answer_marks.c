/* runtime/session/answer_marks.c - tokens that are marks of calls. */
#include "runtime/session/answer_marks.h"

#include <stdlib.h>
#include <string.h>

void answer_marks_find(struct answer_marks *all, const jit_model *model, enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];

	all->n = 0;
	for (size_t i = 0; i < TOOLS_MARKS + TOOLS_FRAMES + TOOLS_TOKENS; i++) {
		const char *mark = i < TOOLS_MARKS                  ? row->mark[i]
		                   : i < TOOLS_MARKS + TOOLS_FRAMES ? row->frame[i - TOOLS_MARKS]
		                                                    : row->token[i - TOOLS_MARKS - TOOLS_FRAMES];
		int32_t *ids = NULL;
		size_t n = 0, n_text = 0;
		if (!mark || jit_model_tokenize(model, mark, strlen(mark), 0, 1, &ids, &n, NULL) != JIT_OK)
			continue;
		char *text = n == 1 ? jit_model_detokenize(model, ids, 1, &n_text, NULL) : NULL;
		if (text && n_text == 0) {
			all->mark[all->n].id = ids[0];
			all->mark[all->n++].text = mark;
		}
		free(text);
		free(ids);
	}
}

const char *answer_marks_text(const struct answer_marks *all, int32_t id)
{
	for (unsigned i = 0; i < all->n; i++)
		if (all->mark[i].id == id)
			return all->mark[i].text;
	return "";
}
