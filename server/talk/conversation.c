/* server/talk/conversation.c - the messages of a request become a prompt. */
#include "server/talk/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers/think.h"
#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "server/request/fields.h"
#include "server/talk/history.h"
#include "server/talk/messages.h"
#include "server/request/tool_notes.h"

/* For models without a template of their own; most of those trained for conversations since 2023 know this form. */
static const char usual_template[] =
	"{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
	"(message['content'] or '') + '<|im_end|>\\n' }}{% endfor %}"
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/* ---- prompts */

/* What a request says of its last message. */
struct ending {
	bool generation;                 /* the prompt begins an answer */
	bool may, must;                  /* a last message of the assistant goes on */
	char *beginning;                 /* its text; NULL: none goes on */
	const struct pictures *pictures; /* of the messages */
};

static bool read_ending(struct ending *e, const json_t *body, struct refusal *r)
{
	const bool told = field_value(body, "continue_final_message"),
		   requested = field_value(body, "add_generation_prompt");

	*e = (struct ending){ .generation = true };
	if (!field_flag(body, "add_generation_prompt", &e->generation, r) ||
	    !field_flag(body, "continue_final_message", &e->must, r))
		return false;
	if (e->must && requested && e->generation)
		return refuse(r, 400, "continue_final_message",
		              "continue_final_message and add_generation_prompt cannot both be true");
	e->generation = e->generation || e->must;
	e->may = told ? e->must : e->generation;
	return true;
}

static bool is_answer(const json_t *message)
{
	return strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0 &&
	       !json_object_get(message, "tool_calls") && json_is_string(json_object_get(message, "content"));
}

/* The text of an answer that the client has begun is taken from the messages. */
static bool take_beginning(struct ending *e, json_t *messages, struct refusal *r)
{
	size_t n = json_array_size(messages);
	json_t *last = json_array_get(messages, n - 1);

	if (!e->may || n < 2 || !is_answer(last))
		return !e->must || refuse(r, 400, "continue_final_message",
		                          "continue_final_message is true, and the last message is not an answer's "
		                          "beginning behind others");
	if (is_answer(json_array_get(messages, n - 2)))
		return refuse(r, 400, "messages",
		              "the last two messages are both the assistant's; the last one goes on, and must be one");
	e->beginning = strdup(json_string_value(json_object_get(last, "content")));
	json_array_remove(messages, n - 1);
	return e->beginning || refuse(r, 503, NULL, "There is no memory for this request.");
}

/* What the answer is to rest on, for templates that write it: objects with texts, or texts alone. */
static void add_documents(json_t *variables, const json_t *body, const struct served *m, struct refusal *r)
{
	json_t *given = field_array(body, "documents", r), *document;
	size_t i;

	if (json_array_size(given) == 0)
		return;
	if (!m->writes_documents) {
		refuse(r, 400, "documents",
		       "documents is given, and the model's chat template writes none; put their texts into a message");
		return;
	}
	json_t *list = json_array();
	json_array_foreach(given, i, document)
	{
		if (json_is_string(document)) {
			json_t *o = json_object();
			json_put(o, "title", json_string(""));
			json_put(o, "text", json_incref(document));
			json_add(list, o);
		} else if (json_is_object(document)) {
			json_add(list, json_incref(document));
		} else {
			refuse(r, 400, "documents", "documents has %s, expected texts, or objects with title and text",
			       json_kind(document));
		}
	}
	json_put(variables, "documents", list);
}

/* What templates know beside messages: what the request says, else the day, and whether the model shall reason. */
static json_t *variables_of(const json_t *body, const struct served *m, int64_t now, struct refusal *r)
{
	static const struct {
		const char *name, *format;
	} days[] = { { "date_string", "%d %b %Y" }, { "datetime", "%b %d %Y" } };
	json_t *o = json_object(), *more = field_object(body, "chat_template_kwargs", r);
	const char *effort = NULL;
	time_t seconds = (time_t)now;
	char text[64];
	struct tm day;

	for (size_t i = 0; gmtime_r(&seconds, &day) && i < sizeof days / sizeof *days; i++)
		if (strftime(text, sizeof text, days[i].format, &day))
			json_put(o, days[i].name, json_string(text));
	if (m->reasoning != REASONING_TEMPLATE)
		json_put(o, "enable_thinking", json_boolean(m->reasoning == REASONING_ON));
	if (field_text(body, "reasoning_effort", &effort, r) && effort) {
		json_put(o, "reasoning_effort", json_string(effort));
		json_put(o, "enable_thinking", json_boolean(strcmp(effort, "none") != 0));
	}
	if (m->tools == TOOLS_FUNCTOOLS) {
		json_t *shown = tools_shown(field_value(body, "tools"));
		char *tools = json_array_size(shown) ? json_spell(shown, JSON_INDENT(2)) : strdup("");
		json_decref(shown);
		json_put(o, "functions", tools ? json_string(tools) : NULL);
		free(tools);
	}
	if (more && json_object_update(o, more))
		refuse(r, 503, NULL, "There is no memory for this request.");
	add_documents(o, body, m, r);
	return o;
}

