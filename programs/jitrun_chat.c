/* programs/jitrun_chat.c - a conversation on a terminal: lines in, answers out, and commands that begin with a slash.
 *
 * Owns: the list of messages. Each turn the whole list is rendered by the model's chat template, and the session keeps
 * the tokens that are the same as before. Ctrl-C stops an answer, not the program.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "loaders/json_read.h"
#include "programs/jitrun_parts.h"
#include "programs/output.h"

enum { SAVED_MOST = 1 << 26, TURN_MOST = 1 << 22 };

struct chat {
	struct run *run;
	json_t *messages;
	bool over;
	bool failed; /* a message could not be read; it was said */
};

static const char help_text[] =
	"/help            this list\n"
	"/clear           forget the conversation; the system message stays\n"
	"/system TEXT     set the system message and begin anew; without TEXT, none\n"
	"/regen           answer the last message once more\n"
	"/save FILE       write the conversation as JSON\n"
	"/load FILE       read one back\n"
	"/stats           speed and size so far\n"
	"/exit            end, as Ctrl-D does\n"
	"A line that ends with a backslash goes on in the next one. Ctrl-C stops an answer.\n";

static bool chat_fail(const jit_error *e)
{
	jitrun_fail(e);
	return false;
}

static bool chat_no_memory(void)
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

/* Forgets all but a system message at the beginning. */
static void clear(struct chat *c)
{
	size_t keep = json_array_size(c->messages) && strcmp(role_of(c, 0), "system") == 0;

	while (json_array_size(c->messages) > keep)
		json_array_remove(c->messages, json_array_size(c->messages) - 1);
}

static bool render(struct chat *c, jit_chat *out, jit_error *err)
{
	char *text = json_dumps(c->messages, JSON_COMPACT);
	jit_chat_options o = JIT_CHAT_OPTIONS(.messages = text, .template_text = c->run->template_text,
	                                      .template_name = c->run->template_text ? NULL : opt.template_file,
	                                      .has_now = 1, .now = (int64_t)time(NULL));
	bool ok = text ? jit_chat_render(c->run->model, &o, out, err) == JIT_OK : chat_no_memory();

	free(text);
	return ok;
}

/* Feeds what of the conversation the session does not have yet. */
static bool feed(struct chat *c, const jit_chat *text, jit_error *err)
{
	jit_session *s = c->run->session;
	const int32_t *have = jit_session_ids(s);
	size_t n = jit_session_length(s), same = 0;

	while (same < n && same + 1 < text->n_ids && have[same] == text->ids[same])
		same++;
	if (jit_session_rewind(s, same, err) != JIT_OK)
		return false;
	const struct prompt rest = { .ids = text->ids + same, .n_ids = text->n_ids - same };
	return prompt_fits(&(struct prompt){ .ids = text->ids, .n_ids = text->n_ids }, c->run->context, err) &&
	       jitrun_feed(c->run, &rest, err) == JIT_OK;
}

/* One answer to the list of messages. What was said until Ctrl-C is kept as the answer. */
static bool answer(struct chat *c)
{
	struct run *r = c->run;
	jit_chat text = JIT_CHAT();
	jit_error err = { 0 };

	jitrun_busy(true);
	r->n_generated = r->n_text = r->n_reasoning = 0;
	r->ended = r->stopped = r->full = false;
	bool ok = render(c, &text, &err);
	if (ok && opt.show_prompt)
		output_text(stdout, text.text, text.n, r->terminal);
	think_begin(&r->think, text.text, text.text ? text.n : 0);
	ok = ok && feed(c, &text, &err);
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
	return add_message(c, "assistant", r->text ? r->text : "", r->n_text) && add_reasoning(c, r);
}

static void drop_last(struct chat *c, const char *role)
{
	size_t n = json_array_size(c->messages);

	if (n && strcmp(role_of(c, n - 1), role) == 0)
		json_array_remove(c->messages, n - 1);
}

static void take_turn(struct chat *c, const char *text, size_t n)
{
	if (add_message(c, "user", text, n) && !answer(c))
		drop_last(c, "user");
}

/* ---- commands */

static void command_system(struct chat *c, const char *text)
{
	json_array_clear(c->messages);
	if (*text)
		add_message(c, "system", text, strlen(text));
}

static void command_regen(struct chat *c, const char *unused)
{
	drop_last(c, "assistant");
	if (json_array_size(c->messages) && strcmp(role_of(c, json_array_size(c->messages) - 1), "user") == 0)
		answer(c);
	else
		fprintf(stderr, "There is no message to answer yet.\n");
}

static void command_save(struct chat *c, const char *path)
{
	FILE *f = *path ? fopen(path, "w") : NULL;
	bool ok = f && json_dumpf(c->messages, f, JSON_INDENT(1)) == 0;

	ok = f && fclose(f) == 0 && ok;
	if (!*path)
		fprintf(stderr, "Which file? /save FILE\n");
	else if (!ok)
		fprintf(stderr, "%s could not be written: %s.\n", path, strerror(errno));
}

