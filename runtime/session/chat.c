/* runtime/session/chat.c - jit_chat_render: a conversation as the model's own chat template writes it, and its token
 * ids.
 *
 * Owns: which template is taken, and which variables it gets. chat/ owns what a template means.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "base/json_read.h"
#include "loaders/tokenizer/tokenizer.h"
#include "runtime/session/chat.h"
#include "include/jitrun.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

enum { VARIABLES_MAX = 64, NAME_LENGTH_MAX = 80 };

/* The variables of one call. The JSON texts of `owned` are freed with it. */
struct variables {
	struct chat_variable list[VARIABLES_MAX];
	size_t n, n_owned;
	char *owned[VARIABLES_MAX];
	json_t *more; /* the names of the caller's own variables live here */
};

static void add(struct variables *v, const char *name, const char *json, enum chat_source source)
{
	v->list[v->n++] = (struct chat_variable){ name, json, json ? strlen(json) : 0, source };
}

static bool add_owned(struct variables *v, const char *name, json_t *value, enum chat_source source, struct error *err)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	json_decref(value);
	if (!text)
		return error_set(err, ERROR_MEMORY, "no memory for the variables of the chat template");
	v->owned[v->n_owned++] = text;
	add(v, name, text, source);
	return true;
}

/* The text of a special token; none: the template finds the variable undefined. */
static bool add_token(struct variables *v, const char *name, const struct tokenizer *t, int32_t id, struct error *err)
{
	char scratch[256];
	size_t n;

	if (id < 0)
		return true;
	const char *text = tokenizer_piece(t, id, false, true, scratch, &n);
	return add_owned(v, name, json_stringn(text, n), CHAT_MODEL, err);
}

static bool is_ours(const char *name)
{
	static const char *const ours[] = { "messages", "tools", "add_generation_prompt", "bos_token", "eos_token" };

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (strcmp(name, ours[i]) == 0)
			return true;
	return false;
}

/* The caller's own: switches such as enable_thinking, and texts such as documents, dates and names of tools. A server
 * has them from its clients, so that none of their text becomes a control token. */
static bool add_more(struct variables *v, const char *json, struct error *err)
{
	const char *name;
	json_t *value;

	if (!json)
		return true;
	v->more = json_read(json, strlen(json), JSON_MAX_CONFIG, "jit_chat_options.variables", err);
	if (!v->more)
		return false;
	if (!json_is_object(v->more))
		return error_set(err, ERROR_ARGUMENT, "jit_chat_options.variables is %s, expected an object",
		                 json_kind(v->more));
	json_object_foreach(v->more, name, value)
	{
		if (is_ours(name))
			return error_set(err, ERROR_ARGUMENT,
			                 "jit_chat_options.variables has \"%s\", which is given by the library", name);
		if (v->n == VARIABLES_MAX)
			return error_set(err, ERROR_ARGUMENT,
			                 "jit_chat_options.variables has too many members, expected at most %d",
			                 VARIABLES_MAX - 8);
		if (!add_owned(v, name, json_incref(value), CHAT_USER, err))
			return false;
	}
	return true;
}

static bool collect(struct variables *v, const struct model *m, const jit_chat_options *o, struct error *err)
{
	const struct tokenizer *t = m->tokenizer;

	if (!o->messages)
		return error_set(err, ERROR_ARGUMENT, "jit_chat_options.messages is NULL, expected a JSON array");
	add(v, "messages", o->messages, CHAT_MESSAGES);
	if (o->tools)
		add(v, "tools", o->tools, CHAT_USER);
	add(v, "add_generation_prompt", o->no_generation_prompt ? "false" : "true", CHAT_MODEL);
	return (!t || (add_token(v, "bos_token", t, tokenizer_bos(t), err) &&
	               add_token(v, "eos_token", t, tokenizer_eos(t), err))) &&
	       add_more(v, o->variables, err);
}

