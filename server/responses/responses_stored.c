/* server/responses/responses_stored.c - responses that are kept: read, forgotten, and what of a request they say
 * again. */
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/responses/responses.h"
#include "server/http/server.h"

/* ---- what answers say of requests */

json_t *responses_said_again(const json_t *body)
{
	static const char *const names[] = {
		"instructions", "max_output_tokens",   "metadata", "reasoning", "text", "tools",
		"tool_choice",  "previous_response_id"
	};
	json_t *o = json_object(), *v;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		v = json_object_get(body, names[i]);
		json_put(o, names[i], v ? json_incref(v) : json_null());
	}
	if (!field_value(body, "tools"))
		json_put(o, "tools", json_array());
	if (!field_value(body, "tool_choice"))
		json_put(o, "tool_choice", json_string("auto"));
	v = field_value(body, "truncation");
	json_put(o, "truncation", v ? json_incref(v) : json_string("disabled"));
	return o;
}

void responses_add_said(json_t *j, json_t *echoed, json_t *warnings)
{
	const char *name;
	json_t *v;

	if (json_array_size(warnings))
		json_put(j, "warnings", json_incref(warnings));
	json_object_foreach(echoed, name, v) if (!json_object_get(j, name)) json_put(j, name, json_incref(v));
}

json_t *responses_usage(const struct run_numbers *n)
{
	return json_pack("{s:I, s:{s:I}, s:I, s:{s:i}, s:I}", "input_tokens", (json_int_t)n->prompt,
	                 "input_tokens_details", "cached_tokens", (json_int_t)n->reused, "output_tokens",
	                 (json_int_t)n->generated, "output_tokens_details", "reasoning_tokens", 0, "total_tokens",
	                 (json_int_t)(n->prompt + n->generated));
}

bool responses_include(const json_t *body, const char *what)
{
	json_t *list = field_value(body, "include"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_is_string(one) && strcmp(json_string_value(one), what) == 0)
			return true;
	}
	return false;
}

/* ---- endpoints */

static bool is_unknown(struct exchange *x)
{
	return refuse(&x->refusal, 404, NULL, "There is no response \"%s\" kept here.", x->rest);
}

/* The path behind /v1/responses/ is a name, or one with this behind it. */
static bool ends_with(char *rest, const char *what)
{
	const size_t n = strlen(rest), end = strlen(what);

	if (n <= end || strcmp(rest + n - end, what) != 0)
		return false;
	rest[n - end] = 0;
	return true;
}

static const char *id_of(const json_t *item)
{
	const char *id = json_string_value(json_object_get(item, "id"));

	return id ? id : "";
}

static bool answer_items(struct exchange *x)
{
	json_t *items = response_store_items(x->server->responses, x->client.key, x->rest), *o, *one;
	const size_t n = json_array_size(items);
	char name[80];
	size_t i;

	if (!items)
		return is_unknown(x);
	json_array_foreach(items, i, one)
	{
		snprintf(name, sizeof name, "item_%.40s_%zu", x->rest, i);
		if (!json_object_get(one, "id"))
			json_put(one, "id", json_string(name));
	}
	o = json_object();
	json_put(o, "object", json_string("list"));
	json_put(o, "data", items);
	json_put(o, "first_id", json_string(id_of(json_array_get(items, 0))));
	json_put(o, "last_id", json_string(id_of(json_array_get(items, n ? n - 1 : 0))));
	json_put(o, "has_more", json_false());
	return exchange_json(x, json_write(o));
}

bool answer_stored(struct exchange *x)
{
	if (ends_with(x->rest, "/input_items"))
		return answer_items(x);
	json_t *o = response_store_get(x->server->responses, x->client.key, x->rest);
	return o ? exchange_json(x, json_write(o)) : is_unknown(x);
}

bool answer_drop_stored(struct exchange *x)
{
	json_t *o;

	if (!response_store_drop(x->server->responses, x->client.key, x->rest))
		return is_unknown(x);
	o = json_object();
	json_put(o, "id", json_text(x->rest, strlen(x->rest)));
	json_put(o, "object", json_string("response"));
	json_put(o, "deleted", json_true());
	return exchange_json(x, json_write(o));
}

bool answer_cancel_stored(struct exchange *x)
{
	if (!ends_with(x->rest, "/cancel"))
		return refuse(&x->refusal, 404, NULL, "There is nothing at /v1/responses/%.100s to be posted to.",
		              x->rest);
	json_t *o = response_store_get(x->server->responses, x->client.key, x->rest);
	json_decref(o);
	return o ? refuse(&x->refusal, 400, NULL,
	                  "The response \"%s\" is complete: only one in the background could be "
	                  "cancelled.",
	                  x->rest)
	         : is_unknown(x);
}
