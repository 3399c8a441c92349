/* server/completions/ranking.h - how a model ranks texts, and what it is asked.
 *
 * Owns: the prompts. Some models have a classifier behind the last token, and say in a chat template of their own how
 * they are asked; Qwen3-Reranker as it was trained says "yes" or "no". Models that encode take the pair as their
 * tokenizers put it together.
 */
#ifndef SERVER_RANKING_H
#define SERVER_RANKING_H

#include "server/engine/models.h"
#include "server/engine/task.h"

struct ranking {
	bool classifier;
	bool pairs;             /* both texts go as the tokenizer puts them together (a cross-encoder) */
	int32_t answer[2];      /* without it: the tokens of "yes" and "no" */
	const char *prompt;     /* with it: the model's template, which has {query} and {document} in it */
	bool takes_instruction; /* and a place for what to look for */
};

/* What the client asks: texts, whatever they look like. instruction NULL: the usual one. */
struct ranking_texts {
	const char *instruction, *query, *document;
};

/* False: refused, since the model is none that ranks texts. */
bool ranking_of(struct ranking *r, const struct served *m, struct refusal *why);
/* The prompt of a task, and *types of its tokens or NULL. False: refused. */
bool ranking_prompt(const struct ranking *r, const jit_model *m, const struct ranking_texts *texts, struct task *t,
                    int32_t **types, struct refusal *why);

#endif
