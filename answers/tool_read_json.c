/* answers/tool_read_json.c - calls as objects of JSON, alone or in an array. */
#include <stdlib.h>
#include <string.h>

#include "answers/tool_reader.h"

/* Another call begins. */
static void begin_call(struct read_json *j)
{
	j->member = MEMBER_NONE;
	j->begun = j->done = j->ended = j->named = j->others = false;
	bytes_clear(&j->name);
	json_flow_clear(&j->inner);
}

/* What a string stands for; NULL: it is empty, it cannot be a name, or lost. */
static char *text_of(struct tool_reader *r, const struct bytes *token)
{
	struct bytes text = { 0 };

	if (!token->lost && token->n >= 2)
		json_flow_unescape(token->p + 1, token->n - 2, &text);
	bool ok = text.n && !text.lost && !memchr(text.p, 0, text.n);
	bytes_add(&text, "", 1);
	r->lost = r->lost || token->lost || text.lost;
	if (ok && !text.lost)
		return text.p;
	bytes_free(&text);
	return NULL;
}

/* Says what is known. */
static enum tool_reading settle(struct tool_reader *r)
{
	struct read_json *j = &r->json;

	if (j->named && !r->told && !j->ended && r->out.n >= 2)
		tool_reader_tell(r, text_of(r, &j->name));
	tool_reader_say(r);
	if (r->told && j->done) {
		tool_reader_call_ends(r, true);
		j->ended = true;
	}
	return READING;
}

/* The name is there: whether it is one. */
static enum tool_reading named(struct tool_reader *r)
{
	const json_t *function;
	char *text = text_of(r, &r->json.name);
	bool known = text && tool_reader_knows(r, text, &function);

	free(text);
	r->json.named = true;
	return known ? settle(r) : READ_NONE;
}

static enum tool_reading end_key(struct tool_reader *r)
{
	struct read_json *j = &r->json;
	char *key = text_of(r, &j->key);
	enum tool_reading now = READING;

	if (r->form == TOOLS_PREFIX) { /* {NAME: {...}} */
		begin_call(j);
		bytes_add(&j->name, j->key.p, j->key.n);
		j->member = MEMBER_ARGUMENTS;
		now = named(r);
	} else if (key && (strcmp(key, "name") == 0 || strcmp(key, "tool_name") == 0)) {
		j->member = j->named ? MEMBER_OTHER : MEMBER_NAME;
	} else if (key && (strcmp(key, "arguments") == 0 || strcmp(key, "parameters") == 0)) {
		j->member = j->begun ? MEMBER_OTHER : MEMBER_ARGUMENTS;
	} else {
		j->member = MEMBER_OTHER;
		j->others = j->others || !key || (strcmp(key, "type") != 0 && strcmp(key, "id") != 0);
	}
	free(key);
	bytes_clear(&j->key);
	return now;
}

/* A member's value begins. */
static enum tool_reading begin_member(struct tool_reader *r, unsigned char byte)
{
	struct read_json *j = &r->json;
	enum flow_event event = j->flow.event;
	bool object = event == FLOW_OPENS && j->flow.objects & 1, string = event == FLOW_STRING;

	if (j->member == MEMBER_NAME) {
		j->in_name = string;
		bytes_add(&j->name, "\"", string);
		return string ? READING : READ_NONE;
	}
	if (j->member != MEMBER_ARGUMENTS)
		return READING;
	j->begun = true;
	if (event == FLOW_SCALAR && byte == 'n') { /* null: there are none */
		bytes_text(&r->out, "{}");
		j->member = MEMBER_OTHER;
		j->done = true;
		return settle(r);
	}
	j->in_object = object;
	j->in_text = string && r->form != TOOLS_PREFIX;
	bytes_add(&r->out, "{", object);
	return j->in_object || j->in_text ? READING : READ_NONE;
}

static enum tool_reading end_call(struct tool_reader *r)
{
	struct read_json *j = &r->json;

	if (!j->named)
		return READ_NONE;
	/* An answer that happens to have a member "name". */
	if (!j->begun && j->others && r->functions && !r->row->mark[0])
		return READ_NONE;
	if (!j->begun) {
		bytes_text(&r->out, "{}");
		j->begun = j->done = true;
		settle(r);
	}
	begin_call(j);
	return j->list ? READING : READ_WHOLE;
}