bool chat_find_text(const struct model *m, const jit_chat_options *o, const char **text, size_t *n, struct error *err)
{
	const struct model_chat_template *t = NULL;

	*text = o->template_text;
	*n = o->template_text ? strlen(o->template_text) : 0;
	if (o->template_text && o->template_name)
		return error_set(err, ERROR_ARGUMENT,
		                 "jit_chat_options.template_name is \"%.60s\", expected NULL beside template_text",
		                 o->template_name);
	if (o->template_text)
		return true;
	if (o->template_name && !(t = model_find_chat_template(m, o->template_name)))
		return model_refuse_chat_template(m, o->template_name, err);
	if (!t && o->tools)
		t = model_find_chat_template(m, "tool_use");
	if (!t)
		t = model_find_chat_template(m, NULL);
	if (!t && m->chat_template_error.code)
		return error_set(err, m->chat_template_error.code, "%s", m->chat_template_error.text);
	*text = t ? t->text : NULL;
	*n = t ? t->n : 0;
	return true;
}

static struct chat_template *find_template(const struct model *m, const jit_chat_options *o, struct error *err)
{
	const char *text;
	size_t n;

	if (!chat_find_text(m, o, &text, &n, err))
		return NULL;
	if (!text) {
		error_set(err, ERROR_UNSUPPORTED, "the model's files have no chat template");
		return NULL;
	}
	return chat_template_parse(text, n, o->template_text ? "the chat template given" : "the model's chat template",
	                           err);
}

bool chat_can_use(const struct model *m, const char *name, const char *text, struct error *err)
{
	const jit_chat_options o = { .template_name = name, .template_text = text };
	struct chat_template *t = find_template(m, &o, err);

	chat_template_free(t);
	return t != NULL;
}

bool chat_render_text(const struct model *m, const jit_chat_options *o, struct chat_text *text, struct error *err)
{
	struct variables *v = calloc(1, sizeof *v);
	struct chat_template *t = v ? find_template(m, o, err) : NULL;
	struct tm now;
	bool ok = t && collect(v, m, o, err);

	*text = (struct chat_text){ 0 };
	if (!v)
		error_set(err, ERROR_MEMORY, "no memory for a conversation");
	if (ok && o->has_now && !gmtime_r(&(time_t){ o->now }, &now))
		ok = error_set(err, ERROR_ARGUMENT, "jit_chat_options.now is %lld, which is no time of a calendar",
		               (long long)o->now);
	ok = ok && chat_render(t,
	                       &(struct chat_request){ .variable = v->list,
	                                               .n_variables = v->n,
	                                               .now = o->has_now ? &now : NULL,
	                                               .lenient = true },
	                       text, NULL, err);
	chat_template_free(t);
	for (size_t i = 0; v && i < v->n_owned; i++)
		free(v->owned[i]);
	if (v)
		json_decref(v->more);
	free(v);
	return ok;
}

bool chat_render_with(const struct model *m, const jit_chat_options *o, jit_chat *out, struct error *err)
{
	struct chat_text text;
	const bool ok = chat_render_text(m, o, &text, err) &&
	                (!m->tokenizer || chat_tokenize(m->tokenizer, &text, true, &out->ids, &out->n_ids, err));

	if (ok) {
		out->text = text.p;
		out->n = text.n;
		text.p = NULL;
	}
	chat_text_free(&text);
	return ok;
}

/* What a caller's struct has no room for is nobody's. */
static void drop_unseen(const jit_chat *own, size_t size)
{
	if (size < offsetof(jit_chat, text) + sizeof own->text)
		free(own->text);
	if (size < offsetof(jit_chat, ids) + sizeof own->ids)
		free(own->ids);
}

int jit_chat_render(const jit_model *m, const jit_chat_options *options, jit_chat *out, jit_error *err)
{
	struct error e = { 0 };
	jit_chat_options o;
	jit_chat own = { 0 };

	if (NEEDED(m, &e) && NEEDED(options, &e) && SIZED_READ(jit_chat_options, &o, options, &e) &&
	    SIZED_WRITE(jit_chat, out, &own, &e) && chat_render_with(&m->file, &o, &own, &e)) {
		SIZED_WRITE(jit_chat, out, &own, &e);
		drop_unseen(&own, out->size);
	}
	return model_report(err, &e);
}

void jit_chat_free(jit_chat *c)
{
	if (!c)
		return;
	free(c->text);
	free(c->ids);
	c->text = NULL;
	c->ids = NULL;
	c->n = c->n_ids = 0;
}
