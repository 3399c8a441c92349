/* programs/jitrun/jitrun_chat.c - a conversation on a terminal: messages in, answers out, and commands that begin with
 * a slash.
 *
 * Owns: the list of messages. Each turn the whole list is rendered by the model's chat template, and the session keeps
 * the tokens that are the same as before. Ctrl-C stops an answer, not the program.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs/jitrun/jitrun_chat.h"
#include "programs/jitrun/line_editor.h"
#include "programs/common/output.h"

static const char help_text[] =
	"/help, /?        this list\n"
	"/clear           forget the conversation; the system message stays\n"
	"/system TEXT     set the system message and begin anew; without TEXT, none\n"
	"/regen           answer the last message once more\n"
	"/save FILE       write the conversation as JSON\n"
	"/load FILE       read one back\n"
	"/image FILE      show this picture with the next message; /image lists them\n"
	"/stats           speed and size so far\n"
	"/set             how tokens are chosen, answers are shown and more: /set lists it\n"
	"/show            the model, its template, the system message and more: /show lists it\n"
	"/exit            end, as Ctrl-D, /bye and /quit do\n"
	"A line that ends with a backslash goes on in the next one, and a text that begins with \"\"\" goes on until\n"
	"a line ends so. What is pasted is one message. A blank before a slash makes a message of a command.\n"
	"The path of a picture in a message (/..., ~/..., ./... or file:), as terminals write it for a file that is\n"
	"dropped on them, is the picture itself.\n"
	"Ctrl-C stops an answer, and clears a line. Tab completes commands and names of files.\n";

bool chat_fail(const jit_error *e)
{
	jitrun_fail(e);
	return false;
}

bool chat_no_memory(void)
{
	return chat_fail(&(jit_error){ .message = "no memory for the conversation", .code = JIT_ERROR_MEMORY });
}

static bool add_message(struct chat *c, const char *role, const char *text, size_t n)
{
	json_t *content = output_string_n(text, n);

	return (content &&
	        json_array_append_new(c->messages, json_pack("{s:s, s:o}", "role", role, "content", content)) == 0) ||
	       chat_no_memory();
}

/* Where templates look for it; most leave it out of all answers but the last. */
static bool add_reasoning(struct chat *c, const struct run *r)
{
	json_t *last = json_array_get(c->messages, json_array_size(c->messages) - 1);

	return r->n_reasoning == 0 ||
	       json_object_set_new(last, "reasoning_content", output_string_n(r->reasoning, r->n_reasoning)) == 0 ||
	       chat_no_memory();
}

static const char *role_of(const struct chat *c, size_t i)
{
	const char *role = json_string_value(json_object_get(json_array_get(c->messages, i), "role"));

	return role ? role : "";
}

bool chat_set_system(struct chat *c, const char *text)
{
	json_t *content = *text ? output_string(text) : NULL;
	json_t *m = content ? json_pack("{s:s, s:o}", "role", "system", "content", content) : NULL;

	if (*text && !m)
		return chat_no_memory();
	if (chat_system(c))
		json_array_remove(c->messages, 0);
	return !m || json_array_insert_new(c->messages, 0, m) == 0 || chat_no_memory();
}

/* Forgets all but a system message at the beginning. */
static void clear(struct chat *c)
{
	size_t keep = json_array_size(c->messages) && strcmp(role_of(c, 0), "system") == 0;

	while (json_array_size(c->messages) > keep)
		json_array_remove(c->messages, json_array_size(c->messages) - 1);
	chat_pictures_forget(c);
}

/* With pictures the prompt has the same text and tokens, and says where pictures stand among these. */
static bool render_pictures(struct chat *c, const jit_chat_options *o, jit_chat *out, jit_error *err)
{
	c->prompt = chat_pictures_prompt(c, o, err);
	if (!c->prompt)
		return false;
	const char *text = jit_prompt_text(c->prompt, &out->n);
	const int32_t *ids = jit_prompt_ids(c->prompt, &out->n_ids);
	out->text = strndup(text, out->n);
	out->ids = malloc((out->n_ids + 1) * sizeof *ids);
	if (!out->text || !out->ids)
		return chat_no_memory();
	memcpy(out->ids, ids, out->n_ids * sizeof *ids);
	return true;
}

static bool render(struct chat *c, jit_chat *out, jit_error *err)
{
	char *text = json_dumps(c->messages, JSON_COMPACT);
	char *variables = c->variables ? json_dumps(c->variables, JSON_COMPACT) : NULL;
	jit_chat_options o = JIT_CHAT_OPTIONS(.messages = text, .template_text = c->run->template_text,
	                                      .template_name = c->run->template_text ? NULL : opt.template_file,
	                                      .has_now = 1, .now = (int64_t)time(NULL), .variables = variables);
	bool ok = text && !c->variables == !variables;

	jit_prompt_close(c->prompt);
	c->prompt = NULL;
	if (!ok)
		chat_no_memory();
	else if (chat_pictures_shown(c))
		ok = render_pictures(c, &o, out, err);
	else
		ok = jit_chat_render(c->run->model, &o, out, err) == JIT_OK;
	free(variables);
	free(text);
	return ok;
}