/* The tools that stand in the prompt; NULL: none. */
static json_t *tools_of(const json_t *body, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r);
	const json_t *choice = field_value(body, "tool_choice");

	if (!tools || json_array_size(tools) == 0)
		return NULL;
	if (json_is_string(choice) && strcmp(json_string_value(choice), "none") == 0)
		return NULL;
	return tools;
}

static bool append(struct conversation *c, const char *text, bool special, const struct served *m, struct refusal *r)
{
	int32_t *ids = NULL;
	size_t n = 0, length = strlen(text);
	jit_error err = { 0 };

	if (!models_go_on(m->model, text, special, &ids, &n, &err))
		return refuse_error(r, "messages", &err);
	int32_t *all = realloc(c->ids, (c->n_ids + n + 1) * sizeof *all);
	if (all) {
		memcpy(all + c->n_ids, ids, n * sizeof *ids);
		c->ids = all;
		c->n_ids += n;
	}
	free(ids);
	char *whole = all ? realloc(c->text, c->n_text + length + 1) : NULL;
	if (!whole)
		return refuse(r, 503, NULL, "There is no memory for this request.");
	memcpy(whole + c->n_text, text, length + 1);
	c->text = whole;
	c->n_text += length;
	return true;
}

/* What is rendered. */
struct rendering {
	jit_chat_options o;
	const struct pictures *pictures;
};

/* Of messages that were left out, the pictures are, too: these are the first ones. */
static int render_pictures(struct conversation *c, const struct rendering *a, const struct served *m, jit_error *err)
{
	const struct pictures *p = a->pictures;
	const size_t n = pictures_marks(p, a->o.messages);
	struct error e = { 0 };

	if (n > p->n)
		error_set(&e, ERROR_UNSUPPORTED, "the conversation cannot be shown with its pictures");
	else if (prompt_of_chat(&c->shown, sight_told(m->sight)->encoder, &a->o, p->mark, p->image + (p->n - n), n,
	                        &e)) {
		c->ids = c->shown.ids;
		c->n_ids = c->shown.n;
		c->text = c->shown.text;
		c->n_text = c->shown.n_text;
		c->shown.ids = NULL;
		c->shown.text = NULL;
	}
	err->code = e.code == ERROR_NONE          ? JIT_OK
	            : e.code == ERROR_MEMORY      ? JIT_ERROR_MEMORY
	            : e.code == ERROR_UNSUPPORTED ? JIT_ERROR_UNSUPPORTED
	                                          : JIT_ERROR_ARGUMENT;
	snprintf(err->message, sizeof err->message, "%s", e.text);
	return err->code;
}

static int render_as(struct conversation *c, const struct rendering *a, const struct served *m, jit_error *err)
{
	jit_chat chat = JIT_CHAT();

	*c = (struct conversation){ 0 };
	if (a->pictures->n)
		return render_pictures(c, a, m, err);
	const int status = jit_chat_render(m->model, &a->o, &chat, err);
	c->ids = chat.ids;
	c->n_ids = chat.n_ids;
	c->text = chat.text;
	c->n_text = chat.n;
	return status;
}

static bool render(struct conversation *c, struct rendering *a, const struct served *m, struct refusal *r)
{
	jit_error err = { 0 };

	a->o.template_text = m->template_text;
	int status = render_as(c, a, m, &err);
	if (status == JIT_ERROR_UNSUPPORTED && !m->template_text && !m->info.has_chat_template && !a->o.template_name) {
		a->o.template_text = usual_template;
		status = render_as(c, a, m, &err);
	}
	if (status != JIT_OK)
		return refuse_error(r, "messages", &err);
	return c->ids || refuse(r, 501, NULL, "The model has no tokenizer.");
}

