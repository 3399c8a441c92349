/* server/conversation.c - the messages of a request become a prompt. */
#include "server/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/json_read.h"
#include "server/bytes.h"
#include "server/fields.h"
#include "server/json_write.h"

/* For models without a template of their own; most of those trained for conversations since 2023 know this form. */
static const char usual_template[] =
	"{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
	"(message['content'] or '') + '<|im_end|>\\n' }}{% endfor %}"
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/* ---- one message */

static bool add_part(struct bytes *text, const json_t *part, size_t number, struct refusal *r)
{
	const char *type = json_string_value(json_object_get(part, "type"));
	const json_t *words = json_object_get(part, "text");

	if (!json_is_object(part) || !type)
		return refuse(r, 400, "messages", "a message has a part of its content without a type");
	if (strcmp(type, "text") != 0 && strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0)
		return refuse(r, 400, "messages",
		              "a message has content of type %.60s, which is not supported: only "
		              "text is",
		              type);
	if (!json_is_string(words))
		return refuse(r, 400, "messages", "a message has a part of type text without a text");
	if (number)
		bytes_text(text, "\n");
	bytes_add(text, json_string_value(words), json_string_length(words));
	return true;
}

/* A text or its parts; parts become one text. False: refused. */
static bool join_content(json_t *message, struct refusal *r)
{
	json_t *content = json_object_get(message, "content"), *part;
	struct bytes text = { 0 };
	size_t i;
	bool ok = true;

	if (!content || json_is_null(content) || json_is_string(content)) {
		/* Beside calls; many templates look for words in it. */
		if (!json_is_string(content))
			json_put(message, "content", json_string(""));
		return true;
	}
	if (!json_is_array(content))
		return refuse(r, 400, "messages", "a message has content that is %s, expected a string or an array",
		              json_kind(content));
	json_array_foreach(content, i, part) ok = ok && add_part(&text, part, i, r);
	if (ok)
		json_put(message, "content", json_text(text.n ? text.p : "", text.n));
	bytes_free(&text);
	return ok;
}

/* Templates want the arguments of a call as an object; clients send its JSON text. */
static void open_arguments(json_t *message)
{
	json_t *call;
	size_t i;

	json_array_foreach(json_object_get(message, "tool_calls"), i, call)
	{
		json_t *function = json_object_get(call, "function");
		const json_t *text = json_object_get(function, "arguments");
		if (!json_is_string(text))
			continue;
		struct error e = { 0 };
		json_t *o = json_read(json_string_value(text), json_string_length(text), json_string_length(text),
		                      "arguments", &e);
		if (json_is_object(o))
			json_put(function, "arguments", o);
		else
			json_decref(o);
	}
}

static bool bring_to_form(json_t *message, size_t number, struct refusal *r)
{
	const char *role = json_string_value(json_object_get(message, "role"));

	if (!json_is_object(message) || !role)
		return refuse(r, 400, "messages", "message %zu is no object with a role", number);
	if (strcmp(role, "developer") == 0)
		json_put(message, "role", json_string("system"));
	bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
	if (!calls && !field_value(message, "content"))
		return refuse(r, 400, "messages", "message %zu has neither content nor tool_calls", number);
	open_arguments(message);
	return join_content(message, r);
}

/* ---- all of them */

static json_t *read_messages(const json_t *body, struct refusal *r)
{
	json_t *given = field_array(body, "messages", r), *message;
	size_t i;

	if (!given || json_array_size(given) == 0) {
		refuse(r, 400, "messages", "messages is missing or empty");
		return NULL;
	}
	json_t *messages = json_deep_copy(given);
	if (!messages)
		refuse(r, 503, NULL, "There is no memory for this request.");
	json_array_foreach(messages, i, message)
	{
		if (!bring_to_form(message, i, r)) {
			json_decref(messages);
			return NULL;
		}
	}
	return messages;
}

