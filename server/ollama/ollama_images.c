/* server/ollama/ollama_images.c - messages that are made for ollama's requests, and pictures as its API has them: texts
 * in base64 beside a message's text. */
#include <jansson.h>
#include <stdbool.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/ollama/ollama.h"

/* Texts in base64 become parts of the content, before its text. */
bool ollama_put_images(json_t *message, const json_t *images, struct refusal *r)
{
	if (!images || json_is_null(images) || (json_is_array(images) && json_array_size(images) == 0))
		return true;
	json_t *parts = json_array(), *text = json_incref(json_object_get(message, "content"));
	const json_t *one;
	size_t i;

	if (!json_is_array(images))
		refuse(r, 400, "images", "images is %s, expected an array of texts in base64", json_kind(images));
	json_array_foreach(images, i, one)
	{
		if (!json_is_string(one))
			refuse(r, 400, "images", "images[%zu] is %s, expected a text in base64", i, json_kind(one));
		else
			json_add(parts, json_pack("{s:s, s:{s:s, s:O}}", "type", "image", "source", "type", "base64",
			                          "data", one));
	}
	if (json_string_length(text))
		json_add(parts, json_pack("{s:s, s:O}", "type", "text", "text", text));
	json_decref(text);
	json_put(message, "content", parts);
	return r->status == 0;
}

void ollama_add_message(json_t *messages, const char *role, json_t *content)
{
	json_t *o = json_object();

	json_put(o, "role", json_string(role));
	json_put(o, "content", content);
	json_add(messages, o);
}
