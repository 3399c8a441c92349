/* server/control/texts.c - texts and tokens: /tokenize, /detokenize, /apply-template. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/json_write.h"
#include "server/talk/conversation.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"
#include "server/talk/talk.h"

enum { PIECES_MAX = 1 << 18 }; /* tokens with their texts in one answer, of some 400 bytes each */

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* A token with its text, or with its bytes where these are no text. */
static json_t *token_object(const jit_model *m, int32_t id)
{
	char scratch[256];
	size_t n = 0, at = 0;
	const char *text = models_bytes(m, id, true, scratch, &n);
	json_t *o = json_object();
	uint32_t code;

	json_put(o, "id", json_integer(id));
	for (unsigned length; at < n && (length = text_char(text + at, n - at, &code)); at += length)
		;
	json_put(o, "piece", at == n ? json_text(text, n) : json_bytes(text, n));
	return o;
}

/* A part of the content; bytes: of all its texts so far. */
static bool append_tokens(json_t *list, const json_t *v, const jit_model *m, bool add, bool special, bool pieces,
                          size_t *bytes, struct refusal *r)
{
	jit_error err = { 0 };
	int32_t *ids = NULL;
	size_t n = 0;

	if (json_is_integer(v)) {
		json_add(list, json_integer(json_integer_value(v)));
		return true;
	}
	if (!json_is_string(v))
		return refuse(r, 400, "content", "content is neither a string nor an array of strings and tokens");
	*bytes += json_string_length(v);
	if (!field_fits("content", *bytes, r))
		return false;
	if (jit_model_tokenize(m, json_string_value(v), json_string_length(v), add, special, &ids, &n, &err) != JIT_OK)
		return refuse_error(r, "content", &err);
	if (pieces && json_array_size(list) + n > PIECES_MAX)
		refuse(r, 413, "content", "content has %zu tokens, expected at most %d with with_pieces",
		       json_array_size(list) + n, PIECES_MAX);
	for (size_t i = 0; i < n && !r->status; i++)
		json_add(list, pieces ? token_object(m, ids[i]) : json_integer(ids[i]));
	free(ids);
	return r->status == 0;
}

static json_t *tokenize(const json_t *body, const jit_model *m, struct refusal *r)
{
	bool add = false, special = true, pieces = false, ok = true;
	const json_t *content = field_value(body, "content"), *part;
	json_t *list = json_array();
	size_t i, bytes = 0;

	ok = field_flag(body, "add_special", &add, r) && field_flag(body, "parse_special", &special, r) &&
	     field_flag(body, "with_pieces", &pieces, r);
	if (json_is_array(content)) {
		json_array_foreach(content, i, part) ok =
			ok && append_tokens(list, part, m, add && i == 0, special, pieces, &bytes, r);
	} else if (content) {
		ok = ok && append_tokens(list, content, m, add, special, pieces, &bytes, r);
	}
	json_t *o = json_object();
	json_put(o, "tokens", list);
	if (ok)
		return o;
	json_decref(o);
	return NULL;
}

static bool run_tokenize(struct exchange *x, json_t *body, const struct served *m)
{
	json_t *o = tokenize(body, m->model, &x->refusal);

	return o && exchange_json(x, json_write(o));
}

bool answer_tokenize(struct exchange *x) { return request_run(x, REQUEST_TOKENIZE, run_tokenize); }

static json_t *detokenize(const json_t *body, const jit_model *m, struct refusal *r)
{
	struct prompts p = { 0 };
	json_t *tokens = field_array(body, "tokens", r), *o = json_object();
	size_t n = 0;
	char *text = NULL;

	if (!tokens && !r->status)
		refuse(r, 400, "tokens", "tokens is missing");
	if (tokens && json_array_size(tokens) == 0)
		text = strdup("");
	else if (tokens && prompts_read(&p, "tokens", tokens, m, r)) {
		if (p.n == 1)
			text = jit_model_detokenize(m, p.list[0].ids, p.list[0].n, &n, NULL);
		else
			refuse(r, 400, "tokens", "tokens are %zu lists, expected one", p.n);
	}
	prompts_free(&p);
	json_put(o, "content", text ? json_text(text, n) : json_null());
	if (!text)
		no_memory(r);
	free(text);
	if (!r->status)
		return o;
	json_decref(o);
	return NULL;
}

static bool run_detokenize(struct exchange *x, json_t *body, const struct served *m)
{
	json_t *o = detokenize(body, m->model, &x->refusal);

	return o && exchange_json(x, json_write(o));
}

bool answer_detokenize(struct exchange *x) { return request_run(x, REQUEST_DETOKENIZE, run_detokenize); }

static bool run_template(struct exchange *x, json_t *body, const struct served *m)
{
	struct conversation c = { .fetches = &x->shown };
	json_t *warnings = NULL, *o = NULL;

	if (talk_read_chat(body, &warnings, &x->refusal) && conversation_read(&c, body, m, x->now, &x->refusal)) {
		o = json_object();
		json_put(o, "prompt", json_text(c.text, c.n_text));
	}
	json_decref(warnings);
	conversation_free(&c);
	return o && exchange_json(x, json_write(o));
}

bool answer_apply_template(struct exchange *x) { return request_run(x, REQUEST_CHAT, run_template); }
