/* programs/jitrun_text.c - the prompt in, generated text out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/jitrun_parts.h"
#include "programs/output.h"
#include "programs/progress.h"

enum { PERPLEXITY_WINDOW = 512, USUAL_BATCH = 264 /* of jit_session_options.batch */ };

int jitrun_get_prompt(struct prompt *p)
{
	jit_error err = { 0 };

	if ((opt.prompt != NULL) + (opt.file != NULL) + (opt.prompt_ids != NULL) + (opt.perplexity != NULL) > 1)
		return jitrun_usage("give one of --prompt, --file, --prompt-ids and --perplexity");
	if (opt.perplexity) {
		opt.context = opt.context ? opt.context : PERPLEXITY_WINDOW;
		if (opt.context < 4)
			return jitrun_usage("a window of --perplexity takes at least 4 tokens of --context");
		return prompt_read(p, opt.perplexity, prompt_most_of_windows(), &err) ? 0 : jitrun_fail(&err);
	}
	if (opt.prompt_ids)
		return prompt_parse_ids(p, opt.prompt_ids, &err) ? 0
		       : err.code == JIT_ERROR_ARGUMENT          ? jitrun_usage(err.message)
		                                                 : jitrun_fail(&err);
	if (opt.prompt) {
		p->n = strlen(opt.prompt);
		p->text = strdup(opt.prompt);
		return p->text ? 0 : jitrun_fail(&(jit_error){ .message = "no memory for the prompt" });
	}
	if (!opt.file && isatty(STDIN_FILENO))
		return jitrun_usage("there is no prompt: give --prompt TEXT, --file FILE, --prompt-ids IDS or text on "
		                    "standard input");
	return prompt_read(p, opt.file ? opt.file : "-", prompt_most(opt.context), &err) ? 0 : jitrun_fail(&err);
}

static bool emit_failed(jit_error *err, int code, const char *what, const char *why)
{
	snprintf(err->message, sizeof err->message, "%s: %s", what, why);
	err->code = code;
	return false;
}

static bool written(jit_error *err)
{
	return (!ferror(stdout) && fflush(stdout) == 0) ||
	       emit_failed(err, JIT_ERROR_IO, "standard output could not be written", strerror(errno));
}

/* What a token adds to the text, or with id -1 what is left of it at the end. */
static bool emit(struct run *r, int32_t id, jit_error *err)
{
	size_t n;
	const char *text = jit_session_text(r->session, id, &n, err);

	if (!text)
		return false;
	if (opt.json || r->keeps_text) {
		char *more = realloc(r->text, r->n_text + n + 1);
		if (!more)
			return emit_failed(err, JIT_ERROR_MEMORY, "the text for --json", "no memory");
		memcpy(more + r->n_text, text, n);
		r->text = more;
		r->n_text += n;
	}
	if (opt.json) {
		return jitrun_json_token(r, id, text, n, err) && (!opt.json_stream || written(err));
	} else if (opt.print_ids) {
		if (id >= 0)
			printf(r->n_generated ? " %d" : "%d", id);
	} else {
		output_text(stdout, text, n, r->terminal);
	}
	return written(err);
}

/* Ctrl-C is no failure. */
static int unless_interrupted(int status) { return interrupted && status == JIT_ERROR_CANCELLED ? JIT_OK : status; }

/* In steps of a pass, so that it can be shown how far it is; without somebody to see it, at once. */
int jitrun_feed(struct run *r, const struct prompt *p, jit_error *err)
{
	size_t pass = opt.batch ? (size_t)opt.batch : USUAL_BATCH;
	struct progress bar;
	int status = JIT_OK;

	progress_begin(&bar, "prompt", "tokens", !opt.quiet && !opt.echo && !opt.show_prompt);
	for (size_t at = 0, n; status == JIT_OK && at < p->n_ids && !interrupted; at += n) {
		n = bar.wanted && p->n_ids - at > pass ? pass : p->n_ids - at;
		progress_show(&bar, at, p->n_ids);
		status = jit_session_feed(r->session, p->ids + at, n, err);
	}
	progress_end(&bar);
	return unless_interrupted(status);
}

int jitrun_generate(struct run *r, jit_error *err)
{
	int32_t id;

	while (!interrupted && (opt.n < 0 || r->n_generated < (size_t)opt.n)) {
		int status = jit_session_next(r->session, &id, err);
		if (status == JIT_ERROR_CONTEXT && r->n_generated) {
			r->full = true;
			break;
		}
		if (unless_interrupted(status) != status)
			break;
		if (status != JIT_OK)
			return status;
		if (r->n_generated == 0)
			r->first_token = jitrun_seconds() - r->start;
		if (!opt.ignore_eos && jit_model_is_end(r->model, id)) {
			r->ended = true;
			break;
		}
		if (!emit(r, id, err))
			return err->code;
		r->n_generated++;
		if (jit_session_stopped(r->session) >= 0) {
			r->stopped = true;
			break;
		}
	}
	return emit(r, -1, err) ? JIT_OK : err->code;
}

bool jitrun_echo(const struct run *r, const struct prompt *p, jit_error *err)
{
	size_t n = p->n;
	char *spelled = p->text ? NULL : jit_model_detokenize(r->model, p->ids, p->n_ids, &n, err);

	if (!p->text && !spelled)
		return false;
	output_text(stdout, p->text ? p->text : spelled, n, r->terminal);
	free(spelled);
	return written(err);
}
