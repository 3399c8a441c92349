/* programs/jitrun/jitrun_show.c - /show in a conversation: what the model is, and how it is asked. See jitrun_chat.h.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_chat.h"
#include "programs/common/output.h"
#include "include/jitrun_tokens.h"
#include "runtime/model/model.h"

enum { LICENSE_MAX = 1 << 20 };

const char *chat_template_of(const struct chat *c)
{
	if (c->run->template_text)
		return c->run->template_text;
	const struct model_chat_template *t = model_find_chat_template(&c->run->model->file, opt.template_file);
	return t ? t->text : NULL;
}

const char *chat_system(const struct chat *c)
{
	const json_t *first = json_array_get(c->messages, 0);
	const char *role = json_string_value(json_object_get(first, "role"));

	return role && strcmp(role, "system") == 0 ? json_string_value(json_object_get(first, "content")) : NULL;
}

/* A text of a file or of a person, which ends with its line. */
static void show_text(const char *text, size_t n)
{
	output_text(stderr, text, n, true);
	if (!n || text[n - 1] != '\n')
		fputc('\n', stderr);
}

/* A text of the metadata. NULL: none. */
static const char *metadata(const struct chat *c, const char *key)
{
	jit_metadata found = JIT_METADATA();
	int64_t at = jit_model_metadata_find(c->run->model, key);

	if (at < 0 || jit_model_metadata(c->run->model, (size_t)at, &found, NULL) != JIT_OK ||
	    found.kind != JIT_METADATA_STRING)
		return NULL;
	return found.text && *found.text ? found.text : NULL;
}

static void show_info(struct chat *c)
{
	jit_model_info info = JIT_MODEL_INFO();
	char size[FACTS_SIZE];
	const char *name = metadata(c, "general.name"), *why;

	jit_model_get_info(c->run->model, &info, NULL);
	facts_row(stderr, "model", "%s", jitrun_model.name ? jitrun_model.name : opt.model);
	if (jitrun_model.name)
		facts_row(stderr, "file", "%s", opt.model);
	if (name)
		facts_row(stderr, "name", "%s", name);
	facts_row(stderr, "shape", "%s", info.description);
	facts_row(stderr, "weights", "%s", facts_size(size, info.weight_bytes));
	if (info.context_trained)
		facts_row(stderr, "context", "%d tokens, of which %zu are used; trained for %d", c->run->context,
		          jit_session_length(c->run->session), info.context_trained);
	else
		facts_row(stderr, "context", "%d tokens, of which %zu are used", c->run->context,
		          jit_session_length(c->run->session));
	facts_row(stderr, "messages", "%zu", json_array_size(c->messages));
	if (jitrun_encoder(&why))
		facts_row(stderr, "pictures", "%zu, and %zu for the next message", chat_pictures_shown(c),
		          c->n_pictures - chat_pictures_shown(c));
	else
		facts_row(stderr, "pictures", "none: %s", why);
}

static void show_parameters(struct chat *c)
{
	char how[600], quoted[80];

	sampling_args_describe(&opt.sampling, how, sizeof how);
	facts_row(stderr, "sampling", "%s", how);
	facts_row(stderr, "samplers", "%s", opt.sampling.samplers ? opt.sampling.samplers : "the usual order");
	facts_row(stderr, "n_predict", opt.n < 0 ? "as many tokens as an answer takes" : "%ld", opt.n);
	facts_row(stderr, "context", "%d", c->run->context);
	for (int i = 0; i < opt.stop.n; i++)
		facts_row(stderr, "stop", "%s",
		          error_quote(quoted, sizeof quoted, opt.stop.value[i], strlen(opt.stop.value[i])));
	if (jitrun_has_grammar())
		facts_row(stderr, "format",
		          opt.regex                   ? "a regular expression"
		          : opt.gbnf || opt.gbnf_file ? "a grammar"
		                                      : "JSON");
	if (c->variables) {
		const char *effort = json_string_value(json_object_get(c->variables, "reasoning_effort"));
		facts_row(stderr, "think", "%s",
		          effort                                                    ? effort
		          : json_is_true(json_object_get(c->variables, "thinking")) ? "on"
		                                                                    : "off");
	}
}

static void show_pictures(struct chat *c) { chat_pictures_list(c); }

static void show_system(struct chat *c)
{
	const char *text = chat_system(c);

	if (text)
		show_text(text, strlen(text));
	else
		fputs("There is no system message. /set system TEXT sets one.\n", stderr);
}

static void show_template(struct chat *c)
{
	const char *text = chat_template_of(c);

	if (text)
		show_text(text, strlen(text));
	else
		fputs("The chat template cannot be shown.\n", stderr);
}

/* The file that model directories have. False: there is none. */
static bool show_license_file(void)
{
	static const char *const names[] = { "LICENSE", "LICENSE.txt", "LICENSE.md" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *path = NULL;
		struct prompt p = { 0 };
		jit_error err = { 0 };
		bool ok =
			asprintf(&path, "%s/%s", opt.model, names[i]) >= 0 && prompt_read(&p, path, LICENSE_MAX, &err);
		if (ok)
			show_text(p.text ? p.text : "", p.n);
		prompt_free(&p);
		free(path);
		if (ok)
			return true;
	}
	return false;
}

static void show_license(struct chat *c)
{
	static const char *const keys[] = { "general.license", "general.license.name", "general.license.link" };
	bool any = false;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *text = metadata(c, keys[i]);
		if (text)
			show_text(text, strlen(text));
		any = any || text;
	}
	if (!show_license_file() && !any)
		fputs("The files of this model do not name its license.\n", stderr);
}

static void show_modelfile(struct chat *c)
{
	(void)c;
	if (jitrun_preset.path)
		facts_row(stderr, "preset", "%s", jitrun_preset.path);
	fputs("/show parameters, /show system and /show template have what a Modelfile says.\n", stderr);
}

static const struct {
	const char *name;
	void (*show)(struct chat *c);
	const char *help;
} shown[] = { { "info", show_info, "what the model is, and the size of the context" },
	      { "parameters", show_parameters, "how tokens are chosen, and where answers end" },
	      { "template", show_template, "the chat template" },
	      { "system", show_system, "the system message" },
	      { "pictures", show_pictures, "the pictures of the conversation, or why the model takes none" },
	      { "license", show_license, "under which terms the model is given" },
	      { "modelfile", show_modelfile, "where these come from" } };
enum { SHOWN = sizeof shown / sizeof *shown };

void chat_command_show(struct chat *c, const char *rest)
{
	const char *names[SHOWN];
	const size_t n = strcspn(rest, " \t\n");
	char near[100], quoted[80];

	for (size_t i = 0; i < SHOWN; i++) {
		names[i] = shown[i].name;
		if (strlen(names[i]) == n && strncmp(rest, names[i], n) == 0) {
			shown[i].show(c);
			return;
		}
	}
	if (n) {
		fprintf(stderr, "\"%s\" cannot be shown%s. /show lists what can.\n",
		        error_quote(quoted, sizeof quoted, rest, n), chat_near(near, "/show ", rest, n, names, SHOWN));
		return;
	}
	for (size_t i = 0; i < SHOWN; i++)
		fprintf(stderr, "/show %-10s  %s\n", shown[i].name, shown[i].help);
}
