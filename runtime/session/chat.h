/* runtime/session/chat.h - which chat template is taken, and for programs: whether there is one, before a model is
 * loaded. */
#ifndef RUNTIME_CHAT_H
#define RUNTIME_CHAT_H

#include "base/error.h"
#include "loaders/model/model.h"
#include "include/jitrun.h"

/* The text of the template that these options mean, *n bytes and a 0; *text NULL: the model has none. False: err. */
bool chat_find_text(const struct model *m, const jit_chat_options *o, const char **text, size_t *n, struct error *err);

/* Whether jit_chat_render() would find and parse a template: the one of that name, or this text (one of both NULL), or
 * the usual one. Of the model only its templates are looked at. False: err. */
bool chat_can_use(const struct model *m, const char *name, const char *text, struct error *err);
/* What jit_chat_render() does, of a model's files alone. out is jit_chat_free()'s. */
bool chat_render_with(const struct model *m, const jit_chat_options *o, jit_chat *out, struct error *err);
/* Its text alone, with who wrote what; chat_text_free() is due where it is there. */
struct chat_text; /* chat/chat.h */
bool chat_render_text(const struct model *m, const jit_chat_options *o, struct chat_text *text, struct error *err);

#endif
