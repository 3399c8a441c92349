/* chat/chat_tokens.c - a rendered text becomes token ids.
 *
 * Owns: that nothing of the user's becomes a special token. The text is one for the tokenizer: words run across the
 * borders of spans, so that a conversation without special tokens in it gets the ids that it was trained with.
 */
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "loaders/tokenizer/tokenizer.h"

bool chat_tokenize(const struct tokenizer *t, const struct chat_text *text, bool begin, int32_t **ids, size_t *n_ids,
                   struct error *err)
{
	uint8_t *plain = calloc(text->n + 1, 1);

	*ids = NULL;
	*n_ids = 0;
	if (!plain)
		return error_set(err, ERROR_MEMORY, "no memory to tokenize a text of %zu bytes", text->n);
	for (size_t i = 0; i < text->n_spans; i++)
		if (text->span[i].user)
			memset(plain + text->span[i].begin, 1, text->span[i].end - text->span[i].begin);
	bool ok = tokenizer_encode_marked(t, text->p, text->n, plain, TOKENIZE_SPECIAL | (begin ? TOKENIZE_BEGIN : 0),
	                                  ids, n_ids, err);
	free(plain);
	return ok;
}
