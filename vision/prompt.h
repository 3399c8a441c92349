/* vision/prompt.h - prompts in which tokens and pictures' features alternate.
 *
 * Owns: where pictures stand in a text, in a list of tokens and in a conversation, and how such prompts get into
 * sessions.
 */
#ifndef VISION_PROMPT_H
#define VISION_PROMPT_H

#include "vision/seer.h"

/* Tokens first .. first + n - 1 of a prompt are features at .. of a part of a picture. */
struct prompt_run {
	size_t first, n, at;
	uint32_t image, part;
};
struct jit_prompt {
	int32_t *ids; /* n of them; the image token where features are */
	size_t n;
	struct prompt_run *run;
	size_t runs, run_room;
	struct jit_image **image; /* held */
	size_t images;
	char *text; /* of a conversation, as the template wrote it; NULL: of none */
	size_t n_text;
};

/* What a text is read by. */
struct prompt_text {
	const char *text; /* n bytes */
	size_t n;
	bool special;         /* control tokens of the text count as such */
	const uint8_t *plain; /* 1 for each byte that is no control token's and of no placeholder; NULL: special says */
	const char *mark;     /* where pictures stand, whatever plain says; NULL: the processor's placeholder */
};
/* The pictures replace the marks, in their order; of placeholders, where there are none, they stand in front. */
bool prompt_of_text(struct jit_prompt *out, const struct jit_image_encoder *s, const struct prompt_text *text,
                    struct jit_image *const *images, size_t n, struct error *err);
/* The same of tokens, among which are as many image tokens as the pictures have features. */
bool prompt_of_ids(struct jit_prompt *out, const struct jit_image_encoder *s, const int32_t *ids, size_t n,
                   struct jit_image *const *images, size_t n_images, struct error *err);
/* A conversation. mark: a text that stands for the next picture in the messages' texts; the template gets it as a part
 * of type "image", or where it writes none of these, the pictures stand in the text. */
bool prompt_of_chat(struct jit_prompt *out, const struct jit_image_encoder *s, const jit_chat_options *o,
                    const char *mark, struct jit_image *const *images, size_t n, struct error *err);
/* Tokens that follow. */
bool prompt_add_ids(struct jit_prompt *p, const int32_t *ids, size_t n, struct error *err);
void prompt_close(struct jit_prompt *p); /* what it has, not itself */

/* Feeds all of it that the session does not have: it keeps the same beginning. Of a batch it is submitted. *reused: how
 * many tokens need not be computed. */
int prompt_feed_session(jit_session *s, const struct jit_prompt *p, size_t *reused, jit_error *err);

/* Appends one picture, which is encoded, with the texts around it. */
int prompt_feed_image(jit_session *s, struct jit_image *image, jit_error *err);

/* What prompt_of_chat() and jit_prompt_chat() take for a part that is a picture. */
bool prompt_is_picture(const char *type);
/* A text that nobody else knows. */
enum { PROMPT_MARK = 32 };
void prompt_mark(char mark[PROMPT_MARK]);

#endif
