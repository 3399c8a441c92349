/* server/talk/pictures.h - pictures in the messages of a request.
 *
 * Owns: the forms in which clients send them: OpenAI's image_url with a data: URL, or input_image; Anthropic's image
 * with a source; what is refused of these; and the marks that stand for pictures in texts until a prompt is made.
 */
#ifndef SERVER_PICTURES_H
#define SERVER_PICTURES_H

#include <jansson.h>

#include "base/bytes.h"
#include "server/engine/models.h"
#include "server/engine/sight.h"
#include "server/talk/picture_fetch.h"

struct pictures {
	char mark[PROMPT_MARK]; /* empty: there were none yet */
	jit_image **image;
	size_t n, room;
	uint64_t pixels;                 /* of all */
	struct sight *sight;             /* that counts them; NULL: none was read */
	struct picture_fetches *fetches; /* of the request; NULL: it may name none by addresses */
	bool wanted;                     /* some are to be fetched first */
};

/* A part of a content that is a picture (prompt_is_picture()): it is read, and its mark put behind the text. One that
 * must be fetched is left out, which `wanted` says. False: refused. */
bool pictures_add(struct pictures *p, const json_t *part, const struct served *m, struct bytes *text,
                  struct refusal *r);
/* How many marks a text has, which may be JSON. */
size_t pictures_marks(const struct pictures *p, const char *text);
void pictures_free(struct pictures *p);

#endif