static bool is_off(const struct chat *c)
{
	return c->variables && !json_is_true(json_object_get(c->variables, "thinking"));
}

/* Where the model shall not reason, and its template begins the reasoning all the same: it ends at once. */
static bool end_reasoning(struct chat *c, jit_chat *text, jit_error *err)
{
	struct think *t = &c->run->think;
	int32_t *ids = NULL;
	size_t n = 0;

	if (!is_off(c) || t->state != THINK_INSIDE)
		return true;
	const char *mark = think_mark(2 * t->marks + 1);
	if (jit_model_tokenize(c->run->model, mark, strlen(mark), 0, 1, &ids, &n, err) != JIT_OK)
		return false;
	int32_t *more = realloc(text->ids, (text->n_ids + n) * sizeof *more);
	if (more) {
		memcpy(more + text->n_ids, ids, n * sizeof *ids);
		text->ids = more;
		text->n_ids += n;
		think_begin(t, mark, strlen(mark));
	}
	const bool ok = more && chat_pictures_go_on(c, ids, n);
	free(ids);
	return ok || chat_no_memory();
}

/* Feeds what of the conversation the session does not have yet. */
static bool feed(struct chat *c, const jit_chat *text, jit_error *err)
{
	jit_session *s = c->run->session;
	const int32_t *have = jit_session_ids(s);
	size_t n = jit_session_length(s), same = 0;

	if (!prompt_fits(&(struct prompt){ .ids = text->ids, .n_ids = text->n_ids }, c->run->context, err))
		return false;
	if (c->prompt)
		return chat_pictures_feed(c, err);
	while (same < n && same + 1 < text->n_ids && have[same] == text->ids[same])
		same++;
	if (jit_session_rewind(s, same, err) != JIT_OK || !jitrun_begin_adapters(s, text->ids, text->n_ids, &same, err))
		return false;
	const struct prompt rest = { .ids = text->ids + same, .n_ids = text->n_ids - same };
	return jitrun_feed(c->run, &rest, err) == JIT_OK;
}

/* One answer to the list of messages. What was said until Ctrl-C is kept as the answer. */
static bool answer(struct chat *c)
{
	struct run *r = c->run;
	jit_chat text = JIT_CHAT();
	jit_error err = { 0 };

	jitrun_busy(true);
	r->start = jitrun_seconds();
	r->first_token = 0;
	r->wrap.column = 0;
	r->n_generated = r->n_text = r->n_reasoning = 0;
	r->ended = r->stopped = r->full = false;
	r->before = (struct think_before){ 0 };
	bool ok = render(c, &text, &err);
	if (ok && opt.show_prompt)
		wrap_text(&r->wrap, text.text, text.n, false);
	think_begin(&r->think, text.text, text.text ? text.n : 0);
	if (ok && !is_off(c))
		r->before = think_before(text.text, text.text ? text.n : 0, chat_template_of(c));
	ok = ok && end_reasoning(c, &text, &err) && feed(c, &text, &err);
	jit_chat_free(&text);
	if (ok && !interrupted)
		ok = jit_session_set_stop(r->session, opt.stop.value, (size_t)opt.stop.n, &err) == JIT_OK &&
		     jitrun_generate(r, &err) == JIT_OK;
	jitrun_busy(false);
	putchar('\n');
	fflush(stdout);
	if (interrupted)
		fprintf(stderr, "(stopped)\n");
	if (r->full)
		fprintf(stderr, "(the context of %d tokens is full: /clear begins anew, --context makes room)\n",
		        r->context);
	if (!ok)
		return chat_fail(&err);
	if (c->stats)
		jitrun_print_summary(r, opt.verbose);
	return add_message(c, "assistant", r->text ? r->text : "", r->n_text) && add_reasoning(c, r);
}

static void drop_last(struct chat *c, const char *role)
{
	size_t n = json_array_size(c->messages);

	if (n && strcmp(role_of(c, n - 1), role) == 0)
		json_array_remove(c->messages, n - 1);
}

static bool take_turn(struct chat *c, const char *text, size_t n)
{
	json_t *content = chat_pictures_content(c, text, n);

	if (!content || json_array_append_new(c->messages, json_pack("{s:s, s:o}", "role", "user", "content", content)))
		return content && chat_no_memory();
	if (answer(c))
		return true;
	drop_last(c, "user");
	chat_pictures_trim(c);
	return false;
}

/* ---- commands */

static void command_system(struct chat *c, const char *text)
{
	json_array_clear(c->messages);
	chat_pictures_forget(c);
	if (!*text || add_message(c, "system", text, strlen(text)))
		fprintf(stderr, "The conversation begins anew, %s.\n",
		        *text ? "with this system message" : "without a system message");
}