/* A list of objects with the texts "role" and "content". */
static const char *wrong_with(const json_t *list)
{
	size_t i;
	json_t *m;

	if (!json_is_array(list))
		return "it is no list of messages";
	json_array_foreach(list, i, m)
	{
		if (!json_is_text(json_object_get(m, "role")) || !json_is_text(json_object_get(m, "content")))
			return "a message has no role or no content";
	}
	return NULL;
}

static void command_load(struct chat *c, const char *path)
{
	struct prompt p = { 0 };
	jit_error e = { 0 };
	struct error err = { 0 };

	if (!*path) {
		fprintf(stderr, "Which file? /load FILE\n");
		return;
	}
	if (!prompt_read(&p, path, SAVED_MOST, &e)) {
		chat_fail(&e);
		return;
	}
	json_t *list = json_read(p.text, p.n, SAVED_MOST, path, &err);
	const char *wrong = list ? wrong_with(list) : err.text;
	if (wrong) {
		fprintf(stderr, "%s was not loaded: %s.\n", path, wrong);
		json_decref(list);
	} else {
		json_decref(c->messages);
		c->messages = list;
		size_t n = json_array_size(list);
		fprintf(stderr, "%zu message%s loaded.\n", n, n == 1 ? "" : "s");
	}
	prompt_free(&p);
}

static void command_clear(struct chat *c, const char *unused) { clear(c); }
static void command_help(struct chat *c, const char *unused) { fputs(help_text, stderr); }
static void command_stats(struct chat *c, const char *unused) { jitrun_print_summary(c->run, true); }
static void command_exit(struct chat *c, const char *unused) { c->over = true; }

static const struct {
	const char *name;
	void (*run)(struct chat *c, const char *rest);
} commands[] = { { "/help", command_help },   { "/clear", command_clear }, { "/system", command_system },
	         { "/regen", command_regen }, { "/save", command_save },   { "/load", command_load },
	         { "/stats", command_stats }, { "/exit", command_exit } };

static void do_command(struct chat *c, const char *line)
{
	size_t n = strcspn(line, " ");
	const char *rest = line + n + strspn(line + n, " ");

	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strlen(commands[i].name) == n && memcmp(line, commands[i].name, n) == 0) {
			commands[i].run(c, rest);
			return;
		}
	fprintf(stderr, "%.*s is no command. /help lists them.\n", (int)n, line);
}

/* ---- lines */

/* A line without its end, malloc'ed; NULL: there is no more, or errno says what failed. */
static char *read_line(const char *prompt)
{
#ifdef HAVE_LIBEDIT
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		errno = 0;
		char *line = readline(prompt);
		if (!line)
			errno = 0; /* the end: libedit does not tell of failures */
		if (line && *line)
			add_history(line);
		return line;
	}
#endif
	char *line = NULL;
	size_t room = 0;

	if (isatty(STDIN_FILENO)) {
		fputs(prompt, stderr);
		fflush(stderr);
	}
	errno = 0;
	ssize_t n = getline(&line, &room, stdin);
	if (n < 0) {
		free(line); /* which keeps errno */
		if (errno != EINTR || !isatty(STDIN_FILENO))
			return NULL;
		clearerr(stdin); /* Ctrl-C: what was begun is forgotten */
		fputc('\n', stderr);
		return strdup("");
	}
	if (n && line[n - 1] == '\n')
		line[n - 1] = 0;
	return line;
}

/* A message: a line, and those after it while they end with a backslash. NULL: there is no more. */
static char *read_message(struct chat *c)
{
	char *all = read_line("> ");
	size_t n = all ? strlen(all) : 0;

	if (!all && errno) {
		fprintf(stderr, "jitrun: standard input could not be read: %s.\n", strerror(errno));
		c->failed = true;
	}
	while (n && all[n - 1] == '\\' && n < TURN_MOST) {
		char *more = read_line(". "), *joined;
		size_t n_more = more ? strlen(more) : 0;
		all[n - 1] = '\n';
		joined = realloc(all, n + n_more + 1);
		if (!joined) {
			free(more);
			free(all);
			c->failed = !chat_no_memory();
			return NULL;
		}
		all = joined;
		if (more)
			memcpy(all + n, more, n_more);
		n += n_more;
		all[n] = 0;
		free(more);
	}
	return all;
}

static bool begin(struct chat *c)
{
	c->messages = json_array();
	if (!c->messages)
		return chat_no_memory();
	return !opt.system || add_message(c, "system", opt.system, strlen(opt.system));
}

int jitrun_converse(struct run *r)
{
	struct chat c = { .run = r };
	bool ok = begin(&c);

	r->keeps_text = true;
	if (ok && opt.prompt)
		ok = add_message(&c, "user", opt.prompt, strlen(opt.prompt)) && answer(&c);
	while (ok && !c.over && !(opt.single_turn && opt.prompt)) {
		char *message = read_message(&c);
		if (!message)
			break;
		if (*message == '/')
			do_command(&c, message);
		else if (*message)
			take_turn(&c, message, strlen(message));
		free(message);
		if (opt.single_turn)
			break;
	}
	if (ok && !opt.quiet)
		jitrun_print_summary(r, opt.verbose);
	json_decref(c.messages);
	return ok && !c.failed ? 0 : 1;
}
