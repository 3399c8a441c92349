/* programs/jitrun/jitrun_template.c - the chat template of a conversation, judged before the model is loaded.
 *
 * Owns: what --template means, a file or a name. Only the headers of the model's files are read here. When they cannot
 * be, nothing is said: opening the model says it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/jitrun/jitrun_parts.h"
#include "runtime/session/chat.h"
#include "runtime/model/packed.h"

static bool is_file(const char *given) { return strpbrk(given, "./") || access(given, F_OK) == 0; }

/* Of a file: its text, which is freed by the caller. */
static bool read_file(char **text, struct error *e)
{
	struct prompt p = { 0 };
	jit_error err = { 0 };

	if (!prompt_read(&p, opt.template_file, MODEL_MAX_CHAT_TEMPLATE, &err))
		return error_set(e, ERROR_IO, "%s", err.message);
	*text = strndup(p.text ? p.text : "", p.n);
	prompt_free(&p);
	return *text || error_set(e, ERROR_MEMORY, "no memory for the chat template");
}

/* The model's own templates, as far as an answer would stumble over them. */
static int check_model(const struct model *m, const char *name)
{
	struct error e = { 0 };

	if (!name && !model_find_chat_template(m, NULL) && !m->chat_template_error.code)
		return jitrun_usage("this model's files have no chat template: give --prompt TEXT to continue a text, "
		                    "or --template FILE to talk");
	return chat_can_use(m, name, NULL, &e) ? 0 : jitrun_fail_with(&e);
}

int jitrun_check_template(char **text)
{
	struct model m;
	struct packed *packed;
	struct error e = { 0 }, ignored = { 0 };

	*text = NULL;
	if (!opt.template_file && jitrun_preset.template) {
		*text = strdup(jitrun_preset.template);
		return *text && chat_can_use(NULL, NULL, *text, &e) ? 0 : jitrun_fail_with(&e);
	}
	if (opt.template_file && is_file(opt.template_file))
		return read_file(text, &e) && chat_can_use(NULL, NULL, *text, &e) ? 0 : jitrun_fail_with(&e);
	if (!packed_or_files(&m, &packed, opt.model, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER | MODEL_CHAT_TEMPLATES,
	                     &ignored))
		return 0;
	int rc = check_model(&m, opt.template_file);
	model_close(&m);
	packed_close(packed);
	return rc;
}
