/* server/talk/history.c - conversations as templates take them: the repairs, one by one. */
#include "server/talk/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"

static const char *role_of(const json_t *message)
{
	const char *role = json_string_value(json_object_get(message, "role"));

	return role ? role : "";
}

static bool is(const json_t *message, const char *role) { return strcmp(role_of(message), role) == 0; }

static json_t *calls_of(const json_t *message)
{
	json_t *calls = json_object_get(message, "tool_calls");

	return json_array_size(calls) ? calls : NULL;
}

static bool has_content(const json_t *message) { return json_string_length(json_object_get(message, "content")) > 0; }

/* Texts may hold any character. */
static void add_content(struct bytes *text, const json_t *message)
{
	const json_t *content = json_object_get(message, "content");

	bytes_add(text, json_string_value(content), json_string_length(content));
}

static json_t *said(const char *role, json_t *content)
{
	json_t *o = json_object();

	json_put(o, "role", json_string(role));
	json_put(o, "content", content);
	return o;
}

/* ---- calls and their results */

/* Its JSON text as an object, or the other way; a text that is none as it is, or mended. */
static void shape_arguments(json_t *call, unsigned repairs)
{
	json_t *function = json_object_get(call, "function"), *given = json_object_get(function, "arguments");
	const bool text = repairs & HISTORY_TEXT_ARGUMENTS;

	if (!json_is_object(function))
		return;
	const char *p = json_string_value(given);
	if (!given || json_is_null(given) || (p && p[strspn(p, " \t\r\n")] == 0)) {
		json_put(function, "arguments", text ? json_string("{}") : json_object());
		return;
	}
	if (p) {
		const size_t n = json_string_length(given);
		json_t *o = json_read_plain(p, n);
		if (!json_is_object(o)) {
			json_decref(o);
			o = repairs & HISTORY_MEND_ARGUMENTS ? history_mend(p, n) : NULL;
			given = NULL;
		}
		if (o && (!text || !given)) {
			json_put(function, "arguments", o);
			given = o;
		} else {
			json_decref(o);
			return;
		}
	}
	if (text) {
		char *spelled = json_spell(given, JSON_ENCODE_ANY);
		json_put(function, "arguments", spelled ? json_string(spelled) : NULL);
		free(spelled);
	}
}

/* Nine letters and digits that stand for an id; the same ones for the same id. */
static json_t *short_id(const json_t *id)
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	const char *p = json_string_value(id);
	uint64_t hash = 0xcbf29ce484222325u;
	char out[10] = { 0 };
	size_t n = json_string_length(id);

	bool fits = n == 9;
	for (size_t i = 0; i < n; i++) {
		const char c = p[i];
		fits = fits && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
		hash = (hash ^ (unsigned char)c) * 0x100000001b3u;
	}
	for (int i = 0; i < 9; i++, hash /= 36)
		out[i] = letters[hash % 36];
	return fits ? json_string(p) : json_string(out);
}

/* The calls before a result, for it: by its id, else the next one that has had none. */
static json_t *call_for(json_t *calls, const json_t *result, size_t *next)
{
	const char *id = json_string_value(json_object_get(result, "tool_call_id"));
	json_t *call;
	size_t i;

	json_array_foreach(calls, i, call)
	{
		const char *own = json_string_value(json_object_get(call, "id"));
		if (id && own && strcmp(id, own) == 0) {
			*next = i + 1;
			return call;
		}
	}
	return json_array_get(calls, id ? 0 : (*next)++);
}

static void name_results(json_t *messages)
{
	json_t *message, *calls = NULL, *call;
	size_t i, k, next = 0, number = 0;
	char id[40];

	json_array_foreach(messages, i, message)
	{
		if (calls_of(message)) {
			calls = calls_of(message);
			next = 0;
			json_array_foreach(calls, k, call)
			{
				snprintf(id, sizeof id, "call_%zu", number++);
				if (!json_is_string(json_object_get(call, "id")))
					json_put(call, "id", json_string(id));
				if (!json_is_string(json_object_get(call, "type")))
					json_put(call, "type", json_string("function"));
			}
		}
		if (!is(message, "tool"))
			continue;
		call = call_for(calls, message, &next);
		json_t *name = json_object_get(json_object_get(call, "function"), "name");
		if (!json_is_string(json_object_get(message, "name")))
			json_put(message, "name", json_is_string(name) ? json_incref(name) : json_string("tool"));
		if (!json_is_string(json_object_get(message, "tool_call_id")))
			json_put(message, "tool_call_id",
			         call ? json_incref(json_object_get(call, "id")) : json_string("call_0"));
	}
}