static void command_regen(struct chat *c, const char *unused)
{
	drop_last(c, "assistant");
	if (json_array_size(c->messages) && strcmp(role_of(c, json_array_size(c->messages) - 1), "user") == 0)
		answer(c);
	else
		fprintf(stderr, "There is no message to answer yet.\n");
}

static void command_clear(struct chat *c, const char *unused)
{
	clear(c);
	fprintf(stderr, "The conversation begins anew%s.\n",
	        json_array_size(c->messages) ? "; the system message stays" : "");
}

static void command_help(struct chat *c, const char *unused) { fputs(help_text, stderr); }
static void command_stats(struct chat *c, const char *unused) { jitrun_print_summary(c->run, true); }
static void command_exit(struct chat *c, const char *unused) { c->over = true; }

static const struct {
	const char *name;
	void (*run)(struct chat *c, const char *rest);
} commands[] = { { "/help", command_help },      { "/?", command_help },           { "/clear", command_clear },
	         { "/system", command_system },  { "/regen", command_regen },      { "/save", chat_command_save },
	         { "/load", chat_command_load }, { "/image", chat_command_image }, { "/stats", command_stats },
	         { "/set", chat_command_set },   { "/show", chat_command_show },   { "/exit", command_exit },
	         { "/bye", command_exit },       { "/quit", command_exit } };
enum { COMMANDS = sizeof commands / sizeof *commands };

static void say_unknown(const char *line, size_t n)
{
	const char *names[COMMANDS];
	char near[100], quoted[200];

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	fprintf(stderr, "%s is no command%s. /help lists them; a blank before it sends it as a message.\n",
	        error_quote(quoted, sizeof quoted, line, n), chat_near(near, "", line, n, names, COMMANDS));
}

/* What Tab completes. */
static const char *const typed[] = {
	"/help",
	"/?",
	"/clear",
	"/system TEXT",
	"/regen",
	"/save FILE",
	"/load FILE",
	"/image FILE",
	"/stats",
	"/exit",
	"/bye",
	"/quit",
	"/set system TEXT",
	"/set think on",
	"/set think off",
	"/set think low",
	"/set think medium",
	"/set think high",
	"/set think show",
	"/set think dim",
	"/set think hide",
	"/set wrap on",
	"/set wrap off",
	"/set history on",
	"/set history off",
	"/set format json",
	"/set format none",
	"/set verbose on",
	"/set verbose off",
	"/set parameter NAME",
	"/set temperature VALUE",
	"/set top_k VALUE",
	"/set top_p VALUE",
	"/set min_p VALUE",
	"/set repeat_penalty VALUE",
	"/set seed VALUE",
	"/set num_predict VALUE",
	"/set stop TEXT",
	"/show info",
	"/show parameters",
	"/show template",
	"/show system",
	"/show pictures",
	"/show license",
	"/show modelfile",
	NULL
};

/* False: it is none, but text that begins with a slash, as paths do. */
static bool do_command(struct chat *c, char *line)
{
	for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]);
	     end--) /* as Tab leaves one behind a name */
		line[end - 1] = 0;

	size_t n = strcspn(line, " \n\t");
	const char *rest = line + n + strspn(line + n, " \t");

	for (size_t i = 0; i < COMMANDS; i++)
		if (strlen(commands[i].name) == n && memcmp(line, commands[i].name, n) == 0) {
			commands[i].run(c, rest);
			return true;
		}
	if (strchr(line, '\n'))
		return false;
	say_unknown(line, n);
	return true;
}

static bool begin(struct chat *c)
{
	c->messages = json_array();
	if (!c->messages)
		return chat_no_memory();
	if (opt.system && !add_message(c, "system", opt.system, strlen(opt.system)))
		return false;
	return !jitrun_preset.messages || json_array_extend(c->messages, jitrun_preset.messages) == 0 ||
	       chat_no_memory();
}

int jitrun_converse(struct run *r)
{
	struct chat c = { .run = r };
	bool ok = begin(&c);

	for (int i = 0; ok && i < opt.image.n; i++)
		ok = chat_pictures_add(&c, opt.image.value[i]);
	line_editor_begin(typed, !opt.no_history);
	r->keeps_text = true;
	if (ok && opt.prompt)
		ok = take_turn(&c, opt.prompt, strlen(opt.prompt));
	while (ok && !c.over && !(opt.single_turn && opt.prompt)) {
		struct message m = jitrun_next_message();
		c.failed = m.failed;
		if (!m.text)
			break;
		line_editor_remember(m.text);
		if (*m.text && (m.is_text || *m.text != '/' || chat_pictures_begin(m.text) || !do_command(&c, m.text)))
			take_turn(&c, m.text, strlen(m.text));
		free(m.text);
		if (opt.single_turn)
			break;
	}
	line_editor_end();
	if (ok && !opt.quiet)
		jitrun_print_summary(r, opt.verbose);
	json_decref(c.messages);
	json_decref(c.variables);
	chat_pictures_forget(&c);
	jit_prompt_close(c.prompt);
	free(c.picture);
	return ok && !c.failed ? 0 : 1;
}
