/* server/completions/gap_template.c - prompts by a template whose text is at hand: that of a request of ollama's API,
 * and a model's own that knows of .Suffix, with which it writes what stands before and behind a gap. */
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "base/json_write.h"
#include "server/completions/infill.h"

/* All false for none, for one in Jinja, and for one that cannot be read: rendering it says so. */
static struct chat_facts facts_of(const char *text)
{
	struct error ignored = { 0 };
	struct chat_facts f = { .go = false };

	if (!text || !chat_template_is_go(text, strlen(text)))
		return f;
	struct chat_template *t = chat_template_parse(text, strlen(text), "the chat template", &ignored);
	if (t)
		f = chat_template_facts(t);
	chat_template_free(t);
	return f;
}

bool infill_in_template(const char *template_text) { return facts_of(template_text).suffix; }

bool infill_render(const char *template_text, const char *messages, json_t *variables, const struct served *m,
                   int64_t now, struct infill_text *out, struct refusal *r)
{
	char *more = json_write(variables);
	jit_chat_options o = JIT_CHAT_OPTIONS(.has_now = 1, .now = now, .messages = messages, .variables = more,
	                                      .template_text = template_text);
	jit_chat chat = JIT_CHAT();
	jit_error err = { 0 };

	if (!more)
		return refuse(r, 503, NULL, "There is no memory for this request.");
	const int status = jit_chat_render(m->model, &o, &chat, &err);
	free(more);
	if (status != JIT_OK)
		return refuse_error(r, "template", &err);
	*out = (struct infill_text){ .ids = chat.ids, .n_ids = chat.n_ids, .text = chat.text, .n_text = chat.n };
	return chat.ids || refuse(r, 501, NULL, "The model has no tokenizer.");
}

bool infill_by_template(const struct served *m, const char *prompt, const char *suffix, int64_t now,
                        struct infill_text *out, struct refusal *r)
{
	const char *own = m->template_text ? m->template_text : models_template(m->model, NULL);
	json_t *variables = json_object();

	json_put(variables, "prompt", json_string(prompt));
	json_put(variables, "suffix", json_string(suffix));
	return infill_render(own, "[]", variables, m, now, out, r);
}
