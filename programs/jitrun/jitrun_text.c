/* programs/jitrun/jitrun_text.c - the prompt in, generated text out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"
#include "programs/common/progress.h"
#include "runtime/model/model.h"
#include "runtime/session/session_limits.h"

enum { PERPLEXITY_WINDOW = 512, USUAL_BATCH = 264, CARD_BATCH = 512 /* of jit_session_options.batch */ };

int jitrun_get_prompt(struct prompt *p)
{
	jit_error err = { 0 };

	if ((opt.prompt != NULL) + (opt.file != NULL) + (opt.prompt_ids != NULL) + (opt.perplexity != NULL) > 1)
		return jitrun_usage("give one of --prompt, --file, --prompt-ids and --perplexity");
	if (opt.perplexity) {
		opt.context = opt.context ? opt.context : PERPLEXITY_WINDOW;
		if (opt.context < 4)
			return jitrun_usage("a window of --perplexity takes at least 4 tokens of --context");
		return prompt_read(p, opt.perplexity, prompt_max_of_windows(), &err) ? 0 : jitrun_fail(&err);
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
	return prompt_read(p, opt.file ? opt.file : "-", prompt_max(opt.context), &err) ? 0 : jitrun_fail(&err);
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

/* ---- the text of tokens */

void jitrun_find_marks(struct run *r)
{
	for (size_t i = 0; i < THINK_MARKS; i++) {
		const char *mark = think_mark(i);
		int32_t *ids = NULL;
		size_t n = 0;
		bool one = jit_model_tokenize(r->model, mark, strlen(mark), 0, 1, &ids, &n, NULL) == JIT_OK && n == 1;
		r->mark_id[i] = one ? ids[0] : -1;
		free(ids);
	}
}

/* What a token adds to the text. Marks that are control tokens have no text, and are wanted all the same. */
static const char *text_of(struct run *r, int32_t id, size_t *n, jit_error *err)
{
	const char *text = jit_session_text(r->session, id, n, err);

	for (size_t i = 0; text && *n == 0 && id >= 0 && i < THINK_MARKS; i++)
		if (r->mark_id[i] == id) {
			*n = strlen(think_mark(i));
			return think_mark(i);
		}
	return text;
}

static bool keep(char **all, size_t *n_all, const char *text, size_t n, jit_error *err)
{
	char *more = realloc(*all, *n_all + n + 1);

	if (!more)
		return emit_failed(err, JIT_ERROR_MEMORY, "the text that is kept", "no memory");
	if (n)
		memcpy(more + *n_all, text, n);
	*all = more;
	*n_all += n;
	return true;
}

static void print_reasoning(struct run *r, const char *text, size_t n)
{
	const char *no_color = getenv("NO_COLOR");
	bool dim = r->terminal && strcmp(opt.think, "dim") == 0 && !(no_color && *no_color);

	if (n && strcmp(opt.think, "hide") != 0)
		wrap_text(&r->wrap, text, n, dim);
}

/* In JSON, reasoning is part of the text only for those who ask for it. */
static bool take_text(struct run *r, int32_t id, struct think_parts *out, jit_error *err)
{
	size_t n;
	const char *text = text_of(r, id, &n, err);

	if (!text)
		return false;
	if (opt.json && strcmp(opt.think, "show") == 0) {
		*out = (struct think_parts){ .reasoning = text, .answer = text, .n_answer = n };
		return true;
	}
	if (n && !think_take(&r->think, text, n, out))
		return emit_failed(err, JIT_ERROR_MEMORY, "the text", "no memory");
	return true;
}

static bool emit_parts(struct run *r, int32_t id, const struct think_parts *t, jit_error *err)
{
	if ((opt.json || r->keeps_text) && !(keep(&r->text, &r->n_text, t->answer, t->n_answer, err) &&
	                                     keep(&r->reasoning, &r->n_reasoning, t->reasoning, t->n_reasoning, err)))
		return false;
	if (opt.json)
		return jitrun_json_token(r, id, t, err) && (!opt.json_stream || written(err));
	if (jitrun_is_stdout(opt.dump_ir) || jitrun_is_stdout(opt.dump_asm))
		return true; /* which has standard output to itself */
	if (opt.print_ids) {
		if (id >= 0)
			printf(r->n_generated ? " %d" : "%d", id);
	} else {
		print_reasoning(r, t->reasoning, t->n_reasoning);
		if (t->n_answer)
			wrap_text(&r->wrap, t->answer, t->n_answer, false);
	}
	return written(err);
}

static bool emit(struct run *r, int32_t id, jit_error *err)
{
	struct think_parts parts = { 0 };

	return take_text(r, id, &parts, err) && emit_parts(r, id, &parts, err);
}

/* What is held back at the end, here and in the session. */
static bool emit_rest(struct run *r, jit_error *err)
{
	struct think_parts parts = { 0 };

	if (!emit(r, -1, err))
		return false;
	if (!think_take(&r->think, NULL, 0, &parts))
		return emit_failed(err, JIT_ERROR_MEMORY, "the text", "no memory");
	return parts.n_answer + parts.n_reasoning == 0 || emit_parts(r, -1, &parts, err);
}

/* Ctrl-C is no failure. */
static int unless_interrupted(int status) { return interrupted && status == JIT_ERROR_CANCELLED ? JIT_OK : status; }

/* In steps of a pass, so that it can be shown how far it is; without somebody to see it, at once. */
int jitrun_feed(struct run *r, const struct prompt *p, jit_error *err)
{
	const bool card = opt.device && (strncmp(opt.device, "cuda", 4) == 0 || strncmp(opt.device, "sim:sm", 6) == 0);
	size_t pass = opt.batch ? (size_t)opt.batch : card ? CARD_BATCH : USUAL_BATCH;
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

static int generate(struct run *r, jit_error *err)
{
	int32_t id;

	if (!jitrun_begin_grammar(r, err))
		return err->code;
	while (!interrupted && (opt.n < 0 || r->n_generated < (size_t)opt.n)) {
		int status = jit_session_next(r->session, &id, err);
		if (status == JIT_ERROR_CONTEXT && r->n_generated) {
			r->full = true;
			break;
		}
		if (unless_interrupted(status) != status)
			break;
		/* A model without an end token stops where nothing can follow. */
		if (status == JIT_ERROR_ARGUMENT && jitrun_grammar_is_complete(r->session)) {
			r->ended = true;
			break;
		}
		if (status != JIT_OK)
			return status;
		if (r->n_generated == 0)
			r->first_token = jitrun_seconds() - r->start;
		if ((!opt.ignore_eos || jitrun_has_grammar()) && jit_model_is_end(r->model, id)) {
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
	return emit_rest(r, err) ? JIT_OK : err->code;
}

/* Reasoning that the answer or the prompt's end opens is closed behind so many tokens. */
static bool begin_limits(struct run *r, jit_error *err)
{
	const struct session_limits_options o = { .budget = opt.reasoning_budget, .message = opt.reasoning_message };
	struct error e = { 0 };

	if (opt.reasoning_budget < 0)
		return true;
	if (!r->limits)
		r->limits = session_limits_open(r->model, &o, &e);
	return (r->limits && session_set_limits(r->session, r->limits, &e)) || model_report(err, &e) == JIT_OK;
}

int jitrun_generate(struct run *r, jit_error *err)
{
	int status = begin_limits(r, err) ? generate(r, err) : err->code;

	wrap_flush(&r->wrap); /* the last word, however it ended */
	return status != JIT_OK || written(err) ? status : err->code;
}

bool jitrun_echo(struct run *r, const struct prompt *p, jit_error *err)
{
	size_t n = p->n;
	char *spelled = p->text ? NULL : jit_model_detokenize(r->model, p->ids, p->n_ids, &n, err);

	if (!p->text && !spelled)
		return false;
	wrap_text(&r->wrap, p->text ? p->text : spelled, n, false);
	free(spelled);
	return written(err);
}
