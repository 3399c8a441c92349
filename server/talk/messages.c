/* server/talk/messages.c - the messages of a request, each with one text. */
#include "server/talk/messages.h"

#include <string.h>

#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "server/request/fields.h"

/* ---- one message */

/* What the messages are read by, and what of them is no text. */
struct reading {
	const struct served *m;
	struct pictures *pictures;
	struct refusal *r;
};

/* Between two texts stands a line end. */
static bool add_part(struct bytes *text, const json_t *part, bool *behind_text, bool may_see, struct reading *a)
{
	struct refusal *r = a->r;
	const char *type = json_string_value(json_object_get(part, "type"));
	const json_t *words = json_object_get(part, "text");

	if (!json_is_object(part) || !type)
		return refuse(r, 400, "messages", "a message has a part of its content without a type");
	if (prompt_is_picture(type) && may_see) {
		*behind_text = false;
		return pictures_add(a->pictures, part, a->m, text, r);
	}
	if (prompt_is_picture(type))
		return refuse(r, 400, "messages",
		              "a message that is neither the user's nor a tool's has a picture, which models do not "
		              "take there");
	if (strcmp(type, "text") != 0 && strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0)
		return refuse(r, 400, "messages",
		              "a message has content of type %.60s, which is not supported: only "
		              "text and pictures are",
		              type);
	if (!json_is_string(words))
		return refuse(r, 400, "messages", "a message has a part of type text without a text");
	if (*behind_text)
		bytes_text(text, "\n");
	*behind_text = true;
	bytes_add(text, json_string_value(words), json_string_length(words));
	return true;
}

/* A text or its parts; parts become one text. False: refused. */
static bool join_content(json_t *message, struct reading *a)
{
	struct refusal *r = a->r;
	const char *role = json_string_value(json_object_get(message, "role"));
	const bool may_see = role && (strcmp(role, "user") == 0 || strcmp(role, "tool") == 0);
	json_t *content = json_object_get(message, "content"), *part;
	struct bytes text = { 0 };
	size_t i;
	bool ok = true, behind_text = false;

	if (!content || json_is_null(content) || json_is_string(content)) {
		/* Beside calls; many templates look for words in it. */
		if (!json_is_string(content))
			json_put(message, "content", json_string(""));
		return true;
	}
	if (!json_is_array(content))
		return refuse(r, 400, "messages", "a message has content that is %s, expected a string or an array",
		              json_kind(content));
	json_array_foreach(content, i, part) ok = ok && add_part(&text, part, &behind_text, may_see, a);
	if (ok)
		json_put(message, "content", json_text(text.n ? text.p : "", text.n));
	bytes_free(&text);
	return ok;
}

/* Clients send back what their libraries make of an answer: members that are null, and no calls as an empty list. A
 * template would take them for something. */
static void drop_empty(json_t *message)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(message, next, name, value)
	{
		if ((json_is_null(value) && strcmp(name, "content") != 0) ||
		    (strcmp(name, "tool_calls") == 0 && json_is_array(value) && json_array_size(value) == 0))
			json_object_del(message, name);
	}
}

static bool normalise_message(json_t *message, size_t number, struct reading *a)
{
	struct refusal *r = a->r;
	const char *role = json_string_value(json_object_get(message, "role"));

	if (!json_is_object(message) || !role)
		return refuse(r, 400, "messages", "message %zu is no object with a role", number);
	drop_empty(message);
	if (strcmp(role, "developer") == 0)
		json_put(message, "role", json_string("system"));
	bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
	if (!calls && !field_value(message, "content"))
		return refuse(r, 400, "messages", "message %zu has neither content nor tool_calls", number);
	return join_content(message, a);
}

/* ---- all of them */

json_t *messages_read(const json_t *body, const struct served *m, struct pictures *pictures, struct refusal *r)
{
	struct reading a = { m, pictures, r };
	json_t *given = field_array(body, "messages", r), *message;
	size_t i;

	if (!given || json_array_size(given) == 0) {
		refuse(r, 400, "messages", "messages is missing or empty");
		return NULL;
	}
	json_t *messages = json_copied(given, true);
	if (!messages)
		refuse(r, 503, NULL, "There is no memory for this request.");
	json_array_foreach(messages, i, message)
	{
		if (!normalise_message(message, i, &a)) {
			json_decref(messages);
			return NULL;
		}
	}
	return messages;
}