/* Outside of the values that matter. */
static enum tool_reading between(struct tool_reader *r, unsigned char byte)
{
	struct read_json *j = &r->json;
	const unsigned depth = j->flow.depth, level = j->list;
	const bool object = j->flow.objects & 1;

	switch (j->flow.event) {
	case FLOW_OPENS:
		if (depth == 1 && !object) {
			j->list = true;
			return READING;
		}
		if (depth == level + 1 && object)
			begin_call(j);
		if (depth == level + 1)
			return object ? READING : READ_NONE;
		return depth == level + 2 ? begin_member(r, byte) : READING;
	case FLOW_STRING:
	case FLOW_SCALAR: return depth <= level ? READ_NONE : depth == level + 1 ? begin_member(r, byte) : READING;
	case FLOW_KEY_ENDS: return depth == level + 1 ? end_key(r) : READING;
	case FLOW_CLOSES:
		if (depth == 0 && j->list)
			return r->kept ? READ_WHOLE : READ_NONE;
		return depth == level ? end_call(r) : READING;
	default: return READING;
	}
}

/* Arguments that are the JSON text of an object, in a string. */
static enum tool_reading in_text(struct tool_reader *r, const struct bytes *made)
{
	struct read_json *j = &r->json;
	bool ends = j->flow.event == FLOW_STRING_ENDS;
	struct bytes text = { 0 };
	enum tool_reading now = READING;

	if (made->n)
		json_flow_unescape(made->p, made->n - ends, &text);
	for (size_t i = 0; i < text.n && !j->done && now == READING && !r->broken; i++) {
		const unsigned char c = (unsigned char)text.p[i];
		bool first = j->inner.depth == 0 && j->inner.at == FLOW_AT_VALUE && !tool_is_space(c);
		enum flow s = first && c != '{' ? FLOW_WRONG : json_flow_take(&j->inner, c, &r->out);
		j->done = s == FLOW_DONE;
		now = s == FLOW_WRONG ? tool_reader_wrong(r) : settle(r);
	}
	j->inner.held.lost |= text.lost;
	bytes_free(&text);
	if (!ends || now != READING || r->broken)
		return now;
	j->in_text = false;
	if (!j->done && j->inner.at == FLOW_AT_VALUE && j->inner.depth == 0) {
		bytes_text(&r->out, "{}");
		j->done = true;
		return settle(r);
	}
	if (j->done)
		return READING;
	if (!r->told)
		return READ_NONE;
	tool_reader_call_ends(r, false);
	j->ended = true;
	return READING;
}

static enum tool_reading in_value(struct tool_reader *r, const struct bytes *made)
{
	struct read_json *j = &r->json;

	if (j->in_text)
		return in_text(r, made);
	if (j->in_name) {
		bytes_add(&j->name, made->p, made->n);
		j->in_name = j->flow.event != FLOW_STRING_ENDS;
		return j->in_name ? READING : named(r);
	}
	bytes_add(&r->out, made->p, made->n);
	if (j->flow.event == FLOW_CLOSES && j->flow.depth == j->list + 1U) {
		j->in_object = false;
		j->done = true;
	}
	return settle(r);
}

enum tool_reading tool_read_json(struct tool_reader *r, unsigned char byte)
{
	struct read_json *j = &r->json;
	bool inside = j->in_text || j->in_name || j->in_object;

	bytes_clear(&j->made);
	if (json_flow_take(&j->flow, byte, &j->made) == FLOW_WRONG) {
		if (r->told)
			bytes_add(&r->out, j->made.p, j->made.n);
		return j->ended ? READ_WHOLE : tool_reader_wrong(r);
	}
	if (inside)
		return in_value(r, &j->made);
	if (j->flow.key && (json_flow_quoted(&j->flow) || j->flow.event == FLOW_KEY_ENDS) &&
	    j->flow.depth == j->list + 1U)
		bytes_add(&j->key, j->made.p, j->made.n);
	enum tool_reading now = between(r, byte);
	if (now == READING && r->kept && j->list && j->flow.depth == 1)
		r->kept = r->taken;
	return now;
}