static void shorten_ids(json_t *messages)
{
	json_t *message, *call;
	size_t i, k;

	json_array_foreach(messages, i, message)
	{
		if (is(message, "tool"))
			json_put(message, "tool_call_id", short_id(json_object_get(message, "tool_call_id")));
		json_array_foreach(calls_of(message), k, call)
			json_put(call, "id", short_id(json_object_get(call, "id")));
	}
}

/* Of the results that stand behind a message those of this call; each is of one call. */
static void take_results(json_t *to, json_t *results, const json_t *call, size_t number)
{
	const char *id = json_string_value(json_object_get(call, "id"));
	json_t *result;
	size_t index;

	json_array_foreach(results, index, result)
	{
		const char *own = json_string_value(json_object_get(result, "tool_call_id"));
		if (!json_is_object(result) || (own && id ? strcmp(own, id) != 0 : index != number))
			continue;
		json_add(to, json_incref(result));
		json_array_set_new(results, index, json_null());
	}
}

/* Copies of those that stand behind message i in the array. */
static json_t *results_behind(const json_t *messages, size_t i)
{
	json_t *results = json_array();

	for (i++; is(json_array_get(messages, i), "tool"); i++)
		json_add(results, json_incref(json_array_get(messages, i)));
	return results;
}

static json_t *split_calls(json_t *messages, unsigned repairs)
{
	json_t *all = json_array(), *message, *call;
	size_t i, k;

	for (i = 0; i < json_array_size(messages); i++) {
		message = json_array_get(messages, i);
		json_t *calls = calls_of(message);
		if (calls && (repairs & HISTORY_SPLIT_CONTENT) && has_content(message)) {
			json_add(all, said("assistant", json_incref(json_object_get(message, "content"))));
			json_put(message, "content", json_string(""));
		}
		if (!(repairs & HISTORY_ONE_CALL) || json_array_size(calls) < 2) {
			json_add(all, json_incref(message));
			continue;
		}
		json_t *results = results_behind(messages, i);
		json_array_foreach(calls, k, call)
		{
			json_t *one = json_copied(message, false), *list = json_array();
			json_add(list, json_incref(call));
			json_put(one, "tool_calls", list);
			if (k)
				json_put(one, "content", json_string(""));
			json_add(all, one);
			take_results(all, results, call, k);
		}
		json_decref(results);
		while (is(json_array_get(messages, i + 1), "tool"))
			i++;
	}
	json_decref(messages);
	return all;
}

/* Calls as the text that most models write, results as the user's. */
static void make_plain(json_t *messages)
{
	json_t *message, *call;
	size_t i, k;

	json_array_foreach(messages, i, message)
	{
		if (is(message, "tool")) {
			json_t *content = json_incref(json_object_get(message, "content"));
			json_object_clear(message);
			json_put(message, "role", json_string("user"));
			json_put(message, "content", content);
		}
		if (!calls_of(message))
			continue;
		struct bytes text = { 0 };
		add_content(&text, message);
		json_array_foreach(calls_of(message), k, call)
		{
			char *one = json_spell(json_object_get(call, "function"), 0);
			bytes_text(&text, text.n ? "\n" : "");
			bytes_text(&text, one ? one : "{}");
			free(one);
		}
		json_put(message, "content", json_text(text.n ? text.p : "", text.n));
		json_object_del(message, "tool_calls");
		bytes_free(&text);
	}
}

static void shape_calls(json_t *messages, unsigned repairs)
{
	json_t *message, *call;
	size_t i, k;

	json_array_foreach(messages, i, message)
	{
		json_array_foreach(calls_of(message), k, call) shape_arguments(call, repairs);
	}
	if (repairs & HISTORY_RESULT_NAMES)
		name_results(messages);
	if (repairs & HISTORY_SHORT_IDS)
		shorten_ids(messages);
}

/* ---- roles */

/* Its text behind that of others. */
static void add_said(struct bytes *text, const json_t *message)
{
	if (!has_content(message))
		return;
	bytes_text(text, text->n ? "\n\n" : "");
	add_content(text, message);
}

/* Becomes the content; the text is freed. */
static void set_said(json_t *message, struct bytes *text)
{
	json_put(message, "content", json_text(text->n ? text->p : "", text->n));
	bytes_free(text);
}

/* These are all messages now. */
static void replace_all(json_t *messages, json_t *with)
{
	if (!with || json_array_clear(messages) != 0 || json_array_extend(messages, with) != 0)
		json_add(messages, NULL);
	json_decref(with);
}

