/* vision/prompt_chat.c - conversations with pictures.
 *
 * Owns: how a template is told of pictures. In messages a mark stands for each. Templates of models that see take
 * contents in parts and write a placeholder for each part of type "image"; only what the template itself wrote counts
 * as one. Where it writes none, contents are texts, and the marks in what it wrote are where the pictures stand.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json_read.h"
#include "chat/chat.h"
#include "runtime/model/model.h"
#include "runtime/session/chat.h"
#include "vision/prompt.h"

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "there is no memory for a prompt"); }

bool prompt_is_picture(const char *type)
{
	return type &&
	       (strcmp(type, "image") == 0 || strcmp(type, "image_url") == 0 || strcmp(type, "input_image") == 0);
}

void prompt_mark(char mark[PROMPT_MARK])
{
	uint64_t number[1];

	if (getrandom(number, sizeof number, 0) != sizeof number)
		*number = (uint64_t)(uintptr_t)mark;
	snprintf(mark, PROMPT_MARK, "\x02picture %016llx\x02", (unsigned long long)*number);
}

/* ---- contents */

static bool add_text_part(json_t *parts, const char *text, size_t n)
{
	json_t *words = n ? json_stringn_nocheck(text, n) : NULL;

	return !n ||
	       (words && json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", words)) == 0);
}

/* A text as parts: what stands between marks, and pictures. */
static bool add_split(json_t *parts, const json_t *text, const char *mark)
{
	const char *p = json_string_value(text), *end = p + json_string_length(text), *at;
	bool ok = true;

	for (; ok && (at = memmem(p, (size_t)(end - p), mark, strlen(mark))); p = at + strlen(mark))
		ok = add_text_part(parts, p, (size_t)(at - p)) &&
		     json_array_append_new(parts, json_pack("{s:s}", "type", "image")) == 0;
	return ok && add_text_part(parts, p, (size_t)(end - p));
}

static bool has_mark(const json_t *text, const char *mark)
{
	return json_is_string(text) && memmem(json_string_value(text), json_string_length(text), mark, strlen(mark));
}

/* The content in parts, where it has pictures. NULL: no memory. */
static json_t *split_content(const json_t *content, const char *mark)
{
	json_t *parts = json_array();
	const json_t *part;
	bool ok = parts != NULL;
	size_t i;

	if (has_mark(content, mark))
		ok = ok && add_split(parts, content, mark);
	json_array_foreach(content, i, part)
	{
		const json_t *text = json_object_get(part, "text");
		if (has_mark(text, mark))
			ok = ok && add_split(parts, text, mark);
		else
			ok = ok && json_array_append(parts, (json_t *)(uintptr_t)part) == 0;
	}
	if (ok)
		return parts;
	json_decref(parts);
	return NULL;
}

/* The content as one text. NULL: no memory. */
static json_t *join_content(const json_t *content)
{
	char *all = NULL;
	size_t n = 0, i;
	FILE *f = open_memstream(&all, &n);
	const json_t *part;

	if (!f)
		return NULL;
	json_array_foreach(content, i, part)
	{
		const json_t *text = json_object_get(part, "text");
		if (json_is_string(text))
			fwrite(json_string_value(text), 1, json_string_length(text), f);
	}
	json_t *joined = fclose(f) == 0 ? json_stringn_nocheck(all, n) : NULL;
	free(all);
	return joined;
}

static bool is_shown(const json_t *content, const char *mark)
{
	const json_t *part;
	size_t i;

	json_array_foreach(content, i, part) if (has_mark(json_object_get(part, "text"), mark)) return true;
	return has_mark(content, mark);
}

/* The messages as a JSON text, malloc'ed, with contents that have pictures in parts, or as texts. */
static char *shaped(const json_t *messages, const char *mark, bool parts)
{
	json_t *all = json_array(), *one;
	bool ok = all != NULL;
	size_t i;

	json_array_foreach(messages, i, one)
	{
		const json_t *content = json_object_get(one, "content");
		json_t *own = json_copy(one);
		if (own && is_shown(content, mark) && (parts || json_is_array(content)))
			ok = json_object_set_new(own, "content",
			                         parts ? split_content(content, mark) : join_content(content)) == 0 &&
			     ok;
		ok = own && json_array_append_new(all, own) == 0 && ok;
	}
	char *text = ok ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return text;
}

/* ---- prompts */

static uint8_t *plain_of(const struct chat_text *text)
{
	uint8_t *plain = calloc(text->n + 1, 1);

	for (size_t i = 0; plain && i < text->n_spans; i++)
		if (text->span[i].user)
			memset(plain + text->span[i].begin, 1, text->span[i].end - text->span[i].begin);
	return plain;
}

/* The template's text, with pictures at its placeholders, or at marks. */
static bool render(struct jit_prompt *out, const struct jit_image_encoder *s, const jit_chat_options *o,
                   const char *mark, struct jit_image *const *images, size_t n, struct error *err)
{
	struct chat_text text;
	bool ok = chat_render_text(&s->model->file, o, &text, err);
	uint8_t *plain = ok ? plain_of(&text) : NULL;

	if (ok && !plain)
		ok = no_memory(err);
	const struct prompt_text t = { text.p, text.n, true, plain, mark };
	ok = ok && prompt_of_text(out, s, &t, images, n, err);
	if (ok) {
		out->text = text.p;
		out->n_text = text.n;
		text.p = NULL;
	}
	chat_text_free(&text);
	free(plain);
	return ok;
}

bool prompt_of_chat(struct jit_prompt *out, const struct jit_image_encoder *s, const jit_chat_options *o,
                    const char *mark, struct jit_image *const *images, size_t n, struct error *err)
{
	json_t *messages =
		json_read(o->messages, strlen(o->messages), JSON_MAX_CONFIG, "jit_chat_options.messages", err);
	jit_chat_options own = *o;
	bool ok = false;

	for (int parts = 1; messages && !ok && parts >= 0; parts--) {
		struct error e = { 0 };
		char *text = shaped(messages, mark, parts);
		own.messages = text;
		ok = text ? render(out, s, &own, parts ? NULL : mark, images, n, &e) : no_memory(&e);
		free(text);
		if (!ok && (!parts || e.code == ERROR_MEMORY))
			*err = e;
		if (e.code == ERROR_MEMORY)
			break;
	}
	json_decref(messages);
	return ok;
}