/* With these repairs of the conversation; bytes is how long what the template gets was then. */
static bool render_repaired(struct conversation *c, const json_t *messages, const json_t *tools, unsigned repairs,
                            struct rendering *a, const struct served *m, size_t *bytes, struct refusal *r)
{
	char *text = json_write(history_messages(messages, repairs)),
	     *told = tools ? json_write(history_tools(tools, repairs)) : NULL;
	bool ok = (text && (told || !tools)) || refuse(r, 503, NULL, "There is no memory for this request.");

	*bytes = (text ? strlen(text) : 0) + (told ? strlen(told) : 0);
	a->o.messages = text;
	a->o.tools = told;
	ok = ok && field_fits("messages", *bytes, r) && render(c, a, m, r);
	free(text);
	free(told);
	return ok;
}

/* Every repair is tried for a conversation of so many messages, and while all that was rendered has so many bytes: each
 * costs as much as the conversation is long. */
enum { REPAIRED_MAX = 1000, REPAIRED_BYTES = 4 << 20 };

/* As the model's template was found to take conversations: what it takes as it comes goes so. What it still refuses is
 * like no probe: then the other repairs are tried, too. */
static bool render_history(struct conversation *c, const json_t *messages, const json_t *tools, struct rendering *o,
                           const struct served *m, struct refusal *r)
{
	unsigned repairs = m->repairs[tools != NULL], rescues = m->rescues[tools != NULL];
	size_t bytes, all;
	bool ok = render_repaired(c, messages, tools, repairs, o, m, &all, r);

	/* Of a very long one the first of these alone. */
	const unsigned max = json_array_size(messages) > REPAIRED_MAX ? 0 : HISTORY_REPAIRS;
	for (unsigned i = 0; i <= max && !ok && r->status == 400 && (!i || all < REPAIRED_BYTES); i++) {
		unsigned more = i ? 1U << (i - 1) : rescues;
		struct refusal again = { 0 };
		if (!(more & ~repairs))
			continue;
		repairs |= more;
		if ((ok = render_repaired(c, messages, tools, repairs, o, m, &bytes, &again)))
			*r = again;
		else if (!i)
			*r = again; /* what it says of the conversation as it takes others */
		all += bytes;
	}
	return ok;
}

/* Where the model shall not reason, and its template begins the reasoning all the same: it ends at once. */
static bool end_reasoning(struct conversation *c, const json_t *variables, const struct served *m, struct refusal *r)
{
	struct think t = { 0 };

	if (!json_is_false(json_object_get(variables, "enable_thinking")))
		return true;
	think_begin(&t, c->text, c->n_text);
	return t.state != THINK_INSIDE || append(c, think_mark(2 * t.marks + 1), true, m, r);
}

/* An answer that goes on has had its reasoning, and so has one of a model that shall not reason. */
static struct think_before before_of(const struct conversation *c, const json_t *variables, const struct ending *e,
                                     const struct served *m)
{
	const bool may =
		e->generation && !e->beginning && !json_is_false(json_object_get(variables, "enable_thinking"));
	const char *own = m->template_text ? m->template_text : models_template(m->model, NULL);

	return think_before(c->text, c->n_text, may ? own : NULL);
}

static bool make(struct conversation *c, json_t *messages, const json_t *body, struct ending *e, const struct served *m,
                 int64_t now, struct refusal *r)
{
	json_t *variables = variables_of(body, m, now, r), *tools = tools_shown(tools_of(body, r));
	char *more = json_write(json_incref(variables));
	struct rendering o = {
		JIT_CHAT_OPTIONS(.has_now = 1, .now = now, .variables = more, .no_generation_prompt = !e->generation),
		e->pictures
	};

	if (!more)
		refuse(r, 503, NULL, "There is no memory for this request.");
	bool ok = !r->status && render_history(c, messages, tools, &o, m, r) &&
	          (!e->generation || end_reasoning(c, variables, m, r)) &&
	          (!e->beginning || append(c, e->beginning, false, m, r));
	if (ok)
		c->before = before_of(c, variables, e, m);
	json_decref(tools);
	json_decref(variables);
	free(more);
	return ok;
}