/* The system messages from the first one on, in one, the first message. all: those behind other messages, too. */
static void join_system(json_t *messages, bool all)
{
	json_t *first = NULL, *rest = json_array(), *with = json_array(), *message;
	struct bytes text = { 0 };
	bool joins = true;
	unsigned count = 0;
	size_t i;

	json_array_foreach(messages, i, message)
	{
		joins = joins && (all || is(message, "system"));
		if (!joins || !is(message, "system")) {
			json_add(rest, json_incref(message));
			continue;
		}
		first = first ? first : json_incref(message);
		add_said(&text, message);
		count++;
	}
	if (count > 1)
		set_said(first, &text);
	bytes_free(&text);
	if (first)
		json_add(with, first);
	if (json_array_extend(with, rest) != 0)
		json_add(with, NULL);
	json_decref(rest);
	replace_all(messages, with);
}

/* What system messages say is said by the user. */
static void drop_system(json_t *messages)
{
	size_t i = 0;

	join_system(messages, true);
	json_t *system = json_array_get(messages, 0), *message = system;
	if (!is(system, "system"))
		return;
	while (message && !is(message, "user"))
		message = json_array_get(messages, ++i);
	if (message) {
		struct bytes text = { 0 };
		add_said(&text, system);
		add_said(&text, message);
		set_said(message, &text);
		json_array_remove(messages, 0);
	} else {
		json_put(system, "role", json_string("user"));
	}
}

/* Whether they are one message. */
static bool are_one(const json_t *one, const json_t *next)
{
	return (is(one, "user") && is(next, "user")) ||
	       (is(one, "assistant") && is(next, "assistant") && !calls_of(one));
}

static void join_neighbours(json_t *messages)
{
	json_t *with = json_array(), *one = NULL, *message, *calls;
	struct bytes text = { 0 };
	bool joined = false;
	size_t i;

	json_array_foreach(messages, i, message)
	{
		if (!one || !are_one(one, message)) {
			if (joined)
				set_said(one, &text);
			bytes_free(&text);
			text = (struct bytes){ 0 };
			joined = false;
			one = message;
			add_content(&text, one);
			json_add(with, json_incref(one));
			continue;
		}
		add_said(&text, message);
		joined = true;
		if ((calls = calls_of(message)))
			json_put(one, "tool_calls", json_incref(calls));
	}
	if (joined)
		set_said(one, &text);
	bytes_free(&text);
	replace_all(messages, with);
}

static void insert(json_t *messages, size_t at, const char *role)
{
	json_t *made = said(role, json_string(""));

	if (!made || json_array_insert(messages, at, made) != 0)
		json_add(messages, NULL);
	json_decref(made);
}

static void add_roles(json_t *messages, unsigned repairs)
{
	size_t first = 0;
	bool some = false;

	for (size_t i = 1; (repairs & HISTORY_ANSWERS) && i < json_array_size(messages); i++)
		if (is(json_array_get(messages, i - 1), "tool") && is(json_array_get(messages, i), "user"))
			insert(messages, i++, "assistant");
	for (size_t i = 0; i < json_array_size(messages); i++)
		some = some || is(json_array_get(messages, i), "user");
	while (is(json_array_get(messages, first), "system"))
		first++;
	if ((!some && (repairs & HISTORY_SOME_USER)) ||
	    (is(json_array_get(messages, first), "assistant") && (repairs & HISTORY_FIRST_USER)))
		insert(messages, first, "user");
}

/* Content as an array of one part. */
static void make_parts(json_t *message)
{
	json_t *content = json_object_get(message, "content"), *parts, *part;

	if (!json_is_string(content))
		return;
	parts = json_array();
	part = json_object();
	json_put(part, "type", json_string("text"));
	json_put(part, "text", json_incref(content));
	json_add(parts, part);
	json_put(message, "content", parts);
}

json_t *history_messages(const json_t *messages, unsigned repairs)
{
	json_t *all = json_copied(messages, true), *message;
	size_t i;

	shape_calls(all, repairs);
	if (repairs & (HISTORY_SPLIT_CONTENT | HISTORY_ONE_CALL))
		all = split_calls(all, repairs);
	if (repairs & HISTORY_PLAIN_CALLS)
		make_plain(all);
	if (repairs & (HISTORY_JOIN_FIRST | HISTORY_JOIN_SYSTEM))
		join_system(all, repairs & HISTORY_JOIN_SYSTEM);
	if (repairs & HISTORY_NO_SYSTEM)
		drop_system(all);
	add_roles(all, repairs);
	if (repairs & HISTORY_JOIN_NEIGHBOURS)
		join_neighbours(all);
	json_array_foreach(all, i, message)
	{
		if ((repairs & HISTORY_NULL_CONTENT) && calls_of(message) && !has_content(message))
			json_put(message, "content", json_null());
		if (repairs & HISTORY_PARTS)
			make_parts(message);
	}
	return all;
}
