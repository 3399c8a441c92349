/* server/completions/openai_flat.c - log probabilities as /v1/completions has always had them: lists side by side, of
 * tokens, numbers, likelier tokens and places in the text.
 *
 * Owns: what a token is called there. Its name is its text; a token that is a part of a character is "bytes:" and them,
 * as OpenAI has it. Likelier tokens are members of an object, so that two of the same text need different names.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/json_write.h"
#include "server/completions/openai.h"

/* ---- names */

static bool is_text(const char *p, size_t n)
{
	uint32_t code;
	size_t at = 0;

	for (unsigned length; at < n && (length = text_char(p + at, n - at, &code)); at += length)
		;
	return at == n;
}

static json_t *spelled(const char *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	struct bytes b = { 0 };

	bytes_text(&b, "bytes:");
	for (size_t i = 0; i < n; i++) {
		const char four[] = { '\\', 'x', digits[(unsigned char)p[i] >> 4], digits[(unsigned char)p[i] & 15] };
		bytes_add(&b, four, sizeof four);
	}
	json_t *o = b.lost ? NULL : json_text(b.p, b.n);
	bytes_free(&b);
	return o;
}

static json_t *name_of(const char *p, size_t n) { return is_text(p, n) ? json_text(p, n) : spelled(p, n); }

static int32_t id_of(const json_t *entry) { return (int32_t)json_integer_value(json_object_get(entry, "id")); }

/* Among the likelier tokens of a place, under its text; where that is another one's, under its number. */
static void put_top(const struct openai_reply *o, json_t *top, const json_t *entry, json_t *own)
{
	char scratch[256], number[32];
	size_t n;
	const char *text = models_bytes(o->model->model, id_of(entry), false, scratch, &n);
	json_t *name = own ? json_incref(own) : name_of(text, n);
	const char *key = json_string_value(name);

	/* A member's name ends at a NUL for those who look it up, and none may stand in for another. */
	if (!key || strlen(key) != json_string_length(name) || (!own && json_object_get(top, key))) {
		snprintf(number, sizeof number, "token_id:%d", id_of(entry));
		key = number;
	}
	json_put(top, key, json_incref(json_object_get(entry, "logprob")));
	json_decref(name);
}

/* The token that is there, and the likelier ones. */
static json_t *top_of(const struct openai_reply *o, const json_t *entry, json_t *name)
{
	const json_t *list = json_object_get(entry, "top_logprobs"), *t;
	json_t *top = json_object();
	size_t i;

	if (json_is_null(json_object_get(entry, "logprob"))) {
		json_decref(top);
		return json_null();
	}
	put_top(o, top, entry, name);
	json_array_foreach(list, i, t) if (id_of(t) != id_of(entry)) put_top(o, top, t, NULL);
	return top;
}

/* ---- places */

static size_t characters(const char *p, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)p[i] & 0xc0) != 0x80;
	return count;
}

/* Of the prompt's text: where the next token's first character begins. */
static size_t offset_of(const struct openai_choice *c, const struct openai_echo *e)
{
	return c->length - (c->length && ((unsigned char)e->text[c->at] & 0xc0) == 0x80);
}

/* A token of the prompt is found in its text. Control tokens stand there by their names or not at all, and the first
 * token's space may be missing. Its name. */
static json_t *text_in_prompt(const struct openai_reply *o, struct openai_choice *c, const struct openai_echo *e,
                              int32_t id)
{
	char scratch[256];
	const char *rest = e->text + c->at;
	const size_t left = e->n - c->at;
	size_t n;
	const char *text = models_bytes(o->model->model, id, false, scratch, &n);

	if (n == 0) {
		text = models_bytes(o->model->model, id, true, scratch, &n);
		if (n == 0 || n > left || memcmp(text, rest, n) != 0)
			return json_string("");
	}
	json_t *name = name_of(text, n);
	const size_t space = c->at == 0 && text[0] == ' ' && (left == 0 || rest[0] != ' ');
	n = n - space < left ? n - space : left;
	c->length += characters(rest, n);
	c->at += n;
	return name;
}

static json_t *text_in_answer(const struct openai_reply *o, struct openai_choice *c, int32_t id)
{
	char scratch[256];
	size_t n;
	const char *text = models_bytes(o->model->model, id, false, scratch, &n);

	for (size_t i = 0; i < n; i++) {
		const unsigned char byte = (unsigned char)text[i];
		const bool goes_on = (byte & 0xc0) == 0x80 && c->missing;
		c->length += !goes_on && c->missing; /* one that was never completed */
		c->missing = goes_on ? c->missing - 1 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
		c->length += c->missing == 0;
	}
	return name_of(text, n);
}

json_t *openai_flat(const struct openai_reply *o, unsigned choice, const json_t *entries)
{
	json_t *j = json_object(), *tokens = json_array(), *numbers = json_array(), *tops = json_array();
	json_t *offsets = json_array(), *entry, *name;
	struct openai_choice *c = &o->choice[choice];
	const struct openai_echo *e = o->echo ? &o->echo[choice / (o->n / o->n_tasks)] : NULL;
	size_t i;

	json_array_foreach(entries, i, entry)
	{
		const bool prompt = e && c->told < json_array_size(e->logprobs);
		if (e && c->told == json_array_size(e->logprobs))
			c->length += characters(e->text + c->at, e->n - c->at);
		json_add(offsets, json_integer((json_int_t)(prompt ? offset_of(c, e) : c->length)));
		name = prompt ? text_in_prompt(o, c, e, id_of(entry)) : text_in_answer(o, c, id_of(entry));
		json_add(tops, top_of(o, entry, name));
		json_add(tokens, name);
		json_add(numbers, json_incref(json_object_get(entry, "logprob")));
		c->told++;
	}
	json_put(j, "tokens", tokens);
	json_put(j, "token_logprobs", numbers);
	json_put(j, "top_logprobs", tops);
	json_put(j, "text_offset", offsets);
	return j;
}
