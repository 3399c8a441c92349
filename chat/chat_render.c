/* chat/chat_render.c - a template, its variables, and the text that comes of them.
 *
 * Owns: one rendering from its variables to its spans. Numbers are read and written in the C locale, whatever the
 * program that calls has set for itself.
 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "chat/go_template.h"

/* Templates take what is missing of a message for empty, so that they would write a conversation out of anything. */
static void check_messages(struct run *r, const struct chat_variable *v, struct value messages)
{
	if (messages.kind != KIND_LIST) {
		run_fail(r, "%s is of type %s, expected a list of messages", v->name, value_type(messages));
		return;
	}
	for (size_t i = 0; i < messages.list->n && !r->failed; i++)
		if (messages.list->item[i].kind != KIND_DICT)
			run_fail(r, "%s[%zu] is of type %s, expected an object", v->name, i,
			         value_type(messages.list->item[i]));
}

static void set_variables(struct run *r, const struct chat_request *request)
{
	for (size_t i = 0; i < request->n_variables && !r->failed; i++) {
		const struct chat_variable *v = &request->variable[i];
		struct value value = json_value(r, v);
		if (v->json && v->source == CHAT_MESSAGES && !r->failed)
			check_messages(r, v, value);
		if (v->json && !r->failed)
			scope_set(r, v->name, strlen(v->name), value);
	}
}

/* Runs of bytes of one origin. */
static bool spans_of(const struct build *b, struct chat_text *out)
{
	size_t n = b->n > 0;

	for (size_t i = 1; b->mark && i < b->n; i++)
		n += b->mark[i] != b->mark[i - 1];
	out->span = malloc((n + 1) * sizeof *out->span);
	if (!out->span)
		return false;
	out->n_spans = n;
	n = 0;
	for (size_t i = 0; i < b->n; i++) {
		bool user = b->mark ? b->mark[i] : b->user;
		if (i == 0 || user != out->span[n - 1].user)
			out->span[n++] = (struct chat_span){ i, i, user };
		out->span[n - 1].end = i + 1;
	}
	return true;
}

static bool take_text(const struct build *b, struct chat_text *out, const char *label, struct error *err)
{
	out->p = malloc(b->n + 1);
	if (!out->p || !spans_of(b, out)) {
		chat_text_free(out);
		return error_set(err, ERROR_MEMORY, "%s: no memory for a text of %zu bytes", label, b->n);
	}
	if (b->n)
		memcpy(out->p, b->p, b->n);
	out->p[b->n] = 0;
	out->n = b->n;
	return true;
}

bool chat_render(const struct chat_template *t, const struct chat_request *request, struct chat_text *out,
                 bool *refused, struct error *err)
{
	struct error why = { 0 };
	struct run r = { .memory = { .max = CHAT_MAX_MEMORY },
		         .label = t->label,
		         .err = &why,
		         .line = 1,
		         .now = request->now,
		         .lenient = request->lenient };
	struct build b = { .r = &r };
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before;

	memset(out, 0, sizeof *out);
	if (refused)
		*refused = false;
	if (!plain)
		return error_set(err, ERROR_MEMORY, "%s: no memory to run the template", t->label);
	before = uselocale(plain);
	r.out = &b;
	r.scope = scope_enter(&r, NULL);
	if (t->go) {
		go_render(&r, t->go, request);
	} else {
		if (r.scope)
			set_variables(&r, request);
		/* what the template sets lies in front of its variables */
		if (!r.failed)
			run_statements(&r, t->body);
	}
	bool ok = !r.failed && take_text(&b, out, t->label, &why);
	if (refused)
		*refused = r.refused;
	uselocale(before);
	freelocale(plain);
	memory_free(&r.memory);
	return ok || error_set(err, why.code, "%s", why.text);
}

void chat_text_free(struct chat_text *text)
{
	free(text->p);
	free(text->span);
	memset(text, 0, sizeof *text);
}
