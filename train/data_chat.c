/* train/data_chat.c - conversations as tokens, by the model's own chat template, of which the assistant's turns count.
 *
 * A turn counts from where the template ends that asks for it: its tokens are those behind the prompt that the model
 * gets when it is to write this turn. It ends with the first token that ends a generation.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/tokenizer/tokenizer.h"
#include "runtime/session/chat.h"
#include "train/data.h"

/* The first n messages as the template writes them; asks: and the beginning of an answer. */
static bool render(const struct model *m, const struct data_options *o, json_t *messages, size_t n, const char *tools,
                   bool asks, jit_chat *out, struct error *err)
{
	json_t *some = json_array();
	bool ok = some != NULL;

	for (size_t i = 0; ok && i < n; i++)
		ok = json_array_append(some, json_array_get(messages, i)) == 0;
	char *text = ok ? json_dumps(some, JSON_COMPACT) : NULL;
	const jit_chat_options options =
		JIT_CHAT_OPTIONS(.messages = text, .tools = tools, .template_text = o->template_text,
	                         .no_generation_prompt = !asks);
	*out = (jit_chat){ .size = sizeof *out };
	ok = text ? chat_render_with(m, &options, out, err)
	          : error_set(err, ERROR_MEMORY, "there is no memory for a conversation");
	free(text);
	json_decref(some);
	return ok;
}

static size_t common(const jit_chat *a, const jit_chat *b)
{
	size_t n = 0;

	while (n < a->n_ids && n < b->n_ids && a->ids[n] == b->ids[n])
		n++;
	return n;
}

static bool is_assistant(json_t *message)
{
	const char *role = json_string_value(json_object_get(message, "role"));

	return role && strcmp(role, "assistant") == 0;
}

/* Marks message number i's tokens in `whole`, which is the conversation up to that message or further. False: the
 * template writes it otherwise in the whole, or err is set. */
static bool mark_turn(const struct model *m, const struct data_options *o, json_t *messages, size_t i,
                      const char *tools, const jit_chat *whole, uint8_t *counts, struct error *err)
{
	jit_chat prompt, written;
	bool ok = render(m, o, messages, i, tools, true, &prompt, err);
	size_t end;

	if (!ok)
		return false;
	ok = render(m, o, messages, i + 1, tools, false, &written, err);
	if (ok) {
		const size_t begin = common(&prompt, &written);
		end = common(&written, whole);
		/* What stands behind the turn's last token may be written as one with what follows. */
		ok = end + 1 >= written.n_ids && begin < end && begin + 2 >= prompt.n_ids;
		for (size_t k = begin; ok && k < end; k++) {
			counts[k] = 1;
			if (tokenizer_is_eog(m->tokenizer, whole->ids[k]))
				break;
		}
		jit_chat_free(&written);
	}
	jit_chat_free(&prompt);
	return ok;
}

/* Templates that leave out the reasoning of earlier turns: each turn is a text of its own, with what stands before it.
 */
static bool add_turns(struct data *d, const struct model *m, const struct data_options *o, json_t *messages,
                      const char *tools, const char *path, size_t line, struct error *err)
{
	for (size_t i = 0; i < json_array_size(messages); i++) {
		jit_chat whole;
		if (!is_assistant(json_array_get(messages, i)))
			continue;
		if (!render(m, o, messages, i + 1, tools, false, &whole, err))
			return false;
		uint8_t *counts = calloc(whole.n_ids + 1, 1);
		bool ok = counts || error_set(err, ERROR_MEMORY, "there is no memory for the data");
		if (ok && !mark_turn(m, o, messages, i, tools, &whole, counts, err))
			ok = error_set(err, ERROR_UNSUPPORTED,
			               "%.200s:%zu: the chat template does not write turn %zu behind what asks for it",
			               path, line, i + 1);
		ok = ok && data_add(d, o, whole.ids, counts, whole.n_ids, path, line, err);
		free(counts);
		jit_chat_free(&whole);
		if (!ok)
			return false;
	}
	return true;
}

static bool add_conversation(struct data *d, const struct model *m, const struct data_options *o, json_t *messages,
                             const char *tools, const char *path, size_t line, struct error *err)
{
	jit_chat whole;
	bool ok = render(m, o, messages, json_array_size(messages), tools, false, &whole, err), marked = ok;

	if (!ok)
		return false;
	uint8_t *counts = calloc(whole.n_ids + 1, 1);
	if (!counts)
		marked = error_set(err, ERROR_MEMORY, "there is no memory for the data");
	for (size_t i = 0; marked && i < json_array_size(messages); i++)
		marked = !is_assistant(json_array_get(messages, i)) ||
		         mark_turn(m, o, messages, i, tools, &whole, counts, err);
	if (err->code != ERROR_NONE)
		ok = false;
	else
		ok = marked ? data_add(d, o, whole.ids, counts, whole.n_ids, path, line, err)
		            : add_turns(d, m, o, messages, tools, path, line, err);
	free(counts);
	jit_chat_free(&whole);
	return ok;
}

bool data_add_chat(struct data *d, const struct model *m, const struct data_options *o, const char *messages,
                   const char *tools, const char *path, size_t line, struct error *err)
{
	json_t *list = json_read_plain(messages, strlen(messages));
	struct error own = { 0 };
	const bool ok = list ? add_conversation(d, m, o, list, tools, path, line, &own)
	                     : error_set(&own, ERROR_FORMAT, "the messages are no JSON");

	json_decref(list);
	if (ok)
		return true;
	if (strncmp(own.text, path, strlen(path)) == 0)
		return error_set(err, own.code, "%s", own.text);
	return error_set(err, own.code, "%.200s:%zu: %.250s", path, line, own.text);
}