/* The text of an answer that the client has begun: taken from the messages. NULL: there is none. */
static char *take_beginning(json_t *messages, bool *failed)
{
	size_t n = json_array_size(messages);
	json_t *last = json_array_get(messages, n - 1);
	const char *role = json_string_value(json_object_get(last, "role"));
	const char *text = json_string_value(json_object_get(last, "content"));

	*failed = false;
	if (n < 2 || strcmp(role, "assistant") != 0 || !text || json_object_get(last, "tool_calls"))
		return NULL;
	char *copy = strdup(text);
	*failed = !copy;
	json_array_remove(messages, n - 1);
	return copy;
}

static char *tools_text(const json_t *body, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r);
	const json_t *choice = field_value(body, "tool_choice");

	if (!tools || json_array_size(tools) == 0)
		return NULL;
	if (json_is_string(choice) && strcmp(json_string_value(choice), "none") == 0)
		return NULL;
	char *text = json_write(json_incref(tools));
	if (!text)
		refuse(r, 503, NULL, "There is no memory for this request.");
	return text;
}

static bool append_beginning(struct conversation *c, const char *text, const struct served *m, struct refusal *r)
{
	int32_t *ids = NULL;
	size_t n = 0, length = strlen(text);
	jit_error err = { 0 };

	if (jit_model_tokenize(m->model, text, length, 0, 0, &ids, &n, &err) != JIT_OK)
		return refuse(r, 400, "messages", "%s", err.message);
	int32_t *all = realloc(c->ids, (c->n_ids + n + 1) * sizeof *all);
	if (all) {
		memcpy(all + c->n_ids, ids, n * sizeof *ids);
		c->ids = all;
		c->n_ids += n;
	}
	free(ids);
	char *whole = all ? realloc(c->text, c->n_text + length + 1) : NULL;
	if (!whole)
		return refuse(r, 503, NULL, "There is no memory for this request.");
	memcpy(whole + c->n_text, text, length + 1);
	c->text = whole;
	c->n_text += length;
	return true;
}

static bool render(struct conversation *c, jit_chat_options *o, const struct served *m, struct refusal *r)
{
	jit_chat chat = JIT_CHAT();
	jit_error err = { 0 };

	o->template_text = m->template_text;
	int status = jit_chat_render(m->model, o, &chat, &err);
	if (status == JIT_ERROR_UNSUPPORTED && !m->template_text && !m->info.has_chat_template && !o->template_name) {
		o->template_text = usual_template;
		status = jit_chat_render(m->model, o, &chat, &err);
	}
	if (status != JIT_OK)
		return refuse(r, status == JIT_ERROR_MEMORY ? 503 : 400, "messages", "%s", err.message);
	*c = (struct conversation){ .ids = chat.ids, .n_ids = chat.n_ids, .text = chat.text, .n_text = chat.n };
	return c->ids || refuse(r, 501, NULL, "The model has no tokenizer.");
}

bool conversation_read(struct conversation *c, const json_t *body, const struct served *m, int64_t now,
                       struct refusal *r)
{
	json_t *more = field_object(body, "chat_template_kwargs", r), *messages = NULL;
	bool generation = true, failed = false;
	char *beginning = NULL, *text = NULL, *tools = NULL, *variables = NULL;
	jit_chat_options o = JIT_CHAT_OPTIONS(.has_now = 1, .now = now);

	if (!r->status && field_flag(body, "add_generation_prompt", &generation, r))
		messages = read_messages(body, r);
	bool ok = messages != NULL;
	if (ok) {
		beginning = generation ? take_beginning(messages, &failed) : NULL;
		tools = tools_text(body, r);
		text = json_write(messages);
		variables = more ? json_write(json_incref(more)) : NULL;
		o.messages = text;
		o.tools = tools;
		o.variables = variables;
		o.no_generation_prompt = !generation;
		if (failed || !text || (more && !variables))
			refuse(r, 503, NULL, "There is no memory for this request.");
		ok = !r->status && render(c, &o, m, r) && (!beginning || append_beginning(c, beginning, m, r));
	}
	free(beginning);
	free(text);
	free(tools);
	free(variables);
	return ok;
}

void conversation_free(struct conversation *c)
{
	free(c->ids);
	free(c->text);
	*c = (struct conversation){ 0 };
}
