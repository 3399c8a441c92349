/* runtime/chat.h - for programs: whether there is a chat template, before a model is loaded. */
#ifndef RUNTIME_CHAT_H
#define RUNTIME_CHAT_H

#include "base/error.h"
#include "loaders/model.h"

/* Whether jit_chat_render() would find and parse a template: the one of that name, or this text (one of both NULL), or
 * the usual one. Of the model only its templates are looked at. False: err. */
bool chat_can_use(const struct model *m, const char *name, const char *text, struct error *err);

#endif