static const char *role_of(const json_t *message)
{
	const char *role = json_string_value(json_object_get(message, "role"));

	return role ? role : "";
}

/* What is kept with the model stands before: its system message where there is none, then its messages, behind the
 * system message. NULL: no memory. */
static json_t *with_kept(json_t *messages, const struct served *m)
{
	const json_t *one;
	size_t i;

	if (!messages || (!m->system && !m->begins))
		return messages;
	json_t *all = json_array(), *first = json_array_get(messages, 0);
	bool has = strcmp(role_of(first), "system") == 0 || strcmp(role_of(first), "developer") == 0, ok = all != NULL;
	if (ok && has)
		ok = json_array_append(all, first) == 0;
	else if (ok && m->system)
		ok = json_array_append_new(all, json_pack("{s:s, s:s}", "role", "system", "content", m->system)) == 0;
	json_array_foreach(m->begins, i, one) if (ok) ok = json_array_append_new(all, json_deep_copy(one)) == 0;
	json_array_foreach(messages, i, one) if (ok && (i || !has)) ok =
		json_array_append(all, (json_t *)(uintptr_t)one) == 0;
	json_decref(messages);
	if (ok)
		return all;
	json_decref(all);
	return NULL;
}

/* ---- messages that have no room */

/* All messages of the system, and the others from number `first` on. */
static json_t *without_old(const json_t *messages, size_t first)
{
	json_t *left = json_array(), *one;
	size_t i;

	json_array_foreach(messages, i, one) if (i >= first || strcmp(role_of(one), "system") == 0)
		json_add(left, json_incref(one));
	return left;
}

/* The next message from number i on with which a conversation can begin: what a tool says stands behind its call. */
static size_t beginning_from(const json_t *messages, size_t i)
{
	while (i < json_array_size(messages) && strcmp(role_of(json_array_get(messages, i)), "tool") == 0)
		i++;
	return i;
}

/* As few of the oldest as it takes. Where no cut is short enough, *c is the shortest one that the template takes, or as
 * it was. */
static bool leave_out(struct conversation *c, const json_t *messages, const json_t *body, struct ending *e,
                      const struct served *m, int64_t now, size_t room, struct refusal *r)
{
	const size_t n = json_array_size(messages);
	size_t low = 1, high = n;
	bool found = false;

	while (low < high) {
		const size_t middle = low + (high - low) / 2, first = beginning_from(messages, middle);
		if (first == n) {
			high = middle;
			continue;
		}
		struct conversation shorter = { 0 };
		struct refusal why = { 0 };
		json_t *left = without_old(messages, first);
		const bool made = make(&shorter, left, body, e, m, now, &why), fits = made && shorter.n_ids <= room;
		json_decref(left);
		if (fits)
			high = middle;
		else
			low = first + 1;
		const bool better = fits || (made && !found && shorter.n_ids < c->n_ids);
		conversation_free(better ? c : &shorter);
		if (better)
			*c = shorter;
		found = found || fits;
		if (why.status == 503) {
			*r = why;
			return false;
		}
	}
	return true;
}

bool conversation_read(struct conversation *c, const json_t *body, const struct served *m, int64_t now,
                       struct refusal *r)
{
	struct ending e;
	struct pictures pictures = { .fetches = c->fetches };
	json_t *messages = with_kept(read_ending(&e, body, r) ? messages_read(body, m, &pictures, r) : NULL, m);
	const size_t room = c->room;

	e.pictures = &pictures;
	bool ok = messages && !pictures.wanted && take_beginning(&e, messages, r) &&
	          make(c, messages, body, &e, m, now, r) &&
	          (!room || c->n_ids <= room || leave_out(c, messages, body, &e, m, now, room, r));
	json_decref(messages);
	free(e.beginning);
	c->pictures = pictures;
	return ok;
}

void conversation_give(struct conversation *c, struct task *t)
{
	t->ids = c->ids;
	t->n_ids = c->n_ids;
	t->before = c->before;
	t->shown = c->shown;
	t->sight = c->pictures.sight;
	t->pixels = c->pictures.pixels;
	c->ids = NULL;
	c->shown = (struct jit_prompt){ 0 };
	c->pictures.sight = NULL;
}

void conversation_free(struct conversation *c)
{
	free(c->ids);
	free(c->text);
	prompt_close(&c->shown);
	pictures_free(&c->pictures);
	*c = (struct conversation){ 0 };
}
