/* programs/jitrun/jitrun_notes.c - what a person should know besides the answer: that an option will not help, or what
 * to do after a failure. One line each on standard error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/numerics.h"
#include "runtime/host/system.h"
#include "runtime/model/model_notes.h"

struct model_named jitrun_model;

void jitrun_warn(const struct run *r)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats s = JIT_SESSION_STATS();
	int cores = system_default_threads();

	if (opt.quiet)
		return;
	jit_model_get_info(r->model, &info, NULL);
	jit_session_get_stats(r->session, &s, NULL);
	if (info.ranks)
		fprintf(stderr, "jitrun: %s.\n", info.ranks);
	if (numerics_stay_exact(opt.numerics, &info))
		numerics_note("jitrun", &info);
	if (model_sampling_not_done(r->model) && !opt.perplexity)
		fprintf(stderr, "jitrun: the model's own generation_config.json asks for what is not done here: %s.\n",
		        model_sampling_not_done(r->model));
	if (opt.threads > cores)
		fprintf(stderr, "jitrun: %ld threads share %d core%s; more than one for each is slower.\n", opt.threads,
		        cores, cores == 1 ? "" : "s");
	if (!opt.perplexity && opt.context && info.context_trained && opt.context > info.context_trained)
		fprintf(stderr, "jitrun: the model was trained for %d tokens; beyond them, the text may be poor.\n",
		        info.context_trained);
}

void jitrun_tell_context(const struct run *r, bool always)
{
	enum { SHORT = 4096 };
	bool host = strcmp(opt.device, "cpu") == 0 || strcmp(opt.device, "ref") == 0;
	char trained[80] = "trained", bytes[FACTS_SIZE];
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats s = JIT_SESSION_STATS();

	if (opt.context || opt.quiet)
		return;
	jit_model_get_info(r->model, &info, NULL);
	jit_session_get_stats(r->session, &s, NULL);
	if (!always && s.context <= SHORT && s.context == info.context_trained)
		return;
	if (s.context < info.context_trained)
		snprintf(trained, sizeof trained, "trained for %d, --context N asks for more", info.context_trained);
	fprintf(stderr, "context %d (%s); key/value memory for it: %s%s\n", s.context, trained,
	        facts_size(bytes, s.kv_bytes), host ? ", taken as it fills" : "");
}

void jitrun_note_empty(const struct prompt *p)
{
	if (!opt.quiet && !opt.prompt && !opt.file && !p->ids && p->n == 0)
		fprintf(stderr, "jitrun: standard input is empty, so the model begins a text of its own; --prompt TEXT "
		                "or --file FILE gives it a beginning.\n");
}

void jitrun_begin_once(const jit_model *m, struct prompt *p)
{
	int32_t *first = NULL;
	size_t n = 0;

	if (!opt.special || !p->text || p->n_ids < 2)
		return;
	if (jit_model_tokenize(m, "", 0, 1, 0, &first, &n, NULL) == JIT_OK && n && p->ids[0] == first[0] &&
	    p->ids[1] == first[0])
		memmove(p->ids, p->ids + 1, --p->n_ids * sizeof *p->ids);
	free(first);
}

bool jitrun_find_model(const char *word, const struct option_program *commands, int *status)
{
	struct error err = { 0 };

	model_named_free(&jitrun_model);
	if (model_named(&jitrun_model, word, &err))
		return true;
	*status = EXIT_USAGE;
	if (commands && err.code == ERROR_IO && options_refuse_word(commands, word, jitrun_model.near))
		return false;
	*status = jitrun_fail_with(&err);
	if (err.code == ERROR_IO)
		fprintf(stderr, "Try 'jitrun list', which lists the models that are on this machine.\n");
	return false;
}

struct preset jitrun_preset;

bool jitrun_use_preset(const struct option_program *program, int *status)
{
	struct preset *p = &jitrun_preset;
	struct error err = { 0 };

	if (preset_open(p, &jitrun_model, &err)) {
		*status = EXIT_USAGE;
		for (unsigned i = 0; i < p->n_set; i++)
			if (!options_preset(program, p->set[i].name, p->set[i].value)) {
				fprintf(stderr, "jitrun: %s says so.\n", p->path);
				return false;
			}
		*status = 0;
		return true;
	}
	*status = jitrun_fail_with(&err);
	return false;
}

int jitrun_fail_to_open(const char *model, const jit_error *err)
{
	jit_error e = *err;
	size_t n = strlen(e.message);

	if (opt.ranks && !n) /* another rank than 0, which says what there is to say */
		return err->code != JIT_OK;
	if (access(model, F_OK) != 0 && errno == ENOENT)
		snprintf(e.message + n, sizeof e.message - n,
		         "; 'jitrun list' lists the models that are on this machine");
	return jitrun_fail(&e);
}

/* What to do about a failure, where the sentence of the library cannot know it. */
void jitrun_hint(void)
{
	char quoted[900];
	bool pack = opt.cache && strlen(opt.cache) > 4 && !strchr(opt.cache, ':') &&
	            strcmp(opt.cache + strlen(opt.cache) - 4, ".jkp") == 0;

	if (!opt.sealed || !opt.model)
		return;
	fprintf(stderr, "Try 'jitwarm %s", error_quote(quoted, sizeof quoted, opt.model, strlen(opt.model)));
	if (opt.device && strcmp(opt.device, "cpu") != 0)
		fprintf(stderr, " --device %s", error_quote(quoted, sizeof quoted, opt.device, strlen(opt.device)));
	fprintf(stderr, " --out %s', which makes the kernels of this model.\n",
	        pack ? error_quote(quoted, sizeof quoted, opt.cache, strlen(opt.cache)) : "kernels.jkp");
}
